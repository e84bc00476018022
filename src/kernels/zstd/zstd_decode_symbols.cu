/*
 * Zstandard decoder, for few TIFF blocks: executes all zstd blocks of a window at once, a thread
 * block each, to symbols (struct zstd_window).
 *
 * A zstd block is executed as in zstd_decode_execute.cu, but a byte that is copied from an earlier
 * zstd block is not known yet. It becomes a reference to its source. So in the end each symbol is
 * either a byte or refers to a position before its own zstd block:
 *
 *     zstd block        0               1                     2
 *     symbols      | a b c a b |  d  ->1  ->1  e  |  ->6  f  ->7  ->8 ... |
 *
 * Bytes before the window are read from the output: earlier windows are complete.
 * zstd_decode_resolve.cu follows the references. The output is not written here, so that the
 * literals at its end stay until all zstd blocks of the window have used them
 * (zstd_decode_execute.cu).
 */
#define ZSTD_WRITES_SYMBOLS 1
#include "kernels/zstd/zstd_decode_execute.h"

enum { SYMBOL_THREADS = 512, SYMBOL_SLICE = 4096 };

/* What the kernels before have found out about zstd block `index`. False if its TIFF block is
 * refused. By a thread block. */
DEVICE_FN bool load_placed_block(const struct zstd_args *args, struct execute_state *state,
                                 uint32_t index) {
    const struct zstd_block *block = &args->blocks[index];
    sync_block();
    if (thread_index() == 0) {
        state->tiff_block = block->tiff_block;
        state->block_status = is_refused(args, block->tiff_block);
        state->group_end = block->begin;
        state->frame_begin = block->frame_begin;
        for (uint32_t i = 0; i < 3; i++)
            state->now.repeat.last[i] = block->repeat[i];
        state->symbol_shift =
            args->tiff_blocks[block->tiff_block].first_symbol - args->window * args->window_symbols;
    }
    sync_block();
    return state->block_status == 0;
}

struct symbols_shared {
    EXECUTE_SHARED(SYMBOL_THREADS, SYMBOL_SLICE)
};

KERNEL(cogpu_kernel_zstd_symbols, struct zstd_args, struct symbols_shared, SYMBOL_THREADS, 2) {
    struct execute_memory memory = EXECUTE_MEMORY(shared);
    const struct zstd_window *window = &args->windows[args->window];
    prepare_execution(&memory, SYMBOL_THREADS, SYMBOL_SLICE);
    for (uint32_t i = window->first_block + block_index(); i < window->end_block;
         i += block_count()) {
        if (!load_placed_block(args, &shared->state, i))
            continue;
        begin_block(args, &memory, i, SYMBOL_THREADS);
        uint32_t block_status = execute_block(args, &memory, SYMBOL_THREADS, SYMBOL_SLICE);
        if (block_status && thread_index() == 0)
            refuse_tiff_block(args, shared->state.tiff_block, block_status);
    }
}
