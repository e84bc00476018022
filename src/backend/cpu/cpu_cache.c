/* A table of chains for the look-up, a list by time of last use for the eviction, one lock. */
#include "backend/cpu/cpu_cache.h"

#include <pthread.h>
#include <string.h>

enum { SLOTS = 4096 };

struct cogpu_cache {
    pthread_mutex_t lock;
    uint64_t budget, held;
    cogpu_cached *newest, *oldest;
    cogpu_cached *slots[SLOTS];
};

cogpu_status cogpu_cache_open(uint64_t budget, cogpu_cache **out, cogpu_error *error) {
    cogpu_cache *cache = cogpu_allocate(sizeof *cache);
    if (!cache)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the cache of blocks");
    memset(cache, 0, sizeof *cache);
    cache->budget = budget;
    pthread_mutex_init(&cache->lock, NULL);
    *out = cache;
    return COGPU_OK;
}

void cogpu_cache_close(cogpu_cache *cache) {
    if (!cache)
        return;
    for (cogpu_cached *cached = cache->newest; cached;) {
        cogpu_cached *older = cached->older;
        cogpu_release(cached);
        cached = older;
    }
    pthread_mutex_destroy(&cache->lock);
    cogpu_release(cache);
}

/* A block costs its head too: a budget must hold for many small ones. */
static uint64_t cost_of(const cogpu_cached *cached) {
    return sizeof *cached + cached->bytes;
}

static cogpu_cached **slot_of(cogpu_cache *cache, cogpu_cache_key key) {
    uint64_t hash = (key.file * 31 + key.directory) * 0x9E3779B97F4A7C15ULL + key.block;
    hash *= 0x9E3779B97F4A7C15ULL;
    return &cache->slots[hash >> 52];
}

static bool same_key(cogpu_cache_key a, cogpu_cache_key b) {
    return a.file == b.file && a.directory == b.directory && a.block == b.block;
}

static cogpu_cached *look_up(cogpu_cache *cache, cogpu_cache_key key) {
    cogpu_cached *cached = *slot_of(cache, key);
    while (cached && !same_key(cached->key, key))
        cached = cached->same_slot;
    return cached;
}

static void unlink_use(cogpu_cache *cache, cogpu_cached *cached) {
    *(cached->newer ? &cached->newer->older : &cache->newest) = cached->older;
    *(cached->older ? &cached->older->newer : &cache->oldest) = cached->newer;
}

static void link_newest(cogpu_cache *cache, cogpu_cached *cached) {
    cached->newer = NULL;
    cached->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = cached;
    cache->newest = cached;
}

static void evict(cogpu_cache *cache, cogpu_cached *cached) {
    cogpu_cached **link = slot_of(cache, cached->key);
    while (*link != cached)
        link = &(*link)->same_slot;
    *link = cached->same_slot;
    unlink_use(cache, cached);
    cache->held -= cost_of(cached);
    cogpu_release(cached);
}

/* Makes room, sparing blocks in use; false where they leave too little. */
static bool make_room(cogpu_cache *cache, uint64_t bytes) {
    cogpu_cached *cached = cache->oldest;
    while (cache->held + bytes > cache->budget && cached) {
        cogpu_cached *newer = cached->newer;
        if (cached->users == 0)
            evict(cache, cached);
        cached = newer;
    }
    return cache->held + bytes <= cache->budget;
}

cogpu_cached *cogpu_cache_take(cogpu_cache *cache, cogpu_cache_key key) {
    pthread_mutex_lock(&cache->lock);
    cogpu_cached *cached = look_up(cache, key);
    if (cached) {
        cached->users++;
        unlink_use(cache, cached);
        link_newest(cache, cached);
    }
    pthread_mutex_unlock(&cache->lock);
    return cached;
}

void cogpu_cache_give_back(cogpu_cache *cache, cogpu_cached *cached) {
    pthread_mutex_lock(&cache->lock);
    cached->users--;
    pthread_mutex_unlock(&cache->lock);
}

bool cogpu_cache_could_keep(const cogpu_cache *cache, uint64_t bytes) {
    return bytes <= cache->budget;
}

cogpu_cached *cogpu_cache_reserve(const cogpu_cache *cache, cogpu_cache_key key, size_t bytes) {
    cogpu_cached *cached =
        cogpu_cache_could_keep(cache, bytes) ? cogpu_allocate(sizeof *cached + bytes) : NULL;
    if (cached)
        *cached = (cogpu_cached){.key = key, .bytes = bytes};
    return cached;
}

void cogpu_cache_keep(cogpu_cache *cache, cogpu_cached *cached) {
    pthread_mutex_lock(&cache->lock);
    /* Another thread may have decoded the same block meanwhile. */
    bool kept = !look_up(cache, cached->key) && make_room(cache, cost_of(cached));
    if (kept) {
        cogpu_cached **slot = slot_of(cache, cached->key);
        cached->same_slot = *slot;
        *slot = cached;
        link_newest(cache, cached);
        cache->held += cost_of(cached);
    }
    pthread_mutex_unlock(&cache->lock);
    if (!kept)
        cogpu_release(cached);
}
