/*
 * A local file that changes after it was opened: reads fail with COGPU_IO_ERROR rather than return
 * a mixture of pixels. One that takes the file's name does not matter to a file that is open.
 */
#include "cogpu.h"
#include "support/fixture.h"
#include "support/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const image_kind kind = {.width = 200,
                                .height = 100,
                                .tile_width = 16,
                                .tile_height = 16,
                                .compression = 8,
                                .apart = true};
static cogpu_error error;
static char path[] = "/tmp/cogpu-test-XXXXXX";

static void write_file(const char *to, uint32_t seed) {
    image_kind own = kind;
    tiff_builder built;
    own.seed = seed;
    build_one(&built, &own);
    int file = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && write(file, built.bytes, built.size) == (ssize_t)built.size);
    close(file);
    build_close(&built);
}

static cogpu_file *open_file(void) {
    cogpu_file *file = NULL;
    CHECK(cogpu_open(path, NULL, &file, &error) == COGPU_OK);
    return file;
}

/* In place, with the same size: only the time differs. */
static void change(void) {
    const struct timespec later[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1, .tv_nsec = 1}};
    write_file(path, 77);
    CHECK(utimensat(AT_FDCWD, path, later, 0) == 0);
}

static cogpu_status read_all(const cogpu_file *file, cogpu_device_kind device,
                             cogpu_request request) {
    cogpu_raster raster = raster_of(&kind, kind.width, kind.height, 1);
    cogpu_context *context = NULL;
    raster.device = device;
    CHECK(cogpu_context_open(NULL, &context, &error) == COGPU_OK);
    request.context = context;
    cogpu_status status = cogpu_read(file, &request, &raster, NULL, &error);
    if (status == COGPU_OK)
        CHECK(pixels_match(&kind, raster.data, 0, 0, kind.width, kind.height, NULL, 0));
    cogpu_context_close(context);
    free(raster.data);
    return status;
}

static bool is_told(cogpu_status status) {
    return status == COGPU_IO_ERROR && strstr(error.message, "changed") &&
           strstr(error.message, "open");
}

static void test_changed_before_the_read(void) {
    for (cogpu_device_kind device = COGPU_DEVICE_CPU; device <= COGPU_DEVICE_EMULATOR;
         device += COGPU_DEVICE_EMULATOR) {
        write_file(path, 0);
        cogpu_file *file = open_file();
        CHECK(read_all(file, device, (cogpu_request)COGPU_REQUEST_INIT) == COGPU_OK);
        change();
        CHECK(is_told(read_all(file, device, (cogpu_request)COGPU_REQUEST_INIT)));
        CHECK(is_told(
            read_all(file, device,
                     (cogpu_request){.struct_size = sizeof(cogpu_request), .fill_bad_blocks = 1})));
        CHECK(is_told(read_all(
            file, device,
            (cogpu_request){.struct_size = sizeof(cogpu_request), .content = COGPU_CONTENT_MASK})));
        cogpu_close(file);
    }
}

static void test_cut_off_before_the_read(void) {
    write_file(path, 0);
    cogpu_file *file = open_file();
    CHECK(truncate(path, 5000) == 0);
    CHECK(is_told(
        read_all(file, COGPU_DEVICE_CPU,
                 (cogpu_request){.struct_size = sizeof(cogpu_request), .fill_bad_blocks = 1})));
    cogpu_close(file);
}

/* Half way: what was read before is of one file, what comes of another. */
static int changes(void *user, uint64_t done, uint64_t total) {
    bool *is_done = user;
    if (!*is_done && done > 0 && done < total) {
        change();
        *is_done = true;
    }
    return 0;
}

static void test_changed_during_the_read(void) {
    bool is_done = false;
    write_file(path, 0);
    cogpu_file *file = open_file();
    cogpu_request request = {.struct_size = sizeof(cogpu_request),
                             .threads = 1,
                             .progress = changes,
                             .progress_user = &is_done};
    CHECK(is_told(read_all(file, COGPU_DEVICE_CPU, request)) && is_done);
    cogpu_close(file);
}

static void test_replaced_by_another(void) {
    char other[64];
    write_file(path, 0);
    cogpu_file *file = open_file();
    snprintf(other, sizeof other, "%s.new", path);
    write_file(other, 77);
    CHECK(rename(other, path) == 0);
    CHECK(read_all(file, COGPU_DEVICE_CPU, (cogpu_request)COGPU_REQUEST_INIT) == COGPU_OK);
    cogpu_close(file);
}

static void test_many_reads(void) {
    write_file(path, 0);
    cogpu_file *file = open_file(), *other = NULL;
    tiff_builder built;
    build_one(&built, &kind);
    CHECK(cogpu_open_memory(built.bytes, built.size, NULL, &other, &error) == COGPU_OK);
    cogpu_read_item items[3] = {{.struct_size = sizeof(cogpu_read_item), .file = file},
                                {.struct_size = sizeof(cogpu_read_item), .file = other},
                                {.struct_size = sizeof(cogpu_read_item), .file = file}};
    cogpu_raster rasters[3];
    for (size_t i = 0; i < 3; i++) {
        rasters[i] = raster_of(&kind, kind.width, kind.height, 1);
        items[i].raster = &rasters[i];
    }
    change();
    CHECK(is_told(cogpu_read_many(items, 3, NULL, &error)));
    CHECK(items[0].status == COGPU_IO_ERROR && items[1].status == COGPU_OK &&
          items[2].status == COGPU_IO_ERROR);
    for (size_t i = 0; i < 3; i++)
        free(rasters[i].data);
    cogpu_close(file);
    cogpu_close(other);
    build_close(&built);
}

static void test_state(void) {
    write_file(path, 0);
    cogpu_file *file = open_file(), *again = open_file();
    CHECK(cogpu_file_version_id(file) && cogpu_file_version_id(file)[0]);
    CHECK_TEXT(cogpu_file_version_id(again), cogpu_file_version_id(file));
    cogpu_close(again);
    change();
    again = open_file();
    CHECK(strcmp(cogpu_file_version_id(again), cogpu_file_version_id(file)) != 0);
    cogpu_close(again);
    cogpu_close(file);
}

TESTS(source_file_changes) {
    int file = mkstemp(path);
    CHECK(file >= 0);
    close(file);
    RUN(test_changed_before_the_read);
    RUN(test_cut_off_before_the_read);
    RUN(test_changed_during_the_read);
    RUN(test_replaced_by_another);
    RUN(test_many_reads);
    RUN(test_state);
    unlink(path);
    return FINISH();
}
