/*
 * LZW decoder, step 2: shared memory of the decode kernel, and the position of a segment in the
 * output.
 *
 * The output position of a segment is the number of bytes of all segments before it in its TIFF
 * block: a prefix sum across thread blocks by decoupled look-back. Each segment publishes a word in
 * `totals`:
 *
 *     0                                not yet known
 *     TOTAL_IS_AGGREGATE | bytes       bytes of this segment
 *     TOTAL_IS_PREFIX | bytes          bytes of this segment and all before it in the TIFF block
 *
 * A warp looks back over 32 segments at a time until it meets a prefix. It does not deadlock:
 * thread blocks take segments in order, so those before it are in work, and each publishes its
 * aggregate before it looks back. The look-back comes as late as possible, so that it hardly ever
 * waits.
 */
#ifndef COGPU_KERNELS_LZW_LZW_DECODE_SHARED_H
#define COGPU_KERNELS_LZW_LZW_DECODE_SHARED_H

#include "kernels/lzw/lzw_decode_codes.h"

enum {
    THREADS = 384,
    WARPS = THREADS / WARP,
    ROWS = TABLE_CODES / THREADS, /* codes per thread */
    WINDOW = 40 * THREADS,        /* decoded bytes in shared memory */
    WINDOW_WORDS = WINDOW / 32
};

/* A link, one word per code. It leads to the parent's link, or, after follow_links, to no other:
 *
 *     31 30                     16 15         0
 *     | 0 | offset of parent's link |  length  |     how much longer than the parent's string
 *
 *     31 30  26 25     18 17     16 15         0
 *     | 1 | 0  |   byte  |    0    |  length   |     first byte and length of the string */
enum { LENGTH_MASK = 0xFFFF, PARENT_SHIFT = 16, CODE_SHIFT = PARENT_SHIFT + 2 };
#define IS_LITERAL 0x80000000u

/* A record, one word per code: last byte of its string in bits 0-7, and the byte offset of its
 * parent's record from PARENT_SHIFT on; in long segments, the distance to the parent's string from
 * DISTANCE_SHIFT on. A segment is long if its bytes exceed 16 bits. */
enum { DISTANCE_SHIFT = 8, SHORT_BYTES_MAX = 0xFFFF };

/* Totals saturate at TOTAL_BYTES_MAX, which no TIFF block exceeds. */
enum { TOTAL_IS_AGGREGATE = 1 << 30, TOTAL_BYTES_MAX = COGPU_GPU_BLOCK_BYTES_MAX };
#define TOTAL_IS_PREFIX 0x80000000u
#define TOTAL_MASK      0x3FFFFFFFu

/* For 32 decoded bytes: bits of those that end a string, and the code that the first belongs to. */
struct string_owners {
    uint32_t ends, first;
};

struct lzw_decode_shared {
    union {
        volatile uint32_t links[TABLE_CODES]; /* read while other threads write: follow_links */
        uint8_t window[WINDOW + 16];          /* 16 more bytes may be loaded */
    } u;
    uint32_t records[TABLE_CODES]; /* at first the codes */
    struct string_owners owners[WINDOW_WORDS];
    union {
        uint32_t stored[12 * TABLE_CODES / 32]; /* encoded codes, from a 16-byte boundary on */
        uint16_t starts[TABLE_CODES + 1];       /* of each string, in the segment */
    };
    uint32_t starts_before[THREADS + 1]; /* to be added, for each ROWS codes; 0 in short segments */
    uint16_t sources[THREADS];           /* of pending bytes: position in the row */
    uint32_t pending[WARPS];             /* bits of the bytes of a row */
    uint32_t sums[WARPS];
    uint32_t invalid_code;   /* number of the first, times 2; odd: it is Clear or End */
    uint32_t total;          /* bytes of the segment */
    uint32_t before;         /* bytes of the TIFF block before it */
    uint32_t segment_number; /* in the list of all TIFF blocks */
    struct cogpu_lzw_segment segment;
    cogpu_encoded_block block;
};

/* Sum of the values of all threads before this one; *total is the sum of all. */
DEVICE_FN uint32_t exclusive_sum(struct lzw_decode_shared *shared, uint32_t value,
                                 uint32_t *total) {
    uint32_t up_to = warp_scan(value), before = up_to - value;
    if (lane_index() == WARP - 1)
        shared->sums[warp_index()] = up_to;
    sync_block();
    *total = 0;
    for (uint32_t i = 0; i < WARPS; i++) {
        uint32_t sum = shared->sums[i];
        *total += sum;
        before += i < warp_index() ? sum : 0;
    }
    return before;
}

DEVICE_FN uint32_t string_start(const struct lzw_decode_shared *shared, uint32_t number) {
    return shared->starts[number] + shared->starts_before[number / ROWS];
}

/* ---- position of the segment ---- */

/* Sum over a warp of values up to TOTAL_BYTES_MAX, saturated at it. */
DEVICE_FN uint32_t capped_sum(uint32_t value) {
    uint64_t sum = (uint64_t)warp_sum(value >> 16) << 16;
    sum += warp_sum(value & 0xFFFF);
    return sum < TOTAL_BYTES_MAX ? (uint32_t)sum : TOTAL_BYTES_MAX;
}

/* Plain volatile accesses without fences: a total is one word, and no other memory depends on it.
 */
DEVICE_FN void publish_total(const struct cogpu_lzw_args *args,
                             const struct lzw_decode_shared *shared, uint32_t total) {
    *(volatile uint32_t *)(args->totals + shared->segment_number) = total;
}

DEVICE_FN uint32_t read_total(const struct cogpu_lzw_args *args,
                              const struct lzw_decode_shared *shared, uint32_t back) {
    return *(const volatile uint32_t *)(args->totals + shared->segment_number - back);
}

/* Bytes of the segments before this one in the TIFF block. By one warp. */
DEVICE_FN uint32_t look_back(const struct cogpu_lzw_args *args,
                             const struct lzw_decode_shared *shared) {
    uint32_t index = shared->segment.index / 2, before = 0;
    for (uint32_t done = 0; done < index; done += WARP) {
        uint32_t back = done + lane_index() + 1, known = TOTAL_IS_PREFIX;
        do {
            if (back <= index)
                known = read_total(args, shared, back);
        } while (!warp_all(known != 0));
        uint32_t prefixes = warp_ballot((known & TOTAL_IS_PREFIX) != 0);
        uint32_t last = prefixes ? trailing_zeros(prefixes) : WARP - 1;
        uint32_t sum = capped_sum(lane_index() <= last ? known & TOTAL_MASK : 0);
        before = min_u32(before + sum, TOTAL_BYTES_MAX);
        if (prefixes)
            break;
    }
    return before;
}

/* Reports an invalid code, unless it is after the end of the TIFF block: the CPU codec stops there
 * and does not see it. In the last segment, reports missing bytes. */
DEVICE_FN void report_errors(const struct cogpu_lzw_args *args,
                             const struct lzw_decode_shared *shared) {
    uint32_t *block_status = &args->statuses[shared->segment.block];
    if (shared->invalid_code != NO_CODE &&
        shared->before + string_start(shared, shared->invalid_code / 2) < shared->block.capacity)
        atomic_max(block_status,
                   shared->invalid_code % 2 ? COGPU_GPU_UNSUPPORTED : COGPU_GPU_MALFORMED);
    if (shared->segment.index % 2 && shared->before + shared->total < shared->block.required)
        atomic_max(block_status, COGPU_GPU_TOO_SHORT);
}

/* Finds the position of the segment, which is known after the next barrier. By the last warp. */
DEVICE_FN void locate_segment(const struct cogpu_lzw_args *args, struct lzw_decode_shared *shared) {
    if (warp_index() != WARPS - 1)
        return;
    uint32_t before = look_back(args, shared);
    if (lane_index() == 0) {
        publish_total(args, shared,
                      TOTAL_IS_PREFIX | min_u32(before + shared->total, TOTAL_BYTES_MAX));
        shared->before = before;
        report_errors(args, shared);
    }
}

DEVICE_FN uint8_t *segment_output(const struct cogpu_lzw_args *args,
                                  const struct lzw_decode_shared *shared) {
    return args->decoded + shared->block.out + shared->before;
}

/* Bytes of the TIFF block's capacity from the segment on. */
DEVICE_FN uint32_t capacity_left(const struct lzw_decode_shared *shared) {
    return saturating_sub(shared->block.capacity, shared->before);
}

/* ---- window ---- */

/* 16 bytes of the window from any byte on. */
DEVICE_FN words4 load_window_words(const struct lzw_decode_shared *shared, uint32_t at) {
    const uint8_t *aligned = shared->u.window + at / 4 * 4;
    uint32_t words[5], shift = at % 4 * 8;
    UNROLL
    for (uint32_t i = 0; i < 5; i++)
        words[i] = load_u32_aligned(aligned + 4 * i);
    words4 shifted = {
        funnel_right(words[0], words[1], shift), funnel_right(words[1], words[2], shift),
        funnel_right(words[2], words[3], shift), funnel_right(words[3], words[4], shift)};
    return shifted;
}

/* Writes the window to the output: 16 bytes at a time, single bytes before and after. */
DEVICE_FN void write_window(const struct lzw_decode_shared *shared, uint8_t *out, uint32_t bytes) {
    const uint32_t head = min_u32((uint32_t)(-(uintptr_t)out % 16), bytes);
    const uint32_t tail = head + (bytes - head) / 16 * 16;
    ROLLED
    for (uint32_t at = head + 16 * thread_index(); at < tail; at += 16 * THREADS)
        store_words4(out + at, load_window_words(shared, at));
    if (thread_index() < head)
        out[thread_index()] = shared->u.window[thread_index()];
    if (tail + thread_index() < bytes)
        out[tail + thread_index()] = shared->u.window[tail + thread_index()];
}

#endif
