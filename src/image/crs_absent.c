/* Replaces crs_proj.c and crs_text.c in a build without PROJ: codes are known, WKT is not. */
#include "image/image.h"

cogpu_status cogpu_crs_to_wkt(const cogpu_georef *georef, cogpu_crs_database **registry, char *text,
                              size_t capacity, size_t *needed, cogpu_error *error) {
    (void)georef, (void)registry;
    *needed = 0;
    if (capacity)
        text[0] = '\0';
    return cogpu_fail(error, COGPU_UNSUPPORTED,
                      "this build has no PROJ, which WKT needs; install libproj and build again");
}

cogpu_status cogpu_crs_from_text(const char *text, cogpu_crs_database **registry,
                                 cogpu_arena *arena, cogpu_crs *crs, cogpu_error *error) {
    (void)text, (void)registry, (void)arena, (void)crs;
    return cogpu_fail(error, COGPU_UNSUPPORTED,
                      "this build has no PROJ, which parses WKT and PROJ strings");
}

void cogpu_crs_database_close(cogpu_crs_database *registry) {
    (void)registry; /* never opened */
}

const char *cogpu_proj_version(void) {
    return NULL;
}
