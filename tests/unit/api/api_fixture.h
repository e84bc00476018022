/*
 * What the tests of the public functions share: a file with an overview, metadata and GeoKeys,
 * another with ground control points, a context, and a store whose uploads are counted here instead
 * of sent (CMakeLists.txt puts it in the place of the library's).
 */
#ifndef COGPU_TESTS_API_FIXTURE_H
#define COGPU_TESTS_API_FIXTURE_H

#include "cogpu_distributed.h"

#include <stdbool.h>

enum { FIXTURE_WIDTH = 64, FIXTURE_HEIGHT = 48, FIXTURE_BLOCK = 16, FIXTURE_GCPS = 3 };

extern uint8_t fixture_pixels[FIXTURE_HEIGHT * FIXTURE_WIDTH];
extern cogpu_gcp fixture_gcps[FIXTURE_GCPS];
extern cogpu_memory fixture_bytes; /* of the file */
extern cogpu_file *fixture_file, *fixture_gcp_file;
extern cogpu_context *fixture_context;

/* Opens or closes all of it. */
bool fixture_open(void);
void fixture_close(void);

cogpu_profile fixture_profile(void);
/* A raster of all pixels, in the memory `data`. */
cogpu_raster fixture_raster(void *data);

/* Parts that the last upload was completed with, and uploads that were aborted. */
extern uint32_t fixture_parts, fixture_aborts;

#endif
