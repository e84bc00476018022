/* The block cache: the budget holds, the least recently used blocks are evicted, threads share it.
 */
#include "cpu/block_cache.h"

#include "support/test.h"

#include <pthread.h>

static cogpu_block_cache_key key_of(uint64_t number) {
    return (cogpu_block_cache_key){.file = number % 3, .directory = number % 5, .block = number};
}

static void keep(cogpu_block_cache *cache, uint64_t number, size_t bytes) {
    cogpu_cached_block *cached = cogpu_block_cache_reserve(cache, key_of(number), bytes);
    if (!cached)
        return;
    memset(cached->data, (int)(number & 255), bytes);
    cogpu_block_cache_insert(cache, cached);
}

/* Whether the block is cached, with its own content. */
static bool has(cogpu_block_cache *cache, uint64_t number, size_t bytes) {
    cogpu_cached_block *cached = cogpu_block_cache_find(cache, key_of(number));
    if (!cached)
        return false;
    size_t wrong = cached->bytes != bytes;
    for (size_t i = 0; i < cached->bytes; i++)
        wrong += cached->data[i] != (number & 255);
    CHECK(wrong == 0);
    cogpu_block_cache_unpin(cache, cached);
    return true;
}

static void test_least_recently_used_are_evicted(void) {
    cogpu_block_cache *cache = NULL;
    CHECK(cogpu_block_cache_open(100000, &cache, NULL) == COGPU_OK);
    for (uint64_t i = 0; i < 4; i++)
        keep(cache, i, 24000);
    CHECK(has(cache, 0, 24000)); /* now 1 is the oldest */
    keep(cache, 4, 24000);
    CHECK(!has(cache, 1, 24000) && has(cache, 0, 24000) && has(cache, 2, 24000));
    CHECK(has(cache, 3, 24000) && has(cache, 4, 24000));
    keep(cache, 5, 90000);
    CHECK(has(cache, 5, 90000) && !has(cache, 4, 24000) && !has(cache, 0, 24000));
    cogpu_block_cache_close(cache);
}

static void test_what_does_not_fit_is_not_kept(void) {
    cogpu_block_cache *cache = NULL;
    CHECK(cogpu_block_cache_open(1000, &cache, NULL) == COGPU_OK);
    CHECK(!cogpu_block_cache_reserve(cache, key_of(1), 1001));
    CHECK(!cogpu_block_cache_reserve(cache, key_of(1), SIZE_MAX));
    CHECK(!has(cache, 1, 1001));
    cogpu_block_cache_close(cache);
    cogpu_block_cache_close(NULL);
}

static void test_pinned_blocks_are_not_evicted(void) {
    cogpu_block_cache *cache = NULL;
    CHECK(cogpu_block_cache_open(100000, &cache, NULL) == COGPU_OK);
    keep(cache, 7, 60000);
    cogpu_cached_block *used = cogpu_block_cache_find(cache, key_of(7));
    CHECK(used != NULL);
    keep(cache, 8, 60000); /* does not fit while the other is pinned */
    CHECK(!has(cache, 8, 60000) && has(cache, 7, 60000));
    cogpu_block_cache_unpin(cache, used);
    keep(cache, 8, 60000);
    CHECK(has(cache, 8, 60000) && !has(cache, 7, 60000));
    cogpu_block_cache_close(cache);
}

static void test_the_same_block_twice(void) {
    cogpu_block_cache *cache = NULL;
    CHECK(cogpu_block_cache_open(100000, &cache, NULL) == COGPU_OK);
    for (int i = 0; i < 50; i++)
        keep(cache, 3, 40000);
    CHECK(has(cache, 3, 40000));
    keep(cache, 4, 40000);
    CHECK(has(cache, 3, 40000) && has(cache, 4, 40000));
    cogpu_block_cache_close(cache);
}

/* Keys that share two of their three numbers are others. */
static void test_keys(void) {
    cogpu_block_cache *cache = NULL;
    CHECK(cogpu_block_cache_open(1 << 20, &cache, NULL) == COGPU_OK);
    const cogpu_block_cache_key key = {.file = 1, .directory = 2, .block = 3};
    cogpu_cached_block *cached = cogpu_block_cache_reserve(cache, key, 1);
    CHECK(cached != NULL);
    cached->data[0] = 1;
    cogpu_block_cache_insert(cache, cached);
    CHECK(!cogpu_block_cache_find(cache, (cogpu_block_cache_key){2, 2, 3}));
    CHECK(!cogpu_block_cache_find(cache, (cogpu_block_cache_key){1, 3, 3}));
    CHECK(!cogpu_block_cache_find(cache, (cogpu_block_cache_key){1, 2, 4}));
    cached = cogpu_block_cache_find(cache, key);
    CHECK(cached && cached->data[0] == 1);
    cogpu_block_cache_unpin(cache, cached);
    cogpu_block_cache_close(cache);
}

/* A block of one byte counts with its header: the budget is for memory. */
static void test_tiny_blocks_count_with_their_heads(void) {
    enum { BUDGET = 64 << 10 };
    cogpu_block_cache *cache = NULL;
    CHECK(cogpu_block_cache_open(BUDGET, &cache, NULL) == COGPU_OK);
    for (uint64_t i = 0; i < BUDGET; i++)
        keep(cache, i, 1);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < BUDGET; i++)
        kept += has(cache, i, 1);
    CHECK(kept > 0 && kept * sizeof(cogpu_cached_block) <= BUDGET);
    cogpu_block_cache_close(cache);
}

static void *use_often(void *argument) {
    cogpu_block_cache *cache = argument;
    uint32_t state = (uint32_t)(uintptr_t)&state;
    for (int i = 0; i < 4000; i++) {
        state = state * 1664525u + 1013904223u;
        uint64_t number = state >> 16 & 63;
        size_t bytes = 100 + number * 37;
        cogpu_cached_block *cached = cogpu_block_cache_find(cache, key_of(number));
        if (cached) {
            for (size_t k = 0; k < bytes; k++)
                if (cached->bytes != bytes || cached->data[k] != number)
                    return argument;
            cogpu_block_cache_unpin(cache, cached);
        } else {
            keep(cache, number, bytes);
        }
    }
    return NULL;
}

static void test_threads(void) {
    cogpu_block_cache *cache = NULL;
    pthread_t threads[4];
    CHECK(cogpu_block_cache_open(20000, &cache, NULL) == COGPU_OK);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, use_often, cache) == 0);
    for (int i = 0; i < 4; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        CHECK(!wrong);
    }
    cogpu_block_cache_close(cache);
}

/* Rows of a block are replaced by more of them, not by fewer, nor while they are in use. */
static void test_more_rows_replace_fewer(void) {
    cogpu_block_cache *cache = NULL;
    CHECK(cogpu_block_cache_open(100000, &cache, NULL) == COGPU_OK);
    keep(cache, 7, 1000);
    cogpu_cached_block *used = cogpu_block_cache_find(cache, key_of(7));
    keep(cache, 7, 2000);
    CHECK(used->bytes == 1000 && has(cache, 7, 1000));
    cogpu_block_cache_unpin(cache, used);
    keep(cache, 7, 2000);
    CHECK(has(cache, 7, 2000));
    keep(cache, 7, 500);
    CHECK(has(cache, 7, 2000));
    cogpu_block_cache_close(cache);
}

/* Reserved memory counts: what several threads decode at once stays within the budget, too. */
static void test_reserved_blocks_count(void) {
    cogpu_block_cache *cache = NULL;
    CHECK(cogpu_block_cache_open(100000, &cache, NULL) == COGPU_OK);
    keep(cache, 1, 30000);
    cogpu_cached_block *first = cogpu_block_cache_reserve(cache, key_of(2), 60000);
    CHECK(first && has(cache, 1, 30000));
    cogpu_cached_block *second = cogpu_block_cache_reserve(cache, key_of(3), 30000);
    CHECK(second && !has(cache, 1, 30000));
    CHECK(!cogpu_block_cache_reserve(cache, key_of(4), 60000));
    cogpu_block_cache_discard(cache, first);
    first = cogpu_block_cache_reserve(cache, key_of(4), 60000);
    CHECK(first && first->bytes == 60000);
    cogpu_block_cache_discard(cache, first);
    cogpu_block_cache_discard(cache, second);
    CHECK(!has(cache, 2, 60000) && !has(cache, 3, 30000));
    cogpu_block_cache_close(cache);
}

static void test_a_file_takes_its_blocks_along(void) {
    cogpu_block_cache *cache = NULL;
    CHECK(cogpu_block_cache_open(100000, &cache, NULL) == COGPU_OK);
    for (uint64_t i = 0; i < 30; i++)
        keep(cache, i, 1000);
    CHECK(cogpu_block_cache_share(cache) == cache);
    cogpu_block_cache_leave(cache, 1);
    for (uint64_t i = 0; i < 30; i++)
        CHECK(has(cache, i, 1000) == (i % 3 != 1));
    cogpu_block_cache_close(cache);
}

/* What a file still refers to is empty and stays so. */
static void test_a_closed_cache(void) {
    cogpu_block_cache *cache = NULL;
    CHECK(cogpu_block_cache_open(100000, &cache, NULL) == COGPU_OK);
    keep(cache, 1, 1000);
    (void)cogpu_block_cache_share(cache);
    CHECK(!cogpu_block_cache_is_closed(cache));
    cogpu_block_cache_close(cache);
    CHECK(cogpu_block_cache_is_closed(cache) && !has(cache, 1, 1000));
    keep(cache, 1, 1000);
    CHECK(!has(cache, 1, 1000));
    cogpu_block_cache_leave(cache, 1);
}

TESTS(block_cache) {
    RUN(test_least_recently_used_are_evicted);
    RUN(test_what_does_not_fit_is_not_kept);
    RUN(test_pinned_blocks_are_not_evicted);
    RUN(test_the_same_block_twice);
    RUN(test_keys);
    RUN(test_tiny_blocks_count_with_their_heads);
    RUN(test_more_rows_replace_fewer);
    RUN(test_reserved_blocks_count);
    RUN(test_a_file_takes_its_blocks_along);
    RUN(test_a_closed_cache);
    RUN(test_threads);
    return FINISH();
}
