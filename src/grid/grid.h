/*
 * Target grids, and which source pixels a part of a grid needs. Arithmetic and PROJ only: no pixel
 * is read here.
 */
#ifndef COGPU_GRID_GRID_H
#define COGPU_GRID_GRID_H

#include "base/pool.h"
#include "grid/transformer.h"
#include "plan/warp.h"

/* A bounding box in whole pixels: x0 <= x < x1. Empty if x0 >= x1. */
typedef struct cogpu_box {
    int64_t x0, y0, x1, y1;
} cogpu_box;

/* The sources that a grid follows from. */
typedef struct cogpu_grid_sources {
    const cogpu_placement *items;
    size_t count;
    bool rounds_up; /* for the resampling `sum` */
    cogpu_operations *operations;
    cogpu_pool *pool; /* shares the sources among threads; may be NULL */
} cogpu_grid_sources;

/* ---- suggest.c: the grid of gdalwarp without options (GDALSuggestedWarpOutput2) ---- */

/* Fills transform, width and height of `target`, whose CRS is given. Several sources: the union of
 * their extents at the least of their pixel sizes. */
cogpu_status cogpu_grid_suggest(const cogpu_grid_sources *sources, cogpu_placement *target,
                                cogpu_error *error);

/* ---- complete.c: gdalwarp's options on top ---- */

/* Computes what `request` leaves open (see cogpu_grid in cogpu.h: -te, -te_srs, -tr, -ts, -tap of
 * gdalwarp) and fills transform, width and height of `target`, whose CRS is given. */
cogpu_status cogpu_grid_complete(const cogpu_grid *request, const cogpu_grid_sources *sources,
                                 cogpu_placement *target, cogpu_error *error);

/* ---- scale.c ---- */

/* Target pixels for each source pixel, as GDAL 3.12 computes them for the whole target in one chunk
 * (see cogpu_warp); for the part that the source touches, if less than half of that chunk's source
 * window is in the source. `radius` is that of the kernel at full resolution. */
void cogpu_warp_scale(const cogpu_transformer *transformer, const cogpu_placement *source,
                      const cogpu_placement *target, double radius, double *scale_x,
                      double *scale_y);

/* Source pixels for each target pixel, for the choice of an overview level (gdalwarp -ovr AUTO). */
double cogpu_warp_ratio(const cogpu_transformer *transformer, const cogpu_placement *source,
                        const cogpu_placement *target);

/* The level whose ratio is at most `ratio`, by GDAL's rule (facts: threshold 1.0 + 0.1). */
uint32_t cogpu_choose_level(const cogpu_pyramid *pyramid, double ratio);

/* ---- extent.c ---- */

/* The part of the target grid that the source may touch. Never too small. */
cogpu_box cogpu_source_extent(const cogpu_transformer *transformer, const cogpu_placement *source,
                              const cogpu_placement *target);

/* ---- coordinates.c ---- */

/* Computes source positions of a window. PROJ transforms the nodes of a quadtree: its cells have
 * 512 target pixels a side, aligned in the target grid, and are divided down to 16 until bilinear
 * interpolation errs by at most `max_error` source pixels (the sum of both axes); what errs still
 * is exact, as is every cell if max_error is 0. Affine transforms need no exact cells. The position
 * of a pixel depends on the grids and on max_error alone, not on the window. Positions are in
 * pixels of the level of `level_width` x `level_height`, whose full resolution is source->width x
 * source->height. Memory comes from the arena; the pool (may be NULL) shares the work of exact
 * cells. */
cogpu_status cogpu_coordinates_compute(const cogpu_transformer *transformer,
                                       const cogpu_placement *source, const cogpu_placement *target,
                                       uint32_t level_width, uint32_t level_height, uint32_t x,
                                       uint32_t y, uint32_t width, uint32_t height, bool of_corners,
                                       double max_error, cogpu_pool *pool, cogpu_arena *arena,
                                       cogpu_coordinates *coordinates, cogpu_error *error);

/* The same for COGPU_RESAMPLE_SUM the other way: positions in the target grid of the corners of
 * pixels of a window of the source level. max_error is in target pixels. */
cogpu_status cogpu_coordinates_compute_forward(const cogpu_transformer *transformer,
                                               const cogpu_placement *source,
                                               const cogpu_placement *target, uint32_t level_width,
                                               uint32_t level_height, uint32_t x, uint32_t y,
                                               uint32_t width, uint32_t height, double max_error,
                                               cogpu_pool *pool, cogpu_arena *arena,
                                               cogpu_coordinates *coordinates, cogpu_error *error);

/* About the source pixels that cogpu_coordinates_extent will find for the window, from few
 * positions: nearly always all of them, and some more. The whole level if positions are missing. */
cogpu_box cogpu_coordinates_estimate(const cogpu_transformer *transformer,
                                     const cogpu_placement *source, const cogpu_placement *target,
                                     uint32_t level_width, uint32_t level_height, cogpu_box window,
                                     double radius_x, double radius_y);

/* The source pixels that a warp of the window needs, clipped to the level; empty if none. `radius`
 * is the reach of the kernel in source pixels: 0 for nearest, 1 for the area methods. */
cogpu_box cogpu_coordinates_extent(const cogpu_coordinates *coordinates, double radius_x,
                                   double radius_y, uint32_t level_width, uint32_t level_height);

#endif
