/*
 * Bitstreams that are read backwards (RFC 8878, 4.1.1 and 4.2.2): from the last byte to the first,
 * each byte from its highest bit down. The highest 1 bit of the last byte is the end mark.
 *
 *     memory   | quad 0        | quad 1        | quad 2        |      quads of 16 bytes, aligned
 *                   ^ stream begins                  ^ ends
 *                   begin                    <--- bit                reading moves `bit` down
 *
 * Such a stream is loaded by whole quads at multiples of 16. Loads may reach beyond its two ends,
 * because there is slack around a batch (COGPU_GPU_SLACK_BYTES).
 */
#ifndef COGPU_KERNELS_ZSTD_ZSTD_DECODE_BITS_H
#define COGPU_KERNELS_ZSTD_ZSTD_DECODE_BITS_H

#include "kernels/zstd/zstd_decode_device.h"

#ifdef __CUDACC__
DEVICE_FN void prefetch_l2(const void *at) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}
#else
DEVICE_FN void prefetch_l2(const void *at) {
    (void)at;
}
#endif

struct backward_bits {
    const uint8_t *base; /* quad that holds the stream's first byte */
    int32_t bit;         /* bits of the stream, counted from `base`, that are not yet read */
    int32_t begin;       /* value of `bit` when all are read */
};

/* The last byte must not be 0, which the caller checks. */
DEVICE_FN struct backward_bits open_backward_bits(const uint8_t *stream, uint32_t bytes) {
    struct backward_bits bits;
    uint32_t skew = (uint32_t)((uintptr_t)stream % ZSTD_QUAD);
    bits.base = stream - skew;
    bits.begin = (int32_t)(8 * skew);
    bits.bit = bits.begin + (int32_t)(8 * (bytes - 1) + highest_bit(stream[bytes - 1]));
    return bits;
}

/* Memory is a thousand cycles away, so the cache line after the next is prefetched: 16 quads are
 * two lines of 128 bytes. It is done for each quad; once per line would take a branch, which costs
 * more. */
enum { PREFETCH_QUADS = 16 };

DEVICE_FN void prefetch_quad(const uint8_t *base, int32_t quad) {
    int32_t ahead = quad > PREFETCH_QUADS ? quad - PREFETCH_QUADS : 0;
    prefetch_l2(base + (uint32_t)ahead * (size_t)ZSTD_QUAD);
}

DEVICE_FN words4 load_quad(const uint8_t *base, int32_t quad) {
    return load_words4(base + (uint32_t)quad * (size_t)ZSTD_QUAD);
}

#endif
