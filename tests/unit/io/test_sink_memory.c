/*
 * Sinks in memory, and sinks by functions of the caller.
 */
#define _GNU_SOURCE
#include "unit/io/sink_test.h"

/* ---- memory ---- */

static void test_memory(void) {
    cogpu_memory memory = COGPU_MEMORY_INIT;
    CHECK(write_content(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory}) ==
          COGPU_OK);
    CHECK(memory.bytes == ALL && memcmp(memory.data, content, ALL) == 0);
    cogpu_memory_free(&memory);
    CHECK(!memory.data && memory.bytes == 0);
    cogpu_memory_free(&memory);
    cogpu_memory_free(NULL);
}

/* What lies between is zero, also where the memory grew and where it did not. */
static void test_holes_in_memory(void) {
    enum { SIZE = 400000 };
    static uint8_t expected[SIZE];
    cogpu_memory memory = COGPU_MEMORY_INIT;
    cogpu_out *out = NULL;
    size_t end = 0;
    srand(2);
    memset(expected, 0, sizeof expected);
    CHECK(cogpu_out_open(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory}, NULL,
                         &out, &sink_error) == COGPU_OK);
    for (int i = 0; i < 300; i++) {
        size_t bytes = (size_t)rand() % 500, at = (size_t)rand() % (size_t)(i * 1300 + 1);
        memcpy(expected + at, content + i, bytes);
        CHECK(cogpu_out_write(out, at, content + i, bytes, &sink_error) == COGPU_OK);
        if (bytes && at + bytes > end)
            end = at + bytes;
    }
    CHECK(!memory.data && cogpu_out_commit(out, &sink_error) == COGPU_OK);
    CHECK(memory.bytes == end && memcmp(memory.data, expected, end) == 0);
    cogpu_memory_free(&memory);
}

static void test_memory_that_is_not_there(void) {
    static const uint64_t offsets[] = {UINT64_MAX, UINT64_MAX - 1, INT64_MAX, INT64_MAX - 1,
                                       (uint64_t)1 << 62};
    char untouched = 0;
    cogpu_memory memory = {.struct_size = sizeof(cogpu_memory), .data = &untouched, .bytes = 7};
    for (int i = 0; i < 5; i++) {
        cogpu_out *out = NULL;
        CHECK(cogpu_out_open(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory},
                             NULL, &out, &sink_error) == COGPU_OK);
        CHECK(cogpu_out_write(out, 0, "abc", 3, &sink_error) == COGPU_OK);
        CHECK(cogpu_out_write(out, offsets[i], "abc", 3, &sink_error) == COGPU_OUT_OF_MEMORY);
        cogpu_out_abort(out);
    }
    CHECK(memory.data == &untouched && memory.bytes == 7);
}

/* What was expected needs no growth, so nothing moves; more than that has to, and what there cannot
 * be is as if it was not expected. */
static void test_memory_that_is_expected(void) {
    static const uint64_t most[] = {ALL, ALL / 2, 0, (uint64_t)1 << 62, UINT64_MAX};
    for (int i = 0; i < 5; i++) {
        cogpu_memory memory = COGPU_MEMORY_INIT;
        cogpu_out *out = NULL;
        uint8_t *first = NULL, *room = NULL;
        CHECK(cogpu_out_open(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory},
                             NULL, &out, &sink_error) == COGPU_OK);
        cogpu_out_reserve(out, most[i]);
        CHECK(cogpu_out_buffer_at(out, 0, 1, &first, &sink_error) == COGPU_OK);
        for (size_t at = 0; at < ALL; at += HEAD) {
            size_t bytes = ALL - at < HEAD ? ALL - at : HEAD;
            CHECK(cogpu_out_buffer_at(out, at, bytes, &room, &sink_error) == COGPU_OK);
            CHECK(most[i] != ALL || room == first + at);
            memcpy(room, content + at, bytes);
        }
        CHECK(cogpu_out_commit(out, &sink_error) == COGPU_OK);
        CHECK(memory.bytes == ALL && memcmp(memory.data, content, ALL) == 0);
        cogpu_memory_free(&memory);
    }
}

/* ---- a user's functions ---- */

static void test_functions(void) {
    for (int append_only = 0; append_only < 2; append_only++) {
        cogpu_sink sink = user_sink(append_only);
        CHECK(write_content(&sink) == COGPU_OK && memcmp(user_calls.bytes, content, ALL) == 0);
        CHECK(user_calls.commits == 1 && user_calls.aborts == 0);
        CHECK(user_calls.largest == IN_MEMORY);
        sink.commit = NULL;
        CHECK(write_content(&sink) == COGPU_OK && user_calls.commits == 1);
    }
}

static void test_functions_that_fail(void) {
    for (int n = 1; n < 5; n++) {
        cogpu_sink sink = user_sink(false);
        user_calls.failing = n;
        CHECK(write_content(&sink) == COGPU_DEVICE_ERROR && error_says("write function"));
        CHECK(user_calls.writes == n && user_calls.commits == 0 && user_calls.aborts == 1);
        user_calls.writes = 0;
        sink.abort = NULL;
        CHECK(write_content(&sink) == COGPU_DEVICE_ERROR && user_calls.aborts == 1);
    }
    cogpu_sink sink = user_sink(false);
    user_calls.commit_status = COGPU_NOT_FOUND;
    CHECK(write_content(&sink) == COGPU_NOT_FOUND && error_says("commit function"));
    CHECK(user_calls.commits == 1 && user_calls.aborts == 0);
}

static void test_append_only(void) {
    cogpu_sink sink = user_sink(true);
    cogpu_out *out = NULL;
    CHECK(cogpu_out_open(&sink, NULL, &out, &sink_error) == COGPU_OK &&
          cogpu_out_is_append_only(out));
    CHECK(cogpu_out_write(out, 1, "a", 1, &sink_error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_out_write(out, 0, "abc", 3, &sink_error) == COGPU_OK);
    CHECK(cogpu_out_write(out, 2, "c", 1, &sink_error) == COGPU_INVALID_ARGUMENT &&
          error_says("append-only"));
    CHECK(cogpu_out_write(out, 4, "c", 1, &sink_error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_out_write(out, 3, "d", 1, &sink_error) == COGPU_OK);
    CHECK(user_calls.writes == 2);
    cogpu_out_abort(out);
    CHECK(user_calls.aborts == 1);
}

static void test_invalid_sinks(void) {
    cogpu_memory memory = COGPU_MEMORY_INIT;
    cogpu_sink user_and = user_sink(false), none = {0}, half = {.commit = user_and.commit};
    cogpu_sink both = {.struct_size = sizeof(cogpu_sink), .path = path, .memory = &memory};
    cogpu_out *out = NULL;
    CHECK(cogpu_out_open(&none, NULL, &out, &sink_error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_out_open(&half, NULL, &out, &sink_error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_out_open(&both, NULL, &out, &sink_error) == COGPU_INVALID_ARGUMENT);
    user_and.path = path;
    CHECK(cogpu_out_open(&user_and, NULL, &out, &sink_error) == COGPU_INVALID_ARGUMENT);
    user_and.path = NULL;
    user_and.memory = &memory;
    CHECK(cogpu_out_open(&user_and, NULL, &out, &sink_error) == COGPU_INVALID_ARGUMENT);
    CHECK(entries("") == 0 && user_calls.aborts == 0 && !out);
}

TESTS(sink_memory) {
    int before = open_files();
    if (!open_folder())
        return 1;
    RUN(test_memory);
    RUN(test_holes_in_memory);
    RUN(test_memory_that_is_not_there);
    RUN(test_memory_that_is_expected);
    RUN(test_functions);
    RUN(test_functions_that_fail);
    RUN(test_append_only);
    RUN(test_invalid_sinks);
    CHECK(open_files() == before);
    test_failed += test_broken;
    close_folder();
    return FINISH();
}
