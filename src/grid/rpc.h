/* Rational polynomial coefficients: longitude, latitude (WGS 84) and height to a pixel, and back
 * for a height that is constant or that of a DEM. */
#ifndef COGPU_GRID_RPC_H
#define COGPU_GRID_RPC_H

#include "grid/operations.h"

/* One rational polynomial, of the line or of the sample. */
typedef struct cogpu_rpc_ratio {
    const double *numerator, *denominator; /* 20 terms each */
    double offset, scale;
} cogpu_rpc_ratio;

typedef struct cogpu_rpc_model {
    cogpu_rpc_ratio row, column;
    double longitude, longitude_scale, latitude, latitude_scale, height, height_scale;
    double to_degrees[6]; /* affine transform of pixels, from which the inverse starts */
    double constant_height;
    const cogpu_height_model *dem; /* or NULL */
    double dem_inverse[6];
    cogpu_reprojection from_dem; /* CRS of the DEM to WGS 84 */
} cogpu_rpc_model;

/* Uses rpc, rpc_height and rpc_dem of the placement, whose memory must stay. */
cogpu_status cogpu_rpc_model_create(const cogpu_placement *source, cogpu_operations *operations,
                                    cogpu_rpc_model *model, cogpu_error *error);

/* x is the longitude. The inverse fails (NaN) where iterations do not converge. */
void cogpu_rpc_to_pixel(const cogpu_rpc_model *model, size_t count, double *x, double *y);
void cogpu_rpc_to_crs(const cogpu_rpc_model *model, size_t count, double *x, double *y);

#endif
