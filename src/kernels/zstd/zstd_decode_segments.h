/*
 * Huffman-coded literals (RFC 8878, 4.2.2) of few zstd blocks: each stream is decoded by eight
 * lanes.
 *
 * A Huffman stream is serial, but Huffman codes synchronise: a decoder that starts at a wrong bit
 * soon meets the end of a code, and from there on it is right. Real literals take up to 60 codes.
 *
 *     stream    bit                                                            begin
 *     read ->   |  segment 0       |  segment 1       |  segment 2   ...         |
 *     lane 0    |----------------->|
 *     lane 1               |.......|-------------------->|        ... lead-in, not counted
 *     lane 2                                  |.......|------------------->
 *                          boundary ^        where lane 1 leaves ^ must be where lane 2 enters
 *
 * 1. count    each lane decodes its lead-in, then counts the codes up to the next boundary.
 * 2. correct  a lane that did not enter where the one before left counts again from there. Usually
 *             there is none. Lane 0 is right from the beginning, so after round n lane n is right,
 *             and after seven rounds all lanes are.
 * 3. decode   prefix sums of the counts give each lane its place in the output.
 *
 * Bounds. A code has at least one bit, so loops run to a number of bits. Nothing is written unless
 * the counts add up to the number of literals.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_DECODE_SEGMENTS_H
#define COGPU_KERNELS_ZSTD_ZSTD_DECODE_SEGMENTS_H

#include "kernels/zstd/zstd_decode_literals.h"

enum { SEGMENTS = 8, LEAD_IN_BITS = 512 };

/* Decoder of a lane that does not keep what it decodes. */
struct code_walk {
    const uint8_t *base;
    struct bit_cursor cursor;
    int32_t loaded_from; /* lowest quad in the ring */
};

DEVICE_FN struct code_walk start_walk(struct literals_shared *shared, const uint8_t *base,
                                      int32_t bit) {
    struct code_walk walk;
    walk.base = base;
    walk.loaded_from = fill_ring(shared, base, bit);
    walk.cursor = cursor_at(shared, bit);
    return walk;
}

/* Walks on until not more than `to` bits are left. Returns the number of codes. */
DEVICE_FN uint32_t walk_codes(struct literals_shared *shared, const uint16_t *table,
                              uint32_t max_bits, struct code_walk *walk, int32_t to) {
    struct ring_refill even, odd = {{0, 0, 0, 0}, 0, false};
    struct bit_cursor cursor = walk->cursor;
    uint32_t index_shift = 32 - max_bits, codes = 0;
    const int32_t codes_max = cursor.bit - to;
    while (cursor.bit - to > 16 * ZSTD_HUFFMAN_BITS_MAX && (int32_t)codes < codes_max) {
        prefetch_quad(walk->base, walk->loaded_from);
        even = fetch_ring_quad(walk->base, cursor.bit, &walk->loaded_from);
        decode_4_symbols(shared, table, index_shift, &cursor);
        decode_4_symbols(shared, table, index_shift, &cursor);
        store_refill(shared, &odd);
        odd = fetch_ring_quad(walk->base, cursor.bit, &walk->loaded_from);
        decode_4_symbols(shared, table, index_shift, &cursor);
        decode_4_symbols(shared, table, index_shift, &cursor);
        store_refill(shared, &even);
        codes += 16;
    }
    store_refill(shared, &odd);
    for (; cursor.bit > to && (int32_t)codes < codes_max; codes++)
        decode_symbol(shared, table, index_shift, &cursor);
    walk->cursor = cursor;
    return codes;
}

/* A segment of a stream. Bits are those that are left. */
struct huffman_segment {
    int32_t enter, leave; /* bits at its first code, and after its last */
    int32_t boundary;     /* it ends with the code that reaches this bit */
    uint32_t codes;
};

/* Bits that are left at the start of segment `number`: a multiple of max_bits below the start of
 * the stream. So codes that all have this length are in step at once. */
DEVICE_FN int32_t segment_boundary(const struct huffman_stream *s, uint32_t number) {
    uint32_t bits = (uint32_t)(s->in.bit - s->in.begin);
    uint32_t distance = bits * number / SEGMENTS;
    return number == SEGMENTS ? s->in.begin
                              : s->in.bit - (int32_t)(distance - distance % s->max_bits);
}

DEVICE_FN struct huffman_segment count_segment(struct literals_shared *shared,
                                               const uint16_t *table,
                                               const struct huffman_stream *s, uint32_t number) {
    struct huffman_segment segment;
    int32_t lead_in = LEAD_IN_BITS - LEAD_IN_BITS % (int32_t)s->max_bits;
    int32_t start = segment_boundary(s, number);
    int32_t from = s->in.bit - start < lead_in ? s->in.bit : start + lead_in;
    struct code_walk walk = start_walk(shared, s->in.base, from);
    walk_codes(shared, table, s->max_bits, &walk, start);
    segment.enter = walk.cursor.bit;
    segment.boundary = segment_boundary(s, number + 1);
    segment.codes = walk_codes(shared, table, s->max_bits, &walk, segment.boundary);
    segment.leave = walk.cursor.bit;
    return segment;
}

/* Step 2. Lanes without codes to count take part in the collectives. By a warp. */
DEVICE_FN void correct_segments(struct literals_shared *shared, const uint16_t *table,
                                const struct huffman_stream *s, uint32_t number,
                                struct huffman_segment *segment) {
    for (uint32_t round = 1; round < SEGMENTS; round++) {
        int32_t left = (int32_t)warp_read_up((uint32_t)segment->leave, 1);
        bool is_wrong = s->count && number > 0 && segment->enter != left;
        if (!warp_any(is_wrong))
            break;
        if (!is_wrong)
            continue;
        struct code_walk walk = start_walk(shared, s->in.base, left);
        segment->enter = left;
        segment->codes = walk_codes(shared, table, s->max_bits, &walk, segment->boundary);
        segment->leave = walk.cursor.bit;
    }
}

/* Decodes the literals of zstd block `index`. By a warp. */
DEVICE_FN void decode_literals_by_segments(const struct zstd_args *args,
                                           struct literals_shared *shared, uint32_t index) {
    const struct zstd_block *block = &args->blocks[index];
    const uint16_t *table = shared->tables[0];
    uint32_t number = lane_index() % SEGMENTS;
    /* One lane decides for all: another thread block may refuse the TIFF block at this moment. */
    bool is_live = block->flags & ZSTD_HUFFMAN_LITERALS && !is_refused(args, block->tiff_block);
    if (!warp_read(is_live, 0))
        return;
    sync_warp();
    copy_huffman_table(args, shared, block, 0);
    sync_warp();
    struct huffman_stream s = open_huffman_stream(args, block, lane_index() / SEGMENTS);
    struct huffman_segment segment = {0, 0, 0, 0};
    if (s.count)
        segment = count_segment(shared, table, &s, number);
    correct_segments(shared, table, &s, number, &segment);
    uint32_t codes = segment.codes; /* up to the own ones */
    for (uint32_t by = 1; by < SEGMENTS; by *= 2) {
        uint32_t below = warp_read_up(codes, by);
        codes += number >= by ? below : 0;
    }
    uint32_t last_lane = lane_index() | (SEGMENTS - 1);
    uint32_t all_codes = warp_read(codes, last_lane),
             end = warp_read((uint32_t)segment.leave, last_lane);
    s.is_bad |= all_codes != s.count || (int32_t)end != s.in.begin;
    if (!s.is_bad && segment.codes) {
        s.out += codes - segment.codes;
        s.count = segment.codes;
        s.in.bit = segment.enter;
        s.in.begin = segment.leave;
        decode_huffman_stream(shared, table, &s);
    }
    if (s.is_bad)
        refuse_tiff_block(args, block->tiff_block, COGPU_GPU_MALFORMED);
}

#endif
