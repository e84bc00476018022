/*
 * Windows of one call that need the same blocks, on the emulated device: each block is read and
 * decoded once. Pixels, damage, failures and counts are those of windows that are read one by one.
 */
#include "support/device_reads.h"
#include "support/fake_cufile.h"
#include "support/stand_in.h"

static cogpu_error error;

/* ---- windows ------------------------------------------------------------------------------- */

enum { COUNT = 24, SIDE = 100 };

struct crops {
    const image_kind *kind;
    cogpu_request requests[COUNT];
    cogpu_raster rasters[COUNT];
    cogpu_result results[COUNT];
    cogpu_read_item items[COUNT];
};

static uint32_t draw_number(uint32_t *random, uint32_t below) {
    *random = *random * 1664525 + 1013904223;
    return (*random >> 8) % below;
}

/* Windows at any place of the image. */
static void open_crops(struct crops *crops, const struct image *image, bool fills, uint32_t seed) {
    crops->kind = image->kind;
    for (uint32_t i = 0; i < COUNT; i++) {
        crops->rasters[i] = raster_on_device(image->kind, SIDE, SIDE);
        crops->results[i] = (cogpu_result)COGPU_RESULT_INIT;
        crops->requests[i] =
            (cogpu_request){.struct_size = sizeof(cogpu_request),
                            .x = draw_number(&seed, image->kind->width - SIDE + 1),
                            .y = draw_number(&seed, image->kind->height - SIDE + 1),
                            .width = SIDE,
                            .height = SIDE,
                            .fill_bad_blocks = fills};
        crops->items[i] = (cogpu_read_item){.struct_size = sizeof(cogpu_read_item),
                                            .file = image->file,
                                            .request = &crops->requests[i],
                                            .raster = &crops->rasters[i],
                                            .result = &crops->results[i]};
    }
}

static void close_crops(struct crops *crops) {
    for (uint32_t i = 0; i < COUNT; i++)
        free(crops->rasters[i].data);
}

static bool is_right(const struct crops *crops, uint32_t i) {
    return has_pixels(&crops->rasters[i], crops->kind, crops->requests[i].x, crops->requests[i].y);
}

static bool are_right(const struct crops *crops) {
    bool all = true;
    for (uint32_t i = 0; i < COUNT; i++)
        all &= is_right(crops, i);
    return all;
}

static bool touches(const struct crops *crops, uint32_t i, uint32_t block) {
    const image_kind *kind = crops->kind;
    const cogpu_request *request = &crops->requests[i];
    uint32_t across = (kind->width + kind->tile_width - 1) / kind->tile_width;
    uint32_t left = block % across * kind->tile_width, top = block / across * kind->tile_height;
    return request->x < left + kind->tile_width && left < request->x + SIDE &&
           request->y < top + kind->tile_height && top < request->y + SIDE;
}

static uint32_t windows_of_block(const struct crops *crops, uint32_t block) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        count += touches(crops, i, block);
    return count;
}

static uint32_t tile_bytes(const struct image *image, uint32_t block) {
    uint32_t bytes = 0;
    CHECK(cogpu_tag_read(image->file, 0, 325, block, 1, &bytes, &error) == COGPU_OK);
    return bytes;
}

/* Stored bytes of all blocks of a tiled image that some window needs. */
static uint64_t needed_bytes(const struct crops *crops, const struct image *image, uint32_t count) {
    uint64_t bytes = 0;
    for (uint32_t block = 0; block < count; block++)
        bytes += windows_of_block(crops, block) > 0 ? tile_bytes(image, block) : 0;
    return bytes;
}

static uint64_t read_bytes(const struct crops *crops) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        bytes += crops->results[i].bytes_read;
    return bytes;
}

/* ---- reads --------------------------------------------------------------------------------- */

/* Decoded by the device, refused by it, stored without compression. */
static void test_each_block_is_read_once(void) {
    static const uint16_t compressions[] = {8, 50000, 32773, 5, 1};
    enum { TAGS = 4096 };
    for (uint32_t i = 0; i < sizeof compressions / sizeof *compressions; i++) {
        image_kind kind = tiles;
        kind.compression = compressions[i];
        cogpu_context *context = open_context(ENOUGH);
        struct image image = open_image(&kind);
        struct counted counted;
        struct crops crops;
        count_reads(&image, &counted);
        open_crops(&crops, &image, false, i);
        uint64_t expected = needed_bytes(&crops, &image, TILES);
        counted.bytes = 0;
        CHECK(cogpu_read_many(crops.items, COUNT, context, &error) == COGPU_OK);
        CHECK(are_right(&crops));
        uint64_t refused = 0, on_device = 0;
        for (uint32_t j = 0; j < COUNT; j++) {
            refused += crops.results[j].cpu_fallback_blocks;
            on_device += crops.results[j].device_blocks;
        }
        CHECK((refused > 0) == (kind.compression == 5) && (on_device > 0) == (i < 3));
        CHECK(read_bytes(&crops) == expected);
        CHECK(counted.bytes <= (refused > 0 ? 2 : 1) * expected + TAGS);
        close_crops(&crops);
        close_image(&image);
        cogpu_context_close(context);
    }
}

/* Of several batches, whose windows share blocks, too. */
static void test_batches_in_small_buffers(void) {
    for (uint32_t seed = 1; seed <= 4; seed++) {
        image_kind kind = narrow;
        kind.compression = seed % 2 ? 32773 : 5;
        cogpu_context *context = open_context(COGPU_READ_BUFFERS * SMALL_BUFFER);
        struct image image = open_image(&kind);
        struct crops crops;
        open_crops(&crops, &image, false, seed);
        CHECK(cogpu_read_many(crops.items, COUNT, context, &error) == COGPU_OK);
        CHECK(are_right(&crops));
        close_crops(&crops);
        close_image(&image);
        cogpu_context_close(context);
    }
}

/* A planar image, of which a window wants a band several times. */
static void test_repeated_bands(void) {
    static const uint32_t bands[] = {2, 2, 1, 2};
    static const image_kind kind = {.width = 70,
                                    .height = 50,
                                    .bands = 3,
                                    .planar = true,
                                    .tile_width = 32,
                                    .tile_height = 32,
                                    .compression = 8};
    cogpu_context *context = open_context(ENOUGH);
    struct image image = open_image(&kind);
    cogpu_raster raster = raster_of(&kind, 70, 50, 4);
    cogpu_result result = COGPU_RESULT_INIT, single = COGPU_RESULT_INIT;
    cogpu_request request = {
        .struct_size = sizeof(cogpu_request), .context = context, .bands = bands, .band_count = 4};
    raster.device = COGPU_DEVICE_EMULATOR;
    CHECK(cogpu_read(image.file, &request, &raster, &result, &error) == COGPU_OK);
    CHECK(pixels_match(&kind, raster.data, 0, 0, 70, 50, bands, 4));
    request.bands = bands + 1;
    request.band_count = raster.bands = 2;
    CHECK(cogpu_read(image.file, &request, &raster, &single, &error) == COGPU_OK);
    CHECK(result.blocks == 2 * single.blocks && result.bytes_read == single.bytes_read);
    free(raster.data);
    close_image(&image);
    cogpu_context_close(context);
}

/* ---- launches ------------------------------------------------------------------------------ */

static uint32_t launches;

static cogpu_status launch_and_count(cogpu_gpu *gpu, const cogpu_kernel *kernel, uint32_t blocks,
                                     const void *args, cogpu_gpu_stream *stream, cogpu_error *why) {
    launches++;
    return original_calls->launch(gpu, kernel, blocks, args, stream, why);
}

/* One launch unpacks windows of one size. */
static void test_windows_of_one_size(void) {
    cogpu_gpu *gpu;
    cogpu_context *context = open_device(1, 1 << 30, ENOUGH, &gpu);
    struct image image = open_image(&tiles);
    struct crops crops;
    uint32_t for_one = 0;
    open_crops(&crops, &image, false, 1);
    replace_calls(gpu)->launch = launch_and_count;
    for (uint32_t count = 1; count <= COUNT; count += COUNT - 1) {
        launches = 0;
        CHECK(cogpu_read_many(crops.items, count, context, &error) == COGPU_OK);
        for_one = count == 1 ? launches : for_one;
        CHECK(launches == for_one && launches > 0);
    }
    CHECK(are_right(&crops));
    gpu->calls = original_calls;
    close_crops(&crops);
    close_image(&image);
    cogpu_context_close(context);
}

/* Windows of several sizes, types and files, and the same one several times. */
static void test_windows_of_many_kinds(void) {
    image_kind kinds[] = {tiles, tiles, tiles};
    kinds[1].bands = 3;
    kinds[2].bits = 8;
    cogpu_context *context = open_context(ENOUGH);
    struct image images[3];
    cogpu_request requests[COUNT];
    cogpu_raster rasters[COUNT];
    cogpu_read_item items[COUNT];
    uint32_t random = 1;
    for (uint32_t i = 0; i < 3; i++)
        images[i] = open_image(&kinds[i]);
    for (uint32_t i = 0; i < COUNT; i++) {
        const struct image *image = &images[i / 2 % 3];
        uint32_t width = 50 + i / 6 % 2 * 20, height = 60 + i / 12 * 10;
        requests[i] = (cogpu_request){.struct_size = sizeof(cogpu_request),
                                      .x = draw_number(&random, 200),
                                      .y = draw_number(&random, 200),
                                      .width = width,
                                      .height = height};
        rasters[i] = raster_on_device(image->kind, width, height);
        items[i] = (cogpu_read_item){.struct_size = sizeof(cogpu_read_item),
                                     .file = image->file,
                                     .request = &requests[i],
                                     .raster = &rasters[i]};
    }
    CHECK(cogpu_read_many(items, COUNT, context, &error) == COGPU_OK);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(has_pixels(&rasters[i], &kinds[i / 2 % 3], requests[i].x, requests[i].y));
        free(rasters[i].data);
    }
    for (uint32_t i = 0; i < 3; i++)
        close_image(&images[i]);
    cogpu_context_close(context);
}

/* ---- blocks that cannot be read ------------------------------------------------------------ */

enum { BAD = 12 };

/* The bad block fails each window that needs it, and no other. */
static void expect_bad(const struct crops *crops, bool fills, cogpu_status why) {
    uint32_t bad = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        bool is_bad = touches(crops, i, BAD);
        bad += is_bad;
        CHECK(crops->items[i].status == (is_bad && !fills ? why : COGPU_OK));
        CHECK(is_bad || is_right(crops, i));
        CHECK(crops->results[i].bad_blocks == (is_bad && fills));
        if (is_bad && fills)
            CHECK(crops->results[i].first_bad.status == why &&
                  crops->results[i].first_bad.block == BAD);
    }
    CHECK(bad > 2 && bad < COUNT);
}

static void test_damaged_block(void) {
    for (uint32_t i = 0; i < 4; i++) {
        cogpu_context *context = open_context(ENOUGH);
        struct image image = open_image(&tiles);
        struct crops crops;
        bool fills = i % 2;
        damage_block(&image, BAD);
        open_crops(&crops, &image, fills, i);
        cogpu_status status = cogpu_read_many(crops.items, COUNT, context, &error);
        CHECK(status == (fills ? COGPU_OK : COGPU_CORRUPT));
        expect_bad(&crops, fills, COGPU_CORRUPT);
        close_crops(&crops);
        close_image(&image);
        cogpu_context_close(context);
    }
}

/* Of a codec, and without: the device or the CPU would have decoded it. */
static void test_unreadable_block(void) {
    for (uint32_t i = 0; i < 8; i++) {
        image_kind kind = tiles;
        bool fills = i % 2, is_transient = i / 2 % 2;
        kind.apart = true;
        kind.compression = i < 4 ? 8 : 1;
        cogpu_context *context = open_context(ENOUGH);
        struct image image = open_image(&kind);
        struct gapped gapped = {.built = &image.built, .is_transient = is_transient};
        const cogpu_source source = {.struct_size = sizeof(cogpu_source),
                                     .user = &gapped,
                                     .read = read_except_gap,
                                     .size = size_of_gapped};
        struct crops crops;
        uint32_t offset = 0;
        CHECK(cogpu_tag_read(image.file, 0, 324, BAD, 1, &offset, &error) == COGPU_OK);
        cogpu_close(image.file);
        CHECK(cogpu_open_source(&source, NULL, &image.file, &error) == COGPU_OK);
        gapped.first = offset + 1000;
        gapped.end = offset + 1001;
        gapped.failed = is_transient ? 1 : 0; /* one failure to come */
        open_crops(&crops, &image, fills, i);
        cogpu_status status = cogpu_read_many(crops.items, COUNT, context, &error);
        CHECK(status == (fills || is_transient ? COGPU_OK : COGPU_IO_ERROR));
        if (is_transient)
            CHECK(are_right(&crops));
        else
            expect_bad(&crops, fills, COGPU_IO_ERROR);
        close_crops(&crops);
        close_image(&image);
        cogpu_context_close(context);
    }
}

/* ---- cuFile -------------------------------------------------------------------------------- */

static fake_cufile *fake;

static void read_crops_by_cufile(void) {
    image_kind apart = tiles;
    apart.apart = true;
    for (uint32_t fail_each = 0; fail_each <= 2; fail_each += 2) {
        cogpu_context *context = open_context(ENOUGH);
        struct image image = open_image(&apart);
        struct crops crops;
        uint64_t gds_bytes = 0;
        move_to_path(&image);
        fake->fail_each = fail_each;
        open_crops(&crops, &image, false, fail_each);
        CHECK(cogpu_read_many(crops.items, COUNT, context, &error) == COGPU_OK);
        CHECK(are_right(&crops));
        for (uint32_t i = 0; i < COUNT; i++)
            gds_bytes += crops.results[i].gds_bytes;
        CHECK(read_bytes(&crops) == needed_bytes(&crops, &image, TILES));
        CHECK(gds_bytes > 0 && (gds_bytes == read_bytes(&crops)) == (fail_each == 0));
        close_crops(&crops);
        close_image(&image);
        cogpu_context_close(context);
    }
}

static void test_repeats_by_cufile(void) {
    in_a_process("COGPU_CUFILE", FAKE_CUFILE, "fake_cufile_control", (void **)&fake,
                 read_crops_by_cufile);
}

TESTS(read_repeats) {
    RUN(test_each_block_is_read_once);
    RUN(test_batches_in_small_buffers);
    RUN(test_repeated_bands);
    RUN(test_windows_of_one_size);
    RUN(test_windows_of_many_kinds);
    RUN(test_damaged_block);
    RUN(test_unreadable_block);
    RUN(test_repeats_by_cufile);
    return FINISH();
}
