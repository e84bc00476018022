/*
 * The cache of decoded blocks as it is by default: which blocks it keeps, of blocks that are
 * decoded as they are read how many rows, and that files and contexts may be closed in any order.
 */
#include "cogpu.h"

#include "support/fixture.h"
#include "support/test.h"

#include <pthread.h>

static tiff_builder built;
static cogpu_file *file;
static cogpu_context *context;
static cogpu_error error;
static cogpu_result result = COGPU_RESULT_INIT;

static void open_kind(const image_kind *kind) {
    build_one(&built, kind);
    file = NULL;
    CHECK(cogpu_open_memory(built.bytes, built.size, NULL, &file, &error) == COGPU_OK);
}

static void open_context(void) {
    CHECK(cogpu_context_open(NULL, &context, &error) == COGPU_OK);
}

static void close_all(void) {
    cogpu_close(file);
    cogpu_context_close(context);
    build_close(&built);
}

/* Blocks that come from the cache; UINT64_MAX if the pixels are wrong. */
static uint64_t cached_of(const image_kind *kind, uint32_t x, uint32_t y, uint32_t width,
                          uint32_t height) {
    cogpu_request request = COGPU_REQUEST_INIT;
    request.context = context;
    request.x = x;
    request.y = y;
    request.width = width;
    request.height = height;
    cogpu_raster raster = raster_of(kind, width, height, kind_bands(kind));
    bool is_right = cogpu_read(file, &request, &raster, &result, &error) == COGPU_OK &&
                    pixels_match(kind, raster.data, x, y, width, height, NULL, 0);
    free(raster.data);
    return is_right ? result.cached_blocks : UINT64_MAX;
}

static const image_kind tiled = {
    .width = 40, .height = 40, .tile_width = 16, .tile_height = 16, .compression = 8};

static void test_blocks_that_are_needed_in_part_are_kept(void) {
    open_context();
    open_kind(&tiled);
    CHECK(cached_of(&tiled, 0, 0, 40, 40) == 0 && result.blocks == 9);
    CHECK(cached_of(&tiled, 0, 0, 40, 40) == 0); /* nothing was left of them */
    CHECK(cached_of(&tiled, 3, 0, 37, 40) == 0);
    CHECK(cached_of(&tiled, 3, 0, 37, 40) == 3); /* the first column */
    CHECK(cached_of(&tiled, 0, 0, 40, 31) == 2); /* of it the third row is not needed */
    CHECK(cached_of(&tiled, 0, 0, 40, 40) == 5); /* the second row was not needed whole */
    close_all();
}

static void test_single_bands_of_interleaved_blocks_are_kept(void) {
    static const uint32_t first[] = {1};
    for (int planar = 0; planar < 2; planar++) {
        image_kind kind = tiled;
        kind.bands = 3;
        kind.planar = planar;
        open_context();
        open_kind(&kind);
        for (uint64_t time = 0; time < 2; time++) {
            cogpu_request request = COGPU_REQUEST_INIT;
            request.context = context;
            request.bands = first;
            request.band_count = 1;
            cogpu_raster raster = raster_of(&kind, 40, 40, 1);
            CHECK(cogpu_read(file, &request, &raster, &result, &error) == COGPU_OK);
            CHECK(pixels_match(&kind, raster.data, 0, 0, 40, 40, first, 1));
            CHECK(result.cached_blocks == (planar ? 0 : 9 * time));
            free(raster.data);
        }
        close_all();
    }
}

/* The macro and NULL say the default; a number is a number. */
static void test_options(void) {
    cogpu_context_options options[3] = {COGPU_CONTEXT_OPTIONS_INIT, COGPU_CONTEXT_OPTIONS_INIT,
                                        COGPU_CONTEXT_OPTIONS_INIT};
    static const uint64_t expected[3] = {4, 0, 9};
    options[1].cache_bytes = 0;
    options[2].cache_bytes = 1 << 20;
    open_kind(&tiled);
    for (int i = 0; i < 3; i++) {
        CHECK(cogpu_context_open(&options[i], &context, &error) == COGPU_OK);
        CHECK(cached_of(&tiled, 0, 0, 40, 40) == 0);
        CHECK(cached_of(&tiled, 8, 8, 16, 16) == (i == 2 ? 4 : 0));
        CHECK(cached_of(&tiled, 0, 0, 40, 40) == expected[i]);
        cogpu_context_close(context);
    }
    context = NULL;
    CHECK(cached_of(&tiled, 8, 8, 16, 16) == 0 && cached_of(&tiled, 8, 8, 16, 16) == 0);
    close_all();
}

/* Decoded as they are read: 9 MB in one block. Down to row 99; then, for a row more, all. */
static const image_kind tall = {.width = 900, .height = 10000, .compression = 8};

static void test_rows_of_a_tall_block(void) {
    open_context();
    open_kind(&tall);
    CHECK(cached_of(&tall, 5, 20, 100, 80) == 0);
    CHECK(cached_of(&tall, 600, 0, 300, 100) == 1);
    CHECK(cached_of(&tall, 5, 50, 100, 51) == 0);
    CHECK(cached_of(&tall, 0, 9000, 900, 1000) == 1);
    CHECK(cached_of(&tall, 0, 0, 900, 10000) == 1);
    close_all();
}

static void test_a_tall_block_read_whole_is_not_kept(void) {
    open_context();
    open_kind(&tall);
    CHECK(cached_of(&tall, 0, 0, 900, 10000) == 0);
    CHECK(cached_of(&tall, 0, 0, 900, 10) == 0);
    close_all();
}

/* Rows before the damage are read as without a cache. */
static void test_damage_behind_the_rows(void) {
    open_context();
    build_one(&built, &tall);
    built.bytes[built.size * 3 / 4] ^= 0xFF;
    for (size_t i = 0; i < 70000; i++)
        built.bytes[built.size * 3 / 4 + i] = 0xFF;
    CHECK(cogpu_open_memory(built.bytes, built.size, NULL, &file, &error) == COGPU_OK);
    CHECK(cached_of(&tall, 0, 0, 10, 10) == 0);
    CHECK(cached_of(&tall, 0, 100, 10, 10) == 0); /* all of it cannot be decoded */
    CHECK(cached_of(&tall, 0, 2000, 10, 10) == 0);
    CHECK(cached_of(&tall, 0, 5, 10, 5) == 1);
    CHECK(cached_of(&tall, 0, 9900, 10, 100) == UINT64_MAX && error.status == COGPU_CORRUPT);
    CHECK(cached_of(&tall, 0, 0, 10, 10) == 1);
    close_all();
}

static void test_any_order_of_closing(void) {
    open_kind(&tiled);
    for (int i = 0; i < 3; i++) { /* the file outlives contexts */
        open_context();
        CHECK(cached_of(&tiled, 8, 8, 16, 16) == 0 && cached_of(&tiled, 8, 8, 16, 16) == 4);
        cogpu_context_close(context);
    }
    cogpu_close(file);
    build_close(&built);
    open_context();
    for (int i = 0; i < 3; i++) { /* a context outlives files */
        open_kind(&tiled);
        CHECK(cached_of(&tiled, 8, 8, 16, 16) == 0 && cached_of(&tiled, 8, 8, 16, 16) == 4);
        cogpu_close(file);
        build_close(&built);
    }
    cogpu_context_close(context);
}

struct reader {
    const image_kind *kind;
    uint32_t seed;
    int wrong;
};

static void *read_often(void *argument) {
    struct reader *reader = argument;
    uint32_t state = reader->seed;
    for (uint32_t i = 0; i < 20; i++) {
        uint32_t place[2];
        for (int k = 0; k < 2; k++)
            place[k] = (state = state * 1664525u + 1013904223u) >> 12;
        uint32_t x = place[0] % (reader->kind->width - 30), y = place[1] % 200;
        cogpu_request request = COGPU_REQUEST_INIT;
        request.context = context;
        request.x = x;
        request.y = y;
        request.width = request.height = 30;
        request.threads = 1 + i % 2;
        cogpu_raster raster = raster_of(reader->kind, 30, 30, 1);
        reader->wrong += cogpu_read(file, &request, &raster, NULL, NULL) != COGPU_OK ||
                         !pixels_match(reader->kind, raster.data, x, y, 30, 30, NULL, 0);
        free(raster.data);
    }
    return NULL;
}

static void test_threads(void) {
    static const image_kind kinds[] = {
        {.width = 300, .height = 230, .tile_width = 32, .tile_height = 32, .compression = 8},
        {.width = 900, .height = 10000, .compression = 5}};
    for (size_t k = 0; k < 2; k++) {
        struct reader readers[3];
        pthread_t threads[3];
        open_context();
        open_kind(&kinds[k]);
        for (uint32_t i = 0; i < 3; i++) {
            readers[i] = (struct reader){.kind = &kinds[k], .seed = i};
            CHECK(pthread_create(&threads[i], NULL, read_often, &readers[i]) == 0);
        }
        for (int i = 0; i < 3; i++) {
            pthread_join(threads[i], NULL);
            CHECK(readers[i].wrong == 0);
        }
        close_all();
    }
}

TESTS(default_cache) {
    RUN(test_blocks_that_are_needed_in_part_are_kept);
    RUN(test_single_bands_of_interleaved_blocks_are_kept);
    RUN(test_options);
    RUN(test_rows_of_a_tall_block);
    RUN(test_a_tall_block_read_whole_is_not_kept);
    RUN(test_damage_behind_the_rows);
    RUN(test_any_order_of_closing);
    RUN(test_threads);
    return FINISH();
}
