/*
 * Takes a batch laid out in a slot, hands on its bytes there: stored bytes for the device to
 * decode, read into pinned memory piece by piece or straight into the device's by cuFile, and
 * decoded bytes of what only the host can decode.
 */
#include "backend/cuda/gpu_slot.h"

#include <string.h>

/* ---- direct files -------------------------------------------------------------------------- */

/* A file of this work as cuFile knows it; without one the ring serves it. */
struct cogpu_direct_file {
    struct cogpu_direct_file *next;
    const cogpu_io *io;
    cogpu_gds_file *file;
};

const cogpu_gds_file *cogpu_fetch_file_of(cogpu_gpu_work *work, const cogpu_gpu_task *task) {
    const cogpu_io *io = task->plan->storage->tiff->io;
    struct cogpu_direct_file *known = work->files;
    if (!work->is_direct)
        return NULL;
    while (known && known->io != io)
        known = known->next;
    if (known)
        return known->file;
    known = cogpu_allocate(sizeof *known);
    if (!known)
        return NULL;
    *known = (struct cogpu_direct_file){.next = work->files, .io = io};
    work->files = known;
    if (cogpu_io_descriptor(io) >= 0 &&
        cogpu_gds_file_open(cogpu_io_descriptor(io), &known->file, NULL) != COGPU_OK)
        known->file = NULL;
    return known->file;
}

void cogpu_fetch_close_files(cogpu_gpu_work *work) {
    while (work->files) {
        struct cogpu_direct_file *file = work->files;
        work->files = file->next;
        cogpu_gds_file_close(file->file);
        cogpu_release(file);
    }
}

/* All reads of the slot. What fails is tried again by the host. */
static void fetch_directly(struct cogpu_slot *slot) {
    const cogpu_gpu_work *work = slot->work;
    uint32_t bad = 0;
    cogpu_gds_work fetch = {.memory = slot->berth->device + COGPU_STAGING,
                            .memory_bytes = slot->berth->bytes - COGPU_STAGING,
                            .pieces = slot->direct.reads,
                            .count = slot->direct.read_count,
                            .context = work->gds_context,
                            .pool = work->pool,
                            .seats = work->seat_count};
    slot->status = cogpu_gds_fetch(&fetch, &bad, &slot->error);
    for (uint32_t i = 0; i < slot->count; i++) {
        struct cogpu_seated *seated = &slot->seated[i];
        if (seated->is_coded && !seated->is_bad)
            seated->is_bad = slot->direct.reads[seated->read].state != COGPU_GDS_DONE;
    }
}

/* ---- the ring ------------------------------------------------------------------------------ */

const uint8_t *cogpu_fetch_in_memory(const struct cogpu_slot *slot,
                                     const struct cogpu_slot_run *run) {
    const struct cogpu_seated *first = &slot->seated[run->first];
    const cogpu_gpu_task *task = first->task;
    const cogpu_io *io = task->plan->storage->tiff->io;
    uint64_t bytes = cogpu_slot_run_bytes(slot, run), all = cogpu_io_bytes(io);
    bool is_needed_so = first->is_coded ? !first->is_jpeg : first->is_plain;
    bool is_inside = task->span.offset <= all && bytes <= all - task->span.offset;
    return is_needed_so && is_inside ? cogpu_io_mapped(io, task->span.offset) : NULL;
}

/* Stored bytes of a task: where they are already, or read into the thread's memory. */
static cogpu_status stored_of(const cogpu_gpu_task *task, cogpu_seat *worker,
                              const uint8_t **stored, cogpu_error *error) {
    const cogpu_io *io = task->plan->storage->tiff->io;
    *stored = task->brought ? task->brought : cogpu_io_mapped(io, task->span.offset);
    if (*stored)
        return COGPU_OK;
    TRY(cogpu_seat_room(&worker->stored, &worker->stored_bytes, (size_t)task->span.bytes, error));
    *stored = worker->stored;
    return cogpu_io_read_metered(io, task->span.offset, (size_t)task->span.bytes, worker->stored,
                                 task->plan->meter, error);
}

/* The engines decode it. Fails where its bytes cannot be had; the host then finds out why. */
static cogpu_status rewrite(struct cogpu_slot *slot, cogpu_seat *worker,
                            const struct cogpu_seated *seated) {
    const cogpu_gpu_task *task = seated->task;
    cogpu_block_format format = task->plan->storage->format;
    const uint8_t *stored = NULL;
    format.height = task->block.rows;
    TRY(stored_of(task, worker, &stored, NULL));
    cogpu_nvjpeg_rewrite(&format, stored, (size_t)task->span.bytes,
                         slot->pinned + COGPU_STAGING + seated->staging,
                         &slot->jpegs[seated - slot->seated]);
    return COGPU_OK;
}

static cogpu_status decode_on_host(const struct cogpu_slot *slot, cogpu_seat *worker,
                                   const struct cogpu_seated *seated, cogpu_error *error) {
    const cogpu_gpu_task *task = seated->task;
    const cogpu_storage *storage = task->plan->storage;
    uint8_t *to = slot->pinned + COGPU_STAGING + seated->staging, *decoded = NULL;
    const uint8_t *stored = NULL;
    uint64_t needed = cogpu_slot_needed_of(task);
    if (task->span.bytes > storage->tiff->limits.block_bytes)
        return cogpu_fail(
            error, COGPU_LIMIT,
            "the block has %llu bytes, the limit is %llu: raise `block_bytes` to go on",
            (unsigned long long)task->span.bytes,
            (unsigned long long)storage->tiff->limits.block_bytes);
    TRY(stored_of(task, worker, &stored, error));
    TRY(cogpu_cpu_decode(worker, storage, &task->block, stored, (size_t)task->span.bytes, &decoded,
                         error));
    memcpy(to, decoded, (size_t)needed);
    return COGPU_OK;
}

static void fetch_for_host(struct cogpu_slot *slot, cogpu_seat *worker,
                           struct cogpu_seated *seated) {
    cogpu_gpu_work *work = slot->work;
    cogpu_error error;
    if (cogpu_meter_is_cancelled(seated->task->plan->meter)) {
        seated->task->is_out = true;
        return;
    }
    if (decode_on_host(slot, worker, seated, &error) == COGPU_OK)
        return;
    bool fills = work->failed(work->user, (uint32_t)(seated->task - work->tasks), &error);
    seated->task->is_out = !fills;
    if (fills)
        seated->task->span.bytes = 0;
}

/* What fails here is tried again by the host, which then finds out which block is to blame. */
static void fetch_stored(struct cogpu_slot *slot, const struct cogpu_slot_piece *piece) {
    const struct cogpu_slot_run *run = &slot->runs[piece->run];
    struct cogpu_seated *seated = &slot->seated[run->first];
    const cogpu_gpu_task *task = seated->task;
    uint8_t *to = slot->pinned + COGPU_STAGING + seated->staging + piece->skip;
    bool failed =
        cogpu_io_read_metered(task->plan->storage->tiff->io, task->span.offset + piece->skip,
                              (size_t)piece->bytes, to, task->plan->meter, NULL) != COGPU_OK;
    for (uint32_t i = 0; failed && i < run->count; i++)
        __atomic_store_n(&seated[i].is_bad, true, __ATOMIC_RELAXED);
}

/* Whether the reads of all these tasks are cancelled, so that no bytes are needed. */
static bool are_cancelled(const struct cogpu_seated *seated, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!cogpu_meter_is_cancelled(seated[i].task->plan->meter))
            return false;
    return true;
}

/* Without their bytes tasks are not placed. Several threads may have pieces of one run. */
static void leave_out(struct cogpu_seated *seated, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        __atomic_store_n(seated[i].is_coded ? &seated[i].is_bad : &seated[i].task->is_out, true,
                         __ATOMIC_RELAXED);
}

void cogpu_fetch_piece(struct cogpu_slot *slot, uint32_t seat, uint32_t number) {
    const struct cogpu_slot_piece *piece = &slot->pieces[number];
    const struct cogpu_slot_run *run = slot->is_direct ? NULL : &slot->runs[piece->run];
    struct cogpu_seated *seated = run ? &slot->seated[run->first] : slot->seated;
    const uint32_t count = run ? run->count : slot->count;
    (void)cogpu_meter_poll(seated->task->plan->meter);
    if (are_cancelled(seated, count)) {
        leave_out(seated, count);
        return;
    }
    if (slot->is_direct) {
        fetch_directly(slot);
        return;
    }
    if (seated->is_jpeg)
        seated->is_bad = rewrite(slot, slot->work->seats[seat], seated) != COGPU_OK;
    else if (seated->is_coded || seated->is_plain)
        fetch_stored(slot, piece);
    else
        fetch_for_host(slot, slot->work->seats[seat], seated);
}

void cogpu_fetch_end(struct cogpu_slot *slot, uint32_t seat) {
    for (uint32_t i = 0; i < slot->count; i++) {
        struct cogpu_seated *seated = &slot->seated[i];
        if (!seated->is_plain || !seated->is_bad)
            continue;
        seated->is_bad = false;
        fetch_for_host(slot, slot->work->seats[seat], seated);
    }
}
