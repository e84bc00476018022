/*
 * void: samples of a raster of floats become NaN where a mask says that they are not valid. What
 * the kernel (cuda_void.cu) and its host side (void.c) share.
 */
#ifndef COGPU_BACKEND_CUDA_CUDA_VOID_H
#define COGPU_BACKEND_CUDA_CUDA_VOID_H

#include "backend/cuda/gpu.h"

enum { COGPU_VOID_THREADS = 256 };

struct cogpu_void_args {
    const uint8_t *mask; /* a byte for each of `pixels`: 0 is not valid */
    uint32_t pixels;     /* of all rows together */
    uint32_t width, bands;
    uint32_t mask_bands; /* 1 for all, or one for each */
    uint8_t *data;       /* of band 0, the first row, column 0 */
    int64_t stride_band, stride_y, stride_x;
    uint32_t size; /* of a sample */
};

/* The mask is packed, and its rows are those from `first_row` on of the raster. Does not wait. */
cogpu_status cogpu_gpu_void(cogpu_gpu *gpu, const cogpu_raster *mask, uint32_t first_row,
                            const cogpu_raster *raster, cogpu_gpu_stream *stream,
                            cogpu_error *error);

#endif
