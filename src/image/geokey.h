/* GeoKeys by number, for building a CRS. */
#ifndef COGPU_IMAGE_GEOKEY_H
#define COGPU_IMAGE_GEOKEY_H

#include "image/image.h"

enum {
    KEY_MODEL_TYPE = 1024,
    KEY_RASTER_TYPE = 1025,
    KEY_CITATION = 1026,
    KEY_GEODETIC_CRS = 2048,
    KEY_GEODETIC_CITATION = 2049,
    KEY_DATUM = 2050,
    KEY_PRIME_MERIDIAN = 2051,
    KEY_GEODETIC_LINEAR_UNIT = 2052,
    KEY_ANGULAR_UNIT = 2054,
    KEY_ANGULAR_UNIT_SIZE = 2055,
    KEY_ELLIPSOID = 2056,
    KEY_SEMI_MAJOR_AXIS = 2057,
    KEY_SEMI_MINOR_AXIS = 2058,
    KEY_INVERSE_FLATTENING = 2059,
    KEY_PRIME_MERIDIAN_LONGITUDE = 2061,
    KEY_TO_WGS84 = 2062,
    KEY_PROJECTED_CRS = 3072,
    KEY_PROJECTED_CITATION = 3073,
    KEY_PROJECTION = 3074,
    KEY_METHOD = 3075,
    KEY_LINEAR_UNIT = 3076,
    KEY_LINEAR_UNIT_SIZE = 3077,
    KEY_STANDARD_PARALLEL_1 = 3078,
    KEY_STANDARD_PARALLEL_2 = 3079,
    KEY_NATURAL_LONGITUDE = 3080,
    KEY_NATURAL_LATITUDE = 3081,
    KEY_FALSE_EASTING = 3082,
    KEY_FALSE_NORTHING = 3083,
    KEY_FALSE_ORIGIN_LONGITUDE = 3084,
    KEY_FALSE_ORIGIN_LATITUDE = 3085,
    KEY_FALSE_ORIGIN_EASTING = 3086,
    KEY_FALSE_ORIGIN_NORTHING = 3087,
    KEY_CENTER_LONGITUDE = 3088,
    KEY_CENTER_LATITUDE = 3089,
    KEY_CENTER_EASTING = 3090,
    KEY_CENTER_NORTHING = 3091,
    KEY_SCALE_AT_NATURAL_ORIGIN = 3092,
    KEY_SCALE_AT_CENTER = 3093,
    KEY_AZIMUTH = 3094,
    KEY_POLE_LONGITUDE = 3095,
    KEY_RECTIFIED_ANGLE = 3096,
    KEY_VERTICAL_CRS = 4096,
    KEY_VERTICAL_CITATION = 4097,
    KEY_VERTICAL_DATUM = 4098,
    KEY_VERTICAL_UNIT = 4099,
    KEY_EPOCH = 5120,

    KEY_USER_DEFINED = 32767
};

/* NULL if there is none. */
const cogpu_geokey *cogpu_geokey_find(const cogpu_georef *georef, uint32_t id);

/* 0 if there is none: GeoTIFF's "undefined". */
uint32_t cogpu_geokey_short(const cogpu_georef *georef, uint32_t id);

/* The first number of a key; false if there is none. */
bool cogpu_geokey_double(const cogpu_georef *georef, uint32_t id, double *value);

/* NULL if there is none. */
const char *cogpu_geokey_text(const cogpu_georef *georef, uint32_t id);

/* Whether GeoTIFF allows this kind of value for the key. Unknown keys allow any. */
bool cogpu_geokey_takes(uint32_t id, cogpu_geokey_kind kind);

/* Sorts keys by id, as the functions above and files need them. */
void cogpu_geokeys_sort(cogpu_geokey *keys, uint32_t count);

#endif
