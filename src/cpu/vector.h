/*
 * Vectors of 16 bytes for undo_filters.c, planes.c and unpack.c: SSE on x86-64, NEON on aarch64.
 * HAVE_VECTORS is 1 there; elsewhere scalar code does all of the work. SSE2 and NEON are always
 * there. Functions marked WITH_SHUFFLE need SSSE3 on x86-64: can_shuffle_vectors tells at run time.
 *
 * Streamed (non-temporal) stores bypass the caches. Their address must be a multiple of VECTOR.
 * fence_streamed_stores makes those of this thread visible to others. NEON has none in C.
 */
#ifndef COGPU_CPU_VECTOR_H
#define COGPU_CPU_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

enum { VECTOR = 16 };

#if defined(__x86_64__)
#include <immintrin.h>
#define HAVE_VECTORS 1
#define HAVE_AVX2    1 /* at compile time: vectors of 32 and 64 bytes, if the CPU has them */
#define WITH_SHUFFLE __attribute__((target("ssse3")))

typedef __m128i vector;

static inline bool can_shuffle_vectors(void) {
    return __builtin_cpu_supports("ssse3");
}

static inline vector load_vector(const uint8_t *from) {
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

static inline void store_vector(uint8_t *to, vector value) {
    _mm_storeu_si128((__m128i *)(void *)to, value);
}

#define HAVE_STREAMED_STORES 1
static inline void store_or_stream(uint8_t *to, vector value, bool streams) {
    if (streams)
        _mm_stream_si128((__m128i *)(void *)to, value);
    else
        store_vector(to, value);
}

static inline void fence_streamed_stores(void) {
    _mm_sfence();
}

/* Byte i of the result is byte control[i] of the vector, or 0 if control[i] is 0x80. */
#define shuffle_vector(value, control) _mm_shuffle_epi8(value, control)
#define zero_vector()                  _mm_setzero_si128()
#define fill_vector(byte)              _mm_set1_epi8((char)(byte))
#define repeat_8_bytes(value)          _mm_set1_epi64x((long long)(value))
#define or_vectors(a, b)               _mm_or_si128(a, b)
#define shift_vector(value, bytes)     _mm_slli_si128(value, bytes) /* to higher addresses */

/* Sums of elements of 1, 2, 4 or 8 bytes. */
#define add_vectors_1(a, b) _mm_add_epi8(a, b)
#define add_vectors_2(a, b) _mm_add_epi16(a, b)
#define add_vectors_4(a, b) _mm_add_epi32(a, b)
#define add_vectors_8(a, b) _mm_add_epi64(a, b)

/* Elements of the lower or the higher halves by turns: a0 b0 a1 b1 ... */
#define zip_low_1(a, b)  _mm_unpacklo_epi8(a, b)
#define zip_high_1(a, b) _mm_unpackhi_epi8(a, b)
#define zip_low_2(a, b)  _mm_unpacklo_epi16(a, b)
#define zip_high_2(a, b) _mm_unpackhi_epi16(a, b)
#define zip_low_4(a, b)  _mm_unpacklo_epi32(a, b)
#define zip_high_4(a, b) _mm_unpackhi_epi32(a, b)

#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include <arm_neon.h>
#define HAVE_VECTORS 1
#define WITH_SHUFFLE

typedef uint8x16_t vector;

static inline bool can_shuffle_vectors(void) {
    return true;
}

static inline vector load_vector(const uint8_t *from) {
    return vld1q_u8(from);
}

static inline void store_vector(uint8_t *to, vector value) {
    vst1q_u8(to, value);
}

static inline void store_or_stream(uint8_t *to, vector value, bool streams) {
    (void)streams;
    store_vector(to, value);
}

#define shuffle_vector(value, control) vqtbl1q_u8(value, control)
#define zero_vector()                  vdupq_n_u8(0)
#define fill_vector(byte)              vdupq_n_u8((uint8_t)(byte))
#define repeat_8_bytes(value)          vreinterpretq_u8_u64(vdupq_n_u64(value))
#define or_vectors(a, b)               vorrq_u8(a, b)
#define shift_vector(value, bytes)     vextq_u8(vdupq_n_u8(0), value, VECTOR - (bytes))

#define AS_U8(function, width, a, b)                                                               \
    vreinterpretq_u8_u##width(                                                                     \
        function##_u##width(vreinterpretq_u##width##_u8(a), vreinterpretq_u##width##_u8(b)))
#define add_vectors_1(a, b) vaddq_u8(a, b)
#define add_vectors_2(a, b) AS_U8(vaddq, 16, a, b)
#define add_vectors_4(a, b) AS_U8(vaddq, 32, a, b)
#define add_vectors_8(a, b) AS_U8(vaddq, 64, a, b)

#define zip_low_1(a, b)  vzip1q_u8(a, b)
#define zip_high_1(a, b) vzip2q_u8(a, b)
#define zip_low_2(a, b)  AS_U8(vzip1q, 16, a, b)
#define zip_high_2(a, b) AS_U8(vzip2q, 16, a, b)
#define zip_low_4(a, b)  AS_U8(vzip1q, 32, a, b)
#define zip_high_4(a, b) AS_U8(vzip2q, 32, a, b)

#else
#define HAVE_VECTORS 0
#endif

#ifndef HAVE_STREAMED_STORES
#define HAVE_STREAMED_STORES 0

static inline void fence_streamed_stores(void) {
}
#endif

#endif
