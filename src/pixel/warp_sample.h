/*
 * Samples of a warp: loads and stores, nodata, and how a result becomes a sample of the target.
 *
 *     source sample --> result (double) --> working type --> target type
 *
 * As in GDAL's warper, a result is rounded half up to the working type, which holds all samples of
 * source and target; that is converted to the target's type, half away from zero.
 */
#ifndef COGPU_PIXEL_WARP_SAMPLE_H
#define COGPU_PIXEL_WARP_SAMPLE_H

#include "pixel/select.h"

/* ---- loads and stores ---- */

PIXEL_FN uint64_t load_bits(uint32_t type, const uint8_t *at) {
    uint32_t size = sample_bytes(type);
#ifdef __CUDACC__
    if ((uintptr_t)at % size == 0)
        return size == 1   ? *at
               : size == 2 ? *(const uint16_t *)at
               : size == 4 ? *(const uint32_t *)at
                           : *(const uint64_t *)at;
    uint64_t bits = 0;
    for (uint32_t i = 0; i < size; i++)
        bits |= (uint64_t)at[i] << (8 * i);
    return bits;
#else
    uint16_t bits16;
    uint32_t bits32;
    uint64_t bits64;
    switch (size) {
    case 1:
        return *at;
    case 2:
        memcpy(&bits16, at, sizeof bits16);
        return bits16;
    case 4:
        memcpy(&bits32, at, sizeof bits32);
        return bits32;
    default:
        memcpy(&bits64, at, sizeof bits64);
        return bits64;
    }
#endif
}

PIXEL_FN void store_bits(uint32_t type, uint64_t bits, uint8_t *at) {
    uint32_t size = sample_bytes(type);
#ifdef __CUDACC__
    if ((uintptr_t)at % size != 0) {
        for (uint32_t i = 0; i < size; i++)
            at[i] = (uint8_t)(bits >> (8 * i));
        return;
    }
    if (size == 1)
        *at = (uint8_t)bits;
    else if (size == 2)
        *(uint16_t *)at = (uint16_t)bits;
    else if (size == 4)
        *(uint32_t *)at = (uint32_t)bits;
    else
        *(uint64_t *)at = bits;
#else
    uint16_t bits16 = (uint16_t)bits;
    uint32_t bits32 = (uint32_t)bits;
    if (size == 1)
        *at = (uint8_t)bits;
    else if (size == 2)
        memcpy(at, &bits16, sizeof bits16);
    else if (size == 4)
        memcpy(at, &bits32, sizeof bits32);
    else
        memcpy(at, &bits, sizeof bits);
#endif
}

/* ---- working type: GDALDataTypeUnion ---- */

PIXEL_FN uint32_t integer_type(bool is_signed, uint32_t bytes) {
    if (is_signed)
        return bytes == 1   ? COGPU_TYPE_I8
               : bytes == 2 ? COGPU_TYPE_I16
               : bytes == 4 ? COGPU_TYPE_I32
                            : COGPU_TYPE_I64;
    return bytes == 1   ? COGPU_TYPE_U8
           : bytes == 2 ? COGPU_TYPE_U16
           : bytes == 4 ? COGPU_TYPE_U32
                        : COGPU_TYPE_U64;
}

PIXEL_FN bool needs_double(uint32_t type) {
    return type == COGPU_TYPE_F64 || (!sample_is_float(type) && sample_bytes(type) > 2);
}

/* The least type that holds the samples of both. GDAL works on binary16 as float. */
PIXEL_FN uint32_t working_type(uint32_t a, uint32_t b) {
    uint32_t a_bytes = sample_bytes(a), b_bytes = sample_bytes(b);
    uint32_t bytes = a_bytes > b_bytes ? a_bytes : b_bytes;
    if (sample_is_float(a) || sample_is_float(b))
        return needs_double(a) || needs_double(b) ? COGPU_TYPE_F64 : COGPU_TYPE_F32;
    if (sample_is_signed(a) == sample_is_signed(b))
        return integer_type(sample_is_signed(a), bytes);
    uint32_t unsigned_bytes = sample_is_signed(a) ? b_bytes : a_bytes;
    if (unsigned_bytes == bytes)
        bytes *= 2;
    return bytes > 8 ? (uint32_t)COGPU_TYPE_F64 : integer_type(true, bytes);
}

/* ---- nodata ---- */

enum warp_match { MATCHES_NOTHING, MATCHES_EQUAL, MATCHES_NAN, MATCHES_FLOAT, MATCHES_DOUBLE };

/* What a band's samples are compared with. */
struct warp_nodata {
    uint32_t match; /* enum warp_match */
    double value;
};

PIXEL_FN bool is_short_integer(uint32_t type) {
    return !sample_is_float(type) && sample_bytes(type) <= 2;
}

/* The rule for samples of a working type. Integers up to 16 bits must be equal, all others nearly,
 * by the precision of floats. */
PIXEL_FN struct warp_nodata nodata_rule(uint32_t working, double nodata) {
    struct warp_nodata rule = {MATCHES_NOTHING, nodata};
    if (is_short_integer(working)) {
        uint32_t bits = 8 * sample_bytes(working);
        double high = sample_is_signed(working) ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
        double low = sample_is_signed(working) ? -high - 1 : 0;
        rule.value = floor(nodata + 1e-6);
        if (nodata >= low && nodata <= high)
            rule.match = MATCHES_EQUAL;
    } else if (nodata != nodata) {
        rule.match = MATCHES_NAN;
    } else {
        rule.match = working == COGPU_TYPE_F32 ? MATCHES_FLOAT : MATCHES_DOUBLE;
        if (working == COGPU_TYPE_F32)
            rule.value = (float)nodata;
    }
    return rule;
}

/* `value` is a sample as a number. */
PIXEL_FN bool matches_nodata(struct warp_nodata rule, double value) {
    const float epsilon = 0x1p-23F; /* FLT_EPSILON, for doubles too */
    float a = (float)value, b = (float)rule.value;
    switch (rule.match) {
    case MATCHES_EQUAL:
        return value == rule.value;
    case MATCHES_NAN:
        return value != value;
    case MATCHES_FLOAT:
        return a == b || fabsf(a - b) < epsilon * fabsf(a + b) * 2;
    case MATCHES_DOUBLE:
        return value == rule.value ||
               fabs(value - rule.value) < (double)epsilon * fabs(value + rule.value) * 2;
    default:
        return false;
    }
}

/* The next number towards the largest of the type; the largest ones move towards 0. */
PIXEL_FN uint64_t next_float(uint32_t type, uint64_t bits) {
    uint64_t sign = type == COGPU_TYPE_F64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
    uint64_t largest = sample_infinity(type) - 1;
    if ((bits & ~sign) == 0)
        return 1;
    return bits & sign || bits >= largest ? bits - 1 : bits + 1;
}

PIXEL_FN uint64_t next_integer(uint32_t type, uint64_t bits) {
    uint64_t all =
        sample_bytes(type) == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * sample_bytes(type)) - 1;
    uint64_t least = sample_is_signed(type) ? all ^ all >> 1 : 0;
    return (bits == least ? bits + 1 : bits - 1) & all;
}

/* A valid result that equals nodata of the target moves to its neighbour. */
PIXEL_FN uint64_t avoid_nodata(uint32_t working, uint64_t bits, double avoided) {
    double target = working == COGPU_TYPE_F32 ? (double)(float)avoided : avoided;
    if (sample_to_double(working, bits) != target)
        return bits;
    return sample_is_float(working) ? next_float(working, bits) : next_integer(working, bits);
}

/* ---- results become samples ---- */

/* The limits of 64-bit integers are no doubles, so these are compared before the conversion. */
PIXEL_FN uint64_t round_wide_half_up(double value, bool is_signed) {
    uint64_t high = UINT64_MAX >> is_signed, low = is_signed ? ~high : 0;
    if (value != value)
        return 0;
    if (value <= (is_signed ? (double)(int64_t)low : 0))
        return low;
    if (value >= (double)high)
        return high;
    value = floor(value + 0.5);
    return is_signed ? (uint64_t)(int64_t)value : (uint64_t)value;
}

/* The warper's rounding to an integer type: half up. NaN becomes 0. Selects instead of branches:
 * loops over it become vector code. */
PIXEL_FN uint64_t round_half_up(uint32_t type, double value) {
    uint32_t bytes = sample_bytes(type);
    bool is_signed = sample_is_signed(type);
    if (bytes == 8)
        return round_wide_half_up(value, is_signed);
    uint64_t all = UINT64_MAX >> (64 - 8 * bytes);
    double high = (double)(all >> is_signed), low = is_signed ? -high - 1 : 0;
    value = floor(value + 0.5);
    value = value == value ? value : 0;
    value = value > low ? value : low;
    value = value < high ? value : high;
    return type == COGPU_TYPE_U32 ? (uint32_t)value : (uint32_t)(int32_t)value & all;
}

PIXEL_FN uint64_t round_to_working(uint32_t working, double value) {
    return sample_is_float(working) ? float_result_to_sample(working, value)
                                    : round_half_up(working, value);
}

/* GDAL's conversion between types: half away from zero, saturated. NaN becomes 0 in integers. */
PIXEL_FN uint64_t working_to_target(uint32_t working, uint32_t to, uint64_t bits) {
    if (working == to)
        return bits;
    double value = sample_to_double(working, bits);
    return value != value && !sample_is_float(to) ? 0 : result_to_sample(to, value);
}

/* ---- alpha ---- */

PIXEL_FN double alpha_of_opaque(uint32_t type) {
    return type == COGPU_TYPE_I16 ? 32767 : type == COGPU_TYPE_U16 ? 65535 : 255;
}

/* Density of a pixel, 0 to 1. */
PIXEL_FN float alpha_density(uint32_t type, double alpha) {
    float density = (float)alpha * (float)(1 / alpha_of_opaque(type));
    return density < 1 ? density : 1;
}

PIXEL_FN uint64_t density_to_alpha(uint32_t type, float density) {
    double opaque = alpha_of_opaque(type);
    double unit = sample_is_float(type) ? opaque : opaque + 0.1;
    float blended = 1 - (1 - density); /* over a transparent target */
    return round_to_working(type, trunc((double)blended * unit));
}

#endif
