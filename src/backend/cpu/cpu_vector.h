/*
 * Vectors of 16 bytes, as far as restore and place share them. HAVE_VECTORS says whether there are
 * any; which instructions beyond SSE2 a processor has is asked when the code runs.
 *
 * Streamed stores go past the caches. Their address must be a multiple of VECTOR, and
 * settle_streams makes those of this thread seen by others.
 */
#ifndef COGPU_BACKEND_CPU_CPU_VECTOR_H
#define COGPU_BACKEND_CPU_CPU_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

enum { VECTOR = 16 };

#if defined(__x86_64__)
#include <immintrin.h>
#define HAVE_VECTORS 1

static inline __m128i load(const uint8_t *from) {
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

static inline void store(uint8_t *to, __m128i value, bool streams) {
    if (streams)
        _mm_stream_si128((__m128i *)(void *)to, value);
    else
        _mm_storeu_si128((__m128i *)(void *)to, value);
}

static inline void settle_streams(void) {
    _mm_sfence();
}
#else
#define HAVE_VECTORS 0

static inline void settle_streams(void) {
}
#endif

#endif
