/* Prefetched ranges; see range_cache.h. */
#include "io/range/range_cache_internal.h"

#include <string.h>

cogpu_range_cache *cogpu_range_cache_open(const cogpu_range_loader *loader, void *source,
                                          uint64_t source_bytes, cogpu_coalesce_limits limits) {
    cogpu_range_cache *cache = cogpu_allocate(sizeof *cache);
    if (!cache)
        return NULL;
    *cache = (cogpu_range_cache){
        .loader = loader, .source = source, .source_bytes = source_bytes, .limits = limits};
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->range_loaded, NULL);
    return cache;
}

void cogpu_range_cache_close(cogpu_range_cache *cache) {
    if (!cache)
        return;
    for (cogpu_range *range = cache->kept.first, *next; range; range = next) {
        next = range->next;
        cogpu_release(range);
    }
    pthread_cond_destroy(&cache->range_loaded);
    pthread_mutex_destroy(&cache->lock);
    cogpu_release(cache);
}

/* ---- under the lock ---- */

static bool allocate_data(cogpu_range_cache *cache, cogpu_range *range) {
    if (!cache->loader->reserve(cache->source, range))
        return false;
    range->data = cogpu_map(range->bytes);
    if (!range->data)
        cache->loader->unreserve(cache->source, range);
    return range->data;
}

static void free_data(cogpu_range_cache *cache, cogpu_range *range) {
    if (!range->data)
        return;
    cogpu_unmap(range->data, range->bytes);
    cache->loader->unreserve(cache->source, range);
    range->data = NULL;
}

static void free_range(cogpu_range_cache *cache, cogpu_range *range) {
    if (range->state == COGPU_RANGE_ARRIVING)
        cache->loader->cancel(cache->source, range);
    free_data(cache, range);
    cogpu_release(range);
}

/* False, and the range stays PLANNED, if memory or the loader's budget is used up. */
static bool start_planned_range(cogpu_range_cache *cache, cogpu_range *range) {
    if (!allocate_data(cache, range))
        return false;
    if (!cache->loader->start(cache->source, range)) {
        free_data(cache, range);
        return false;
    }
    range->state = COGPU_RANGE_ARRIVING;
    return true;
}

/* Starts planned ranges in their order, as far as the budget goes. */
static void start_planned_ranges(cogpu_range_cache *cache) {
    if (!cache->loader->start)
        return;
    for (cogpu_range *range = cache->prefetched.first; range; range = range->next)
        if (range->state == COGPU_RANGE_PLANNED && !start_planned_range(cache, range))
            return;
}

static void end_use(cogpu_range_cache *cache, cogpu_range *range, size_t bytes_read) {
    if (!cogpu_range_list_end_use(&cache->prefetched, range, bytes_read))
        return;
    free_range(cache, range);
    start_planned_ranges(cache);
}

/* ---- groups: what a synchronous loader loads in one call ---- */

struct range_group {
    cogpu_range *ranges[COGPU_RANGE_GROUP_COUNT];
    size_t count;
    uint64_t bytes;
};

/* False if the group is full, or the loader's budget used up. */
static bool add_to_group(cogpu_range_cache *cache, cogpu_range *range, struct range_group *group) {
    if (group->count == COGPU_RANGE_GROUP_COUNT ||
        (group->count && group->bytes + range->bytes > COGPU_RANGE_GROUP_BYTES) ||
        !allocate_data(cache, range))
        return false;
    range->state = COGPU_RANGE_LOADING;
    range->users++;
    group->ranges[group->count++] = range;
    group->bytes += range->bytes;
    return true;
}

static void end_group(cogpu_range_cache *cache, const struct range_group *group,
                      cogpu_status status) {
    for (size_t i = 0; i < group->count; i++) {
        cogpu_range *range = group->ranges[i];
        range->state = status == COGPU_OK ? COGPU_RANGE_LOADED : COGPU_RANGE_FAILED;
        if (range->state == COGPU_RANGE_FAILED)
            free_data(cache, range);
        end_use(cache, range, 0);
    }
    pthread_cond_broadcast(&cache->range_loaded);
}

/* Loads a range together with those planned after it by the same prefetch. Releases the lock
 * meanwhile. */
static void load_group(cogpu_range_cache *cache, cogpu_range *first) {
    struct range_group group;
    group.count = 0;
    group.bytes = 0;
    for (cogpu_range *range = first; range && range->ticket == first->ticket; range = range->next)
        if (range->state == COGPU_RANGE_PLANNED && !add_to_group(cache, range, &group))
            break;
    if (group.count == 0)
        return;
    pthread_mutex_unlock(&cache->lock);
    cogpu_status status = cache->loader->load(cache->source, group.ranges, group.count);
    pthread_mutex_lock(&cache->lock);
    end_group(cache, &group, status);
}

/* ---- reads ---- */

/* Uses the range that covers these bytes, or returns NULL; *is_usable unless it has to be read past
 * the cache. */
static cogpu_range *begin_use(cogpu_range_cache *cache, uint64_t offset, size_t bytes,
                              bool *is_usable) {
    pthread_mutex_lock(&cache->lock);
    cogpu_range *range = cogpu_range_list_find(&cache->prefetched, offset, bytes);
    if (range) {
        range->users++;
        if (range->state == COGPU_RANGE_PLANNED && cache->loader->start)
            (void)start_planned_range(cache, range);
        else if (range->state == COGPU_RANGE_PLANNED)
            load_group(cache, range);
        while (range->state == COGPU_RANGE_LOADING)
            pthread_cond_wait(&cache->range_loaded, &cache->lock);
    }
    *is_usable =
        range && (range->state == COGPU_RANGE_ARRIVING || range->state == COGPU_RANGE_LOADED);
    pthread_mutex_unlock(&cache->lock);
    return range;
}

static cogpu_status copy_from_range(cogpu_range_cache *cache, cogpu_range *range, uint64_t offset,
                                    size_t bytes, void *to, cogpu_meter *meter,
                                    cogpu_error *error) {
    if (cache->loader->wait)
        TRY(cache->loader->wait(cache->source, range, offset, bytes, meter, error));
    memcpy(to, range->data + (offset - range->offset), bytes);
    return COGPU_OK;
}

cogpu_status cogpu_range_cache_read(cogpu_range_cache *cache, uint64_t offset, size_t bytes,
                                    void *to, cogpu_meter *meter, cogpu_error *error) {
    bool is_usable;
    cogpu_range *range = begin_use(cache, offset, bytes, &is_usable);
    cogpu_status status = is_usable
                              ? copy_from_range(cache, range, offset, bytes, to, meter, error)
                              : cache->loader->read(cache->source, offset, bytes, to, meter, error);
    if (!range)
        return status;
    pthread_mutex_lock(&cache->lock);
    end_use(cache, range, bytes);
    pthread_mutex_unlock(&cache->lock);
    return status;
}

/* ---- prefetches ---- */

uint64_t cogpu_range_cache_prefetch(cogpu_range_cache *cache, const cogpu_byte_range *spans,
                                    uint32_t count) {
    cogpu_range *planned = cogpu_ranges_plan(spans, count, cache->source_bytes, &cache->limits,
                                             cache->loader->range_bytes);
    pthread_mutex_lock(&cache->lock);
    uint64_t ticket = cogpu_range_list_append(&cache->prefetched, planned);
    start_planned_ranges(cache);
    pthread_mutex_unlock(&cache->lock);
    return ticket;
}

void cogpu_range_cache_end_prefetch(cogpu_range_cache *cache, uint64_t ticket) {
    pthread_mutex_lock(&cache->lock);
    cogpu_range *range = cogpu_range_list_end_ticket(&cache->prefetched, ticket);
    for (cogpu_range *next; range; range = next) {
        next = range->next;
        free_range(cache, range);
    }
    start_planned_ranges(cache);
    pthread_mutex_unlock(&cache->lock);
}
