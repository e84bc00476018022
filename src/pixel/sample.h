/*
 * Samples by type: properties of a type, numbers out of samples, NaN, and the arithmetic of reads
 * that convert (plan/plan.h says what is rounded when).
 */
#ifndef COGPU_PIXEL_SAMPLE_H
#define COGPU_PIXEL_SAMPLE_H

#include "pixel/half.h"

#define QUIET_NAN64 UINT64_C(0x7FF8000000000000)
enum { QUIET_NAN32 = 0x7FC00000 };

/* ---- types that are not complex ---- */

PIXEL_FN uint32_t sample_bytes(uint32_t type) {
    return type == COGPU_TYPE_U8 || type == COGPU_TYPE_I8                               ? 1
           : type == COGPU_TYPE_U16 || type == COGPU_TYPE_I16 || type == COGPU_TYPE_F16 ? 2
           : type == COGPU_TYPE_U32 || type == COGPU_TYPE_I32 || type == COGPU_TYPE_F32 ? 4
                                                                                        : 8;
}

PIXEL_FN bool sample_is_float(uint32_t type) {
    return type == COGPU_TYPE_F16 || type == COGPU_TYPE_F32 || type == COGPU_TYPE_F64;
}

PIXEL_FN bool sample_is_signed(uint32_t type) {
    return type == COGPU_TYPE_I8 || type == COGPU_TYPE_I16 || type == COGPU_TYPE_I32 ||
           type == COGPU_TYPE_I64;
}

/* ---- numbers ---- */

/* Rounds once, also from 64-bit integers and doubles. */
PIXEL_FN float sample_to_float(uint32_t type, uint64_t sample) {
    switch (type) {
    case COGPU_TYPE_I8:
        return (float)(int8_t)sample;
    case COGPU_TYPE_I16:
        return (float)(int16_t)sample;
    case COGPU_TYPE_I32:
        return (float)(int32_t)sample;
    case COGPU_TYPE_I64:
        return (float)(int64_t)sample;
    case COGPU_TYPE_U64:
        return (float)sample;
    case COGPU_TYPE_F16:
        return half_to_float((uint16_t)sample);
    case COGPU_TYPE_F32:
        return float_from_bits((uint32_t)sample);
    case COGPU_TYPE_F64:
        return (float)double_from_bits(sample);
    default:
        return (float)(uint32_t)sample;
    }
}

PIXEL_FN double sample_to_double(uint32_t type, uint64_t sample) {
    switch (type) {
    case COGPU_TYPE_I8:
        return (int8_t)sample;
    case COGPU_TYPE_I16:
        return (int16_t)sample;
    case COGPU_TYPE_I32:
        return (int32_t)sample;
    case COGPU_TYPE_I64:
        return (double)(int64_t)sample;
    case COGPU_TYPE_U64:
        return (double)sample;
    case COGPU_TYPE_F16:
        return (double)half_to_float((uint16_t)sample);
    case COGPU_TYPE_F32:
        return (double)float_from_bits((uint32_t)sample);
    case COGPU_TYPE_F64:
        return double_from_bits(sample);
    default:
        return (double)(uint32_t)sample;
    }
}

/* ---- NaN ---- */

PIXEL_FN uint64_t sample_quiet_nan(uint32_t type) {
    return type == COGPU_TYPE_F64   ? QUIET_NAN64
           : type == COGPU_TYPE_F32 ? (uint64_t)QUIET_NAN32
                                    : (uint64_t)QUIET_NAN16;
}

/* Infinity of a float type; 0 for others. A larger magnitude is NaN. */
PIXEL_FN uint64_t sample_infinity(uint32_t type) {
    return type == COGPU_TYPE_F16   ? INFINITY16
           : type == COGPU_TYPE_F32 ? 0x7F800000u
           : type == COGPU_TYPE_F64 ? UINT64_C(0x7FF0000000000000)
                                    : 0;
}

/* All bits of a sample but the sign. */
PIXEL_FN uint64_t sample_magnitude_mask(uint32_t bytes) {
    return UINT64_MAX >> (65 - 8 * bytes);
}

/* Of a float type, or of CF32: NaN in either part. */
PIXEL_FN bool sample_is_nan(uint32_t type, uint64_t sample) {
    uint32_t low = (uint32_t)sample & 0x7FFFFFFFu, high = (uint32_t)(sample >> 32) & 0x7FFFFFFFu;
    switch (type) {
    case COGPU_TYPE_F16:
        return (low & 0x7FFF) > INFINITY16;
    case COGPU_TYPE_F64:
        return (sample & 0x7FFFFFFFFFFFFFFFu) > 0x7FF0000000000000u;
    case COGPU_TYPE_CF32:
        return low > 0x7F800000u || high > 0x7F800000u;
    default:
        return low > 0x7F800000u;
    }
}

/* ---- conversion to float types ---- */

/* Product and sum are rounded one after the other, as NumPy does: never fused. */
PIXEL_FN float scale_float(float value, float scale, float offset) {
    float product = value * scale;
    return product + offset;
}

PIXEL_FN double scale_double(double value, double scale, double offset) {
    double product = value * scale;
    return product + offset;
}

/* Stored with nodata as NaN, and every NaN as the quiet one. `is_nodata` is 0 or 1, and no bool:
 * that would cost vector loops over flags an instruction. */
PIXEL_FN uint32_t converted_float_bits(float value, uint8_t is_nodata) {
    return (is_nodata | (value != value)) ? (uint32_t)QUIET_NAN32 : float_bits(value);
}

PIXEL_FN uint16_t converted_half_bits(double value, uint8_t is_nodata) {
    return is_nodata ? (uint16_t)QUIET_NAN16 : half_from_double(value);
}

PIXEL_FN uint64_t converted_double_bits(double value, uint8_t is_nodata) {
    return (is_nodata | (value != value)) ? QUIET_NAN64 : double_bits(value);
}

#endif
