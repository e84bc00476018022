/*
 * Floats that C11 has no type for, as bits: IEEE 754 binary16 ("half"), and the 24-bit floats of
 * TIFF Technical Note 3.
 *
 *             sign  exponent (bias)  mantissa
 *   half        1        5 (15)         10
 *   float24     1        7 (63)         16
 *   float       1        8 (127)        23
 *   double      1       11 (1023)       52
 */
#ifndef COGPU_PIXEL_HALF_H
#define COGPU_PIXEL_HALF_H

#include "pixel/pixel.h"

enum { QUIET_NAN16 = 0x7E00, INFINITY16 = 0x7C00 };

/* Selects instead of branches: loops over it become vector code. A subnormal half is a multiple of
 * 2^-24, which a float holds exactly. */
PIXEL_FN float half_to_float(uint16_t half) {
    uint32_t exponent = half >> 10 & 0x1F, mantissa = half & 0x3FF;
    uint32_t widened = exponent == 0x1F ? 0xFF : exponent + 127 - 15;
    float small = (float)mantissa * 0x1p-24F;
    float value = float_from_bits(widened << 23 | mantissa << 13);
    value = exponent == 0 ? small : value;
    return half >> 15 ? -value : value;
}

/* Rounds to nearest, ties to even. Every NaN becomes the quiet one. */
PIXEL_FN uint16_t half_from_double(double value) {
    uint64_t bits = double_bits(value), mantissa = bits & 0xFFFFFFFFFFFFFu;
    uint16_t sign = (uint16_t)(bits >> 63 << 15);
    int exponent = (int)(bits >> 52 & 0x7FF) - 1023 + 15;
    if (value != value)
        return QUIET_NAN16;
    if (exponent >= 0x1F)
        return sign | INFINITY16;
    if (exponent < -10)
        return sign;
    /* A subnormal half stores the leading one, which a double leaves out. */
    int dropped = exponent > 0 ? 42 : 43 - exponent;
    uint64_t whole = exponent > 0 ? mantissa : mantissa | UINT64_C(1) << 52;
    uint64_t half = whole >> dropped, rest = whole & ((UINT64_C(1) << dropped) - 1);
    uint64_t tie = UINT64_C(1) << (dropped - 1);
    if (exponent > 0)
        half |= (uint64_t)exponent << 10;
    half += rest > tie || (rest == tie && (half & 1)); /* a carry goes into the exponent */
    return (uint16_t)(sign | half);
}

/* The bits of the float that a float24 stands for. A subnormal one is a multiple of 2^-78. */
PIXEL_FN uint32_t float24_to_float_bits(uint32_t value) {
    uint32_t sign = value >> 23 << 31, exponent = value >> 16 & 0x7F, mantissa = value & 0xFFFF;
    uint32_t widened = exponent == 0x7F ? 0xFF : exponent + 127 - 63;
    uint32_t small = float_bits((float)mantissa * 0x1p-78F);
    return sign | (exponent == 0 ? small : widened << 23 | mantissa << 7);
}

#endif
