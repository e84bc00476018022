/*
 * Batches: the next blocks of the windows in a queue, their byte ranges in the file, and runs of
 * neighbouring blocks; then the batch is decoded by the CPU (host.c) or the device (device.c).
 */
#include "read/job.h"

#include <stdlib.h>

const cogpu_io *cogpu_task_io(const struct cogpu_read_task *task) {
    return task->window->plan.storage->tiff->io;
}

uint32_t cogpu_batch_run_end(const struct cogpu_read_batch *batch, uint32_t run) {
    return run + 1 < batch->run_count ? batch->runs[run + 1] : batch->task_count;
}

/* ---- results of blocks --------------------------------------------------------------------- */

bool cogpu_is_fillable(const struct cogpu_read_window *window, cogpu_status status) {
    return window->fills_bad_blocks &&
           (status == COGPU_CORRUPT || status == COGPU_LIMIT_EXCEEDED || status == COGPU_IO_ERROR);
}

/* The first bad block of a window, by number, is the one that is reported, whichever thread finds
 * it. Called under the lock. */
static void record_bad_block(struct cogpu_read_task *task, const cogpu_error *error) {
    struct cogpu_read_window *window = task->window;
    cogpu_result *result = window->result;
    if (cogpu_is_fillable(window, error->status)) {
        if (!window->device)
            cogpu_cpu_fill(&window->plan, &task->block, &window->raster);
        if (result->bad_blocks++ == 0 || task->number < window->failed_number) {
            result->first_bad = *error;
            window->failed_number = task->number;
        }
    } else if (task->number < window->failed_number || window->error.status == COGPU_OK) {
        window->error = *error;
        window->failed_number = task->number;
    }
}

void cogpu_task_fail(struct cogpu_read_job *job, struct cogpu_read_task *task, cogpu_error *error) {
    cogpu_error_locate(error, task->window->plan.storage->directory, (int64_t)task->block.index,
                       (int64_t)(task->span.offset & INT64_MAX));
    pthread_mutex_lock(&job->lock);
    record_bad_block(task, error);
    pthread_mutex_unlock(&job->lock);
}

void cogpu_tasks_report_done(const struct cogpu_read_task *tasks, uint32_t count) {
    for (uint32_t first = 0, end; first < count; first = end) {
        struct cogpu_read_window *window = tasks[first].window;
        for (end = first + 1; end < count && tasks[end].window == window;)
            end++;
        (void)cogpu_meter_add(&window->meter, end - first);
    }
}

/* ---- byte ranges --------------------------------------------------------------------------- */

/* A slice of an uncompressed block begins inside the block and must not pass its end. */
static cogpu_status narrow_to_slice(struct cogpu_read_task *task, cogpu_error *error) {
    const cogpu_read_plan *plan = &task->window->plan;
    uint64_t needed = (uint64_t)task->block.needed_rows * plan->storage->format.row_bytes;
    cogpu_span *span = &task->span;
    if (plan->slices == 1 || span->bytes == 0)
        return COGPU_OK;
    if (task->block.skip > span->bytes || needed > span->bytes - task->block.skip)
        return cogpu_fail(error, COGPU_CORRUPT, "the block has %llu bytes, expected at least %llu",
                          (unsigned long long)span->bytes,
                          (unsigned long long)(task->block.skip + needed));
    span->offset += task->block.skip;
    span->bytes = needed;
    return COGPU_OK;
}

static cogpu_status locate_block(struct cogpu_read_task *task, cogpu_error *error) {
    TRY(cogpu_storage_locate(task->window->plan.storage, task->block.index, 1, &task->span, error));
    return narrow_to_slice(task, error);
}

/* Blocks of consecutive indices are looked up together. If that fails, each is looked up alone, so
 * that only those without a valid entry fail. */
static void locate_blocks(struct cogpu_read_task *tasks, uint32_t count) {
    const cogpu_storage *storage = tasks[0].window->plan.storage;
    cogpu_span spans[COGPU_BATCH_BLOCKS];
    bool is_located =
        cogpu_storage_locate(storage, tasks[0].block.index, count, spans, NULL) == COGPU_OK;
    for (uint32_t i = 0; i < count; i++) {
        cogpu_error error;
        if (is_located)
            tasks[i].span = spans[i];
        cogpu_status status =
            is_located ? narrow_to_slice(&tasks[i], &error) : locate_block(&tasks[i], &error);
        if (status == COGPU_OK)
            continue;
        cogpu_error_locate(&error, storage->directory, (int64_t)tasks[i].block.index, -1);
        tasks[i].is_lost = true;
        record_bad_block(&tasks[i], &error);
    }
}

static void locate_batch(struct cogpu_read_batch *batch) {
    const struct cogpu_read_task *tasks = batch->tasks;
    for (uint32_t first = 0, end; first < batch->task_count; first = end) {
        for (end = first + 1; end < batch->task_count; end++)
            if (tasks[end].window != tasks[first].window ||
                tasks[end].block.index != tasks[end - 1].block.index + 1)
                break;
        locate_blocks(&batch->tasks[first], end - first);
    }
}

/* ---- runs ---------------------------------------------------------------------------------- */

/* A larger block is decoded again for each window that needs it, instead of copied. */
enum { SHARED_BLOCK_BYTES = 16 << 20 };

bool cogpu_task_is_same_block(const struct cogpu_read_task *task,
                              const struct cogpu_read_task *other) {
    const cogpu_storage *storage = task->window->plan.storage;
    return storage == other->window->plan.storage && storage->block_bytes <= SHARED_BLOCK_BYTES &&
           task->block.index == other->block.index && task->span.offset == other->span.offset &&
           task->span.bytes == other->span.bytes && task->span.bytes > 0 && !task->is_lost &&
           !other->is_lost;
}

/* A run has blocks of one window. The same block of other windows belongs to it if it follows. */
static void group_runs(struct cogpu_read_batch *batch) {
    const struct cogpu_read_task *tasks = batch->tasks;
    cogpu_span spans[COGPU_BATCH_BLOCKS];
    uint32_t starts[COGPU_BATCH_BLOCKS];
    batch->run_count = 0;
    for (uint32_t first = 0, end = 0; first < batch->task_count; first = end) {
        uint32_t count = 0;
        for (; end < batch->task_count; end++) {
            bool is_same = end > first && cogpu_task_is_same_block(&tasks[end], &tasks[end - 1]);
            if (!is_same && tasks[end].window != tasks[first].window)
                break;
            starts[count] = end;
            spans[count] = tasks[end].span;
            count += !is_same;
        }
        for (uint32_t done = 0; done < count;) {
            batch->runs[batch->run_count++] = starts[done];
            done += cogpu_plan_run(spans + done, count - done);
        }
    }
}

bool cogpu_tasks_next_fetch(const struct cogpu_read_task *tasks, uint32_t count,
                            cogpu_fetch *fetch) {
    uint32_t i = fetch->first + fetch->count;
    while (i < count && !tasks[i].needs_fetch)
        i++;
    if (i == count)
        return false;
    *fetch = cogpu_fetch_start(i, tasks[i].span);
    for (i++; i < count && tasks[i].needs_fetch; i++)
        cogpu_fetch_extend(fetch, tasks[i].span);
    return true;
}

/* ---- the batch ----------------------------------------------------------------------------- */

static bool is_window_complete(const struct cogpu_read_window *window) {
    return window->planned == window->plan.count || window->error.status != COGPU_OK ||
           cogpu_meter_is_cancelled(&window->meter);
}

static bool has_more(const struct cogpu_read_queue *queue) {
    for (size_t i = queue->current; i < queue->count; i++)
        if (!is_window_complete(queue->windows[i]))
            return true;
    return false;
}

/* By file, directory, and first block. */
static int compare_windows(const void *left, const void *right) {
    const struct cogpu_read_window *a = *(struct cogpu_read_window *const *)left,
                                   *b = *(struct cogpu_read_window *const *)right;
    const cogpu_read_plan *x = &a->plan, *y = &b->plan;
    const uint64_t keys[][2] = {{cogpu_file_number(a->file), cogpu_file_number(b->file)},
                                {x->storage->tiff->number, y->storage->tiff->number},
                                {x->storage->directory, y->storage->directory},
                                {x->first_slice, y->first_slice},
                                {x->first_column, y->first_column}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return (a > b) - (a < b);
}

/* Windows that share blocks come together, so that most of these blocks are decoded once for all: a
 * device shares a block among the tasks of its batch. */
static void sort_for_device(const struct cogpu_read_queue *queue) {
    if (queue->device && queue->count > 1)
        qsort(queue->windows, queue->count, sizeof *queue->windows, compare_windows);
}

/* Takes the next blocks of the windows; false if there are none. */
static bool fill_batch(struct cogpu_read_queue *queue, struct cogpu_read_batch *batch) {
    batch->device = queue->device;
    batch->task_count = 0;
    while (queue->current < queue->count && batch->task_count < COGPU_BATCH_BLOCKS) {
        struct cogpu_read_window *window = queue->windows[queue->current];
        if (is_window_complete(window)) {
            queue->current++;
            continue;
        }
        uint64_t number = window->planned++;
        batch->tasks[batch->task_count++] = (struct cogpu_read_task){
            .window = window, .number = number, .block = cogpu_plan_block(&window->plan, number)};
    }
    return batch->task_count > 0;
}

cogpu_status cogpu_read_batches(struct cogpu_read_job *job, struct cogpu_read_queue *queue,
                                cogpu_error *error) {
    struct cogpu_read_batch *batch = &job->batch;
    sort_for_device(queue);
    for (size_t i = 0; i < queue->count; i++)
        queue->windows[i]->result->blocks += queue->windows[i]->plan.count;
    while (fill_batch(queue, batch)) {
        locate_batch(batch);
        cogpu_batch_sort_for_prefetch(batch);
        group_runs(batch);
        if (!batch->device) {
            cogpu_batch_read_on_host(job);
            continue;
        }
        TRY(cogpu_batch_start_on_device(job, queue->may_stay_pending, error));
        if (queue->may_stay_pending && !has_more(queue))
            break;
        TRY(cogpu_batch_finish_on_device(job, error));
    }
    return COGPU_OK;
}
