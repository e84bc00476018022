/*
 * Reading blocks of files into rasters on a device.
 *
 * Blocks go in batches through slots (pinned host memory) and buffers (device memory and a stream).
 * While threads fetch one batch from its file, the batch before is copied to the device and
 * decoded. Blocks that the device cannot decode, or refuses, are decoded by the CPU and copied as
 * they are. README.md has the states of blocks and slots, and what reads of several threads share.
 */
#ifndef COGPU_GPU_READ_PIPELINE_H
#define COGPU_GPU_READ_PIPELINE_H

#include "base/pool.h"
#include "cpu/block_cache.h"
#include "gpu/device.h"

/* Where a block is on its way to the raster; README.md has the diagram. */
typedef enum cogpu_block_state {
    COGPU_BLOCK_PENDING,    /* its bytes are still to be fetched, or on their way */
    COGPU_BLOCK_UNREADABLE, /* fetching failed: the CPU tries again and reports the error */
    COGPU_BLOCK_LAUNCHED,   /* the device has its bytes */
    COGPU_BLOCK_DECODED,    /* in the raster, decoded by the device */
    COGPU_BLOCK_UPLOADED,   /* in the raster, decoded by the CPU or stored without compression */
    COGPU_BLOCK_REFUSED,    /* the device could not decode it: the CPU does in a second pass */
    COGPU_BLOCK_FILLED,     /* sparse, or bad and to be filled: the fill value */
    COGPU_BLOCK_FAILED      /* bad or cancelled: its pixels stay as they are */
} cogpu_block_state;

/* How the bytes of a block reach the device. */
typedef enum cogpu_block_source {
    COGPU_SOURCE_NONE,   /* there are none: FILLED or FAILED */
    COGPU_SOURCE_CUFILE, /* stored bytes, from the file to the device without a copy in between */
    COGPU_SOURCE_PINNED, /* stored bytes, through pinned memory; the device decodes them */
    COGPU_SOURCE_CACHED, /* stored bytes that the device's cache has; the device decodes them */
    COGPU_SOURCE_NVJPEG, /* a rewritten JPEG stream in pinned memory; nvJPEG decodes it */
    COGPU_SOURCE_PLAIN,  /* stored without compression, through pinned memory */
    COGPU_SOURCE_CPU     /* decoded by the CPU into pinned memory */
} cogpu_block_source;

/* One block, or rows of one. Tasks of one plan are neighbours in the array. */
typedef struct cogpu_gpu_read_task {
    const cogpu_read_plan *plan;
    const cogpu_raster *raster; /* on the device, with all strides set */
    cogpu_block block;
    cogpu_span span;           /* 0 bytes: sparse */
    cogpu_block_cache_key key; /* of its stored bytes, for the device's cache */
    cogpu_block_state state;   /* at first PENDING, or FAILED: to be left out */
    cogpu_block_source source; /* set by the pipeline */
    const uint8_t *returned;   /* stored bytes that the device refused and gave back, or NULL */
    uint32_t repeats; /* set by the pipeline: the same block is that of the task so many before this
                       * one; 0: of none */
    bool is_repeat;   /* set by the pipeline: it was decoded once for both */
} cogpu_gpu_read_task;

/* Called by the thread that reads, for each task whose pixels are in the raster. */
typedef struct cogpu_gpu_read_observer {
    void (*unpacked)(void *user, const cogpu_gpu_read_task *task);
    void *user;
} cogpu_gpu_read_observer;

struct cogpu_read_run;

typedef struct cogpu_gpu_read_job {
    cogpu_gpu_read_task *tasks;
    uint32_t count;
    cogpu_pool *pool; /* may be NULL: the calling thread alone */
    cogpu_worker **workers;
    uint32_t worker_count;
    /* A task could not be read. Returns true to fill it. Called from any thread. */
    bool (*failed)(void *user, uint32_t task, const cogpu_error *error);
    void *user;
    const cogpu_gpu_read_observer *observer; /* may be NULL; of reads that are not pending */
    cogpu_result *times;                     /* milliseconds of each stage are added here */
    bool is_pending; /* the caller does other things between start and finish */

    struct cogpu_read_run *run; /* the pipeline's */
} cogpu_gpu_read_job;

/* Whether blocks of this plan fit into a slot and the kernels support its samples. */
bool cogpu_gpu_device_can_read(const cogpu_gpu_device *device, const cogpu_read_plan *plan);

/* Whether the device decodes blocks for host memory faster than so many CPU threads. False if it
 * has no decoder for them. Emulated devices are faster by definition, as with COGPU_ALWAYS_DEVICE.
 */
bool cogpu_gpu_device_is_faster(const cogpu_gpu_device *device, const cogpu_read_plan *plan,
                                uint32_t threads);

/* A read in two steps; they fail only if the device does. After start all work is queued on the
 * device, and if the read is pending, later work of the rasters' streams waits for it. After finish
 * all pixels are there, those of refused blocks too. Both report to the plans' meters; tasks of a
 * cancelled meter are left out. The job and its tasks must stay until finish returns. If start
 * fails there is nothing to finish. Any number of reads may be between their two steps. */
cogpu_status cogpu_gpu_read_start(cogpu_gpu_device *device, cogpu_gpu_read_job *job,
                                  cogpu_error *error);
cogpu_status cogpu_gpu_read_finish(cogpu_gpu_device *device, cogpu_gpu_read_job *job,
                                   cogpu_error *error);

/* Copies rows of pixels from host memory into rows of a raster on the device. `from` is packed,
 * band after band, with the raster's bands, width and type. Complete on return. */
cogpu_status cogpu_gpu_upload_rows(cogpu_gpu_device *device, const uint8_t *from, uint32_t rows,
                                   const cogpu_raster *raster, uint32_t target_y,
                                   cogpu_error *error);

#endif
