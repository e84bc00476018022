/* Copies many byte ranges in device memory: arguments of copy_ranges.cu and its launcher. */
#ifndef COGPU_KERNELS_COPY_RANGES_COPY_RANGES_ARGS_H
#define COGPU_KERNELS_COPY_RANGES_COPY_RANGES_ARGS_H

#include "gpu/driver/gpu.h"

enum {
    COGPU_RANGES_THREADS = 256,
    COGPU_RANGES_VECTOR = 16 /* bytes that a thread copies at once; `to` is a multiple of it */
};

/* The words of 4 bytes that hold the first and the last byte of `from` are loaded as a whole. */
struct cogpu_copied_range {
    const uint8_t *from; /* any address */
    uint8_t *to;
    uint64_t bytes;
};

struct cogpu_ranges_args {
    const struct cogpu_copied_range *ranges;
    uint32_t parts; /* blocks of threads for one range */
};

/* Copies `count` ranges, whose table is also in host memory. No range overlaps what is written.
 * Asynchronous. */
cogpu_status cogpu_gpu_copy_ranges(cogpu_gpu *gpu, const struct cogpu_copied_range *device_ranges,
                                   const struct cogpu_copied_range *ranges, uint32_t count,
                                   cogpu_gpu_stream *stream, cogpu_error *error);

#endif
