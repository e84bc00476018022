/* Layers of a mosaic into one raster on the device: arguments of composite.cu and its launchers. */
#ifndef COGPU_KERNELS_COMPOSITE_COMPOSITE_ARGS_H
#define COGPU_KERNELS_COMPOSITE_COMPOSITE_ARGS_H

#include "gpu/driver/gpu.h"
#include "plan/composite.h"

enum {
    COGPU_COMPOSITE_THREADS = 128, /* of a thread block: neighbouring columns */
    COGPU_COMPOSITE_ROWS = 4       /* that a thread works on, one below the other */
};

/* Arguments of one launch. The pixels are all of the composition, or those under a layer. */
struct cogpu_composite_args {
    uint32_t method, type, size, bands, depth; /* as in cogpu_composition; bytes of a sample */
    uint32_t x, y, columns, rows;              /* pixels of this launch */
    uint32_t across, down;                     /* tasks of thread blocks: in a row, in a column */
    uint32_t width;                            /* of the planes */
    uint64_t plane;                            /* samples of a plane */
    uint8_t *data;                             /* of band 0, the first pixel of the launch */
    int64_t stride_band, stride_y, stride_x;
    uint8_t *valid;
    double *sums;
    uint32_t *counts;
    uint8_t *stack;
    const uint8_t (*fill)[16];
    const uint8_t *layer, *layer_valid; /* columns * rows samples a band */
};

/* As cogpu_cpu_composite_begin, _add and _finish, with all memory on the device. Asynchronous. */
cogpu_status cogpu_gpu_composite_begin(cogpu_gpu *gpu, const cogpu_composition *composition,
                                       cogpu_gpu_stream *stream, cogpu_error *error);
cogpu_status cogpu_gpu_composite_add(cogpu_gpu *gpu, const cogpu_composition *composition,
                                     const cogpu_composite_layer *layer, cogpu_gpu_stream *stream,
                                     cogpu_error *error);
cogpu_status cogpu_gpu_composite_finish(cogpu_gpu *gpu, const cogpu_composition *composition,
                                        cogpu_gpu_stream *stream, cogpu_error *error);

#endif
