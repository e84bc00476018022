/*
 * Zstandard decoder, for few TIFF blocks: what all zstd blocks must know before they can be
 * executed at once.
 *
 *                 zstd block 0        1              2
 *     measure     bytes, offsets  |  bytes, ...  |  bytes, ...       thread block per zstd block
 *     place       begin, offsets  |  begin, ...  |  begin, ...       prefix scan by one warp
 *
 * measure  Decodes the sequences of a zstd block for the sum of their lengths and for what they do
 * to the repeat offsets, as references to those before the zstd block (zstd_decode_offsets.h).
 * place    Composes both over the zstd blocks of a TIFF block: the position of each and the three
 *          last offsets at its start. Checks content sizes and capacity. Then assigns zstd blocks
 * to windows (struct zstd_window).
 *
 * place is one thread block: there are few TIFF blocks. A warp takes a TIFF block, 32 zstd blocks
 * at a time; a sync_block separates the three steps of the kernel.
 *
 * Bounds. A zstd block has at most Block_Maximum_Size bytes, and a TIFF block its capacity: both
 * are checked at each step of a sum, before it can exceed 32 bits.
 */
#include "kernels/zstd/zstd_decode_sequences.h"

enum { MEASURE_THREADS = 512, PLACE_THREADS = 512 };

/* Sums up the sequences of the current zstd block. False if they are malformed or exceed the block.
 * By a thread block. */
DEVICE_FN bool sum_sequences(const struct zstd_args *args, const struct execute_memory *memory) {
    struct execute_state *state = memory->state;
    const struct zstd_block *block = &args->blocks[state->block];
    uint32_t groups = (block->sequences + MEASURE_THREADS * ZSTD_SEQUENCES_PER_CHECKPOINT - 1) /
                      (MEASURE_THREADS * ZSTD_SEQUENCES_PER_CHECKPOINT);
    for (uint32_t group = 0; group < groups; group++) {
        struct block_progress before;
        if (!sum_group(args, memory, MEASURE_THREADS, &before))
            return false;
        if (state->now.literals > block->literals || state->now.out > block->block_size_max)
            return false;
        sync_block();
        if (thread_index() == 0)
            state->group_first += MEASURE_THREADS * ZSTD_SEQUENCES_PER_CHECKPOINT;
        sync_block();
    }
    return true;
}

/* Begins zstd block `index`. False if its TIFF block is refused. By a thread block. */
DEVICE_FN bool begin_measurement(const struct zstd_args *args, struct execute_state *state,
                                 uint32_t index) {
    const struct zstd_block *block = &args->blocks[index];
    sync_block();
    if (thread_index() == 0) {
        state->block = index;
        state->block_status = is_refused(args, block->tiff_block);
        state->group_first = state->now.out = state->now.literals = 0;
        state->now.repeat = unchanged_offsets();
    }
    sync_block();
    if (state->block_status)
        return false;
    if (block->sequences)
        load_fse_tables(args, block, state, MEASURE_THREADS);
    sync_block();
    return true;
}

KERNEL(cogpu_kernel_zstd_measure, struct zstd_args, struct execute_state, MEASURE_THREADS, 3) {
    const struct zstd_round *round = &args->rounds[args->round];
    const struct execute_memory memory = {shared, NULL, NULL, NULL, NULL, NULL, NULL};
    load_length_codes(shared, MEASURE_THREADS);
    for (uint32_t i = block_index(); i < round->blocks; i += block_count()) {
        struct zstd_block *block = &args->blocks[i];
        if (!begin_measurement(args, shared, i))
            continue;
        bool is_good = sum_sequences(args, &memory);
        if (thread_index() != 0)
            continue;
        uint32_t bytes = shared->now.out + block->literals - shared->now.literals;
        if (!is_good || bytes > block->block_size_max)
            refuse_tiff_block(args, block->tiff_block, COGPU_GPU_MALFORMED);
        block->bytes = bytes;
        for (uint32_t k = 0; k < 3; k++)
            block->repeat[k] = shared->now.repeat.last[k];
    }
}

/* Numbers the symbols of the round's TIFF blocks; each begins at a multiple of 16. By a warp. */
DEVICE_FN void number_symbols(const struct zstd_args *args, const struct zstd_round *round) {
    uint32_t symbols = 0, end = round->end_tiff_block;
    for (uint32_t first = round->first_tiff_block; first < end; first += WARP) {
        uint32_t i = first + lane_index();
        uint32_t own = i < end ? (args->encoded[i].capacity + 15) / 16 * 16 : 0;
        uint32_t up_to = symbols + warp_scan(own);
        if (i < end)
            args->tiff_blocks[i].first_symbol = up_to - own;
        symbols = warp_read(up_to, WARP - 1);
    }
}

/* Up to 32 zstd blocks, one per lane; those of lanes without one have no bytes. */
struct placed_blocks {
    struct zstd_block *block; /* NULL: none */
    struct block_progress before, after;
    uint32_t frame_begin;
};

/* Composes them behind `now`, in a frame that began at `frame_begin` unless one of them begins
 * another. By a warp. */
DEVICE_FN struct placed_blocks compose_blocks(struct zstd_block *block,
                                              const struct block_progress *now,
                                              uint32_t frame_begin) {
    struct placed_blocks placed;
    struct block_progress own = {0, 0, unchanged_offsets()};
    bool is_first = block && block->flags & ZSTD_FIRST_BLOCK;
    if (block) {
        own.out = block->bytes;
        for (uint32_t k = 0; k < 3; k++)
            own.repeat.last[k] = block->repeat[k];
    }
    if (is_first)
        own.repeat = compose_offsets(initial_offsets(), own.repeat);
    struct block_progress below = scan_progress(&own);
    placed.block = block;
    placed.before = add_progress(now, &below);
    placed.after = add_progress(now, &own);
    uint32_t firsts = warp_ballot(is_first) & 0xFFFFFFFFu >> (WARP - 1 - lane_index());
    uint32_t begin = warp_read(placed.before.out, highest_bit(firsts | 1));
    placed.frame_begin = firsts ? begin : frame_begin;
    return placed;
}

/* A block status: TOO_LONG for its capacity, or another size than its frame header announces. */
DEVICE_FN uint32_t check_placed(const struct placed_blocks *placed, uint32_t capacity) {
    const struct zstd_block *block = placed->block;
    uint32_t end = placed->after.out;
    if (!block)
        return COGPU_GPU_DECODED;
    if (end > capacity)
        return COGPU_GPU_TOO_LONG;
    if (block->flags & ZSTD_LAST_BLOCK && block->flags & ZSTD_HAS_CONTENT_SIZE &&
        end - placed->frame_begin != block->content_size)
        return COGPU_GPU_MALFORMED;
    return COGPU_GPU_DECODED;
}

DEVICE_FN void store_placed(const struct placed_blocks *placed) {
    if (!placed->block)
        return;
    placed->block->begin = placed->before.out;
    placed->block->frame_begin = placed->frame_begin;
    for (uint32_t k = 0; k < 3; k++)
        placed->block->repeat[k] = placed->before.repeat.last[k];
}

/* The progress of the last lane, for all lanes. */
DEVICE_FN struct block_progress read_last_progress(const struct block_progress *own) {
    struct block_progress last = {warp_read(own->out, WARP - 1), 0, unchanged_offsets()};
    for (uint32_t k = 0; k < 3; k++)
        last.repeat.last[k] = warp_read(own->repeat.last[k], WARP - 1);
    return last;
}

/* Places the zstd blocks of a TIFF block. Returns a block status. By a warp. */
DEVICE_FN uint32_t place_blocks(const struct zstd_args *args, uint32_t tiff_block) {
    const struct zstd_tiff_block *planned = &args->tiff_blocks[tiff_block];
    struct block_progress now = {0, 0, initial_offsets()};
    uint32_t frame_begin = 0;
    for (uint32_t first = 0; first < planned->blocks; first += WARP) {
        uint32_t i = first + lane_index();
        struct placed_blocks placed =
            compose_blocks(i < planned->blocks ? &args->blocks[planned->first_block + i] : NULL,
                           &now, frame_begin);
        uint32_t block_status = check_placed(&placed, args->encoded[tiff_block].capacity);
        uint32_t bad_lanes = warp_ballot(block_status != COGPU_GPU_DECODED);
        if (bad_lanes)
            return warp_read(block_status, trailing_zeros(bad_lanes));
        store_placed(&placed);
        now = read_last_progress(&placed.after);
        frame_begin = warp_read(placed.frame_begin, WARP - 1);
    }
    return now.out < args->encoded[tiff_block].required ? COGPU_GPU_TOO_SHORT : COGPU_GPU_DECODED;
}

/* By a warp. */
DEVICE_FN void place_tiff_block(const struct zstd_args *args, uint32_t tiff_block) {
    const struct zstd_tiff_block *planned = &args->tiff_blocks[tiff_block];
    uint32_t is_bad = is_refused(args, tiff_block);
    is_bad = warp_read(is_bad, 0);
    if (!is_bad) {
        uint32_t block_status = place_blocks(args, tiff_block);
        is_bad = block_status != COGPU_GPU_DECODED;
        if (is_bad && lane_index() == 0)
            refuse_tiff_block(args, tiff_block, block_status);
    }
    sync_warp();
    if (is_bad) /* the windows need positions that do not decrease */
        for (uint32_t i = lane_index(); i < planned->blocks; i += WARP)
            args->blocks[planned->first_block + i].begin = 0;
}

/* Window of zstd block `index`. An empty zstd block at the very end belongs to the last one. */
DEVICE_FN uint32_t window_of(const struct zstd_args *args, uint32_t index) {
    const struct zstd_block *block = &args->blocks[index];
    uint32_t symbol = args->tiff_blocks[block->tiff_block].first_symbol + block->begin;
    return min_u32(symbol / args->window_symbols, args->window_count - 1);
}

/* By a thread block. */
DEVICE_FN void find_windows(const struct zstd_args *args, uint32_t blocks) {
    const struct zstd_window none = {0, 0};
    for (uint32_t i = thread_index(); i < args->window_count; i += PLACE_THREADS)
        args->windows[i] = none;
    sync_block();
    for (uint32_t i = thread_index(); i < blocks; i += PLACE_THREADS) {
        uint32_t window = window_of(args, i);
        if (i == 0 || window_of(args, i - 1) != window)
            args->windows[window].first_block = i;
        if (i + 1 == blocks || window_of(args, i + 1) != window)
            args->windows[window].end_block = i + 1;
    }
}

KERNEL(cogpu_kernel_zstd_place, struct zstd_args, struct nothing_shared, PLACE_THREADS, 1) {
    const struct zstd_round *round = &args->rounds[args->round];
    if (warp_index() == 0)
        number_symbols(args, round);
    for (uint32_t i = round->first_tiff_block + warp_index(); i < round->end_tiff_block;
         i += PLACE_THREADS / WARP)
        place_tiff_block(args, i);
    sync_block();
    find_windows(args, round->blocks);
}
