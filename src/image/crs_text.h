/* CRS definitions as text, parsed into PROJ objects. */
#ifndef COGPU_IMAGE_CRS_TEXT_H
#define COGPU_IMAGE_CRS_TEXT_H

#include "image/image.h"

#include <proj.h>

/* The caller destroys *crs. ARGUMENT if PROJ does not know the CRS. */
cogpu_status cogpu_crs_create(cogpu_crs_database *registry, const char *words, cogpu_arena *arena,
                              PJ **crs, cogpu_error *error);

#endif
