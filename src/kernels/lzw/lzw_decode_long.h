/*
 * LZW segments of more than 64 KiB, and codes after a full table.
 *
 * In a long segment strings have thousands of bytes: with one thread per string, a few threads
 * would do all the work. So there is one thread per byte, in rows of THREADS bytes of a window:
 *
 *     bytes     ... | a b c | a b c d | x | ...
 *     ends           0 0 1    0 0 0 1   1              a bit per byte: last byte of a string
 *
 * A byte finds its string by counting the bits before it. It is the string's last byte, which its
 * record holds, or a copy of the byte at the distance of the parent's string. A source in an
 * earlier row is known; a source in the same row that is itself a copy is followed through
 * `sources`.
 *
 * Codes after TABLE_CODES add no strings. They are rare, so they have no shared memory of their
 * own: each thread copies the strings of its codes within the output.
 *
 * Bounds. A source is before its copy, so every chain ends. Bytes beyond the TIFF block's capacity
 * are not written.
 */
#ifndef COGPU_KERNELS_LZW_LZW_DECODE_LONG_H
#define COGPU_KERNELS_LZW_LZW_DECODE_LONG_H

#include "kernels/lzw/lzw_decode_shared.h"

/* Replaces the parent in each record by the distance to the parent's string. */
DEVICE_FN void compute_distances(struct lzw_decode_shared *shared) {
    ROLLED
    for (uint32_t number = thread_index(); number < TABLE_CODES; number += THREADS) {
        uint32_t record = shared->records[number], parent = record >> CODE_SHIFT;
        if (parent >= number)
            continue;
        uint32_t distance = string_start(shared, number) - string_start(shared, parent);
        shared->records[number] = distance << DISTANCE_SHIFT | (record & 0xFF);
    }
}

/* Marks the end of a string in the window, and the words of the window that begin in it. */
DEVICE_FN void mark_owner(struct lzw_decode_shared *shared, uint32_t number, uint32_t window) {
    uint32_t start = string_start(shared, number), end = string_start(shared, number + 1);
    if (end <= window || start >= window + WINDOW)
        return;
    uint32_t last = end - 1 - window;
    if (last < WINDOW)
        atomic_or(&shared->owners[last / 32].ends, 1u << last % 32);
    else
        last = WINDOW - 1;
    ROLLED
    for (uint32_t word = (saturating_sub(start, window) + 31) / 32; word <= last / 32; word++)
        shared->owners[word].first = number;
}

DEVICE_FN void mark_owners(struct lzw_decode_shared *shared, uint32_t window, uint32_t count) {
    for (uint32_t word = thread_index(); word < WINDOW_WORDS; word += THREADS)
        shared->owners[word].ends = 0;
    sync_block();
    ROLLED
    for (uint32_t number = thread_index(); number < count; number += THREADS)
        mark_owner(shared, number, window);
    sync_block();
}

/* Decodes `bytes` bytes into the window. The output before it ends at `earlier`. */
DEVICE_FN void fill_window(struct lzw_decode_shared *shared, const uint8_t *earlier,
                           uint32_t bytes) {
    const uint32_t below = (1u << lane_index()) - 1;
    uint8_t *to = shared->u.window;
    for (uint32_t row = 0; row < bytes; row += THREADS) {
        uint32_t at = row + thread_index();
        bool is_pending = false;
        if (at < bytes) {
            uint64_t owners = load_u64_aligned(&shared->owners[at / 32]);
            uint32_t ends = (uint32_t)owners, first = (uint32_t)(owners >> 32);
            uint32_t record = shared->records[first + count_ones(ends & below)];
            uint32_t byte = record;
            int32_t source = (int32_t)at - (int32_t)(record >> DISTANCE_SHIFT);
            if (!(ends >> lane_index() & 1)) {
                is_pending = source >= (int32_t)row;
                if (!is_pending)
                    byte = source < 0 ? earlier[source] : to[source];
            }
            if (is_pending)
                shared->sources[thread_index()] = (uint16_t)(source - (int32_t)row);
            else
                to[at] = (uint8_t)byte;
        }
        uint32_t pending = warp_ballot(is_pending);
        if (lane_index() == 0)
            shared->pending[warp_index()] = pending;
        if (!sync_block_or(is_pending))
            continue;
        if (is_pending) {
            uint32_t source = shared->sources[thread_index()];
            while (shared->pending[source / WARP] >> source % WARP & 1)
                source = shared->sources[source];
            to[at] = to[row + source];
        }
        sync_block();
    }
}

DEVICE_FN void write_long(const struct cogpu_lzw_args *args, struct lzw_decode_shared *shared,
                          uint32_t bytes, uint32_t count) {
    compute_distances(shared);
    locate_segment(args, shared);
    sync_block();
    uint8_t *out = segment_output(args, shared);
    bytes = min_u32(bytes, capacity_left(shared));
    for (uint32_t window = 0; window < bytes; window += WINDOW) {
        uint32_t size = min_u32(bytes - window, WINDOW);
        mark_owners(shared, window, count);
        fill_window(shared, out + window, size);
        write_window(shared, out + window, size);
    }
}

/* ---- codes after a full table ---- */

DEVICE_FN uint32_t code_after_full(const struct cogpu_lzw_args *args,
                                   const struct lzw_decode_shared *shared, uint32_t number) {
    const uint32_t *memory = open_bits(args, &shared->block).memory;
    return code_at(memory, shared->segment.bit + bits_before_code(number), 12);
}

/* Length of a code's string, and where it starts in the segment unless it is a single byte. */
DEVICE_FN uint32_t find_string(const struct lzw_decode_shared *shared, uint32_t code,
                               uint32_t *start) {
    if (code < FIRST_STRING_CODE)
        return 1;
    *start = string_start(shared, code - FIRST_STRING_CODE);
    return string_start(shared, code - FIRST_STRING_CODE + 1) - *start + 1;
}

/* Adds the bytes of codes after the full table to the segment's total. */
DEVICE_FN void count_after_full(const struct cogpu_lzw_args *args,
                                struct lzw_decode_shared *shared) {
    uint32_t sum = 0, start;
    for (uint32_t number = TABLE_CODES + thread_index(); number < shared->segment.codes;
         number += THREADS) {
        sum += find_string(shared, code_after_full(args, shared, number), &start);
        sum = min_u32(sum, TOTAL_BYTES_MAX);
    }
    sum = capped_sum(sum);
    if (lane_index() == 0)
        shared->sums[warp_index()] = sum;
    sync_block();
    if (thread_index() == 0)
        for (uint32_t i = 0; i < WARPS; i++)
            shared->total = min_u32(shared->total + shared->sums[i], TOTAL_BYTES_MAX);
    sync_block();
}

DEVICE_FN void write_after_full(const struct cogpu_lzw_args *args,
                                struct lzw_decode_shared *shared) {
    uint32_t at = string_start(shared, TABLE_CODES);
    for (uint32_t row = TABLE_CODES; row < shared->segment.codes && at < capacity_left(shared);
         row += THREADS) {
        uint32_t code = 0, from = 0, length = 0, total;
        if (row + thread_index() < shared->segment.codes) {
            code = code_after_full(args, shared, row + thread_index());
            length = find_string(shared, code, &from);
        }
        uint32_t to = at + exclusive_sum(shared, length, &total);
        length = min_u32(length, saturating_sub(capacity_left(shared), to));
        uint8_t *out = segment_output(args, shared);
        ROLLED
        for (uint32_t i = 0; i < length; i++)
            out[to + i] = code < FIRST_STRING_CODE ? (uint8_t)code : out[from + i];
        at += total;
        sync_block();
    }
}

#endif
