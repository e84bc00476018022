/*
 * Sidecars: files beside a GeoTIFF that readers take for a part of it (overviews, statistics,
 * masks). When a new file replaces an old one, its sidecars are removed. It is an error if one of
 * them is an input of the new file. Files are compared by device and inode, because of links.
 */
#include "io/out.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const suffixes[] = {".ovr", ".aux.xml", ".msk", ".msk.ovr"};
enum { SUFFIXES = sizeof suffixes / sizeof *suffixes };

static bool stat_beside(int folder, const char *path, const char *suffix, struct stat *about) {
    char beside[COGPU_PATH_BYTES];
    int bytes = snprintf(beside, sizeof beside, "%s%s", path, suffix);
    return bytes < (int)sizeof beside && fstatat(folder, beside, about, 0) == 0;
}

static bool is_same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* An input is read together with its own sidecars. */
static bool is_input(const struct stat *sidecar, const char *input) {
    struct stat about;
    if (stat(input, &about) == 0 && is_same_file(sidecar, &about))
        return true;
    for (int i = 0; i < SUFFIXES; i++)
        if (stat_beside(AT_FDCWD, input, suffixes[i], &about) && is_same_file(sidecar, &about))
            return true;
    return false;
}

/* The sidecars of a file that replaces itself belong to the old content. */
static bool is_replaced(int folder, const char *name, const char *input) {
    struct stat old, about;
    return fstatat(folder, name, &old, 0) == 0 && stat(input, &about) == 0 &&
           is_same_file(&old, &about);
}

static cogpu_status check_input(int folder, const char *name, const char *path, const char *input,
                                cogpu_error *error) {
    struct stat about;
    if (is_replaced(folder, name, input))
        return COGPU_OK;
    for (int i = 0; i < SUFFIXES; i++)
        if (stat_beside(folder, name, suffixes[i], &about) && is_input(&about, input))
            return cogpu_fail(
                error, COGPU_INVALID_ARGUMENT,
                "%s%s is an input, and the new %s would remove it; write to another path", name,
                suffixes[i], path);
    return COGPU_OK;
}

cogpu_status cogpu_sidecars_check(int folder, const char *name, const cogpu_sink *sink,
                                  cogpu_error *error) {
    for (uint32_t i = 0; i < sink->input_count; i++)
        TRY(check_input(folder, name, sink->path, sink->inputs[i], error));
    return COGPU_OK;
}

/* The file is complete: a sidecar that cannot be removed is no error. */
void cogpu_sidecars_remove(int folder, const char *name) {
    for (int i = 0; i < SUFFIXES; i++) {
        char beside[COGPU_NAME_BYTES];
        int bytes = snprintf(beside, sizeof beside, "%s%s", name, suffixes[i]);
        if (bytes < (int)sizeof beside)
            unlinkat(folder, beside, 0);
    }
}
