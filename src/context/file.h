/*
 * An open file, as the engines see it. What it is made of is in context/file_object.h.
 */
#ifndef COGPU_CONTEXT_FILE_H
#define COGPU_CONTEXT_FILE_H

#include "cpu/block_cache.h"
#include "image/image.h"
#include "io/source.h"

/* A path or an http(s):// or s3:// URL. */
cogpu_status cogpu_file_open_path(const char *path, const cogpu_open_options *options,
                                  cogpu_file **file, cogpu_error *error);
/* The same for a source that the VRT `parent` names; NULL: no VRT does. */
cogpu_status cogpu_file_open_member(const char *path, const cogpu_file *parent,
                                    const cogpu_open_options *options, cogpu_file **file,
                                    cogpu_error *error);
/* Owns `io` from the call on. Sidecar files are not looked for. */
cogpu_status cogpu_file_open_source(cogpu_io *io, const cogpu_open_options *options,
                                    cogpu_file **file, cogpu_error *error);
/* A file without content, whose images are computed. */
cogpu_status cogpu_file_create_computed(const cogpu_limits *limits, cogpu_file **file,
                                        cogpu_error *error);
/* NULL is allowed. */
void cogpu_file_close(cogpu_file *file);

/* Unique among the files of this process: a key for caches. */
uint64_t cogpu_file_number(const cogpu_file *file);
/* To be called before blocks of the file are inserted into a cache: they leave it when the file is
 * closed. False if there is no memory. */
bool cogpu_file_join_cache(const cogpu_file *file, cogpu_block_cache *cache);
const cogpu_tiff *cogpu_file_tiff(const cogpu_file *file);
/* See cogpu_file_version_id. */
const char *cogpu_file_version(const cogpu_file *file);

/* The image with this index; ABSENT if there is none. */
cogpu_status cogpu_file_pyramid(const cogpu_file *file, uint32_t image,
                                const cogpu_pyramid **pyramid, cogpu_error *error);
uint32_t cogpu_file_pyramid_count(const cogpu_file *file);

/* Whether there is a PATH.ovr beside the file. */
bool cogpu_file_has_external_overviews(const cogpu_file *file);
/* Sidecar files in use; NULL after the last. */
const char *cogpu_file_sidecar_path(const cogpu_file *file, uint32_t index);

/* "there is no WHAT 7: the OWNER has 3, counted from FIRST". */
cogpu_status cogpu_fail_absent(cogpu_error *error, const char *what, uint64_t index,
                               const char *owner, uint64_t count, unsigned first);

#endif
