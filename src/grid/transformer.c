/*
 * Transformers: see transformer.h. The order of all additions is GDAL's
 * (GDALGenImgProjTransformer), so that positions have the same bits where PROJ's have.
 */
#include "grid/affine.h"
#include "grid/gcp.h"
#include "grid/operations.h"
#include "grid/rpc.h"

#include <stdio.h>
#include <stdlib.h>

typedef enum source_model { BY_AFFINE, BY_GCPS, BY_RPCS } source_model;

struct cogpu_transformer {
    source_model model;
    uint32_t width, height; /* of the target */
    double target[6], target_inverse[6];
    double source[6], source_inverse[6]; /* BY_AFFINE */
    cogpu_gcp_model gcps;
    cogpu_rpc_model rpcs;
    cogpu_reprojection reprojection;
    bool wraps; /* source longitudes are moved to half a turn around `centre` */
    double centre;
};

/* ---- the source's longitudes --------------------------------------------------------------- */

static double wrap_longitude(const cogpu_transformer *in, double longitude) {
    if (longitude < in->centre - 180)
        return longitude + 360;
    return longitude > in->centre + 180 ? longitude - 360 : longitude;
}

static void wrap_longitudes(const cogpu_transformer *in, size_t count, double *x) {
    for (size_t i = 0; in->wraps && i < count; i++)
        x[i] = wrap_longitude(in, x[i]);
}

/* Corners of a raster as pairs x, y: upper left, upper right, lower left, lower right. */
static void find_corners(const cogpu_placement *raster, const double transform[6],
                         double corners[8]) {
    for (int i = 0; i < 4; i++) {
        corners[2 * i] = i & 1 ? raster->width : 0;
        corners[2 * i + 1] = i & 2 ? raster->height : 0;
        apply_affine(transform, &corners[2 * i], &corners[2 * i + 1]);
    }
}

static void find_longitudes(const cogpu_placement *raster, double *west, double *east) {
    double corners[8];
    find_corners(raster, raster->transform, corners);
    *west = *east = corners[0];
    for (int i = 2; i < 8; i += 2) {
        *west = fmin(*west, corners[i]);
        *east = fmax(*east, corners[i]);
    }
}

/* A geographic grid across one antimeridian. */
static bool crosses_antimeridian(const cogpu_transformer *in, const cogpu_placement *target) {
    double west, east;
    find_longitudes(target, &west, &east);
    return in->reprojection.to_degrees &&
           ((fabs(west) < 180 && east > 180) || (fabs(east) < 180 && west < -180));
}

/* GDAL's CENTER_LONG, a text of 6 digits. A source of more than a turn has one only for a grid
 * across the antimeridian (gdalwarp -te). */
static void find_centre(cogpu_transformer *made, const cogpu_placement *source,
                        const cogpu_placement *target) {
    char text[32];
    double west, east;
    find_longitudes(source, &west, &east);
    made->wraps = made->reprojection.from_degrees &&
                  (east - west <= 360 || crosses_antimeridian(made, target));
    snprintf(text, sizeof text, "%g", (east + west) / 2);
    made->centre = strtod(text, NULL);
}

/* ---- open ---------------------------------------------------------------------------------- */

static cogpu_status invert_placement(const cogpu_placement *placement, const char *name,
                                     double inverse[6], cogpu_error *error) {
    for (int i = 0; i < 6; i++)
        if (!isfinite(placement->transform[i]))
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                              "the transform of the %s is not finite", name);
    if (!invert_affine(placement->transform, inverse))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the transform of the %s has no inverse",
                          name);
    return COGPU_OK;
}

/* Without any CRS, coordinates are the same. */
static cogpu_status find_reprojection(cogpu_transformer *made, const char *source,
                                      const char *target, const double *corners,
                                      cogpu_operations *operations, cogpu_error *error) {
    if (!source && !target)
        return COGPU_OK;
    if (!source || !target)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the %s has no CRS, and the %s has one",
                          source ? "grid" : "source", source ? "source" : "grid");
    return cogpu_operations_find(operations, source, target, corners, &made->reprojection, error);
}

/* GDAL computes the area of interest without the rotation. */
static cogpu_status open_affine_source(cogpu_transformer *made, const cogpu_placement *source,
                                       const cogpu_placement *target, cogpu_operations *operations,
                                       cogpu_error *error) {
    const double *t = source->transform, upright[6] = {t[0], t[1], 0, t[3], 0, t[5]};
    double corners[8];
    TRY(invert_placement(source, "source", made->source_inverse, error));
    for (int i = 0; i < 6; i++)
        made->source[i] = t[i];
    find_corners(source, upright, corners);
    TRY(find_reprojection(made, source->crs, target->crs, corners, operations, error));
    find_centre(made, source, target);
    return COGPU_OK;
}

/* GDAL has no centre here, and loses pixels beyond the antimeridian. */
static cogpu_status open_gcp_source(cogpu_transformer *made, const cogpu_placement *source,
                                    const cogpu_placement *target, cogpu_operations *operations,
                                    cogpu_error *error) {
    made->model = BY_GCPS;
    TRY(find_reprojection(made, source->crs, target->crs, NULL, operations, error));
    TRY(cogpu_gcp_model_fit(source->gcps, source->gcp_count, made->reprojection.from_degrees,
                            &made->gcps, error));
    made->wraps = made->gcps.is_unwrapped;
    made->centre = made->gcps.longitude;
    return COGPU_OK;
}

static cogpu_status open_rpc_source(cogpu_transformer *made, const cogpu_placement *source,
                                    const cogpu_placement *target, cogpu_operations *operations,
                                    cogpu_error *error) {
    made->model = BY_RPCS;
    TRY(find_reprojection(made, "EPSG:4326", target->crs, NULL, operations, error));
    return cogpu_rpc_model_create(source, operations, &made->rpcs, error);
}

static cogpu_status fill_transformer(cogpu_transformer *made, const cogpu_placement *source,
                                     const cogpu_placement *target, cogpu_operations *operations,
                                     cogpu_error *error) {
    made->width = target->width;
    made->height = target->height;
    if (!target->has_transform)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the grid has no transform");
    TRY(invert_placement(target, "grid", made->target_inverse, error));
    for (int i = 0; i < 6; i++)
        made->target[i] = target->transform[i];
    if (source->has_transform)
        return open_affine_source(made, source, target, operations, error);
    if (source->gcp_count > 0)
        return open_gcp_source(made, source, target, operations, error);
    if (source->rpc)
        return open_rpc_source(made, source, target, operations, error);
    return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                      "the source has no transform, no GCPs and no RPCs");
}

cogpu_status cogpu_transformer_open(const cogpu_placement *source, const cogpu_placement *target,
                                    cogpu_operations *operations, cogpu_transformer **transformer,
                                    cogpu_error *error) {
    *transformer = NULL;
    cogpu_transformer *made = cogpu_allocate(sizeof *made);
    if (!made)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "no memory for a transformer");
    *made = (cogpu_transformer){0};
    cogpu_status status = fill_transformer(made, source, target, operations, error);
    if (status != COGPU_OK) {
        cogpu_transformer_close(made);
        return status;
    }
    *transformer = made;
    return COGPU_OK;
}

void cogpu_transformer_close(cogpu_transformer *transformer) {
    cogpu_release(transformer);
}

/* ---- transform ----------------------------------------------------------------------------- */

static void apply_all(const double transform[6], size_t count, double *x, double *y) {
    for (size_t i = 0; i < count; i++)
        apply_affine(transform, &x[i], &y[i]);
}

static void apply_source(const cogpu_transformer *in, size_t count, double *x, double *y) {
    if (in->model == BY_GCPS)
        cogpu_gcp_to_crs(&in->gcps, count, x, y);
    else if (in->model == BY_RPCS)
        cogpu_rpc_to_crs(&in->rpcs, count, x, y);
    else
        apply_all(in->source, count, x, y);
}

static void apply_source_inverse(const cogpu_transformer *in, size_t count, double *x, double *y) {
    if (in->model == BY_GCPS)
        cogpu_gcp_to_pixel(&in->gcps, count, x, y);
    else if (in->model == BY_RPCS)
        cogpu_rpc_to_pixel(&in->rpcs, count, x, y);
    else
        apply_all(in->source_inverse, count, x, y);
}

/* Both coordinates of a position are numbers, or none is. */
static void mark_failed(size_t count, double *x, double *y) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i]) || !isfinite(y[i]))
            x[i] = y[i] = NAN;
}

void cogpu_to_source(const cogpu_transformer *transformer, size_t count, double *x, double *y) {
    apply_all(transformer->target, count, x, y);
    cogpu_reproject(&transformer->reprojection, true, count, x, y);
    wrap_longitudes(transformer, count, x);
    apply_source_inverse(transformer, count, x, y);
    mark_failed(count, x, y);
}

void cogpu_to_target(const cogpu_transformer *transformer, size_t count, double *x, double *y) {
    apply_source(transformer, count, x, y);
    wrap_longitudes(transformer, count, x);
    cogpu_reproject(&transformer->reprojection, false, count, x, y);
    apply_all(transformer->target_inverse, count, x, y);
    mark_failed(count, x, y);
}

bool cogpu_source_is_round(const cogpu_transformer *transformer, uint32_t width) {
    const double *source = transformer->source, pixel = fabs(source[1]);
    return transformer->model == BY_AFFINE && transformer->wraps && source[2] == 0 &&
           source[4] == 0 && fabs(pixel * width - 360) < 0.1 * pixel;
}

/* The turn by which wrapping moves the target's longitudes; false if it does not move all of them
 * alike. */
static bool find_turn(const cogpu_transformer *in, double *turn) {
    *turn = 0;
    for (int i = 0; in->wraps && i < 4; i++) {
        double x = i & 1 ? in->width : 0, y = i & 2 ? in->height : 0;
        apply_affine(in->target, &x, &y);
        double moved = wrap_longitude(in, x) - x;
        double whole = moved > 180 ? 360 : moved < -180 ? -360 : 0;
        if (i > 0 && whole != *turn)
            return false;
        *turn = whole;
    }
    return true;
}

bool cogpu_transformer_is_affine(const cogpu_transformer *transformer, double affine[6]) {
    const double *to = transformer->source_inverse, *from = transformer->target;
    double turn;
    if (transformer->model != BY_AFFINE || transformer->reprojection.operation ||
        !find_turn(transformer, &turn))
        return false;
    affine[0] = to[0] + (from[0] + turn) * to[1] + from[3] * to[2];
    affine[1] = from[1] * to[1] + from[4] * to[2];
    affine[2] = from[2] * to[1] + from[5] * to[2];
    affine[3] = to[3] + (from[0] + turn) * to[4] + from[3] * to[5];
    affine[4] = from[1] * to[4] + from[4] * to[5];
    affine[5] = from[2] * to[4] + from[5] * to[5];
    return true;
}
