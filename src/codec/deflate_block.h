/* A block of a deflate stream, from the sequences of deflate_encode.c. */
#ifndef COGPU_CODEC_DEFLATE_BLOCK_H
#define COGPU_CODEC_DEFLATE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MATCH_MAX = 258, /* bytes */
    LITERALS = 256,
    END = 256,
    FIRST_LENGTH = 257,
    LITLENS = 286, /* symbols of literals, the end and lengths */
    DISTANCES = 30,
    SYMBOL_BITS_MAX = 14,      /* so that four of them fit beside 7 bits into a store */
    STORED_BYTES = UINT16_MAX, /* that a block holds as they are, at most */
    STORED_HEADER_BITS = 48    /* at most, with what fills up a byte */
};

/* Literals and the match after them; length 0 = none. */
typedef struct sequence {
    uint32_t literals;
    uint16_t length, distance;
} sequence;

typedef struct counts {
    uint32_t litlens[LITLENS], distances[DISTANCES];
} counts;

/* The end of the stream so far: bits, lowest first. */
typedef struct bit_writer {
    uint8_t *out;
    uint64_t bits;
    unsigned count;
} bit_writer;

static inline unsigned log2_floor(uint32_t value) {
    return 31 - (unsigned)__builtin_clz(value | 1);
}

/* Lengths and distances become symbols alike (RFC 1951 3.2.5): the symbol has the highest bits of
 * the number, 3 of a length and 2 of a distance, and the others follow as extra bits. */
typedef struct symbol {
    unsigned number, extra_bits, extra;
} symbol;

static inline symbol symbol_of(uint32_t value, unsigned bits_inside) {
    const unsigned top = log2_floor(value);
    const unsigned extra_bits = top > bits_inside ? top - bits_inside : 0;
    return (symbol){(extra_bits << bits_inside) + (value >> extra_bits), extra_bits,
                    value & ((1u << extra_bits) - 1)};
}

static inline symbol length_symbol(unsigned length) {
    symbol s = length == MATCH_MAX ? (symbol){28, 0, 0} : symbol_of(length - 3, 2);
    s.number += FIRST_LENGTH;
    return s;
}

static inline symbol distance_symbol(unsigned distance) {
    return symbol_of(distance - 1, 1);
}

static inline unsigned distance_extra_bits(unsigned distance) {
    return distance < 4 ? 0 : distance / 2 - 1;
}

/* Writes a block of these bytes with the best codes for it, or stored if that is shorter. `uses`
 * counts the symbols of the sequences. Writes at most 8 bytes beyond the block. */
void cogpu_deflate_put_block(bit_writer *to, const uint8_t *in, size_t bytes,
                             const sequence *sequences, size_t count, const counts *uses,
                             bool is_last);

/* Pads the stream to a whole byte. */
void cogpu_deflate_fill_byte(bit_writer *w);

#endif
