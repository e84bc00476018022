/*
 * A thread pool for numbered work items. Several callers may use one pool at the same time. Each
 * caller works too, so a pool of one thread starts none.
 */
#ifndef COGPU_BASE_POOL_H
#define COGPU_BASE_POOL_H

#include "base/status.h"

#include <stdbool.h>

typedef struct cogpu_pool cogpu_pool;

/* `threads` includes the caller's own. */
cogpu_status cogpu_pool_open(uint32_t threads, cogpu_pool **pool, cogpu_error *error);
void cogpu_pool_close(cogpu_pool *pool);
uint32_t cogpu_pool_threads(const cogpu_pool *pool);

/* Calls work(argument, worker, index) for each index below `count`, on at most `workers` threads at
 * once, and returns when all are done. `worker` is below `workers`, and no two calls at the same
 * time have the same: it may select scratch memory. */
typedef void cogpu_pool_function(void *argument, uint32_t worker, uint64_t index);
void cogpu_pool_run(cogpu_pool *pool, uint32_t workers, uint64_t count, cogpu_pool_function *work,
                    void *argument);

/* The same on all threads of the pool. Without a pool (NULL) the caller does it alone. */
void cogpu_pool_share(cogpu_pool *pool, uint64_t count, cogpu_pool_function *work, void *argument);

/* As cogpu_pool_run, for work that is added over time: `add` adds indices while others are worked
 * on. All calls are by one thread, which meanwhile does something else, or helps: `help` works on
 * one index as worker 0, and returns false if none is left. `end` waits for all, and frees the job;
 * NULL is allowed. */
typedef struct cogpu_pool_job cogpu_pool_job;
cogpu_status cogpu_pool_begin(cogpu_pool *pool, uint32_t workers, cogpu_pool_function *work,
                              void *argument, cogpu_pool_job **job, cogpu_error *error);
void cogpu_pool_add(cogpu_pool_job *job, uint64_t count);
bool cogpu_pool_help(cogpu_pool_job *job);
void cogpu_pool_end(cogpu_pool_job *job);

/* CPU cores that this process may use; at least 1. */
uint32_t cogpu_cpu_cores(void);

#endif
