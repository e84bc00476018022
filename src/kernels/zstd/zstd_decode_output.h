/*
 * Sequence execution (RFC 8878, 3.1.1.4): the half of the execute kernels that writes bytes.
 *
 * The bytes of a group are made in slices of 2 to 4 KiB in shared memory, by all threads. A slice
 * begins at a multiple of 16 of the output and is written 16 bytes at a time. Per slice:
 *
 * 1. mark_record_starts: each record sets a bit where it begins, one bit per byte of the slice.
 *
 *        record      7        8             9
 *        bytes       L L M M  L M M M M M   L M ...        L literal, M match
 *        bits        1 0 0 0  1 0 0 0 0 0   1 0
 *
 * 2. locate_bytes: a byte finds its record by counting bits up to its own. A literal, or a match
 *    whose source is before the slice, is loaded from global memory. A match within the slice
 *    becomes a pointer to the earlier position (`sources`) and goes onto the warp's list `pending`.
 * 3. resolve_copies: pointers are followed to a known byte, one or two steps on average.
 * 4. write_slice: to global memory.
 *
 * A sync_block separates the steps. Steps 3 and 4 need no order among threads: a pointer leads to a
 * smaller position, and bytes that are known do not change.
 *
 * Bounds. The records of a group cover group_begin to group_end without gaps, which finish_group
 * has checked against the TIFF block's capacity. A chain of pointers strictly descends, so it ends.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_DECODE_OUTPUT_H
#define COGPU_KERNELS_ZSTD_ZSTD_DECODE_OUTPUT_H

#include "kernels/zstd/zstd_decode_sequences.h"

struct output_slice {
    const uint8_t *literals; /* of the zstd block */
    uint32_t literal_mask;   /* 0 for RLE literals */
    uint8_t *out;            /* of the TIFF block */
    uint32_t base;           /* position of the slice in the TIFF block, a multiple of 16 */
    uint32_t begin, end;     /* bytes of this group, from `base` */
#if ZSTD_WRITES_SYMBOLS
    uint32_t *symbols;
    uint32_t symbol_shift, block_begin; /* struct execute_state */
#endif
};

/* Position where a record begins: its literals follow the match of the record before. */
DEVICE_FN uint32_t record_start(const struct execute_memory *memory, uint32_t index) {
    if (index == 0)
        return memory->state->group_begin;
    struct sequence_record before = memory->records[index - 1];
    return before.match + before.literal - memory->records[index].literal;
}

/* Marks the records that begin in the slice, from number `first` on, which may have begun before
 * it. */
DEVICE_FN void mark_record_starts(const struct output_slice *s, const struct execute_memory *memory,
                                  uint32_t first, uint32_t threads) {
    uint32_t count = memory->state->records, last_word = (s->end - 1) / 32, end = s->base + s->end;
    for (uint32_t index = first + thread_index(); index < count; index += threads) {
        uint32_t start = record_start(memory, index);
        if (start >= end)
            return;
        uint32_t next = index + 1 < count ? record_start(memory, index + 1) : end;
        uint32_t position = index == first ? s->begin : start - s->base;
        uint32_t to = min_u32((next - s->base) / 32, last_word);
        atomic_or(&memory->starts[position / 32].bits, 1u << position % 32);
        if (index == first)
            memory->starts[position / 32].before = first - 1;
        for (uint32_t word = position / 32 + 1; word <= to; word++)
            memory->starts[word].before = index;
        if (next >= end)
            memory->state->next = next == end && index + 1 < count ? index + 1 : index;
    }
}

/* How far back to copy from, for the byte `into` its match. A match that overlaps itself repeats
 * its first `offset` bytes, so any multiple of the offset that stays in the match or its source is
 * right. The offset times one plus a power of two leaves at most three quarters of the way to the
 * match's start, without a division. Example: offset 3, into 100: 3 + (3 << 4) = 51 bytes back.
 * While `into` is less than the offset, the shift count is negative, so 32 and more, and adds
 * nothing. */
DEVICE_FN uint32_t copy_distance(uint32_t offset, uint32_t into) {
    return offset + shift_left(offset, highest_bit(into) - highest_bit(offset) - 1);
}

/* Literal `from`, or the element at position `from`, which is before the slice. */
#if ZSTD_WRITES_SYMBOLS
DEVICE_FN uint32_t load_element(const struct output_slice *s, bool is_literal, uint32_t from) {
    if (is_literal)
        return s->literals[from];
    return from < s->block_begin ? ZSTD_REFERENCE | from : s->symbols[from + s->symbol_shift];
}
#else
DEVICE_FN uint32_t load_element(const struct output_slice *s, bool is_literal, uint32_t from) {
    const uint8_t *bytes_from = is_literal ? s->literals : s->out;
    return bytes_from[from];
}
#endif

/* The byte at position `at`, with `up_to` the bits of its lane and those below: true and its value,
 * or false and the position in the slice that it equals. `is_plain`: the slice is full and its
 * literals are not RLE. Literals and copies take the same path without a branch, so that the loads
 * of a thread's eight bytes overlap. */
DEVICE_FN bool locate_byte(const struct output_slice *s, const struct execute_memory *memory,
                           uint32_t word, uint32_t at, uint32_t up_to, bool is_plain,
                           uint32_t *value) {
    struct record_starts starts = memory->starts[word];
    uint32_t index = starts.before + count_ones(starts.bits & up_to);
    struct sequence_record record = memory->records[index];
    uint32_t back = copy_distance(memory->offsets[index], at - record.match);
    bool is_literal = at < record.match;
    uint32_t from = at + (is_literal ? record.literal : 0 - back);
    if (!is_plain && is_literal)
        from &= s->literal_mask;
    if (!is_literal && from >= s->base + (is_plain ? 0 : s->begin)) {
        *value = from - s->base;
        return false;
    }
    *value = load_element(s, is_literal, from);
    return true;
}

/* Bytes that a thread locates together. */
enum { BYTES_PER_THREAD = 8 };

/* Locates all bytes of the slice. Returns the length of the warp's list `pending`. */
DEVICE_FN uint32_t locate_bytes(const struct output_slice *s, const struct execute_memory *memory,
                                uint16_t *pending, uint32_t threads, uint32_t slice_bytes,
                                bool is_plain) {
    uint32_t lane = lane_index(), up_to = 0xFFFFFFFFu >> (31 - lane), count = 0;
    for (uint32_t row = thread_index(); row < slice_bytes; row += threads * BYTES_PER_THREAD) {
        uint32_t word = row / 32, at = s->base + row;
        uint32_t values[BYTES_PER_THREAD], copied = 0;
        UNROLL
        for (uint32_t i = 0; i < BYTES_PER_THREAD; i++) {
            uint32_t position = row + i * threads;
            values[i] = 0;
            if ((is_plain || (position >= s->begin && position < s->end)) &&
                !locate_byte(s, memory, word + i * (threads / 32), at + i * threads, up_to,
                             is_plain, &values[i]))
                copied |= 1u << i;
        }
        UNROLL
        for (uint32_t i = 0; i < BYTES_PER_THREAD; i++) {
            uint32_t position = row + i * threads;
            bool is_copied = copied >> i & 1;
            uint32_t copies = warp_ballot(is_copied);
            memory->sources[position] = (uint16_t)(is_copied ? values[i] : position);
            if (!is_copied)
                memory->slice[position] = (slice_element)values[i];
            if (copies) {
                if (is_copied)
                    pending[count + count_ones(copies & up_to) - 1] = (uint16_t)position;
                count += count_ones(copies);
            }
        }
    }
    return count;
}

DEVICE_FN void resolve_copies(const struct execute_memory *memory, const uint16_t *pending,
                              uint32_t count) {
    for (uint32_t i = lane_index(); i < count; i += WARP) {
        uint32_t position = pending[i], source = memory->sources[position];
        for (;;) {
            uint32_t further = memory->sources[source];
            if (further == source)
                break;
            source = further;
        }
        memory->slice[position] = memory->slice[source];
    }
}

DEVICE_FN slice_element *slice_target(const struct output_slice *s) {
#if ZSTD_WRITES_SYMBOLS
    return s->symbols + (s->base + s->symbol_shift);
#else
    return s->out + s->base;
#endif
}

DEVICE_FN void write_slice(const struct output_slice *s, const struct execute_memory *memory,
                           uint32_t threads) {
    enum { VECTOR = sizeof(words4) / sizeof(slice_element) };
    slice_element *to = slice_target(s);
    uint32_t first = (s->begin + VECTOR - 1) / VECTOR, end = s->end / VECTOR;
    for (uint32_t i = first + thread_index(); i < end; i += threads)
        store_words4(to + VECTOR * i, load_words4(memory->slice + VECTOR * i));
    if (s->begin % VECTOR == 0 && s->end % VECTOR == 0)
        return;
    uint32_t head = min_u32(VECTOR * first, s->end),
             tail = VECTOR * end > head ? VECTOR * end : head;
    for (uint32_t i = s->begin + thread_index(); i < head; i += threads)
        to[i] = memory->slice[i];
    for (uint32_t i = tail + thread_index(); i < s->end; i += threads)
        to[i] = memory->slice[i];
}

DEVICE_FN struct output_slice slice_at(const struct zstd_args *args,
                                       const struct execute_memory *memory, uint32_t at,
                                       uint32_t slice_bytes) {
    struct output_slice s;
    const struct execute_state *state = memory->state;
    s.out = args->decoded + state->out;
    s.literals = (state->has_huffman ? args->decoded : args->stored) + state->literals;
    s.literal_mask = state->literal_mask;
    s.base = at / 16 * 16;
    s.begin = at - s.base;
    s.end = min_u32(slice_bytes, state->group_end - s.base);
#if ZSTD_WRITES_SYMBOLS
    s.symbols = args->symbols;
    s.symbol_shift = state->symbol_shift;
    s.block_begin = state->block_begin;
#endif
    return s;
}

/* Writes the bytes of the group. By a thread block. */
DEVICE_FN void write_group(const struct zstd_args *args, const struct execute_memory *memory,
                           uint32_t threads, uint32_t slice_bytes) {
    struct execute_state *state = memory->state;
    uint16_t *pending = memory->pending + warp_index() * (slice_bytes / (threads / WARP));
    uint32_t record = 0;
    for (uint32_t at = state->group_begin; at < state->group_end;) {
        struct output_slice s = slice_at(args, memory, at, slice_bytes);
        mark_record_starts(&s, memory, record, threads);
        sync_block();
        bool is_plain = s.end - s.begin == slice_bytes && s.literal_mask;
        uint32_t copies = is_plain ? locate_bytes(&s, memory, pending, threads, slice_bytes, true)
                                   : locate_bytes(&s, memory, pending, threads, slice_bytes, false);
        sync_block();
        resolve_copies(memory, pending, copies);
        for (uint32_t i = thread_index(); i < slice_bytes / 32; i += threads)
            memory->starts[i].bits = 0;
        record = state->next;
        sync_block();
        /* Computed again, because locate_bytes needs all registers. */
        s = slice_at(args, memory, at, slice_bytes);
        write_slice(&s, memory, threads);
        at = s.base + s.end;
    }
}

#endif
