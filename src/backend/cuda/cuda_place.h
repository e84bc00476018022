/*
 * place: decoded blocks of a batch into the caller's raster on the device, in one pass. The twin of
 * backend/cpu/cpu_restore.c, cpu_place.c and cpu_convert.c, and bit for bit what they give.
 * docs/kernels/place.md has the idea.
 *
 *     struct cogpu_gpu_pixels pixels;
 *     TRY(cogpu_gpu_pixels_of(&plan, &raster, decoded, verdicts, NULL, &pixels, error));
 *     for each block of the plan: placed[i] = cogpu_gpu_placed_of(&block, where, i);
 *     copy `placed` up; TRY(cogpu_gpu_place(gpu, &pixels, on_device, placed, count, stream,
 * error));
 *
 * What may be read: decoded bytes as cuda.h has them, so up to COGPU_GPU_SLACK bytes past the end
 * of a block. What is written: the samples of the raster that a block covers, and no byte between
 * them.
 */
#ifndef COGPU_BACKEND_CUDA_CUDA_PLACE_H
#define COGPU_BACKEND_CUDA_CUDA_PLACE_H

#include "cogpu.h"

#include <stdint.h>

enum {
    COGPU_PLACE_BANDS = 8,    /* of a list that travels with the launch */
    COGPU_PLACE_STAGE = 4096, /* bytes of a row that a warp holds at a time */
    COGPU_PLACE_PIXEL = 256,  /* bytes of a larger pixel are not held: see PLACE_WALK */
    COGPU_PLACE_WARPS = 4     /* of a block of threads */
};

/* No decoded bytes: the fill sample everywhere. */
#define COGPU_PLACE_FILL UINT64_MAX

/* How rows become samples. */
enum cogpu_place_way {
    COGPU_PLACE_WHOLE,  /* predictors 1 and 2 on whole bytes: in place */
    COGPU_PLACE_PLANES, /* predictor 3: planes of bytes */
    COGPU_PLACE_BITS,   /* depths that are widened */
    COGPU_PLACE_WALK    /* pixels too large to be held: each sample on its own, slowly */
};

/* A band of the raster: which sample of the file's pixel it is, and what becomes of its values. */
struct cogpu_gpu_band {
    uint32_t sample; /* 0 in planar files */
    uint32_t reserved;
    double scale, offset;
};

/* What all blocks of one image have in common. Pointers are the device's. */
struct cogpu_gpu_pixels {
    const uint8_t *decoded;   /* what `decoded` of a block counts from */
    const uint32_t *verdicts; /* NULL: all blocks are good */

    uint32_t type; /* a cogpu_type */
    uint32_t size; /* bytes of a sample of that type */
    uint32_t bits; /* of a sample in the file */
    uint32_t way, predictor;
    uint32_t swap;         /* bytes of the unit whose order is turned; 0 for none */
    uint32_t samples;      /* of a pixel in a block: 1 in planar files */
    uint32_t block_width;  /* pixels of a row, with those outside of the image */
    uint32_t row_bytes;    /* of a decoded row */
    uint32_t piece_pixels; /* of a row that are held at a time */
    uint32_t rows_held; /* whole rows that are held at a time; 0 where one is not, or not aligned */
    uint8_t is_cmyk, is_planar, is_signed, is_float24;
    uint8_t fill[16]; /* a sample of `type` */

    uint8_t *data;
    int64_t stride_band, stride_y, stride_x;
    uint32_t band_count;
    uint32_t target_type, target_size;
    uint8_t is_flat;  /* pixels lie in the raster as in the file: all samples side by side, and
                         none is scaled */
    uint8_t in_order; /* band p is sample p, and the lists below say nothing of it */

    uint8_t converts; /* to target_type, a float, or to a mask */
    uint8_t is_mask, scales;
    uint8_t has_nodata, nodata_is_nan;
    uint64_t nodata[2]; /* samples that become NaN: two, since 0 has two signs */
    struct cogpu_gpu_band bands[COGPU_PLACE_BANDS];
    const struct cogpu_gpu_band *more_bands; /* the whole list where it is longer; else NULL */
};

/* A block, or the part of it that the window takes. */
struct cogpu_placed {
    uint64_t decoded; /* where its first row begins: a multiple of COGPU_GPU_ALIGN, or
                         COGPU_PLACE_FILL */
    uint32_t source_x, source_y, target_x, target_y, width, height;
    uint32_t plane;   /* the raster's band, in planar files */
    uint32_t verdict; /* its index in `verdicts`: unless 0 lies there, the block is left alone */
};

/* Blocks of threads are made of warps that take `rows` rows each, `groups` such to a block. */
struct cogpu_place_args {
    struct cogpu_gpu_pixels pixels;
    const struct cogpu_placed *blocks;
    uint32_t count, groups, rows;
};

#ifndef __CUDACC__
#include "backend/cuda/cuda.h"
#include "plan/plan.h"

/* Bands that `more_bands` shall hold for this plan: 0 where it is not needed. They are the caller's
 * to upload: cogpu_gpu_list_bands writes them. */
uint32_t cogpu_gpu_bands_listed(const cogpu_read_plan *plan);
void cogpu_gpu_list_bands(const cogpu_read_plan *plan, struct cogpu_gpu_band *bands);

/* The raster's strides are set. `more_bands` may be NULL where cogpu_gpu_bands_listed says 0.
 * UNSUPPORTED, with the reason, is what the device cannot place: YCbCr that is not JPEG, rows above
 * COGPU_GPU_BLOCK_MAX, conversions of complex samples or to what is no float, masks of complex
 * samples of 16 bytes. */
cogpu_status cogpu_gpu_pixels_of(const cogpu_read_plan *plan, const cogpu_raster *raster,
                                 const uint8_t *decoded, const uint32_t *verdicts,
                                 const struct cogpu_gpu_band *more_bands,
                                 struct cogpu_gpu_pixels *pixels, cogpu_error *error);

struct cogpu_placed cogpu_gpu_placed_of(const cogpu_block *block, uint64_t decoded,
                                        uint32_t verdict);

/* Blocks must lie inside the raster and not on top of each other. Does not wait. */
cogpu_status cogpu_gpu_place(cogpu_gpu *gpu, const struct cogpu_gpu_pixels *pixels,
                             const struct cogpu_placed *device_blocks,
                             const struct cogpu_placed *blocks, uint32_t count,
                             cogpu_gpu_stream *stream, cogpu_error *error);
#endif

#endif
