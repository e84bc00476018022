/* PackBits decoder on the host side: one thread block per TIFF block, no scratch memory. */
#include "kernels/packbits/packbits_decode_args.h"

extern const cogpu_kernel cogpu_kernel_packbits;

static void packbits_scratch(const cogpu_encoded_block *blocks, uint32_t count, uint32_t others,
                             uint64_t *least, uint64_t *best) {
    (void)blocks, (void)count, (void)others;
    *least = *best = 0;
}

static cogpu_status packbits_decode(const cogpu_gpu_batch *batch, cogpu_error *error) {
    const struct cogpu_packbits_args args = {.blocks = batch->device_blocks,
                                             .stored = batch->stored,
                                             .decoded = batch->decoded,
                                             .statuses = batch->statuses};
    if (batch->count == 0)
        return COGPU_OK;
    return batch->gpu->calls->launch(batch->gpu, &cogpu_kernel_packbits, batch->count, &args,
                                     batch->stream, error);
}

static const cogpu_kernel *const kernels[] = {&cogpu_kernel_packbits, NULL};

const cogpu_gpu_decoder cogpu_gpu_packbits = {.rates = {.cpu = 2, .one = 0.8, .many = 200},
                                              .kernels = kernels,
                                              .scratch = packbits_scratch,
                                              .decode = packbits_decode};
