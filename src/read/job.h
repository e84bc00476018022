/*
 * A read in progress, as the files of this module share it.
 *
 * A job reads windows. A window is planned first (plan_window.c, arithmetic only) and read later.
 * Most windows are read in batches of blocks. Some need sub-reads: of a mask, of colour components,
 * of single bands, or of host memory that is uploaded. Those are windows too, planned together with
 * their parent and read by the same workers (part.c).
 */
#ifndef COGPU_READ_JOB_H
#define COGPU_READ_JOB_H

#include "context/file.h"
#include "plan/fetch.h"
#include "read/read.h"

enum { COGPU_BATCH_BLOCKS = 2048 };

/* What a window delivers. */
enum cogpu_read_content {
    COGPU_READ_PIXELS,
    COGPU_READ_MASK,
    COGPU_READ_COMPONENTS /* bands of planar CMYK or YCbCr, before their conversion to RGB */
};

/* How pixels get into the raster of a window. */
enum cogpu_read_method {
    COGPU_READ_BLOCKS,    /* batches of blocks, decoded by the CPU or by the raster's device */
    COGPU_READ_ALL_VALID, /* a mask of 255 everywhere; nothing is read */
    COGPU_READ_EACH_BAND, /* one sub-read for each band, since bands differ in nodata or mask */
    COGPU_READ_PLANAR_COLOURS, /* rows of all components are read and converted to RGB */
    COGPU_READ_VIA_HOST,       /* rows are read into host memory and uploaded */
    COGPU_READ_VIA_DEVICE,     /* rows are read into device memory and downloaded */
    COGPU_READ_STREAMED,       /* each block is decoded by the CPU a few rows at a time, which are
                                * uploaded */
    COGPU_READ_MOSAIC          /* computed from windows of other files */
};

struct cogpu_read_window {
    const cogpu_file *file;
    enum cogpu_read_content content;
    enum cogpu_read_method method;
    bool fills_bad_blocks;
    cogpu_read_plan plan;
    cogpu_conversion conversion;     /* plan.conversion points here, if there is one */
    uint8_t fill[16];                /* plan.fill points here, if the band has nodata of its own */
    cogpu_raster raster;             /* with all strides set; of a sub-read when it is read */
    cogpu_gpu_device *device;        /* of the raster; NULL for host memory */
    struct cogpu_read_window *mask;  /* sub-read whose zeros become NaN in the raster; or NULL */
    bool is_mask_shared;             /* the mask has one band, which applies to all bands */
    struct cogpu_read_window *parts; /* sub-reads of the method: one, or one for each band */
    uint32_t part_count;
    uint64_t planned;       /* blocks of the plan that are in a batch or done */
    uint64_t failed_number; /* of the first bad block; UINT64_MAX while there is none */
    cogpu_error error;
    cogpu_result *result;
    cogpu_meter meter; /* zero without a progress function */
};

/* What to read: a request that was checked, or a sub-read derived from one. */
struct cogpu_read_spec {
    const cogpu_file *file;
    const cogpu_pyramid *pyramid;
    const cogpu_pyramid_level *level;
    enum cogpu_read_content content;
    uint32_t x, y, width, height;
    const uint32_t *bands; /* 1-based; NULL for all */
    uint32_t band_count;
    bool fills_bad_blocks;
    bool is_unscaled; /* scale and offset of the bands are applied */
    bool masked;
    bool skips_mask; /* a mask directory or alpha band is not applied */
    cogpu_raster raster;
    cogpu_gpu_device *device;        /* of the raster; NULL for host memory */
    cogpu_gpu_device *decode_device; /* that decodes for a raster in host memory, or NULL */
    uint32_t threads;                /* of the CPU, that would decode instead */
};

/* A block of a window in a batch. */
struct cogpu_read_task {
    struct cogpu_read_window *window;
    uint64_t number; /* in the window's plan */
    cogpu_block block;
    cogpu_span span;
    bool is_lost;     /* its span is unknown: window->error says why */
    bool needs_fetch; /* its bytes have to be read: it is neither lost, sparse nor cached */
};

/* Windows whose blocks share batches; all rasters are on one device or in host memory. */
struct cogpu_read_queue {
    struct cogpu_read_window **windows;
    size_t count, current; /* current: the window that the next batch begins with */
    cogpu_gpu_device *device;
    bool may_stay_pending; /* the last batch may still be on the device when the call returns */
};

/* Byte ranges that a source prefetches. */
struct cogpu_read_prefetch {
    const cogpu_io *io;
    uint64_t ticket;
};

/* The blocks that are read at once. A run is neighbouring blocks in the file. */
struct cogpu_read_batch {
    struct cogpu_read_task *tasks;
    uint32_t task_count;
    uint32_t *runs; /* first task of each run */
    uint32_t run_count;
    cogpu_gpu_device *device; /* NULL: decoded by the CPU */
    bool can_prefetch;        /* at least one source can */
    struct cogpu_read_prefetch *prefetches;
    uint32_t prefetch_count;
    bool is_on_device; /* started, not finished */
    cogpu_gpu_read_job device_job;
    cogpu_gpu_read_task *device_tasks;
};

/* A run while a thread reads it. */
struct cogpu_block_run {
    struct cogpu_read_task *tasks;
    uint32_t count;
    cogpu_fetch fetch; /* the current one */
    struct cogpu_run_counts {
        uint64_t sparse, cached, bytes_read;
    } counts; /* what became of its blocks */
};

struct cogpu_read_job {
    cogpu_read_call **items;
    struct cogpu_read_window *windows; /* one for each item */
    size_t count;
    cogpu_context *context;     /* may be NULL */
    cogpu_gpu_device *device;   /* of the rasters; NULL for host memory */
    const cogpu_io *checked_io; /* the last source that was found unchanged */
    cogpu_pool *pool;           /* the context's, or opened for this job */
    uint32_t threads;
    cogpu_worker **workers; /* scratch memory, one for each thread */
    uint32_t worker_count;
    struct cogpu_read_batch batch;
    const cogpu_gpu_read_observer *observer; /* of the batches of a sub-read; usually NULL */
    struct cogpu_read_queue queue;           /* of the items' windows */
    pthread_mutex_t lock;                    /* of results, errors and kept_bytes */
    uint64_t kept_bytes;                     /* of blocks that the read has put into the cache */
    cogpu_arena arena;
    uint64_t nested_layers; /* of VRTs inside VRTs: their number is limited */
    bool is_pending;        /* the caller does not wait for the device */
    bool is_complete;       /* of a pending read: no batch is on the device */
    cogpu_read_call item;   /* of a pending read, which own_items points to */
    cogpu_read_call *own_items[1];
};

/* ---- check_request.c ---- */

/* Checks a request and its raster, and completes both: window to the edges, strides. */
cogpu_status cogpu_check_request(const cogpu_read_call *item, struct cogpu_read_spec *spec,
                                 cogpu_error *error);
/* Whether this build can decode the storage's blocks. */
cogpu_status cogpu_check_codec(const cogpu_storage *storage, cogpu_error *error);

/* ---- plan_window.c: arithmetic only; sub-reads come from the arena ---- */

cogpu_status cogpu_plan_window(const struct cogpu_read_spec *spec, cogpu_arena *arena,
                               struct cogpu_read_window *window, cogpu_error *error);
/* Blocks of the window in the progress of a read, those of its mask included. */
uint64_t cogpu_window_blocks(const struct cogpu_read_window *window);
/* Rows of a window that are read at a time, through bounded memory: about 4 MiB, whole rows of
 * blocks if these fit, so that no block is decoded twice. At least 1. */
uint32_t cogpu_chunk_rows(const cogpu_storage *storage, uint64_t row_bytes, uint32_t height);
/* The same with more memory for blocks that are taller than a chunk, which are decoded again for
 * each chunk that they overlap. */
uint32_t cogpu_tall_chunk_rows(const cogpu_storage *storage, uint64_t row_bytes, uint32_t height);

/* ---- workers.c ---- */

/* Opens workers for the planned windows, and the memory of the batch. */
cogpu_status cogpu_job_open_workers(struct cogpu_read_job *job, cogpu_error *error);
void cogpu_job_close_workers(struct cogpu_read_job *job);
/* Whether memory allows that each worker decodes CODEC_LANES blocks of the plan's file at once. */
bool cogpu_job_has_lane_memory(const struct cogpu_read_job *job, const cogpu_read_plan *plan);

/* ---- read.c ---- */

/* Whether the files of a window, and of its parts, are still those that were opened. */
cogpu_status cogpu_check_sources(struct cogpu_read_job *job, const struct cogpu_read_window *window,
                                 cogpu_error *error);

/* ---- part.c: sub-reads ---- */

/* The read of a smaller window of the same level, planned as `whole` is. The caller sets the
 * raster's memory; without strides it is packed. */
struct cogpu_read_window cogpu_window_part(const struct cogpu_read_window *whole, uint32_t x,
                                           uint32_t y, uint32_t width, uint32_t height);
/* Reads a part. Its progress is reported as `share`, its counts are added to `result`. */
cogpu_status cogpu_read_part(struct cogpu_read_job *job, struct cogpu_read_window *part,
                             cogpu_share share, cogpu_result *result, cogpu_error *error);
/* Reads windows of one device in common batches, as parts of `whole`, whose result counts their
 * blocks. The error of a window is in the window; the call fails only if the device does. */
cogpu_status cogpu_read_windows(struct cogpu_read_job *job, struct cogpu_read_window *windows,
                                uint32_t count, struct cogpu_read_window *whole,
                                cogpu_error *error);
/* Reads a window by its method, without its mask. */
cogpu_status cogpu_execute_window(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                  cogpu_error *error);

/* ---- batch.c ---- */

/* Reads the blocks of all windows of the queue, batch after batch. Fails only if the device does;
 * bad blocks are in the windows' errors. */
cogpu_status cogpu_read_batches(struct cogpu_read_job *job, struct cogpu_read_queue *queue,
                                cogpu_error *error);
cogpu_status cogpu_batch_finish_on_device(struct cogpu_read_job *job, cogpu_error *error);
/* Whether two tasks need the same block, which is decoded once for both. */
bool cogpu_task_is_same_block(const struct cogpu_read_task *task,
                              const struct cogpu_read_task *other);
const cogpu_io *cogpu_task_io(const struct cogpu_read_task *task);
uint32_t cogpu_batch_run_end(const struct cogpu_read_batch *batch, uint32_t run);
/* The next fetch of a run after `fetch`, which is zero at first: tasks that need it and that no
 * other task separates. False at the end of the run. */
bool cogpu_tasks_next_fetch(const struct cogpu_read_task *tasks, uint32_t count,
                            cogpu_fetch *fetch);
/* Whether a block that failed with this status is filled with nodata. */
bool cogpu_is_fillable(const struct cogpu_read_window *window, cogpu_status status);
/* Adds tasks that are done to the progress of their windows. */
void cogpu_tasks_report_done(const struct cogpu_read_task *tasks, uint32_t count);
/* Handles a block that cannot be read: fills it, or makes it the window's error. */
void cogpu_task_fail(struct cogpu_read_job *job, struct cogpu_read_task *task, cogpu_error *error);

/* ---- prefetch.c ---- */

/* Sorts the batch by offset if a source can prefetch: such a source is read in the file's order. */
void cogpu_batch_sort_for_prefetch(struct cogpu_read_batch *batch);
/* Tells sources which byte ranges the batch reads, and that it has read them. */
void cogpu_batch_start_prefetch(struct cogpu_read_job *job);
void cogpu_batch_end_prefetch(struct cogpu_read_batch *batch);

/* ---- host.c ---- */

void cogpu_batch_read_on_host(struct cogpu_read_job *job);
/* A run: unpacks what is cached, fills what is sparse; fetches of the others; adds its counts. */
void cogpu_run_begin(struct cogpu_read_job *job, cogpu_worker *worker, uint32_t number,
                     struct cogpu_block_run *run);
bool cogpu_run_next_fetch(struct cogpu_block_run *run);
void cogpu_run_end(struct cogpu_read_job *job, const struct cogpu_block_run *run);
/* How many of the tasks, from the first on, need the first one's block. */
uint32_t cogpu_tasks_of_block(const struct cogpu_read_task *tasks, uint32_t count);
/* Whether their block can still matter. Polls the meter. */
bool cogpu_tasks_are_wanted(struct cogpu_read_job *job, const struct cogpu_read_task *tasks,
                            uint32_t count);
/* The bytes of a fetch: mapped already, or read in one go into *memory, which grows. */
cogpu_status cogpu_tasks_fetch(const struct cogpu_read_task *first, const cogpu_fetch *fetch,
                               uint8_t **memory, size_t *capacity, const uint8_t **bytes,
                               uint64_t *read, cogpu_error *error);
/* Reads the blocks of a fetch, or each one alone. */
void cogpu_tasks_read(struct cogpu_read_job *job, cogpu_worker *worker,
                      struct cogpu_read_task *tasks, const cogpu_fetch *fetch, uint64_t *read);
void cogpu_tasks_read_singly(struct cogpu_read_job *job, cogpu_worker *worker,
                             struct cogpu_read_task *tasks, uint32_t count, uint64_t *read);
/* Decodes the block of some tasks, and unpacks it into the rasters of all. */
void cogpu_tasks_decode(struct cogpu_read_job *job, cogpu_worker *worker,
                        struct cogpu_read_task *tasks, uint32_t count, const uint8_t *stored);
/* The second half of it. A block is restored into memory of its own for the cache, or if several
 * tasks need it: unpacking changes what it restores. */
cogpu_status cogpu_tasks_unpack(struct cogpu_read_job *job, cogpu_worker *worker,
                                struct cogpu_read_task *tasks, uint32_t count, uint8_t *decoded,
                                cogpu_error *error);
void cogpu_tasks_fail(struct cogpu_read_job *job, struct cogpu_read_task *tasks, uint32_t count,
                      cogpu_error *error);

/* ---- cache.c ---- */

cogpu_block_cache_key cogpu_task_cache_key(const struct cogpu_read_task *task);
bool cogpu_task_is_cached(struct cogpu_read_job *job, const struct cogpu_read_task *task);
/* False if the cache does not have the block. */
bool cogpu_task_unpack_cached(struct cogpu_read_job *job, cogpu_worker *worker,
                              const struct cogpu_read_task *task);
/* Whether the block will be kept in the context's cache if it is decoded as a whole. */
bool cogpu_task_is_worth_keeping(struct cogpu_read_job *job, const struct cogpu_read_task *task);
/* Memory for the restored block in the context's cache, which the caller fills and inserts; NULL if
 * it is not worth keeping. */
cogpu_cached_block *cogpu_task_reserve_cached(struct cogpu_read_job *job,
                                              const struct cogpu_read_task *task);
/* Decodes a streamed block into the cache and unpacks it. False if it is not worth keeping, or
 * could not be decoded: then the caller streams it into the raster, and reports what is wrong with
 * it. */
typedef bool cogpu_task_stream(struct cogpu_read_job *job, cogpu_worker *worker,
                               struct cogpu_read_task *task, uint64_t *read);
bool cogpu_task_stream_cached(struct cogpu_read_job *job, cogpu_worker *worker,
                              const struct cogpu_read_task *task, cogpu_task_stream *stream,
                              uint64_t *read);
/* Whether blocks are decoded a few rows at a time as they are read, instead of as a whole. */
bool cogpu_job_streams(const struct cogpu_read_job *job, const cogpu_storage *storage);

/* ---- lanes.c ---- */

/* Whether each thread gets several blocks of the batch that its codec decodes at once. */
bool cogpu_batch_uses_lanes(const struct cogpu_read_job *job);
void cogpu_batch_read_in_lanes(struct cogpu_read_job *job);

/* ---- device.c ---- */

/* Starts and finishes a batch on its device, as cogpu_gpu_read_start and _finish do. */
cogpu_status cogpu_batch_start_on_device(struct cogpu_read_job *job, bool is_pending,
                                         cogpu_error *error);

/* ---- via_host.c ---- */

cogpu_status cogpu_read_via_host(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                 cogpu_error *error);
cogpu_status cogpu_read_streamed(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                 cogpu_error *error);

/* ---- via_device.c ---- */

/* Whether device memory holds enough rows of the window that no block is decoded twice. */
bool cogpu_can_read_via_device(const struct cogpu_read_window *window);
cogpu_status cogpu_read_via_device(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                   cogpu_error *error);

/* ---- planar_colours.c ---- */

bool cogpu_has_planar_colours(const cogpu_storage *storage);
cogpu_status cogpu_read_planar_colours(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                       cogpu_error *error);

/* ---- mosaic.c ---- */

cogpu_status cogpu_read_mosaic(struct cogpu_read_job *job, struct cogpu_read_window *window,
                               cogpu_error *error);

/* ---- mask.c ---- */

/* Turns the plan of a window into that of its mask; without a conversion if all pixels are valid.
 */
cogpu_status cogpu_plan_mask(const struct cogpu_read_spec *spec, cogpu_arena *arena,
                             struct cogpu_read_window *window, cogpu_error *error);
void cogpu_mask_fill_valid(const cogpu_raster *raster);
/* Reads window->mask and turns invalid pixels of the raster into NaN. */
cogpu_status cogpu_apply_mask(struct cogpu_read_job *job, struct cogpu_read_window *window,
                              cogpu_error *error);

#endif
