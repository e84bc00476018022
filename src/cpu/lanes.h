/*
 * Vectors of 1, 2 or 4 lanes of 16 bytes under one set of names, for loops that are compiled once
 * for each number of lanes (planes_loop.h): `add_x1`, `add_x2`, `add_x4`. x1 is vector.h's vector;
 * x2 needs AVX2, x4 needs AVX-512. Shifts, shuffles and zips stay within lanes.
 *
 *   lanes_before    each lane becomes the sum of the lanes before it; the first is 0
 *   last_lane       the last lane, in each
 *   store_turns     vectors a, b, ... to memory: lane 0 of each, then lane 1 of each, ...; with
 *                   stores of a lane, which need not cross cache lines where numpy begins an array
 */
#ifndef COGPU_CPU_LANES_H
#define COGPU_CPU_LANES_H

#include "cpu/vector.h"

#include <stddef.h>

#if HAVE_VECTORS
#define LANES_TARGET_x1        WITH_SHUFFLE
#define lanes_x1               vector
#define load_x1(from)          load_vector(from)
#define repeat_x1(value)       (value)
#define first_lane_x1(v)       (v)
#define zero_x1()              zero_vector()
#define add_x1(a, b)           add_vectors_1(a, b)
#define shift_x1(v, bytes)     shift_vector(v, bytes)
#define shuffle_x1(v, control) shuffle_vector(v, control)
#define zip_low_1_x1(a, b)     zip_low_1(a, b)
#define zip_high_1_x1(a, b)    zip_high_1(a, b)
#define zip_low_2_x1(a, b)     zip_low_2(a, b)
#define zip_high_2_x1(a, b)    zip_high_2(a, b)
#define zip_low_4_x1(a, b)     zip_low_4(a, b)
#define zip_high_4_x1(a, b)    zip_high_4(a, b)
#define lanes_before_x1(v)     ((void)(v), zero_vector())
#define last_lane_x1(v)        (v)

static inline void store_turns_x1(const lanes_x1 *v, size_t count, uint8_t *to, bool streams) {
    for (size_t k = 0; k < count; k++)
        store_or_stream(to + VECTOR * k, v[k], streams);
}
#endif

/* clang 18 to 21 want to know that AVX-512 includes vectors of 512 bits; others do not know the
 * word. */
#if defined(__clang__) && __clang_major__ >= 18 && __clang_major__ <= 21
#define WIDE_VECTORS ",evex512"
#else
#define WIDE_VECTORS
#endif

#if HAVE_AVX2
#define LANES_TARGET_x2        __attribute__((target("avx2")))
#define lanes_x2               __m256i
#define load_x2(from)          _mm256_loadu_si256((const __m256i *)(const void *)(from))
#define repeat_x2(value)       _mm256_broadcastsi128_si256(value)
#define first_lane_x2(v)       _mm256_castsi256_si128(v)
#define zero_x2()              _mm256_setzero_si256()
#define add_x2(a, b)           _mm256_add_epi8(a, b)
#define shift_x2(v, bytes)     _mm256_slli_si256(v, bytes)
#define shuffle_x2(v, control) _mm256_shuffle_epi8(v, control)
#define zip_low_1_x2(a, b)     _mm256_unpacklo_epi8(a, b)
#define zip_high_1_x2(a, b)    _mm256_unpackhi_epi8(a, b)
#define zip_low_2_x2(a, b)     _mm256_unpacklo_epi16(a, b)
#define zip_high_2_x2(a, b)    _mm256_unpackhi_epi16(a, b)
#define zip_low_4_x2(a, b)     _mm256_unpacklo_epi32(a, b)
#define zip_high_4_x2(a, b)    _mm256_unpackhi_epi32(a, b)
#define lanes_before_x2(v)     _mm256_permute2x128_si256(v, v, 0x08)
#define last_lane_x2(v)        _mm256_permute4x64_epi64(v, 0xEE)

LANES_TARGET_x2 static inline void store_turns_x2(const lanes_x2 *v, size_t count, uint8_t *to,
                                                  bool streams) {
    for (size_t k = 0; k < count; k++) {
        store_or_stream(to + VECTOR * k, _mm256_castsi256_si128(v[k]), streams);
        store_or_stream(to + VECTOR * (count + k), _mm256_extracti128_si256(v[k], 1), streams);
    }
}

#define LANES_TARGET_x4        __attribute__((target("avx512f,avx512bw" WIDE_VECTORS)))
#define lanes_x4               __m512i
#define load_x4(from)          _mm512_loadu_si512((const void *)(from))
#define repeat_x4(value)       _mm512_broadcast_i32x4(value)
#define first_lane_x4(v)       _mm512_castsi512_si128(v)
#define zero_x4()              _mm512_setzero_si512()
#define add_x4(a, b)           _mm512_add_epi8(a, b)
#define shift_x4(v, bytes)     _mm512_bslli_epi128(v, bytes)
#define shuffle_x4(v, control) _mm512_shuffle_epi8(v, control)
#define zip_low_1_x4(a, b)     _mm512_unpacklo_epi8(a, b)
#define zip_high_1_x4(a, b)    _mm512_unpackhi_epi8(a, b)
#define zip_low_2_x4(a, b)     _mm512_unpacklo_epi16(a, b)
#define zip_high_2_x4(a, b)    _mm512_unpackhi_epi16(a, b)
#define zip_low_4_x4(a, b)     _mm512_unpacklo_epi32(a, b)
#define zip_high_4_x4(a, b)    _mm512_unpackhi_epi32(a, b)
#define last_lane_x4(v)        _mm512_shuffle_i64x2(v, v, 0xFF)

/* A prefix sum over lanes, from one lane further on: a b c d -> 0 a b c -> 0 a a+b b+c -> ... */
LANES_TARGET_x4 static inline __m512i lanes_before_x4(__m512i v) {
    __m512i sum = _mm512_maskz_shuffle_i64x2(0xFC, v, v, 0x90);
    sum = _mm512_add_epi8(sum, _mm512_maskz_shuffle_i64x2(0xFC, sum, sum, 0x90));
    return _mm512_add_epi8(sum, _mm512_maskz_shuffle_i64x2(0xF0, sum, sum, 0x40));
}

LANES_TARGET_x4 static inline void store_turns_x4(const lanes_x4 *v, size_t count, uint8_t *to,
                                                  bool streams) {
    for (size_t k = 0; k < count; k++) {
        uint8_t *at = to + VECTOR * k;
        store_or_stream(at, _mm512_castsi512_si128(v[k]), streams);
        store_or_stream(at + VECTOR * count, _mm512_extracti32x4_epi32(v[k], 1), streams);
        store_or_stream(at + VECTOR * count * 2, _mm512_extracti32x4_epi32(v[k], 2), streams);
        store_or_stream(at + VECTOR * count * 3, _mm512_extracti32x4_epi32(v[k], 3), streams);
    }
}
#endif

#endif
