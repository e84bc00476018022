/*
 * A batch on its way through the device: a slot, with pinned memory of its own, and a berth, its
 * memory on the device. For gpu_slot.c (which tasks go where in that memory), gpu_fetch.c (their
 * bytes) and gpu_read.c (the device's work and the order of it all).
 */
#ifndef COGPU_BACKEND_CUDA_GPU_SLOT_H
#define COGPU_BACKEND_CUDA_GPU_SLOT_H

#include "backend/cuda/cuda.h"
#include "backend/cuda/cuda_place.h"
#include "backend/cuda/gds.h"
#include "backend/cuda/gpu_read.h"
#include "backend/cuda/nvjpeg.h"

/* Berths: enough that the oldest batch is through when the youngest is filled. There are more
 * slots, so that bytes are at hand when a berth is left; a berth has at most one batch that waits
 * for it. */
enum { COGPU_BERTHS = 7, COGPU_SLOTS = 10, COGPU_SLOT_TASKS = 2048 };
_Static_assert(COGPU_SLOTS <= 2 * COGPU_BERTHS, "one batch at most waits for a berth");

/* Pinned memory of a slot, at most: it takes long to get, and the wire is busy with less. */
#define COGPU_PINNED_MAX (UINT64_C(32) << 20)

/* Where staging begins in a slot's memory: cuFile wants a page, decoders want slack. */
enum { COGPU_STAGING = COGPU_GDS_PAGE };

/* Where a task finds its bytes. */
struct cogpu_seated {
    cogpu_gpu_task *task;
    bool is_coded;    /* the device decodes it */
    bool is_jpeg;     /* ... with its JPEG engines: its stream is rewritten before */
    bool is_plain;    /* its bytes are used as they are stored */
    bool is_bad;      /* its bytes could not be had here */
    uint64_t staging; /* stored bytes of a coded one, decoded bytes of another */
    uint64_t decoded; /* where a coded one is decoded to */
    uint32_t verdict; /* its place among the coded ones */
    uint32_t read;    /* of the slot's direct reads, the one that brings it */
};

/* Neighbours in the file, or one task that the host decodes. */
struct cogpu_slot_run {
    uint32_t first, count;
};

/* Part of a run's bytes, for one thread to read. */
struct cogpu_slot_piece {
    uint32_t run;
    uint64_t skip, bytes;
};

/* Scratch that a decoder must have for its largest block, and would like to have for all. */
struct cogpu_slot_wants {
    uint64_t least, shares;
};

/* Where the tables of a batch lie in pinned memory, and in the device's. */
struct cogpu_slot_tables {
    uint64_t coded, placed, lists, verdicts, end;
};

/* Events on the way of a batch. */
enum cogpu_mark { COGPU_STARTED, COGPU_COPIED, COGPU_DECODED, COGPU_DONE, COGPU_MARKS };

/* Memory of the device: staging (where the ring serves a copy of the pinned memory), slack, tables,
 * decoded blocks, scratch. */
struct cogpu_berth {
    uint8_t *device;
    void *allocated; /* `device` begins at a page of it */
    uint64_t bytes;
    cogpu_gpu_stream *stream;
    bool is_registered;        /* with cuFile */
    struct cogpu_slot *holder; /* it has the berth as long as its batch is under way */
};

struct cogpu_slot {
    uint8_t *pinned;
    uint64_t pinned_bytes;
    cogpu_gpu_event *marks[COGPU_MARKS];
    cogpu_nvjpeg *nvjpeg; /* the reader's; NULL: the host decodes JPEG */

    /* The batch. */
    struct cogpu_berth *berth;        /* where it goes, at once or when that is left */
    const cogpu_gpu_decoder *decoder; /* of the coded tasks; NULL without any */
    struct cogpu_seated *seated;
    cogpu_nvjpeg_block *jpegs; /* at the same places */
    struct cogpu_slot_run *runs;
    struct cogpu_slot_piece *pieces;
    cogpu_gds_plan direct; /* reads that bring stored bytes straight here */
    bool is_direct;        /* the reads are those, and not the pieces */
    bool is_lent;          /* its bytes are copied up from where the caller has them */
    uint32_t count, coded, run_count, piece_count;
    uint32_t left;               /* pieces that are not fetched yet */
    uint64_t used, decoded_used; /* by the tasks seated so far */
    uint64_t lists;              /* bytes of their lists of bands */
    struct cogpu_slot_wants wants;
    struct cogpu_slot_tables at;
    bool is_full;    /* its bytes are there */
    bool is_waiting; /* for its berth */
    bool is_placed;  /* the second half of its work is given to the device */

    cogpu_gpu_work *work; /* whose tasks are under way here; NULL: the slot is free */
    cogpu_status status;  /* of the launch */
    cogpu_error error;
};

/* Stands for the JPEG engines among the decoders. */
extern const cogpu_gpu_decoder cogpu_slot_engines;

/* What a slot has beside the bytes of blocks and lists of bands: at most. */
enum { COGPU_SLOT_OVERHEAD = 1 << 18 };

/* A berth, and a slot, with so many bytes of the device, and of pinned memory. */
cogpu_status cogpu_berth_open(cogpu_gpu *gpu, uint64_t bytes, struct cogpu_berth *berth,
                              cogpu_error *error);
void cogpu_berth_close(cogpu_gpu *gpu, struct cogpu_berth *berth);
cogpu_status cogpu_slot_open(cogpu_gpu *gpu, uint64_t bytes, struct cogpu_slot *slot,
                             cogpu_error *error);
void cogpu_slot_close(cogpu_gpu *gpu, struct cogpu_slot *slot);

/* Whether blocks of this plan fit a slot with a berth of so many bytes. */
bool cogpu_slot_holds(uint64_t berth_bytes, const cogpu_read_plan *plan);

/* Of the list of a plan's bands that kernels need, which lies in the slot once. */
uint64_t cogpu_slot_list_bytes(const cogpu_read_plan *plan);
/* Where the tasks of the next plan begin. */
uint32_t cogpu_slot_end_of_plan(const struct cogpu_slot *slot, uint32_t first);

/* What of a task's block is decoded, and what of that the image needs. */
uint64_t cogpu_slot_room_of(const cogpu_gpu_task *task);
uint64_t cogpu_slot_needed_of(const cogpu_gpu_task *task);

/* Takes tasks from the first on that fit into the slot together, and lays them out. Returns how
 * many: 0 where the first does not fit. */
uint32_t cogpu_slot_choose(struct cogpu_slot *slot, cogpu_gpu_work *work, cogpu_gpu_task *tasks,
                           uint32_t count);

/* Writes the tables that kernels need into pinned memory, when the tasks' bytes are fetched. */
void cogpu_slot_list(struct cogpu_slot *slot);
/* Where decoded blocks begin in the slot's memory on the device. */
uint64_t cogpu_slot_decoded(const struct cogpu_slot *slot);

/* Cuts the reading of its bytes into pieces. */
void cogpu_slot_cut(cogpu_gpu *gpu, struct cogpu_slot *slot);
/* The bytes of a run, from its first block to its last. */
uint64_t cogpu_slot_run_bytes(const struct cogpu_slot *slot, const struct cogpu_slot_run *run);

/* gpu_fetch.c: one of these pieces, by any thread; and what is left to do after the last. */
void cogpu_fetch_piece(struct cogpu_slot *slot, uint32_t seat, uint32_t piece);
void cogpu_fetch_end(struct cogpu_slot *slot, uint32_t seat);
/* Where a run's bytes lie in memory as the device needs them; NULL where they do not. */
const uint8_t *cogpu_fetch_in_memory(const struct cogpu_slot *slot,
                                     const struct cogpu_slot_run *run);
/* The file for direct reads of a task; NULL where the ring serves it. */
const cogpu_gds_file *cogpu_fetch_file_of(cogpu_gpu_work *work, const cogpu_gpu_task *task);
void cogpu_fetch_close_files(cogpu_gpu_work *work);

#endif
