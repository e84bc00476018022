/*
 * Takes the readings of a job, hands on a batch of their blocks: what each holds of the window
 * (plan/), where its bytes lie in the file (image/locate.c), and which of them are neighbours
 * there.
 */
#include "api/job.h"

bool cogpu_is_fillable(const struct cogpu_reading *reading, cogpu_status status) {
    return reading->item->request.fill_bad_blocks &&
           (status == COGPU_CORRUPT || status == COGPU_LIMIT || status == COGPU_IO);
}

/* Called under the lock. */
static void note_bad(struct cogpu_task *task, const cogpu_error *error) {
    struct cogpu_reading *reading = task->reading;
    cogpu_result *result = &reading->item->result;
    if (cogpu_is_fillable(reading, error->status)) {
        if (reading->raster.device == COGPU_CPU)
            cogpu_cpu_fill(&reading->plan, &task->block, &reading->raster);
        if (result->bad_blocks++ == 0 || task->number < reading->failed_number) {
            result->first_bad = *error;
            reading->failed_number = task->number;
        }
    } else if (task->number < reading->failed_number || reading->error.status == COGPU_OK) {
        reading->error = *error;
        reading->failed_number = task->number;
    }
}

/* Uncompressed slices begin inside their block, and must not pass its end. */
static cogpu_status cut_slice(struct cogpu_task *task, cogpu_error *error) {
    const cogpu_storage *storage = task->reading->plan.storage;
    uint64_t needed = (uint64_t)task->block.needed_rows * storage->format.row_bytes;
    cogpu_span *span = &task->span;
    if (task->reading->plan.slices == 1 || span->bytes == 0)
        return COGPU_OK;
    if (task->block.skip > span->bytes || needed > span->bytes - task->block.skip)
        return cogpu_fail(error, COGPU_CORRUPT, "the block holds %llu bytes where %llu are due",
                          (unsigned long long)span->bytes,
                          (unsigned long long)(task->block.skip + needed));
    span->offset += task->block.skip;
    span->bytes = needed;
    return COGPU_OK;
}

static cogpu_status locate_one(struct cogpu_task *task, cogpu_error *error) {
    TRY(cogpu_storage_locate(task->reading->plan.storage, task->block.index, 1, &task->span,
                             error));
    return cut_slice(task, error);
}

/* Tasks first .. first+count-1 are blocks of consecutive indices: one look into the arrays. */
static void locate_row(struct cogpu_job *job, uint32_t first, uint32_t count) {
    struct cogpu_task *tasks = &job->tasks[first];
    const cogpu_storage *storage = tasks[0].reading->plan.storage;
    cogpu_span spans[COGPU_BATCH];
    bool together =
        cogpu_storage_locate(storage, tasks[0].block.index, count, spans, NULL) == COGPU_OK;
    for (uint32_t i = 0; i < count; i++) {
        cogpu_error error;
        if (together)
            tasks[i].span = spans[i];
        cogpu_status status =
            together ? cut_slice(&tasks[i], &error) : locate_one(&tasks[i], &error);
        if (status == COGPU_OK)
            continue;
        cogpu_error_place(&error, storage->directory, (int64_t)tasks[i].block.index, -1);
        tasks[i].is_lost = true;
        note_bad(&tasks[i], &error);
    }
}

static void locate(struct cogpu_job *job) {
    for (uint32_t first = 0, end; first < job->task_count; first = end) {
        for (end = first + 1; end < job->task_count; end++)
            if (job->tasks[end].reading != job->tasks[first].reading ||
                job->tasks[end].block.index != job->tasks[end - 1].block.index + 1)
                break;
        locate_row(job, first, end - first);
    }
}

/* A larger block is decoded anew for each who wants a part of it, rather than held once more. */
enum { SHARED_BYTES = 16 << 20 };

bool cogpu_task_is_same(const struct cogpu_task *task, const struct cogpu_task *other) {
    const cogpu_storage *storage = task->reading->plan.storage;
    return storage == other->reading->plan.storage && storage->block_bytes <= SHARED_BYTES &&
           task->block.index == other->block.index && task->span.offset == other->span.offset &&
           task->span.bytes == other->span.bytes && task->span.bytes > 0 && !task->is_lost &&
           !other->is_lost;
}

/* A run holds blocks of one reading, and with each the same block of other readings, if those
 * stand behind it. */
static void group_runs(struct cogpu_job *job) {
    const struct cogpu_task *tasks = job->tasks;
    cogpu_span spans[COGPU_BATCH];
    uint32_t starts[COGPU_BATCH];
    job->run_count = 0;
    for (uint32_t first = 0, end = 0; first < job->task_count; first = end) {
        uint32_t count = 0;
        for (; end < job->task_count; end++) {
            bool is_same = end > first && cogpu_task_is_same(&tasks[end], &tasks[end - 1]);
            if (!is_same && tasks[end].reading != tasks[first].reading)
                break;
            starts[count] = end;
            spans[count] = tasks[end].span;
            count += !is_same;
        }
        for (uint32_t done = 0; done < count;) {
            job->runs[job->run_count++] = starts[done];
            done += cogpu_plan_run(spans + done, count - done);
        }
    }
}

static bool is_through(const struct cogpu_reading *reading) {
    return reading->planned == reading->plan.count || reading->error.status != COGPU_OK ||
           cogpu_meter_is_cancelled(&reading->meter);
}

bool cogpu_job_has_more(const struct cogpu_job *job) {
    for (size_t i = job->current; i < job->count; i++)
        if (!is_through(&job->readings[i]))
            return true;
    return false;
}

/* The next blocks of the readings, up to a batch of them; false when all are through. */
bool cogpu_job_gather(struct cogpu_job *job) {
    job->task_count = 0;
    while (job->current < job->count && job->task_count < COGPU_BATCH) {
        struct cogpu_reading *reading = &job->readings[job->current];
        if (is_through(reading)) {
            job->current++;
            continue;
        }
        uint64_t number = reading->planned++;
        job->tasks[job->task_count++] =
            (struct cogpu_task){.reading = reading,
                                .number = number,
                                .block = cogpu_plan_block(&reading->plan, number)};
    }
    if (job->task_count == 0)
        return false;
    locate(job);
    cogpu_job_order(job);
    group_runs(job);
    return true;
}

void cogpu_tasks_count(const struct cogpu_task *tasks, uint32_t count) {
    for (uint32_t first = 0, end; first < count; first = end) {
        struct cogpu_reading *reading = tasks[first].reading;
        for (end = first + 1; end < count && tasks[end].reading == reading;)
            end++;
        (void)cogpu_meter_add(&reading->meter, end - first);
    }
}

void cogpu_task_fail(struct cogpu_job *job, struct cogpu_task *task, cogpu_error *error) {
    cogpu_error_place(error, task->reading->plan.storage->directory, (int64_t)task->block.index,
                      (int64_t)(task->span.offset & INT64_MAX));
    pthread_mutex_lock(&job->lock);
    note_bad(task, error);
    pthread_mutex_unlock(&job->lock);
}
