/*
 * Takes a batch of zlib streams, launches the kernel of cuda_inflate.cu on them: as many thread
 * blocks as the device holds at once, which take one stream after the other, the largest first.
 */
#include "backend/cuda/cuda_inflate.h"

extern const cogpu_kernel cogpu_kernel_inflate;

static void inflate_scratch(const cogpu_coded *blocks, uint32_t count, uint64_t *least,
                            uint64_t *best) {
    (void)blocks, (void)count;
    *least = *best = sizeof(uint32_t);
}

static cogpu_status inflate_decode(const cogpu_gpu_batch *batch, cogpu_error *error) {
    cogpu_gpu *gpu = batch->gpu;
    const struct cogpu_inflate_args args = {.blocks = batch->device_blocks,
                                            .stored = batch->stored,
                                            .decoded = batch->decoded,
                                            .verdicts = batch->verdicts,
                                            .ticket = (uint32_t *)(void *)batch->scratch,
                                            .count = batch->count};
    const uint32_t at_once = gpu->multiprocessors * cogpu_kernel_inflate.per_multiprocessor;
    TRY(gpu->calls->clear(gpu, args.ticket, sizeof *args.ticket, batch->stream, error));
    return gpu->calls->launch(gpu, &cogpu_kernel_inflate,
                              batch->count < at_once ? batch->count : at_once, &args, batch->stream,
                              error);
}

const cogpu_gpu_decoder cogpu_gpu_inflate = {0.28, 0.5, inflate_scratch, inflate_decode};
