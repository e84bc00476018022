/* Threads: each index once, workers never shared, several callers at once, more threads than work;
 * the same for work that comes bit by bit. */
#include "base/pool.h"

#include "support/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { WORKERS_MAX = 64, ITEMS = 5000 };

struct task {
    atomic_uint done[ITEMS];
    atomic_int occupied[WORKERS_MAX];
    atomic_int wrong_workers, peak, now;
    uint32_t workers;
};

static void work(void *argument, uint32_t worker, uint64_t index) {
    struct task *task = argument;
    if (worker >= task->workers || atomic_fetch_add(&task->occupied[worker], 1) != 0)
        atomic_fetch_add(&task->wrong_workers, 1);
    int now = atomic_fetch_add(&task->now, 1) + 1, peak = atomic_load(&task->peak);
    while (now > peak && !atomic_compare_exchange_weak(&task->peak, &peak, now))
        ;
    atomic_fetch_add(&task->done[index], 1);
    if (index % 16 == 0)
        sched_yield();
    atomic_fetch_sub(&task->now, 1);
    if (worker < task->workers)
        atomic_fetch_sub(&task->occupied[worker], 1);
}

static int check_task(struct task *task, uint64_t count) {
    int wrong = atomic_load(&task->wrong_workers) +
                (atomic_load(&task->peak) > (int)task->workers) + (atomic_load(&task->now) != 0);
    for (uint64_t i = 0; i < ITEMS; i++)
        wrong += atomic_load(&task->done[i]) != (i < count);
    return wrong;
}

static int run_and_count_errors(cogpu_pool *pool, uint32_t workers, uint64_t count) {
    static _Thread_local struct task task;
    memset(&task, 0, sizeof task);
    task.workers = workers;
    cogpu_pool_run(pool, workers, count, work, &task);
    return check_task(&task, count);
}

static void test_every_index_once(void) {
    static const uint64_t counts[] = {0, 1, 2, 3, 17, ITEMS};
    for (uint32_t threads = 0; threads <= 9; threads += 3) {
        cogpu_pool *pool = NULL;
        CHECK(cogpu_pool_open(threads, &pool, NULL) == COGPU_OK);
        CHECK(cogpu_pool_threads(pool) == (threads ? threads : 1));
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            for (uint32_t workers = 1; workers <= 12; workers += 5)
                CHECK(run_and_count_errors(pool, workers, counts[i]) == 0);
        cogpu_pool_close(pool);
    }
}

static void test_no_pool_is_one_thread(void) {
    CHECK(run_and_count_errors(NULL, 4, 100) == 0);
    cogpu_pool_close(NULL);
    CHECK(cogpu_cpu_cores() >= 1);
}

struct caller {
    cogpu_pool *pool;
    int wrong;
};

static void *call_often(void *argument) {
    struct caller *caller = argument;
    for (int i = 0; i < 100; i++)
        caller->wrong +=
            run_and_count_errors(caller->pool, 1 + (uint32_t)i % 5, (uint64_t)(i * 37 % 300));
    return NULL;
}

static void test_several_callers_at_once(void) {
    cogpu_pool *pool = NULL;
    CHECK(cogpu_pool_open(4, &pool, NULL) == COGPU_OK);
    struct caller callers[5];
    pthread_t threads[5];
    for (int i = 0; i < 5; i++) {
        callers[i] = (struct caller){.pool = pool};
        CHECK(pthread_create(&threads[i], NULL, call_often, &callers[i]) == 0);
    }
    for (int i = 0; i < 5; i++) {
        pthread_join(threads[i], NULL);
        CHECK(callers[i].wrong == 0);
    }
    cogpu_pool_close(pool);
}

/* Nested work on the same pool: its caller works too, so there is no deadlock. */
static void outer(void *argument, uint32_t worker, uint64_t index) {
    (void)worker, (void)index;
    struct caller *caller = argument;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int wrong = run_and_count_errors(caller->pool, 3, 200);
    pthread_mutex_lock(&lock);
    caller->wrong += wrong;
    pthread_mutex_unlock(&lock);
}

static void test_work_inside_work(void) {
    struct caller caller = {0};
    CHECK(cogpu_pool_open(3, &caller.pool, NULL) == COGPU_OK);
    cogpu_pool_run(caller.pool, 3, 20, outer, &caller);
    CHECK(caller.wrong == 0);
    cogpu_pool_close(caller.pool);
}

/* ---- work that comes bit by bit ---- */

/* Adds, helps now and then, and goes away; others do what is there. */
static int add_and_count_errors(cogpu_pool *pool, uint32_t workers, uint64_t count, uint64_t step) {
    static _Thread_local struct task task;
    memset(&task, 0, sizeof task);
    task.workers = workers;
    cogpu_pool_job *job = NULL;
    int wrong = cogpu_pool_begin(pool, workers, work, &task, &job, NULL) != COGPU_OK;
    for (uint64_t added = 0; added < count; added += step) {
        cogpu_pool_add(job, added + step < count ? step : count - added);
        if (added % 3 == 0)
            cogpu_pool_help(job);
        if (added % 7 == 0)
            sched_yield();
    }
    cogpu_pool_end(job);
    return wrong + check_task(&task, count);
}

static void test_work_may_come_bit_by_bit(void) {
    for (uint32_t threads = 1; threads <= 9; threads += 4) {
        cogpu_pool *pool = NULL;
        CHECK(cogpu_pool_open(threads, &pool, NULL) == COGPU_OK);
        for (uint32_t workers = 1; workers <= 12; workers += 5)
            for (uint64_t step = 1; step <= 50; step += 7) {
                CHECK(add_and_count_errors(pool, workers, 1000, step) == 0);
                CHECK(add_and_count_errors(pool, workers, 0, step) == 0);
            }
        cogpu_pool_close(pool);
    }
    CHECK(add_and_count_errors(NULL, 4, 100, 3) == 0);
    cogpu_pool_end(NULL);
}

static void *add_often(void *argument) {
    struct caller *caller = argument;
    for (int i = 0; i < 50; i++) {
        caller->wrong +=
            add_and_count_errors(caller->pool, 1 + (uint32_t)i % 5, 200, 1 + (uint64_t)i % 3);
        caller->wrong += run_and_count_errors(caller->pool, 3, 100);
    }
    return NULL;
}

/* The pool's threads come and go between the jobs, and have each one's workers for themselves. */
static void test_several_add_at_once(void) {
    cogpu_pool *pool = NULL;
    CHECK(cogpu_pool_open(4, &pool, NULL) == COGPU_OK);
    struct caller callers[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        callers[i] = (struct caller){.pool = pool};
        CHECK(pthread_create(&threads[i], NULL, add_often, &callers[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CHECK(callers[i].wrong == 0);
    }
    cogpu_pool_close(pool);
}

/* The caller does not help: what is added reaches the pool's threads. */
static void test_added_work_needs_no_help(void) {
    static struct task task;
    cogpu_pool *pool = NULL;
    cogpu_pool_job *job = NULL;
    memset(&task, 0, sizeof task);
    task.workers = 3;
    CHECK(cogpu_pool_open(3, &pool, NULL) == COGPU_OK);
    CHECK(cogpu_pool_begin(pool, 3, work, &task, &job, NULL) == COGPU_OK);
    for (uint64_t i = 0; i < 200; i++) {
        cogpu_pool_add(job, 1);
        while (atomic_load(&task.done[i]) == 0)
            sched_yield();
    }
    CHECK(!cogpu_pool_help(job));
    cogpu_pool_end(job);
    cogpu_pool_close(pool);
    CHECK(atomic_load(&task.wrong_workers) == 0);
}

static void test_open_and_close_without_work(void) {
    for (int i = 0; i < 50; i++) {
        cogpu_pool *pool = NULL;
        CHECK(cogpu_pool_open(8, &pool, NULL) == COGPU_OK);
        cogpu_pool_close(pool);
    }
}

TESTS(pool) {
    RUN(test_every_index_once);
    RUN(test_no_pool_is_one_thread);
    RUN(test_several_callers_at_once);
    RUN(test_work_inside_work);
    RUN(test_work_may_come_bit_by_bit);
    RUN(test_several_add_at_once);
    RUN(test_added_work_needs_no_help);
    RUN(test_open_and_close_without_work);
    return FINISH();
}
