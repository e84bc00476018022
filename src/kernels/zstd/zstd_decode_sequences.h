/*
 * Sequences from their checkpoints: the half of the execute kernels that decodes them (RFC 8878,
 * 3.1.1.3.2.1.2).
 *
 * A zstd block is executed in groups: as many sequences as the threads have checkpoints for, seven
 * per thread. Each thread decodes its seven into records relative to its own start; prefix scans
 * over the threads then make positions and offsets absolute.
 *
 *     record i      output   | literals of i | match of i | literals of i + 1 | ...
 *                            ^ record_start  ^ match
 *
 * The last group ends with a record for the literals that follow the last sequence (3.1.1.4).
 *
 * Synchronisation within a thread block: every thread writes its records -> warp scans ->
 * sync_block_or -> warp 0 scans the warps' sums -> sync_block -> every thread corrects its records
 * -> sync_block_or.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_DECODE_SEQUENCES_H
#define COGPU_KERNELS_ZSTD_ZSTD_DECODE_SEQUENCES_H

#include "kernels/zstd/zstd_decode_bits.h"
#include "kernels/zstd/zstd_decode_fse.h"
#include "kernels/zstd/zstd_decode_offsets.h"

/* Baselines of the codes for lengths (3.1.1.3.2.1.1). */
DEVICE_TABLE uint32_t literals_length_baselines[LITERALS_LENGTH_SYMBOLS] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,   9,   10,  11,   12,   13,   14,   15,    16,    18,
    20, 22, 24, 28, 32, 40, 48, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
DEVICE_TABLE uint32_t match_length_baselines[MATCH_LENGTH_SYMBOLS] = {
    3,  4,  5,  6,  7,  8,  9,  10,  11,  12,  13,   14,   15,   16,   17,    18,    19,   20,
    21, 22, 23, 24, 25, 26, 27, 28,  29,  30,  31,   32,   33,   34,   35,    37,    39,   41,
    43, 47, 51, 59, 67, 83, 99, 131, 259, 515, 1027, 2051, 4099, 8195, 16387, 32771, 65539};

/* A decoded sequence. Positions count from the TIFF block's first byte. */
struct sequence_record {
    uint32_t match;   /* position of its match; its literals end here */
    uint32_t literal; /* position of a literal + this, modulo 2^32, = its index in the literals */
};

/* Output and literals produced so far, or what a thread's or warp's sequences add to them. */
struct block_progress {
    uint32_t out, literals;
    struct repeat_offsets repeat;
};

enum { EXECUTE_WARPS_MAX = 16 };

/* Shared memory of a thread block whose size does not depend on the number of threads. What all
 * threads know of the TIFF block is here too, because registers are scarce. */
struct execute_state {
    uint32_t tables[FSE_SET_ENTRIES];
    /* Of each literals length and match length code: baseline | number of extra bits << 24. */
    uint32_t lengths[64], matches[64];
    struct block_progress warps[EXECUTE_WARPS_MAX]; /* at the start of each warp's sequences */
    struct block_progress now;                      /* after all groups so far */
    uint32_t tiff_block, block, block_status;
    uint32_t frame_begin, block_begin; /* positions */
    uint32_t group_first;              /* number of the group's first sequence */
    uint32_t group_begin, group_end;   /* positions */
    uint32_t records;                  /* of the group */
    uint32_t next;                     /* first record that has bytes in the next slice */
    uint32_t literal_mask;             /* 0 for RLE literals: all are literal 0 */
    uint32_t has_huffman;              /* literals are Huffman-coded: in the decoded bytes */
    uint64_t literals;                 /* of the block, in the stored or decoded bytes */
    uint64_t out;                      /* the TIFF block's first byte in the decoded bytes */
    uint32_t symbol_shift;             /* index of a symbol = position + this, modulo 2^32 */
};

/* Element of a slice: a decoded byte, or a symbol (struct zstd_window) in the kernel that writes
 * those. */
#ifndef ZSTD_WRITES_SYMBOLS
#define ZSTD_WRITES_SYMBOLS 0
#endif
#if ZSTD_WRITES_SYMBOLS
typedef uint32_t slice_element;
#else
typedef uint8_t slice_element;
#endif

/* For 32 elements of a slice: bits of those where a record begins, and the last record before them.
 */
struct record_starts {
    uint32_t bits, before;
};

/* Shared memory of a thread block. */
struct execute_memory {
    struct execute_state *state;
    struct sequence_record *records; /* of the group; NULL: lengths and repeat offsets only */
    uint32_t *offsets;               /* of the records */
    slice_element *slice;
    struct record_starts *starts; /* of the slice, one for 32 elements */
    uint16_t *sources;            /* of each element: position that it equals, or its own */
    uint16_t *pending;            /* per warp: elements that are copied within the slice */
};

/* Fills the tables of literals length and match length codes. */
DEVICE_FN void load_length_codes(struct execute_state *state, uint32_t threads) {
    for (uint32_t i = thread_index(); i < 64; i += threads) {
        state->lengths[i] =
            i < LITERALS_LENGTH_SYMBOLS
                ? literals_length_baselines[i] | (uint32_t)literals_length_extra_bits[i] << 24
                : 0;
        state->matches[i] = i < MATCH_LENGTH_SYMBOLS
                                ? match_length_baselines[i] | (uint32_t)match_length_extra_bits[i]
                                                                  << 24
                                : 0;
    }
}

/* Copies the FSE tables of the block's sequences to shared memory. */
DEVICE_FN void load_fse_tables(const struct zstd_args *args, const struct zstd_block *block,
                               struct execute_state *state, uint32_t threads) {
    for (uint32_t kind = 0; kind < ZSTD_CODE_KINDS; kind++) {
        const uint32_t *tables = (const uint32_t *)pool_at(args, block->fse_tables[kind]);
        uint32_t start = fse_table_start(kind),
                 entries = 1u << min_u32(tables[kind], ACCURACY_LOG_MAX);
        for (uint32_t i = thread_index(); i < entries; i += threads)
            state->tables[start + i] = tables[FSE_LOG_WORDS + start + i];
    }
}

/* 64 bits of a bitstream from bit `from` up. */
DEVICE_FN uint64_t load_bits64(const uint8_t *base, int32_t from) {
    const uint8_t *words = base + (uint32_t)from / 32 * (size_t)4;
    uint32_t a = load_u32_aligned(words), b = load_u32_aligned(words + 4),
             c = load_u32_aligned(words + 8), shift = (uint32_t)from & 31;
    return (uint64_t)funnel_right(b, c, shift) << 32 | funnel_right(a, b, shift);
}

DEVICE_FN uint32_t low_bits(uint32_t value, uint32_t bits) {
    return value & ((1u << bits) - 1);
}

/* The state after `entry`; consumes its bits from the bottom of *bits_left. */
DEVICE_FN uint32_t advance_state(uint32_t entry, uint32_t *bits_left) {
    uint32_t bits = fse_state_bits(entry), low = low_bits(*bits_left, bits);
    *bits_left >>= bits;
    return (entry >> FSE_BASELINE_SHIFT << bits) + low;
}

/* Decodes up to seven sequences from a checkpoint, of `sequences_left` that remain in the zstd
 * block. Bits are taken from the bottom of 64, so in the reverse of the order in which they are
 * read. The last sequence of a zstd block has no state bits. False if the bitstream is malformed or
 * leaves its bounds. */
DEVICE_FN bool decode_sequences(const struct execute_memory *memory, struct backward_bits in,
                                uint64_t checkpoint, uint32_t first_record, uint32_t sequences_left,
                                struct block_progress *own) {
    const uint32_t *tables = memory->state->tables;
    uint32_t states = (uint32_t)(checkpoint >> 32);
    uint32_t length_state = states & 511, match_state = states >> CHECKPOINT_MATCH_SHIFT & 511,
             offset_state = states >> CHECKPOINT_OFFSET_SHIFT & 255;
    int32_t bit = (int32_t)(uint32_t)checkpoint;
    for (uint32_t i = 0; i < min_u32(ZSTD_SEQUENCES_PER_CHECKPOINT, sequences_left); i++) {
        uint32_t length = tables[length_state], match = tables[FSE_MATCH_START + match_state],
                 offset = tables[FSE_OFFSET_START + offset_state], sum = length + match + offset;
        bool is_last = i + 1 == sequences_left;
        uint32_t extra_bits = fse_extra_bits(sum), state_bits = is_last ? 0 : fse_state_bits(sum);
        int32_t from = bit - (int32_t)extra_bits, next = from - (int32_t)state_bits;
        if (next < in.begin || bit > in.bit || (is_last && from != in.begin))
            return false;
        uint64_t bits = load_bits64(in.base, next);
        if (!is_last) {
            uint32_t next_bits = (uint32_t)bits;
            offset_state = advance_state(offset, &next_bits);
            match_state = advance_state(match, &next_bits);
            length_state = advance_state(length, &next_bits);
        }
        bits = extra_bits > FAST_EXTRA_BITS_MAX ? load_bits64(in.base, from) : bits >> state_bits;
        uint32_t length_code = memory->state->lengths[length >> FSE_SYMBOL_SHIFT & 63],
                 match_code = memory->state->matches[match >> FSE_SYMBOL_SHIFT & 63],
                 offset_bits = offset >> FSE_SYMBOL_SHIFT & 31;
        uint32_t literals = (length_code & 0xFFFFFF) + low_bits((uint32_t)bits, length_code >> 24);
        bits >>= length_code >> 24;
        uint32_t match_length =
            (match_code & 0xFFFFFF) + low_bits((uint32_t)bits, match_code >> 24);
        bits >>= match_code >> 24;
        uint32_t offset_value = (1u << offset_bits) + low_bits((uint32_t)bits, offset_bits);
        if (offset_value >= OFFSET_VALUE_LIMIT)
            return false;
        struct sequence_record record = {own->out + literals, own->literals - own->out};
        uint32_t offset_used = apply_offset_value(&own->repeat, offset_value, literals > 0);
        if (memory->records) {
            memory->records[first_record + i] = record;
            memory->offsets[first_record + i] = offset_used;
        }
        own->out += literals + match_length;
        own->literals += literals;
        bit = next;
    }
    return true;
}

/* Two inclusive scans at once, which takes hardly longer than one. */
DEVICE_FN void scan_both(uint32_t *a, uint32_t *b) {
    for (uint32_t by = 1; by < WARP; by *= 2) {
        uint32_t below_a = warp_read_up(*a, by), below_b = warp_read_up(*b, by);
        if (lane_index() >= by) {
            *a += below_a;
            *b += below_b;
        }
    }
}

/* Inclusive scan of *own over the lanes of a warp; returns the exclusive one. */
DEVICE_FN struct block_progress scan_progress(struct block_progress *own) {
    struct block_progress below = *own;
    scan_both(&own->out, &own->literals);
    below.out = own->out - below.out;
    below.literals = own->literals - below.literals;
    own->repeat = scan_offsets(own->repeat);
    struct repeat_offsets none = unchanged_offsets();
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t last = warp_read_up(own->repeat.last[i], 1);
        below.repeat.last[i] = lane_index() ? last : none.last[i];
    }
    return below;
}

DEVICE_FN struct block_progress add_progress(const struct block_progress *before,
                                             const struct block_progress *change) {
    struct block_progress after = {before->out + change->out, before->literals + change->literals,
                                   compose_offsets(before->repeat, change->repeat)};
    return after;
}

/* Exclusive scan over the warps: state->warps becomes the progress at the start of each warp's
 * sequences. Advances state->now. By warp 0. */
DEVICE_FN void sum_warps(struct execute_state *state, uint32_t warps) {
    uint32_t lane = lane_index();
    struct block_progress own = {0, 0, unchanged_offsets()}, now = state->now;
    if (lane < warps)
        own = state->warps[lane];
    struct block_progress below = scan_progress(&own);
    if (lane < warps)
        state->warps[lane] = add_progress(&now, &below);
    sync_warp();
    if (lane == WARP - 1)
        state->now = add_progress(&now, &own);
}

/* Decodes the sequences of the group. *before becomes the progress at the start of this thread's.
 * False if one is malformed. By a thread block. */
DEVICE_FN bool sum_group(const struct zstd_args *args, const struct execute_memory *memory,
                         uint32_t threads, struct block_progress *before) {
    struct execute_state *state = memory->state;
    const struct zstd_block *block = &args->blocks[state->block];
    uint32_t first_record = thread_index() * ZSTD_SEQUENCES_PER_CHECKPOINT,
             first_sequence = state->group_first + first_record;
    uint32_t count = block->sequences;
    struct block_progress own = {0, 0, unchanged_offsets()};
    bool is_good = true;
    if (first_sequence < count) {
        const uint64_t *checkpoints = (const uint64_t *)pool_at(args, block->checkpoints);
        struct backward_bits in = open_backward_bits(
            args->stored + block->body + block->bitstream_offset, block->bitstream_bytes);
        is_good = decode_sequences(
            memory, in,
            load_u64_aligned(checkpoints + first_sequence / ZSTD_SEQUENCES_PER_CHECKPOINT),
            first_record, count - first_sequence, &own);
    }
    struct block_progress below = scan_progress(&own);
    if (lane_index() == WARP - 1)
        state->warps[warp_index()] = own;
    if (sync_block_or(!is_good))
        return false;
    if (warp_index() == 0)
        sum_warps(state, threads / WARP);
    sync_block();
    *before = add_progress(&state->warps[warp_index()], &below);
    return true;
}

/* Decodes the sequences of the group to records and checks their offsets against frame and window.
 * False if one is malformed. By a thread block. */
DEVICE_FN bool decode_group(const struct zstd_args *args, const struct execute_memory *memory,
                            uint32_t threads) {
    struct execute_state *state = memory->state;
    const struct zstd_block *block = &args->blocks[state->block];
    uint32_t first_record = thread_index() * ZSTD_SEQUENCES_PER_CHECKPOINT,
             first_sequence = state->group_first + first_record, count = block->sequences;
    struct block_progress before;
    if (!sum_group(args, memory, threads, &before))
        return false;
    bool is_good = true;
    uint32_t frame = state->frame_begin, window = block->window_size;
    ROLLED
    for (uint32_t i = 0; i < ZSTD_SEQUENCES_PER_CHECKPOINT && first_sequence + i < count; i++) {
        struct sequence_record record = memory->records[first_record + i];
        record.match += before.out;
        record.literal += before.literals - before.out;
        memory->records[first_record + i] = record;
        uint32_t offset = resolve_offset(memory->offsets[first_record + i], &before.repeat);
        memory->offsets[first_record + i] = offset;
        is_good &= offset > 0 && offset <= min_u32(record.match - frame, window);
    }
    return !sync_block_or(!is_good);
}

/* After decode_group: adds the record of the remaining literals to the last group and moves on to
 * the next one. Returns a block status. By one thread. */
DEVICE_FN uint32_t finish_group(const struct zstd_args *args, const struct execute_memory *memory,
                                uint32_t threads) {
    struct execute_state *state = memory->state;
    const struct zstd_block *block = &args->blocks[state->block];
    uint32_t sequences_left = block->sequences - state->group_first,
             group_max = threads * ZSTD_SEQUENCES_PER_CHECKPOINT;
    uint32_t literals = state->now.literals, end = state->now.out;
    if (literals > block->literals)
        return COGPU_GPU_MALFORMED;
    state->records = min_u32(sequences_left, group_max);
    if (sequences_left <= group_max) {
        struct sequence_record last_literals = {end + block->literals - literals, literals - end};
        memory->records[sequences_left] = last_literals;
        memory->offsets[sequences_left] = 1;
        state->records++;
        end = last_literals.match;
    }
    state->group_first += group_max;
    state->group_begin = state->group_end;
    state->group_end = end;
    if (end - state->block_begin > block->block_size_max)
        return COGPU_GPU_MALFORMED;
    return end > args->encoded[state->tiff_block].capacity ? COGPU_GPU_TOO_LONG : COGPU_GPU_DECODED;
}

#endif
