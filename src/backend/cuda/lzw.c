/*
 * Takes a batch of LZW blocks, launches the kernels of cuda_lzw.cu on them: one that finds the
 * segments of all blocks, one that decodes all segments. Where scratch is short, in several rounds.
 */
#include "backend/cuda/cuda_lzw.h"

extern const cogpu_kernel cogpu_kernel_lzw_scan, cogpu_kernel_lzw_decode;

/* The lists are at the start of the scratch, one after the other, the widest first. */
enum {
    BYTES_PER_SEGMENT =
        sizeof(struct cogpu_lzw_segment) + sizeof(struct cogpu_lzw_draft) + sizeof(uint32_t)
};

static uint64_t bytes_of(uint64_t segments) {
    return sizeof(struct cogpu_lzw_progress) + segments * BYTES_PER_SEGMENT;
}

static void lzw_scratch(const cogpu_coded *blocks, uint32_t count, uint64_t *least,
                        uint64_t *best) {
    uint64_t most = 0, all = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t segments = COGPU_LZW_SEGMENTS(blocks[i].room);
        most = segments > most ? segments : most;
        all += segments;
    }
    *least = bytes_of(most);
    *best = bytes_of(all);
}

/* How many blocks from `first` on the scratch suffices for, and their segments. */
static uint32_t blocks_of_round(const cogpu_gpu_batch *batch, uint32_t first, uint64_t *segments) {
    uint32_t count = 0;
    *segments = 0;
    while (first + count < batch->count) {
        const uint64_t with = *segments + COGPU_LZW_SEGMENTS(batch->blocks[first + count].room);
        if (bytes_of(with) > batch->scratch_bytes)
            break;
        *segments = with;
        count++;
    }
    return count;
}

static struct cogpu_lzw_args args_of_round(const cogpu_gpu_batch *batch, uint32_t first,
                                           uint64_t segments) {
    struct cogpu_lzw_args args = {.blocks = batch->device_blocks + first,
                                  .stored = batch->stored,
                                  .decoded = batch->decoded,
                                  .verdicts = batch->verdicts + first,
                                  .progress = (struct cogpu_lzw_progress *)batch->scratch};
    args.segments = (struct cogpu_lzw_segment *)(args.progress + 1);
    args.drafts = (struct cogpu_lzw_draft *)(args.segments + segments);
    args.totals = (uint32_t *)(args.drafts + segments);
    return args;
}

static cogpu_status decode_round(const cogpu_gpu_batch *batch, uint32_t first, uint32_t count,
                                 uint64_t segments, cogpu_error *error) {
    cogpu_gpu *gpu = batch->gpu;
    const struct cogpu_lzw_args args = args_of_round(batch, first, segments);
    const uint64_t at_once =
        (uint64_t)gpu->multiprocessors * cogpu_kernel_lzw_decode.per_multiprocessor;
    TRY(gpu->calls->clear(gpu, args.progress, sizeof *args.progress, batch->stream, error));
    TRY(gpu->calls->launch(gpu, &cogpu_kernel_lzw_scan, count, &args, batch->stream, error));
    return gpu->calls->launch(gpu, &cogpu_kernel_lzw_decode,
                              (uint32_t)(segments < at_once ? segments : at_once), &args,
                              batch->stream, error);
}

static cogpu_status lzw_decode(const cogpu_gpu_batch *batch, cogpu_error *error) {
    for (uint32_t first = 0; first < batch->count;) {
        uint64_t segments;
        const uint32_t count = blocks_of_round(batch, first, &segments);
        if (count == 0)
            return cogpu_fail(error, COGPU_MEMORY, "too little scratch for an LZW block");
        TRY(decode_round(batch, first, count, segments, error));
        first += count;
    }
    return COGPU_OK;
}

const cogpu_gpu_decoder cogpu_gpu_lzw = {20.0, 1.0, lzw_scratch, lzw_decode};
