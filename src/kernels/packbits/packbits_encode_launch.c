/*
 * Host side of the PackBits encoder: launches the kernels of packbits_encode.cu on the batch's
 * stream, a thread block for each part: one kernel measures the parts, the other writes them.
 */
#include "kernels/encode/part_count.h"
#include "kernels/packbits/packbits_encode_args.h"

extern const cogpu_kernel cogpu_kernel_packbits_measure, cogpu_kernel_packbits_write;

/* A run of three or more saves at least the header of the literals it splits. So a row takes at
 * most one header for each 128 bytes, and one more for each end of a part inside it. */
static uint64_t packbits_bound(uint64_t in_bytes, uint64_t row_bytes) {
    const uint64_t row = row_bytes == 0 || row_bytes > in_bytes ? in_bytes : row_bytes;
    const uint64_t headers = divide_up(in_bytes, row) * divide_up(row, COGPU_PACKBITS_PACKET_MAX);
    return in_bytes + headers + in_bytes / COGPU_PACKBITS_PART_BYTES;
}

static void packbits_scratch(const cogpu_raw_block *blocks, uint32_t count, int level,
                             uint64_t *least, uint64_t *best) {
    (void)level;
    *least = *best = (uint64_t)count * cogpu_max_parts(blocks, count, COGPU_PACKBITS_PART_BYTES) *
                     sizeof(uint32_t);
}

static cogpu_status packbits_encode(const cogpu_gpu_encoding *encoding, cogpu_error *error) {
    const cogpu_gpu_driver *calls = encoding->gpu->calls;
    void *scratch = encoding->scratch;
    const struct cogpu_packbits_encode_args args = {
        .blocks = encoding->device_blocks,
        .decoded = encoding->decoded,
        .slots = encoding->slots,
        .sizes = encoding->sizes,
        .packed = scratch,
        .max_parts = cogpu_max_parts(encoding->blocks, encoding->count, COGPU_PACKBITS_PART_BYTES)};
    const uint32_t grid = encoding->count * args.max_parts;
    if (encoding->count == 0)
        return COGPU_OK;
    TRY(calls->launch(encoding->gpu, &cogpu_kernel_packbits_measure, grid, &args, encoding->stream,
                      error));
    return calls->launch(encoding->gpu, &cogpu_kernel_packbits_write, grid, &args, encoding->stream,
                         error);
}

static const cogpu_kernel *const kernels[] = {&cogpu_kernel_packbits_measure,
                                              &cogpu_kernel_packbits_write, NULL};

const cogpu_gpu_encoder cogpu_gpu_packbits_encoder = {.kernels = kernels,
                                                      .bound = packbits_bound,
                                                      .scratch = packbits_scratch,
                                                      .encode = packbits_encode};
