/* Heads of files: found again by name while they are fresh, never more of them than allowed. */
#include "io/heads.h"

#include "base/memory.h"
#include "test.h"

#include <pthread.h>

static uint8_t bytes_of_heads[COGPU_HEADS_BYTES];

static cogpu_head head_of(size_t bytes, uint64_t size) {
    return (cogpu_head){
        .data = bytes_of_heads, .bytes = bytes, .size = size, .etag = "\"v\"", .modified = "Mon"};
}

static void keep(cogpu_heads *heads, const char *name, double now, size_t bytes, uint64_t size) {
    const cogpu_head head = head_of(bytes, size);
    cogpu_heads_keep(heads, name, now, &head);
}

/* The size of the file; 0 where its head is not there. */
static uint64_t size_of(cogpu_heads *heads, const char *name, double now) {
    cogpu_head head;
    if (!cogpu_heads_find(heads, name, now, &head))
        return 0;
    CHECK(head.data != bytes_of_heads && memcmp(head.data, bytes_of_heads, head.bytes) == 0);
    CHECK_TEXT(head.etag, "\"v\"");
    CHECK_TEXT(head.modified, "Mon");
    cogpu_release(head.data);
    return head.size;
}

static void test_by_name(void) {
    cogpu_heads *heads = cogpu_heads_open(30);
    CHECK(size_of(heads, "a", 0) == 0);
    keep(heads, "a", 0, 100, 1000);
    keep(heads, "a\nme", 0, 100, 2000);
    CHECK(size_of(heads, "a", 1) == 1000 && size_of(heads, "a\nme", 1) == 2000);
    CHECK(size_of(heads, "", 1) == 0 && size_of(heads, "a\n", 1) == 0);
    keep(heads, "a", 1, 100, 3000);
    CHECK(size_of(heads, "a", 1) == 3000);
    cogpu_heads_drop(heads, "a");
    cogpu_heads_drop(heads, "none");
    CHECK(size_of(heads, "a", 1) == 0 && size_of(heads, "a\nme", 1) == 2000);
    cogpu_heads_close(heads);
    cogpu_heads_close(NULL);
}

static void test_for_a_while(void) {
    cogpu_heads *heads = cogpu_heads_open(30);
    keep(heads, "a", 100, 10, 1000);
    keep(heads, "b", 120, 10, 2000);
    CHECK(size_of(heads, "a", 129.9) == 1000 && size_of(heads, "a", 130) == 0);
    CHECK(size_of(heads, "b", 149) == 2000);
    keep(heads, "b", 149, 10, 2000);
    CHECK(size_of(heads, "b", 178) == 2000 && size_of(heads, "b", 179) == 0);
    cogpu_heads_close(heads);
    heads = cogpu_heads_open(-1);
    keep(heads, "a", 100, 10, 1000);
    CHECK(size_of(heads, "a", 100) == 0);
    cogpu_heads_close(heads);
}

static void test_the_oldest_make_room(void) {
    cogpu_heads *heads = cogpu_heads_open(30);
    char name[16];
    for (int i = 0; i < COGPU_HEADS_MOST + 3; i++) {
        snprintf(name, sizeof name, "%d", i);
        keep(heads, name, 0, 10, 1000);
    }
    CHECK(size_of(heads, "2", 0) == 0 && size_of(heads, "3", 0) == 1000);
    keep(heads, "long", 0, COGPU_HEADS_BYTES - 100, 2000);
    CHECK(size_of(heads, "long", 0) == 2000 && size_of(heads, "59", 0) == 0);
    CHECK(size_of(heads, "60", 0) == 1000);
    keep(heads, "too long", 0, COGPU_HEADS_BYTES, 2000);
    CHECK(size_of(heads, "too long", 0) == 0 && size_of(heads, "long", 0) == 2000);
    cogpu_heads_close(heads);
}

static void test_all_of_a_url(void) {
    cogpu_heads *heads = cogpu_heads_open(30);
    static const char *const names[] = {"a\nme", "ab\nme", "a\nyou", "b\na\nme", "a"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        keep(heads, names[i], 0, 10, 1000);
    cogpu_heads_drop_url(heads, "a");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK(size_of(heads, names[i], 0) == (i == 0 || i == 2 ? 0 : 1000));
    cogpu_heads_close(heads);
}

static void *use(void *argument) {
    cogpu_heads *heads = argument;
    char name[16];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "%d", i % 90);
        keep(heads, name, i, 10, 1000);
        CHECK(size_of(heads, name, i) <= 1000);
        if (i % 7 == 0)
            cogpu_heads_drop(heads, name);
    }
    return NULL;
}

static void test_any_thread(void) {
    cogpu_heads *heads = cogpu_heads_open(30);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, use, heads) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    cogpu_heads_close(heads);
}

int main(void) {
    for (size_t i = 0; i < sizeof bytes_of_heads; i++)
        bytes_of_heads[i] = (uint8_t)(i * 31 + i / 251);
    RUN(test_by_name);
    RUN(test_for_a_while);
    RUN(test_the_oldest_make_room);
    RUN(test_all_of_a_url);
    RUN(test_any_thread);
    return FINISH();
}
