/*
 * Execution of a zstd block (RFC 8878, 3.1.1.4), for the kernels that write bytes and the one that
 * writes symbols: zstd_decode_execute.cu, zstd_decode_symbols.cu.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_DECODE_EXECUTE_H
#define COGPU_KERNELS_ZSTD_ZSTD_DECODE_EXECUTE_H

#include "kernels/zstd/zstd_decode_output.h"

/* Once per thread block. */
DEVICE_FN void prepare_execution(const struct execute_memory *memory, uint32_t threads,
                                 uint32_t slice_elements) {
    load_length_codes(memory->state, threads);
    for (uint32_t i = thread_index(); i < slice_elements / 32; i += threads)
        memory->starts[i].bits = 0;
}

/* Begins zstd block `index` where the one before has ended. By a thread block. */
DEVICE_FN void begin_block(const struct zstd_args *args, const struct execute_memory *memory,
                           uint32_t index, uint32_t threads) {
    struct execute_state *state = memory->state;
    const struct zstd_block *block = &args->blocks[index];
    sync_block();
    if (thread_index() == 0) {
        state->block = index;
        state->out = args->encoded[block->tiff_block].out;
        state->has_huffman = block->flags & ZSTD_HUFFMAN_LITERALS;
        state->literals = state->has_huffman ? state->out + block->literals_out
                                             : block->body + block->literals_offset;
        state->literal_mask = block->flags & ZSTD_RLE ? 0 : 0xFFFFFFFFu;
        state->block_begin = state->now.out = state->group_end;
        state->now.literals = state->group_first = 0;
        if (block->flags & ZSTD_FIRST_BLOCK) {
            state->now.repeat = initial_offsets();
            state->frame_begin = state->group_end;
        }
    }
    if (block->sequences)
        load_fse_tables(args, block, state, threads);
    sync_block();
}

/* Executes the current zstd block. Returns a block status. By a thread block. */
DEVICE_FN uint32_t execute_block(const struct zstd_args *args, const struct execute_memory *memory,
                                 uint32_t threads, uint32_t slice_elements) {
    struct execute_state *state = memory->state;
    do {
        if (args->blocks[state->block].sequences && !decode_group(args, memory, threads))
            return COGPU_GPU_MALFORMED;
        if (thread_index() == 0)
            state->block_status = finish_group(args, memory, threads);
        sync_block();
        if (state->block_status)
            return state->block_status;
        write_group(args, memory, threads, slice_elements);
    } while (state->group_first < args->blocks[state->block].sequences);
    return COGPU_GPU_DECODED;
}

/* The members of a kernel's shared memory, and an initializer of struct execute_memory from it. */
#define EXECUTE_SHARED(threads, slice_elements)                                                    \
    slice_element slice[slice_elements];                                                           \
    struct record_starts starts[(slice_elements) / 32];                                            \
    struct sequence_record records[(threads)*ZSTD_SEQUENCES_PER_CHECKPOINT + 1];                   \
    struct execute_state state;                                                                    \
    uint32_t offsets[(threads)*ZSTD_SEQUENCES_PER_CHECKPOINT + 1];                                 \
    uint16_t sources[slice_elements], pending[slice_elements];
#define EXECUTE_MEMORY(shared)                                                                     \
    {                                                                                              \
        &(shared)->state, (shared)->records, (shared)->offsets, (shared)->slice, (shared)->starts, \
            (shared)->sources, (shared)->pending                                                   \
    }

#endif
