/* The shelf: right bytes in few reads of a source, whatever is read of it, in which order and by
 * how many threads. */
#include "io/io.h"

#include "test.h"

#include <pthread.h>
#include <stdatomic.h>

enum { BYTES = 12 << 20, HEAD = 16 << 10, KIB = 1 << 10 };

static uint8_t content[BYTES];
static atomic_int reads, failures;
static atomic_uint_fast64_t bytes_read;
static int expected;

static cogpu_status read_content(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                                 cogpu_meter *meter, cogpu_error *error) {
    (void)meter;
    (void)io;
    if (atomic_load(&failures) > 0) {
        atomic_fetch_sub(&failures, 1);
        return cogpu_fail(error, COGPU_IO, "broken");
    }
    CHECK(offset <= BYTES && bytes <= BYTES - offset);
    atomic_fetch_add(&reads, 1);
    atomic_fetch_add(&bytes_read, bytes);
    memcpy(to, content + offset, bytes);
    return COGPU_OK;
}

static uint64_t expect(const cogpu_io *io, const cogpu_span_of_source *spans, uint32_t count) {
    (void)io, (void)spans;
    expected += (int)count;
    return 1;
}

static void forget(const cogpu_io *io, uint64_t ticket) {
    (void)io, (void)ticket;
    expected = -expected;
}

static void close_nothing(cogpu_io *io) {
    (void)io;
}

static cogpu_io *open_far(void) {
    const cogpu_io kind = {.bytes = BYTES,
                           .read = read_content,
                           .expect = expect,
                           .forget = forget,
                           .close = close_nothing,
                           .is_far = true};
    cogpu_io *io = NULL;
    CHECK(cogpu_io_open(&kind, &io, NULL) == COGPU_OK);
    reads = failures = 0;
    bytes_read = 0;
    expected = 0;
    return io;
}

static bool peeks(cogpu_io *io, uint64_t offset, size_t bytes) {
    static _Thread_local uint8_t got[3 << 20];
    memset(got, 0, bytes);
    return cogpu_io_peek(io, offset, bytes, got, NULL) == COGPU_OK &&
           memcmp(got, content + offset, bytes) == 0;
}

static void test_a_long_header_takes_pieces_that_double(void) {
    cogpu_io *io = open_far();
    for (uint64_t at = 0; at + 12 <= 800 * KIB; at += 12)
        CHECK(peeks(io, at, 12));
    /* 64, 128, 256 and 512 KiB behind the head. */
    CHECK(reads == 4 && bytes_read == 960 * KIB);
    for (uint64_t at = 0; at + 12 <= 800 * KIB; at += 1000)
        CHECK(peeks(io, at, 12));
    CHECK(reads == 4);
    cogpu_io_close(io);
}

static void test_pieces_are_kept_when_the_file_is_open(void) {
    cogpu_io *io = open_far();
    CHECK(peeks(io, HEAD + 8 * KIB, 100) && reads == 1);
    cogpu_io_settle(io);
    CHECK(peeks(io, HEAD - 50, 100) && peeks(io, HEAD + 60 * KIB, 100) && reads == 1);
    CHECK(peeks(io, 5 << 20, 8) && reads == 2 && peeks(io, (5 << 20) + 60 * KIB, 8) && reads == 2);
    cogpu_io_close(io);
}

static void test_what_lies_before_a_directory_at_the_end(void) {
    cogpu_io *io = open_far();
    CHECK(peeks(io, BYTES - 300, 200) && peeks(io, BYTES - 50 * KIB, 1000) && reads == 1);
    CHECK(!peeks(io, BYTES - 8, 9) && reads == 1);
    CHECK(!peeks(io, UINT64_MAX, 9) && reads == 1);
    cogpu_io_close(io);
}

static void test_no_byte_comes_twice(void) {
    cogpu_io *io = open_far();
    CHECK(peeks(io, (1 << 20) + 32 * KIB, 8) && peeks(io, 1 << 20, 48 * KIB));
    CHECK(reads == 2 && bytes_read == 96 * KIB);
    cogpu_io_close(io);
}

static void test_long_values_are_not_kept(void) {
    cogpu_io *io = open_far();
    CHECK(peeks(io, 1000, 2 << 20) && reads == 1 && bytes_read == 2 << 20);
    CHECK(peeks(io, 1000, 1 << 20) && reads == 2);
    CHECK(peeks(io, 1000, 1 << 20) && reads == 2);
    cogpu_io_close(io);
}

static void test_two_that_are_near_come_together(void) {
    cogpu_io *io = open_far();
    const cogpu_span_of_source near[2] = {{700 * KIB, 400}, {300 * KIB, 200}};
    cogpu_io_peek_soon(io, near);
    CHECK(reads == 1 && bytes_read < 512 * KIB);
    for (int i = 0; i < 2; i++)
        CHECK(peeks(io, near[i].offset, near[i].bytes) && peeks(io, near[i].offset + 60 * KIB, 9));
    cogpu_io_peek_soon(io, near);
    CHECK(reads == 1 && expected == 0);
    cogpu_io_close(io);
}

static void test_two_that_are_apart_come_side_by_side(void) {
    cogpu_io *io = open_far();
    const cogpu_span_of_source far[2] = {{1 << 20, 400}, {8 << 20, 200}};
    cogpu_io_peek_soon(io, far);
    CHECK(reads == 2 && expected == -2 && bytes_read == 128 * KIB);
    CHECK(peeks(io, far[0].offset, 400) && peeks(io, far[1].offset, 200) && reads == 2);
    const cogpu_span_of_source outside[2] = {{3 << 20, 10}, {BYTES - 5, 10}};
    const cogpu_span_of_source empty[2] = {{3 << 20, 10}, {0, 0}};
    cogpu_io_peek_soon(io, outside);
    cogpu_io_peek_soon(io, empty);
    CHECK(reads == 2);
    cogpu_io_close(io);
}

static void test_no_more_is_kept_than_there_is_room_for(void) {
    cogpu_io *io = open_far();
    const int most = COGPU_SHELF_BYTES / COGPU_PIECE_LEAST, all = most + 20;
    for (int i = 0; i < all; i++)
        CHECK(peeks(io, (1 << 20) + (uint64_t)i * 128 * KIB, 8));
    CHECK(reads == all);
    for (int i = all - most; i < all; i++)
        CHECK(peeks(io, (1 << 20) + (uint64_t)i * 128 * KIB, 8));
    CHECK(reads == all);
    CHECK(peeks(io, 1 << 20, 8) && reads == all + 1);
    cogpu_io_close(io);
}

static void test_what_failed_is_asked_for_again(void) {
    cogpu_io *io = open_far();
    const cogpu_span_of_source far[2] = {{1 << 20, 400}, {8 << 20, 200}};
    failures = 3;
    CHECK(!peeks(io, 2 << 20, 8));
    cogpu_io_peek_soon(io, far);
    CHECK(reads == 0 && failures == 0);
    CHECK(peeks(io, 2 << 20, 8) && peeks(io, 1 << 20, 8) && reads == 2);
    cogpu_io_close(io);
}

static void *peek_all_over(void *argument) {
    cogpu_io *io = argument;
    for (uint64_t i = 0; i < 3000; i++)
        CHECK(peeks(io, i * 7919 % (3 << 20), 1 + (size_t)(i % 700)));
    return NULL;
}

static void test_threads_share_pieces(void) {
    cogpu_io *io = open_far();
    pthread_t threads[4];
    cogpu_io_settle(io);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, peek_all_over, io) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(bytes_read <= 4 << 20);
    cogpu_io_close(io);
}

int main(void) {
    for (size_t i = 0; i < BYTES; i++)
        content[i] = (uint8_t)(i * 31 + i / 251);
    RUN(test_a_long_header_takes_pieces_that_double);
    RUN(test_pieces_are_kept_when_the_file_is_open);
    RUN(test_what_lies_before_a_directory_at_the_end);
    RUN(test_no_byte_comes_twice);
    RUN(test_long_values_are_not_kept);
    RUN(test_two_that_are_near_come_together);
    RUN(test_two_that_are_apart_come_side_by_side);
    RUN(test_no_more_is_kept_than_there_is_room_for);
    RUN(test_what_failed_is_asked_for_again);
    RUN(test_threads_share_pieces);
    return FINISH();
}
