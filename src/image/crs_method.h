/* Map projections as GeoTIFF numbers them and as the EPSG registry describes them. */
#ifndef COGPU_IMAGE_CRS_METHOD_H
#define COGPU_IMAGE_CRS_METHOD_H

#include "image/geokey.h"

typedef enum cogpu_parameter_kind {
    COGPU_PARAMETER_ANGLE = 0,
    COGPU_PARAMETER_LENGTH,
    COGPU_PARAMETER_SCALE
} cogpu_parameter_kind;

/* A parameter of a method: EPSG's code and name, the keys that may hold it in the order in which
 * preference, and the default value: degrees, metres or a factor. */
typedef struct cogpu_parameter {
    const char *code, *name;
    cogpu_parameter_kind kind;
    uint16_t keys[4];
    double otherwise;
} cogpu_parameter;

enum { COGPU_METHOD_PARAMETERS = 7 };

typedef struct cogpu_method {
    uint32_t id;      /* of key 3075 */
    bool is_variant;  /* the second of the two variants of a number */
    const char *code; /* EPSG's, or NULL where the registry has none */
    const char *name;
    uint8_t parameters[COGPU_METHOD_PARAMETERS]; /* of cogpu_method_parameter, ended by 0 */
} cogpu_method;

enum {
    COGPU_METHOD_EQUIDISTANT_CONIC = 13,
    COGPU_METHOD_POLAR_STEREOGRAPHIC = 15,
    COGPU_METHOD_SOUTH_ORIENTED = 27
};

/* The method that the keys name, or NULL. */
const cogpu_method *cogpu_method_find(const cogpu_georef *georef);

/* The method that EPSG has under this code, or else under this name; NULL where GeoTIFF has none.
 */
const cogpu_method *cogpu_method_named(const char *code, const char *name);

/* The latitude of a polar stereographic projection: of the pole, or of the standard parallel. */
double cogpu_method_polar_latitude(const cogpu_georef *georef);

/* The key under which a parameter is written. */
uint16_t cogpu_method_key(const cogpu_method *method, const cogpu_parameter *parameter);

const cogpu_parameter *cogpu_method_parameter(uint8_t index);

/* True where a key holds the parameter; else *value is what it is otherwise. */
bool cogpu_parameter_read(const cogpu_parameter *parameter, const cogpu_georef *georef,
                          double *value);

#endif
