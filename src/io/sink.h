/*
 * Where bytes go: a file that takes its path's place only when it is complete, memory, an object of
 * S3, or a user's functions, behind one struct; and spills, which keep bytes until their place is
 * known.
 *
 * One thread at a time. After a failure only cogpu_out_abort is left.
 */
#ifndef COGPU_IO_SINK_H
#define COGPU_IO_SINK_H

#include "base/memory.h"
#include "base/progress.h"

#include <stdbool.h>

typedef struct cogpu_http cogpu_http;
typedef struct cogpu_out cogpu_out;
typedef struct cogpu_spill cogpu_spill;

/* A path's part file is made here, and those that killed processes have left are removed. ARGUMENT
 * where the sink is not exactly one of path, memory and functions. An object of S3 goes by `http`,
 * which may be NULL: it has its own then, with defaults. */
cogpu_status cogpu_out_open(const cogpu_sink *sink, cogpu_http *http, cogpu_out **out,
                            cogpu_error *error);

/* Writes poll the meter and return CANCELLED once it is cancelled. Before cogpu_out_expect. */
void cogpu_out_set_meter(cogpu_out *out, cogpu_meter *meter);

/* So many bytes will come at most: a sink that hands over memory takes it at once where there is so
 * much, and does not have to grow, which may mean copies. What is not written takes no room. That
 * to S3 chooses how long its parts are. */
void cogpu_out_expect(cogpu_out *out, uint64_t most);

/* Bytes at an offset; what was never written below the end reads as zeros. Where the sink is
 * append-only, `offset` must be the end. To S3 the first bytes may stand anywhere, and those behind
 * them follow in order; those before them, too, once what is moved down is. */
cogpu_status cogpu_out_write(cogpu_out *out, uint64_t offset, const void *from, size_t bytes,
                             cogpu_error *error);
/* Where these bytes lie in memory, for the caller to fill, until the next call; NULL where they do
 * not lie in memory. */
cogpu_status cogpu_out_room(cogpu_out *out, uint64_t offset, size_t bytes, uint8_t **room,
                            cogpu_error *error);
bool cogpu_out_is_append_only(const cogpu_out *out);

/* Whether so many bytes have their room in memory already. Such a sink can be told where the file
 * ends: bytes before that hold anything until they are written, bytes behind it are dropped. */
bool cogpu_out_holds(const cogpu_out *out, uint64_t bytes);
void cogpu_out_set_end(cogpu_out *out, uint64_t end);

/* Whether bytes may be written behind a gap, before it is known how long is what belongs there: in
 * memory that holds so many, where the writer moves them at the end; or to S3, where the sink is
 * told that what was written from `from` on begins at `to`. */
bool cogpu_out_takes_gap(const cogpu_out *out, uint64_t bytes);
void cogpu_out_move_down(cogpu_out *out, uint64_t from, uint64_t to);

/* Whether a path's part file may have so many bytes: see cogpu_part_may_have. */
bool cogpu_out_may_have(uint64_t bytes);
/* The descriptor of a path's part file, for whoever has another way to write there; -1 for other
 * sinks. */
int cogpu_out_descriptor(const cogpu_out *out);
/* The caller's buffer, where rooms stay until the end; NULL for other sinks. */
void *cogpu_out_buffer(const cogpu_out *out, size_t *bytes);

/* All bytes are there: flushed, renamed, handed over. Frees `out`, whatever it returns. */
cogpu_status cogpu_out_commit(cogpu_out *out, cogpu_error *error);
/* Nothing stays. Frees `out`. NULL is allowed. */
void cogpu_out_abort(cogpu_out *out);

/* A spill of bytes, at most so many, on their way to `out`: in memory while it is small, or where
 * `out` is; else in a file without a name beside the path, or in TMPDIR (/tmp) without one. */
cogpu_status cogpu_spill_open(const cogpu_out *out, uint64_t most, cogpu_spill **spill,
                              cogpu_error *error);
void cogpu_spill_close(cogpu_spill *spill);
/* So many bytes of an empty spill stay in memory, where there is so much. */
void cogpu_spill_hold(cogpu_spill *spill, uint64_t bytes);
/* Sets *offset to where they lie in the spill: after all before them. */
cogpu_status cogpu_spill_add(cogpu_spill *spill, const void *from, size_t bytes, uint64_t *offset,
                             cogpu_error *error);
/* The same for bytes that the caller puts there; NULL where they have to go to a file. */
uint8_t *cogpu_spill_room(cogpu_spill *spill, size_t bytes, uint64_t *offset);
/* All its bytes; NULL where some are in a file. */
const uint8_t *cogpu_spill_memory(const cogpu_spill *spill);
/* From the spill to `offset` of `out`, by the kernel where it can. */
cogpu_status cogpu_spill_copy(cogpu_spill *spill, uint64_t from, uint64_t bytes, cogpu_out *out,
                              uint64_t offset, cogpu_error *error);

#endif
