/* Floats of 16 bits, which C11 has no type for, as the bits they are. */
#ifndef COGPU_BASE_HALF_H
#define COGPU_BASE_HALF_H

#include <stdint.h>
#include <string.h>

enum { QUIET_NAN16 = 0x7E00 };

/* For kernels, too. */
#ifdef __CUDACC__
#define HALF_FN static __device__ __forceinline__
#else
#define HALF_FN static inline
#endif

HALF_FN float half_to_float(uint16_t half) {
    uint32_t exponent = half >> 10 & 0x1F, mantissa = half & 0x3FF;
    uint32_t widened = exponent == 0x1F ? 0xFF : exponent + 127 - 15;
    uint32_t bits = widened << 23 | mantissa << 13;
    float value, small = (float)mantissa * 0x1p-24F;
    memcpy(&value, &bits, sizeof value);
    value = exponent == 0 ? small : value;
    return half >> 15 ? -value : value;
}

/* To the nearest, ties to even. */
HALF_FN uint16_t half_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t mantissa = bits & 0xFFFFFFFFFFFFF;
    uint16_t sign = (uint16_t)(bits >> 63 << 15);
    int exponent = (int)(bits >> 52 & 0x7FF) - 1023 + 15;
    if (value != value)
        return QUIET_NAN16;
    if (exponent >= 0x1F)
        return sign | 0x7C00;
    if (exponent < -10)
        return sign;
    /* A denormal has its leading one among the mantissa's bits. */
    int dropped = exponent > 0 ? 42 : 43 - exponent;
    uint64_t whole = exponent > 0 ? mantissa : mantissa | UINT64_C(1) << 52;
    uint64_t half = whole >> dropped, rest = whole & ((UINT64_C(1) << dropped) - 1);
    uint64_t tie = UINT64_C(1) << (dropped - 1);
    if (exponent > 0)
        half |= (uint64_t)exponent << 10;
    half += rest > tie || (rest == tie && (half & 1)); /* into the exponent where it overflows */
    return (uint16_t)(sign | half);
}

#endif
