/*
 * Geographic and geocentric coordinate reference systems from GeoKeys.
 *
 * A key may contradict the CRS that another key names: GeographicType 4267 (NAD27) beside the axes
 * of another ellipsoid. GDAL lets the more detailed key win, as libgeotiff does:
 *
 *   GeographicType -> GeogGeodeticDatum -> GeogEllipsoid -> semi-major, semi-minor axis
 *                  -> GeogPrimeMeridian                  -> inverse flattening
 *
 * and keeps the code of the CRS. Exceptions: a geographic CRS with a datum ensemble or a dynamic
 * datum (EPSG:4326) stays as the registry has it; so does the base of a projected CRS if the file
 * has axis keys alone.
 */
#include "image/crs_builder.h"

#include <proj_experimental.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_CHARS = COGPU_CRS_NAME_CHARS, GCS_ETRS89 = 4258, ELLIPSOID_WGS84 = 7030 };

typedef struct ellipsoid {
    char name[NAME_CHARS];
    double semi_major, inverse_flattening; /* 0: a sphere, as in WKT */
} ellipsoid;

typedef struct meridian {
    char name[NAME_CHARS];
    double longitude;
    cogpu_crs_unit angle;
} meridian;

/* What a geographic CRS consists of, beside its axes. */
typedef struct geodetic {
    char name[NAME_CHARS], datum[NAME_CHARS];
    ellipsoid shape;
    meridian zero;
} geodetic;

static void copy_name(char to[NAME_CHARS], const char *name) {
    snprintf(to, NAME_CHARS, "%s", name && *name ? name : "unknown");
}

static bool is_near_angle(double a, double b) {
    return fabs(a - b) <= 1e-10 * fmax(fabs(a), fabs(b));
}

/* ---- parts of the registry's objects ------------------------------------------------------- */

static void read_shape(cogpu_crs_builder *in, const PJ *named, ellipsoid *found) {
    if (named && proj_ellipsoid_get_parameters(in->context, named, &found->semi_major, NULL, NULL,
                                               &found->inverse_flattening))
        copy_name(found->name, proj_get_name(named));
}

static void read_ellipsoid(cogpu_crs_builder *in, const PJ *object, ellipsoid *found) {
    read_shape(in, cogpu_proj_own(&in->objects, proj_get_ellipsoid(in->context, object)), found);
}

static void read_meridian(cogpu_crs_builder *in, const PJ *named, meridian *found) {
    const char *unit_name = NULL;
    if (!named || !proj_prime_meridian_get_parameters(in->context, named, &found->longitude,
                                                      &found->angle.factor, &unit_name))
        return;
    copy_name(found->angle.name, unit_name ? unit_name : "degree");
    copy_name(found->name, proj_get_name(named));
}

static void read_crs(cogpu_crs_builder *in, const PJ *crs, geodetic *found) {
    PJ *datum = cogpu_proj_own(&in->objects, proj_crs_get_datum_forced(in->context, crs));
    copy_name(found->name, proj_get_name(crs));
    copy_name(found->datum, datum ? proj_get_name(datum) : NULL);
    read_ellipsoid(in, crs, &found->shape);
    read_meridian(in, cogpu_proj_own(&in->objects, proj_get_prime_meridian(in->context, crs)),
                  &found->zero);
}

/* ---- what the keys state on top of it ------------------------------------------------------ */

static PJ *stated_datum(cogpu_crs_builder *in) {
    PJ *datum = cogpu_crs_from_key(in, KEY_DATUM, PJ_CATEGORY_DATUM);
    return datum ? datum : cogpu_crs_from_key(in, KEY_DATUM, PJ_CATEGORY_DATUM_ENSEMBLE);
}

/* Sentinel-1's writer puts the code of the CRS where that of the ellipsoid belongs. */
static PJ *stated_ellipsoid(cogpu_crs_builder *in) {
    uint32_t code = cogpu_geokey_short(in->georef, KEY_ELLIPSOID);
    return cogpu_crs_registered(in, "EPSG", code == 4326 ? ELLIPSOID_WGS84 : code,
                                PJ_CATEGORY_ELLIPSOID);
}

/* A major axis alone leaves the minor axis as it is. The inverse flattening comes before the minor
 * axis. */
static void state_axes(const cogpu_crs_builder *in, ellipsoid *found) {
    double flattening = found->inverse_flattening, major = found->semi_major;
    double minor = flattening == 0 ? major : major * (1 - 1 / flattening);
    bool has_major = cogpu_geokey_double(in->georef, KEY_SEMI_MAJOR_AXIS, &major);
    bool has_minor = cogpu_geokey_double(in->georef, KEY_SEMI_MINOR_AXIS, &minor);
    found->semi_major = major;
    if (has_major || has_minor)
        found->inverse_flattening = minor == major ? 0 : major / (major - minor);
    cogpu_geokey_double(in->georef, KEY_INVERSE_FLATTENING, &found->inverse_flattening);
}

static void state_meridian(cogpu_crs_builder *in, meridian *found) {
    char name[NAME_CHARS];
    PJ *named = cogpu_crs_from_key(in, KEY_PRIME_MERIDIAN, PJ_CATEGORY_PRIME_MERIDIAN);
    if (named) {
        read_meridian(in, named, found);
    } else if (cogpu_geokey_double(in->georef, KEY_PRIME_MERIDIAN_LONGITUDE, &found->longitude)) {
        const char *otherwise = found->longitude == 0 ? "Greenwich" : "unknown";
        copy_name(found->name,
                  cogpu_crs_cited(in, KEY_GEODETIC_CITATION, "Primem = ", otherwise, name));
        found->angle = in->angle;
    }
}

static void state_keys(cogpu_crs_builder *in, geodetic *found) {
    PJ *datum = stated_datum(in), *shape = stated_ellipsoid(in);
    if (datum) {
        copy_name(found->datum, proj_get_name(datum));
        read_ellipsoid(in, datum, &found->shape);
    }
    read_shape(in, shape, &found->shape);
    state_axes(in, &found->shape);
    state_meridian(in, &found->zero);
}

static PJ *create_axes(cogpu_crs_builder *in) {
    return cogpu_proj_own(&in->objects,
                          proj_create_ellipsoidal_2D_cs(in->context, PJ_ELLPS2D_LATITUDE_LONGITUDE,
                                                        in->angle.name, in->angle.factor));
}

static PJ *create_geodetic(cogpu_crs_builder *in, const geodetic *of) {
    return cogpu_proj_own(&in->objects, proj_create_geographic_crs(
                                            in->context, of->name, of->datum, of->shape.name,
                                            of->shape.semi_major, of->shape.inverse_flattening,
                                            of->zero.name, of->zero.longitude, of->zero.angle.name,
                                            of->zero.angle.factor, create_axes(in)));
}

/* ---- a CRS with a code --------------------------------------------------------------------- */

static bool is_same_geodetic(const geodetic *one, const geodetic *other) {
    return strcmp(one->datum, other->datum) == 0 &&
           is_near_angle(one->shape.semi_major, other->shape.semi_major) &&
           is_near_angle(one->shape.inverse_flattening, other->shape.inverse_flattening) &&
           fabs(one->zero.longitude * one->zero.angle.factor -
                other->zero.longitude * other->zero.angle.factor) <= 1e-11;
}

/* The registry's CRS, or a copy under its code with what the keys state. */
static PJ *with_stated_keys(cogpu_crs_builder *in, PJ *coded, uint32_t code) {
    geodetic registered = {.zero = {.name = "Greenwich", .angle = in->angle}}, stated;
    read_crs(in, coded, &registered);
    stated = registered;
    state_keys(in, &stated);
    if (is_same_geodetic(&registered, &stated))
        return coded;
    PJ *changed = create_geodetic(in, &stated);
    return changed ? cogpu_crs_with_code(in, changed, code) : NULL;
}

/* ETRS89 has become an ensemble in later releases of the registry. */
static bool is_ensemble_or_dynamic(cogpu_crs_builder *in, const PJ *crs, uint32_t code) {
    PJ *ensemble = cogpu_proj_own(&in->objects, proj_crs_get_datum_ensemble(in->context, crs));
    PJ *datum = cogpu_proj_own(&in->objects, proj_crs_get_datum(in->context, crs));
    return ensemble || code == GCS_ETRS89 ||
           (datum && proj_get_type(datum) == PJ_TYPE_DYNAMIC_GEODETIC_REFERENCE_FRAME);
}

static PJ *in_stated_angle(cogpu_crs_builder *in, PJ *coded, uint32_t code) {
    double factor;
    PJ *axes = cogpu_proj_own(&in->objects, proj_crs_get_coordinate_system(in->context, coded));
    if (!cogpu_geokey_short(in->georef, KEY_ANGULAR_UNIT) || !axes ||
        !proj_cs_get_axis_info(in->context, axes, 0, NULL, NULL, NULL, &factor, NULL, NULL, NULL) ||
        is_near_angle(factor, in->angle.factor))
        return coded;
    PJ *changed = cogpu_proj_own(&in->objects,
                                 proj_crs_alter_cs_angular_unit(in->context, coded, in->angle.name,
                                                                in->angle.factor, NULL, NULL));
    return changed ? cogpu_crs_with_code(in, changed, code) : coded;
}

/* ---- a CRS of parameters ------------------------------------------------------------------- */

/* A datum of the registry, which keeps its code unless other keys contradict it. */
static PJ *of_datum(cogpu_crs_builder *in, geodetic *found, PJ *datum) {
    geodetic registered;
    copy_name(found->datum, proj_get_name(datum));
    read_ellipsoid(in, datum, &found->shape);
    read_meridian(in, cogpu_proj_own(&in->objects, proj_get_prime_meridian(in->context, datum)),
                  &found->zero);
    registered = *found;
    state_keys(in, found);
    if (!is_same_geodetic(&registered, found))
        return create_geodetic(in, found);
    return cogpu_proj_own(&in->objects, proj_create_geographic_crs_from_datum(
                                            in->context, found->name, datum, create_axes(in)));
}

static PJ *geographic_of_parameters(cogpu_crs_builder *in) {
    char name[NAME_CHARS];
    const char *citation = cogpu_geokey_text(in->georef, KEY_GEODETIC_CITATION);
    geodetic found = {.shape = {"WGS 84", 6378137, 298.257223563},
                      .zero = {.name = "Greenwich", .angle = in->angle}};
    copy_name(found.name,
              cogpu_crs_cited(in, KEY_GEODETIC_CITATION, "GCS Name = ",
                              citation && !strchr(citation, '|') ? citation : "unknown", name));
    copy_name(found.datum, cogpu_crs_cited(in, KEY_GEODETIC_CITATION, "Datum = ", "unknown", name));
    PJ *datum = stated_datum(in);
    if (datum)
        return of_datum(in, &found, datum);
    double major;
    if (!stated_ellipsoid(in) && cogpu_geokey_double(in->georef, KEY_SEMI_MAJOR_AXIS, &major)) {
        found.shape = (ellipsoid){.semi_major = major}; /* a sphere, unless a key says otherwise */
        copy_name(found.shape.name,
                  cogpu_crs_cited(in, KEY_GEODETIC_CITATION, "Ellipsoid = ", "unknown", name));
    }
    state_keys(in, &found);
    return create_geodetic(in, &found);
}

PJ *cogpu_crs_geographic(cogpu_crs_builder *in) {
    uint32_t code = cogpu_geokey_short(in->georef, KEY_GEODETIC_CRS);
    bool is_base = strcmp(in->georef->crs.model, "projected") == 0;
    PJ *coded = cogpu_crs_from_key(in, KEY_GEODETIC_CRS, PJ_CATEGORY_CRS);
    if (!coded)
        return geographic_of_parameters(in);
    if (!is_base && is_ensemble_or_dynamic(in, coded, code))
        return coded;
    if (proj_get_type(coded) == PJ_TYPE_GEOGRAPHIC_3D_CRS)
        return cogpu_proj_own(&in->objects, proj_crs_demote_to_2D(in->context, NULL, coded));
    coded = with_stated_keys(in, coded, code);
    return !coded || is_base ? coded : in_stated_angle(in, coded, code);
}

PJ *cogpu_crs_on_stated_base(cogpu_crs_builder *in, PJ *projected) {
    static const uint16_t detailed[] = {KEY_PROJECTION, KEY_METHOD, KEY_GEODETIC_CRS, KEY_DATUM,
                                        KEY_ELLIPSOID};
    bool is_detailed = false;
    for (size_t i = 0; i < sizeof detailed / sizeof *detailed; i++)
        is_detailed = is_detailed || cogpu_geokey_short(in->georef, detailed[i]);
    PJ *registered =
        cogpu_proj_own(&in->objects, proj_crs_get_geodetic_crs(in->context, projected));
    const char *text = registered ? proj_get_id_code(registered, 0) : NULL;
    if (!is_detailed || !text)
        return projected;
    PJ *named = cogpu_crs_from_key(in, KEY_GEODETIC_CRS, PJ_CATEGORY_CRS);
    uint32_t own_code = (uint32_t)strtoul(text, NULL, 10);
    uint32_t code = named ? cogpu_geokey_short(in->georef, KEY_GEODETIC_CRS) : own_code;
    PJ *base = with_stated_keys(in, named ? named : registered, code);
    if (!base || base == registered || (base == named && code == own_code))
        return projected;
    PJ *changed =
        cogpu_proj_own(&in->objects, proj_crs_alter_geodetic_crs(in->context, projected, base));
    return changed ? cogpu_crs_with_code(in, changed, in->georef->crs.code) : projected;
}

PJ *cogpu_crs_geocentric(cogpu_crs_builder *in) {
    PJ *coded = cogpu_crs_from_key(in, KEY_GEODETIC_CRS, PJ_CATEGORY_CRS);
    if (coded && proj_get_type(coded) == PJ_TYPE_GEOCENTRIC_CRS)
        return coded;
    PJ *base = coded ? coded : geographic_of_parameters(in);
    PJ *datum =
        base ? cogpu_proj_own(&in->objects, proj_crs_get_datum_forced(in->context, base)) : NULL;
    const char *name = in->georef->crs.name[0] ? in->georef->crs.name : "unknown";
    return datum ? cogpu_proj_own(&in->objects, proj_create_geocentric_crs_from_datum(
                                                    in->context, name, datum, "metre", 1))
                 : NULL;
}
