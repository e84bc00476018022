/*
 * A batch of blocks on its way through the device: a slot (pinned host memory, events, tables) and
 * a buffer (device memory and a stream). read_batch.c lays blocks out in that memory, read_fetch.c
 * fills it, read_launch.c queues the device's work.
 *
 * Memory of a batch; offsets up to the statuses are the same in both:
 *
 *     slot      | page | staged bytes | slack | tables: encoded, unpack, copies, bands, statuses |
 *     buffer    | page | staged bytes | slack | tables | slack | decoded blocks | slack | scratch |
 *
 * Stored bytes that the device's cache has are beside their decoded block, in the buffer only.
 * Staged bytes are the stored bytes of blocks that the device decodes, and decoded bytes of others.
 * With COGPU_TRANSFER_SLOT one copy moves all of the slot's memory into the buffer, else the
 * tables.
 */
#ifndef COGPU_GPU_READ_BATCH_H
#define COGPU_GPU_READ_BATCH_H

#include "gpu/driver/gds.h"
#include "gpu/nvjpeg.h"
#include "gpu/read_pipeline.h"
#include "gpu/stored_cache.h"
#include "kernels/copy_ranges/copy_ranges_args.h"
#include "kernels/decoder.h"
#include "kernels/unpack/unpack_args.h"
#include "plan/fetch.h"

enum { COGPU_SLOT_TASKS = 2048 };

/* Maximum pinned memory of a slot. Pinning takes long, and this much keeps the PCIe bus busy. */
#define COGPU_PINNED_MAX (UINT64_C(32) << 20)
/* The same for a block that does not fit it. */
#define COGPU_PINNED_BLOCK_MAX (UINT64_C(128) << 20)

/* Offset of staged bytes in the memory of a batch: cuFile needs them at a page boundary, decoders
 * need slack before them. */
enum { COGPU_STAGING = COGPU_GDS_PAGE };

/* Maximum bytes of a batch for other things than blocks and band lists. */
enum { COGPU_SLOT_OVERHEAD = 1 << 18 };

#define COGPU_NO_STATUS UINT32_MAX

struct cogpu_batch_block {
    cogpu_gpu_read_task *task;
    uint32_t first;   /* index of the first block with the same bytes, whose memory this one shares:
                       * usually its own */
    bool is_shared;   /* it is the first of several */
    uint64_t staging; /* offset of stored bytes, or of decoded bytes if the CPU decodes. Of
                       * cached bytes it counts from the decoded blocks on */
    uint64_t decoded; /* offset of the output of the device's decoder */
    uint32_t status_index;      /* of its status word; COGPU_NO_STATUS if no decoder has it */
    uint32_t request;           /* of the slot's cuFile requests, the one that reads it */
    cogpu_stored_block *cached; /* pinned in the device's cache: its bytes come from there, or are
                                 * copied there; or NULL */
};

/* Bytes of a group that one thread fetches. */
struct cogpu_fetch_range {
    uint32_t group;
    uint64_t skip, bytes;
};

/* Scratch memory of a decoder: the minimum for its largest block, the sum for full speed, and what
 * the largest block alone needs for that. */
struct cogpu_scratch_need {
    uint64_t least, best, alone;
};

/* Offsets of a batch's tables, the same in pinned and in device memory. */
struct cogpu_slot_tables {
    uint64_t encoded, unpacked, copied, bands, statuses, end;
};

enum cogpu_slot_event {
    COGPU_EVENT_STARTED,
    COGPU_EVENT_COPIED,
    COGPU_EVENT_DECODED,
    COGPU_EVENT_DONE,
    COGPU_SLOT_EVENTS
};

/* README.md has the diagram. */
enum cogpu_slot_state {
    COGPU_SLOT_FREE,
    COGPU_SLOT_FETCHING,  /* threads fetch its bytes */
    COGPU_SLOT_WAITING,   /* all bytes are there; an older batch of the read has the buffer */
    COGPU_SLOT_DECODING,  /* copy and decoder are queued */
    COGPU_SLOT_UNPACKING, /* all work is queued */
    COGPU_SLOT_COLLECTING /* a thread waits for the batch and reads its statuses */
};

/* How the bytes of all blocks of a batch reach the device. */
enum cogpu_slot_transfer {
    COGPU_TRANSFER_SLOT,   /* one copy of the slot's pinned memory */
    COGPU_TRANSFER_CALLER, /* one copy per group, from pinned memory of the caller */
    COGPU_TRANSFER_CUFILE  /* cuFile reads from the file into the buffer */
};

/* Device memory: staging, slack, tables, decoded blocks, scratch. */
struct cogpu_device_buffer {
    uint8_t *device;
    void *allocated; /* `device` is its first page boundary */
    uint64_t bytes;
    cogpu_gpu_stream *stream;
    bool is_registered, is_registering_tried; /* with cuFile */
};

struct cogpu_slot {
    uint8_t *pinned;
    cogpu_gpu_event *events[COGPU_SLOT_EVENTS];
    struct cogpu_batch_block *blocks; /* all arrays have COGPU_SLOT_TASKS entries */
    cogpu_nvjpeg_block *jpegs;        /* one a block */
    cogpu_fetch *groups; /* neighbours in a file that are read together, or one block for nvJPEG or
                          * the CPU */
    struct cogpu_fetch_range *ranges;

    /* The batch. */
    enum cogpu_slot_state state;
    struct cogpu_read_run *run;         /* the read that has the slot */
    struct cogpu_device_buffer *buffer; /* NULL while an older batch of the read has it */
    uint64_t pinned_capacity, device_capacity;
    const cogpu_gpu_decoder *decoder; /* of all blocks that the device decodes; NULL: none */
    cogpu_gds_plan cufile;
    enum cogpu_slot_transfer transfer;
    uint32_t count, encoded_count, group_count, range_count;
    uint32_t copied_count;                /* ranges copied from the device's cache, and into it */
    uint32_t later_count;                 /* tasks of the read after those of this batch */
    uint32_t ranges_left;                 /* to fetch */
    uint64_t staged_bytes, decoded_bytes; /* of the blocks added so far */
    uint64_t band_bytes;                  /* of their band lists */
    struct cogpu_scratch_need scratch;
    struct cogpu_slot_tables tables;
    cogpu_status status; /* of fetching and launching */
    cogpu_error error;
};

/* Marks a slot whose blocks nvJPEG decodes. Only its address is used. */
extern const cogpu_gpu_decoder cogpu_slot_nvjpeg;

/* Memory of a buffer and of a slot. If open fails, close releases what there is. */
cogpu_status cogpu_device_buffer_open(cogpu_gpu *gpu, uint64_t bytes,
                                      struct cogpu_device_buffer *buffer, cogpu_error *error);
void cogpu_device_buffer_close(cogpu_gpu *gpu, struct cogpu_device_buffer *buffer);
cogpu_status cogpu_slot_open(cogpu_gpu *gpu, uint64_t pinned_bytes, struct cogpu_slot *slot,
                             cogpu_error *error);
void cogpu_slot_close(cogpu_gpu *gpu, struct cogpu_slot *slot);

/* Whether the device decodes the block. */
bool cogpu_block_is_encoded(const struct cogpu_batch_block *block);

/* Whether blocks of this plan fit a slot with a buffer and pinned memory of so many bytes, decoded
 * by the CPU. */
bool cogpu_slot_holds(uint64_t buffer_bytes, uint64_t pinned_bytes, const cogpu_read_plan *plan);

/* Bytes of a plan's band list. A slot has one list for each plan of its blocks. */
uint64_t cogpu_slot_band_bytes(const cogpu_read_plan *plan);
/* Index of the first block of the next plan. */
uint32_t cogpu_slot_end_of_plan(const struct cogpu_slot *slot, uint32_t first);

/* Bytes of a task's block when decoded, and those of them that the image needs. */
uint64_t cogpu_task_decoded_bytes(const cogpu_gpu_read_task *task);
uint64_t cogpu_task_needed_bytes(const cogpu_gpu_read_task *task);

/* Scratch for a task's block: its minimum, and its share of what several such blocks need together.
 * That is less than for one block alone, which must be ready for the worst case. `later` tasks of
 * the read come after it. */
struct cogpu_scratch_need cogpu_task_scratch(const cogpu_gpu_read_task *task,
                                             const cogpu_gpu_decoder *decoder, uint32_t later);

/* Adds tasks from the first on while they fit the slot together, and lays them out. Returns how
 * many: 0 if the first does not fit. */
uint32_t cogpu_slot_choose(struct cogpu_slot *slot, cogpu_gpu_read_task *tasks, uint32_t count);

/* ---- read_repeats.c: blocks that several tasks need ---- */

/* Notes in each task how far before it the last task is that needs the same block. */
cogpu_status cogpu_tasks_find_repeats(cogpu_gpu_read_task *tasks, uint32_t count,
                                      cogpu_error *error);
/* The block of the slot whose bytes the next task, the slot's count-th, shares; NULL: none. */
struct cogpu_batch_block *cogpu_slot_find_first(struct cogpu_slot *slot,
                                                const cogpu_gpu_read_task *task);
/* Repeated blocks fail with the first one, if its bytes could not be fetched. */
void cogpu_slot_fail_repeats(struct cogpu_slot *slot);

/* ---- read_cached.c: stored blocks in the device's cache ---- */

/* Pins the task's block if the cache has it; else NULL. */
cogpu_stored_block *cogpu_slot_find_cached(const struct cogpu_slot *slot,
                                           const cogpu_gpu_read_task *task);
/* Lists the copies of bytes from the cache, and into it, for which it reserves memory. */
void cogpu_slot_list_copies(struct cogpu_slot *slot, struct cogpu_copied_range *table);
/* The work of the batch is complete: blocks that the device decoded are kept, all are unpinned. */
void cogpu_slot_release_cached(struct cogpu_slot *slot);

/* Splits the groups into ranges, which threads fetch in parallel. */
void cogpu_slot_split(cogpu_gpu *gpu, struct cogpu_slot *slot);

/* Writes the tables of the kernels into pinned memory, after all bytes are fetched. */
void cogpu_slot_write_tables(struct cogpu_slot *slot);
/* Offset in device memory of a block's stored bytes. */
uint64_t cogpu_slot_stored_offset(const struct cogpu_slot *slot,
                                  const struct cogpu_batch_block *block);
/* Offset of decoded blocks in device memory. */
uint64_t cogpu_slot_decoded_offset(const struct cogpu_slot *slot);

/* read_fetch.c: fetches one range, on any thread. After the last one cogpu_fetch_complete lets the
 * CPU read again what failed and needs no decoder. */
void cogpu_fetch_one_range(struct cogpu_slot *slot, uint32_t worker, uint32_t range);
void cogpu_fetch_complete(struct cogpu_slot *slot, uint32_t worker);
/* Bytes of a group in host memory in the form that the device needs; NULL if there are none. */
const uint8_t *cogpu_fetch_mapped(const struct cogpu_slot *slot, const cogpu_fetch *group);
/* Whether the read uses cuFile, which is opened for it. Counts the read's bytes of files. */
bool cogpu_fetch_wants_cufile(struct cogpu_read_run *run);
/* The file for cuFile reads of a task; NULL if they go through pinned memory. */
const cogpu_gds_file *cogpu_fetch_cufile(struct cogpu_read_run *run,
                                         const cogpu_gpu_read_task *task);
void cogpu_fetch_close_files(struct cogpu_read_run *run);

#endif
