/*
 * A batch decoded by the CPU, several blocks at once by each thread (cogpu_lane_codec).
 *
 * Threads share the runs of the batch, but a thread keeps its lanes when it goes on to the next
 * run: a lane whose block is done takes the next one, so that all are busy until the batch ends.
 *
 *     run 0                  run 2                    of thread 0; thread 1 has runs 1 and 3
 *     block 0  block 1       block 0  block 1 ...
 *     |        |             |        |
 *     lane 0   lane 1        lane 2   lane 0, as soon as it is free
 *
 * The bytes of a fetch are kept while a lane decodes from them. Blocks that do not suit, or that
 * the lanes refuse, are decoded by the thread alone, which also tells what is wrong with them.
 */
#include "read/job.h"

#include <stdatomic.h>

struct lane_batch {
    struct cogpu_read_job *job;
    const cogpu_lane_codec *codec;
    bool is_mostly_literals; /* of most of its blocks, presumably */
    atomic_uint next_run;
};

/* A block in a lane. */
struct lane_block {
    struct cogpu_read_task *tasks; /* that need it; NULL: the lane is free */
    uint32_t count;
    const uint8_t *stored;
    uint32_t fetch; /* where its bytes are */
};

struct lane_reader {
    cogpu_lane_queue queue;
    struct lane_batch *batch;
    cogpu_worker *worker;
    struct cogpu_block_run run;
    bool is_in_run;
    uint32_t next;                            /* block of the current fetch */
    const uint8_t *bytes;                     /* of the current fetch; NULL: it is done */
    uint32_t fetch;                           /* where they are */
    uint32_t fetch_users[COGPU_LANE_FETCHES]; /* lanes that decode from there */
    struct lane_block blocks[CODEC_LANES];
};

static bool has_lanes(const struct cogpu_read_job *job, const struct cogpu_read_window *window) {
    const cogpu_read_plan *plan = &window->plan;
    return cogpu_cpu_can_use_lanes(plan->storage) && !cogpu_job_streams(job, plan->storage) &&
           cogpu_job_has_lane_memory(job, plan);
}

bool cogpu_batch_uses_lanes(const struct cogpu_read_job *job) {
    const struct cogpu_read_batch *batch = &job->batch;
    const struct cogpu_read_window *window = NULL;
    uint64_t blocks = 0;
    bool suits = false;
    for (uint32_t i = 0; i < batch->task_count; i++) {
        if (batch->tasks[i].window != window) {
            window = batch->tasks[i].window;
            suits = has_lanes(job, window);
        }
        blocks += suits && batch->tasks[i].span.bytes > 0;
    }
    return blocks >= (uint64_t)CODEC_LANES * job->worker_count;
}

/* ---- fetches -------------------------------------------------------------------------------- */

static uint32_t find_free_fetch(const struct lane_reader *reader) {
    uint32_t i = 0;
    while (i + 1 < COGPU_LANE_FETCHES && reader->fetch_users[i] > 0)
        i++;
    return i;
}

/* Moves to the next fetch of the current run, or of the next one. False at the end of the batch. */
static bool find_next_fetch(struct lane_reader *reader) {
    struct cogpu_read_job *job = reader->batch->job;
    for (;;) {
        if (reader->is_in_run && cogpu_run_next_fetch(&reader->run))
            return true;
        if (reader->is_in_run)
            cogpu_run_end(job, &reader->run);
        const uint32_t number = atomic_fetch_add(&reader->batch->next_run, 1);
        reader->is_in_run = number < job->batch.run_count;
        if (!reader->is_in_run)
            return false;
        cogpu_run_begin(job, reader->worker, number, &reader->run);
    }
}

/* Fetches bytes for lanes. What has none is read at once. False at the end of the batch. */
static bool open_next_fetch(struct lane_reader *reader) {
    struct cogpu_read_job *job = reader->batch->job;
    cogpu_worker *worker = reader->worker;
    struct cogpu_block_run *run = &reader->run;
    while (find_next_fetch(reader)) {
        struct cogpu_read_task *tasks = &run->tasks[run->fetch.first];
        const uint32_t fetch = reader->fetch = find_free_fetch(reader);
        reader->next = 0;
        if (!has_lanes(job, tasks->window) ||
            tasks->window->plan.storage->codec->lanes != reader->batch->codec)
            cogpu_tasks_read(job, worker, tasks, &run->fetch, &run->counts.bytes_read);
        else if (cogpu_tasks_fetch(tasks, &run->fetch, &worker->lane_stored[fetch],
                                   &worker->lane_stored_bytes[fetch], &reader->bytes,
                                   &run->counts.bytes_read, NULL) == COGPU_OK)
            return true;
        else
            cogpu_tasks_read_singly(job, worker, tasks, run->fetch.count, &run->counts.bytes_read);
        reader->bytes = NULL;
        cogpu_tasks_report_done(tasks, run->fetch.count);
    }
    return false;
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* Gives a block to a free lane. False if it does not suit: it is decoded alone then. */
static bool fill_lane(struct lane_reader *reader, struct cogpu_read_task *tasks, uint32_t count,
                      const uint8_t *stored, cogpu_lane_block *block) {
    const cogpu_storage *storage = tasks[0].window->plan.storage;
    const size_t stored_bytes = (size_t)tasks[0].span.bytes;
    cogpu_worker *worker = reader->worker;
    uint32_t lane = 0;
    size_t capacity;
    while (reader->blocks[lane].tasks)
        lane++;
    if (cogpu_cpu_decoded_capacity(storage, &tasks[0].block, stored_bytes, &capacity, NULL) !=
            COGPU_OK ||
        !storage->codec->lanes->suits(stored_bytes, capacity) ||
        cogpu_worker_reserve(&worker->lane_decoded[lane], &worker->lane_decoded_bytes[lane],
                             capacity, NULL) != COGPU_OK)
        return false;
    reader->blocks[lane] = (struct lane_block){tasks, count, stored, reader->fetch};
    reader->fetch_users[reader->fetch]++;
    *block = (cogpu_lane_block){.in = stored,
                                .in_bytes = stored_bytes,
                                .out = worker->lane_decoded[lane],
                                .out_bytes = capacity,
                                .user = &reader->blocks[lane]};
    return true;
}

/* The next block of the current fetch for a lane. False if there is none: blocks that do not suit
 * are decoded, those that do not matter are left out. */
static bool next_of_fetch(struct lane_reader *reader, cogpu_lane_block *block) {
    struct cogpu_read_job *job = reader->batch->job;
    const cogpu_fetch *fetch = &reader->run.fetch;
    while (reader->bytes && reader->next < fetch->count) {
        struct cogpu_read_task *first = &reader->run.tasks[fetch->first];
        struct cogpu_read_task *tasks = first + reader->next;
        const uint32_t count = cogpu_tasks_of_block(tasks, fetch->count - reader->next);
        const uint8_t *stored = reader->bytes + (tasks->span.offset - first->span.offset);
        reader->next += count;
        const bool is_wanted = cogpu_tasks_are_wanted(job, tasks, count);
        if (is_wanted && fill_lane(reader, tasks, count, stored, block))
            return true;
        if (is_wanted)
            cogpu_tasks_decode(job, reader->worker, tasks, count, stored);
        cogpu_tasks_report_done(tasks, count);
    }
    return false;
}

static bool next_block(cogpu_lane_queue *queue, cogpu_lane_block *block) {
    struct lane_reader *reader = (struct lane_reader *)queue;
    do {
        if (next_of_fetch(reader, block))
            return true;
    } while (open_next_fetch(reader));
    reader->bytes = NULL;
    return false;
}

static void finish_block(cogpu_lane_queue *queue, const cogpu_lane_block *done, bool is_decoded,
                         size_t got) {
    struct lane_reader *reader = (struct lane_reader *)queue;
    struct cogpu_read_job *job = reader->batch->job;
    struct lane_block *block = done->user;
    const cogpu_storage *storage = block->tasks[0].window->plan.storage;
    cogpu_error error;
    if (!is_decoded || got < storage->format.row_bytes * block->tasks[0].block.needed_rows)
        cogpu_tasks_decode(job, reader->worker, block->tasks, block->count, block->stored);
    else if (cogpu_tasks_unpack(job, reader->worker, block->tasks, block->count, done->out,
                                &error) != COGPU_OK)
        cogpu_tasks_fail(job, block->tasks, block->count, &error);
    cogpu_tasks_report_done(block->tasks, block->count);
    reader->fetch_users[block->fetch]--;
    block->tasks = NULL;
}

/* Reads runs until the batch has none left. */
static void read_runs_in_lanes(void *argument, uint32_t worker_number, uint64_t index) {
    struct lane_batch *batch = argument;
    struct lane_reader reader = {.queue = {.is_mostly_literals = batch->is_mostly_literals,
                                           .next = next_block,
                                           .done = finish_block},
                                 .batch = batch,
                                 .worker = batch->job->workers[worker_number]};
    cogpu_lane_block block;
    (void)index;
    if (batch->codec->decode(&reader.worker->codec, &reader.queue, NULL) != COGPU_OK)
        while (next_block(&reader.queue, &block))
            finish_block(&reader.queue, &block, false, 0);
}

void cogpu_batch_read_in_lanes(struct cogpu_read_job *job) {
    struct lane_batch batch = {.job = job};
    const struct cogpu_read_task *task = job->batch.tasks;
    while (!has_lanes(job, task->window))
        task++;
    batch.codec = task->window->plan.storage->codec->lanes;
    batch.is_mostly_literals = task->window->plan.storage->predictor == 3;
    cogpu_pool_run(job->pool, job->worker_count, job->worker_count, read_runs_in_lanes, &batch);
}
