/*
 * Takes a coordinate system in words (a code, WKT, PROJ's string), hands on the GeoKeys that say
 * the same, by PROJ. crs_proj.c is its twin.
 *
 * What the EPSG registry has goes by its code, also where the words did not name it. Anything else
 * goes by its parameters, and where GeoTIFF lacks the projection by WKT in Esri's form, as GDAL has
 * it. Such keys are read back before they are handed on: a system that does not come out as it went
 * in is refused.
 */
#include "image/crs_method.h"
#include "image/crs_text.h"
#include "image/describe.h"

#include <proj_experimental.h>

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_MAX = 40, OBJECTS_MAX = 256, CANDIDATES_MAX = 8, SHIFT_NUMBERS = 7 };
enum { MODEL_PROJECTED = 1, MODEL_GEOGRAPHIC, MODEL_GEOCENTRIC };
enum { UNIT_METRE = 9001, UNIT_FOOT, UNIT_US_FOOT, UNIT_DEGREE = 9102 };

static const double degree = 0.017453292519943295;

/* Keys with their numbers, which live as long as the arena. */
typedef struct key_list {
    cogpu_geokey keys[KEYS_MAX];
    uint16_t shorts[KEYS_MAX];
    double doubles[KEYS_MAX], shift[SHIFT_NUMBERS];
    uint32_t count;
} key_list;

/* One call: the keys so far, and objects of PROJ to be freed together. */
typedef struct describer {
    cogpu_registry *context;
    cogpu_arena *arena;
    cogpu_error *error;
    const char *words;
    key_list *list;
    PJ *objects[OBJECTS_MAX];
    uint32_t object_count;
} describer;

/* NULL passes through: PROJ's functions return it where they fail. */
static PJ *own(describer *in, PJ *object) {
    if (object && in->object_count == OBJECTS_MAX) {
        proj_destroy(object);
        return NULL;
    }
    if (object)
        in->objects[in->object_count++] = object;
    return object;
}

static cogpu_status cannot(describer *in, const char *why) {
    return cogpu_fail(in->error, COGPU_UNSUPPORTED,
                      "GeoKeys cannot say \"%.60s\": %s; give an EPSG code, or geokeys", in->words,
                      why);
}

/* ---- keys ---------------------------------------------------------------------------------- */

static cogpu_geokey *add_key(describer *in, uint32_t id, cogpu_key_kind kind) {
    assert(in->list->count < KEYS_MAX);
    cogpu_geokey *key = &in->list->keys[in->list->count++];
    *key = (cogpu_geokey){.id = id, .name = "", .kind = kind, .count = 1};
    return key;
}

static void add_short(describer *in, uint32_t id, uint32_t value) {
    uint16_t *room = &in->list->shorts[in->list->count];
    *room = (uint16_t)value;
    add_key(in, id, COGPU_KEY_SHORT)->shorts = room;
}

static void add_double(describer *in, uint32_t id, double value) {
    double *room = &in->list->doubles[in->list->count];
    *room = value;
    add_key(in, id, COGPU_KEY_DOUBLE)->doubles = room;
}

/* The texts up to a NULL, one after the other. */
static cogpu_status add_text(describer *in, uint32_t id, const char *const texts[]) {
    size_t bytes = 0;
    char *text = NULL;
    for (size_t i = 0; texts[i]; i++)
        bytes += strlen(texts[i]);
    TRY(cogpu_arena_take(in->arena, (uint64_t)bytes + 1, 1, &text, in->error));
    char *to = text;
    for (size_t i = 0; texts[i]; i++) {
        size_t length = strlen(texts[i]);
        memcpy(to, texts[i], length);
        to += length;
    }
    add_key(in, id, COGPU_KEY_TEXT)->text = text;
    return COGPU_OK;
}

static const char *name_of(const PJ *object) {
    const char *name = object ? proj_get_name(object) : NULL;
    return name && *name ? name : "unknown";
}

static cogpu_status add_name(describer *in, uint32_t id, const PJ *object) {
    return add_text(in, id, (const char *const[]){name_of(object), NULL});
}

/* ---- the registry -------------------------------------------------------------------------- */

/* 0 where the object has none of EPSG's, or one that a key cannot hold. */
static uint32_t code_of(const PJ *object) {
    const char *authority = object ? proj_get_id_auth_name(object, 0) : NULL;
    if (!authority || strcmp(authority, "EPSG") != 0)
        return 0;
    unsigned long code = strtoul(proj_get_id_code(object, 0), NULL, 10);
    return code < KEY_USER_DEFINED ? (uint32_t)code : 0;
}

static PJ *from_registry(describer *in, uint32_t code, PJ_CATEGORY category) {
    char text[16];
    snprintf(text, sizeof text, "%u", code);
    return code ? own(in, proj_create_from_database(in->context, "EPSG", text, category, 0, NULL))
                : NULL;
}

/* The order of latitude and longitude does not count: in a raster x comes first. */
static bool is_same(describer *in, const PJ *one, const PJ *other) {
    return proj_is_equivalent_to_with_ctx(in->context, one, other,
                                          PJ_COMP_EQUIVALENT_EXCEPT_AXIS_ORDER_GEOGCRS);
}

/* OGC's systems are EPSG's with longitude first, as rasters have it. */
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

/* The same system in the registry, or NULL. A code that comes with other parameters than the
 * registry's is not believed. */
static PJ *registered(describer *in, const PJ *crs) {
    uint32_t code = code_of(crs) ? code_of(crs) : code_of_ogc(crs);
    PJ *named = from_registry(in, code, PJ_CATEGORY_CRS), *found = NULL;
    if (named && is_same(in, crs, named))
        return named;
    int *confidence = NULL;
    PJ_OBJ_LIST *list = proj_identify(in->context, crs, "EPSG", NULL, &confidence);
    int count = list ? proj_list_get_count(list) : 0;
    for (int i = 0; i < count && i < CANDIDATES_MAX && !found; i++) {
        PJ *candidate = own(in, proj_list_get(in->context, list, i));
        if (candidate && code_of(candidate) && is_same(in, crs, candidate))
            found = candidate;
    }
    proj_int_list_destroy(confidence);
    proj_list_destroy(list);
    return found;
}

/* ---- units --------------------------------------------------------------------------------- */

typedef struct unit {
    uint32_t code; /* KEY_USER_DEFINED without one */
    double factor; /* to radians or metres */
} unit;

static bool is_near(double a, double b) {
    return fabs(a - b) <= 1e-10 * fmax(fabs(a), fabs(b));
}

/* The registry's code of a unit of this size; WKT names units, but seldom their codes. */
static uint32_t unit_code(describer *in, double factor, bool is_angle) {
    int count = 0;
    uint32_t code = KEY_USER_DEFINED;
    PROJ_UNIT_INFO **units = proj_get_units_from_database(
        in->context, "EPSG", is_angle ? "angular" : "linear", 0, &count);
    for (int i = 0; units && i < count && code == KEY_USER_DEFINED; i++)
        if (is_near(units[i]->conv_factor, factor))
            code = (uint32_t)strtoul(units[i]->code, NULL, 10) & UINT16_MAX;
    if (units)
        proj_unit_list_destroy(units);
    return code;
}

/* Of the first axis. EPSG has several codes for a degree, of which GeoTIFF uses one. */
static bool read_unit(describer *in, const PJ *crs, unit *found) {
    static const unit lengths[] = {
        {UNIT_METRE, 1}, {UNIT_FOOT, 0.3048}, {UNIT_US_FOOT, 12 / 39.37}};
    PJ *axes = own(in, proj_crs_get_coordinate_system(in->context, crs));
    if (!axes || !proj_cs_get_axis_info(in->context, axes, 0, NULL, NULL, NULL, &found->factor,
                                        NULL, NULL, NULL))
        return false;
    bool is_angle = proj_cs_get_type(in->context, axes) == PJ_CS_TYPE_ELLIPSOIDAL;
    if (is_angle && is_near(found->factor, degree))
        return found->code = UNIT_DEGREE, true;
    for (size_t i = 0; !is_angle && i < sizeof lengths / sizeof *lengths; i++)
        if (is_near(lengths[i].factor, found->factor))
            return *found = lengths[i], true;
    found->code = unit_code(in, found->factor, is_angle);
    return found->factor > 0;
}

static void add_unit(describer *in, uint32_t key, uint32_t size_key, const unit *used) {
    add_short(in, key, used->code);
    if (used->code == KEY_USER_DEFINED)
        add_double(in, size_key, used->factor);
}

/* ---- geographic and geocentric ------------------------------------------------------------- */

static void add_axes(describer *in, const PJ *crs) {
    double major, minor, flattening;
    PJ *ellipsoid = own(in, proj_get_ellipsoid(in->context, crs));
    if (!ellipsoid ||
        !proj_ellipsoid_get_parameters(in->context, ellipsoid, &major, &minor, NULL, &flattening))
        return;
    add_double(in, KEY_SEMI_MAJOR_AXIS, major);
    if (flattening == 0)
        add_double(in, KEY_SEMI_MINOR_AXIS, minor);
    else
        add_double(in, KEY_INVERSE_FLATTENING, flattening);
}

/* Its code where the registry has the same, else its longitude in the unit of the system. */
static void add_meridian(describer *in, const PJ *crs, const unit *angle) {
    double longitude = 0, factor = degree;
    PJ *meridian = own(in, proj_get_prime_meridian(in->context, crs));
    PJ *named = from_registry(in, code_of(meridian), PJ_CATEGORY_PRIME_MERIDIAN);
    if (named && proj_is_equivalent_to(meridian, named, PJ_COMP_EQUIVALENT)) {
        add_short(in, KEY_PRIME_MERIDIAN, code_of(named));
        return;
    }
    if (meridian)
        proj_prime_meridian_get_parameters(in->context, meridian, &longitude, &factor, NULL);
    add_double(in, KEY_PRIME_MERIDIAN_LONGITUDE,
               is_near(factor, angle->factor) ? longitude : longitude * factor / angle->factor);
}

static cogpu_status add_datum(describer *in, const PJ *crs, const unit *angle, bool is_cited) {
    PJ *datum = own(in, proj_crs_get_datum(in->context, crs));
    if (!datum)
        datum = own(in, proj_crs_get_datum_ensemble(in->context, crs));
    PJ *ellipsoid = own(in, proj_get_ellipsoid(in->context, crs));
    PJ *meridian = own(in, proj_get_prime_meridian(in->context, crs));
    uint32_t code = code_of(datum), shape = code_of(ellipsoid);
    if (is_cited)
        TRY(add_text(in, KEY_GEODETIC_CITATION,
                     (const char *const[]){"GCS Name = ", name_of(crs), "|Datum = ", name_of(datum),
                                           "|Ellipsoid = ", name_of(ellipsoid),
                                           "|Primem = ", name_of(meridian), "|", NULL}));
    add_short(in, KEY_DATUM, code ? code : KEY_USER_DEFINED);
    add_axes(in, crs);
    if (code)
        return COGPU_OK;
    add_short(in, KEY_ELLIPSOID, shape ? shape : KEY_USER_DEFINED);
    add_meridian(in, crs, angle);
    return COGPU_OK;
}

/* A geographic system, of itself or as the base of a projected one. */
static cogpu_status add_geographic(describer *in, PJ *crs, const PJ *known, bool briefly) {
    unit angle;
    if (known && briefly) {
        add_short(in, KEY_GEODETIC_CRS, code_of(known));
        return COGPU_OK;
    }
    if (!read_unit(in, crs, &angle))
        return cannot(in, "its axes have no unit");
    add_unit(in, KEY_ANGULAR_UNIT, KEY_ANGULAR_UNIT_SIZE, &angle);
    add_short(in, KEY_GEODETIC_CRS, known ? code_of(known) : KEY_USER_DEFINED);
    if (!known)
        return add_datum(in, crs, &angle, true);
    add_axes(in, crs);
    return add_name(in, KEY_GEODETIC_CITATION, known);
}

static cogpu_status add_geocentric(describer *in, PJ *crs) {
    unit length, angle = {UNIT_DEGREE, degree};
    if (!read_unit(in, crs, &length) || length.code != UNIT_METRE)
        return cannot(in, "a geocentric system is in metres");
    TRY(add_name(in, KEY_CITATION, crs));
    add_short(in, KEY_GEODETIC_CRS, KEY_USER_DEFINED);
    add_short(in, KEY_GEODETIC_LINEAR_UNIT, UNIT_METRE);
    add_short(in, KEY_ANGULAR_UNIT, UNIT_DEGREE);
    return add_datum(in, crs, &angle, false);
}

/* ---- projected ----------------------------------------------------------------------------- */

/* Codes of parameters that stand for each other where a method has but one of them: natural
 * origin, centre of projection, false origin, pole. */
static bool is_akin(const char *one, const char *other) {
    static const char *const kin[] = {"8801 8811 8821", "8802 8812 8822 8833", "8805 8815",
                                      "8806 8816 8826", "8807 8817 8827"};
    for (size_t i = 0; i < sizeof kin / sizeof *kin; i++)
        if (strstr(kin[i], one) && strstr(kin[i], other))
            return true;
    return false;
}

/* The value of a parameter in `factor` of its unit; false where the conversion has none. */
static bool read_parameter(describer *in, const PJ *conversion, const cogpu_parameter *parameter,
                           double factor, double *value) {
    int count = proj_coordoperation_get_param_count(in->context, conversion);
    bool found = false;
    for (int i = 0; i < count; i++) {
        const char *name = NULL, *code = NULL;
        double stated, stated_factor;
        if (!proj_coordoperation_get_param(in->context, conversion, i, &name, NULL, &code, &stated,
                                           NULL, &stated_factor, NULL, NULL, NULL, NULL))
            continue;
        bool has_code = code && *code;
        bool is_it =
            strcmp(has_code ? code : name, has_code ? parameter->code : parameter->name) == 0;
        if (!is_it && (found || !has_code || !is_akin(code, parameter->code)))
            continue;
        *value = is_near(stated_factor, factor) ? stated : stated * stated_factor / factor;
        found = true;
        if (is_it)
            break;
    }
    return found;
}

static void add_parameters(describer *in, const PJ *conversion, const cogpu_method *method,
                           double angle, double length) {
    for (int i = 0; i < COGPU_METHOD_PARAMETERS && method->parameters[i]; i++) {
        const cogpu_parameter *parameter = cogpu_method_parameter(method->parameters[i]);
        double value = 0, factor = parameter->kind == COGPU_PARAMETER_ANGLE    ? angle
                                   : parameter->kind == COGPU_PARAMETER_LENGTH ? length
                                                                               : 1;
        if (read_parameter(in, conversion, parameter, factor, &value))
            add_double(in, cogpu_method_key(method, parameter), value);
    }
}

static cogpu_status add_base(describer *in, const PJ *crs, uint32_t model, unit *angle,
                             unit *length) {
    PJ *base = own(in, proj_crs_get_geodetic_crs(in->context, crs));
    if (!base || !read_unit(in, base, angle) || !read_unit(in, crs, length))
        return cannot(in, "it has no geographic base, or axes without unit");
    add_short(in, KEY_MODEL_TYPE, model);
    TRY(add_name(in, KEY_CITATION, crs));
    TRY(add_geographic(in, base, registered(in, base), false));
    add_unit(in, KEY_LINEAR_UNIT, KEY_LINEAR_UNIT_SIZE, length);
    return COGPU_OK;
}

/* *done is whether GeoTIFF has the method. */
static cogpu_status add_by_method(describer *in, const PJ *crs, bool *done) {
    const char *name = NULL, *code = NULL;
    unit angle, length;
    PJ *conversion = own(in, proj_crs_get_coordoperation(in->context, crs));
    *done = false;
    if (!conversion ||
        !proj_coordoperation_get_method_info(in->context, conversion, &name, NULL, &code))
        return COGPU_OK;
    const cogpu_method *method = name ? cogpu_method_named(code, name) : NULL;
    if (!method)
        return COGPU_OK;
    TRY(add_base(in, crs, MODEL_PROJECTED, &angle, &length));
    add_short(in, KEY_PROJECTED_CRS, KEY_USER_DEFINED);
    add_short(in, KEY_PROJECTION, KEY_USER_DEFINED);
    add_short(in, KEY_METHOD, method->id);
    add_parameters(in, conversion, method, angle.factor, length.factor);
    *done = true;
    return COGPU_OK;
}

static cogpu_status add_by_esri_text(describer *in, const PJ *crs, bool *done) {
    unit angle, length;
    const char *const options[] = {"MULTILINE=NO", NULL};
    const char *wkt = proj_as_wkt(in->context, crs, PJ_WKT1_ESRI, options);
    *done = wkt != NULL;
    if (!wkt)
        return COGPU_OK;
    TRY(add_text(in, KEY_PROJECTED_CITATION,
                 (const char *const[]){"ESRI PE String = ", wkt, NULL}));
    return add_base(in, crs, KEY_USER_DEFINED, &angle, &length);
}

/* ---- what was written, read ---------------------------------------------------------------- */

static bool same_shape(describer *in, const PJ *one, const PJ *other) {
    const PJ *systems[2] = {one, other};
    double major[2] = {0}, flattening[2] = {0}, longitude[2] = {0}, factor[2] = {0};
    for (int i = 0; i < 2; i++) {
        PJ *ellipsoid = own(in, proj_get_ellipsoid(in->context, systems[i]));
        PJ *meridian = own(in, proj_get_prime_meridian(in->context, systems[i]));
        if (!ellipsoid || !meridian ||
            !proj_ellipsoid_get_parameters(in->context, ellipsoid, &major[i], NULL, NULL,
                                           &flattening[i]) ||
            !proj_prime_meridian_get_parameters(in->context, meridian, &longitude[i], &factor[i],
                                                NULL))
            return false;
    }
    return is_near(major[0], major[1]) && is_near(flattening[0], flattening[1]) &&
           is_near(longitude[0] * factor[0], longitude[1] * factor[1]);
}

/* PROJ calls some methods unlike which are the same on a sphere; its own strings tell. */
static bool same_projection(describer *in, const PJ *one, const PJ *other) {
    PJ *first = own(in, proj_crs_get_coordoperation(in->context, one));
    PJ *second = own(in, proj_crs_get_coordoperation(in->context, other));
    if (first && second && is_same(in, first, second))
        return true;
    const char *text = proj_as_proj_string(in->context, one, PJ_PROJ_5, NULL);
    const char *second_text = proj_as_proj_string(in->context, other, PJ_PROJ_5, NULL);
    return text && second_text && strcmp(text, second_text) == 0;
}

/* The keys as our reader understands them, without a shift to WGS 84; NULL where it does not. */
static cogpu_status read_back(describer *in, PJ **crs) {
    cogpu_geokey keys[KEYS_MAX];
    cogpu_georef georef = {.keys = keys, .key_count = in->list->count};
    size_t needed;
    char *wkt = NULL;
    *crs = NULL;
    memcpy(keys, in->list->keys, sizeof keys);
    cogpu_geokeys_sort(keys, georef.key_count);
    cogpu_crs_from_keys(&georef);
    if (cogpu_crs_to_wkt(&georef, &in->context, NULL, 0, &needed, NULL) != COGPU_OK)
        return COGPU_OK;
    TRY(cogpu_arena_take(in->arena, needed, 1, &wkt, in->error));
    TRY(cogpu_crs_to_wkt(&georef, &in->context, wkt, needed, &needed, in->error));
    PJ *read = own(in, proj_create_from_wkt(in->context, wkt, NULL, NULL, NULL));
    bool is_bound = read && proj_get_type(read) == PJ_TYPE_BOUND_CRS;
    *crs = is_bound ? own(in, proj_get_source_crs(in->context, read)) : read;
    return COGPU_OK;
}

/* *same is whether the keys so far come out as the system that they were made of. */
static cogpu_status compare(describer *in, const PJ *crs, bool *same) {
    unit stated, found;
    PJ *read;
    TRY(read_back(in, &read));
    *same = read && proj_get_type(read) == proj_get_type(crs) && same_shape(in, crs, read) &&
            read_unit(in, crs, &stated) && read_unit(in, read, &found) &&
            is_near(stated.factor, found.factor) &&
            (proj_get_type(crs) != PJ_TYPE_PROJECTED_CRS || same_projection(in, crs, read));
    return COGPU_OK;
}

/* ---- the whole ----------------------------------------------------------------------------- */

typedef cogpu_status add_projected(describer *in, const PJ *crs, bool *done);

static cogpu_status add_user_projected(describer *in, const PJ *crs) {
    static add_projected *const ways[] = {add_by_method, add_by_esri_text};
    uint32_t before = in->list->count;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        bool done, same = false;
        TRY(ways[i](in, crs, &done));
        if (done)
            TRY(compare(in, crs, &same));
        if (same)
            return COGPU_OK;
        in->list->count = before;
    }
    return cannot(in, "GeoTIFF has no such projection");
}

static cogpu_status add_known_projected(describer *in, const PJ *known, bool briefly) {
    unit angle, length;
    add_short(in, KEY_MODEL_TYPE, MODEL_PROJECTED);
    add_short(in, KEY_PROJECTED_CRS, code_of(known));
    if (briefly)
        return COGPU_OK;
    PJ *base = own(in, proj_crs_get_geodetic_crs(in->context, known));
    TRY(add_name(in, KEY_CITATION, known));
    TRY(add_name(in, KEY_GEODETIC_CITATION, base));
    if (base && read_unit(in, base, &angle))
        add_unit(in, KEY_ANGULAR_UNIT, KEY_ANGULAR_UNIT_SIZE, &angle);
    if (read_unit(in, known, &length))
        add_unit(in, KEY_LINEAR_UNIT, KEY_LINEAR_UNIT_SIZE, &length);
    return COGPU_OK;
}

static cogpu_status add_unprojected(describer *in, PJ *crs, const PJ *known, bool briefly) {
    bool same = known != NULL;
    if (proj_get_type(crs) == PJ_TYPE_GEOCENTRIC_CRS) {
        add_short(in, KEY_MODEL_TYPE, MODEL_GEOCENTRIC);
        TRY(add_geocentric(in, crs));
    } else {
        add_short(in, KEY_MODEL_TYPE, MODEL_GEOGRAPHIC);
        TRY(add_geographic(in, crs, known, briefly));
    }
    if (!known)
        TRY(compare(in, crs, &same));
    return same ? COGPU_OK : cannot(in, "there are no keys for its datum");
}

/* An engineering CRS, WKT1's LOCAL_CS. PROJ has no type for it before 9.2, but its WKT tells. */
static bool is_engineering(describer *in, const PJ *crs) {
    const char *wkt = proj_as_wkt(in->context, crs, PJ_WKT2_2019, NULL);
    return wkt && strncmp(wkt, "ENGCRS[", 7) == 0;
}

/* By its name and unit, without a model type, as GDAL writes it. */
static cogpu_status add_engineering(describer *in, const PJ *crs) {
    unit length;
    const char *unit_name = NULL;
    PJ *axes = own(in, proj_crs_get_coordinate_system(in->context, crs));
    if (!axes || !read_unit(in, crs, &length) ||
        !proj_cs_get_axis_info(in->context, axes, 0, NULL, NULL, NULL, NULL, &unit_name, NULL,
                               NULL))
        return cannot(in, "its axes have no unit");
    TRY(add_name(in, KEY_CITATION, crs));
    if (length.code == KEY_USER_DEFINED && unit_name)
        TRY(add_text(in, KEY_PROJECTED_CITATION,
                     (const char *const[]){"LUnits = ", unit_name, NULL}));
    add_unit(in, KEY_LINEAR_UNIT, KEY_LINEAR_UNIT_SIZE, &length);
    return COGPU_OK;
}

/* `briefly`: by its code alone where there is one, as GDAL does beside a vertical system. */
static cogpu_status add_flat(describer *in, PJ *crs, bool briefly, bool *is_known) {
    PJ_TYPE type = proj_get_type(crs);
    *is_known = false;
    if (is_engineering(in, crs))
        return add_engineering(in, crs);
    PJ *known = registered(in, crs);
    *is_known = known != NULL;
    if (type == PJ_TYPE_PROJECTED_CRS)
        return known ? add_known_projected(in, known, briefly) : add_user_projected(in, crs);
    if ((type != PJ_TYPE_GEOGRAPHIC_2D_CRS && type != PJ_TYPE_GEOCENTRIC_CRS) ||
        proj_is_derived_crs(in->context, crs))
        return cannot(in, "it is not a plain geographic, projected, geocentric or engineering CRS");
    return add_unprojected(in, crs, known, briefly);
}

static cogpu_status add_vertical(describer *in, PJ *crs) {
    unit height;
    if (proj_get_type(crs) != PJ_TYPE_VERTICAL_CRS)
        return cannot(in, "its vertical part is not a plain vertical system");
    PJ *known = registered(in, crs), *datum = own(in, proj_crs_get_datum(in->context, crs));
    if (known) {
        add_short(in, KEY_VERTICAL_CRS, code_of(known));
        return COGPU_OK;
    }
    if (!read_unit(in, crs, &height) || height.code == KEY_USER_DEFINED)
        return cannot(in, "the unit of its heights has no EPSG code");
    add_short(in, KEY_VERTICAL_CRS, KEY_USER_DEFINED);
    add_short(in, KEY_VERTICAL_DATUM, code_of(datum) ? code_of(datum) : KEY_USER_DEFINED);
    add_short(in, KEY_VERTICAL_UNIT, height.code);
    return add_text(in, KEY_VERTICAL_CITATION,
                    (const char *const[]){"VCS Name = ", name_of(crs),
                                          "|Datum Name = ", name_of(datum), "|", NULL});
}

/* Ellipsoidal heights: the vertical key names the geographic system of three dimensions. */
static cogpu_status add_three_dimensional(describer *in, PJ *crs) {
    bool is_known;
    PJ *base = own(in, proj_crs_get_geodetic_crs(in->context, crs));
    PJ *known = base ? registered(in, base) : NULL;
    PJ *flat = own(in, proj_crs_demote_to_2D(in->context, NULL, crs));
    if (!known || !flat)
        return cannot(in, "it has three dimensions, and its geographic system no EPSG code");
    TRY(add_flat(in, flat, true, &is_known));
    add_short(in, KEY_VERTICAL_CRS, code_of(known));
    return COGPU_OK;
}

static bool is_three_dimensional(describer *in, const PJ *crs) {
    PJ_TYPE type = proj_get_type(crs);
    PJ *axes = type == PJ_TYPE_PROJECTED_CRS
                   ? own(in, proj_crs_get_coordinate_system(in->context, crs))
                   : NULL;
    return type == PJ_TYPE_GEOGRAPHIC_3D_CRS ||
           (axes && proj_cs_get_axis_count(in->context, axes) == 3);
}

/* A system with a shift to WGS 84. The registry's own systems need none: programs know better. */
static cogpu_status add_shifted(describer *in, PJ *bound) {
    bool is_known;
    double *shift = in->list->shift;
    PJ *crs = own(in, proj_get_source_crs(in->context, bound));
    PJ *operation = own(in, proj_crs_get_coordoperation(in->context, bound));
    if (!crs || !operation)
        return cannot(in, "PROJ does not tell its parts");
    TRY(add_flat(in, crs, false, &is_known));
    if (is_known)
        return COGPU_OK;
    if (!proj_coordoperation_get_towgs84_values(in->context, operation, shift, SHIFT_NUMBERS, 0))
        return cannot(in, "its shift to WGS 84 is not of 3 or 7 numbers");
    uint32_t count = 3;
    for (uint32_t i = 3; i < SHIFT_NUMBERS; i++)
        if (shift[i] != 0)
            count = SHIFT_NUMBERS;
    cogpu_geokey *key = add_key(in, KEY_TO_WGS84, COGPU_KEY_DOUBLE);
    key->doubles = shift;
    key->count = count;
    return COGPU_OK;
}

static cogpu_status add_horizontal(describer *in, PJ *crs, bool briefly) {
    bool is_known;
    return proj_get_type(crs) == PJ_TYPE_BOUND_CRS ? add_shifted(in, crs)
                                                   : add_flat(in, crs, briefly, &is_known);
}

static cogpu_status add_compound(describer *in, PJ *crs) {
    PJ *flat = own(in, proj_crs_get_sub_crs(in->context, crs, 0));
    PJ *height = own(in, proj_crs_get_sub_crs(in->context, crs, 1));
    if (!flat || !height)
        return cannot(in, "PROJ does not tell its parts");
    TRY(add_horizontal(in, flat, true));
    bool is_cited = false;
    for (uint32_t i = 0; i < in->list->count; i++)
        is_cited = is_cited || in->list->keys[i].id == KEY_CITATION;
    if (!is_cited)
        TRY(add_name(in, KEY_CITATION, crs));
    return add_vertical(in, height);
}

static cogpu_status parse(describer *in, PJ **crs) {
    TRY(cogpu_crs_create(in->context, in->words, in->arena, crs, in->error));
    *crs = own(in, *crs);
    return COGPU_OK;
}

static cogpu_status describe(describer *in) {
    PJ *crs;
    TRY(parse(in, &crs));
    if (proj_get_type(crs) == PJ_TYPE_COMPOUND_CRS)
        return add_compound(in, crs);
    return is_three_dimensional(in, crs) ? add_three_dimensional(in, crs)
                                         : add_horizontal(in, crs, false);
}

cogpu_status cogpu_describe_crs(const char *crs, cogpu_arena *arena, const cogpu_geokey **keys,
                                uint32_t *count, cogpu_error *error) {
    describer in = {.arena = arena, .error = error, .words = crs};
    TRY(cogpu_arena_take(arena, 1, sizeof *in.list, &in.list, error));
    TRY(cogpu_registry_open(&in.context, error));
    proj_context_use_proj4_init_rules(in.context, 1); /* "+init=epsg:4326" */
    cogpu_status status = describe(&in);
    for (uint32_t i = in.object_count; i > 0; i--)
        proj_destroy(in.objects[i - 1]);
    cogpu_registry_close(in.context);
    TRY(status);
    cogpu_geokeys_sort(in.list->keys, in.list->count);
    *keys = in.list->keys;
    *count = in.list->count;
    return COGPU_OK;
}
