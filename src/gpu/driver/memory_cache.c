/* Reuse of small device allocations: see memory_cache.h. */
#include "gpu/driver/memory_cache.h"

uint64_t cogpu_memory_cache_size(uint64_t bytes) {
    const uint64_t granule = COGPU_MEMORY_CACHE_GRANULE_BYTES;
    return bytes > COGPU_MEMORY_CACHE_BLOCK_BYTES ? bytes
                                                  : (bytes + granule - 1) / granule * granule;
}

static bool fits_list(const cogpu_memory_cache_list *list, uint64_t bytes) {
    return list->count < COGPU_MEMORY_CACHE_BLOCKS &&
           list->bytes + bytes <= COGPU_MEMORY_CACHE_LIST_BYTES;
}

static void append_block(cogpu_memory_cache_list *list, cogpu_memory_cache_block block) {
    list->blocks[list->count++] = block;
    list->bytes += block.bytes;
}

static cogpu_memory_cache_block remove_block(cogpu_memory_cache_list *list, uint32_t index) {
    cogpu_memory_cache_block block = list->blocks[index];
    list->bytes -= block.bytes;
    list->blocks[index] = list->blocks[--list->count];
    return block;
}

static cogpu_memory_cache_list detach_list(cogpu_memory_cache *cache,
                                           cogpu_memory_cache_list *list) {
    pthread_mutex_lock(&cache->lock);
    cogpu_memory_cache_list detached = *list;
    list->count = 0;
    list->bytes = 0;
    pthread_mutex_unlock(&cache->lock);
    return detached;
}

static void free_list(cogpu_memory_cache *cache, const cogpu_memory_cache_list *list) {
    for (uint32_t i = 0; i < list->count; i++)
        cache->free_block(cache->user, list->blocks[i].address);
}

/* Moves blocks whose release every stream has passed to the ready list. The oldest ready blocks
 * make place for them: their size was not asked for lately. */
static void make_ready(cogpu_memory_cache *cache, const cogpu_memory_cache_list *released) {
    uint64_t evicted[2 * COGPU_MEMORY_CACHE_BLOCKS];
    uint32_t count = 0;
    pthread_mutex_lock(&cache->lock);
    for (uint32_t i = 0; i < released->count; i++) {
        while (!fits_list(&cache->ready, released->blocks[i].bytes))
            evicted[count++] = remove_block(&cache->ready, 0).address;
        append_block(&cache->ready, released->blocks[i]);
    }
    pthread_mutex_unlock(&cache->lock);
    for (uint32_t i = 0; i < count; i++)
        cache->free_block(cache->user, evicted[i]);
}

/* One thread waits for the device; others go on, and release into an empty list. */
static void finish_releases(cogpu_memory_cache *cache) {
    cogpu_memory_cache_list released = detach_list(cache, &cache->waiting);
    if (released.count > 0 && cache->synchronize(cache->user))
        make_ready(cache, &released);
    else
        free_list(cache, &released);
}

uint64_t cogpu_memory_cache_take(cogpu_memory_cache *cache, uint64_t size) {
    uint64_t address = 0;
    pthread_mutex_lock(&cache->lock);
    for (uint32_t i = cache->ready.count; address == 0 && i-- > 0;)
        if (cache->ready.blocks[i].bytes == size)
            address = remove_block(&cache->ready, i).address;
    pthread_mutex_unlock(&cache->lock);
    return address;
}

void cogpu_memory_cache_keep(cogpu_memory_cache *cache, uint64_t address, uint64_t size) {
    if (size > COGPU_MEMORY_CACHE_BLOCK_BYTES) {
        cache->free_block(cache->user, address);
        return;
    }
    for (int attempt = 0; attempt < 2; attempt++) {
        pthread_mutex_lock(&cache->lock);
        bool fits = fits_list(&cache->waiting, size);
        if (fits)
            append_block(&cache->waiting, (cogpu_memory_cache_block){address, size});
        pthread_mutex_unlock(&cache->lock);
        if (fits)
            return;
        finish_releases(cache);
    }
    cache->free_block(cache->user, address); /* other threads filled the list meanwhile */
}

uint32_t cogpu_memory_cache_flush(cogpu_memory_cache *cache) {
    cogpu_memory_cache_list waiting = detach_list(cache, &cache->waiting);
    cogpu_memory_cache_list ready = detach_list(cache, &cache->ready);
    free_list(cache, &waiting);
    free_list(cache, &ready);
    return waiting.count + ready.count;
}

static bool list_holds(const cogpu_memory_cache_list *list, uint64_t address) {
    for (uint32_t i = 0; i < list->count; i++)
        if (address - list->blocks[i].address < list->blocks[i].bytes)
            return true;
    return false;
}

bool cogpu_memory_cache_holds(cogpu_memory_cache *cache, uint64_t address) {
    pthread_mutex_lock(&cache->lock);
    bool holds = list_holds(&cache->waiting, address) || list_holds(&cache->ready, address);
    pthread_mutex_unlock(&cache->lock);
    return holds;
}
