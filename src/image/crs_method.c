/*
 * Projection methods: GeoTIFF's number and parameter keys against EPSG's method and parameter
 * codes. crs_proj.c reads the table forward, write_crs.c backward.
 *
 * Writers store one parameter under different keys (natural origin, false origin, centre): each
 * parameter lists its keys in the order of preference.
 */
#include "image/crs_method.h"

#include <math.h>
#include <string.h>

enum {
    END,
    LATITUDE,
    LONGITUDE,
    SCALE,
    EASTING,
    NORTHING,
    CENTER_LATITUDE,
    CENTER_LONGITUDE,
    AZIMUTH,
    RECTIFIED,
    CENTER_SCALE,
    CENTER_EASTING,
    CENTER_NORTHING,
    FALSE_LATITUDE,
    FALSE_LONGITUDE,
    PARALLEL_1,
    PARALLEL_2,
    FALSE_EASTING,
    FALSE_NORTHING,
    POLAR_LATITUDE,
    POLAR_PARALLEL,
    POLAR_LONGITUDE,
    POLE_LONGITUDE
};

static const cogpu_parameter parameters[] = {
    [LATITUDE] =
        {"8801", "Latitude of natural origin", COGPU_PARAMETER_ANGLE, {3081, 3085, 3089}, 0},
    [LONGITUDE] =
        {"8802", "Longitude of natural origin", COGPU_PARAMETER_ANGLE, {3080, 3084, 3088}, 0},
    [SCALE] = {"8805", "Scale factor at natural origin", COGPU_PARAMETER_SCALE, {3092, 3093}, 1},
    [EASTING] = {"8806", "False easting", COGPU_PARAMETER_LENGTH, {3082, 3090, 3086}, 0},
    [NORTHING] = {"8807", "False northing", COGPU_PARAMETER_LENGTH, {3083, 3091, 3087}, 0},
    [CENTER_LATITUDE] =
        {"8811", "Latitude of projection centre", COGPU_PARAMETER_ANGLE, {3089, 3081, 3085}, 0},
    [CENTER_LONGITUDE] =
        {"8812", "Longitude of projection centre", COGPU_PARAMETER_ANGLE, {3088, 3080, 3084}, 0},
    [AZIMUTH] = {"8813", "Azimuth of initial line", COGPU_PARAMETER_ANGLE, {3094}, 90},
    [RECTIFIED] = {"8814", "Angle from Rectified to Skew Grid", COGPU_PARAMETER_ANGLE, {3096}, 90},
    [CENTER_SCALE] =
        {"8815", "Scale factor on initial line", COGPU_PARAMETER_SCALE, {3093, 3092}, 1},
    [CENTER_EASTING] =
        {"8816", "Easting at projection centre", COGPU_PARAMETER_LENGTH, {3090, 3082, 3086}, 0},
    [CENTER_NORTHING] =
        {"8817", "Northing at projection centre", COGPU_PARAMETER_LENGTH, {3091, 3083, 3087}, 0},
    [FALSE_LATITUDE] =
        {"8821", "Latitude of false origin", COGPU_PARAMETER_ANGLE, {3085, 3081, 3089}, 0},
    [FALSE_LONGITUDE] =
        {"8822", "Longitude of false origin", COGPU_PARAMETER_ANGLE, {3084, 3080, 3088}, 0},
    [PARALLEL_1] = {"8823", "Latitude of 1st standard parallel", COGPU_PARAMETER_ANGLE, {3078}, 0},
    [PARALLEL_2] = {"8824", "Latitude of 2nd standard parallel", COGPU_PARAMETER_ANGLE, {3079}, 0},
    [FALSE_EASTING] =
        {"8826", "Easting at false origin", COGPU_PARAMETER_LENGTH, {3086, 3082, 3090}, 0},
    [FALSE_NORTHING] =
        {"8827", "Northing at false origin", COGPU_PARAMETER_LENGTH, {3087, 3083, 3091}, 0},
    [POLAR_LATITUDE] =
        {"8801", "Latitude of natural origin", COGPU_PARAMETER_ANGLE, {3081, 3085, 3089}, 0},
    [POLAR_PARALLEL] =
        {"8832", "Latitude of standard parallel", COGPU_PARAMETER_ANGLE, {3081, 3085, 3089}, 0},
    [POLAR_LONGITUDE] =
        {"8802", "Longitude of natural origin", COGPU_PARAMETER_ANGLE, {3095, 3080, 3084, 3088}, 0},
    [POLE_LONGITUDE] =
        {"8833", "Longitude of origin", COGPU_PARAMETER_ANGLE, {3095, 3080, 3084, 3088}, 0},
};

enum { MERCATOR = 7, EQUIRECTANGULAR = 17 };

static const cogpu_method methods[] = {
    {1, false, "9807", "Transverse Mercator", {LATITUDE, LONGITUDE, SCALE, EASTING, NORTHING}},
    {3,
     false,
     "9812",
     "Hotine Oblique Mercator (variant A)",
     {CENTER_LATITUDE, CENTER_LONGITUDE, AZIMUTH, RECTIFIED, CENTER_SCALE, EASTING, NORTHING}},
    {4,
     false,
     "9813",
     "Laborde Oblique Mercator",
     {CENTER_LATITUDE, CENTER_LONGITUDE, AZIMUTH, CENTER_SCALE, EASTING, NORTHING}},
    {5,
     false,
     "9815",
     "Hotine Oblique Mercator (variant B)",
     {CENTER_LATITUDE, CENTER_LONGITUDE, AZIMUTH, RECTIFIED, CENTER_SCALE, CENTER_EASTING,
      CENTER_NORTHING}},
    {MERCATOR,
     false,
     "9804",
     "Mercator (variant A)",
     {LATITUDE, LONGITUDE, SCALE, EASTING, NORTHING}},
    {MERCATOR, true, "9805", "Mercator (variant B)", {PARALLEL_1, LONGITUDE, EASTING, NORTHING}},
    {8,
     false,
     "9802",
     "Lambert Conic Conformal (2SP)",
     {FALSE_LATITUDE, FALSE_LONGITUDE, PARALLEL_1, PARALLEL_2, FALSE_EASTING, FALSE_NORTHING}},
    {9,
     false,
     "9801",
     "Lambert Conic Conformal (1SP)",
     {LATITUDE, LONGITUDE, SCALE, EASTING, NORTHING}},
    {10, false, "9820", "Lambert Azimuthal Equal Area", {LATITUDE, LONGITUDE, EASTING, NORTHING}},
    {11,
     false,
     "9822",
     "Albers Equal Area",
     {FALSE_LATITUDE, FALSE_LONGITUDE, PARALLEL_1, PARALLEL_2, FALSE_EASTING, FALSE_NORTHING}},
    {12, false, "9832", "Modified Azimuthal Equidistant", {LATITUDE, LONGITUDE, EASTING, NORTHING}},
    {COGPU_METHOD_EQUIDISTANT_CONIC,
     false,
     NULL,
     "Equidistant Conic",
     {FALSE_LATITUDE, FALSE_LONGITUDE, PARALLEL_1, PARALLEL_2, FALSE_EASTING, FALSE_NORTHING}},
    {14, false, NULL, "Stereographic", {LATITUDE, LONGITUDE, SCALE, EASTING, NORTHING}},
    {COGPU_METHOD_POLAR_STEREOGRAPHIC,
     false,
     "9810",
     "Polar Stereographic (variant A)",
     {POLAR_LATITUDE, POLAR_LONGITUDE, SCALE, EASTING, NORTHING}},
    {COGPU_METHOD_POLAR_STEREOGRAPHIC,
     true,
     "9829",
     "Polar Stereographic (variant B)",
     {POLAR_PARALLEL, POLE_LONGITUDE, EASTING, NORTHING}},
    {16, false, "9809", "Oblique Stereographic", {LATITUDE, LONGITUDE, SCALE, EASTING, NORTHING}},
    {EQUIRECTANGULAR,
     false,
     "1028",
     "Equidistant Cylindrical",
     {PARALLEL_1, LONGITUDE, EASTING, NORTHING}},
    {EQUIRECTANGULAR,
     true,
     "1028",
     "Equidistant Cylindrical",
     {PARALLEL_1, LATITUDE, LONGITUDE, EASTING, NORTHING}},
    {18, false, "9806", "Cassini-Soldner", {LATITUDE, LONGITUDE, EASTING, NORTHING}},
    {19, false, NULL, "Gnomonic", {LATITUDE, LONGITUDE, EASTING, NORTHING}},
    {20, false, NULL, "Miller Cylindrical", {LONGITUDE, EASTING, NORTHING}},
    {21, false, "9840", "Orthographic", {LATITUDE, LONGITUDE, EASTING, NORTHING}},
    {22, false, "9818", "American Polyconic", {LATITUDE, LONGITUDE, EASTING, NORTHING}},
    {23, false, NULL, "Robinson", {LONGITUDE, EASTING, NORTHING}},
    {24, false, NULL, "Sinusoidal", {LONGITUDE, EASTING, NORTHING}},
    {25, false, NULL, "Van Der Grinten", {LONGITUDE, EASTING, NORTHING}},
    {26, false, "9811", "New Zealand Map Grid", {LATITUDE, LONGITUDE, EASTING, NORTHING}},
    {COGPU_METHOD_SOUTH_ORIENTED,
     false,
     "9808",
     "Transverse Mercator (South Orientated)",
     {LATITUDE, LONGITUDE, SCALE, EASTING, NORTHING}},
    {28,
     false,
     "9835",
     "Lambert Cylindrical Equal Area",
     {PARALLEL_1, LONGITUDE, EASTING, NORTHING}},
    {9815,
     false,
     "9815",
     "Hotine Oblique Mercator (variant B)",
     {CENTER_LATITUDE, CENTER_LONGITUDE, AZIMUTH, RECTIFIED, CENTER_SCALE, CENTER_EASTING,
      CENTER_NORTHING}},
};

bool cogpu_parameter_read(const cogpu_parameter *parameter, const cogpu_georef *georef,
                          double *value) {
    for (int i = 0; i < 4 && parameter->keys[i]; i++)
        if (cogpu_geokey_double(georef, parameter->keys[i], value))
            return true;
    *value = parameter->otherwise;
    return false;
}

static double value_of(uint8_t index, const cogpu_georef *georef) {
    double value;
    cogpu_parameter_read(&parameters[index], georef, &value);
    return value;
}

double cogpu_method_polar_latitude(const cogpu_georef *georef) {
    return value_of(POLAR_LATITUDE, georef);
}

/* Three numbers have two variants each; the parameters that are set decide which one. */
static bool means_variant(uint32_t id, const cogpu_georef *georef) {
    if (id == MERCATOR)
        return value_of(PARALLEL_1, georef) != 0;
    if (id == COGPU_METHOD_POLAR_STEREOGRAPHIC)
        return value_of(SCALE, georef) == 1;
    return id == EQUIRECTANGULAR && value_of(LATITUDE, georef) != 0;
}

const cogpu_method *cogpu_method_find(const cogpu_georef *georef) {
    uint32_t id = cogpu_geokey_short(georef, KEY_METHOD);
    bool is_variant = means_variant(id, georef);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].id == id && methods[i].is_variant == is_variant)
            return &methods[i];
    return NULL;
}

/* Method codes that GeoTIFF does not distinguish from another: spherical formulas, and methods that
 * EPSG added later. */
static const char *usual_code(const char *code) {
    static const char *const usual[][2] = {
        {"1026", "9804"}, {"1027", "9820"}, {"1029", "1028"}, {"9834", "9835"}, {"1125", "9832"}};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(code, usual[i][0]) == 0)
            return usual[i][1];
    return code;
}

/* Of rows with the same code the last has the number that GDAL writes, and the most parameters. */
const cogpu_method *cogpu_method_named(const char *code, const char *name) {
    for (size_t i = sizeof methods / sizeof *methods; i > 0; i--) {
        const cogpu_method *method = &methods[i - 1];
        bool by_code = method->code && code && *code;
        if (by_code ? strcmp(method->code, usual_code(code)) == 0 : strcmp(method->name, name) == 0)
            return method;
    }
    return NULL;
}

/* The preferred key. Writers agree on two exceptions: azimuthal and global methods use the centre,
 * equal-area and equidistant conics the natural origin. */
uint16_t cogpu_method_key(const cogpu_method *method, const cogpu_parameter *parameter) {
    static const uint16_t centred[] = {10, 12, 14, 17, 19, 20, 21, 23, 24, 25};
    int turn = 0;
    for (size_t i = 0; i < sizeof centred / sizeof *centred; i++)
        if (centred[i] == method->id && parameter->kind == COGPU_PARAMETER_ANGLE)
            turn = 2;
    if (method->id == 11 || method->id == COGPU_METHOD_EQUIDISTANT_CONIC ||
        (method->id == 9815 && parameter->kind == COGPU_PARAMETER_LENGTH))
        turn = 1;
    return parameter->keys[turn] ? parameter->keys[turn] : parameter->keys[0];
}

const cogpu_parameter *cogpu_method_parameter(uint8_t index) {
    return &parameters[index];
}
