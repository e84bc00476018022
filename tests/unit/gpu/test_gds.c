/*
 * GPUDirect Storage: reads and writes by way of a fake cuFile that is short,
 * late or failing. Each kind of library is tried in a process of its own, since it is loaded once.
 */
#include "gpu/driver/gpu.h"

#include "support/gds_test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILE_BYTES = (3 << 20) + 1234 };

/* ---- libraries, each in a process of its own ----------------------------------------------- */

static void expect_absent(const char *why) {
    cogpu_gds_file *file = (void *)&error;
    cogpu_gds_flight *flight = (void *)&error;
    cogpu_gds_work work = {.count = 0};
    uint32_t bad;
    CHECK_TEXT(cogpu_gds_missing_reason(), why);
    CHECK(!cogpu_gds_is_direct());
    CHECK(cogpu_gds_file_open(0, &file, &error) == COGPU_UNSUPPORTED && !file);
    CHECK(strstr(error.message, why));
    CHECK(cogpu_gds_register(NULL, &work, 1, &error) == COGPU_UNSUPPORTED);
    CHECK(cogpu_gds_fetch(&work, &bad, &error) == COGPU_UNSUPPORTED);
    CHECK(cogpu_gds_write(&work, &flight, &error) == COGPU_UNSUPPORTED && !flight);
    CHECK(cogpu_gds_wait(flight, &bad, &error) == COGPU_OK && bad == 0);
    cogpu_gds_deregister(NULL, &work);
    cogpu_gds_file_close(NULL);
}

static void in_no_library(void) {
    const char *why;
    if (cogpu_gpu_count(&why) == 0)
        expect_absent(why);
    else if (!dlopen("libcufile.so.0", RTLD_NOW | RTLD_LOCAL))
        expect_absent("cuFile (libcufile.so.0) is not installed");
}

static void in_no_such_file(void) {
    expect_absent("the file that COGPU_CUFILE names cannot be loaded");
}

static void in_another_library(void) {
    expect_absent("cuFile is too old: it lacks cuFileDriverOpen");
}

static void in_a_library_that_cannot_write(void) {
    expect_absent("cuFile is too old: it lacks cuFileWrite");
}

static void in_a_library_without_driver(void) {
    fake->open_error = 5001;
    expect_absent("cuFile cannot open its driver: its error 5001, CUDA's error 0");
}

static void in_a_library_that_others_opened(void) {
    fake->open_error = 5026;
    CHECK(!cogpu_gds_missing_reason() && cogpu_gds_is_direct());
}

static void in_a_library_by_way_of_the_host(void) {
    fake->is_through_host = true;
    CHECK(!cogpu_gds_missing_reason() && !cogpu_gds_is_direct());
}

static void in_a_library_without_properties(void) {
    fake->properties_error = 5030;
    CHECK(!cogpu_gds_missing_reason() && !cogpu_gds_is_direct());
}

static void test_absent_libraries(void) {
    with_cufile(NULL, in_no_library);
    with_cufile("/nonexistent/libcufile.so", in_no_such_file);
    with_cufile("libm.so.6", in_another_library);
    with_cufile(FAKE_CUFILE_READING, in_a_library_that_cannot_write);
    with_cufile(FAKE_CUFILE, in_a_library_without_driver);
    with_cufile(FAKE_CUFILE, in_a_library_that_others_opened);
    with_cufile(FAKE_CUFILE, in_a_library_by_way_of_the_host);
    with_cufile(FAKE_CUFILE, in_a_library_without_properties);
}

/* ---- fetch, and write and wait: whichever way the bytes go, the same happens --------------- */

static cogpu_gds_request pieces[SPANS_MAX];
static uint8_t content[FILE_BYTES]; /* of the file */
static bool has_batches, is_writing;
static int descriptor;
static cogpu_gds_file *file;
static cogpu_pool *pool;

/* A file with noise, open and already unlinked. */
static void make_file(void) {
    char path[] = "/tmp/cogpu_gds_XXXXXX";
    descriptor = mkstemp(path);
    fill_with_noise(content, FILE_BYTES);
    CHECK(descriptor >= 0 && write(descriptor, content, FILE_BYTES) == FILE_BYTES);
    unlink(path);
}

enum { UNTOUCHED = 0x5A };

static uint8_t *memory;
static uint64_t memory_bytes;

static void open_memory(uint64_t bytes) {
    memory_bytes = bytes;
    memory = malloc(bytes ? bytes : 1);
    memset(memory, UNTOUCHED, bytes);
    if (is_writing)
        fill_with_noise(memory, bytes);
}

static cogpu_status move(uint32_t count, uint32_t *bad) {
    cogpu_gds_flight *flight = NULL;
    cogpu_gds_work work = {.memory = memory,
                           .memory_bytes = memory_bytes,
                           .requests = pieces,
                           .count = count,
                           .context = &context,
                           .pool = pool,
                           .workers = 4,
                           .patience = fake->stuck_each ? 0.2 : 60};
    if (!is_writing)
        return cogpu_gds_fetch(&work, bad, &error);
    unsigned waits = fake->waits;
    TRY(cogpu_gds_write(&work, &flight, &error));
    CHECK(fake->waits == waits);
    return cogpu_gds_wait(flight, bad, &error);
}

/* What cuFile was asked for, in batches or in none. */
static uint32_t asked(void) {
    return fake->submitted + fake->alone;
}

/* Pieces are as expected, and what is DONE has the same bytes in memory as in the file. */
static bool is_moved(uint32_t count, bool (*is_bad)(const cogpu_gds_request *)) {
    uint32_t wrong = !is_clean() + (is_writing ? fake->reads : fake->writes);
    if (is_writing)
        CHECK(pread(descriptor, content, FILE_BYTES, 0) == FILE_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        const cogpu_gds_request *piece = &pieces[i];
        wrong += piece->state != (is_bad && is_bad(piece) ? COGPU_GDS_BAD : COGPU_GDS_DONE);
        if (piece->state == COGPU_GDS_DONE)
            wrong += memcmp(memory + piece->device_offset, content + piece->file_offset,
                            (size_t)piece->bytes) != 0;
    }
    return wrong == 0;
}

/* Each page of the file is a read of its own, in memory in the opposite order. */
static uint32_t list_pages(void) {
    uint32_t count = FILE_BYTES / PAGE;
    for (uint32_t i = 0; i < count; i++)
        pieces[i] = (cogpu_gds_request){.file = file,
                                        .file_offset = (uint64_t)i * PAGE,
                                        .bytes = PAGE,
                                        .device_offset = (uint64_t)(count - 1 - i) * PAGE};
    open_memory((uint64_t)count * PAGE);
    return count;
}

static void close_memory(void) {
    free(memory);
    CHECK(fake->batches == 0);
}

static void test_moving_nothing(void) {
    uint32_t bad = 9;
    reset();
    open_memory(0);
    CHECK(move(0, &bad) == COGPU_OK && bad == 0);
    CHECK(fake->setups == 0 && fake->alone == 0 && fake->waits == 0);
    close_memory();
}

static void test_moving_one(void) {
    uint32_t bad = 9;
    reset();
    open_memory(PAGE);
    pieces[0] = (cogpu_gds_request){.file = file, .file_offset = 8 * PAGE, .bytes = PAGE};
    CHECK(move(1, &bad) == COGPU_OK && bad == 0 && is_moved(1, NULL));
    CHECK(asked() == 1);
    close_memory();
}

static void test_moving_many(void) {
    uint32_t bad = 9;
    reset();
    uint32_t count = list_pages(), entries = fake->entries ? fake->entries : 128;
    CHECK(move(count, &bad) == COGPU_OK && bad == 0 && is_moved(count, NULL));
    if (has_batches) {
        CHECK(fake->submitted == count && fake->submitted_before_wait == count);
        CHECK(fake->submits == (count + entries - 1) / entries && fake->alone == 0);
    } else {
        CHECK(fake->submitted == 0 && fake->alone == count);
    }
    CHECK(fake->unaligned == 0);
    close_memory();
}

static void test_moving_pieces_of_nothing(void) {
    uint32_t bad = 9;
    reset();
    uint32_t count = list_pages(), empty = 0;
    for (uint32_t i = 0; i < count; i += 3, empty++)
        pieces[i].bytes = 0;
    CHECK(move(count, &bad) == COGPU_OK && bad == 0 && is_moved(count, NULL));
    CHECK(asked() == count - empty);
    for (uint32_t i = 0; i < count; i++)
        pieces[i].bytes = 0;
    CHECK(move(count, &bad) == COGPU_OK && bad == 0);
    CHECK(asked() == count - empty);
    close_memory();
}

static bool is_odd(const cogpu_gds_request *piece) {
    return piece->bytes != PAGE;
}

static void test_moving_outside_memory(void) {
    uint32_t bad = 9;
    reset();
    uint32_t count = list_pages();
    pieces[3].bytes = UINT64_MAX;
    pieces[4].bytes = memory_bytes - pieces[4].device_offset + 1;
    pieces[5].bytes = PAGE + 1, pieces[5].device_offset = UINT64_MAX - PAGE;
    pieces[6].bytes = PAGE - 1, pieces[6].file_offset = UINT64_MAX - 5;
    pieces[7].bytes = PAGE - 1, pieces[7].file_offset = INT64_MAX - 5;
    CHECK(move(count, &bad) == COGPU_OK && bad == 5 && is_moved(count, is_odd));
    CHECK(asked() == count - 5);
    close_memory();
}

static bool is_mischief(const cogpu_gds_request *piece) {
    uint64_t page = piece->file_offset / PAGE;
    return (fake->short_each && page % fake->short_each == 0) ||
           (fake->fail_each && page % fake->fail_each == 0) ||
           (fake->stuck_each && page % fake->stuck_each == 0);
}

static uint32_t count_mischief(uint32_t count) {
    uint32_t bad = 0;
    for (uint32_t i = 0; i < count; i++)
        bad += is_mischief(&pieces[i]);
    return bad;
}

static void test_short_and_failing_pieces(void) {
    static const uint64_t each[][2] = {{1, 0}, {0, 1}, {7, 0}, {0, 5}, {3, 4}};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        uint32_t bad = 9;
        reset();
        uint32_t count = list_pages();
        fake->short_each = each[i][0];
        fake->fail_each = each[i][1];
        CHECK(move(count, &bad) == COGPU_OK && is_moved(count, is_mischief));
        CHECK(bad == count_mischief(count) && bad > 0);
        close_memory();
    }
}

/* A read comes short by itself, a write makes the file longer. */
static void test_moving_beyond_the_end(void) {
    uint32_t bad = 9;
    uint8_t last;
    reset();
    open_memory(PAGE);
    pieces[0] = (cogpu_gds_request){.file = file, .file_offset = FILE_BYTES - 10, .bytes = 11};
    CHECK(move(1, &bad) == COGPU_OK && bad == !is_writing);
    CHECK(pieces[0].state == (is_writing ? COGPU_GDS_DONE : COGPU_GDS_BAD));
    if (is_writing)
        CHECK(pread(descriptor, &last, 1, FILE_BYTES) == 1 && last == memory[10]);
    close_memory();
}

static void test_late_pieces(void) {
    for (unsigned piece = 0; piece < 8; piece++) {
        uint32_t bad = 9;
        reset();
        uint32_t count = list_pages();
        fake->late = 3 * piece;
        fake->piece = piece;
        fake->has_strays = piece % 2;
        fake->fail_each = 10;
        CHECK(move(count, &bad) == COGPU_OK && is_moved(count, is_mischief));
        CHECK(bad == count_mischief(count));
        CHECK(!has_batches || fake->submitted_before_wait == count);
        close_memory();
    }
}

/* What cuFile takes in no batch is moved by threads. */
static void test_refused_batches(void) {
    for (unsigned i = 0; i < 4; i++) {
        uint32_t bad = 9;
        reset();
        uint32_t count = list_pages();
        fake->setup_fails_at = i < 2 ? i + 1 : 0;
        fake->submit_fails_at = i >= 2 ? i - 1 : 0;
        CHECK(move(count, &bad) == COGPU_OK && bad == 0 && is_moved(count, NULL));
        CHECK(asked() == count && fake->alone > 0);
        CHECK(!has_batches || fake->submitted_before_wait == fake->submitted);
        close_memory();
    }
}

/* Pieces that do not end are told to, and the others are not lost. */
static void test_stuck_pieces(void) {
    uint32_t bad = 9;
    reset();
    uint32_t count = list_pages();
    fake->stuck_each = 50;
    CHECK(move(count, &bad) == COGPU_OK && is_moved(count, is_mischief));
    CHECK(bad == count_mischief(count) && fake->cancels > 0);
    close_memory();
}

/* One batch cannot be asked any more: what is left of it is given up. */
static void test_failing_status(void) {
    for (unsigned is_lie = 0; is_lie < 2; is_lie++) {
        uint32_t bad = 9, done = 0;
        reset();
        uint32_t count = list_pages(), entries = fake->entries ? fake->entries : 128;
        fake->status_fails_at = !is_lie;
        fake->status_lies_at = is_lie;
        CHECK(move(count, &bad) == COGPU_OK);
        CHECK(bad == (entries < count ? entries : count) && fake->cancels == 1);
        for (uint32_t i = 0; i < count; i++)
            done += pieces[i].state == COGPU_GDS_DONE;
        CHECK(done + bad == count && fake->wrong == 0 && fake->closed_under_way == 0);
        close_memory();
    }
}

static void test_no_context(void) {
    uint32_t bad = 9;
    reset();
    uint32_t count = list_pages();
    atomic_store(&refused, 1);
    CHECK(move(count, &bad) == COGPU_OK && bad == count && asked() == 0);
    CHECK(cogpu_gds_register(&context, memory, PAGE, &error) == COGPU_DEVICE_ERROR);
    atomic_store(&refused, 0);
    close_memory();
}

static void test_files_and_memory(void) {
    cogpu_gds_file *none = (void *)&error;
    int ends[2];
    char byte;
    reset();
    CHECK(cogpu_gds_file_bytes(file) == FILE_BYTES);
    CHECK(cogpu_gds_file_open(-1, &none, &error) == COGPU_IO_ERROR && !none);
    CHECK(pipe(ends) == 0 && cogpu_gds_file_open(ends[0], &none, &error) == COGPU_IO_ERROR &&
          !none);
    close(ends[0]);
    close(ends[1]);
    int program = open("/proc/self/exe", O_RDONLY);
    fake->file_error = 5008;
    CHECK(cogpu_gds_file_open(program, &none, &error) == COGPU_DEVICE_ERROR && !none);
    CHECK_TEXT(error.message, "cuFile failed to register a file: its error 5008, CUDA's error 0");
    close(program);
    fake->memory_error = 5036;
    CHECK(cogpu_gds_register(&context, &byte, 1, &error) == COGPU_DEVICE_ERROR);
    CHECK(fake->memories == 0 && fake->files == 1);
    fake->memory_error = 0;
    CHECK(cogpu_gds_register(&context, &byte, 1, &error) == COGPU_OK && fake->memories == 1);
    cogpu_gds_deregister(&context, &byte);
    CHECK(fake->memories == 0 && fake->wrong == 0 && fake->without_context == 0);
}

/* ---- a batch from its spans to its bytes, as a reader goes about it ------------------------ */

static bool is_span_there(const uint8_t *device, cogpu_span span, const cogpu_gds_location *place) {
    return place->read == COGPU_GDS_NO_READ
               ? span.bytes == 0 || span.offset + span.bytes > FILE_BYTES
               : memcmp(device + place->device_offset, content + span.offset, (size_t)span.bytes) ==
                     0;
}

static cogpu_status read_batch(cogpu_gpu *gpu, const cogpu_span *spans, uint32_t count,
                               uint64_t allowed) {
    cogpu_gds_plan plan = {.reads = plan_reads};
    void *device = NULL;
    uint32_t bad = 9, wrong = 0;
    TRY(plan_batch(&plan, file, FILE_BYTES, spans, count, allowed));
    if (plan.bytes > 0) {
        TRY(gpu->calls->allocate(gpu, plan.bytes, &device, &error));
        TRY(cogpu_gds_register(&context, device, plan.bytes, &error));
    }
    cogpu_gds_work work = {.memory = device,
                           .memory_bytes = plan.bytes,
                           .requests = plan_reads,
                           .count = plan.read_count,
                           .context = &context,
                           .pool = pool,
                           .workers = 2};
    TRY(cogpu_gds_fetch(&work, &bad, &error));
    for (uint32_t i = 0; i < count; i++)
        wrong += !is_span_there(device, spans[i], &plan_locations[i]);
    CHECK(bad == 0 && wrong == 0 && fake->unaligned == 0 && fake->wrong == 0);
    CHECK(!has_batches || fake->submitted_before_wait == plan.read_count);
    if (device) {
        cogpu_gds_deregister(&context, device);
        gpu->calls->release(gpu, device);
    }
    return COGPU_OK;
}

static void test_batches_of_spans(void) {
    static cogpu_span spans[SPANS_MAX];
    static const uint32_t counts[] = {0, 1, 2, 100, SPANS_MAX};
    cogpu_gpu *gpu = NULL;
    CHECK(cogpu_gpu_open_emulator(1, 1 << 30, &gpu, &error) == COGPU_OK);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        reset();
        make_spans(spans, counts[i], FILE_BYTES, i % 2 ? 400 : 20000);
        CHECK(read_batch(gpu, spans, counts[i], 1 << 30) == COGPU_OK);
    }
    /* Thousands of small blocks that share nothing. */
    reset();
    for (uint32_t i = 0; i < SPANS_MAX; i++)
        spans[i] = (cogpu_span){i * 389 % (FILE_BYTES / PAGE) * PAGE + i % PAGE, i % 100 ? 90 : 0};
    CHECK(read_batch(gpu, spans, SPANS_MAX, 1 << 30) == COGPU_OK);
    CHECK(asked() > 5000);
    gpu->calls->close(gpu);
}

static void test_a_guard_that_refuses(void) {
    cogpu_span spans[] = {{0, 100}, {1 << 20, PAGE}};
    uint64_t before = 0, after = 0, total;
    cogpu_gpu *gpu = NULL;
    reset();
    CHECK(cogpu_gpu_open_emulator(1, 1 << 30, &gpu, &error) == COGPU_OK);
    CHECK(gpu->calls->memory(gpu, &before, &total, &error) == COGPU_OK);
    CHECK(read_batch(gpu, spans, 2, 2 * PAGE - 1) == COGPU_LIMIT_EXCEEDED);
    CHECK(gpu->calls->memory(gpu, &after, &total, &error) == COGPU_OK && before == after);
    CHECK(fake->memories == 0 && fake->setups == 0 && asked() == 0);
    CHECK(read_batch(gpu, spans, 2, 2 * PAGE) == COGPU_OK);
    gpu->calls->close(gpu);
}

/* Last, since a batch stays open: what may still be moved is reported. */
static void test_pieces_that_never_end(void) {
    uint32_t bad = 9;
    reset();
    uint32_t count = list_pages();
    fake->stuck_each = 1000000; /* the first page of the file */
    fake->ignores_cancel = true;
    CHECK(move(count, &bad) == COGPU_DEVICE_ERROR && bad == 1 && is_moved(count, is_mischief));
    CHECK(strstr(error.message, is_writing ? "writes, not even" : "reads, not even"));
    CHECK(strstr(error.message, "did not end 1 of") && fake->batches == 1);
    free(memory);
}

static void in_a_library_at_work(void) {
    make_file();
    CHECK(!cogpu_gds_missing_reason() && cogpu_gds_is_direct());
    int copy = dup(descriptor);
    CHECK(cogpu_gds_file_open(copy, &file, &error) == COGPU_OK);
    close(copy);
    CHECK(cogpu_pool_open(4, &pool, &error) == COGPU_OK);
    test_files_and_memory();
    test_moving_nothing();
    test_moving_one();
    test_moving_many();
    test_moving_pieces_of_nothing();
    test_moving_outside_memory();
    test_short_and_failing_pieces();
    test_late_pieces();
    test_refused_batches();
    test_no_context();
    if (!is_writing) {
        test_batches_of_spans();
        test_a_guard_that_refuses();
    }
    test_moving_beyond_the_end();
    if (has_batches) {
        test_stuck_pieces();
        test_failing_status();
        test_pieces_that_never_end();
    }
    cogpu_gds_file_close(file);
    close(descriptor);
    cogpu_pool_close(pool);
    CHECK(fake->files == 0 && fake->memories == 0);
}

static void in_a_library_of_small_batches(void) {
    fake->entries = 5;
    in_a_library_at_work();
}

static void move_in_all_libraries(void) {
    has_batches = true;
    with_cufile(FAKE_CUFILE, in_a_library_at_work);
    with_cufile(FAKE_CUFILE, in_a_library_of_small_batches);
    has_batches = false;
    with_cufile(FAKE_CUFILE_OLD, in_a_library_at_work);
}

static void test_reading(void) {
    is_writing = false;
    move_in_all_libraries();
}

static void test_writing(void) {
    is_writing = true;
    move_in_all_libraries();
}

TESTS(gds) {
    RUN(test_absent_libraries);
    RUN(test_reading);
    RUN(test_writing);
    return FINISH();
}
