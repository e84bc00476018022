/*
 * Where bytes come from: a file, memory, or a user's functions, behind one struct.
 *
 * A read either delivers all bytes or fails: IO where the source failed, CORRUPT where the source
 * ends before. The first bytes of a source are kept (a COG's directories all lie there), and while
 * a file is being opened a window follows the reads, so that a directory costs one read and not one
 * a tag. Of a source on the network what was looked at stays at hand (shelf.h).
 */
#ifndef COGPU_IO_SOURCE_H
#define COGPU_IO_SOURCE_H

#include "base/memory.h"
#include "base/progress.h"
#include "io/merge.h"

#include <stdbool.h>

typedef struct cogpu_io cogpu_io;
typedef struct cogpu_http cogpu_http;

cogpu_status cogpu_io_open_file(const char *path, cogpu_io **io, cogpu_error *error);
cogpu_status cogpu_io_open_memory(const void *data, size_t bytes, cogpu_io **io,
                                  cogpu_error *error);
cogpu_status cogpu_io_open_user(const cogpu_source *source, cogpu_io **io, cogpu_error *error);
/* network.c: ARGUMENT where a setting makes no sense. */
cogpu_status cogpu_network_check(const cogpu_network *network, cogpu_error *error);
/* http.c: connections to servers, which files may share. `network` may be NULL; its texts must live
 * as long. Closed when nothing is under way; NULL is allowed. */
cogpu_status cogpu_http_open(const cogpu_network *network, cogpu_http **http, cogpu_error *error);
void cogpu_http_close(cogpu_http *http);
/* `http` may be NULL: the file has its own then, with defaults. */
cogpu_status cogpu_io_open_http(const char *url, cogpu_http *http, cogpu_io **io,
                                cogpu_error *error);
void cogpu_io_close(cogpu_io *io);

uint64_t cogpu_io_bytes(const cogpu_io *io);

/* Any thread, any time. */
cogpu_status cogpu_io_read(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                           cogpu_error *error);
/* As cogpu_io_read, for a call with progress: CANCELLED if that is cancelled while the source waits
 * for the network. `meter` may be NULL. */
cogpu_status cogpu_io_read_metered(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                                   cogpu_meter *meter, cogpu_error *error);

/* These spans will be read, each in one go, by any threads: a source on the network asks for all of
 * them before the first is waited for. Whoever said so says when nobody reads them any more. */
bool cogpu_io_expects(const cogpu_io *io); /* whether that changes anything */
uint64_t cogpu_io_expect(const cogpu_io *io, const cogpu_span_of_source *spans, uint32_t count);
void cogpu_io_forget(const cogpu_io *io, uint64_t ticket);

/* As cogpu_io_read, through the window: for many small reads near each other, by one thread. */
cogpu_status cogpu_io_peek(cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                           cogpu_error *error);

/* Both spans will be peeked at: a source on the network gets them at once. Any thread. */
void cogpu_io_peek_soon(const cogpu_io *io, const cogpu_span_of_source spans[2]);

/* Ends peeking and frees the window; from here on peek is read, and any thread may. A source on the
 * network has no window, but keeps what was peeked at in any case. */
void cogpu_io_settle(cogpu_io *io);

/* Where the source lies in memory, its bytes at `offset`; NULL otherwise. The range must be inside.
 */
const uint8_t *cogpu_io_mapped(const cogpu_io *io, uint64_t offset);

/* Version identifier of a file or a source on the network: another text once its content changed.
 * NULL for other sources. */
const char *cogpu_io_state(const cogpu_io *io);
/* IO where a file has another size or modification time than when it was opened. Sources on the
 * network compare versions with each request, and always pass here. */
cogpu_status cogpu_io_check(const cogpu_io *io, cogpu_error *error);

/* The first offset from `offset` on where the source may have bytes other than 0: beyond a hole of
 * a sparse file; `offset` itself for other sources. The size of the source where nothing is left.
 */
uint64_t cogpu_io_next_data(const cogpu_io *io, uint64_t offset);

/* The descriptor of a file; -1 for other sources. */
int cogpu_io_descriptor(const cogpu_io *io);

#endif
