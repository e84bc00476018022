/*
 * cut: pixels of a raster on the device become decoded bytes of blocks, ready for an encoder:
 * cropped, edges filled, predicted or packed. The twin of backend/cpu/cpu_cut.c, and bit for bit
 * what it gives. docs/kernels/cut.md has the idea.
 *
 *     struct cogpu_gpu_cutting cutting;
 *     TRY(cogpu_gpu_cutting_of(&plan, grid, &rows, NULL, &cutting, error));
 *     for each block: blocks[i] = cogpu_gpu_cut_block_of(&plan, grid, &block, first, to, size);
 *     copy `blocks` up; TRY(cogpu_gpu_cut(gpu, &cutting, on_device, blocks, count, decoded, sizes,
 *                                         stream, error));
 *
 * What is read: samples of the rasters that a block covers, and no byte between them unless samples
 * lie side by side. What is written: the bytes of the blocks.
 */
#ifndef COGPU_BACKEND_CUDA_CUDA_CUT_H
#define COGPU_BACKEND_CUDA_CUDA_CUT_H

#include "cogpu.h"

#include <stdint.h>

enum {
    COGPU_CUT_STAGE = 4096, /* bytes of a row that a warp holds at a time */
    COGPU_CUT_PIXEL = 256,  /* bytes of a larger pixel are not held */
    COGPU_CUT_WARPS = 4,    /* of a block of threads */
    COGPU_CUT_ROWS = 4      /* that a warp takes, one after the other */
};

/* What all blocks of one level have in common. Pointers are the device's. */
struct cogpu_gpu_cutting {
    const uint8_t *data; /* of the raster: band 0, its first row, column 0 */
    int64_t stride_band, stride_y, stride_x;
    const uint8_t *mask; /* bytes; NULL where no block is of the mask */
    int64_t mask_stride_y, mask_stride_x;

    uint32_t size;           /* bytes of a sample */
    uint32_t samples;        /* of a pixel in a block: 1 in planar files */
    uint32_t predictor;      /* 1 to 3 */
    uint32_t bits;           /* of a sample in the file; all that it has, or fewer: packed */
    uint32_t block_width;    /* pixels of a row, with those outside of the image */
    uint32_t row_bytes;      /* of a block, decoded */
    uint32_t mask_row_bytes; /* of a block of the mask */
    uint32_t piece_pixels;   /* of a row that are held at a time; 0: pixels are too large */
    uint8_t is_flat;         /* pixels lie in the raster as in the file, side by side */
    uint8_t ends_with_pixel; /* rows below the image are its last pixel, not its last row */
    uint8_t is_sparse;       /* blocks of nothing but `fill` are left out */
    uint8_t replaces_nan;    /* by `fill` */
    uint8_t fill_is_nan;     /* any NaN is fill */
    uint64_t magnitude;      /* of a float, all bits but the sign; 0 for other types */
    uint64_t infinity;       /* of a float: a larger magnitude is NaN */
    uint64_t fill[2];        /* a sample, little endian */
};

/* A block of pixels or of the mask. */
struct cogpu_cut_block {
    uint64_t to;            /* where its decoded bytes begin: a multiple of COGPU_GPU_ALIGN */
    uint32_t x, y;          /* its first pixel in the raster */
    uint32_t width, height; /* that lie inside the image */
    uint32_t rows;          /* that are stored */
    uint32_t plane;         /* the raster's band, in planar files */
    uint32_t is_mask;
    uint32_t size; /* what `sizes` says of it, unless it is left out */
};

struct cogpu_cut_args {
    struct cogpu_gpu_cutting cutting;
    const struct cogpu_cut_block *blocks;
    uint32_t count, groups; /* groups of COGPU_CUT_ROWS rows to a block */
    uint8_t *decoded;
    uint32_t *sizes;
};

#ifndef __CUDACC__
#include "backend/cuda/cuda_write.h"
#include "plan/write_plan.h"

/* `rows` is a raster of rows of the level, on the device, with its strides set; `mask` one of
 * bytes, or NULL where no block is of the mask. UNSUPPORTED are blocks above COGPU_GPU_BLOCK_MAX.
 */
cogpu_status cogpu_gpu_cutting_of(const cogpu_write_plan *plan, const cogpu_grid *grid,
                                  const cogpu_raster *rows, const cogpu_raster *mask,
                                  struct cogpu_gpu_cutting *cutting, cogpu_error *error);

/* `first` is the level's row that the rasters begin with. `size`: COGPU_GPU_TO_ENCODE, or its bytes
 * where it is stored as it is. */
struct cogpu_cut_block cogpu_gpu_cut_block_of(const cogpu_write_plan *plan, const cogpu_grid *grid,
                                              const cogpu_new_block *block, uint32_t first,
                                              uint64_t to, uint32_t size);

/* sizes[i] becomes COGPU_GPU_SPARSE where block i is left out, else its `size`. Does not wait. */
cogpu_status cogpu_gpu_cut(cogpu_gpu *gpu, const struct cogpu_gpu_cutting *cutting,
                           const struct cogpu_cut_block *device_blocks,
                           const struct cogpu_cut_block *blocks, uint32_t count, uint8_t *decoded,
                           uint32_t *sizes, cogpu_gpu_stream *stream, cogpu_error *error);
#endif

#endif
