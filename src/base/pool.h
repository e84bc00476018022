/*
 * Threads that share out numbered pieces of work. Several callers may run work at once on one pool;
 * each caller works too, so a pool of one thread needs no thread at all.
 */
#ifndef COGPU_BASE_POOL_H
#define COGPU_BASE_POOL_H

#include "base/status.h"

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

/* Processors that this process may use; at least 1. */
uint32_t cogpu_processors(void);

#endif
