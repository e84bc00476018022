/*
 * A list of running jobs under one lock. A thread with nothing to do takes a seat in the first job
 * that has work and a free seat, and keeps it until the job has no index left. Indices are drawn
 * from an atomic counter, so the lock is not taken a piece.
 */
#define _GNU_SOURCE
#include "base/pool.h"

#include "base/memory.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

/* Nobody has more processors; a caller's slip must not start a million threads. */
enum { THREADS_MAX = 1024 };

struct pool_job {
    struct pool_job *next;
    cogpu_work *work;
    void *argument;
    uint64_t count;
    atomic_uint_fast64_t drawn;
    uint32_t seats, seated, busy; /* under the pool's lock; seats are not reused within a job */
};

struct cogpu_pool {
    pthread_mutex_t lock;
    pthread_cond_t work_came, job_ended;
    struct pool_job *jobs;
    bool closing;
    uint32_t threads, started;
    pthread_t members[];
};

static void work_off(struct pool_job *job, uint32_t seat) {
    for (;;) {
        uint64_t index = atomic_fetch_add_explicit(&job->drawn, 1, memory_order_relaxed);
        if (index >= job->count)
            return;
        job->work(job->argument, seat, index);
    }
}

static struct pool_job *job_with_free_seat(cogpu_pool *pool) {
    for (struct pool_job *job = pool->jobs; job; job = job->next)
        if (job->seated < job->seats &&
            atomic_load_explicit(&job->drawn, memory_order_relaxed) < job->count)
            return job;
    return NULL;
}

static void *serve(void *argument) {
    cogpu_pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    while (!pool->closing) {
        struct pool_job *job = job_with_free_seat(pool);
        if (!job) {
            pthread_cond_wait(&pool->work_came, &pool->lock);
            continue;
        }
        uint32_t seat = job->seated++;
        job->busy++;
        pthread_mutex_unlock(&pool->lock);
        work_off(job, seat);
        pthread_mutex_lock(&pool->lock);
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
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for %u threads", threads);
    *pool = (cogpu_pool){.threads = members + 1};
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work_came, NULL);
    pthread_cond_init(&pool->job_ended, NULL);
    /* A machine that gives fewer threads than asked serves with those: the caller works in any
     * case. */
    while (pool->started < members &&
           pthread_create(&pool->members[pool->started], NULL, serve, pool) == 0)
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

static void list_remove(cogpu_pool *pool, const struct pool_job *gone) {
    for (struct pool_job **link = &pool->jobs; *link; link = &(*link)->next)
        if (*link == gone) {
            *link = gone->next;
            return;
        }
}

void cogpu_pool_run(cogpu_pool *pool, uint32_t seats, uint64_t count, cogpu_work *work,
                    void *argument) {
    struct pool_job job = {
        .work = work, .argument = argument, .count = count, .seats = seats, .seated = 1};
    if (!pool || pool->started == 0 || seats < 2 || count < 2) {
        work_off(&job, 0);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    job.next = pool->jobs;
    pool->jobs = &job;
    pthread_cond_broadcast(&pool->work_came);
    pthread_mutex_unlock(&pool->lock);

    work_off(&job, 0);

    pthread_mutex_lock(&pool->lock);
    list_remove(pool, &job);
    while (job.busy > 0)
        pthread_cond_wait(&pool->job_ended, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

uint32_t cogpu_processors(void) {
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) > 0)
        return (uint32_t)CPU_COUNT(&mine);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}
