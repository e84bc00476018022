/*
 * LRU cache of restored blocks, which several reads share. Its bytes stay within a budget. Any
 * thread may use it. A context owns it; files that have blocks in it refer to it, to drop these
 * when they are closed, before the context or after.
 */
#ifndef COGPU_CPU_BLOCK_CACHE_H
#define COGPU_CPU_BLOCK_CACHE_H

#include "base/memory.h"

#include <stdbool.h>

typedef struct cogpu_block_cache cogpu_block_cache;

/* `file` is unique in the process: cogpu_file_number. */
typedef struct cogpu_block_cache_key {
    uint64_t file, directory, block;
} cogpu_block_cache_key;

static inline bool cogpu_block_cache_is_same_key(cogpu_block_cache_key a, cogpu_block_cache_key b) {
    return a.file == b.file && a.directory == b.directory && a.block == b.block;
}

/* The high bits are the best. */
static inline uint64_t cogpu_block_cache_hash(cogpu_block_cache_key key) {
    uint64_t hash = (key.file * 31 + key.directory) * 0x9E3779B97F4A7C15ULL + key.block;
    return hash * 0x9E3779B97F4A7C15ULL;
}

typedef struct cogpu_cached_block {
    struct cogpu_cached_block *next_in_bucket, *newer, *older;
    cogpu_block_cache_key key;
    uint32_t pins; /* a pinned block is not evicted */
    size_t bytes;  /* of the block, or of its first rows */
    uint8_t data[];
} cogpu_cached_block;

cogpu_status cogpu_block_cache_open(uint64_t budget_bytes, cogpu_block_cache **cache,
                                    cogpu_error *error);
/* Drops all blocks and keeps none any more. NULL is allowed. */
void cogpu_block_cache_close(cogpu_block_cache *cache);

/* One more reference, which keeps the cache valid after it is closed. */
cogpu_block_cache *cogpu_block_cache_share(cogpu_block_cache *cache);
/* Drops the file's blocks, none of which is pinned, and the reference. */
void cogpu_block_cache_leave(cogpu_block_cache *cache, uint64_t file);
bool cogpu_block_cache_is_closed(cogpu_block_cache *cache);

/* Finds and pins a block, which the caller unpins after use. NULL if it is not cached. */
cogpu_cached_block *cogpu_block_cache_find(cogpu_block_cache *cache, cogpu_block_cache_key key);
void cogpu_block_cache_unpin(cogpu_block_cache *cache, cogpu_cached_block *cached);

uint64_t cogpu_block_cache_budget(const cogpu_block_cache *cache);

/* Evicts what a block takes, and returns memory for it, which the caller fills and then inserts or
 * discards. NULL if the block exceeds the budget, blocks in use leave too little of it, or there is
 * no memory. */
cogpu_cached_block *cogpu_block_cache_reserve(cogpu_block_cache *cache, cogpu_block_cache_key key,
                                              size_t bytes);
/* Inserts a reserved block, which the cache owns from then on. It replaces fewer rows of it. */
void cogpu_block_cache_insert(cogpu_block_cache *cache, cogpu_cached_block *cached);
void cogpu_block_cache_discard(cogpu_block_cache *cache, cogpu_cached_block *cached);

#endif
