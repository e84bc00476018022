/*
 * Takes blocks with their places in files, hands on their pixels in rasters on the device: see
 * gpu_read.h. A batch, from the first step to the last:
 *
 *     choose    the next tasks that fit a slot
 *     lay out   where each finds its bytes in the slot's memory
 *     fetch     stored bytes by runs; what the host has to decode, decoded       (all threads)
 *     list      what the kernels need to know
 *     launch    one copy up, decode, place, one copy of verdicts down            (the slot's
 * stream) collect   the verdicts, once the slot is wanted again
 */
#include "backend/cuda/gpu_read.h"

#include "backend/cuda/cuda.h"
#include "backend/cuda/cuda_place.h"
#include "backend/cuda/cuda_void.h"
#include "base/bytes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLOTS = 6, TASKS_MAX = 2048 };

/* Of a slot's memory, what a decoder may have as scratch for one block, unless it cannot do with
 * that. */
enum { SCRATCH_SHARE = 3 };

/* Pinned memory of a slot: it takes long to get, and the wire is busy with less. */
#define PINNED_MAX (UINT64_C(32) << 20)

/* Blocks that are no farther apart in a file are read as one run, with what lies between; a thread
 * takes a piece of it at a time. */
enum { GAP_BYTES = 4096, PIECE_BYTES = 512 << 10 };
#define PIECES_MAX (TASKS_MAX + PINNED_MAX / PIECE_BYTES)

/* Where a task finds its bytes. */
struct seated {
    cogpu_gpu_task *task;
    bool is_coded;    /* the device decodes it */
    bool is_bad;      /* its bytes could not be had here */
    uint64_t staging; /* stored bytes of a coded one, decoded bytes of another */
    uint64_t decoded; /* where a coded one is decoded to */
    uint32_t verdict; /* its place among the coded ones */
};

/* Neighbours in the file, or one task that the host decodes. */
struct run {
    uint32_t first, count;
};

/* Part of a run's bytes, for one thread to read. */
struct piece {
    uint32_t run;
    uint64_t skip, bytes;
};

/* Scratch that a decoder must have for its largest block, and would like to have for all. */
struct wants {
    uint64_t least, shares;
};

/* Events on the way of a batch. */
enum mark { STARTED, COPIED, DECODED, DONE, MARKS };

/* Memory of the device: slack, staging (a copy of the pinned memory), slack, tables, decoded
 * blocks, scratch. */
struct slot {
    uint8_t *pinned, *device;
    uint64_t pinned_bytes, device_bytes;
    cogpu_gpu_stream *stream;
    cogpu_gpu_event *fork, *join, *marks[MARKS];
    struct seated *seated;
    struct run *runs;
    struct piece *pieces;
    uint32_t count, coded, run_count, piece_count;
    uint64_t used, decoded_used; /* by the tasks seated so far */
    uint64_t lists;              /* bytes of their lists of bands */
    struct wants wants;
    uint64_t verdicts; /* where they stand in `pinned` */
    bool is_busy;
};

struct cogpu_gpu_reader {
    cogpu_gpu *gpu;
    pthread_mutex_t lock; /* of all below: one read at a time */
    uint64_t budget;
    struct slot slots[SLOTS];
    uint64_t slot_bytes; /* of device memory; 0 before the first read */
};

static uint64_t align(uint64_t bytes) {
    return (bytes + COGPU_GPU_ALIGN - 1) / COGPU_GPU_ALIGN * COGPU_GPU_ALIGN;
}

/* ---- slots --------------------------------------------------------------------------------- */

static void close_slot(cogpu_gpu *gpu, struct slot *slot) {
    const cogpu_gpu_calls *calls = gpu->calls;
    if (slot->stream)
        calls->stream_close(gpu, slot->stream);
    calls->event_close(gpu, slot->fork);
    calls->event_close(gpu, slot->join);
    for (uint32_t i = 0; i < MARKS; i++)
        calls->event_close(gpu, slot->marks[i]);
    calls->release(gpu, slot->device);
    calls->release_pinned(gpu, slot->pinned);
    cogpu_release(slot->seated);
    cogpu_release(slot->runs);
    cogpu_release(slot->pieces);
    *slot = (struct slot){0};
}

/* Tables of a batch: coded blocks, placed blocks, verdicts. */
static uint64_t table_bytes(void) {
    return align(TASKS_MAX * sizeof(cogpu_coded)) + align(TASKS_MAX * sizeof(struct cogpu_placed)) +
           align((TASKS_MAX + 1) * sizeof(uint32_t));
}

static cogpu_status open_slot(cogpu_gpu *gpu, uint64_t bytes, struct slot *slot,
                              cogpu_error *error) {
    const cogpu_gpu_calls *calls = gpu->calls;
    slot->device_bytes = bytes;
    slot->pinned_bytes = bytes < PINNED_MAX ? bytes : PINNED_MAX;
    slot->seated = cogpu_allocate(TASKS_MAX * sizeof *slot->seated);
    slot->runs = cogpu_allocate(TASKS_MAX * sizeof *slot->runs);
    slot->pieces = cogpu_allocate(PIECES_MAX * sizeof *slot->pieces);
    if (!slot->seated || !slot->runs || !slot->pieces)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a batch");
    TRY(calls->allocate(gpu, bytes, (void **)&slot->device, error));
    TRY(calls->allocate_pinned(gpu, slot->pinned_bytes, (void **)&slot->pinned, error));
    TRY(calls->stream_open(gpu, true, &slot->stream, error));
    TRY(calls->event_open(gpu, &slot->fork, error));
    TRY(calls->event_open(gpu, &slot->join, error));
    for (uint32_t i = 0; i < MARKS; i++)
        TRY(calls->event_open(gpu, &slot->marks[i], error));
    return COGPU_OK;
}

static void close_slots(cogpu_gpu_reader *reader) {
    for (uint32_t i = 0; i < SLOTS; i++)
        close_slot(reader->gpu, &reader->slots[i]);
    reader->slot_bytes = 0;
}

/* Slots for a read that takes `all` bytes, `largest` of them for one block, within the budget and
 * what the device has. */
static cogpu_status open_slots(cogpu_gpu_reader *reader, uint64_t all, uint64_t largest,
                               cogpu_error *error) {
    enum { SMALLEST = 4 << 20 };
    uint64_t most = reader->budget / SLOTS, wanted = SMALLEST, free_bytes = 0, total = 0;
    while (wanted < most && (wanted < all / SLOTS || wanted < largest))
        wanted *= 2;
    wanted = wanted < most ? wanted : most;
    if (reader->slot_bytes >= wanted)
        return COGPU_OK;
    close_slots(reader);
    TRY(reader->gpu->calls->memory(reader->gpu, &free_bytes, &total, error));
    if (SLOTS * wanted > free_bytes / 10 * 9)
        return cogpu_fail(error, COGPU_MEMORY,
                          "the read needs %llu MiB of device memory beside the raster, and %llu of "
                          "%llu MiB are free: lower `device_bytes` of the context",
                          (unsigned long long)(SLOTS * wanted >> 20),
                          (unsigned long long)(free_bytes >> 20),
                          (unsigned long long)(total >> 20));
    cogpu_status status = COGPU_OK;
    for (uint32_t i = 0; status == COGPU_OK && i < SLOTS; i++)
        status = open_slot(reader->gpu, wanted, &reader->slots[i], error);
    if (status != COGPU_OK) {
        close_slots(reader);
        return status;
    }
    reader->slot_bytes = wanted;
    return COGPU_OK;
}

cogpu_status cogpu_gpu_reader_open(cogpu_gpu *gpu, uint64_t bytes, cogpu_gpu_reader **out,
                                   cogpu_error *error) {
    cogpu_gpu_reader *reader = cogpu_allocate(sizeof *reader);
    if (!reader) {
        gpu->calls->close(gpu);
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a device");
    }
    *reader = (cogpu_gpu_reader){.gpu = gpu, .budget = bytes};
    pthread_mutex_init(&reader->lock, NULL);
    *out = reader;
    return COGPU_OK;
}

void cogpu_gpu_reader_close(cogpu_gpu_reader *reader) {
    if (!reader)
        return;
    close_slots(reader);
    reader->gpu->calls->close(reader->gpu);
    pthread_mutex_destroy(&reader->lock);
    cogpu_release(reader);
}

cogpu_status cogpu_gpu_reader_allocate(cogpu_gpu_reader *reader, uint64_t bytes, void **memory,
                                       cogpu_error *error) {
    pthread_mutex_lock(&reader->lock);
    cogpu_status status = reader->gpu->calls->allocate(reader->gpu, bytes, memory, error);
    pthread_mutex_unlock(&reader->lock);
    return status;
}

void cogpu_gpu_reader_release(cogpu_gpu_reader *reader, void *memory) {
    pthread_mutex_lock(&reader->lock);
    reader->gpu->calls->release(reader->gpu, memory);
    pthread_mutex_unlock(&reader->lock);
}

cogpu_status cogpu_gpu_reader_copy(cogpu_gpu_reader *reader, void *to, const void *from,
                                   uint64_t bytes, bool is_down, cogpu_error *error) {
    cogpu_gpu *gpu = reader->gpu;
    const cogpu_gpu_calls *calls = gpu->calls;
    cogpu_gpu_stream *stream = NULL;
    pthread_mutex_lock(&reader->lock);
    cogpu_status status = calls->stream_open(gpu, false, &stream, error);
    if (status == COGPU_OK)
        status = (is_down ? calls->copy_down : calls->copy_up)(gpu, to, from, bytes, stream, error);
    if (status == COGPU_OK)
        status = calls->finish_stream(gpu, stream, error);
    if (stream)
        calls->stream_close(gpu, stream);
    pthread_mutex_unlock(&reader->lock);
    return status;
}

cogpu_status cogpu_gpu_reader_void(cogpu_gpu_reader *reader, const cogpu_raster *mask,
                                   uint32_t first_row, const cogpu_raster *raster,
                                   cogpu_error *error) {
    cogpu_gpu *gpu = reader->gpu;
    cogpu_gpu_stream *stream = NULL;
    pthread_mutex_lock(&reader->lock);
    cogpu_status status = gpu->calls->stream_open(gpu, false, &stream, error);
    if (status == COGPU_OK)
        status = cogpu_gpu_void(gpu, mask, first_row, raster, stream, error);
    if (status == COGPU_OK)
        status = gpu->calls->finish_stream(gpu, stream, error);
    if (stream)
        gpu->calls->stream_close(gpu, stream);
    pthread_mutex_unlock(&reader->lock);
    return status;
}

/* ---- choose and lay out -------------------------------------------------------------------- */

const cogpu_gpu_decoder *cogpu_gpu_decoder_of(uint32_t compression) {
    switch (compression) {
    case COMPRESSION_DEFLATE:
    case COMPRESSION_DEFLATE_OLD:
        return &cogpu_gpu_inflate;
    case COMPRESSION_ZSTD:
        return &cogpu_gpu_zstd;
    case COMPRESSION_LZW:
        return &cogpu_gpu_lzw;
    case COMPRESSION_PACKBITS:
        return &cogpu_gpu_packbits;
    default:
        return NULL;
    }
}

/* What of a block is decoded, padding of the last strip or tile with it. */
static uint64_t room_of(const cogpu_gpu_task *task) {
    const cogpu_storage *storage = task->plan->storage;
    bool plain = storage->format.compression == COMPRESSION_NONE;
    return plain ? (uint64_t)task->block.needed_rows * storage->format.row_bytes
                 : storage->block_bytes;
}

static uint64_t needed_of(const cogpu_gpu_task *task) {
    return (uint64_t)task->block.needed_rows * task->plan->storage->format.row_bytes;
}

/* What a slot has beside the bytes of blocks and lists of bands. */
static uint64_t overhead(void) {
    return table_bytes() + 8 * COGPU_GPU_SLACK;
}

static uint64_t list_bytes(const cogpu_read_plan *plan) {
    return align(cogpu_gpu_bands_listed(plan) * sizeof(struct cogpu_gpu_band));
}

bool cogpu_gpu_reader_takes(const cogpu_gpu_reader *reader, const cogpu_read_plan *plan) {
    const cogpu_storage *storage = plan->storage;
    uint64_t slot = reader->budget / SLOTS, most = slot < PINNED_MAX ? slot : PINNED_MAX;
    uint64_t bytes = (uint64_t)plan->slice_rows * storage->format.row_bytes;
    return storage->colour != COGPU_FROM_YCBCR &&
           align(bytes) + list_bytes(plan) + overhead() <= most &&
           storage->format.row_bytes <= COGPU_GPU_BLOCK_MAX &&
           !(plan->conversion && storage->type == COGPU_CF64);
}

static uint64_t scratch_of(struct wants wants) {
    return align(wants.least > wants.shares ? wants.least : wants.shares);
}

/* Whether the slot has room for so much. */
static bool fits(const struct slot *slot, uint64_t used, uint64_t decoded, uint64_t scratch) {
    uint64_t tables = slot->lists + overhead();
    return used + tables <= slot->pinned_bytes &&
           used + decoded + scratch + tables <= slot->device_bytes;
}

/* The host's, to decode or only to read. */
static bool seat_for_host(struct slot *slot, struct seated *seated) {
    uint64_t bytes = align(needed_of(seated->task));
    seated->staging = align(slot->used);
    if (!fits(slot, seated->staging + bytes, slot->decoded_used, scratch_of(slot->wants)))
        return false;
    slot->used = seated->staging + bytes;
    slot->runs[slot->run_count++] = (struct run){slot->count, 1};
    return true;
}

/* Whether the stored bytes of a block can be read together with those of the run before it. */
static bool joins(const struct slot *slot, const cogpu_gpu_task *task) {
    const struct run *run = slot->run_count ? &slot->runs[slot->run_count - 1] : NULL;
    if (!run || run->first + run->count != slot->count)
        return false;
    const struct seated *last = &slot->seated[run->first + run->count - 1];
    uint64_t end = last->task->span.offset + last->task->span.bytes;
    return last->is_coded && last->task->plan->storage->tiff->io == task->plan->storage->tiff->io &&
           task->span.offset >= end && task->span.offset - end <= GAP_BYTES;
}

/* The device's to decode. */
static bool seat_for_device(struct slot *slot, struct seated *seated, struct wants wants) {
    const cogpu_gpu_task *task = seated->task;
    const struct seated *last = seated - 1;
    bool is_joined = joins(slot, task);
    seated->staging =
        is_joined ? last->staging + (task->span.offset - last->task->span.offset) : slot->used;
    seated->decoded = slot->decoded_used;
    uint64_t used = seated->staging + task->span.bytes;
    uint64_t decoded = seated->decoded + align(room_of(task)) + COGPU_GPU_ALIGN;
    if (!fits(slot, used, decoded, scratch_of(wants)))
        return false;
    slot->used = used;
    slot->decoded_used = decoded;
    slot->wants = wants;
    slot->coded++;
    if (is_joined)
        slot->runs[slot->run_count - 1].count++;
    else
        slot->runs[slot->run_count++] = (struct run){slot->count, 1};
    return true;
}

/* What a decoder wants for a block: at least, and as a share of what many such blocks would want
 * together, which is less than for one alone, where it must be ready for the worst. */
static struct wants wants_of(const struct slot *slot, const cogpu_gpu_decoder *decoder,
                             const cogpu_gpu_task *task) {
    enum { ALIKE = 8 };
    cogpu_coded blocks[ALIKE];
    struct wants wants = {0};
    uint64_t best = 0, least = 0, most = slot->device_bytes / SCRATCH_SHARE;
    for (uint32_t i = 0; i < ALIKE; i++)
        blocks[i] = (cogpu_coded){.in_bytes = (uint32_t)task->span.bytes,
                                  .room = (uint32_t)room_of(task),
                                  .needed = (uint32_t)needed_of(task)};
    decoder->scratch(blocks, 1, &wants.least, &best);
    decoder->scratch(blocks, ALIKE, &least, &best);
    wants.shares = best / ALIKE < most ? best / ALIKE : most;
    return wants;
}

static struct wants add_wants(struct wants a, struct wants b) {
    return (struct wants){a.least > b.least ? a.least : b.least, a.shares + b.shares};
}

/* Whether the device could decode it at all, in a slot of its own. */
static bool is_for_device(const struct slot *slot, const cogpu_gpu_task *task, struct wants wants) {
    return fits(slot, task->span.bytes, align(room_of(task)) + 2 * COGPU_GPU_ALIGN,
                scratch_of(wants));
}

/* The decoder of a task with bytes for the device to decode; NULL for all others. */
static const cogpu_gpu_decoder *decoder_for(const struct slot *slot, const cogpu_gpu_task *task,
                                            struct wants *wants) {
    const cogpu_storage *storage = task->plan->storage;
    const cogpu_gpu_decoder *decoder = cogpu_gpu_decoder_of(storage->format.compression);
    if (!decoder || storage->format.fill_order == 2 || task->is_for_host || task->is_out ||
        task->span.bytes == 0 || task->span.bytes > COGPU_GPU_BLOCK_MAX ||
        room_of(task) > COGPU_GPU_BLOCK_MAX)
        return NULL;
    *wants = wants_of(slot, decoder, task);
    return is_for_device(slot, task, *wants) ? decoder : NULL;
}

/* The list of bands of a plan has a place in the slot with the plan's first task. */
static bool seat_list(struct slot *slot, const cogpu_gpu_task *task) {
    if (slot->count == 0 || slot->seated[slot->count - 1].task->plan != task->plan)
        slot->lists += list_bytes(task->plan);
    return fits(slot, slot->used, slot->decoded_used, scratch_of(slot->wants));
}

/* Seats the task if there is room. All that the device decodes in one slot is of one codec. */
static bool seat(struct slot *slot, cogpu_gpu_task *task, const cogpu_gpu_decoder **decoder) {
    struct seated *seated = &slot->seated[slot->count];
    struct wants wants;
    const cogpu_gpu_decoder *own = decoder_for(slot, task, &wants);
    *seated = (struct seated){.task = task, .is_coded = own != NULL};
    if (own && ((*decoder && own != *decoder) ||
                !seat_for_device(slot, seated, add_wants(slot->wants, wants))))
        return false;
    if (!own && task->span.bytes > 0 && !task->is_out && !seat_for_host(slot, seated))
        return false;
    *decoder = own ? own : *decoder;
    slot->count++;
    return true;
}

/* Tasks from the first on that fit into the slot together; at least one. */
static uint32_t choose(struct slot *slot, cogpu_gpu_task *tasks, uint32_t count,
                       const cogpu_gpu_decoder **decoder) {
    slot->count = slot->coded = slot->run_count = 0;
    slot->used = slot->decoded_used = slot->lists = 0;
    slot->wants = (struct wants){0};
    *decoder = NULL;
    while (slot->count < count && slot->count < TASKS_MAX) {
        uint64_t lists = slot->lists;
        if (seat_list(slot, &tasks[slot->count]) && seat(slot, &tasks[slot->count], decoder))
            continue;
        slot->lists = lists;
        break;
    }
    return slot->count;
}

/* ---- fetch --------------------------------------------------------------------------------- */

struct fetching {
    cogpu_gpu_work *work;
    struct slot *slot;
};

static uint8_t *staging_of(const struct slot *slot, uint64_t at) {
    return slot->pinned + COGPU_GPU_SLACK + at;
}

/* Its bytes are used as they are stored. */
static bool is_plain(const cogpu_storage *storage) {
    return storage->format.compression == COMPRESSION_NONE && storage->format.fill_order != 2;
}

/* The host decodes it, or only reads it where there is nothing to decode. */
static cogpu_status decode_on_host(struct fetching *f, cogpu_seat *worker, struct seated *seated,
                                   cogpu_error *error) {
    const cogpu_gpu_task *task = seated->task;
    const cogpu_storage *storage = task->plan->storage;
    const cogpu_io *io = storage->tiff->io;
    uint8_t *to = staging_of(f->slot, seated->staging), *decoded = NULL;
    uint64_t needed = needed_of(task), limit = storage->tiff->limits.block_bytes;
    if (task->span.bytes > limit)
        return cogpu_fail(
            error, COGPU_LIMIT,
            "the block has %llu bytes, the limit is %llu: raise `block_bytes` to go on",
            (unsigned long long)task->span.bytes, (unsigned long long)limit);
    if (is_plain(storage) && task->span.bytes >= needed)
        return cogpu_io_read(io, task->span.offset, (size_t)needed, to, error);
    const uint8_t *stored = cogpu_io_mapped(io, task->span.offset);
    if (!stored) {
        TRY(cogpu_seat_room(&worker->stored, &worker->stored_bytes, (size_t)task->span.bytes,
                            error));
        TRY(cogpu_io_read(io, task->span.offset, (size_t)task->span.bytes, worker->stored, error));
        stored = worker->stored;
    }
    TRY(cogpu_cpu_decode(worker, storage, &task->block, stored, (size_t)task->span.bytes, &decoded,
                         error));
    memcpy(to, decoded, (size_t)needed);
    return COGPU_OK;
}

/* Stored bytes of a run, from the first block to the last. */
static uint64_t run_bytes(const struct slot *slot, const struct run *run) {
    const struct seated *first = &slot->seated[run->first], *last = first + run->count - 1;
    return last->staging + last->task->span.bytes - first->staging;
}

static void cut_runs(struct slot *slot) {
    slot->piece_count = 0;
    for (uint32_t i = 0; i < slot->run_count; i++) {
        bool is_coded = slot->seated[slot->runs[i].first].is_coded;
        uint64_t bytes = is_coded ? run_bytes(slot, &slot->runs[i]) : 1;
        for (uint64_t skip = 0; skip < bytes; skip += PIECE_BYTES)
            slot->pieces[slot->piece_count++] =
                (struct piece){i, skip, bytes - skip < PIECE_BYTES ? bytes - skip : PIECE_BYTES};
    }
}

/* What fails here of coded blocks is tried again by the host, which then finds out which of them is
 * to blame. */
static void fetch_piece(void *argument, uint32_t seat_number, uint64_t index) {
    struct fetching *f = argument;
    const struct piece *piece = &f->slot->pieces[index];
    const struct run *run = &f->slot->runs[piece->run];
    struct seated *seated = &f->slot->seated[run->first];
    const cogpu_gpu_task *task = seated->task;
    cogpu_error error;
    if (seated->is_coded) {
        bool failed =
            cogpu_io_read(task->plan->storage->tiff->io, task->span.offset + piece->skip,
                          (size_t)piece->bytes, staging_of(f->slot, seated->staging + piece->skip),
                          NULL) != COGPU_OK;
        for (uint32_t i = 0; failed && i < run->count; i++)
            __atomic_store_n(&seated[i].is_bad, true, __ATOMIC_RELAXED);
    } else if (decode_on_host(f, f->work->seats[seat_number], seated, &error) != COGPU_OK) {
        uint32_t number = (uint32_t)(task - f->work->tasks);
        bool fills = f->work->failed(f->work->user, number, &error);
        seated->task->is_out = !fills;
        if (fills)
            seated->task->span.bytes = 0;
    }
}

/* ---- list ---------------------------------------------------------------------------------- */

static int larger_first(const void *a, const void *b) {
    const struct seated *left = *(struct seated *const *)a, *right = *(struct seated *const *)b;
    uint64_t x = left->task->span.bytes, y = right->task->span.bytes;
    return x != y ? (x < y ? 1 : -1) : (left > right) - (left < right);
}

/* Where decoded blocks begin in the slot's memory on the device. */
static uint64_t device_decoded(const struct slot *slot) {
    return align(slot->used + 4 * COGPU_GPU_SLACK) + table_bytes() + slot->lists;
}

static void list_coded(struct slot *slot, cogpu_coded *table) {
    struct seated *order[TASKS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < slot->count; i++)
        if (slot->seated[i].is_coded && !slot->seated[i].is_bad)
            order[count++] = &slot->seated[i];
    qsort(order, count, sizeof *order, larger_first);
    for (uint32_t i = 0; i < count; i++) {
        const cogpu_gpu_task *task = order[i]->task;
        order[i]->verdict = i;
        table[i] = (cogpu_coded){.in = order[i]->staging,
                                 .out = order[i]->decoded,
                                 .in_bytes = (uint32_t)task->span.bytes,
                                 .room = (uint32_t)room_of(task),
                                 .needed = (uint32_t)needed_of(task)};
    }
    slot->coded = count;
}

/* Blocks that were not decoded here have a verdict too, the last: it is good. */
static void list_placed(const struct slot *slot, struct cogpu_placed *table) {
    for (uint32_t i = 0; i < slot->count; i++) {
        const struct seated *seated = &slot->seated[i];
        bool fills = seated->task->span.bytes == 0, out = seated->task->is_out || seated->is_bad;
        uint64_t decoded = fills              ? COGPU_PLACE_FILL
                           : seated->is_coded ? device_decoded(slot) + seated->decoded
                                              : COGPU_GPU_SLACK + seated->staging;
        table[i] = cogpu_gpu_placed_of(&seated->task->block, decoded,
                                       seated->is_coded && !fills ? seated->verdict : slot->count);
        if (out)
            table[i].height = 0;
    }
}

/* Where the tasks of the next plan begin. */
static uint32_t end_of_plan(const struct slot *slot, uint32_t first) {
    uint32_t end = first + 1;
    while (end < slot->count && slot->seated[end].task->plan == slot->seated[first].task->plan)
        end++;
    return end;
}

static void list_bands(const struct slot *slot, uint8_t *lists) {
    for (uint32_t first = 0; first < slot->count; first = end_of_plan(slot, first)) {
        const cogpu_read_plan *plan = slot->seated[first].task->plan;
        if (list_bytes(plan) > 0)
            cogpu_gpu_list_bands(plan, (struct cogpu_gpu_band *)(void *)lists);
        lists += list_bytes(plan);
    }
}

/* ---- launch -------------------------------------------------------------------------------- */

static cogpu_status launch_decode(const cogpu_gpu_reader *reader, struct slot *slot,
                                  const cogpu_gpu_decoder *decoder, const cogpu_coded *table,
                                  uint64_t table_at, uint32_t *verdicts, cogpu_error *error) {
    uint64_t least = 0, best = 0;
    cogpu_gpu_batch batch = {.gpu = reader->gpu,
                             .stream = slot->stream,
                             /* Batches run side by side already, and GPUs take eight streams. */
                             .second = slot->stream,
                             .fork = slot->fork,
                             .join = slot->join,
                             .blocks = table,
                             .count = slot->coded,
                             .device_blocks = (const cogpu_coded *)(slot->device + table_at),
                             .stored = slot->device + COGPU_GPU_SLACK,
                             .decoded = slot->device + device_decoded(slot),
                             .verdicts = verdicts};
    decoder->scratch(table, slot->coded, &least, &best);
    uint64_t scratch_at = device_decoded(slot) + slot->decoded_used + COGPU_GPU_SLACK;
    uint64_t room = (slot->device_bytes - scratch_at) / COGPU_GPU_ALIGN * COGPU_GPU_ALIGN;
    batch.scratch = slot->device + scratch_at;
    batch.scratch_bytes = best < room ? best : room;
    return decoder->decode(&batch, error);
}

/* One call of place for the tasks of each plan. */
static cogpu_status launch_place(cogpu_gpu *gpu, struct slot *slot,
                                 const struct cogpu_placed *table, uint64_t table_at,
                                 uint64_t lists_at, const uint32_t *verdicts, cogpu_error *error) {
    for (uint32_t first = 0, end; first < slot->count; first = end) {
        const cogpu_gpu_task *task = slot->seated[first].task;
        const void *list = slot->device + lists_at;
        struct cogpu_gpu_pixels pixels;
        end = end_of_plan(slot, first);
        TRY(cogpu_gpu_pixels_of(task->plan, task->raster, slot->device, verdicts, list, &pixels,
                                error));
        TRY(cogpu_gpu_place(gpu, &pixels,
                            (const struct cogpu_placed *)(slot->device + table_at) + first,
                            table + first, end - first, slot->stream, error));
        lists_at += list_bytes(task->plan);
    }
    return COGPU_OK;
}

static cogpu_status launch(cogpu_gpu_reader *reader, struct slot *slot,
                           const cogpu_gpu_decoder *decoder, cogpu_error *error) {
    cogpu_gpu *gpu = reader->gpu;
    const cogpu_gpu_calls *calls = gpu->calls;
    uint64_t coded_at = align(COGPU_GPU_SLACK + slot->used + COGPU_GPU_SLACK);
    uint64_t placed_at = coded_at + align(slot->count * sizeof(cogpu_coded));
    uint64_t lists_at = placed_at + align(slot->count * sizeof(struct cogpu_placed));
    uint64_t verdicts_at = lists_at + slot->lists;
    cogpu_coded *coded = (cogpu_coded *)(void *)(slot->pinned + coded_at);
    struct cogpu_placed *placed = (struct cogpu_placed *)(void *)(slot->pinned + placed_at);
    uint32_t *verdicts = (uint32_t *)(void *)(slot->device + verdicts_at);
    list_coded(slot, coded);
    list_placed(slot, placed);
    list_bands(slot, slot->pinned + lists_at);
    uint32_t *host_verdicts = (uint32_t *)(void *)(slot->pinned + verdicts_at);
    memset(host_verdicts, 0xFF, slot->count * sizeof *host_verdicts);
    host_verdicts[slot->count] = COGPU_GPU_DECODED;
    slot->verdicts = verdicts_at;
    slot->is_busy = true;
    TRY(calls->record(gpu, slot->marks[STARTED], slot->stream, error));
    TRY(calls->copy_up(gpu, slot->device, slot->pinned,
                       verdicts_at + (slot->count + 1) * sizeof(uint32_t), slot->stream, error));
    TRY(calls->record(gpu, slot->marks[COPIED], slot->stream, error));
    if (slot->coded > 0)
        TRY(launch_decode(reader, slot, decoder, coded, coded_at, verdicts, error));
    TRY(calls->record(gpu, slot->marks[DECODED], slot->stream, error));
    TRY(launch_place(gpu, slot, placed, placed_at, lists_at, verdicts, error));
    if (slot->coded > 0)
        TRY(calls->copy_down(gpu, slot->pinned + verdicts_at, verdicts,
                             slot->coded * sizeof(uint32_t), slot->stream, error));
    return calls->record(gpu, slot->marks[DONE], slot->stream, error);
}

/* ---- collect ------------------------------------------------------------------------------- */

static void add_stages(cogpu_gpu *gpu, const struct slot *slot, cogpu_stages *stages) {
    const cogpu_gpu_calls *calls = gpu->calls;
    stages->copy += calls->milliseconds(gpu, slot->marks[STARTED], slot->marks[COPIED]);
    stages->decode += calls->milliseconds(gpu, slot->marks[COPIED], slot->marks[DECODED]);
    stages->place += calls->milliseconds(gpu, slot->marks[DECODED], slot->marks[DONE]);
}

/* Waits for the slot's batch; what the device refused is the host's from here on. */
static cogpu_status collect(cogpu_gpu_reader *reader, const cogpu_gpu_work *work, struct slot *slot,
                            uint32_t *refused, cogpu_error *error) {
    if (!slot->is_busy)
        return COGPU_OK;
    slot->is_busy = false;
    TRY(reader->gpu->calls->finish_event(reader->gpu, slot->marks[DONE], error));
    add_stages(reader->gpu, slot, work->stages);
    const uint32_t *verdicts = (const uint32_t *)(const void *)(slot->pinned + slot->verdicts);
    for (uint32_t i = 0; i < slot->count; i++) {
        struct seated *seated = &slot->seated[i];
        if (!seated->is_coded)
            continue;
        bool good = !seated->is_bad && verdicts[seated->verdict] == COGPU_GPU_DECODED;
        seated->task->is_decoded = good;
        seated->task->is_for_host = !good;
        *refused += !good;
    }
    return COGPU_OK;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

/* All of these tasks, slot by slot. */
static cogpu_status run_batches(cogpu_gpu_reader *reader, cogpu_gpu_work *work,
                                cogpu_gpu_task *tasks, uint32_t count, uint32_t *refused,
                                cogpu_error *error) {
    uint32_t turn = 0;
    for (uint32_t done = 0; done < count; turn = (turn + 1) % SLOTS) {
        struct slot *slot = &reader->slots[turn];
        const cogpu_gpu_decoder *decoder;
        TRY(collect(reader, work, slot, refused, error));
        uint32_t chosen = choose(slot, tasks + done, count - done, &decoder);
        if (chosen == 0)
            return cogpu_fail(error, COGPU_LIMIT,
                              "a block does not fit the device memory that the read may take: "
                              "raise `device_bytes` of the context");
        struct fetching fetching = {work, slot};
        double start = now();
        cut_runs(slot);
        cogpu_pool_run(work->pool, work->seat_count, slot->piece_count, fetch_piece, &fetching);
        work->stages->fetch += now() - start;
        TRY(launch(reader, slot, decoder, error));
        done += chosen;
    }
    for (uint32_t i = 0; i < SLOTS; i++)
        TRY(collect(reader, work, &reader->slots[i], refused, error));
    return COGPU_OK;
}

/* The refused tasks, moved to the front. */
static uint32_t gather_refused(cogpu_gpu_work *work, cogpu_gpu_task *tasks, uint32_t *numbers) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < work->count; i++)
        if (work->tasks[i].is_for_host) {
            numbers[count] = i;
            tasks[count++] = work->tasks[i];
        }
    return count;
}

struct again {
    cogpu_gpu_work *work;
    const uint32_t *numbers;
};

static bool failed_again(void *user, uint32_t task, const cogpu_error *error) {
    struct again *again = user;
    return again->work->failed(again->work->user, again->numbers[task], error);
}

static cogpu_status run_refused(cogpu_gpu_reader *reader, cogpu_gpu_work *work, uint32_t refused,
                                cogpu_error *error) {
    cogpu_gpu_task *tasks = cogpu_allocate(refused * sizeof *tasks);
    uint32_t *numbers = cogpu_allocate(refused * sizeof *numbers), none = 0;
    cogpu_status status = COGPU_OK;
    if (!tasks || !numbers) {
        status = cogpu_fail(error, COGPU_MEMORY, "out of memory for %u blocks", refused);
    } else {
        struct again again = {work, numbers};
        cogpu_gpu_work rest = *work;
        rest.count = gather_refused(work, tasks, numbers);
        rest.tasks = tasks;
        rest.failed = failed_again;
        rest.user = &again;
        status = run_batches(reader, &rest, tasks, rest.count, &none, error);
    }
    cogpu_release(tasks);
    cogpu_release(numbers);
    return status;
}

/* After a failure nothing may still be under way in memory that will be used again. */
static void settle(cogpu_gpu_reader *reader) {
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (reader->slots[i].stream)
            (void)reader->gpu->calls->finish_stream(reader->gpu, reader->slots[i].stream, NULL);
        reader->slots[i].is_busy = false;
    }
}

/* About what a task takes of a slot: stored, decoded, and scratch. */
static uint64_t task_need(const cogpu_gpu_task *task) {
    return task->span.bytes + 2 * (align(room_of(task)) + COGPU_GPU_ALIGN);
}

cogpu_status cogpu_gpu_read(cogpu_gpu_reader *reader, cogpu_gpu_work *work, cogpu_error *error) {
    uint64_t all = 0, largest = 0, list = 0;
    uint32_t refused = 0;
    for (uint32_t i = 0; i < work->count; i++) {
        uint64_t need = task_need(&work->tasks[i]);
        if (i == 0 || work->tasks[i].plan != work->tasks[i - 1].plan)
            list = list_bytes(work->tasks[i].plan);
        all += need;
        largest = need + list > largest ? need + list : largest;
    }
    pthread_mutex_lock(&reader->lock);
    cogpu_status status = open_slots(reader, all, largest + overhead(), error);
    if (status == COGPU_OK)
        status = run_batches(reader, work, work->tasks, work->count, &refused, error);
    if (status == COGPU_OK && refused > 0)
        status = run_refused(reader, work, refused, error);
    if (status != COGPU_OK)
        settle(reader);
    pthread_mutex_unlock(&reader->lock);
    return status;
}

/* ---- pixels that the host has ------------------------------------------------------------- */

/* Packed samples, a block for each band, as if a file had them. */
static cogpu_status describe_packed(const cogpu_gpu_reader *reader, const cogpu_raster *raster,
                                    struct cogpu_gpu_pixels *pixels, cogpu_error *error) {
    uint32_t size = (uint32_t)cogpu_type_bytes(raster->type);
    cogpu_storage storage = {.type = raster->type,
                             .bits = 8 * size,
                             .predictor = 1,
                             .big_endian = COGPU_HOST_BIG_ENDIAN,
                             .bands = raster->bands,
                             .planes = raster->bands > 1 ? raster->bands : 1,
                             .block_width = raster->width,
                             .format = {.samples = 1, .row_bytes = (size_t)raster->width * size}};
    cogpu_read_plan plan = {.storage = &storage, .band_count = raster->bands};
    return cogpu_gpu_pixels_of(&plan, raster, reader->slots[0].device, NULL, NULL, pixels, error);
}

/* Bands stand `band_stride` bytes apart in `from`. */
static cogpu_status put_rows(cogpu_gpu_reader *reader, const uint8_t *from, uint64_t band_stride,
                             uint32_t rows, const cogpu_raster *raster, uint32_t target_y,
                             cogpu_error *error) {
    cogpu_gpu *gpu = reader->gpu;
    const cogpu_gpu_calls *calls = gpu->calls;
    struct slot *slot = &reader->slots[0];
    uint64_t band_bytes = (uint64_t)rows * raster->width * cogpu_type_bytes(raster->type);
    uint64_t placed_at = align(raster->bands * align(band_bytes) + COGPU_GPU_SLACK);
    struct cogpu_placed *placed = (struct cogpu_placed *)(void *)(slot->pinned + placed_at);
    struct cogpu_gpu_pixels pixels;
    TRY(describe_packed(reader, raster, &pixels, error));
    for (uint32_t band = 0; band < raster->bands; band++) {
        memcpy(slot->pinned + band * align(band_bytes), from + band * band_stride,
               (size_t)band_bytes);
        placed[band] = (struct cogpu_placed){.decoded = band * align(band_bytes),
                                             .target_y = target_y,
                                             .width = raster->width,
                                             .height = rows,
                                             .plane = band};
    }
    TRY(calls->copy_up(gpu, slot->device, slot->pinned, placed_at + raster->bands * sizeof *placed,
                       slot->stream, error));
    TRY(cogpu_gpu_place(gpu, &pixels, (const struct cogpu_placed *)(slot->device + placed_at),
                        placed, raster->bands, slot->stream, error));
    return calls->finish_stream(gpu, slot->stream, error);
}

cogpu_status cogpu_gpu_put(cogpu_gpu_reader *reader, const uint8_t *from, uint32_t rows,
                           const cogpu_raster *raster, uint32_t target_y, cogpu_error *error) {
    enum { PUT_BYTES = 8 << 20 };
    uint64_t row_bytes = (uint64_t)raster->width * cogpu_type_bytes(raster->type);
    uint64_t fit = PUT_BYTES / (row_bytes * raster->bands);
    uint32_t piece = fit < 1 ? 1 : fit < rows ? (uint32_t)fit : rows;
    uint64_t needed = raster->bands * (align(piece * row_bytes) + sizeof(struct cogpu_placed)) +
                      4 * COGPU_GPU_SLACK;
    pthread_mutex_lock(&reader->lock);
    cogpu_status status = open_slots(reader, needed, needed, error);
    if (status == COGPU_OK && needed > reader->slots[0].pinned_bytes)
        status = cogpu_fail(error, COGPU_LIMIT,
                            "a row does not fit the device memory that the read may take: raise "
                            "`device_bytes` of the context");
    for (uint32_t row = 0; status == COGPU_OK && row < rows; row += piece)
        status = put_rows(reader, from + row * row_bytes, rows * row_bytes,
                          rows - row < piece ? rows - row : piece, raster, target_y + row, error);
    pthread_mutex_unlock(&reader->lock);
    return status;
}
