/*
 * GPUDirect Storage: plans of writes, and files that are written by a fake cuFile and by the host
 * at once, as a writer goes about it. What cuFile itself may do is in test_gds.c.
 */
#include "io/sink.h"
#include "support/gds_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- plan ---------------------------------------------------------------------------------- */

enum { MOST = COGPU_GDS_WRITE_BYTES, WRITES_MAX = 64 };

static cogpu_gds_request writes[WRITES_MAX];

static uint64_t cache_page(void) {
    long page = sysconf(_SC_PAGESIZE);
    return page > PAGE ? (uint64_t)page : PAGE;
}

static bool is_way(cogpu_gds_write_split way, uint64_t head, uint32_t count, uint64_t tail) {
    return way.head == head && way.count == count && way.tail == tail;
}

static cogpu_gds_write_split plan(uint64_t offset, uint64_t bytes) {
    return cogpu_gds_plan_writes(NULL, (cogpu_span){offset, bytes}, 0, writes);
}

static void test_spans_without_whole_pages(void) {
    uint64_t page = cache_page();
    CHECK(is_way(plan(0, 0), 0, 0, 0));
    CHECK(is_way(plan(page, 0), 0, 0, 0));
    CHECK(is_way(plan(1, 1), 1, 0, 0));
    CHECK(is_way(plan(0, page - 1), page - 1, 0, 0));
    CHECK(is_way(plan(1, page), page, 0, 0));
    CHECK(is_way(plan(1, 2 * page - 2), 2 * page - 2, 0, 0));
}

static void test_spans_with_whole_pages(void) {
    uint64_t page = cache_page();
    CHECK(is_way(plan(0, page), 0, 1, 0) && writes[0].file_offset == 0 && writes[0].bytes == page);
    CHECK(is_way(plan(1, 2 * page - 1), page - 1, 1, 0) && writes[0].file_offset == page);
    CHECK(is_way(plan(page, page + 1), 0, 1, 1) && writes[0].bytes == page);
    CHECK(is_way(plan(page, MOST), 0, 1, 0) && writes[0].bytes == MOST);
    CHECK(is_way(plan(page, MOST + page), 0, 2, 0) && writes[1].bytes == page);
    CHECK(writes[1].file_offset == page + MOST && writes[1].device_offset == MOST);
}

/* The host writes them, and fails. */
static void test_spans_that_no_file_has(void) {
    uint64_t page = cache_page(), end = INT64_MAX;
    CHECK(is_way(plan(end, 1), 1, 0, 0));
    CHECK(is_way(plan(end - 2 * page, 3 * page), 3 * page, 0, 0));
    CHECK(is_way(plan(UINT64_MAX, 2), 2, 0, 0));
    CHECK(is_way(plan(2, UINT64_MAX), UINT64_MAX, 0, 0));
    CHECK(is_way(plan(end - 2 * page, 2 * page), 1, 1, page - 1));
}

/* Writes are whole pages side by side, and with both ends they are the span. */
static bool is_valid_split(cogpu_span span, uint64_t device_offset, cogpu_gds_write_split way) {
    uint64_t page = cache_page(), at = way.head;
    for (uint32_t i = 0; i < way.count; i++) {
        const cogpu_gds_request *write = &writes[i];
        if (write->file_offset != span.offset + at || write->device_offset != device_offset + at ||
            write->file_offset % page || write->bytes % page || write->bytes == 0 ||
            write->bytes > MOST)
            return false;
        at += write->bytes;
    }
    return at + way.tail == span.bytes && way.count <= COGPU_GDS_WRITES(span.bytes) &&
           (way.count == 0 || (way.head < page && way.tail < page));
}

static void test_plans_are_valid(void) {
    for (uint32_t round = 0; round < 20000; round++) {
        cogpu_span span = {random_below(1 << 20), random_below(round % 2 ? 10000 : 10 * MOST)};
        uint64_t device_offset = random_below(1 << 20);
        cogpu_gds_write_split way = cogpu_gds_plan_writes(NULL, span, device_offset, writes);
        CHECK(is_valid_split(span, device_offset, way));
    }
}

/* ---- a file in the making ------------------------------------------------------------------ */

enum { SLOTS = 2, SLOT_BYTES = 1 << 20, FILE_MAX = 8 << 20, HEADER = 100 };

/* A batch in device memory, and its writes. */
struct slot {
    uint8_t *memory;
    cogpu_span span;
    cogpu_gds_write_split way;
    cogpu_gds_request writes[COGPU_GDS_WRITES(SLOT_BYTES) + SLOT_BYTES / PAGE];
    cogpu_gds_flight *flight;
};

static struct {
    cogpu_out *out;
    cogpu_gds_file *file;
    struct slot slots[SLOTS];
    uint64_t end;
    uint8_t by_cufile[FILE_MAX / PAGE], by_host[FILE_MAX / PAGE]; /* pages */
    uint32_t bad;
} writer;

static uint8_t expected[FILE_MAX], found[FILE_MAX + 1];
static char folder[64], path[96];

static void note(uint8_t *pages, uint64_t offset, uint64_t bytes) {
    for (uint64_t i = offset / PAGE; bytes > 0 && i <= (offset + bytes - 1) / PAGE; i++)
        pages[i] = 1;
}

/* Through host memory; `slot` holds the bytes. */
static cogpu_status write_by_host(const struct slot *slot, uint64_t at, uint64_t bytes) {
    note(writer.by_host, slot->span.offset + at, bytes);
    return cogpu_out_write(writer.out, slot->span.offset + at,
                           slot->memory + slot->span.offset % PAGE + at, (size_t)bytes, &error);
}

static cogpu_status end_batch(struct slot *slot) {
    uint32_t bad = 0;
    cogpu_gds_flight *flight = slot->flight;
    slot->flight = NULL;
    TRY(cogpu_gds_wait(flight, &bad, &error));
    writer.bad += bad;
    for (uint32_t i = 0; bad > 0 && i < slot->way.count; i++)
        if (slot->writes[i].state == COGPU_GDS_BAD)
            TRY(cogpu_out_write(writer.out, slot->writes[i].file_offset,
                                slot->memory + slot->writes[i].device_offset,
                                (size_t)slot->writes[i].bytes, &error));
    return COGPU_OK;
}

/* As the device packs them: as far behind a page in memory as in the file. */
static void make_batch(struct slot *slot, uint64_t bytes) {
    slot->span = (cogpu_span){writer.end, bytes};
    uint8_t *packed = slot->memory + writer.end % PAGE;
    fill_with_noise(packed, (size_t)bytes);
    memcpy(expected + writer.end, packed, (size_t)bytes);
    writer.end += bytes;
}

/* Each page a write of its own: small writes, as many as there can be. */
static void split_writes(struct slot *slot) {
    uint64_t first = slot->writes[0].file_offset, from = slot->writes[0].device_offset;
    slot->way.count = (uint32_t)((slot->span.bytes - slot->way.head - slot->way.tail) / PAGE);
    for (uint32_t i = 0; i < slot->way.count; i++)
        slot->writes[i] = (cogpu_gds_request){.file = writer.file,
                                              .file_offset = first + (uint64_t)i * PAGE,
                                              .bytes = PAGE,
                                              .device_offset = from + (uint64_t)i * PAGE};
}

static cogpu_status begin_batch(struct slot *slot, bool is_split) {
    slot->way =
        cogpu_gds_plan_writes(writer.file, slot->span, slot->span.offset % PAGE, slot->writes);
    if (is_split && slot->way.count > 0)
        split_writes(slot);
    cogpu_gds_work work = {.memory = slot->memory,
                           .memory_bytes = SLOT_BYTES + PAGE,
                           .requests = slot->writes,
                           .count = slot->way.count,
                           .context = &context,
                           .patience = 0.05};
    for (uint32_t i = 0; i < slot->way.count; i++)
        note(writer.by_cufile, slot->writes[i].file_offset, slot->writes[i].bytes);
    TRY(cogpu_gds_write(&work, &slot->flight, &error));
    TRY(write_by_host(slot, 0, slot->way.head));
    return write_by_host(slot, slot->span.bytes - slot->way.tail, slot->way.tail);
}

/* Past the page cache where the file system can do so, so that it shows where bytes get lost
 * between both ways. */
static void start_anew(void) {
    reset();
    fake->passes_cache = true;
}

static void open_writer(void) {
    cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .path = path};
    memset(&writer, 0, sizeof writer);
    CHECK(cogpu_out_open(&sink, NULL, &writer.out, &error) == COGPU_OK);
    CHECK(cogpu_gds_file_open(cogpu_out_descriptor(writer.out), &writer.file, &error) == COGPU_OK);
    for (int i = 0; i < SLOTS; i++) {
        CHECK(posix_memalign((void **)&writer.slots[i].memory, PAGE, SLOT_BYTES + PAGE) == 0);
        CHECK(cogpu_gds_register(&context, writer.slots[i].memory, SLOT_BYTES + PAGE, &error) ==
              COGPU_OK);
    }
    writer.end = HEADER;
}

static void close_writer(void) {
    for (int i = 0; i < SLOTS; i++) {
        cogpu_gds_deregister(&context, writer.slots[i].memory);
        free(writer.slots[i].memory);
    }
    cogpu_gds_file_close(writer.file);
    CHECK(fake->files == 0 && fake->memories == 0 && is_clean() && fake->unaligned == 0);
}

/* Batches, of which two are always in flight, and the header at the end. */
static cogpu_status write_batches(uint32_t count, uint64_t most, bool is_split) {
    for (uint32_t i = 0; i < count; i++) {
        struct slot *slot = &writer.slots[i % SLOTS];
        TRY(end_batch(slot));
        make_batch(slot, most > 1 ? random_below(most) : most);
        TRY(begin_batch(slot, is_split));
    }
    for (int i = 0; i < SLOTS; i++)
        TRY(end_batch(&writer.slots[i]));
    fill_with_noise(expected, HEADER);
    note(writer.by_host, 0, HEADER);
    return cogpu_out_write(writer.out, 0, expected, HEADER, &error);
}

static uint64_t read_file(void) {
    int file = open(path, O_RDONLY);
    ssize_t got = read(file, found, sizeof found);
    CHECK(file >= 0 && got >= 0);
    close(file);
    return (uint64_t)got;
}

static bool is_file_as_expected(uint64_t bytes) {
    return read_file() == bytes && memcmp(found, expected, (size_t)bytes) == 0;
}

static uint32_t pages_written_both_ways(void) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < FILE_MAX / PAGE; i++)
        count += writer.by_cufile[i] && writer.by_host[i];
    return count;
}

static void write_file(uint32_t count, uint64_t most, bool is_split) {
    open_writer();
    CHECK(write_batches(count, most, is_split) == COGPU_OK);
    CHECK(cogpu_out_commit(writer.out, &error) == COGPU_OK);
    CHECK(is_file_as_expected(writer.end) && pages_written_both_ways() == 0);
    close_writer();
}

static void test_no_batch(void) {
    start_anew();
    write_file(0, 0, false);
    write_file(2, 0, false);
    CHECK(fake->submitted + fake->alone == 0);
}

static void test_batches_of_a_byte(void) {
    start_anew();
    write_file(PAGE, 1, false);
    CHECK(fake->submitted + fake->alone == 0 && writer.end == HEADER + PAGE);
}

static void test_many_batches(void) {
    start_anew();
    write_file(7, SLOT_BYTES, false);
    write_file(300, 3 * PAGE, false);
    CHECK(fake->writes > 50 && fake->reads == 0 && writer.bad == 0);
}

static void test_thousands_of_writes(void) {
    start_anew();
    for (uint32_t i = 0; i < 4; i++)
        write_file(7, SLOT_BYTES, true);
    CHECK(fake->writes > 1000 && writer.bad == 0);
}

/* What cuFile does not write, the host does. */
static void test_mischief(void) {
    for (unsigned i = 0; i < 6; i++) {
        start_anew();
        fake->short_each = i == 0 ? 1 : i == 1 ? 7 : 0;
        fake->fail_each = i == 2 ? 1 : i == 3 ? 5 : 0;
        fake->late = i == 4 ? 20 : 0;
        fake->piece = i == 4 ? 3 : 0;
        fake->submit_fails_at = i == 5 ? 2 : 0;
        write_file(7, SLOT_BYTES, true);
        CHECK((writer.bad > 0) == (i < 4) && fake->writes > 100);
    }
}

/* ---- failures ------------------------------------------------------------------------------ */

static uint32_t files_in_folder(void) {
    uint32_t count = 0;
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

/* An aborted file keeps the old one. Batches in flight are waited for before their memory is
 * released. */
static void abort_file(void) {
    uint32_t bad;
    for (int i = 0; i < SLOTS; i++)
        cogpu_gds_wait(writer.slots[i].flight, &bad, NULL);
    cogpu_out_abort(writer.out);
    CHECK(files_in_folder() == 1);
}

static void test_the_old_file_stands(void) {
    start_anew();
    write_file(3, SLOT_BYTES, false);
    uint64_t bytes = writer.end;
    static uint8_t old[FILE_MAX];
    memcpy(old, expected, (size_t)bytes);
    open_writer();
    for (int i = 0; i < SLOTS; i++) {
        make_batch(&writer.slots[i], SLOT_BYTES);
        CHECK(begin_batch(&writer.slots[i], true) == COGPU_OK);
    }
    abort_file();
    CHECK(read_file() == bytes && memcmp(found, old, (size_t)bytes) == 0);
    CHECK(fake->batches == 0);
    close_writer();
}

/* Last, since batches stay open. */
static void test_writes_that_never_end(void) {
    start_anew();
    write_file(1, SLOT_BYTES, false);
    uint64_t bytes = read_file();
    memcpy(expected, found, (size_t)bytes);
    open_writer();
    fake->stuck_each = 10;
    fake->ignores_cancel = true;
    writer.slots[0].span = (cogpu_span){0, SLOT_BYTES};
    CHECK(begin_batch(&writer.slots[0], true) == COGPU_OK);
    CHECK(end_batch(&writer.slots[0]) == COGPU_DEVICE_ERROR);
    CHECK(strstr(error.message, "of 256 writes, not even after a cancel"));
    abort_file();
    CHECK(is_file_as_expected(bytes));
    close_writer();
}

static cogpu_status write_nothing(void *user, uint64_t offset, const void *data, size_t bytes) {
    (void)user, (void)offset, (void)data, (void)bytes;
    return COGPU_OK;
}

static void test_sinks_without_descriptor(void) {
    cogpu_memory memory = COGPU_MEMORY_INIT;
    cogpu_sink sinks[] = {{.struct_size = sizeof(cogpu_sink), .memory = &memory},
                          {.struct_size = sizeof(cogpu_sink), .write = write_nothing}};
    for (int i = 0; i < 2; i++) {
        cogpu_gds_file *file = NULL;
        CHECK(cogpu_out_open(&sinks[i], NULL, &writer.out, &error) == COGPU_OK);
        CHECK(cogpu_out_descriptor(writer.out) == -1);
        CHECK(cogpu_gds_file_open(-1, &file, &error) == COGPU_IO_ERROR && !file);
        cogpu_out_abort(writer.out);
    }
}

static bool has_batches;

static void in_a_library_at_work(void) {
    test_sinks_without_descriptor();
    test_no_batch();
    test_batches_of_a_byte();
    test_many_batches();
    test_thousands_of_writes();
    test_mischief();
    test_the_old_file_stands();
    if (has_batches)
        test_writes_that_never_end();
}

static void test_files(void) {
    snprintf(folder, sizeof folder, "/tmp/cogpu_gds_write_XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/a.tif", folder);
    has_batches = true;
    with_cufile(FAKE_CUFILE, in_a_library_at_work);
    has_batches = false;
    with_cufile(FAKE_CUFILE_OLD, in_a_library_at_work);
    unlink(path);
    CHECK(rmdir(folder) == 0);
}

TESTS(gds_write) {
    RUN(test_spans_without_whole_pages);
    RUN(test_spans_with_whole_pages);
    RUN(test_spans_that_no_file_has);
    RUN(test_plans_are_valid);
    RUN(test_files);
    return FINISH();
}
