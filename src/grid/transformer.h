/*
 * Transforms between pixels of a target grid and pixels of a source raster:
 *
 *     target pixel -> target CRS -> source CRS -> source pixel
 *
 * The first step is an affine transform. The second is PROJ's. The last is the inverse of an affine
 * transform, a polynomial of ground control points, or RPCs.
 */
#ifndef COGPU_GRID_TRANSFORMER_H
#define COGPU_GRID_TRANSFORMER_H

#include "image/image.h"

/* Heights of a DEM, for RPCs. */
typedef struct cogpu_height_model {
    uint32_t width, height;
    const float *heights; /* row-major; NaN: unknown, which counts as 0 */
    const char *crs;
    double transform[6];
} cogpu_height_model;

/* How the pixels of a raster lie in its CRS. Memory that it points to must stay. */
typedef struct cogpu_placement {
    uint32_t width, height;
    const char *crs; /* WKT or another text that cogpu_crs_create accepts; NULL: unknown */
    bool has_transform;
    double transform[6]; /* GDAL's geotransform */
    const cogpu_gcp *gcps;
    uint32_t gcp_count;
    const double *rpc; /* 92 numbers, or NULL; used if there is neither transform nor GCPs */
    double rpc_height; /* constant height above the ellipsoid */
    const cogpu_height_model *rpc_dem; /* in its place; or NULL */
} cogpu_placement;

/* Coordinate operations that transformers share, by pair of CRSs: creating one takes PROJ
 * milliseconds. Any thread may use it. */
typedef struct cogpu_operations cogpu_operations;
cogpu_status cogpu_operations_open(cogpu_operations **operations, cogpu_error *error);
void cogpu_operations_close(cogpu_operations *operations); /* NULL is allowed */

typedef struct cogpu_transformer cogpu_transformer;

/* COGPU_INVALID_ARGUMENT if a transform has no inverse, one of the CRSs is missing or unknown, or
 * PROJ has no operation between them. The operations must outlive the transformer. */
cogpu_status cogpu_transformer_open(const cogpu_placement *source, const cogpu_placement *target,
                                    cogpu_operations *operations, cogpu_transformer **transformer,
                                    cogpu_error *error);
void cogpu_transformer_close(cogpu_transformer *transformer); /* NULL is allowed */

/* Transforms positions in place. A position that cannot be transformed becomes NaN. Any thread. */
void cogpu_to_source(const cogpu_transformer *transformer, size_t count, double *x, double *y);
void cogpu_to_target(const cogpu_transformer *transformer, size_t count, double *x, double *y);

/* Whether the columns of a source, which is so many pixels wide, are a turn round the Earth. */
bool cogpu_source_is_round(const cogpu_transformer *transformer, uint32_t width);

/* Whether the transform is affine: no reprojection, GCPs or RPCs. Then *affine is the one from
 * target pixels to source pixels, as a geotransform. */
bool cogpu_transformer_is_affine(const cogpu_transformer *transformer, double affine[6]);

#endif
