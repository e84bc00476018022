/* Transforms, control points and RPCs: the numbers are those of GDAL 3.12 for the same tags. */
#include "support/test.h"

#include "support/opened_tiff.h"

#include <math.h>

static opened_tiff opened;
static cogpu_georef georef;

typedef struct tags {
    const double *scale, *tiepoints, *matrix;
    size_t scales, points, numbers;
    const uint16_t *keys;
    size_t key_shorts;
} tags;

static void add_doubles(uint16_t tag, const double *numbers, size_t count) {
    if (count)
        build_doubles(&opened.file, tag, count, numbers);
}

/* Reads the georeference of a file with these tags; close_built(&opened) belongs to the caller. */
static void read_georef(const tags *with, bool big_endian, bool bigtiff) {
    build_open(&opened.file, big_endian, bigtiff);
    build_image(&opened.file, 1, 1, 1, 8, 1, NULL);
    add_doubles(TAG_MODEL_PIXEL_SCALE, with->scale, with->scales);
    add_doubles(TAG_MODEL_TIEPOINT, with->tiepoints, with->points);
    add_doubles(TAG_MODEL_TRANSFORMATION, with->matrix, with->numbers);
    if (with->key_shorts)
        build_shorts(&opened.file, TAG_GEO_KEY_DIRECTORY, with->key_shorts, with->keys);
    CHECK(open_built(&opened) == COGPU_OK);
    CHECK(cogpu_georef_read(&opened.tiff, 0, 1, &opened.arena, &georef, &opened.warning,
                            &opened.error) == COGPU_OK);
}

static void check_transform(const double expected[6]) {
    CHECK(georef.has_transform);
    for (int i = 0; i < 6; i++)
        CHECK(georef.transform[i] == expected[i]);
}

static const double scale[] = {3, 4, 0}, tiepoint[] = {0, 0, 0, 10, 20, 0};
static const double matrix[16] = {2, .5, 0, 100, .25, -3, 0, 200, 0, 0, 0, 0, 0, 0, 0, 1};
static const uint16_t point_keys[] = {1, 1, 0, 2, 1024, 0, 1, 2, 1025, 0, 1, 2};

static void scale_and_tiepoint(void) {
    for (int form = 0; form < 4; form++) {
        read_georef(&(tags){.scale = scale, .scales = 3, .tiepoints = tiepoint, .points = 6},
                    form & 1, form & 2);
        check_transform((double[]){10, 3, 0, 20, 0, -4});
        CHECK(!georef.gcp_count && !georef.has_crs && !georef.pixel_is_point && !opened.warning);
        close_built(&opened);
    }
}

/* T137. */
static void tiepoint_away_from_the_corner(void) {
    static const double away[] = {5, 7, 0, 10, 20, 0};
    read_georef(&(tags){.scale = scale, .scales = 2, .tiepoints = away, .points = 6}, false, false);
    check_transform((double[]){-5, 3, 0, 48, 0, -4});
    close_built(&opened);
}

/* T139. */
static void negative_scale_and_missing_tiepoint(void) {
    static const double negative[] = {3, -4, 0}, west[] = {-3, 4, 0};
    read_georef(&(tags){.scale = negative, .scales = 3, .tiepoints = tiepoint, .points = 6}, false,
                false);
    check_transform((double[]){10, 3, 0, 20, 0, -4});
    CHECK(opened.warning);
    close_built(&opened);
    read_georef(&(tags){.scale = west, .scales = 3, .tiepoints = tiepoint, .points = 6}, false,
                false);
    check_transform((double[]){10, -3, 0, 20, 0, -4});
    close_built(&opened);
    read_georef(&(tags){.scale = scale, .scales = 3, .matrix = matrix, .numbers = 16}, false,
                false);
    CHECK(!georef.has_transform && opened.warning);
    close_built(&opened);
}

/* T125: invalid scales give way to a matrix, or to nothing. */
static void invalid_scales(void) {
    static const double invalid[][3] = {{0, 4, 0}, {3, 0, 0}, {NAN, 4, 0}, {3, INFINITY, 0}};
    for (size_t i = 0; i < 4; i++) {
        read_georef(&(tags){.scale = invalid[i],
                            .scales = 3,
                            .tiepoints = tiepoint,
                            .points = 6,
                            .matrix = matrix,
                            .numbers = 16},
                    false, false);
        check_transform((double[]){100, 2, .5, 200, .25, -3});
        CHECK(opened.warning);
        close_built(&opened);
    }
    read_georef(&(tags){.scale = invalid[0], .scales = 3, .tiepoints = tiepoint, .points = 6},
                false, false);
    CHECK(!georef.has_transform && georef.gcp_count == 1 && opened.warning);
    close_built(&opened);
    read_georef(&(tags){.scale = scale, .scales = 1, .tiepoints = tiepoint, .points = 6}, false,
                false);
    CHECK(!georef.has_transform && opened.warning);
    close_built(&opened);
    static const double nowhere[] = {0, 0, 0, NAN, 20, 0};
    read_georef(&(tags){.scale = scale, .scales = 3, .tiepoints = nowhere, .points = 6}, false,
                false);
    CHECK(!georef.has_transform && !georef.gcp_count && opened.warning);
    close_built(&opened);
}

static void scale_wins_over_matrix(void) {
    read_georef(&(tags){.scale = scale,
                        .scales = 3,
                        .tiepoints = tiepoint,
                        .points = 6,
                        .matrix = matrix,
                        .numbers = 16},
                false, false);
    check_transform((double[]){10, 3, 0, 20, 0, -4});
    close_built(&opened);
}

/* T126, T127: rotation and shear are kept; a matrix that flattens pixels is not. */
static void matrices(void) {
    static const double flat[16] = {2, 4, 0, 100, 1, 2, 0, 200, 0, 0, 0, 0, 0, 0, 0, 1};
    static const double endless[16] = {2, 4, 0, INFINITY, 1, 3};
    read_georef(&(tags){.matrix = matrix, .numbers = 16}, true, true);
    check_transform((double[]){100, 2, .5, 200, .25, -3});
    close_built(&opened);
    read_georef(&(tags){.matrix = matrix, .numbers = 15}, false, false);
    CHECK(!georef.has_transform && opened.warning);
    close_built(&opened);
    read_georef(&(tags){.matrix = flat, .numbers = 16}, false, false);
    CHECK(!georef.has_transform && opened.warning);
    close_built(&opened);
    read_georef(&(tags){.matrix = endless, .numbers = 16}, false, false);
    CHECK(!georef.has_transform && opened.warning);
    close_built(&opened);
}

/* T141: half a pixel, with rotation too. */
static void pixel_is_point(void) {
    read_georef(&(tags){.scale = scale,
                        .scales = 3,
                        .tiepoints = tiepoint,
                        .points = 6,
                        .keys = point_keys,
                        .key_shorts = 12},
                false, false);
    CHECK(georef.pixel_is_point);
    check_transform((double[]){8.5, 3, 0, 22, 0, -4});
    close_built(&opened);
    read_georef(&(tags){.matrix = matrix, .numbers = 16, .keys = point_keys, .key_shorts = 12},
                false, false);
    check_transform((double[]){98.75, 2, .5, 201.375, .25, -3});
    close_built(&opened);
}

/* T140. */
static void control_points(void) {
    static const double points[] = {0, 0, 0, 10, 20, 0, 1, 0, 0, 11, 20, 0, 1, 1, 5, 11, 21, 7, 9};
    read_georef(&(tags){.tiepoints = points, .points = 18}, false, false);
    CHECK(!georef.has_transform && georef.gcp_count == 3 && !opened.warning);
    CHECK(georef.gcps[2].column == 1 && georef.gcps[2].row == 1 && georef.gcps[2].pixel_z == 5);
    CHECK(georef.gcps[2].x == 11 && georef.gcps[2].y == 21 && georef.gcps[2].z == 7);
    close_built(&opened);
    read_georef(&(tags){.tiepoints = points, .points = 18, .keys = point_keys, .key_shorts = 12},
                false, false);
    CHECK(georef.gcps[0].column == 0.5 && georef.gcps[0].row == 0.5);
    close_built(&opened);
    read_georef(&(tags){.tiepoints = points, .points = 19}, false, false);
    CHECK(georef.gcp_count == 3 && opened.warning);
    close_built(&opened);
    read_georef(&(tags){.tiepoints = points, .points = 5}, false, false);
    CHECK(georef.gcp_count == 0 && opened.warning);
    close_built(&opened);
}

/* With a vertical system the third numbers are those of the samples. */
static void z_scale(void) {
    static const double scale_z[] = {3, 4, 2}, tiepoint_z[] = {0, 0, 3, 10, 20, 10};
    uint16_t keys[] = {1, 1, 1, 3, 1024, 0, 1, 2, 2048, 0, 1, 4326, 4096, 0, 1, 3855};
    tags with = {.scale = scale_z,
                 .scales = 3,
                 .tiepoints = tiepoint_z,
                 .points = 6,
                 .keys = keys,
                 .key_shorts = 16};
    read_georef(&with, false, false);
    CHECK(georef.has_z_scale && georef.z_scale == 2 && georef.z_offset == 4);
    cogpu_georef many;
    CHECK(cogpu_georef_read(&opened.tiff, 0, 2, &opened.arena, &many, &opened.warning,
                            &opened.error) == COGPU_OK);
    CHECK(!many.has_z_scale);
    close_built(&opened);
    keys[2] = 0; /* GeoTIFF 1.0 */
    read_georef(&with, false, false);
    CHECK(!georef.has_z_scale);
    close_built(&opened);
}

static void rpc(void) {
    double numbers[92];
    for (int i = 0; i < 92; i++)
        numbers[i] = i;
    for (int variant = 0; variant < 3; variant++) {
        numbers[50] = variant == 2 ? NAN : 50;
        build_open(&opened.file, false, false);
        build_image(&opened.file, 1, 1, 1, 8, 1, NULL);
        build_doubles(&opened.file, TAG_RPC_COEFFICIENT, variant == 1 ? 91 : 92, numbers);
        CHECK(open_built(&opened) == COGPU_OK);
        CHECK(cogpu_georef_read(&opened.tiff, 0, 1, &opened.arena, &georef, &opened.warning,
                                &opened.error) == COGPU_OK);
        CHECK(variant == 0 ? georef.rpc && georef.rpc[91] == 91 && !opened.warning
                           : !georef.rpc && opened.warning);
        close_built(&opened);
    }
}

/* A tag of the wrong type, or outside the file, costs a warning and not the file. */
static void unreadable_tags(void) {
    build_open(&opened.file, false, false);
    build_image(&opened.file, 1, 1, 1, 8, 1, NULL);
    build_text(&opened.file, TAG_MODEL_PIXEL_SCALE, "not numbers");
    uint32_t far = 0x7fffff00;
    build_raw(&opened.file, TAG_MODEL_TIEPOINT, BUILD_DOUBLE, 6, &far, 4);
    cogpu_status status = open_built(&opened);
    if (status == COGPU_OK) {
        CHECK(cogpu_georef_read(&opened.tiff, 0, 1, &opened.arena, &georef, &opened.warning,
                                &opened.error) == COGPU_OK);
        CHECK(!georef.has_transform && !georef.gcp_count && opened.warning);
    }
    CHECK(status == COGPU_OK || status == COGPU_CORRUPT);
    close_built(&opened);
}

TESTS(georef) {
    RUN(scale_and_tiepoint);
    RUN(tiepoint_away_from_the_corner);
    RUN(negative_scale_and_missing_tiepoint);
    RUN(invalid_scales);
    RUN(scale_wins_over_matrix);
    RUN(matrices);
    RUN(pixel_is_point);
    RUN(control_points);
    RUN(z_scale);
    RUN(rpc);
    RUN(unreadable_tags);
    return FINISH();
}
