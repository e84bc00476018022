/*
 * Host side of the Zstandard encoder: divides scratch, and launches the kernels of zstd_encode.cu
 * and zstd_encode_join.cu on the batch's stream, for as many TIFF blocks at a time (a round) as the
 * scratch holds.
 *
 *     scratch      | workspaces of thread blocks | encoded parts of a round | part table |
 */
#include "base/math.h"
#include "kernels/encode/part_count.h"
#include "kernels/zstd/zstd_encode_args.h"

extern const cogpu_kernel cogpu_kernel_zstd_encode, cogpu_kernel_zstd_encode_offsets,
    cogpu_kernel_zstd_encode_join;

/* Thread blocks of the encoding kernel at a time: 2 on each of the 132 multiprocessors of an H200,
 * the largest device so far, and some more. Each needs a workspace. */
enum { ENCODE_BLOCKS_MAX = 320 };

/* What a compression level does beyond matches at raster distances. */
struct zstd_effort {
    uint32_t hash_tables, passes;
};

/* {hash_tables, passes}. */
static struct zstd_effort effort_of_level(int level) {
    static const struct zstd_effort none = {0, 1}, short_keys = {1, 1}, both_keys = {2, 1},
                                    two_passes = {2, 2};
    return level <= 3 ? none : level <= 6 ? short_keys : level <= 12 ? both_keys : two_passes;
}

static uint64_t zstd_bound(uint64_t in_bytes, uint64_t row_bytes) {
    (void)row_bytes;
    return in_bytes + COGPU_ZSTD_FRAME_HEADER_BYTES +
           COGPU_ZSTD_BLOCK_HEADER_BYTES * divide_up(in_bytes, COGPU_ZSTD_PART_BYTES);
}

static uint64_t workspaces_bytes(uint64_t thread_blocks) {
    return cogpu_gpu_align(thread_blocks * sizeof(struct cogpu_zstd_workspace));
}

static uint64_t parts_bytes(uint64_t parts) {
    return parts * COGPU_ZSTD_ENCODED_BYTES +
           cogpu_gpu_align(parts * sizeof(struct cogpu_zstd_part));
}

static uint64_t scratch_bytes(uint64_t blocks, uint64_t thread_blocks, uint64_t max_parts) {
    return workspaces_bytes(thread_blocks) + blocks * parts_bytes(max_parts);
}

static void zstd_scratch(const cogpu_raw_block *blocks, uint32_t count, int level, uint64_t *least,
                         uint64_t *best) {
    const uint64_t max_parts = cogpu_max_parts(blocks, count, COGPU_ZSTD_PART_BYTES);
    (void)level;
    *least = scratch_bytes(1, 1, max_parts);
    *best = scratch_bytes(count, min_u64(count * max_parts, ENCODE_BLOCKS_MAX), max_parts);
}

/* Thread blocks of the encoding kernel. With less scratch than the best, as many as leave memory
 * for the TIFF blocks that they encode at a time, and at least one. */
static uint64_t choose_grid(const cogpu_gpu_encoding *encoding, uint64_t max_parts) {
    const uint64_t resident =
        (uint64_t)encoding->gpu->multiprocessors * cogpu_kernel_zstd_encode.per_multiprocessor;
    uint64_t grid = min_u64(min_u64(resident, ENCODE_BLOCKS_MAX), encoding->count * max_parts);
    while (grid > 1 &&
           scratch_bytes(divide_up(grid, max_parts), grid, max_parts) > encoding->scratch_bytes)
        grid--;
    return grid;
}

static cogpu_status launch_round(const cogpu_gpu_encoding *encoding,
                                 const struct cogpu_zstd_encode_args *args, uint64_t grid,
                                 cogpu_error *error) {
    cogpu_gpu *gpu = encoding->gpu;
    const uint32_t parts = args->count * args->max_parts;
    TRY(gpu->calls->launch(gpu, &cogpu_kernel_zstd_encode, (uint32_t)min_u64(grid, parts), args,
                           encoding->stream, error));
    TRY(gpu->calls->launch(gpu, &cogpu_kernel_zstd_encode_offsets, args->count, args,
                           encoding->stream, error));
    return gpu->calls->launch(gpu, &cogpu_kernel_zstd_encode_join, parts, args, encoding->stream,
                              error);
}

static cogpu_status zstd_encode(const cogpu_gpu_encoding *encoding, cogpu_error *error) {
    const struct zstd_effort effort = effort_of_level(encoding->level);
    const uint64_t max_parts =
        cogpu_max_parts(encoding->blocks, encoding->count, COGPU_ZSTD_PART_BYTES);
    const uint64_t grid = choose_grid(encoding, max_parts);
    const uint64_t encoded_at = workspaces_bytes(grid);
    const uint64_t blocks =
        min_u64((encoding->scratch_bytes - encoded_at) / parts_bytes(max_parts), encoding->count);
    struct cogpu_zstd_encode_args args = {
        .decoded = encoding->decoded,
        .slots = encoding->slots,
        .encoded = encoding->scratch + encoded_at,
        .workspaces = (struct cogpu_zstd_workspace *)(void *)encoding->scratch,
        .max_parts = (uint32_t)max_parts,
        .hash_tables = effort.hash_tables,
        .passes = effort.passes};
    for (uint64_t first = 0; first < encoding->count; first += args.count) {
        args.count = (uint32_t)min_u64(blocks, encoding->count - first);
        args.blocks = encoding->device_blocks + first;
        args.sizes = encoding->sizes + first;
        args.parts =
            (struct cogpu_zstd_part *)(void *)(args.encoded +
                                               args.count * max_parts * COGPU_ZSTD_ENCODED_BYTES);
        TRY(launch_round(encoding, &args, grid, error));
    }
    return COGPU_OK;
}

/* 512 parts: more than an H200 encodes at once. */
static uint64_t zstd_batch_bytes(int level) {
    (void)level;
    return 16 << 20;
}

static const cogpu_kernel *const kernels[] = {&cogpu_kernel_zstd_encode,
                                              &cogpu_kernel_zstd_encode_offsets,
                                              &cogpu_kernel_zstd_encode_join, NULL};

const cogpu_gpu_encoder cogpu_gpu_zstd_encoder = {.kernels = kernels,
                                                  .bound = zstd_bound,
                                                  .scratch = zstd_scratch,
                                                  .batch_bytes = zstd_batch_bytes,
                                                  .encode = zstd_encode};
