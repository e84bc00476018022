/* See vrt_paths.h. */
#include "context/vrt_paths.h"

#include "base/own_folder.h"
#include "io/http/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the folder of the VRT ----------------------------------------------------------------- */

static size_t folder_bytes(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

cogpu_status cogpu_vrt_set_folder(cogpu_vrt_origin *origin, const char *path, cogpu_arena *arena,
                                  cogpu_error *error) {
    char resolved[COGPU_PATH_BYTES];
    if (!path)
        return COGPU_OK;
    origin->is_url = cogpu_url_is(path);
    if (origin->is_url) {
        TRY(cogpu_arena_text(arena, path, strlen(path), &origin->url, error));
        size_t bytes = strcspn(path, "?#");
        while (bytes > 0 && path[bytes - 1] != '/')
            bytes--;
        return cogpu_arena_text(arena, path, bytes, &origin->folder, error);
    }
    if (!realpath(path, resolved))
        return cogpu_fail(error, COGPU_IO_ERROR, "the path of the VRT cannot be resolved");
    return cogpu_arena_text(arena, resolved, folder_bytes(resolved), &origin->folder, error);
}

/* ---- names --------------------------------------------------------------------------------- */

/* GDAL's prefixes of network paths become URLs. */
static cogpu_status translate_name(const char *name, cogpu_arena *arena, const char **translated,
                                   cogpu_error *error) {
    static const char curl[] = "/vsicurl/", s3[] = "/vsis3/";
    char *text = NULL;
    *translated = name;
    if (strncmp(name, curl, sizeof curl - 1) == 0) {
        *translated = name + sizeof curl - 1;
        return COGPU_OK;
    }
    if (strncmp(name, s3, sizeof s3 - 1) != 0)
        return strncmp(name, "/vsi", 4) == 0
                   ? cogpu_fail(error, COGPU_UNSUPPORTED,
                                "paths that begin with \"/vsi\" are not supported, but for "
                                "/vsicurl/ and /vsis3/")
                   : COGPU_OK;
    size_t bytes = strlen(name) + sizeof "s3://";
    TRY(cogpu_arena_allocate(arena, bytes, 1, &text, error));
    snprintf(text, bytes, "s3://%s", name + sizeof s3 - 1);
    *translated = text;
    return COGPU_OK;
}

static cogpu_status refuse(const char *name, const char *why, cogpu_error *error) {
    return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                      "the VRT names the source %.120s, %s; open it with `vrt_sources` any to "
                      "allow that",
                      name, why);
}

static cogpu_status join_folder(const cogpu_vrt_origin *origin, const char *name,
                                cogpu_arena *arena, const char **path, cogpu_error *error) {
    size_t bytes = strlen(origin->folder) + strlen(name) + 1;
    char *text = NULL;
    TRY(cogpu_arena_allocate(arena, bytes, 1, &text, error));
    snprintf(text, bytes, "%s%s", origin->folder, name);
    *path = text;
    return COGPU_OK;
}

/* ---- the rule ------------------------------------------------------------------------------ */

/* A file that does not exist is not below: opening it would fail all the same. */
static bool is_below(const cogpu_vrt_origin *origin, const char *path) {
    char resolved[COGPU_PATH_BYTES];
    size_t bytes = strlen(origin->folder);
    if (origin->is_url)
        return strncmp(path, origin->folder, bytes) == 0 && !strstr(path + bytes, "..");
    return realpath(path, resolved) && strncmp(resolved, origin->folder, bytes) == 0;
}

static cogpu_status check_url(const cogpu_vrt_origin *origin, const char *url, cogpu_error *error) {
    if (origin->allowed == COGPU_VRT_SOURCES_ANY)
        return COGPU_OK;
    if (!origin->is_url)
        return refuse(url, "a URL", error);
    if (!cogpu_url_same_host(origin->url, url))
        return refuse(url, "on another server", error);
    return COGPU_OK;
}

static cogpu_status check_local(const cogpu_vrt_origin *origin, const char *path,
                                cogpu_error *error) {
    if (origin->is_url)
        return refuse(path, "a local path, but is a URL itself", error);
    if (!origin->folder && origin->allowed != COGPU_VRT_SOURCES_ANY)
        return refuse(path, "but has no folder itself", error);
    return COGPU_OK;
}

cogpu_status cogpu_vrt_resolve_path(const cogpu_vrt_origin *origin, const cogpu_vrt_file *named,
                                    cogpu_arena *arena, const char **path, cogpu_error *error) {
    const char *name = NULL;
    TRY(translate_name(named->path, arena, &name, error));
    *path = name;
    bool is_relative = !cogpu_url_is(name) && *name != '/';
    if (is_relative && named->relative && !origin->folder &&
        origin->allowed != COGPU_VRT_SOURCES_ANY)
        return refuse(name, "but has no folder itself", error);
    if (is_relative && (named->relative || origin->is_url) && origin->folder)
        TRY(join_folder(origin, name, arena, path, error));
    TRY(cogpu_url_is(*path) ? check_url(origin, *path, error) : check_local(origin, *path, error));
    if (origin->allowed == COGPU_VRT_SOURCES_BELOW && !is_below(origin, *path))
        return refuse(name, "which is not below its folder", error);
    return COGPU_OK;
}
