/*
 * Zstandard decoder, step 6: executes the sequences of a TIFF block from its first byte to its
 * last.
 *
 * One thread block per TIFF block, taken from a work queue (round->next_tiff_block) in order. Zstd
 * blocks are executed one after the other, because matches and repeat offsets reach into earlier
 * ones; within a zstd block, groups of sequences are decoded and executed by all threads:
 *
 *     TIFF block > frame > zstd block > group (1792 to 3584 sequences) > slice (2 to 4 KiB)
 *
 *     decode_group   all threads, seven sequences each        zstd_decode_sequences.h
 *     finish_group   thread 0
 *     write_group    all threads, slice by slice              zstd_decode_output.h
 *
 * Where Huffman-coded literals are. The streams kernel has decoded them to the end of the TIFF
 * block's own output, in order, before this kernel runs:
 *
 *     output     | bytes written so far |          ...          | literals not yet used |
 *                                       ^ next byte                                     ^ capacity
 *
 * Every literal still to come is also a byte still to be written, so the next byte never passes the
 * next literal, and no literal is overwritten before it is used. A slice loads its literals to
 * shared memory before it is written. Raw literals are read from the encoded bytes.
 *
 * Refused: bitstreams that do not end at their first bit, lengths that do not add up to the block,
 * offsets of 0 or beyond frame or window, content sizes and checksums that differ. libzstd
 * tolerates some of these; the CPU codec then decides.
 *
 * There are three variants of the kernel: the fewer TIFF blocks a multiprocessor has, the more
 * threads each of them gets.
 */
#include "kernels/zstd/zstd_decode_execute.h"
#include "kernels/zstd/zstd_decode_xxh64.h"

/* At the end of a frame: Frame_Content_Size and Content_Checksum. By one thread. */
DEVICE_FN uint32_t check_frame(const struct zstd_args *args, const struct execute_state *state) {
    const struct zstd_block *block = &args->blocks[state->block];
    uint32_t begin = state->frame_begin, bytes = state->group_end - begin;
    const uint8_t *frame = args->decoded + args->encoded[state->tiff_block].out + begin;
    if (block->flags & ZSTD_HAS_CONTENT_SIZE && bytes != block->content_size)
        return COGPU_GPU_MALFORMED;
    if (block->flags & ZSTD_HAS_CHECKSUM && (uint32_t)xxh64(frame, bytes) != block->checksum)
        return COGPU_GPU_CHECKSUM_MISMATCH;
    return COGPU_GPU_DECODED;
}

/* Executes all zstd blocks of the TIFF block. Returns a block status. By a thread block. */
DEVICE_FN uint32_t execute_tiff_block(const struct zstd_args *args,
                                      const struct execute_memory *memory, uint32_t threads,
                                      uint32_t slice_bytes) {
    struct execute_state *state = memory->state;
    for (uint32_t i = 0; i < args->tiff_blocks[state->tiff_block].blocks; i++) {
        begin_block(args, memory, args->tiff_blocks[state->tiff_block].first_block + i, threads);
        uint32_t block_status = execute_block(args, memory, threads, slice_bytes);
        if (block_status)
            return block_status;
        if (!(args->blocks[state->block].flags & ZSTD_LAST_BLOCK))
            continue;
        sync_block(); /* all bytes of the frame are written */
        if (thread_index() == 0)
            state->block_status = check_frame(args, state);
        sync_block();
        if (state->block_status)
            return state->block_status;
    }
    return state->group_end < args->encoded[state->tiff_block].required ? COGPU_GPU_TOO_SHORT
                                                                        : COGPU_GPU_DECODED;
}

/* Takes TIFF blocks of the round from the work queue until none is left. */
DEVICE_FN void execute_tiff_blocks(const struct zstd_args *args,
                                   const struct execute_memory *memory, uint32_t threads,
                                   uint32_t slice_bytes) {
    struct zstd_round *round = &args->rounds[args->round];
    struct execute_state *state = memory->state;
    prepare_execution(memory, threads, slice_bytes);
    for (;;) {
        sync_block();
        if (thread_index() == 0) {
            state->tiff_block = atomic_add(&round->next_tiff_block, 1);
            state->block_status =
                state->tiff_block < round->end_tiff_block ? args->statuses[state->tiff_block] : 0;
            state->group_end = 0;
        }
        sync_block();
        if (state->tiff_block >= round->end_tiff_block)
            return;
        if (state->block_status)
            continue;
        uint32_t block_status = execute_tiff_block(args, memory, threads, slice_bytes);
        if (block_status && thread_index() == 0)
            refuse_tiff_block(args, state->tiff_block, block_status);
    }
}

/* Defines an execute kernel and its shared memory. */
#define EXECUTE(name, threads, slice_bytes, per_multiprocessor)                                    \
    struct name##_shared {                                                                         \
        EXECUTE_SHARED(threads, slice_bytes)                                                       \
    };                                                                                             \
    KERNEL(cogpu_kernel_zstd_##name, struct zstd_args, struct name##_shared, threads,              \
           per_multiprocessor) {                                                                   \
        struct execute_memory memory = EXECUTE_MEMORY(shared);                                     \
        execute_tiff_blocks(args, &memory, threads, slice_bytes);                                  \
    }

/* Name, threads, bytes of a slice, thread blocks per multiprocessor. */
EXECUTE(execute_few, 512, 4096, 2)
EXECUTE(execute_some, 384, 3072, 4)
EXECUTE(execute_many, 256, 2048, 5)
