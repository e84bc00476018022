/*
 * Direct ways from device memory to the output: to a file by a fake cuFile that may fail, and to a
 * pinned buffer of the caller. The bytes equal those that pass through host memory.
 */
#include "cogpu.h"
#include "context/context.h"
#include "gpu/driver/gds.h"

#include "support/fake_cufile.h"
#include "support/stand_in.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { PAGE = COGPU_GDS_PAGE };

static fake_cufile *fake;
static cogpu_context *context;
static cogpu_error error;
static char folder[64], path[96];
static uint64_t state = 1;

static void with_cufile(const char *library, void (*test)(void)) {
    in_a_process("COGPU_CUFILE", library, "fake_cufile_control", (void **)&fake, test);
}

static uint32_t draw(uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static void need(cogpu_status status) {
    if (status == COGPU_OK)
        return;
    printf("failed: %s\n", error.message);
    exit(1);
}

/* ---- what is written ----------------------------------------------------------------------- */

/* Budgets of device memory: for several batches of uncompressed blocks, for all encoders, and for a
 * batch of several cuFile writes. */
enum { FEW_BLOCKS = 110 << 10, ENCODERS = 4 << 20, LARGE_BATCH = 64 << 20 };

static void open_context(uint64_t device_bytes) {
    cogpu_context_options options = {
        .struct_size = sizeof(cogpu_context_options), .threads = 2, .device_bytes = device_bytes};
    need(cogpu_context_open(&options, &context, &error));
}

static void close_context(void) {
    cogpu_context_close(context);
    if (fake)
        CHECK(fake->files + fake->memories + fake->batches + fake->wrong + fake->closed_under_way ==
              0);
}

/* Noise, which no encoder makes smaller. The first rows have none: they may be sparse. */
struct pixels {
    cogpu_raster rows, mask;
};

static void *upload_noise(size_t bytes, size_t zeros) {
    uint8_t *noise = calloc(1, bytes);
    void *device = NULL;
    for (size_t i = zeros; noise && i < bytes; i++)
        noise[i] = (uint8_t)draw(256);
    need(cogpu_device_allocate(context, COGPU_DEVICE_EMULATOR, 0, bytes, &device, &error));
    need(cogpu_device_upload(context, COGPU_DEVICE_EMULATOR, 0, noise, bytes, device, &error));
    free(noise);
    return device;
}

static struct pixels draw_pixels(const cogpu_profile *profile) {
    size_t count = (size_t)profile->width * profile->height;
    size_t bytes = count * profile->bands * cogpu_type_bytes(profile->type);
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = upload_noise(bytes, bytes / 8),
                           .type = profile->type,
                           .bands = profile->bands,
                           .width = profile->width,
                           .height = profile->height,
                           .device = COGPU_DEVICE_EMULATOR};
    cogpu_raster mask = raster;
    mask.data = profile->mask ? upload_noise(count, count / 2) : NULL;
    mask.type = COGPU_TYPE_U8;
    mask.bands = 1;
    raster.stride_band = (int64_t)cogpu_type_bytes(raster.type);
    raster.stride_x = raster.stride_band * raster.bands;
    raster.stride_y = raster.stride_x * raster.width;
    mask.stride_band = mask.stride_x = 1;
    mask.stride_y = mask.width;
    return (struct pixels){raster, mask};
}

static void free_pixels(const struct pixels *pixels) {
    cogpu_device_free(context, COGPU_DEVICE_EMULATOR, 0, pixels->rows.data);
    cogpu_device_free(context, COGPU_DEVICE_EMULATOR, 0, pixels->mask.data);
}

static cogpu_raster rows_of(const cogpu_raster *raster, uint32_t first, uint32_t count) {
    cogpu_raster rows = *raster;
    rows.data = (uint8_t *)rows.data + (int64_t)first * rows.stride_y;
    rows.height = count;
    return rows;
}

/* Chunks of so many rows. */
static cogpu_status write_to(const cogpu_sink *sink, const cogpu_profile *profile,
                             const struct pixels *pixels, uint32_t most, cogpu_written *written) {
    cogpu_writer *writer = NULL;
    cogpu_status status = cogpu_writer_open(sink, profile, &writer, &error);
    for (uint32_t y = 0; status == COGPU_OK && y < profile->height; y += most) {
        uint32_t left = profile->height - y, count = most < left ? most : left;
        cogpu_raster rows = rows_of(&pixels->rows, y, count);
        cogpu_raster mask = rows_of(&pixels->mask, y, count);
        status = cogpu_writer_write_rows(writer, &rows, profile->mask ? &mask : NULL, &error);
    }
    if (status == COGPU_OK)
        return cogpu_writer_close(writer, written, &error);
    cogpu_writer_abort(writer);
    return status;
}

static cogpu_profile plain_profile(const char *codec) {
    return (cogpu_profile){.struct_size = sizeof(cogpu_profile),
                           .width = 200,
                           .height = 130,
                           .bands = 1,
                           .type = COGPU_TYPE_U16,
                           .block_width = 48, /* blocks are of no whole pages */
                           .block_height = 48,
                           .codec = codec,
                           .context = context,
                           .device = COGPU_DEVICE_EMULATOR};
}

/* ---- where it goes ------------------------------------------------------------------------- */

static bool path_has(const void *bytes, size_t count) {
    uint8_t *found = malloc(count + 1);
    FILE *file = fopen(path, "rb");
    bool is_so = file && found && fread(found, 1, count + 1, file) == count &&
                 memcmp(found, bytes, count) == 0;
    if (file)
        fclose(file);
    free(found);
    return is_so;
}

static uint32_t files_in_folder(void) {
    uint32_t count = 0;
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

/* To the path, where the same comes out as in memory, which no cuFile knows. */
static cogpu_written write_both(cogpu_profile profile, uint32_t most) {
    struct pixels pixels = draw_pixels(&profile);
    cogpu_memory expected = COGPU_MEMORY_INIT;
    cogpu_written written = COGPU_WRITTEN_INIT, by_ring = COGPU_WRITTEN_INIT;
    need(write_to(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &expected}, &profile,
                  &pixels, most, &by_ring));
    need(write_to(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .path = path}, &profile, &pixels,
                  most, &written));
    CHECK(written.bytes == expected.bytes && path_has(expected.data, expected.bytes));
    CHECK(by_ring.gds_bytes == 0 && written.gds_bytes <= written.bytes);
    CHECK(files_in_folder() == 1);
    cogpu_memory_free(&expected);
    free_pixels(&pixels);
    return written;
}

/* ---- by cuFile ----------------------------------------------------------------------------- */

/* Past the page cache, where the file system can do so: bytes that get lost between both ways
 * show, and so does memory that is not aligned. */
static void start_anew(void) {
    unsigned files = fake->files, memories = fake->memories;
    *fake = (fake_cufile){.passes_cache = true};
    fake->files = files;
    fake->memories = memories;
}

/* All but what shares a page with others, once for each end of a batch. */
static void whole_pages_are_direct(void) {
    open_context(FEW_BLOCKS);
    start_anew();
    write_both(plain_profile("packbits"), 130);
    cogpu_written written = write_both(plain_profile("none"), 130);
    uint64_t rest = written.bytes - written.gds_bytes;
    CHECK(written.gds_bytes > 0 && written.gds_bytes % PAGE == 0);
    CHECK(rest < (2 + 2 * fake->submits) * (uint64_t)PAGE && fake->submits > 3);
    CHECK(fake->unaligned + fake->alone + fake->reads == 0);
    close_context();
}

/* One batch at a known offset: behind a header of 8 bytes. */
static void one_batch_to_the_byte(void) {
    open_context(ENCODERS);
    start_anew();
    cogpu_profile profile = plain_profile("none");
    profile.width = profile.height = 128;
    profile.block_width = profile.block_height = 64;
    cogpu_written written = write_both(profile, 128);
    CHECK(written.gds_bytes == 7 * PAGE && fake->writes == 1);
    close_context();
}

/* All levels and masks, with and without leaders, in a spill or in the file. */
static void any_file_is_the_same(void) {
    static const char *const codecs[] = {"none", "deflate", "lzw", "packbits", "zstd"};
    open_context(ENCODERS);
    start_anew();
    uint64_t direct = 0;
    for (uint32_t i = 0; i < 10; i++) {
        cogpu_profile profile = plain_profile(codecs[i % 5]);
        profile.width = 30 + draw(100);
        profile.height = 30 + draw(100);
        profile.bands = 1 + draw(3);
        profile.block_width = profile.block_height = 32;
        profile.interleave = draw(2) != 0;
        profile.mask = draw(2) != 0;
        profile.sparse = draw(2) != 0;
        profile.cog = i % 3 == 0;
        profile.overviews = i % 3 == 1 ? COGPU_OVERVIEWS_AUTO : COGPU_OVERVIEWS_DEFAULT;
        profile.bigtiff = draw(2) ? COGPU_BIGTIFF_YES : COGPU_BIGTIFF_AUTO;
        direct +=
            write_both(profile, draw(2) ? profile.height : 1 + draw(profile.height)).gds_bytes;
    }
    CHECK(direct > 20 * PAGE && fake->unaligned == 0);
    close_context();
}

/* Blocks of level 0, which come last in the file; pushed in chunks they are spilled. */
static void cogs(void) {
    open_context(ENCODERS);
    start_anew();
    cogpu_profile profile = plain_profile("deflate");
    profile.cog = 1;
    cogpu_written written = write_both(profile, profile.height);
    CHECK(written.gds_bytes > written.bytes / 2 && written.levels > 1);
    CHECK(write_both(profile, 30).gds_bytes == 0);
    close_context();
}

/* In parts, overviews come between: batches that are of level 0 alone are direct. */
static void batches_of_several_levels(void) {
    open_context(FEW_BLOCKS);
    start_anew();
    cogpu_profile profile = plain_profile("none");
    profile.width = 500;
    profile.height = 500;
    profile.overviews = COGPU_OVERVIEWS_AUTO;
    cogpu_written written = write_both(profile, 70);
    CHECK(written.levels > 2 && written.gds_bytes > 0);
    close_context();
}

static void all_is_submitted_before_the_first_wait(void) {
    open_context(LARGE_BATCH);
    start_anew();
    fake->entries = 1;
    cogpu_profile profile = plain_profile("none");
    profile.width = profile.height = 2048;
    profile.block_width = profile.block_height = 512;
    struct pixels pixels = draw_pixels(&profile);
    cogpu_written written = COGPU_WRITTEN_INIT;
    need(write_to(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .path = path}, &profile, &pixels,
                  profile.height, &written));
    CHECK(fake->submitted == 2 && fake->submitted_before_wait == 2 && written.gds_bytes > 0);
    free_pixels(&pixels);
    close_context();
}

/* What the context keeps stays registered. */
static void memory_is_registered_once(void) {
    open_context(FEW_BLOCKS);
    start_anew();
    write_both(plain_profile("none"), 130);
    CHECK(fake->memories == 1 && fake->files == 0);
    write_both(plain_profile("none"), 130);
    CHECK(fake->memories == 1 && fake->files == 0);
    close_context();
}

/* What cuFile does not write, the host does. */
static void mischief(void) {
    open_context(FEW_BLOCKS);
    for (unsigned i = 0; i < 9; i++) {
        start_anew();
        fake->short_each = i == 0 ? 1 : i == 1 ? 3 : 0;
        fake->fail_each = i == 2 ? 1 : i == 3 ? 3 : 0;
        fake->late = i == 4 ? 20 : 0;
        fake->submit_fails_at = i == 5 ? 2 : 0;
        fake->setup_fails_at = i == 6 ? 2 : 0;
        fake->status_fails_at = i == 7 ? 2 : 0;
        fake->status_lies_at = i == 8 ? 2 : 0;
        cogpu_written written = write_both(plain_profile("none"), 50);
        CHECK(fake->writes > 3 && fake->unaligned == 0);
        CHECK((written.gds_bytes == 0) == (i == 0 || i == 2));
    }
    close_context();
}

static void memory_that_is_not_registered(void) {
    open_context(FEW_BLOCKS);
    start_anew();
    fake->memory_error = 5008;
    CHECK(write_both(plain_profile("none"), 130).gds_bytes > 0);
    close_context();
}

static void by_way_of_the_host(void) {
    open_context(FEW_BLOCKS);
    CHECK(write_both(plain_profile("none"), 130).gds_bytes == 0);
    if (fake)
        CHECK(fake->submitted + fake->alone == 0);
    close_context();
}

static void files_that_are_not_taken(void) {
    fake->file_error = 5011;
    by_way_of_the_host();
}

static void without_its_driver(void) {
    fake->is_through_host = true;
    by_way_of_the_host();
}

/* ---- failures ------------------------------------------------------------------------------ */

static const char old[] = "the file before";

static void put_old_file(void) {
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(old, 1, sizeof old, file) == sizeof old && fclose(file) == 0);
}

/* Writes in flight are waited for before their memory is released and their file closed. */
static void writers_that_are_given_up(void) {
    open_context(FEW_BLOCKS);
    start_anew();
    put_old_file();
    cogpu_profile profile = plain_profile("none");
    struct pixels pixels = draw_pixels(&profile);
    for (uint32_t rows = 64; rows <= 130; rows += 33) {
        cogpu_writer *writer = NULL;
        cogpu_raster part = rows_of(&pixels.rows, 0, rows);
        need(cogpu_writer_open(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .path = path},
                               &profile, &writer, &error));
        need(cogpu_writer_write_rows(writer, &part, NULL, &error));
        cogpu_writer_abort(writer);
        CHECK(path_has(old, sizeof old) && files_in_folder() == 1 && fake->batches == 0);
    }
    CHECK(fake->submitted > 0);
    free_pixels(&pixels);
    close_context();
}

/* Neither cuFile nor the host can write so far into the file; neither tries, which would raise
 * SIGXFSZ. */
static void disks_that_are_full(void) {
    open_context(FEW_BLOCKS);
    cogpu_profile profile = plain_profile("none");
    struct pixels pixels = draw_pixels(&profile);
    for (rlim_t most = 1; most < 65000; most += 9000) {
        struct rlimit limit = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
        start_anew();
        put_old_file();
        limit.rlim_cur = most;
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        CHECK(write_to(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .path = path}, &profile,
                       &pixels, 50, NULL) == COGPU_IO_ERROR);
        limit.rlim_cur = RLIM_INFINITY;
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        CHECK(path_has(old, sizeof old) && files_in_folder() == 1);
    }
    free_pixels(&pixels);
    close_context();
}

static void test_by_cufile(void) {
    with_cufile(FAKE_CUFILE, whole_pages_are_direct);
    with_cufile(FAKE_CUFILE, one_batch_to_the_byte);
    with_cufile(FAKE_CUFILE, any_file_is_the_same);
    with_cufile(FAKE_CUFILE, cogs);
    with_cufile(FAKE_CUFILE, batches_of_several_levels);
    with_cufile(FAKE_CUFILE, all_is_submitted_before_the_first_wait);
    with_cufile(FAKE_CUFILE, memory_is_registered_once);
    with_cufile(FAKE_CUFILE, memory_that_is_not_registered);
    with_cufile(FAKE_CUFILE, mischief);
    with_cufile(FAKE_CUFILE_OLD, mischief);
}

static void test_without_cufile(void) {
    with_cufile(NULL, by_way_of_the_host);
    with_cufile(FAKE_CUFILE_READING, by_way_of_the_host);
    with_cufile(FAKE_CUFILE, files_that_are_not_taken);
    with_cufile(FAKE_CUFILE, without_its_driver);
}

static void test_failures(void) {
    with_cufile(FAKE_CUFILE, writers_that_are_given_up);
    with_cufile(FAKE_CUFILE, disks_that_are_full);
    with_cufile(FAKE_CUFILE_OLD, disks_that_are_full);
}

/* ---- into a pinned buffer ------------------------------------------------------------------ */

/* A buffer, and bytes that the device has copied into it. */
static uint8_t *buffer;
static uint64_t buffer_bytes, copied;
static const cogpu_gpu_driver *plain_calls;

static cogpu_status count_copy(cogpu_gpu *gpu, void *to, const void *from, uint64_t bytes,
                               cogpu_gpu_stream *stream, cogpu_error *why) {
    if ((uint8_t *)to >= buffer && (uint8_t *)to < buffer + buffer_bytes)
        copied += bytes;
    return plain_calls->copy_down(gpu, to, from, bytes, stream, why);
}

static cogpu_gpu *gpu_of_context(void) {
    cogpu_gpu_device *reader = NULL;
    need(cogpu_context_device(context, COGPU_DEVICE_EMULATOR, 0, &reader, &error));
    return cogpu_gpu_device_gpu(reader);
}

static void write_to_buffer(const cogpu_profile *profile, uint32_t most, bool is_all) {
    struct pixels pixels = draw_pixels(profile);
    cogpu_gpu *gpu = gpu_of_context();
    cogpu_gpu_driver counting = *(plain_calls = gpu->calls);
    cogpu_memory expected = COGPU_MEMORY_INIT;
    cogpu_written written = COGPU_WRITTEN_INIT;
    need(write_to(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &expected}, profile,
                  &pixels, most, NULL));
    counting.copy_down = count_copy;
    gpu->calls = &counting;
    for (uint64_t lacks = 0; lacks < 2; lacks++) {
        cogpu_sink sink = {.struct_size = sizeof(cogpu_sink),
                           .buffer_bytes = (size_t)(buffer_bytes = expected.bytes - lacks)};
        need(plain_calls->allocate_pinned(gpu, buffer_bytes, (void **)&buffer, &error));
        sink.buffer = buffer;
        copied = 0;
        cogpu_status status = write_to(&sink, profile, &pixels, most, &written);
        CHECK(status == (lacks ? COGPU_LIMIT_EXCEEDED : COGPU_OK));
        if (!lacks) {
            CHECK(copied > 0 && memcmp(buffer, expected.data, expected.bytes) == 0);
            CHECK(!is_all || copied > written.bytes * 9 / 10);
        }
        plain_calls->release_pinned(gpu, buffer);
    }
    gpu->calls = plain_calls;
    cogpu_memory_free(&expected);
    free_pixels(&pixels);
}

static void test_pinned_buffer(void) {
    open_context(FEW_BLOCKS);
    cogpu_profile profile = plain_profile("none");
    write_to_buffer(&profile, 130, true);
    write_to_buffer(&profile, 30, true);
    profile.codec = "packbits"; /* later blocks are packed into memory that held compacted bytes */
    write_to_buffer(&profile, 130, true);
    profile.codec = "none";
    profile.overviews = COGPU_OVERVIEWS_AUTO;
    write_to_buffer(&profile, 50, false);
    profile.overviews = COGPU_OVERVIEWS_DEFAULT;
    profile.cog = 1;
    write_to_buffer(&profile, 130, false);
    write_to_buffer(&profile, 50, false);
    close_context();
}

/* As any host memory: through the slots of the pipeline. */
static void test_buffer_that_is_not_pinned(void) {
    open_context(FEW_BLOCKS);
    cogpu_profile profile = plain_profile("none");
    struct pixels pixels = draw_pixels(&profile);
    cogpu_memory expected = COGPU_MEMORY_INIT;
    need(write_to(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &expected}, &profile,
                  &pixels, 70, NULL));
    uint8_t *memory = malloc(expected.bytes);
    cogpu_sink sink = {
        .struct_size = sizeof(cogpu_sink), .buffer = memory, .buffer_bytes = expected.bytes};
    need(write_to(&sink, &profile, &pixels, 70, NULL));
    CHECK(memory && memcmp(memory, expected.data, expected.bytes) == 0);
    free(memory);
    cogpu_memory_free(&expected);
    free_pixels(&pixels);
    close_context();
}

TESTS(write_direct) {
    snprintf(folder, sizeof folder, "/tmp/cogpu_gpu_write_direct_XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/a.tif", folder);
    RUN(test_by_cufile); /* first: these fork, and threads do not follow */
    RUN(test_without_cufile);
    RUN(test_failures);
    RUN(test_pinned_buffer);
    RUN(test_buffer_that_is_not_pinned);
    unlink(path);
    CHECK(rmdir(folder) == 0);
    return FINISH();
}
