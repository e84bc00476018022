/*
 * Models of ground control points: pixels of a source to its CRS and back.
 *
 *     points    model
 *     2         a north-up transform
 *     3         polynomial of order 1
 *     4, 5      projective transform (homography)
 *     6 and up  polynomial of order 2
 *
 * These are the choices of GDAL 3.12.
 */
#ifndef COGPU_GRID_GCP_H
#define COGPU_GRID_GCP_H

#include "grid/transformer.h"

enum { COGPU_GCP_TERMS = 6 };

/* Two polynomials of u = (x - centre) / scale, v = (y - centre) / scale: 1, u, v, uu, uv, vv. */
typedef struct cogpu_gcp_polynomials {
    uint32_t terms;
    double centre[2], scale[2];
    double x[COGPU_GCP_TERMS], y[COGPU_GCP_TERMS];
} cogpu_gcp_polynomials;

typedef struct cogpu_gcp_model {
    bool is_projective;
    cogpu_gcp_polynomials to_crs, to_pixel;
    double matrix[9], inverse[9]; /* projective: to the CRS, to the pixel */
    bool is_unwrapped;            /* longitudes west of the antimeridian are above 180 */
    double longitude;             /* in the middle of the points */
} cogpu_gcp_model;

/* `in_degrees`: the CRS is geographic. */
cogpu_status cogpu_gcp_model_fit(const cogpu_gcp *points, uint32_t count, bool in_degrees,
                                 cogpu_gcp_model *model, cogpu_error *error);

void cogpu_gcp_to_crs(const cogpu_gcp_model *model, size_t count, double *x, double *y);
void cogpu_gcp_to_pixel(const cogpu_gcp_model *model, size_t count, double *x, double *y);

#endif
