/* See own_folder.h. */
#define _GNU_SOURCE /* dladdr */
#include "base/own_folder.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool cogpu_find_beside_library(const char *name, char path[COGPU_PATH_BYTES]) {
    static const char own_object = 0; /* any address in this code */
    Dl_info found = {0};
    path[0] = '\0';
    if (!dladdr(&own_object, &found) || !found.dli_fname)
        return false;
    const char *slash = strrchr(found.dli_fname, '/');
    int folder_chars = slash ? (int)(slash - found.dli_fname) : 0;
    int length = snprintf(path, COGPU_PATH_BYTES, "%.*s%s%s", folder_chars, found.dli_fname,
                          slash ? "/" : "", name);
    if (length > 0 && length < COGPU_PATH_BYTES && access(path, R_OK) == 0)
        return true;
    path[0] = '\0';
    return false;
}
