/* Replaces operations.c in a build without PROJ: CRSs of the same text are the same, and no others
 * can be transformed. */
#include "grid/operations.h"

#include <string.h>

cogpu_status cogpu_operations_open(cogpu_operations **operations, cogpu_error *error) {
    (void)error;
    *operations = NULL;
    return COGPU_OK;
}

void cogpu_operations_close(cogpu_operations *operations) {
    (void)operations; /* never opened */
}

cogpu_status cogpu_operations_find(cogpu_operations *operations, const char *source,
                                   const char *target, const double *corners,
                                   cogpu_reprojection *found, cogpu_error *error) {
    (void)operations, (void)corners;
    *found = (cogpu_reprojection){0};
    if (strcmp(source, target) == 0)
        return COGPU_OK;
    return cogpu_fail(error, COGPU_UNSUPPORTED,
                      "this build has no PROJ, which transforms \"%.60s\" to \"%.60s\"; install "
                      "libproj and build again",
                      source, target);
}

void cogpu_reproject(const cogpu_reprojection *reprojection, bool back, size_t count, double *x,
                     double *y) {
    (void)reprojection, (void)back, (void)count, (void)x, (void)y; /* both CRSs are the same */
}
