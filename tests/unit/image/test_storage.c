/*
 * How a directory stores its pixels: defaults (T008, T009), bands that differ (T021, T022), depths
 * (T023-T027), predictors that do not fit (T042, T044), sizes that make no sense or do not fit
 * (T020, T204, T206, T212, T215, T216), codecs (T015, T019).
 */
#include "image/image.h"

#include "support/test.h"
#include "support/tiff_builder.h"

static tiff_builder file;
static cogpu_storage storage;
static cogpu_error error;

static void begin(bool bigtiff) {
    build_open(&file, false, bigtiff);
}

/* An image of w x h with no other tag. */
static void begin_image(uint32_t width, uint32_t height) {
    begin(false);
    build_long(&file, 256, width);
    build_long(&file, 257, height);
}

static cogpu_status finish_with(cogpu_limits limits) {
    cogpu_tiff tiff;
    cogpu_arena arena;
    cogpu_io *io = NULL;
    limits = cogpu_limits_complete(&limits);
    build_directory(&file, true);
    const char *warning = NULL;
    cogpu_arena_open(&arena, 1 << 20);
    CHECK(cogpu_io_open_memory(file.bytes, file.size, &io, &error) == COGPU_OK);
    CHECK(cogpu_tiff_open(&tiff, io, &limits, &arena, &error) == COGPU_OK);
    cogpu_error_clear(&error);
    cogpu_status status = cogpu_storage_read(&tiff, 0, &arena, &storage, &warning, &error);
    CHECK(status == error.status);
    cogpu_io_close(io);
    cogpu_arena_close(&arena);
    build_close(&file);
    return status;
}

static cogpu_status finish(void) {
    return finish_with((cogpu_limits)COGPU_LIMITS_INIT);
}

/* T008, T009 */
static void test_defaults(void) {
    begin_image(10, 7);
    CHECK(finish() == COGPU_OK);
    CHECK(storage.bands == 1 && storage.bits == 1 && storage.type == COGPU_TYPE_U8);
    CHECK(storage.format.compression == COMPRESSION_NONE && storage.predictor == 1);
    CHECK(storage.planes == 1 && storage.layout == COGPU_LAYOUT_STRIPS && storage.orientation == 1);
    CHECK(storage.block_width == 10 && storage.block_height == 7 && storage.blocks == 1);
    CHECK(storage.format.row_bytes == 2 && storage.block_bytes == 14);
    CHECK(storage.format.fill_order == 1 && !storage.offsets && !storage.counts);
}

/* T020 */
static void test_sides(void) {
    static const struct {
        uint64_t width, height;
        cogpu_status status;
    } cases[] = {{0, 1, COGPU_CORRUPT},
                 {1, 0, COGPU_CORRUPT},
                 {1, 1, COGPU_OK},
                 {INT32_MAX, 1, COGPU_OK},
                 {1ULL << 31, 1, COGPU_CORRUPT},
                 {1, 1ULL << 31, COGPU_CORRUPT},
                 {1ULL << 32, 1, COGPU_CORRUPT},
                 {(1ULL << 32) + 1, 1, COGPU_CORRUPT},
                 {1, UINT64_MAX, COGPU_CORRUPT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(true);
        build_tag(&file, 256, BUILD_LONG8, 1, &cases[i].width);
        build_tag(&file, 257, BUILD_LONG8, 1, &cases[i].height);
        CHECK(finish() == cases[i].status);
    }
    begin(false);
    build_long(&file, 256, 5);
    CHECK(finish() == COGPU_CORRUPT);
    begin(false);
    build_shorts(&file, 256, 2, (const uint16_t[]){5, 5});
    build_short(&file, 257, 5);
    CHECK(finish() == COGPU_CORRUPT);
}

/* T206, T215 */
static void test_bands(void) {
    begin_image(4, 4);
    build_short(&file, 277, 0);
    CHECK(finish() == COGPU_CORRUPT);
    begin_image(4, 4);
    build_short(&file, 277, 65535);
    CHECK(finish() == COGPU_OK && storage.bands == 65535);
    begin_image(4, 4);
    build_long(&file, 277, 65536);
    CHECK(finish() == COGPU_LIMIT_EXCEEDED && strstr(error.message, "bands"));
    begin_image(4, 4);
    build_short(&file, 277, 4);
    CHECK(finish_with((cogpu_limits){.struct_size = sizeof(cogpu_limits), .bands = 3}) ==
          COGPU_LIMIT_EXCEEDED);
    begin_image(4, 4);
    build_short(&file, 277, 3);
    CHECK(finish_with((cogpu_limits){.struct_size = sizeof(cogpu_limits), .bands = 3}) == COGPU_OK);
}

/* However high the limit is set, the number is not cut to 32 bits. */
static void test_bands_beyond_32_bits(void) {
    static const uint64_t bands[] = {1ULL << 32, (1ULL << 32) + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof bands / sizeof *bands; i++) {
        begin(true);
        build_short(&file, 256, 4);
        build_short(&file, 257, 4);
        build_tag(&file, 277, BUILD_LONG8, 1, &bands[i]);
        CHECK(finish_with((cogpu_limits){.struct_size = sizeof(cogpu_limits),
                                         .bands = UINT64_MAX}) != COGPU_OK);
    }
}

/* T021, T022 */
static void test_bands_that_differ(void) {
    begin_image(4, 4);
    build_short(&file, 277, 4);
    build_shorts(&file, 258, 4, (const uint16_t[]){16, 16, 16, 8});
    CHECK(finish() == COGPU_UNSUPPORTED && strstr(error.message, "BitsPerSample"));
    begin_image(4, 4);
    build_short(&file, 277, 3);
    build_short(&file, 258, 32);
    build_shorts(&file, 339, 3, (const uint16_t[]){3, 1, 3});
    CHECK(finish() == COGPU_UNSUPPORTED);
    begin_image(4, 4);
    build_short(&file, 277, 3);
    build_shorts(&file, 258, 2, (const uint16_t[]){8, 8});
    CHECK(finish() == COGPU_CORRUPT);
    begin_image(4, 4);
    build_short(&file, 277, 3);
    build_short(&file, 258, 8);
    build_raw(&file, 339, BUILD_SHORT, 0, "", 0);
    CHECK(finish() == COGPU_OK && storage.type == COGPU_TYPE_U8);
    /* The odd one behind the first 64. */
    uint16_t bits[200];
    for (size_t i = 0; i < 200; i++)
        bits[i] = 8;
    bits[199] = 9;
    begin_image(4, 4);
    build_short(&file, 277, 200);
    build_shorts(&file, 258, 200, bits);
    CHECK(finish() == COGPU_UNSUPPORTED);
    /* More values than bands do no harm. */
    begin_image(4, 4);
    build_short(&file, 277, 199);
    build_shorts(&file, 258, 200, bits);
    CHECK(finish() == COGPU_OK);
}

static cogpu_type type_of(uint16_t format, uint16_t bits) {
    begin_image(4, 4);
    build_short(&file, 258, bits);
    build_short(&file, 339, format);
    cogpu_status status = finish();
    CHECK(status == COGPU_OK || status == COGPU_UNSUPPORTED);
    return status == COGPU_OK ? storage.type : COGPU_TYPE_NONE;
}

/* T023-T027 */
static void test_types(void) {
    for (uint16_t bits = 0; bits < 140; bits++) {
        cogpu_type u = bits == 0    ? COGPU_TYPE_NONE
                       : bits <= 8  ? COGPU_TYPE_U8
                       : bits <= 16 ? COGPU_TYPE_U16
                       : bits <= 32 ? COGPU_TYPE_U32
                       : bits == 64 ? COGPU_TYPE_U64
                                    : COGPU_TYPE_NONE;
        CHECK(type_of(1, bits) == u && type_of(4, bits) == u);
        CHECK(type_of(2, bits) == (u ? u + 1 : u));
        cogpu_type f = bits == 16                 ? COGPU_TYPE_F16
                       : bits == 24 || bits == 32 ? COGPU_TYPE_F32
                       : bits == 64               ? COGPU_TYPE_F64
                                                  : COGPU_TYPE_NONE;
        CHECK(type_of(3, bits) == f);
        CHECK(type_of(5, bits) == (bits == 32   ? COGPU_TYPE_CI16
                                   : bits == 64 ? COGPU_TYPE_CI32
                                                : COGPU_TYPE_NONE));
        CHECK(type_of(6, bits) == (bits == 64    ? COGPU_TYPE_CF32
                                   : bits == 128 ? COGPU_TYPE_CF64
                                                 : COGPU_TYPE_NONE));
    }
    CHECK(type_of(0, 8) == COGPU_TYPE_NONE && type_of(7, 8) == COGPU_TYPE_NONE);
    CHECK(type_of(1, 65535) == COGPU_TYPE_NONE);
}

static cogpu_status predictor_status(uint16_t predictor, uint16_t bits, uint16_t format,
                                     uint16_t compression) {
    begin_image(4, 4);
    build_short(&file, 258, bits);
    build_short(&file, 339, format);
    build_short(&file, 259, compression);
    build_short(&file, 317, predictor);
    return finish();
}

/* T042, T044; with codecs that take none the tag means nothing (T015). */
static void test_predictors(void) {
    CHECK(predictor_status(2, 8, 1, 8) == COGPU_OK && storage.predictor == 2);
    CHECK(predictor_status(2, 16, 3, 5) == COGPU_OK && predictor_status(2, 64, 2, 8) == COGPU_OK);
    CHECK(predictor_status(2, 4, 1, 8) == COGPU_CORRUPT);
    CHECK(predictor_status(2, 12, 1, 8) == COGPU_CORRUPT);
    CHECK(predictor_status(2, 24, 1, 8) == COGPU_CORRUPT);
    CHECK(predictor_status(3, 32, 3, 8) == COGPU_OK && storage.predictor == 3);
    CHECK(predictor_status(3, 24, 3, 8) == COGPU_OK && predictor_status(3, 16, 3, 8) == COGPU_OK);
    CHECK(predictor_status(3, 32, 1, 8) == COGPU_CORRUPT);
    CHECK(predictor_status(3, 64, 6, 8) == COGPU_CORRUPT);
    CHECK(predictor_status(0, 8, 1, 8) == COGPU_UNSUPPORTED);
    CHECK(predictor_status(4, 8, 1, 8) == COGPU_UNSUPPORTED);
    CHECK(predictor_status(2, 8, 1, 1) == COGPU_OK && storage.predictor == 1);
    CHECK(predictor_status(99, 8, 1, 32773) == COGPU_OK && storage.predictor == 1);
}

/* T019: known when it is read, not when the file is opened. */
static void test_unknown_codecs_are_no_error_yet(void) {
    begin_image(4, 4);
    build_short(&file, 259, 12345);
    CHECK(finish() == COGPU_OK && storage.codec == NULL && storage.format.compression == 12345);
}

static cogpu_status tiles(uint32_t width, uint32_t height, uint32_t tile_width,
                          uint32_t tile_height) {
    begin_image(width, height);
    build_short(&file, 258, 8);
    build_long(&file, 322, tile_width);
    build_long(&file, 323, tile_height);
    return finish();
}

/* T009, T046, T056, T204, T215 */
static void test_grids(void) {
    CHECK(tiles(100, 50, 16, 16) == COGPU_OK && storage.across == 7 && storage.down == 4);
    CHECK(storage.blocks == 28 && storage.block_bytes == 256 &&
          storage.layout == COGPU_LAYOUT_TILES);
    CHECK(tiles(1, 1, 1 << 30, 1 << 30) == COGPU_OK && storage.blocks == 1);
    CHECK(storage.block_bytes == 1ULL << 60);
    CHECK(tiles(5, 5, 3, 1) == COGPU_OK && storage.blocks == 10);
    CHECK(tiles(5, 5, 0, 16) == COGPU_CORRUPT && tiles(5, 5, 16, 0) == COGPU_CORRUPT);
    CHECK(tiles(5, 5, 1u << 31, 1) == COGPU_CORRUPT && tiles(5, 5, 1, UINT32_MAX) == COGPU_CORRUPT);
    begin_image(5, 5);
    build_long(&file, 322, 16);
    CHECK(finish() == COGPU_CORRUPT);
    begin_image(5, 5);
    build_long(&file, 323, 16);
    CHECK(finish() == COGPU_CORRUPT);
}

static cogpu_status strips(uint32_t height, uint64_t rows) {
    begin(true);
    build_short(&file, 256, 3);
    build_long(&file, 257, height);
    build_tag(&file, 278, BUILD_LONG8, 1, &rows);
    return finish();
}

/* T009, T055, T215 */
static void test_strips(void) {
    CHECK(strips(10, 4) == COGPU_OK && storage.down == 3 && storage.block_height == 4);
    CHECK(cogpu_storage_rows(&storage, 0) == 4 && cogpu_storage_rows(&storage, 2) == 2);
    CHECK(strips(10, 10) == COGPU_OK && storage.down == 1);
    CHECK(strips(10, UINT32_MAX) == COGPU_OK && storage.block_height == 10);
    CHECK(strips(10, UINT64_MAX) == COGPU_OK && storage.block_height == 10);
    CHECK(strips(10, 0) == COGPU_CORRUPT);
}

/* T216 */
static void test_numbers_of_blocks(void) {
    CHECK(tiles(INT32_MAX, 1, 1, 1) == COGPU_OK && storage.blocks == INT32_MAX);
    CHECK(tiles(INT32_MAX, 2, 1, 1) == COGPU_LIMIT_EXCEEDED && strstr(error.message, "blocks"));
    CHECK(tiles(INT32_MAX, INT32_MAX, 1, 1) == COGPU_LIMIT_EXCEEDED);
    begin_image(10, 10);
    build_long(&file, 322, 1);
    build_long(&file, 323, 1);
    CHECK(finish_with((cogpu_limits){.struct_size = sizeof(cogpu_limits), .blocks = 100}) ==
          COGPU_OK);
    begin_image(10, 10);
    build_long(&file, 322, 1);
    build_long(&file, 323, 1);
    CHECK(finish_with((cogpu_limits){.struct_size = sizeof(cogpu_limits), .blocks = 99}) ==
          COGPU_LIMIT_EXCEEDED);
    /* Planes count. */
    begin_image(10, 10);
    build_long(&file, 322, 1);
    build_long(&file, 323, 1);
    build_short(&file, 277, 65535);
    build_short(&file, 284, 2);
    CHECK(finish_with((cogpu_limits){.struct_size = sizeof(cogpu_limits), .blocks = 6553499}) ==
          COGPU_LIMIT_EXCEEDED);
}

/* T212: a block of 2^31 x 2^31 pixels of 65535 bands of 16 bytes. */
static void test_sizes_that_overflow(void) {
    begin_image(1, 1);
    build_long(&file, 322, INT32_MAX);
    build_long(&file, 323, INT32_MAX);
    build_short(&file, 258, 128);
    build_short(&file, 339, 6);
    build_short(&file, 277, 65535);
    CHECK(finish() == COGPU_LIMIT_EXCEEDED);
    begin_image(INT32_MAX, 1);
    build_short(&file, 258, 128);
    build_short(&file, 339, 6);
    build_short(&file, 277, 65535);
    CHECK(finish() == COGPU_OK);
    CHECK(storage.format.row_bytes == (uint64_t)INT32_MAX * 16 * 65535);
    begin_image(1, 1);
    build_long(&file, 322, 1 << 20);
    build_long(&file, 323, 1 << 20);
    build_short(&file, 258, 8);
    build_long(&file, 32998, 1u << 31);
    CHECK(finish() == COGPU_LIMIT_EXCEEDED);
}

static void test_planar(void) {
    begin_image(8, 8);
    build_short(&file, 277, 3);
    build_short(&file, 284, 2);
    CHECK(finish() == COGPU_OK && storage.planes == 3 && storage.blocks == 3);
    CHECK(storage.format.samples == 1 && storage.format.row_bytes == 1);
    for (uint16_t planar = 0; planar <= 3; planar += 3) {
        begin_image(8, 8);
        build_short(&file, 284, planar);
        CHECK(finish() == COGPU_CORRUPT);
    }
}

/* Rows of packed samples end with a byte (T023). */
static void test_row_bytes(void) {
    for (uint16_t bits = 1; bits <= 32; bits++)
        for (uint16_t bands = 1; bands <= 3; bands++) {
            begin_image(13, 2);
            build_short(&file, 277, bands);
            build_short(&file, 258, bits);
            CHECK(finish() == COGPU_OK);
            CHECK(storage.format.row_bytes == (13u * bits * bands + 7) / 8);
            CHECK(storage.block_bytes == 2 * storage.format.row_bytes);
        }
}

/* T215: YCbCr's factors; T014: too few of them. */
static void test_subsampling(void) {
    for (uint16_t x = 0; x < 6; x++)
        for (uint16_t y = 0; y < 6; y++) {
            begin_image(8, 8);
            build_short(&file, 258, 8);
            build_short(&file, 277, 3);
            build_short(&file, 262, 6);
            build_shorts(&file, 530, 2, (const uint16_t[]){x, y});
            bool good = (x == 1 || x == 2 || x == 4) && (y == 1 || y == 2 || y == 4);
            CHECK(finish() == (good ? COGPU_OK : COGPU_CORRUPT));
        }
    begin_image(8, 8);
    build_short(&file, 258, 8);
    build_short(&file, 277, 3);
    build_short(&file, 262, 6);
    build_short(&file, 530, 2); /* one number: the default holds */
    CHECK(finish() == COGPU_OK);
    CHECK(storage.format.subsampling_x == 2 && storage.format.subsampling_y == 2);
}

static void test_strip_tags_of_a_tiled_image(void) {
    begin_image(16, 16);
    build_short(&file, 258, 8);
    build_long(&file, 322, 16);
    build_long(&file, 323, 16);
    build_long(&file, 273, 8);
    build_long(&file, 279, 256);
    CHECK(finish() == COGPU_OK && storage.offsets && storage.counts);
}

TESTS(storage) {
    RUN(test_defaults);
    RUN(test_sides);
    RUN(test_bands);
    RUN(test_bands_beyond_32_bits);
    RUN(test_bands_that_differ);
    RUN(test_types);
    RUN(test_predictors);
    RUN(test_unknown_codecs_are_no_error_yet);
    RUN(test_grids);
    RUN(test_strips);
    RUN(test_numbers_of_blocks);
    RUN(test_sizes_that_overflow);
    RUN(test_planar);
    RUN(test_row_bytes);
    RUN(test_subsampling);
    RUN(test_strip_tags_of_a_tiled_image);
    return FINISH();
}
