/*
 * The cache of stored blocks by itself: what it keeps, what it evicts and when, its memory. The
 * bytes of blocks are those of reads: test_read_cached.c.
 */
#include "gpu/stored_cache.h"
#include "kernels/decoder.h"
#include "support/gpu_test.h"
#include "support/test.h"

#include <pthread.h>

static cogpu_error error;

/* 8 slabs, each for 4 blocks. */
enum { SLAB = 256 << 10, SLABS = 8, BLOCK = SLAB / 4, BLOCKS = 4 * SLABS };

static cogpu_gpu *gpu;
static cogpu_gpu_driver calls;
static const cogpu_gpu_driver *emulator_calls;
static uint32_t allocated, allowed;

static cogpu_status allocate_and_count(cogpu_gpu *device, uint64_t bytes, void **memory,
                                       cogpu_error *why) {
    CHECK(bytes == SLAB);
    if (allocated == allowed)
        return COGPU_OUT_OF_MEMORY;
    allocated++;
    return emulator_calls->allocate(device, bytes, memory, why);
}

static void release_and_count(cogpu_gpu *device, void *memory) {
    allocated--;
    emulator_calls->release(device, memory);
}

static cogpu_stored_cache *open_cache(uint32_t slabs) {
    cogpu_stored_cache *cache = NULL;
    CHECK(cogpu_gpu_open_emulator(1, UINT64_C(1) << 30, &gpu, &error) == COGPU_OK);
    emulator_calls = gpu->calls;
    calls = *gpu->calls;
    calls.allocate = allocate_and_count;
    calls.release = release_and_count;
    gpu->calls = &calls;
    allowed = SLABS;
    CHECK(cogpu_stored_cache_open(gpu, (uint64_t)slabs * SLAB, &cache, &error) == COGPU_OK);
    CHECK(allocated == 0);
    return cache;
}

static void close_cache(cogpu_stored_cache *cache) {
    cogpu_stored_cache_close(cache);
    CHECK(allocated == 0);
    gpu->calls = emulator_calls;
    gpu->calls->close(gpu);
}

static cogpu_block_cache_key key_of(uint64_t block) {
    return (cogpu_block_cache_key){.file = 1, .directory = 0, .block = block};
}

static bool has(cogpu_stored_cache *cache, uint64_t block) {
    return cogpu_stored_cache_has(cache, key_of(block));
}

static cogpu_stored_block *reserve(cogpu_stored_cache *cache, uint64_t block) {
    return cogpu_stored_cache_reserve(cache, key_of(block), BLOCK);
}

/* Blocks from `first` on; returns how many the cache took. */
static uint32_t keep(cogpu_stored_cache *cache, uint64_t first, uint32_t count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        cogpu_stored_block *block = reserve(cache, first + i);
        if (block)
            cogpu_stored_cache_keep(cache, block);
        kept += block != NULL;
    }
    return kept;
}

static uint32_t count_kept(cogpu_stored_cache *cache, uint64_t first, uint32_t count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        kept += has(cache, first + i);
    return kept;
}

static void use(cogpu_stored_cache *cache, uint64_t block) {
    cogpu_stored_block *found = cogpu_stored_cache_find(cache, key_of(block), BLOCK);
    CHECK(found);
    if (found)
        cogpu_stored_cache_unpin(cache, found);
}

/* ---- blocks -------------------------------------------------------------------------------- */

static void test_kept_and_discarded(void) {
    cogpu_stored_cache *cache = open_cache(SLABS);
    cogpu_stored_block *block = reserve(cache, 7), *other = reserve(cache, 8);
    CHECK(block && other && allocated == 1 && block->memory != other->memory);
    CHECK((uintptr_t)block->memory % COGPU_GPU_ALIGN == 0);
    CHECK(!has(cache, 7) && !cogpu_stored_cache_find(cache, key_of(7), BLOCK));
    CHECK(!reserve(cache, 7)); /* it is on its way */
    cogpu_stored_cache_keep(cache, block);
    cogpu_stored_cache_discard(cache, other);
    CHECK(has(cache, 7) && !has(cache, 8) && !reserve(cache, 7));
    CHECK(!cogpu_stored_cache_find(cache, key_of(7), BLOCK - 1));
    block = cogpu_stored_cache_find(cache, key_of(7), BLOCK);
    CHECK(block && block->bytes == BLOCK);
    cogpu_stored_cache_unpin(cache, block);
    CHECK(keep(cache, 8, 1) == 1 && has(cache, 8));
    close_cache(cache);
}

static void test_keys(void) {
    cogpu_stored_cache *cache = open_cache(SLABS);
    const cogpu_block_cache_key keys[] = {{1, 2, 3}, {2, 2, 3}, {1, 3, 3}, {1, 2, 4}};
    for (uint32_t i = 0; i < 4; i++) {
        CHECK(!cogpu_stored_cache_has(cache, keys[i]));
        cogpu_stored_cache_keep(cache, cogpu_stored_cache_reserve(cache, keys[i], 100));
    }
    for (uint32_t i = 0; i < 4; i++)
        CHECK(cogpu_stored_cache_has(cache, keys[i]));
    close_cache(cache);
}

static void test_block_larger_than_a_slab(void) {
    cogpu_stored_cache *cache = open_cache(SLABS);
    CHECK(!cogpu_stored_cache_reserve(cache, key_of(1), SLAB + 1) && allocated == 0);
    cogpu_stored_block *block = cogpu_stored_cache_reserve(cache, key_of(1), SLAB);
    CHECK(block);
    cogpu_stored_cache_keep(cache, block);
    close_cache(cache);
}

/* Less than a slab of usual size: it is smaller. Less than a block: nothing is kept. */
static void test_small_budgets(void) {
    static const uint64_t budgets[] = {1, 255, 256, 1000};
    for (uint32_t i = 0; i < 4; i++) {
        cogpu_stored_cache *cache = NULL;
        CHECK(cogpu_gpu_open_emulator(1, 1 << 20, &gpu, &error) == COGPU_OK);
        CHECK(cogpu_stored_cache_open(gpu, budgets[i], &cache, &error) == COGPU_OK);
        cogpu_stored_block *block = cogpu_stored_cache_reserve(cache, key_of(1), 10);
        CHECK((block != NULL) == (i >= 2));
        if (block)
            cogpu_stored_cache_keep(cache, block);
        cogpu_stored_cache_close(cache);
        gpu->calls->close(gpu);
    }
}

/* ---- eviction ------------------------------------------------------------------------------ */

/* The slab that was not used for the longest time goes, as a whole. */
static void test_oldest_slab_is_evicted(void) {
    cogpu_stored_cache *cache = open_cache(SLABS);
    CHECK(keep(cache, 0, BLOCKS) == BLOCKS && allocated == SLABS);
    use(cache, 1); /* slab 0 */
    CHECK(keep(cache, 100, 1) == 1 && allocated == SLABS);
    CHECK(count_kept(cache, 0, 4) == 4 && count_kept(cache, 4, 4) == 0);
    CHECK(count_kept(cache, 8, BLOCKS - 8) == BLOCKS - 8 && has(cache, 100));
    close_cache(cache);
}

static void test_pinned_blocks_stay(void) {
    cogpu_stored_cache *cache = open_cache(SLABS);
    cogpu_stored_block *pinned[SLABS];
    CHECK(keep(cache, 0, BLOCKS) == BLOCKS);
    for (uint32_t i = 0; i < SLABS; i++)
        pinned[i] = cogpu_stored_cache_find(cache, key_of(4 * i), BLOCK);
    CHECK(keep(cache, 100, 3 * BLOCKS) == 0 && count_kept(cache, 0, BLOCKS) == BLOCKS);
    cogpu_stored_cache_unpin(cache, pinned[5]);
    CHECK(keep(cache, 200, 4) == 4 && count_kept(cache, 0, BLOCKS) == BLOCKS - 4);
    CHECK(!has(cache, 20) && !has(cache, 23));
    for (uint32_t i = 0; i < SLABS; i++)
        if (i != 5)
            cogpu_stored_cache_unpin(cache, pinned[i]);
    close_cache(cache);
}

/* ---- memory -------------------------------------------------------------------------------- */

/* The cache goes on with the slabs that it has. */
static void test_device_memory_runs_out(void) {
    for (uint32_t slabs = 0; slabs <= 3; slabs += 3) {
        cogpu_stored_cache *cache = open_cache(SLABS);
        allowed = slabs;
        CHECK(keep(cache, 0, BLOCKS) == (slabs ? BLOCKS : 0) && allocated == slabs);
        CHECK(count_kept(cache, 0, BLOCKS) == 4 * slabs);
        close_cache(cache);
    }
}

/* ---- threads ------------------------------------------------------------------------------- */

struct user {
    cogpu_stored_cache *cache;
    uint32_t random;
};

static void *use_blocks(void *argument) {
    struct user *user = argument;
    for (uint32_t i = 0; i < 3000; i++) {
        user->random = user->random * 1664525 + 1013904223;
        uint64_t number = (user->random >> 8) % (2 * BLOCKS);
        cogpu_stored_block *block = cogpu_stored_cache_find(user->cache, key_of(number), BLOCK);
        if (block) {
            CHECK(block->memory[0] == (uint8_t)number);
            cogpu_stored_cache_unpin(user->cache, block);
        } else if ((block = reserve(user->cache, number))) {
            block->memory[0] = (uint8_t)number; /* host memory, on the emulator */
            if (user->random % 7 == 0)
                cogpu_stored_cache_discard(user->cache, block);
            else
                cogpu_stored_cache_keep(user->cache, block);
        }
    }
    return NULL;
}

static void test_many_threads(void) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    struct user users[THREADS];
    cogpu_stored_cache *cache = open_cache(SLABS);
    for (uint32_t i = 0; i < THREADS; i++) {
        users[i] = (struct user){.cache = cache, .random = i};
        CHECK(pthread_create(&threads[i], NULL, use_blocks, &users[i]) == 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(allocated <= SLABS && count_kept(cache, 0, 2 * BLOCKS) > 0);
    close_cache(cache);
}

TESTS(stored_cache) {
    RUN(test_kept_and_discarded);
    RUN(test_keys);
    RUN(test_block_larger_than_a_slab);
    RUN(test_small_budgets);
    RUN(test_oldest_slab_is_evicted);
    RUN(test_pinned_blocks_stay);
    RUN(test_device_memory_runs_out);
    RUN(test_many_threads);
    return FINISH();
}
