/*
 * Deflate decoder on the host side: scratch memory and launch of the kernel in inflate.cu. As many
 * thread blocks are launched as the device runs at once; they take TIFF blocks from a work queue.
 */
#include "base/math.h"
#include "kernels/deflate/inflate_args.h"

extern const cogpu_kernel cogpu_kernel_inflate;

/* Scratch memory: the queue, then the token records of each thread block. No device so far runs
 * more than THREAD_BLOCKS_MAX at once: an H200 runs 4 * 132. For small TIFF blocks scratch is
 * limited to a quarter of the output. */
enum { QUEUE_BYTES = COGPU_GPU_ALIGN, THREAD_BLOCKS_MAX = 640, OUTPUT_PER_SCRATCH = 4 };

static void inflate_scratch(const cogpu_encoded_block *blocks, uint32_t count, uint64_t *least,
                            uint64_t *best) {
    uint64_t output_bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        output_bytes += blocks[i].capacity;
    uint64_t thread_blocks =
        min_u64(min_u64(count, THREAD_BLOCKS_MAX),
                1 + output_bytes / OUTPUT_PER_SCRATCH / COGPU_INFLATE_RECORDS_BYTES);
    *least = QUEUE_BYTES + COGPU_INFLATE_RECORDS_BYTES;
    *best = QUEUE_BYTES + thread_blocks * COGPU_INFLATE_RECORDS_BYTES;
}

static cogpu_status inflate_decode(const cogpu_gpu_batch *batch, cogpu_error *error) {
    cogpu_gpu *gpu = batch->gpu;
    const struct cogpu_inflate_args args = {.blocks = batch->device_blocks,
                                            .stored = batch->stored,
                                            .decoded = batch->decoded,
                                            .statuses = batch->statuses,
                                            .next_block = (uint32_t *)(void *)batch->scratch,
                                            .records =
                                                (uint16_t *)(void *)(batch->scratch + QUEUE_BYTES),
                                            .count = batch->count};
    const uint64_t resident = gpu->multiprocessors * cogpu_kernel_inflate.per_multiprocessor;
    const uint64_t fit = (batch->scratch_bytes - QUEUE_BYTES) / COGPU_INFLATE_RECORDS_BYTES;
    const uint64_t thread_blocks = min_u64(min_u64(resident, fit), batch->count);
    TRY(gpu->calls->clear(gpu, args.next_block, sizeof *args.next_block, batch->stream, error));
    return gpu->calls->launch(gpu, &cogpu_kernel_inflate, (uint32_t)thread_blocks, &args,
                              batch->stream, error);
}

static const cogpu_kernel *const kernels[] = {&cogpu_kernel_inflate, NULL};

const cogpu_gpu_decoder cogpu_gpu_inflate = {0.6, 0.45, kernels, inflate_scratch, inflate_decode};
