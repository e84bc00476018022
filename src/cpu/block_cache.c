/* A hash table with chains for the look-up, a list by last use (LRU) for the eviction, one lock. */
#include "cpu/block_cache.h"

#include <pthread.h>
#include <string.h>

enum { BUCKET_BITS = 12, BUCKETS = 1 << BUCKET_BITS };

struct cogpu_block_cache {
    pthread_mutex_t lock;
    uint64_t budget_bytes, cached_bytes;
    cogpu_cached_block *newest, *oldest;
    cogpu_cached_block *buckets[BUCKETS];
};

cogpu_status cogpu_block_cache_open(uint64_t budget_bytes, cogpu_block_cache **out,
                                    cogpu_error *error) {
    cogpu_block_cache *cache = cogpu_allocate(sizeof *cache);
    if (!cache)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the block cache");
    memset(cache, 0, sizeof *cache);
    cache->budget_bytes = budget_bytes;
    pthread_mutex_init(&cache->lock, NULL);
    *out = cache;
    return COGPU_OK;
}

void cogpu_block_cache_close(cogpu_block_cache *cache) {
    if (!cache)
        return;
    for (cogpu_cached_block *cached = cache->newest; cached;) {
        cogpu_cached_block *older = cached->older;
        cogpu_release(cached);
        cached = older;
    }
    pthread_mutex_destroy(&cache->lock);
    cogpu_release(cache);
}

/* The header counts too, so that the budget holds for many small blocks. */
static uint64_t cost_bytes(const cogpu_cached_block *cached) {
    return sizeof *cached + cached->bytes;
}

static cogpu_cached_block **bucket_of(cogpu_block_cache *cache, cogpu_block_cache_key key) {
    uint64_t hash = (key.file * 31 + key.directory) * 0x9E3779B97F4A7C15ULL + key.block;
    hash *= 0x9E3779B97F4A7C15ULL;
    return &cache->buckets[hash >> (64 - BUCKET_BITS)];
}

static bool is_same_key(cogpu_block_cache_key a, cogpu_block_cache_key b) {
    return a.file == b.file && a.directory == b.directory && a.block == b.block;
}

static cogpu_cached_block *find_cached(cogpu_block_cache *cache, cogpu_block_cache_key key) {
    cogpu_cached_block *cached = *bucket_of(cache, key);
    while (cached && !is_same_key(cached->key, key))
        cached = cached->next_in_bucket;
    return cached;
}

static void unlink_from_lru(cogpu_block_cache *cache, cogpu_cached_block *cached) {
    *(cached->newer ? &cached->newer->older : &cache->newest) = cached->older;
    *(cached->older ? &cached->older->newer : &cache->oldest) = cached->newer;
}

static void link_newest(cogpu_block_cache *cache, cogpu_cached_block *cached) {
    cached->newer = NULL;
    cached->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = cached;
    cache->newest = cached;
}

static void evict(cogpu_block_cache *cache, cogpu_cached_block *cached) {
    cogpu_cached_block **link = bucket_of(cache, cached->key);
    while (*link != cached)
        link = &(*link)->next_in_bucket;
    *link = cached->next_in_bucket;
    unlink_from_lru(cache, cached);
    cache->cached_bytes -= cost_bytes(cached);
    cogpu_release(cached);
}

/* Evicts the least recently used blocks that are not pinned. False if the pinned ones take too
 * much. */
static bool evict_until_fits(cogpu_block_cache *cache, uint64_t bytes) {
    cogpu_cached_block *cached = cache->oldest;
    while (cache->cached_bytes + bytes > cache->budget_bytes && cached) {
        cogpu_cached_block *newer = cached->newer;
        if (cached->pins == 0)
            evict(cache, cached);
        cached = newer;
    }
    return cache->cached_bytes + bytes <= cache->budget_bytes;
}

cogpu_cached_block *cogpu_block_cache_find(cogpu_block_cache *cache, cogpu_block_cache_key key) {
    pthread_mutex_lock(&cache->lock);
    cogpu_cached_block *cached = find_cached(cache, key);
    if (cached) {
        cached->pins++;
        unlink_from_lru(cache, cached);
        link_newest(cache, cached);
    }
    pthread_mutex_unlock(&cache->lock);
    return cached;
}

void cogpu_block_cache_unpin(cogpu_block_cache *cache, cogpu_cached_block *cached) {
    pthread_mutex_lock(&cache->lock);
    cached->pins--;
    pthread_mutex_unlock(&cache->lock);
}

bool cogpu_block_cache_could_insert(const cogpu_block_cache *cache, uint64_t bytes) {
    return bytes <= cache->budget_bytes;
}

cogpu_cached_block *cogpu_block_cache_reserve(const cogpu_block_cache *cache,
                                              cogpu_block_cache_key key, size_t bytes) {
    cogpu_cached_block *cached = cogpu_block_cache_could_insert(cache, bytes)
                                     ? cogpu_allocate(sizeof *cached + bytes)
                                     : NULL;
    if (cached)
        *cached = (cogpu_cached_block){.key = key, .bytes = bytes};
    return cached;
}

void cogpu_block_cache_insert(cogpu_block_cache *cache, cogpu_cached_block *cached) {
    pthread_mutex_lock(&cache->lock);
    /* Another thread may have decoded the same block meanwhile. */
    bool kept = !find_cached(cache, cached->key) && evict_until_fits(cache, cost_bytes(cached));
    if (kept) {
        cogpu_cached_block **bucket = bucket_of(cache, cached->key);
        cached->next_in_bucket = *bucket;
        *bucket = cached;
        link_newest(cache, cached);
        cache->cached_bytes += cost_bytes(cached);
    }
    pthread_mutex_unlock(&cache->lock);
    if (!kept)
        cogpu_release(cached);
}
