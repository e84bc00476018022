/*
 * GeoTIFF tags for the georeferencing of a profile: pixel scale and tiepoint, a matrix, or GCPs;
 * RPC; GeoKeys. The inverse of georef.c and geokey.c.
 *
 * A north-up transform becomes pixel scale and tiepoint, which all readers support. Any other
 * becomes a ModelTransformation matrix.
 */
#include "image/geokey.h"
#include "image/values.h"
#include "image/write_tags.h"

#include <math.h>
#include <string.h>

enum {
    TIEPOINT_NUMBERS = 6,
    MATRIX_NUMBERS = 16,
    RPC_NUMBERS = 92,
    RPC_ERRORS = 2,
    PIXEL_IS_POINT = 2
};

/* Readers keep this count in 16 bits. */
enum { GCPS_MAX = UINT16_MAX / TIEPOINT_NUMBERS };

/* ---- georeferencing
 * -------------------------------------------------------------------------------- */

static cogpu_status add_doubles(cogpu_tag_list *list, cogpu_arena *arena, uint16_t tag,
                                uint32_t count, const double *numbers, cogpu_error *error) {
    return cogpu_tag_add(list, arena, tag, TYPE_DOUBLE, count, numbers, error);
}

static cogpu_status check_transform(const double transform[6], cogpu_error *error) {
    double area = transform[1] * transform[5] - transform[2] * transform[4];
    if (!all_finite(transform, 6))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the transform has a number that is not finite; leave has_transform 0 "
                          "if there is none");
    if (!isfinite(area))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the transform gives pixels an area that overflows");
    if (area == 0)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the transform gives pixels no area; the width of a pixel is "
                          "transform[1], its height transform[5]");
    return COGPU_OK;
}

/* PixelIsPoint: the tags refer to the pixel centre, the profile's transform to its corner. */
static cogpu_status add_transform(const cogpu_profile *profile, cogpu_arena *arena,
                                  cogpu_tag_list *list, cogpu_error *error) {
    const double *t = profile->transform;
    double half = profile->pixel_is_point ? 0.5 : 0;
    TRY(check_transform(t, error));
    double x = t[0] + half * t[1] + half * t[2], y = t[3] + half * t[4] + half * t[5];
    bool is_north_up = t[1] > 0 && t[5] < 0 && t[2] == 0 && t[4] == 0;
    if (!is_north_up) {
        const double matrix[MATRIX_NUMBERS] = {t[1], t[2], 0, x, t[4], t[5], 0, y, [15] = 1};
        return add_doubles(list, arena, TAG_MODEL_TRANSFORMATION, MATRIX_NUMBERS, matrix, error);
    }
    const double scale[3] = {t[1], -t[5], 0}, tiepoint[TIEPOINT_NUMBERS] = {0, 0, 0, x, y, 0};
    TRY(add_doubles(list, arena, TAG_MODEL_PIXEL_SCALE, 3, scale, error));
    return add_doubles(list, arena, TAG_MODEL_TIEPOINT, TIEPOINT_NUMBERS, tiepoint, error);
}

static cogpu_status add_gcps(const cogpu_profile *profile, cogpu_arena *arena, cogpu_tag_list *list,
                             cogpu_error *error) {
    uint32_t count = profile->gcp_count;
    double *numbers = NULL, shift = profile->pixel_is_point ? 0.5 : 0;
    if (!profile->gcps)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "gcp_count is %u, but gcps is NULL",
                          count);
    if (count > GCPS_MAX)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "%u GCPs exceed the %d that a GeoTIFF can hold", count, GCPS_MAX);
    TRY(cogpu_arena_allocate(arena, (uint64_t)count * TIEPOINT_NUMBERS, sizeof *numbers, &numbers,
                             error));
    for (uint32_t i = 0; i < count; i++) {
        const cogpu_gcp *gcp = &profile->gcps[i];
        const double point[TIEPOINT_NUMBERS] = {
            gcp->column - shift, gcp->row - shift, gcp->pixel_z, gcp->x, gcp->y, gcp->z};
        if (!all_finite(point, TIEPOINT_NUMBERS))
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                              "GCP %u has a number that is not finite", i);
        memcpy(numbers + (size_t)i * TIEPOINT_NUMBERS, point, sizeof point);
    }
    return add_doubles(list, arena, TAG_MODEL_TIEPOINT, count * TIEPOINT_NUMBERS, numbers, error);
}

static cogpu_status add_georeferencing(const cogpu_profile *profile, cogpu_arena *arena,
                                       cogpu_tag_list *list, cogpu_error *error) {
    if (profile->has_transform && profile->gcp_count)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "a GeoTIFF holds a transform or GCPs, not both; leave one out");
    if (profile->has_transform)
        TRY(add_transform(profile, arena, list, error));
    if (profile->gcp_count)
        TRY(add_gcps(profile, arena, list, error));
    if (!profile->rpc)
        return COGPU_OK;
    double rpc[RPC_NUMBERS];
    memcpy(rpc, profile->rpc, sizeof rpc);
    for (int i = 0; i < RPC_ERRORS; i++)
        rpc[i] = isnan(rpc[i]) ? -1 : rpc[i]; /* unknown, as GDAL writes it */
    if (!all_finite(rpc, RPC_NUMBERS))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "rpc has a number that is not finite");
    return add_doubles(list, arena, TAG_RPC_COEFFICIENT, RPC_NUMBERS, rpc, error);
}

/* ---- keys ---------------------------------------------------------------------------------- */

static cogpu_status check_key(const cogpu_geokey *key, cogpu_error *error) {
    bool is_short = key->kind == COGPU_GEOKEY_SHORT, is_double = key->kind == COGPU_GEOKEY_DOUBLE;
    const void *value = is_short    ? (const void *)key->shorts
                        : is_double ? (const void *)key->doubles
                                    : (const void *)key->text;
    if (key->id == 0 || key->id > UINT16_MAX)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "GeoKey %u does not exist; keys are numbered 1 to 65535", key->id);
    if (!is_short && !is_double && key->kind != COGPU_GEOKEY_TEXT)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "GeoKey %u has an unknown kind", key->id);
    if (!value || (key->count == 0 && key->kind != COGPU_GEOKEY_TEXT))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "GeoKey %u has no value", key->id);
    if (!cogpu_geokey_takes(key->id, key->kind))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "GeoKey %u has a value of the wrong type; see the GeoTIFF standard",
                          key->id);
    return COGPU_OK;
}

/* A copy of the profile's keys, with capacity for two more. `pixel_is_point` decides the raster
 * type and `epoch` the epoch, so that a caller can pass another file's keys unchanged. */
static cogpu_status copy_keys(const cogpu_profile *profile, cogpu_arena *arena, cogpu_geokey **keys,
                              uint32_t *count, cogpu_error *error) {
    const cogpu_geokey *from = profile->geokeys;
    uint32_t stated = profile->geokey_count;
    *count = 0;
    if (stated && !from)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "geokey_count is %u, but geokeys is NULL",
                          stated);
    if (stated && profile->crs)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "crs and geokeys are both set; leave one out");
    if (profile->crs)
        TRY(cogpu_write_crs_keys(profile->crs, arena, &from, &stated, error));
    TRY(cogpu_arena_allocate(arena, (uint64_t)stated + 2, sizeof **keys, keys, error));
    for (uint32_t i = 0; i < stated; i++) {
        TRY(check_key(&from[i], error));
        bool is_replaced =
            from[i].id == KEY_RASTER_TYPE || (from[i].id == KEY_EPOCH && profile->epoch != 0);
        if (!is_replaced)
            (*keys)[(*count)++] = from[i];
    }
    return COGPU_OK;
}

/* The three GeoKey tags while they are built. */
typedef struct key_writer {
    uint16_t *shorts;
    double *doubles;
    char *chars;
    uint64_t short_count, double_count, char_count;
} key_writer;

/* Sizes of the tags. Values that do not fit an entry follow the last entry. */
static key_writer measure_keys(const cogpu_geokey *keys, uint32_t count) {
    key_writer sizes = {.short_count = 4 + (uint64_t)count * 4};
    for (uint32_t i = 0; i < count; i++) {
        if (keys[i].kind == COGPU_GEOKEY_TEXT)
            sizes.char_count += strlen(keys[i].text) + 1;
        else if (keys[i].kind == COGPU_GEOKEY_DOUBLE)
            sizes.double_count += keys[i].count;
        else if (keys[i].count > 1)
            sizes.short_count += keys[i].count;
    }
    return sizes;
}

static void append_key(const cogpu_geokey *key, key_writer *to, uint16_t *entry) {
    uint16_t place = 0;
    uint64_t count = key->count, at = 0;
    if (key->kind == COGPU_GEOKEY_TEXT) {
        place = TAG_GEO_ASCII_PARAMS;
        count = strlen(key->text) + 1;
        at = to->char_count;
        memcpy(to->chars + at, key->text, count - 1);
        to->chars[at + count - 1] = '|';
        to->char_count += count;
    } else if (key->kind == COGPU_GEOKEY_DOUBLE) {
        place = TAG_GEO_DOUBLE_PARAMS;
        at = to->double_count;
        memcpy(to->doubles + at, key->doubles, count * sizeof *to->doubles);
        to->double_count += count;
    } else if (count == 1) {
        at = key->shorts[0];
    } else {
        place = TAG_GEO_KEY_DIRECTORY;
        at = to->short_count;
        memcpy(to->shorts + at, key->shorts, count * sizeof *to->shorts);
        to->short_count += count;
    }
    entry[0] = (uint16_t)key->id;
    entry[1] = place;
    entry[2] = (uint16_t)count;
    entry[3] = (uint16_t)at;
}

/* Vertical CRSs and epochs have their present meaning since GeoTIFF 1.1. */
static bool needs_1_1(const cogpu_geokey *keys, uint32_t count) {
    return count && keys[count - 1].id >= KEY_VERTICAL_CRS;
}

static cogpu_status add_key_tags(const cogpu_geokey *keys, uint32_t count, cogpu_arena *arena,
                                 cogpu_tag_list *list, cogpu_error *error) {
    key_writer sizes = measure_keys(keys, count), to = {.short_count = 4 + (uint64_t)count * 4};
    if (sizes.short_count > UINT16_MAX || sizes.double_count > UINT16_MAX ||
        sizes.char_count > UINT16_MAX)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the GeoKeys take more than the 65535 numbers or characters that their "
                          "tags can hold");
    TRY(cogpu_arena_allocate(arena, sizes.short_count, sizeof *to.shorts, &to.shorts, error));
    TRY(cogpu_arena_allocate(arena, sizes.double_count, sizeof *to.doubles, &to.doubles, error));
    TRY(cogpu_arena_allocate(arena, sizes.char_count + 1, 1, &to.chars, error));
    const uint16_t head[4] = {1, 1, needs_1_1(keys, count), (uint16_t)count};
    memcpy(to.shorts, head, sizeof head);
    for (uint32_t i = 0; i < count; i++)
        append_key(&keys[i], &to, to.shorts + 4 + (size_t)i * 4);
    TRY(cogpu_tag_add(list, arena, TAG_GEO_KEY_DIRECTORY, TYPE_SHORT, to.short_count, to.shorts,
                      error));
    if (to.double_count)
        TRY(cogpu_tag_add(list, arena, TAG_GEO_DOUBLE_PARAMS, TYPE_DOUBLE, to.double_count,
                          to.doubles, error));
    if (to.char_count)
        TRY(cogpu_tag_add(list, arena, TAG_GEO_ASCII_PARAMS, TYPE_ASCII, to.char_count + 1,
                          to.chars, error));
    return COGPU_OK;
}

static cogpu_status check_epoch(double epoch, uint32_t key_count, cogpu_error *error) {
    if (!isfinite(epoch))
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "`epoch` is not finite: it must be a decimal year such as 2010.5, or 0 for none");
    if (epoch != 0 && key_count == 0)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "`epoch` needs a CRS: set `crs` or `geokeys` too");
    return COGPU_OK;
}

static cogpu_status add_keys(const cogpu_profile *profile, cogpu_arena *arena, cogpu_tag_list *list,
                             cogpu_error *error) {
    cogpu_geokey *keys = NULL;
    uint32_t count;
    uint16_t raster_type = profile->pixel_is_point ? PIXEL_IS_POINT : 1;
    TRY(copy_keys(profile, arena, &keys, &count, error));
    TRY(check_epoch(profile->epoch, count, error));
    /* Alone the key would only state the default, and GDAL would read an engineering CRS. */
    if (!count && !profile->pixel_is_point)
        return COGPU_OK;
    keys[count++] = (cogpu_geokey){
        .id = KEY_RASTER_TYPE, .kind = COGPU_GEOKEY_SHORT, .count = 1, .shorts = &raster_type};
    if (profile->epoch != 0)
        keys[count++] = (cogpu_geokey){
            .id = KEY_EPOCH, .kind = COGPU_GEOKEY_DOUBLE, .count = 1, .doubles = &profile->epoch};
    cogpu_geokeys_sort(keys, count);
    for (uint32_t i = 1; i < count; i++)
        if (keys[i].id == keys[i - 1].id)
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "GeoKey %u occurs twice", keys[i].id);
    return add_key_tags(keys, count, arena, list, error);
}

cogpu_status cogpu_write_georef_tags(const cogpu_profile *profile, cogpu_arena *arena,
                                     cogpu_tag_list *list, cogpu_error *error) {
    TRY(add_georeferencing(profile, arena, list, error));
    return add_keys(profile, arena, list, error);
}
