/*
 * The read plan: a window of a level as a numbered list of blocks, each with its position in the
 * source and in the raster. Arithmetic only: no I/O, no allocation, no device.
 *
 * An uncompressed block can be read from any row on, so tall ones are divided into slices of rows,
 * which are planned like blocks: a huge strip needs little memory and several threads read it.
 */
#ifndef COGPU_PLAN_PLAN_H
#define COGPU_PLAN_PLAN_H

#include "base/progress.h"
#include "image/image.h"

/*
 * How samples are converted to a raster of type F16, F32 or F64:
 * - Samples that equal `nodata` become NaN. Those of floats may be NaN already.
 * - The others are cast and, where `bands` is given, multiplied by the scale of their band, and its
 *   offset is added: in double for F64, else in float after the cast to it, rounded after each of
 *   the two, as NumPy does. F16 is rounded once more from that float, but from the sample itself
 *   where nothing is scaled.
 * - Each NaN is stored as the quiet one without sign and payload.
 *
 * Or to a mask, of type U8: 0 for samples that equal `nodata`, 255 for all others. Nodata that is
 * NaN then matches every NaN, in either part of a complex sample.
 */
typedef struct cogpu_conversion {
    bool is_mask;
    bool has_nodata, nodata_is_nan;
    uint8_t nodata[2][16];   /* samples of the file's type: two, since 0 has two signs */
    const cogpu_band *bands; /* of the image, in its order; NULL: nothing is scaled */
} cogpu_conversion;

typedef struct cogpu_read_plan {
    const cogpu_storage *storage;
    const cogpu_conversion *conversion; /* NULL: samples are copied */
    uint32_t x, y, width, height;       /* the window */
    const uint32_t *bands;              /* 1-based; NULL = all in order */
    uint32_t band_count;
    const uint8_t *fill; /* a sample for blocks without data in the file; NULL: the storage's */
    uint32_t slice_rows; /* rows of a block, or of a slice of it */
    uint32_t slices;     /* of a block */
    uint32_t first_column, columns;    /* of blocks that the window touches */
    uint32_t first_slice, slice_count; /* rows of slices, counted over all block rows */
    uint32_t planes;                   /* to read: band_count in planar files, else 1 */
    uint64_t count;                    /* of slices in the plan */
    cogpu_meter *meter;                /* of the read; NULL without progress */
} cogpu_read_plan;

/* One block, or slice of a block, of a plan. */
typedef struct cogpu_block {
    uint64_t index;              /* of the block in its directory */
    uint64_t skip;               /* bytes of the block before the slice */
    uint32_t rows;               /* stored; tiles may extend below the image */
    uint32_t needed_rows;        /* of these, inside the image: what the file must have */
    uint32_t plane;              /* the plan's: position in the list of bands of a planar file */
    uint32_t source_x, source_y; /* first pixel used, inside the block or slice */
    uint32_t target_x, target_y; /* its position in the raster */
    uint32_t width, height;      /* of the pixels used */
} cogpu_block;

/* The caller has checked that the window is inside the level and that the bands exist. */
void cogpu_plan_read(const cogpu_storage *storage, uint32_t x, uint32_t y, uint32_t width,
                     uint32_t height, const uint32_t *bands, uint32_t band_count,
                     cogpu_read_plan *plan);

/* The band of the storage, from 0, that becomes band p of the raster. */
uint32_t cogpu_plan_band(const cogpu_read_plan *plan, uint32_t p);

/* Sets the samples that a conversion treats as nodata. */
void cogpu_conversion_nodata(const cogpu_nodata *nodata, cogpu_type type,
                             cogpu_conversion *conversion);

/* The number-th block of the plan: by plane, then row, then column. */
cogpu_block cogpu_plan_block(const cogpu_read_plan *plan, uint64_t number);

/* Number of blocks, from the first of `spans` on, that one read fetches: neighbours in the file,
 * with small gaps, at most COGPU_RUN_BYTES unless it is one block. Sparse blocks form runs of their
 * own. At least 1. */
enum { COGPU_RUN_BYTES = 1 << 20 };
uint32_t cogpu_plan_run(const cogpu_span *spans, uint32_t count);

#endif
