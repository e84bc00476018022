/*
 * Georeferencing of a directory: geotransform or GCPs, GeoKeys, CRS, RPC. GDAL's rules for
 * contradicting tags apply here, so that all other code sees a geotransform of pixel corners.
 */
#include "image/geokey.h"
#include "image/values.h"

#include <math.h>

enum { TIEPOINT_NUMBERS = 6, MATRIX_NUMBERS = 16, RPC_NUMBERS = 92, PIXEL_IS_POINT = 2 };

typedef struct place_tags {
    const double *scale, *tiepoints, *matrix;
    uint32_t scale_count, tiepoint_count, matrix_count;
} place_tags;

static cogpu_status read_tags(const cogpu_tiff *tiff, uint32_t directory, cogpu_arena *arena,
                              place_tags *tags, const char **warning, cogpu_error *error) {
    TRY(cogpu_values_doubles(tiff, directory, TAG_MODEL_PIXEL_SCALE, arena, &tags->scale,
                             &tags->scale_count, warning, error));
    TRY(cogpu_values_doubles(tiff, directory, TAG_MODEL_TIEPOINT, arena, &tags->tiepoints,
                             &tags->tiepoint_count, warning, error));
    return cogpu_values_doubles(tiff, directory, TAG_MODEL_TRANSFORMATION, arena, &tags->matrix,
                                &tags->matrix_count, warning, error);
}

static bool has_scale(const place_tags *tags) {
    return tags->scale_count >= 2 && isfinite(tags->scale[0]) && isfinite(tags->scale[1]) &&
           tags->scale[0] != 0 && tags->scale[1] != 0;
}

/* ModelPixelScale needs a tiepoint: any pixel, even outside the image. */
static bool from_scale(const place_tags *tags, double transform[6], cogpu_arena *arena,
                       const char **warning) {
    if (tags->tiepoint_count < TIEPOINT_NUMBERS) {
        cogpu_warn(arena, warning, "ModelPixelScale without ModelTiepoint was ignored");
        return false;
    }
    if (tags->scale[1] < 0)
        cogpu_warn(arena, warning, "the y scale is negative; its absolute value is used");
    const double *point = tags->tiepoints;
    double a = tags->scale[0], e = -fabs(tags->scale[1]);
    double found[6] = {point[3] - point[0] * a, a, 0, point[4] - point[1] * e, 0, e};
    for (int i = 0; i < 6; i++)
        transform[i] = found[i];
    return true;
}

static void from_matrix(const double matrix[MATRIX_NUMBERS], double transform[6]) {
    static const int order[6] = {3, 0, 1, 7, 4, 5};
    for (int i = 0; i < 6; i++)
        transform[i] = matrix[order[i]];
}

/* PixelIsPoint: the tags refer to the pixel centre, a geotransform to its corner. */
static void shift_to_corner(double transform[6]) {
    transform[0] -= 0.5 * transform[1] + 0.5 * transform[2];
    transform[3] -= 0.5 * transform[4] + 0.5 * transform[5];
}

static void find_transform(const place_tags *tags, cogpu_georef *georef, cogpu_arena *arena,
                           const char **warning) {
    double transform[6];
    if (tags->scale_count && !has_scale(tags))
        cogpu_warn(arena, warning, "ModelPixelScale is zero, not finite or too short: ignored");
    if (has_scale(tags)) {
        if (!from_scale(tags, transform, arena, warning))
            return;
    } else if (tags->matrix_count == MATRIX_NUMBERS) {
        from_matrix(tags->matrix, transform);
    } else {
        if (tags->matrix_count)
            cogpu_warn(arena, warning, "ModelTransformation has %u numbers, expected 16: ignored",
                       tags->matrix_count);
        return;
    }
    if (georef->pixel_is_point)
        shift_to_corner(transform);
    double area = transform[1] * transform[5] - transform[2] * transform[4];
    if (!all_finite(transform, 6) || area == 0) {
        cogpu_warn(arena, warning,
                   "the transform gives pixels no finite position or size: ignored");
        return;
    }
    georef->has_transform = true;
    for (int i = 0; i < 6; i++)
        georef->transform[i] = transform[i];
}

static cogpu_status read_gcp_tags(const place_tags *tags, cogpu_georef *georef, cogpu_arena *arena,
                                  const char **warning, cogpu_error *error) {
    uint32_t count = tags->tiepoint_count / TIEPOINT_NUMBERS;
    double shift = georef->pixel_is_point ? 0.5 : 0;
    cogpu_gcp *gcps = NULL;
    if (tags->tiepoint_count % TIEPOINT_NUMBERS)
        cogpu_warn(arena, warning, "ModelTiepoint has %u numbers, not a multiple of 6",
                   tags->tiepoint_count);
    if (!count)
        return COGPU_OK;
    if (!all_finite(tags->tiepoints, count * TIEPOINT_NUMBERS)) {
        cogpu_warn(arena, warning, "ModelTiepoint has numbers that are not finite: ignored");
        return COGPU_OK;
    }
    TRY(cogpu_arena_allocate(arena, count, sizeof *gcps, &gcps, error));
    for (uint32_t i = 0; i < count; i++) {
        const double *point = tags->tiepoints + (size_t)i * TIEPOINT_NUMBERS;
        gcps[i] = (cogpu_gcp){.column = point[0] + shift,
                              .row = point[1] + shift,
                              .pixel_z = point[2],
                              .x = point[3],
                              .y = point[4],
                              .z = point[5]};
    }
    georef->gcps = gcps;
    georef->gcp_count = count;
    return COGPU_OK;
}

/* Vertical CRSs have their present meaning since GeoTIFF 1.1. */
static bool is_version_1_1(const cogpu_tiff *tiff, uint32_t directory) {
    const cogpu_entry *entry = cogpu_tiff_find(tiff, directory, TAG_GEO_KEY_DIRECTORY);
    uint64_t minor;
    return entry && cogpu_tiff_u64s(tiff, entry, 2, 1, &minor, NULL) == COGPU_OK && minor > 0;
}

/* With a vertical CRS the third axis of scale and tiepoint applies to the sample values. */
static void find_z_scale(const place_tags *tags, uint32_t bands, cogpu_georef *georef) {
    if (bands != 1 || !georef->has_crs || !georef->crs.vertical || !has_scale(tags) ||
        tags->scale_count < 3 || tags->tiepoint_count < TIEPOINT_NUMBERS)
        return;
    double scale = tags->scale[2], offset = tags->tiepoints[5] - tags->tiepoints[2] * scale;
    if (!isfinite(scale) || !isfinite(offset) || scale == 0)
        return;
    georef->has_z_scale = true;
    georef->z_scale = scale;
    georef->z_offset = offset;
}

static cogpu_status read_rpc(const cogpu_tiff *tiff, uint32_t directory, cogpu_arena *arena,
                             cogpu_georef *georef, const char **warning, cogpu_error *error) {
    const double *rpc;
    uint32_t count;
    TRY(cogpu_values_doubles(tiff, directory, TAG_RPC_COEFFICIENT, arena, &rpc, &count, warning,
                             error));
    if (count == RPC_NUMBERS && all_finite(rpc, count))
        georef->rpc = rpc;
    else if (count)
        cogpu_warn(arena, warning, "RPCCoefficient does not hold 92 finite numbers: ignored");
    return COGPU_OK;
}

cogpu_status cogpu_georef_read(const cogpu_tiff *tiff, uint32_t directory, uint32_t bands,
                               cogpu_arena *arena, cogpu_georef *georef, const char **warning,
                               cogpu_error *error) {
    place_tags tags;
    *georef = (cogpu_georef){0};
    TRY(cogpu_geokeys_read(tiff, directory, arena, georef, warning, error));
    cogpu_crs_from_keys(georef);
    TRY(read_tags(tiff, directory, arena, &tags, warning, error));
    georef->pixel_is_point = cogpu_geokey_short(georef, KEY_RASTER_TYPE) == PIXEL_IS_POINT;
    find_transform(&tags, georef, arena, warning);
    if (!georef->has_transform)
        TRY(read_gcp_tags(&tags, georef, arena, warning, error));
    if (is_version_1_1(tiff, directory))
        find_z_scale(&tags, bands, georef);
    return read_rpc(tiff, directory, arena, georef, warning, error);
}
