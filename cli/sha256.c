/*
 * SHA-256 (FIPS 180-4). Two ways to process a block: portable C, and the SHA
 * extension of x86, some six times as fast, which is looked for when a sum begins.
 */
#include "sha256.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate_right(uint32_t value, int bits) {
    return value >> bits | value << (32 - bits);
}

static uint32_t load_big_endian(const uint8_t *from) {
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

/* The 16 words of a block and the 48 that follow from them. */
static void expand_schedule(const uint8_t *data, uint32_t words[64]) {
    for (int i = 0; i < 16; i++)
        words[i] = load_big_endian(data + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];
        uint32_t small0 = rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3;
        uint32_t small1 = rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10;
        words[i] = words[i - 16] + small0 + words[i - 7] + small1;
    }
}

static void mix_portable(uint32_t state[8], const uint8_t *data, size_t blocks) {
    for (; blocks > 0; blocks--, data += 64) {
        uint32_t words[64], s[8];
        expand_schedule(data, words);
        memcpy(s, state, sizeof s);
        for (int i = 0; i < 64; i++) {
            uint32_t big1 = rotate_right(s[4], 6) ^ rotate_right(s[4], 11) ^ rotate_right(s[4], 25);
            uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
            uint32_t first = s[7] + big1 + choice + constants[i] + words[i];
            uint32_t big0 = rotate_right(s[0], 2) ^ rotate_right(s[0], 13) ^ rotate_right(s[0], 22);
            uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
            memmove(s + 1, s, 7 * sizeof *s);
            s[4] += first;
            s[0] = first + big0 + majority;
        }
        for (int i = 0; i < 8; i++)
            state[i] += s[i];
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>

static bool has_sha_extension(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1))
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 29));
}

/* The extension keeps the state as the words ABEF and CDGH. */
__attribute__((target("sha,sse4.1,ssse3"))) static void mix_extension(uint32_t state[8],
                                                                      const uint8_t *data,
                                                                      size_t blocks) {
    const __m128i big_endian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
    __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
    __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);

    for (; blocks > 0; blocks--, data += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i words[4];
        for (int i = 0; i < 4; i++)
            words[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)data + i), big_endian);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            if (i >= 4) {
                __m128i last = words[(i + 3) & 3];
                __m128i sum = _mm_sha256msg1_epu32(words[i & 3], words[(i + 1) & 3]);
                sum = _mm_add_epi32(sum, _mm_alignr_epi8(last, words[(i + 2) & 3], 4));
                words[i & 3] = _mm_sha256msg2_epu32(sum, last);
            }
            __m128i key = _mm_loadu_si128((const __m128i *)(constants + 4 * i));
            __m128i input = _mm_add_epi32(words[i & 3], key);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, input);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(input, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }

    __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
    __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

static cogpu_sha256_mix *best_mix(void) {
    return has_sha_extension() ? mix_extension : mix_portable;
}
#else
static cogpu_sha256_mix *best_mix(void) {
    return mix_portable;
}
#endif

void cogpu_sha256_open(cogpu_sha256 *hash) {
    *hash = (cogpu_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                     0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
                           .mix = best_mix()};
}

void cogpu_sha256_add(cogpu_sha256 *hash, const void *data, size_t bytes) {
    const uint8_t *from = data;
    size_t pending = hash->bytes % 64;
    hash->bytes += bytes;
    if (pending > 0) {
        size_t taken = bytes < 64 - pending ? bytes : 64 - pending;
        memcpy(hash->pending + pending, from, taken);
        if (pending + taken < 64)
            return;
        hash->mix(hash->state, hash->pending, 1);
        from += taken;
        bytes -= taken;
    }
    hash->mix(hash->state, from, bytes / 64);
    memcpy(hash->pending, from + bytes / 64 * 64, bytes % 64);
}

void cogpu_sha256_close(cogpu_sha256 *hash, char text[65]) {
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = hash->bytes * 8;
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    cogpu_sha256_add(hash, padding, 1 + (119 - hash->bytes % 64) % 64);
    cogpu_sha256_add(hash, length, 8);
    for (int i = 0; i < 8; i++)
        snprintf(text + 8 * i, 9, "%08x", (unsigned)hash->state[i]);
}
