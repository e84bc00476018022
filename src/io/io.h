/* What all kinds of sources share; for the files of this module only. */
#ifndef COGPU_IO_IO_H
#define COGPU_IO_IO_H

#include "io/range/range_cache.h"
#include "io/source.h"

#include <sys/types.h>

/* The operations of a kind of source. */
typedef struct cogpu_io_kind {
    /* Reads all `bytes` bytes, which are inside the source. A source on the network polls `meter`,
     * which may be NULL, while it waits, and returns CANCELLED if that is. */
    cogpu_status (*read)(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                         cogpu_meter *meter, cogpu_error *error);
    /* See cogpu_io_check; NULL if reads notice changes by themselves, or nothing can. */
    cogpu_status (*check)(const cogpu_io *io, cogpu_error *error);
    int (*descriptor)(const cogpu_io *io); /* NULL if it is not a file */
    /* Frees what the kind has, and the struct itself. */
    void (*close)(cogpu_io *io);
} cogpu_io_kind;

/* The common part. Each kind has a struct of its own that begins with it. */
struct cogpu_io {
    const cogpu_io_kind *kind;
    uint64_t bytes;
    const char *version;      /* see cogpu_io_version */
    const uint8_t *mapped;    /* all its bytes, if they are in memory; else NULL */
    cogpu_range_cache *cache; /* of a remote source, for which each read is a request; else NULL */
    pid_t process;            /* that opened it: a remote source is of no use after a fork */
    uint8_t *header;          /* the first bytes of the source */
    size_t header_bytes;
    bool is_sealed;  /* the file is open: no window any more, any thread may peek */
    uint8_t *window; /* the bytes around the last peek */
    uint64_t window_offset;
    size_t window_bytes;
};

/* Completes a source whose kind and size are set: reads its header, unless it has one or is in
 * memory. Closes it on failure. */
cogpu_status cogpu_io_open(cogpu_io *io, cogpu_io **out, cogpu_error *error);

/* The `read` of remote sources. */
cogpu_status cogpu_io_read_cached(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                                  cogpu_meter *meter, cogpu_error *error);

/* CORRUPT: the source ends before bytes that are needed. */
cogpu_status cogpu_io_short(cogpu_error *error, uint64_t offset, size_t bytes, uint64_t size);

/* Reports errno as "DOING: REASON: PATH"; ABSENT for a file that does not exist, else IO. `path`
 * may be NULL. */
cogpu_status cogpu_fail_errno(cogpu_error *error, const char *doing, const char *path);

#endif
