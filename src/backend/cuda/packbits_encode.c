/* Takes a batch of blocks, launches the kernels of cuda_packbits_encode.cu: a block of threads for
 * each piece of a block that measures, and one that writes.
 */
#include "backend/cuda/cuda_packbits_encode.h"
#include "base/checked.h"

extern const cogpu_kernel cogpu_kernel_packbits_measure, cogpu_kernel_packbits_write;

/* Runs pay for the heads of what they part; so a row takes at most a head for each 128 bytes, and
 * one more where a piece ends in it. */
static uint64_t packbits_bound(uint64_t in_bytes, uint64_t row_bytes) {
    const uint64_t row = row_bytes == 0 || row_bytes > in_bytes ? in_bytes : row_bytes;
    const uint64_t heads = divide_up(in_bytes, row) * divide_up(row, COGPU_PACKBITS_LONGEST);
    return in_bytes + heads + in_bytes / COGPU_PACKBITS_PIECE;
}

static uint32_t pieces_max(const cogpu_uncoded *blocks, uint32_t count) {
    uint32_t largest = 0;
    for (uint32_t i = 0; i < count; i++)
        largest = blocks[i].in_bytes > largest ? blocks[i].in_bytes : largest;
    return (uint32_t)divide_up(largest, COGPU_PACKBITS_PIECE);
}

static void packbits_scratch(const cogpu_uncoded *blocks, uint32_t count, int level,
                             uint64_t *least, uint64_t *best) {
    (void)level;
    *least = *best = (uint64_t)count * pieces_max(blocks, count) * sizeof(uint32_t);
}

static cogpu_status packbits_encode(const cogpu_gpu_encoding *encoding, cogpu_error *error) {
    const cogpu_gpu_calls *calls = encoding->gpu->calls;
    void *scratch = encoding->scratch;
    const struct cogpu_packbits_encode_args args = {
        .blocks = encoding->device_blocks,
        .decoded = encoding->decoded,
        .slots = encoding->slots,
        .sizes = encoding->sizes,
        .packed = scratch,
        .pieces = pieces_max(encoding->blocks, encoding->count)};
    if (encoding->count == 0)
        return COGPU_OK;
    TRY(calls->launch(encoding->gpu, &cogpu_kernel_packbits_measure, encoding->count * args.pieces,
                      &args, encoding->stream, error));
    return calls->launch(encoding->gpu, &cogpu_kernel_packbits_write, encoding->count * args.pieces,
                         &args, encoding->stream, error);
}

const cogpu_gpu_encoder cogpu_gpu_packbits_encoder = {
    .bound = packbits_bound, .scratch = packbits_scratch, .encode = packbits_encode};
