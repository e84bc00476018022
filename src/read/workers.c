/* How many threads a job uses, and the scratch memory of each. */
#include "read/chunks.h"

#include "base/math.h"

/* Scratch memory of all workers together: this much, and more for larger files. */
enum { WORKERS_BASE_BYTES = 48 << 20, WORKERS_BYTES_PER_FILE_BYTE = 64 };

/* More workers than any machine has threads would only take memory. */
enum { WORKERS_MAX = 1024 };

/* Of a block. One at a time is the front, so that many more than the others keep busy would wait.
 */
enum { CHUNK_THREADS_MAX = 64 };

/* Less work than this is done before a second thread has started. */
enum { THREAD_WORK_BYTES = 256 << 10 };

/* Scratch memory that a worker needs for the largest block of a window. */
static uint64_t worker_bytes(const struct cogpu_read_job *job, const cogpu_read_plan *plan) {
    const cogpu_storage *storage = plan->storage;
    uint64_t decoded = (uint64_t)plan->slice_rows * storage->format.row_bytes;
    uint64_t most =
        COGPU_EXPANSION_BASE + cogpu_io_bytes(storage->tiff->io) * (uint64_t)COGPU_EXPANSION_FACTOR;
    if (cogpu_job_streams(job, storage))
        return cogpu_cpu_stream_bytes(storage);
    if (storage->format.compression == COMPRESSION_NONE)
        return decoded;
    return 2 * (decoded < most ? decoded : most);
}

/* Scratch memory that all workers of a job may have together. */
static uint64_t allowed_bytes(const cogpu_tiff *tiff) {
    const uint64_t allowed =
        WORKERS_BASE_BYTES + cogpu_io_bytes(tiff->io) * WORKERS_BYTES_PER_FILE_BYTE;
    return min_u64(allowed, tiff->limits.working_memory_bytes);
}

bool cogpu_job_has_lane_memory(const struct cogpu_read_job *job, const cogpu_read_plan *plan) {
    const uint64_t needed =
        CODEC_LANES * worker_bytes(job, plan) + COGPU_LANE_FETCHES * COGPU_RUN_BYTES;
    return allowed_bytes(plan->storage->tiff) / needed >= job->worker_count;
}

struct work_estimate {
    uint64_t workers; /* that memory allows */
    uint64_t blocks, bytes;
    bool has_chunks; /* blocks that threads may decode together */
};

static void add_work(const struct cogpu_read_job *job, const cogpu_read_plan *plan,
                     struct work_estimate *work) {
    uint64_t needed = worker_bytes(job, plan) + 1;
    work->workers = min_u64(work->workers, allowed_bytes(plan->storage->tiff) / needed);
    work->has_chunks |= cogpu_storage_has_chunks(plan->storage);
    work->blocks += plan->count;
    work->bytes += plan->count * (needed < THREAD_WORK_BYTES ? needed : THREAD_WORK_BYTES);
}

/* As many as there are threads, as there is work for, and as memory allows. More threads of the
 * pool may help a worker with a large block. */
static uint32_t choose_worker_count(const struct cogpu_read_job *job, uint32_t *pool_threads) {
    struct work_estimate work = {.workers = min_u32(job->threads, WORKERS_MAX)};
    *pool_threads = job->threads;
    for (size_t i = 0; i < job->count; i++) {
        const struct cogpu_read_window *window = &job->windows[i];
        if (window->error.status != COGPU_OK || window->method == COGPU_READ_ALL_VALID)
            continue;
        if (window->plan.storage->mosaic) /* its files are not known yet */
            return (uint32_t)work.workers;
        add_work(job, &window->plan, &work);
        if (window->mask)
            add_work(job, &window->mask->plan, &work);
    }
    uint64_t workers = min_u64(work.workers, work.blocks);
    if (work.bytes <= THREAD_WORK_BYTES || workers < 1)
        workers = 1;
    if (!work.has_chunks)
        *pool_threads = (uint32_t)workers;
    return (uint32_t)workers;
}

uint32_t cogpu_job_chunk_threads(const struct cogpu_read_job *job, const cogpu_storage *storage,
                                 const cogpu_chunk_sizes *sizes) {
    const uint64_t allowed = allowed_bytes(storage->tiff) / job->worker_count;
    uint32_t threads = job->pool ? min_u32(job->threads, cogpu_pool_threads(job->pool)) : 1;
    threads = min_u32(threads, CHUNK_THREADS_MAX);
    while (threads > 1 && cogpu_chunk_memory(sizes, threads, storage->format.row_bytes) > allowed)
        threads--;
    return threads;
}

cogpu_status cogpu_job_open_workers(struct cogpu_read_job *job, cogpu_error *error) {
    struct cogpu_read_batch *batch = &job->batch;
    cogpu_arena *arena = &job->arena;
    uint32_t pool_threads;
    job->worker_count = choose_worker_count(job, &pool_threads);
    TRY(cogpu_arena_allocate(arena, COGPU_BATCH_BLOCKS, sizeof *batch->tasks, &batch->tasks,
                             error));
    TRY(cogpu_arena_allocate(arena, COGPU_BATCH_BLOCKS, sizeof *batch->runs, &batch->runs, error));
    TRY(cogpu_arena_allocate(arena, job->worker_count, sizeof *job->workers, &job->workers, error));
    for (uint32_t i = 0; i < job->worker_count; i++)
        if (!(job->workers[i] = cogpu_context_take_worker(job->context)))
            return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for %u threads",
                              job->worker_count);
    job->pool = job->context ? job->context->pool : NULL;
    if (!job->context && pool_threads > 1)
        TRY(cogpu_pool_open(pool_threads, &job->pool, error));
    return COGPU_OK;
}

void cogpu_job_close_workers(struct cogpu_read_job *job) {
    for (uint32_t i = 0; job->workers && i < job->worker_count && job->workers[i]; i++)
        cogpu_context_return_worker(job->context, job->workers[i]);
    if (!job->context)
        cogpu_pool_close(job->pool);
}
