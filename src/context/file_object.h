/* The parts of an open file, for file.c, which opens it, and sidecars.c, which opens files beside
 * it. */
#ifndef COGPU_CONTEXT_FILE_OBJECT_H
#define COGPU_CONTEXT_FILE_OBJECT_H

#include "context/file.h"
#include "image/sidecar.h"

/* A file beside an open one. */
typedef struct cogpu_sidecar_file {
    const char *path;
    cogpu_io *io; /* of a TIFF; NULL for texts, which are read as a whole */
    cogpu_tiff tiff;
    const cogpu_sidecar_text *text;
    bool is_used;
} cogpu_sidecar_file;

/* Overviews, mask, overviews of the mask, texts. */
enum { COGPU_SIDECARS_MAX = COGPU_OVERVIEW_FILES_MAX + 2 + SIDECAR_KINDS };

struct cogpu_file {
    uint64_t number;
    struct cogpu_file_caches *caches; /* file_caches.c: that may have its blocks */
    cogpu_arena arena;                /* owns everything that the file returns to callers */
    cogpu_io *io;
    cogpu_tiff tiff;
    cogpu_pyramid *pyramids;
    uint32_t pyramid_count;
    cogpu_sidecar_data beside;
    cogpu_sidecar_file *sidecars; /* COGPU_SIDECARS_MAX; NULL if none are looked for */
    uint32_t sidecar_count;
    const char **sidecar_paths; /* of those in use */
    uint32_t sidecar_path_count;
    struct cogpu_mosaic_object *mosaic; /* of a mosaic or VRT: context/mosaic.h; else NULL */
};

/* file_caches.c */
struct cogpu_file_caches *cogpu_file_caches_open(void);
/* Drops the blocks of the file from the caches. NULL is allowed. */
void cogpu_file_caches_close(struct cogpu_file_caches *caches, uint64_t file);

/* sidecars.c: reads the files beside `path`, a local file or a URL, into file->beside. A sidecar
 * that cannot be read becomes a warning of file->tiff; only lack of memory fails. */
cogpu_status cogpu_sidecars_open(cogpu_file *file, const char *path, cogpu_http *http,
                                 cogpu_error *error);
/* sidecars.c: lists the sidecars that the images use. No header is read after it. */
cogpu_status cogpu_sidecars_seal(cogpu_file *file, cogpu_error *error);
void cogpu_sidecars_close(cogpu_file *file);

#endif
