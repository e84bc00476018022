/*
 * Reads that consist of other reads: planar CMYK, masks that become NaN, bands with nodata of their
 * own, and windows that a device cannot decode. Pixels are compared with those of files and memory
 * that need no sub-read; progress and counts must be those of one read.
 */
#include "cogpu.h"

#include "support/fixture.h"
#include "support/test.h"

#include <math.h>
#include <unistd.h>

enum { WIDTH = 70, HEIGHT = 53, SAMPLES = 4 * WIDTH * HEIGHT };

static cogpu_error error;

/* ---- progress ---- */

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

/* ---- files ---- */

/* PhotometricInterpretation, which the fixture always writes as 1. */
static void set_photometric(tiff_builder *built, uint8_t value) {
    static const uint8_t entry[] = {6, 1, 3, 0, 1, 0, 0, 0, 1, 0};
    size_t at = 0;
    while (at + sizeof entry <= built->size && memcmp(built->bytes + at, entry, sizeof entry) != 0)
        at++;
    CHECK(at + sizeof entry <= built->size);
    built->bytes[at + 8] = value;
}

static cogpu_file *open_cmyk(tiff_builder *built, bool planar, bool has_mask) {
    const image_kind kind = {.width = WIDTH,
                             .height = HEIGHT,
                             .bands = 4,
                             .planar = planar,
                             .compression = 8,
                             .tile_width = 16,
                             .tile_height = 16};
    const image_kind mask = {
        .width = WIDTH, .height = HEIGHT, .rows_per_strip = 9, .compression = 5, .subfile_type = 4};
    cogpu_file *file = NULL;
    build_open(built, false, false);
    build_kind(built, &kind);
    build_directory(built, true);
    set_photometric(built, 5);
    if (has_mask) {
        build_kind(built, &mask);
        build_directory(built, true);
    }
    CHECK(cogpu_open_memory(built->bytes, built->size, NULL, &file, &error) == COGPU_OK);
    return file;
}

static cogpu_raster raster_in(void *data, cogpu_type type, uint32_t bands) {
    return (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                          .data = data,
                          .type = type,
                          .bands = bands,
                          .width = WIDTH,
                          .height = HEIGHT};
}

static cogpu_context *open_context(void) {
    cogpu_context *context = NULL;
    cogpu_context_options options = {
        .struct_size = sizeof(cogpu_context_options), .threads = 2, .device_bytes = 64 << 20};
    CHECK(cogpu_context_open(&options, &context, &error) == COGPU_OK);
    return context;
}

/* ---- tests ---- */

/* The emulator's memory is host memory, so that a raster can be read by both. */
static void test_planar_cmyk_has_the_pixels_of_chunky_cmyk(void) {
    static const uint32_t some[] = {3, 1};
    static uint8_t chunky[SAMPLES], planar[SAMPLES];
    tiff_builder built[2];
    cogpu_file *files[2] = {open_cmyk(&built[0], false, false), open_cmyk(&built[1], true, false)};
    cogpu_context *context = open_context();
    for (int device = COGPU_DEVICE_CPU; device <= COGPU_DEVICE_EMULATOR;
         device += COGPU_DEVICE_EMULATOR - COGPU_DEVICE_CPU)
        for (uint32_t bands = 2; bands <= 4; bands += 2) {
            struct progress_log log = {0};
            cogpu_request request = {.struct_size = sizeof(cogpu_request),
                                     .bands = bands == 2 ? some : NULL,
                                     .band_count = bands};
            cogpu_raster raster = raster_in(chunky, COGPU_TYPE_U8, bands);
            cogpu_result result = COGPU_RESULT_INIT;
            memset(planar, 0xA5, sizeof planar);
            CHECK(cogpu_read(files[0], &request, &raster, NULL, &error) == COGPU_OK);
            raster.data = planar;
            raster.device = (cogpu_device_kind)device;
            request.context = context;
            request.progress = log_progress;
            request.progress_user = &log;
            CHECK(cogpu_read(files[1], &request, &raster, &result, &error) == COGPU_OK);
            CHECK(memcmp(chunky, planar, (size_t)bands * WIDTH * HEIGHT) == 0);
            CHECK(!log.is_wrong && log.done == log.total && log.calls > 1);
            CHECK(result.blocks == 4 * 5 * 4 && result.bad_blocks == 0 && result.bytes_read == 0);
        }
    cogpu_context_close(context);
    for (int i = 0; i < 2; i++) {
        cogpu_close(files[i]);
        build_close(&built[i]);
    }
}

/* NaN where a mask read on its own is 0, and the converted pixels elsewhere. */
static void test_mask_becomes_nan_in_planar_cmyk(void) {
    static uint8_t pixels[SAMPLES], mask[SAMPLES];
    static float floats[SAMPLES];
    tiff_builder built;
    cogpu_file *file = open_cmyk(&built, true, true);
    cogpu_context *context = open_context();
    cogpu_raster raster = raster_in(pixels, COGPU_TYPE_U8, 4);
    CHECK(cogpu_read(file, NULL, &raster, NULL, &error) == COGPU_OK);
    raster.data = mask;
    CHECK(cogpu_read(
              file,
              &(cogpu_request){.struct_size = sizeof(cogpu_request), .content = COGPU_CONTENT_MASK},
              &raster, NULL, &error) == COGPU_OK);
    for (int device = COGPU_DEVICE_CPU; device <= COGPU_DEVICE_EMULATOR;
         device += COGPU_DEVICE_EMULATOR - COGPU_DEVICE_CPU) {
        struct progress_log log = {0};
        size_t wrong = 0, invalid = 0;
        cogpu_request request = {.struct_size = sizeof(cogpu_request),
                                 .masked = 1,
                                 .context = context,
                                 .progress = log_progress,
                                 .progress_user = &log};
        raster = raster_in(floats, COGPU_TYPE_F32, 4);
        raster.device = (cogpu_device_kind)device;
        CHECK(cogpu_read(file, &request, &raster, NULL, &error) == COGPU_OK);
        for (size_t i = 0; i < SAMPLES; i++) {
            wrong += mask[i] ? floats[i] != pixels[i] : !isnan(floats[i]);
            invalid += !mask[i];
        }
        CHECK(wrong == 0 && invalid > 0 && invalid < SAMPLES);
        CHECK(!log.is_wrong && log.done == log.total && log.total == 4 * 5 * 4 + 6);
    }
    cogpu_context_close(context);
    cogpu_close(file);
    build_close(&built);
}

static void test_cancelled_anywhere(void) {
    static float floats[SAMPLES];
    tiff_builder built;
    cogpu_file *file = open_cmyk(&built, true, true);
    cogpu_context *context = open_context();
    for (int device = COGPU_DEVICE_CPU; device <= COGPU_DEVICE_EMULATOR;
         device += COGPU_DEVICE_EMULATOR - COGPU_DEVICE_CPU) {
        cogpu_status status = COGPU_CANCELLED;
        for (uint64_t at = 1; status == COGPU_CANCELLED && at < 1000; at++) {
            struct progress_log log = {.cancel_at = at};
            cogpu_request request = {.struct_size = sizeof(cogpu_request),
                                     .masked = 1,
                                     .context = context,
                                     .progress = log_progress,
                                     .progress_user = &log};
            cogpu_raster raster = raster_in(floats, COGPU_TYPE_F32, 4);
            raster.device = (cogpu_device_kind)device;
            status = cogpu_read(file, &request, &raster, NULL, &error);
            CHECK(!log.is_wrong && error.status == status);
        }
        CHECK(status == COGPU_OK);
    }
    cogpu_context_close(context);
    cogpu_close(file);
    build_close(&built);
}

/* Each band of a chunky file with nodata of its own, from a PAM sidecar. */
static void test_bands_with_nodata_of_their_own(void) {
    static const char pam[] = "<PAMDataset><PAMRasterBand band=\"1\"><NoDataValue>7</NoDataValue>"
                              "</PAMRasterBand><PAMRasterBand band=\"2\"><NoDataValue>140"
                              "</NoDataValue></PAMRasterBand></PAMDataset>";
    static const uint32_t nodata[] = {7, 140};
    const image_kind kind = {
        .width = WIDTH, .height = HEIGHT, .bands = 2, .rows_per_strip = 8, .compression = 8};
    static float floats[2 * WIDTH * HEIGHT];
    char folder[] = "/tmp/cogpu-test-XXXXXX", path[64], sidecar[80];
    tiff_builder built;
    cogpu_file *file = NULL;
    struct progress_log log = {0};
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_request request = {.struct_size = sizeof(cogpu_request),
                             .masked = 1,
                             .progress = log_progress,
                             .progress_user = &log};
    cogpu_raster raster = raster_in(floats, COGPU_TYPE_F32, 2);
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.tif", folder);
    snprintf(sidecar, sizeof sidecar, "%s.aux.xml", path);
    build_one(&built, &kind);
    write_test_file(path, built.bytes, built.size);
    write_test_file(sidecar, pam, sizeof pam - 1);
    CHECK(cogpu_open(path, NULL, &file, &error) == COGPU_OK);
    CHECK(cogpu_read(file, &request, &raster, &result, &error) == COGPU_OK);
    size_t wrong = 0, invalid[2] = {0};
    for (uint32_t band = 0; band < 2; band++)
        for (uint32_t i = 0; i < WIDTH * HEIGHT; i++) {
            uint16_t sample = kind_sample(&kind, band, i % WIDTH, i / WIDTH);
            float pixel = floats[band * WIDTH * HEIGHT + i];
            invalid[band] += sample == nodata[band] ? 1 : 0;
            wrong += (sample == nodata[band] ? isnan(pixel) : pixel == sample) ? 0 : 1;
        }
    CHECK(wrong == 0 && invalid[0] > 0 && invalid[1] > 0);
    CHECK(!log.is_wrong && log.done == 14 && log.total == 14 && result.blocks == 14);
    cogpu_close(file);
    build_close(&built);
    unlink(path);
    unlink(sidecar);
    rmdir(folder);
}

/* What the engine reads for itself is not for callers. */
static void test_components_are_not_content(void) {
    static uint8_t pixels[SAMPLES];
    tiff_builder built;
    cogpu_file *file = open_cmyk(&built, true, false);
    cogpu_raster raster = raster_in(pixels, COGPU_TYPE_U8, 4);
    for (unsigned content = 2; content < 5; content++) {
        cogpu_request request = {.struct_size = sizeof(cogpu_request),
                                 .content = (cogpu_content)content};
        CHECK(cogpu_read(file, &request, &raster, NULL, &error) == COGPU_INVALID_ARGUMENT);
        CHECK(strstr(error.message, "`content`") != NULL);
    }
    cogpu_close(file);
    build_close(&built);
}

TESTS(composed_reads) {
    RUN(test_planar_cmyk_has_the_pixels_of_chunky_cmyk);
    RUN(test_mask_becomes_nan_in_planar_cmyk);
    RUN(test_cancelled_anywhere);
    RUN(test_bands_with_nodata_of_their_own);
    RUN(test_components_are_not_content);
    return FINISH();
}
