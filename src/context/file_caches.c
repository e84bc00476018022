/* The block caches of contexts that read a file: its blocks leave them when it is closed. */
#include "context/file_object.h"

#include <pthread.h>

struct joined_cache {
    struct joined_cache *next;
    cogpu_block_cache *cache; /* a reference */
};

struct cogpu_file_caches {
    pthread_mutex_t lock;
    struct joined_cache *first;
};

struct cogpu_file_caches *cogpu_file_caches_open(void) {
    struct cogpu_file_caches *caches = cogpu_allocate(sizeof *caches);
    if (!caches)
        return NULL;
    caches->first = NULL;
    pthread_mutex_init(&caches->lock, NULL);
    return caches;
}

static void leave_first(struct joined_cache **link, uint64_t file) {
    struct joined_cache *joined = *link;
    *link = joined->next;
    cogpu_block_cache_leave(joined->cache, file);
    cogpu_release(joined);
}

void cogpu_file_caches_close(struct cogpu_file_caches *caches, uint64_t file) {
    if (!caches)
        return;
    while (caches->first)
        leave_first(&caches->first, file);
    pthread_mutex_destroy(&caches->lock);
    cogpu_release(caches);
}

static bool has_joined(const struct cogpu_file_caches *caches, const cogpu_block_cache *cache) {
    const struct joined_cache *joined = caches->first;
    while (joined && joined->cache != cache)
        joined = joined->next;
    return joined;
}

/* A file may outlive many contexts. */
static void leave_closed_caches(struct cogpu_file_caches *caches, uint64_t file) {
    for (struct joined_cache **link = &caches->first; *link;)
        if (cogpu_block_cache_is_closed((*link)->cache))
            leave_first(link, file);
        else
            link = &(*link)->next;
}

static bool join_cache(struct cogpu_file_caches *caches, cogpu_block_cache *cache) {
    struct joined_cache *joined = cogpu_allocate(sizeof *joined);
    if (joined) {
        *joined =
            (struct joined_cache){.next = caches->first, .cache = cogpu_block_cache_share(cache)};
        caches->first = joined;
    }
    return joined;
}

bool cogpu_file_join_cache(const cogpu_file *file, cogpu_block_cache *cache) {
    struct cogpu_file_caches *caches = file->caches;
    pthread_mutex_lock(&caches->lock);
    bool has = has_joined(caches, cache);
    if (!has) {
        leave_closed_caches(caches, file->number);
        has = join_cache(caches, cache);
    }
    pthread_mutex_unlock(&caches->lock);
    return has;
}
