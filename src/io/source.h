/*
 * Sources of bytes: a file, memory, a remote file, or a user's functions, behind one struct.
 *
 * A read either delivers all bytes or fails: IO if the source failed, CORRUPT if it ends before.
 * The first bytes of a source, its header, are kept: a COG has all directories there. While a file
 * is opened, a window follows the peeks, so that a directory costs one read and not one a tag. A
 * remote source keeps what was peeked at in its range cache (range/range_cache.h).
 */
#ifndef COGPU_IO_SOURCE_H
#define COGPU_IO_SOURCE_H

#include "base/memory.h"
#include "base/progress.h"
#include "io/range/coalesce.h"

#include <stdbool.h>

typedef struct cogpu_io cogpu_io;
typedef struct cogpu_http cogpu_http;

cogpu_status cogpu_io_open_file(const char *path, cogpu_io **io, cogpu_error *error);
cogpu_status cogpu_io_open_memory(const void *data, size_t bytes, cogpu_io **io,
                                  cogpu_error *error);
cogpu_status cogpu_io_open_user(const cogpu_source *source, cogpu_io **io, cogpu_error *error);
/* http/network.c: ARGUMENT if a setting is out of range. */
cogpu_status cogpu_network_check(const cogpu_network *network, cogpu_error *error);
/* http/client.h: an HTTP client, whose connections files may share. `network` may be NULL; its
 * texts must live as long. Close it when no request is under way; NULL is allowed. */
cogpu_status cogpu_http_open(const cogpu_network *network, cogpu_http **http, cogpu_error *error);
void cogpu_http_close(cogpu_http *http);
/* store/remote_source.c. `http` may be NULL: the source then opens a client of its own, with
 * default settings. */
cogpu_status cogpu_io_open_url(const char *url, cogpu_http *http, cogpu_io **io,
                               cogpu_error *error);
void cogpu_io_close(cogpu_io *io);

uint64_t cogpu_io_bytes(const cogpu_io *io);

/* Any thread, any time. */
cogpu_status cogpu_io_read(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                           cogpu_error *error);
/* As cogpu_io_read, for a call with progress: CANCELLED if the meter is cancelled while the source
 * waits for the network. `meter` may be NULL. */
cogpu_status cogpu_io_read_metered(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                                   cogpu_meter *meter, cogpu_error *error);

/* Announces reads of these spans, each in one call, by any threads. A remote source requests all of
 * them before the first is waited for. End the prefetch by its ticket when all reads are done. */
bool cogpu_io_can_prefetch(const cogpu_io *io); /* whether the source is remote */
uint64_t cogpu_io_prefetch(const cogpu_io *io, const cogpu_byte_range *spans, uint32_t count);
void cogpu_io_end_prefetch(const cogpu_io *io, uint64_t ticket);

/* As cogpu_io_read, through the window or the range cache: for many small reads near each other. By
 * one thread until cogpu_io_seal. */
cogpu_status cogpu_io_peek(cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                           cogpu_error *error);

/* Announces peeks at both spans: a remote source requests them at once. Any thread. */
void cogpu_io_prefetch_peeks(const cogpu_io *io, const cogpu_byte_range spans[2]);

/* The file is open: frees the window, and any thread may peek from now on. */
void cogpu_io_seal(cogpu_io *io);

/* Address of the byte at `offset`, which must be inside, if the source is in memory; else NULL. */
const uint8_t *cogpu_io_mapped(const cogpu_io *io, uint64_t offset);

/* Version identifier of a local or remote file: changes when its content does. NULL for other
 * sources. */
const char *cogpu_io_version(const cogpu_io *io);
/* IO if a file has another size or modification time than when it was opened. Remote sources
 * compare versions in each response, and always pass. */
cogpu_status cogpu_io_check(const cogpu_io *io, cogpu_error *error);

/* The first offset from `offset` on where the source may have bytes other than 0: after a hole of a
 * sparse file, or `offset` itself. The size of the source if only a hole is left. */
uint64_t cogpu_io_next_data(const cogpu_io *io, uint64_t offset);

/* The descriptor of a file; -1 for other sources. */
int cogpu_io_descriptor(const cogpu_io *io);

#endif
