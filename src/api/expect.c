/*
 * Takes a batch of located blocks, tells their sources what will be read of them, so that one on
 * the network asks for all of it at once; and, when the batch is through, that it was all.
 */
#include "api/job.h"

#include <stdlib.h>

static const cogpu_io *io_of(const struct cogpu_task *task) {
    return task->reading->plan.storage->tiff->io;
}

/* Of a run, the blocks between those that need no fetch are read in one go, as read_host.c and
 * gpu_fetch.c do it; the latter reads a block again for each who wants it. Hands on how many spans
 * that makes. */
static uint32_t add_run(struct cogpu_job *job, uint32_t run, cogpu_span_of_source *spans) {
    uint32_t first = job->runs[run], count = 0;
    uint32_t end = run + 1 < job->run_count ? job->runs[run + 1] : job->task_count;
    bool goes_on = false;
    for (uint32_t i = first; i < end; i++) {
        const struct cogpu_task *task = &job->tasks[i];
        bool is_read = !task->is_lost && task->span.bytes > 0 &&
                       (job->reader || !cogpu_task_is_cached(job, task));
        bool is_again = job->reader && i > first && cogpu_task_is_same(task, task - 1);
        if (is_read && (!goes_on || is_again))
            spans[count++] = (cogpu_span_of_source){.offset = task->span.offset};
        if (is_read)
            spans[count - 1].bytes = task->span.offset + task->span.bytes - spans[count - 1].offset;
        goes_on = is_read;
    }
    return count;
}

/* By source, by offset, then as they were. */
static int compare_tasks(const void *left, const void *right) {
    const struct cogpu_task *a = left, *b = right;
    uintptr_t a_io = (uintptr_t)io_of(a), b_io = (uintptr_t)io_of(b);
    if (a_io != b_io)
        return a_io < b_io ? -1 : 1;
    if (a->span.offset != b->span.offset)
        return a->span.offset < b->span.offset ? -1 : 1;
    if (a->reading != b->reading)
        return a->reading < b->reading ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* What is asked for comes in the order of the file, and is let go of when its last reader has it:
 * with windows in any other order some would wait for what is asked for last, while all that may be
 * held is held for others. */
void cogpu_job_order(struct cogpu_job *job) {
    job->is_expecting = false;
    for (uint32_t i = 0; i < job->task_count && !job->is_expecting; i++)
        job->is_expecting = cogpu_io_expects(io_of(&job->tasks[i]));
    if (job->is_expecting)
        qsort(job->tasks, job->task_count, sizeof *job->tasks, compare_tasks);
}

/* Without memory nothing is expected, and each read asks for itself. */
void cogpu_job_expect(struct cogpu_job *job) {
    job->expected_count = 0;
    job->expected = NULL;
    if (!job->is_expecting)
        return;
    job->expected = cogpu_allocate(job->run_count * sizeof *job->expected);
    cogpu_span_of_source *spans = cogpu_allocate(job->task_count * sizeof *spans);
    for (uint32_t run = 0; job->expected && spans && run < job->run_count;) {
        const cogpu_io *io = io_of(&job->tasks[job->runs[run]]);
        uint32_t count = 0;
        for (; run < job->run_count && io_of(&job->tasks[job->runs[run]]) == io; run++)
            count += add_run(job, run, spans + count);
        job->expected[job->expected_count++] =
            (struct cogpu_expected){io, cogpu_io_expect(io, spans, count)};
    }
    cogpu_release(spans);
}

void cogpu_job_forget(struct cogpu_job *job) {
    for (uint32_t i = 0; i < job->expected_count; i++)
        cogpu_io_forget(job->expected[i].io, job->expected[i].ticket);
    cogpu_release(job->expected);
    job->expected = NULL;
    job->expected_count = 0;
}
