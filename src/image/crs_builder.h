/* Builds a PROJ object from GeoKeys: shared by crs_proj.c (projected, vertical, the whole) and
 * crs_geodetic.c (geographic and geocentric). */
#ifndef COGPU_IMAGE_CRS_BUILDER_H
#define COGPU_IMAGE_CRS_BUILDER_H

#include "image/crs_method.h"
#include "image/proj_objects.h"

enum { COGPU_CRS_NAME_CHARS = 128 };

typedef struct cogpu_crs_unit {
    char name[COGPU_CRS_NAME_CHARS];
    double factor; /* to radians or metres */
} cogpu_crs_unit;

/* One call: the keys, the units that they state, and its PROJ objects. */
typedef struct cogpu_crs_builder {
    PJ_CONTEXT *context;
    const cogpu_georef *georef;
    cogpu_crs_unit angle, length;
    cogpu_proj_objects objects;
} cogpu_crs_builder;

/* NULL where the code is undefined, user-defined or not in the registry. */
PJ *cogpu_crs_registered(cogpu_crs_builder *in, const char *authority, uint32_t code,
                         PJ_CATEGORY category);
PJ *cogpu_crs_from_key(cogpu_crs_builder *in, uint32_t key, PJ_CATEGORY category);
bool cogpu_crs_is_code(uint32_t code);

/* The text after a label in a citation, up to the next bar: "GCS Name = WGS 84|Datum = ...". */
const char *cogpu_crs_cited(const cogpu_crs_builder *in, uint32_t key, const char *label,
                            const char *otherwise, char name[COGPU_CRS_NAME_CHARS]);

/* The same object with an EPSG code; a code that the object had is replaced. */
PJ *cogpu_crs_with_code(cogpu_crs_builder *in, PJ *object, uint32_t code);

PJ *cogpu_crs_geographic(cogpu_crs_builder *in);
PJ *cogpu_crs_geocentric(cogpu_crs_builder *in);

/* A projected CRS of the registry on the geographic CRS that the keys state, as libgeotiff combines
 * them. The registry's own where the keys state no other. */
PJ *cogpu_crs_on_stated_base(cogpu_crs_builder *in, PJ *projected);

#endif
