/*
 * The DEFLATE format (RFC 1951) as the encoder uses it: alphabets, length and distance codes, and
 * the shared memory of the encoding kernels.
 */
#ifndef COGPU_KERNELS_DEFLATE_DEFLATE_FORMAT_H
#define COGPU_KERNELS_DEFLATE_DEFLATE_FORMAT_H

#include "kernels/deflate/deflate_args.h"
#include "kernels/encode/cost.h"
#include "kernels/encode/huffman.h"
#include "kernels/encode/parse.h"

enum {
    MATCH_MIN = 3,
    CODE_BITS_MAX = 15,
    PRECODE_BITS_MAX = 7,
    ADLER_MODULUS = 65521, /* RFC 1950, 8.2 */

    /* Alphabets (3.2.5, 3.2.7). */
    END_OF_BLOCK = 256,
    FIRST_LENGTH = 257,
    LITLEN_SYMBOLS = 286,
    DISTANCE_SYMBOLS = 30,
    PRECODE_SYMBOLS = 19
};

/*
 * The three Huffman codes of a block: literals and lengths, distances, and the code length code
 * (3.2.7), here "precode" as in libdeflate. Arrays of counts, lengths and codes hold all three:
 *
 *     index     0 ... 285       288 ... 317     320 ... 338
 *     symbols   literal/length  distance        precode
 *
 * Each begins at a multiple of 32, for the warps that go through it.
 */
enum { LITLEN_CODE, DISTANCE_CODE, PRECODE, CODES };
enum { FIRST_DISTANCE = 288, FIRST_PRECODE = 320, SYMBOLS = 352 };

/* ---- length and distance codes (RFC 1951, 3.2.5) -------------------------------------------- */

/*
 * Both tables of the RFC follow one rule: a code holds the position of the highest bit and the
 * `mantissa_bits` bits below it, the extra bits hold the rest. Distance 27, with one mantissa bit:
 *
 *     value = 27 - 1 = 26 = 1 1 010b      code = 2 * 3 + 3 = 9, extra bits 010b (3 bits)
 */
DEVICE_FN struct coded_value split_value(uint32_t value, uint32_t mantissa_bits) {
    const uint32_t top = log2_floor(value | 1);
    struct coded_value symbol;
    symbol.extra_bits = top > mantissa_bits ? top - mantissa_bits : 0;
    symbol.number = (symbol.extra_bits << mantissa_bits) + (value >> symbol.extra_bits);
    symbol.extra = value & ((1u << symbol.extra_bits) - 1);
    return symbol;
}

/* For lengths below 258, which has a code of its own: a match has at most SEGMENT_BYTES (128). */
DEVICE_FN struct coded_value length_symbol(uint32_t length) {
    struct coded_value symbol = split_value(length - MATCH_MIN, 2);
    symbol.number += FIRST_LENGTH;
    return symbol;
}

DEVICE_FN struct coded_value distance_symbol(uint32_t distance) {
    struct coded_value symbol = split_value(distance - 1, 1);
    symbol.number += FIRST_DISTANCE;
    return symbol;
}

DEVICE_FN uint32_t distance_extra_bits(uint32_t code) {
    return code < 4 ? 0 : code / 2 - 1;
}

/* ---- shared memory of the encoding kernels -------------------------------------------------- */

/* Working memory of huffman.h for the three codes. */
struct deflate_tree {
    uint32_t keys[SYMBOLS], weights[SYMBOLS];
    uint16_t symbols[SYMBOLS], leaf_parents[SYMBOLS], inner_parents[SYMBOLS];
};

/* 17 bits, 19 precode lengths of 3 bits, and up to 316 code lengths of up to 7 bits: 2286 bits. */
enum { HEADER_WORDS = 96 };

/*
 * About 74 KiB, so that three thread blocks fit on a multiprocessor. A "row" here is an array as
 * long as the part, in the padded layout of encode/part.h, not a row of the raster. Rows and the
 * union `v` change their meaning as the part goes through the kernel; barriers separate the stages.
 *
 *     stage            choice row             byte row     v
 *     load                                    part         histograms
 *     search           previous part          part
 *     parse            choices                part         sources
 *     build codes      choices, distances     part         tree
 *     write            bits of segments, alternating       tree (of the header)
 */
struct deflate_shared {
    uint32_t rows[2 * PADDED_WORDS + PEEK_WORDS]; /* choice row, byte row */
    union {
        uint32_t histograms[HISTOGRAM_COPIES * BYTE_VALUES];
        uint32_t sources[SOURCE_WORDS];
        struct deflate_tree tree;
    } v;
    uint32_t codes[SYMBOLS]; /* counts; later codes: first bit lowest, length << 16 */
    uint32_t header[HEADER_WORDS];
    uint32_t length_counts[CODES][CODE_BITS_MAX + 1], used[CODES]; /* of encode/huffman.h */
    uint32_t warp_sums[PART_WARPS], header_bits;
    uint32_t byte_sum, position_sum; /* for Adler-32 */
    uint16_t length_costs[SEGMENT_BYTES + 4], distance_costs[32];
    uint8_t literal_costs[BYTE_VALUES], lengths[SYMBOLS];
};

/* One choice per byte of the part: literal or match, see encode/parse.h. */
DEVICE_FN uint32_t *choice_row(const struct deflate_shared *shared) {
    return (uint32_t *)(uintptr_t)shared->rows;
}

/* The bytes of the part. */
DEVICE_FN uint32_t *byte_row(const struct deflate_shared *shared) {
    return choice_row(shared) + PADDED_WORDS;
}

#endif
