/*
 * LZW decoder on the host side: scratch memory and launches of two kernels. One finds the segments
 * of all TIFF blocks, one decodes all segments. If scratch memory is short, in several rounds.
 */
#include "base/math.h"
#include "kernels/lzw/lzw_decode_args.h"

extern const cogpu_kernel cogpu_kernel_lzw_scan, cogpu_kernel_lzw_decode;

/* Lists in scratch memory, widest entries first: see lzw_decode_args.h. */
enum {
    BYTES_PER_SEGMENT =
        sizeof(struct cogpu_lzw_segment) + sizeof(struct cogpu_lzw_span) + sizeof(uint32_t)
};

static uint64_t scratch_bytes_of(uint64_t segments) {
    return sizeof(struct cogpu_lzw_counters) + segments * BYTES_PER_SEGMENT;
}

static void lzw_scratch(const cogpu_encoded_block *blocks, uint32_t count, uint32_t others,
                        uint64_t *least, uint64_t *best) {
    uint64_t largest = 0, all = 0;
    (void)others;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t segments = COGPU_LZW_SEGMENTS(blocks[i].capacity);
        largest = max_u64(largest, segments);
        all += segments;
    }
    *least = scratch_bytes_of(largest);
    *best = scratch_bytes_of(all);
}

/* Number of TIFF blocks from `first` on that fit the scratch memory, and their segments. */
static uint32_t count_round_blocks(const cogpu_gpu_batch *batch, uint32_t first,
                                   uint64_t *segments) {
    uint32_t count = 0;
    *segments = 0;
    while (first + count < batch->count) {
        const uint64_t with = *segments + COGPU_LZW_SEGMENTS(batch->blocks[first + count].capacity);
        if (scratch_bytes_of(with) > batch->scratch_bytes)
            break;
        *segments = with;
        count++;
    }
    return count;
}

static struct cogpu_lzw_args divide_scratch(const cogpu_gpu_batch *batch, uint32_t first,
                                            uint64_t segments) {
    struct cogpu_lzw_args args = {.blocks = batch->device_blocks + first,
                                  .stored = batch->stored,
                                  .decoded = batch->decoded,
                                  .statuses = batch->statuses + first,
                                  .counters = (struct cogpu_lzw_counters *)batch->scratch};
    args.segments = (struct cogpu_lzw_segment *)(args.counters + 1);
    args.spans = (struct cogpu_lzw_span *)(args.segments + segments);
    args.totals = (uint32_t *)(args.spans + segments);
    return args;
}

static cogpu_status decode_round(const cogpu_gpu_batch *batch, uint32_t first, uint32_t count,
                                 uint64_t segments, cogpu_error *error) {
    cogpu_gpu *gpu = batch->gpu;
    const struct cogpu_lzw_args args = divide_scratch(batch, first, segments);
    const uint64_t resident =
        (uint64_t)gpu->multiprocessors * cogpu_kernel_lzw_decode.per_multiprocessor;
    TRY(gpu->calls->clear(gpu, args.counters, sizeof *args.counters, batch->stream, error));
    TRY(gpu->calls->launch(gpu, &cogpu_kernel_lzw_scan, count, &args, batch->stream, error));
    return gpu->calls->launch(gpu, &cogpu_kernel_lzw_decode, (uint32_t)min_u64(segments, resident),
                              &args, batch->stream, error);
}

static cogpu_status lzw_decode(const cogpu_gpu_batch *batch, cogpu_error *error) {
    for (uint32_t first = 0; first < batch->count;) {
        uint64_t segments;
        const uint32_t count = count_round_blocks(batch, first, &segments);
        if (count == 0)
            return cogpu_fail(error, COGPU_OUT_OF_MEMORY,
                              "too little scratch memory for an LZW block");
        TRY(decode_round(batch, first, count, segments, error));
        first += count;
    }
    return COGPU_OK;
}

static const cogpu_kernel *const kernels[] = {&cogpu_kernel_lzw_scan, &cogpu_kernel_lzw_decode,
                                              NULL};

const cogpu_gpu_decoder cogpu_gpu_lzw = {.rates = {.cpu = 1, .one = 20, .many = 300},
                                         .kernels = kernels,
                                         .scratch = lzw_scratch,
                                         .decode = lzw_decode};
