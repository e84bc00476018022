/*
 * Reads into host memory that a device decodes (decode_device of cogpu_request), on the emulator.
 * The CPU reads the same request into a raster of the same strides: all of its memory must be
 * equal, and so must status, message and counts.
 */
#include "support/device_reads.h"
#include "support/draw.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

static cogpu_error error;

/* ---- rasters ------------------------------------------------------------------------------- */

enum { LAYOUTS = 6 };

/* A raster with its memory, whose bytes between and around pixels are compared, too. */
struct target {
    cogpu_raster raster;
    uint8_t *memory;
    size_t bytes;
};

static void set_strides(cogpu_raster *raster, uint32_t layout, int64_t size) {
    const int64_t bands = raster->bands, width = raster->width, height = raster->height;
    switch (layout) {
    case 0: /* band after band */
        raster->stride_x = size;
        raster->stride_y = width * size;
        raster->stride_band = height * raster->stride_y;
        break;
    case 1: /* pixel after pixel */
        raster->stride_band = size;
        raster->stride_x = bands * size;
        raster->stride_y = width * raster->stride_x;
        break;
    case 2: /* gaps everywhere, at odd addresses */
        raster->stride_x = size + 3;
        raster->stride_y = width * raster->stride_x + 5;
        raster->stride_band = height * raster->stride_y + 7;
        break;
    case 3: /* from the last row up */
        raster->stride_x = size;
        raster->stride_y = -width * size;
        raster->stride_band = height * width * size;
        break;
    case 4: /* columns, from the last one on */
        raster->stride_y = size;
        raster->stride_x = -height * size;
        raster->stride_band = width * height * size;
        break;
    default: /* pixel after pixel, the last band first, rows with a gap */
        raster->stride_band = -size;
        raster->stride_x = bands * size;
        raster->stride_y = width * raster->stride_x + 11;
    }
}

static int64_t extent_of(uint32_t count, int64_t stride, int64_t *below) {
    const int64_t extent = (int64_t)(count - 1) * stride;
    *below += extent < 0 ? -extent : 0;
    return extent < 0 ? -extent : extent;
}

static struct target make_target(cogpu_type type, uint32_t layout, uint32_t bands, uint32_t width,
                                 uint32_t height) {
    struct target target = {.raster = {.struct_size = sizeof(cogpu_raster),
                                       .type = type,
                                       .bands = bands,
                                       .width = width,
                                       .height = height}};
    cogpu_raster *raster = &target.raster;
    int64_t below = 0;
    set_strides(raster, layout, (int64_t)cogpu_type_bytes(type));
    target.bytes = (size_t)(extent_of(bands, raster->stride_band, &below) +
                            extent_of(height, raster->stride_y, &below) +
                            extent_of(width, raster->stride_x, &below)) +
                   cogpu_type_bytes(type);
    target.memory = malloc(target.bytes);
    memset(target.memory, 0xA5, target.bytes);
    raster->data = target.memory + below;
    return target;
}

/* ---- comparison ---------------------------------------------------------------------------- */

/* Of the last comparison. */
static cogpu_result result;

/* Reads by the CPU alone and by the device. True if both are the same. */
static bool is_same_read(const cogpu_file *file, const cogpu_request *request, cogpu_type type,
                         uint32_t layout, uint32_t bands, cogpu_context *context) {
    struct target host = make_target(type, layout, bands, request->width, request->height);
    struct target device = make_target(type, layout, bands, request->width, request->height);
    cogpu_result host_result = COGPU_RESULT_INIT;
    cogpu_error host_error;
    cogpu_request decoded = *request;
    decoded.context = context;
    decoded.decode_device = COGPU_DEVICE_EMULATOR;
    result = (cogpu_result)COGPU_RESULT_INIT;
    cogpu_status status = cogpu_read(file, request, &host.raster, &host_result, &host_error);
    bool is_same = cogpu_read(file, &decoded, &device.raster, &result, &error) == status &&
                   strcmp(error.message, host_error.message) == 0 &&
                   error.block == host_error.block &&
                   (status != COGPU_OK || memcmp(host.memory, device.memory, host.bytes) == 0) &&
                   (status != COGPU_OK || (result.blocks >= host_result.blocks &&
                                           result.sparse_blocks == host_result.sparse_blocks &&
                                           result.bad_blocks == host_result.bad_blocks));
    free(host.memory);
    free(device.memory);
    return is_same;
}

static void draw_window(const image_kind *kind, cogpu_request *request) {
    request->width = 1 + draw(kind->width);
    request->height = 1 + draw(kind->height);
    request->x = draw(kind->width - request->width + 1);
    request->y = draw(kind->height - request->height + 1);
}

static void set_whole(const image_kind *kind, cogpu_request *request) {
    request->width = kind->width;
    request->height = kind->height;
}

/* ---- tests --------------------------------------------------------------------------------- */

/* Buffers of this budget hold few blocks, and rows of about 2 MiB come down at a time. */
enum { SMALL_BUDGET = 4 << 20 };

static const uint64_t some_sparse[] = {3, 4, 17, UINT64_MAX};

/* Codecs, layouts of blocks, bits. */
static const image_kind kinds[] = {
    {.width = 300,
     .height = 270,
     .bits = 16,
     .tile_width = 64,
     .tile_height = 64,
     .compression = 8},
    {.width = 300,
     .height = 270,
     .bands = 3,
     .bits = 16,
     .tile_width = 48,
     .tile_height = 32,
     .compression = 50000},
    {.width = 261,
     .height = 190,
     .bands = 3,
     .bits = 8,
     .planar = true,
     .tile_width = 32,
     .tile_height = 32,
     .compression = 5},
    {.width = 400,
     .height = 333,
     .bands = 2,
     .bits = 16,
     .rows_per_strip = 7,
     .compression = 32773},
    {.width = 400, .height = 333, .bands = 4, .bits = 16, .rows_per_strip = 16, .compression = 1},
    {.width = 200, .height = 150, .bits = 8, .compression = 1},
    {.width = 300,
     .height = 270,
     .bits = 16,
     .tile_width = 64,
     .tile_height = 64,
     .compression = 8,
     .sparse = some_sparse},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* As doubles, two chunks of SMALL_BUDGET at least, and the first one three. */
static const image_kind large_kinds[] = {
    {.width = 320,
     .height = 2100,
     .bits = 16,
     .tile_width = 64,
     .tile_height = 64,
     .compression = 32773},
    {.width = 250,
     .height = 500,
     .bands = 3,
     .tile_width = 32,
     .tile_height = 32,
     .compression = 50000},
    {.width = 261,
     .height = 490,
     .bands = 3,
     .planar = true,
     .tile_width = 32,
     .tile_height = 32,
     .compression = 8},
    {.width = 400,
     .height = 533,
     .bands = 2,
     .bits = 16,
     .rows_per_strip = 7,
     .compression = 32773},
    {.width = 400, .height = 333, .bands = 4, .bits = 16, .rows_per_strip = 16, .compression = 1},
};
enum { LARGE_KINDS = sizeof large_kinds / sizeof *large_kinds };

static void compare_reads(const image_kind *kind, uint32_t layout, cogpu_context *context) {
    struct image image = open_image(kind);
    const cogpu_type own = kind->bits == 16 ? COGPU_TYPE_U16 : COGPU_TYPE_U8;
    const cogpu_type types[] = {own, COGPU_TYPE_F32, COGPU_TYPE_F64, COGPU_TYPE_F16};
    for (uint32_t i = 0; i < LAYOUTS / 2; i++, layout += 2) {
        const uint32_t count = kind_bands(kind);
        const uint32_t bands[] = {1 + draw(count), 1 + draw(count), 1 + draw(count)};
        cogpu_request request = COGPU_REQUEST_INIT;
        set_whole(kind, &request);
        if (i > 0)
            draw_window(kind, &request);
        if (draw(3) == 0) {
            request.bands = bands;
            request.band_count = 1 + draw(3);
        }
        CHECK(is_same_read(image.file, &request, types[draw(4)], layout % LAYOUTS,
                           request.bands ? request.band_count : count, context));
        CHECK(error.status == COGPU_OK);
        CHECK(result.device_blocks > 0 || kind->compression == 1);
    }
    close_image(&image);
}

static void test_pixels_are_those_of_the_cpu(void) {
    for (uint32_t k = 0; k < KINDS; k++) {
        cogpu_context *context = open_context(ENOUGH);
        compare_reads(&kinds[k], k, context);
        cogpu_context_close(context);
    }
}

static cogpu_context *open_threads(uint32_t threads, uint64_t device_bytes) {
    cogpu_context *context = NULL;
    const cogpu_context_options options = {.struct_size = sizeof(cogpu_context_options),
                                           .threads = threads,
                                           .device_bytes = device_bytes};
    CHECK(cogpu_context_open(&options, &context, &error) == COGPU_OK);
    return context;
}

/* Chunks of rows begin and end anywhere, and their memory is used again. One thread copies rows
 * when it has to wait for them, several do so meanwhile. */
static void test_little_device_memory(void) {
    for (uint32_t k = 0; k < LARGE_KINDS; k++)
        for (uint32_t threads = 1; threads <= 3; threads += 2) {
            const image_kind *kind = &large_kinds[k];
            cogpu_context *context = open_threads(threads, SMALL_BUDGET + threads * 9999);
            struct image image = open_image(kind);
            cogpu_request request = COGPU_REQUEST_INIT;
            set_whole(kind, &request);
            request.y = draw(kind->height / 16);
            request.height -= request.y;
            CHECK(is_same_read(image.file, &request, COGPU_TYPE_F64, draw(LAYOUTS),
                               kind_bands(kind), context));
            CHECK(error.status == COGPU_OK);
            CHECK(result.device_blocks > 0 || kind->compression == 1);
            close_image(&image);
            cogpu_context_close(context);
        }
}

/* So large that rows come down while the other blocks are decoded, by another thread. */
static void test_rows_come_down_when_their_blocks_are_complete(void) {
    const image_kind kind = {
        .width = 1400, .height = 1700, .tile_width = 256, .tile_height = 128, .compression = 32773};
    cogpu_context *context = open_threads(4, 16 << 20);
    struct image image = open_image(&kind);
    cogpu_request request = COGPU_REQUEST_INIT;
    set_whole(&kind, &request);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(is_same_read(image.file, &request, COGPU_TYPE_F32, 0, 1, context));
        CHECK(error.status == COGPU_OK && result.device_blocks == 14 * 6);
    }
    close_image(&image);
    cogpu_context_close(context);
}

/* ---- nodata, masks, colours ---- */

static const image_kind masked_kind = {
    .width = 300, .height = 600, .bands = 2, .tile_width = 64, .tile_height = 16, .compression = 8};

static cogpu_file *open_with(tiff_builder *built, const image_kind *kind, const char *nodata,
                             bool has_mask) {
    const image_kind mask = {.width = kind->width,
                             .height = kind->height,
                             .rows_per_strip = 9,
                             .compression = 8,
                             .subfile_type = 4};
    cogpu_file *file = NULL;
    build_open(built, false, false);
    build_kind(built, kind);
    if (nodata)
        build_text(built, 42113, nodata);
    build_directory(built, true);
    if (has_mask) {
        build_kind(built, &mask);
        build_directory(built, true);
    }
    CHECK(cogpu_open_memory(built->bytes, built->size, NULL, &file, &error) == COGPU_OK);
    return file;
}

static void test_invalid_pixels(void) {
    for (uint32_t has_mask = 0; has_mask < 2; has_mask++)
        for (uint32_t layout = has_mask; layout < LAYOUTS; layout += 2) {
            tiff_builder built;
            cogpu_file *file = open_with(&built, &masked_kind, has_mask ? NULL : "7", has_mask);
            cogpu_gpu *gpu;
            cogpu_context *context = open_device(3, ENOUGH, SMALL_BUDGET, &gpu);
            cogpu_request request = {.struct_size = sizeof request, .masked = 1};
            set_whole(&masked_kind, &request);
            CHECK(is_same_read(file, &request, COGPU_TYPE_F64, layout, 2, context));
            CHECK(error.status == COGPU_OK && result.device_blocks > 0);
            draw_window(&masked_kind, &request);
            request.masked = 0;
            request.content = COGPU_CONTENT_MASK;
            CHECK(is_same_read(file, &request, COGPU_TYPE_U8, layout, 2, context));
            CHECK(error.status == COGPU_OK && result.device_blocks > 0);
            cogpu_context_close(context);
            cogpu_close(file);
            build_close(&built);
        }
}

/* Each band is a read of its own. */
static void test_bands_with_nodata_of_their_own(void) {
    static const char pam[] =
        "<PAMDataset><PAMRasterBand band=\"1\"><NoDataValue>7</NoDataValue></PAMRasterBand>"
        "<PAMRasterBand band=\"2\"><NoDataValue>140</NoDataValue></PAMRasterBand></PAMDataset>";
    const image_kind kind = {
        .width = 120, .height = 90, .bands = 2, .rows_per_strip = 8, .compression = 8};
    char folder[] = "/tmp/cogpu-test-XXXXXX", path[64], sidecar[80];
    tiff_builder built;
    cogpu_file *file = NULL;
    cogpu_context *context = open_context(ENOUGH);
    cogpu_request request = {.struct_size = sizeof request, .masked = 1};
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.tif", folder);
    snprintf(sidecar, sizeof sidecar, "%s.aux.xml", path);
    build_one(&built, &kind);
    write_test_file(path, built.bytes, built.size);
    write_test_file(sidecar, pam, sizeof pam - 1);
    CHECK(cogpu_open(path, NULL, &file, &error) == COGPU_OK);
    set_whole(&kind, &request);
    for (uint32_t layout = 0; layout < LAYOUTS; layout++) {
        CHECK(is_same_read(file, &request, COGPU_TYPE_F32, layout, 2, context));
        CHECK(error.status == COGPU_OK && result.device_blocks > 0);
    }
    cogpu_close(file);
    cogpu_context_close(context);
    build_close(&built);
    unlink(path);
    unlink(sidecar);
    rmdir(folder);
}

/* What the device cannot decode the CPU decodes, straight into the raster. */
static void test_refused_windows(void) {
    const image_kind tall = {
        .width = 700, .height = 900, .bits = 16, .rows_per_strip = 900, .compression = 8};
    cogpu_gpu *gpu;
    cogpu_context *context = open_device(5, ENOUGH, 2 << 20, &gpu);
    struct image image = open_image(&tall);
    cogpu_request request = COGPU_REQUEST_INIT;
    set_whole(&tall, &request);
    CHECK(is_same_read(image.file, &request, COGPU_TYPE_U16, 0, 1, context));
    CHECK(error.status == COGPU_OK && result.device_blocks == 0 && result.blocks == 1);
    close_image(&image);
    cogpu_context_close(context);
}

/* So says the estimate, for a GPU that is no emulated one. */
static void test_few_blocks_are_left_to_the_cpu(void) {
    cogpu_storage storage = {.format = {.compression = 8}, .block_bytes = 4096};
    cogpu_read_plan plan = {.storage = &storage, .count = 1};
    cogpu_gpu *gpu;
    unsetenv("COGPU_ALWAYS_DEVICE");
    cogpu_context *context = open_device(5, ENOUGH, ENOUGH, &gpu);
    const cogpu_gpu_device *device = context->devices->device;
    const uint32_t multiprocessors = gpu->multiprocessors;
    CHECK(cogpu_gpu_device_is_faster(device, &plan, 16));
    gpu->is_emulated = false;
    gpu->multiprocessors = 132;
    CHECK(!cogpu_gpu_device_is_faster(device, &plan, 16));
    plan.count = 200000;
    CHECK(cogpu_gpu_device_is_faster(device, &plan, 16));
    CHECK(!cogpu_gpu_device_is_faster(device, &plan, 4096));
    storage.format.compression = 1;
    CHECK(!cogpu_gpu_device_is_faster(device, &plan, 1));
    gpu->is_emulated = true;
    gpu->multiprocessors = multiprocessors;
    cogpu_context_close(context);
}

/* ---- damage, cancellation ---- */

/* The CPU fills them when all others are complete, and their rows wait for that: they have more
 * bytes than come down at a time. */
static void test_bad_blocks(void) {
    const image_kind kind = {.width = 320,
                             .height = 1700,
                             .bits = 16,
                             .tile_width = 64,
                             .tile_height = 64,
                             .compression = 8};
    for (int fills = 0; fills < 2; fills++)
        for (uint64_t budget = SMALL_BUDGET; budget <= ENOUGH; budget *= 16) {
            cogpu_gpu *gpu;
            cogpu_context *context = open_device(11, ENOUGH, budget, &gpu);
            struct image image = open_image(&kind);
            cogpu_request request = {.struct_size = sizeof request, .fill_bad_blocks = fills};
            set_whole(&kind, &request);
            damage_block(&image, 8);
            damage_block(&image, 69);
            CHECK(is_same_read(image.file, &request, COGPU_TYPE_F64, 2, 1, context));
            CHECK(fills ? result.bad_blocks == 2 : error.status == COGPU_CORRUPT);
            CHECK(fills || error.block == 8);
            close_image(&image);
            cogpu_context_close(context);
        }
}

struct progress_log {
    uint64_t calls, done, total, cancel_at;
    bool is_wrong; /* decreasing, beyond the total, or after it cancelled */
};

static int log_progress(void *user, uint64_t done, uint64_t total) {
    struct progress_log *log = user;
    log->is_wrong |= done < log->done || done > total || (log->calls && total != log->total) ||
                     (log->cancel_at && log->calls >= log->cancel_at);
    log->done = done;
    log->total = total;
    log->calls++;
    return log->calls == log->cancel_at;
}

static void test_cancelled_anywhere(void) {
    const image_kind kind = masked_kind;
    tiff_builder built;
    cogpu_file *file = open_with(&built, &kind, NULL, true);
    cogpu_gpu *gpu;
    cogpu_context *context = open_device(3, ENOUGH, SMALL_BUDGET, &gpu);
    cogpu_status status = COGPU_CANCELLED;
    for (uint64_t at = 1; status == COGPU_CANCELLED && at < 1000; at += 1 + at / 2) {
        struct target target = make_target(COGPU_TYPE_F64, 1, 2, kind.width, kind.height);
        struct progress_log log = {.cancel_at = at};
        const cogpu_request request = {.struct_size = sizeof request,
                                       .masked = 1,
                                       .context = context,
                                       .decode_device = COGPU_DEVICE_EMULATOR,
                                       .progress = log_progress,
                                       .progress_user = &log};
        status = cogpu_read(file, &request, &target.raster, NULL, &error);
        CHECK(!log.is_wrong && error.status == status);
        CHECK(status == COGPU_CANCELLED || (log.done == log.total && log.calls < at));
        free(target.memory);
    }
    CHECK(status == COGPU_OK);
    cogpu_context_close(context);
    cogpu_close(file);
    build_close(&built);
}

/* ---- the device ---- */

static uint32_t copies_until_failure;

static cogpu_status fail_a_copy(cogpu_gpu *gpu, void *to, const void *from, uint64_t bytes,
                                cogpu_gpu_stream *stream, cogpu_error *failure) {
    if (bytes > 1000 && __atomic_sub_fetch(&copies_until_failure, 1, __ATOMIC_RELAXED) == 0)
        return cogpu_fail(failure, COGPU_DEVICE_ERROR, "the copy failed");
    return original_calls->copy_down(gpu, to, from, bytes, stream, failure);
}

static void test_failed_copies(void) {
    for (uint32_t at = 1; at <= 2; at++) {
        cogpu_gpu *gpu;
        cogpu_context *context = open_device(2, ENOUGH, SMALL_BUDGET, &gpu);
        struct image image = open_image(large_kinds);
        struct target target =
            make_target(COGPU_TYPE_F64, 0, 1, large_kinds->width, large_kinds->height);
        const cogpu_request request = {.struct_size = sizeof request,
                                       .context = context,
                                       .decode_device = COGPU_DEVICE_EMULATOR};
        replace_calls(gpu)->copy_down = fail_a_copy;
        copies_until_failure = at;
        CHECK(cogpu_read(image.file, &request, &target.raster, NULL, &error) == COGPU_DEVICE_ERROR);
        CHECK_TEXT(error.message, "the copy failed");
        gpu->calls = original_calls;
        CHECK(cogpu_read(image.file, &request, &target.raster, NULL, &error) == COGPU_OK);
        free(target.memory);
        close_image(&image);
        cogpu_context_close(context);
    }
}

static const uint8_t *pinned_first, *pinned_end;
static uint64_t straight_bytes;

static cogpu_status count_straight(cogpu_gpu *gpu, void *to, const void *from, uint64_t bytes,
                                   cogpu_gpu_stream *stream, cogpu_error *failure) {
    if ((uint8_t *)to >= pinned_first && (uint8_t *)to < pinned_end)
        __atomic_add_fetch(&straight_bytes, bytes, __ATOMIC_RELAXED);
    return original_calls->copy_down(gpu, to, from, bytes, stream, failure);
}

/* Rows of a pinned raster need no second copy. */
static void test_pinned_raster(void) {
    for (uint32_t bands = 1; bands <= 3; bands += 2) {
        cogpu_gpu *gpu;
        cogpu_context *context = open_device(2, ENOUGH, SMALL_BUDGET, &gpu);
        struct image image = open_image(&kinds[bands / 2]);
        const image_kind *kind = image.kind;
        const cogpu_request request = {.struct_size = sizeof request,
                                       .context = context,
                                       .decode_device = COGPU_DEVICE_EMULATOR};
        cogpu_raster raster = raster_of(kind, kind->width, kind->height, bands);
        const uint64_t bytes = (uint64_t)kind->width * kind->height * bands * 2;
        void *packed = raster.data;
        CHECK(gpu->calls->allocate_pinned(gpu, bytes, &raster.data, &error) == COGPU_OK);
        pinned_first = raster.data;
        pinned_end = pinned_first + bytes;
        straight_bytes = 0;
        replace_calls(gpu)->copy_down = count_straight;
        CHECK(cogpu_read(image.file, &request, &raster, NULL, &error) == COGPU_OK);
        gpu->calls = original_calls;
        CHECK(has_pixels(&raster, kind, 0, 0));
        CHECK(straight_bytes == bytes);
        gpu->calls->release_pinned(gpu, raster.data);
        free(packed);
        close_image(&image);
        cogpu_context_close(context);
    }
}

static cogpu_status read_tiles(cogpu_context *context, cogpu_device_kind raster_device,
                               cogpu_device_kind device, uint32_t index) {
    struct image image = open_image(&tiles);
    const cogpu_request request = {.struct_size = sizeof request,
                                   .context = context,
                                   .decode_device = device,
                                   .decode_device_index = index};
    image.raster.device = raster_device;
    cogpu_status status = cogpu_read(image.file, &request, &image.raster, NULL, &error);
    CHECK(status != COGPU_OK || is_read(&image));
    close_image(&image);
    return status;
}

static void test_requests(void) {
    cogpu_context *context = open_context(ENOUGH);
    CHECK(read_tiles(context, COGPU_DEVICE_CPU, COGPU_DEVICE_EMULATOR, 0) == COGPU_OK);
    CHECK(read_tiles(context, COGPU_DEVICE_EMULATOR, COGPU_DEVICE_EMULATOR, 0) == COGPU_OK);
    CHECK(read_tiles(context, COGPU_DEVICE_EMULATOR, COGPU_DEVICE_EMULATOR, 1) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "`decode_device` must be the raster's device, emu 0"));
    CHECK(read_tiles(context, COGPU_DEVICE_EMULATOR, COGPU_DEVICE_CUDA, 0) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(read_tiles(context, COGPU_DEVICE_CPU, COGPU_DEVICE_EMULATOR, 1) == COGPU_DEVICE_ERROR);
    CHECK(strstr(error.message, "there is no emulated GPU 1"));
    CHECK(read_tiles(context, COGPU_DEVICE_CPU, (cogpu_device_kind)9, 0) == COGPU_INVALID_ARGUMENT);
    CHECK(read_tiles(NULL, COGPU_DEVICE_CPU, COGPU_DEVICE_EMULATOR, 0) == COGPU_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "context"));
    cogpu_context_close(context);
}

/* ---- threads, many files ---- */

static cogpu_context *shared_context;

static void *read_repeatedly(void *argument) {
    const struct image *image = argument;
    const image_kind *kind = image->kind;
    for (uint32_t i = 0; i < 2; i++) {
        cogpu_raster raster = raster_of(kind, kind->width, kind->height, 3);
        cogpu_error own;
        const cogpu_request request = {.struct_size = sizeof request,
                                       .context = shared_context,
                                       .decode_device = COGPU_DEVICE_EMULATOR};
        CHECK(cogpu_read(image->file, &request, &raster, NULL, &own) == COGPU_OK);
        CHECK(has_pixels(&raster, kind, 0, 0));
        free(raster.data);
    }
    return NULL;
}

static void test_threads_share_a_device(void) {
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    struct image image = open_image(&kinds[1]);
    shared_context = open_context(8 << 20);
    for (uint32_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, read_repeatedly, &image) == 0);
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    close_image(&image);
    cogpu_context_close(shared_context);
}

/* Items with and without a device to decode them, and rasters there. */
static void test_many_items(void) {
    enum { ITEMS = 4 };
    cogpu_context *context = open_context(ENOUGH);
    struct image images[ITEMS];
    cogpu_request requests[ITEMS];
    cogpu_read_item items[ITEMS];
    for (uint32_t i = 0; i < ITEMS; i++) {
        images[i] = open_image(&kinds[i]);
        images[i].raster.device = i == 3 ? COGPU_DEVICE_EMULATOR : COGPU_DEVICE_CPU;
        requests[i] =
            (cogpu_request){.struct_size = sizeof *requests,
                            .decode_device = i == 1 ? COGPU_DEVICE_CPU : COGPU_DEVICE_EMULATOR};
        items[i] = (cogpu_read_item){.struct_size = sizeof *items,
                                     .file = images[i].file,
                                     .request = &requests[i],
                                     .raster = &images[i].raster};
    }
    CHECK(cogpu_read_many(items, ITEMS, context, &error) == COGPU_OK);
    for (uint32_t i = 0; i < ITEMS; i++) {
        CHECK(is_read(&images[i]));
        close_image(&images[i]);
    }
    cogpu_context_close(context);
}

TESTS(decode_device) {
    RUN(test_pixels_are_those_of_the_cpu);
    RUN(test_little_device_memory);
    RUN(test_rows_come_down_when_their_blocks_are_complete);
    RUN(test_invalid_pixels);
    RUN(test_bands_with_nodata_of_their_own);
    RUN(test_refused_windows);
    RUN(test_few_blocks_are_left_to_the_cpu);
    RUN(test_bad_blocks);
    RUN(test_cancelled_anywhere);
    RUN(test_failed_copies);
    RUN(test_pinned_raster);
    RUN(test_requests);
    RUN(test_threads_share_a_device);
    RUN(test_many_items);
    return FINISH();
}
