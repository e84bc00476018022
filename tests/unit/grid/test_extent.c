/* The part of a grid that a source touches, scales, ratios and levels. */
#include "grid_test.h"

#include "support/test.h"

#include <math.h>

static cogpu_operations *operations;
static cogpu_transformer *transformer;
static cogpu_error error;

static bool has_proj(void) {
    return cogpu_proj_version() != NULL;
}

static void open_pair(const cogpu_placement *source, const cogpu_placement *target) {
    cogpu_transformer_close(transformer);
    CHECK(cogpu_transformer_open(source, target, operations, &transformer, &error) == COGPU_OK);
}

/* Whether all target pixels that lie in the source are in the box: looks at `count` of each. */
static void check_extent(const cogpu_placement *source, const cogpu_placement *target,
                         uint32_t count) {
    open_pair(source, target);
    const cogpu_box box = cogpu_source_extent(transformer, source, target);
    uint32_t missing = 0;
    CHECK(box.x0 >= 0 && box.y0 >= 0 && box.x1 <= target->width && box.y1 <= target->height);
    for (uint32_t i = 0; i < count; i++) {
        double x = draw_below(source->width + 1), y = draw_below(source->height + 1);
        if (i % 4 == 0)
            x = i & 8 ? 0 : source->width;
        if (i % 4 == 1)
            y = i & 8 ? 0 : source->height;
        cogpu_to_target(transformer, 1, &x, &y);
        if (x > 0 && y > 0 && x < target->width && y < target->height)
            missing += x < (double)box.x0 || x > (double)box.x1 || y < (double)box.y0 ||
                       y > (double)box.y1;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t column = draw_below(target->width), row = draw_below(target->height);
        double x = column + 0.5, y = row + 0.5;
        cogpu_to_source(transformer, 1, &x, &y);
        if (x >= 0 && y >= 0 && x <= source->width && y <= source->height)
            missing += column < box.x0 || column >= box.x1 || row < box.y0 || row >= box.y1;
    }
    if (missing)
        printf("%s to %s: %u positions outside the box\n", source->crs, target->crs, missing);
    CHECK(missing == 0);
}

static void holds_the_source(void) {
    static const char *const crss[] = {"EPSG:4326",  "EPSG:3857", "EPSG:32632", "EPSG:3035",
                                       "EPSG:3413",  "EPSG:3031", "ESRI:54030", "EPSG:5070",
                                       "ESRI:54008", "EPSG:2154"};
    const cogpu_placement sources[] = {
        place("EPSG:32632", 1000, 1000, 400000, 60, 5800000, -60),
        place("EPSG:32660", 1000, 1000, 600000, 300, 6000000, -300), /* antimeridian */
        place("EPSG:4326", 3600, 1800, -180, 0.1, 90, -0.1),
        place("EPSG:4326", 3600, 1800, 0, 0.1, 90, -0.1),
        place("EPSG:4326", 500, 500, 175, 0.02, -10, 0.02), /* south-up */
        place("EPSG:3413", 1000, 1000, -1.5e6, 5000, 3e6, -5000),
        place("EPSG:3413", 100, 100, -50000, 1000, 40000, -1000), /* the pole */
        place("EPSG:3857", 2000, 2000, -20037508, 20037, 20037508, -20037),
        place("EPSG:3035", 4000, 3500, 2500000, 1000, 5500000, -1000),
    };
    const cogpu_placement wide = place("EPSG:4326", 7200, 3600, -180, 0.05, 90, -0.05);
    cogpu_placement target;
    for (size_t i = 0; has_proj() && i < sizeof sources / sizeof *sources; i++) {
        check_extent(&sources[i], &wide, 3000);
        for (size_t k = 0; k < sizeof crss / sizeof *crss; k++) {
            target = place(crss[k], 3000, 3000, -6e6, 4000, 6e6, -4000);
            if (k == 0)
                target = place(crss[k], 3600, 1800, -10, 0.1, 95, -0.1);
            check_extent(&sources[i], &target, 1000);
        }
    }
}

/* A small source takes a small part. */
static void is_small(void) {
    const cogpu_placement source = place("EPSG:32632", 1000, 1000, 400000, 10, 5800000, -10);
    const cogpu_placement target = place("EPSG:3857", 100000, 100000, -1e6, 100, 1e7, -100);
    if (!has_proj())
        return;
    open_pair(&source, &target);
    const cogpu_box box = cogpu_source_extent(transformer, &source, &target);
    CHECK(box.x1 - box.x0 > 150 && box.x1 - box.x0 < 190 && box.y1 - box.y0 < 190);
}

static void is_empty_elsewhere(void) {
    const cogpu_placement source = place("EPSG:32632", 100, 100, 400000, 10, 5800000, -10);
    const cogpu_placement target = place("EPSG:32632", 100, 100, 500000, 10, 5800000, -10);
    open_pair(&source, &target);
    const cogpu_box box = cogpu_source_extent(transformer, &source, &target);
    CHECK(box.x0 >= box.x1);
}

/* ---- scale, ratio, level ---- */

static void scales_of_affine_grids(void) {
    const cogpu_placement source = place("EPSG:32632", 500, 400, 400000, 100, 5800000, -100);
    const cogpu_placement half = place("EPSG:32632", 250, 200, 400000, 200, 5800000, -200);
    const cogpu_placement near =
        place("EPSG:32632", 499, 401, 400000, 50000.0 / 499, 5800000, -40000.0 / 401);
    double x, y;
    open_pair(&source, &half);
    cogpu_warp_scale(transformer, &source, &half, 2, &x, &y);
    CHECK(x == 0.5 && y == 0.5 && cogpu_warp_ratio(transformer, &source, &half) == 2);
    open_pair(&source, &near);
    cogpu_warp_scale(transformer, &source, &near, 2, &x, &y);
    CHECK(x == 1 && fabs(y - 401 / 400.0) < 1e-12);
}

/* In a mosaic of the globe, the source's own part counts. */
static void scales_of_large_grids(void) {
    const cogpu_placement source = place("EPSG:32632", 1000, 1000, 400000, 10, 5800000, -10);
    const cogpu_placement globe = place("EPSG:3857", 400000, 400000, -2e7, 100, 2e7, -100);
    double x, y;
    if (!has_proj())
        return;
    open_pair(&source, &globe);
    cogpu_warp_scale(transformer, &source, &globe, 2, &x, &y);
    const double ratio = cogpu_warp_ratio(transformer, &source, &globe);
    CHECK(x > 0.14 && x < 0.18 && y > 0.14 && y < 0.18 && ratio > 5.5 && ratio < 7);
}

static uint32_t choose(double ratio) {
    static const uint32_t widths[] = {4096, 2048, 1024, 512, 500};
    cogpu_pyramid_level levels[5] = {0};
    cogpu_pyramid pyramid = {.levels = levels, .info = {.levels = 5}};
    for (int i = 0; i < 5; i++)
        levels[i].storage.width = levels[i].storage.height = widths[i];
    return cogpu_choose_level(&pyramid, ratio);
}

static void chooses_levels(void) {
    CHECK(choose(0.3) == 0 && choose(1) == 0 && choose(1.89) == 0);
    CHECK(choose(1.95) == 1 && choose(2) == 1 && choose(3.8) == 1);
    CHECK(choose(3.95) == 2 && choose(4) == 2 && choose(7.5) == 2);
    CHECK(choose(8) == 3 && choose(8.15) == 4 && choose(1e9) == 4);
}

TESTS(extent) {
    CHECK(cogpu_operations_open(&operations, &error) == COGPU_OK);
    RUN(holds_the_source);
    RUN(is_small);
    RUN(is_empty_elsewhere);
    RUN(scales_of_affine_grids);
    RUN(scales_of_large_grids);
    RUN(chooses_levels);
    cogpu_transformer_close(transformer);
    cogpu_operations_close(operations);
    return FINISH();
}
