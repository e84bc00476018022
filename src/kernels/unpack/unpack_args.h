/*
 * Unpacks decoded blocks of a batch into the caller's raster on the device, in one pass, with the
 * bytes that cpu/undo_filters.c, unpack.c and convert.c give. README.md of this folder has the
 * idea.
 *
 *     struct cogpu_gpu_pixels pixels;
 *     TRY(cogpu_gpu_describe_pixels(&plan, &raster, decoded, statuses, NULL, &pixels, error));
 *     for each block of the plan: unpacked[i] = cogpu_gpu_unpack_block_of(&block, offset, i);
 *     copy `unpacked` to the device;
 *     TRY(cogpu_gpu_unpack(gpu, &pixels, on_device, unpacked, count, stream, error));
 *
 * Reads up to COGPU_GPU_SLACK_BYTES bytes past the end of a decoded block (decoder.h). Writes the
 * samples of the raster that a block covers, and no byte between them.
 */
#ifndef COGPU_KERNELS_UNPACK_UNPACK_ARGS_H
#define COGPU_KERNELS_UNPACK_UNPACK_ARGS_H

#include "cogpu.h"

#include <stdint.h>

enum {
    COGPU_UNPACK_BANDS = 8,    /* that fit into the arguments of a launch */
    COGPU_UNPACK_STAGE = 4096, /* bytes of a row that a warp stages at a time */
    COGPU_UNPACK_PIXEL = 256,  /* bytes of the largest pixel that is staged */
    COGPU_UNPACK_WARPS = 4     /* of a block of threads */
};

/* No decoded bytes: the fill sample everywhere. */
#define COGPU_UNPACK_FILL UINT64_MAX

/* How rows become samples. */
enum cogpu_unpack_kind {
    COGPU_UNPACK_WHOLE,       /* predictors 1 and 2 on whole bytes: in place */
    COGPU_UNPACK_PLANES,      /* predictor 3: planes of bytes */
    COGPU_UNPACK_BITS,        /* odd depths */
    COGPU_UNPACK_LARGE_PIXELS /* not staged: each sample on its own, slowly */
};

/* A band of the raster: which sample of the file's pixel it is, and how its values are scaled. */
struct cogpu_gpu_band {
    uint32_t sample; /* 0 in planar files */
    uint32_t reserved;
    double scale, offset;
};

/* What all blocks of one image have in common. Pointers are device pointers. */
struct cogpu_gpu_pixels {
    const uint8_t *decoded;   /* offsets of blocks count from here */
    const uint32_t *statuses; /* NULL: all blocks are good */

    uint32_t type; /* a cogpu_type */
    uint32_t size; /* bytes of a sample of that type */
    uint32_t bits; /* of a sample in the file */
    uint32_t kind, predictor;
    uint32_t swap;           /* bytes of the unit whose order is turned; 0 for none */
    uint32_t samples;        /* of a pixel in a block: 1 in planar files */
    uint32_t block_width;    /* pixels of a row, with those outside of the image */
    uint32_t row_bytes;      /* of a decoded row */
    uint32_t segment_pixels; /* of a row that are staged at a time */
    uint32_t rows_staged;    /* whole rows that are staged at a time; 0: not one, or not aligned */
    uint8_t is_cmyk, is_planar, is_signed, is_float24;
    uint8_t fill[16]; /* a sample of `type` */

    uint8_t *data;
    int64_t stride_band, stride_y, stride_x;
    uint32_t band_count;
    uint32_t target_type, target_size;
    uint8_t has_file_interleave; /* the raster has the file's pixel interleave; nothing is scaled */
    uint8_t bands_in_order;      /* band p is sample p: the lists below are not needed */

    uint8_t converts; /* to target_type, a float, or to a mask */
    uint8_t is_mask, scales;
    uint8_t has_nodata, nodata_is_nan;
    uint64_t nodata[2]; /* samples that become NaN: two, since 0 has two signs */
    struct cogpu_gpu_band bands[COGPU_UNPACK_BANDS];
    const struct cogpu_gpu_band *more_bands; /* the whole list where it is longer; else NULL */
};

/* A block, or the part of it inside the window. */
struct cogpu_unpack_block {
    uint64_t decoded; /* offset of its first row: a multiple of COGPU_GPU_ALIGN, or
                         COGPU_UNPACK_FILL */
    uint32_t source_x, source_y, target_x, target_y, width, height;
    uint32_t plane;        /* the raster's band, in planar files */
    uint32_t block_status; /* index in `statuses`: unless that is 0, the block is skipped */
    int64_t raster; /* bytes from cogpu_gpu_pixels.data to the memory of the block's raster: 0
                     * unless one launch unpacks into several */
};

/* A warp unpacks `rows` rows; `groups` warps unpack a block. */
struct cogpu_unpack_args {
    struct cogpu_gpu_pixels pixels;
    const struct cogpu_unpack_block *blocks;
    uint32_t count, groups, rows;
};

#ifndef __CUDACC__
#include "kernels/decoder.h"
#include "plan/plan.h"

/* Bands that `more_bands` must hold for this plan; 0: not needed. cogpu_gpu_list_bands writes them,
 * the caller uploads them. */
uint32_t cogpu_gpu_bands_listed(const cogpu_read_plan *plan);
void cogpu_gpu_list_bands(const cogpu_read_plan *plan, struct cogpu_gpu_band *bands);

/* The raster's strides are set. `more_bands` may be NULL where cogpu_gpu_bands_listed returns 0.
 * UNSUPPORTED, with the reason: YCbCr that is not JPEG, rows above COGPU_GPU_BLOCK_BYTES_MAX,
 * conversions of complex samples or to other types than floats, masks of complex samples of 16
 * bytes. */
cogpu_status cogpu_gpu_describe_pixels(const cogpu_read_plan *plan, const cogpu_raster *raster,
                                       const uint8_t *decoded, const uint32_t *statuses,
                                       const struct cogpu_gpu_band *more_bands,
                                       struct cogpu_gpu_pixels *pixels, cogpu_error *error);

struct cogpu_unpack_block cogpu_gpu_unpack_block_of(const cogpu_block *block, uint64_t decoded,
                                                    uint32_t block_status);

/* Blocks must be inside the raster and not overlap. Asynchronous. */
cogpu_status cogpu_gpu_unpack(cogpu_gpu *gpu, const struct cogpu_gpu_pixels *pixels,
                              const struct cogpu_unpack_block *device_blocks,
                              const struct cogpu_unpack_block *blocks, uint32_t count,
                              cogpu_gpu_stream *stream, cogpu_error *error);
#endif

#endif
