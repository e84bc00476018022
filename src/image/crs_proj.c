/*
 * The CRS of a file's GeoKeys as WKT2, by PROJ. Codes come from PROJ's registry, a CRS without a
 * code is built from its parameters, Esri's WKT is parsed, and keys that name no model make an
 * engineering CRS (WKT1's LOCAL_CS), as in GDAL. PROJ's context neither logs nor uses the network.
 */
#include "base/own_folder.h"
#include "image/crs_builder.h"
#include "image/crs_text.h"

#include <proj_experimental.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAME_CHARS = COGPU_CRS_NAME_CHARS, UNIT_METRE = 9001, UNIT_DEGREE = 9102 };

typedef cogpu_crs_builder builder;
typedef cogpu_crs_unit crs_unit;

bool cogpu_crs_is_code(uint32_t code) {
    return code != 0 && code != KEY_USER_DEFINED;
}

PJ *cogpu_crs_registered(builder *in, const char *authority, uint32_t code, PJ_CATEGORY category) {
    char text[16];
    if (!cogpu_crs_is_code(code))
        return NULL;
    snprintf(text, sizeof text, "%u", code);
    return cogpu_proj_own(
        &in->objects, proj_create_from_database(in->context, authority, text, category, 0, NULL));
}

PJ *cogpu_crs_from_key(builder *in, uint32_t key, PJ_CATEGORY category) {
    return cogpu_crs_registered(in, "EPSG", cogpu_geokey_short(in->georef, key), category);
}

PJ *cogpu_crs_with_code(builder *in, PJ *object, uint32_t code) {
    char text[16];
    snprintf(text, sizeof text, "%u", code);
    PJ *coded = cogpu_proj_own(&in->objects, proj_alter_id(in->context, object, "EPSG", text));
    return coded ? coded : object;
}

/* ---- names and units ----------------------------------------------------------------------- */

const char *cogpu_crs_cited(const builder *in, uint32_t key, const char *label,
                            const char *otherwise, char name[NAME_CHARS]) {
    const char *text = cogpu_geokey_text(in->georef, key);
    const char *start = text ? strstr(text, label) : NULL;
    if (!start)
        return otherwise;
    start += strlen(label);
    size_t length = strcspn(start, "|");
    if (!length)
        return otherwise;
    snprintf(name, NAME_CHARS, "%.*s", (int)(length < NAME_CHARS ? length : NAME_CHARS - 1), start);
    return name;
}

/* On entry `found` holds the unit of code `usual`, which nearly all files use: no database query
 * then. `size_key` holds the size of a unit that has no code. */
static void read_unit_key(const builder *in, uint32_t key, uint32_t size_key, uint32_t usual,
                          crs_unit *found) {
    char code[16];
    const char *name;
    double factor, size;
    uint32_t stated = cogpu_geokey_short(in->georef, key);
    if (stated == usual)
        return;
    snprintf(code, sizeof code, "%u", stated);
    if (proj_uom_get_info_from_database(in->context, "EPSG", code, &name, &factor, NULL) &&
        factor > 0) {
        snprintf(found->name, sizeof found->name, "%s", name);
        found->factor = factor;
    } else if (cogpu_geokey_double(in->georef, size_key, &size) && size > 0) {
        snprintf(found->name, sizeof found->name, "unknown");
        found->factor = size;
    }
}

/* ---- projected ----------------------------------------------------------------------------- */

static PJ_PARAM_DESCRIPTION describe_parameter(const builder *in,
                                               const cogpu_parameter *parameter) {
    double value;
    bool is_stated = cogpu_parameter_read(parameter, in->georef, &value);
    PJ_PARAM_DESCRIPTION description = {.name = parameter->name,
                                        .auth_name = "EPSG",
                                        .code = parameter->code,
                                        .value = value,
                                        .unit_name = "unity",
                                        .unit_conv_factor = 1,
                                        .unit_type = PJ_UT_SCALE};
    if (parameter->kind == COGPU_PARAMETER_ANGLE) {
        description.unit_type = PJ_UT_ANGULAR;
        description.unit_name = is_stated ? in->angle.name : "degree";
        description.unit_conv_factor = is_stated ? in->angle.factor : COGPU_DEGREE;
    } else if (parameter->kind == COGPU_PARAMETER_LENGTH) {
        description.unit_type = PJ_UT_LINEAR;
        description.unit_name = in->length.name;
        description.unit_conv_factor = in->length.factor;
    }
    return description;
}

static PJ *create_conversion(builder *in) {
    PJ_PARAM_DESCRIPTION stated[COGPU_METHOD_PARAMETERS];
    PJ *coded = cogpu_crs_from_key(in, KEY_PROJECTION, PJ_CATEGORY_COORDINATE_OPERATION);
    if (coded)
        return coded;
    const cogpu_method *method = cogpu_method_find(in->georef);
    if (!method)
        return NULL;
    int count = 0;
    for (; count < COGPU_METHOD_PARAMETERS && method->parameters[count]; count++)
        stated[count] = describe_parameter(in, cogpu_method_parameter(method->parameters[count]));
    /* EPSG added this method late: PROJ's own version describes it. */
    if (method->id == COGPU_METHOD_EQUIDISTANT_CONIC)
        return cogpu_proj_own(&in->objects,
                              proj_create_conversion_equidistant_conic(
                                  in->context, stated[0].value, stated[1].value, stated[2].value,
                                  stated[3].value, stated[4].value, stated[5].value, in->angle.name,
                                  in->angle.factor, in->length.name, in->length.factor));
    return cogpu_proj_own(&in->objects,
                          proj_create_conversion(in->context, "unknown", NULL, NULL, method->name,
                                                 method->code ? "EPSG" : NULL, method->code, count,
                                                 stated));
}

/* The file's coordinates may be in another unit than that of the CRS. */
static PJ *in_stated_unit(builder *in, PJ *coded) {
    double factor;
    PJ *axes = cogpu_proj_own(&in->objects, proj_crs_get_coordinate_system(in->context, coded));
    if (!cogpu_geokey_short(in->georef, KEY_LINEAR_UNIT) || !axes ||
        !proj_cs_get_axis_info(in->context, axes, 0, NULL, NULL, NULL, &factor, NULL, NULL, NULL) ||
        fabs(factor - in->length.factor) <= 1e-9 * factor)
        return coded;
    return cogpu_proj_own(&in->objects,
                          proj_crs_alter_cs_linear_unit(in->context, coded, in->length.name,
                                                        in->length.factor, NULL, NULL));
}

/* The axes of a polar projection both point along meridians. */
static PJ_CARTESIAN_CS_2D_TYPE axes_of(const builder *in) {
    double latitude;
    switch (cogpu_geokey_short(in->georef, KEY_METHOD)) {
    case COGPU_METHOD_SOUTH_ORIENTED:
        return PJ_CART2D_WESTING_SOUTHING;
    case COGPU_METHOD_POLAR_STEREOGRAPHIC:
        latitude = cogpu_method_polar_latitude(in->georef);
        return latitude > 0 ? PJ_CART2D_NORTH_POLE_EASTING_SOUTH_NORTHING_SOUTH
                            : PJ_CART2D_SOUTH_POLE_EASTING_NORTH_NORTHING_NORTH;
    default:
        return PJ_CART2D_EASTING_NORTHING;
    }
}

/* The registry's CRS of the same name and definition, or else the CRS itself. Without a name the
 * registry may hold several equal ones. */
static PJ *identify_crs(builder *in, PJ *crs) {
    int *confidence = NULL;
    PJ_OBJ_LIST *list = crs ? proj_identify(in->context, crs, "EPSG", NULL, &confidence) : NULL;
    bool is_sure = list && proj_list_get_count(list) > 0 && confidence[0] == 100;
    PJ *found = is_sure ? cogpu_proj_own(&in->objects, proj_list_get(in->context, list, 0)) : NULL;
    proj_int_list_destroy(confidence);
    proj_list_destroy(list);
    return found ? found : crs;
}

/* A projected citation names the CRS, unless it has only the unit ("LUnits = ..."). */
static const char *projected_name(const builder *in, char name[NAME_CHARS]) {
    const char *own = cogpu_geokey_text(in->georef, KEY_PROJECTED_CITATION);
    const char *general = cogpu_geokey_text(in->georef, KEY_CITATION);
    if (own && strncmp(own, "LUnits = ", 9) != 0)
        return cogpu_crs_cited(in, KEY_PROJECTED_CITATION, "PCS Name = ", own, name);
    return general ? cogpu_crs_cited(in, KEY_CITATION, "PCS Name = ", general, name) : "unnamed";
}

static PJ *projected_of_parameters(builder *in) {
    char name[NAME_CHARS];
    PJ *base = cogpu_crs_geographic(in), *operation = create_conversion(in);
    PJ *axes = cogpu_proj_own(
        &in->objects,
        proj_create_cartesian_2D_cs(in->context, axes_of(in), in->length.name, in->length.factor));
    if (!base || !operation || !axes)
        return NULL;
    return identify_crs(in, cogpu_proj_own(&in->objects, proj_create_projected_crs(
                                                             in->context, projected_name(in, name),
                                                             base, operation, axes)));
}

static PJ *create_projected(builder *in) {
    const cogpu_crs *crs = &in->georef->crs;
    PJ *coded = cogpu_crs_registered(in, crs->authority, crs->code, PJ_CATEGORY_CRS);
    return coded ? in_stated_unit(in, cogpu_crs_on_stated_base(in, coded))
                 : projected_of_parameters(in);
}

/* ---- engineering --------------------------------------------------------------------------- */

/* WKT doubles a quote inside a quoted text. */
static void quote_wkt(const char *text, char *to, size_t capacity) {
    size_t used = 0;
    for (; *text && used + 3 < capacity; text++) {
        to[used++] = *text;
        if (*text == '"')
            to[used++] = '"';
    }
    to[used] = '\0';
}

/* Keys that describe no other CRS: WKT1's LOCAL_CS, a plane with a name and a unit. PROJ's own
 * function for it knows metres alone. */
static PJ *create_engineering(builder *in, const crs_unit *length) {
    char name[4 * NAME_CHARS], unit_name[2 * NAME_CHARS], wkt[12 * NAME_CHARS];
    quote_wkt(in->georef->crs.name[0] ? in->georef->crs.name : "unnamed", name, sizeof name);
    quote_wkt(length->name, unit_name, sizeof unit_name);
    snprintf(wkt, sizeof wkt,
             "ENGCRS[\"%s\",EDATUM[\"Unknown engineering datum\"],CS[Cartesian,2],"
             "AXIS[\"easting\",east,ORDER[1],LENGTHUNIT[\"%s\",%.17g]],"
             "AXIS[\"northing\",north,ORDER[2],LENGTHUNIT[\"%s\",%.17g]]]",
             name, unit_name, length->factor, unit_name, length->factor);
    return cogpu_proj_own(&in->objects, proj_create_from_wkt(in->context, wkt, NULL, NULL, NULL));
}

static PJ *engineering_of_keys(builder *in) {
    crs_unit length = {"unknown", 1};
    uint32_t key = cogpu_geokey_short(in->georef, KEY_LINEAR_UNIT) ? KEY_LINEAR_UNIT
                                                                   : KEY_GEODETIC_LINEAR_UNIT;
    read_unit_key(in, key, KEY_LINEAR_UNIT_SIZE, 0, &length);
    return create_engineering(in, &length);
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* Esri's writers, and GDAL for what GeoTIFF has no method for, put WKT into a citation. */
static PJ *from_esri_text(builder *in) {
    static const char label[] = "ESRI PE String = ";
    const char *text = cogpu_geokey_text(in->georef, KEY_PROJECTED_CITATION);
    if (!text || strncmp(text, label, sizeof label - 1) != 0)
        return NULL;
    return cogpu_proj_own(
        &in->objects, proj_create_from_wkt(in->context, text + sizeof label - 1, NULL, NULL, NULL));
}

static PJ *create_horizontal(builder *in) {
    static const crs_unit metre = {"metre", 1};
    const char *model = in->georef->crs.model;
    PJ *crs = in->georef->crs.code ? NULL : from_esri_text(in);
    if (crs)
        return crs;
    if (strcmp(model, "geocentric") == 0)
        return cogpu_crs_geocentric(in);
    if (strcmp(model, "geographic") == 0)
        return cogpu_crs_geographic(in);
    if (strcmp(model, "projected") != 0)
        return engineering_of_keys(in);
    crs = create_projected(in);
    return crs || create_conversion(in)
               ? crs
               : create_engineering(in, &metre); /* GDAL ignores the unit here */
}

/* Shift to WGS 84 of a user-defined CRS (TOWGS84): 3 translations, or 7 Helmert parameters. */
static PJ *with_shift(builder *in, PJ *crs) {
    static const char *const names[] = {
        "X-axis translation", "Y-axis translation", "Z-axis translation", "X-axis rotation",
        "Y-axis rotation",    "Z-axis rotation",    "Scale difference"};
    static const char *const codes[] = {"8605", "8606", "8607", "8608", "8609", "8610", "8611"};
    const cogpu_geokey *key = cogpu_geokey_find(in->georef, KEY_TO_WGS84);
    bool is_coded =
        in->georef->crs.code || cogpu_crs_is_code(cogpu_geokey_short(in->georef, KEY_GEODETIC_CRS));
    if (!crs || !key || is_coded || (key->count != 3 && key->count != 7))
        return crs;
    PJ_PARAM_DESCRIPTION shifts[7];
    for (uint32_t i = 0; i < key->count; i++) {
        shifts[i] = (PJ_PARAM_DESCRIPTION){names[i], "EPSG", codes[i],    key->doubles[i],
                                           "metre",  1,      PJ_UT_LINEAR};
        if (i >= 3) {
            shifts[i].unit_name = i == 6 ? "parts per million" : "arc-second";
            shifts[i].unit_conv_factor = i == 6 ? 1e-6 : COGPU_DEGREE / 3600;
            shifts[i].unit_type = i == 6 ? PJ_UT_SCALE : PJ_UT_ANGULAR;
        }
    }
    bool is_whole = key->count == 7;
    PJ *from = cogpu_proj_own(&in->objects, proj_crs_get_geodetic_crs(in->context, crs));
    PJ *to = cogpu_crs_registered(in, "EPSG", 4326, PJ_CATEGORY_CRS);
    if (!from || !to)
        return crs;
    PJ *shift = cogpu_proj_own(
        &in->objects, proj_create_transformation(
                          in->context, "Transformation to WGS84", NULL, NULL, from, to, NULL,
                          is_whole ? "Position Vector transformation (geog2D domain)"
                                   : "Geocentric translations (geog2D domain)",
                          "EPSG", is_whole ? "9606" : "9603", (int)key->count, shifts, -1));
    return shift ? cogpu_proj_own(&in->objects,
                                  proj_crs_create_bound_crs(in->context, crs, to, shift))
                 : crs;
}

/* A vertical CRS has a code, or a citation with a datum and a unit. */
static PJ *create_vertical(builder *in) {
    char name[NAME_CHARS], datum[NAME_CHARS];
    crs_unit height = {"metre", 1};
    const char *citation = cogpu_geokey_text(in->georef, KEY_VERTICAL_CITATION);
    PJ *coded = cogpu_crs_registered(in, "EPSG", in->georef->crs.vertical, PJ_CATEGORY_CRS);
    if (coded || !citation)
        return coded;
    read_unit_key(in, KEY_VERTICAL_UNIT, 0, UNIT_METRE, &height);
    return cogpu_proj_own(
        &in->objects,
        proj_create_vertical_crs(
            in->context,
            cogpu_crs_cited(in, KEY_VERTICAL_CITATION,
                            "VCS Name = ", strchr(citation, '|') ? "unknown" : citation, name),
            cogpu_crs_cited(in, KEY_VERTICAL_CITATION, "Datum Name = ", "unknown", datum),
            height.name, height.factor));
}

/* A vertical code may name a 3D geographic CRS: heights are ellipsoidal then. */
static PJ *with_vertical(builder *in, PJ *flat) {
    char name[2 * NAME_CHARS];
    PJ *height = flat ? create_vertical(in) : NULL;
    if (!height || strcmp(in->georef->crs.model, "engineering") == 0)
        return flat;
    PJ_TYPE type = proj_get_type(height);
    if (type == PJ_TYPE_GEOGRAPHIC_3D_CRS)
        return cogpu_proj_own(&in->objects, proj_crs_promote_to_3D(in->context, NULL, flat));
    if (type != PJ_TYPE_VERTICAL_CRS)
        return flat;
    snprintf(name, sizeof name, "%s + %s", proj_get_name(flat), proj_get_name(height));
    return cogpu_proj_own(&in->objects, proj_create_compound_crs(in->context, name, flat, height));
}

/* A sidecar's CRS replaces that of the keys. */
static PJ *from_sidecar(builder *in) {
    cogpu_arena arena;
    PJ *crs = NULL;
    cogpu_arena_open(&arena, UINT64_MAX);
    (void)cogpu_crs_create(in->context, in->georef->crs_text, &arena, &crs, NULL);
    cogpu_arena_close(&arena);
    return cogpu_proj_own(&in->objects, crs);
}

static cogpu_status write_wkt(builder *in, char *text, size_t capacity, size_t *needed,
                              cogpu_error *error) {
    read_unit_key(in, KEY_ANGULAR_UNIT, KEY_ANGULAR_UNIT_SIZE, UNIT_DEGREE, &in->angle);
    read_unit_key(in, KEY_LINEAR_UNIT, KEY_LINEAR_UNIT_SIZE, UNIT_METRE, &in->length);
    PJ *crs = in->georef->crs_text ? from_sidecar(in)
                                   : with_vertical(in, with_shift(in, create_horizontal(in)));
    const char *wkt = crs ? proj_as_wkt(in->context, crs, PJ_WKT2_2019, NULL) : NULL;
    if (!wkt)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "PROJ cannot build a CRS from the file's GeoKeys");
    *needed = strlen(wkt) + 1;
    if (*needed <= capacity)
        memcpy(text, wkt, *needed);
    return COGPU_OK;
}

/* PROJ prints to stderr by itself without one. */
static void ignore_message(void *data, int level, const char *message) {
    (void)data, (void)level, (void)message;
}

/* A package that ships PROJ inside has its database in data/, and no other one may suit it: that of
 * another version, which PROJ_DATA or the system has, may lack tables. */
static void use_shipped_database(PJ_CONTEXT *context) {
    char folder[COGPU_PATH_BYTES];
    const char *paths[] = {folder};
    if (!cogpu_find_beside_library("data/proj.db", folder))
        return;
    *strrchr(folder, '/') = '\0';
    proj_context_set_search_paths(context, 1, paths);
}

cogpu_status cogpu_crs_database_open(cogpu_crs_database **registry, cogpu_error *error) {
    *registry = proj_context_create();
    if (!*registry)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "PROJ could not create a context");
    proj_log_func(*registry, NULL, ignore_message);
    proj_log_level(*registry, PJ_LOG_NONE);
    proj_context_set_enable_network(*registry, 0);
    use_shipped_database(*registry);
    return COGPU_OK;
}

void cogpu_crs_database_close(cogpu_crs_database *registry) {
    if (registry)
        proj_context_destroy(registry);
}

cogpu_status cogpu_crs_to_wkt(const cogpu_georef *georef, cogpu_crs_database **registry, char *text,
                              size_t capacity, size_t *needed, cogpu_error *error) {
    *needed = 0;
    if (capacity)
        text[0] = '\0';
    if (!georef->has_crs)
        return cogpu_fail(error, COGPU_NOT_FOUND, "the image has no CRS");
    if (!*registry)
        TRY(cogpu_crs_database_open(registry, error));
    builder in = {.context = *registry,
                  .georef = georef,
                  .angle = {"degree", COGPU_DEGREE},
                  .length = {"metre", 1}};
    cogpu_status status = write_wkt(&in, text, capacity, needed, error);
    cogpu_proj_destroy_all(&in.objects);
    return status;
}

const char *cogpu_proj_version(void) {
    return proj_info().version;
}
