/*
 * Takes a batch of blocks, hands on their pixels in rasters of the host: runs of neighbouring
 * blocks are shared out to threads, each of which fetches a run in one go, decodes each block,
 * restores and places it (backend/cpu/), by way of the context's cache where there is one.
 */
#include "api/job.h"

#include <string.h>

static const cogpu_io *io_of(const struct cogpu_task *task) {
    return task->reading->plan.storage->tiff->io;
}

/* The bytes from the first task's block to the last's, read in one go or found in memory. */
static cogpu_status fetch(cogpu_seat *seat, const struct cogpu_task *tasks, uint32_t count,
                          const uint8_t **bytes, uint64_t *read, cogpu_error *error) {
    const cogpu_io *io = io_of(tasks);
    const cogpu_span *last = &tasks[count - 1].span;
    uint64_t start = tasks[0].span.offset, end = last->offset + last->bytes;
    uint64_t limit = tasks[0].reading->plan.storage->tiff->limits.block_bytes;
    if (last->offset == start && end - start > limit)
        return cogpu_fail(
            error, COGPU_LIMIT,
            "the block has %llu bytes, the limit is %llu: raise `block_bytes` to go on",
            (unsigned long long)(end - start), (unsigned long long)limit);
    *bytes = cogpu_io_mapped(io, start);
    if (*bytes)
        return COGPU_OK;
    TRY(cogpu_seat_room(&seat->stored, &seat->stored_bytes, (size_t)(end - start), error));
    *bytes = seat->stored;
    *read += end - start;
    return cogpu_io_read_metered(io, start, (size_t)(end - start), seat->stored,
                                 tasks[0].reading->plan.meter, error);
}

static cogpu_cache_key key_of(const struct cogpu_task *task) {
    const cogpu_storage *storage = task->reading->plan.storage;
    const cogpu_file *file = task->reading->item->file;
    return (cogpu_cache_key){.file = file->number,
                             .directory =
                                 (uint64_t)storage->tiff->number << 32 | storage->directory,
                             .block = task->block.index};
}

static cogpu_cache *cache_of(const struct cogpu_job *job, const cogpu_storage *storage) {
    bool coded = storage->format.compression != COMPRESSION_NONE;
    return job->context && coded ? job->context->cache : NULL;
}

/* All rows of a decoded block, restored, into memory of the cache. */
static void restore_block(const cogpu_storage *storage, const cogpu_block *block, uint8_t *decoded,
                          uint8_t *to) {
    size_t row_bytes = storage->format.row_bytes;
    if (!cogpu_cpu_needs_restore(storage))
        memcpy(to, decoded, block->needed_rows * row_bytes);
    else
        cogpu_cpu_restore(storage, decoded, block->needed_rows, storage->block_width, to,
                          (int64_t)row_bytes, false);
}

/* From stored bytes to the rasters of all tasks that want parts of the block, by way of the cache
 * where there is one. */
static cogpu_status decode_and_place(struct cogpu_job *job, cogpu_seat *seat,
                                     struct cogpu_task *tasks, uint32_t count,
                                     const uint8_t *stored, cogpu_error *error) {
    const cogpu_storage *storage = tasks[0].reading->plan.storage;
    const cogpu_block *block = &tasks[0].block;
    cogpu_cache *cache = cache_of(job, storage);
    uint8_t *decoded = NULL, *room = NULL;
    TRY(cogpu_cpu_decode(seat, storage, block, stored, (size_t)tasks[0].span.bytes, &decoded,
                         error));
    bool is_restored = !cogpu_cpu_needs_restore(storage);
    size_t bytes = block->needed_rows * storage->format.row_bytes;
    cogpu_cached *cached = cache ? cogpu_cache_reserve(cache, key_of(tasks), bytes) : NULL;
    if (cached) {
        room = cached->data;
    } else if (count > 1 && !is_restored) { /* since placing changes what it restores */
        TRY(cogpu_seat_room(&seat->shared, &seat->shared_bytes, bytes, error));
        room = seat->shared;
    }
    if (room)
        restore_block(storage, block, decoded, room);
    cogpu_status status = COGPU_OK;
    for (uint32_t i = 0; status == COGPU_OK && i < count; i++)
        status =
            cogpu_cpu_place(seat, &tasks[i].reading->plan, &tasks[i].block, room ? room : decoded,
                            room || is_restored, &tasks[i].reading->raster, error);
    if (cached)
        cogpu_cache_keep(cache, cached);
    return status;
}

bool cogpu_task_is_cached(struct cogpu_job *job, const struct cogpu_task *task) {
    cogpu_cache *cache = cache_of(job, task->reading->plan.storage);
    cogpu_cached *cached = cache ? cogpu_cache_take(cache, key_of(task)) : NULL;
    if (cached)
        cogpu_cache_give_back(cache, cached);
    return cached;
}

/* True where the block was in the cache, and is in the raster now. */
static bool place_cached(struct cogpu_job *job, cogpu_seat *seat, struct cogpu_task *task) {
    cogpu_cache *cache = cache_of(job, task->reading->plan.storage);
    cogpu_cached *cached = cache ? cogpu_cache_take(cache, key_of(task)) : NULL;
    if (!cached)
        return false;
    cogpu_status status = cogpu_cpu_place(seat, &task->reading->plan, &task->block, cached->data,
                                          true, &task->reading->raster, NULL);
    cogpu_cache_give_back(cache, cached);
    return status == COGPU_OK;
}

/* Rather than held, unless the cache can have use of it. */
bool cogpu_job_streams(const struct cogpu_job *job, const cogpu_storage *storage) {
    cogpu_cache *cache = cache_of(job, storage);
    return cogpu_cpu_is_streamed(storage) &&
           !(cache && cogpu_cache_could_keep(cache, storage->block_bytes));
}

/* What the blocks of a run came to. */
struct tally {
    uint64_t sparse, cached, read;
};

static bool is_wanted(struct cogpu_job *job, const struct cogpu_task *task) {
    if (cogpu_meter_is_cancelled(&task->reading->meter))
        return false;
    pthread_mutex_lock(&job->lock);
    bool wanted = !task->is_lost && (task->reading->error.status == COGPU_OK ||
                                     task->number < task->reading->failed_number);
    pthread_mutex_unlock(&job->lock);
    return wanted;
}

static bool is_any_wanted(struct cogpu_job *job, const struct cogpu_task *tasks, uint32_t count) {
    bool wanted = false;
    for (uint32_t i = 0; !wanted && i < count; i++)
        wanted = is_wanted(job, &tasks[i]);
    return wanted;
}

/* Reads a run of blocks straight into the raster, where they stand one after the other there as in
 * the file. False where they do not, or the read failed: the long way then finds out which of them
 * is to blame. */
static bool read_direct(struct cogpu_task *tasks, uint32_t count, struct tally *tally) {
    const struct cogpu_reading *reading = tasks[0].reading;
    size_t row_bytes = reading->plan.storage->format.row_bytes;
    uint64_t bytes = 0, start = 0;
    uint8_t *to = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const cogpu_block *block = &tasks[i].block;
        uint8_t *here = cogpu_cpu_direct(&reading->plan, block, &reading->raster);
        uint64_t skip = block->source_y * row_bytes, offset = tasks[i].span.offset + skip;
        uint64_t needed = block->height * row_bytes;
        if (!here || tasks[i].reading != reading || skip + needed > tasks[i].span.bytes ||
            (i > 0 && (here != to + bytes || offset != start + bytes)))
            return false;
        if (i == 0) {
            to = here;
            start = offset;
        }
        bytes += needed;
    }
    tally->read += bytes;
    return cogpu_io_read_metered(io_of(tasks), start, (size_t)bytes, to, reading->plan.meter,
                                 NULL) == COGPU_OK;
}

/* True where the block is through, one way or the other. */
static bool stream_block(struct cogpu_job *job, cogpu_seat *seat, struct cogpu_task *task,
                         struct tally *tally) {
    cogpu_error error;
    bool needs_whole = false;
    if (!is_wanted(job, task))
        return true;
    cogpu_status status =
        cogpu_cpu_stream(seat, &task->reading->plan, &task->block, task->span,
                         &task->reading->raster, NULL, &needs_whole, &tally->read, &error);
    if (status != COGPU_OK && !needs_whole)
        cogpu_task_fail(job, task, &error);
    return !needs_whole;
}

static void do_blocks(struct cogpu_job *job, cogpu_seat *seat, struct cogpu_task *tasks,
                      uint32_t count, struct tally *tally) {
    cogpu_error error;
    const uint8_t *bytes = NULL;
    cogpu_status fetched = COGPU_OK;
    bool streamed = cogpu_job_streams(job, tasks[0].reading->plan.storage);
    if (!is_any_wanted(job, tasks, count))
        return;
    if (streamed ? count == 1 && stream_block(job, seat, tasks, tally)
                 : read_direct(tasks, count, tally))
        return;
    if (!streamed || count == 1)
        fetched = fetch(seat, tasks, count, &bytes, &tally->read, &error);
    if (count > 1 && (streamed || fetched != COGPU_OK)) {
        /* Each for itself, so that only those that are cut off fail. */
        for (uint32_t i = 0; i < count; i++)
            do_blocks(job, seat, &tasks[i], 1, tally);
        return;
    }
    for (uint32_t i = 0, same; i < count; i += same) {
        cogpu_status status = fetched;
        for (same = 1; i + same < count && cogpu_task_is_same(&tasks[i + same], &tasks[i]);)
            same++;
        (void)cogpu_meter_poll(&tasks[i].reading->meter);
        if (!is_any_wanted(job, &tasks[i], same))
            continue;
        if (status == COGPU_OK)
            status =
                decode_and_place(job, seat, &tasks[i], same,
                                 bytes + (tasks[i].span.offset - tasks[0].span.offset), &error);
        for (uint32_t k = 0; status != COGPU_OK && k < same; k++)
            cogpu_task_fail(job, &tasks[i + k], &error);
    }
}

static void do_run(void *argument, uint32_t seat_number, uint64_t run) {
    struct cogpu_job *job = argument;
    cogpu_seat *seat = job->seats[seat_number];
    uint32_t first = job->runs[run];
    uint32_t end = run + 1 < job->run_count ? job->runs[run + 1] : job->task_count;
    struct cogpu_task *tasks = &job->tasks[first];
    struct tally tally = {0};
    /* Cached blocks and sparse ones need no fetch; the rest between them is fetched together. */
    for (uint32_t i = 0, pending = 0, counted = 0; i <= end - first; i++) {
        bool at_end = i == end - first;
        bool ready = !at_end && (tasks[i].is_lost || tasks[i].span.bytes == 0);
        bool cached = !at_end && !ready && place_cached(job, seat, &tasks[i]);
        if (!at_end && !ready && !cached) {
            pending++;
            continue;
        }
        if (pending)
            do_blocks(job, seat, &tasks[i - pending], pending, &tally);
        pending = 0;
        tally.cached += cached;
        if (ready && !tasks[i].is_lost) {
            cogpu_cpu_fill(&tasks[i].reading->plan, &tasks[i].block, &tasks[i].reading->raster);
            tally.sparse++;
        }
        uint32_t through = at_end ? i : i + 1;
        cogpu_tasks_count(&tasks[counted], through - counted);
        counted = through;
    }
    cogpu_result *result = &tasks[0].reading->item->result;
    pthread_mutex_lock(&job->lock);
    result->sparse_blocks += tally.sparse;
    result->cached_blocks += tally.cached;
    result->bytes_read += tally.read;
    pthread_mutex_unlock(&job->lock);
}

void cogpu_job_run_on_host(struct cogpu_job *job) {
    cogpu_job_expect(job);
    cogpu_pool_run(job->pool, job->seat_count, job->run_count, do_run, job);
    cogpu_job_forget(job);
}
