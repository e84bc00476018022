/*
 * Codes of TIFF's LZW (TIFF 6.0, section 13): their widths and positions.
 *
 * A segment is the codes between two Clear codes. Codes are packed MSB first. The width of code
 * number k of a segment depends on k alone, because each code adds one string to the table and the
 * width follows the size of the table:
 *
 *     k            0 ... 253    254 ... 765    766 ... 1789    1790 ...
 *     width        9            10             11              12 bits
 *
 * The changes come one code early ("early change"), as TIFF files have it. So the position of every
 * code is known without reading those before it.
 */
#ifndef COGPU_KERNELS_LZW_LZW_DECODE_CODES_H
#define COGPU_KERNELS_LZW_LZW_DECODE_CODES_H

#include "kernels/lzw/lzw_decode_args.h"
#include "kernels/simt.h"

#define NO_CODE 0xFFFFFFFFu

/* Before a loop whose unrolling would take too many registers. */
#ifdef __CUDACC__
#define ROLLED _Pragma("unroll 1")
#else
#define ROLLED
#endif

/* Clear and EndOfInformation, and the first code that means a string of the table. */
enum { CLEAR_CODE = 256, END_CODE = 257, FIRST_STRING_CODE = 258 };

/* Codes that may add strings: 3839 fill the table (4096 - 258 strings), rounded up to a multiple of
 * the threads of a block. */
enum { TABLE_CODES = 3840 };

/* Numbers of the first code of each width. */
enum { FIRST_10_BIT = 254, FIRST_11_BIT = 766, FIRST_12_BIT = 1790 };

/* number - limit, or 0. */
DEVICE_FN uint32_t saturating_sub(uint32_t number, uint32_t limit) {
    return number > limit ? number - limit : 0;
}

DEVICE_FN uint32_t code_width(uint32_t number) {
    return 9u + (number >= FIRST_10_BIT) + (number >= FIRST_11_BIT) + (number >= FIRST_12_BIT);
}

/* Bits of a segment before code `number`. */
DEVICE_FN uint32_t bits_before_code(uint32_t number) {
    return 9 * number + saturating_sub(number, FIRST_10_BIT) +
           saturating_sub(number, FIRST_11_BIT) + saturating_sub(number, FIRST_12_BIT);
}

/* Encoded bytes of a TIFF block: aligned memory, and the bits where the block begins and ends in
 * it. */
struct lzw_bits {
    const uint32_t *memory;
    uint32_t begin, end;
};

DEVICE_FN struct lzw_bits open_bits(const struct cogpu_lzw_args *args,
                                    const cogpu_encoded_block *block) {
    const uint8_t *in = args->stored + block->in;
    uint32_t skip = (uint32_t)((uintptr_t)in % 4);
    const void *aligned = in - skip;
    struct lzw_bits bits = {(const uint32_t *)aligned, 8 * skip, 8 * skip + 8 * block->in_bytes};
    return bits;
}

DEVICE_FN uint32_t swap_bytes(uint32_t word) {
    return pick_bytes(word, 0, 0x0123);
}

/* The `width` bits at `bit` of aligned memory. Reads up to 7 bytes after them. */
DEVICE_FN uint32_t code_at(const uint32_t *memory, uint32_t bit, uint32_t width) {
    uint32_t high = swap_bytes(load_u32_aligned(memory + bit / 32));
    uint32_t low = swap_bytes(load_u32_aligned(memory + bit / 32 + 1));
    return funnel_left(low, high, bit) >> (32 - width);
}

#endif
