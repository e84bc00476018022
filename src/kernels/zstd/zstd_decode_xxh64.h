/*
 * XXH64 with seed 0, whose low 32 bits are the Content_Checksum of a frame (RFC 8878, 3.1.1). One
 * thread computes it: frames with checksums are rare in TIFF files.
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_DECODE_XXH64_H
#define COGPU_KERNELS_ZSTD_ZSTD_DECODE_XXH64_H

#include "kernels/zstd/zstd_decode_device.h"

#define PRIME_1 0x9E3779B185EBCA87ull
#define PRIME_2 0xC2B2AE3D27D4EB4Full
#define PRIME_3 0x165667B19E3779F9ull
#define PRIME_4 0x85EBCA77C2B2AE63ull
#define PRIME_5 0x27D4EB2F165667C5ull

DEVICE_FN uint64_t rotate_left(uint64_t value, uint32_t by) {
    return value << by | value >> (64 - by);
}

DEVICE_FN uint64_t xxh64_round(uint64_t sum, uint64_t input) {
    return rotate_left(sum + input * PRIME_2, 31) * PRIME_1;
}

/* Eight bytes at any address, by aligned loads. */
DEVICE_FN uint64_t load_le64(const uint8_t *at) {
    uint32_t skew = (uint32_t)((uintptr_t)at % 4);
    const uint8_t *words = at - skew;
    uint32_t a = load_u32_aligned(words), b = load_u32_aligned(words + 4),
             c = load_u32_aligned(words + 8);
    return (uint64_t)funnel_right(b, c, 8 * skew) << 32 | funnel_right(a, b, 8 * skew);
}

DEVICE_FN uint64_t xxh64(const uint8_t *at, uint32_t bytes) {
    uint64_t sum = PRIME_5;
    uint32_t done = 0;
    if (bytes >= 32) {
        uint64_t sums[4] = {PRIME_1 + PRIME_2, PRIME_2, 0, 0 - PRIME_1};
        for (; bytes - done >= 32; done += 32) {
            UNROLL
            for (uint32_t i = 0; i < 4; i++)
                sums[i] = xxh64_round(sums[i], load_le64(at + done + 8 * i));
        }
        sum = rotate_left(sums[0], 1) + rotate_left(sums[1], 7) + rotate_left(sums[2], 12) +
              rotate_left(sums[3], 18);
        for (uint32_t i = 0; i < 4; i++)
            sum = (sum ^ xxh64_round(0, sums[i])) * PRIME_1 + PRIME_4;
    }
    sum += bytes;
    for (; bytes - done >= 8; done += 8)
        sum = rotate_left(sum ^ xxh64_round(0, load_le64(at + done)), 27) * PRIME_1 + PRIME_4;
    if (bytes - done >= 4) {
        sum = rotate_left(sum ^ load_le32(at + done) * PRIME_1, 23) * PRIME_2 + PRIME_3;
        done += 4;
    }
    for (; done < bytes; done++)
        sum = rotate_left(sum ^ at[done] * PRIME_5, 11) * PRIME_1;
    sum = (sum ^ sum >> 33) * PRIME_2;
    sum = (sum ^ sum >> 29) * PRIME_3;
    return sum ^ sum >> 32;
}

#endif
