/*
 * Restored blocks that several reads share: the least recently used make room for new ones, so that
 * their bytes stay within a budget. Any thread may use it.
 */
#ifndef COGPU_BACKEND_CPU_CPU_CACHE_H
#define COGPU_BACKEND_CPU_CPU_CACHE_H

#include "base/memory.h"

#include <stdbool.h>

typedef struct cogpu_cache cogpu_cache;

/* A block by its file (which has a number of its own), directory and index. */
typedef struct cogpu_cache_key {
    uint64_t file, directory, block;
} cogpu_cache_key;

typedef struct cogpu_cached {
    struct cogpu_cached *same_slot, *newer, *older;
    cogpu_cache_key key;
    uint32_t users; /* it is not freed under them */
    size_t bytes;
    uint8_t data[];
} cogpu_cached;

cogpu_status cogpu_cache_open(uint64_t budget, cogpu_cache **cache, cogpu_error *error);
void cogpu_cache_close(cogpu_cache *cache);

/* The block, to be given back after use; NULL where it is not there. */
cogpu_cached *cogpu_cache_take(cogpu_cache *cache, cogpu_cache_key key);
void cogpu_cache_give_back(cogpu_cache *cache, cogpu_cached *cached);

/* Whether a block of that size could ever be kept. */
bool cogpu_cache_could_keep(const cogpu_cache *cache, uint64_t bytes);

/* Memory for a block that the caller fills and then hands to cogpu_cache_keep; NULL where it would
 * not fit the budget or there is no memory. */
cogpu_cached *cogpu_cache_reserve(const cogpu_cache *cache, cogpu_cache_key key, size_t bytes);
/* The cache owns the block from here on. */
void cogpu_cache_keep(cogpu_cache *cache, cogpu_cached *cached);

#endif
