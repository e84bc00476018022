/*
 * Takes a batch of blocks, launches the kernels of cuda_zstd_encode.cu, which make Zstandard frames
 * of them: as many blocks in a round as the scratch has room for. In a round thread blocks take one
 * part of a block after the other; then each part is given its place; then all are moved there.
 */
#include "backend/cuda/cuda_zstd_encode.h"

extern const cogpu_kernel cogpu_kernel_zstd_encode, cogpu_kernel_zstd_place, cogpu_kernel_zstd_join;

/* Thread blocks that encode, at once: more the largest device does not hold. */
enum { ENCODING_MAX = 320 };

/* What is done beyond the distances that are always asked. */
struct effort {
    uint32_t keys, turns;
};

static struct effort effort_of(int level) {
    static const struct effort none = {0, 1}, some = {1, 1}, usual = {2, 1}, most = {2, 2};
    return level <= 3 ? none : level <= 6 ? some : level <= 12 ? usual : most;
}

static uint64_t least_of(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t parts_of(uint64_t bytes) {
    return (bytes + COGPU_ZSTD_PART - 1) / COGPU_ZSTD_PART;
}

static uint64_t parts_most(const cogpu_uncoded *blocks, uint32_t count) {
    uint64_t most = 1;
    for (uint32_t i = 0; i < count; i++)
        most = parts_of(blocks[i].in_bytes) > most ? parts_of(blocks[i].in_bytes) : most;
    return most;
}

static uint64_t zstd_bound(uint64_t in_bytes, uint64_t row_bytes) {
    (void)row_bytes;
    return in_bytes + COGPU_ZSTD_FRAME_HEAD + COGPU_ZSTD_PART_HEAD * parts_of(in_bytes);
}

/* Scratch begins with what thread blocks work with; then parts are staged and told of. */
static const uint64_t work_bytes = sizeof(struct cogpu_zstd_work);

static uint64_t part_bytes(uint64_t parts) {
    return parts * COGPU_ZSTD_STAGED + cogpu_gpu_align(parts * sizeof(struct cogpu_zstd_part));
}

static uint64_t scratch_of(uint64_t blocks, uint64_t encoding, uint64_t most) {
    return cogpu_gpu_align(encoding * work_bytes) + blocks * part_bytes(most);
}

static void zstd_scratch(const cogpu_uncoded *blocks, uint32_t count, int level, uint64_t *least,
                         uint64_t *best) {
    const uint64_t most = parts_most(blocks, count);
    (void)level;
    *least = scratch_of(1, 1, most);
    *best = scratch_of(count, least_of(count * most, ENCODING_MAX), most);
}

static cogpu_status encode_round(const cogpu_gpu_encoding *encoding,
                                 const struct cogpu_zstd_encode_args *args, uint64_t at_once,
                                 cogpu_error *error) {
    cogpu_gpu *gpu = encoding->gpu;
    const uint32_t parts = args->count * args->parts_most;
    TRY(gpu->calls->launch(gpu, &cogpu_kernel_zstd_encode, (uint32_t)least_of(at_once, parts), args,
                           encoding->stream, error));
    TRY(gpu->calls->launch(gpu, &cogpu_kernel_zstd_place, args->count, args, encoding->stream,
                           error));
    return gpu->calls->launch(gpu, &cogpu_kernel_zstd_join, parts, args, encoding->stream, error);
}

/* Where there is less scratch than is best, as many thread blocks encode as leave room for one
 * block, and for as many more as are encoded by them at once. */
static cogpu_status zstd_encode(const cogpu_gpu_encoding *encoding, cogpu_error *error) {
    const struct effort effort = effort_of(encoding->level);
    const uint64_t most = parts_most(encoding->blocks, encoding->count);
    const uint64_t held =
        (uint64_t)encoding->gpu->multiprocessors * cogpu_kernel_zstd_encode.per_multiprocessor;
    const uint64_t wanted = least_of(least_of(held, ENCODING_MAX), encoding->count * most);
    uint64_t at_once = wanted;
    while (at_once > 1 &&
           scratch_of((at_once + most - 1) / most, at_once, most) > encoding->scratch_bytes)
        at_once--;
    const uint64_t behind = cogpu_gpu_align(at_once * work_bytes);
    const uint64_t blocks =
        least_of((encoding->scratch_bytes - behind) / part_bytes(most), encoding->count);
    struct cogpu_zstd_encode_args args = {.decoded = encoding->decoded,
                                          .slots = encoding->slots,
                                          .staged = encoding->scratch + behind,
                                          .work =
                                              (struct cogpu_zstd_work *)(void *)encoding->scratch,
                                          .parts_most = (uint32_t)most,
                                          .keys = effort.keys,
                                          .turns = effort.turns};
    for (uint64_t first = 0; first < encoding->count; first += args.count) {
        args.count = (uint32_t)least_of(blocks, encoding->count - first);
        args.blocks = encoding->device_blocks + first;
        args.sizes = encoding->sizes + first;
        args.parts =
            (struct cogpu_zstd_part *)(void *)(args.staged + args.count * most * COGPU_ZSTD_STAGED);
        TRY(encode_round(encoding, &args, at_once, error));
    }
    return COGPU_OK;
}

static uint64_t zstd_batch_bytes(int level) {
    (void)level;
    return 16 << 20;
}

const cogpu_gpu_encoder cogpu_gpu_zstd_encoder = {.bound = zstd_bound,
                                                  .scratch = zstd_scratch,
                                                  .batch_bytes = zstd_batch_bytes,
                                                  .encode = zstd_encode};
