/* Sources: all bytes or an error, whichever the kind; the head and the window cost no bytes twice.
 */
#include "io/source.h"

#include "test.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { BYTES = 100000 };

static uint8_t content[BYTES];

struct user {
    uint64_t bytes;  /* it has */
    uint64_t stated; /* it says it has */
    int reads, closes;
    cogpu_status status; /* of each read from the first failing one on */
    int failing;         /* reads that succeed before; -1 = all do */
};

static cogpu_status user_read(void *argument, uint64_t offset, size_t bytes, void *to,
                              size_t *got) {
    struct user *user = argument;
    if (user->failing >= 0 && user->reads >= user->failing)
        return user->status;
    user->reads++;
    uint64_t left = offset < user->bytes ? user->bytes - offset : 0;
    *got = bytes < left ? bytes : (size_t)left;
    memcpy(to, content + offset, *got);
    return COGPU_OK;
}

static cogpu_status user_size(void *argument, uint64_t *bytes) {
    struct user *user = argument;
    *bytes = user->stated;
    return user->stated == UINT64_MAX ? COGPU_IO : COGPU_OK;
}

static void user_close(void *argument) {
    ((struct user *)argument)->closes++;
}

static cogpu_source source_of(struct user *user) {
    return (cogpu_source){.user = user, .read = user_read, .size = user_size, .close = user_close};
}

/* Ranges inside, at the end and beyond it, for any kind. */
static void check_reads(cogpu_io *io, bool peek) {
    static uint8_t got[BYTES];
    static const uint64_t starts[] = {0, 1, 5, 16383, 16384, 16385, 40000, BYTES - 3, BYTES};
    static const size_t lengths[] = {0, 1, 2, 3, 8, 4096, 16384, 16385, 60000};
    cogpu_error error;
    CHECK(cogpu_io_bytes(io) == BYTES);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            uint64_t start = starts[i];
            size_t bytes = lengths[k];
            bool inside = start + bytes <= BYTES;
            cogpu_error_clear(&error);
            memset(got, 0, bytes);
            cogpu_status status = peek ? cogpu_io_peek(io, start, bytes, got, &error)
                                       : cogpu_io_read(io, start, bytes, got, &error);
            CHECK(status == (inside ? COGPU_OK : COGPU_CORRUPT));
            CHECK(!inside || memcmp(got, content + start, bytes) == 0);
            CHECK(inside || error.offset == (int64_t)start);
        }
    CHECK(cogpu_io_read(io, UINT64_MAX, 1, got, &error) == COGPU_CORRUPT);
    CHECK(cogpu_io_read(io, UINT64_MAX - 3, 10, got, &error) == COGPU_CORRUPT);
    CHECK(cogpu_io_read(io, 10, SIZE_MAX, got, &error) == COGPU_CORRUPT);
    CHECK(cogpu_io_peek(io, 10, SIZE_MAX, got, &error) == COGPU_CORRUPT);
    CHECK(cogpu_io_peek(io, UINT64_MAX, 2, got, &error) == COGPU_CORRUPT);
}

static void check_kind(cogpu_io *io) {
    check_reads(io, false);
    check_reads(io, true);
    cogpu_io_settle(io);
    check_reads(io, true);
    cogpu_io_close(io);
}

static void test_memory(void) {
    cogpu_io *io = NULL;
    CHECK(cogpu_io_open_memory(content, BYTES, &io, NULL) == COGPU_OK);
    CHECK(cogpu_io_mapped(io, 17) == content + 17);
    check_kind(io);
    CHECK(cogpu_io_open_memory(NULL, 0, &io, NULL) == COGPU_OK);
    CHECK(cogpu_io_bytes(io) == 0);
    uint8_t byte;
    CHECK(cogpu_io_read(io, 0, 1, &byte, NULL) == COGPU_CORRUPT);
    cogpu_io_close(io);
    cogpu_io_close(NULL);
}

static void test_user(void) {
    struct user user = {.bytes = BYTES, .stated = BYTES, .failing = -1};
    cogpu_source source = source_of(&user);
    cogpu_io *io = NULL;
    CHECK(cogpu_io_open_user(&source, &io, NULL) == COGPU_OK);
    CHECK(user.reads == 1 && !cogpu_io_mapped(io, 0));
    check_kind(io);
    CHECK(user.closes == 1);
}

static void make_path(char path[64]) {
    strcpy(path, "cogpu_test_source_XXXXXX");
    int file = mkstemp(path);
    CHECK(file >= 0 && write(file, content, BYTES) == BYTES);
    close(file);
}

static void test_file(void) {
    char path[64];
    cogpu_io *io = NULL;
    cogpu_error error;
    make_path(path);
    CHECK(cogpu_io_open_file(path, &io, &error) == COGPU_OK);
    check_kind(io);
    unlink(path);
    CHECK(cogpu_io_open_file(path, &io, &error) == COGPU_ABSENT);
    CHECK(cogpu_io_open_file("/", &io, &error) == COGPU_IO);
}

/* A file that another process cuts off while it is open: an error, no signal. */
static void test_file_cut_off_while_open(void) {
    char path[64];
    uint8_t got[64];
    cogpu_io *io = NULL;
    cogpu_error error;
    make_path(path);
    CHECK(cogpu_io_open_file(path, &io, &error) == COGPU_OK);
    CHECK(truncate(path, 50000) == 0);
    CHECK(cogpu_io_read(io, 60000, sizeof got, got, &error) == COGPU_CORRUPT);
    CHECK(cogpu_io_read(io, 49990, sizeof got, got, &error) == COGPU_CORRUPT);
    CHECK(cogpu_io_read(io, 100, sizeof got, got, &error) == COGPU_OK);
    cogpu_io_close(io);
    unlink(path);
}

static void test_the_head_is_read_once(void) {
    struct user user = {.bytes = BYTES, .stated = BYTES, .failing = -1};
    cogpu_source source = source_of(&user);
    cogpu_io *io = NULL;
    uint8_t got[64];
    CHECK(cogpu_io_open_user(&source, &io, NULL) == COGPU_OK);
    for (uint64_t at = 0; at + sizeof got <= 16384; at += sizeof got)
        CHECK(cogpu_io_read(io, at, sizeof got, got, NULL) == COGPU_OK);
    CHECK(user.reads == 1);
    cogpu_io_close(io);
}

static void test_the_window_follows_peeks(void) {
    struct user user = {.bytes = BYTES, .stated = BYTES, .failing = -1};
    cogpu_source source = source_of(&user);
    cogpu_io *io = NULL;
    uint8_t got[8];
    CHECK(cogpu_io_open_user(&source, &io, NULL) == COGPU_OK);
    for (uint64_t at = 50000; at < 50000 + 16384; at += sizeof got)
        CHECK(cogpu_io_peek(io, at, sizeof got, got, NULL) == COGPU_OK);
    CHECK(user.reads == 2);
    cogpu_io_settle(io);
    CHECK(cogpu_io_peek(io, 50000, sizeof got, got, NULL) == COGPU_OK && user.reads == 3);
    cogpu_io_close(io);
}

static void test_a_failing_source(void) {
    struct user user = {.bytes = BYTES, .stated = BYTES, .failing = 0, .status = COGPU_IO};
    cogpu_source source = source_of(&user);
    cogpu_io *io = NULL;
    cogpu_error error;
    uint8_t got[8];
    CHECK(cogpu_io_open_user(&source, &io, &error) == COGPU_IO && user.closes == 1);
    user.stated = UINT64_MAX;
    CHECK(cogpu_io_open_user(&source, &io, &error) == COGPU_IO && user.closes == 2);
    user = (struct user){.bytes = BYTES, .stated = BYTES, .failing = 1, .status = COGPU_IO};
    CHECK(cogpu_io_open_user(&source, &io, &error) == COGPU_OK);
    CHECK(cogpu_io_read(io, 50000, 8, got, &error) == COGPU_IO && error.status == COGPU_IO);
    CHECK(cogpu_io_peek(io, 50000, 8, got, &error) == COGPU_IO);
    user.failing = -1;
    CHECK(cogpu_io_peek(io, 50000, 8, got, &error) == COGPU_OK);
    CHECK(memcmp(got, content + 50000, 8) == 0);
    cogpu_io_close(io);
    CHECK(user.closes == 1);
}

/* It says more than it has. */
static void test_a_short_source(void) {
    struct user user = {.bytes = 20000, .stated = 30000, .failing = -1};
    cogpu_source source = source_of(&user);
    cogpu_io *io = NULL;
    cogpu_error error;
    uint8_t got[8];
    CHECK(cogpu_io_open_user(&source, &io, &error) == COGPU_OK);
    CHECK(cogpu_io_read(io, 19996, 8, got, &error) == COGPU_CORRUPT && error.offset == 19996);
    CHECK(cogpu_io_read(io, 25000, 8, got, &error) == COGPU_CORRUPT);
    CHECK(cogpu_io_read(io, 19992, 8, got, &error) == COGPU_OK);
    cogpu_io_close(io);
    user.bytes = 100;
    CHECK(cogpu_io_open_user(&source, &io, &error) == COGPU_CORRUPT && user.closes == 2);
}

int main(void) {
    for (size_t i = 0; i < BYTES; i++)
        content[i] = (uint8_t)(i * 31 + i / 251);
    RUN(test_memory);
    RUN(test_user);
    RUN(test_file);
    RUN(test_file_cut_off_while_open);
    RUN(test_the_head_is_read_once);
    RUN(test_the_window_follows_peeks);
    RUN(test_a_failing_source);
    RUN(test_a_short_source);
    return FINISH();
}
