/*
 * A lane of the interleaved inflate (inflate_lanes.c): one deflate stream (RFC 1951) in progress,
 * with the tables of its current block.
 */
#ifndef COGPU_CODEC_INFLATE_LANE_H
#define COGPU_CODEC_INFLATE_LANE_H

#include "codec/inflate_code.h"
#include "codec/inflate_lanes.h"

#include <string.h>

enum {
    END_OF_BLOCK = 256,
    LITLEN_BITS = 11,  /* index of the table of literals and lengths */
    DISTANCE_BITS = 8, /* index of the table of distances */
    ADLER_BYTES = 4,   /* which follow the stream */
    COPY_BYTES = 16    /* a step copies so many bytes, whatever the length of the match */
};

/*
 * Entry of the table of literals and lengths: four bytes.
 *
 *     byte 0   bits of the code if it is a literal, else 0
 *     byte 1   the literal
 *     byte 2   bits of the code, and of the extra bits that select the length
 *     byte 3   length of a match, 3 to COPY_BYTES, or one of the negative kinds below
 *
 * A length code with extra bits has an entry for each of their values. An exception needs
 * decode_token: end of block, length above COPY_BYTES, code or extra bits beyond LITLEN_BITS, no
 * such code. Bits 8 to 16 of an exception are the symbol, or NO_SYMBOL if the code is longer than
 * the index; bits 17 to 20 are the bits of its code.
 */
enum { KIND_LITERAL = -127, KIND_EXCEPTION = -64, KINDS = 128, NO_SYMBOL = 511 };
enum { DISTANCE_NEAR = -32768, DISTANCE_UNKNOWN = -1 };

/*
 * Entry of the table of distances. The distance is `base` plus the bits of `mask`. A negative base
 * makes it larger than any position: an exception. That is a distance below COPY_BYTES, whose copy
 * would overlap: its base is DISTANCE_NEAR plus the true one. Or it is a code longer than
 * DISTANCE_BITS, or a symbol that does not exist: its base is DISTANCE_UNKNOWN.
 *
 * What is no match looks up an entry before the table: a literal has a distance as well, and
 * its copy is written behind the literal, where the next token overwrites it.
 */
typedef struct distance_entry {
    uint32_t mask; /* of the extra bits, behind the code */
    int16_t base;
    uint8_t bits;    /* of the code and of the extra bits */
    uint8_t literal; /* bytes that the step has written before the copy */
} distance_entry;

/* Canonical codes by length, for codes that the tables do not hold (RFC 1951 3.2.2). */
typedef struct lane_code {
    uint32_t end[CODE_BITS_MAX + 1];   /* first code after those of a length, in 15 bits */
    int32_t offset[CODE_BITS_MAX + 1]; /* index of a symbol minus its code */
} lane_code;

enum lane_state { LANE_IN_BLOCK, LANE_FINISHED, LANE_FAILED };

typedef struct inflate_lane {
    uint32_t litlen[1 << LITLEN_BITS];
    distance_entry distances[KINDS + (1 << DISTANCE_BITS)]; /* [KINDS + kind], then the table */
    const uint8_t *in, *in_end;
    uint64_t bit; /* bits of `in` that are decoded */
    uint8_t *out, *out_begin, *out_end;
    enum lane_state state;
    bool is_last_block;
    lane_code litlen_code, distance_code;
    uint16_t litlen_symbols[LITERAL_SYMBOLS], distance_symbols[DISTANCE_SYMBOLS];
    cogpu_lane_block block;
} inflate_lane;

/* See cogpu_inflate_lengths. */
static inline uint32_t length_of(uint32_t symbol) {
    return cogpu_inflate_lengths[symbol - END_OF_BLOCK - 1];
}

static inline uint32_t extra_bits(uint32_t length_or_distance) {
    return length_or_distance & 0xF;
}

/* The 64 bits at a bit position, of which at least 57 are valid; zeros after the end. */
static inline uint64_t lane_bits(const inflate_lane *lane, uint64_t bit) {
    const size_t bytes = (size_t)(lane->in_end - lane->in), at = (size_t)(bit >> 3);
    uint64_t word = 0;
    if (at + sizeof word <= bytes)
        memcpy(&word, lane->in + at, sizeof word);
    else if (at < bytes)
        memcpy(&word, lane->in + at, bytes - at);
    return word >> (bit & 7);
}

/* Reverses 15 bits: codes are in the stream from their highest bit on. */
static inline uint32_t reverse_15_bits(uint32_t bits) {
    bits = (bits & 0x5555) << 1 | (bits >> 1 & 0x5555);
    bits = (bits & 0x3333) << 2 | (bits >> 2 & 0x3333);
    bits = (bits & 0x0F0F) << 4 | (bits >> 4 & 0x0F0F);
    return ((bits & 0xFF) << 8 | bits >> 8) >> 1;
}

/* Reads block headers, and copies stored blocks, until a block with Huffman codes begins, whose
 * tables it makes, or the stream ends. Sets the state. */
void cogpu_inflate_lane_next_block(inflate_lane *lane);

#endif
