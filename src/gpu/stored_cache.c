/* A hash table with chains for the look-up, slabs by last use for the eviction, one lock. */
#include "gpu/stored_cache.h"

#include "base/math.h"
#include "kernels/decoder.h"

#include <pthread.h>
#include <string.h>

/* Slabs: SLABS of the budget, within these bounds. */
enum { SLABS = 16, SLAB_BYTES_MIN = 256 << 10, SLAB_BYTES_MAX = 64 << 20 };
/* A bucket for so many bytes of the budget, within these bounds. */
enum { BUCKET_BYTES = 16 << 10, BUCKETS_MIN = 1 << 10, BUCKETS_MAX = 1 << 20 };

#define NO_SLAB UINT32_MAX

struct slab {
    uint8_t *memory; /* NULL: not allocated */
    uint64_t used_bytes;
    uint64_t used_at; /* time of the last use, in ticks of the cache */
    uint32_t pins;    /* of its blocks */
    cogpu_stored_block *blocks;
};

struct cogpu_stored_cache {
    cogpu_gpu *gpu;
    uint64_t slab_bytes;
    uint32_t bucket_count;
    pthread_mutex_t lock; /* of what follows; never held over a call of the driver */
    pthread_cond_t grown; /* is_growing became false */
    bool is_growing;      /* a thread allocates a slab */
    uint32_t slab_count, slab_limit;
    uint32_t filled; /* the slab that blocks are appended to; NO_SLAB: none yet */
    uint64_t ticks;
    struct slab *slabs; /* slab_limit of them, at first */
    cogpu_stored_block **buckets;
};

cogpu_status cogpu_stored_cache_open(cogpu_gpu *gpu, uint64_t budget_bytes,
                                     cogpu_stored_cache **out, cogpu_error *error) {
    const uint64_t slab_bytes =
        min_u64(max_u64(budget_bytes / SLABS, SLAB_BYTES_MIN), SLAB_BYTES_MAX);
    cogpu_stored_cache *cache = cogpu_allocate(sizeof *cache);
    if (!cache)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the device cache");
    *cache = (cogpu_stored_cache){
        .gpu = gpu,
        .slab_bytes = min_u64(slab_bytes, budget_bytes) / COGPU_GPU_ALIGN * COGPU_GPU_ALIGN,
        .bucket_count =
            (uint32_t)min_u64(max_u64(budget_bytes / BUCKET_BYTES, BUCKETS_MIN), BUCKETS_MAX),
        .filled = NO_SLAB};
    if (cache->slab_bytes > 0)
        cache->slab_limit = (uint32_t)min_u64(budget_bytes / cache->slab_bytes, NO_SLAB - 1);
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->grown, NULL);
    cache->slabs = cogpu_allocate((cache->slab_limit + (size_t)1) * sizeof *cache->slabs);
    cache->buckets = cogpu_allocate(cache->bucket_count * sizeof(cogpu_stored_block *));
    if (!cache->slabs || !cache->buckets) {
        cogpu_stored_cache_close(cache);
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the device cache");
    }
    memset(cache->buckets, 0, cache->bucket_count * sizeof(cogpu_stored_block *));
    *out = cache;
    return COGPU_OK;
}

/* ---- blocks -------------------------------------------------------------------------------- */

static cogpu_stored_block **bucket_of(const cogpu_stored_cache *cache, cogpu_block_cache_key key) {
    return &cache->buckets[(cogpu_block_cache_hash(key) >> 32) % cache->bucket_count];
}

static cogpu_stored_block *find_block(const cogpu_stored_cache *cache, cogpu_block_cache_key key) {
    cogpu_stored_block *block = *bucket_of(cache, key);
    while (block && !cogpu_block_cache_is_same_key(block->key, key))
        block = block->next_in_bucket;
    return block;
}

static void unlink_from_bucket(const cogpu_stored_cache *cache, const cogpu_stored_block *block) {
    cogpu_stored_block **link = bucket_of(cache, block->key);
    while (*link != block)
        link = &(*link)->next_in_bucket;
    *link = block->next_in_bucket;
}

static void empty_slab(const cogpu_stored_cache *cache, struct slab *slab) {
    while (slab->blocks) {
        cogpu_stored_block *block = slab->blocks;
        slab->blocks = block->next_in_slab;
        unlink_from_bucket(cache, block);
        cogpu_release(block);
    }
    slab->used_bytes = 0;
}

static void pin(cogpu_stored_cache *cache, const cogpu_stored_block *block) {
    struct slab *slab = &cache->slabs[block->slab];
    slab->pins++;
    slab->used_at = ++cache->ticks;
}

void cogpu_stored_cache_close(cogpu_stored_cache *cache) {
    if (!cache)
        return;
    for (uint32_t i = 0; i < cache->slab_count; i++) {
        empty_slab(cache, &cache->slabs[i]);
        cache->gpu->calls->release(cache->gpu, cache->slabs[i].memory);
    }
    pthread_cond_destroy(&cache->grown);
    pthread_mutex_destroy(&cache->lock);
    cogpu_release(cache->slabs);
    cogpu_release(cache->buckets);
    cogpu_release(cache);
}

/* ---- use ----------------------------------------------------------------------------------- */

bool cogpu_stored_cache_has(cogpu_stored_cache *cache, cogpu_block_cache_key key) {
    pthread_mutex_lock(&cache->lock);
    const cogpu_stored_block *block = find_block(cache, key);
    bool has = block && block->is_kept;
    pthread_mutex_unlock(&cache->lock);
    return has;
}

cogpu_stored_block *cogpu_stored_cache_find(cogpu_stored_cache *cache, cogpu_block_cache_key key,
                                            uint64_t bytes) {
    pthread_mutex_lock(&cache->lock);
    cogpu_stored_block *block = find_block(cache, key);
    if (block && block->is_kept && block->bytes == bytes)
        pin(cache, block);
    else
        block = NULL;
    pthread_mutex_unlock(&cache->lock);
    return block;
}

void cogpu_stored_cache_unpin(cogpu_stored_cache *cache, cogpu_stored_block *block) {
    pthread_mutex_lock(&cache->lock);
    cache->slabs[block->slab].pins--;
    pthread_mutex_unlock(&cache->lock);
}

/* ---- slabs --------------------------------------------------------------------------------- */

/* Like other memory of reads, a slab leaves a tenth of the free memory. */
static uint8_t *allocate_slab(cogpu_gpu *gpu, uint64_t bytes) {
    uint64_t free_bytes = 0, total = 0;
    void *memory = NULL;
    if (gpu->calls->memory(gpu, &free_bytes, &total, NULL) != COGPU_OK ||
        bytes > free_bytes / 10 * 9 || gpu->calls->allocate(gpu, bytes, &memory, NULL) != COGPU_OK)
        return NULL;
    return memory;
}

/* Releases the lock meanwhile. If memory runs out, the cache stays as large as it is. */
static void add_slab(cogpu_stored_cache *cache) {
    cache->is_growing = true;
    pthread_mutex_unlock(&cache->lock);
    uint8_t *memory = allocate_slab(cache->gpu, cache->slab_bytes);
    pthread_mutex_lock(&cache->lock);
    if (memory) {
        cache->filled = cache->slab_count++;
        cache->slabs[cache->filled] = (struct slab){.memory = memory};
    } else {
        cache->slab_limit = cache->slab_count;
    }
    cache->is_growing = false;
    pthread_cond_broadcast(&cache->grown);
}

/* Empties the slab that was not used for the longest time. False if all are in use. */
static bool reuse_oldest_slab(cogpu_stored_cache *cache) {
    uint32_t oldest = NO_SLAB;
    for (uint32_t i = 0; i < cache->slab_count; i++)
        if (cache->slabs[i].pins == 0 &&
            (oldest == NO_SLAB || cache->slabs[i].used_at < cache->slabs[oldest].used_at))
            oldest = i;
    if (oldest == NO_SLAB)
        return false;
    empty_slab(cache, &cache->slabs[oldest]);
    cache->filled = oldest;
    return true;
}

static bool fits(const cogpu_stored_cache *cache, uint64_t bytes) {
    return cache->filled != NO_SLAB &&
           bytes <= cache->slab_bytes - cache->slabs[cache->filled].used_bytes;
}

static bool make_space(cogpu_stored_cache *cache, uint64_t bytes) {
    bool has_slab = bytes <= cache->slab_bytes;
    while (has_slab && !fits(cache, bytes)) {
        if (cache->is_growing)
            pthread_cond_wait(&cache->grown, &cache->lock);
        else if (cache->slab_count < cache->slab_limit)
            add_slab(cache);
        else
            has_slab = reuse_oldest_slab(cache);
    }
    return has_slab;
}

/* ---- new blocks ---------------------------------------------------------------------------- */

/* Takes the memory for it, and pins it. */
static void append(cogpu_stored_cache *cache, cogpu_stored_block *block) {
    struct slab *slab = &cache->slabs[cache->filled];
    cogpu_stored_block **bucket = bucket_of(cache, block->key);
    block->slab = cache->filled;
    block->memory = slab->memory + slab->used_bytes;
    slab->used_bytes += cogpu_gpu_align(block->bytes);
    block->next_in_slab = slab->blocks;
    slab->blocks = block;
    block->next_in_bucket = *bucket;
    *bucket = block;
    pin(cache, block);
}

cogpu_stored_block *cogpu_stored_cache_reserve(cogpu_stored_cache *cache, cogpu_block_cache_key key,
                                               uint64_t bytes) {
    cogpu_stored_block *block = cogpu_allocate(sizeof *block);
    if (!block)
        return NULL;
    *block = (cogpu_stored_block){.key = key, .bytes = bytes};
    pthread_mutex_lock(&cache->lock);
    /* Another thread may have reserved it, before or while this one waited. */
    bool has_space = !find_block(cache, key) && make_space(cache, cogpu_gpu_align(bytes)) &&
                     !find_block(cache, key);
    if (has_space)
        append(cache, block);
    pthread_mutex_unlock(&cache->lock);
    if (has_space)
        return block;
    cogpu_release(block);
    return NULL;
}

void cogpu_stored_cache_keep(cogpu_stored_cache *cache, cogpu_stored_block *block) {
    pthread_mutex_lock(&cache->lock);
    block->is_kept = true;
    cache->slabs[block->slab].pins--;
    pthread_mutex_unlock(&cache->lock);
}

/* Its memory is free again when its slab is emptied. */
void cogpu_stored_cache_discard(cogpu_stored_cache *cache, cogpu_stored_block *block) {
    pthread_mutex_lock(&cache->lock);
    struct slab *slab = &cache->slabs[block->slab];
    cogpu_stored_block **link = &slab->blocks;
    while (*link != block)
        link = &(*link)->next_in_slab;
    *link = block->next_in_slab;
    unlink_from_bucket(cache, block);
    slab->pins--;
    pthread_mutex_unlock(&cache->lock);
    cogpu_release(block);
}
