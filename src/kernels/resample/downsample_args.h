/*
 * Downsampling on the device: rows of a level become rows of the next one, with the bits that
 * cpu/downsample.c gives. README.md of this folder has the idea.
 */
#ifndef COGPU_KERNELS_RESAMPLE_DOWNSAMPLE_ARGS_H
#define COGPU_KERNELS_RESAMPLE_DOWNSAMPLE_ARGS_H

#include "pixel/resample.h"

#include <stdint.h>

enum {
    COGPU_DOWNSAMPLE_THREADS = 128,  /* of a block */
    COGPU_DOWNSAMPLE_ROWS = 4,       /* of the result that a thread computes, one below the other */
    COGPU_DOWNSAMPLE_TAPS = 18,      /* weights of a support that are kept in shared memory */
    COGPU_DOWNSAMPLE_CANDIDATES = 25 /* of mode and median, kept by a thread in shared memory */
};

/* Types with a kernel of their own for averages of pairs of columns, and for weighted sums. The
 * other types share one kernel, since nvcc takes long for each. */
#define COGPU_DOWNSAMPLE_AVERAGE_TYPES(X)                                                          \
    X(u8, COGPU_TYPE_U8)                                                                           \
    X(u16, COGPU_TYPE_U16)                                                                         \
    X(i16, COGPU_TYPE_I16)                                                                         \
    X(f32, COGPU_TYPE_F32)                                                                         \
    X(f64, COGPU_TYPE_F64)
#define COGPU_DOWNSAMPLE_WEIGHTED_TYPES(X) X(f32, COGPU_TYPE_F32)

/* Bands of a raster, or a mask. */
struct cogpu_downsample_plane {
    uint8_t *data; /* of its first row, column 0; NULL: there is none */
    int64_t stride_band, stride_y, stride_x;
};

/* Arguments of one launch: all bands of a raster, one part of all complex bands, or the mask. */
struct cogpu_downsample_args {
    struct cogpu_downsample_plane from, to;
    struct cogpu_downsample_plane guard; /* mask or alpha, 0 where pixels are invalid: of the
                                          * source, or of the result (zero_masked) */
    double ratio_x, ratio_y;             /* samples of the source to one of the result */
    struct resampling_nodata nodata;
    uint32_t from_width, from_height, to_width, to_height; /* of the levels */
    uint32_t from_first, first; /* rows of the levels that `from`, `guard` and `to` begin with */
    uint32_t rows;              /* of the result */
    uint32_t method, type, size, guard_size;
    uint32_t alpha_band;   /* 1-based; 0: none */
    uint32_t unit;         /* bands of a pixel that are neighbouring items; 1: bands one by one */
    uint32_t items;        /* of a row: samples, or vectors of them */
    uint32_t across, down; /* tasks in a row of items, and in all rows */
    uint64_t tasks;        /* of all bands */
    uint8_t is_mask;       /* `from` is a mask: anything but 0 counts as 255 */
    uint8_t guard_is_mask;
};

#ifndef __CUDACC__
#include "cpu/downsample.h"
#include "gpu/driver/gpu.h"

/* As cogpu_cpu_downsample, with rasters on the device. Does not wait. */
cogpu_status cogpu_gpu_downsample(cogpu_gpu *gpu, const cogpu_downsample *downsample,
                                  const cogpu_raster *from, const cogpu_raster *from_mask,
                                  uint32_t from_first, uint32_t first, const cogpu_raster *to,
                                  const cogpu_raster *to_mask, cogpu_gpu_stream *stream,
                                  cogpu_error *error);
#endif

#endif
