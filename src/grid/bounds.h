/* Boxes in units of a CRS. */
#ifndef COGPU_GRID_BOUNDS_H
#define COGPU_GRID_BOUNDS_H

#include "grid/transformer.h"

typedef struct cogpu_bounds {
    double left, bottom, right, top;
} cogpu_bounds;

/* The box that holds `from` in another CRS: its border is densified as by gdalwarp -te_srs. A box
 * of longitudes whose left is greater than its right crosses the antimeridian; the result never
 * does: its right may exceed 180. COGPU_INVALID_ARGUMENT if the border has no positions. */
cogpu_status cogpu_bounds_reproject(const cogpu_bounds *from, const char *from_crs,
                                    const char *to_crs, cogpu_operations *operations,
                                    cogpu_bounds *to, cogpu_error *error);

#endif
