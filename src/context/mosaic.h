/*
 * Opens mosaics: lists of sources, and VRTs. What is opened is a cogpu_file whose image is computed
 * (image/computed.c). Members are opened when they are needed (mosaic_files.h).
 */
#ifndef COGPU_CONTEXT_MOSAIC_H
#define COGPU_CONTEXT_MOSAIC_H

#include "context/file.h"
#include "context/mosaic_files.h"
#include "context/vrt_paths.h"
#include "grid/mosaic.h"

/* What the file of a mosaic has besides its images. */
struct cogpu_mosaic_object {
    cogpu_mosaic mosaic;
    cogpu_mosaic mask;          /* the mask band of a VRT; count 0 without one */
    cogpu_open_options options; /* of members */
    cogpu_limits limits;
    cogpu_operations *own_operations; /* if the caller gave no context */
    cogpu_context *own_context;       /* for URLs, if the caller gave none */
    bool has_urls;                    /* a member's path is a URL */
    bool is_vrt;
    cogpu_vrt_origin origin; /* of a VRT */
};

/* Reads the heights of a DEM for RPCs. Memory comes from the arena. */
typedef struct cogpu_dem_loader {
    cogpu_status (*load)(void *user, const char *path, const cogpu_open_options *options,
                         cogpu_arena *arena, const cogpu_height_model **model, cogpu_error *error);
    void *user;
} cogpu_dem_loader;

/* mosaic_list.c: a list of sources on a grid. All structs are of this version, `options->open` is
 * complete. */
cogpu_status cogpu_mosaic_open_list(const cogpu_mosaic_source *sources, size_t count,
                                    const cogpu_mosaic_options *options,
                                    const cogpu_dem_loader *loader, cogpu_file **file,
                                    cogpu_error *error);

/* mosaic_vrt.c: makes a mosaic of an open file whose content is a VRT, or of a VRT that is `nested`
 * in another one. `path` is its path or URL, or NULL; `parent` the VRT that names it, or NULL. */
cogpu_status cogpu_mosaic_open_vrt(cogpu_file *file, const cogpu_vrt *nested, const char *path,
                                   const cogpu_file *parent, const cogpu_open_options *options,
                                   cogpu_error *error);

/* mosaic_write.c: the text of a VRT, which will have that path (or NULL). */
cogpu_status cogpu_mosaic_write_text(const cogpu_file *file, const char *path, cogpu_arena *arena,
                                     const char **text, size_t *bytes, cogpu_error *error);

/* ---- mosaic_object.c ---- */

/* Gives the file an empty mosaic, and copies the options. */
cogpu_status cogpu_mosaic_object_create(cogpu_file *file, const cogpu_open_options *options,
                                        cogpu_error *error);
/* After the members of `mosaic` are known: they can be acquired from now on. */
cogpu_status cogpu_mosaic_object_start(cogpu_file *file, cogpu_mosaic *mosaic, cogpu_error *error);
/* The coordinate operations of the caller's context, or its own. */
cogpu_status cogpu_mosaic_open_operations(cogpu_file *file, cogpu_error *error);
void cogpu_mosaic_object_close(struct cogpu_mosaic_object *object); /* NULL is allowed */

/* The open file of a member, until it is released. Any thread. */
cogpu_status cogpu_mosaic_acquire(const cogpu_mosaic *mosaic, uint32_t member,
                                  const cogpu_file **file, cogpu_error *error);
void cogpu_mosaic_release(const cogpu_mosaic *mosaic, uint32_t member);

cogpu_source_description cogpu_mosaic_describe_member(const cogpu_mosaic *mosaic, uint32_t member);

/* Puts the member's name before a message. */
void cogpu_mosaic_name_member(const cogpu_mosaic_member *member, uint32_t index,
                              cogpu_error *error);

/* Virtual overviews: half the size again and again, while a side has more than 512 pixels. */
cogpu_status cogpu_mosaic_list_levels(cogpu_arena *arena, cogpu_computed_image *image,
                                      cogpu_error *error);
/* Transform and CRS of a grid. PROJ's database is opened if *database is NULL. */
cogpu_status cogpu_mosaic_set_georef(const cogpu_placement *grid, cogpu_crs_database **database,
                                     cogpu_arena *arena, cogpu_georef *georef, cogpu_error *error);

/* The mosaic of a file; NULL for other files. */
cogpu_mosaic *cogpu_file_mosaic(const cogpu_file *file);

#endif
