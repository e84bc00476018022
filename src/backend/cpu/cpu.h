/*
 * The CPU backend: a stored block becomes samples of the caller's raster in three steps, each a
 * file: decode (stored bytes to block bytes), restore (predictor and byte order undone, row by
 * row), place (rows into the raster at its strides, packed depths widened), by way of convert where
 * the plan has a conversion. Blocks that are too large to be held take these steps a few rows at a
 * time: stream.
 */
#ifndef COGPU_BACKEND_CPU_CPU_H
#define COGPU_BACKEND_CPU_CPU_H

#include "plan/plan.h"

/* What one thread works with, kept from block to block. Zeroed at the start. */
typedef struct cogpu_seat {
    uint8_t *stored, *decoded, *units, *row, *wide_row, *sunk, *plain, *converted, *shrunk, *shared;
    size_t stored_bytes, decoded_bytes, units_bytes, row_bytes, wide_row_bytes, sunk_bytes,
        plain_bytes, converted_bytes, shrunk_bytes, shared_bytes;
    cogpu_codec_state codec;
    struct cogpu_seat *next; /* in the context's list of free seats */
} cogpu_seat;

void cogpu_seat_close(cogpu_seat *seat);

/* Makes *memory at least `bytes` long; its content is lost. */
cogpu_status cogpu_seat_room(uint8_t **memory, size_t *held, size_t bytes, cogpu_error *error);

/* Undoes FillOrder 2. `to` may be `from`. */
void cogpu_cpu_reverse_bits(const uint8_t *from, size_t bytes, uint8_t *to);

/* Can so few stored bytes become so many? */
cogpu_status cogpu_cpu_check_expansion(uint64_t stored, uint64_t decoded, cogpu_error *error);

/* decode: `stored` may be changed only if it is the seat's own. *decoded is the seat's memory, or
 * `stored` itself for an uncompressed block that can be used as it is. */
cogpu_status cogpu_cpu_decode(cogpu_seat *seat, const cogpu_storage *storage,
                              const cogpu_block *block, const uint8_t *stored, size_t stored_bytes,
                              uint8_t **decoded, cogpu_error *error);

/* restore: rows of a decoded block. Their first `pixels` pixels, which are changed on the way, go
 * to `to` (another place, rows at a stride of its own) in the machine's byte order, packed as the
 * file has them. With `streams` they go past the caches: for a raster that no cache can hold. */
bool cogpu_cpu_needs_restore(const cogpu_storage *storage);
void cogpu_cpu_restore(const cogpu_storage *storage, uint8_t *from, uint32_t rows, uint32_t pixels,
                       uint8_t *to, int64_t to_stride, bool streams);

/* convert: samples of the storage's type, of band p of the raster and side by side, into such of
 * the raster's type, as the plan's conversion has it. */
void cogpu_cpu_convert(const cogpu_read_plan *plan, uint32_t p, const uint8_t *from, uint32_t count,
                       cogpu_type to_type, uint8_t *to);

/* place: the block's part of the window into the raster, restored on the way unless it is already,
 * and converted if the plan says so. */
cogpu_status cogpu_cpu_place(cogpu_seat *seat, const cogpu_read_plan *plan,
                             const cogpu_block *block, uint8_t *decoded, bool is_restored,
                             const cogpu_raster *raster, cogpu_error *error);
/* Where an uncompressed block goes that needs neither decoding nor restoring and whose rows lie in
 * the raster one after the other, as in the file: it can be read straight there. NULL for all
 * others. */
uint8_t *cogpu_cpu_direct(const cogpu_read_plan *plan, const cogpu_block *block,
                          const cogpu_raster *raster);
/* As place, for a block without data: the storage's fill sample everywhere. */
void cogpu_cpu_fill(const cogpu_read_plan *plan, const cogpu_block *block,
                    const cogpu_raster *raster);

/* stream: decode, restore and place of a block that is too large to be held, as its stored bytes
 * are read. Polls the plan's meter; CANCELLED if that is cancelled. *read grows by what is read.
 * With `sink` the rows do not go into the raster, of which only type and bands are looked at, but
 * to it: packed, band after band, with what of the window they are. */
typedef struct cogpu_row_sink {
    cogpu_status (*put)(void *user, const uint8_t *pixels, const cogpu_block *part,
                        cogpu_error *error);
    void *user;
} cogpu_row_sink;
bool cogpu_cpu_is_streamed(const cogpu_storage *storage);
/* Bytes that one takes of a seat. */
uint64_t cogpu_cpu_stream_bytes(const cogpu_storage *storage);
cogpu_status cogpu_cpu_stream(cogpu_seat *seat, const cogpu_read_plan *plan,
                              const cogpu_block *block, cogpu_span span, const cogpu_raster *raster,
                              const cogpu_row_sink *sink, bool *needs_whole, uint64_t *read,
                              cogpu_error *error);

/* Vector units found, for cogpu_device_info. */
const char *cogpu_cpu_vectors(void);

#endif
