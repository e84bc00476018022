/* Reuse of small device allocations, with counters in the place of a device. */
#include "gpu/driver/memory_cache.h"

#include "support/test.h"

enum { MIB = 1 << 20, LIST_BLOCKS = COGPU_MEMORY_CACHE_BLOCKS };

static uint32_t synchronized, freed;
static bool can_synchronize;

static bool synchronize_device(void *user) {
    (void)user;
    synchronized++;
    return can_synchronize;
}

static void count_free(void *user, uint64_t address) {
    (void)user;
    CHECK(address != 0);
    freed++;
}

static cogpu_memory_cache open_cache(void) {
    synchronized = freed = 0;
    can_synchronize = true;
    return (cogpu_memory_cache){.synchronize = synchronize_device,
                                .free_block = count_free,
                                .lock = PTHREAD_MUTEX_INITIALIZER};
}

static void keep_blocks(cogpu_memory_cache *cache, uint64_t first, uint32_t count, uint64_t bytes) {
    for (uint32_t i = 0; i < count; i++)
        cogpu_memory_cache_keep(cache, (first + i) << 32, bytes);
}

/* Memory is not reused before the device was synchronised after its release. */
static void reuse_needs_a_synchronisation(void) {
    cogpu_memory_cache cache = open_cache();
    keep_blocks(&cache, 1, LIST_BLOCKS, MIB);
    CHECK(synchronized == 0 && freed == 0);
    CHECK(cogpu_memory_cache_take(&cache, MIB) == 0);
    keep_blocks(&cache, LIST_BLOCKS + 1, 1, MIB);
    CHECK(synchronized == 1 && freed == 0);
    uint64_t taken = cogpu_memory_cache_take(&cache, MIB);
    CHECK(taken >> 32 >= 1 && taken >> 32 <= LIST_BLOCKS);
    CHECK(cogpu_memory_cache_flush(&cache) == LIST_BLOCKS && freed == LIST_BLOCKS);
}

/* Each block is taken once, and only for its own size. */
static void blocks_are_taken_once(void) {
    cogpu_memory_cache cache = open_cache();
    uint64_t seen = 0;
    keep_blocks(&cache, 1, LIST_BLOCKS + 1, MIB / 2);
    CHECK(cogpu_memory_cache_take(&cache, MIB) == 0);
    for (uint32_t i = 0; i < LIST_BLOCKS; i++) {
        uint64_t taken = cogpu_memory_cache_take(&cache, MIB / 2) >> 32;
        CHECK(taken >= 1 && taken <= LIST_BLOCKS && !(seen >> (taken - 1) & 1));
        seen |= UINT64_C(1) << (taken - 1);
    }
    CHECK(cogpu_memory_cache_take(&cache, MIB / 2) == 0);
    cogpu_memory_cache_flush(&cache);
}

/* Whatever is released, each list keeps at most so many blocks and bytes. */
static void kept_memory_is_bounded(void) {
    cogpu_memory_cache cache = open_cache();
    for (uint32_t i = 0; i < 1000; i++) {
        cogpu_memory_cache_keep(&cache, (uint64_t)(i + 1) << 32, (1 + i % 4) * MIB);
        CHECK(cache.waiting.count <= LIST_BLOCKS && cache.ready.count <= LIST_BLOCKS);
        CHECK(cache.waiting.bytes <= COGPU_MEMORY_CACHE_LIST_BYTES);
        CHECK(cache.ready.bytes <= COGPU_MEMORY_CACHE_LIST_BYTES);
    }
    uint32_t kept = cache.waiting.count + cache.ready.count;
    CHECK(freed == 1000 - kept && kept > 16);
    CHECK(cogpu_memory_cache_flush(&cache) == kept && freed == 1000);
}

static void large_blocks_are_freed_at_once(void) {
    cogpu_memory_cache cache = open_cache();
    cogpu_memory_cache_keep(&cache, 1 << 20, COGPU_MEMORY_CACHE_BLOCK_BYTES + 1);
    CHECK(freed == 1 && cogpu_memory_cache_flush(&cache) == 0);
    CHECK(cogpu_memory_cache_size(COGPU_MEMORY_CACHE_BLOCK_BYTES + 1) ==
          COGPU_MEMORY_CACHE_BLOCK_BYTES + 1);
    CHECK(cogpu_memory_cache_size(1) == COGPU_MEMORY_CACHE_GRANULE_BYTES);
}

/* A device that failed cannot be synchronised: nothing is reused. */
static void failed_devices_reuse_nothing(void) {
    cogpu_memory_cache cache = open_cache();
    can_synchronize = false;
    keep_blocks(&cache, 1, LIST_BLOCKS + 1, MIB);
    CHECK(synchronized == 1 && freed == LIST_BLOCKS && cogpu_memory_cache_take(&cache, MIB) == 0);
    cogpu_memory_cache_flush(&cache);
}

static void kept_addresses_are_known(void) {
    cogpu_memory_cache cache = open_cache();
    cogpu_memory_cache_keep(&cache, 7 << 20, MIB);
    CHECK(cogpu_memory_cache_holds(&cache, 7 << 20));
    CHECK(cogpu_memory_cache_holds(&cache, (8 << 20) - 1));
    CHECK(!cogpu_memory_cache_holds(&cache, 8 << 20));
    CHECK(!cogpu_memory_cache_holds(&cache, (7 << 20) - 1));
    cogpu_memory_cache_flush(&cache);
    CHECK(!cogpu_memory_cache_holds(&cache, 7 << 20));
}

TESTS(memory_cache) {
    RUN(reuse_needs_a_synchronisation);
    RUN(blocks_are_taken_once);
    RUN(kept_memory_is_bounded);
    RUN(large_blocks_are_freed_at_once);
    RUN(failed_devices_reuse_nothing);
    RUN(kept_addresses_are_known);
    return FINISH();
}
