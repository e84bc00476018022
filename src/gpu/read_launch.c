/*
 * The device's work for a batch, in two halves:
 *
 *     first    copy of bytes and tables to the device, decoder       cogpu_slot_launch
 *     second   unpacking into the rasters, statuses to the host     cogpu_slot_launch_unpack
 *
 * A GPU takes the work of all streams from a few hardware queues (CUDA_DEVICE_MAX_CONNECTIONS).
 * Work that waits there holds up what is queued behind it, of other streams too. So nothing that
 * waits for a decoder, not even an event, is queued while the read has other batches to launch: the
 * second half comes later. A batch without a decoder is queued as a whole. Otherwise its second
 * half would be queued after the copies of other batches.
 */
#include "base/math.h"
#include "gpu/read_run.h"

#include <string.h>

/* ---- order with the caller's streams ------------------------------------------------------- */

cogpu_status cogpu_run_record_caller(struct cogpu_read_run *run, const cogpu_raster *raster,
                                     cogpu_error *error) {
    cogpu_gpu *gpu = run->device->gpu;
    if (raster->stream != COGPU_GPU_PER_THREAD)
        return COGPU_OK;
    if (!run->callers)
        TRY(gpu->calls->event_open(gpu, &run->callers, error));
    return gpu->calls->record(gpu, run->callers, raster->stream, error);
}

/* Recorded once for all rasters of one stream: an event in the legacy default stream waits for the
 * work of many other streams. */
cogpu_status cogpu_run_wait_for_raster(struct cogpu_read_run *run, cogpu_gpu_stream *stream,
                                       const cogpu_raster *raster, cogpu_error *error) {
    cogpu_gpu *gpu = run->device->gpu;
    if (raster->stream == COGPU_GPU_PER_THREAD)
        return gpu->calls->wait_event(gpu, stream, run->callers, error);
    if (!run->before)
        TRY(gpu->calls->event_open(gpu, &run->before, error));
    if (!run->has_before || run->stream != raster->stream) {
        run->stream = raster->stream;
        TRY(gpu->calls->record(gpu, run->before, run->stream, error));
        run->has_before = true;
    }
    return gpu->calls->wait_event(gpu, stream, run->before, error);
}

/* ---- first half ---------------------------------------------------------------------------- */

static cogpu_status launch_decoder(cogpu_gpu *gpu, struct cogpu_slot *slot, cogpu_error *error) {
    const struct cogpu_slot_tables *at = &slot->tables;
    uint8_t *device = slot->buffer->device;
    const cogpu_encoded_block *table =
        (const cogpu_encoded_block *)(const void *)(slot->pinned + at->encoded);
    uint64_t least = 0, best = 0;
    TRY(cogpu_gpu_copy_ranges(
        gpu, (const struct cogpu_copied_range *)(const void *)(device + at->copied),
        (const struct cogpu_copied_range *)(const void *)(slot->pinned + at->copied),
        slot->copied_count, slot->buffer->stream, error));
    cogpu_gpu_batch batch = {.gpu = gpu,
                             .stream = slot->buffer->stream,
                             .blocks = table,
                             .count = slot->encoded_count,
                             .others = slot->later_count,
                             .device_blocks =
                                 (const cogpu_encoded_block *)(void *)(device + at->encoded),
                             .stored = device + COGPU_STAGING,
                             .decoded = device + cogpu_slot_decoded_offset(slot),
                             .statuses = (uint32_t *)(void *)(device + at->statuses)};
    slot->decoder->scratch(table, slot->encoded_count, slot->later_count, &least, &best);
    uint64_t scratch_at =
        cogpu_slot_decoded_offset(slot) + slot->decoded_bytes + COGPU_GPU_SLACK_BYTES;
    uint64_t available = (slot->buffer->bytes - scratch_at) / COGPU_GPU_ALIGN * COGPU_GPU_ALIGN;
    batch.scratch = device + scratch_at;
    batch.scratch_bytes = min_u64(best, available);
    return slot->decoder->decode(&batch, error);
}

static cogpu_status call_nvjpeg(cogpu_gpu_device *device, struct cogpu_slot *slot,
                                cogpu_error *error) {
    cogpu_gpu *gpu = device->gpu;
    uint32_t index = (uint32_t)(slot->buffer - device->pool.buffers);
    if (!gpu->calls->make_current(gpu))
        return cogpu_fail(error, COGPU_DEVICE_ERROR, "the GPU failed to make its context current");
    pthread_mutex_lock(&device->nvjpeg_lock);
    cogpu_status status = cogpu_nvjpeg_decode(device->nvjpeg, index, slot->jpegs, slot->count,
                                              slot->buffer->stream, error);
    pthread_mutex_unlock(&device->nvjpeg_lock);
    gpu->calls->restore_current(gpu);
    return status;
}

/* nvJPEG reports statuses on the host, before the tables are copied to the device with them. */
static cogpu_status launch_nvjpeg(cogpu_gpu_device *device, struct cogpu_slot *slot,
                                  cogpu_error *error) {
    uint32_t *statuses = (uint32_t *)(void *)(slot->pinned + slot->tables.statuses);
    for (uint32_t i = 0; i < slot->count; i++) {
        const struct cogpu_batch_block *block = &slot->blocks[i];
        cogpu_nvjpeg_block *jpeg = &slot->jpegs[i];
        jpeg->capacity = cogpu_task_decoded_bytes(block->task);
        jpeg->decoded = slot->buffer->device + cogpu_slot_decoded_offset(slot) + block->decoded;
        jpeg->planes = jpeg->decoded + cogpu_gpu_align(jpeg->capacity) + COGPU_GPU_ALIGN;
    }
    cogpu_status status = call_nvjpeg(device, slot, error);
    for (uint32_t i = 0; i < slot->count; i++) {
        const struct cogpu_batch_block *block = &slot->blocks[i];
        if (block->first == i && block->task->source == COGPU_SOURCE_NVJPEG &&
            block->task->state == COGPU_BLOCK_LAUNCHED)
            statuses[block->status_index] = slot->jpegs[i].block_status;
    }
    return status;
}

/* From pinned memory of the caller. */
static cogpu_status copy_from_caller(cogpu_gpu *gpu, const struct cogpu_slot *slot,
                                     cogpu_error *error) {
    for (uint32_t i = 0; i < slot->group_count; i++) {
        const cogpu_fetch *group = &slot->groups[i];
        uint8_t *to = slot->buffer->device + COGPU_STAGING + slot->blocks[group->first].staging;
        TRY(gpu->calls->copy_up(gpu, to, cogpu_fetch_mapped(slot, group), group->bytes,
                                slot->buffer->stream, error));
    }
    return COGPU_OK;
}

static cogpu_status launch_unpack(struct cogpu_slot *slot, cogpu_error *error);

static cogpu_status launch_decode(struct cogpu_slot *slot, cogpu_error *error) {
    cogpu_gpu_device *device = slot->run->device;
    cogpu_gpu *gpu = device->gpu;
    const cogpu_gpu_driver *calls = gpu->calls;
    struct cogpu_device_buffer *buffer = slot->buffer;
    cogpu_slot_write_tables(slot);
    uint64_t from = slot->transfer == COGPU_TRANSFER_SLOT ? 0 : slot->tables.encoded;
    bool is_nvjpeg = slot->decoder == &cogpu_slot_nvjpeg;
    slot->state = COGPU_SLOT_DECODING;
    TRY(calls->record(gpu, slot->events[COGPU_EVENT_STARTED], buffer->stream, error));
    if (slot->encoded_count > 0 && is_nvjpeg)
        TRY(launch_nvjpeg(device, slot, error));
    if (slot->transfer == COGPU_TRANSFER_CALLER)
        TRY(copy_from_caller(gpu, slot, error));
    TRY(calls->copy_up(gpu, buffer->device + from, slot->pinned + from, slot->tables.end - from,
                       buffer->stream, error));
    TRY(calls->record(gpu, slot->events[COGPU_EVENT_COPIED], buffer->stream, error));
    if (slot->encoded_count == 0)
        return launch_unpack(slot, error);
    return is_nvjpeg ? COGPU_OK : launch_decoder(gpu, slot, error);
}

void cogpu_slot_launch(struct cogpu_slot *slot) {
    if (!slot->buffer) {
        slot->state = COGPU_SLOT_WAITING;
        return;
    }
    if (slot->status != COGPU_OK)
        return;
    pthread_mutex_lock(&slot->run->launch_lock);
    slot->status = launch_decode(slot, &slot->error);
    pthread_mutex_unlock(&slot->run->launch_lock);
}

cogpu_status cogpu_slot_status(const struct cogpu_slot *slot, cogpu_error *error) {
    if (slot->status != COGPU_OK && error)
        *error = slot->error;
    return slot->status;
}

/* ---- second half --------------------------------------------------------------------------- */

/* Blocks that one launch unpacks: of plans that differ in the memory of their rasters alone, such
 * as windows of one size. */
struct unpack_launch {
    struct cogpu_gpu_pixels pixels;
    uint32_t first, end;
};

static cogpu_status launch_unpack_kernel(const struct cogpu_slot *slot,
                                         const struct unpack_launch *launch, cogpu_error *error) {
    uint64_t at = slot->tables.unpacked + launch->first * sizeof(struct cogpu_unpack_block);
    return cogpu_gpu_unpack(
        slot->run->device->gpu, &launch->pixels,
        (const struct cogpu_unpack_block *)(const void *)(slot->buffer->device + at),
        (const struct cogpu_unpack_block *)(const void *)(slot->pinned + at),
        launch->end - launch->first, slot->buffer->stream, error);
}

/* Blocks of a plan. The rasters' memory is in the table of blocks (list_unpacked). */
static cogpu_status describe_launch(const struct cogpu_slot *slot, uint32_t first,
                                    const uint8_t *bands, struct unpack_launch *launch,
                                    cogpu_error *error) {
    const cogpu_gpu_read_task *task = slot->blocks[first].task;
    const uint8_t *device = slot->buffer->device;
    launch->first = first;
    launch->end = cogpu_slot_end_of_plan(slot, first);
    TRY(cogpu_gpu_describe_pixels(task->plan, task->raster, device,
                                  (const uint32_t *)(const void *)(device + slot->tables.statuses),
                                  (const struct cogpu_gpu_band *)(const void *)bands,
                                  &launch->pixels, error));
    launch->pixels.data = slot->blocks[0].task->raster->data;
    return COGPU_OK;
}

static cogpu_status launch_unpack_kernels(struct cogpu_slot *slot, cogpu_error *error) {
    const uint8_t *bands = slot->buffer->device + slot->tables.bands;
    const cogpu_raster *last = NULL;
    struct unpack_launch launch = {.end = 0}, next;
    for (uint32_t first = 0; first < slot->count; first = next.end) {
        const cogpu_gpu_read_task *task = slot->blocks[first].task;
        if (!last || last->stream != task->raster->stream)
            TRY(cogpu_run_wait_for_raster(slot->run, slot->buffer->stream, task->raster, error));
        last = task->raster;
        TRY(describe_launch(slot, first, bands, &next, error));
        bands += cogpu_slot_band_bytes(task->plan);
        if (first > 0 && memcmp(&next.pixels, &launch.pixels, sizeof next.pixels) == 0) {
            launch.end = next.end;
            continue;
        }
        if (first > 0)
            TRY(launch_unpack_kernel(slot, &launch, error));
        launch = next;
    }
    return launch_unpack_kernel(slot, &launch, error);
}

static cogpu_status launch_unpack(struct cogpu_slot *slot, cogpu_error *error) {
    cogpu_gpu *gpu = slot->run->device->gpu;
    const cogpu_gpu_driver *calls = gpu->calls;
    cogpu_gpu_stream *stream = slot->buffer->stream;
    slot->state = COGPU_SLOT_UNPACKING;
    TRY(calls->record(gpu, slot->events[COGPU_EVENT_DECODED], stream, error));
    TRY(launch_unpack_kernels(slot, error));
    if (slot->encoded_count > 0)
        TRY(calls->copy_down(gpu, slot->pinned + slot->tables.statuses,
                             slot->buffer->device + slot->tables.statuses,
                             slot->encoded_count * sizeof(uint32_t), stream, error));
    return calls->record(gpu, slot->events[COGPU_EVENT_DONE], stream, error);
}

cogpu_status cogpu_slot_launch_unpack(struct cogpu_slot *slot, cogpu_error *error) {
    if (slot->state != COGPU_SLOT_DECODING)
        return COGPU_OK;
    pthread_mutex_lock(&slot->run->launch_lock);
    cogpu_status status = launch_unpack(slot, error);
    pthread_mutex_unlock(&slot->run->launch_lock);
    return status;
}
