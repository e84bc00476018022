/*
 * Predictors: what a row of samples becomes before it is compressed.
 *
 * Predictor 2, horizontal differencing (TIFF 6.0, section 14): each sample minus the same sample of
 * the pixel before, modulo the sample's size. The first pixel stays. Undoing it is a prefix sum.
 *
 *   RGB row     r0 g0 b0   r1 g1 b1        r2 g2 b2
 *   stored      r0 g0 b0   r1-r0 g1-g0 ... r2-r1 ...
 *
 * Predictor 3, floating point (TIFF Technical Note 3): bytes of equal significance form planes, the
 * most significant first, and then bytes are differenced at the distance of a pixel's samples. The
 * differences run on from plane to plane.
 *
 *   floats      A3A2A1A0  B3B2B1B0  C3C2C1C0
 *   planes      A3B3C3  A2B2C2  A1B1C1  A0B0C0
 *   stored      A3  B3-A3  C3-B3  A2-C3  B2-A2  ...
 *
 * Rows are whole loops of vectors or warps: these live in cpu/ and kernels/. Here is what both
 * compute with.
 */
#ifndef COGPU_PIXEL_PREDICTOR_H
#define COGPU_PIXEL_PREDICTOR_H

#include "pixel/pixel.h"

/* Which byte of a little-endian or big-endian sample in memory belongs to plane k. */
PIXEL_FN uint32_t plane_byte(uint32_t k, uint32_t sample_bytes, bool is_big_endian) {
    return is_big_endian ? k : sample_bytes - 1 - k;
}

/* The value of a sample in plane k. */
PIXEL_FN uint8_t plane_value(uint64_t sample, uint32_t k, uint32_t sample_bytes) {
    return (uint8_t)(sample >> 8 * (sample_bytes - 1 - k));
}

/* Four sums or differences of bytes in a word, or two of 16 bits, each modulo its size. The top
 * bits of the elements are handled apart, so that no carry or borrow leaves an element. */
PIXEL_FN uint32_t add_4x8(uint32_t a, uint32_t b) {
    return ((a & 0x7F7F7F7Fu) + (b & 0x7F7F7F7Fu)) ^ ((a ^ b) & 0x80808080u);
}

PIXEL_FN uint32_t add_2x16(uint32_t a, uint32_t b) {
    return ((a & 0x7FFF7FFFu) + (b & 0x7FFF7FFFu)) ^ ((a ^ b) & 0x80008000u);
}

PIXEL_FN uint32_t subtract_4x8(uint32_t a, uint32_t b) {
    return ((a | 0x80808080u) - (b & 0x7F7F7F7Fu)) ^ ((a ^ ~b) & 0x80808080u);
}

PIXEL_FN uint32_t subtract_2x16(uint32_t a, uint32_t b) {
    return ((a | 0x80008000u) - (b & 0x7FFF7FFFu)) ^ ((a ^ ~b) & 0x80008000u);
}

#endif
