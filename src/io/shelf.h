/*
 * Takes small reads of a source for which each read is a request, hands on their bytes from pieces
 * that it keeps: tags, and the arrays that say where blocks lie.
 *
 * A piece is longer than what was asked for, and begins where the one before it ends, if that is
 * near; then it is twice as long. So whatever lies together costs a few requests, however many
 * reads, and a piece that nobody goes on from stays small. Any thread may read; two that want the
 * same bytes share one request.
 */
#ifndef COGPU_IO_SHELF_H
#define COGPU_IO_SHELF_H

#include "io/source.h"

typedef struct cogpu_shelf cogpu_shelf;

enum {
    COGPU_PIECE_LEAST = 64 << 10,
    COGPU_PIECE_MOST = 1 << 20, /* a longer read is not kept */
    COGPU_SHELF_BYTES = 4 << 20
};

/* NULL when there is no memory. */
cogpu_shelf *cogpu_shelf_open(void);
void cogpu_shelf_close(cogpu_shelf *shelf); /* NULL is allowed */

/* The range must be inside the source. */
cogpu_status cogpu_shelf_read(cogpu_shelf *shelf, const cogpu_io *io, uint64_t offset, size_t bytes,
                              void *to, cogpu_error *error);

/* Both will be read: if neither is there they come in one request where they lie near, else side by
 * side. What fails here fails again when it is read, and is told then. */
void cogpu_shelf_fetch(cogpu_shelf *shelf, const cogpu_io *io, const cogpu_span_of_source spans[2]);

#endif
