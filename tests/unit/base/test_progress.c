/*
 * Progress and cancellation of reads and writes: the function is called by one thread at a time,
 * with `done` that never decreases up to `total`; and once it cancels, it is not called again, the
 * call returns COGPU_CANCELLED, and nothing of the call goes on.
 */
#include "base/progress.h"
#include "cogpu_distributed.h"
#include "context/context.h"
#include "support/fixture.h"
#include "support/test.h"

#include <dirent.h>
#include <stdatomic.h>
#include <unistd.h>

static cogpu_error error;

/* ---- what the function sees ---- */

struct watch {
    uint64_t cancel_at;      /* call that cancels, from 1; 0: none */
    atomic_uint_fast64_t in; /* threads that are in the function now */
    uint64_t calls, done, total;
    bool is_wrong; /* decreasing, beyond the total, two at once, or called after it cancelled */
};

static int watched(void *user, uint64_t done, uint64_t total) {
    struct watch *watch = user;
    watch->is_wrong |= atomic_fetch_add(&watch->in, 1) != 0 || done < watch->done || done > total ||
                       (watch->calls > 0 && total != watch->total) ||
                       (watch->cancel_at && watch->calls >= watch->cancel_at);
    watch->done = done;
    watch->total = total;
    watch->calls++;
    atomic_fetch_sub(&watch->in, 1);
    return watch->calls == watch->cancel_at;
}

static bool is_complete(const struct watch *watch, uint64_t total) {
    return !watch->is_wrong && watch->calls > 0 && watch->done == total && watch->total == total;
}

static bool is_cancelled(const struct watch *watch) {
    return !watch->is_wrong && watch->calls == watch->cancel_at;
}

/* ---- the meter ---- */

static void test_meter(void) {
    struct watch watch = {0};
    cogpu_meter meter = {0};
    CHECK(cogpu_meter_add(NULL, 1) && cogpu_meter_poll(NULL) && cogpu_meter_complete(&meter));
    CHECK(!cogpu_meter_is_cancelled(NULL) && !cogpu_meter_is_cancelled(&meter));
    cogpu_meter_open(&meter, watched, &watch, 10);
    CHECK(cogpu_meter_move_to(&meter, 0) && watch.calls == 1);
    CHECK(cogpu_meter_add(&meter, 4) && watch.done == 4);
    CHECK(cogpu_meter_move_to(&meter, 3) && watch.done == 4);
    CHECK(cogpu_meter_move_to(&meter, 7) && watch.done == 7);
    CHECK(cogpu_meter_complete(&meter) && watch.done == 10);
    uint64_t calls = watch.calls;
    CHECK(cogpu_meter_complete(&meter) && watch.calls == calls);
    watch.cancel_at = calls + 1;
    CHECK(!cogpu_meter_add(&meter, 1) && cogpu_meter_is_cancelled(&meter));
    CHECK(!cogpu_meter_poll(&meter) && !cogpu_meter_complete(&meter) && is_cancelled(&watch));
    cogpu_meter_close(&meter);
}

static void test_shares(void) {
    struct watch watch = {0};
    cogpu_meter meter = {0};
    cogpu_meter_open(&meter, watched, &watch, 100);
    for (uint32_t row = 0; row < 30; row += 7) {
        uint32_t rows = 30 - row < 7 ? 30 - row : 7;
        cogpu_share share = cogpu_share_of_rows(&meter, 40, 100, row, rows, 30);
        CHECK(share.first == 40 + 2 * row && share.end == 40 + 2 * (row + rows));
        CHECK(cogpu_share_progress(&share)(&share, 1, 2) == 0);
        CHECK(watch.done == (share.first + share.end) / 2);
        CHECK(cogpu_share_progress(&share)(&share, 0, 0) == 0 && watch.done == share.end);
    }
    CHECK(is_complete(&watch, 100));
    cogpu_meter_close(&meter);
    CHECK(!cogpu_share_progress(&(cogpu_share){.meter = &meter}));
}

static void test_cancelled_has_a_name(void) {
    CHECK_TEXT(cogpu_status_name(COGPU_CANCELLED), "cancelled");
}

/* ---- reads ---- */

static const uint64_t hole[] = {3, UINT64_MAX};
static const image_kind kinds[] = {
    {.width = 300,
     .height = 270,
     .bits = 16,
     .tile_width = 64,
     .tile_height = 64,
     .compression = 8},
    {.width = 300, .height = 270, .rows_per_strip = 10},
    {.width = 90, .height = 80, .bands = 3, .planar = true, .tile_width = 16, .tile_height = 16},
    {.width = 200,
     .height = 200,
     .tile_width = 32,
     .tile_height = 32,
     .compression = 50000,
     .apart = true,
     .sparse = hole},
    {.width = 3000, .height = 3000, .compression = 8}, /* one strip, which is streamed */
};
enum { KINDS = sizeof kinds / sizeof *kinds, STREAMED = KINDS - 1 };

static uint64_t blocks_of(const cogpu_file *file) {
    cogpu_image image = COGPU_IMAGE_INIT;
    CHECK(cogpu_image_info(file, 0, &image, &error) == COGPU_OK);
    return image.blocks;
}

struct opened {
    const image_kind *kind;
    tiff_builder built;
    cogpu_file *file;
    cogpu_raster raster;
};

static struct opened open_one(const image_kind *kind, cogpu_device_kind device) {
    struct opened opened = {.kind = kind};
    build_one(&opened.built, kind);
    CHECK(cogpu_open_memory(opened.built.bytes, opened.built.size, NULL, &opened.file, &error) ==
          COGPU_OK);
    opened.raster = raster_of(kind, kind->width, kind->height, kind_bands(kind));
    opened.raster.device = device;
    return opened;
}

static void close_one(struct opened *opened) {
    cogpu_close(opened->file);
    build_close(&opened->built);
    free(opened->raster.data);
}

static bool has_pixels(const struct opened *opened) {
    const cogpu_raster *raster = &opened->raster;
    return opened->kind->sparse ||
           pixels_match(opened->kind, raster->data, 0, 0, raster->width, raster->height, NULL, 0);
}

static size_t raster_bytes(const cogpu_raster *raster) {
    return (size_t)raster->width * raster->height * raster->bands * cogpu_type_bytes(raster->type);
}

/* Cancels one call of the function after the other, until the read has fewer. After each read the
 * raster is overwritten: a thread that still wrote into it would be found by what runs these tests.
 */
static void cancel_everywhere(struct opened *opened, cogpu_request request) {
    uint64_t total = blocks_of(opened->file);
    cogpu_status status = COGPU_CANCELLED;
    for (uint64_t at = 1; status == COGPU_CANCELLED && at < 4000; at += 1 + at / 2) {
        struct watch watch = {.cancel_at = at};
        request.progress = watched;
        request.progress_user = &watch;
        status = cogpu_read(opened->file, &request, &opened->raster, NULL, &error);
        CHECK(status == COGPU_CANCELLED ? is_cancelled(&watch) && error.status == status
                                        : status == COGPU_OK && watch.calls < at);
        if (status == COGPU_OK)
            CHECK(is_complete(&watch, total) && has_pixels(opened));
        memset(opened->raster.data, 0xA5, raster_bytes(&opened->raster));
    }
    CHECK(status == COGPU_OK);
}

static void test_read_on_host(void) {
    for (size_t i = 0; i < KINDS; i++)
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            struct opened opened = open_one(&kinds[i], COGPU_DEVICE_CPU);
            cancel_everywhere(
                &opened, (cogpu_request){.struct_size = sizeof(cogpu_request), .threads = threads});
            close_one(&opened);
        }
}

/* A streamed block is one block, and yet can be cancelled half way. */
static void test_streamed_block_asks_as_it_goes(void) {
    struct opened opened = open_one(&kinds[STREAMED], COGPU_DEVICE_CPU);
    struct watch watch = {0};
    cogpu_request request = {
        .struct_size = sizeof(cogpu_request), .progress = watched, .progress_user = &watch};
    CHECK(cogpu_read(opened.file, &request, &opened.raster, NULL, &error) == COGPU_OK);
    CHECK(is_complete(&watch, 1) && watch.calls > 5);
    close_one(&opened);
}

static cogpu_context *open_context(void) {
    cogpu_context *context = NULL;
    cogpu_context_options options = {
        .struct_size = sizeof(cogpu_context_options), .threads = 3, .device_bytes = 64 << 20};
    CHECK(cogpu_context_open(&options, &context, &error) == COGPU_OK);
    return context;
}

static void test_read_on_device(void) {
    cogpu_context *context = open_context();
    for (size_t i = 0; i < KINDS; i++) {
        struct opened opened = open_one(&kinds[i], COGPU_DEVICE_EMULATOR);
        cancel_everywhere(
            &opened, (cogpu_request){.struct_size = sizeof(cogpu_request), .context = context});
        close_one(&opened);
    }
    cogpu_context_close(context);
}

/* A read that is cancelled while it is started is not pending; one that is cancelled later says so
 * when it is waited for. */
static void test_pending_read(void) {
    cogpu_context *context = open_context();
    struct opened opened = open_one(&kinds[0], COGPU_DEVICE_EMULATOR);
    cogpu_status status = COGPU_CANCELLED;
    for (uint64_t at = 1; status == COGPU_CANCELLED && at < 100; at++) {
        struct watch watch = {.cancel_at = at};
        cogpu_pending *pending = NULL;
        cogpu_request request = {.struct_size = sizeof(cogpu_request),
                                 .context = context,
                                 .progress = watched,
                                 .progress_user = &watch};
        status = cogpu_read_async(opened.file, &request, &opened.raster, &pending, &error);
        CHECK(status == COGPU_OK || (status == COGPU_CANCELLED && !pending));
        if (status == COGPU_OK)
            status = cogpu_wait(pending, NULL, &error);
        CHECK(status == COGPU_CANCELLED ? is_cancelled(&watch) : is_complete(&watch, 25));
    }
    CHECK(status == COGPU_OK && has_pixels(&opened));
    close_one(&opened);
    cogpu_context_close(context);
}

/* Cancelling one item cancels that item alone. */
static void read_many(cogpu_device_kind device) {
    cogpu_context *context = open_context();
    for (uint64_t at = 0; at < 4; at++) {
        struct opened opened[2] = {open_one(&kinds[0], device), open_one(&kinds[3], device)};
        struct watch watches[2] = {{0}, {.cancel_at = at}};
        cogpu_request requests[2];
        cogpu_raster third = raster_of(&kinds[0], 300, 270, 1);
        third.device = device;
        /* The last is of the first file, and has no request. */
        cogpu_read_item items[3] = {
            {.struct_size = sizeof(cogpu_read_item),
             .file = opened[0].file,
             .raster = &opened[0].raster},
            {.struct_size = sizeof(cogpu_read_item),
             .file = opened[1].file,
             .raster = &opened[1].raster},
            {.struct_size = sizeof(cogpu_read_item), .file = opened[0].file, .raster = &third}};
        for (size_t i = 0; i < 2; i++) {
            requests[i] = (cogpu_request){.struct_size = sizeof(cogpu_request),
                                          .progress = watched,
                                          .progress_user = &watches[i]};
            items[i].request = &requests[i];
        }
        cogpu_status status = cogpu_read_many(items, 3, context, &error);
        bool is_reached = at && watches[1].calls == at;
        CHECK(status == (is_reached ? COGPU_CANCELLED : COGPU_OK) && items[1].status == status);
        CHECK(is_reached || at == 0 || at > 2);
        CHECK(items[0].status == COGPU_OK && items[2].status == COGPU_OK);
        CHECK(is_complete(&watches[0], 25) && has_pixels(&opened[0]));
        CHECK(pixels_match(&kinds[0], third.data, 0, 0, 300, 270, NULL, 0));
        CHECK(is_reached ? is_cancelled(&watches[1]) : is_complete(&watches[1], 49));
        free(third.data);
        close_one(&opened[0]);
        close_one(&opened[1]);
    }
    cogpu_context_close(context);
}

static void test_read_many_cancels_one_item(void) {
    read_many(COGPU_DEVICE_CPU);
    read_many(COGPU_DEVICE_EMULATOR);
}

/* The mask that makes NaN is read after the pixels, and counted with them. */
static void test_read_with_mask_directory(void) {
    static const image_kind
        pixels = {.width = 90, .height = 80, .tile_width = 16, .tile_height = 16},
        mask = {.width = 90, .height = 80, .tile_width = 32, .tile_height = 32, .subfile_type = 4};
    tiff_builder built;
    cogpu_file *file = NULL;
    cogpu_status status = COGPU_CANCELLED;
    static float to[90 * 80];
    build_open(&built, false, false);
    build_kind(&built, &pixels);
    build_directory(&built, true);
    build_kind(&built, &mask);
    build_directory(&built, true);
    CHECK(cogpu_open_memory(built.bytes, built.size, NULL, &file, &error) == COGPU_OK);
    for (uint64_t at = 1; status == COGPU_CANCELLED && at < 200; at++) {
        struct watch watch = {.cancel_at = at};
        cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                               .data = to,
                               .type = COGPU_TYPE_F32,
                               .bands = 1,
                               .width = 90,
                               .height = 80};
        cogpu_request request = {.struct_size = sizeof(cogpu_request),
                                 .masked = 1,
                                 .threads = 1,
                                 .progress = watched,
                                 .progress_user = &watch};
        status = cogpu_read(file, &request, &raster, NULL, &error);
        CHECK(status == COGPU_CANCELLED ? is_cancelled(&watch) : is_complete(&watch, 30 + 9));
    }
    CHECK(status == COGPU_OK);
    cogpu_close(file);
    build_close(&built);
}

/* ---- writes ---- */

static uint8_t image[200 * 180];

static int files_in(const char *folder) {
    DIR *listing = opendir(folder);
    int count = -2; /* . and .. */
    while (listing && readdir(listing))
        count++;
    closedir(listing);
    return count;
}

/* Rows are pushed a few at a time: so what is cancelled is told by a push or by the end. */
static cogpu_status write_image(const char *path, const cogpu_profile *profile,
                                cogpu_device_kind device) {
    cogpu_writer *writer = NULL;
    cogpu_status status = cogpu_writer_open(
        &(cogpu_sink){.struct_size = sizeof(cogpu_sink), .path = path}, profile, &writer, &error);
    for (uint32_t y = 0; status == COGPU_OK && y < 180; y += 20) {
        cogpu_raster rows = {.struct_size = sizeof(cogpu_raster),
                             .data = image + 200 * y,
                             .type = COGPU_TYPE_U8,
                             .bands = 1,
                             .width = 200,
                             .height = 20,
                             .device = device};
        status = cogpu_writer_write_rows(writer, &rows, NULL, &error);
    }
    if (status == COGPU_OK)
        return cogpu_writer_close(writer, NULL, &error);
    cogpu_writer_abort(writer);
    return status;
}

static void cancel_writes(cogpu_profile profile, cogpu_device_kind device) {
    char folder[] = "/tmp/cogpu-test-XXXXXX", path[64];
    cogpu_status status = COGPU_CANCELLED;
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/new.tif", folder);
    const uint64_t share = is_deep_run() ? 2 : 1;
    for (uint64_t at = 1; status == COGPU_CANCELLED && at < 4000; at += 1 + at / share) {
        struct watch watch = {.cancel_at = at};
        profile.progress = watched;
        profile.progress_user = &watch;
        status = write_image(path, &profile, device);
        if (status == COGPU_CANCELLED)
            CHECK(is_cancelled(&watch) && files_in(folder) == 0);
        else
            CHECK(is_complete(&watch, 13 * 12 + 7 * 6 + 4 * 3 + 2 * 2 + 1));
    }
    CHECK(status == COGPU_OK && files_in(folder) == 1);
    unlink(path);
    rmdir(folder);
}

static const cogpu_profile cog = {.struct_size = sizeof(cogpu_profile),
                                  .width = 200,
                                  .height = 180,
                                  .bands = 1,
                                  .type = COGPU_TYPE_U8,
                                  .cog = 1,
                                  .block_width = 16,
                                  .block_height = 16};

static void test_write_on_host(void) {
    cogpu_profile profile = cog;
    for (profile.threads = 1; profile.threads <= 4; profile.threads += 3)
        cancel_writes(profile, COGPU_DEVICE_CPU);
    profile.cog = 0;
    profile.overviews = COGPU_OVERVIEWS_AUTO;
    cancel_writes(profile, COGPU_DEVICE_CPU);
}

static void test_write_on_device(void) {
    cogpu_profile profile = cog;
    profile.context = open_context();
    cancel_writes(profile, COGPU_DEVICE_EMULATOR);
    cogpu_context_close(profile.context);
}

/* After the last block the header and overviews are written: that can be cancelled too. */
static int cancels_the_end(void *user, uint64_t done, uint64_t total) {
    (void)user;
    return done == total;
}

static void test_write_is_cancelled_at_its_end(void) {
    cogpu_profile profile = cog;
    char folder[] = "/tmp/cogpu-test-XXXXXX", path[64];
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/new.tif", folder);
    profile.progress = cancels_the_end;
    CHECK(write_image(path, &profile, COGPU_DEVICE_CPU) == COGPU_CANCELLED &&
          files_in(folder) == 0);
    rmdir(folder);
}

static void test_put_blocks(void) {
    static const uint8_t block[16 * 16];
    cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                             .width = 32,
                             .height = 16,
                             .bands = 1,
                             .type = COGPU_TYPE_U8,
                             .codec = "none",
                             .block_width = 16,
                             .block_height = 16};
    for (uint64_t at = 0; at <= 2; at++) {
        struct watch watch = {.cancel_at = at};
        cogpu_memory file = COGPU_MEMORY_INIT;
        cogpu_writer *writer = NULL;
        profile.progress = watched;
        profile.progress_user = &watch;
        CHECK(cogpu_writer_open(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &file},
                                &profile, &writer, &error) == COGPU_OK);
        cogpu_status status = COGPU_OK;
        for (uint64_t i = 0; status == COGPU_OK && i < 2; i++)
            status = cogpu_writer_write_block(writer, 0, COGPU_CONTENT_PIXELS, i, block,
                                              sizeof block, &error);
        CHECK(status == (at ? COGPU_CANCELLED : COGPU_OK));
        CHECK(cogpu_writer_close(writer, NULL, &error) == status);
        CHECK(at ? is_cancelled(&watch) && !file.data : is_complete(&watch, 2));
        cogpu_memory_free(&file);
    }
}

TESTS(progress) {
    for (size_t i = 0; i < sizeof image; i++)
        image[i] = (uint8_t)(i % 251);
    RUN(test_meter);
    RUN(test_shares);
    RUN(test_cancelled_has_a_name);
    RUN(test_read_on_host);
    RUN(test_streamed_block_asks_as_it_goes);
    RUN(test_read_on_device);
    RUN(test_pending_read);
    RUN(test_read_many_cancels_one_item);
    RUN(test_read_with_mask_directory);
    RUN(test_write_on_host);
    RUN(test_write_on_device);
    RUN(test_write_is_cancelled_at_its_end);
    RUN(test_put_blocks);
    return FINISH();
}
