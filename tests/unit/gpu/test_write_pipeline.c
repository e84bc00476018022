/*
 * Writing from device memory: the file has the pixels that were pushed, and does not depend on the
 * split into chunks, nor on whether a chunk is in host or device memory. Without a device encoder
 * it equals the file of the CPU byte by byte.
 */
#include "cogpu.h"

#include "support/draw.h"
#include "support/gpu_test.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static cogpu_context *context;
static cogpu_device_kind kind;
static cogpu_error error;

static void need(cogpu_status status) {
    gpu_test_need(status, &error);
}

/* An image on both sides. */
struct pixels {
    uint8_t *host, *mask;
    void *device, *device_mask;
    size_t bytes, mask_bytes;
    cogpu_raster raster, mask_raster;
};

static struct pixels draw_pixels(const cogpu_profile *profile) {
    size_t sample = cogpu_type_bytes(profile->type);
    size_t count = (size_t)profile->width * profile->height;
    struct pixels pixels = {.bytes = count * profile->bands * sample, .mask_bytes = count};
    pixels.host = malloc(pixels.bytes);
    pixels.mask = malloc(count);
    if (!pixels.host || !pixels.mask)
        abort();
    for (size_t i = 0; i < pixels.bytes; i++) /* small differences: floats stay numbers */
        pixels.host[i] = (uint8_t)(i % sample == sample - 1 ? 64 : (i / 64 + draw(4)) & 127);
    for (size_t i = 0; i < count; i++)
        pixels.mask[i] = draw(7) ? 255 : 0;
    need(cogpu_device_allocate(context, kind, 0, pixels.bytes, &pixels.device, &error));
    need(cogpu_device_allocate(context, kind, 0, count, &pixels.device_mask, &error));
    need(cogpu_device_upload(context, kind, 0, pixels.host, pixels.bytes, pixels.device, &error));
    need(cogpu_device_upload(context, kind, 0, pixels.mask, count, pixels.device_mask, &error));
    bool is_chunky = draw(2);
    pixels.raster = (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                                   .type = profile->type,
                                   .bands = profile->bands,
                                   .width = profile->width,
                                   .height = profile->height};
    if (is_chunky) {
        pixels.raster.stride_band = (int64_t)sample;
        pixels.raster.stride_x = (int64_t)(sample * profile->bands);
        pixels.raster.stride_y = pixels.raster.stride_x * profile->width;
    } else {
        pixels.raster.stride_x = (int64_t)sample;
        pixels.raster.stride_y = pixels.raster.stride_x * profile->width;
        pixels.raster.stride_band = pixels.raster.stride_y * profile->height;
    }
    pixels.mask_raster = (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                                        .type = COGPU_TYPE_U8,
                                        .bands = 1,
                                        .width = profile->width,
                                        .height = profile->height,
                                        .stride_band = (int64_t)count,
                                        .stride_y = profile->width,
                                        .stride_x = 1};
    return pixels;
}

static void free_pixels(struct pixels *pixels) {
    cogpu_device_free(context, kind, 0, pixels->device);
    cogpu_device_free(context, kind, 0, pixels->device_mask);
    free(pixels->host);
    free(pixels->mask);
}

static cogpu_raster rows_of(const cogpu_raster *raster, void *host, void *device, bool is_device,
                            uint32_t first, uint32_t count) {
    cogpu_raster rows = *raster;
    rows.device = is_device ? kind : COGPU_DEVICE_CPU;
    rows.data = (uint8_t *)(is_device ? device : host) + (int64_t)first * rows.stride_y;
    rows.height = count;
    return rows;
}

/* Chunks of `most` rows, or of random size if that is 0; odd chunks are in host memory if
 * `is_mixed`. */
static cogpu_memory write_split(const cogpu_profile *profile, const struct pixels *pixels,
                                uint32_t most, bool is_device, bool is_mixed) {
    cogpu_memory memory = COGPU_MEMORY_INIT;
    cogpu_writer *writer = NULL;
    need(cogpu_writer_open(&(cogpu_sink){.struct_size = sizeof(cogpu_sink), .memory = &memory},
                           profile, &writer, &error));
    for (uint32_t y = 0, count, number = 0; y < profile->height; y += count, number++) {
        uint32_t left = profile->height - y;
        bool here = is_device && !(is_mixed && number % 2);
        bool mask_here = is_device && !(is_mixed && number % 3 == 1);
        count = most ? most : 1 + draw(left);
        count = count < left ? count : left;
        cogpu_raster rows = rows_of(&pixels->raster, pixels->host, pixels->device, here, y, count);
        cogpu_raster mask =
            rows_of(&pixels->mask_raster, pixels->mask, pixels->device_mask, mask_here, y, count);
        need(cogpu_writer_write_rows(writer, &rows, profile->mask ? &mask : NULL, &error));
    }
    need(cogpu_writer_close(writer, NULL, &error));
    return memory;
}

static bool is_same(const cogpu_memory *a, const cogpu_memory *b) {
    return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

/* All levels and masks of both, pixel by pixel. */
static bool has_same_pixels(const cogpu_memory *a, const cogpu_memory *b) {
    const cogpu_memory *both[] = {a, b};
    uint8_t *read[2] = {0};
    bool is_equal = true;
    for (uint32_t level = 0; level < 16 && is_equal; level++) {
        for (uint32_t part = 0; part < 2 && is_equal; part++) {
            size_t bytes[2] = {0, 0};
            cogpu_status status[2];
            for (uint32_t i = 0; i < 2; i++) {
                cogpu_file *file = NULL;
                cogpu_image image = COGPU_IMAGE_INIT;
                cogpu_level info = COGPU_LEVEL_INIT;
                need(cogpu_open_memory(both[i]->data, both[i]->bytes, NULL, &file, &error));
                need(cogpu_image_info(file, 0, &image, &error));
                status[i] = cogpu_level_info(file, 0, level, &info, &error);
                if (status[i] == COGPU_OK) {
                    cogpu_request request = {.struct_size = sizeof(cogpu_request),
                                             .level = level,
                                             .content = (cogpu_content)part};
                    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                                           .type = part ? COGPU_TYPE_U8 : image.type,
                                           .bands = image.bands,
                                           .width = info.width,
                                           .height = info.height};
                    bytes[i] = cogpu_type_bytes(raster.type) * raster.bands * (size_t)raster.width *
                               raster.height;
                    raster.data = read[i] = malloc(bytes[i]);
                    status[i] = cogpu_read(file, &request, &raster, NULL, &error);
                    if (status[i] != COGPU_OK)
                        printf("%s\n", error.message);
                }
                cogpu_close(file);
            }
            is_equal = status[0] == status[1] && bytes[0] == bytes[1] &&
                       (status[0] != COGPU_OK || memcmp(read[0], read[1], bytes[0]) == 0);
            for (uint32_t i = 0; i < 2; i++) {
                free(read[i]);
                read[i] = NULL;
            }
        }
    }
    return is_equal;
}

static bool is_as_host(cogpu_profile profile, bool is_same_bytes) {
    struct pixels pixels = draw_pixels(&profile);
    cogpu_profile on_host = profile;
    on_host.device = COGPU_DEVICE_CPU;
    cogpu_memory host = write_split(&on_host, &pixels, 0, false, false);
    cogpu_memory whole = write_split(&profile, &pixels, profile.height, true, false);
    cogpu_memory split = write_split(&profile, &pixels, 0, true, false);
    cogpu_memory mixed = write_split(&profile, &pixels, 0, true, true);
    bool is_good = is_same(&whole, &split) && is_same(&whole, &mixed) &&
                   has_same_pixels(&whole, &host) && (!is_same_bytes || is_same(&whole, &host));
    if (!is_good)
        printf("%s of %u x %u x %u: split %d, mixed %d, pixels %d, host %d\n", profile.codec,
               profile.width, profile.height, profile.bands, is_same(&whole, &split),
               is_same(&whole, &mixed), has_same_pixels(&whole, &host), is_same(&whole, &host));
    cogpu_memory *all[] = {&host, &whole, &split, &mixed};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        cogpu_memory_free(all[i]);
    free_pixels(&pixels);
    return is_good;
}

static cogpu_profile any_profile(const char *codec) {
    static const cogpu_type types[] = {COGPU_TYPE_U8, COGPU_TYPE_U16, COGPU_TYPE_F32,
                                       COGPU_TYPE_I32, COGPU_TYPE_F64};
    return (cogpu_profile){.struct_size = sizeof(cogpu_profile),
                           .width = 1 + draw(200),
                           .height = 1 + draw(200),
                           .bands = 1 + draw(3),
                           .type = types[draw(5)],
                           .cog = 0,
                           .block_width = 16 << draw(3),
                           .block_height = 16 << draw(3),
                           .interleave = draw(2) != 0,
                           .codec = codec,
                           .mask = draw(2) != 0,
                           .context = context,
                           .device = kind};
}

static void test_encoded_by_device(void) {
    static const char *const codecs[] = {"deflate", "lzw", "packbits", "zstd"};
    for (uint32_t i = 0; i < (is_deep_run() ? 8 : 4); i++)
        CHECK(is_as_host(any_profile(codecs[i % 4]), false));
}

static void test_plain(void) {
    for (uint32_t i = 0; i < 4; i++) {
        cogpu_profile profile = any_profile("none");
        profile.mask = i > 1;
        CHECK(is_as_host(profile, !profile.mask));
    }
}

/* The device packs, the CPU encodes. */
static void test_encoded_by_cpu(void) {
    static const char *const codecs[] = {"lerc", "lzma"};
    for (uint32_t i = 0; i < 4; i++)
        CHECK(is_as_host(any_profile(codecs[i % 2]), true));
}

static void test_cogs(void) {
    static const char *const codecs[] = {"deflate", "none", "lzw", "zstd"};
    for (uint32_t i = 0; i < (is_deep_run() ? 8 : 4); i++) {
        cogpu_profile profile = any_profile(codecs[i % 4]);
        profile.cog = 1;
        profile.block_width = profile.block_height = 16;
        profile.nodata = draw(2) ? "64" : NULL;
        CHECK(is_as_host(profile, false));
    }
}

/* Rows of overviews that are made of more than two, and of parts of rows. */
static void test_listed_overviews(void) {
    static const uint32_t factors[] = {3, 7, 8};
    for (uint32_t i = 0; i < (is_deep_run() ? 4 : 2); i++) {
        cogpu_profile profile = any_profile("deflate");
        profile.width += 30;
        profile.height += 30;
        profile.overview_factors = factors;
        profile.overview_factor_count = 3;
        profile.resampling = i % 2 ? COGPU_RESAMPLE_NEAREST : COGPU_RESAMPLE_AVERAGE;
        CHECK(is_as_host(profile, false));
    }
}

/* Uploads of so many rows at a time that threads share the copies. */
static void test_rows_in_host_memory(void) {
    for (int planar = 0; planar < 2; planar++) {
        cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                                 .width = 601,
                                 .height = 131,
                                 .bands = 3,
                                 .type = COGPU_TYPE_F32,
                                 .block_width = 128,
                                 .interleave = planar,
                                 .codec = "none",
                                 .context = context,
                                 .device = kind};
        struct pixels pixels = draw_pixels(&profile);
        cogpu_memory file = write_split(&profile, &pixels, profile.height, false, false);
        profile.device = COGPU_DEVICE_CPU;
        cogpu_memory host = write_split(&profile, &pixels, profile.height, false, false);
        CHECK(is_same(&file, &host));
        cogpu_memory_free(&file);
        cogpu_memory_free(&host);
        free_pixels(&pixels);
    }
}

static void test_strips(void) {
    for (uint32_t i = 0; i < 4; i++) {
        cogpu_profile profile = any_profile(i % 2 ? "deflate" : "none");
        profile.strips = 1;
        profile.block_width = 0;
        profile.block_height = 1 + draw(20);
        CHECK(is_as_host(profile, false));
    }
}

/* Each NaN is stored as nodata, by the host and the device, and blocks of it alone are sparse. */
static void test_nan_is_nodata(void) {
    static const float nan_bits[] = {NAN, -NAN, 7};
    for (uint32_t i = 0; i < 4; i++) {
        cogpu_profile profile = any_profile(i % 2 ? "deflate" : "none");
        profile.type = COGPU_TYPE_F32;
        profile.nodata = "-9999";
        profile.nan_is_nodata = 1;
        profile.sparse = i > 1;
        struct pixels pixels = draw_pixels(&profile);
        float *numbers = (float *)(void *)pixels.host;
        uint64_t wrong = 0;
        for (size_t k = 0; k < pixels.bytes / sizeof *numbers; k++)
            numbers[k] = nan_bits[k < pixels.bytes / 8 ? 0 : draw(3)];
        need(cogpu_device_upload(context, kind, 0, pixels.host, pixels.bytes, pixels.device,
                                 &error));
        cogpu_profile on_host = profile;
        on_host.device = COGPU_DEVICE_CPU;
        cogpu_memory host = write_split(&on_host, &pixels, 0, false, false);
        cogpu_memory file = write_split(&profile, &pixels, 0, true, true);
        CHECK(has_same_pixels(&file, &host));
        cogpu_file *read = NULL;
        float *got = malloc(pixels.bytes);
        cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                               .data = got,
                               .type = COGPU_TYPE_F32,
                               .bands = profile.bands,
                               .width = profile.width,
                               .height = profile.height,
                               .stride_band = pixels.raster.stride_band,
                               .stride_y = pixels.raster.stride_y,
                               .stride_x = pixels.raster.stride_x};
        need(cogpu_open_memory(host.data, host.bytes, NULL, &read, &error));
        need(cogpu_read(read, NULL, &raster, NULL, &error));
        for (size_t k = 0; k < pixels.bytes / sizeof *numbers; k++)
            wrong += got[k] != (isnan(numbers[k]) ? -9999 : numbers[k]);
        CHECK(wrong == 0);
        cogpu_close(read);
        free(got);
        cogpu_memory_free(&file);
        cogpu_memory_free(&host);
        free_pixels(&pixels);
    }
}

static void test_sparse(void) {
    for (uint32_t i = 0; i < 3; i++) {
        cogpu_profile profile = any_profile(i == 0 ? "none" : i == 1 ? "deflate" : "zstd");
        struct pixels pixels;
        cogpu_memory file = COGPU_MEMORY_INIT;
        profile.sparse = 1;
        profile.cog = i == 1;
        profile.block_width = profile.block_height = 16;
        profile.width = 80;
        profile.height = 70;
        pixels = draw_pixels(&profile);
        memset(pixels.host, 0, pixels.bytes / 2);
        need(cogpu_device_upload(context, kind, 0, pixels.host, pixels.bytes, pixels.device,
                                 &error));
        file = write_split(&profile, &pixels, 0, true, false);
        profile.device = COGPU_DEVICE_CPU;
        cogpu_memory host = write_split(&profile, &pixels, 0, false, false);
        CHECK(has_same_pixels(&file, &host));
        if (i == 0 && !profile.mask)
            CHECK(is_same(&file, &host));
        cogpu_memory_free(&file);
        cogpu_memory_free(&host);
        free_pixels(&pixels);
    }
}

TESTS(write_pipeline) {
    const char *device = getenv("COGPU_TEST_DEVICE");
    draw_from(test_argc, test_argv);
    kind = device && strcmp(device, "cuda") == 0 ? COGPU_DEVICE_CUDA : COGPU_DEVICE_EMULATOR;
    need(cogpu_context_open(NULL, &context, &error));
    RUN(test_plain);
    RUN(test_encoded_by_device);
    RUN(test_encoded_by_cpu);
    RUN(test_cogs);
    RUN(test_listed_overviews);
    RUN(test_rows_in_host_memory);
    RUN(test_strips);
    RUN(test_nan_is_nodata);
    RUN(test_sparse);
    cogpu_context_close(context);
    return FINISH();
}
