/*
 * A read under way, for the files of this room that do its steps: read.c leads, gather.c finds the
 * blocks, and read_host.c or read_device.c reads them.
 */
#ifndef COGPU_API_JOB_H
#define COGPU_API_JOB_H

#include "api/room.h"

/* Blocks that are under way at once. */
enum { COGPU_BATCH = 2048 };

/* One item on its way. */
struct cogpu_reading {
    cogpu_read_item *item;
    cogpu_read_plan plan;
    cogpu_conversion conversion; /* of the plan, if it has one */
    const cogpu_storage *voids;  /* what says of whole pixels that they become NaN, a mask or the
                                  * image with its alpha; NULL where nothing does */
    bool is_void_shared;         /* one band of it stands for all */
    uint8_t fill[16];            /* of the plan, where the band has nodata of its own */
    cogpu_raster raster;         /* with all strides set */
    uint64_t planned;            /* blocks of the plan that are in a batch or done */
    uint64_t failed_number;      /* of the first bad block, UINT64_MAX while there is none */
    cogpu_error error;
    cogpu_meter meter; /* the plan's; zero where the request has no progress function */
};

struct cogpu_task {
    struct cogpu_reading *reading;
    uint64_t number; /* in the reading's plan */
    cogpu_block block;
    cogpu_span span;
    bool is_lost; /* its place in the file is not known: reading->error says why */
};

/* What a source was told of a batch. */
struct cogpu_expected {
    const cogpu_io *io;
    uint64_t ticket;
};

struct cogpu_job {
    cogpu_read_item **items;
    struct cogpu_reading *readings;
    size_t count, current;    /* current: the reading that the next batch begins with */
    const cogpu_io *checked;  /* the last source that was found unchanged */
    cogpu_context *context;   /* may be NULL */
    cogpu_gpu_reader *reader; /* of the rasters' device; NULL for memory of the host */
    cogpu_pool *pool;         /* the context's, or opened for this job */
    uint32_t threads;
    cogpu_seat **seats; /* working memory, one for each thread at work */
    uint32_t seat_count;
    struct cogpu_task *tasks;
    uint32_t task_count;
    uint32_t *runs; /* first task of each run */
    uint32_t run_count;
    bool is_expecting; /* of the batch: some source wants to know what will be read */
    struct cogpu_expected *expected;
    uint32_t expected_count;
    pthread_mutex_t lock; /* of results and errors */
    cogpu_arena arena;
    bool is_pending;     /* the last batch is not to be waited for */
    bool is_under_way;   /* a batch on the device */
    cogpu_gpu_work work; /* of the batch on the device */
    cogpu_gpu_task *device_tasks;
};

/* gather.c: the next blocks of the readings, up to a batch of them, and where they lie; false when
 * all are through. */
bool cogpu_job_gather(struct cogpu_job *job);
/* Whether two tasks want parts of one block, which is decoded once for them. */
bool cogpu_task_is_same(const struct cogpu_task *task, const struct cogpu_task *other);
/* Whether there will be another batch. */
bool cogpu_job_has_more(const struct cogpu_job *job);
/* Whether a block that failed so is to be filled. */
bool cogpu_is_fillable(const struct cogpu_reading *reading, cogpu_status status);
/* So many tasks are through: their readings' progress. */
void cogpu_tasks_count(const struct cogpu_task *tasks, uint32_t count);
/* A block could not be read: it is filled, or the first such fails the item. Places the error. */
void cogpu_task_fail(struct cogpu_job *job, struct cogpu_task *task, cogpu_error *error);

/* expect.c: puts the batch into the order in which a source on the network is best read; tells
 * sources what the batch will read of them, and that it was read. */
void cogpu_job_order(struct cogpu_job *job);
void cogpu_job_expect(struct cogpu_job *job);
void cogpu_job_forget(struct cogpu_job *job);

/* A read inside a reading, which stands for `share` of the reading's blocks, reports to it. */
void cogpu_request_share(cogpu_request *request, cogpu_share *share);

/* mask.c: the plan of a window becomes that of its mask; without a conversion where all pixels are
 * valid. */
cogpu_status cogpu_mask_plan(const cogpu_picture *picture, const cogpu_picture_level *level,
                             cogpu_arena *arena, struct cogpu_reading *reading, cogpu_error *error);
void cogpu_mask_all_valid(const cogpu_raster *raster);
/* Whether all bands of the plan have one band of the same mask. */
bool cogpu_mask_is_shared(const cogpu_picture *picture, const cogpu_picture_level *level,
                          const cogpu_read_plan *plan);
/* Pixels of the raster that reading->voids calls invalid become NaN. */
cogpu_status cogpu_mask_void(struct cogpu_reading *reading, cogpu_gpu_reader *reader,
                             cogpu_error *error);

/* Blocks of the mask that cogpu_mask_void reads; 0 where it has nothing to do. */
uint64_t cogpu_mask_void_blocks(const struct cogpu_reading *reading);

/* read.c: what part of a read came to, added to the rest of it. */
void cogpu_result_add(const cogpu_result *part, cogpu_result *result);

/* read_host.c: the batch, by all threads. */
void cogpu_job_run_on_host(struct cogpu_job *job);
/* Whether the context's cache has the block. */
bool cogpu_task_is_cached(struct cogpu_job *job, const struct cogpu_task *task);
/* Whether blocks are decoded as they are read, rather than held. */
bool cogpu_job_streams(const struct cogpu_job *job, const cogpu_storage *storage);

/* read_device.c: the batch, on the job's device, in two steps as those of gpu_read.h. They fail
 * where the device does. */
cogpu_status cogpu_job_start_on_device(struct cogpu_job *job, cogpu_error *error);
cogpu_status cogpu_job_finish_on_device(struct cogpu_job *job, cogpu_error *error);
/* As cogpu_swath_rows, but of blocks taller than a swath, each of which is decoded again for each
 * swath that it has part in, there shall be few. */
uint32_t cogpu_tall_swath_rows(const cogpu_storage *storage, uint64_t row_bytes, uint32_t height);
/* Reads a window by way of the host into the raster on the device, in full. */
cogpu_status cogpu_read_by_host(struct cogpu_reading *reading, cogpu_gpu_reader *reader,
                                const cogpu_request *request, cogpu_error *error);

#endif
