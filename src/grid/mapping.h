/*
 * Positions of the pixels of a raster (the grid) in pixels of another raster. A warp maps the
 * target into a level of the source; `sum` maps a level of the source into the target too.
 */
#ifndef COGPU_GRID_MAPPING_H
#define COGPU_GRID_MAPPING_H

#include "base/pool.h"
#include "grid/transformer.h"

typedef struct cogpu_mapping {
    const cogpu_transformer *transformer;
    cogpu_pool *pool;           /* shares large batches; may be NULL */
    uint32_t width, height;     /* of the grid */
    bool is_forward;            /* from the source into the target */
    double from_x, from_y;      /* transformer's pixels for a pixel of the grid */
    double to_x, to_y;          /* pixels of the result for a pixel of the transformer */
    double offset;              /* of a pixel's position from its corner: 0.5, its centre, or 0 */
    double last_x, last_y;      /* of the last corner, or a little after the last pixel's centre */
    double to_width, to_height; /* of the other raster */
    bool is_affine;
    double affine[6]; /* from positions in the grid to results */
} cogpu_mapping;

/* Target pixels to pixels of a level of the source, or the other way. */
cogpu_mapping cogpu_mapping_to_source(const cogpu_transformer *transformer,
                                      const cogpu_placement *source, const cogpu_placement *target,
                                      uint32_t level_width, uint32_t level_height, bool of_corners,
                                      cogpu_pool *pool);
cogpu_mapping cogpu_mapping_to_target(const cogpu_transformer *transformer,
                                      const cogpu_placement *source, const cogpu_placement *target,
                                      uint32_t level_width, uint32_t level_height,
                                      cogpu_pool *pool);

/* Transforms positions in place. What has no position, or an infinite one, becomes NaN. */
void cogpu_mapping_transform(const cogpu_mapping *mapping, size_t count, double *x, double *y);

#endif
