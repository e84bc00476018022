/* Sources: all bytes or an error, for each kind; header and window read no byte twice. */
#include "io/source.h"

#include "support/test.h"

#include <fcntl.h>
#include <pthread.h>
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
    return user->stated == UINT64_MAX ? COGPU_IO_ERROR : COGPU_OK;
}

static void user_close(void *argument) {
    ((struct user *)argument)->closes++;
}

static cogpu_source source_of(struct user *user) {
    return (cogpu_source){.struct_size = sizeof(cogpu_source),
                          .user = user,
                          .read = user_read,
                          .size = user_size,
                          .close = user_close};
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
    cogpu_io_seal(io);
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
    CHECK(cogpu_io_open_file(path, &io, &error) == COGPU_NOT_FOUND);
    CHECK(cogpu_io_open_file("/", &io, &error) == COGPU_IO_ERROR);
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
    cogpu_io_seal(io);
    CHECK(cogpu_io_peek(io, 50000, sizeof got, got, NULL) == COGPU_OK && user.reads == 3);
    cogpu_io_close(io);
}

static void test_a_failing_source(void) {
    struct user user = {.bytes = BYTES, .stated = BYTES, .failing = 0, .status = COGPU_IO_ERROR};
    cogpu_source source = source_of(&user);
    cogpu_io *io = NULL;
    cogpu_error error;
    uint8_t got[8];
    CHECK(cogpu_io_open_user(&source, &io, &error) == COGPU_IO_ERROR && user.closes == 1);
    user.stated = UINT64_MAX;
    CHECK(cogpu_io_open_user(&source, &io, &error) == COGPU_IO_ERROR && user.closes == 2);
    user = (struct user){.bytes = BYTES, .stated = BYTES, .failing = 1, .status = COGPU_IO_ERROR};
    CHECK(cogpu_io_open_user(&source, &io, &error) == COGPU_OK);
    CHECK(cogpu_io_read(io, 50000, 8, got, &error) == COGPU_IO_ERROR &&
          error.status == COGPU_IO_ERROR);
    CHECK(cogpu_io_peek(io, 50000, 8, got, &error) == COGPU_IO_ERROR);
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

/* ---- many reads in one call ---- */

/* A source with read_many, whose calls are counted. */
struct many {
    int calls;
    size_t reads;         /* of the last call */
    uint64_t bytes, most; /* of the last call, of any */
    uint64_t broken;      /* calls that want the byte at this offset fail; 0 = none */
};

static uint8_t byte_at(uint64_t offset) {
    return (uint8_t)(offset * 31 + offset / 251);
}

static cogpu_status many_read(void *argument, const uint64_t *offsets, const size_t *bytes,
                              void *const *to, size_t count) {
    struct many *many = argument;
    cogpu_status status = COGPU_OK;
    many->calls++;
    many->reads = count;
    many->bytes = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < bytes[i]; k++)
            ((uint8_t *)to[i])[k] = byte_at(offsets[i] + k);
        many->bytes += bytes[i];
        if (many->broken && many->broken - offsets[i] < bytes[i])
            status = COGPU_IO_ERROR;
    }
    many->most = many->bytes > many->most ? many->bytes : many->most;
    return status;
}

static cogpu_status many_size(void *argument, uint64_t *bytes) {
    (void)argument;
    *bytes = 1 << 30;
    return COGPU_OK;
}

static cogpu_io *open_many(struct many *many) {
    const cogpu_source source = {.struct_size = sizeof(cogpu_source),
                                 .user = many,
                                 .size = many_size,
                                 .read_many = many_read};
    cogpu_io *io = NULL;
    CHECK(cogpu_io_open_user(&source, &io, NULL) == COGPU_OK);
    CHECK(many->calls == 1 && many->bytes == 16 << 10);
    CHECK(cogpu_io_can_prefetch(io));
    return io;
}

static bool is_right(const cogpu_io *io, const cogpu_byte_range *span) {
    uint8_t *got = malloc(span->bytes);
    bool right = got && cogpu_io_read(io, span->offset, span->bytes, got, NULL) == COGPU_OK;
    for (size_t i = 0; right && i < span->bytes; i++)
        right = got[i] == byte_at(span->offset + i);
    free(got);
    return right;
}

static void test_what_is_expected_comes_in_one_call(void) {
    static const cogpu_byte_range spans[] = {
        {5000000, 100}, {1000000, 100}, {1000200, 100}, {9000000, 7}};
    struct many many = {0};
    cogpu_io *io = open_many(&many);
    uint64_t ticket = cogpu_io_prefetch(io, spans, 4);
    CHECK(many.calls == 1);
    CHECK(is_right(io, &spans[1]) && many.calls == 2 && many.reads == 3 && many.bytes == 407);
    for (size_t i = 0; i < 4; i++)
        CHECK(i == 1 || is_right(io, &spans[i]));
    CHECK(many.calls == 2);
    CHECK(is_right(io, &spans[0]) && many.calls == 3); /* it was read already, and freed */
    cogpu_io_end_prefetch(io, ticket);
    ticket = cogpu_io_prefetch(io, spans, 4);
    cogpu_io_end_prefetch(io, ticket); /* unread */
    CHECK(is_right(io, &spans[3]) && many.calls == 4 && many.reads == 1);
    cogpu_io_close(io);
}

static void test_a_group_has_an_end(void) {
    enum { COUNT = 40, LENGTH = 1 << 20 };
    cogpu_byte_range spans[COUNT];
    struct many many = {0};
    cogpu_io *io = open_many(&many);
    for (uint64_t i = 0; i < COUNT; i++)
        spans[i] = (cogpu_byte_range){(i + 1) << 24, LENGTH};
    uint64_t ticket = cogpu_io_prefetch(io, spans, COUNT);
    for (int i = 0; i < COUNT; i++)
        CHECK(is_right(io, &spans[i]));
    cogpu_io_end_prefetch(io, ticket);
    CHECK(many.calls == 1 + 3 && many.most == 16 << 20);
    /* What is not read stays in memory, and reduces the budget of the next. */
    ticket = cogpu_io_prefetch(io, spans, COUNT);
    CHECK(is_right(io, &spans[0]) && is_right(io, &spans[16]) && many.calls == 6);
    CHECK(is_right(io, &spans[32]) && many.calls == 7 && many.reads == 2);
    CHECK(is_right(io, &spans[34]) && many.calls == 8 && many.reads == 1);
    cogpu_io_end_prefetch(io, ticket);
    cogpu_io_close(io);
}

static void test_a_group_that_fails(void) {
    static const cogpu_byte_range spans[] = {{1000000, 100}, {3000000, 100}, {5000000, 100}};
    struct many many = {0};
    cogpu_io *io = open_many(&many);
    many.broken = 3000050;
    uint64_t ticket = cogpu_io_prefetch(io, spans, 3);
    for (int i = 0; i < 3; i++)
        CHECK(is_right(io, &spans[i]) == (i != 1));
    cogpu_io_end_prefetch(io, ticket);
    CHECK(many.calls == 1 + 1 + 3);
    cogpu_io_close(io);
}

static cogpu_status many_read_locked(void *argument, const uint64_t *offsets, const size_t *bytes,
                                     void *const *to, size_t count) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what is counted */
    pthread_mutex_lock(&lock);
    cogpu_status status = many_read(argument, offsets, bytes, to, count);
    pthread_mutex_unlock(&lock);
    return status;
}

/* Each expects and reads what all the others do, from another one on. */
static void *read_around(void *argument) {
    enum { COUNT = 12 };
    const cogpu_io *io = argument;
    cogpu_byte_range spans[COUNT];
    size_t right = 0;
    for (uint64_t i = 0; i < COUNT; i++)
        spans[i] = (cogpu_byte_range){(i + 1) * 300000, 5000};
    for (size_t round = 0; round < COUNT; round++) {
        uint64_t ticket = cogpu_io_prefetch(io, spans, COUNT);
        for (size_t i = 0; i < COUNT; i++)
            right += is_right(io, &spans[(i + round) % COUNT]);
        cogpu_io_end_prefetch(io, ticket);
    }
    return right == (size_t)COUNT * COUNT ? argument : NULL;
}

static void test_threads_that_expect_the_same(void) {
    struct many many = {0};
    const cogpu_source source = {.struct_size = sizeof(cogpu_source),
                                 .user = &many,
                                 .size = many_size,
                                 .read_many = many_read_locked};
    pthread_t threads[4];
    cogpu_io *io = NULL;
    void *right;
    CHECK(cogpu_io_open_user(&source, &io, NULL) == COGPU_OK);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, read_around, io) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], &right) == 0 && right);
    cogpu_io_close(io);
}

TESTS(source) {
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
    RUN(test_what_is_expected_comes_in_one_call);
    RUN(test_a_group_has_an_end);
    RUN(test_a_group_that_fails);
    RUN(test_threads_that_expect_the_same);
    return FINISH();
}
