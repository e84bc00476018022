/* A hash table with chains for the look-up, a list by last use (LRU) for the eviction, one lock. */
#include "cpu/block_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { BUCKET_BITS = 12, BUCKETS = 1 << BUCKET_BITS };

struct cogpu_block_cache {
    atomic_size_t references;
    uint64_t budget_bytes;
    pthread_mutex_t lock; /* of what follows */
    bool is_closed;
    uint64_t cached_bytes; /* with those of reserved blocks */
    cogpu_cached_block *newest, *oldest;
    cogpu_cached_block *buckets[BUCKETS];
};

cogpu_status cogpu_block_cache_open(uint64_t budget_bytes, cogpu_block_cache **out,
                                    cogpu_error *error) {
    cogpu_block_cache *cache = cogpu_allocate(sizeof *cache);
    if (!cache)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the block cache");
    memset(cache, 0, sizeof *cache);
    cache->references = 1;
    cache->budget_bytes = budget_bytes;
    pthread_mutex_init(&cache->lock, NULL);
    *out = cache;
    return COGPU_OK;
}

/* The header counts too, so that the budget holds for many small blocks. */
static uint64_t cost_bytes(const cogpu_cached_block *cached) {
    return sizeof *cached + cached->bytes;
}

static cogpu_cached_block **bucket_of(cogpu_block_cache *cache, cogpu_block_cache_key key) {
    return &cache->buckets[cogpu_block_cache_hash(key) >> (64 - BUCKET_BITS)];
}

static cogpu_cached_block *find_cached(cogpu_block_cache *cache, cogpu_block_cache_key key) {
    cogpu_cached_block *cached = *bucket_of(cache, key);
    while (cached && !cogpu_block_cache_is_same_key(cached->key, key))
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

static void remove_cached(cogpu_block_cache *cache, cogpu_cached_block *cached) {
    cogpu_cached_block **link = bucket_of(cache, cached->key);
    while (*link != cached)
        link = &(*link)->next_in_bucket;
    *link = cached->next_in_bucket;
    unlink_from_lru(cache, cached);
    cache->cached_bytes -= cost_bytes(cached);
}

/* Evicts the least recently used blocks that are not pinned. False if the pinned ones take too
 * much. If the last one that goes has as many bytes as the new block, *reused is its memory: taking
 * it from the system and giving it back takes longer than filling it. */
static bool evict_until_fits(cogpu_block_cache *cache, size_t bytes, cogpu_cached_block **reused) {
    uint64_t cost = sizeof **reused + bytes;
    cogpu_cached_block *cached = cache->oldest;
    while (cache->cached_bytes + cost > cache->budget_bytes && cached) {
        cogpu_cached_block *newer = cached->newer;
        if (cached->pins == 0) {
            remove_cached(cache, cached);
            cogpu_release(*reused);
            *reused = cached;
        }
        cached = newer;
    }
    if (*reused && (*reused)->bytes != bytes) {
        cogpu_release(*reused);
        *reused = NULL;
    }
    return cache->cached_bytes + cost <= cache->budget_bytes;
}

static void drop_reference(cogpu_block_cache *cache) {
    if (atomic_fetch_sub(&cache->references, 1) != 1)
        return;
    pthread_mutex_destroy(&cache->lock);
    cogpu_release(cache);
}

void cogpu_block_cache_close(cogpu_block_cache *cache) {
    if (!cache)
        return;
    pthread_mutex_lock(&cache->lock);
    while (cache->newest) {
        cogpu_cached_block *cached = cache->newest;
        remove_cached(cache, cached);
        cogpu_release(cached);
    }
    cache->is_closed = true;
    pthread_mutex_unlock(&cache->lock);
    drop_reference(cache);
}

cogpu_block_cache *cogpu_block_cache_share(cogpu_block_cache *cache) {
    atomic_fetch_add(&cache->references, 1);
    return cache;
}

void cogpu_block_cache_leave(cogpu_block_cache *cache, uint64_t file) {
    pthread_mutex_lock(&cache->lock);
    for (cogpu_cached_block *cached = cache->newest, *older; cached; cached = older) {
        older = cached->older;
        if (cached->key.file != file)
            continue;
        remove_cached(cache, cached);
        cogpu_release(cached);
    }
    pthread_mutex_unlock(&cache->lock);
    drop_reference(cache);
}

bool cogpu_block_cache_is_closed(cogpu_block_cache *cache) {
    pthread_mutex_lock(&cache->lock);
    bool is_closed = cache->is_closed;
    pthread_mutex_unlock(&cache->lock);
    return is_closed;
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

uint64_t cogpu_block_cache_budget(const cogpu_block_cache *cache) {
    return cache->budget_bytes;
}

cogpu_cached_block *cogpu_block_cache_reserve(cogpu_block_cache *cache, cogpu_block_cache_key key,
                                              size_t bytes) {
    cogpu_cached_block *cached = NULL;
    if (bytes > cache->budget_bytes)
        return NULL;
    pthread_mutex_lock(&cache->lock);
    bool fits = evict_until_fits(cache, bytes, &cached);
    cache->cached_bytes += fits ? sizeof *cached + bytes : 0;
    pthread_mutex_unlock(&cache->lock);
    if (!fits) {
        cogpu_release(cached);
        return NULL;
    }
    if (!cached)
        cached = cogpu_allocate(sizeof *cached + bytes);
    if (cached) {
        *cached = (cogpu_cached_block){.key = key, .bytes = bytes};
    } else {
        pthread_mutex_lock(&cache->lock);
        cache->cached_bytes -= sizeof *cached + bytes;
        pthread_mutex_unlock(&cache->lock);
    }
    return cached;
}

void cogpu_block_cache_insert(cogpu_block_cache *cache, cogpu_cached_block *cached) {
    pthread_mutex_lock(&cache->lock);
    /* Another thread may have decoded the same block meanwhile, or fewer of its rows before. */
    cogpu_cached_block *twin = find_cached(cache, cached->key);
    if (twin && twin->bytes < cached->bytes && twin->pins == 0) {
        remove_cached(cache, twin);
        cogpu_release(twin);
        twin = NULL;
    }
    bool is_new = !cache->is_closed && !twin;
    if (is_new) {
        cogpu_cached_block **bucket = bucket_of(cache, cached->key);
        cached->next_in_bucket = *bucket;
        *bucket = cached;
        link_newest(cache, cached);
    }
    pthread_mutex_unlock(&cache->lock);
    if (!is_new)
        cogpu_block_cache_discard(cache, cached);
}

void cogpu_block_cache_discard(cogpu_block_cache *cache, cogpu_cached_block *cached) {
    pthread_mutex_lock(&cache->lock);
    cache->cached_bytes -= cost_bytes(cached);
    pthread_mutex_unlock(&cache->lock);
    cogpu_release(cached);
}
