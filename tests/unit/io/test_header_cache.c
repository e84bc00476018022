/* Cached headers: found by key until they expire, and never more of them than allowed. */
#include "io/http/header_cache.h"

#include "base/memory.h"
#include "support/test.h"

#include <pthread.h>

static uint8_t header_content[COGPU_HEADER_CACHE_BYTES];

static cogpu_cached_header make_header(size_t bytes, uint64_t size) {
    return (cogpu_cached_header){
        .data = header_content, .bytes = bytes, .size = size, .etag = "\"v\"", .modified = "Mon"};
}

static void insert_header(cogpu_header_cache *cache, const char *name, double now, size_t bytes,
                          uint64_t size) {
    const cogpu_cached_header header = make_header(bytes, size);
    cogpu_header_cache_insert(cache, name, now, &header);
}

/* The size of the file; 0 if its header is not cached. */
static uint64_t cached_size(cogpu_header_cache *cache, const char *name, double now) {
    cogpu_cached_header header;
    if (!cogpu_header_cache_find(cache, name, now, &header))
        return 0;
    CHECK(header.data != header_content && memcmp(header.data, header_content, header.bytes) == 0);
    CHECK_TEXT(header.etag, "\"v\"");
    CHECK_TEXT(header.modified, "Mon");
    cogpu_release(header.data);
    return header.size;
}

static void test_by_name(void) {
    cogpu_header_cache *cache = cogpu_header_cache_open(30);
    CHECK(cached_size(cache, "a", 0) == 0);
    insert_header(cache, "a", 0, 100, 1000);
    insert_header(cache, "a\nme", 0, 100, 2000);
    CHECK(cached_size(cache, "a", 1) == 1000 && cached_size(cache, "a\nme", 1) == 2000);
    CHECK(cached_size(cache, "", 1) == 0 && cached_size(cache, "a\n", 1) == 0);
    insert_header(cache, "a", 1, 100, 3000);
    CHECK(cached_size(cache, "a", 1) == 3000);
    cogpu_header_cache_drop(cache, "a");
    cogpu_header_cache_drop(cache, "none");
    CHECK(cached_size(cache, "a", 1) == 0 && cached_size(cache, "a\nme", 1) == 2000);
    cogpu_header_cache_close(cache);
    cogpu_header_cache_close(NULL);
}

static void test_for_a_while(void) {
    cogpu_header_cache *cache = cogpu_header_cache_open(30);
    insert_header(cache, "a", 100, 10, 1000);
    insert_header(cache, "b", 120, 10, 2000);
    CHECK(cached_size(cache, "a", 129.9) == 1000 && cached_size(cache, "a", 130) == 0);
    CHECK(cached_size(cache, "b", 149) == 2000);
    insert_header(cache, "b", 149, 10, 2000);
    CHECK(cached_size(cache, "b", 178) == 2000 && cached_size(cache, "b", 179) == 0);
    cogpu_header_cache_close(cache);
    cache = cogpu_header_cache_open(-1);
    insert_header(cache, "a", 100, 10, 1000);
    CHECK(cached_size(cache, "a", 100) == 0);
    cogpu_header_cache_close(cache);
}

static void test_the_oldest_are_evicted(void) {
    cogpu_header_cache *cache = cogpu_header_cache_open(30);
    char name[16];
    for (int i = 0; i < COGPU_HEADER_CACHE_MAX + 3; i++) {
        snprintf(name, sizeof name, "%d", i);
        insert_header(cache, name, 0, 10, 1000);
    }
    CHECK(cached_size(cache, "2", 0) == 0 && cached_size(cache, "3", 0) == 1000);
    insert_header(cache, "long", 0, COGPU_HEADER_CACHE_BYTES - 100, 2000);
    CHECK(cached_size(cache, "long", 0) == 2000 && cached_size(cache, "59", 0) == 0);
    CHECK(cached_size(cache, "60", 0) == 1000);
    insert_header(cache, "too long", 0, COGPU_HEADER_CACHE_BYTES, 2000);
    CHECK(cached_size(cache, "too long", 0) == 0 && cached_size(cache, "long", 0) == 2000);
    cogpu_header_cache_close(cache);
}

static void test_all_of_a_url(void) {
    cogpu_header_cache *cache = cogpu_header_cache_open(30);
    static const char *const names[] = {"a\nme", "ab\nme", "a\nyou", "b\na\nme", "a"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        insert_header(cache, names[i], 0, 10, 1000);
    cogpu_header_cache_drop_url(cache, "a");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK(cached_size(cache, names[i], 0) == (i == 0 || i == 2 ? 0 : 1000));
    cogpu_header_cache_close(cache);
}

static void *use(void *argument) {
    cogpu_header_cache *cache = argument;
    char name[16];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "%d", i % 90);
        insert_header(cache, name, i, 10, 1000);
        CHECK(cached_size(cache, name, i) <= 1000);
        if (i % 7 == 0)
            cogpu_header_cache_drop(cache, name);
    }
    return NULL;
}

static void test_any_thread(void) {
    cogpu_header_cache *cache = cogpu_header_cache_open(30);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, use, cache) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    cogpu_header_cache_close(cache);
}

TESTS(header_cache) {
    for (size_t i = 0; i < sizeof header_content; i++)
        header_content[i] = (uint8_t)(i * 31 + i / 251);
    RUN(test_by_name);
    RUN(test_for_a_while);
    RUN(test_the_oldest_are_evicted);
    RUN(test_all_of_a_url);
    RUN(test_any_thread);
    return FINISH();
}
