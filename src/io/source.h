/*
 * Where bytes come from: a file, memory, or a user's functions, behind one struct.
 *
 * A read either delivers all bytes or fails: IO where the source failed, CORRUPT where the source
 * ends before. The first bytes of a source are kept (a COG's directories all lie there), and while
 * a file is being opened a window follows the reads, so that a directory costs one read and not one
 * a tag.
 */
#ifndef COGPU_IO_SOURCE_H
#define COGPU_IO_SOURCE_H

#include "base/memory.h"

typedef struct cogpu_io cogpu_io;

cogpu_status cogpu_io_open_file(const char *path, cogpu_io **io, cogpu_error *error);
cogpu_status cogpu_io_open_memory(const void *data, size_t bytes, cogpu_io **io,
                                  cogpu_error *error);
cogpu_status cogpu_io_open_user(const cogpu_source *source, cogpu_io **io, cogpu_error *error);
void cogpu_io_close(cogpu_io *io);

uint64_t cogpu_io_bytes(const cogpu_io *io);

/* Any thread, any time. */
cogpu_status cogpu_io_read(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                           cogpu_error *error);

/* As cogpu_io_read, through the window: for many small reads near each other, by one thread. */
cogpu_status cogpu_io_peek(cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                           cogpu_error *error);

/* Ends peeking and frees the window; from here on peek is read. */
void cogpu_io_settle(cogpu_io *io);

/* Where the source lies in memory, its bytes at `offset`; NULL otherwise. The range must be inside.
 */
const uint8_t *cogpu_io_mapped(const cogpu_io *io, uint64_t offset);

/* The descriptor of a file; -1 for other sources. */
int cogpu_io_descriptor(const cogpu_io *io);

#endif
