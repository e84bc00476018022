/*
 * Reuse of small device allocations.
 *
 * cuMemFree waits until the whole device is idle, and blocks other threads meanwhile: with a new
 * array for each small read, threads that share a device would run one after the other. So released
 * memory is kept for the next allocation of its size. Work of any stream may still use it at its
 * release; a synchronisation of the device, once for many releases and without a lock, ends that.
 *
 *     allocated --release--> waiting --device synchronised--> ready --allocate--> allocated
 *
 * Any thread may call these functions.
 */
#ifndef COGPU_GPU_DRIVER_MEMORY_CACHE_H
#define COGPU_GPU_DRIVER_MEMORY_CACHE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    COGPU_MEMORY_CACHE_BLOCKS = 64,            /* in each of the two lists */
    COGPU_MEMORY_CACHE_BLOCK_BYTES = 4 << 20,  /* larger allocations are not kept */
    COGPU_MEMORY_CACHE_LIST_BYTES = 64 << 20,  /* of each list */
    COGPU_MEMORY_CACHE_GRANULE_BYTES = 1 << 16 /* sizes are rounded up to multiples of this */
};

typedef struct cogpu_memory_cache_block {
    uint64_t address, bytes;
} cogpu_memory_cache_block;

typedef struct cogpu_memory_cache_list {
    cogpu_memory_cache_block blocks[COGPU_MEMORY_CACHE_BLOCKS];
    uint32_t count;
    uint64_t bytes;
} cogpu_memory_cache_list;

/* Zeroed but for these fields. */
typedef struct cogpu_memory_cache {
    void *user;
    /* Waits for all work of the device; false if it cannot. Without the lock. */
    bool (*synchronize)(void *user);
    void (*free_block)(void *user, uint64_t address);

    pthread_mutex_t lock;
    cogpu_memory_cache_list waiting, ready;
} cogpu_memory_cache;

/* The size to allocate for so many bytes, which is what a later release reports. */
uint64_t cogpu_memory_cache_size(uint64_t bytes);

/* A kept block of that size; 0 if there is none. */
uint64_t cogpu_memory_cache_take(cogpu_memory_cache *cache, uint64_t size);

/* Keeps a block, or frees it. */
void cogpu_memory_cache_keep(cogpu_memory_cache *cache, uint64_t address, uint64_t size);

/* Frees all kept blocks; returns their number. */
uint32_t cogpu_memory_cache_flush(cogpu_memory_cache *cache);

/* Whether this address is in a kept block, which callers no longer own. */
bool cogpu_memory_cache_holds(cogpu_memory_cache *cache, uint64_t address);

#endif
