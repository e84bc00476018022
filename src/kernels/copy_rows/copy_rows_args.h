/* Copies rows between rasters on the device: arguments of copy_rows.cu and its launcher. */
#ifndef COGPU_KERNELS_COPY_ROWS_COPY_ROWS_ARGS_H
#define COGPU_KERNELS_COPY_ROWS_COPY_ROWS_ARGS_H

#include "gpu/driver/gpu.h"

enum { COGPU_ROWS_THREADS = 256 };

struct cogpu_rows_view {
    uint8_t *data; /* band 0, the first row, column 0 */
    int64_t stride_band, stride_y, stride_x;
};

struct cogpu_rows_args {
    struct cogpu_rows_view from, to;
    uint32_t width, rows, bands;
    uint32_t size;            /* of a sample, or of several that are side by side in both rasters */
    uint32_t rows_per_thread; /* one after the other */
};

/* Copies `rows` rows of all bands, from the first row of each raster on. Both have the same width,
 * bands and type, and all strides set. They may overlap if `to` does not begin later. Asynchronous.
 */
cogpu_status cogpu_gpu_copy_rows(cogpu_gpu *gpu, const cogpu_raster *from, const cogpu_raster *to,
                                 uint32_t rows, cogpu_gpu_stream *stream, cogpu_error *error);

#endif
