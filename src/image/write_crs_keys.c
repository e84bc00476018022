/*
 * Appends GeoKeys of a CRS and looks up its codes and units in PROJ's database. write_crs.c decides
 * which keys a CRS needs.
 */
#include "image/write_crs_keys.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES_MAX = 8 };

/* ---- keys ---------------------------------------------------------------------------------- */

cogpu_geokey *cogpu_crs_add_key(cogpu_crs_key_writer *in, uint32_t id, cogpu_geokey_kind kind) {
    assert(in->list->count < COGPU_CRS_KEYS_MAX);
    cogpu_geokey *key = &in->list->keys[in->list->count++];
    *key = (cogpu_geokey){.id = id, .name = "", .kind = kind, .count = 1};
    return key;
}

void cogpu_crs_add_short(cogpu_crs_key_writer *in, uint32_t id, uint32_t value) {
    uint16_t *slot = &in->list->shorts[in->list->count];
    *slot = (uint16_t)value;
    cogpu_crs_add_key(in, id, COGPU_GEOKEY_SHORT)->shorts = slot;
}

void cogpu_crs_add_double(cogpu_crs_key_writer *in, uint32_t id, double value) {
    double *slot = &in->list->doubles[in->list->count];
    *slot = value;
    cogpu_crs_add_key(in, id, COGPU_GEOKEY_DOUBLE)->doubles = slot;
}

cogpu_status cogpu_crs_add_text(cogpu_crs_key_writer *in, uint32_t id, const char *const texts[]) {
    size_t bytes = 0;
    char *text = NULL;
    for (size_t i = 0; texts[i]; i++)
        bytes += strlen(texts[i]);
    TRY(cogpu_arena_allocate(in->arena, (uint64_t)bytes + 1, 1, &text, in->error));
    char *to = text;
    for (size_t i = 0; texts[i]; i++) {
        size_t length = strlen(texts[i]);
        memcpy(to, texts[i], length);
        to += length;
    }
    cogpu_crs_add_key(in, id, COGPU_GEOKEY_TEXT)->text = text;
    return COGPU_OK;
}

const char *cogpu_crs_name_of(const PJ *object) {
    const char *name = object ? proj_get_name(object) : NULL;
    return name && *name ? name : "unknown";
}

cogpu_status cogpu_crs_add_name(cogpu_crs_key_writer *in, uint32_t id, const PJ *object) {
    return cogpu_crs_add_text(in, id, (const char *const[]){cogpu_crs_name_of(object), NULL});
}

/* ---- the registry -------------------------------------------------------------------------- */

uint32_t cogpu_crs_epsg_code(const PJ *object) {
    const char *authority = object ? proj_get_id_auth_name(object, 0) : NULL;
    if (!authority || strcmp(authority, "EPSG") != 0)
        return 0;
    unsigned long code = strtoul(proj_get_id_code(object, 0), NULL, 10);
    return code < KEY_USER_DEFINED ? (uint32_t)code : 0;
}

PJ *cogpu_crs_from_epsg(cogpu_crs_key_writer *in, uint32_t code, PJ_CATEGORY category) {
    char text[16];
    snprintf(text, sizeof text, "%u", code);
    return code ? cogpu_proj_own(&in->objects, proj_create_from_database(in->context, "EPSG", text,
                                                                         category, 0, NULL))
                : NULL;
}

bool cogpu_crs_is_equivalent(cogpu_crs_key_writer *in, const PJ *one, const PJ *other) {
    return proj_is_equivalent_to_with_ctx(in->context, one, other,
                                          PJ_COMP_EQUIVALENT_EXCEPT_AXIS_ORDER_GEOGCRS);
}

/* OGC:CRS84 and its like are EPSG's with longitude first, as in rasters. */
static uint32_t code_of_ogc(const PJ *crs) {
    static const struct {
        const char *ogc;
        uint32_t epsg;
    } codes[] = {{"CRS84", 4326}, {"CRS83", 4269}, {"CRS27", 4267}};
    const char *authority = proj_get_id_auth_name(crs, 0), *code = proj_get_id_code(crs, 0);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (authority && code && strcmp(authority, "OGC") == 0 && strcmp(code, codes[i].ogc) == 0)
            return codes[i].epsg;
    return 0;
}

PJ *cogpu_crs_find_in_epsg(cogpu_crs_key_writer *in, const PJ *crs) {
    uint32_t code = cogpu_crs_epsg_code(crs) ? cogpu_crs_epsg_code(crs) : code_of_ogc(crs);
    PJ *named = cogpu_crs_from_epsg(in, code, PJ_CATEGORY_CRS), *found = NULL;
    if (named && cogpu_crs_is_equivalent(in, crs, named))
        return named;
    int *confidence = NULL;
    PJ_OBJ_LIST *list = proj_identify(in->context, crs, "EPSG", NULL, &confidence);
    int count = list ? proj_list_get_count(list) : 0;
    for (int i = 0; i < count && i < CANDIDATES_MAX && !found; i++) {
        PJ *candidate = cogpu_proj_own(&in->objects, proj_list_get(in->context, list, i));
        if (candidate && cogpu_crs_epsg_code(candidate) &&
            cogpu_crs_is_equivalent(in, crs, candidate))
            found = candidate;
    }
    proj_int_list_destroy(confidence);
    proj_list_destroy(list);
    return found;
}

/* ---- units --------------------------------------------------------------------------------- */

bool cogpu_crs_is_near(double a, double b) {
    return fabs(a - b) <= 1e-10 * fmax(fabs(a), fabs(b));
}

/* EPSG's code of a unit of this size: WKT names units, but seldom their codes. */
static uint32_t unit_code(cogpu_crs_key_writer *in, double factor, bool is_angle) {
    int count = 0;
    uint32_t code = KEY_USER_DEFINED;
    PROJ_UNIT_INFO **units = proj_get_units_from_database(
        in->context, "EPSG", is_angle ? "angular" : "linear", 0, &count);
    for (int i = 0; units && i < count && code == KEY_USER_DEFINED; i++)
        if (cogpu_crs_is_near(units[i]->conv_factor, factor))
            code = (uint32_t)strtoul(units[i]->code, NULL, 10) & UINT16_MAX;
    if (units)
        proj_unit_list_destroy(units);
    return code;
}

bool cogpu_crs_axis_unit(cogpu_crs_key_writer *in, const PJ *crs, cogpu_crs_epsg_unit *found) {
    static const cogpu_crs_epsg_unit lengths[] = {
        {UNIT_METRE, 1}, {UNIT_FOOT, 0.3048}, {UNIT_US_FOOT, 12 / 39.37}};
    PJ *axes = cogpu_proj_own(&in->objects, proj_crs_get_coordinate_system(in->context, crs));
    if (!axes || !proj_cs_get_axis_info(in->context, axes, 0, NULL, NULL, NULL, &found->factor,
                                        NULL, NULL, NULL))
        return false;
    bool is_angle = proj_cs_get_type(in->context, axes) == PJ_CS_TYPE_ELLIPSOIDAL;
    if (is_angle && cogpu_crs_is_near(found->factor, COGPU_DEGREE))
        return found->code = UNIT_DEGREE, true;
    for (size_t i = 0; !is_angle && i < sizeof lengths / sizeof *lengths; i++)
        if (cogpu_crs_is_near(lengths[i].factor, found->factor))
            return *found = lengths[i], true;
    found->code = unit_code(in, found->factor, is_angle);
    return found->factor > 0;
}

void cogpu_crs_add_unit(cogpu_crs_key_writer *in, uint32_t key, uint32_t size_key,
                        const cogpu_crs_epsg_unit *used) {
    cogpu_crs_add_short(in, key, used->code);
    if (used->code == KEY_USER_DEFINED)
        cogpu_crs_add_double(in, size_key, used->factor);
}
