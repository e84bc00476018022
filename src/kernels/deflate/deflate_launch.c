/*
 * Host side of the Deflate encoder: divides scratch, and launches the kernels of deflate_chain.cu,
 * deflate.cu and deflate_join.cu on the batch's stream, for as many TIFF blocks at a time (a round)
 * as the scratch holds.
 *
 *     scratch of a round
 *     | encoded parts | hash chains (search) | part table | matches of thread blocks (search) |
 */
#include "base/math.h"
#include "kernels/deflate/deflate_args.h"
#include "kernels/encode/part_count.h"

extern const cogpu_kernel cogpu_kernel_deflate_chain, cogpu_kernel_deflate,
    cogpu_kernel_deflate_search, cogpu_kernel_deflate_offsets, cogpu_kernel_deflate_join;

/* Thread blocks of the searching kernel at a time: 3 on each of the 132 multiprocessors of an H200,
 * the largest device so far. Each needs memory for matches. */
enum { SEARCH_BLOCKS_MAX = 400 };

static const uint64_t matches_bytes = COGPU_DEFLATE_PART_BYTES * sizeof(uint32_t);

/* What a compression level does beyond matches at raster distances. */
struct deflate_effort {
    uint32_t max_chain, passes;
};

/* {max_chain, passes} for levels 1 to 6, for 7, for 8, and for 9 to 12. */
static struct deflate_effort effort_of_level(int level) {
    static const struct deflate_effort efforts[] = {{0, 1}, {1, 1}, {4, 3}, {16, 3}};
    return efforts[level <= 6 ? 0 : level >= 9 ? 3 : level - 6];
}

/* zlib header (2 bytes), Adler-32 (4 bytes), stored blocks in the worst case; in whole words. */
static uint64_t deflate_bound(uint64_t in_bytes, uint64_t row_bytes) {
    (void)row_bytes;
    const uint64_t bits = divide_up(in_bytes, COGPU_DEFLATE_PART_BYTES) * COGPU_DEFLATE_STORED_BITS;
    return (in_bytes + (bits + 7) / 8 + 2 + 4 + 3) / 4 * 4;
}

/* Offsets into scratch for so many parts. */
struct scratch_layout {
    uint64_t chains, parts, bytes;
};

static struct scratch_layout lay_out_scratch(uint64_t parts, bool has_search) {
    struct scratch_layout layout;
    layout.chains = parts * COGPU_DEFLATE_ENCODED_BYTES;
    layout.parts = layout.chains + has_search * parts * COGPU_DEFLATE_PART_BYTES * sizeof(uint16_t);
    layout.bytes = layout.parts + cogpu_gpu_align(parts * sizeof(struct cogpu_deflate_part));
    return layout;
}

/* What scratch has memory for: TIFF blocks per round, and thread blocks that search at a time. */
struct scratch_split {
    uint64_t blocks, search_blocks;
};

static struct scratch_split best_split(uint32_t count, uint64_t max_parts, bool has_search) {
    return (struct scratch_split){count,
                                  has_search ? min_u64(count * max_parts, SEARCH_BLOCKS_MAX) : 0};
}

static uint64_t split_bytes(struct scratch_split split, uint64_t max_parts) {
    return split.blocks * lay_out_scratch(max_parts, split.search_blocks > 0).bytes +
           split.search_blocks * matches_bytes;
}

/* With less scratch than the best, there are fewer of both in proportion, but at least one. */
static struct scratch_split split_scratch(uint64_t bytes, struct scratch_split best,
                                          uint64_t max_parts) {
    const uint64_t whole = split_bytes(best, max_parts), some = min_u64(bytes, whole);
    const uint64_t block_bytes = lay_out_scratch(max_parts, best.search_blocks > 0).bytes;
    struct scratch_split split = {0, 0};
    if (best.search_blocks > 0) {
        const uint64_t fair = some / matches_bytes * best.search_blocks / (whole / matches_bytes);
        split.search_blocks = min_u64(fair > 0 ? fair : 1, (some - block_bytes) / matches_bytes);
    }
    split.blocks = (some - split.search_blocks * matches_bytes) / block_bytes;
    return split;
}

static void deflate_scratch(const cogpu_raw_block *blocks, uint32_t count, int level,
                            uint64_t *least, uint64_t *best) {
    const uint64_t max_parts = cogpu_max_parts(blocks, count, COGPU_DEFLATE_PART_BYTES);
    const bool has_search = effort_of_level(level).max_chain > 0;
    *least = split_bytes((struct scratch_split){1, has_search}, max_parts);
    *best = split_bytes(best_split(count, max_parts, has_search), max_parts);
}

static cogpu_status launch_round(const cogpu_gpu_encoding *encoding,
                                 const struct cogpu_deflate_args *args, uint64_t search_blocks,
                                 cogpu_error *error) {
    cogpu_gpu *gpu = encoding->gpu;
    const bool has_search = args->max_chain > 0;
    const cogpu_kernel *kernel = has_search ? &cogpu_kernel_deflate_search : &cogpu_kernel_deflate;
    const uint32_t parts = args->count * args->max_parts;
    const uint64_t resident = (uint64_t)gpu->multiprocessors * kernel->per_multiprocessor;
    const uint64_t grid = min_u64(has_search ? min_u64(resident, search_blocks) : resident, parts);
    if (has_search) {
        const uint64_t warps = divide_up((uint64_t)args->max_parts * COGPU_DEFLATE_PART_BYTES,
                                         COGPU_DEFLATE_CHAIN_BYTES);
        TRY(gpu->calls->launch(gpu, &cogpu_kernel_deflate_chain, (uint32_t)(args->count * warps),
                               args, encoding->stream, error));
    }
    TRY(gpu->calls->launch(gpu, kernel, (uint32_t)grid, args, encoding->stream, error));
    TRY(gpu->calls->launch(gpu, &cogpu_kernel_deflate_offsets, args->count, args, encoding->stream,
                           error));
    return gpu->calls->launch(gpu, &cogpu_kernel_deflate_join, parts, args, encoding->stream,
                              error);
}

static cogpu_status deflate_encode(const cogpu_gpu_encoding *encoding, cogpu_error *error) {
    const struct deflate_effort effort = effort_of_level(encoding->level);
    const bool has_search = effort.max_chain > 0;
    const uint64_t max_parts =
        cogpu_max_parts(encoding->blocks, encoding->count, COGPU_DEFLATE_PART_BYTES);
    const struct scratch_split best = best_split(encoding->count, max_parts, has_search);
    const struct scratch_split split = split_scratch(encoding->scratch_bytes, best, max_parts);
    uint8_t *scratch = encoding->scratch;
    struct cogpu_deflate_args args = {.decoded = encoding->decoded,
                                      .slots = encoding->slots,
                                      .encoded = scratch,
                                      .max_parts = (uint32_t)max_parts,
                                      .max_chain = effort.max_chain,
                                      .passes = effort.passes};
    for (uint64_t first = 0; first < encoding->count; first += args.count) {
        args.count = (uint32_t)min_u64(split.blocks, encoding->count - first);
        args.blocks = encoding->device_blocks + first;
        args.sizes = encoding->sizes + first;
        const struct scratch_layout layout = lay_out_scratch(args.count * max_parts, has_search);
        args.chains = (uint16_t *)(void *)(scratch + layout.chains);
        args.parts = (struct cogpu_deflate_part *)(void *)(scratch + layout.parts);
        args.matches = (uint32_t *)(void *)(scratch + layout.bytes);
        TRY(launch_round(encoding, &args, split.search_blocks, error));
    }
    return COGPU_OK;
}

/* A third of it keeps the device busy. But a batch costs the host about 0.1 ms, whatever its size;
 * and the chain kernel of a search has only one warp for each 64 KiB. */
static uint64_t deflate_batch_bytes(int level) {
    (void)level;
    return 20 << 20;
}

static const cogpu_kernel *const kernels[] = {
    &cogpu_kernel_deflate_chain,   &cogpu_kernel_deflate,      &cogpu_kernel_deflate_search,
    &cogpu_kernel_deflate_offsets, &cogpu_kernel_deflate_join, NULL};

const cogpu_gpu_encoder cogpu_gpu_deflate_encoder = {.kernels = kernels,
                                                     .bound = deflate_bound,
                                                     .scratch = deflate_scratch,
                                                     .batch_bytes = deflate_batch_bytes,
                                                     .encode = deflate_encode};
