/*
 * Zstandard decoder on the host side: scratch memory and launches of the kernels in
 * zstd_decode_*.cu.
 *
 *     kernel      reads                                       writes
 *     scan        headers in the encoded bytes                zstd_tiff_block[], statuses
 *     plan        zstd_tiff_block[]                           zstd_round[]
 *   per round:
 *     list        headers in the encoded bytes                zstd_block[]
 *     tables      zstd_block[], encoded descriptions          tables in the pool
 *     streams     tables, bitstreams                          checkpoints, literals
 *     execute     tables, bitstreams, checkpoints, literals   output, statuses
 *
 * The order of the CUDA stream is the only synchronisation between kernels.
 *
 * How much scratch memory a stream needs is known only from its headers, which are in device
 * memory. So the device assigns TIFF blocks to rounds that fit; the host only fixes how many rounds
 * are launched. A round without TIFF blocks costs four empty launches.
 */
#include "base/math.h"
#include "kernels/zstd/zstd_decode_args.h"

extern const cogpu_kernel cogpu_kernel_zstd_scan, cogpu_kernel_zstd_plan, cogpu_kernel_zstd_list,
    cogpu_kernel_zstd_tables, cogpu_kernel_zstd_streams, cogpu_kernel_zstd_streams_small,
    cogpu_kernel_zstd_execute_few, cogpu_kernel_zstd_execute_some, cogpu_kernel_zstd_execute_many;

/* 2 GiB: the plan kernel adds up the quads of 32 TIFF blocks in 32 bits. */
enum { POOL_QUADS_MAX = (1 << 27) - 1 };

enum { TABLES_BYTES = (ZSTD_HUFFMAN_TABLE_QUADS + ZSTD_FSE_TABLES_QUADS) * ZSTD_QUAD };

/* Pool bytes for a hostile TIFF block: a sequence for each 3 bytes and tables for each 8 KiB. (With
 * a window of 1 KiB there could be more; scan refuses it then.) */
static uint64_t worst_pool_bytes(uint32_t capacity) {
    const uint64_t checkpoints =
        (uint64_t)capacity / 3 / ZSTD_SEQUENCES_PER_CHECKPOINT * ZSTD_CHECKPOINT_BYTES;
    const uint64_t tables = (32 + capacity / 8192) * (uint64_t)TABLES_BYTES;
    return checkpoints + tables + 2ull * ZSTD_QUAD * zstd_blocks_max(capacity);
}

/* Pool bytes for a TIFF block as encoders write it: a sequence for each 6 bytes, tables for each 96
 * KiB. */
static uint64_t usual_pool_bytes(uint32_t capacity) {
    const uint64_t checkpoints =
        (uint64_t)capacity / 6 / ZSTD_SEQUENCES_PER_CHECKPOINT * ZSTD_CHECKPOINT_BYTES;
    const uint64_t tables = (1 + capacity / (96 << 10)) * (uint64_t)TABLES_BYTES;
    return checkpoints + tables + 8 * ZSTD_QUAD;
}

static uint64_t usual_zstd_blocks(uint32_t capacity) {
    return 4 + capacity / (32 << 10);
}

/* Scratch memory that a batch needs. */
struct zstd_needs {
    uint64_t worst_pool, worst_blocks; /* of the largest TIFF block, at worst */
    uint64_t usual_pool, usual_blocks; /* of all, usually, and not less than the above */
};

static struct zstd_needs measure_needs(const cogpu_encoded_block *blocks, uint32_t count) {
    struct zstd_needs needs = {0};
    for (uint32_t i = 0; i < count; i++) {
        needs.worst_pool = max_u64(needs.worst_pool, worst_pool_bytes(blocks[i].capacity));
        needs.worst_blocks = max_u64(needs.worst_blocks, zstd_blocks_max(blocks[i].capacity));
        needs.usual_pool += usual_pool_bytes(blocks[i].capacity);
        needs.usual_blocks += usual_zstd_blocks(blocks[i].capacity);
    }
    needs.usual_pool = max_u64(needs.usual_pool, needs.worst_pool);
    needs.usual_blocks = max_u64(needs.usual_blocks, needs.worst_blocks);
    return needs;
}

/* Per-TIFF-block and per-round structs: there are at most as many rounds as TIFF blocks. */
static uint64_t plan_bytes(uint32_t count) {
    return cogpu_gpu_align(count * sizeof(struct zstd_tiff_block)) +
           cogpu_gpu_align(count * sizeof(struct zstd_round));
}

static void zstd_scratch(const cogpu_encoded_block *blocks, uint32_t count, uint64_t *least,
                         uint64_t *best) {
    const struct zstd_needs needs = measure_needs(blocks, count);
    *least = plan_bytes(count) + cogpu_gpu_align(needs.worst_blocks * sizeof(struct zstd_block)) +
             cogpu_gpu_align(needs.worst_pool);
    *best = plan_bytes(count) + cogpu_gpu_align(needs.usual_blocks * sizeof(struct zstd_block)) +
            cogpu_gpu_align(needs.usual_pool);
}

/* Divides the scratch memory; zstd_decode_args.h draws it. */
static struct zstd_args divide_scratch(const cogpu_gpu_batch *batch) {
    const struct zstd_needs needs = measure_needs(batch->blocks, batch->count);
    const uint64_t plan = plan_bytes(batch->count);
    uint64_t left = batch->scratch_bytes - plan;
    /* The pool gets its worst case first; zstd blocks get the rest. */
    uint64_t blocks = (left - cogpu_gpu_align(needs.worst_pool)) / sizeof(struct zstd_block);
    if (blocks > needs.usual_blocks)
        blocks = needs.usual_blocks;
    if (blocks < needs.worst_blocks)
        blocks = needs.worst_blocks;
    const uint64_t block_bytes = cogpu_gpu_align(blocks * sizeof(struct zstd_block));
    uint64_t quads = (left - block_bytes) / ZSTD_QUAD;
    if (quads > POOL_QUADS_MAX)
        quads = POOL_QUADS_MAX;
    /* A TIFF block that does not fit begins a round, so any two rounds together need more than one
     * pool, or more than `blocks`. Hence the factors of 2. */
    uint64_t rounds = 2 * (needs.usual_pool / (quads * ZSTD_QUAD + 1) + 1) +
                      2 * ((needs.usual_blocks - 1) / blocks);
    if (rounds > batch->count)
        rounds = batch->count;
    uint8_t *at = batch->scratch;
    return (struct zstd_args){
        .stored = batch->stored,
        .decoded = batch->decoded,
        .statuses = batch->statuses,
        .encoded = batch->device_blocks,
        .tiff_blocks = (void *)at,
        .rounds = (void *)(at + cogpu_gpu_align(batch->count * sizeof(struct zstd_tiff_block))),
        .blocks = (void *)(at + plan),
        .pool = at + plan + block_bytes,
        .tiff_block_count = batch->count,
        .round_count = (uint32_t)rounds,
        .blocks_max = (uint32_t)blocks,
        .pool_quads = (uint32_t)quads,
    };
}

static cogpu_status launch_kernel(const cogpu_gpu_batch *batch, const cogpu_kernel *kernel,
                                  uint64_t blocks, const struct zstd_args *args,
                                  cogpu_error *error) {
    const uint64_t fit = (uint64_t)batch->gpu->multiprocessors * kernel->per_multiprocessor;
    if (blocks > fit) /* thread blocks loop over the work */
        blocks = fit;
    return batch->gpu->calls->launch(batch->gpu, kernel, (uint32_t)(blocks ? blocks : 1), args,
                                     batch->stream, error);
}

/* Takes 8 zstd blocks for each warp of a thread block, once for literals and once for sequences. */
static cogpu_status launch_streams(const cogpu_gpu_batch *batch, const struct zstd_args *args,
                                   cogpu_error *error) {
    const cogpu_kernel *kernel = cogpu_gpu_fits(batch->gpu, &cogpu_kernel_zstd_streams)
                                     ? &cogpu_kernel_zstd_streams
                                     : &cogpu_kernel_zstd_streams_small;
    const uint64_t group = kernel->threads / 4;
    return launch_kernel(batch, kernel, (args->blocks_max + group - 1) / group * 2, args, error);
}

/* The fewer TIFF blocks, the more threads for each. */
static const cogpu_kernel *choose_execute_kernel(const cogpu_gpu *gpu, uint64_t tiff_blocks) {
    const cogpu_kernel *few = &cogpu_kernel_zstd_execute_few;
    const cogpu_kernel *some = &cogpu_kernel_zstd_execute_some;
    if (tiff_blocks <= (uint64_t)gpu->multiprocessors * few->per_multiprocessor &&
        cogpu_gpu_fits(gpu, few))
        return few;
    if (tiff_blocks <= (uint64_t)gpu->multiprocessors * some->per_multiprocessor)
        return some;
    return &cogpu_kernel_zstd_execute_many;
}

static cogpu_status decode_round(const cogpu_gpu_batch *batch, const struct zstd_args *args,
                                 cogpu_error *error) {
    const uint64_t tiff_blocks = batch->count, blocks = args->blocks_max;
    TRY(launch_kernel(batch, &cogpu_kernel_zstd_list, (tiff_blocks + 31) / 32, args, error));
    TRY(launch_kernel(batch, &cogpu_kernel_zstd_tables, (blocks + 1) / 2, args, error));
    TRY(launch_streams(batch, args, error));
    return launch_kernel(batch, choose_execute_kernel(batch->gpu, tiff_blocks), tiff_blocks, args,
                         error);
}

static cogpu_status zstd_decode(const cogpu_gpu_batch *batch, cogpu_error *error) {
    if (batch->count == 0)
        return COGPU_OK;
    struct zstd_args args = divide_scratch(batch);
    const uint64_t scan_blocks = ((uint64_t)batch->count + 31) / 32;
    TRY(batch->gpu->calls->launch(batch->gpu, &cogpu_kernel_zstd_scan, (uint32_t)scan_blocks, &args,
                                  batch->stream, error));
    TRY(launch_kernel(batch, &cogpu_kernel_zstd_plan, 1, &args, error));
    for (; args.round < args.round_count; args.round++)
        TRY(decode_round(batch, &args, error));
    return COGPU_OK;
}

/* Without those that others can replace. */
static const cogpu_kernel *const kernels[] = {
    &cogpu_kernel_zstd_scan,          &cogpu_kernel_zstd_plan,
    &cogpu_kernel_zstd_list,          &cogpu_kernel_zstd_tables,
    &cogpu_kernel_zstd_streams_small, &cogpu_kernel_zstd_execute_some,
    &cogpu_kernel_zstd_execute_many,  NULL};

const cogpu_gpu_decoder cogpu_gpu_zstd = {0.6, 0.6, kernels, zstd_scratch, zstd_decode};
