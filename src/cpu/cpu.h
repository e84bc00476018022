/*
 * CPU stages of a read. The bytes of a block become pixels of the caller's raster in three stages,
 * one file each:
 *
 *     decode    bytes as the file has them to rows of samples                     decode.c
 *     restore   undoes predictor and byte order                                   undo_filters.c
 *     unpack    rows into the raster at its strides, small bit depths widened     unpack.c
 *               and converted if the plan has a conversion                        convert.c
 *
 * Blocks that are too large to be held take these stages a few rows at a time: stream_decode.c.
 */
#ifndef COGPU_CPU_CPU_H
#define COGPU_CPU_CPU_H

#include "plan/plan.h"

/* Byte ranges that lanes decode from: one each, and the one that is fetched next. */
enum { COGPU_LANE_FETCHES = CODEC_LANES + 1 };

/* Scratch memory of one thread, which grows to what its blocks need and is kept. Zero at the start.
 */
typedef struct cogpu_worker {
    uint8_t *stored, *decoded, *units, *row, *wide_row, *packed_rows, *plain, *converted,
        *downsampled, *shared;
    size_t stored_bytes, decoded_bytes, units_bytes, row_bytes, wide_row_bytes, packed_rows_bytes,
        plain_bytes, converted_bytes, downsampled_bytes, shared_bytes;
    uint8_t *lane_decoded[CODEC_LANES], *lane_stored[COGPU_LANE_FETCHES];
    size_t lane_decoded_bytes[CODEC_LANES], lane_stored_bytes[COGPU_LANE_FETCHES];
    cogpu_codec_state codec;
    struct cogpu_worker *next; /* in the context's list of free workers */
} cogpu_worker;

void cogpu_worker_close(cogpu_worker *worker);

/* Makes *memory at least `bytes` long. Its content is lost. */
cogpu_status cogpu_worker_reserve(uint8_t **memory, size_t *capacity, size_t bytes,
                                  cogpu_error *error);

/* Undoes FillOrder 2. `to` may be `from`. */
void cogpu_cpu_reverse_bits(const uint8_t *from, size_t bytes, uint8_t *to);

/* Whether a block is within the limits of its file, as far as its sizes are known: `decoded` is 0
 * before it is decoded. */
cogpu_status cogpu_cpu_check_block_bytes(const cogpu_storage *storage, uint64_t stored,
                                         uint64_t decoded, cogpu_error *error);
/* Whether any codec can expand so few bytes to so many. */
cogpu_status cogpu_cpu_check_expansion(uint64_t stored, uint64_t decoded, cogpu_error *error);

/* Decodes a block. `stored` is changed only if it is worker->stored. *decoded is memory of the
 * worker, or `stored` itself for an uncompressed block that can be used as it is. */
cogpu_status cogpu_cpu_decode(cogpu_worker *worker, const cogpu_storage *storage,
                              const cogpu_block *block, const uint8_t *stored, size_t stored_bytes,
                              uint8_t **decoded, cogpu_error *error);

/* Bytes that a decoder may write of a block, which is within the limits. */
cogpu_status cogpu_cpu_decoded_capacity(const cogpu_storage *storage, const cogpu_block *block,
                                        size_t stored_bytes, size_t *capacity, cogpu_error *error);
/* Whether a thread can decode several blocks of such a file at once (cogpu_lane_codec). */
bool cogpu_cpu_can_use_lanes(const cogpu_storage *storage);

/* Restores rows of a decoded block, whose first `pixels` pixels are written to `to`, in the byte
 * order of the CPU and with the bit depth of the file. Changes `from`, which must not overlap `to`.
 * `streams` uses non-temporal stores, for a raster that is larger than the CPU's caches. */
bool cogpu_cpu_has_filters(const cogpu_storage *storage);
void cogpu_cpu_undo_filters(const cogpu_storage *storage, uint8_t *from, uint32_t rows,
                            uint32_t pixels, uint8_t *to, int64_t to_stride, bool streams);

/* Applies the plan's conversion to packed samples of band p of the raster. */
void cogpu_cpu_convert(const cogpu_read_plan *plan, uint32_t p, const uint8_t *from, uint32_t count,
                       cogpu_type to_type, uint8_t *to);

/* Writes the pixels that block and window share into the raster; restores them unless they are, and
 * converts them if the plan has a conversion. */
cogpu_status cogpu_cpu_unpack(cogpu_worker *worker, const cogpu_read_plan *plan,
                              const cogpu_block *block, uint8_t *decoded, bool filters_undone,
                              const cogpu_raster *raster, cogpu_error *error);
/* The same for rows first .. first+count-1 of the block alone, as far as the window has them. */
cogpu_status cogpu_cpu_unpack_rows(cogpu_worker *worker, const cogpu_read_plan *plan,
                                   const cogpu_block *block, uint32_t first, uint32_t count,
                                   uint8_t *rows, const cogpu_raster *raster, cogpu_error *error);
/* The raster memory that an uncompressed block can be read into directly: it needs no decode and no
 * restore, and its rows are contiguous in the raster as in the file. NULL for all other blocks. */
uint8_t *cogpu_cpu_direct_target(const cogpu_read_plan *plan, const cogpu_block *block,
                                 const cogpu_raster *raster);
/* Unpacks a sparse block: the fill sample everywhere. */
void cogpu_cpu_fill(const cogpu_read_plan *plan, const cogpu_block *block,
                    const cogpu_raster *raster);

/* Receives rows of a streamed block: packed pixels, band after band, and the part of the window
 * that they are. */
typedef struct cogpu_row_sink {
    cogpu_status (*put)(void *user, const uint8_t *pixels, const cogpu_block *part,
                        cogpu_error *error);
    void *user;
} cogpu_row_sink;
/* Whether blocks are large enough, and the codec able, to be decoded as they are read. */
bool cogpu_cpu_is_streamed(const cogpu_storage *storage);
/* Scratch memory of a worker that this needs. */
uint64_t cogpu_cpu_stream_bytes(const cogpu_storage *storage);
/* Reads, decodes, restores and unpacks a block a few rows at a time. Polls the plan's meter. *read
 * grows by the bytes that are read. With `sink` the rows go there instead of into the raster, of
 * which only type and bands are used. *needs_whole: the codec has to have all bytes at once. */
cogpu_status cogpu_cpu_stream(cogpu_worker *worker, const cogpu_read_plan *plan,
                              const cogpu_block *block, cogpu_span span, const cogpu_raster *raster,
                              const cogpu_row_sink *sink, bool *needs_whole, uint64_t *read,
                              cogpu_error *error);

/* Bytes of the longest vectors that this CPU has and our loops use: 64, 32, 16, or 0 for none. */
size_t cogpu_cpu_vector_bytes(void);
/* Their instruction set, for cogpu_device_info. */
const char *cogpu_cpu_vectors(void);

#endif
