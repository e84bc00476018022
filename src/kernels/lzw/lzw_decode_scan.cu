/*
 * LZW decoder, step 1: finds the segments of each TIFF block (TIFF 6.0, section 13).
 *
 * One thread block per TIFF block. Encoders clear their table when it is full, libtiff after
 * REGULAR_CODES codes, so most segments have the same length:
 *
 *     | Clear | 3836 codes, 43222 bits | Clear | 3836 codes | Clear | ... | last codes | End |
 *
 * Fast path: all threads test for a Clear at the regular positions at once
 * (count_regular_segments). Those that follow one another are accepted, except for the last,
 * without looking at the codes between them. Slow path: 4096 codes at a time are searched for a
 * Clear or End (count_segment_codes). After a long segment the fast path is tried with its length,
 * so an encoder with another habit costs one slow segment.
 *
 * Segments of all TIFF blocks go into one list, those of a block consecutively. How many a block
 * has is known only at the end, so they are collected in spans first.
 *
 * Bounds. At most COGPU_LZW_SEGMENTS(capacity) segments are found, and a search ends at the end of
 * the input, which counts as an End code.
 *
 * Refused, for the CPU codec to decide: the bit order of files before TIFF 5, and more segments
 * than that. A Clear hidden between regular Clears, by chance (1 in 2^24) or malice, is met by the
 * decode kernel, where it is an invalid code.
 */
#include "kernels/lzw/lzw_decode_codes.h"

enum { REGULAR_CODES = 3836 };

enum { SCAN_THREADS = 512, SCAN_WARPS = SCAN_THREADS / WARP, CODES_PER_THREAD = 8 };

struct lzw_scan_shared {
    uint32_t minima[SCAN_WARPS];
    uint32_t first_entry;
};

/* Search of a TIFF block. All threads hold the same values. */
struct segment_search {
    struct lzw_bits bits;
    struct cogpu_lzw_span *spans;
    uint32_t spans_max;
    uint32_t found;          /* spans */
    uint32_t empty_segments; /* Clears that follow a Clear */
    uint32_t bit;            /* first bit of the segment that is searched */
};

/* Minimum over the threads of the block. */
DEVICE_FN uint32_t block_minimum(struct lzw_scan_shared *shared, uint32_t value) {
    value = warp_min(value);
    if (lane_index() == 0)
        shared->minima[warp_index()] = value;
    sync_block();
    value = warp_min(shared->minima[lane_index() % SCAN_WARPS]);
    sync_block();
    return value;
}

/* Allocates `count` consecutive entries of a list that all thread blocks share. Returns the first.
 */
DEVICE_FN uint32_t allocate_entries(struct lzw_scan_shared *shared, uint32_t *used_count,
                                    uint32_t count) {
    if (thread_index() == 0)
        shared->first_entry = atomic_add(used_count, count);
    sync_block();
    uint32_t position = shared->first_entry;
    sync_block();
    return position;
}

/* Number of consecutive segments that have a Clear after `codes` codes. */
DEVICE_FN uint32_t count_regular_segments(struct lzw_scan_shared *shared,
                                          const struct segment_search *search, uint32_t codes) {
    const uint32_t clear_bit = bits_before_code(codes), clear_width = 12;
    uint32_t possible = (search->bits.end - search->bit) / (clear_bit + clear_width);
    uint32_t first_irregular = possible;
    for (uint32_t i = thread_index(); i < first_irregular; i += SCAN_THREADS) {
        uint32_t bit = search->bit + i * (clear_bit + clear_width) + clear_bit;
        if (code_at(search->bits.memory, bit, clear_width) != CLEAR_CODE)
            first_irregular = i;
    }
    return block_minimum(shared, first_irregular);
}

/* Accepts regular segments, except for the last: an early Clear shifts everything after it, so two
 * regular Clears after it would be a coincidence. */
DEVICE_FN void add_regular_segments(struct lzw_scan_shared *shared, struct segment_search *search,
                                    uint32_t codes) {
    const uint32_t segment_bits = bits_before_code(codes) + 12;
    uint32_t count = count_regular_segments(shared, search, codes);
    count = count > 0 ? count - 1 : 0;
    if (count > search->spans_max - search->found - search->empty_segments)
        count = 0;
    for (uint32_t i = thread_index(); i < count; i += SCAN_THREADS) {
        search->spans[search->found + i].bit = search->bit + i * segment_bits;
        search->spans[search->found + i].codes = codes;
    }
    search->found += count;
    search->bit += count * segment_bits;
}

/* Number of codes that the segment has before a Clear, End or the end of the input. */
DEVICE_FN uint32_t count_segment_codes(struct lzw_scan_shared *shared,
                                       const struct segment_search *search) {
    for (uint32_t from = 0;; from += SCAN_THREADS * CODES_PER_THREAD) {
        uint32_t first = NO_CODE;
        for (uint32_t turn = CODES_PER_THREAD; turn-- > 0;) {
            uint32_t number = from + turn * SCAN_THREADS + thread_index();
            uint32_t width = code_width(number), bit = search->bit + bits_before_code(number);
            uint32_t code = END_CODE;
            if (bit + width <= search->bits.end)
                code = code_at(search->bits.memory, bit, width);
            if (code == CLEAR_CODE || code == END_CODE)
                first = number;
        }
        first = block_minimum(shared, first);
        if (first != NO_CODE)
            return first;
    }
}

/* Searches one segment. True if another one follows it. */
DEVICE_FN bool add_next_segment(struct lzw_scan_shared *shared, struct segment_search *search,
                                uint32_t *codes) {
    *codes = count_segment_codes(shared, search);
    if (*codes > 0) {
        if (thread_index() == 0) {
            search->spans[search->found].bit = search->bit;
            search->spans[search->found].codes = *codes;
        }
        search->found++;
    } else {
        search->empty_segments++;
    }
    uint32_t bit = search->bit + bits_before_code(*codes), width = code_width(*codes);
    search->bit = bit + width;
    return bit + width <= search->bits.end &&
           code_at(search->bits.memory, bit, width) == CLEAR_CODE;
}

/* Finds all segments. False if there are too many. A segment whose table is full (more than
 * TABLE_CODES codes) never takes the fast path: the decode kernel does not look for Clears in it.
 */
DEVICE_FN bool find_segments(struct lzw_scan_shared *shared, struct segment_search *search) {
    uint32_t codes = 1;
    bool more = true;
    if (search->bits.end - search->bit >= 9 &&
        code_at(search->bits.memory, search->bit, 9) == CLEAR_CODE) {
        search->bit += 9;
        search->empty_segments++;
        codes = 0;
    }
    while (more && search->found + search->empty_segments < search->spans_max) {
        if (codes == 0 || (codes >= FIRST_12_BIT && codes <= TABLE_CODES))
            add_regular_segments(shared, search, codes == 0 ? REGULAR_CODES : codes);
        if (search->found + search->empty_segments < search->spans_max)
            more = add_next_segment(shared, search, &codes);
    }
    return !more;
}

DEVICE_FN void publish_segments(const struct cogpu_lzw_args *args, struct lzw_scan_shared *shared,
                                const struct segment_search *search) {
    uint32_t position = allocate_entries(shared, &args->counters->segment_count, search->found);
    for (uint32_t i = thread_index(); i < search->found; i += SCAN_THREADS) {
        struct cogpu_lzw_segment *segment = &args->segments[position + i];
        segment->block = block_index();
        segment->bit = search->spans[i].bit;
        segment->codes = search->spans[i].codes;
        segment->index = 2 * i + (i + 1 == search->found);
        args->totals[position + i] = 0;
    }
}

/* A Clear code in the bit order of files before TIFF 5. */
DEVICE_FN bool has_old_bit_order(const struct cogpu_lzw_args *args,
                                 const cogpu_encoded_block *block) {
    const uint8_t *in = args->stored + block->in;
    return block->in_bytes >= 2 && in[0] == 0 && (in[1] & 1);
}

KERNEL(cogpu_kernel_lzw_scan, struct cogpu_lzw_args, struct lzw_scan_shared, SCAN_THREADS, 4) {
    const cogpu_encoded_block *block = &args->blocks[block_index()];
    uint32_t block_status = COGPU_GPU_UNSUPPORTED;
    if (!has_old_bit_order(args, block)) {
        struct segment_search search = {open_bits(args, block), NULL, 0, 0, 0, 0};
        search.bit = search.bits.begin;
        search.spans_max = COGPU_LZW_SEGMENTS(block->capacity);
        search.spans =
            args->spans + allocate_entries(shared, &args->counters->spans_used, search.spans_max);
        if (find_segments(shared, &search)) {
            publish_segments(args, shared, &search);
            block_status =
                search.found == 0 && block->required > 0 ? COGPU_GPU_TOO_SHORT : COGPU_GPU_DECODED;
        }
    }
    if (thread_index() == 0)
        args->statuses[block_index()] = block_status;
}
