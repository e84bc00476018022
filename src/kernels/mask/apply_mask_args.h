/* Sets samples of a raster of floats to NaN where a mask is 0: arguments of apply_mask.cu and its
 * launcher. */
#ifndef COGPU_KERNELS_MASK_APPLY_MASK_ARGS_H
#define COGPU_KERNELS_MASK_APPLY_MASK_ARGS_H

#include "gpu/driver/gpu.h"

enum { COGPU_APPLY_MASK_THREADS = 256 };

struct cogpu_apply_mask_args {
    const uint8_t *mask; /* a byte a pixel: 0 is invalid */
    uint32_t pixels;     /* of all rows */
    uint32_t width, bands;
    uint32_t mask_bands; /* 1 for all, or one for each */
    uint8_t *data;       /* of band 0, the first row, column 0 */
    int64_t stride_band, stride_y, stride_x;
    uint32_t type, size; /* a cogpu_type of floats; bytes of a sample */
};

/* The mask is contiguous; its first row is row `first_row` of the raster. Asynchronous. */
cogpu_status cogpu_gpu_apply_mask(cogpu_gpu *gpu, const cogpu_raster *mask, uint32_t first_row,
                                  const cogpu_raster *raster, cogpu_gpu_stream *stream,
                                  cogpu_error *error);

#endif
