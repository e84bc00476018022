/*
 * Adler-32 (RFC 1950, 9) of part of a stream.
 *
 * Bytes are summed in groups of 32: to the second sum a group adds 32 times the first sum before
 * it, and its bytes by weights from 32 down to 1.
 */
#include "codec/inflate_chunk.h"

#include "base/math.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* After so many groups 32 bits may overflow. */
enum { ADLER_BASE = 65521, GROUP = 32, GROUPS_MAX = 5552 / GROUP };

struct sums {
    uint32_t s1, s2;
};

typedef struct sums add_groups_function(struct sums sums, const uint8_t *bytes, size_t groups);

static struct sums add_groups(struct sums sums, const uint8_t *bytes, size_t groups) {
    for (; groups > 0; groups--, bytes += GROUP) {
        uint32_t sum = 0, weighted = 0;
        for (uint32_t i = 0; i < GROUP; i++) {
            sum += bytes[i];
            weighted += (GROUP - i) * bytes[i];
        }
        sums.s2 += GROUP * sums.s1 + weighted;
        sums.s1 += sum;
    }
    return sums;
}

#if defined(__x86_64__)
#define WITH_AVX2 __attribute__((target("avx2")))

WITH_AVX2 static uint32_t sum_of_eight(__m256i values) {
    __m128i sum =
        _mm_add_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1));
    return (uint32_t)_mm_cvtsi128_si32(sum);
}

WITH_AVX2 static struct sums add_groups_avx2(struct sums sums, const uint8_t *bytes,
                                             size_t groups) {
    const __m256i weights =
        _mm256_setr_epi8(32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14,
                         13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
    const __m256i zero = _mm256_setzero_si256(), ones = _mm256_set1_epi16(1);
    __m256i sum = zero, sums_before = zero, weighted = zero;
    for (size_t i = 0; i < groups; i++) {
        const __m256i group =
            _mm256_loadu_si256((const __m256i *)(const void *)(bytes + i * GROUP));
        sums_before = _mm256_add_epi32(sums_before, sum);
        sum = _mm256_add_epi32(sum, _mm256_sad_epu8(group, zero));
        weighted = _mm256_add_epi32(weighted,
                                    _mm256_madd_epi16(_mm256_maddubs_epi16(group, weights), ones));
    }
    sums.s2 +=
        GROUP * (sums.s1 * (uint32_t)groups + sum_of_eight(sums_before)) + sum_of_eight(weighted);
    sums.s1 += sum_of_eight(sum);
    return sums;
}
#endif

static add_groups_function *add_groups_for_cpu(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return add_groups_avx2;
#endif
    return add_groups;
}

uint32_t cogpu_inflate_adler32(const uint8_t *bytes, size_t count) {
    add_groups_function *const add = add_groups_for_cpu();
    struct sums sums = {0, 0};
    while (count >= GROUP) {
        const size_t groups = min_size(count / GROUP, GROUPS_MAX);
        sums = add(sums, bytes, groups);
        sums.s1 %= ADLER_BASE;
        sums.s2 %= ADLER_BASE;
        bytes += groups * GROUP;
        count -= groups * GROUP;
    }
    for (; count > 0; count--) {
        sums.s1 += *bytes++;
        sums.s2 += sums.s1;
    }
    return sums.s2 % ADLER_BASE << 16 | sums.s1 % ADLER_BASE;
}
