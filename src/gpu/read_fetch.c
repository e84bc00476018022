/*
 * Fetches the bytes of a batch into its slot: stored bytes that the device decodes, read into
 * pinned memory range by range or by cuFile into device memory, and decoded bytes of blocks that
 * only the CPU can decode. No lock is held meanwhile.
 */
#include "gpu/driver/cufile_library.h"
#include "gpu/read_run.h"

#include <stdatomic.h>
#include <string.h>

/* ---- cuFile -------------------------------------------------------------------------------- */

/* A file of this read and its cuFile handle. `file` is NULL if cuFile cannot open it: then its
 * bytes go through pinned memory. */
struct cogpu_cufile_handle {
    struct cogpu_cufile_handle *next;
    const cogpu_io *io;
    cogpu_gds_file *file;
};

/* To open cuFile takes longer than many reads. So it is opened when a device has read so many bytes
 * of files that cuFile may gain this time back; and at once if COGPU_CUFILE names its library. */
#define CUFILE_WORTH_BYTES (UINT64_C(256) << 20)

bool cogpu_fetch_wants_cufile(struct cogpu_read_run *run) {
    cogpu_gpu_device *device = run->device;
    const cogpu_gpu_read_job *job = run->job;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < job->count && !run->is_cpu_decoded; i++) {
        const cogpu_gpu_read_task *task = &job->tasks[i];
        const cogpu_storage *storage = task->plan->storage;
        if (cogpu_gpu_find_decoder(device->gpu, storage->format.compression) &&
            cogpu_io_descriptor(storage->tiff->io) >= 0)
            bytes += task->span.bytes;
    }
    const uint64_t all = atomic_fetch_add(&device->file_bytes, bytes) + bytes;
    return bytes > 0 && (cogpu_cufile_is_replaced() || all >= CUFILE_WORTH_BYTES) &&
           cogpu_gds_supports(device->gpu);
}

const cogpu_gds_file *cogpu_fetch_cufile(struct cogpu_read_run *run,
                                         const cogpu_gpu_read_task *task) {
    const cogpu_io *io = task->plan->storage->tiff->io;
    struct cogpu_cufile_handle *handle = run->files;
    if (!run->has_cufile)
        return NULL;
    while (handle && handle->io != io)
        handle = handle->next;
    if (handle)
        return handle->file;
    handle = cogpu_allocate(sizeof *handle);
    if (!handle)
        return NULL;
    *handle = (struct cogpu_cufile_handle){.next = run->files, .io = io};
    run->files = handle;
    if (cogpu_io_descriptor(io) >= 0 &&
        cogpu_gds_file_open(cogpu_io_descriptor(io), &handle->file, NULL) != COGPU_OK)
        handle->file = NULL;
    return handle->file;
}

void cogpu_fetch_close_files(struct cogpu_read_run *run) {
    while (run->files) {
        struct cogpu_cufile_handle *handle = run->files;
        run->files = handle->next;
        cogpu_gds_file_close(handle->file);
        cogpu_release(handle);
    }
}

/* If cuFile cannot register the buffer it copies through memory of its own, and still works. */
static void register_buffer(const cogpu_gpu_device *device, struct cogpu_device_buffer *buffer) {
    if (!buffer->is_registering_tried)
        buffer->is_registered = cogpu_gds_register(&device->gds_context, buffer->device,
                                                   buffer->bytes, NULL) == COGPU_OK;
    buffer->is_registering_tried = true;
}

/* Submits all requests of the slot. In the second pass the CPU reads again what fails. */
static void fetch_by_cufile(struct cogpu_slot *slot) {
    const cogpu_gpu_read_job *job = slot->run->job;
    uint32_t bad = 0;
    cogpu_gds_work fetch = {.memory = slot->buffer->device + COGPU_STAGING,
                            .memory_bytes = slot->buffer->bytes - COGPU_STAGING,
                            .requests = slot->cufile.reads,
                            .count = slot->cufile.read_count,
                            .context = &slot->run->device->gds_context,
                            .pool = job->pool,
                            .workers = job->worker_count};
    register_buffer(slot->run->device, slot->buffer);
    slot->status = cogpu_gds_fetch(&fetch, &bad, &slot->error);
    for (uint32_t i = 0; i < slot->count; i++) {
        struct cogpu_batch_block *block = &slot->blocks[i];
        if (block->task->source == COGPU_SOURCE_CUFILE &&
            block->task->state == COGPU_BLOCK_PENDING &&
            slot->cufile.reads[block->request].state != COGPU_GDS_DONE)
            block->task->state = COGPU_BLOCK_UNREADABLE;
    }
}

/* ---- pinned memory ------------------------------------------------------------------------- */

const uint8_t *cogpu_fetch_mapped(const struct cogpu_slot *slot, const cogpu_fetch *group) {
    const cogpu_gpu_read_task *task = slot->blocks[group->first].task;
    const cogpu_io *io = task->plan->storage->tiff->io;
    uint64_t all = cogpu_io_bytes(io);
    bool is_used_as_stored =
        task->source == COGPU_SOURCE_PINNED || task->source == COGPU_SOURCE_PLAIN;
    bool is_inside = group->offset <= all && group->bytes <= all - group->offset;
    return is_used_as_stored && is_inside ? cogpu_io_mapped(io, group->offset) : NULL;
}

/* Stored bytes of a task: where they are already, or read into the worker's memory. */
static cogpu_status find_stored(const cogpu_gpu_read_task *task, cogpu_worker *worker,
                                const uint8_t **stored, cogpu_error *error) {
    const cogpu_io *io = task->plan->storage->tiff->io;
    *stored = task->returned ? task->returned : cogpu_io_mapped(io, task->span.offset);
    if (*stored)
        return COGPU_OK;
    TRY(cogpu_worker_reserve(&worker->stored, &worker->stored_bytes, (size_t)task->span.bytes,
                             error));
    *stored = worker->stored;
    return cogpu_io_read_metered(io, task->span.offset, (size_t)task->span.bytes, worker->stored,
                                 task->plan->meter, error);
}

/* For nvJPEG. If its bytes cannot be read the CPU tries again and reports why. */
static void fetch_jpeg(struct cogpu_slot *slot, cogpu_worker *worker,
                       struct cogpu_batch_block *block) {
    cogpu_gpu_read_task *task = block->task;
    cogpu_block_format format = task->plan->storage->format;
    const uint8_t *stored = NULL;
    format.height = task->block.rows;
    if (find_stored(task, worker, &stored, NULL) != COGPU_OK)
        task->state = COGPU_BLOCK_UNREADABLE;
    else
        cogpu_nvjpeg_rewrite(&format, stored, (size_t)task->span.bytes,
                             slot->pinned + COGPU_STAGING + block->staging,
                             &slot->jpegs[block - slot->blocks]);
}

static cogpu_status decode_block(const struct cogpu_slot *slot, cogpu_worker *worker,
                                 const struct cogpu_batch_block *block, cogpu_error *error) {
    const cogpu_gpu_read_task *task = block->task;
    const cogpu_storage *storage = task->plan->storage;
    uint8_t *to = slot->pinned + COGPU_STAGING + block->staging, *decoded = NULL;
    const uint8_t *stored = NULL;
    uint64_t needed = cogpu_task_needed_bytes(task);
    TRY(cogpu_cpu_check_block_bytes(storage, task->span.bytes, 0, error));
    TRY(find_stored(task, worker, &stored, error));
    TRY(cogpu_cpu_decode(worker, storage, &task->block, stored, (size_t)task->span.bytes, &decoded,
                         error));
    memcpy(to, decoded, (size_t)needed);
    return COGPU_OK;
}

/* A block that is shared matters to other tasks, too, which are not looked at. */
static bool is_cancelled(const struct cogpu_batch_block *block) {
    return !block->is_shared && cogpu_meter_is_cancelled(block->task->plan->meter);
}

/* Reports the error for each task that needs the block. */
static void fail_decoded(struct cogpu_slot *slot, uint32_t first, const cogpu_error *error) {
    const cogpu_gpu_read_job *job = slot->run->job;
    uint32_t end = slot->blocks[first].is_shared ? slot->count : first + 1;
    for (uint32_t i = first; i < end; i++) {
        cogpu_gpu_read_task *task = slot->blocks[i].task;
        if (slot->blocks[i].first == first)
            task->state = job->failed(job->user, (uint32_t)(task - job->tasks), error)
                              ? COGPU_BLOCK_FILLED
                              : COGPU_BLOCK_FAILED;
    }
}

static void fetch_decoded(struct cogpu_slot *slot, cogpu_worker *worker,
                          struct cogpu_batch_block *block) {
    cogpu_error error;
    if (is_cancelled(block))
        block->task->state = COGPU_BLOCK_FAILED;
    else if (decode_block(slot, worker, block, &error) == COGPU_OK)
        block->task->state = COGPU_BLOCK_PENDING;
    else
        fail_decoded(slot, block->first, &error);
}

/* Atomic, because several threads may fetch ranges of one group. */
static void set_states(struct cogpu_batch_block *blocks, uint32_t count, cogpu_block_state state) {
    for (uint32_t i = 0; i < count; i++)
        __atomic_store_n(&blocks[i].task->state, state, __ATOMIC_RELAXED);
}

/* The CPU reads again what fails here, block by block, and reports the error. */
static void fetch_stored(struct cogpu_slot *slot, const struct cogpu_fetch_range *range) {
    const cogpu_fetch *group = &slot->groups[range->group];
    struct cogpu_batch_block *blocks = &slot->blocks[group->first];
    const cogpu_gpu_read_task *task = blocks->task;
    uint8_t *to = slot->pinned + COGPU_STAGING + blocks->staging + range->skip;
    if (cogpu_io_read_metered(task->plan->storage->tiff->io, group->offset + range->skip,
                              (size_t)range->bytes, to, task->plan->meter, NULL) != COGPU_OK)
        set_states(blocks, group->count, COGPU_BLOCK_UNREADABLE);
}

/* ---- ranges -------------------------------------------------------------------------------- */

static bool are_cancelled(const struct cogpu_batch_block *blocks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!is_cancelled(&blocks[i]))
            return false;
    return true;
}

/* Cancelled blocks have no bytes: they get a state in which they are not unpacked. */
static void leave_out(struct cogpu_batch_block *blocks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (blocks[i].task->source != COGPU_SOURCE_NONE)
            set_states(&blocks[i], 1,
                       cogpu_block_is_encoded(&blocks[i]) ? COGPU_BLOCK_UNREADABLE
                                                          : COGPU_BLOCK_FAILED);
}

void cogpu_fetch_one_range(struct cogpu_slot *slot, uint32_t worker, uint32_t number) {
    const struct cogpu_fetch_range *range = &slot->ranges[number];
    const cogpu_fetch *group =
        slot->transfer == COGPU_TRANSFER_CUFILE ? NULL : &slot->groups[range->group];
    struct cogpu_batch_block *blocks = group ? &slot->blocks[group->first] : slot->blocks;
    const uint32_t count = group ? group->count : slot->count;
    (void)cogpu_meter_poll(blocks->task->plan->meter);
    if (are_cancelled(blocks, count))
        leave_out(blocks, count);
    else if (!group)
        fetch_by_cufile(slot);
    else if (blocks->task->source == COGPU_SOURCE_NVJPEG)
        fetch_jpeg(slot, slot->run->job->workers[worker], blocks);
    else if (blocks->task->source == COGPU_SOURCE_CPU)
        fetch_decoded(slot, slot->run->job->workers[worker], blocks);
    else
        fetch_stored(slot, range);
}

void cogpu_fetch_complete(struct cogpu_slot *slot, uint32_t worker) {
    for (uint32_t i = 0; i < slot->count; i++) {
        struct cogpu_batch_block *block = &slot->blocks[i];
        if (block->first == i && block->task->source == COGPU_SOURCE_PLAIN &&
            block->task->state == COGPU_BLOCK_UNREADABLE)
            fetch_decoded(slot, slot->run->job->workers[worker], block);
    }
}
