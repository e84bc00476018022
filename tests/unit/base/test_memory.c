/* Memory: alignment, limits met exactly, sizes that do not fit. */
#include "base/memory.h"

#include "support/test.h"

#include <stdbool.h>

static void test_allocate(void) {
    for (size_t bytes = 0; bytes < 300; bytes += 7) {
        uint8_t *memory = cogpu_allocate(bytes);
        CHECK(memory && (uintptr_t)memory % 64 == 0);
        memset(memory, 1, bytes);
        cogpu_release(memory);
    }
    cogpu_release(NULL);
    for (size_t less = 0; less < 64; less++)
        CHECK(!cogpu_allocate(SIZE_MAX - less));
}

/* Sizes around those of large pages, which are asked for. */
static void test_reserve_and_resize(void) {
    for (size_t bytes = 1; bytes < 10 << 20; bytes = bytes * 3 + 1) {
        uint8_t *memory = cogpu_reserve(bytes);
        CHECK(memory && (uintptr_t)memory % 64 == 0);
        memory[0] = 1;
        memory[bytes - 1] = 2;
        memory = cogpu_resize(memory, 2 * bytes);
        CHECK(memory && memory[0] == (bytes == 1 ? 2 : 1) && memory[bytes - 1] == 2);
        memory[2 * bytes - 1] = 3;
        memory = cogpu_resize(memory, bytes);
        CHECK(memory && memory[bytes - 1] == 2);
        memory = cogpu_resize(memory, 0);
        CHECK(memory);
        cogpu_release(memory);
    }
    CHECK(!cogpu_reserve(SIZE_MAX));
}

static bool is_zero(const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return false;
    return true;
}

static void test_arena_gives_zeroed_aligned_pieces(void) {
    cogpu_arena arena;
    cogpu_error error;
    uint8_t *pieces[200] = {0};
    cogpu_arena_open(&arena, 10 << 20);
    CHECK(arena.slabs == NULL);
    for (size_t i = 0; i < 200; i++) {
        size_t bytes = i * i % 9000;
        CHECK(cogpu_arena_allocate(&arena, bytes, 1, &pieces[i], &error) == COGPU_OK);
        CHECK(pieces[i] && (uintptr_t)pieces[i] % 16 == 0 && is_zero(pieces[i], bytes));
        memset(pieces[i], (int)i, bytes);
    }
    for (size_t i = 0; i < 200; i++) {
        size_t spoilt = 0;
        for (size_t k = 0; k < i * i % 9000; k++)
            spoilt += pieces[i][k] != i;
        CHECK(spoilt == 0);
    }
    cogpu_arena_close(&arena);
    cogpu_arena_close(&arena);
    CHECK(arena.used == 0);
}

static void test_arena_keeps_its_limit(void) {
    cogpu_arena arena;
    cogpu_error error;
    void *memory = NULL;
    cogpu_arena_open(&arena, 4096);
    CHECK(cogpu_arena_allocate(&arena, 5000, 1, &memory, &error) == COGPU_LIMIT_EXCEEDED &&
          !memory);
    CHECK(cogpu_arena_allocate(&arena, 250, 16, &memory, &error) == COGPU_OK);
    CHECK(cogpu_arena_allocate(&arena, 250, 16, &memory, &error) == COGPU_LIMIT_EXCEEDED);
    CHECK(strstr(error.message, "working_memory_bytes") != NULL);
    CHECK(cogpu_arena_allocate(&arena, 4, 16, &memory, NULL) == COGPU_OK);
    CHECK(arena.used <= 4096);
    cogpu_arena_close(&arena);
}

/* T212: a product, or a sum with what was taken before, that does not fit. */
static void test_arena_refuses_what_overflows(void) {
    cogpu_arena arena;
    cogpu_error error;
    void *memory = NULL;
    cogpu_arena_open(&arena, UINT64_MAX);
    CHECK(cogpu_arena_allocate(&arena, 1ULL << 61, 8, &memory, &error) == COGPU_LIMIT_EXCEEDED);
    CHECK(cogpu_arena_allocate(&arena, UINT64_MAX, 1, &memory, &error) == COGPU_LIMIT_EXCEEDED);
    CHECK(cogpu_arena_allocate(&arena, UINT64_MAX - 14, 1, &memory, &error) ==
          COGPU_LIMIT_EXCEEDED);
    /* These fit a number, but not together with the slab's own head. */
    CHECK(cogpu_arena_allocate(&arena, UINT64_MAX - 15, 1, &memory, &error) == COGPU_OUT_OF_MEMORY);
    CHECK(cogpu_arena_allocate(&arena, UINT64_MAX - 31, 1, &memory, &error) == COGPU_OUT_OF_MEMORY);
    CHECK(cogpu_arena_allocate(&arena, 1, 16, &memory, &error) == COGPU_OK);
    CHECK(cogpu_arena_allocate(&arena, UINT64_MAX - 20, 1, &memory, &error) ==
          COGPU_LIMIT_EXCEEDED);
    cogpu_arena_close(&arena);
}

static void test_text(void) {
    cogpu_arena arena;
    const char *copy = NULL, text[3] = {'a', 'b', 'c'};
    cogpu_arena_open(&arena, 1000);
    CHECK(cogpu_arena_text(&arena, text, 3, &copy, NULL) == COGPU_OK);
    CHECK_TEXT(copy, "abc");
    CHECK(cogpu_arena_text(&arena, text, 0, &copy, NULL) == COGPU_OK);
    CHECK_TEXT(copy, "");
    cogpu_arena_close(&arena);
}

TESTS(memory) {
    RUN(test_allocate);
    RUN(test_reserve_and_resize);
    RUN(test_arena_gives_zeroed_aligned_pieces);
    RUN(test_arena_keeps_its_limit);
    RUN(test_arena_refuses_what_overflows);
    RUN(test_text);
    return FINISH();
}
