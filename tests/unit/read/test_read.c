/*
 * Reading through the public functions, on small files made in memory: all layouts and codecs,
 * windows, levels, masks, bad blocks, many items at once, threads, caches, limits, wrong arguments
 * (T214), and files that would cost far more than they are (T217, T218).
 */
#include "cogpu.h"

#include "support/fixture.h"
#include "support/test.h"

#include <math.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

static tiff_builder built;
static cogpu_file *file;
static cogpu_error error;
static cogpu_result result = COGPU_RESULT_INIT;

static cogpu_status open_with(const cogpu_limits *limits) {
    cogpu_open_options options = {.struct_size = sizeof(cogpu_open_options), .limits = limits};
    file = NULL;
    return cogpu_open_memory(built.bytes, built.size, &options, &file, &error);
}

static void open_kind(const image_kind *kind) {
    build_one(&built, kind);
    CHECK(open_with(NULL) == COGPU_OK);
}

static void close_built(void) {
    cogpu_close(file);
    build_close(&built);
}

/* Reads what the request says and compares; 0 = all is right. */
static int faults(const image_kind *kind, cogpu_request request) {
    uint32_t width = request.width ? request.width : kind->width - request.x;
    uint32_t height = request.height ? request.height : kind->height - request.y;
    uint32_t bands = request.bands ? request.band_count : kind_bands(kind);
    cogpu_raster raster = raster_of(kind, width, height, bands);
    cogpu_status status = cogpu_read(file, &request, &raster, &result, &error);
    int wrong = status != COGPU_OK || error.status != COGPU_OK ||
                !pixels_match(kind, raster.data, request.x, request.y, width, height, request.bands,
                              request.band_count);
    free(raster.data);
    return wrong;
}

static void test_every_layout_and_codec(void) {
    static const uint16_t codecs[] = {1, 5, 8, 32773, 50000};
    static const image_kind layouts[] = {
        {.width = 37, .height = 29},
        {.width = 37, .height = 29, .rows_per_strip = 4},
        {.width = 37, .height = 29, .tile_width = 16, .tile_height = 16},
        {.width = 37, .height = 29, .tile_width = 64, .tile_height = 48},
        {.width = 37, .height = 29, .tile_width = 5, .tile_height = 1},
        {.width = 1, .height = 1},
        {.width = 1, .height = 50, .rows_per_strip = 1}};
    static const uint32_t list[] = {3, 1, 3};
    for (size_t c = 0; c < 5; c++)
        for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
            for (int form = 0; form < 16; form++) {
                image_kind kind = layouts[l];
                kind.compression = codecs[c];
                kind.planar = form & 1;
                kind.bits = form & 2 ? 16 : 8;
                kind.bands = 3;
                build_open(&built, form & 4, form & 8);
                build_kind(&built, &kind);
                build_directory(&built, true);
                CHECK(open_with(NULL) == COGPU_OK);
                CHECK(faults(&kind, (cogpu_request){.struct_size = sizeof(cogpu_request),
                                                    .threads = 1}) == 0);
                CHECK(result.blocks > 0 && result.bad_blocks == 0 && result.sparse_blocks == 0);
                CHECK(faults(&kind, (cogpu_request){.struct_size = sizeof(cogpu_request),
                                                    .bands = list,
                                                    .band_count = 3}) == 0);
                CHECK(faults(&kind, (cogpu_request){.struct_size = sizeof(cogpu_request),
                                                    .x = kind.width / 3,
                                                    .y = kind.height / 2,
                                                    .width = 1 + kind.width / 4}) == 0);
                close_built();
            }
}

static void test_every_window(void) {
    const image_kind kind = {
        .width = 9, .height = 7, .tile_width = 4, .tile_height = 3, .compression = 8, .bands = 2};
    open_kind(&kind);
    int wrong = 0;
    for (uint32_t y = 0; y < 7; y++)
        for (uint32_t x = 0; x < 9; x++)
            for (uint32_t h = 1; h <= 7 - y; h++)
                for (uint32_t w = 1; w <= 9 - x; w++)
                    wrong += faults(&kind, (cogpu_request){.struct_size = sizeof(cogpu_request),
                                                           .x = x,
                                                           .y = y,
                                                           .width = w,
                                                           .height = h});
    CHECK(wrong == 0);
    close_built();
}

/* Blocks longer than a megabyte are read in slices, from any row on. */
static void test_slices_of_a_tall_block(void) {
    const image_kind kind = {.width = 1500, .height = 1500};
    open_kind(&kind);
    CHECK(faults(&kind, (cogpu_request){.struct_size = sizeof(cogpu_request), .threads = 3}) == 0 &&
          result.blocks == 3);
    CHECK(faults(&kind, (cogpu_request){.struct_size = sizeof(cogpu_request),
                                        .x = 3,
                                        .y = 690,
                                        .width = 20,
                                        .height = 20}) == 0);
    CHECK(faults(&kind,
                 (cogpu_request){.struct_size = sizeof(cogpu_request), .x = 1499, .y = 1499}) ==
              0 &&
          result.blocks == 1);
    close_built();
}

static cogpu_status raster_status(cogpu_raster raster, const cogpu_request *request) {
    return cogpu_read(file, request, &raster, NULL, &error);
}

/* T214 */
static void test_wrong_arguments(void) {
    const image_kind kind = {.width = 10, .height = 8, .bands = 2};
    static const uint32_t zero[] = {0}, three[] = {3}, one[] = {1};
    uint8_t pixels[160];
    cogpu_raster good = {.struct_size = sizeof(cogpu_raster),
                         .data = pixels,
                         .type = COGPU_TYPE_U8,
                         .bands = 2,
                         .width = 10,
                         .height = 8};
    open_kind(&kind);
    CHECK(raster_status(good, NULL) == COGPU_OK);
    cogpu_raster raster = good;
    raster.data = NULL;
    CHECK(raster_status(raster, NULL) == COGPU_INVALID_ARGUMENT);
    raster = good;
    raster.type = COGPU_TYPE_U16;
    CHECK(raster_status(raster, NULL) == COGPU_INVALID_ARGUMENT && strstr(error.message, "uint16"));
    raster = good;
    raster.bands = 1;
    CHECK(raster_status(raster, NULL) == COGPU_INVALID_ARGUMENT);
    raster = good;
    raster.width = 11;
    CHECK(raster_status(raster, NULL) == COGPU_INVALID_ARGUMENT);
    raster = good;
    raster.height = 0;
    CHECK(raster_status(raster, NULL) == COGPU_INVALID_ARGUMENT);
    static const cogpu_request windows[] = {
        {.struct_size = sizeof(cogpu_request), .x = 10},
        {.struct_size = sizeof(cogpu_request), .y = 8},
        {.struct_size = sizeof(cogpu_request), .x = 5, .width = 6},
        {.struct_size = sizeof(cogpu_request), .y = 1, .height = 8},
        {.struct_size = sizeof(cogpu_request), .width = 11},
        {.struct_size = sizeof(cogpu_request), .x = UINT32_MAX},
        {.struct_size = sizeof(cogpu_request), .y = UINT32_MAX, .height = UINT32_MAX},
        {.struct_size = sizeof(cogpu_request), .x = 1, .width = UINT32_MAX},
        {.struct_size = sizeof(cogpu_request), .bands = zero, .band_count = 1},
        {.struct_size = sizeof(cogpu_request), .bands = three, .band_count = 1},
        {.struct_size = sizeof(cogpu_request), .bands = one, .band_count = 0}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        CHECK(raster_status(good, &windows[i]) == COGPU_INVALID_ARGUMENT && error.message[0]);
    raster = good;
    raster.type = COGPU_TYPE_F64; /* to which only pixels are converted */
    for (unsigned part = 1; part < 5; part++)
        CHECK(raster_status(raster, &(cogpu_request){.struct_size = sizeof(cogpu_request),
                                                     .content = (cogpu_content)part}) ==
              COGPU_INVALID_ARGUMENT);
    for (unsigned part = 2; part < 5; part++)
        CHECK(raster_status(good, &(cogpu_request){.struct_size = sizeof(cogpu_request),
                                                   .content = (cogpu_content)part}) ==
              COGPU_INVALID_ARGUMENT);
    CHECK(raster_status(good, &(cogpu_request){.struct_size = sizeof(cogpu_request), .level = 1}) ==
          COGPU_NOT_FOUND);
    CHECK(raster_status(good, &(cogpu_request){.struct_size = sizeof(cogpu_request), .image = 1}) ==
          COGPU_NOT_FOUND);
    close_built();
}

static void test_null_arguments(void) {
    cogpu_file *none = (cogpu_file *)&built; /* must be set to NULL, whatever it was */
    cogpu_image image = COGPU_IMAGE_INIT;
    cogpu_raster raster = COGPU_RASTER_INIT;
    CHECK(cogpu_open(NULL, NULL, &none, &error) == COGPU_INVALID_ARGUMENT && none == NULL);
    CHECK(cogpu_open("x", NULL, NULL, &error) == COGPU_INVALID_ARGUMENT);
    none = (cogpu_file *)&built;
    CHECK(cogpu_open_memory(NULL, 5, NULL, &none, &error) == COGPU_INVALID_ARGUMENT &&
          none == NULL);
    CHECK(cogpu_open_memory(NULL, 0, NULL, &none, NULL) == COGPU_NOT_TIFF);
    none = (cogpu_file *)&built;
    CHECK(cogpu_open_source(NULL, NULL, &none, &error) == COGPU_INVALID_ARGUMENT && none == NULL);
    CHECK(cogpu_open_source(&(cogpu_source)COGPU_SOURCE_INIT, NULL, &none, &error) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_image_info(NULL, 0, &image, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_read(NULL, NULL, &raster, NULL, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_read(NULL, NULL, NULL, NULL, NULL) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_read_many(NULL, 0, NULL, &error) == COGPU_OK);
    CHECK(cogpu_read_many(NULL, 1, NULL, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_context_open(NULL, NULL, &error) == COGPU_INVALID_ARGUMENT);
    cogpu_context *context = NULL;
    const cogpu_network senseless[] = {
        {.struct_size = sizeof(cogpu_network), .max_retries = -1, .connect_timeout_seconds = -1},
        {.struct_size = sizeof(cogpu_network),
         .max_retries = -1,
         .low_speed_seconds = (double)INFINITY},
        {.struct_size = sizeof(cogpu_network), .max_retries = -1, .timeout_seconds = (double)NAN},
        {.struct_size = sizeof(cogpu_network),
         .max_retries = -1,
         .header_cache_seconds = (double)NAN}};
    for (size_t i = 0; i < sizeof senseless / sizeof *senseless; i++) {
        const cogpu_context_options options = {.struct_size = sizeof(cogpu_context_options),
                                               .network = &senseless[i]};
        CHECK(cogpu_context_open(&options, &context, &error) == COGPU_INVALID_ARGUMENT && !context);
    }
    CHECK(cogpu_context_open(NULL, &context, &error) == COGPU_OK);
    CHECK(cogpu_device_allocate(context, COGPU_DEVICE_EMULATOR, 0, 1, NULL, &error) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_device_upload(context, COGPU_DEVICE_EMULATOR, 0, NULL, 1, &image, &error) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_device_download(context, COGPU_DEVICE_EMULATOR, 0, &image, 1, NULL, &error) ==
          COGPU_INVALID_ARGUMENT);
    cogpu_context_close(context);
    cogpu_close(NULL);
    cogpu_context_close(NULL);
}

/* T047: sparse blocks become nodata, or 0. */
static void test_sparse_blocks(void) {
    static const uint64_t sparse[] = {1, 4, UINT64_MAX};
    static const char *const nodata[] = {NULL, "77", "-9999"};
    for (size_t n = 0; n < 3; n++) {
        const image_kind kind = {.width = 8,
                                 .height = 12,
                                 .tile_width = 4,
                                 .tile_height = 4,
                                 .compression = 5,
                                 .sparse = sparse};
        build_open(&built, false, false);
        build_kind(&built, &kind);
        if (nodata[n])
            build_text(&built, 42113, nodata[n]);
        build_directory(&built, true);
        CHECK(open_with(NULL) == COGPU_OK);
        cogpu_raster raster = raster_of(&kind, 8, 12, 1);
        CHECK(cogpu_read(file, NULL, &raster, &result, &error) == COGPU_OK);
        CHECK(result.blocks == 6 && result.sparse_blocks == 2 && result.bad_blocks == 0);
        for (uint32_t y = 0; y < 12; y++)
            for (uint32_t x = 0; x < 8; x++) {
                bool empty = (y < 4 && x >= 4) || (y >= 8 && x < 4);
                uint8_t want = empty ? (n == 1 ? 77 : 0) : (uint8_t)kind_sample(&kind, 0, x, y);
                CHECK(((uint8_t *)raster.data)[y * 8 + x] == want);
            }
        free(raster.data);
        close_built();
    }
}

/* ---- bad blocks ---- */

static const image_kind spoilt_kind = {
    .width = 8, .height = 12, .tile_width = 4, .tile_height = 4, .compression = 8};

/* The fourth block's stream is not one. */
static void open_spoilt(void) {
    build_one(&built, &spoilt_kind);
    for (size_t i = 0, streams = 0; i + 1 < built.size; i++)
        if (built.bytes[i] == 0x78 && built.bytes[i + 1] == 0x01 && ++streams == 4) {
            built.bytes[i] = 0xFF;
            break;
        }
    CHECK(open_with(NULL) == COGPU_OK);
}

static void test_a_bad_block_is_named(void) {
    uint8_t pixels[96];
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = pixels,
                           .type = COGPU_TYPE_U8,
                           .bands = 1,
                           .width = 8,
                           .height = 12};
    for (uint32_t threads = 1; threads <= 4; threads++) {
        open_spoilt();
        cogpu_request request = {.struct_size = sizeof(cogpu_request), .threads = threads};
        CHECK(cogpu_read(file, &request, &raster, &result, &error) == COGPU_CORRUPT);
        CHECK(error.status == COGPU_CORRUPT && error.directory == 0 && error.block == 3);
        CHECK(error.offset > 0 && error.message[0]);
        /* The blocks around it can be read. */
        CHECK(faults(&spoilt_kind,
                     (cogpu_request){.struct_size = sizeof(cogpu_request), .height = 4}) == 0);
        CHECK(faults(&spoilt_kind,
                     (cogpu_request){.struct_size = sizeof(cogpu_request), .width = 4}) == 0);
        close_built();
    }
}

static void test_bad_blocks_are_filled_when_asked(void) {
    uint8_t pixels[96];
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = pixels,
                           .type = COGPU_TYPE_U8,
                           .bands = 1,
                           .width = 8,
                           .height = 12};
    open_spoilt();
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .fill_bad_blocks = 1};
    CHECK(cogpu_read(file, &request, &raster, &result, &error) == COGPU_OK);
    CHECK(error.status == COGPU_OK && result.bad_blocks == 1 && result.blocks == 6);
    CHECK(result.first_bad.status == COGPU_CORRUPT && result.first_bad.block == 3);
    for (uint32_t y = 0; y < 12; y++)
        for (uint32_t x = 0; x < 8; x++) {
            bool bad = y >= 4 && y < 8 && x >= 4;
            CHECK(pixels[y * 8 + x] == (bad ? 0 : kind_sample(&spoilt_kind, 0, x, y)));
        }
    close_built();
}

/* The first by number, however threads run. The file is large enough for several to be used. */
static void test_the_first_bad_block_is_the_first(void) {
    enum { WIDTH = 1280, HEIGHT = 256 };
    const image_kind kind = {.width = WIDTH,
                             .height = HEIGHT,
                             .tile_width = 64,
                             .tile_height = 64,
                             .compression = 8,
                             .apart = true};
    static uint8_t pixels[WIDTH * HEIGHT];
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = pixels,
                           .type = COGPU_TYPE_U8,
                           .bands = 1,
                           .width = WIDTH,
                           .height = HEIGHT};
    build_one(&built, &kind);
    /* A stream of one stored block of 4096 bytes begins so. */
    static const uint8_t start[] = {0x78, 0x01, 0x01, 0x00, 0x10, 0xFF, 0xEF};
    size_t streams = 0;
    for (size_t i = 0; i + sizeof start < built.size; i++)
        if (memcmp(built.bytes + i, start, sizeof start) == 0 && ++streams % 10 == 7)
            built.bytes[i] = 0xFF;
    CHECK(streams == 80);
    CHECK(open_with(NULL) == COGPU_OK);
    for (int i = 0; i < 20; i++) {
        cogpu_request request = {.struct_size = sizeof(cogpu_request),
                                 .threads = 1 + (uint32_t)i % 4,
                                 .fill_bad_blocks = i & 1};
        cogpu_status status = cogpu_read(file, &request, &raster, &result, &error);
        const cogpu_error *first = i & 1 ? &result.first_bad : &error;
        CHECK(status == (i & 1 ? COGPU_OK : COGPU_CORRUPT) && first->block == 6);
        CHECK(!(i & 1) || result.bad_blocks == 8);
    }
    close_built();
}

/* T019 */
static void test_an_unknown_codec(void) {
    uint8_t pixels[16];
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = pixels,
                           .type = COGPU_TYPE_U8,
                           .bands = 1,
                           .width = 4,
                           .height = 4};
    build_open(&built, false, false);
    build_image(&built, 4, 4, 1, 8, 1, NULL);
    build_put(&built, built.entries[3].value, 4711, 2);
    build_directory(&built, true);
    CHECK(open_with(NULL) == COGPU_OK);
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .fill_bad_blocks = 1};
    CHECK(cogpu_read(file, &request, &raster, NULL, &error) == COGPU_UNSUPPORTED);
    CHECK(strstr(error.message, "4711") && error.directory == 0);
    CHECK(cogpu_context_open(NULL, &request.context, &error) == COGPU_OK);
    raster.device = COGPU_DEVICE_EMULATOR;
    CHECK(cogpu_read(file, &request, &raster, NULL, &error) == COGPU_UNSUPPORTED);
    CHECK(strstr(error.message, "4711") && error.directory == 0);
    cogpu_context_close(request.context);
    close_built();
}

/* ---- levels and masks ---- */

static void test_levels(void) {
    const image_kind full = {.width = 16, .height = 12, .rows_per_strip = 5};
    const image_kind half = {
        .width = 8, .height = 6, .subfile_type = 1, .seed = 9, .compression = 5};
    build_open(&built, false, false);
    build_kind(&built, &full);
    build_directory(&built, true);
    build_kind(&built, &half);
    build_directory(&built, true);
    CHECK(open_with(NULL) == COGPU_OK);
    CHECK(faults(&full, (cogpu_request)COGPU_REQUEST_INIT) == 0);
    CHECK(
        faults(&half, (cogpu_request){
                          .struct_size = sizeof(cogpu_request), .level = 1, .x = 2, .y = 1}) == 0);
    close_built();
}

static void read_mask(uint8_t *mask, uint32_t width, uint32_t height, uint32_t bands,
                      const uint32_t *list) {
    cogpu_request request = {.struct_size = sizeof(cogpu_request),
                             .content = COGPU_CONTENT_MASK,
                             .bands = list,
                             .band_count = list ? bands : 0};
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = mask,
                           .type = COGPU_TYPE_U8,
                           .bands = bands,
                           .width = width,
                           .height = height};
    memset(mask, 0xA5, (size_t)width * height * bands);
    CHECK(cogpu_read(file, &request, &raster, NULL, &error) == COGPU_OK);
}

static void test_masks_of_a_directory(void) {
    const image_kind pixels = {.width = 6, .height = 2, .bands = 2};
    uint8_t mask[24];
    build_open(&built, false, false);
    build_kind(&built, &pixels);
    build_directory(&built, true);
    build_image(&built, 6, 2, 1, 1, 4, "\xA0\x54");
    build_long(&built, 254, 4);
    build_directory(&built, true);
    CHECK(open_with(NULL) == COGPU_OK);
    read_mask(mask, 6, 2, 2, NULL);
    static const uint8_t want[] = {255, 0, 255, 0, 0, 0, 0, 255, 0, 255, 0, 255};
    CHECK(memcmp(mask, want, 12) == 0 && memcmp(mask + 12, want, 12) == 0);
    close_built();
}

/* Each band by its own samples, also in a list of bands, chunky and planar. */
static void test_masks_by_nodata(void) {
    static const uint8_t planar[] = {5, 1, 2, 3, 4, 5, 6, 5}, chunky[] = {5, 4, 1, 5, 2, 6, 3, 5};
    static const uint8_t first[] = {0, 255, 255, 255}, second[] = {255, 0, 255, 0};
    static const uint32_t list[] = {2, 1, 2};
    uint8_t mask[12];
    for (int is_planar = 0; is_planar < 2; is_planar++) {
        build_open(&built, false, false);
        build_image(&built, 4, 1, 2, 8, 1, is_planar ? planar : chunky);
        if (is_planar) {
            build_short(&built, 284, 2);
            uint32_t offsets[] = {8, 12}, counts[] = {4, 4};
            built.entries[5].tag = 60000; /* one strip's arrays become those of two planes */
            built.entries[8].tag = 60001;
            build_tag(&built, 273, BUILD_LONG, 2, offsets);
            build_tag(&built, 279, BUILD_LONG, 2, counts);
        }
        build_text(&built, 42113, "5");
        build_directory(&built, true);
        CHECK(open_with(NULL) == COGPU_OK);
        read_mask(mask, 4, 1, 2, NULL);
        CHECK(memcmp(mask, first, 4) == 0 && memcmp(mask + 4, second, 4) == 0);
        read_mask(mask, 4, 1, 3, list);
        CHECK(memcmp(mask, second, 4) == 0 && memcmp(mask + 4, first, 4) == 0);
        CHECK(memcmp(mask + 8, second, 4) == 0);
        close_built();
    }
}

static void test_masks_by_alpha_and_none(void) {
    static const uint8_t pixels[] = {9, 0, 0, 7, 5, 255, 0, 0};
    static const uint8_t want[] = {0, 255, 255, 0};
    uint8_t mask[8];
    build_open(&built, false, false);
    build_image(&built, 4, 1, 2, 8, 1, pixels);
    build_short(&built, 338, 2);
    build_directory(&built, true);
    CHECK(open_with(NULL) == COGPU_OK);
    read_mask(mask, 4, 1, 2, NULL);
    CHECK(memcmp(mask, want, 4) == 0);
    close_built();
    build_open(&built, false, false);
    build_image(&built, 4, 1, 2, 8, 1, pixels);
    build_directory(&built, true);
    CHECK(open_with(NULL) == COGPU_OK);
    read_mask(mask, 4, 1, 2, NULL);
    for (int i = 0; i < 8; i++)
        CHECK(mask[i] == 255);
    close_built();
}

/* ---- strides ---- */

static void test_strides(void) {
    const image_kind kind = {
        .width = 5, .height = 4, .bands = 3, .tile_width = 3, .tile_height = 2, .compression = 5};
    uint8_t pixels[60];
    open_kind(&kind);
    cogpu_raster chunky = {.struct_size = sizeof(cogpu_raster),
                           .data = pixels,
                           .type = COGPU_TYPE_U8,
                           .bands = 3,
                           .width = 5,
                           .height = 4,
                           .stride_x = 3,
                           .stride_y = 15,
                           .stride_band = 1};
    CHECK(cogpu_read(file, NULL, &chunky, NULL, &error) == COGPU_OK);
    for (uint32_t i = 0; i < 60; i++)
        CHECK(pixels[i] == kind_sample(&kind, i % 3, i / 3 % 5, i / 15));
    cogpu_raster reversed = {.struct_size = sizeof(cogpu_raster),
                             .data = pixels + 59,
                             .type = COGPU_TYPE_U8,
                             .bands = 3,
                             .width = 5,
                             .height = 4,
                             .stride_x = -1,
                             .stride_y = -5,
                             .stride_band = -20};
    CHECK(cogpu_read(file, NULL, &reversed, NULL, &error) == COGPU_OK);
    for (uint32_t i = 0; i < 60; i++)
        CHECK(pixels[59 - i] == kind_sample(&kind, i / 20, i % 5, i / 5 % 4));
    close_built();
}

/* ---- many, contexts, threads ---- */

static void test_many_items(void) {
    const image_kind kind = {.width = 40,
                             .height = 40,
                             .tile_width = 16,
                             .tile_height = 16,
                             .compression = 8,
                             .bits = 16};
    cogpu_read_item items[12];
    cogpu_request requests[12];
    cogpu_raster rasters[12];
    cogpu_context *context = NULL;
    CHECK(cogpu_context_open(&(cogpu_context_options){.struct_size = sizeof(cogpu_context_options),
                                                      .threads = 3,
                                                      .cache_bytes = 1 << 20},
                             &context, &error) == COGPU_OK);
    open_kind(&kind);
    for (int with = 0; with < 2; with++) {
        for (uint32_t i = 0; i < 12; i++) {
            requests[i] = (cogpu_request){.struct_size = sizeof(cogpu_request),
                                          .level = i == 5 || i == 8 ? 7 : 0,
                                          .x = i,
                                          .y = 2 * i,
                                          .width = 20,
                                          .height = 10};
            rasters[i] = raster_of(&kind, 20, 10, 1);
            items[i] = (cogpu_read_item){.struct_size = sizeof(cogpu_read_item),
                                         .file = file,
                                         .request = &requests[i],
                                         .raster = &rasters[i],
                                         .status = COGPU_DEVICE_ERROR};
        }
        CHECK(cogpu_read_many(items, 12, with ? context : NULL, &error) == COGPU_NOT_FOUND);
        CHECK(strstr(error.message, "level 7"));
        for (uint32_t i = 0; i < 12; i++) {
            CHECK(items[i].status == (i == 5 || i == 8 ? COGPU_NOT_FOUND : COGPU_OK));
            CHECK(i == 5 || i == 8 ||
                  pixels_match(&kind, rasters[i].data, i, 2 * i, 20, 10, NULL, 0));
            free(rasters[i].data);
        }
    }
    close_built();
    cogpu_context_close(context);
}

static void test_an_item_without_a_file_fails_alone(void) {
    const image_kind kind = {.width = 4, .height = 4};
    uint8_t pixels[2][16];
    open_kind(&kind);
    cogpu_read_item items[2] = {
        {.struct_size = sizeof(cogpu_read_item), .file = NULL, .status = COGPU_OK},
        {.struct_size = sizeof(cogpu_read_item), .file = file}};
    cogpu_raster rasters[2];
    for (int i = 0; i < 2; i++) {
        rasters[i] = (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                                    .data = pixels[i],
                                    .type = COGPU_TYPE_U8,
                                    .bands = 1,
                                    .width = 4,
                                    .height = 4};
        items[i].raster = &rasters[i];
    }
    CHECK(cogpu_read_many(items, 2, NULL, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(items[0].status == COGPU_INVALID_ARGUMENT && items[1].status == COGPU_OK);
    CHECK(pixels_match(&kind, pixels[1], 0, 0, 4, 4, NULL, 0));
    close_built();
}

static void test_the_cache_serves_later_reads(void) {
    const image_kind kind = {
        .width = 40, .height = 40, .tile_width = 16, .tile_height = 16, .compression = 50000};
    const image_kind other = {.width = 40,
                              .height = 40,
                              .tile_width = 16,
                              .tile_height = 16,
                              .compression = 50000,
                              .seed = 77};
    cogpu_context *context = NULL;
    CHECK(cogpu_context_open(&(cogpu_context_options){.struct_size = sizeof(cogpu_context_options),
                                                      .threads = 2,
                                                      .cache_bytes = 1 << 20},
                             &context, &error) == COGPU_OK);
    open_kind(&kind);
    cogpu_request request = {.struct_size = sizeof(cogpu_request), .context = context, .x = 3};
    CHECK(faults(&kind, request) == 0 && result.cached_blocks == 0);
    CHECK(faults(&kind, request) == 0 && result.cached_blocks == 9 && result.bytes_read == 0);
    CHECK(faults(&kind, (cogpu_request){.struct_size = sizeof(cogpu_request),
                                        .context = context,
                                        .width = 17,
                                        .height = 1}) == 0);
    CHECK(result.blocks == 2 && result.cached_blocks == 2);
    close_built();
    open_kind(&other); /* another file, perhaps at the same address */
    CHECK(faults(&other, request) == 0 && result.cached_blocks == 0);
    close_built();
    cogpu_context_close(context);
}

struct reader {
    const image_kind *kind;
    cogpu_context *context;
    int wrong;
};

/* Windows that are worth more than one thread. */
static void *read_often(void *argument) {
    enum { SIDE = 370 };
    struct reader *reader = argument;
    for (uint32_t i = 0; i < 12; i++) {
        cogpu_request request = {.struct_size = sizeof(cogpu_request),
                                 .x = i,
                                 .y = i / 2,
                                 .width = SIDE,
                                 .height = SIDE,
                                 .threads = 1 + i % 3,
                                 .context = i & 1 ? reader->context : NULL};
        cogpu_raster raster = raster_of(reader->kind, SIDE, SIDE, 1);
        reader->wrong += cogpu_read(file, &request, &raster, NULL, NULL) != COGPU_OK ||
                         !pixels_match(reader->kind, raster.data, i, i / 2, SIDE, SIDE, NULL, 0);
        free(raster.data);
    }
    return NULL;
}

static void test_threads_on_one_file_and_one_context(void) {
    const image_kind kind = {.width = 400,
                             .height = 400,
                             .tile_width = 32,
                             .tile_height = 32,
                             .compression = 8,
                             .bits = 16,
                             .apart = true};
    struct reader readers[3];
    pthread_t threads[3];
    cogpu_context *context = NULL;
    CHECK(cogpu_context_open(&(cogpu_context_options){.struct_size = sizeof(cogpu_context_options),
                                                      .threads = 3,
                                                      .cache_bytes = 100000},
                             &context, &error) == COGPU_OK);
    open_kind(&kind);
    for (int i = 0; i < 3; i++) {
        readers[i] = (struct reader){.kind = &kind, .context = context};
        CHECK(pthread_create(&threads[i], NULL, read_often, &readers[i]) == 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        CHECK(readers[i].wrong == 0);
    }
    close_built();
    cogpu_context_close(context);
}

/* ---- limits ---- */

static cogpu_status status_with(const image_kind *kind, cogpu_limits limits) {
    cogpu_raster raster = raster_of(kind, kind->width, kind->height, kind_bands(kind));
    build_one(&built, kind);
    cogpu_status status = open_with(&limits);
    if (status == COGPU_OK)
        status = cogpu_read(file, NULL, &raster, NULL, &error);
    free(raster.data);
    close_built();
    return status;
}

static void test_limits_just_met_and_just_missed(void) {
    const image_kind kind = {.width = 20, .height = 20, .compression = 8};
    CHECK(status_with(&kind, (cogpu_limits){.struct_size = sizeof(cogpu_limits),
                                            .block_bytes = 411}) == COGPU_OK);
    CHECK(status_with(&kind, (cogpu_limits){.struct_size = sizeof(cogpu_limits),
                                            .block_bytes = 410}) == COGPU_LIMIT_EXCEEDED);
    CHECK(strstr(error.message, "block_bytes"));
    CHECK(status_with(&kind, (cogpu_limits){.struct_size = sizeof(cogpu_limits),
                                            .working_memory_bytes = 10}) == COGPU_LIMIT_EXCEEDED);
    const image_kind tiled = {.width = 20, .height = 20, .tile_width = 2, .tile_height = 2};
    CHECK(status_with(&tiled, (cogpu_limits){.struct_size = sizeof(cogpu_limits), .blocks = 100}) ==
          COGPU_OK);
    CHECK(status_with(&tiled, (cogpu_limits){.struct_size = sizeof(cogpu_limits), .blocks = 99}) ==
          COGPU_LIMIT_EXCEEDED);
}

/* ---- tags ---- */

static void test_tags(void) {
    uint16_t value = 0;
    cogpu_tag tag = COGPU_TAG_INIT;
    cogpu_directory directory = COGPU_DIRECTORY_INIT;
    open_kind(&(image_kind){.width = 300, .height = 2});
    CHECK(cogpu_directory_info(file, 0, &directory, &error) == COGPU_OK);
    CHECK(directory.directory_count == 1 && directory.parent == -1);
    CHECK(cogpu_directory_info(file, 1, &directory, &error) == COGPU_NOT_FOUND);
    CHECK(cogpu_tag_info(file, 0, 0, &tag, &error) == COGPU_OK && tag.id == 256);
    CHECK(cogpu_tag_info(file, 0, directory.tag_count, &tag, &error) == COGPU_NOT_FOUND);
    CHECK(cogpu_tag_read(file, 0, 262, 0, 1, &value, &error) == COGPU_OK && value == 1);
    CHECK(cogpu_tag_read(file, 0, 262, 0, 2, &value, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_tag_read(file, 0, 263, 0, 1, &value, &error) == COGPU_NOT_FOUND);
    CHECK(cogpu_tag_read(file, 0, 65536 + 262, 0, 1, &value, &error) == COGPU_NOT_FOUND);
    CHECK(cogpu_tag_read(file, 0, 262, 0, 0, NULL, &error) == COGPU_OK);
    CHECK(cogpu_tag_read(NULL, 0, 262, 0, 1, &value, &error) == COGPU_INVALID_ARGUMENT);
    close_built();
}

/* ---- files that would cost more than they are ---- */

static cogpu_status built_read(void *user, uint64_t offset, size_t bytes, void *to, size_t *got) {
    const tiff_builder *from = user;
    uint64_t left = offset < from->size ? from->size - offset : 0;
    *got = bytes < left ? bytes : (size_t)left;
    memcpy(to, from->bytes + offset, *got);
    return COGPU_OK;
}

static cogpu_status built_size(void *user, uint64_t *bytes) {
    *bytes = ((const tiff_builder *)user)->size;
    return COGPU_OK;
}

/* From memory, or through the functions of a source: then blocks are in scratch memory. */
static cogpu_status open_either(bool is_source) {
    cogpu_source source = {.struct_size = sizeof(cogpu_source),
                           .user = &built,
                           .read = built_read,
                           .size = built_size};
    file = NULL;
    return is_source ? cogpu_open_source(&source, NULL, &file, &error) : open_with(NULL);
}

/* T208: BigTIFF offsets near 2^64, in a run with valid ones: once an out-of-bounds read. */
static void test_spans_that_wrap(void) {
    static const struct {
        uint64_t offsets[3], counts[3];
    } cases[] = {{{UINT64_MAX - 511, 40, 100}, {540, 30, 30}},
                 {{40, 100, 200}, {30, UINT64_MAX - 59, 30}},
                 {{40, UINT64_MAX, 200}, {UINT64_MAX, 2, UINT64_MAX - 100}}};
    for (size_t i = 0; i < 3; i++)
        for (uint16_t fill_order = 1; fill_order <= 2; fill_order++)
            for (int is_source = 0; is_source < 2; is_source++) {
                uint8_t pixels[48 * 16];
                cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                                       .data = pixels,
                                       .type = COGPU_TYPE_U8,
                                       .bands = 1,
                                       .width = 48,
                                       .height = 16};
                build_open(&built, false, true);
                build_data(&built, NULL, 1000);
                build_short(&built, 256, 48);
                build_short(&built, 257, 16);
                build_short(&built, 258, 8);
                build_short(&built, 259, 32773);
                build_short(&built, 266, fill_order);
                build_short(&built, 322, 16);
                build_short(&built, 323, 16);
                build_tag(&built, 324, BUILD_LONG8, 3, cases[i].offsets);
                build_tag(&built, 325, BUILD_LONG8, 3, cases[i].counts);
                build_directory(&built, true);
                CHECK(open_either(is_source) == COGPU_OK);
                CHECK(cogpu_read(file, NULL, &raster, NULL, &error) == COGPU_CORRUPT);
                close_built();
            }
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static long peak_kilobytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* A zstd frame of blocks that each repeat one byte: 4 bytes for 128 KiB. */
static size_t put_repeats(uint8_t *to, size_t bytes) {
    static const uint8_t frame[] = {0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58};
    size_t size = sizeof frame;
    memcpy(to, frame, sizeof frame);
    for (size_t left = bytes, some; left > 0; left -= some) {
        some = left < 1 << 17 ? left : 1 << 17;
        uint32_t header = (uint32_t)(some << 3) | 2 | (left == some);
        for (int k = 0; k < 3; k++)
            to[size++] = (uint8_t)(header >> (8 * k));
        to[size++] = 0x55;
    }
    return size;
}

/* T217, T218: a kilobyte of file, rows of 65,535 bands of a bit, one of which is requested. */
static void test_one_band_of_very_many(void) {
    enum { WIDTH = 1500, HEIGHT = 32, BANDS = 65535 };
    static uint8_t pixels[WIDTH * HEIGHT], stream[4096];
    const uint32_t band = 4;
    uint32_t offsets[HEIGHT], counts[HEIGHT];
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = pixels,
                           .type = COGPU_TYPE_U8,
                           .bands = 1,
                           .width = WIDTH,
                           .height = HEIGHT};
    size_t bytes = put_repeats(stream, ((size_t)WIDTH * BANDS + 7) / 8);
    build_open(&built, false, false);
    uint32_t at = (uint32_t)build_data(&built, stream, bytes);
    for (int i = 0; i < HEIGHT; i++) {
        offsets[i] = at;
        counts[i] = (uint32_t)bytes;
    }
    build_long(&built, 256, WIDTH);
    build_long(&built, 257, HEIGHT);
    build_short(&built, 259, 50000);
    build_short(&built, 277, BANDS);
    build_short(&built, 278, 1);
    build_tag(&built, 273, BUILD_LONG, HEIGHT, offsets);
    build_tag(&built, 279, BUILD_LONG, HEIGHT, counts);
    build_directory(&built, true);
    CHECK(built.size < 1024);
    CHECK(open_with(NULL) == COGPU_OK);
    cogpu_request request = {
        .struct_size = sizeof(cogpu_request), .bands = &band, .band_count = 1, .threads = 16};
    double start = seconds();
    long before = peak_kilobytes();
    cogpu_status status = cogpu_read(file, &request, &raster, NULL, &error);
    CHECK(status == COGPU_OK || status == COGPU_UNSUPPORTED); /* a build without zstd */
    CHECK(status != COGPU_OK || pixels[0] == 1);              /* the fourth bit of 0x55 */
    CHECK(seconds() - start < 5);
    CHECK(peak_kilobytes() - before < 150 << 10);
    close_built();
}

/* T218: very many blocks that share one long span. */
static void test_blocks_that_share_a_long_span(void) {
    enum { SIDE = 200, SPAN = 200000 };
    static uint32_t shared[SIDE * SIDE];
    static uint8_t pixels[SIDE * SIDE];
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = pixels,
                           .type = COGPU_TYPE_U8,
                           .bands = 1,
                           .width = SIDE,
                           .height = SIDE};
    build_open(&built, false, false);
    uint32_t at = (uint32_t)build_data(&built, NULL, SPAN);
    build_long(&built, 256, SIDE);
    build_long(&built, 257, SIDE);
    build_short(&built, 258, 8);
    build_short(&built, 259, 32773);
    build_short(&built, 266, 2);
    build_short(&built, 322, 1);
    build_short(&built, 323, 1);
    for (int i = 0; i < SIDE * SIDE; i++)
        shared[i] = at;
    build_tag(&built, 324, BUILD_LONG, SIDE * SIDE, shared);
    for (int i = 0; i < SIDE * SIDE; i++)
        shared[i] = SPAN;
    build_tag(&built, 325, BUILD_LONG, SIDE * SIDE, shared);
    build_directory(&built, true);
    CHECK(open_with(NULL) == COGPU_OK);
    double start = seconds();
    CHECK(cogpu_read(file, &(cogpu_request){.struct_size = sizeof(cogpu_request), .threads = 1},
                     &raster, NULL, &error) == COGPU_OK);
    CHECK(seconds() - start < 5);
    close_built();
}

TESTS(read) {
    RUN(test_every_layout_and_codec);
    RUN(test_every_window);
    RUN(test_slices_of_a_tall_block);
    RUN(test_wrong_arguments);
    RUN(test_null_arguments);
    RUN(test_sparse_blocks);
    RUN(test_a_bad_block_is_named);
    RUN(test_bad_blocks_are_filled_when_asked);
    RUN(test_the_first_bad_block_is_the_first);
    RUN(test_an_unknown_codec);
    RUN(test_levels);
    RUN(test_masks_of_a_directory);
    RUN(test_masks_by_nodata);
    RUN(test_masks_by_alpha_and_none);
    RUN(test_strides);
    RUN(test_many_items);
    RUN(test_an_item_without_a_file_fails_alone);
    RUN(test_the_cache_serves_later_reads);
    RUN(test_threads_on_one_file_and_one_context);
    RUN(test_limits_just_met_and_just_missed);
    RUN(test_tags);
    RUN(test_spans_that_wrap);
    RUN(test_one_band_of_very_many);
    RUN(test_blocks_that_share_a_long_span);
    return FINISH();
}
