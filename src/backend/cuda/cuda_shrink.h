/*
 * shrink: rows of a level on the device become rows of the next one. The twin of
 * backend/cpu/cpu_shrink.c, and bit for bit what it gives. docs/kernels/shrink.md has the idea.
 */
#ifndef COGPU_BACKEND_CUDA_CUDA_SHRINK_H
#define COGPU_BACKEND_CUDA_CUDA_SHRINK_H

#include "cogpu.h"

#include <stdint.h>

enum {
    COGPU_SHRINK_THREADS = 128, /* of a block */
    COGPU_SHRINK_ROWS = 4,      /* of the result that a thread makes, one below the other */
    COGPU_SHRINK_TAPS = 18,     /* samples of a line whose weights are held, not found anew */
    COGPU_SHRINK_VOTES = 25     /* for mode and median, that a thread holds */
};

/* Types that have kernels of their own for averages of two by two, and of these the one that has
 * one for all that weighs. Others share one: nvcc takes long for each. */
#define COGPU_SHRINK_TYPES(X)                                                                      \
    X(u8, COGPU_U8)                                                                                \
    X(u16, COGPU_U16)                                                                              \
    X(i16, COGPU_I16)                                                                              \
    X(f32, COGPU_F32)                                                                              \
    X(f64, COGPU_F64)
#define COGPU_SHRINK_WEIGHED(X) X(f32, COGPU_F32)

/* Bands of a raster, or a mask. */
struct cogpu_shrink_plane {
    uint8_t *data; /* of its first row, column 0; NULL: there is none */
    int64_t stride_band, stride_y, stride_x;
};

/* Bands that are shrunk by one launch: all of a raster, one part of all if they are complex, or the
 * mask. */
struct cogpu_shrink_args {
    struct cogpu_shrink_plane from, to;
    struct cogpu_shrink_plane guard; /* one band of mask or alpha: 0 where pixels are invalid; of
                                      * the source, or to blank pixels of the result */
    double ratio_x, ratio_y;         /* samples of the source to one of the result */
    uint64_t nodata, beside, none;   /* samples, as cpu_shrink_kernel.h has them */
    uint32_t from_width, from_height, to_width, to_height; /* of the levels */
    uint32_t from_first, first; /* rows of the levels that `from`, `guard` and `to` begin with */
    uint32_t rows;              /* to make */
    uint32_t method, type, size, guard_size;
    uint32_t alpha_band;   /* 1-based; 0: none */
    uint32_t unit;         /* bands that lie side by side: threads take them one after the other */
    uint32_t items;        /* of a row, for that many threads: samples, or vectors of them */
    uint32_t across, down; /* tasks to a row of items, and to all rows */
    uint64_t tasks;        /* for blocks of threads: those of all bands */
    uint8_t is_mask;       /* what is shrunk: anything but 0 stands for 255 */
    uint8_t guard_is_mask;
    uint8_t has_nodata;
};

#ifndef __CUDACC__
#include "backend/cpu/cpu_shrink.h"
#include "backend/cuda/gpu.h"

/* As cogpu_cpu_shrink, with rasters on the device. Does not wait. */
cogpu_status cogpu_gpu_shrink(cogpu_gpu *gpu, const cogpu_shrink *shrink, const cogpu_raster *from,
                              const cogpu_raster *from_mask, uint32_t from_first, uint32_t first,
                              const cogpu_raster *to, const cogpu_raster *to_mask,
                              cogpu_gpu_stream *stream, cogpu_error *error);
#endif

#endif
