/*
 * Parts and segments: how the Deflate and Zstandard encoders split work among threads.
 *
 *     TIFF block   |------ part 0: 32 KiB ------|------ part 1 ------| ... |-- last part --|
 *     part         | seg 0 | seg 1 | ...                | seg 255 |
 *                    128 bytes, one thread
 *
 * - A part becomes one block of the stream: a DEFLATE block (RFC 1951, 3.2.3) or a Zstandard block
 *   (RFC 8878, 3.1.1.2), with entropy codes of its own. One thread block of 256 threads encodes it.
 * - A segment belongs to one thread. No match crosses the end of its segment, so threads parse
 *   independently of each other.
 *
 * The part is in shared memory. Thread t reads words near 32 t, so without padding all lanes of a
 * warp would use the same bank. One unused word after each segment makes the stride 33:
 *
 *     word    0 1 2 ... 31 -  32 33 ... 63 -  64 ...        "-": padding
 *     index   0 1 2 ... 31 32 33 34 ... 64 65 66 ...        padded_index(i) = i + i / 32
 */
#ifndef COGPU_KERNELS_ENCODE_PART_H
#define COGPU_KERNELS_ENCODE_PART_H

#include "kernels/encode/common.h"
#include "kernels/encoder.h"

enum {
    PART_BYTES = 32 << 10,
    PART_THREADS = 256,
    PART_WARPS = PART_THREADS / WARP,
    SEGMENT_BYTES = PART_BYTES / PART_THREADS,
    SEGMENT_WORDS = SEGMENT_BYTES / 4,
    PADDED_WORDS = PART_THREADS * (SEGMENT_WORDS + 1),
    PEEK_WORDS = 8, /* zeros after the part, for loads of several words that go past its end */
    BYTE_VALUES = 256
};

/* ---- padded arrays in shared memory --------------------------------------------------------- */

DEVICE_FN uint32_t padded_index(uint32_t word) {
    return word + word / SEGMENT_WORDS;
}

DEVICE_FN uint32_t padded_word(const uint32_t *words, uint32_t word) {
    return words[padded_index(word)];
}

DEVICE_FN uint8_t *padded_byte(const uint32_t *words, uint32_t at) {
    return (uint8_t *)(uintptr_t)words + at + at / SEGMENT_BYTES * 4;
}

/* Four bytes from any byte on, the first lowest. */
DEVICE_FN uint32_t padded_four_bytes(const uint32_t *words, uint32_t at) {
    return funnel_right(padded_word(words, at / 4), padded_word(words, at / 4 + 1), 8 * (at % 4));
}

/* Clears those bytes of a word at byte `at` that are past the end of the part. */
DEVICE_FN uint32_t clear_past_end(uint32_t word, uint32_t at, uint32_t bytes) {
    return at + 4 <= bytes ? word : at >= bytes ? 0 : word & ((1u << 8 * (bytes - at)) - 1);
}

/* ---- parts ---------------------------------------------------------------------------------- */

/*
 * Where a match can come from. In rasters most matches have one of three distances that are known
 * in advance; they need no search. Higher levels add one match per byte from a search (SEARCHED).
 *
 * PREVIOUS_SAMPLE is the previous sample of the same band. Where that is the previous byte (8-bit
 * samples, and the byte planes of predictor 3), the byte after it in the previous row is used
 * instead, at distance row_bytes - 1.
 */
enum match_source {
    PREVIOUS_BYTE,
    PREVIOUS_SAMPLE,
    PREVIOUS_ROW,
    RASTER_DISTANCES,
    SEARCHED = RASTER_DISTANCES
};

/* A part. All threads hold the same values. */
struct encode_part {
    const uint8_t *in;
    uint32_t bytes;
    uint32_t history;                     /* bytes of the TIFF block before the part */
    bool is_last, has_byte_planes;        /* byte planes: samples are one byte apart */
    uint32_t distances[RASTER_DISTANCES]; /* 0: too far, or the same as another */
};

DEVICE_FN uint32_t part_count(uint32_t bytes) {
    return (bytes + PART_BYTES - 1) / PART_BYTES;
}

/* `reaches_back`: matches at raster distances may begin before the part. */
DEVICE_FN struct encode_part get_part(const uint8_t *decoded, const cogpu_raw_block *block,
                                      uint32_t number, bool reaches_back) {
    struct encode_part part;
    part.history = number * PART_BYTES;
    part.in = decoded + block->in + part.history;
    part.bytes = min_u32(block->in_bytes - part.history, PART_BYTES);
    part.is_last = number + 1 == part_count(block->in_bytes);
    part.has_byte_planes = block->step == 1;
    part.distances[PREVIOUS_BYTE] = 1;
    part.distances[PREVIOUS_SAMPLE] = block->step == 1 ? block->row_bytes - 1 : block->step;
    part.distances[PREVIOUS_ROW] = block->row_bytes == block->step ? 0 : block->row_bytes;
    const uint32_t reach = reaches_back ? part.history + part.bytes : part.bytes;
    for (uint32_t k = 1; k < RASTER_DISTANCES; k++)
        if (part.distances[k] == 1 || part.distances[k] >= reach)
            part.distances[k] = 0;
    return part;
}

/* The distance of a source other than SEARCHED. Written out: an index would force the array out of
 * registers. */
DEVICE_FN uint32_t raster_distance(const struct encode_part *part, uint32_t source) {
    return source == PREVIOUS_BYTE     ? part->distances[PREVIOUS_BYTE]
           : source == PREVIOUS_SAMPLE ? part->distances[PREVIOUS_SAMPLE]
                                       : part->distances[PREVIOUS_ROW];
}

DEVICE_FN uint32_t segment_begin(void) {
    return SEGMENT_BYTES * thread_index();
}

DEVICE_FN uint32_t segment_end(const struct encode_part *part) {
    return min_u32(segment_begin() + SEGMENT_BYTES, part->bytes);
}

/* ---- sums over the thread block ------------------------------------------------------------- */

/* The sum of `value` over all threads before this one; *total: over all. `warp_sums` is shared
 * memory of PART_WARPS words, free again on return. All threads call it. */
DEVICE_FN uint32_t block_scan(uint32_t *warp_sums, uint32_t value, uint32_t *total) {
    const uint32_t inclusive = warp_scan(value);
    uint32_t before = inclusive - value;
    if (lane_index() == WARP - 1)
        warp_sums[warp_index()] = inclusive;
    sync_block();
    *total = 0;
    for (uint32_t i = 0; i < PART_WARPS; i++) {
        before += i < warp_index() ? warp_sums[i] : 0;
        *total += warp_sums[i];
    }
    sync_block();
    return before;
}

/* The sum of `value` over all threads. As block_scan, with a cheaper reduction. */
DEVICE_FN uint32_t block_sum(uint32_t *warp_sums, uint32_t value) {
    const uint32_t sum = warp_sum(value);
    uint32_t total = 0;
    if (lane_index() == 0)
        warp_sums[warp_index()] = sum;
    sync_block();
    for (uint32_t i = 0; i < PART_WARPS; i++)
        total += warp_sums[i];
    sync_block();
    return total;
}

#endif
