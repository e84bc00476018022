/*
 * GPU write pipeline: packs rows in device memory into blocks, encodes them and compacts the
 * encoded bytes into one range, as the file will hold them. Blocks travel in batches; each
 * batch has a slot with device memory, pinned memory and a stream. While one batch is packed, the
 * one before it encodes, and the one before that leaves the device.
 *
 * The pipeline knows no file offsets and writes to no sink. Its caller pulls batches, in order:
 *
 *     pack_blocks ... until is_full    blocks of any level join the open batch
 *     encode_batch, compact_batch      the batch starts on its own stream
 *     next_sized                       waits until the sizes of a batch are known; the caller
 *                                      assigns its file offset and chooses where its bytes go:
 *       copy_batch                       to pinned memory, of the slot or of the caller
 *       write_batch                      from the device to the file, by cuFile
 *     next_finished                    waits until the bytes have arrived
 *
 * write_pipeline.md has a diagram and the reasons.
 */
#ifndef COGPU_GPU_WRITE_PIPELINE_H
#define COGPU_GPU_WRITE_PIPELINE_H

#include "base/pool.h"
#include "base/span.h"
#include "cpu/downsample.h"
#include "kernels/compact/compact_args.h"
#include "plan/write_plan.h"

typedef struct cogpu_gpu_writer cogpu_gpu_writer;

/* Memory of a pipeline; a context keeps it for the next one. All zero: none. */
typedef struct cogpu_gpu_memory {
    void *device, *pinned;
    uint64_t device_bytes, pinned_bytes;
    bool is_registered; /* with cuFile */
} cogpu_gpu_memory;
void cogpu_gpu_memory_release(cogpu_gpu *gpu, cogpu_gpu_memory *memory);

/* ---- open and close ------------------------------------------------------------------------ */

typedef struct cogpu_gpu_writer_options {
    const cogpu_write_plan *plan; /* must outlive the pipeline */
    uint64_t budget_bytes;        /* of device memory for batches; rows are not counted */
    uint64_t rows_bytes;          /* of device memory for cogpu_gpu_writer_allocate */
    int file_descriptor;          /* of the file that cuFile may write to, or -1 */
    void *buffer;                 /* the caller's output buffer, or NULL */
    size_t buffer_bytes;
    cogpu_pool *pool; /* for writes that cuFile does not accept as a batch; may be NULL */
    uint32_t workers;
} cogpu_gpu_writer_options;

/* Reuses `memory` if it is large enough, otherwise replaces it. The pipeline uses it until it is
 * closed. UNSUPPORTED if a block is too large for the device, LIMIT if it exceeds the budget. */
cogpu_status cogpu_gpu_writer_open(cogpu_gpu *gpu, const cogpu_gpu_writer_options *options,
                                   cogpu_gpu_memory *memory, cogpu_gpu_writer **writer,
                                   cogpu_error *error);
/* Waits for all work in flight. NULL is allowed. */
void cogpu_gpu_writer_close(cogpu_gpu_writer *writer);

/* Whether the device lacks an encoder, so that batches hold packed blocks, one after the other. */
bool cogpu_gpu_writer_needs_cpu_encoding(const cogpu_gpu_writer *writer);
/* Whether cogpu_gpu_writer_write_batch works. */
bool cogpu_gpu_writer_uses_cufile(const cogpu_gpu_writer *writer);
/* Whether the caller's buffer is pinned, so that one copy brings a batch there. */
bool cogpu_gpu_writer_reaches_buffer(const cogpu_gpu_writer *writer);

/* ---- rows ---------------------------------------------------------------------------------- */

/* Device memory until the pipeline is closed. */
cogpu_status cogpu_gpu_writer_allocate(cogpu_gpu_writer *writer, uint64_t bytes, void **memory,
                                       cogpu_error *error);

/* The stream that rows use: packing, copies and downsampling happen in the order of the calls. */
cogpu_gpu_stream *cogpu_gpu_writer_stream(const cogpu_gpu_writer *writer);

/* Orders the use of the caller's raster: after the work that its stream holds at begin, and before
 * the work that its stream gets after end. */
cogpu_status cogpu_gpu_writer_begin_rows(cogpu_gpu_writer *writer, const cogpu_raster *raster,
                                         cogpu_error *error);
cogpu_status cogpu_gpu_writer_end_rows(cogpu_gpu_writer *writer, const cogpu_raster *raster,
                                       cogpu_error *error);
/* Waits until no raster is in use, for a failure between begin and end. NULL is allowed. */
void cogpu_gpu_writer_wait_rows(cogpu_gpu_writer *writer);

/* Uploads rows from host memory in two steps. The first returns pinned memory for at least one row
 * of level 0, once its last upload has ended. The second copies its first `bytes` to *device. */
cogpu_status cogpu_gpu_writer_staging_buffer(cogpu_gpu_writer *writer, uint8_t **pinned,
                                             uint64_t *bytes, cogpu_error *error);
cogpu_status cogpu_gpu_writer_upload_staged(cogpu_gpu_writer *writer, uint64_t bytes, void **device,
                                            cogpu_error *error);

/* Downloads rows of any raster in device memory, from row `first` on: bands one after the other,
 * without gaps. The rows are there when it returns. */
cogpu_status cogpu_gpu_download_rows(cogpu_gpu *gpu, const cogpu_raster *raster, uint32_t first,
                                     uint32_t rows, uint8_t *to, cogpu_error *error);

/* ---- batches ------------------------------------------------------------------------------- */

/* A row of blocks of a level: for each column all planes, then the mask. */
typedef struct cogpu_gpu_block_row {
    void *level; /* passed through to the batch */
    const cogpu_block_grid *grid;
    uint32_t row;
    const cogpu_raster *pixels, *mask; /* on the device, all strides set; mask: NULL without */
    uint32_t first_row;                /* of the level, in both rasters */
} cogpu_gpu_block_row;

typedef struct cogpu_gpu_batch_block {
    void *level;
    cogpu_new_block block;
} cogpu_gpu_batch_block;

typedef enum cogpu_batch_target {
    COGPU_BATCH_TO_HOST,   /* pinned memory of the slot */
    COGPU_BATCH_TO_BUFFER, /* the caller's pinned buffer: nothing is left to do */
    COGPU_BATCH_TO_FILE    /* by cuFile; `unwritten` is left to the host */
} cogpu_batch_target;

/* A batch that left the encoder. Blocks are as the file holds them, with leader and trailer in a
 * COG. Its memory is reused once the caller packs further blocks. */
typedef struct cogpu_gpu_write_batch {
    const cogpu_gpu_batch_block *blocks; /* in file order */
    uint32_t count;
    const struct cogpu_compacted_block *encoded; /* offset and size of each block in the batch; the
                                                  * entry after the last has the end of all */
    uint64_t bytes;
    uint64_t file_offset; /* for the caller to set, before write_batch */
    cogpu_batch_target target;
    /* Once finished: */
    const uint8_t *data;         /* TO_HOST: all bytes; TO_FILE: those of `unwritten` */
    const cogpu_span *unwritten; /* ranges of the batch that cuFile did not write */
    uint32_t unwritten_count;
    uint64_t cufile_bytes; /* that it did write */
} cogpu_gpu_write_batch;

/* Packs blocks of the row from number *next on, and advances *next, until the batch is full. */
cogpu_status cogpu_gpu_writer_pack_blocks(cogpu_gpu_writer *writer, const cogpu_gpu_block_row *row,
                                          uint64_t *next, cogpu_error *error);
bool cogpu_gpu_writer_is_full(const cogpu_gpu_writer *writer);
bool cogpu_gpu_writer_has_blocks(const cogpu_gpu_writer *writer);

/* Encodes the open batch, compacts it and opens the next one; neither waits for the device. With
 * cuFile, `file_offset` is where the batch will begin: all batches before it need their offsets
 * between the two calls. Ignored otherwise. */
cogpu_status cogpu_gpu_writer_encode_batch(cogpu_gpu_writer *writer, cogpu_error *error);
cogpu_status cogpu_gpu_writer_compact_batch(cogpu_gpu_writer *writer, uint64_t file_offset,
                                            cogpu_error *error);

/* The oldest batch that has not been returned yet, once its sizes are known. *batch is NULL if only
 * the last `in_flight` batches are left. Each must be copied or written before the next call. */
cogpu_status cogpu_gpu_writer_next_sized(cogpu_gpu_writer *writer, uint32_t in_flight,
                                         cogpu_gpu_write_batch **batch, cogpu_error *error);
/* Starts the copy of a batch to `to`, pinned, or to the slot's memory if that is NULL. */
cogpu_status cogpu_gpu_writer_copy_batch(cogpu_gpu_writer *writer, cogpu_gpu_write_batch *batch,
                                         uint8_t *to, cogpu_error *error);
/* Starts the write of a batch to its file_offset by cuFile. */
cogpu_status cogpu_gpu_writer_write_batch(cogpu_gpu_writer *writer, cogpu_gpu_write_batch *batch,
                                          cogpu_error *error);
/* The same for batches whose bytes have arrived. At most two batches may be unfinished when
 * blocks are packed. */
cogpu_status cogpu_gpu_writer_next_finished(cogpu_gpu_writer *writer, uint32_t in_flight,
                                            cogpu_gpu_write_batch **batch, cogpu_error *error);

#endif
