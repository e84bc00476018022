/* What the kinds of sources share, and sinks in part; for the files of this room only. */
#ifndef COGPU_IO_IO_H
#define COGPU_IO_IO_H

#include "io/many.h"
#include "io/shelf.h"
#include "io/source.h"

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

struct cogpu_io {
    uint64_t bytes;
    /* Delivers all `bytes` bytes, which are known to lie inside the source. A source on the network
     * polls `meter`, which may be NULL, while it waits; CANCELLED if that is. */
    cogpu_status (*read)(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                         cogpu_meter *meter, cogpu_error *error);
    /* See cogpu_io_expect; NULL where there is nothing to gain. */
    uint64_t (*expect)(const cogpu_io *io, const cogpu_span_of_source *spans, uint32_t count);
    void (*forget)(const cogpu_io *io, uint64_t ticket);
    /* See cogpu_io_check; NULL where reads notice by themselves, or nothing can. */
    cogpu_status (*check)(const cogpu_io *io, cogpu_error *error);
    void (*close)(cogpu_io *io);
    int file;                 /* descriptor */
    struct timespec modified; /* when it was opened */
    char file_state[80];      /* its `state` */
    const uint8_t *data;      /* memory */
    cogpu_source user;
    cogpu_many *many;      /* of a user's source with read_many */
    struct remote *remote; /* behind HTTP */
    bool is_far;           /* each read is a request: peeks go by the shelf */
    pid_t process;         /* that has its connections */
    const char *state;     /* see cogpu_io_state */
    cogpu_shelf *shelf;
    uint8_t *head; /* the first bytes of the source */
    size_t head_bytes;
    bool settled;    /* the file is open: no window any more, any thread may read */
    uint8_t *window; /* the bytes around the last peek */
    uint64_t window_offset;
    size_t window_bytes;
};

/* Completes an io whose size, read and close are set, and takes its head over, if it has one
 * already. Closes it on failure. */
cogpu_status cogpu_io_open(const cogpu_io *kind, cogpu_io **io, cogpu_error *error);

/* What a source that ends too early is told. */
cogpu_status cogpu_io_short(cogpu_error *error, uint64_t offset, size_t bytes, uint64_t size);

/* A system call's failure as "DOING: what errno says: PATH"; ABSENT for what is not there. `path`
 * may be NULL. */
cogpu_status cogpu_fail_errno(cogpu_error *error, const char *doing, const char *path);

#endif
