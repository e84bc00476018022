/*
 * A list of running jobs under one lock. An idle thread becomes a worker of the first job that has
 * work and a free worker, and stays until the job has no index left. Indices come from an atomic
 * counter, so the lock is not taken for each.
 */
#define _GNU_SOURCE
#include "base/pool.h"

#include "base/memory.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

/* More than any machine has cores: a wrong argument must not start a million threads. */
enum { THREADS_MAX = 1024 };

struct cogpu_pool_job {
    struct cogpu_pool_job *next;
    cogpu_pool *pool; /* NULL: the caller works alone */
    cogpu_pool_function *work;
    void *argument;
    atomic_uint_fast64_t count, drawn;
    uint32_t workers, busy; /* threads of the pool that work on it; under its lock, as the next */
    bool is_used[THREADS_MAX]; /* by worker; 0 is the caller */
};

struct cogpu_pool {
    pthread_mutex_t lock;
    pthread_cond_t work_came, job_ended;
    struct cogpu_pool_job *jobs;
    bool closing;
    uint32_t threads, started;
    pthread_t members[];
};

static bool has_work(const struct cogpu_pool_job *job) {
    return atomic_load_explicit(&job->drawn, memory_order_relaxed) <
           atomic_load_explicit(&job->count, memory_order_acquire);
}

/* Works on one index, if there is one. */
static bool work_on_next(struct cogpu_pool_job *job, uint32_t worker) {
    uint64_t index = atomic_load_explicit(&job->drawn, memory_order_relaxed);
    do {
        if (index >= atomic_load_explicit(&job->count, memory_order_acquire))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&job->drawn, &index, index + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    job->work(job->argument, worker, index);
    return true;
}

static struct cogpu_pool_job *job_with_free_worker(cogpu_pool *pool) {
    for (struct cogpu_pool_job *job = pool->jobs; job; job = job->next)
        if (job->busy + 1 < job->workers && has_work(job))
            return job;
    return NULL;
}

/* There is one: job_with_free_worker has checked it. */
static uint32_t free_worker(const struct cogpu_pool_job *job) {
    uint32_t worker = 1;
    while (job->is_used[worker])
        worker++;
    return worker;
}

static void *run_thread(void *argument) {
    cogpu_pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    while (!pool->closing) {
        struct cogpu_pool_job *job = job_with_free_worker(pool);
        if (!job) {
            pthread_cond_wait(&pool->work_came, &pool->lock);
            continue;
        }
        uint32_t worker = free_worker(job);
        job->is_used[worker] = true;
        job->busy++;
        pthread_mutex_unlock(&pool->lock);
        while (work_on_next(job, worker))
            ;
        pthread_mutex_lock(&pool->lock);
        job->is_used[worker] = false;
        if (--job->busy == 0)
            pthread_cond_broadcast(&pool->job_ended);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

cogpu_status cogpu_pool_open(uint32_t threads, cogpu_pool **pool_out, cogpu_error *error) {
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    uint32_t members = threads ? threads - 1 : 0;
    cogpu_pool *pool = cogpu_allocate(sizeof *pool + members * sizeof pool->members[0]);
    if (!pool)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for %u threads", threads);
    *pool = (cogpu_pool){.threads = members + 1};
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work_came, NULL);
    pthread_cond_init(&pool->job_ended, NULL);
    /* Fewer threads than requested are no error: the caller works in any case. */
    while (pool->started < members &&
           pthread_create(&pool->members[pool->started], NULL, run_thread, pool) == 0)
        pool->started++;
    *pool_out = pool;
    return COGPU_OK;
}

void cogpu_pool_close(cogpu_pool *pool) {
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->work_came);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->started; i++)
        pthread_join(pool->members[i], NULL);
    pthread_cond_destroy(&pool->job_ended);
    pthread_cond_destroy(&pool->work_came);
    pthread_mutex_destroy(&pool->lock);
    cogpu_release(pool);
}

uint32_t cogpu_pool_threads(const cogpu_pool *pool) {
    return pool->threads;
}

static void list_add(struct cogpu_pool_job *job) {
    pthread_mutex_lock(&job->pool->lock);
    job->next = job->pool->jobs;
    job->pool->jobs = job;
    pthread_mutex_unlock(&job->pool->lock);
}

static void list_remove(const struct cogpu_pool_job *gone) {
    for (struct cogpu_pool_job **link = &gone->pool->jobs; *link; link = &(*link)->next)
        if (*link == gone) {
            *link = gone->next;
            return;
        }
}

static void begin_job(cogpu_pool *pool, uint32_t workers, cogpu_pool_function *work, void *argument,
                      struct cogpu_pool_job *job) {
    *job = (struct cogpu_pool_job){.work = work, .argument = argument, .workers = workers};
    if (pool && pool->started > 0 && workers > 1) {
        job->pool = pool;
        list_add(job);
    }
}

void cogpu_pool_add(cogpu_pool_job *job, uint64_t count) {
    if (!job->pool) {
        atomic_fetch_add_explicit(&job->count, count, memory_order_release);
        return;
    }
    pthread_mutex_lock(&job->pool->lock);
    atomic_fetch_add_explicit(&job->count, count, memory_order_release);
    if (count == 1)
        pthread_cond_signal(&job->pool->work_came);
    else
        pthread_cond_broadcast(&job->pool->work_came);
    pthread_mutex_unlock(&job->pool->lock);
}

bool cogpu_pool_help(cogpu_pool_job *job) {
    return work_on_next(job, 0);
}

/* Returns when all indices are done. */
static void end_job(struct cogpu_pool_job *job) {
    while (work_on_next(job, 0))
        ;
    if (!job->pool)
        return;
    pthread_mutex_lock(&job->pool->lock);
    list_remove(job);
    while (job->busy > 0)
        pthread_cond_wait(&job->pool->job_ended, &job->pool->lock);
    pthread_mutex_unlock(&job->pool->lock);
}

void cogpu_pool_run(cogpu_pool *pool, uint32_t workers, uint64_t count, cogpu_pool_function *work,
                    void *argument) {
    struct cogpu_pool_job job;
    begin_job(count > 1 ? pool : NULL, workers, work, argument, &job);
    cogpu_pool_add(&job, count);
    end_job(&job);
}

void cogpu_pool_share(cogpu_pool *pool, uint64_t count, cogpu_pool_function *work, void *argument) {
    cogpu_pool_run(pool, pool ? cogpu_pool_threads(pool) : 1, count, work, argument);
}

cogpu_status cogpu_pool_begin(cogpu_pool *pool, uint32_t workers, cogpu_pool_function *work,
                              void *argument, cogpu_pool_job **job, cogpu_error *error) {
    *job = cogpu_allocate(sizeof **job);
    if (!*job)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a job of the thread pool");
    begin_job(pool, workers, work, argument, *job);
    return COGPU_OK;
}

void cogpu_pool_end(cogpu_pool_job *job) {
    if (job)
        end_job(job);
    cogpu_release(job);
}

uint32_t cogpu_cpu_cores(void) {
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) > 0)
        return (uint32_t)CPU_COUNT(&mine);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}
