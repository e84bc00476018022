/*
 * Downsampling on the CPU: rows or windows of a level become those of the next level. A row of the
 * result depends on a few rows of the source, so a caller holds no more than those.
 *
 * Pixels are those of GDAL's overviews: nearest, average (integers rounded as GDAL does) and mode
 * are equal, the other methods agree within rounding. Invalid samples - nodata, NaN, masked, alpha
 * 0 - have no weight. Where nothing is valid the result is nodata (without: NaN for floats that
 * nothing masks, else 0), and the mask 0. Only nearest, and mode of masks, ignore validity.
 */
#ifndef COGPU_CPU_DOWNSAMPLE_H
#define COGPU_CPU_DOWNSAMPLE_H

#include "cpu/cpu.h"

/* How lines of the source become lines of the result: see pixel/resample.h. */
typedef struct cogpu_resampling_axis {
    uint32_t from;        /* samples of the source */
    double ratio, offset; /* source samples for each of the result; where the first one begins */
} cogpu_resampling_axis;

/* One step of a pyramid; or any rectangle of the source in any size, as GDAL's RasterIO makes it.
 */
typedef struct cogpu_downsample {
    cogpu_resampling method; /* not DEFAULT */
    cogpu_type type;
    uint32_t bands;
    uint32_t from_width, from_height, to_width, to_height;
    cogpu_nodata nodata; /* text NULL: none */
    uint32_t alpha_band; /* 1-based; 0: none */
    bool has_mask;
    bool mask_is_alpha; /* samples of the mask are alpha: what alpha_band says of kernels */
    /* Of a rectangle, which begins at a source position and has sides of any ratio; ratio_x 0: the
     * result is the whole level. */
    double ratio_x, ratio_y, offset_x, offset_y;
    bool rounds_lines; /* weighted lines are kept as floats, as RasterIO does */
} cogpu_downsample;

static inline cogpu_resampling_axis cogpu_downsample_axis_x(const cogpu_downsample *downsample) {
    bool is_rectangle = downsample->ratio_x > 0;
    double whole = (double)downsample->from_width / downsample->to_width;
    return (cogpu_resampling_axis){
        downsample->from_width, is_rectangle ? downsample->ratio_x : whole, downsample->offset_x};
}

static inline cogpu_resampling_axis cogpu_downsample_axis_y(const cogpu_downsample *downsample) {
    bool is_rectangle = downsample->ratio_x > 0;
    double whole = (double)downsample->from_height / downsample->to_height;
    return (cogpu_resampling_axis){
        downsample->from_height, is_rectangle ? downsample->ratio_y : whole, downsample->offset_y};
}

/* UNSUPPORTED for combinations without a meaning, as the average of complex integers. */
cogpu_status cogpu_downsample_check(const cogpu_downsample *downsample, cogpu_error *error);

/* The source rows, *begin up to *end, that rows `first` up to first + count of the result depend
 * on; and the same of columns. Both grow with `first`. */
void cogpu_downsample_source_rows(const cogpu_downsample *downsample, uint32_t first,
                                  uint32_t count, uint32_t *begin, uint32_t *end);
void cogpu_downsample_source_columns(const cogpu_downsample *downsample, uint32_t first,
                                     uint32_t count, uint32_t *begin, uint32_t *end);

/* Positions of the rasters: of the source in its level, of the result in its own. */
typedef struct cogpu_downsample_position {
    uint32_t from_x, from_y, x, y;
} cogpu_downsample_position;

/* Fills `to`. `from` and `from_mask` (one band of U8, 0 where invalid; NULL: none) hold at least
 * the source rows and columns that `to` needs. Rasters are in host memory with all strides set.
 * `to_mask` gets 0 or 255. Scratch memory is the worker's. */
cogpu_status cogpu_cpu_downsample(cogpu_worker *worker, const cogpu_downsample *downsample,
                                  const cogpu_downsample_position *position,
                                  const cogpu_raster *from, const cogpu_raster *from_mask,
                                  const cogpu_raster *to, const cogpu_raster *to_mask,
                                  cogpu_error *error);

#endif
