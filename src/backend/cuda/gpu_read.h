/*
 * Reading on a device: takes blocks with their places in files, hands on their pixels in rasters on
 * the device.
 *
 * Blocks go in batches through slots, each with pinned memory of the host, memory of the device and
 * a stream. While one batch is read from its file by all threads, the one before is copied up and
 * decoded. What the device cannot decode, and what it refuses, is decoded by the host and goes the
 * same way, as bytes that need no decoding.
 */
#ifndef COGPU_BACKEND_CUDA_GPU_READ_H
#define COGPU_BACKEND_CUDA_GPU_READ_H

#include "backend/cpu/cpu.h"
#include "backend/cuda/gds.h"
#include "backend/cuda/gpu.h"
#include "base/pool.h"

typedef struct cogpu_gpu_reader cogpu_gpu_reader;

/* It owns `gpu` from here on, and takes at most `bytes` of its memory, when it comes to need them.
 * With `jpeg_engines` the GPU's engines decode JPEG, where it has any. */
cogpu_status cogpu_gpu_reader_open(cogpu_gpu *gpu, uint64_t bytes, bool jpeg_engines,
                                   cogpu_gpu_reader **reader, cogpu_error *error);
void cogpu_gpu_reader_close(cogpu_gpu_reader *reader);
cogpu_gpu *cogpu_gpu_reader_gpu(const cogpu_gpu_reader *reader);

/* Memory of the device for others, and copies of it, down or up, that are done on return. */
cogpu_status cogpu_gpu_reader_allocate(cogpu_gpu_reader *reader, uint64_t bytes, void **memory,
                                       cogpu_error *error);
void cogpu_gpu_reader_release(cogpu_gpu_reader *reader, void *memory);
cogpu_status cogpu_gpu_reader_copy(cogpu_gpu_reader *reader, void *to, const void *from,
                                   uint64_t bytes, bool is_down, cogpu_error *error);

/* Samples of a raster of floats become NaN where `mask`, packed, on the device and of type U8, has
 * 0 in rows that are those from `first_row` on of the raster: in one band for all, or one for each.
 * Done on return. */
cogpu_status cogpu_gpu_reader_void(cogpu_gpu_reader *reader, const cogpu_raster *mask,
                                   uint32_t first_row, const cogpu_raster *raster,
                                   cogpu_error *error);

/* One block, or slice of a block. Those of one plan stand one after the other. */
typedef struct cogpu_gpu_task {
    const cogpu_read_plan *plan;
    const cogpu_raster *raster; /* on the device, with all strides set */
    cogpu_block block;
    cogpu_span span;        /* of 0 bytes: filled */
    bool is_for_host;       /* to decode, whatever the codec */
    bool is_out;            /* it failed, and is not to be filled */
    bool is_decoded;        /* by the device */
    bool is_late;           /* the device refused it */
    bool came_directly;     /* its bytes went from the file straight to the device */
    const uint8_t *brought; /* its stored bytes, where the host has them; else NULL */
} cogpu_gpu_task;

typedef struct cogpu_gpu_work {
    cogpu_gpu_task *tasks;
    uint32_t count;
    cogpu_pool *pool; /* may be NULL: the caller's thread alone */
    cogpu_seat **seats;
    uint32_t seat_count;
    /* A task could not be read. True: fill it. Called from any thread. */
    bool (*failed)(void *user, uint32_t task, const cogpu_error *error);
    void *user;
    cogpu_stages *stages; /* to add to */
    bool is_pending;      /* the caller goes on before it is finished */

    /* The reader's own. */
    uint64_t left; /* stored bytes that are in no batch yet */
    uint32_t refused;
    bool is_direct;
    const cogpu_gds_context *gds_context;
    struct cogpu_direct_file *files;
    struct cogpu_brought *brought;
    uint64_t brought_bytes;
} cogpu_gpu_work;

/* Whether a plan can go this way at all: its blocks must fit a slot. */
bool cogpu_gpu_reader_takes(const cogpu_gpu_reader *reader, const cogpu_read_plan *plan);

/* A read in two steps, which fail only where the device does. After the first all is on its way to
 * the rasters, and, if it is pending, what their streams get from here on waits for it; after the
 * second it is there, what the device refused with it. Both report to the plans' meters; tasks of
 * a plan whose meter is cancelled are left out. `work` and its tasks stay until then, and
 * other reads may come in between. When the first fails there is nothing to finish. */
cogpu_status cogpu_gpu_start(cogpu_gpu_reader *reader, cogpu_gpu_work *work, cogpu_error *error);
cogpu_status cogpu_gpu_finish(cogpu_gpu_reader *reader, cogpu_gpu_work *work, cogpu_error *error);

/* Rows of pixels that the host has, into rows of a raster on the device: `from` is packed, its
 * bands one after the other, of the raster's bands, width and type. Done when it returns. */
cogpu_status cogpu_gpu_put(cogpu_gpu_reader *reader, const uint8_t *from, uint32_t rows,
                           const cogpu_raster *raster, uint32_t target_y, cogpu_error *error);

#endif
