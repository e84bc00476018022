/*
 * Shrink: rows of a level become rows of the next one, as they pass, or windows of them windows. A
 * row of the result is made of a few rows of the source, so a caller holds no more than those.
 *
 * Pixels are as GDAL's overviews have them: nearest, average (integers rounded as GDAL does) and
 * mode the same, the others within rounding. What is invalid - nodata, NaN, masked, of alpha 0 -
 * has no weight; where nothing is valid the result is nodata (without: NaN for floats that nothing
 * masks, else 0), and the mask 0. Only nearest, and of masks mode, take what they find.
 */
#ifndef COGPU_BACKEND_CPU_CPU_SHRINK_H
#define COGPU_BACKEND_CPU_CPU_SHRINK_H

#include "backend/cpu/cpu.h"

/* One step of a pyramid. */
typedef struct cogpu_shrink {
    cogpu_resampling method; /* not DEFAULT */
    cogpu_type type;
    uint32_t bands;
    uint32_t from_width, from_height, to_width, to_height;
    cogpu_nodata nodata; /* text NULL: none */
    uint32_t alpha_band; /* 1-based; 0: none */
    bool has_mask;
} cogpu_shrink;

/* UNSUPPORTED for what cannot be resampled so, as the average of complex integers. */
cogpu_status cogpu_shrink_check(const cogpu_shrink *shrink, cogpu_error *error);

/* The rows of the source, from *begin up to *end, that rows `first` up to first + count of the
 * result are made of; and the same of columns. Both grow with `first`. */
void cogpu_shrink_needs(const cogpu_shrink *shrink, uint32_t first, uint32_t count, uint32_t *begin,
                        uint32_t *end);
void cogpu_shrink_needs_columns(const cogpu_shrink *shrink, uint32_t first, uint32_t count,
                                uint32_t *begin, uint32_t *end);

/* Where rasters begin: that of the source in its level, that of the result in its own. */
typedef struct cogpu_shrink_place {
    uint32_t from_x, from_y, x, y;
} cogpu_shrink_place;

/* All of the result that `to` has room for. `from` and `from_mask` (one band of U8, 0 where
 * invalid; NULL without) have of the source at least what is needed. Rasters are of the host, have
 * all strides set, and any of them. `to_mask` gets 0 or 255. Memory is the seat's. */
cogpu_status cogpu_cpu_shrink(cogpu_seat *seat, const cogpu_shrink *shrink,
                              const cogpu_shrink_place *place, const cogpu_raster *from,
                              const cogpu_raster *from_mask, const cogpu_raster *to,
                              const cogpu_raster *to_mask, cogpu_error *error);

#endif
