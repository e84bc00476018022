/*
 * rows: rows of a raster on the device, into rows of another one there; what the kernel
 * (cuda_rows.cu) and its host side (rows.c) share.
 */
#ifndef COGPU_BACKEND_CUDA_CUDA_ROWS_H
#define COGPU_BACKEND_CUDA_CUDA_ROWS_H

#include "backend/cuda/gpu.h"

enum { COGPU_ROWS_THREADS = 256 };

struct cogpu_rows_view {
    uint8_t *data; /* band 0, the first row, column 0 */
    int64_t stride_band, stride_y, stride_x;
};

struct cogpu_rows_args {
    struct cogpu_rows_view from, to;
    uint32_t width, rows, bands;
    uint32_t size;          /* of a sample, or of more that lie side by side in both */
    uint32_t rows_a_thread; /* one after the other */
};

/* `rows` rows of all bands, from the first row of each raster on; both have the same width, bands
 * and type, and all strides. They may be the same rows, if those of `to` begin no later. Does not
 * wait. */
cogpu_status cogpu_gpu_move_rows(cogpu_gpu *gpu, const cogpu_raster *from, const cogpu_raster *to,
                                 uint32_t rows, cogpu_gpu_stream *stream, cogpu_error *error);

#endif
