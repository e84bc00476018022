/* See header_cache.h. */
#include "io/http/header_cache.h"

#include "base/memory.h"

#include <pthread.h>
#include <string.h>

struct cached_entry {
    char *key;
    double expires_at;
    cogpu_cached_header header;
};

struct cogpu_header_cache {
    double seconds;
    pthread_mutex_t lock;                                /* of the rest */
    struct cached_entry entries[COGPU_HEADER_CACHE_MAX]; /* by time of expiry */
    uint32_t count;
    size_t bytes;
};

cogpu_header_cache *cogpu_header_cache_open(double seconds) {
    cogpu_header_cache *cache = cogpu_allocate(sizeof *cache);
    if (!cache)
        return NULL;
    *cache = (cogpu_header_cache){.seconds = seconds};
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

/* ---- under the lock ---- */

static size_t entry_bytes(const char *key, const cogpu_cached_header *header) {
    return strlen(key) + 1 + header->bytes;
}

static void free_entry(struct cached_entry *entry) {
    if (entry->key)
        explicit_bzero(entry->key, strlen(entry->key));
    cogpu_release(entry->key);
    cogpu_release(entry->header.data);
}

static void remove_entry(cogpu_header_cache *cache, uint32_t index) {
    struct cached_entry *entry = &cache->entries[index];
    cache->bytes -= entry_bytes(entry->key, &entry->header);
    free_entry(entry);
    cache->count--;
    memmove(entry, entry + 1, (cache->count - index) * sizeof *entry);
}

/* COGPU_HEADER_CACHE_MAX if there is none. */
static uint32_t find_entry(const cogpu_header_cache *cache, const char *key) {
    for (uint32_t i = 0; i < cache->count; i++)
        if (strcmp(cache->entries[i].key, key) == 0)
            return i;
    return COGPU_HEADER_CACHE_MAX;
}

static void drop_key(cogpu_header_cache *cache, const char *key) {
    uint32_t index = find_entry(cache, key);
    if (index < COGPU_HEADER_CACHE_MAX)
        remove_entry(cache, index);
}

static void drop_expired(cogpu_header_cache *cache, double now) {
    while (cache->count && cache->entries[0].expires_at <= now)
        remove_entry(cache, 0);
}

static void evict_for(cogpu_header_cache *cache, size_t bytes) {
    while (cache->count == COGPU_HEADER_CACHE_MAX ||
           (cache->count && cache->bytes + bytes > COGPU_HEADER_CACHE_BYTES))
        remove_entry(cache, 0);
}

/* ---- without it ---- */

void cogpu_header_cache_close(cogpu_header_cache *cache) {
    if (!cache)
        return;
    while (cache->count)
        remove_entry(cache, cache->count - 1);
    pthread_mutex_destroy(&cache->lock);
    cogpu_release(cache);
}

static void *copy_bytes(const void *data, size_t bytes) {
    void *copy = cogpu_allocate(bytes);
    return copy ? memcpy(copy, data, bytes) : NULL;
}

void cogpu_header_cache_insert(cogpu_header_cache *cache, const char *key, double now,
                               const cogpu_cached_header *header) {
    size_t bytes = entry_bytes(key, header);
    if (cache->seconds < 0 || bytes > COGPU_HEADER_CACHE_BYTES)
        return;
    struct cached_entry entry = {.key = copy_bytes(key, strlen(key) + 1),
                                 .expires_at = now + cache->seconds,
                                 .header = *header};
    entry.header.data = copy_bytes(header->data, header->bytes);
    if (!entry.key || !entry.header.data) {
        free_entry(&entry);
        return;
    }
    pthread_mutex_lock(&cache->lock);
    drop_key(cache, key);
    drop_expired(cache, now);
    evict_for(cache, bytes);
    cache->entries[cache->count++] = entry;
    cache->bytes += bytes;
    pthread_mutex_unlock(&cache->lock);
}

bool cogpu_header_cache_find(cogpu_header_cache *cache, const char *key, double now,
                             cogpu_cached_header *header) {
    bool is_found = false;
    pthread_mutex_lock(&cache->lock);
    drop_expired(cache, now);
    uint32_t index = find_entry(cache, key);
    if (index < COGPU_HEADER_CACHE_MAX) {
        *header = cache->entries[index].header;
        header->data = copy_bytes(header->data, header->bytes);
        is_found = header->data != NULL;
    }
    pthread_mutex_unlock(&cache->lock);
    return is_found;
}

void cogpu_header_cache_drop(cogpu_header_cache *cache, const char *key) {
    pthread_mutex_lock(&cache->lock);
    drop_key(cache, key);
    pthread_mutex_unlock(&cache->lock);
}

void cogpu_header_cache_drop_url(cogpu_header_cache *cache, const char *url) {
    const size_t bytes = strlen(url);
    pthread_mutex_lock(&cache->lock);
    for (uint32_t i = cache->count; i-- > 0;) {
        const char *key = cache->entries[i].key;
        if (strncmp(key, url, bytes) == 0 && key[bytes] == '\n')
            remove_entry(cache, i);
    }
    pthread_mutex_unlock(&cache->lock);
}
