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
 *   instead of execute, with few TIFF blocks:
 *     measure     tables, bitstreams, checkpoints             sizes and repeat offsets
 *     place       these                                       positions, zstd_window[]
 *    per window:
 *     symbols     tables, bitstreams, checkpoints, literals   symbols, statuses
 *     resolve     symbols                                     output
 *     checksums   output                                      statuses
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
    cogpu_kernel_zstd_streams_few, cogpu_kernel_zstd_execute_few, cogpu_kernel_zstd_execute_some,
    cogpu_kernel_zstd_execute_many, cogpu_kernel_zstd_measure, cogpu_kernel_zstd_place,
    cogpu_kernel_zstd_symbols, cogpu_kernel_zstd_resolve, cogpu_kernel_zstd_checksums;

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
    uint64_t symbols;                  /* of all */
};

static struct zstd_needs measure_needs(const cogpu_encoded_block *blocks, uint32_t count) {
    struct zstd_needs needs = {0};
    for (uint32_t i = 0; i < count; i++) {
        needs.worst_pool = max_u64(needs.worst_pool, worst_pool_bytes(blocks[i].capacity));
        needs.worst_blocks = max_u64(needs.worst_blocks, zstd_blocks_max(blocks[i].capacity));
        needs.usual_pool += usual_pool_bytes(blocks[i].capacity);
        needs.usual_blocks += usual_zstd_blocks(blocks[i].capacity);
        needs.symbols += ((uint64_t)blocks[i].capacity + 15) / 16 * 16;
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

/* ---- few TIFF blocks ----------------------------------------------------------------------- */

/* Windows of symbols. 33 MiB of symbols are 264 zstd blocks, two on each multiprocessor of an H200,
 * and take 132 MiB. More blocks than FEW_MAX are few on no device. */
enum { FEW_MAX = 64, WINDOW_SYMBOLS_MAX = 33 << 20, WINDOWS_MAX = 64 };

/* The last zstd block of a window may exceed it; then one vector load may. */
static uint64_t symbol_bytes(uint64_t window_symbols) {
    return cogpu_gpu_align((window_symbols + ZSTD_BLOCK_BYTES_MAX + ZSTD_QUAD) * sizeof(uint32_t));
}

static uint64_t round_to_zstd_blocks(uint64_t symbols) {
    return (symbols + ZSTD_BLOCK_BYTES_MAX - 1) / ZSTD_BLOCK_BYTES_MAX * ZSTD_BLOCK_BYTES_MAX;
}

enum { WINDOW_TABLE_BYTES = WINDOWS_MAX * sizeof(struct zstd_window) };

static uint64_t few_bytes(const struct zstd_needs *needs) {
    const uint64_t symbols = round_to_zstd_blocks(needs->symbols);
    return WINDOW_TABLE_BYTES +
           symbol_bytes(symbols < WINDOW_SYMBOLS_MAX ? symbols : WINDOW_SYMBOLS_MAX);
}

/* The execute kernel gives each TIFF block one thread block. With few of them the device is not
 * full, and to execute all zstd blocks at once is faster, although it decodes sequences twice and
 * every byte by way of a symbol: on an H200 up to some 50 TIFF blocks. Batches of the same read
 * that follow fill the device, too. */
static bool is_few(const cogpu_gpu_batch *batch) {
    const uint64_t blocks = (uint64_t)batch->count + batch->others;
    return 5 * blocks < 2ull * batch->gpu->multiprocessors && blocks <= FEW_MAX &&
           cogpu_gpu_fits(batch->gpu, &cogpu_kernel_zstd_symbols);
}

/* Divides `bytes` at `at` among table and symbols. The windows are of equal size, and not larger
 * than the device can execute at once. Leaves window_count 0 if there is not enough. */
static void divide_into_windows(const cogpu_gpu_batch *batch, const struct zstd_needs *needs,
                                uint8_t *at, uint64_t bytes, struct zstd_args *args) {
    const cogpu_kernel *kernel = &cogpu_kernel_zstd_symbols;
    uint64_t window =
        (uint64_t)batch->gpu->multiprocessors * kernel->per_multiprocessor * ZSTD_BLOCK_BYTES_MAX;
    while (window > 0 && WINDOW_TABLE_BYTES + symbol_bytes(window) > bytes)
        window -= ZSTD_BLOCK_BYTES_MAX;
    if (window == 0 || needs->symbols > window * WINDOWS_MAX || needs->symbols > UINT32_MAX / 2)
        return;
    const uint64_t count = (needs->symbols + window - 1) / window;
    window = round_to_zstd_blocks((needs->symbols + count - 1) / count);
    args->windows = (void *)at;
    args->symbols = (void *)(at + WINDOW_TABLE_BYTES);
    args->window_symbols = (uint32_t)window;
    args->window_count = (uint32_t)((needs->symbols + window - 1) / window);
}

/* ---- scratch memory ------------------------------------------------------------------------ */

static uint64_t usual_bytes(const struct zstd_needs *needs, uint32_t count) {
    return plan_bytes(count) + cogpu_gpu_align(needs->usual_blocks * sizeof(struct zstd_block)) +
           cogpu_gpu_align(needs->usual_pool);
}

static void zstd_scratch(const cogpu_encoded_block *blocks, uint32_t count, uint32_t others,
                         uint64_t *least, uint64_t *best) {
    const struct zstd_needs needs = measure_needs(blocks, count);
    *least = plan_bytes(count) + cogpu_gpu_align(needs.worst_blocks * sizeof(struct zstd_block)) +
             cogpu_gpu_align(needs.worst_pool);
    *best =
        usual_bytes(&needs, count) + ((uint64_t)count + others <= FEW_MAX ? few_bytes(&needs) : 0);
}

/* Divides the scratch memory; zstd_decode_args.h draws it. */
static struct zstd_args divide_scratch(const cogpu_gpu_batch *batch) {
    const struct zstd_needs needs = measure_needs(batch->blocks, batch->count);
    const uint64_t plan = plan_bytes(batch->count), usual = usual_bytes(&needs, batch->count);
    const uint64_t spare = batch->scratch_bytes > usual ? batch->scratch_bytes - usual : 0;
    uint64_t left = batch->scratch_bytes - plan - spare;
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
    struct zstd_args args = {
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
    if (is_few(batch))
        divide_into_windows(batch, &needs, at + usual, spare, &args);
    return args;
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

/* Takes a TIFF block for each warp. */
static cogpu_status launch_per_warp(const cogpu_gpu_batch *batch, const cogpu_kernel *kernel,
                                    const struct zstd_args *args, cogpu_error *error) {
    const uint64_t warps = kernel->threads / 32;
    return launch_kernel(batch, kernel, (batch->count + warps - 1) / warps, args, error);
}

/* Zstd blocks of the batch and of those of the same read that follow, as encoders write them: one
 * for each 128 KiB, and the rest of each TIFF block. */
static uint64_t full_zstd_blocks(const cogpu_gpu_batch *batch) {
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < batch->count; i++)
        blocks += 1 + batch->blocks[i].capacity / ZSTD_BLOCK_BYTES_MAX;
    return blocks + blocks / batch->count * batch->others;
}

/* While all bitstreams are decoded side by side, the longest one counts, and streams of literals
 * are decoded by several lanes each; this takes more instructions. */
static bool has_few_streams(const cogpu_gpu_batch *batch) {
    const cogpu_kernel *few = &cogpu_kernel_zstd_streams_few;
    const uint64_t resident = (uint64_t)batch->gpu->multiprocessors * few->per_multiprocessor;
    const uint64_t blocks = full_zstd_blocks(batch);
    return blocks + blocks / 8 <= resident;
}

/* The kernels for many take 8 zstd blocks for each warp of a thread block, once for literals and
 * once for sequences; the one for few takes the literals of one. */
static cogpu_status launch_streams(const cogpu_gpu_batch *batch, const struct zstd_args *args,
                                   cogpu_error *error) {
    if (has_few_streams(batch))
        return launch_kernel(batch, &cogpu_kernel_zstd_streams_few,
                             args->blocks_max + args->blocks_max / 8 + 1, args, error);
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

/* Executes the zstd blocks of the round all at once, window by window. */
static cogpu_status execute_windows(const cogpu_gpu_batch *batch, struct zstd_args *args,
                                    cogpu_error *error) {
    const uint64_t blocks = args->blocks_max;
    TRY(launch_kernel(batch, &cogpu_kernel_zstd_measure, blocks, args, error));
    TRY(launch_kernel(batch, &cogpu_kernel_zstd_place, 1, args, error));
    for (args->window = 0; args->window < args->window_count; args->window++) {
        TRY(launch_kernel(batch, &cogpu_kernel_zstd_symbols, blocks, args, error));
        TRY(launch_kernel(batch, &cogpu_kernel_zstd_resolve, UINT32_MAX, args, error));
    }
    return launch_kernel(batch, &cogpu_kernel_zstd_checksums, (blocks + 31) / 32, args, error);
}

/* TIFF blocks that do not fit the first round, which is rare, are executed one by one. */
static cogpu_status decode_round(const cogpu_gpu_batch *batch, struct zstd_args *args,
                                 cogpu_error *error) {
    const uint64_t tiff_blocks = batch->count, blocks = args->blocks_max;
    TRY(launch_per_warp(batch, &cogpu_kernel_zstd_list, args, error));
    TRY(launch_kernel(batch, &cogpu_kernel_zstd_tables, (blocks + 1) / 2, args, error));
    TRY(launch_streams(batch, args, error));
    if (args->window_count > 0 && args->round == 0)
        return execute_windows(batch, args, error);
    return launch_kernel(batch, choose_execute_kernel(batch->gpu, tiff_blocks), tiff_blocks, args,
                         error);
}

static cogpu_status zstd_decode(const cogpu_gpu_batch *batch, cogpu_error *error) {
    if (batch->count == 0)
        return COGPU_OK;
    struct zstd_args args = divide_scratch(batch);
    TRY(launch_per_warp(batch, &cogpu_kernel_zstd_scan, &args, error));
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

const cogpu_gpu_decoder cogpu_gpu_zstd = {
    .rates = {.cpu = 0.6, .one = 0.96, .many = 110, .few = 60, .few_start = 400e3}, /* of an H200 */
    .kernels = kernels,
    .scratch = zstd_scratch,
    .decode = zstd_decode};
