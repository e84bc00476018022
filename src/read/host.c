/*
 * A batch decoded by the CPU: threads share its runs. For each run a thread unpacks cached blocks,
 * fills sparse ones, fetches the bytes of the others, decodes them and unpacks them into the
 * rasters (src/cpu).
 */
#include "read/chunks.h"

#include <string.h>

/* ---- decode -------------------------------------------------------------------------------- */

/* All rows of a decoded block, restored. */
static void restore_block(const cogpu_storage *storage, const cogpu_block *block, uint8_t *decoded,
                          uint8_t *to) {
    size_t row_bytes = storage->format.row_bytes;
    if (!cogpu_cpu_has_filters(storage))
        memcpy(to, decoded, block->needed_rows * row_bytes);
    else
        cogpu_cpu_undo_filters(storage, decoded, block->needed_rows, storage->block_width, to,
                               (int64_t)row_bytes, false);
}

cogpu_status cogpu_tasks_unpack(struct cogpu_read_job *job, cogpu_worker *worker,
                                struct cogpu_read_task *tasks, uint32_t count, uint8_t *decoded,
                                cogpu_error *error) {
    const cogpu_storage *storage = tasks[0].window->plan.storage;
    const cogpu_block *block = &tasks[0].block;
    uint8_t *restored = NULL;
    bool filters_undone = !cogpu_cpu_has_filters(storage);
    size_t bytes = block->needed_rows * storage->format.row_bytes;
    cogpu_cached_block *cached = cogpu_task_reserve_cached(job, tasks);
    if (cached) {
        restored = cached->data;
    } else if (count > 1 && !filters_undone) {
        TRY(cogpu_worker_reserve(&worker->shared, &worker->shared_bytes, bytes, error));
        restored = worker->shared;
    }
    if (restored)
        restore_block(storage, block, decoded, restored);
    cogpu_status status = COGPU_OK;
    for (uint32_t i = 0; status == COGPU_OK && i < count; i++)
        status = cogpu_cpu_unpack(worker, &tasks[i].window->plan, &tasks[i].block,
                                  restored ? restored : decoded, restored || filters_undone,
                                  &tasks[i].window->raster, error);
    if (cached)
        cogpu_block_cache_insert(job->context->cache, cached);
    return status;
}

static cogpu_status decode_and_unpack(struct cogpu_read_job *job, cogpu_worker *worker,
                                      struct cogpu_read_task *tasks, uint32_t count,
                                      const uint8_t *stored, cogpu_error *error) {
    uint8_t *decoded = NULL;
    TRY(cogpu_cpu_decode(worker, tasks[0].window->plan.storage, &tasks[0].block, stored,
                         (size_t)tasks[0].span.bytes, &decoded, error));
    return cogpu_tasks_unpack(job, worker, tasks, count, decoded, error);
}

void cogpu_tasks_decode(struct cogpu_read_job *job, cogpu_worker *worker,
                        struct cogpu_read_task *tasks, uint32_t count, const uint8_t *stored) {
    cogpu_error error;
    if (decode_and_unpack(job, worker, tasks, count, stored, &error) != COGPU_OK)
        cogpu_tasks_fail(job, tasks, count, &error);
}

void cogpu_tasks_fail(struct cogpu_read_job *job, struct cogpu_read_task *tasks, uint32_t count,
                      cogpu_error *error) {
    for (uint32_t i = 0; i < count; i++)
        cogpu_task_fail(job, &tasks[i], error);
}

/* Whether the block can still matter: its window is neither cancelled nor failed at an earlier
 * block. */
static bool is_wanted(struct cogpu_read_job *job, const struct cogpu_read_task *task) {
    const struct cogpu_read_window *window = task->window;
    if (cogpu_meter_is_cancelled(&window->meter))
        return false;
    pthread_mutex_lock(&job->lock);
    bool is_needed = !task->is_lost &&
                     (window->error.status == COGPU_OK || task->number < window->failed_number);
    pthread_mutex_unlock(&job->lock);
    return is_needed;
}

bool cogpu_tasks_are_wanted(struct cogpu_read_job *job, const struct cogpu_read_task *tasks,
                            uint32_t count) {
    (void)cogpu_meter_poll(&tasks[0].window->meter);
    for (uint32_t i = 0; i < count; i++)
        if (is_wanted(job, &tasks[i]))
            return true;
    return false;
}

uint32_t cogpu_tasks_of_block(const struct cogpu_read_task *tasks, uint32_t count) {
    uint32_t same = 1;
    while (same < count && cogpu_task_is_same_block(&tasks[same], &tasks[0]))
        same++;
    return same;
}

/* `bytes` begin with those of the first task. */
static void decode_blocks(struct cogpu_read_job *job, cogpu_worker *worker,
                          struct cogpu_read_task *tasks, uint32_t count, const uint8_t *bytes) {
    for (uint32_t i = 0, same; i < count; i += same) {
        same = cogpu_tasks_of_block(&tasks[i], count - i);
        if (cogpu_tasks_are_wanted(job, &tasks[i], same))
            cogpu_tasks_decode(job, worker, &tasks[i], same,
                               bytes + (tasks[i].span.offset - tasks[0].span.offset));
    }
}

/* ---- fetch --------------------------------------------------------------------------------- */

cogpu_status cogpu_tasks_fetch(const struct cogpu_read_task *first, const cogpu_fetch *fetch,
                               uint8_t **memory, size_t *capacity, const uint8_t **bytes,
                               uint64_t *read, cogpu_error *error) {
    const cogpu_read_plan *plan = &first->window->plan;
    const cogpu_io *io = cogpu_task_io(first);
    if (fetch->bytes == first->span.bytes)
        TRY(cogpu_cpu_check_block_bytes(plan->storage, fetch->bytes, 0, error));
    *bytes = cogpu_io_mapped(io, fetch->offset);
    if (*bytes)
        return COGPU_OK;
    size_t count = (size_t)fetch->bytes;
    TRY(cogpu_worker_reserve(memory, capacity, count, error));
    *bytes = *memory;
    *read += count;
    return cogpu_io_read_metered(io, fetch->offset, count, *memory, plan->meter, error);
}

static cogpu_status fetch_bytes(cogpu_worker *worker, const struct cogpu_read_task *first,
                                const cogpu_fetch *fetch, const uint8_t **bytes, uint64_t *read,
                                cogpu_error *error) {
    return cogpu_tasks_fetch(first, fetch, &worker->stored, &worker->stored_bytes, bytes, read,
                             error);
}

/* Reads uncompressed blocks straight into the raster, if they follow each other there as in the
 * file. False if they do not, or the read failed. */
static bool read_into_raster(struct cogpu_read_task *tasks, uint32_t count, uint64_t *read) {
    const struct cogpu_read_window *window = tasks[0].window;
    size_t row_bytes = window->plan.storage->format.row_bytes;
    uint64_t bytes = 0, start = 0;
    uint8_t *to = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const cogpu_block *block = &tasks[i].block;
        uint8_t *here = cogpu_cpu_direct_target(&window->plan, block, &window->raster);
        uint64_t skip = block->source_y * row_bytes, offset = tasks[i].span.offset + skip;
        uint64_t needed = block->height * row_bytes;
        if (!here || tasks[i].window != window || skip + needed > tasks[i].span.bytes ||
            (i > 0 && (here != to + bytes || offset != start + bytes)))
            return false;
        if (i == 0) {
            to = here;
            start = offset;
        }
        bytes += needed;
    }
    *read += bytes;
    return cogpu_io_read_metered(cogpu_task_io(tasks), start, (size_t)bytes, to, window->plan.meter,
                                 NULL) == COGPU_OK;
}

/* Decodes a block as it is read, by several threads if possible. False if the codec needs all of
 * its bytes at once. */
static bool decode_block_stream(struct cogpu_read_job *job, cogpu_worker *worker,
                                struct cogpu_read_task *task, uint64_t *read) {
    cogpu_error error;
    bool needs_whole = false;
    if (cogpu_task_decode_chunks(job, task, read))
        return true;
    cogpu_status status = cogpu_cpu_stream(worker, &task->window->plan, &task->block, task->span,
                                           &task->window->raster, NULL, &needs_whole, read, &error);
    if (status != COGPU_OK && !needs_whole)
        cogpu_task_fail(job, task, &error);
    return !needs_whole;
}

static void read_single_block(struct cogpu_read_job *job, cogpu_worker *worker,
                              struct cogpu_read_task *task, uint64_t *read) {
    cogpu_error error;
    const uint8_t *bytes = NULL;
    const cogpu_fetch fetch = cogpu_fetch_start(0, task->span);
    if (fetch_bytes(worker, task, &fetch, &bytes, read, &error) == COGPU_OK) {
        decode_blocks(job, worker, task, 1, bytes);
        return;
    }
    (void)cogpu_meter_poll(&task->window->meter);
    if (is_wanted(job, task))
        cogpu_task_fail(job, task, &error);
}

static void read_streamed_blocks(struct cogpu_read_job *job, cogpu_worker *worker,
                                 struct cogpu_read_task *tasks, uint32_t count, uint64_t *read) {
    for (uint32_t i = 0; i < count; i++)
        if (is_wanted(job, &tasks[i]) &&
            !cogpu_task_stream_cached(job, worker, &tasks[i], decode_block_stream, read) &&
            !decode_block_stream(job, worker, &tasks[i], read))
            read_single_block(job, worker, &tasks[i], read);
}

/* Each block is read alone, so that only those fail whose bytes are missing. */
void cogpu_tasks_read_singly(struct cogpu_read_job *job, cogpu_worker *worker,
                             struct cogpu_read_task *tasks, uint32_t count, uint64_t *read) {
    for (uint32_t i = 0; i < count; i++)
        if (is_wanted(job, &tasks[i]) && !read_into_raster(&tasks[i], 1, read))
            read_single_block(job, worker, &tasks[i], read);
}

void cogpu_tasks_read(struct cogpu_read_job *job, cogpu_worker *worker,
                      struct cogpu_read_task *tasks, const cogpu_fetch *fetch, uint64_t *read) {
    const uint8_t *bytes = NULL;
    if (!cogpu_tasks_are_wanted(job, tasks, fetch->count))
        return;
    if (cogpu_job_streams(job, tasks[0].window->plan.storage)) {
        read_streamed_blocks(job, worker, tasks, fetch->count, read);
        return;
    }
    if (read_into_raster(tasks, fetch->count, read))
        return;
    if (fetch->count == 1) {
        if (!cogpu_task_decode_chunks(job, tasks, read))
            read_single_block(job, worker, tasks, read);
        return;
    }
    if (fetch_bytes(worker, tasks, fetch, &bytes, read, NULL) == COGPU_OK)
        decode_blocks(job, worker, tasks, fetch->count, bytes);
    else
        cogpu_tasks_read_singly(job, worker, tasks, fetch->count, read);
}

/* ---- runs ---------------------------------------------------------------------------------- */

/* Unpacks a block that is cached and fills a sparse one. True if its bytes have to be fetched. */
static bool needs_fetch(struct cogpu_read_job *job, cogpu_worker *worker,
                        struct cogpu_read_task *task, struct cogpu_run_counts *counts) {
    if (task->is_lost)
        return false;
    if (task->span.bytes == 0) {
        cogpu_cpu_fill(&task->window->plan, &task->block, &task->window->raster);
        counts->sparse++;
        return false;
    }
    if (!cogpu_task_unpack_cached(job, worker, task))
        return true;
    counts->cached++;
    return false;
}

void cogpu_run_begin(struct cogpu_read_job *job, cogpu_worker *worker, uint32_t number,
                     struct cogpu_block_run *run) {
    const struct cogpu_read_batch *batch = &job->batch;
    *run =
        (struct cogpu_block_run){.tasks = &batch->tasks[batch->runs[number]],
                                 .count = cogpu_batch_run_end(batch, number) - batch->runs[number]};
    for (uint32_t i = 0; i < run->count; i++) {
        struct cogpu_read_task *task = &run->tasks[i];
        task->needs_fetch = needs_fetch(job, worker, task, &run->counts);
        if (!task->needs_fetch)
            cogpu_tasks_report_done(task, 1);
    }
}

bool cogpu_run_next_fetch(struct cogpu_block_run *run) {
    return cogpu_tasks_next_fetch(run->tasks, run->count, &run->fetch);
}

void cogpu_run_end(struct cogpu_read_job *job, const struct cogpu_block_run *run) {
    cogpu_result *result = run->tasks[0].window->result;
    pthread_mutex_lock(&job->lock);
    result->sparse_blocks += run->counts.sparse;
    result->cached_blocks += run->counts.cached;
    result->bytes_read += run->counts.bytes_read;
    pthread_mutex_unlock(&job->lock);
}

static void read_block_run(void *argument, uint32_t worker_number, uint64_t number) {
    struct cogpu_read_job *job = argument;
    cogpu_worker *worker = job->workers[worker_number];
    struct cogpu_block_run run;
    cogpu_run_begin(job, worker, (uint32_t)number, &run);
    while (cogpu_run_next_fetch(&run)) {
        struct cogpu_read_task *tasks = &run.tasks[run.fetch.first];
        cogpu_tasks_read(job, worker, tasks, &run.fetch, &run.counts.bytes_read);
        cogpu_tasks_report_done(tasks, run.fetch.count);
    }
    cogpu_run_end(job, &run);
}

void cogpu_batch_read_on_host(struct cogpu_read_job *job) {
    cogpu_batch_start_prefetch(job);
    if (cogpu_batch_uses_lanes(job))
        cogpu_batch_read_in_lanes(job);
    else
        cogpu_pool_run(job->pool, job->worker_count, job->batch.run_count, read_block_run, job);
    cogpu_batch_end_prefetch(&job->batch);
}
