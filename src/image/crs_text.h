/* Coordinate systems in words, as objects of PROJ. */
#ifndef COGPU_IMAGE_CRS_TEXT_H
#define COGPU_IMAGE_CRS_TEXT_H

#include "image/image.h"

#include <proj.h>

/* The caller destroys *crs. ARGUMENT where PROJ knows no such system. */
cogpu_status cogpu_crs_create(cogpu_registry *registry, const char *words, cogpu_arena *arena,
                              PJ **crs, cogpu_error *error);

#endif
