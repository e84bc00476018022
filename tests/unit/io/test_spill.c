/*
 * Spills: bytes that a writer keeps aside until it knows where they go.
 */
#define _GNU_SOURCE
#include "unit/io/sink_test.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Pieces of all sizes, copied in another order than they came, in the midst of others coming. */
static void spill_pieces(const cogpu_sink *sink, size_t bytes) {
    cogpu_out *out = NULL;
    cogpu_spill *spill = NULL;
    uint64_t offset;
    size_t half = bytes / 2;
    CHECK(cogpu_out_open(sink, NULL, &out, &sink_error) == COGPU_OK);
    CHECK(cogpu_spill_open(out, 0, &spill, &sink_error) == COGPU_OK);
    for (size_t at = 0, piece; at < bytes; at += piece) {
        piece = at % 7 ? at % 5003 : at % 1300000;
        piece = piece > bytes - at ? bytes - at : piece + (piece == 0);
        CHECK(cogpu_spill_add(spill, content + at, piece, &offset, &sink_error) == COGPU_OK);
        CHECK(offset == at);
        if (at < half && at + piece >= half)
            CHECK(cogpu_spill_copy(spill, 1, half - 1, out, 1, &sink_error) == COGPU_OK);
    }
    CHECK(cogpu_spill_copy(spill, half, bytes - half, out, half, &sink_error) == COGPU_OK);
    CHECK(cogpu_spill_copy(spill, 0, 1, out, 0, &sink_error) == COGPU_OK);
    CHECK(cogpu_spill_copy(spill, bytes, 0, out, 0, &sink_error) == COGPU_OK);
    CHECK(cogpu_spill_add(spill, NULL, 0, &offset, &sink_error) == COGPU_OK && offset == bytes);
    CHECK(!sink->path || entries(".cogpu-part") == 1);
    cogpu_spill_close(spill);
    CHECK(cogpu_out_commit(out, &sink_error) == COGPU_OK);
}

static void test_spills_to_every_sink(void) {
    static const size_t sizes[] = {2, 1000, IN_MEMORY - 1, IN_MEMORY, IN_MEMORY + 1, ALL};
    for (int way = 0; way < 4; way++)
        for (int i = 0; i < 6; i++) {
            cogpu_memory memory = COGPU_MEMORY_INIT;
            cogpu_sink sink = user_sink(false);
            arm_call(way & 1 ? KERNEL_COPY : NO_CALL, FAILS, 0, EXDEV);
            faults.has_no_nameless = way & 2;
            spill_pieces(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .path = path}, sizes[i]);
            spill_pieces(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory},
                         sizes[i]);
            spill_pieces(&sink, sizes[i]);
            disarm_calls();
            faults.has_no_nameless = false;
            CHECK(holds(path, content, sizes[i]) && entries("") == 1);
            CHECK(memory.bytes == sizes[i] && memcmp(memory.data, content, sizes[i]) == 0);
            CHECK(memcmp(user_calls.bytes, content, sizes[i]) == 0 &&
                  user_calls.largest <= IN_MEMORY);
            cogpu_memory_free(&memory);
        }
    empty_folder();
}

/* What is held comes to no file; more than that does, and a spill that has bytes stays as it is. */
static void test_held_spills(void) {
    static const uint64_t held[] = {ALL, ALL + 9, ALL / 2, 3, UINT64_MAX};
    for (int i = 0; i < 5; i++) {
        cogpu_memory memory = COGPU_MEMORY_INIT;
        cogpu_out *out = NULL;
        cogpu_spill *spill = NULL;
        uint64_t offset;
        CHECK(cogpu_out_open(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory},
                             NULL, &out, &sink_error) == COGPU_OK);
        CHECK(cogpu_spill_open(out, 0, &spill, &sink_error) == COGPU_OK);
        cogpu_spill_reserve(spill, held[i]);
        for (size_t at = 0; at < ALL; at += ALL / 5)
            CHECK(cogpu_spill_add(spill, content + at, ALL - at < ALL / 5 ? ALL - at : ALL / 5,
                                  &offset, &sink_error) == COGPU_OK);
        CHECK((cogpu_spill_memory(spill) != NULL) == (i < 2));
        cogpu_spill_reserve(spill, 2 * ALL);
        CHECK(cogpu_spill_copy(spill, 0, ALL, out, 0, &sink_error) == COGPU_OK);
        cogpu_spill_close(spill);
        CHECK(cogpu_out_commit(out, &sink_error) == COGPU_OK);
        CHECK(memory.bytes == ALL && memcmp(memory.data, content, ALL) == 0);
        cogpu_memory_free(&memory);
    }
}

/* A small spill needs no file, and one without a path is in TMPDIR. */
static void test_folder_of_spills(void) {
    cogpu_memory memory = COGPU_MEMORY_INIT;
    setenv("TMPDIR", in_folder("none"), 1);
    spill_pieces(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory}, IN_MEMORY);
    cogpu_memory_free(&memory);
    CHECK(write_content(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory}) ==
              COGPU_NOT_FOUND &&
          error_says("none"));
    CHECK(!memory.data);
    CHECK(write_path(path) == COGPU_OK);
    unsetenv("TMPDIR");
    CHECK(write_content(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory}) ==
          COGPU_OK);
    cogpu_memory_free(&memory);
    empty_folder();
}

static void test_spills_that_fail(void) {
    cogpu_memory memory = COGPU_MEMORY_INIT;
    for (long n = 1;; n++) {
        arm_call(WRITE, FAILS, n, ENOSPC);
        cogpu_status status =
            write_content(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory});
        if (!faults.fired)
            break;
        CHECK(status == COGPU_IO_ERROR && error_says("No space left") && error_says("/tmp"));
        CHECK(!memory.data && n < 10);
    }
    cogpu_memory_free(&memory);
    arm_call(READ, FAILS, 2, EIO);
    CHECK(write_content(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory}) ==
              COGPU_IO_ERROR &&
          error_says("read"));
    arm_call(READ, IS_ZERO, 1, 0);
    CHECK(write_content(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory}) ==
              COGPU_IO_ERROR &&
          error_says("read"));
    disarm_calls();
    cogpu_spill_close(NULL);
}

TESTS(spill) {
    int before = open_files();
    if (!open_folder())
        return 1;
    RUN(test_spills_to_every_sink);
    RUN(test_held_spills);
    RUN(test_folder_of_spills);
    RUN(test_spills_that_fail);
    CHECK(open_files() == before);
    test_failed += test_broken;
    close_folder();
    return FINISH();
}
