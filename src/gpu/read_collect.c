/* The end of a batch: waits for the device, reads the status of each block, releases the slot. */
#include "base/math.h"
#include "gpu/read_run.h"

/* Maximum stored bytes that a read keeps in host memory for the CPU to decode. */
#define RETURNED_MAX (UINT64_C(64) << 20)

/* Stored bytes copied back from the device. */
struct cogpu_returned_bytes {
    struct cogpu_returned_bytes *next;
    uint8_t bytes[];
};

void cogpu_run_release_returned(struct cogpu_read_run *run) {
    while (run->returned) {
        struct cogpu_returned_bytes *returned = run->returned;
        run->returned = returned->next;
        cogpu_release(returned);
    }
}

static void add_stage_times(cogpu_gpu *gpu, const struct cogpu_slot *slot) {
    const cogpu_gpu_driver *calls = gpu->calls;
    cogpu_gpu_event *const *events = slot->events;
    cogpu_result *times = slot->run->job->times;
    times->copy_ms +=
        calls->milliseconds(gpu, events[COGPU_EVENT_STARTED], events[COGPU_EVENT_COPIED]);
    times->decode_ms +=
        calls->milliseconds(gpu, events[COGPU_EVENT_COPIED], events[COGPU_EVENT_DECODED]);
    times->unpack_ms +=
        calls->milliseconds(gpu, events[COGPU_EVENT_DECODED], events[COGPU_EVENT_DONE]);
}

/* ---- bytes that the device refused --------------------------------------------------------- */

/* Whether the device had the block's stored bytes. */
static bool has_status(const struct cogpu_batch_block *block) {
    return block->status_index != COGPU_NO_STATUS;
}

static bool is_returnable(const struct cogpu_batch_block *block) {
    return block->task->state == COGPU_BLOCK_REFUSED && has_status(block) &&
           block->task->source == COGPU_SOURCE_CUFILE;
}

/* The smallest range of staged bytes with all that are returnable. */
static uint64_t find_returnable(const struct cogpu_slot *slot, uint64_t *start) {
    uint64_t end = 0;
    *start = UINT64_MAX;
    for (uint32_t i = 0; i < slot->count; i++) {
        const struct cogpu_batch_block *block = &slot->blocks[i];
        uint64_t last = block->staging + block->task->span.bytes;
        if (!is_returnable(block))
            continue;
        *start = min_u64(*start, block->staging);
        end = max_u64(end, last);
    }
    return end > 0 ? end - *start : 0;
}

/* Bytes that cuFile read are only on the device: those of refused blocks are copied to the host for
 * the CPU, in one copy. Beyond RETURNED_MAX they are read from the file again. */
static cogpu_status copy_back_refused(cogpu_gpu *gpu, struct cogpu_slot *slot, cogpu_error *error) {
    struct cogpu_read_run *run = slot->run;
    uint64_t start, bytes = find_returnable(slot, &start);
    struct cogpu_returned_bytes *returned = bytes > 0 && bytes <= RETURNED_MAX - run->returned_bytes
                                                ? cogpu_allocate(sizeof *returned + (size_t)bytes)
                                                : NULL;
    if (!returned)
        return COGPU_OK;
    returned->next = run->returned;
    run->returned = returned;
    run->returned_bytes += bytes;
    TRY(gpu->calls->copy_down(gpu, returned->bytes, slot->buffer->device + COGPU_STAGING + start,
                              bytes, slot->buffer->stream, error));
    TRY(gpu->calls->finish_stream(gpu, slot->buffer->stream, error));
    for (uint32_t i = 0; i < slot->count; i++)
        if (is_returnable(&slot->blocks[i]))
            slot->blocks[i].task->returned = returned->bytes + (slot->blocks[i].staging - start);
    return COGPU_OK;
}

/* ---- statuses ------------------------------------------------------------------------------ */

/* Sets the final state of a block. It may run twice, as the batch stays in the queue if a later
 * step fails. */
static void note_block(const struct cogpu_batch_block *block, const uint32_t *statuses) {
    cogpu_gpu_read_task *task = block->task;
    if (cogpu_block_is_encoded(block))
        task->state = has_status(block) && statuses[block->status_index] == COGPU_GPU_DECODED
                          ? COGPU_BLOCK_DECODED
                          : COGPU_BLOCK_REFUSED;
    else if (task->state == COGPU_BLOCK_LAUNCHED)
        task->state = COGPU_BLOCK_UPLOADED;
}

/* Reports progress. Refused blocks count in the second pass. */
static void count_done(const struct cogpu_slot *slot) {
    for (uint32_t first = 0, end; first < slot->count; first = end) {
        cogpu_meter *meter = slot->blocks[first].task->plan->meter;
        uint64_t done = 0;
        end = cogpu_slot_end_of_plan(slot, first);
        for (uint32_t i = first; meter && i < end; i++)
            done += slot->blocks[i].task->state != COGPU_BLOCK_REFUSED;
        if (done > 0)
            (void)cogpu_meter_add(meter, done);
    }
}

/* Refused and failed blocks have no pixels in the raster. */
static void report_unpacked(const struct cogpu_slot *slot) {
    const cogpu_gpu_read_observer *observer = slot->run->job->observer;
    for (uint32_t i = 0; observer && i < slot->count; i++) {
        const cogpu_gpu_read_task *task = slot->blocks[i].task;
        if (task->state == COGPU_BLOCK_DECODED || task->state == COGPU_BLOCK_UPLOADED ||
            task->state == COGPU_BLOCK_FILLED)
            observer->unpacked(observer->user, task);
    }
}

/* ---- slots --------------------------------------------------------------------------------- */

/* The buffer goes to the oldest batch without one, or back to the pool. */
static cogpu_status remove_oldest(struct cogpu_read_run *run, cogpu_error *error) {
    struct cogpu_slot *slot = run->queue[0];
    struct cogpu_device_buffer *buffer = slot->buffer;
    struct cogpu_slot *next = run->buffer_count < run->count ? run->queue[run->buffer_count] : NULL;
    run->count--;
    for (uint32_t i = 0; i < run->count; i++)
        run->queue[i] = run->queue[i + 1];
    slot->state = COGPU_SLOT_FREE;
    slot->buffer = NULL;
    cogpu_slot_pool_release(&run->device->pool, slot, next ? NULL : buffer);
    if (!next) {
        run->buffer_count--;
        return COGPU_OK;
    }
    next->buffer = buffer;
    if (next->state == COGPU_SLOT_WAITING)
        cogpu_slot_launch(next);
    return cogpu_slot_status(next, error);
}

cogpu_status cogpu_run_collect_oldest(struct cogpu_read_run *run, cogpu_error *error) {
    cogpu_gpu *gpu = run->device->gpu;
    struct cogpu_slot *slot = run->queue[0];
    const uint32_t *statuses =
        (const uint32_t *)(const void *)(slot->pinned + slot->tables.statuses);
    TRY(cogpu_slot_launch_unpack(slot, error));
    TRY(gpu->calls->finish_event(gpu, slot->events[COGPU_EVENT_DONE], error));
    slot->state = COGPU_SLOT_COLLECTING;
    for (uint32_t i = 0; i < slot->count; i++)
        note_block(&slot->blocks[i], statuses);
    cogpu_slot_release_cached(slot);
    if (slot->transfer == COGPU_TRANSFER_CUFILE)
        TRY(copy_back_refused(gpu, slot, error));
    add_stage_times(gpu, slot);
    count_done(slot);
    report_unpacked(slot);
    return remove_oldest(run, error);
}

cogpu_status cogpu_run_collect_all(struct cogpu_read_run *run, cogpu_error *error) {
    while (run->count > 0)
        TRY(cogpu_run_collect_oldest(run, error));
    return COGPU_OK;
}
