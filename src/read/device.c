/* A batch whose rasters are on a device: handed to the GPU pipeline (gpu/read_pipeline.h). */
#include "read/job.h"

/* Called by the pipeline, from any thread. True: the block is filled. */
static bool record_device_failure(void *user, uint32_t number, const cogpu_error *error) {
    struct cogpu_read_job *job = user;
    struct cogpu_read_task *task = &job->batch.tasks[number];
    cogpu_error located = *error;
    cogpu_task_fail(job, task, &located);
    return cogpu_is_fillable(task->window, error->status);
}

static cogpu_gpu_read_task device_task_of(const struct cogpu_read_task *task) {
    bool fills = task->is_lost && task->window->fills_bad_blocks;
    cogpu_gpu_read_task device_task = {.plan = &task->window->plan,
                                       .raster = &task->window->raster,
                                       .block = task->block,
                                       .span = task->span,
                                       .key = cogpu_task_cache_key(task),
                                       .state = task->is_lost && !fills ? COGPU_BLOCK_FAILED
                                                                        : COGPU_BLOCK_PENDING};
    if (fills)
        device_task.span.bytes = 0;
    return device_task;
}

cogpu_status cogpu_batch_start_on_device(struct cogpu_read_job *job, bool is_pending,
                                         cogpu_error *error) {
    struct cogpu_read_batch *batch = &job->batch;
    cogpu_gpu_read_task *tasks = cogpu_allocate(batch->task_count * sizeof *tasks);
    if (!tasks)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for %u blocks",
                          batch->task_count);
    for (uint32_t i = 0; i < batch->task_count; i++)
        tasks[i] = device_task_of(&batch->tasks[i]);
    batch->device_tasks = tasks;
    batch->device_job = (cogpu_gpu_read_job){.tasks = tasks,
                                             .count = batch->task_count,
                                             .pool = job->pool,
                                             .workers = job->workers,
                                             .worker_count = job->worker_count,
                                             .failed = record_device_failure,
                                             .user = job,
                                             .observer = job->observer,
                                             .is_pending = is_pending,
                                             .times = batch->tasks[0].window->result};
    cogpu_batch_start_prefetch(job);
    cogpu_status status = cogpu_gpu_read_start(batch->device, &batch->device_job, error);
    batch->is_on_device = status == COGPU_OK;
    if (status != COGPU_OK) {
        cogpu_batch_end_prefetch(batch);
        cogpu_release(tasks);
    }
    return status;
}

cogpu_status cogpu_batch_finish_on_device(struct cogpu_read_job *job, cogpu_error *error) {
    struct cogpu_read_batch *batch = &job->batch;
    cogpu_status status = cogpu_gpu_read_finish(batch->device, &batch->device_job, error);
    batch->is_on_device = false;
    cogpu_batch_end_prefetch(batch);
    for (uint32_t i = 0; i < batch->task_count; i++) {
        const struct cogpu_read_task *task = &batch->tasks[i];
        const cogpu_gpu_read_task *done = &batch->device_tasks[i];
        cogpu_result *result = task->window->result;
        result->sparse_blocks += task->span.bytes == 0 && !task->is_lost;
        bool is_decoded = done->state == COGPU_BLOCK_DECODED;
        bool is_cached = is_decoded && done->source == COGPU_SOURCE_CACHED;
        bool is_fetched = !task->is_lost && !done->is_repeat && !is_cached;
        result->device_cached_blocks += is_cached;
        result->bytes_read += is_fetched ? task->span.bytes : 0;
        result->device_blocks += is_decoded;
        result->cpu_fallback_blocks += done->state == COGPU_BLOCK_REFUSED;
        result->gds_bytes +=
            is_fetched && is_decoded && done->source == COGPU_SOURCE_CUFILE ? task->span.bytes : 0;
    }
    cogpu_release(batch->device_tasks);
    return status;
}
