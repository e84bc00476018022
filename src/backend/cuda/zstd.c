/*
 * Launches the kernels of cuda_zstd.cu: takes a batch of zstd streams, hands on their content and
 * verdicts.
 *
 * How much scratch memory a stream needs is in its headers, which the host has not seen. So the
 * device looks, and deals the tiles out into rounds that fit; the host only says how many rounds
 * there may be. Most streams need a fifth of what they decode to: sequences of three bytes and
 * tables for a few thousand of them, the worst case, are not to be found in rasters.
 */
#include "backend/cuda/cuda_zstd.h"

extern const cogpu_kernel cogpu_kernel_zstd_scan, cogpu_kernel_zstd_plan, cogpu_kernel_zstd_fill,
    cogpu_kernel_zstd_tables, cogpu_kernel_zstd_streams, cogpu_kernel_zstd_execute_few,
    cogpu_kernel_zstd_execute_some, cogpu_kernel_zstd_execute_many;

/* 2 GiB. Sums for 32 tiles are of 32 bits. */
enum { POOL_QUADS_MAX = (1 << 27) - 1 };

enum { TABLES_BYTES = (ZSTD_TREE_QUADS + ZSTD_CODES_QUADS) * ZSTD_QUAD };

/* What a tile may need of the pool: marks for a sequence of each three bytes, and tables for each 8
 * KiB, though with a window of 1 KiB there could be more. And what a tile of its size does need as
 * a rule. */
static uint64_t worst_pool(uint32_t room) {
    const uint64_t marks = (uint64_t)room / 3 / ZSTD_MARKED * ZSTD_MARK_BYTES;
    const uint64_t tables = (32 + room / 8192) * (uint64_t)TABLES_BYTES;
    return marks + tables + 2ull * ZSTD_QUAD * zstd_most_blocks(room);
}

static uint64_t usual_pool(uint32_t room) {
    const uint64_t marks = (uint64_t)room / 6 / ZSTD_MARKED * ZSTD_MARK_BYTES;
    const uint64_t tables = (1 + room / (96 << 10)) * (uint64_t)TABLES_BYTES;
    return marks + tables + 8 * ZSTD_QUAD;
}

static uint64_t usual_blocks(uint32_t room) {
    return 4 + room / (32 << 10);
}

/* Sums over a batch. */
struct needs {
    uint64_t worst_pool, worst_blocks; /* of the worst tile */
    uint64_t usual_pool, usual_blocks; /* of all, and not less than the above */
};

static struct needs needs_of(const cogpu_coded *blocks, uint32_t count) {
    struct needs needs = {0};
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t pool = worst_pool(blocks[i].room);
        if (pool > needs.worst_pool)
            needs.worst_pool = pool;
        if (zstd_most_blocks(blocks[i].room) > needs.worst_blocks)
            needs.worst_blocks = zstd_most_blocks(blocks[i].room);
        needs.usual_pool += usual_pool(blocks[i].room);
        needs.usual_blocks += usual_blocks(blocks[i].room);
    }
    if (needs.usual_pool < needs.worst_pool)
        needs.usual_pool = needs.worst_pool;
    if (needs.usual_blocks < needs.worst_blocks)
        needs.usual_blocks = needs.worst_blocks;
    return needs;
}

/* Notes about tiles and rounds, of which there are no more than tiles. */
static uint64_t notes_bytes(uint32_t count) {
    return cogpu_gpu_align(count * sizeof(struct zstd_tile)) +
           cogpu_gpu_align(count * sizeof(struct zstd_round));
}

static void scratch(const cogpu_coded *blocks, uint32_t count, uint64_t *least, uint64_t *best) {
    const struct needs needs = needs_of(blocks, count);
    *least = notes_bytes(count) + cogpu_gpu_align(needs.worst_blocks * sizeof(struct zstd_block)) +
             cogpu_gpu_align(needs.worst_pool);
    *best = notes_bytes(count) + cogpu_gpu_align(needs.usual_blocks * sizeof(struct zstd_block)) +
            cogpu_gpu_align(needs.usual_pool);
}

/* Divides the scratch memory. */
static struct zstd_args arrange(const cogpu_gpu_batch *batch) {
    const struct needs needs = needs_of(batch->blocks, batch->count);
    const uint64_t notes = notes_bytes(batch->count);
    uint64_t left = batch->scratch_bytes - notes;
    /* Blocks get what the worst pool leaves them. */
    uint64_t blocks = (left - cogpu_gpu_align(needs.worst_pool)) / sizeof(struct zstd_block);
    if (blocks > needs.usual_blocks)
        blocks = needs.usual_blocks;
    if (blocks < needs.worst_blocks)
        blocks = needs.worst_blocks;
    const uint64_t block_bytes = cogpu_gpu_align(blocks * sizeof(struct zstd_block));
    uint64_t quads = (left - block_bytes) / ZSTD_QUAD;
    if (quads > POOL_QUADS_MAX)
        quads = POOL_QUADS_MAX;
    /* A tile that does not fit begins a round, so two rounds hold more than one's fill. */
    uint64_t rounds = 2 * (needs.usual_pool / (quads * ZSTD_QUAD + 1) + 1) +
                      2 * ((needs.usual_blocks - 1) / blocks);
    if (rounds > batch->count)
        rounds = batch->count;
    uint8_t *at = batch->scratch;
    return (struct zstd_args){
        .stored = batch->stored,
        .decoded = batch->decoded,
        .verdicts = batch->verdicts,
        .coded = batch->device_blocks,
        .tiles = (void *)at,
        .rounds = (void *)(at + cogpu_gpu_align(batch->count * sizeof(struct zstd_tile))),
        .blocks = (void *)(at + notes),
        .pool = at + notes + block_bytes,
        .tile_count = batch->count,
        .round_count = (uint32_t)rounds,
        .most_blocks = (uint32_t)blocks,
        .most_quads = (uint32_t)quads,
    };
}

static cogpu_status launch(const cogpu_gpu_batch *batch, const cogpu_kernel *kernel,
                           uint64_t blocks, const struct zstd_args *args, cogpu_error *error) {
    const uint64_t fit = (uint64_t)batch->gpu->multiprocessors * kernel->per_multiprocessor;
    if (blocks > fit) /* they go round */
        blocks = fit;
    return batch->gpu->calls->launch(batch->gpu, kernel, (uint32_t)(blocks ? blocks : 1), args,
                                     batch->stream, error);
}

/* What suits so many tiles. */
static const cogpu_kernel *execute_for(const cogpu_gpu *gpu, uint64_t tiles) {
    const cogpu_kernel *few = &cogpu_kernel_zstd_execute_few;
    const cogpu_kernel *some = &cogpu_kernel_zstd_execute_some;
    if (tiles <= (uint64_t)gpu->multiprocessors * few->per_multiprocessor)
        return few;
    if (tiles <= (uint64_t)gpu->multiprocessors * some->per_multiprocessor)
        return some;
    return &cogpu_kernel_zstd_execute_many;
}

static cogpu_status decode_round(const cogpu_gpu_batch *batch, const struct zstd_args *args,
                                 cogpu_error *error) {
    const uint64_t tiles = batch->count, blocks = args->most_blocks;
    TRY(launch(batch, &cogpu_kernel_zstd_fill, (tiles + 31) / 32, args, error));
    TRY(launch(batch, &cogpu_kernel_zstd_tables, (blocks + 1) / 2, args, error));
    TRY(launch(batch, &cogpu_kernel_zstd_streams, (blocks + 15) / 16 * 2, args, error));
    return launch(batch, execute_for(batch->gpu, tiles), tiles, args, error);
}

static cogpu_status decode(const cogpu_gpu_batch *batch, cogpu_error *error) {
    if (batch->count == 0)
        return COGPU_OK;
    struct zstd_args args = arrange(batch);
    const uint64_t scanners = ((uint64_t)batch->count + 31) / 32;
    TRY(batch->gpu->calls->launch(batch->gpu, &cogpu_kernel_zstd_scan, (uint32_t)scanners, &args,
                                  batch->stream, error));
    TRY(launch(batch, &cogpu_kernel_zstd_plan, 1, &args, error));
    for (; args.round < args.round_count; args.round++)
        TRY(decode_round(batch, &args, error));
    return COGPU_OK;
}

const cogpu_gpu_decoder cogpu_gpu_zstd = {0.6, 0.6, scratch, decode};
