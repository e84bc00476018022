/*
 * Threads that share out numbered pieces of work. Several callers may run work at once on one pool;
 * each caller works too, so a pool of one thread needs no thread at all.
 */
#ifndef COGPU_BASE_POOL_H
#define COGPU_BASE_POOL_H

#include "base/status.h"

#include <stdbool.h>

typedef struct cogpu_pool cogpu_pool;

/* `threads` counts the caller's own. */
cogpu_status cogpu_pool_open(uint32_t threads, cogpu_pool **pool, cogpu_error *error);
void cogpu_pool_close(cogpu_pool *pool);
uint32_t cogpu_pool_threads(const cogpu_pool *pool);

/* Calls work(argument, seat, index) for each index below `count`, on at most `seats` threads at
 * once, and returns when all are done. `seat` is below `seats` and no two calls that run at the
 * same time have the same one, so that it can pick working memory. */
typedef void cogpu_work(void *argument, uint32_t seat, uint64_t index);
void cogpu_pool_run(cogpu_pool *pool, uint32_t seats, uint64_t count, cogpu_work *work,
                    void *argument);

/* The same for work that comes bit by bit: so many more indices are added while others are done.
 * All calls are the caller's, who goes on with something else, or helps: does one piece, as seat 0,
 * unless none is left to take. The end returns when all are done, and frees the job; NULL is
 * allowed. */
typedef struct cogpu_pool_job cogpu_pool_job;
cogpu_status cogpu_pool_begin(cogpu_pool *pool, uint32_t seats, cogpu_work *work, void *argument,
                              cogpu_pool_job **job, cogpu_error *error);
void cogpu_pool_add(cogpu_pool_job *job, uint64_t count);
bool cogpu_pool_help(cogpu_pool_job *job);
void cogpu_pool_end(cogpu_pool_job *job);

/* Processors that this process may use; at least 1. */
uint32_t cogpu_processors(void);

#endif
