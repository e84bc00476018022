/* Header and checksum of a zlib stream (RFC 1950). */
#ifndef COGPU_KERNELS_DEFLATE_INFLATE_ZLIB_H
#define COGPU_KERNELS_DEFLATE_INFLATE_ZLIB_H

#include "kernels/simt.h"

enum { ADLER_MODULUS = 65521, ZLIB_HEADER_BYTES = 2, ADLER_BYTES = 4 };

/* CMF and FLG (RFC 1950, 2.2): deflate, window up to 32 KiB, no preset dictionary. */
DEVICE_FN bool is_zlib_header(uint32_t method, uint32_t flags) {
    return (method << 8 | flags) % 31 == 0 && (method & 15) == 8 && method >> 4 <= 7 &&
           (flags & 0x20) == 0;
}

DEVICE_FN uint32_t load_be32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Adler-32 (RFC 1950, 8.2) of so many bytes: a = 1 + sum(byte), b = sum of all values of a. The
 * byte at i is in the last n - i values of a, the initial 1 in all of them: b = n * (1 + sum(byte))
 * - sum(i * byte). */
DEVICE_FN uint32_t adler32_of_sums(uint32_t bytes, uint32_t sum, uint32_t weighted) {
    uint32_t count = bytes % ADLER_MODULUS, a = sum % ADLER_MODULUS;
    uint32_t b = (count * (1 + a) % ADLER_MODULUS + ADLER_MODULUS - weighted % ADLER_MODULUS) %
                 ADLER_MODULUS;
    return b << 16 | (1 + a) % ADLER_MODULUS;
}

#endif
