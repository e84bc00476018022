/*
 * Composition on the CPU: results worked out by hand, and the median against sorting. Every case
 * runs at several strides, with layers at places of their own, with one thread and with three.
 */
#include "cpu/composite.h"

#include "pixel/composite.h"
#include "support/draw.h"
#include "support/test.h"

#include <math.h>

enum { SIDE = 3, PIXELS = SIDE * SIDE, LAYERS_MAX = 9, ROOM = 4096 };

static cogpu_pool *pool;

/* ---- one column of samples: a layer each, all at one pixel ---- */

struct column {
    cogpu_type type;
    uint32_t layers;
    double samples[LAYERS_MAX];
    bool is_invalid[LAYERS_MAX];
};

static void put(cogpu_type type, double value, uint8_t *at) {
    const float f = (float)value;
    const int64_t whole = value == value ? (int64_t)value : 0;
    if (type == COGPU_TYPE_F64)
        memcpy(at, &value, sizeof value);
    else if (type == COGPU_TYPE_F32)
        memcpy(at, &f, sizeof f);
    else
        memcpy(at, &whole, cogpu_type_bytes(type));
}

static double get(cogpu_type type, const uint8_t *at) {
    double value;
    float f;
    int64_t whole = 0;
    if (type == COGPU_TYPE_F64) {
        memcpy(&value, at, sizeof value);
        return value;
    }
    if (type == COGPU_TYPE_F32) {
        memcpy(&f, at, sizeof f);
        return (double)f;
    }
    memcpy(&whole, at, cogpu_type_bytes(type));
    return type == COGPU_TYPE_I8    ? (double)(int8_t)whole
           : type == COGPU_TYPE_I16 ? (double)(int16_t)whole
                                    : (double)whole;
}

enum { FILL = 77, UNTOUCHED = 0xC3 };

/* The composition of a column at the middle of a raster. `gap`: bytes between pixels. */
static double compose(cogpu_composite method, const struct column *column, int64_t gap,
                      bool *is_valid) {
    static uint8_t memory[ROOM], stack[ROOM], valid[PIXELS], layer[LAYERS_MAX][16], fill[1][16];
    static double sums[PIXELS];
    static uint32_t counts[PIXELS];
    const int64_t size = (int64_t)cogpu_type_bytes(column->type);
    const cogpu_raster pixels = {.struct_size = sizeof pixels,
                                 .data = memory + 1,
                                 .type = column->type,
                                 .bands = 1,
                                 .height = SIDE,
                                 .width = SIDE,
                                 .stride_x = size + gap,
                                 .stride_y = SIDE * (size + gap),
                                 .stride_band = PIXELS * (size + gap)};
    const cogpu_composition composition = {.method = method,
                                           .pixels = &pixels,
                                           .valid = valid,
                                           .sums = method == COGPU_COMPOSITE_MEAN ? sums : NULL,
                                           .counts = method >= COGPU_COMPOSITE_MEAN ? counts : NULL,
                                           .stack = method == COGPU_COMPOSITE_MEDIAN ? stack : NULL,
                                           .depth = column->layers,
                                           .fill = (const uint8_t(*)[16])fill};
    const uint8_t *middle = memory + 1 + (SIDE + 1) * pixels.stride_x;
    memset(memory, UNTOUCHED, sizeof memory);
    put(column->type, FILL, fill[0]);
    cogpu_cpu_composite_begin(pool, &composition);
    for (uint32_t i = 0; i < column->layers; i++) {
        const uint8_t is_layer_valid = column->is_invalid[i] ? 0 : 1;
        put(column->type, column->samples[i], layer[i]);
        const cogpu_composite_layer at = {1, 1, 1, 1, layer[i], &is_layer_valid};
        cogpu_cpu_composite_add(pool, &composition, &at);
    }
    cogpu_cpu_composite_finish(pool, &composition);
    for (int i = 0; i < PIXELS; i++)
        CHECK(i == SIDE + 1 ||
              (valid[i] == 0 && get(column->type, memory + 1 + i * pixels.stride_x) == FILL));
    for (int64_t i = 0; i < gap; i++)
        CHECK(middle[size + i] == UNTOUCHED);
    *is_valid = valid[SIDE + 1] == 255;
    CHECK(*is_valid || valid[SIDE + 1] == 0);
    return get(column->type, middle);
}

static bool is_equal(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void expect(cogpu_composite method, const struct column *column, double expected) {
    bool is_valid;
    for (int64_t gap = 0; gap < 4; gap += 3) {
        CHECK(is_equal(compose(method, column, gap, &is_valid), expected));
        CHECK(is_valid);
    }
}

/* ---- methods ---- */

static void test_order_decides(void) {
    const struct column column = {COGPU_TYPE_U16, 4, {9, 500, 20, 8}, {true, false, false, true}};
    expect(COGPU_COMPOSITE_FIRST, &column, 500);
    expect(COGPU_COMPOSITE_LAST, &column, 20);
    expect(COGPU_COMPOSITE_COUNT, &column, 2);
}

static void test_extremes_of_signed_samples(void) {
    static const cogpu_type types[] = {COGPU_TYPE_I8, COGPU_TYPE_I16, COGPU_TYPE_I64,
                                       COGPU_TYPE_F32, COGPU_TYPE_F64};
    for (int i = 0; i < 5; i++) {
        const struct column column = {
            types[i], 5, {-3, 4, -128, -7, 100}, {false, false, true, false, false}};
        expect(COGPU_COMPOSITE_MIN, &column, -7);
        expect(COGPU_COMPOSITE_MAX, &column, 100);
    }
}

static void test_nothing_valid(void) {
    const struct column column = {COGPU_TYPE_F32, 2, {1, 2}, {true, true}};
    for (int method = 0; method <= COGPU_COMPOSITE_COUNT; method++) {
        bool is_valid;
        CHECK(is_equal(compose((cogpu_composite)method, &column, 0, &is_valid), FILL));
        CHECK(!is_valid);
    }
}

static void test_means_round_half_away_from_zero(void) {
    const struct column up = {COGPU_TYPE_U8, 2, {2, 3}, {false}};
    const struct column down = {COGPU_TYPE_I16, 2, {-2, -3}, {false}};
    const struct column third = {COGPU_TYPE_I8, 3, {-1, -1, 1}, {false}};
    const struct column exact = {COGPU_TYPE_F64, 3, {1, 2, 4}, {false}};
    expect(COGPU_COMPOSITE_MEAN, &up, 3);
    expect(COGPU_COMPOSITE_MEAN, &down, -3);
    expect(COGPU_COMPOSITE_MEAN, &third, 0);
    expect(COGPU_COMPOSITE_MEAN, &exact, 7.0 / 3);
}

static void test_nan_never_wins(void) {
    const struct column mixed = {COGPU_TYPE_F32, 4, {NAN, 5, NAN, 3}, {false}};
    const struct column alone = {COGPU_TYPE_F64, 2, {NAN, NAN}, {false}};
    expect(COGPU_COMPOSITE_MIN, &mixed, 3);
    expect(COGPU_COMPOSITE_MAX, &mixed, 5);
    expect(COGPU_COMPOSITE_MEAN, &mixed, 4);
    expect(COGPU_COMPOSITE_MEDIAN, &mixed, 3);
    expect(COGPU_COMPOSITE_COUNT, &mixed, 4);
    expect(COGPU_COMPOSITE_FIRST, &mixed, (double)NAN);
    for (int method = COGPU_COMPOSITE_MIN; method < COGPU_COMPOSITE_COUNT; method++)
        expect((cogpu_composite)method, &alone, (double)NAN);
}

static void test_infinities(void) {
    const struct column both = {
        COGPU_TYPE_F32, 3, {(double)INFINITY, 5, -(double)INFINITY}, {false}};
    const struct column high = {COGPU_TYPE_F32, 2, {NAN, (double)INFINITY}, {false}};
    expect(COGPU_COMPOSITE_MIN, &both, -(double)INFINITY);
    expect(COGPU_COMPOSITE_MAX, &both, (double)INFINITY);
    expect(COGPU_COMPOSITE_MEDIAN, &both, 5);
    expect(COGPU_COMPOSITE_MIN, &high, (double)INFINITY);
}

static void test_numbers_saturate(void) {
    CHECK(composite_number_to_sample(COGPU_TYPE_U8, 300) == 255);
    CHECK(composite_number_to_sample(COGPU_TYPE_I8, 300) == 127);
    CHECK(composite_number_to_sample(COGPU_TYPE_I8, -128.6) == 0x80);
    CHECK(composite_number_to_sample(COGPU_TYPE_I16, 1e30) == 0x7FFF);
    CHECK(composite_number_to_sample(COGPU_TYPE_U64, 1e30) == UINT64_MAX);
    CHECK(composite_number_to_sample(COGPU_TYPE_F32, 1e300) == 0x7F800000);
}

static int by_value(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void test_median_is_the_lower_middle(void) {
    static const cogpu_type types[] = {COGPU_TYPE_U8, COGPU_TYPE_I16, COGPU_TYPE_F32,
                                       COGPU_TYPE_I64};
    for (int i = 0; i < 400; i++) {
        struct column column = {types[i % 4], 1 + draw(LAYERS_MAX), {0}, {false}};
        double sorted[LAYERS_MAX];
        for (uint32_t j = 0; j < column.layers; j++)
            sorted[j] = column.samples[j] = draw(i % 3 ? 4 : 100);
        qsort(sorted, column.layers, sizeof *sorted, by_value);
        expect(COGPU_COMPOSITE_MEDIAN, &column, sorted[(column.layers - 1) / 2]);
    }
}

/* ---- layers ---- */

/* Rows of several work items, two bands, a layer in the middle: samples outside of it stay. */
static void test_large_layer(void) {
    enum { WIDTH = 700, HEIGHT = 300, LEFT = 13, TOP = 7, ACROSS = 600, DOWN = 250 };
    enum { PLANE = WIDTH * HEIGHT, LAYER = ACROSS * DOWN };
    static uint16_t pixels[2 * PLANE], layer[2 * LAYER];
    static uint8_t valid[2 * PLANE], layer_valid[2 * LAYER];
    static const uint8_t fill[2][16] = {{1}, {2}};
    const cogpu_raster raster = {.struct_size = sizeof raster,
                                 .data = pixels,
                                 .type = COGPU_TYPE_U16,
                                 .bands = 2,
                                 .height = HEIGHT,
                                 .width = WIDTH,
                                 .stride_x = 2,
                                 .stride_y = 2 * WIDTH,
                                 .stride_band = 2 * PLANE};
    const cogpu_composition composition = {
        .method = COGPU_COMPOSITE_LAST, .pixels = &raster, .valid = valid, .fill = fill};
    const cogpu_composite_layer at = {LEFT, TOP, ACROSS, DOWN, (const uint8_t *)layer, layer_valid};
    for (int i = 0; i < 2 * LAYER; i++) {
        layer[i] = (uint16_t)(3 + i % 60000);
        layer_valid[i] = i % 5 != 0;
    }
    cogpu_cpu_composite_begin(pool, &composition);
    cogpu_cpu_composite_add(pool, &composition, &at);
    cogpu_cpu_composite_finish(pool, &composition);
    int wrong = 0;
    for (int i = 0; i < 2 * PLANE; i++) {
        int band = i / PLANE, x = i % WIDTH - LEFT, y = i % PLANE / WIDTH - TOP;
        bool is_inside = x >= 0 && x < ACROSS && y >= 0 && y < DOWN;
        int from = band * LAYER + y * ACROSS + x;
        bool is_valid = is_inside && layer_valid[from];
        wrong +=
            valid[i] != (is_valid ? 255 : 0) || pixels[i] != (is_valid ? layer[from] : band + 1);
    }
    CHECK(wrong == 0);
}

static void run_all(void) {
    RUN(test_order_decides);
    RUN(test_extremes_of_signed_samples);
    RUN(test_nothing_valid);
    RUN(test_means_round_half_away_from_zero);
    RUN(test_nan_never_wins);
    RUN(test_infinities);
    RUN(test_numbers_saturate);
    RUN(test_median_is_the_lower_middle);
    RUN(test_large_layer);
}

TESTS(composite) {
    draw_from(test_argc, test_argv);
    run_all();
    CHECK(cogpu_pool_open(3, &pool, NULL) == COGPU_OK);
    run_all();
    cogpu_pool_close(pool);
    return FINISH();
}
