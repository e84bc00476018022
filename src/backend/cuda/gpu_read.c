/*
 * Takes blocks with their places in files, hands on their pixels in rasters on the device: see
 * gpu_read.h. A batch, from the first step to the last:
 *
 *     choose    the next tasks that fit a slot, laid out in its memory           (gpu_slot.c)
 *     fetch     their bytes, by all threads                                      (gpu_fetch.c)
 *     decode    one copy up, then the decoder: by the thread that fetched the last bytes, on the
 *               berth's stream
 *     place     into the rasters, and one copy of verdicts down
 *     collect   the verdicts, once the slot is wanted again
 *
 * All free slots are filled at once, so that threads go on to the next without a pause; from then
 * on one slot is filled as soon as the oldest is through. Some of them wait, filled, until the
 * batch before them has left their berth. A GPU takes the work of all streams from a few queues,
 * where what waits holds up what stands behind it, of other streams too: so nothing that waits for
 * a decoder, not even a mark of the time, is given to it while there are other slots to give. Where
 * nothing is decoded the whole batch is given at once, or what follows its copy would stand behind
 * the copies of other slots.
 */
#include "backend/cuda/cuda_void.h"
#include "backend/cuda/gpu_slot.h"
#include "backend/cuda/nvjpeg_library.h"
#include "base/bytes.h"
#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Of stored bytes that came back, what is kept until the host has decoded them. */
#define BROUGHT_MAX (UINT64_C(64) << 20)

struct cogpu_gpu_reader {
    cogpu_gpu *gpu;
    pthread_mutex_t lock; /* of all below: one read at a time */
    pthread_mutex_t launching;
    uint64_t budget;
    bool is_direct; /* cuFile brings bytes straight to the device */
    cogpu_gds_context gds_context;
    cogpu_nvjpeg *nvjpeg; /* NULL: the host decodes JPEG */
    struct cogpu_slot slots[COGPU_SLOTS];
    struct cogpu_berth berths[COGPU_BERTHS];
    uint32_t turn, berth; /* the slot to fill next, which is the oldest, and its berth */
    uint64_t berth_bytes, pinned_bytes; /* of each berth and each slot; 0 before the first read */
    cogpu_gpu_event *before;            /* what `stream` held when a read or a step of it began */
    cogpu_gpu_stream *stream;
    bool has_before;
    cogpu_gpu_event *callers; /* what the default stream of the calling thread held then */
};

/* ---- slots --------------------------------------------------------------------------------- */

static void close_slots(cogpu_gpu_reader *reader) {
    for (uint32_t i = 0; i < COGPU_BERTHS; i++) {
        struct cogpu_berth *berth = &reader->berths[i];
        if (berth->is_registered)
            cogpu_gds_deregister(&reader->gds_context, berth->device);
        cogpu_berth_close(reader->gpu, berth);
    }
    for (uint32_t i = 0; i < COGPU_SLOTS; i++)
        cogpu_slot_close(reader->gpu, &reader->slots[i]);
    reader->gpu->calls->event_close(reader->gpu, reader->before);
    reader->gpu->calls->event_close(reader->gpu, reader->callers);
    reader->before = reader->callers = NULL;
    reader->berth_bytes = reader->pinned_bytes = 0;
}

/* Without a registration cuFile goes by way of memory of its own, and works all the same. */
static void register_berth(cogpu_gpu_reader *reader, struct cogpu_berth *berth) {
    if (reader->is_direct)
        berth->is_registered =
            cogpu_gds_register(&reader->gds_context, berth->device, berth->bytes, NULL) == COGPU_OK;
}

static cogpu_status collect(cogpu_gpu_reader *reader, struct cogpu_slot *slot, cogpu_error *error);

static cogpu_status collect_all(cogpu_gpu_reader *reader, const cogpu_gpu_work *only,
                                cogpu_error *error) {
    for (uint32_t i = 0; i < COGPU_SLOTS; i++) {
        struct cogpu_slot *slot = &reader->slots[(reader->turn + i) % COGPU_SLOTS];
        if (slot->work && (!only || slot->work == only))
            TRY(collect(reader, slot, error));
    }
    return COGPU_OK;
}

/* What a read takes, in all and for its largest block: of the device's memory, and of pinned. */
struct needs {
    uint64_t all, largest, all_pinned, largest_pinned;
};

/* From `least` on by doubling, so that the next read, which needs a little more, has it already. */
static uint64_t enough(uint64_t least, uint64_t most, uint64_t share, uint64_t largest) {
    uint64_t bytes = least;
    while (bytes < most && (bytes < share || bytes < largest))
        bytes *= 2;
    return bytes < most ? bytes : most;
}

/* The first time that it is used: pinned memory takes long to get. */
static cogpu_status open_slot(cogpu_gpu_reader *reader, struct cogpu_slot *slot,
                              cogpu_error *error) {
    if (slot->pinned)
        return COGPU_OK;
    cogpu_status status = cogpu_slot_open(reader->gpu, reader->pinned_bytes, slot, error);
    slot->nvjpeg = reader->nvjpeg;
    if (status != COGPU_OK)
        cogpu_slot_close(reader->gpu, slot);
    return status;
}

/* Berths for a read, within the budget and what the device has, and the size of slots. */
static cogpu_status open_berths(cogpu_gpu_reader *reader, const struct needs *needs,
                                cogpu_error *error) {
    enum { BERTH_LEAST = 4 << 20, PINNED_LEAST = 1 << 20 };
    uint64_t free_bytes = 0, total = 0;
    uint64_t wanted = enough(BERTH_LEAST, reader->budget / COGPU_BERTHS, needs->all / COGPU_BERTHS,
                             needs->largest);
    uint64_t batches = needs->all > wanted ? needs->all / wanted : 1;
    uint64_t pinned = enough(PINNED_LEAST, wanted < COGPU_PINNED_MAX ? wanted : COGPU_PINNED_MAX,
                             2 * needs->all_pinned / batches, needs->largest_pinned);
    if (reader->berth_bytes >= wanted && reader->pinned_bytes >= pinned)
        return COGPU_OK;
    wanted = wanted > reader->berth_bytes ? wanted : reader->berth_bytes;
    pinned = pinned > reader->pinned_bytes ? pinned : reader->pinned_bytes;
    TRY(collect_all(reader, NULL, error));
    close_slots(reader);
    TRY(reader->gpu->calls->memory(reader->gpu, &free_bytes, &total, error));
    if (COGPU_BERTHS * wanted > free_bytes / 10 * 9)
        return cogpu_fail(error, COGPU_MEMORY,
                          "the read needs %llu MiB of device memory beside the raster, and %llu of "
                          "%llu MiB are free: lower `device_bytes` of the context",
                          (unsigned long long)(COGPU_BERTHS * wanted >> 20),
                          (unsigned long long)(free_bytes >> 20),
                          (unsigned long long)(total >> 20));
    cogpu_status status = reader->gpu->calls->event_open(reader->gpu, &reader->before, error);
    if (status == COGPU_OK)
        status = reader->gpu->calls->event_open(reader->gpu, &reader->callers, error);
    for (uint32_t i = 0; status == COGPU_OK && i < COGPU_BERTHS; i++) {
        status = cogpu_berth_open(reader->gpu, wanted, &reader->berths[i], error);
        if (status == COGPU_OK)
            register_berth(reader, &reader->berths[i]);
    }
    if (status != COGPU_OK) {
        close_slots(reader);
        return status;
    }
    reader->berth_bytes = wanted;
    reader->pinned_bytes = pinned;
    return COGPU_OK;
}

/* Without nvJPEG, or without engines, the host decodes JPEG. */
static void open_engines(cogpu_gpu_reader *reader) {
    cogpu_gpu *gpu = reader->gpu;
    if (!cogpu_nvjpeg_knows(gpu) || !gpu->calls->enter(gpu))
        return;
    (void)cogpu_nvjpeg_open(gpu, COGPU_BERTHS, COGPU_SLOT_TASKS, &reader->nvjpeg, NULL);
    gpu->calls->leave(gpu);
}

static void close_engines(cogpu_gpu_reader *reader) {
    cogpu_gpu *gpu = reader->gpu;
    if (reader->nvjpeg && gpu->calls->enter(gpu)) {
        cogpu_nvjpeg_close(reader->nvjpeg);
        gpu->calls->leave(gpu);
    }
}

cogpu_status cogpu_gpu_reader_open(cogpu_gpu *gpu, uint64_t bytes, bool jpeg_engines,
                                   cogpu_gpu_reader **out, cogpu_error *error) {
    cogpu_gpu_reader *reader = cogpu_allocate(sizeof *reader);
    if (!reader) {
        gpu->calls->close(gpu);
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a device");
    }
    *reader = (cogpu_gpu_reader){.gpu = gpu,
                                 .budget = bytes,
                                 .is_direct = cogpu_gds_serves(gpu),
                                 .gds_context = cogpu_gds_context_of(gpu)};
    pthread_mutex_init(&reader->lock, NULL);
    pthread_mutex_init(&reader->launching, NULL);
    if (jpeg_engines)
        open_engines(reader);
    *out = reader;
    return COGPU_OK;
}

void cogpu_gpu_reader_close(cogpu_gpu_reader *reader) {
    if (!reader)
        return;
    close_slots(reader);
    close_engines(reader);
    reader->gpu->calls->close(reader->gpu);
    pthread_mutex_destroy(&reader->launching);
    pthread_mutex_destroy(&reader->lock);
    cogpu_release(reader);
}

cogpu_gpu *cogpu_gpu_reader_gpu(const cogpu_gpu_reader *reader) {
    return reader->gpu;
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

/* Blocks that the file's limits do not let be held are left to the host, which has other ways, or
 * tells. */
bool cogpu_gpu_reader_takes(const cogpu_gpu_reader *reader, const cogpu_read_plan *plan) {
    const cogpu_storage *storage = plan->storage;
    bool is_plain = storage->format.compression == COMPRESSION_NONE;
    bool has_ink_samples = storage->colour == COGPU_FROM_CMYK && storage->planes == 1 &&
                           storage->format.samples != storage->bands;
    return !cogpu_storage_has_units(storage) && !has_ink_samples &&
           (is_plain || storage->block_bytes <= storage->tiff->limits.block_bytes) &&
           cogpu_slot_holds(reader->budget / COGPU_BERTHS, plan) &&
           storage->format.row_bytes <= COGPU_GPU_BLOCK_MAX &&
           !(plan->conversion && storage->type == COGPU_CF64);
}

/* ---- launch -------------------------------------------------------------------------------- */

static cogpu_status launch_decode(const cogpu_gpu_reader *reader, struct cogpu_slot *slot,
                                  cogpu_error *error) {
    const struct cogpu_slot_tables *at = &slot->at;
    const cogpu_coded *table = (const cogpu_coded *)(const void *)(slot->pinned + at->coded);
    uint64_t least = 0, best = 0;
    cogpu_gpu_batch batch = {.gpu = reader->gpu,
                             .stream = slot->berth->stream,
                             .blocks = table,
                             .count = slot->coded,
                             .device_blocks =
                                 (const cogpu_coded *)(slot->berth->device + at->coded),
                             .stored = slot->berth->device + COGPU_STAGING,
                             .decoded = slot->berth->device + cogpu_slot_decoded(slot),
                             .verdicts = (uint32_t *)(void *)(slot->berth->device + at->verdicts)};
    slot->decoder->scratch(table, slot->coded, &least, &best);
    uint64_t scratch_at = cogpu_slot_decoded(slot) + slot->decoded_used + COGPU_GPU_SLACK;
    uint64_t room = (slot->berth->bytes - scratch_at) / COGPU_GPU_ALIGN * COGPU_GPU_ALIGN;
    batch.scratch = slot->berth->device + scratch_at;
    batch.scratch_bytes = best < room ? best : room;
    return slot->decoder->decode(&batch, error);
}

/* Before the verdicts are copied up: they are known when the call returns. */
static cogpu_status launch_engines(const cogpu_gpu_reader *reader, struct cogpu_slot *slot,
                                   cogpu_error *error) {
    cogpu_gpu *gpu = reader->gpu;
    uint32_t berth = (uint32_t)(slot->berth - reader->berths);
    uint32_t *verdicts = (uint32_t *)(void *)(slot->pinned + slot->at.verdicts);
    for (uint32_t i = 0; i < slot->count; i++) {
        const struct cogpu_seated *seated = &slot->seated[i];
        cogpu_nvjpeg_block *jpeg = &slot->jpegs[i];
        jpeg->room = cogpu_slot_room_of(seated->task);
        jpeg->decoded = slot->berth->device + cogpu_slot_decoded(slot) + seated->decoded;
        jpeg->planes = jpeg->decoded + cogpu_gpu_align(jpeg->room) + COGPU_GPU_ALIGN;
    }
    if (!gpu->calls->enter(gpu))
        return cogpu_fail(error, COGPU_DEVICE, "the GPU failed to make its context current");
    cogpu_status status = cogpu_nvjpeg_decode(slot->nvjpeg, berth, slot->jpegs, slot->count,
                                              slot->berth->stream, error);
    gpu->calls->leave(gpu);
    for (uint32_t i = 0; i < slot->count; i++)
        if (slot->seated[i].is_jpeg && !slot->seated[i].is_bad)
            verdicts[slot->seated[i].verdict] = slot->jpegs[i].verdict;
    return status;
}

/* A stream that is the calling thread's must be noted by that thread, before others work for it. */
static cogpu_status note_callers(cogpu_gpu_reader *reader, const cogpu_raster *raster,
                                 cogpu_error *error) {
    return raster->stream == COGPU_GPU_PER_THREAD
               ? reader->gpu->calls->record(reader->gpu, reader->callers, raster->stream, error)
               : COGPU_OK;
}

/* The raster may be in use by what its stream holds already. That is noted once, since the default
 * stream of a device waits for many others. */
static cogpu_status wait_for_raster(cogpu_gpu_reader *reader, const struct cogpu_slot *slot,
                                    const cogpu_raster *raster, cogpu_error *error) {
    const cogpu_gpu_calls *calls = reader->gpu->calls;
    if (raster->stream == COGPU_GPU_PER_THREAD)
        return calls->wait_event(reader->gpu, slot->berth->stream, reader->callers, error);
    if (!reader->has_before || reader->stream != raster->stream) {
        reader->stream = raster->stream;
        TRY(calls->record(reader->gpu, reader->before, reader->stream, error));
        reader->has_before = true;
    }
    return calls->wait_event(reader->gpu, slot->berth->stream, reader->before, error);
}

/* One call of place for the tasks of each plan. */
static cogpu_status launch_place(cogpu_gpu_reader *reader, struct cogpu_slot *slot,
                                 cogpu_error *error) {
    cogpu_gpu *gpu = reader->gpu;
    const struct cogpu_slot_tables *at = &slot->at;
    const struct cogpu_placed *table =
        (const struct cogpu_placed *)(const void *)(slot->pinned + at->placed);
    const uint32_t *verdicts = (const uint32_t *)(const void *)(slot->berth->device + at->verdicts);
    const uint8_t *lists = slot->berth->device + at->lists;
    const cogpu_raster *last = NULL;
    for (uint32_t first = 0, end; first < slot->count; first = end) {
        const cogpu_gpu_task *task = slot->seated[first].task;
        struct cogpu_gpu_pixels pixels;
        end = cogpu_slot_end_of_plan(slot, first);
        if (!last || last->stream != task->raster->stream)
            TRY(wait_for_raster(reader, slot, task->raster, error));
        last = task->raster;
        TRY(cogpu_gpu_pixels_of(task->plan, task->raster, slot->berth->device, verdicts,
                                (const struct cogpu_gpu_band *)(const void *)lists, &pixels,
                                error));
        TRY(cogpu_gpu_place(gpu, &pixels,
                            (const struct cogpu_placed *)(slot->berth->device + at->placed) + first,
                            table + first, end - first, slot->berth->stream, error));
        lists += cogpu_slot_list_bytes(task->plan);
    }
    return COGPU_OK;
}

/* The second half, once for each batch. */
static cogpu_status place_slot(cogpu_gpu_reader *reader, struct cogpu_slot *slot,
                               cogpu_error *error) {
    cogpu_gpu *gpu = reader->gpu;
    const cogpu_gpu_calls *calls = gpu->calls;
    if (slot->is_placed)
        return COGPU_OK;
    slot->is_placed = true;
    TRY(calls->record(gpu, slot->marks[COGPU_DECODED], slot->berth->stream, error));
    TRY(launch_place(reader, slot, error));
    if (slot->coded > 0)
        TRY(calls->copy_down(gpu, slot->pinned + slot->at.verdicts,
                             slot->berth->device + slot->at.verdicts,
                             slot->coded * sizeof(uint32_t), slot->berth->stream, error));
    return calls->record(gpu, slot->marks[COGPU_DONE], slot->berth->stream, error);
}

/* From the caller's memory, which is pinned. */
static cogpu_status copy_lent(cogpu_gpu *gpu, const struct cogpu_slot *slot, cogpu_error *error) {
    for (uint32_t i = 0; i < slot->run_count; i++) {
        const struct cogpu_slot_run *run = &slot->runs[i];
        uint8_t *to = slot->berth->device + COGPU_STAGING + slot->seated[run->first].staging;
        TRY(gpu->calls->copy_up(gpu, to, cogpu_fetch_in_memory(slot, run),
                                cogpu_slot_run_bytes(slot, run), slot->berth->stream, error));
    }
    return COGPU_OK;
}

static cogpu_status launch_slot(cogpu_gpu_reader *reader, struct cogpu_slot *slot,
                                cogpu_error *error) {
    cogpu_gpu *gpu = reader->gpu;
    const cogpu_gpu_calls *calls = gpu->calls;
    cogpu_slot_list(slot);
    uint64_t from = slot->is_direct || slot->is_lent ? slot->at.coded : 0; /* the tables alone */
    bool is_jpeg = slot->decoder == &cogpu_slot_engines;
    TRY(calls->record(gpu, slot->marks[COGPU_STARTED], slot->berth->stream, error));
    if (slot->coded > 0 && is_jpeg)
        TRY(launch_engines(reader, slot, error));
    if (slot->is_lent)
        TRY(copy_lent(gpu, slot, error));
    TRY(calls->copy_up(gpu, slot->berth->device + from, slot->pinned + from, slot->at.end - from,
                       slot->berth->stream, error));
    TRY(calls->record(gpu, slot->marks[COGPU_COPIED], slot->berth->stream, error));
    if (slot->coded == 0)
        return place_slot(reader, slot, error);
    return is_jpeg ? COGPU_OK : launch_decode(reader, slot, error);
}

static void launch(cogpu_gpu_reader *reader, struct cogpu_slot *slot) {
    if (slot->status != COGPU_OK)
        return;
    pthread_mutex_lock(&reader->launching);
    slot->status = launch_slot(reader, slot, &slot->error);
    pthread_mutex_unlock(&reader->launching);
}

static cogpu_status launched(const struct cogpu_slot *slot, cogpu_error *error) {
    if (slot->status != COGPU_OK && error)
        *error = slot->error;
    return slot->status;
}

/* ---- collect ------------------------------------------------------------------------------- */

static void add_stages(cogpu_gpu *gpu, const struct cogpu_slot *slot) {
    const cogpu_gpu_calls *calls = gpu->calls;
    cogpu_gpu_event *const *marks = slot->marks;
    cogpu_stages *stages = slot->work->stages;
    stages->copy += calls->milliseconds(gpu, marks[COGPU_STARTED], marks[COGPU_COPIED]);
    stages->decode += calls->milliseconds(gpu, marks[COGPU_COPIED], marks[COGPU_DECODED]);
    stages->place += calls->milliseconds(gpu, marks[COGPU_DECODED], marks[COGPU_DONE]);
}

/* Whether the device has the block's stored bytes and could not decode them. */
static bool came_in_vain(const struct cogpu_seated *seated) {
    return seated->is_coded && !seated->is_bad && seated->task->is_for_host;
}

/* Bytes that came back from the device, until the host has decoded them. */
struct cogpu_brought {
    struct cogpu_brought *next;
    uint8_t bytes[];
};

/* The smallest range of staging that has all bytes which came in vain. */
static uint64_t range_of(const struct cogpu_slot *slot, uint64_t *start) {
    uint64_t end = 0;
    *start = UINT64_MAX;
    for (uint32_t i = 0; i < slot->count; i++) {
        const struct cogpu_seated *seated = &slot->seated[i];
        uint64_t last = seated->staging + seated->task->span.bytes;
        if (!came_in_vain(seated))
            continue;
        *start = seated->staging < *start ? seated->staging : *start;
        end = last > end ? last : end;
    }
    return end > 0 ? end - *start : 0;
}

/* Stored bytes that went straight to the device come back for the host to decode, in one copy.
 * Those for which there is no memory are read from the file again. */
static cogpu_status bring_back(cogpu_gpu *gpu, struct cogpu_slot *slot, cogpu_error *error) {
    cogpu_gpu_work *work = slot->work;
    uint64_t start, bytes = range_of(slot, &start);
    struct cogpu_brought *brought = bytes > 0 && bytes <= BROUGHT_MAX - work->brought_bytes
                                        ? cogpu_allocate(sizeof *brought + (size_t)bytes)
                                        : NULL;
    if (!brought)
        return COGPU_OK;
    brought->next = work->brought;
    work->brought = brought;
    work->brought_bytes += bytes;
    TRY(gpu->calls->copy_down(gpu, brought->bytes, slot->berth->device + COGPU_STAGING + start,
                              bytes, slot->berth->stream, error));
    TRY(gpu->calls->finish_stream(gpu, slot->berth->stream, error));
    for (uint32_t i = 0; i < slot->count; i++)
        if (came_in_vain(&slot->seated[i]))
            slot->seated[i].task->brought = brought->bytes + (slot->seated[i].staging - start);
    return COGPU_OK;
}

/* The berth goes to the batch that waits for it. */
static cogpu_status leave_berth(cogpu_gpu_reader *reader, const struct cogpu_slot *slot,
                                cogpu_error *error) {
    struct cogpu_berth *berth = slot->berth;
    berth->holder = NULL;
    for (uint32_t i = 0; i < COGPU_SLOTS; i++) {
        struct cogpu_slot *next = &reader->slots[i];
        if (!next->is_waiting || next->berth != berth)
            continue;
        next->is_waiting = false;
        berth->holder = next;
        if (next->is_full)
            launch(reader, next);
        return launched(next, error);
    }
    return COGPU_OK;
}

/* Counts the blocks of a batch that are through; those that the device refused count later. */
static void count_done(const struct cogpu_slot *slot) {
    for (uint32_t first = 0, end; first < slot->count; first = end) {
        cogpu_meter *meter = slot->seated[first].task->plan->meter;
        uint64_t done = 0;
        end = cogpu_slot_end_of_plan(slot, first);
        for (uint32_t i = first; meter && i < end; i++)
            done += !slot->seated[i].is_coded || slot->seated[i].task->is_decoded;
        if (done > 0)
            (void)cogpu_meter_add(meter, done);
    }
}

/* Waits for the slot's batch; what the device refused is the host's from here on. */
static cogpu_status collect(cogpu_gpu_reader *reader, struct cogpu_slot *slot, cogpu_error *error) {
    cogpu_gpu_work *work = slot->work;
    const uint32_t *verdicts = (const uint32_t *)(const void *)(slot->pinned + slot->at.verdicts);
    TRY(place_slot(reader, slot, error));
    TRY(reader->gpu->calls->finish_event(reader->gpu, slot->marks[COGPU_DONE], error));
    add_stages(reader->gpu, slot);
    for (uint32_t i = 0; i < slot->count; i++) {
        struct cogpu_seated *seated = &slot->seated[i];
        if (!seated->is_coded)
            continue;
        bool good = !seated->is_bad && verdicts[seated->verdict] == COGPU_GPU_DECODED;
        seated->task->is_decoded = good;
        seated->task->came_directly = good && slot->is_direct;
        seated->task->is_late = seated->task->is_for_host = !good;
        work->refused += !good;
    }
    count_done(slot);
    if (slot->is_direct)
        TRY(bring_back(reader->gpu, slot, error));
    slot->work = NULL;
    return leave_berth(reader, slot, error);
}

/* ---- the way through ----------------------------------------------------------------------- */

/* Slots that are filled together. */
struct filling {
    cogpu_gpu_reader *reader;
    struct cogpu_slot *slots[COGPU_SLOTS];
    uint32_t count;
};

/* One piece of one of the slots; a slot whose last it was goes to the device, if it has a berth. */
static void fill_piece(void *argument, uint32_t seat, uint64_t index) {
    struct filling *filling = argument;
    uint32_t i = 0;
    while (index >= filling->slots[i]->piece_count)
        index -= filling->slots[i++]->piece_count;
    struct cogpu_slot *slot = filling->slots[i];
    cogpu_fetch_piece(slot, seat, (uint32_t)index);
    if (__atomic_sub_fetch(&slot->left, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    cogpu_fetch_end(slot, seat);
    slot->is_full = true;
    if (!slot->is_waiting)
        launch(filling->reader, slot);
}

/* The next berth is the slot's, at once or when its batch has left. */
static void take_berth(cogpu_gpu_reader *reader, struct cogpu_slot *slot) {
    struct cogpu_berth *berth = &reader->berths[reader->berth];
    slot->berth = berth;
    slot->is_waiting = berth->holder != NULL;
    if (!berth->holder)
        berth->holder = slot;
}

/* The batch that must be through before the next slot can be filled: its own, or, where bytes go
 * straight to the device, that in its berth. NULL without any. */
static struct cogpu_slot *in_the_way(cogpu_gpu_reader *reader, const cogpu_gpu_work *work) {
    struct cogpu_slot *slot = &reader->slots[reader->turn];
    return slot->work ? slot : work->is_direct ? reader->berths[reader->berth].holder : NULL;
}

static bool is_through(cogpu_gpu *gpu, const struct cogpu_slot *slot) {
    return slot->is_placed && gpu->calls->is_over(gpu, slot->marks[COGPU_DONE]);
}

/* Chooses tasks for all slots that are free or through, or for the oldest when it is through: many
 * at once, so that threads have work for long. Returns how many tasks. */
static cogpu_status choose(cogpu_gpu_reader *reader, cogpu_gpu_work *work, cogpu_gpu_task *tasks,
                           uint32_t count, struct filling *filling, uint32_t *chosen,
                           cogpu_error *error) {
    *chosen = filling->count = 0;
    while (*chosen < count && filling->count < COGPU_SLOTS) {
        struct cogpu_slot *slot = &reader->slots[reader->turn], *other;
        while ((other = in_the_way(reader, work)) &&
               (filling->count == 0 || is_through(reader->gpu, other)))
            TRY(collect(reader, other, error));
        if (other)
            break;
        TRY(open_slot(reader, slot, error));
        slot->work = work;
        slot->is_full = slot->is_placed = false;
        slot->status = COGPU_OK;
        take_berth(reader, slot);
        uint32_t taken = cogpu_slot_choose(slot, work, tasks + *chosen, count - *chosen);
        if (taken == 0)
            return cogpu_fail(error, COGPU_LIMIT,
                              "a block does not fit the device memory that the read may take: "
                              "raise `device_bytes` of the context");
        cogpu_slot_cut(reader->gpu, slot);
        filling->slots[filling->count++] = slot;
        /* Only together: or else two batches would come to wait for one berth. */
        reader->turn = (reader->turn + 1) % COGPU_SLOTS;
        reader->berth = (reader->berth + 1) % COGPU_BERTHS;
        *chosen += taken;
    }
    return COGPU_OK;
}

/* Fetches and launches what was chosen. */
static cogpu_status fill(struct filling *filling, cogpu_gpu_work *work, cogpu_error *error) {
    uint64_t pieces = 0;
    double start = clock_now();
    for (uint32_t i = 0; i < filling->count; i++) {
        struct cogpu_slot *slot = filling->slots[i];
        pieces += slot->piece_count;
        slot->is_full = slot->piece_count == 0;
        if (slot->is_full && !slot->is_waiting)
            launch(filling->reader, slot);
    }
    cogpu_pool_run(work->pool, work->seat_count, pieces, fill_piece, filling);
    work->stages->fetch += 1e3 * (clock_now() - start);
    for (uint32_t i = 0; i < filling->count; i++)
        TRY(launched(filling->slots[i], error));
    return COGPU_OK;
}

/* About what a task takes: stored and decoded bytes and scratch, or only what the host puts into
 * the slot, which it may have to for any. */
static void add_need(struct needs *needs, const cogpu_gpu_task *task, uint64_t list) {
    bool is_coded = cogpu_gpu_decoder_of(task->plan->storage->format.compression) != NULL;
    uint64_t stored = task->span.bytes, by_host = cogpu_gpu_align(cogpu_slot_needed_of(task));
    uint64_t decoded = 2 * (cogpu_gpu_align(cogpu_slot_room_of(task)) + COGPU_GPU_ALIGN);
    if (stored == 0)
        stored = by_host = decoded = 0;
    uint64_t need = is_coded ? stored + decoded : by_host;
    uint64_t pinned = stored > by_host ? stored : by_host;
    needs->all += need;
    needs->all_pinned += is_coded && !task->is_for_host ? stored : by_host;
    needs->largest = need + list > needs->largest ? need + list : needs->largest;
    needs->largest_pinned =
        pinned + list > needs->largest_pinned ? pinned + list : needs->largest_pinned;
}

static cogpu_status open_berths_for(cogpu_gpu_reader *reader, cogpu_gpu_work *work,
                                    cogpu_error *error) {
    struct needs needs = {0};
    uint64_t list = 0;
    work->left = 0;
    for (uint32_t i = 0; i < work->count; i++) {
        if (i == 0 || work->tasks[i].plan != work->tasks[i - 1].plan)
            list = cogpu_slot_list_bytes(work->tasks[i].plan);
        add_need(&needs, &work->tasks[i], list);
        work->left += work->tasks[i].span.bytes;
    }
    needs.largest += COGPU_SLOT_OVERHEAD + COGPU_STAGING; /* where it does not begin at a page */
    needs.largest_pinned += COGPU_SLOT_OVERHEAD + COGPU_STAGING;
    return open_berths(reader, &needs, error);
}

/* All of these tasks are on their way when it returns. For those that the device refused, too,
 * there may be no slots: a read in between that lacked memory has closed them. */
static cogpu_status start_tasks(cogpu_gpu_reader *reader, cogpu_gpu_work *work,
                                cogpu_error *error) {
    struct filling filling = {.reader = reader};
    uint32_t chosen;
    TRY(open_berths_for(reader, work, error));
    for (uint32_t i = 0; i < work->count; i++)
        if (i == 0 || work->tasks[i].raster != work->tasks[i - 1].raster)
            TRY(note_callers(reader, work->tasks[i].raster, error));
    for (uint32_t done = 0; done < work->count; done += chosen) {
        TRY(choose(reader, work, work->tasks + done, work->count - done, &filling, &chosen, error));
        TRY(fill(&filling, work, error));
    }
    for (uint32_t i = 0; i < COGPU_SLOTS; i++) {
        struct cogpu_slot *slot = &reader->slots[(reader->turn + i) % COGPU_SLOTS];
        if (slot->is_waiting)
            TRY(collect(reader, slot->berth->holder, error));
    }
    return COGPU_OK;
}

/* The refused tasks, in an array of their own. */
static uint32_t gather_refused(cogpu_gpu_work *work, cogpu_gpu_task *tasks, uint32_t *numbers) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < work->count; i++)
        if (work->tasks[i].is_for_host) {
            numbers[count] = i;
            tasks[count++] = work->tasks[i];
        }
    return count;
}

/* After a failure nothing may still be under way in memory that will be used again. */
static void settle(cogpu_gpu_reader *reader, const cogpu_gpu_work *work) {
    for (uint32_t i = 0; i < COGPU_SLOTS; i++) {
        struct cogpu_slot *slot = &reader->slots[i];
        if (slot->work != work)
            continue;
        (void)reader->gpu->calls->finish_stream(reader->gpu, slot->berth->stream, NULL);
        slot->work = NULL;
        slot->is_waiting = false;
        if (slot->berth->holder == slot)
            slot->berth->holder = NULL;
    }
}

static bool is_idle(const cogpu_gpu_reader *reader) {
    for (uint32_t i = 0; i < COGPU_SLOTS; i++)
        if (reader->slots[i].work)
            return false;
    return true;
}

struct again {
    cogpu_gpu_work *work;
    const uint32_t *numbers;
};

static bool failed_again(void *user, uint32_t task, const cogpu_error *error) {
    struct again *again = user;
    return again->work->failed(again->work->user, again->numbers[task], error);
}

static cogpu_status run_refused(cogpu_gpu_reader *reader, cogpu_gpu_work *work,
                                cogpu_error *error) {
    cogpu_gpu_task *tasks = cogpu_allocate(work->refused * sizeof *tasks);
    uint32_t *numbers = cogpu_allocate(work->refused * sizeof *numbers);
    cogpu_status status = COGPU_OK;
    if (!tasks || !numbers) {
        status = cogpu_fail(error, COGPU_MEMORY, "out of memory for %u blocks", work->refused);
    } else {
        struct again again = {work, numbers};
        cogpu_gpu_work rest = *work;
        rest.count = gather_refused(work, tasks, numbers);
        rest.tasks = tasks;
        rest.failed = failed_again;
        rest.user = &again;
        status = start_tasks(reader, &rest, error);
        if (status == COGPU_OK)
            status = collect_all(reader, &rest, error);
        if (status != COGPU_OK)
            settle(reader, &rest);
    }
    cogpu_release(tasks);
    cogpu_release(numbers);
    return status;
}

static void close_work(cogpu_gpu_work *work) {
    cogpu_fetch_close_files(work);
    while (work->brought) {
        struct cogpu_brought *brought = work->brought;
        work->brought = brought->next;
        cogpu_release(brought);
    }
}

/* A block takes its time on the device however few there are; the host's threads may be through
 * with all of them by then. In nanoseconds, by the rates of the decoders. Tests of the device,
 * whose files are small, set COGPU_ALWAYS_DEVICE. */
static bool host_is_faster(const cogpu_gpu_reader *reader, const cogpu_gpu_work *work) {
    if (reader->gpu->is_emulated || getenv("COGPU_ALWAYS_DEVICE"))
        return false;
    double host = 0, host_least = 0, device = 0, device_least = 0;
    for (uint32_t i = 0; i < work->count; i++) {
        const cogpu_gpu_task *task = &work->tasks[i];
        const cogpu_gpu_decoder *decoder =
            cogpu_gpu_decoder_of(task->plan->storage->format.compression);
        if (!decoder || task->span.bytes == 0)
            continue;
        double bytes = (double)cogpu_slot_room_of(task);
        double on_host = bytes / decoder->host_rate, on_device = bytes / decoder->device_rate;
        host += on_host;
        host_least = on_host > host_least ? on_host : host_least;
        device += on_device;
        device_least = on_device > device_least ? on_device : device_least;
    }
    host /= work->seat_count;
    device /= 2 * reader->gpu->multiprocessors;
    host = host > host_least ? host : host_least;
    device = device > device_least ? device : device_least;
    return host < device;
}

static void leave_to_host(cogpu_gpu_work *work) {
    for (uint32_t i = 0; i < work->count; i++)
        work->tasks[i].is_for_host = true;
}

/* The second halves of all batches that are under way; where the caller does not wait, what comes
 * later in the rasters' streams does. */
static cogpu_status place_all(cogpu_gpu_reader *reader, const cogpu_gpu_work *work,
                              cogpu_error *error) {
    cogpu_gpu *gpu = reader->gpu;
    for (uint32_t i = 0; i < COGPU_SLOTS; i++) {
        struct cogpu_slot *slot = &reader->slots[(reader->turn + i) % COGPU_SLOTS];
        if (slot->work == work)
            TRY(place_slot(reader, slot, error));
    }
    for (uint32_t i = 0; work->is_pending && i < work->count; i++) {
        cogpu_gpu_stream *stream = work->tasks[i].raster->stream;
        if (i > 0 && stream == work->tasks[i - 1].raster->stream)
            continue;
        for (uint32_t j = 0; j < COGPU_SLOTS; j++)
            if (reader->slots[j].work == work)
                TRY(gpu->calls->wait_event(gpu, stream, reader->slots[j].marks[COGPU_DONE], error));
    }
    return COGPU_OK;
}

cogpu_status cogpu_gpu_start(cogpu_gpu_reader *reader, cogpu_gpu_work *work, cogpu_error *error) {
    pthread_mutex_lock(&reader->lock);
    reader->has_before = false;
    if (is_idle(reader))
        reader->turn = reader->berth = 0; /* whose slots are open already */
    work->is_direct = reader->is_direct;
    work->gds_context = &reader->gds_context;
    if (host_is_faster(reader, work))
        leave_to_host(work);
    cogpu_status status = start_tasks(reader, work, error);
    if (status == COGPU_OK)
        status = place_all(reader, work, error);
    if (status != COGPU_OK) {
        settle(reader, work);
        close_work(work);
        if (is_idle(reader))
            close_slots(reader); /* others may lack the memory */
    }
    pthread_mutex_unlock(&reader->lock);
    return status;
}

cogpu_status cogpu_gpu_finish(cogpu_gpu_reader *reader, cogpu_gpu_work *work, cogpu_error *error) {
    pthread_mutex_lock(&reader->lock);
    reader->has_before = false;
    cogpu_status status = collect_all(reader, work, error);
    if (status != COGPU_OK)
        settle(reader, work);
    else if (work->refused > 0)
        status = run_refused(reader, work, error);
    close_work(work);
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
    return cogpu_gpu_pixels_of(&plan, raster, reader->berths[0].device, NULL, NULL, pixels, error);
}

/* Bands stand `band_stride` bytes apart in `from`. */
static cogpu_status put_rows(cogpu_gpu_reader *reader, const uint8_t *from, uint64_t band_stride,
                             uint32_t rows, const cogpu_raster *raster, uint32_t target_y,
                             cogpu_error *error) {
    cogpu_gpu *gpu = reader->gpu;
    const cogpu_gpu_calls *calls = gpu->calls;
    struct cogpu_slot *slot = &reader->slots[0];
    uint64_t band_bytes = (uint64_t)rows * raster->width * cogpu_type_bytes(raster->type);
    uint64_t placed_at =
        cogpu_gpu_align(raster->bands * cogpu_gpu_align(band_bytes) + COGPU_GPU_SLACK);
    struct cogpu_placed *placed = (struct cogpu_placed *)(void *)(slot->pinned + placed_at);
    struct cogpu_gpu_pixels pixels;
    TRY(describe_packed(reader, raster, &pixels, error));
    for (uint32_t band = 0; band < raster->bands; band++) {
        memcpy(slot->pinned + band * cogpu_gpu_align(band_bytes), from + band * band_stride,
               (size_t)band_bytes);
        placed[band] = (struct cogpu_placed){.decoded = band * cogpu_gpu_align(band_bytes),
                                             .target_y = target_y,
                                             .width = raster->width,
                                             .height = rows,
                                             .plane = band};
    }
    TRY(calls->copy_up(gpu, slot->berth->device, slot->pinned,
                       placed_at + raster->bands * sizeof *placed, slot->berth->stream, error));
    TRY(cogpu_gpu_place(gpu, &pixels,
                        (const struct cogpu_placed *)(slot->berth->device + placed_at), placed,
                        raster->bands, slot->berth->stream, error));
    return calls->finish_stream(gpu, slot->berth->stream, error);
}

/* Rows that go up at once: as many as fit, and at least one. */
static uint32_t rows_at_once(const cogpu_gpu_reader *reader, const cogpu_raster *raster,
                             uint32_t rows) {
    enum { PUT_BYTES = 8 << 20 };
    uint64_t most = reader->budget / COGPU_BERTHS;
    uint64_t others = raster->bands * (COGPU_GPU_ALIGN + sizeof(struct cogpu_placed)) +
                      4 * COGPU_GPU_SLACK + COGPU_STAGING;
    uint64_t room = most > others ? most - others : 0;
    uint64_t fit = (room < PUT_BYTES ? room : PUT_BYTES) /
                   ((uint64_t)raster->width * raster->bands * cogpu_type_bytes(raster->type));
    return fit < 1 ? 1 : fit < rows ? (uint32_t)fit : rows;
}

cogpu_status cogpu_gpu_put(cogpu_gpu_reader *reader, const uint8_t *from, uint32_t rows,
                           const cogpu_raster *raster, uint32_t target_y, cogpu_error *error) {
    struct cogpu_slot *slot = &reader->slots[0];
    uint64_t row_bytes = (uint64_t)raster->width * cogpu_type_bytes(raster->type);
    uint32_t piece = rows_at_once(reader, raster, rows);
    uint64_t needed =
        raster->bands * (cogpu_gpu_align(piece * row_bytes) + sizeof(struct cogpu_placed)) +
        4 * COGPU_GPU_SLACK;
    pthread_mutex_lock(&reader->lock);
    const struct needs needs = {needed, needed + COGPU_STAGING, needed, needed + COGPU_STAGING};
    cogpu_status status = open_berths(reader, &needs, error);
    if (status == COGPU_OK)
        status = open_slot(reader, slot, error);
    if (status == COGPU_OK && slot->work)
        status = collect(reader, slot, error);
    if (status == COGPU_OK && reader->berths[0].holder)
        status = collect(reader, reader->berths[0].holder, error);
    if (status == COGPU_OK)
        slot->berth = &reader->berths[0];
    if (status == COGPU_OK && (needed > slot->pinned_bytes || needed > slot->berth->bytes))
        status = cogpu_fail(error, COGPU_LIMIT,
                            "a row does not fit the device memory that the read may take: raise "
                            "`device_bytes` of the context");
    reader->has_before = false;
    if (status == COGPU_OK)
        status = note_callers(reader, raster, error);
    if (status == COGPU_OK)
        status = wait_for_raster(reader, slot, raster, error);
    for (uint32_t row = 0; status == COGPU_OK && row < rows; row += piece)
        status = put_rows(reader, from + row * row_bytes, rows * row_bytes,
                          rows - row < piece ? rows - row : piece, raster, target_y + row, error);
    if (status != COGPU_OK && reader->berths[0].stream) /* nothing may be under way there */
        (void)reader->gpu->calls->finish_stream(reader->gpu, reader->berths[0].stream, NULL);
    pthread_mutex_unlock(&reader->lock);
    return status;
}
