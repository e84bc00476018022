/* The range cache: right bytes in few requests, whatever is peeked at or prefetched, in which order
 * and by how many threads. */
#include "io/io.h"

#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { BYTES = 12 << 20, HEADER = 16 << 10, KIB = 1 << 10, BUDGET_BYTES = 4 << 20 };

static uint8_t content[BYTES];
static atomic_int reads, failures;
static atomic_uint_fast64_t bytes_read;
static int started, ended; /* prefetched ranges */
static size_t budget;

static cogpu_status read_content(void *source, uint64_t offset, size_t bytes, void *to,
                                 cogpu_meter *meter, cogpu_error *error) {
    (void)source, (void)meter;
    if (atomic_load(&failures) > 0) {
        atomic_fetch_sub(&failures, 1);
        return cogpu_fail(error, COGPU_IO_ERROR, "broken");
    }
    CHECK(offset <= BYTES && bytes <= BYTES - offset);
    atomic_fetch_add(&reads, 1);
    atomic_fetch_add(&bytes_read, bytes);
    memcpy(to, content + offset, bytes);
    return COGPU_OK;
}

/* ---- an asynchronous loader: it reads when it is waited for ---- */

static bool reserve_range(void *source, const cogpu_range *range) {
    (void)source;
    if (range->bytes > budget)
        return false;
    budget -= range->bytes;
    return true;
}

static void unreserve_range(void *source, const cogpu_range *range) {
    (void)source;
    budget += range->bytes;
}

static bool start_range(void *source, cogpu_range *range) {
    (void)source, (void)range;
    started++;
    return true;
}

static cogpu_status wait_range(void *source, cogpu_range *range, uint64_t offset, size_t bytes,
                               cogpu_meter *meter, cogpu_error *error) {
    (void)offset, (void)bytes;
    return read_content(source, range->offset, range->bytes, range->data, meter, error);
}

static void cancel_range(void *source, cogpu_range *range) {
    (void)source, (void)range;
    ended++;
}

static const cogpu_range_loader loader = {.range_bytes = sizeof(cogpu_range),
                                          .reserve = reserve_range,
                                          .unreserve = unreserve_range,
                                          .start = start_range,
                                          .wait = wait_range,
                                          .cancel = cancel_range,
                                          .read = read_content};

static void close_source(cogpu_io *io) {
    CHECK(budget == BUDGET_BYTES && started == ended);
    free(io);
}

static cogpu_io *open_remote(void) {
    static const cogpu_io_kind kind = {.read = cogpu_io_read_cached, .close = close_source};
    const cogpu_coalesce_limits limits = {COGPU_GAP_BYTES, COGPU_REQUEST_BYTES};
    cogpu_io *self = calloc(1, sizeof *self), *io = NULL;
    self->kind = &kind;
    self->bytes = BYTES;
    self->cache = cogpu_range_cache_open(&loader, NULL, BYTES, limits);
    CHECK(self->cache && cogpu_io_open(self, &io, NULL) == COGPU_OK);
    reads = failures = 0;
    bytes_read = 0;
    started = ended = 0;
    budget = BUDGET_BYTES;
    return io;
}

static bool peeks(cogpu_io *io, uint64_t offset, size_t bytes) {
    static _Thread_local uint8_t got[3 << 20];
    memset(got, 0, bytes);
    return cogpu_io_peek(io, offset, bytes, got, NULL) == COGPU_OK &&
           memcmp(got, content + offset, bytes) == 0;
}

static void test_a_long_header_takes_ranges_that_double(void) {
    cogpu_io *io = open_remote();
    for (uint64_t at = 0; at + 12 <= 800 * KIB; at += 12)
        CHECK(peeks(io, at, 12));
    /* 64, 128, 256 and 512 KiB after the header. */
    CHECK(reads == 4 && bytes_read == 960 * KIB);
    for (uint64_t at = 0; at + 12 <= 800 * KIB; at += 1000)
        CHECK(peeks(io, at, 12));
    CHECK(reads == 4);
    cogpu_io_close(io);
}

static void test_ranges_are_kept_when_the_file_is_open(void) {
    cogpu_io *io = open_remote();
    CHECK(peeks(io, HEADER + 8 * KIB, 100) && reads == 1);
    cogpu_io_seal(io);
    CHECK(peeks(io, HEADER - 50, 100) && peeks(io, HEADER + 60 * KIB, 100) && reads == 1);
    CHECK(peeks(io, 5 << 20, 8) && reads == 2 && peeks(io, (5 << 20) + 60 * KIB, 8) && reads == 2);
    cogpu_io_close(io);
}

static void test_values_before_a_directory_at_the_end(void) {
    cogpu_io *io = open_remote();
    CHECK(peeks(io, BYTES - 300, 200) && peeks(io, BYTES - 50 * KIB, 1000) && reads == 1);
    CHECK(!peeks(io, BYTES - 8, 9) && reads == 1);
    CHECK(!peeks(io, UINT64_MAX, 9) && reads == 1);
    cogpu_io_close(io);
}

static void test_no_byte_is_read_twice(void) {
    cogpu_io *io = open_remote();
    CHECK(peeks(io, (1 << 20) + 32 * KIB, 8) && peeks(io, 1 << 20, 48 * KIB));
    CHECK(reads == 2 && bytes_read == 96 * KIB);
    cogpu_io_close(io);
}

static void test_long_values_are_not_kept(void) {
    cogpu_io *io = open_remote();
    CHECK(peeks(io, 1000, 2 << 20) && reads == 1 && bytes_read == 2 << 20);
    CHECK(peeks(io, 1000, 1 << 20) && reads == 2);
    CHECK(peeks(io, 1000, 1 << 20) && reads == 2);
    cogpu_io_close(io);
}

static void test_two_near_spans_share_a_request(void) {
    cogpu_io *io = open_remote();
    const cogpu_byte_range near[2] = {{700 * KIB, 400}, {300 * KIB, 200}};
    cogpu_io_prefetch_peeks(io, near);
    CHECK(reads == 1 && bytes_read < 512 * KIB);
    for (int i = 0; i < 2; i++)
        CHECK(peeks(io, near[i].offset, near[i].bytes) && peeks(io, near[i].offset + 60 * KIB, 9));
    cogpu_io_prefetch_peeks(io, near);
    CHECK(reads == 1 && started == 0);
    cogpu_io_close(io);
}

static void test_two_distant_spans_take_two_requests(void) {
    cogpu_io *io = open_remote();
    const cogpu_byte_range far[2] = {{1 << 20, 400}, {8 << 20, 200}};
    cogpu_io_prefetch_peeks(io, far);
    CHECK(reads == 2 && started == 2 && ended == 2 && bytes_read == 128 * KIB);
    CHECK(peeks(io, far[0].offset, 400) && peeks(io, far[1].offset, 200) && reads == 2);
    const cogpu_byte_range outside[2] = {{3 << 20, 10}, {BYTES - 5, 10}};
    const cogpu_byte_range empty[2] = {{3 << 20, 10}, {0, 0}};
    cogpu_io_prefetch_peeks(io, outside);
    cogpu_io_prefetch_peeks(io, empty);
    CHECK(reads == 2);
    cogpu_io_close(io);
}

static void test_old_ranges_are_evicted(void) {
    cogpu_io *io = open_remote();
    const int most = COGPU_RANGE_CACHE_BYTES / COGPU_READ_AHEAD_BYTES, all = most + 20;
    for (int i = 0; i < all; i++)
        CHECK(peeks(io, (1 << 20) + (uint64_t)i * 128 * KIB, 8));
    CHECK(reads == all);
    for (int i = all - most; i < all; i++)
        CHECK(peeks(io, (1 << 20) + (uint64_t)i * 128 * KIB, 8));
    CHECK(reads == all);
    CHECK(peeks(io, 1 << 20, 8) && reads == all + 1);
    cogpu_io_close(io);
}

static void test_failed_ranges_are_requested_again(void) {
    cogpu_io *io = open_remote();
    const cogpu_byte_range far[2] = {{1 << 20, 400}, {8 << 20, 200}};
    failures = 3;
    CHECK(!peeks(io, 2 << 20, 8));
    cogpu_io_prefetch_peeks(io, far);
    CHECK(reads == 0 && failures == 0);
    CHECK(peeks(io, 2 << 20, 8) && peeks(io, 1 << 20, 8) && reads == 2);
    cogpu_io_close(io);
}

/* ---- prefetched ranges ---- */

static bool reads_right(cogpu_io *io, uint64_t offset, size_t bytes) {
    static uint8_t got[BYTES];
    return cogpu_io_read(io, offset, bytes, got, NULL) == COGPU_OK &&
           memcmp(got, content + offset, bytes) == 0;
}

static void test_prefetched_ranges_are_started_at_once_and_freed_when_read(void) {
    const cogpu_byte_range spans[] = {{1 << 20, 1000}, {(1 << 20) + 2000, 1000}, {5 << 20, 99}};
    cogpu_io *io = open_remote();
    uint64_t ticket = cogpu_io_prefetch(io, spans, 3);
    CHECK(started == 2 && reads == 0); /* neighbours share a request */
    CHECK(reads_right(io, spans[1].offset, 1000) && ended == 0);
    CHECK(reads_right(io, spans[0].offset, 1000) && ended == 1);
    cogpu_io_end_prefetch(io, ticket);
    CHECK(ended == 2 && budget == BUDGET_BYTES);
    cogpu_io_close(io);
}

/* The next range starts when the memory of one that was read is free. */
static void test_the_budget_bounds_what_is_started(void) {
    const cogpu_byte_range spans[] = {{1 << 20, 3 << 20}, {6 << 20, 2 << 20}, {9 << 20, 10}};
    cogpu_io *io = open_remote();
    uint64_t ticket = cogpu_io_prefetch(io, spans, 3);
    CHECK(started == 1);
    CHECK(reads_right(io, 9 << 20, 10) && started == 2 && ended == 1);
    CHECK(reads_right(io, spans[0].offset, (size_t)spans[0].bytes) && started == 3 && ended == 2);
    CHECK(reads_right(io, 11 << 20, 1000) && started == 3); /* not prefetched */
    cogpu_io_end_prefetch(io, ticket);
    CHECK(ended == 3);
    cogpu_io_close(io);
}

static void *peek_all_over(void *argument) {
    cogpu_io *io = argument;
    for (uint64_t i = 0; i < 3000; i++)
        CHECK(peeks(io, i * 7919 % (3 << 20), 1 + (size_t)(i % 700)));
    return NULL;
}

static void test_threads_share_ranges(void) {
    cogpu_io *io = open_remote();
    pthread_t threads[4];
    cogpu_io_seal(io);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, peek_all_over, io) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(bytes_read <= 4 << 20);
    cogpu_io_close(io);
}

TESTS(range_cache) {
    for (size_t i = 0; i < BYTES; i++)
        content[i] = (uint8_t)(i * 31 + i / 251);
    RUN(test_a_long_header_takes_ranges_that_double);
    RUN(test_ranges_are_kept_when_the_file_is_open);
    RUN(test_values_before_a_directory_at_the_end);
    RUN(test_no_byte_is_read_twice);
    RUN(test_long_values_are_not_kept);
    RUN(test_two_near_spans_share_a_request);
    RUN(test_two_distant_spans_take_two_requests);
    RUN(test_old_ranges_are_evicted);
    RUN(test_failed_ranges_are_requested_again);
    RUN(test_prefetched_ranges_are_started_at_once_and_freed_when_read);
    RUN(test_the_budget_bounds_what_is_started);
    RUN(test_threads_share_ranges);
    return FINISH();
}
