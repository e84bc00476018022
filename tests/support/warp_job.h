/* Warps of packed arrays by an affine transform, as jobs of plan/warp.h. */
#ifndef COGPU_TESTS_SUPPORT_WARP_JOB_H
#define COGPU_TESTS_SUPPORT_WARP_JOB_H

#include "plan/warp.h"

/* Rasters are packed, band after band. tests/python/warp_cases.py mirrors this struct. */
struct warp_case {
    uint32_t method, bands, from_type, to_type;
    uint32_t width, height;                     /* of the level */
    uint32_t x, y, window_width, window_height; /* the part of it that is given */
    uint32_t target_x, target_y, target_width, target_height;
    uint32_t alpha_band, clamps;
    uint32_t is_exact, threads;
    double to_source[6]; /* target pixel to source pixel, as a geotransform */
    double to_target[6]; /* of sums */
    double scale_x, scale_y;
    uint8_t *source, *mask, *target, *valid; /* mask, valid: may be NULL */
    const double *nodata, *avoided;          /* one for each band; NULL: none */
    const uint8_t *fill;                     /* 16 bytes for each band */
};

/* A job with all that it points to. */
struct warp_job_memory {
    cogpu_warp_job job;
    cogpu_warp warp;
    cogpu_coordinates coordinates, forward;
    cogpu_raster source, mask, target, valid;
};

void open_warp_job(const struct warp_case *given, struct warp_job_memory *memory);
void close_warp_job(struct warp_job_memory *memory);

#endif
