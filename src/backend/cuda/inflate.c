/*
 * Takes a batch of zlib streams, launches the kernel of cuda_inflate.cu on them: as many thread
 * blocks as the device holds at once, which take one stream after the other, the largest first.
 */
#include "backend/cuda/cuda_inflate.h"

extern const cogpu_kernel cogpu_kernel_inflate;

/* Scratch: the ticket, then the notes of each thread block. More thread blocks than this the
 * largest device does not hold; and where blocks are small, scratch should not be much beside them.
 */
enum { TICKET_BYTES = COGPU_GPU_ALIGN, AT_ONCE_MAX = 640, ROOM_SHARE = 4 };

static uint64_t least_of(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static void inflate_scratch(const cogpu_coded *blocks, uint32_t count, uint64_t *least,
                            uint64_t *best) {
    uint64_t room = 0;
    for (uint32_t i = 0; i < count; i++)
        room += blocks[i].room;
    uint64_t at_once =
        least_of(least_of(count, AT_ONCE_MAX), 1 + room / ROOM_SHARE / COGPU_INFLATE_NOTES_BYTES);
    *least = TICKET_BYTES + COGPU_INFLATE_NOTES_BYTES;
    *best = TICKET_BYTES + at_once * COGPU_INFLATE_NOTES_BYTES;
}

static cogpu_status inflate_decode(const cogpu_gpu_batch *batch, cogpu_error *error) {
    cogpu_gpu *gpu = batch->gpu;
    const struct cogpu_inflate_args args = {.blocks = batch->device_blocks,
                                            .stored = batch->stored,
                                            .decoded = batch->decoded,
                                            .verdicts = batch->verdicts,
                                            .ticket = (uint32_t *)(void *)batch->scratch,
                                            .notes =
                                                (uint16_t *)(void *)(batch->scratch + TICKET_BYTES),
                                            .count = batch->count};
    const uint64_t held = gpu->multiprocessors * cogpu_kernel_inflate.per_multiprocessor;
    const uint64_t fit = (batch->scratch_bytes - TICKET_BYTES) / COGPU_INFLATE_NOTES_BYTES;
    const uint64_t at_once = least_of(least_of(held, fit), batch->count);
    TRY(gpu->calls->clear(gpu, args.ticket, sizeof *args.ticket, batch->stream, error));
    return gpu->calls->launch(gpu, &cogpu_kernel_inflate, (uint32_t)at_once, &args, batch->stream,
                              error);
}

const cogpu_gpu_decoder cogpu_gpu_inflate = {0.6, 0.45, inflate_scratch, inflate_decode};
