/* Takes a batch of blocks, launches the kernels of cuda_lzw_encode.cu: a warp for each piece of a
 * block that lists its codes, a block of threads for each piece that joins them. With little
 * scratch it takes the blocks by turns.
 */
#include "backend/cuda/cuda_lzw_encode.h"
#include "base/checked.h"

extern const cogpu_kernel cogpu_kernel_lzw_parse, cogpu_kernel_lzw_join;

enum { CODE_BITS_MAX = 12, WORD_BITS = 32 };

/* Each byte may be a code; each full table but the last of a piece is followed by a Clear, and each
 * piece by a Clear or an End. */
static uint64_t codes_max(uint64_t bytes) {
    return bytes + bytes / COGPU_LZW_SEGMENT_CODES + divide_up(bytes, COGPU_LZW_PIECE);
}

/* Behind the Clear that a stream opens with, the longest codes, in whole words. */
static uint64_t lzw_bound(uint64_t in_bytes, uint64_t row_bytes) {
    (void)row_bytes;
    return divide_up((1 + codes_max(in_bytes)) * CODE_BITS_MAX, WORD_BITS) * (WORD_BITS / 8);
}

/* All that depends on the largest block. */
static struct cogpu_lzw_encode_args lay_out(const cogpu_uncoded *blocks, uint32_t count) {
    struct cogpu_lzw_encode_args args = {0};
    uint32_t largest = 0;
    for (uint32_t i = 0; i < count; i++)
        largest = blocks[i].in_bytes > largest ? blocks[i].in_bytes : largest;
    args.pieces = (uint32_t)divide_up(largest, COGPU_LZW_PIECE);
    args.list_codes = (uint32_t)codes_max(largest < COGPU_LZW_PIECE ? largest : COGPU_LZW_PIECE);
    const uint64_t piece_bytes = sizeof(uint32_t) + args.list_codes * sizeof(uint16_t);
    args.part_bytes = divide_up(args.pieces * piece_bytes, COGPU_GPU_ALIGN) * COGPU_GPU_ALIGN;
    return args;
}

static void lzw_scratch(const cogpu_uncoded *blocks, uint32_t count, int level, uint64_t *least,
                        uint64_t *best) {
    (void)level;
    *least = lay_out(blocks, count).part_bytes;
    *best = *least * count;
}

static cogpu_status lzw_encode(const cogpu_gpu_encoding *encoding, cogpu_error *error) {
    const cogpu_gpu_calls *calls = encoding->gpu->calls;
    struct cogpu_lzw_encode_args args = lay_out(encoding->blocks, encoding->count);
    args.decoded = encoding->decoded;
    args.slots = encoding->slots;
    args.scratch = encoding->scratch;
    uint32_t turn;
    for (uint32_t first = 0; first < encoding->count; first += turn) {
        const uint64_t room = encoding->scratch_bytes / args.part_bytes;
        turn = encoding->count - first;
        turn = room < turn ? (uint32_t)room : turn;
        args.blocks = encoding->device_blocks + first;
        args.sizes = encoding->sizes + first;
        TRY(calls->launch(encoding->gpu, &cogpu_kernel_lzw_parse, turn * args.pieces, &args,
                          encoding->stream, error));
        TRY(calls->launch(encoding->gpu, &cogpu_kernel_lzw_join, turn * args.pieces, &args,
                          encoding->stream, error));
    }
    return COGPU_OK;
}

/* A multiprocessor holds many pieces, and each takes long. */
static uint64_t lzw_batch_bytes(int level) {
    (void)level;
    return 24 << 20;
}

const cogpu_gpu_encoder cogpu_gpu_lzw_encoder = {.bound = lzw_bound,
                                                 .scratch = lzw_scratch,
                                                 .batch_bytes = lzw_batch_bytes,
                                                 .encode = lzw_encode};
