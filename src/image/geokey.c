/*
 * Parses the GeoKey directory (GeoTIFF 1.1 section 7.1) into typed keys in ascending order. Indices
 * into the double and ASCII tags are checked here, once. A key that points outside its tag, has no
 * value, has the wrong type or occurs a second time is dropped.
 */
#include "image/geokey.h"

#include "image/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The three tags and their lengths. */
typedef struct key_tags {
    const uint16_t *shorts;
    const double *doubles;
    const char *chars;
    uint32_t short_count, double_count, char_count;
} key_tags;

typedef struct known_key {
    uint16_t id;
    uint16_t kind;
    const char *name;
} known_key;

/* Names of GeoTIFF 1.1 without the suffix GeoKey, ascending by id. */
static const known_key known_keys[] = {
    {1024, COGPU_GEOKEY_SHORT, "GTModelType"},
    {1025, COGPU_GEOKEY_SHORT, "GTRasterType"},
    {1026, COGPU_GEOKEY_TEXT, "GTCitation"},
    {2048, COGPU_GEOKEY_SHORT, "GeodeticCRS"},
    {2049, COGPU_GEOKEY_TEXT, "GeodeticCitation"},
    {2050, COGPU_GEOKEY_SHORT, "GeodeticDatum"},
    {2051, COGPU_GEOKEY_SHORT, "PrimeMeridian"},
    {2052, COGPU_GEOKEY_SHORT, "GeogLinearUnits"},
    {2053, COGPU_GEOKEY_DOUBLE, "GeogLinearUnitSize"},
    {2054, COGPU_GEOKEY_SHORT, "GeogAngularUnits"},
    {2055, COGPU_GEOKEY_DOUBLE, "GeogAngularUnitSize"},
    {2056, COGPU_GEOKEY_SHORT, "Ellipsoid"},
    {2057, COGPU_GEOKEY_DOUBLE, "EllipsoidSemiMajorAxis"},
    {2058, COGPU_GEOKEY_DOUBLE, "EllipsoidSemiMinorAxis"},
    {2059, COGPU_GEOKEY_DOUBLE, "EllipsoidInvFlattening"},
    {2060, COGPU_GEOKEY_SHORT, "GeogAzimuthUnits"},
    {2061, COGPU_GEOKEY_DOUBLE, "PrimeMeridianLongitude"},
    {2062, COGPU_GEOKEY_DOUBLE, "GeogTOWGS84"},
    {3072, COGPU_GEOKEY_SHORT, "ProjectedCRS"},
    {3073, COGPU_GEOKEY_TEXT, "ProjectedCitation"},
    {3074, COGPU_GEOKEY_SHORT, "Projection"},
    {3075, COGPU_GEOKEY_SHORT, "ProjMethod"},
    {3076, COGPU_GEOKEY_SHORT, "ProjLinearUnits"},
    {3077, COGPU_GEOKEY_DOUBLE, "ProjLinearUnitSize"},
    {3078, COGPU_GEOKEY_DOUBLE, "ProjStdParallel1"},
    {3079, COGPU_GEOKEY_DOUBLE, "ProjStdParallel2"},
    {3080, COGPU_GEOKEY_DOUBLE, "ProjNatOriginLong"},
    {3081, COGPU_GEOKEY_DOUBLE, "ProjNatOriginLat"},
    {3082, COGPU_GEOKEY_DOUBLE, "ProjFalseEasting"},
    {3083, COGPU_GEOKEY_DOUBLE, "ProjFalseNorthing"},
    {3084, COGPU_GEOKEY_DOUBLE, "ProjFalseOriginLong"},
    {3085, COGPU_GEOKEY_DOUBLE, "ProjFalseOriginLat"},
    {3086, COGPU_GEOKEY_DOUBLE, "ProjFalseOriginEasting"},
    {3087, COGPU_GEOKEY_DOUBLE, "ProjFalseOriginNorthing"},
    {3088, COGPU_GEOKEY_DOUBLE, "ProjCenterLong"},
    {3089, COGPU_GEOKEY_DOUBLE, "ProjCenterLat"},
    {3090, COGPU_GEOKEY_DOUBLE, "ProjCenterEasting"},
    {3091, COGPU_GEOKEY_DOUBLE, "ProjCenterNorthing"},
    {3092, COGPU_GEOKEY_DOUBLE, "ProjScaleAtNatOrigin"},
    {3093, COGPU_GEOKEY_DOUBLE, "ProjScaleAtCenter"},
    {3094, COGPU_GEOKEY_DOUBLE, "ProjAzimuthAngle"},
    {3095, COGPU_GEOKEY_DOUBLE, "ProjStraightVertPoleLong"},
    {3096, COGPU_GEOKEY_DOUBLE, "ProjRectifiedGridAngle"},
    {4096, COGPU_GEOKEY_SHORT, "Vertical"},
    {4097, COGPU_GEOKEY_TEXT, "VerticalCitation"},
    {4098, COGPU_GEOKEY_SHORT, "VerticalDatum"},
    {4099, COGPU_GEOKEY_SHORT, "VerticalUnits"},
    {5120, COGPU_GEOKEY_DOUBLE, "CoordinateEpoch"},
};

static int compare_known(const void *id, const void *known) {
    return (int)*(const uint16_t *)id - (int)((const known_key *)known)->id;
}

static const known_key *find_known(uint16_t id) {
    return bsearch(&id, known_keys, sizeof known_keys / sizeof *known_keys, sizeof *known_keys,
                   compare_known);
}

static int compare_keys(const void *a, const void *b) {
    uint32_t first = ((const cogpu_geokey *)a)->id, second = ((const cogpu_geokey *)b)->id;
    return first < second ? -1 : first > second;
}

void cogpu_geokeys_sort(cogpu_geokey *keys, uint32_t count) {
    if (count)
        qsort(keys, count, sizeof *keys, compare_keys);
}

bool cogpu_geokey_takes(uint32_t id, cogpu_geokey_kind kind) {
    const known_key *known = id <= UINT16_MAX ? find_known((uint16_t)id) : NULL;
    return !known || known->kind == (uint16_t)kind;
}

static bool is_range_inside(uint32_t index, uint32_t count, uint32_t bound) {
    return count > 0 && index < bound && count <= bound - index;
}

/* A key's text ends with '|'. Some writers end it with NUL, or not at all. */
static cogpu_status copy_key_text(const char *text, uint32_t bytes, cogpu_arena *arena,
                                  cogpu_geokey *key, cogpu_error *error) {
    size_t length = strnlen(text, bytes);
    if (length && text[length - 1] == '|')
        length--;
    key->kind = COGPU_GEOKEY_TEXT;
    return cogpu_arena_text(arena, text, length, &key->text, error);
}

/* One entry of the directory: id, place, count, value or index. *is_valid: the entry is a key. */
static cogpu_status read_key(const key_tags *tags, const uint16_t entry[4], cogpu_arena *arena,
                             cogpu_geokey *key, bool *is_valid, cogpu_error *error) {
    uint16_t place = entry[1], count = entry[2], index = entry[3];
    const known_key *known = find_known(entry[0]);
    *key = (cogpu_geokey){.id = entry[0], .name = known ? known->name : "unknown", .count = count};
    *is_valid = false;
    if (place == 0 && count > 0) {
        key->count = 1; /* no more fit, whatever the count says */
        key->shorts = &entry[3];
        *is_valid = true;
    } else if (place == TAG_GEO_KEY_DIRECTORY && is_range_inside(index, count, tags->short_count)) {
        key->shorts = tags->shorts + index;
        *is_valid = true;
    } else if (place == TAG_GEO_DOUBLE_PARAMS &&
               is_range_inside(index, count, tags->double_count)) {
        key->kind = COGPU_GEOKEY_DOUBLE;
        key->doubles = tags->doubles + index;
        *is_valid = true;
    } else if (place == TAG_GEO_ASCII_PARAMS && is_range_inside(index, count, tags->char_count)) {
        *is_valid = true;
        TRY(copy_key_text(tags->chars + index, count, arena, key, error));
    }
    *is_valid = *is_valid && (!known || known->kind == (uint16_t)key->kind);
    return COGPU_OK;
}

/* True the first time for an id. */
static bool is_new(uint8_t seen[8192], uint16_t id) {
    bool was_seen = seen[id / 8] >> id % 8 & 1;
    seen[id / 8] |= (uint8_t)(1 << id % 8);
    return !was_seen;
}

static cogpu_status read_keys(const key_tags *tags, uint32_t entries, cogpu_arena *arena,
                              cogpu_georef *georef, const char **warning, cogpu_error *error) {
    uint8_t seen[8192] = {0};
    cogpu_geokey *keys = NULL;
    uint32_t count = 0, dropped = 0;
    TRY(cogpu_arena_allocate(arena, entries, sizeof *keys, &keys, error));
    for (uint32_t i = 0; i < entries; i++) {
        const uint16_t *entry = tags->shorts + 4 + (size_t)i * 4;
        bool is_valid;
        TRY(read_key(tags, entry, arena, &keys[count], &is_valid, error));
        is_valid = is_valid && is_new(seen, entry[0]);
        if (!is_valid && !dropped++)
            cogpu_warn(arena, warning, "GeoKey %u is malformed and was ignored", entry[0]);
        count += is_valid;
    }
    if (dropped > 1)
        cogpu_warn(arena, warning, "%u more GeoKeys were ignored", dropped - 1);
    cogpu_geokeys_sort(keys, count);
    georef->keys = keys;
    georef->key_count = count;
    return COGPU_OK;
}

cogpu_status cogpu_geokeys_read(const cogpu_tiff *tiff, uint32_t directory, cogpu_arena *arena,
                                cogpu_georef *georef, const char **warning, cogpu_error *error) {
    key_tags tags;
    georef->keys = NULL;
    georef->key_count = 0;
    TRY(cogpu_values_shorts(tiff, directory, TAG_GEO_KEY_DIRECTORY, arena, &tags.shorts,
                            &tags.short_count, warning, error));
    if (!tags.short_count)
        return COGPU_OK;
    if (tags.short_count < 4 || tags.shorts[0] != 1) {
        cogpu_warn(arena, warning, "GeoKeyDirectory is too short or of an unknown version");
        return COGPU_OK;
    }
    TRY(cogpu_values_doubles(tiff, directory, TAG_GEO_DOUBLE_PARAMS, arena, &tags.doubles,
                             &tags.double_count, warning, error));
    TRY(cogpu_values_chars(tiff, directory, TAG_GEO_ASCII_PARAMS, arena, &tags.chars,
                           &tags.char_count, warning, error));
    uint32_t stated = tags.shorts[3], present = tags.short_count / 4 - 1;
    if (stated > present)
        cogpu_warn(arena, warning, "GeoKeyDirectory declares %u keys but holds %u", stated,
                   present);
    return read_keys(&tags, stated < present ? stated : present, arena, georef, warning, error);
}

const cogpu_geokey *cogpu_geokey_find(const cogpu_georef *georef, uint32_t id) {
    cogpu_geokey wanted = {.id = id};
    if (!georef->key_count)
        return NULL;
    return bsearch(&wanted, georef->keys, georef->key_count, sizeof wanted, compare_keys);
}

uint32_t cogpu_geokey_short(const cogpu_georef *georef, uint32_t id) {
    const cogpu_geokey *key = cogpu_geokey_find(georef, id);
    return key && key->kind == COGPU_GEOKEY_SHORT ? key->shorts[0] : 0;
}

bool cogpu_geokey_double(const cogpu_georef *georef, uint32_t id, double *value) {
    const cogpu_geokey *key = cogpu_geokey_find(georef, id);
    if (!key || key->kind != COGPU_GEOKEY_DOUBLE || !isfinite(key->doubles[0]))
        return false;
    *value = key->doubles[0];
    return true;
}

const char *cogpu_geokey_text(const cogpu_georef *georef, uint32_t id) {
    const cogpu_geokey *key = cogpu_geokey_find(georef, id);
    return key && key->kind == COGPU_GEOKEY_TEXT ? key->text : NULL;
}
