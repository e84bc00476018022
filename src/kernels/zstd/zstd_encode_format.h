/*
 * The Zstandard format (RFC 8878) as the encoder uses it: constants, codes of sequences, the bit
 * writers, and the shared memory of the encoding kernel.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_ENCODE_FORMAT_H
#define COGPU_KERNELS_ZSTD_ZSTD_ENCODE_FORMAT_H

#include "kernels/encode/cost.h"
#include "kernels/encode/huffman.h"
#include "kernels/encode/parse.h"
#include "kernels/zstd/zstd_encode_args.h"

/* Block_Type (3.1.1.2.2). */
enum { RAW_BLOCK, RLE_BLOCK, COMPRESSED_BLOCK };

/* Literals_Block_Type (3.1.1.3.1.1). */
enum { RAW_LITERALS, RLE_LITERALS, COMPRESSED_LITERALS };

/* Compression modes of the FSE tables of sequences (3.1.1.3.2.1). */
enum { PREDEFINED_MODE, RLE_MODE, FSE_COMPRESSED_MODE };

/* The FSE tables of a block, in the order of the format; the fourth codes Huffman weights. */
enum {
    LITERALS_LENGTH,
    OFFSET,
    MATCH_LENGTH,
    SEQUENCE_TABLES,
    HUFFMAN_WEIGHTS = SEQUENCE_TABLES,
    FSE_TABLES
};

enum {
    HUFFMAN_BITS_MAX = 11,     /* 4.2.1 */
    HUFFMAN_LITERALS_MIN = 64, /* fewer literals are not worth a Huffman tree */
    HUFFMAN_STREAMS = 4,
    MATCH_MIN = 3,
    REPEAT_OFFSETS = 3 /* 3.1.1.5 */
};

/* ---- codes of lengths and offsets (3.1.1.3.2.1.1) ------------------------------------------- */

/* Code of a value in a range where each code has `bits` extra bits: the range begins with value
 * `from` and code `first`. */
DEVICE_FN struct coded_value symbol_in_range(uint32_t value, uint32_t from, uint32_t first,
                                             uint32_t bits) {
    struct coded_value symbol = {first + ((value - from) >> bits), bits, 0};
    symbol.extra = (value - from) & ((1u << bits) - 1);
    return symbol;
}

DEVICE_FN struct coded_value literals_length_symbol(uint32_t literals) {
    const uint32_t top = log2_floor(literals | 1);
    return literals < 16   ? symbol_in_range(literals, 0, 0, 0)
           : literals < 24 ? symbol_in_range(literals, 16, 16, 1)
           : literals < 32 ? symbol_in_range(literals, 24, 20, 2)
           : literals < 48 ? symbol_in_range(literals, 32, 22, 3)
           : literals < 64 ? symbol_in_range(literals, 48, 24, 4)
                           : symbol_in_range(literals, 1u << top, top + 19, top);
}

DEVICE_FN struct coded_value match_length_symbol(uint32_t length) {
    const uint32_t value = length - MATCH_MIN, top = log2_floor(value | 1);
    return value < 32    ? symbol_in_range(value, 0, 0, 0)
           : value < 40  ? symbol_in_range(value, 32, 32, 1)
           : value < 48  ? symbol_in_range(value, 40, 36, 2)
           : value < 64  ? symbol_in_range(value, 48, 38, 3)
           : value < 96  ? symbol_in_range(value, 64, 40, 4)
           : value < 128 ? symbol_in_range(value, 96, 42, 5)
                         : symbol_in_range(value, 1u << top, top + 36, top);
}

/* Offset_Value: 1 to 3 name a repeat offset, others are a distance + 3. */
DEVICE_FN struct coded_value offset_symbol(uint32_t offset_value) {
    const uint32_t top = log2_floor(offset_value);
    return symbol_in_range(offset_value, 1u << top, top, top);
}

DEVICE_FN struct coded_value distance_symbol(uint32_t distance) {
    return offset_symbol(distance + REPEAT_OFFSETS);
}

/* ---- bit writers ---------------------------------------------------------------------------- */

/*
 * Huffman and FSE streams are read backwards, from their last bit, which is a 1 that marks the end
 * (4.1, 4.2.2). So what the decoder reads first is written at the top, and writing in the decoder's
 * order goes downwards:
 *
 *     bit    0                                                top - 1
 *            | padding | last symbol | ... | second | first | 1 |          reading goes <--
 *
 * A scan of bits gives each thread its `top`. Words are zero before. The first and last 32-bit
 * words of a writer may hold bits of other threads, so these two are atomic.
 */
struct backward_writer {
    uint32_t *to;
    uint64_t bits;
    uint32_t count, free; /* bits that are not yet stored; unused bits of the word at `to` */
    bool is_first;        /* the word at `to` is the writer's first */
};

/* A writer whose first bit is `top` - 1. */
DEVICE_FN struct backward_writer write_below(uint32_t *words, uint32_t top) {
    struct backward_writer w = {words + (top - 1) / 32, 0, 0, (top - 1) % 32 + 1, true};
    return w;
}

/* Up to 32 bits. */
DEVICE_FN void put_backward(struct backward_writer *w, uint32_t bits, uint32_t count) {
    w->bits = w->bits << count | bits;
    w->count += count;
    if (w->count < w->free)
        return;
    w->count -= w->free;
    const uint32_t word = (uint32_t)(w->bits >> w->count);
    if (w->is_first)
        atomic_or(w->to, word);
    else
        *w->to = word;
    w->bits &= (1ull << w->count) - 1;
    w->is_first = false;
    w->free = 32;
    w->to--;
}

DEVICE_FN void flush_backward(struct backward_writer *w) {
    if (w->count > 0)
        atomic_or(w->to, (uint32_t)(w->bits << (w->free - w->count)));
}

/* Bits LSB first, into zeroed words, by one thread: table descriptions. */
struct forward_writer {
    uint32_t *words, at;
};

DEVICE_FN void put_forward(struct forward_writer *w, uint32_t bits, uint32_t count) {
    const uint64_t shifted = (uint64_t)bits << w->at % 32;
    w->words[w->at / 32] |= (uint32_t)shifted;
    w->words[w->at / 32 + 1] |= (uint32_t)(shifted >> 32);
    w->at += count;
}

/* ---- shared memory of the encoding kernel --------------------------------------------------- */

enum {
    HASH_BITS = 13,
    HISTORY_BYTES = 10 << 10, /* before the part, for the search: as much as fits */
    HISTORY_WORDS = HISTORY_BYTES / 4,

    FSE_SYMBOLS = 64, /* of the largest alphabet (53), rounded up: two per lane */
    FSE_CELLS = 512,  /* of a table: accuracy log 9 */
    /* An FSE table description (53 counts of up to 10 bits), or a tree description with FSE-coded
     * weights (1 + 127 bytes). */
    DESCRIPTION_WORDS = 48
};

/* How a symbol changes the state of the encoder; zstd_encode_fse.h has the formula. The FSE library
 * calls them deltaNbBits and deltaFindState. */
struct fse_transform {
    uint32_t delta_bits, delta_state;
};

struct fse_table {
    uint16_t next_states[FSE_CELLS];     /* of the encoder, grouped by symbol */
    uint8_t cell_symbols[FSE_CELLS];     /* of the decoder's table */
    uint32_t counts[FSE_SYMBOLS];        /* how often symbols occur */
    int16_t normalized[FSE_SYMBOLS];     /* normalized counts; sum 1 << accuracy_log */
    uint32_t first_states[FSE_SYMBOLS];  /* of symbols, in next_states */
    uint32_t filled_states[FSE_SYMBOLS]; /* while next_states is filled: the next free one */
    struct fse_transform transforms[FSE_SYMBOLS];
    uint32_t description[DESCRIPTION_WORDS], description_bytes;
    uint32_t accuracy_log, mode;
    uint32_t final_state; /* of the encoder: the first one that the decoder reads */
};

/* Working memory of huffman.h for the literals. */
struct zstd_tree {
    uint32_t keys[BYTE_VALUES], weights[BYTE_VALUES];
    uint16_t symbols[BYTE_VALUES], leaf_parents[BYTE_VALUES], inner_parents[BYTE_VALUES];
};

/* What is needed after the search. */
struct zstd_parse_memory {
    uint32_t choices[PADDED_WORDS];
    union {
        uint32_t histograms[HISTOGRAM_COPIES * BYTE_VALUES];
        uint32_t sources[SOURCE_WORDS];
        uint32_t repeat_offsets[REPEAT_OFFSETS][PART_THREADS];
        struct zstd_tree tree;
    } v;
    union {
        uint16_t cost_rings[COST_RING * PART_THREADS];
        struct fse_table tables[FSE_TABLES];
    } w;
};

/*
 * About 112 KiB, so that two thread blocks fit on a multiprocessor. Memory changes its meaning as a
 * part goes through the kernel; barriers separate the stages.
 *
 *     stage             bytes                choices           v                 w
 *     search            history, part        hash_tables use all of u
 *     parse             part, padded         choices           histograms, then  cost rings
 *                                                              sources
 *     list sequences    part, padded         choices, then     sources
 *                                            literals
 *     repeat offsets                         literals          repeat offsets    symbol counts
 *     build codes       codes of sequences   literals          tree              FSE tables
 *     write literals                         literals                            FSE tables
 *     write sequences                        output                              FSE tables
 *
 * After list sequences the literals of a segment are contiguous, at the segment's start.
 */
struct zstd_encode_shared {
    uint32_t bytes[HISTORY_WORDS + PADDED_WORDS + PEEK_WORDS];
    union {
        struct zstd_parse_memory parse;
        uint32_t hash_tables[2 << HASH_BITS]; /* for 4-byte keys, then for 6-byte keys */
    } u;
    uint32_t literal_counts[BYTE_VALUES];
    uint32_t literal_codes[BYTE_VALUES];         /* code | length << 16 */
    uint32_t distance_uses[RASTER_DISTANCES][3]; /* as Offset_Value 1, 2 or 3, and as a distance */
    uint32_t segment_tails[PART_THREADS]; /* distance of the match that ends a segment; 0: none */
    uint32_t warp_sums[PART_WARPS], length_counts[HUFFMAN_BITS_MAX + 1], used;
    uint32_t stream_starts[HUFFMAN_STREAMS + 1]; /* in bits of all literals */
    uint32_t tree_description[DESCRIPTION_WORDS], tree_description_bytes;
    uint16_t weight_states[BYTE_VALUES]; /* FSE states of Huffman weights */
    uint16_t match_length_costs[SEGMENT_BYTES + 4], literals_length_costs[SEGMENT_BYTES + 4],
        offset_costs[32], distance_costs[RASTER_DISTANCES];
    uint8_t literal_costs[BYTE_VALUES], lengths[BYTE_VALUES];
};

DEVICE_FN uint32_t *part_words(struct zstd_encode_shared *shared) {
    return shared->bytes + HISTORY_WORDS;
}

/* The codes of one table for all sequences, when the bytes of the part are no longer needed. */
DEVICE_FN uint8_t *sequence_codes(struct zstd_encode_shared *shared, uint32_t table) {
    return (uint8_t *)part_words(shared) + table * COGPU_ZSTD_SEQUENCES;
}

#endif
