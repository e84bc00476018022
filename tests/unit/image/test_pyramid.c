/*
 * Directories as images, levels and masks: a mask between image and overviews (T063), any order
 * (T076), .ovr files valid and malformed (T079), more levels than anybody has and levels that are
 * none (T081), bands of all images together (T217).
 */
#include "cogpu.h"

#include "support/fixture.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static tiff_builder built;
static cogpu_file *file;
static cogpu_error error;
static cogpu_image image = COGPU_IMAGE_INIT;
static cogpu_level level = COGPU_LEVEL_INIT;

static void add(uint32_t side, uint16_t subfile_type) {
    build_kind(&built, &(image_kind){.width = side, .height = side, .subfile_type = subfile_type});
    build_directory(&built, true);
}

static cogpu_status open_built(void) {
    file = NULL;
    cogpu_status status = cogpu_open_memory(built.bytes, built.size, NULL, &file, &error);
    return status == COGPU_OK ? cogpu_image_info(file, 0, &image, &error) : status;
}

static void close_built(void) {
    cogpu_close(file);
    build_close(&built);
}

static bool is_level(uint32_t index, uint32_t directory, uint32_t side, int mask_directory) {
    return cogpu_level_info(file, 0, index, &level, &error) == COGPU_OK &&
           level.directory == directory && level.width == side && level.height == side &&
           (mask_directory < 0
                ? !level.has_mask
                : level.has_mask && level.mask_directory == (uint32_t)mask_directory);
}

static void test_one_image(void) {
    build_open(&built, false, false);
    add(8, 0);
    CHECK(open_built() == COGPU_OK && cogpu_image_count(file) == 1 && image.levels == 1 &&
          !image.warning);
    CHECK(is_level(0, 0, 8, -1) && image.mask_source == COGPU_MASK_SOURCE_NONE);
    CHECK(cogpu_image_info(file, 1, &image, &error) == COGPU_NOT_FOUND);
    CHECK(cogpu_level_info(file, 0, 1, &level, &error) == COGPU_NOT_FOUND);
    close_built();
}

/* T063, T076: GDAL's order, then any other. */
static void test_masks_are_no_levels(void) {
    build_open(&built, false, false);
    add(32, 0);
    add(32, 4);
    add(16, 1);
    add(16, 5);
    add(8, 1);
    add(8, 5);
    CHECK(open_built() == COGPU_OK && cogpu_image_count(file) == 1 && image.levels == 3 &&
          !image.warning);
    CHECK(is_level(0, 0, 32, 1) && is_level(1, 2, 16, 3) && is_level(2, 4, 8, 5));
    CHECK(image.mask_source == COGPU_MASK_SOURCE_DIRECTORY);
    close_built();
    build_open(&built, false, false);
    add(32, 0);
    add(8, 5);
    add(8, 1);
    add(16, 1);
    add(32, 4);
    CHECK(open_built() == COGPU_OK && image.levels == 3);
    CHECK(is_level(0, 0, 32, 4) && is_level(1, 3, 16, -1) && is_level(2, 2, 8, 1));
    close_built();
}

static void test_images_each_with_levels(void) {
    build_open(&built, false, false);
    add(32, 0);
    add(16, 1);
    add(20, 0);
    add(10, 1);
    add(5, 1);
    add(20, 4);
    CHECK(open_built() == COGPU_OK && cogpu_image_count(file) == 2 && image.levels == 2);
    CHECK(cogpu_image_info(file, 1, &image, &error) == COGPU_OK);
    CHECK(image.levels == 3 && image.directory == 2 &&
          image.mask_source == COGPU_MASK_SOURCE_DIRECTORY);
    close_built();
}

/* T081 */
static void test_directories_that_are_no_levels(void) {
    build_open(&built, false, false);
    add(16, 0);
    add(17, 1);
    add(16, 1);
    build_kind(&built, &(image_kind){.width = 8, .height = 8, .bands = 2, .subfile_type = 1});
    build_directory(&built, true);
    build_kind(&built, &(image_kind){.width = 8, .height = 8, .bits = 16, .subfile_type = 1});
    build_directory(&built, true);
    build_kind(&built, &(image_kind){.width = 4, .height = 17, .subfile_type = 1});
    build_directory(&built, true);
    add(4, 1);
    CHECK(open_built() == COGPU_OK && cogpu_image_count(file) == 1 && image.levels == 2 &&
          image.warning);
    CHECK(is_level(1, 6, 4, -1));
    close_built();
}

static void test_more_levels_than_anybody_has(void) {
    build_open(&built, false, false);
    add(100, 0);
    for (uint32_t i = 0; i < 60; i++)
        add(99 - i, 1);
    CHECK(open_built() == COGPU_OK && image.levels == 31);
    for (uint32_t i = 0; i < 31; i++)
        CHECK(is_level(i, i, 100 - i, -1));
    close_built();
}

static void test_a_mask_that_cannot_be_one(void) {
    build_open(&built, false, false);
    add(16, 0);
    add(15, 4);
    build_kind(&built, &(image_kind){.width = 16, .height = 16, .bands = 2, .subfile_type = 4});
    build_directory(&built, true);
    build_kind(&built, &(image_kind){.width = 16, .height = 16, .bits = 16, .subfile_type = 4});
    build_directory(&built, true);
    CHECK(open_built() == COGPU_OK && cogpu_image_count(file) == 1 &&
          image.mask_source == COGPU_MASK_SOURCE_NONE);
    CHECK(is_level(0, 0, 16, -1));
    close_built();
}

/* A malformed directory is left out, unless it is the first. */
static void test_malformed_directories(void) {
    build_open(&built, false, false);
    add(16, 0);
    build_short(&built, 254, 1);
    build_short(&built, 256, 0);
    build_directory(&built, true);
    add(8, 1);
    CHECK(open_built() == COGPU_OK && image.levels == 2 && image.warning);
    CHECK(strstr(image.warning, "directory 1"));
    close_built();
    build_open(&built, false, false);
    build_short(&built, 256, 5);
    build_directory(&built, true);
    add(8, 0);
    CHECK(open_built() == COGPU_CORRUPT && error.directory == 0 && error.offset == 8);
    CHECK(file == NULL);
    close_built();
}

static void test_a_file_of_a_mask_alone(void) {
    build_open(&built, false, false);
    add(8, 4);
    cogpu_status status = open_built();
    CHECK(status == COGPU_NOT_FOUND || status == COGPU_CORRUPT);
    close_built();
}

/* A SubIFD belongs to its parent's image, not to the last one. */
static void test_sub_directories_as_levels(void) {
    build_open(&built, false, false);
    build_kind(&built, &(image_kind){.width = 8, .height = 8, .subfile_type = 1});
    uint32_t below = (uint32_t)build_directory(&built, false);
    build_kind(&built, &(image_kind){.width = 16, .height = 16});
    build_tag(&built, 330, BUILD_LONG, 1, &below);
    build_directory(&built, true);
    add(32, 0);
    CHECK(open_built() == COGPU_OK && cogpu_image_count(file) == 2 && image.levels == 2);
    CHECK(is_level(1, 2, 8, -1));
    CHECK(cogpu_image_info(file, 1, &image, &error) == COGPU_OK && image.levels == 1);
    close_built();
}

/* T217: the bands of one image cost memory; a file of many such images must have their bytes. */
static void test_bands_of_many_images(void) {
    build_open(&built, false, false);
    for (int i = 0; i < 40; i++) {
        build_short(&built, 256, 1);
        build_short(&built, 257, 1);
        build_short(&built, 277, 65535);
        build_directory(&built, true);
    }
    CHECK(open_built() == COGPU_LIMIT_EXCEEDED && strstr(error.message, "bands"));
    close_built();
    build_open(&built, false, false);
    build_short(&built, 256, 1);
    build_short(&built, 257, 1);
    build_short(&built, 277, 65535);
    build_directory(&built, true);
    CHECK(open_built() == COGPU_OK && image.bands == 65535);
    close_built();
}

/* ---- T079: levels beside the file ---- */

static void with_overview_file(const void *beside, size_t bytes) {
    char path[] = "cogpu_test_pyramid_XXXXXX", name[64];
    int descriptor = mkstemp(path);
    CHECK(descriptor >= 0);
    close(descriptor);
    snprintf(name, sizeof name, "%s.ovr", path);
    write_test_file(path, built.bytes, built.size);
    write_test_file(name, beside, bytes);
    file = NULL;
    CHECK(cogpu_open(path, NULL, &file, &error) == COGPU_OK);
    CHECK(file && cogpu_image_info(file, 0, &image, &error) == COGPU_OK);
    unlink(path);
    unlink(name);
}

static void test_levels_beside_the_file(void) {
    tiff_builder beside;
    const image_kind small = {.width = 8, .height = 8, .seed = 5, .compression = 5};
    build_open(&beside, true, true); /* its own byte order and form */
    build_kind(&beside, &small);
    build_directory(&beside, true);
    build_one(&built, &(image_kind){.width = 16, .height = 16, .compression = 5});
    with_overview_file(beside.bytes, beside.size);
    CHECK(image.levels == 2 && is_level(1, 0, 8, -1) && level.external);
    /* Both levels are directory 0 of their files: the cache must tell them apart. */
    const image_kind full = {.width = 16, .height = 16, .compression = 5};
    cogpu_context *context = NULL;
    CHECK(cogpu_context_open(&(cogpu_context_options){.struct_size = sizeof(cogpu_context_options),
                                                      .cache_bytes = 1 << 20},
                             &context, &error) == COGPU_OK);
    for (int i = 0; i < 4; i++) {
        const image_kind *kind = i & 1 ? &small : &full;
        cogpu_raster raster = raster_of(kind, kind->width, kind->height, 1);
        cogpu_request request = {
            .struct_size = sizeof(cogpu_request), .level = i & 1, .context = context};
        CHECK(cogpu_read(file, &request, &raster, NULL, &error) == COGPU_OK);
        CHECK(pixels_match(kind, raster.data, 0, 0, kind->width, kind->height, NULL, 0));
        free(raster.data);
    }
    cogpu_context_close(context);
    build_close(&beside);
    close_built();
}

static void test_malformed_levels_beside_the_file(void) {
    static const char *const texts[] = {"", "no TIFF at all", "II*\0\xFF\xFF\xFF\xFF"};
    for (size_t i = 0; i < 3; i++) {
        build_open(&built, false, false);
        add(16, 0);
        with_overview_file(texts[i], i == 2 ? 8 : strlen(texts[i]));
        CHECK(image.levels == 1 && image.warning && strstr(image.warning, ".ovr"));
        cogpu_raster raster = raster_of(&(image_kind){.width = 16}, 16, 16, 1);
        CHECK(cogpu_read(file, NULL, &raster, NULL, &error) == COGPU_OK);
        free(raster.data);
        close_built();
    }
}

/* Of another image: larger, or with other bands. */
static void test_stale_levels_beside_the_file(void) {
    tiff_builder beside;
    build_open(&beside, false, false);
    build_kind(&beside, &(image_kind){.width = 40, .height = 40});
    build_directory(&beside, true);
    build_kind(&beside, &(image_kind){.width = 4, .height = 4, .bands = 3});
    build_directory(&beside, true);
    build_open(&built, false, false);
    add(16, 0);
    with_overview_file(beside.bytes, beside.size);
    CHECK(image.levels == 1 && cogpu_image_count(file) == 1 && image.warning);
    build_close(&beside);
    close_built();
}

TESTS(pyramid) {
    RUN(test_one_image);
    RUN(test_masks_are_no_levels);
    RUN(test_images_each_with_levels);
    RUN(test_directories_that_are_no_levels);
    RUN(test_more_levels_than_anybody_has);
    RUN(test_a_mask_that_cannot_be_one);
    RUN(test_malformed_directories);
    RUN(test_a_file_of_a_mask_alone);
    RUN(test_sub_directories_as_levels);
    RUN(test_bands_of_many_images);
    RUN(test_levels_beside_the_file);
    RUN(test_malformed_levels_beside_the_file);
    RUN(test_stale_levels_beside_the_file);
    return FINISH();
}
