/*
 * Writing on a device: takes rows of levels that lie there, hands on the stored bytes of their
 * blocks in memory of the host, in the order in which blocks were added, or brings them to their
 * place in the file itself.
 *
 * Blocks go in batches through berths, each with memory of the device, pinned memory and a stream.
 * While blocks are cut into one berth, the batch before is encoded and packed, and the bytes of the
 * one before that come down and are handed on. All memory is one piece of the device's and one of
 * pinned, and can be kept for the next writer.
 *
 * A batch all of which stands side by side in the file goes there without a stop, where there is a
 * way: by cuFile from the device to a file, and in one copy down to a pinned buffer of the caller.
 */
#ifndef COGPU_BACKEND_CUDA_GPU_WRITE_H
#define COGPU_BACKEND_CUDA_GPU_WRITE_H

#include "backend/cpu/cpu_shrink.h"
#include "backend/cuda/cuda_pack.h"
#include "base/pool.h"
#include "io/sink.h"
#include "plan/write_plan.h"

typedef struct cogpu_gpu_writer cogpu_gpu_writer;

/* What writers work in. All zero: none. */
typedef struct cogpu_gpu_memory {
    void *device, *pinned;
    uint64_t device_bytes, pinned_bytes;
    bool is_registered; /* cuFile has taken it up */
} cogpu_gpu_memory;
void cogpu_gpu_memory_release(cogpu_gpu *gpu, cogpu_gpu_memory *memory);

typedef struct cogpu_gpu_added {
    void *level; /* the caller's */
    cogpu_new_block block;
} cogpu_gpu_added;

/* A batch that is through. Blocks are as they stand in the file, in a COG with what is around each;
 * or, where the host has to encode them, as they were cut, one after the other. */
typedef struct cogpu_gpu_brought {
    const cogpu_gpu_added *blocks;
    uint32_t count;
    uint64_t file_end;                 /* when it got its places: see `end` of the options */
    const struct cogpu_packed *places; /* in `bytes`; one more, whose `at` is where all end */
    uint8_t *bytes;                    /* not there yet when it gets its places */
} cogpu_gpu_brought;

typedef struct cogpu_gpu_writer_options {
    const cogpu_write_plan *plan; /* stays until the writer is closed */
    uint64_t budget;              /* of the device's memory, rows not counted */
    uint64_t rows_bytes;          /* for rows of levels, see cogpu_gpu_writer_allocate */
    cogpu_out *out;               /* the file's, for batches that go straight there */
    const uint64_t *end;          /* of the file so far, places that were given counted */
    uint64_t *direct_bytes;       /* that cuFile has written, to add to */
    cogpu_pool *pool;             /* for writes that cuFile takes in no batch; may be NULL */
    uint32_t seats;
    /* The batch's sizes are known: its blocks get their places. *is_straight, false at first: all
     * of it stands in the file, from `end` as it was on. */
    cogpu_status (*place)(void *user, const cogpu_gpu_brought *batch, bool *is_straight,
                          cogpu_error *error);
    /* Its bytes are there; not called for a batch that went straight to the file. Batches leave in
     * the order in which they got their places, a few later. */
    cogpu_status (*leave)(void *user, const cogpu_gpu_brought *batch, cogpu_error *error);
    void *user;
} cogpu_gpu_writer_options;

/* `memory` is used if it is large enough, else replaced; it is the writer's until it is closed.
 * UNSUPPORTED where blocks are too large for the device, LIMIT where they are for the budget. */
cogpu_status cogpu_gpu_writer_open(cogpu_gpu *gpu, const cogpu_gpu_writer_options *options,
                                   cogpu_gpu_memory *memory, cogpu_gpu_writer **writer,
                                   cogpu_error *error);
/* Nothing is under way any more. NULL is allowed. */
void cogpu_gpu_writer_close(cogpu_gpu_writer *writer);
/* Blocks come as they were cut: the device has no encoder for them. */
bool cogpu_gpu_writer_leaves_encoding(const cogpu_gpu_writer *writer);

/* Memory of the device until the writer is closed. */
cogpu_status cogpu_gpu_writer_allocate(cogpu_gpu_writer *writer, uint64_t bytes, void **memory,
                                       cogpu_error *error);

/* All that follows comes to pass in the order in which it is asked for.
 *
 * What is done with a raster of the caller's begins after what its stream holds, and what its
 * stream gets after the end waits for it. */
cogpu_status cogpu_gpu_writer_begin(cogpu_gpu_writer *writer, const cogpu_raster *raster,
                                    cogpu_error *error);
cogpu_status cogpu_gpu_writer_end(cogpu_gpu_writer *writer, const cogpu_raster *raster,
                                  cogpu_error *error);
/* Waits until nothing is done with rasters any more, where an end could not be asked for. NULL is
 * allowed. */
void cogpu_gpu_writer_finish(cogpu_gpu_writer *writer);

/* The stream by which rows go, for steps that make or move them. */
cogpu_gpu_stream *cogpu_gpu_writer_stream(const cogpu_gpu_writer *writer);

/* Rows of the host, packed: pinned memory for them, at least for one row of level 0, once what was
 * in it before is up; and that memory's first bytes on the device, for steps that follow. */
cogpu_status cogpu_gpu_writer_lend(cogpu_gpu_writer *writer, uint8_t **pinned, uint64_t *bytes,
                                   cogpu_error *error);
cogpu_status cogpu_gpu_writer_upload(cogpu_gpu_writer *writer, uint64_t bytes, void **device,
                                     cogpu_error *error);

/* A row of blocks of a level, planes and mask. The rasters have the level's rows from `first` on,
 * and all strides; `mask` is NULL without. */
cogpu_status cogpu_gpu_writer_add_row(cogpu_gpu_writer *writer, void *level, const cogpu_grid *grid,
                                      uint32_t row, const cogpu_raster *rows,
                                      const cogpu_raster *mask, uint32_t first, cogpu_error *error);
/* All that was added is handed on. */
cogpu_status cogpu_gpu_writer_drain(cogpu_gpu_writer *writer, cogpu_error *error);

/* Rows of a raster on a device, from `first` on, into memory of the host: packed, bands one after
 * the other. Done when it returns. */
cogpu_status cogpu_gpu_bring_down(cogpu_gpu *gpu, const cogpu_raster *raster, uint32_t first,
                                  uint32_t rows, uint8_t *to, cogpu_error *error);

#endif
