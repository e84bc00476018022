/*
 * Packs pixels of a raster on the device into decoded bytes of blocks, ready for an encoder:
 * cropped, edges filled, predicted or bit-packed. The bytes are those of cpu/pack.c. README.md of
 * this folder has the idea.
 *
 *     struct cogpu_gpu_packing packing;
 *     TRY(cogpu_gpu_describe_packing(&plan, grid, &rows, NULL, &packing, error));
 *     for each block: blocks[i] = cogpu_gpu_pack_block_of(&plan, grid, &block, first, to, size);
 *     copy `blocks` to the device;
 *     TRY(cogpu_gpu_pack(gpu, &packing, on_device, blocks, count, decoded, sizes, stream, error));
 *
 * Reads the samples of the rasters that a block covers, and no byte between them unless pixels are
 * side by side. Writes the bytes of the blocks.
 */
#ifndef COGPU_KERNELS_PACK_PACK_ARGS_H
#define COGPU_KERNELS_PACK_PACK_ARGS_H

#include "cogpu.h"

#include <stdint.h>

enum {
    COGPU_PACK_STAGE = 4096, /* bytes of a row that a warp stages at a time */
    COGPU_PACK_PIXEL = 256,  /* bytes of the largest pixel that is staged */
    COGPU_PACK_WARPS = 4,    /* of a block of threads */
    COGPU_PACK_ROWS = 4      /* that a warp packs, one after the other */
};

/* What all blocks of one level have in common. Pointers are device pointers. */
struct cogpu_gpu_packing {
    const uint8_t *data; /* of the raster: band 0, its first row, column 0 */
    int64_t stride_band, stride_y, stride_x;
    const uint8_t *mask; /* bytes; NULL where no block is of the mask */
    int64_t mask_stride_y, mask_stride_x;

    uint32_t size;               /* bytes of a sample */
    uint32_t samples;            /* of a pixel in a block: 1 in planar files */
    uint32_t predictor;          /* 1 to 3 */
    uint32_t bits;               /* of a sample in the file; all that it has, or fewer: packed */
    uint32_t block_width;        /* pixels of a row, with those outside of the image */
    uint32_t row_bytes;          /* of a block, decoded */
    uint32_t mask_row_bytes;     /* of a block of the mask */
    uint32_t segment_pixels;     /* of a row that are staged at a time; 0: pixels are too large */
    uint8_t has_file_interleave; /* the raster has the file's pixel interleave */
    uint8_t ends_with_pixel;     /* rows below the image are its last pixel, not its last row */
    uint8_t is_sparse;           /* blocks of nothing but `fill` are not stored */
    uint8_t replaces_nan;        /* by `fill` */
    uint8_t fill_is_nan;         /* any NaN is fill */
    uint64_t magnitude;          /* of a float, all bits but the sign; 0 for other types */
    uint64_t infinity;           /* of a float: a larger magnitude is NaN */
    uint64_t fill[2];            /* a sample, little endian */
};

/* A block of pixels or of the mask. */
struct cogpu_pack_block {
    uint64_t to;            /* where its decoded bytes begin: a multiple of COGPU_GPU_ALIGN */
    uint32_t x, y;          /* its first pixel in the raster */
    uint32_t width, height; /* inside the image */
    uint32_t rows;          /* that are stored */
    uint32_t plane;         /* the raster's band, in planar files */
    uint32_t is_mask;
    uint32_t size; /* its entry in `sizes`, unless it is sparse */
};

struct cogpu_pack_args {
    struct cogpu_gpu_packing packing;
    const struct cogpu_pack_block *blocks;
    uint32_t count, groups; /* groups of COGPU_PACK_ROWS rows to a block */
    uint8_t *decoded;
    uint32_t *sizes;
};

#ifndef __CUDACC__
#include "kernels/encoder.h"
#include "plan/write_plan.h"

/* `rows` is a raster of rows of the level, on the device, with its strides set; `mask` one of
 * bytes, or NULL where no block is of the mask. UNSUPPORTED are blocks above
 * COGPU_GPU_BLOCK_BYTES_MAX.
 */
cogpu_status cogpu_gpu_describe_packing(const cogpu_write_plan *plan, const cogpu_block_grid *grid,
                                        const cogpu_raster *rows, const cogpu_raster *mask,
                                        struct cogpu_gpu_packing *packing, cogpu_error *error);

/* `first` is the level's row that the rasters begin with. `size`: COGPU_GPU_TO_ENCODE, or its bytes
 * where it is stored as it is. */
struct cogpu_pack_block cogpu_gpu_pack_block_of(const cogpu_write_plan *plan,
                                                const cogpu_block_grid *grid,
                                                const cogpu_new_block *block, uint32_t first,
                                                uint64_t to, uint32_t size);

/* sizes[i] becomes COGPU_GPU_SPARSE where block i is not stored, else its `size`. Asynchronous. */
cogpu_status cogpu_gpu_pack(cogpu_gpu *gpu, const struct cogpu_gpu_packing *packing,
                            const struct cogpu_pack_block *device_blocks,
                            const struct cogpu_pack_block *blocks, uint32_t count, uint8_t *decoded,
                            uint32_t *sizes, cogpu_gpu_stream *stream, cogpu_error *error);
#endif

#endif
