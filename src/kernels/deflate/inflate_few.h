/* Device functions that the kernels for few streams share. */
#ifndef COGPU_KERNELS_DEFLATE_INFLATE_FEW_H
#define COGPU_KERNELS_DEFLATE_INFLATE_FEW_H

#include "kernels/deflate/inflate_few_args.h"
#include "kernels/deflate/inflate_zlib.h"
#include "kernels/simt.h"

/* A symbol up to this is a byte; a larger one is a reference to the byte so far back, plus this. */
enum { SYMBOL_BASE = 255 };

/* Bytes from the 16-byte boundary at or before a stream to its first one. Bits count from there. */
DEVICE_FN uint32_t stream_skew(const struct cogpu_inflate_few_args *args, uint32_t stream) {
    return (uint32_t)((uintptr_t)(args->stored + args->blocks[stream].in) & 15);
}

/* Bit at which the deflate data of a stream ends at the latest: the Adler-32 follows. */
DEVICE_FN uint32_t stream_bit_end(const struct cogpu_inflate_few_args *args, uint32_t stream) {
    return 8 * (stream_skew(args, stream) + args->blocks[stream].in_bytes - ADLER_BYTES);
}

/* The stream that a span belongs to: the last one that begins at or before it. */
DEVICE_FN uint32_t stream_of_span(const struct cogpu_inflate_few_args *args, uint32_t span) {
    uint32_t low = 0, high = args->count;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (args->streams[middle].first_span <= span)
            low = middle;
        else
            high = middle;
    }
    return low;
}

#endif
