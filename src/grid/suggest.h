/* The grid that gdalwarp suggests for one source, for suggest.c and complete.c. */
#ifndef COGPU_GRID_SUGGEST_H
#define COGPU_GRID_SUGGEST_H

#include "grid/bounds.h"
#include "grid/grid.h"

typedef struct cogpu_suggestion {
    cogpu_bounds bounds;
    double pixel_x, pixel_y; /* size, both positive */
    uint32_t width, height;
} cogpu_suggestion;

/* Of several sources: the union of the bounds, the least pixel sizes. */
cogpu_status cogpu_suggest_all(const cogpu_grid_sources *sources, const char *crs,
                               cogpu_suggestion *suggestion, cogpu_error *error);

/* resolution.c: the least resolution at 10 x 10 points of the box, without those below a tenth of
 * the median. False if it says nothing. */
bool cogpu_measure_resolution(const cogpu_transformer *transformer, const cogpu_placement *source,
                              const cogpu_bounds *box, double *resolution);

/* Transforms between pixels of a source and coordinates of a CRS: as into a grid whose pixels are
 * units. */
cogpu_status cogpu_open_to_crs(const cogpu_placement *source, const char *crs,
                               cogpu_operations *operations, cogpu_transformer **transformer,
                               cogpu_error *error);

/* Whether a CRS is geographic, in degrees. */
cogpu_status cogpu_crs_in_degrees(const char *crs, cogpu_operations *operations, bool *in_degrees,
                                  cogpu_error *error);

/* Fills the transform and size of a grid. COGPU_INVALID_ARGUMENT if it has no pixels, or more than
 * 2^31 - 1 along one side. */
cogpu_status cogpu_grid_place(cogpu_placement *target, double left, double top, double pixel_x,
                              double pixel_y, double width, double height, cogpu_error *error);

#endif
