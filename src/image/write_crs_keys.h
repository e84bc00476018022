/* GeoKeys of a CRS under construction, and what PROJ knows of it: shared by write_crs.c, which
 * decides which keys a CRS needs, and write_crs_keys.c. */
#ifndef COGPU_IMAGE_WRITE_CRS_KEYS_H
#define COGPU_IMAGE_WRITE_CRS_KEYS_H

#include "image/geokey.h"
#include "image/proj_objects.h"

enum { COGPU_CRS_KEYS_MAX = 40, COGPU_CRS_SHIFT_NUMBERS = 7 };

/* EPSG codes of units. */
enum { UNIT_METRE = 9001, UNIT_FOOT, UNIT_US_FOOT, UNIT_DEGREE = 9102 };

/* Keys with their values, in the arena. */
typedef struct cogpu_crs_key_list {
    cogpu_geokey keys[COGPU_CRS_KEYS_MAX];
    uint16_t shorts[COGPU_CRS_KEYS_MAX];
    double doubles[COGPU_CRS_KEYS_MAX], shift[COGPU_CRS_SHIFT_NUMBERS];
    uint32_t count;
} cogpu_crs_key_list;

/* One call: the keys so far, and its PROJ objects. */
typedef struct cogpu_crs_key_writer {
    cogpu_crs_database *context;
    cogpu_arena *arena;
    cogpu_error *error;
    const char *words;
    cogpu_crs_key_list *list;
    cogpu_proj_objects objects;
} cogpu_crs_key_writer;

typedef struct cogpu_crs_epsg_unit {
    uint32_t code; /* KEY_USER_DEFINED without one */
    double factor; /* to radians or metres */
} cogpu_crs_epsg_unit;

cogpu_geokey *cogpu_crs_add_key(cogpu_crs_key_writer *in, uint32_t id, cogpu_geokey_kind kind);
void cogpu_crs_add_short(cogpu_crs_key_writer *in, uint32_t id, uint32_t value);
void cogpu_crs_add_double(cogpu_crs_key_writer *in, uint32_t id, double value);
/* The concatenation of texts up to a NULL. */
cogpu_status cogpu_crs_add_text(cogpu_crs_key_writer *in, uint32_t id, const char *const texts[]);
cogpu_status cogpu_crs_add_name(cogpu_crs_key_writer *in, uint32_t id, const PJ *object);
void cogpu_crs_add_unit(cogpu_crs_key_writer *in, uint32_t key, uint32_t size_key,
                        const cogpu_crs_epsg_unit *used);

/* "unknown" if the object is NULL or has no name. */
const char *cogpu_crs_name_of(const PJ *object);
/* 0 if the object has no EPSG code that fits a key. */
uint32_t cogpu_crs_epsg_code(const PJ *object);
PJ *cogpu_crs_from_epsg(cogpu_crs_key_writer *in, uint32_t code, PJ_CATEGORY category);
/* Axis order does not matter: rasters have x first. */
bool cogpu_crs_is_equivalent(cogpu_crs_key_writer *in, const PJ *one, const PJ *other);
/* The same CRS in the EPSG database, or NULL. A code with other parameters than EPSG's is ignored.
 */
PJ *cogpu_crs_find_in_epsg(cogpu_crs_key_writer *in, const PJ *crs);
/* The unit of the first axis. EPSG has several codes for the degree; GeoTIFF uses one. */
bool cogpu_crs_axis_unit(cogpu_crs_key_writer *in, const PJ *crs, cogpu_crs_epsg_unit *found);
/* Equal to ten digits. */
bool cogpu_crs_is_near(double a, double b);

#endif
