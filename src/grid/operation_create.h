/*
 * CRSs and coordinate operations as PROJ objects, for operations.c. They belong to the context that
 * made them, which one thread at a time may use.
 */
#ifndef COGPU_GRID_OPERATION_CREATE_H
#define COGPU_GRID_OPERATION_CREATE_H

#include "image/image.h"

#include <proj.h>

/* A CRS without its height. */
typedef struct cogpu_flat_crs {
    PJ *crs;
    bool swaps;     /* its axes are y, x, as in EPSG:4326: coordinates are swapped for PROJ */
    PJ *to_degrees; /* to its longitude and latitude; NULL if it has none, or if they are its own */
    bool in_degrees; /* geographic */
} cogpu_flat_crs;

/* In degrees. west > east: across the antimeridian. */
typedef struct cogpu_area {
    double west, south, east, north;
    bool is_known;
} cogpu_area;

/* Fails if PROJ does not know the CRS. */
cogpu_status cogpu_flat_crs_create(PJ_CONTEXT *context, const char *text, cogpu_flat_crs *crs,
                                   cogpu_error *error);
void cogpu_flat_crs_destroy(cogpu_flat_crs *crs);

/* Equivalent definitions: names and the order of axes do not matter (GDAL's IsSame). */
bool cogpu_flat_crs_equal(PJ_CONTEXT *context, const cogpu_flat_crs *a, const cogpu_flat_crs *b);

/* The area of interest by which GDAL has PROJ choose an operation: that of these corners
 * (pairs x, y: upper left, upper right, lower left, lower right), if it is within -180..180,
 * -90..90. */
cogpu_area cogpu_area_compute(const cogpu_flat_crs *crs, const double *corners);

/* With axes in the order of the CRSs, as in GDAL. NULL if PROJ has no operation. */
PJ *cogpu_operation_create(PJ_CONTEXT *context, const cogpu_flat_crs *from,
                           const cogpu_flat_crs *to, const cogpu_area *area);

/* Areas of use of all operations between two CRSs, as far as they are known and differ; none if
 * there is one operation alone. */
cogpu_status cogpu_operation_areas(PJ_CONTEXT *context, const cogpu_flat_crs *from,
                                   const cogpu_flat_crs *to, cogpu_arena *arena, cogpu_area **areas,
                                   uint32_t *count, cogpu_error *error);

/* Whether PROJ chooses the same for both areas of interest; see README.md. */
bool cogpu_area_choice_equal(const cogpu_area *areas, uint32_t count, const cogpu_area *a,
                             const cogpu_area *b);

#endif
