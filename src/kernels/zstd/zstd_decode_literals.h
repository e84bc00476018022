/*
 * Huffman-coded literals (RFC 8878, 4.2.2): the half of the streams kernel that decodes them.
 *
 * A warp decodes the literals of 8 zstd blocks, 4 streams each, one stream per lane:
 *
 *     lane      0   1   2   3 | 4   5   6   7 | ...   28  29  30  31
 *     block           0       |       1       | ...          7
 *     stream    0   1   2   3 | 0   1   2   3 | ...    0   1   2   3
 *
 * Shared memory holds the 8 tables and, for each lane, a ring of the 32 words of its stream around
 * the current position (word i of the stream at i % 32). The rings of the lanes are interleaved, so
 * that no two lanes use the same bank. Decoded literals go to the end of the TIFF block's output;
 * see zstd_decode_execute.cu for why they are safe there.
 *
 * Bounds. A lane decodes as many symbols as its header says, which scan has checked against the
 * capacity. On garbage, ring and table indices stay within their size by masking; a stream that
 * does not end at its first bit is refused afterwards.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_DECODE_LITERALS_H
#define COGPU_KERNELS_ZSTD_ZSTD_DECODE_LITERALS_H

#include "kernels/zstd/zstd_decode_bits.h"

enum {
    LITERAL_BLOCKS_PER_WARP = 8,
    LITERAL_RING_WORDS = 32,
    LITERAL_RING_QUADS = LITERAL_RING_WORDS / 4
};

struct literals_shared {
    uint16_t tables[LITERAL_BLOCKS_PER_WARP][1 << ZSTD_HUFFMAN_BITS_MAX];
    /* The last 4 words are after the ring. Quads that are not needed are stored there: a store
     * costs less than a branch. */
    uint32_t rings[LITERAL_RING_WORDS + 4][WARP];
};

struct huffman_stream {
    struct backward_bits in;
    uint8_t *out;
    uint32_t count;    /* literals to decode */
    uint32_t max_bits; /* of its table */
    bool is_bad;
};

/* Copies a block's table from the pool to shared memory. By a warp. */
DEVICE_FN void copy_huffman_table(const struct zstd_args *args, struct literals_shared *shared,
                                  const struct zstd_block *block, uint32_t index) {
    const uint8_t *from = pool_at(args, block->huffman_table);
    uint32_t max_bits = min_u32(load_u32_aligned(from), ZSTD_HUFFMAN_BITS_MAX);
    uint32_t quads = ((2u << max_bits) + ZSTD_QUAD - 1) / ZSTD_QUAD;
    for (uint32_t i = lane_index(); i < quads; i += WARP)
        store_words4((uint8_t *)shared->tables[index] + i * ZSTD_QUAD,
                     load_words4(from + (1 + i) * ZSTD_QUAD));
}

/* Stream `number` of the block's one or four. Four are preceded by the Jump_Table (3.1.1.3.1.6),
 * the sizes of the first three; each of these decodes to a quarter of the literals, rounded up. */
DEVICE_FN struct huffman_stream open_huffman_stream(const struct zstd_args *args,
                                                    const struct zstd_block *block,
                                                    uint32_t number) {
    struct huffman_stream s;
    const uint8_t *stored = args->stored + block->body + block->literals_offset;
    uint32_t from = 0, bytes = block->literals_compressed;
    s.in.base = args->pool; /* any address: nothing is loaded if `count` is 0 */
    s.in.bit = s.in.begin = 0;
    s.out = args->decoded + args->encoded[block->tiff_block].out + block->literals_out;
    s.count = block->literals;
    s.max_bits =
        min_u32(load_u32_aligned(pool_at(args, block->huffman_table)), ZSTD_HUFFMAN_BITS_MAX);
    s.is_bad = s.max_bits == 0;
    if (block->flags & ZSTD_FOUR_STREAMS) {
        uint32_t quarter = (s.count + 3) / 4;
        uint32_t sizes[3] = {0, 0, 0};
        if (bytes < 10) /* the Jump_Table and four streams of one byte */
            s.is_bad = true;
        else
            for (uint32_t i = 0; i < 3; i++)
                sizes[i] = load_le16(stored + 2 * i);
        uint32_t bytes_before_last = 6 + sizes[0] + sizes[1] + sizes[2];
        s.is_bad |= bytes_before_last >= bytes || 3 * quarter > s.count;
        from = 6 + (number > 0 ? sizes[0] : 0) + (number > 1 ? sizes[1] : 0) +
               (number > 2 ? sizes[2] : 0);
        bytes = number == 0   ? sizes[0]
                : number == 1 ? sizes[1]
                : number == 2 ? sizes[2]
                              : bytes - bytes_before_last;
        s.out += number * quarter;
        s.count = number < 3 ? quarter : s.count - 3 * quarter;
    } else if (number > 0) {
        s.count = 0;
    }
    if (s.count && !s.is_bad)
        s.is_bad = bytes == 0 || stored[from + bytes - 1] == 0;
    if (s.is_bad)
        s.count = 0;
    if (s.count)
        s.in = open_backward_bits(stored + from, bytes);
    return s;
}

DEVICE_FN void store_ring_quad(struct literals_shared *shared, int32_t quad, bool is_needed,
                               words4 words) {
    uint32_t at = is_needed ? (uint32_t)quad % LITERAL_RING_QUADS * 4 : LITERAL_RING_WORDS;
    uint32_t lane = lane_index();
    shared->rings[at][lane] = words.x;
    shared->rings[at + 1][lane] = words.y;
    shared->rings[at + 2][lane] = words.z;
    shared->rings[at + 3][lane] = words.w;
}

DEVICE_FN uint32_t ring_word(const struct literals_shared *shared, int32_t word) {
    return shared->rings[(uint32_t)word % LITERAL_RING_WORDS][lane_index()];
}

/* Position in a stream: the words a, b, c that hold it and the bits below it, and `next`, the 32
 * bits that are read next, first bit highest. */
struct bit_cursor {
    int32_t bit;
    uint32_t a, b, c, next;
};

DEVICE_FN struct bit_cursor cursor_at(const struct literals_shared *shared, int32_t bit) {
    int32_t word = bit >> 5;
    struct bit_cursor cursor = {bit, ring_word(shared, word), ring_word(shared, word - 1),
                                ring_word(shared, word - 2), 0};
    cursor.next = funnel_right(cursor.b, cursor.a, (uint32_t)bit);
    return cursor;
}

DEVICE_FN uint8_t decode_symbol(const struct literals_shared *shared, const uint16_t *table,
                                uint32_t index_shift, struct bit_cursor *cursor) {
    uint32_t entry = table[cursor->next >> index_shift];
    *cursor = cursor_at(shared, cursor->bit - (int32_t)(entry & 31));
    return (uint8_t)(entry >> 8);
}

/* Four symbols are at most 44 bits, so the words of the next position are the same or one or two
 * lower. What counts is the latency from one look-up to the next. Two of them are started early:
 * the 64 bits also contain the first code of the next group, and the second code is entirely in the
 * high word. A table entry is a shift count as it is: a funnel shift uses its low 5 bits, the
 * length of the code. */
DEVICE_FN uint32_t decode_4_symbols(const struct literals_shared *shared, const uint16_t *table,
                                    uint32_t index_shift, struct bit_cursor *cursor) {
    int32_t word = cursor->bit >> 5;
    uint32_t a = cursor->a, b = cursor->b, c = cursor->c, shift = (uint32_t)cursor->bit;
    uint32_t d = ring_word(shared, word - 3), e = ring_word(shared, word - 4);
    uint32_t high = funnel_right(b, a, shift), low = funnel_right(c, b, shift), e0, e1, e2, e3;
    e0 = table[cursor->next >> index_shift];
    e1 = table[funnel_left(0, high, e0) >> index_shift];
    high = funnel_left(low, high, e0);
    low = funnel_left(0, low, e0);
    high = funnel_left(low, high, e1);
    low = funnel_left(0, low, e1);
    e2 = table[high >> index_shift];
    high = funnel_left(low, high, e2);
    low = funnel_left(0, low, e2);
    e3 = table[high >> index_shift];
    cursor->next = funnel_left(low, high, e3);
    cursor->bit -= (int32_t)((e0 + e1 + e2 + e3) & 255); /* low bytes of entries: code lengths */
    int32_t words_down = word - (cursor->bit >> 5);
    cursor->a = words_down == 0 ? a : words_down == 1 ? b : c;
    cursor->b = words_down == 0 ? b : words_down == 1 ? c : d;
    cursor->c = words_down == 0 ? c : words_down == 1 ? d : e;
    enum { SECOND_BYTES = 0x51, LOW_HALVES = 0x5410 }; /* the second byte of an entry: symbol */
    return pick_bytes(pick_bytes(e0, e1, SECOND_BYTES), pick_bytes(e2, e3, SECOND_BYTES),
                      LOW_HALVES);
}

/* A quad on its way from global memory to the ring. */
struct ring_refill {
    words4 words;
    int32_t number;
    bool is_needed;
};

/* Loads the next quad if the ring has a free one. `loaded_from` is the lowest quad in the ring. */
DEVICE_FN struct ring_refill fetch_ring_quad(const uint8_t *base, int32_t bit,
                                             int32_t *loaded_from) {
    struct ring_refill quad = {{0, 0, 0, 0}, 0, false};
    int32_t lowest = (bit >> 7) - (LITERAL_RING_QUADS - 1);
    quad.is_needed = *loaded_from > (lowest < 0 ? 0 : lowest);
    *loaded_from -= quad.is_needed;
    quad.number = *loaded_from;
    if (quad.is_needed)
        quad.words = load_quad(base, *loaded_from);
    return quad;
}

DEVICE_FN void store_refill(struct literals_shared *shared, const struct ring_refill *quad) {
    store_ring_quad(shared, quad->number, quad->is_needed, quad->words);
}

/* Fills the ring of the lane from the quad of `bit` down. Returns the lowest quad in it. */
DEVICE_FN int32_t fill_ring(struct literals_shared *shared, const uint8_t *base, int32_t bit) {
    int32_t loaded_from = (bit >> 7) + 1;
    for (uint32_t i = 0; i < LITERAL_RING_QUADS && loaded_from > 0; i++) {
        loaded_from--;
        store_ring_quad(shared, loaded_from, true, load_quad(base, loaded_from));
    }
    return loaded_from;
}

/* Main loop: 16 symbols, and one 16-byte store, at a time. 8 symbols take at most 11 bytes, so one
 * quad per 8 symbols keeps the ring filled; it arrives during the following 8. */
DEVICE_FN void decode_huffman_stream(struct literals_shared *shared, const uint16_t *table,
                                     struct huffman_stream *s) {
    int32_t loaded_from = fill_ring(shared, s->in.base, s->in.bit);
    uint32_t count = s->count, index_shift = 32 - s->max_bits, at = 0;
    struct bit_cursor cursor = cursor_at(shared, s->in.bit);
    uint32_t head = min_u32((uint32_t)(-(uintptr_t)s->out) & 15, count);
    for (; at < head; at++)
        s->out[at] = decode_symbol(shared, table, index_shift, &cursor);
    struct ring_refill even, odd = {{0, 0, 0, 0}, 0, false};
    for (; at + 16 <= count; at += 16) {
        words4 out;
        prefetch_quad(s->in.base, loaded_from);
        even = fetch_ring_quad(s->in.base, cursor.bit, &loaded_from);
        out.x = decode_4_symbols(shared, table, index_shift, &cursor);
        out.y = decode_4_symbols(shared, table, index_shift, &cursor);
        store_refill(shared, &odd);
        odd = fetch_ring_quad(s->in.base, cursor.bit, &loaded_from);
        out.z = decode_4_symbols(shared, table, index_shift, &cursor);
        out.w = decode_4_symbols(shared, table, index_shift, &cursor);
        store_refill(shared, &even);
        store_words4(s->out + at, out);
    }
    store_refill(shared, &odd);
    for (; at < count; at++)
        s->out[at] = decode_symbol(shared, table, index_shift, &cursor);
    s->is_bad |= cursor.bit != s->in.begin;
}

/* Decodes the literals of up to 8 zstd blocks from `first` on. By a warp. */
DEVICE_FN void decode_literals(const struct zstd_args *args, struct literals_shared *shared,
                               uint32_t first, uint32_t count) {
    uint32_t lane = lane_index();
    sync_warp();
    for (uint32_t i = 0; i < LITERAL_BLOCKS_PER_WARP && first + i < count; i++) {
        const struct zstd_block *block = &args->blocks[first + i];
        if (block->flags & ZSTD_HUFFMAN_LITERALS && !is_refused(args, block->tiff_block))
            copy_huffman_table(args, shared, block, i);
    }
    sync_warp();
    uint32_t own_block = first + lane / 4;
    if (own_block >= count)
        return;
    const struct zstd_block *block = &args->blocks[own_block];
    if (!(block->flags & ZSTD_HUFFMAN_LITERALS) || is_refused(args, block->tiff_block))
        return;
    struct huffman_stream s = open_huffman_stream(args, block, lane % 4);
    if (s.count)
        decode_huffman_stream(shared, shared->tables[lane / 4], &s);
    if (s.is_bad)
        refuse_tiff_block(args, block->tiff_block, COGPU_GPU_MALFORMED);
}

#endif
