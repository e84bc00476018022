/* What all kinds of sinks share, and spills with them; for the files of this module only. */
#ifndef COGPU_IO_OUT_H
#define COGPU_IO_OUT_H

#include "io/sink.h"

#include <sys/types.h>

/* The longest that Linux allows, with the NUL. */
enum { COGPU_PATH_BYTES = 4096, COGPU_NAME_BYTES = 256 };

/* The operations of a kind of sink. */
typedef struct cogpu_out_kind {
    cogpu_status (*write)(cogpu_out *out, uint64_t offset, const void *from, size_t bytes,
                          cogpu_error *error);
    /* See cogpu_out_reserve; NULL if it changes nothing. */
    void (*reserve)(cogpu_out *out, uint64_t most);
    /* Of sinks in memory; NULL for others. See cogpu_out_buffer_at, cogpu_out_set_end. */
    cogpu_status (*buffer_at)(cogpu_out *out, uint64_t offset, size_t bytes, uint8_t **buffer,
                              cogpu_error *error);
    size_t (*capacity)(const cogpu_out *out); /* bytes that are allocated */
    void (*set_end)(cogpu_out *out, uint64_t end);
    void *(*fixed_buffer)(const cogpu_out *out); /* NULL if the memory may move */
    /* Of remote sinks; NULL for others. See cogpu_out_move_down. */
    void (*move_down)(cogpu_out *out, uint64_t from, uint64_t to);
    /* Each frees what the kind has, but not the struct. If commit fails, nothing stays, as after
     * abort, which is not called then. */
    cogpu_status (*commit)(cogpu_out *out, cogpu_error *error);
    void (*abort)(cogpu_out *out);
} cogpu_out_kind;

/* The common part. Each kind has a struct of its own that begins with it. */
struct cogpu_out {
    const cogpu_out_kind *kind;
    cogpu_meter *meter; /* of the writer; NULL without */
    bool is_append_only;
    int descriptor; /* of a path's part file; -1 for other sinks */
    /* The file that is written; NULL for other sinks. Spills go beside it. */
    const char *path, *name; /* as a whole, and in `folder` */
    int folder;              /* a descriptor */
};

/* Each opens a sink of its kind. */
cogpu_status cogpu_out_open_file(const cogpu_sink *sink, cogpu_out **out, cogpu_error *error);
cogpu_status cogpu_out_open_remote(const char *address, cogpu_http *http, cogpu_out **out,
                                   cogpu_error *error);
cogpu_status cogpu_out_open_memory(cogpu_memory *memory, cogpu_out **out, cogpu_error *error);
cogpu_status cogpu_out_open_buffer(void *buffer, size_t bytes, cogpu_out **out, cogpu_error *error);
cogpu_status cogpu_out_open_user(const cogpu_sink *sink, cogpu_out **out, cogpu_error *error);
/* A zeroed struct of `bytes` bytes that begins with a cogpu_out of this kind. */
cogpu_status cogpu_out_allocate(size_t bytes, const cogpu_out_kind *kind, void *out,
                                cogpu_error *error);

/* sidecar_files.c: sidecars, files beside a file of this name that readers take for a part of it.
 * The check fails if the new file is made from one of them (cogpu_sink.inputs). */
cogpu_status cogpu_sidecars_check(int folder, const char *name, const cogpu_sink *sink,
                                  cogpu_error *error);
void cogpu_sidecars_remove(int folder, const char *name);

/* part_file.c: files that are being written. These set errno if they return false.
 *
 * A part file is NAME.HEX.cogpu-part, which its process keeps locked. One that is not locked was
 * left by a process that is dead. */
bool cogpu_part_make(int folder, const char *name, mode_t mode, char part[COGPU_NAME_BYTES],
                     int *file);
/* Removes the part files of this name that dead processes have left, as far as it can. */
void cogpu_parts_clear(int folder, const char *name);
/* Whether this process may write a file of so many bytes (RLIMIT_FSIZE). A write beyond that raises
 * SIGXFSZ, which ends a process that does not handle it: so all writes check first. Sets errno to
 * EFBIG if not. */
bool cogpu_part_may_grow_to(uint64_t bytes);
/* Writes all bytes, in as many calls as that takes. */
bool cogpu_part_write(int file, uint64_t offset, const void *from, size_t bytes);

#endif
