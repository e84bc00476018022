/*
 * Source positions of windows: within the maximum error of the exact ones, the same in every
 * window, and exact on request. The exact positions are those of transformers, which
 * tests/python/test_transformer.py compares with GDAL's.
 */
#include "grid_test.h"

#include "base/memory.h"
#include "support/test.h"

#include <math.h>

static const double MAX_ERROR = 0.125;

static cogpu_operations *operations;
static cogpu_pool *pool;
static cogpu_error error;

typedef struct pair {
    cogpu_placement source, target;
} pair;

static bool has_proj(void) {
    return cogpu_proj_version() != NULL;
}

/* A window of a target, and what was computed for it. */
typedef struct computed {
    pair of;
    uint32_t level; /* the source's sides are divided by it */
    bool of_corners;
    cogpu_transformer *transformer;
    cogpu_arena arena;
    cogpu_coordinates coordinates;
} computed;

static void compute(computed *made, const pair *of, uint32_t level, uint32_t x, uint32_t y,
                    uint32_t width, uint32_t height, bool of_corners, double max_error) {
    *made = (computed){.of = *of, .level = level, .of_corners = of_corners};
    cogpu_arena_open(&made->arena, 1 << 30);
    CHECK(cogpu_transformer_open(&of->source, &of->target, operations, &made->transformer,
                                 &error) == COGPU_OK);
    CHECK(cogpu_coordinates_compute(made->transformer, &of->source, &of->target,
                                    of->source.width / level, of->source.height / level, x, y,
                                    width, height, of_corners, max_error, pool, &made->arena,
                                    &made->coordinates, &error) == COGPU_OK);
}

static void discard(computed *made) {
    cogpu_arena_close(&made->arena);
    cogpu_transformer_close(made->transformer);
}

static void find_exact(const computed *in, uint32_t column, uint32_t row, double *x, double *y) {
    *x = column + (in->of_corners ? 0 : 0.5), *y = row + (in->of_corners ? 0 : 0.5);
    cogpu_to_source(in->transformer, 1, x, y);
    *x /= in->level, *y /= in->level;
}

static bool is_outside(double x, double y, double width, double height) {
    return x < 0 || y < 0 || x > width || y > height;
}

/* Compares pixels, drawn at random. Positions outside the source must be outside, and no more. */
static void check_positions(const computed *in, uint32_t count, double tolerance) {
    const cogpu_coordinates *window = &in->coordinates;
    const double width = in->of.source.width / in->level, height = in->of.source.height / in->level;
    uint32_t wrong = 0;
    double worst = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t column = window->x + draw_below(window->width);
        const uint32_t row = window->y + draw_below(window->height);
        double x, y, exact_x, exact_y;
        find_position(window, column, row, &x, &y);
        find_exact(in, column, row, &exact_x, &exact_y);
        const double difference = fabs(x - exact_x) + fabs(y - exact_y);
        if (isnan(exact_x) ? !isnan(x) && !is_outside(x, y, width, height) : isnan(difference))
            wrong++;
        if (difference > worst &&
            !(is_outside(x, y, width, height) && is_outside(exact_x, exact_y, width, height)))
            worst = difference;
    }
    if (worst > tolerance || wrong)
        printf("%s to %s: off by %g pixels, %u of %u wrong\n", in->of.source.crs, in->of.target.crs,
               worst, wrong, count);
    CHECK(worst <= tolerance && wrong == 0);
}

/* ---- positions ---- */

static pair utm_to_mercator(void) {
    return (pair){place("EPSG:32632", 11000, 11000, 400000, 10, 5800000, -10),
                  place("EPSG:3857", 10000, 10000, 850000, 15, 6850000, -15)};
}

static pair globe_to_pole(void) {
    return (pair){place("EPSG:4326", 3600, 1800, -180, 0.1, 90, -0.1),
                  place("EPSG:3413", 500, 500, -4e6, 16000, 4e6, -16000)};
}

static void precise_positions(void) {
    const pair pairs[] = {
        utm_to_mercator(),
        globe_to_pole(),
        {place("EPSG:3413", 1000, 1000, -4e6, 8000, 4e6, -8000),
         place("EPSG:4326", 1800, 900, -180, 0.2, 90, -0.2)},
        {place("EPSG:4326", 3600, 1800, 0, 0.1, 90, -0.1), /* 0 to 360 degrees */
         place("EPSG:3857", 2000, 2000, -20037508, 20037.508, 20037508, -20037.508)},
        {place("EPSG:4326", 1000, 1000, 175, 0.01, 70, -0.01), /* across the antimeridian */
         place("EPSG:32660", 1200, 1200, 500000, 500, 7700000, -500)},
        {place("EPSG:4326", 3600, 1800, -180, 0.1, 90, -0.1),
         place("+proj=ortho +lat_0=40 +lon_0=10 +datum=WGS84", 1400, 1400, -7e6, 1e4, 7e6, -1e4)},
        {place("EPSG:4326", 3600, 1800, -180, 0.1, -90, 0.1), /* south-up */
         place("ESRI:54030", 1700, 860, -1.7e7, 20000, 8.6e6, -20000)},
        {place("EPSG:3857", 4000, 4000, -20037508, 10018.754, 20037508, -10018.754),
         place("EPSG:4326", 7200, 3600, -180, 0.05, 90, -0.05)},
        {place("EPSG:4326", 3600, 1800, -180, 0.1, 90, -0.1), /* curvature changes on the equator */
         place("EPSG:3857", 700, 700, -20037508, 57250, 20037508, -57250)},
    };
    for (size_t i = 0; has_proj() && i < sizeof pairs / sizeof *pairs; i++)
        for (int of_corners = 0; of_corners < 2; of_corners++) {
            computed made;
            compute(&made, &pairs[i], 1, 0, 0, pairs[i].target.width, pairs[i].target.height,
                    of_corners, MAX_ERROR);
            check_positions(&made, 20000, MAX_ERROR * 1.02);
            discard(&made);
        }
}

static void smooth_windows_are_interpolated(void) {
    const pair of = utm_to_mercator();
    computed made;
    if (!has_proj())
        return;
    compute(&made, &of, 1, 0, 0, 10000, 10000, false, MAX_ERROR);
    CHECK(made.coordinates.exact_count == 0);
    check_positions(&made, 20000, MAX_ERROR);
    discard(&made);
}

static void levels_have_smaller_pixels(void) {
    const pair of = utm_to_mercator();
    computed made;
    if (!has_proj())
        return;
    compute(&made, &of, 4, 100, 200, 500, 400, false, MAX_ERROR);
    check_positions(&made, 5000, MAX_ERROR);
    discard(&made);
}

/* Affine transforms have no error, and need no exact cell. */
static void affine_positions(void) {
    const pair of = {place("EPSG:32632", 1000, 1000, 400000, 10, 5800000, -10),
                     place("EPSG:32632", 777, 555, 400123, 7, 5799871, -13)};
    computed made;
    for (int of_corners = 0; of_corners < 2; of_corners++) {
        compute(&made, &of, 2, 5, 17, 700, 500, of_corners, 0);
        CHECK(made.coordinates.exact_count == 0);
        check_positions(&made, 2000, 1e-8);
        discard(&made);
    }
}

static void exact_positions(void) {
    const pair of = globe_to_pole();
    computed made;
    if (!has_proj())
        return;
    compute(&made, &of, 1, 220, 230, 90, 70, false, 0);
    CHECK(made.coordinates.exact_count == made.coordinates.across * made.coordinates.down);
    check_positions(&made, 5000, 0);
    discard(&made);
}

/* ---- windows ---- */

static uint32_t count_differences(const computed *a, const computed *b) {
    const cogpu_coordinates *window = &b->coordinates;
    uint32_t differ = 0;
    for (uint32_t row = window->y; row < window->y + window->height; row++)
        for (uint32_t column = window->x; column < window->x + window->width; column++) {
            double one[2], other[2];
            find_position(&a->coordinates, column, row, &one[0], &one[1]);
            find_position(&b->coordinates, column, row, &other[0], &other[1]);
            differ +=
                !(one[0] == other[0] && one[1] == other[1]) && !(isnan(one[0]) && isnan(other[0]));
        }
    return differ;
}

static void same_in_every_window(void) {
    const pair pairs[] = {
        globe_to_pole(),
        utm_to_mercator(),
        {place("EPSG:4326", 3600, 1800, -180, 0.1, 90, -0.1),
         place("+proj=ortho +lat_0=40 +lon_0=10 +datum=WGS84", 1500, 1500, -7e6, 9334, 7e6, -9334)},
    };
    for (size_t k = 0; has_proj() && k < sizeof pairs / sizeof *pairs; k++) {
        const cogpu_placement *target = &pairs[k].target;
        computed whole, part;
        compute(&whole, &pairs[k], 1, 0, 0, target->width, target->height, k & 1, MAX_ERROR);
        for (int i = 0; i < 12; i++) {
            const uint32_t x = draw_below(target->width / 16) * 16, y = draw_below(target->height);
            const uint32_t width = 1 + draw_below(target->width - x) % 300;
            const uint32_t height = 1 + draw_below(target->height - y) % 300;
            compute(&part, &pairs[k], 1, x, y, width, height, k & 1, MAX_ERROR);
            CHECK(count_differences(&whole, &part) == 0);
            discard(&part);
        }
        discard(&whole);
    }
}

static void same_by_any_threads(void) {
    const pair of = utm_to_mercator();
    cogpu_pool *const shared = pool;
    computed alone, together;
    if (!has_proj())
        return;
    const uint32_t height = of.target.height - 900;
    compute(&together, &of, 1, 500, 900, 2000, height, false, MAX_ERROR);
    pool = NULL;
    compute(&alone, &of, 1, 500, 900, 2000, height, false, MAX_ERROR);
    pool = shared;
    CHECK(height > 3 * 1024); /* several strips */
    CHECK(count_differences(&alone, &together) == 0);
    discard(&alone);
    discard(&together);
}

/* Where nothing is, all cells share one table. */
static void no_positions(void) {
    const pair of = {
        place("EPSG:4326", 3600, 1800, -180, 0.1, 90, -0.1),
        place("+proj=ortho +lat_0=40 +lon_0=10 +datum=WGS84", 2000, 2000, 8e6, 100, 7e6, -100)};
    computed made;
    double x, y;
    if (!has_proj())
        return;
    compute(&made, &of, 1, 0, 0, 2000, 2000, false, MAX_ERROR);
    CHECK(made.coordinates.exact_count == 1);
    find_position(&made.coordinates, 1999, 3, &x, &y);
    CHECK(isnan(x) && isnan(y));
    const cogpu_box box = cogpu_coordinates_extent(&made.coordinates, 3, 3, 3600, 1800);
    CHECK(box.x0 >= box.x1);
    discard(&made);
}

/* The extent holds all positions, and not many more pixels. */
static void extents_hold_positions(void) {
    const pair pairs[] = {utm_to_mercator(), globe_to_pole()};
    for (int i = 0; has_proj() && i < 20; i++) {
        const pair *of = &pairs[i % 2];
        const uint32_t x = draw_below(400), y = draw_below(400);
        const uint32_t width = 1 + draw_below(100), height = 1 + draw_below(100);
        double least = INFINITY, most = -INFINITY;
        computed made;
        compute(&made, of, 1, x, y, width, height, i & 2, MAX_ERROR);
        const cogpu_box box =
            cogpu_coordinates_extent(&made.coordinates, 0, 0, of->source.width, of->source.height);
        for (uint32_t row = y; row < y + height; row++)
            for (uint32_t column = x; column < x + width; column++) {
                double at_x, at_y;
                find_position(&made.coordinates, column, row, &at_x, &at_y);
                if (is_outside(at_x, at_y, of->source.width, of->source.height))
                    continue;
                CHECK(at_x >= (double)box.x0 && at_x <= (double)box.x1);
                CHECK(at_y >= (double)box.y0 && at_y <= (double)box.y1);
                least = fmin(least, at_y), most = fmax(most, at_y);
            }
        if (!(i & 2) && least < most)
            CHECK((double)box.y0 >= least - 3 && (double)box.y1 <= most + 3);
        discard(&made);
    }
}

/* Corners of source pixels in the target, as for `sum`. */
static void forward_positions(void) {
    const pair of = utm_to_mercator();
    cogpu_arena arena;
    cogpu_coordinates found;
    cogpu_transformer *transformer;
    if (!has_proj())
        return;
    cogpu_arena_open(&arena, 1 << 28);
    CHECK(cogpu_transformer_open(&of.source, &of.target, operations, &transformer, &error) ==
          COGPU_OK);
    CHECK(cogpu_coordinates_compute_forward(transformer, &of.source, &of.target, 5500, 5500, 2000,
                                            1500, 300, 200, MAX_ERROR, pool, &arena, &found,
                                            &error) == COGPU_OK);
    CHECK(found.of_corners);
    for (int i = 0; i < 1000; i++) {
        const uint32_t column = 2000 + draw_below(301), row = 1500 + draw_below(201);
        double x = 2.0 * column, y = 2.0 * row, at_x, at_y;
        cogpu_to_target(transformer, 1, &x, &y);
        find_position(&found, column, row, &at_x, &at_y);
        CHECK(fabs(x - at_x) + fabs(y - at_y) <= MAX_ERROR);
    }
    cogpu_transformer_close(transformer);
    cogpu_arena_close(&arena);
}

/* ---- errors ---- */

static void refuses_windows(void) {
    const pair of = {place("EPSG:32632", 100, 100, 400000, 10, 5800000, -10),
                     place("EPSG:32632", 100, 80, 400000, 10, 5800000, -10)};
    static const uint32_t windows[][4] = {
        {0, 0, 101, 1}, {0, 80, 1, 1}, {50, 50, 0, 5}, {UINT32_MAX, 0, 2, 2}};
    cogpu_arena arena;
    cogpu_coordinates found;
    cogpu_transformer *transformer;
    cogpu_arena_open(&arena, 500);
    CHECK(cogpu_transformer_open(&of.source, &of.target, operations, &transformer, &error) ==
          COGPU_OK);
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        CHECK(cogpu_coordinates_compute(transformer, &of.source, &of.target, 100, 100,
                                        windows[i][0], windows[i][1], windows[i][2], windows[i][3],
                                        false, MAX_ERROR, pool, &arena, &found,
                                        &error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_coordinates_compute(transformer, &of.source, &of.target, 100, 100, 0, 0, 100, 80,
                                    false, MAX_ERROR, pool, &arena, &found,
                                    &error) == COGPU_LIMIT_EXCEEDED);
    cogpu_transformer_close(transformer);
    cogpu_arena_close(&arena);
}

TESTS(positions) {
    CHECK(cogpu_operations_open(&operations, &error) == COGPU_OK);
    CHECK(cogpu_pool_open(3, &pool, &error) == COGPU_OK);
    RUN(precise_positions);
    RUN(smooth_windows_are_interpolated);
    RUN(levels_have_smaller_pixels);
    RUN(affine_positions);
    RUN(exact_positions);
    RUN(same_in_every_window);
    RUN(same_by_any_threads);
    RUN(no_positions);
    RUN(extents_hold_positions);
    RUN(forward_positions);
    RUN(refuses_windows);
    cogpu_pool_close(pool);
    cogpu_operations_close(operations);
    return FINISH();
}
