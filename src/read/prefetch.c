/*
 * Prefetch: announces the byte ranges of a batch to its sources, so that a source on the network
 * requests all of them at once, and releases them when the batch is done.
 */
#include "read/job.h"

#include <stdlib.h>

/* By source, by offset, then as they were. */
static int compare_tasks(const void *left, const void *right) {
    const struct cogpu_read_task *a = left, *b = right;
    uintptr_t a_io = (uintptr_t)cogpu_task_io(a), b_io = (uintptr_t)cogpu_task_io(b);
    if (a_io != b_io)
        return a_io < b_io ? -1 : 1;
    if (a->span.offset != b->span.offset)
        return a->span.offset < b->span.offset ? -1 : 1;
    if (a->window != b->window)
        return a->window < b->window ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Ranges arrive in the order of the file, and each is freed when its last reader has it. Blocks in
 * any other order could wait for a range that is requested last, while earlier ranges, which other
 * blocks need, take all the memory that the source may use. */
void cogpu_batch_sort_for_prefetch(struct cogpu_read_batch *batch) {
    batch->can_prefetch = false;
    for (uint32_t i = 0; i < batch->task_count && !batch->can_prefetch; i++)
        batch->can_prefetch = cogpu_io_can_prefetch(cogpu_task_io(&batch->tasks[i]));
    if (batch->can_prefetch)
        qsort(batch->tasks, batch->task_count, sizeof *batch->tasks, compare_tasks);
}

/* Whether a cache has the block: stored, of the device, or decoded. */
static bool is_cached(struct cogpu_read_job *job, const struct cogpu_read_task *task) {
    return job->batch.device
               ? cogpu_gpu_device_has_cached(job->batch.device, cogpu_task_cache_key(task))
               : cogpu_task_is_cached(job, task);
}

/* The ranges that a run will fetch, as far as is known before it is read. Returns their count. */
static uint32_t list_run_ranges(struct cogpu_read_job *job, uint32_t run,
                                cogpu_byte_range *ranges) {
    const struct cogpu_read_batch *batch = &job->batch;
    struct cogpu_read_task *tasks = &batch->tasks[batch->runs[run]];
    uint32_t count = cogpu_batch_run_end(batch, run) - batch->runs[run], range_count = 0;
    cogpu_fetch fetch = {0};
    for (uint32_t i = 0; i < count; i++)
        tasks[i].needs_fetch =
            !tasks[i].is_lost && tasks[i].span.bytes > 0 && !is_cached(job, &tasks[i]);
    while (cogpu_tasks_next_fetch(tasks, count, &fetch))
        ranges[range_count++] = (cogpu_byte_range){.offset = fetch.offset, .bytes = fetch.bytes};
    return range_count;
}

static const cogpu_io *run_io(const struct cogpu_read_batch *batch, uint32_t run) {
    return cogpu_task_io(&batch->tasks[batch->runs[run]]);
}

/* Without memory nothing is prefetched, and each read makes its own request. */
void cogpu_batch_start_prefetch(struct cogpu_read_job *job) {
    struct cogpu_read_batch *batch = &job->batch;
    batch->prefetch_count = 0;
    batch->prefetches = NULL;
    if (!batch->can_prefetch)
        return;
    batch->prefetches = cogpu_allocate(batch->run_count * sizeof *batch->prefetches);
    cogpu_byte_range *ranges = cogpu_allocate(batch->task_count * sizeof *ranges);
    for (uint32_t run = 0; batch->prefetches && ranges && run < batch->run_count;) {
        const cogpu_io *io = run_io(batch, run);
        uint32_t count = 0;
        for (; run < batch->run_count && run_io(batch, run) == io; run++)
            count += list_run_ranges(job, run, ranges + count);
        batch->prefetches[batch->prefetch_count++] =
            (struct cogpu_read_prefetch){io, cogpu_io_prefetch(io, ranges, count)};
    }
    cogpu_release(ranges);
}

void cogpu_batch_end_prefetch(struct cogpu_read_batch *batch) {
    for (uint32_t i = 0; i < batch->prefetch_count; i++)
        cogpu_io_end_prefetch(batch->prefetches[i].io, batch->prefetches[i].ticket);
    cogpu_release(batch->prefetches);
    batch->prefetches = NULL;
    batch->prefetch_count = 0;
}
