/*
 * The step between two CRSs, for transformer.c. operations.c does it with PROJ;
 * operations_absent.c, in a build without PROJ, knows only CRSs of the same text.
 */
#ifndef COGPU_GRID_OPERATIONS_H
#define COGPU_GRID_OPERATIONS_H

#include "grid/transformer.h"

typedef struct cogpu_operation cogpu_operation;

typedef struct cogpu_reprojection {
    cogpu_operations *operations;
    cogpu_operation *operation;    /* source CRS to target CRS; NULL: both are the same */
    bool from_degrees, to_degrees; /* the source CRS, the target CRS is geographic, in degrees */
} cogpu_reprojection;

/* The operation that GDAL chooses for an area with these corners, pairs x, y: upper left,
 * upper right, lower left, lower right, in the source CRS. `corners` may be NULL: unknown. */
cogpu_status cogpu_operations_find(cogpu_operations *operations, const char *source,
                                   const char *target, const double *corners,
                                   cogpu_reprojection *found, cogpu_error *error);

/* Transforms coordinates in place, from source to target CRS or back: x east, y north. A position
 * that cannot be transformed becomes NaN. Any thread. */
void cogpu_reproject(const cogpu_reprojection *reprojection, bool back, size_t count, double *x,
                     double *y);

#endif
