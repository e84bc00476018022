/*
 * Host side of the LZW encoder: launches the kernels of lzw_encode.cu on the batch's stream, a warp
 * for each part to parse it, then a thread block for each part to write it. With little scratch it
 * encodes the TIFF blocks in several rounds.
 */
#include "base/math.h"
#include "kernels/encode/part_count.h"
#include "kernels/lzw/lzw_encode_args.h"

extern const cogpu_kernel cogpu_kernel_lzw_parse, cogpu_kernel_lzw_join;

enum { CODE_BITS_MAX = 12, WORD_BITS = 32 };

/* At worst each byte is a code. A Clear follows each full table but the last of a part; a Clear or
 * End of Information follows each part. */
static uint64_t max_codes(uint64_t bytes) {
    return bytes + bytes / COGPU_LZW_TABLE_CODES + divide_up(bytes, COGPU_LZW_PART_BYTES);
}

/* The first Clear, then codes of 12 bits; in whole words. */
static uint64_t lzw_bound(uint64_t in_bytes, uint64_t row_bytes) {
    (void)row_bytes;
    return divide_up((1 + max_codes(in_bytes)) * CODE_BITS_MAX, WORD_BITS) * (WORD_BITS / 8);
}

/* Everything that depends on the largest block. */
static struct cogpu_lzw_encode_args size_scratch(const cogpu_raw_block *blocks, uint32_t count) {
    struct cogpu_lzw_encode_args args = {0};
    const uint32_t largest = cogpu_max_block_bytes(blocks, count);
    args.max_parts = (uint32_t)divide_up(largest, COGPU_LZW_PART_BYTES);
    args.list_codes = (uint32_t)max_codes(min_u64(largest, COGPU_LZW_PART_BYTES));
    const uint64_t part_scratch = sizeof(uint32_t) + args.list_codes * sizeof(uint16_t);
    args.block_scratch = cogpu_gpu_align(args.max_parts * part_scratch);
    return args;
}

static void lzw_scratch(const cogpu_raw_block *blocks, uint32_t count, int level, uint64_t *least,
                        uint64_t *best) {
    (void)level;
    *least = size_scratch(blocks, count).block_scratch;
    *best = *least * count;
}

static cogpu_status lzw_encode(const cogpu_gpu_encoding *encoding, cogpu_error *error) {
    const cogpu_gpu_driver *calls = encoding->gpu->calls;
    struct cogpu_lzw_encode_args args = size_scratch(encoding->blocks, encoding->count);
    args.decoded = encoding->decoded;
    args.slots = encoding->slots;
    args.scratch = encoding->scratch;
    uint32_t round;
    for (uint32_t first = 0; first < encoding->count; first += round) {
        round = (uint32_t)min_u64(encoding->scratch_bytes / args.block_scratch,
                                  encoding->count - first);
        args.blocks = encoding->device_blocks + first;
        args.sizes = encoding->sizes + first;
        TRY(calls->launch(encoding->gpu, &cogpu_kernel_lzw_parse, round * args.max_parts, &args,
                          encoding->stream, error));
        TRY(calls->launch(encoding->gpu, &cogpu_kernel_lzw_join, round * args.max_parts, &args,
                          encoding->stream, error));
    }
    return COGPU_OK;
}

/* Large: eleven parts run on a multiprocessor at a time, each for long. */
static uint64_t lzw_batch_bytes(int level) {
    (void)level;
    return 24 << 20;
}

static const cogpu_kernel *const kernels[] = {&cogpu_kernel_lzw_parse, &cogpu_kernel_lzw_join,
                                              NULL};

const cogpu_gpu_encoder cogpu_gpu_lzw_encoder = {.kernels = kernels,
                                                 .bound = lzw_bound,
                                                 .scratch = lzw_scratch,
                                                 .batch_bytes = lzw_batch_bytes,
                                                 .encode = lzw_encode};
