/* What the kinds of sinks and the spills share; for the files of this room only. */
#ifndef COGPU_IO_OUT_H
#define COGPU_IO_OUT_H

#include "io/sink.h"

#include <sys/types.h>

/* What Linux takes at most, with the NUL. */
enum { COGPU_PATH_BYTES = 4096, COGPU_NAME_BYTES = 256 };

struct cogpu_upload; /* of sink_s3.c */

struct cogpu_out {
    cogpu_status (*write)(cogpu_out *out, uint64_t offset, const void *from, size_t bytes,
                          cogpu_error *error);
    /* NULL where it changes nothing. */
    void (*expect)(cogpu_out *out, uint64_t most);
    /* Of sinks in memory; else NULL. */
    cogpu_status (*room_for)(cogpu_out *out, uint64_t offset, size_t bytes, uint8_t **room,
                             cogpu_error *error);
    /* Of S3; else NULL. */
    void (*move_down)(cogpu_out *out, uint64_t from, uint64_t to);
    /* Where it fails, nothing stays, as after abort, which is not called then. */
    cogpu_status (*commit)(cogpu_out *out, cogpu_error *error);
    void (*abort)(cogpu_out *out);

    int file, folder;            /* descriptors of the part and of where it is; else -1 */
    char path[COGPU_PATH_BYTES]; /* that the part takes the place of; links are followed */
    const char *name;            /* its last name, in `path` */
    char part[COGPU_NAME_BYTES]; /* in `folder`; "" once it has its name */
    bool clears_sidecars;        /* what stands beside `name` is of a file that is replaced */
    bool no_replace;             /* the path had no file, and must have none at the end */

    cogpu_memory *memory; /* the caller's; NULL for a buffer */
    uint8_t *data;        /* that it will get, or the buffer */
    size_t room;

    struct cogpu_upload *upload;

    cogpu_sink user;

    cogpu_meter *meter; /* of the writer; NULL without */
    uint64_t end;       /* of memory and of what functions took */
};

/* Each fills an out that is zero but for its descriptors, -1. Where one of the first two fails, the
 * out is to be aborted. */
cogpu_status cogpu_out_to_file(cogpu_out *out, const cogpu_sink *sink, cogpu_error *error);
cogpu_status cogpu_out_to_s3(cogpu_out *out, const char *address, cogpu_http *http,
                             cogpu_error *error);
void cogpu_out_to_memory(cogpu_out *out, cogpu_memory *memory);
void cogpu_out_to_buffer(cogpu_out *out, void *buffer, size_t bytes);
void cogpu_out_to_user(cogpu_out *out, const cogpu_sink *sink);

/* sidecars.c: files beside a file of this name that readers take for a part of it. The check
 * fails where one of them is read for the new file (cogpu_sink.inputs). */
cogpu_status cogpu_sidecars_check(int folder, const char *name, const cogpu_sink *sink,
                                  cogpu_error *error);
void cogpu_sidecars_remove(int folder, const char *name);

/* part.c. These set errno where they return false.
 *
 * A part is a file NAME.HEX.cogpu-part in the making, which its process keeps locked: so a part
 * that is not locked was left by a process that is dead. */
bool cogpu_part_make(int folder, const char *name, mode_t mode, char part[COGPU_NAME_BYTES],
                     int *file);
/* Removes the parts of this name that dead processes have left, as far as it can. */
void cogpu_parts_clear(int folder, const char *name);
/* Whether this process may write a file of so many bytes (RLIMIT_FSIZE). A write beyond that would
 * raise SIGXFSZ, which ends a process that does not handle it: so all writes ask first. Where it
 * returns false, errno is EFBIG. */
bool cogpu_part_may_have(uint64_t bytes);
/* All bytes, in as many writes as that takes. */
bool cogpu_part_write(int file, uint64_t offset, const void *from, size_t bytes);

#endif
