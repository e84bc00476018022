/*
 * Deflate decoder on the host side: scratch memory and launch of the kernel in inflate.cu. As many
 * thread blocks are launched as the device runs at once; they take TIFF blocks from a work queue.
 * Few large streams are decoded by inflate_few_launch.c first. inflate.cu then decodes those that
 * it left, in the same scratch memory.
 */
#include "base/math.h"
#include "kernels/deflate/inflate_args.h"
#include "kernels/deflate/inflate_few_launch.h"

extern const cogpu_kernel cogpu_kernel_inflate;

/* Scratch memory: the queue, then the token records of each thread block. No device so far runs
 * more than THREAD_BLOCKS_MAX at once: an H200 runs 4 * 132. For small TIFF blocks scratch is
 * limited to a quarter of the output. */
enum { QUEUE_BYTES = COGPU_GPU_ALIGN, THREAD_BLOCKS_MAX = 640, OUTPUT_PER_SCRATCH = 4 };

static uint64_t thread_blocks_max(const cogpu_encoded_block *blocks, uint32_t count) {
    uint64_t output_bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        output_bytes += blocks[i].capacity;
    return min_u64(min_u64(count, THREAD_BLOCKS_MAX),
                   1 + output_bytes / OUTPUT_PER_SCRATCH / COGPU_INFLATE_RECORDS_BYTES);
}

static void inflate_scratch(const cogpu_encoded_block *blocks, uint32_t count, uint32_t others,
                            uint64_t *least, uint64_t *best) {
    *least = QUEUE_BYTES + COGPU_INFLATE_RECORDS_BYTES;
    *best = QUEUE_BYTES + thread_blocks_max(blocks, count) * COGPU_INFLATE_RECORDS_BYTES;
    if (cogpu_gpu_is_few(&cogpu_gpu_inflate.rates, blocks, count, others))
        *best =
            max_u64(*best, cogpu_inflate_few_scratch(blocks, count, &cogpu_inflate_few_defaults));
}

cogpu_status cogpu_inflate_each(const cogpu_gpu_batch *batch, bool is_retry, cogpu_error *error) {
    cogpu_gpu *gpu = batch->gpu;
    const struct cogpu_inflate_args args = {.blocks = batch->device_blocks,
                                            .stored = batch->stored,
                                            .decoded = batch->decoded,
                                            .statuses = batch->statuses,
                                            .next_block = (uint32_t *)(void *)batch->scratch,
                                            .records =
                                                (uint16_t *)(void *)(batch->scratch + QUEUE_BYTES),
                                            .count = batch->count,
                                            .is_retry = is_retry};
    const uint64_t resident = gpu->multiprocessors * cogpu_kernel_inflate.per_multiprocessor;
    const uint64_t fit = (batch->scratch_bytes - QUEUE_BYTES) / COGPU_INFLATE_RECORDS_BYTES;
    const uint64_t thread_blocks = min_u64(min_u64(resident, fit), batch->count);
    TRY(gpu->calls->clear(gpu, args.next_block, sizeof *args.next_block, batch->stream, error));
    return gpu->calls->launch(gpu, &cogpu_kernel_inflate, (uint32_t)thread_blocks, &args,
                              batch->stream, error);
}

static cogpu_status inflate_decode(const cogpu_gpu_batch *batch, cogpu_error *error) {
    const struct cogpu_inflate_few_sizes *sizes = &cogpu_inflate_few_defaults;
    const bool is_divided =
        cogpu_gpu_is_few(&cogpu_gpu_inflate.rates, batch->blocks, batch->count, batch->others) &&
        cogpu_inflate_few_can_decode(batch, sizes);
    if (is_divided)
        TRY(cogpu_inflate_few_decode(batch, sizes, error));
    return cogpu_inflate_each(batch, is_divided, error);
}

static const cogpu_kernel *const kernels[] = {&cogpu_kernel_inflate, NULL};

/* Rates of an H200; `few` is that of uint16, the slowest. */
const cogpu_gpu_decoder cogpu_gpu_inflate = {
    .rates = {.cpu = 0.6, .one = 0.6, .many = 130, .few = 45, .few_start = 300e3},
    .kernels = kernels,
    .scratch = inflate_scratch,
    .decode = inflate_decode};
