/*
 * A run: one read on a device, from cogpu_gpu_read_start to cogpu_gpu_read_finish. It has its
 * slots, in the order of their batches, and its events. For the files of the read pipeline.
 *
 * A read is parked while it is started, pending and not finished: its owner does other things.
 */
#ifndef COGPU_GPU_READ_RUN_H
#define COGPU_GPU_READ_RUN_H

#include "gpu/slot_pool.h"

struct cogpu_gpu_device {
    cogpu_gpu *gpu;
    uint64_t budget;
    bool always_decodes; /* COGPU_ALWAYS_DEVICE */
    cogpu_gds_context gds_context;
    _Atomic uint64_t file_bytes; /* that reads took from files, or will: see read_fetch.c */
    pthread_mutex_t nvjpeg_lock; /* nvJPEG is for one thread at a time; guards these two */
    bool may_open_nvjpeg;
    cogpu_nvjpeg *nvjpeg; /* NULL: not opened, or the CPU decodes JPEG */
    struct cogpu_slot_pool pool;
    cogpu_stored_cache *cache; /* NULL: none */
};

/* Opens nvJPEG the first time. NULL: the CPU decodes JPEG. */
cogpu_nvjpeg *cogpu_gpu_device_nvjpeg(cogpu_gpu_device *device);

struct cogpu_read_run {
    cogpu_gpu_device *device;
    cogpu_gpu_read_job *job;
    struct cogpu_slot_sizes sizes;
    bool is_cpu_decoded; /* the CPU decodes all blocks */
    bool has_cufile;     /* bytes go straight from files to the device */
    bool has_nvjpeg;     /* for blocks of JPEG */
    uint64_t bytes_left; /* stored bytes that are in no batch yet */

    /* Slots in the order of their batches. The first buffer_count of them have a buffer. */
    struct cogpu_slot *queue[COGPU_READ_SLOTS];
    uint32_t count, buffer_count;
    uint32_t slot_limit; /* fewer than COGPU_READ_SLOTS after memory ran out */

    pthread_mutex_t launch_lock; /* guards the events below and the order of launches */
    cogpu_gpu_event *before; /* recorded in `stream`: the read waits for what was queued there */
    cogpu_gpu_stream *stream;
    bool has_before;
    cogpu_gpu_event *callers; /* the same for the calling thread's per-thread default stream */

    struct cogpu_cufile_handle *files;     /* read_fetch.c */
    struct cogpu_returned_bytes *returned; /* read_collect.c */
    uint64_t returned_bytes;

    /* Guarded by the pool's lock. */
    struct cogpu_read_run *next_parked;
    bool is_parked;
    bool is_collected_by_other; /* another read collects its oldest batch at this moment */
};

/* ---- read_run.c: slots of a run ---- */

void cogpu_run_open(struct cogpu_read_run *run, cogpu_gpu_device *device, cogpu_gpu_read_job *job);
/* Waits for what is queued in slots that the run still has, and releases all. */
void cogpu_run_close(struct cogpu_read_run *run);

/* Adds a slot at the end of the queue. If none is free it collects the oldest batch of a parked
 * read, or of this one. Without `may_wait` *slot is NULL if that would mean to wait. */
cogpu_status cogpu_run_take_slot(struct cogpu_read_run *run, bool may_wait,
                                 struct cogpu_slot **slot, cogpu_error *error);

/* Other reads may collect the batches of a parked read, to get its slots. */
void cogpu_run_park(struct cogpu_read_run *run);
void cogpu_run_unpark(struct cogpu_read_run *run);

/* ---- read_launch.c ---- */

/* Queues the first half of a batch whose bytes are fetched: the copy to the device and the decoder.
 * Without a buffer the slot becomes COGPU_SLOT_WAITING. The result is in slot->status. */
void cogpu_slot_launch(struct cogpu_slot *slot);
/* Queues the second half, unless that is done: unpacking and the copy of statuses to the host. */
cogpu_status cogpu_slot_launch_unpack(struct cogpu_slot *slot, cogpu_error *error);
cogpu_status cogpu_slot_status(const struct cogpu_slot *slot, cogpu_error *error);

/* The read waits for what the raster's stream has queued. Only the calling thread can record an
 * event in its per-thread default stream, so it does that (record_caller) before other threads
 * launch. */
cogpu_status cogpu_run_record_caller(struct cogpu_read_run *run, const cogpu_raster *raster,
                                     cogpu_error *error);
cogpu_status cogpu_run_wait_for_raster(struct cogpu_read_run *run, cogpu_gpu_stream *stream,
                                       const cogpu_raster *raster, cogpu_error *error);

/* ---- read_collect.c ---- */

/* Waits for the oldest batch, notes which blocks the device refused, and releases the slot. Its
 * buffer goes to the oldest batch of the run that waits for one. */
cogpu_status cogpu_run_collect_oldest(struct cogpu_read_run *run, cogpu_error *error);
cogpu_status cogpu_run_collect_all(struct cogpu_read_run *run, cogpu_error *error);
void cogpu_run_release_returned(struct cogpu_read_run *run);

#endif
