/* Deflate decoder for few streams, on the host side: for inflate_launch.c and for tests. */
#ifndef COGPU_KERNELS_DEFLATE_INFLATE_FEW_LAUNCH_H
#define COGPU_KERNELS_DEFLATE_INFLATE_FEW_LAUNCH_H

#include "kernels/decoder.h"

/* Sizes that decoding is divided by. Tests choose small ones, so that small streams take all steps.
 */
struct cogpu_inflate_few_sizes {
    uint32_t spans;        /* of a round, about; 0: as many as walks run at once */
    uint32_t span_bytes;   /* of a span, at least: a multiple of 16 */
    uint32_t fronts;       /* of resolving: places of a window at which it begins */
    uint64_t round_bytes;  /* encoded bytes of a round, unless it is a single stream */
    uint64_t window_bytes; /* decoded bytes of a window, at most */
};

extern const struct cogpu_inflate_few_sizes cogpu_inflate_few_defaults;

/* Scratch memory in bytes, for full speed. */
uint64_t cogpu_inflate_few_scratch(const cogpu_encoded_block *blocks, uint32_t count,
                                   const struct cogpu_inflate_few_sizes *sizes);

/* Whether the device can run the kernels, with the batch's scratch memory. */
bool cogpu_inflate_few_can_decode(const cogpu_gpu_batch *batch,
                                  const struct cogpu_inflate_few_sizes *sizes);

/* Launches the kernels. Streams that they do not decode, valid or not, get the status
 * COGPU_GPU_NOT_DECODED. */
cogpu_status cogpu_inflate_few_decode(const cogpu_gpu_batch *batch,
                                      const struct cogpu_inflate_few_sizes *sizes,
                                      cogpu_error *error);

/* inflate_launch.c: decodes each stream by one thread block. With `is_retry` those that are not
 * decoded yet. */
cogpu_status cogpu_inflate_each(const cogpu_gpu_batch *batch, bool is_retry, cogpu_error *error);

#endif
