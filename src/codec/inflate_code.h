/*
 * Bits and Huffman codes of deflate (RFC 1951, 3.2): input, headers of blocks, decoding tables.
 *
 * A table is indexed by the next bits of the input. Entries, as in libdeflate:
 *
 *   bits    31        16..30 or 16..31      15           14         13     8..11    0..4
 *           literal   value: literal, base  exceptional  subtable   end    length   bits to
 *                     of length/distance,                           of     of the   consume,
 *                     place of subtable                             block  code     extra ones too
 *
 * Codes longer than the table's index continue in a subtable, for which bits 8..11 are the size of
 * its index. An exceptional entry that is neither is invalid.
 */
#ifndef COGPU_CODEC_INFLATE_CODE_H
#define COGPU_CODEC_INFLATE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LITERAL_TABLE_BITS = 11,
    DISTANCE_TABLE_BITS = 8,
    PRECODE_TABLE_BITS = 7,
    /* Entries of the largest tables, subtables included: zlib's examples/enough.c for 288 symbols
     * of 15 bits (11 in the first table) and 32 of 15 (8). */
    LITERAL_TABLE_ENTRIES = 2342,
    DISTANCE_TABLE_ENTRIES = 402,
    CODE_BITS_MAX = 15,
    LITERAL_SYMBOLS = 288,
    DISTANCE_SYMBOLS = 32,

    ENTRY_EXCEPTIONAL = 1 << 15,
    ENTRY_SUBTABLE = 1 << 14,
    ENTRY_END_OF_BLOCK = 1 << 13
};
#define ENTRY_LITERAL 0x80000000u

enum cogpu_inflate_state { INFLATE_AT_HEADER, INFLATE_IN_STORED, INFLATE_IN_CODES, INFLATE_ENDED };

typedef struct cogpu_inflater {
    const uint8_t *in, *in_end; /* input */
    uint64_t in_end_offset;     /* of in_end from the first byte of the stream */
    /* Sets the next input, after all before is consumed; false if there is none. May be NULL. */
    bool (*more)(struct cogpu_inflater *inflater);
    void *user;    /* for `more` */
    uint64_t bits; /* consumed from the input; those above `bit_count` are not valid */
    unsigned bit_count;
    enum cogpu_inflate_state state;
    bool is_last_block;
    uint64_t stop_bit;
    uint32_t stored_left; /* bytes of the stored block */
    uint32_t literal_table[LITERAL_TABLE_ENTRIES];
    uint32_t distance_table[DISTANCE_TABLE_ENTRIES];
    uint8_t lengths[LITERAL_SYMBOLS + DISTANCE_SYMBOLS]; /* of codes */
} cogpu_inflater;

/* Base << 16 | extra bits of lengths (symbols from 257 on) and distances: 3.2.5. */
extern const uint32_t cogpu_inflate_lengths[LITERAL_SYMBOLS - 257],
    cogpu_inflate_distances[DISTANCE_SYMBOLS];
enum { LENGTH_SYMBOLS_VALID = 29, DISTANCE_SYMBOLS_VALID = 30 };

/* The next of `bits` codes in the order of canonical codes, whose last one is all ones. Codes are
 * read from their most significant bit on, so tables are indexed by codes in reverse. */
static inline uint32_t inflate_next_code(uint32_t code, unsigned bits) {
    const uint32_t zeros = code ^ ((1u << bits) - 1);
    const uint32_t highest = 1u << (31 - __builtin_clz(zeros));
    return (code & (highest - 1)) | highest;
}

/* Makes `count` bits available, at most 56; false at the end of the input. */
bool cogpu_inflate_need_bits(cogpu_inflater *inflater, unsigned count);
/* The next `count` bits, which are available. */
static inline uint32_t inflate_take_bits(cogpu_inflater *inflater, unsigned count) {
    const uint32_t value = (uint32_t)(inflater->bits & ((1ull << count) - 1));
    inflater->bits >>= count;
    inflater->bit_count -= count;
    return value;
}

/* Reads the lengths of both codes of a block with dynamic codes (3.2.7), after the block's first
 * three bits; false if they are damaged. Reads up to 14 bits ahead of the last one. */
bool cogpu_inflate_read_lengths(cogpu_inflater *inflater);
/* Whether both codes are complete, but for distances of one code or none. */
bool cogpu_inflate_has_complete_codes(const cogpu_inflater *inflater);
/* The lengths of the fixed codes (3.2.6). */
void cogpu_inflate_set_fixed_lengths(uint8_t *lengths);
/* Tables for the lengths that were read, or for the fixed codes (3.2.6). */
void cogpu_inflate_make_tables(cogpu_inflater *inflater);
void cogpu_inflate_make_fixed_tables(cogpu_inflater *inflater);

#endif
