/*
 * LZW decoder, step 2: decodes segments (TIFF 6.0, section 13).
 *
 * One thread block per segment, taken in order from a work queue (counters->next_segment). Segments
 * are independent of each other, except for their position in the output (lzw_decode_shared.h).
 *
 * 1. Codes become records, without a table: lzw_decode_strings.h.
 * 2. write_short: one thread per code walks from parent to parent and writes the last byte of each,
 *    from the end of its string to its start, into a window of 15 KiB. No thread waits for another.
 *    The window is then written to the output, 16 bytes at a time.
 * 3. Segments of more than 64 KiB, and codes after a full table: lzw_decode_long.h.
 *
 * Shared memory:
 *
 *     links, then window   15 KiB    |  records   15 KiB  |  owners   4 KiB
 *     stored, then starts   8 KiB    |  starts_before, sources, pending, sums
 *
 * Synchronisation: a barrier after each phase of resolve_strings; none while strings are written.
 *
 * Bounds. A segment has at most TABLE_CODES codes with strings; a walk from parent to parent takes
 * as many steps as the string has bytes. An invalid code is decoded as a literal and reported if it
 * is within the TIFF block's capacity. What is beyond the capacity is ignored, as the CPU codec
 * does, and the end of the input counts as the end of the stream.
 */
#include "kernels/lzw/lzw_decode_long.h"
#include "kernels/lzw/lzw_decode_strings.h"

/* Writes a string between two addresses of the window, last byte first. `record` is that of its
 * last byte. */
DEVICE_FN void write_string(const struct lzw_decode_shared *shared, uint32_t record, uint8_t *from,
                            uint8_t *to) {
    *--to = (uint8_t)record;
    ROLLED
    while (to != from) {
        record = word_at(shared->records, record >> PARENT_SHIFT);
        *--to = (uint8_t)record;
    }
}

/* If all strings are in one window. */
DEVICE_FN void fill_only_window(struct lzw_decode_shared *shared) {
    UNROLL
    for (uint32_t row = 0; row < ROWS; row++) {
        uint32_t number = row * THREADS + thread_index();
        uint32_t start = shared->starts[number], end = shared->starts[number + 1];
        if (start < end)
            write_string(shared, shared->records[number], shared->u.window + start,
                         shared->u.window + end);
    }
}

/* Strings, or parts of them, that are in the window that begins at byte `window` of the segment. */
DEVICE_FN void fill_short_window(struct lzw_decode_shared *shared, uint32_t window) {
    ROLLED
    for (uint32_t number = thread_index(); number < TABLE_CODES; number += THREADS) {
        uint32_t start = saturating_sub(shared->starts[number], window);
        uint32_t end = saturating_sub(shared->starts[number + 1], window);
        uint32_t record = shared->records[number];
        if (start >= end || start >= WINDOW)
            continue;
        ROLLED
        for (; end > WINDOW; end--)
            record = word_at(shared->records, record >> PARENT_SHIFT);
        write_string(shared, record, shared->u.window + start, shared->u.window + end);
    }
}

DEVICE_FN void write_short(const struct cogpu_lzw_args *args, struct lzw_decode_shared *shared,
                           uint32_t bytes) {
    for (uint32_t window = 0; window < bytes; window += WINDOW) {
        if (bytes <= WINDOW)
            fill_only_window(shared);
        else
            fill_short_window(shared, window);
        if (window == 0)
            locate_segment(args, shared);
        sync_block();
        uint32_t bytes_here = saturating_sub(min_u32(bytes, capacity_left(shared)), window);
        write_window(shared, segment_output(args, shared) + window, min_u32(bytes_here, WINDOW));
        if (bytes > WINDOW)
            sync_block();
    }
}

/* Takes the next segment from the work queue. False if none is left. */
DEVICE_FN bool take_segment(const struct cogpu_lzw_args *args, struct lzw_decode_shared *shared) {
    if (thread_index() == 0) {
        shared->segment_number = atomic_add(&args->counters->next_segment, 1);
        shared->invalid_code = NO_CODE;
        shared->segment.codes = 0;
        if (shared->segment_number < args->counters->segment_count) {
            shared->segment = args->segments[shared->segment_number];
            shared->block = args->blocks[shared->segment.block];
        }
    }
    sync_block();
    return shared->segment.codes > 0;
}

/* From codes to records. Returns the bytes of the strings. */
DEVICE_FN uint32_t resolve_strings(const struct cogpu_lzw_args *args,
                                   struct lzw_decode_shared *shared, uint32_t count) {
    const uint32_t first = stage_codes(args, shared, count);
    sync_block();
    read_codes(shared, first, count);
    sync_block();
    follow_links(shared);
    sync_block();
    const uint32_t bytes = find_starts(shared);
    sync_block();
    if (shared->segment.codes > TABLE_CODES)
        count_after_full(args, shared);
    if (thread_index() == 0)
        publish_total(args, shared,
                      (shared->segment.index / 2 > 0 ? TOTAL_IS_AGGREGATE : TOTAL_IS_PREFIX) |
                          shared->total);
    build_records(shared);
    sync_block();
    return bytes;
}

DEVICE_FN void decode_segment(const struct cogpu_lzw_args *args, struct lzw_decode_shared *shared) {
    const uint32_t codes = shared->segment.codes, count = min_u32(codes, TABLE_CODES);
    const uint32_t bytes = resolve_strings(args, shared, count);
    if (bytes <= SHORT_BYTES_MAX)
        write_short(args, shared, bytes);
    else
        write_long(args, shared, bytes, count);
    if (codes > TABLE_CODES) {
        sync_block();
        write_after_full(args, shared);
    }
}

KERNEL(cogpu_kernel_lzw_decode, struct cogpu_lzw_args, struct lzw_decode_shared, THREADS, 5) {
    while (take_segment(args, shared)) {
        decode_segment(args, shared);
        sync_block();
    }
}
