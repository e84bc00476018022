/*
 * Sinks of bytes: a file, which gets its name when it is complete, memory, an object in a store, or
 * a user's functions, behind one struct. And spills, which hold bytes until their offset is known.
 *
 * One thread at a time. After a failure only cogpu_out_abort may be called.
 */
#ifndef COGPU_IO_SINK_H
#define COGPU_IO_SINK_H

#include "base/memory.h"
#include "base/progress.h"

#include <stdbool.h>

typedef struct cogpu_http cogpu_http;
typedef struct cogpu_out cogpu_out;
typedef struct cogpu_spill cogpu_spill;

/* For a path, creates its part file, and removes those that killed processes have left. ARGUMENT if
 * the sink is not exactly one of path, memory, buffer and functions. A URL uses the client `http`,
 * which may be NULL: it then opens one of its own, with default settings. */
cogpu_status cogpu_out_open(const cogpu_sink *sink, cogpu_http *http, cogpu_out **out,
                            cogpu_error *error);

/* Writes poll the meter and return CANCELLED once it is cancelled. Before cogpu_out_reserve. */
void cogpu_out_set_meter(cogpu_out *out, cogpu_meter *meter);

/* The file will have at most so many bytes. A sink in memory reserves them, if it can, so that it
 * need not grow by copies; what is not written takes no memory. A remote sink chooses the length of
 * its parts. */
void cogpu_out_reserve(cogpu_out *out, uint64_t most);

/* Writes bytes at an offset; gaps read as zeros. If the sink is append-only, `offset` must be the
 * end. To a remote sink the first bytes, the body, may have any offset, and those after them follow
 * in order. So do those before the body, after cogpu_out_move_down. */
cogpu_status cogpu_out_write(cogpu_out *out, uint64_t offset, const void *from, size_t bytes,
                             cogpu_error *error);
/* Address of these bytes, for the caller to fill before the next call; NULL if the sink is not in
 * memory. */
cogpu_status cogpu_out_buffer_at(cogpu_out *out, uint64_t offset, size_t bytes, uint8_t **buffer,
                                 cogpu_error *error);
bool cogpu_out_is_append_only(const cogpu_out *out);

/* Whether a sink in memory has so many bytes allocated. Its end can be set: bytes before it are
 * undefined until they are written, bytes after it are dropped. */
bool cogpu_out_has_memory_for(const cogpu_out *out, uint64_t bytes);
void cogpu_out_set_end(cogpu_out *out, uint64_t end);

/* Whether bytes may be written after a gap whose final length is unknown: to memory of so many
 * bytes, where the writer moves them at the end; or to a remote sink, where cogpu_out_move_down
 * says that what was written at `from` belongs at `to`. */
bool cogpu_out_allows_gap(const cogpu_out *out, uint64_t bytes);
void cogpu_out_move_down(cogpu_out *out, uint64_t from, uint64_t to);

/* Whether a part file may have so many bytes: see cogpu_part_may_grow_to. */
bool cogpu_out_may_grow_to(uint64_t bytes);
/* The descriptor of a path's part file, for other ways to write (GPUDirect Storage); -1 for other
 * sinks. */
int cogpu_out_descriptor(const cogpu_out *out);
/* The caller's buffer, which does not move; NULL for other sinks. */
void *cogpu_out_buffer(const cogpu_out *out, size_t *bytes);

/* The file is complete: flushes and renames it, or completes the upload. Frees `out` in any case.
 */
cogpu_status cogpu_out_commit(cogpu_out *out, cogpu_error *error);
/* Removes what was written. Frees `out`. NULL is allowed. */
void cogpu_out_abort(cogpu_out *out);

/* A spill of at most so many bytes for `out`: in memory while it is small, or if `out` is; else in
 * an unnamed file beside the path, or in TMPDIR (/tmp) without one. */
cogpu_status cogpu_spill_open(const cogpu_out *out, uint64_t most, cogpu_spill **spill,
                              cogpu_error *error);
void cogpu_spill_close(cogpu_spill *spill);
/* Keeps so many bytes of an empty spill in memory, if they can be allocated. */
void cogpu_spill_reserve(cogpu_spill *spill, uint64_t bytes);
/* Appends bytes, and sets *offset to their offset in the spill. */
cogpu_status cogpu_spill_add(cogpu_spill *spill, const void *from, size_t bytes, uint64_t *offset,
                             cogpu_error *error);
/* The same for bytes that the caller writes there; NULL if they do not fit in memory. */
uint8_t *cogpu_spill_buffer(cogpu_spill *spill, size_t bytes, uint64_t *offset);
/* All its bytes; NULL if some are in a file. */
const uint8_t *cogpu_spill_memory(const cogpu_spill *spill);
/* Copies from the spill to `offset` of `out`, in the kernel if possible. */
cogpu_status cogpu_spill_copy(cogpu_spill *spill, uint64_t from, uint64_t bytes, cogpu_out *out,
                              uint64_t offset, cogpu_error *error);

#endif
