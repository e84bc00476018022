/*
 * Text of a VRT, as gdalbuildvrt writes it: a SimpleSource or ComplexSource for each band and
 * source, the last source on top.
 */
#ifndef COGPU_GRID_VRT_WRITE_H
#define COGPU_GRID_VRT_WRITE_H

#include "grid/vrt.h"

typedef struct cogpu_vrt_write_source {
    const char *path;
    uint32_t width, height; /* of the source */
    cogpu_type type;
    uint32_t block_width, block_height;
    const uint32_t *bands; /* of the source, from 1: one for each band of the VRT; 0: this source
                            * does not paint the band */
    cogpu_vrt_rect source, target;
    const char *const *nodata; /* of each band of the VRT, or NULL: samples that are not painted;
                                * NULL: none */
    bool uses_mask;            /* masked pixels are not painted */
    bool has_mask; /* the source has a mask of the dataset: it is part of the MaskBand */
    cogpu_resampling resampling; /* DEFAULT: not stated */
} cogpu_vrt_write_source;

typedef struct cogpu_vrt_write_band {
    cogpu_type type;
    const char *nodata, *colour, *description; /* or NULL */
    bool hides_nodata;
} cogpu_vrt_write_band;

typedef struct cogpu_vrt_description {
    const char *path; /* of the VRT itself, or NULL: paths of sources in its folder or below it are
                       * written relative to it */
    uint32_t width, height;
    const char *srs; /* WKT, or NULL */
    bool has_transform;
    double transform[6];
    const cogpu_vrt_write_band *bands;
    uint32_t band_count;
    const cogpu_vrt_write_source *sources; /* in the order in which they are painted */
    uint32_t source_count;
    const uint32_t *overview_factors;
    uint32_t overview_factor_count;
    cogpu_resampling overview_resampling; /* DEFAULT: nearest */
} cogpu_vrt_description;

/* *text, in the arena, is terminated; *bytes is its length. */
cogpu_status cogpu_vrt_write(const cogpu_vrt_description *vrt, cogpu_arena *arena,
                             const char **text, size_t *bytes, cogpu_error *error);

#endif
