/*
 * Vectors of 16 bytes for undo_filters.c and unpack.c. HAVE_VECTORS is 1 on x86-64, where SSE2 is
 * always there; code for more (SSSE3, AVX2) asks the CPU at run time.
 *
 * Streamed (non-temporal) stores bypass the caches. Their address must be a multiple of VECTOR.
 * fence_streamed_stores makes those of this thread visible to others.
 */
#ifndef COGPU_CPU_VECTOR_H
#define COGPU_CPU_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

enum { VECTOR = 16 };

#if defined(__x86_64__)
#include <immintrin.h>
#define HAVE_VECTORS 1

static inline __m128i load_vector(const uint8_t *from) {
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

static inline void store_vector(uint8_t *to, __m128i value, bool streams) {
    if (streams)
        _mm_stream_si128((__m128i *)(void *)to, value);
    else
        _mm_storeu_si128((__m128i *)(void *)to, value);
}

static inline void fence_streamed_stores(void) {
    _mm_sfence();
}
#else
#define HAVE_VECTORS 0

static inline void fence_streamed_stores(void) {
}
#endif

#endif
