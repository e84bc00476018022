/*
 * GeoKeys for a CRS given as text (code, WKT, PROJ string), by PROJ. The inverse of crs_proj.c.
 *
 * A CRS that EPSG knows is written by its code, even if the text does not name the code. Any other
 * is written by its parameters; a projection that GeoTIFF lacks as Esri WKT in a citation, as GDAL
 * does. Such keys are read back first: a CRS that does not survive the round trip is rejected.
 */
#include "image/crs_method.h"
#include "image/crs_text.h"
#include "image/write_crs_keys.h"
#include "image/write_tags.h"

#include <proj_experimental.h>

#include <string.h>

enum { MODEL_PROJECTED = 1, MODEL_GEOGRAPHIC, MODEL_GEOCENTRIC };

typedef cogpu_crs_key_writer crs_key_writer;
typedef cogpu_crs_epsg_unit epsg_unit;

static cogpu_status fail_unsupported(crs_key_writer *in, const char *why) {
    return cogpu_fail(in->error, COGPU_UNSUPPORTED,
                      "GeoKeys cannot express \"%.60s\": %s; use an EPSG code, or `geokeys`",
                      in->words, why);
}

/* ---- geographic and geocentric ------------------------------------------------------------- */

static void add_axes(crs_key_writer *in, const PJ *crs) {
    double major, minor, flattening;
    PJ *ellipsoid = cogpu_proj_own(&in->objects, proj_get_ellipsoid(in->context, crs));
    if (!ellipsoid ||
        !proj_ellipsoid_get_parameters(in->context, ellipsoid, &major, &minor, NULL, &flattening))
        return;
    cogpu_crs_add_double(in, KEY_SEMI_MAJOR_AXIS, major);
    if (flattening == 0)
        cogpu_crs_add_double(in, KEY_SEMI_MINOR_AXIS, minor);
    else
        cogpu_crs_add_double(in, KEY_INVERSE_FLATTENING, flattening);
}

/* EPSG's code of the same prime meridian, else its longitude in the unit of the CRS. */
static void add_meridian(crs_key_writer *in, const PJ *crs, const epsg_unit *angle) {
    double longitude = 0, factor = COGPU_DEGREE;
    PJ *meridian = cogpu_proj_own(&in->objects, proj_get_prime_meridian(in->context, crs));
    PJ *named = cogpu_crs_from_epsg(in, cogpu_crs_epsg_code(meridian), PJ_CATEGORY_PRIME_MERIDIAN);
    if (named && proj_is_equivalent_to(meridian, named, PJ_COMP_EQUIVALENT)) {
        cogpu_crs_add_short(in, KEY_PRIME_MERIDIAN, cogpu_crs_epsg_code(named));
        return;
    }
    if (meridian)
        proj_prime_meridian_get_parameters(in->context, meridian, &longitude, &factor, NULL);
    cogpu_crs_add_double(
        in, KEY_PRIME_MERIDIAN_LONGITUDE,
        cogpu_crs_is_near(factor, angle->factor) ? longitude : longitude * factor / angle->factor);
}

static cogpu_status add_datum(crs_key_writer *in, const PJ *crs, const epsg_unit *angle,
                              bool is_cited) {
    PJ *datum = cogpu_proj_own(&in->objects, proj_crs_get_datum(in->context, crs));
    if (!datum)
        datum = cogpu_proj_own(&in->objects, proj_crs_get_datum_ensemble(in->context, crs));
    PJ *ellipsoid = cogpu_proj_own(&in->objects, proj_get_ellipsoid(in->context, crs));
    PJ *meridian = cogpu_proj_own(&in->objects, proj_get_prime_meridian(in->context, crs));
    uint32_t code = cogpu_crs_epsg_code(datum), shape = cogpu_crs_epsg_code(ellipsoid);
    if (is_cited)
        TRY(cogpu_crs_add_text(in, KEY_GEODETIC_CITATION,
                               (const char *const[]){"GCS Name = ", cogpu_crs_name_of(crs),
                                                     "|Datum = ", cogpu_crs_name_of(datum),
                                                     "|Ellipsoid = ", cogpu_crs_name_of(ellipsoid),
                                                     "|Primem = ", cogpu_crs_name_of(meridian), "|",
                                                     NULL}));
    cogpu_crs_add_short(in, KEY_DATUM, code ? code : KEY_USER_DEFINED);
    add_axes(in, crs);
    if (code)
        return COGPU_OK;
    cogpu_crs_add_short(in, KEY_ELLIPSOID, shape ? shape : KEY_USER_DEFINED);
    add_meridian(in, crs, angle);
    return COGPU_OK;
}

/* A geographic CRS, alone or as the base of a projected one. */
static cogpu_status add_geographic(crs_key_writer *in, PJ *crs, const PJ *known, bool briefly) {
    epsg_unit angle;
    if (known && briefly) {
        cogpu_crs_add_short(in, KEY_GEODETIC_CRS, cogpu_crs_epsg_code(known));
        return COGPU_OK;
    }
    if (!cogpu_crs_axis_unit(in, crs, &angle))
        return fail_unsupported(in, "its axes have no unit");
    cogpu_crs_add_unit(in, KEY_ANGULAR_UNIT, KEY_ANGULAR_UNIT_SIZE, &angle);
    cogpu_crs_add_short(in, KEY_GEODETIC_CRS,
                        known ? cogpu_crs_epsg_code(known) : KEY_USER_DEFINED);
    if (!known)
        return add_datum(in, crs, &angle, true);
    add_axes(in, crs);
    return cogpu_crs_add_name(in, KEY_GEODETIC_CITATION, known);
}

static cogpu_status add_geocentric(crs_key_writer *in, PJ *crs) {
    epsg_unit length, angle = {UNIT_DEGREE, COGPU_DEGREE};
    if (!cogpu_crs_axis_unit(in, crs, &length) || length.code != UNIT_METRE)
        return fail_unsupported(in, "a geocentric CRS must be in metres");
    TRY(cogpu_crs_add_name(in, KEY_CITATION, crs));
    cogpu_crs_add_short(in, KEY_GEODETIC_CRS, KEY_USER_DEFINED);
    cogpu_crs_add_short(in, KEY_GEODETIC_LINEAR_UNIT, UNIT_METRE);
    cogpu_crs_add_short(in, KEY_ANGULAR_UNIT, UNIT_DEGREE);
    return add_datum(in, crs, &angle, false);
}

/* ---- projected ----------------------------------------------------------------------------- */

/* Parameter codes that are interchangeable if a method has only one of them: natural origin,
 * projection centre, false origin, pole. */
static bool is_interchangeable(const char *one, const char *other) {
    static const char *const kin[] = {"8801 8811 8821", "8802 8812 8822 8833", "8805 8815",
                                      "8806 8816 8826", "8807 8817 8827"};
    for (size_t i = 0; i < sizeof kin / sizeof *kin; i++)
        if (strstr(kin[i], one) && strstr(kin[i], other))
            return true;
    return false;
}

/* The value of a parameter in `factor` of its unit; false where the conversion has none. */
static bool read_parameter(crs_key_writer *in, const PJ *conversion,
                           const cogpu_parameter *parameter, double factor, double *value) {
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
        if (!is_it && (found || !has_code || !is_interchangeable(code, parameter->code)))
            continue;
        *value =
            cogpu_crs_is_near(stated_factor, factor) ? stated : stated * stated_factor / factor;
        found = true;
        if (is_it)
            break;
    }
    return found;
}

static void add_parameters(crs_key_writer *in, const PJ *conversion, const cogpu_method *method,
                           double angle, double length) {
    for (int i = 0; i < COGPU_METHOD_PARAMETERS && method->parameters[i]; i++) {
        const cogpu_parameter *parameter = cogpu_method_parameter(method->parameters[i]);
        double value = 0, factor = parameter->kind == COGPU_PARAMETER_ANGLE    ? angle
                                   : parameter->kind == COGPU_PARAMETER_LENGTH ? length
                                                                               : 1;
        if (read_parameter(in, conversion, parameter, factor, &value))
            cogpu_crs_add_double(in, cogpu_method_key(method, parameter), value);
    }
}

static cogpu_status add_base(crs_key_writer *in, const PJ *crs, uint32_t model, epsg_unit *angle,
                             epsg_unit *length) {
    PJ *base = cogpu_proj_own(&in->objects, proj_crs_get_geodetic_crs(in->context, crs));
    if (!base || !cogpu_crs_axis_unit(in, base, angle) || !cogpu_crs_axis_unit(in, crs, length))
        return fail_unsupported(in, "it has no geographic base CRS, or its axes have no unit");
    cogpu_crs_add_short(in, KEY_MODEL_TYPE, model);
    TRY(cogpu_crs_add_name(in, KEY_CITATION, crs));
    TRY(add_geographic(in, base, cogpu_crs_find_in_epsg(in, base), false));
    cogpu_crs_add_unit(in, KEY_LINEAR_UNIT, KEY_LINEAR_UNIT_SIZE, length);
    return COGPU_OK;
}

/* *done is whether GeoTIFF has the method. */
static cogpu_status add_by_method(crs_key_writer *in, const PJ *crs, bool *done) {
    const char *name = NULL, *code = NULL;
    epsg_unit angle, length;
    PJ *conversion = cogpu_proj_own(&in->objects, proj_crs_get_coordoperation(in->context, crs));
    *done = false;
    if (!conversion ||
        !proj_coordoperation_get_method_info(in->context, conversion, &name, NULL, &code))
        return COGPU_OK;
    const cogpu_method *method = name ? cogpu_method_named(code, name) : NULL;
    if (!method)
        return COGPU_OK;
    TRY(add_base(in, crs, MODEL_PROJECTED, &angle, &length));
    cogpu_crs_add_short(in, KEY_PROJECTED_CRS, KEY_USER_DEFINED);
    cogpu_crs_add_short(in, KEY_PROJECTION, KEY_USER_DEFINED);
    cogpu_crs_add_short(in, KEY_METHOD, method->id);
    add_parameters(in, conversion, method, angle.factor, length.factor);
    *done = true;
    return COGPU_OK;
}

static cogpu_status add_by_esri_text(crs_key_writer *in, const PJ *crs, bool *done) {
    epsg_unit angle, length;
    const char *const options[] = {"MULTILINE=NO", NULL};
    const char *wkt = proj_as_wkt(in->context, crs, PJ_WKT1_ESRI, options);
    *done = wkt != NULL;
    if (!wkt)
        return COGPU_OK;
    TRY(cogpu_crs_add_text(in, KEY_PROJECTED_CITATION,
                           (const char *const[]){"ESRI PE String = ", wkt, NULL}));
    return add_base(in, crs, KEY_USER_DEFINED, &angle, &length);
}

/* ---- what was written, read ---------------------------------------------------------------- */

static bool same_shape(crs_key_writer *in, const PJ *one, const PJ *other) {
    const PJ *systems[2] = {one, other};
    double major[2] = {0}, flattening[2] = {0}, longitude[2] = {0}, factor[2] = {0};
    for (int i = 0; i < 2; i++) {
        PJ *ellipsoid = cogpu_proj_own(&in->objects, proj_get_ellipsoid(in->context, systems[i]));
        PJ *meridian =
            cogpu_proj_own(&in->objects, proj_get_prime_meridian(in->context, systems[i]));
        if (!ellipsoid || !meridian ||
            !proj_ellipsoid_get_parameters(in->context, ellipsoid, &major[i], NULL, NULL,
                                           &flattening[i]) ||
            !proj_prime_meridian_get_parameters(in->context, meridian, &longitude[i], &factor[i],
                                                NULL))
            return false;
    }
    return cogpu_crs_is_near(major[0], major[1]) &&
           cogpu_crs_is_near(flattening[0], flattening[1]) &&
           cogpu_crs_is_near(longitude[0] * factor[0], longitude[1] * factor[1]);
}

/* Some methods are equal on a sphere but have different names; their PROJ strings are equal. */
static bool same_projection(crs_key_writer *in, const PJ *one, const PJ *other) {
    PJ *first = cogpu_proj_own(&in->objects, proj_crs_get_coordoperation(in->context, one));
    PJ *second = cogpu_proj_own(&in->objects, proj_crs_get_coordoperation(in->context, other));
    if (first && second && cogpu_crs_is_equivalent(in, first, second))
        return true;
    const char *text = proj_as_proj_string(in->context, one, PJ_PROJ_5, NULL);
    const char *second_text = proj_as_proj_string(in->context, other, PJ_PROJ_5, NULL);
    return text && second_text && strcmp(text, second_text) == 0;
}

/* The CRS that our reader makes of the keys, without a shift to WGS 84; NULL if it cannot. */
static cogpu_status read_keys_back(crs_key_writer *in, PJ **crs) {
    cogpu_geokey keys[COGPU_CRS_KEYS_MAX];
    cogpu_georef georef = {.keys = keys, .key_count = in->list->count};
    size_t needed;
    char *wkt = NULL;
    *crs = NULL;
    memcpy(keys, in->list->keys, sizeof keys);
    cogpu_geokeys_sort(keys, georef.key_count);
    cogpu_crs_from_keys(&georef);
    if (cogpu_crs_to_wkt(&georef, &in->context, NULL, 0, &needed, NULL) != COGPU_OK)
        return COGPU_OK;
    TRY(cogpu_arena_allocate(in->arena, needed, 1, &wkt, in->error));
    TRY(cogpu_crs_to_wkt(&georef, &in->context, wkt, needed, &needed, in->error));
    PJ *read =
        cogpu_proj_own(&in->objects, proj_create_from_wkt(in->context, wkt, NULL, NULL, NULL));
    bool is_bound = read && proj_get_type(read) == PJ_TYPE_BOUND_CRS;
    *crs = is_bound ? cogpu_proj_own(&in->objects, proj_get_source_crs(in->context, read)) : read;
    return COGPU_OK;
}

/* *same: the keys so far give the CRS that they were made from. */
static cogpu_status check_round_trip(crs_key_writer *in, const PJ *crs, bool *same) {
    epsg_unit stated, found;
    PJ *read;
    TRY(read_keys_back(in, &read));
    *same = read && proj_get_type(read) == proj_get_type(crs) && same_shape(in, crs, read) &&
            cogpu_crs_axis_unit(in, crs, &stated) && cogpu_crs_axis_unit(in, read, &found) &&
            cogpu_crs_is_near(stated.factor, found.factor) &&
            (proj_get_type(crs) != PJ_TYPE_PROJECTED_CRS || same_projection(in, crs, read));
    return COGPU_OK;
}

/* ---- the whole ----------------------------------------------------------------------------- */

typedef cogpu_status add_projected(crs_key_writer *in, const PJ *crs, bool *done);

static cogpu_status add_user_projected(crs_key_writer *in, const PJ *crs) {
    static add_projected *const ways[] = {add_by_method, add_by_esri_text};
    uint32_t before = in->list->count;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        bool done, same = false;
        TRY(ways[i](in, crs, &done));
        if (done)
            TRY(check_round_trip(in, crs, &same));
        if (same)
            return COGPU_OK;
        in->list->count = before;
    }
    return fail_unsupported(in, "GeoTIFF has no such projection");
}

static cogpu_status add_known_projected(crs_key_writer *in, const PJ *known, bool briefly) {
    epsg_unit angle, length;
    cogpu_crs_add_short(in, KEY_MODEL_TYPE, MODEL_PROJECTED);
    cogpu_crs_add_short(in, KEY_PROJECTED_CRS, cogpu_crs_epsg_code(known));
    if (briefly)
        return COGPU_OK;
    PJ *base = cogpu_proj_own(&in->objects, proj_crs_get_geodetic_crs(in->context, known));
    TRY(cogpu_crs_add_name(in, KEY_CITATION, known));
    TRY(cogpu_crs_add_name(in, KEY_GEODETIC_CITATION, base));
    if (base && cogpu_crs_axis_unit(in, base, &angle))
        cogpu_crs_add_unit(in, KEY_ANGULAR_UNIT, KEY_ANGULAR_UNIT_SIZE, &angle);
    if (cogpu_crs_axis_unit(in, known, &length))
        cogpu_crs_add_unit(in, KEY_LINEAR_UNIT, KEY_LINEAR_UNIT_SIZE, &length);
    return COGPU_OK;
}

static cogpu_status add_unprojected(crs_key_writer *in, PJ *crs, const PJ *known, bool briefly) {
    bool same = known != NULL;
    if (proj_get_type(crs) == PJ_TYPE_GEOCENTRIC_CRS) {
        cogpu_crs_add_short(in, KEY_MODEL_TYPE, MODEL_GEOCENTRIC);
        TRY(add_geocentric(in, crs));
    } else {
        cogpu_crs_add_short(in, KEY_MODEL_TYPE, MODEL_GEOGRAPHIC);
        TRY(add_geographic(in, crs, known, briefly));
    }
    if (!known)
        TRY(check_round_trip(in, crs, &same));
    return same ? COGPU_OK : fail_unsupported(in, "GeoTIFF has no keys for its datum");
}

/* An engineering CRS, WKT1's LOCAL_CS. PROJ before 9.2 has no type for it, so its WKT decides. */
static bool is_engineering(crs_key_writer *in, const PJ *crs) {
    const char *wkt = proj_as_wkt(in->context, crs, PJ_WKT2_2019, NULL);
    return wkt && strncmp(wkt, "ENGCRS[", 7) == 0;
}

/* Name and unit, without a model type, as GDAL writes it. */
static cogpu_status add_engineering(crs_key_writer *in, const PJ *crs) {
    epsg_unit length;
    const char *unit_name = NULL;
    PJ *axes = cogpu_proj_own(&in->objects, proj_crs_get_coordinate_system(in->context, crs));
    if (!axes || !cogpu_crs_axis_unit(in, crs, &length) ||
        !proj_cs_get_axis_info(in->context, axes, 0, NULL, NULL, NULL, NULL, &unit_name, NULL,
                               NULL))
        return fail_unsupported(in, "its axes have no unit");
    TRY(cogpu_crs_add_name(in, KEY_CITATION, crs));
    if (length.code == KEY_USER_DEFINED && unit_name)
        TRY(cogpu_crs_add_text(in, KEY_PROJECTED_CITATION,
                               (const char *const[]){"LUnits = ", unit_name, NULL}));
    cogpu_crs_add_unit(in, KEY_LINEAR_UNIT, KEY_LINEAR_UNIT_SIZE, &length);
    return COGPU_OK;
}

/* `briefly`: the code alone if there is one, as GDAL does beside a vertical CRS. */
static cogpu_status add_flat(crs_key_writer *in, PJ *crs, bool briefly, bool *is_known) {
    PJ_TYPE type = proj_get_type(crs);
    *is_known = false;
    if (is_engineering(in, crs))
        return add_engineering(in, crs);
    PJ *known = cogpu_crs_find_in_epsg(in, crs);
    *is_known = known != NULL;
    if (type == PJ_TYPE_PROJECTED_CRS)
        return known ? add_known_projected(in, known, briefly) : add_user_projected(in, crs);
    if ((type != PJ_TYPE_GEOGRAPHIC_2D_CRS && type != PJ_TYPE_GEOCENTRIC_CRS) ||
        proj_is_derived_crs(in->context, crs))
        return fail_unsupported(
            in, "it is not a plain geographic, projected, geocentric or engineering CRS");
    return add_unprojected(in, crs, known, briefly);
}

static cogpu_status add_vertical(crs_key_writer *in, PJ *crs) {
    epsg_unit height;
    if (proj_get_type(crs) != PJ_TYPE_VERTICAL_CRS)
        return fail_unsupported(in, "its vertical part is not a plain vertical CRS");
    PJ *known = cogpu_crs_find_in_epsg(in, crs),
       *datum = cogpu_proj_own(&in->objects, proj_crs_get_datum(in->context, crs));
    if (known) {
        cogpu_crs_add_short(in, KEY_VERTICAL_CRS, cogpu_crs_epsg_code(known));
        return COGPU_OK;
    }
    if (!cogpu_crs_axis_unit(in, crs, &height) || height.code == KEY_USER_DEFINED)
        return fail_unsupported(in, "the unit of its heights has no EPSG code");
    cogpu_crs_add_short(in, KEY_VERTICAL_CRS, KEY_USER_DEFINED);
    cogpu_crs_add_short(in, KEY_VERTICAL_DATUM,
                        cogpu_crs_epsg_code(datum) ? cogpu_crs_epsg_code(datum) : KEY_USER_DEFINED);
    cogpu_crs_add_short(in, KEY_VERTICAL_UNIT, height.code);
    return cogpu_crs_add_text(in, KEY_VERTICAL_CITATION,
                              (const char *const[]){"VCS Name = ", cogpu_crs_name_of(crs),
                                                    "|Datum Name = ", cogpu_crs_name_of(datum), "|",
                                                    NULL});
}

/* Ellipsoidal heights: the vertical key names the 3D geographic CRS. */
static cogpu_status add_three_dimensional(crs_key_writer *in, PJ *crs) {
    bool is_known;
    PJ *base = cogpu_proj_own(&in->objects, proj_crs_get_geodetic_crs(in->context, crs));
    PJ *known = base ? cogpu_crs_find_in_epsg(in, base) : NULL;
    PJ *flat = cogpu_proj_own(&in->objects, proj_crs_demote_to_2D(in->context, NULL, crs));
    if (!known || !flat)
        return fail_unsupported(in, "its 3D geographic CRS has no EPSG code");
    TRY(add_flat(in, flat, true, &is_known));
    cogpu_crs_add_short(in, KEY_VERTICAL_CRS, cogpu_crs_epsg_code(known));
    return COGPU_OK;
}

static bool is_three_dimensional(crs_key_writer *in, const PJ *crs) {
    PJ_TYPE type = proj_get_type(crs);
    PJ *axes = type == PJ_TYPE_PROJECTED_CRS
                   ? cogpu_proj_own(&in->objects, proj_crs_get_coordinate_system(in->context, crs))
                   : NULL;
    return type == PJ_TYPE_GEOGRAPHIC_3D_CRS ||
           (axes && proj_cs_get_axis_count(in->context, axes) == 3);
}

/* A CRS with a shift to WGS 84. CRSs of the EPSG database need none: programs know better ones. */
static cogpu_status add_shifted(crs_key_writer *in, PJ *bound) {
    bool is_known;
    double *shift = in->list->shift;
    PJ *crs = cogpu_proj_own(&in->objects, proj_get_source_crs(in->context, bound));
    PJ *operation = cogpu_proj_own(&in->objects, proj_crs_get_coordoperation(in->context, bound));
    if (!crs || !operation)
        return fail_unsupported(in, "PROJ cannot decompose it");
    TRY(add_flat(in, crs, false, &is_known));
    if (is_known)
        return COGPU_OK;
    if (!proj_coordoperation_get_towgs84_values(in->context, operation, shift,
                                                COGPU_CRS_SHIFT_NUMBERS, 0))
        return fail_unsupported(in, "its shift to WGS 84 does not have 3 or 7 parameters");
    uint32_t count = 3;
    for (uint32_t i = 3; i < COGPU_CRS_SHIFT_NUMBERS; i++)
        if (shift[i] != 0)
            count = COGPU_CRS_SHIFT_NUMBERS;
    cogpu_geokey *key = cogpu_crs_add_key(in, KEY_TO_WGS84, COGPU_GEOKEY_DOUBLE);
    key->doubles = shift;
    key->count = count;
    return COGPU_OK;
}

static cogpu_status add_horizontal(crs_key_writer *in, PJ *crs, bool briefly) {
    bool is_known;
    return proj_get_type(crs) == PJ_TYPE_BOUND_CRS ? add_shifted(in, crs)
                                                   : add_flat(in, crs, briefly, &is_known);
}

static cogpu_status add_compound(crs_key_writer *in, PJ *crs) {
    PJ *flat = cogpu_proj_own(&in->objects, proj_crs_get_sub_crs(in->context, crs, 0));
    PJ *height = cogpu_proj_own(&in->objects, proj_crs_get_sub_crs(in->context, crs, 1));
    if (!flat || !height)
        return fail_unsupported(in, "PROJ cannot decompose it");
    TRY(add_horizontal(in, flat, true));
    bool is_cited = false;
    for (uint32_t i = 0; i < in->list->count; i++)
        is_cited = is_cited || in->list->keys[i].id == KEY_CITATION;
    if (!is_cited)
        TRY(cogpu_crs_add_name(in, KEY_CITATION, crs));
    return add_vertical(in, height);
}

static cogpu_status parse_crs_text(crs_key_writer *in, PJ **crs) {
    TRY(cogpu_crs_create(in->context, in->words, in->arena, crs, in->error));
    *crs = cogpu_proj_own(&in->objects, *crs);
    return COGPU_OK;
}

static cogpu_status add_crs_keys(crs_key_writer *in) {
    PJ *crs;
    TRY(parse_crs_text(in, &crs));
    if (proj_get_type(crs) == PJ_TYPE_COMPOUND_CRS)
        return add_compound(in, crs);
    return is_three_dimensional(in, crs) ? add_three_dimensional(in, crs)
                                         : add_horizontal(in, crs, false);
}

cogpu_status cogpu_write_crs_keys(const char *crs, cogpu_arena *arena, const cogpu_geokey **keys,
                                  uint32_t *count, cogpu_error *error) {
    crs_key_writer in = {.arena = arena, .error = error, .words = crs};
    TRY(cogpu_arena_allocate(arena, 1, sizeof *in.list, &in.list, error));
    TRY(cogpu_crs_database_open(&in.context, error));
    proj_context_use_proj4_init_rules(in.context, 1); /* "+init=epsg:4326" */
    cogpu_status status = add_crs_keys(&in);
    cogpu_proj_destroy_all(&in.objects);
    cogpu_crs_database_close(in.context);
    TRY(status);
    cogpu_geokeys_sort(in.list->keys, in.list->count);
    *keys = in.list->keys;
    *count = in.list->count;
    return COGPU_OK;
}
