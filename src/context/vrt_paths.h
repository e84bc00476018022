/*
 * Which files a VRT may name, and where they are. A VRT is untrusted: it must not make this process
 * read files or call servers by surprise. docs/mosaics.md has the rule:
 *
 *     VRT is        default                      below                      any
 *     local file    local files                  local files below its      everything
 *                                                folder
 *     URL           URLs of the same server      URLs below its folder      URLs
 *     in memory     nothing                      nothing                    everything
 *
 * Only regular files are ever opened (io/source_file.c), and addresses of URLs are checked as
 * always (io/http/address.h).
 */
#ifndef COGPU_CONTEXT_VRT_PATHS_H
#define COGPU_CONTEXT_VRT_PATHS_H

#include "base/memory.h"
#include "grid/vrt.h"

/* Where a VRT came from. */
typedef struct cogpu_vrt_origin {
    const cogpu_file *parent; /* the VRT that names it, or NULL */
    uint32_t depth;           /* of nested VRTs */
    cogpu_vrt_sources allowed;
    bool is_url;
    const char *url;    /* of the VRT, or NULL */
    const char *folder; /* that relative paths begin with, with a closing slash; NULL: in memory */
} cogpu_vrt_origin;

/* `path` is that of the VRT, or NULL. Links are resolved. */
cogpu_status cogpu_vrt_set_folder(cogpu_vrt_origin *origin, const char *path, cogpu_arena *arena,
                                  cogpu_error *error);

/* The path or URL of a source. INVALID_ARGUMENT if the VRT may not name it. */
cogpu_status cogpu_vrt_resolve_path(const cogpu_vrt_origin *origin, const cogpu_vrt_file *named,
                                    cogpu_arena *arena, const char **path, cogpu_error *error);

#endif
