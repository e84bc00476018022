/* Rectangles of VRT sources: samples of nearest, and each rule of a ComplexSource. Other resampling
 * is compared with GDAL in tests/python/test_vrt.py. */
#include "cpu/rectangle.h"

#include "support/test.h"

#include <math.h>

enum { SIDE = 4, PIXELS = SIDE * SIDE };

static cogpu_worker worker;
static cogpu_error error;
static uint8_t source[PIXELS], mask[PIXELS], painted[PIXELS];
static int16_t made[PIXELS];
static cogpu_rectangle_band band;

static cogpu_raster raster_of(uint8_t *data) {
    return (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                          .data = data,
                          .type = COGPU_TYPE_U8,
                          .bands = 1,
                          .width = SIDE,
                          .height = SIDE,
                          .stride_x = 1,
                          .stride_y = SIDE,
                          .stride_band = PIXELS};
}

static cogpu_rectangle whole(void) {
    return (cogpu_rectangle){.method = COGPU_RESAMPLE_NEAREST,
                             .from_type = COGPU_TYPE_U8,
                             .to_type = COGPU_TYPE_I16,
                             .bands = 1,
                             .rules = &band,
                             .high_x = SIDE,
                             .high_y = SIDE,
                             .step_x = 1,
                             .step_y = 1,
                             .width = SIDE,
                             .height = SIDE};
}

static cogpu_status execute(const cogpu_rectangle *rectangle) {
    const cogpu_raster pixels = raster_of(source), valid = raster_of(mask);
    const cogpu_rectangle_job job = {.rectangle = rectangle,
                                     .source = &pixels,
                                     .mask = &valid,
                                     .pixels = (uint8_t *)made,
                                     .painted = painted};
    for (int i = 0; i < PIXELS; i++)
        made[i] = -1;
    memset(painted, 7, sizeof painted);
    return cogpu_cpu_rectangle(&worker, &job, &error);
}

static void reset(void) {
    memset(&band, 0, sizeof band);
    for (int i = 0; i < PIXELS; i++) {
        source[i] = (uint8_t)(10 * i);
        mask[i] = i % 3 ? 255 : 0;
    }
}

/* The sample of each pixel, or -1 where nothing is painted. */
static void check(double (*expected)(int i)) {
    const cogpu_rectangle rectangle = whole();
    CHECK(execute(&rectangle) == COGPU_OK);
    for (int i = 0; i < PIXELS; i++) {
        double value = expected(i);
        CHECK(made[i] == (int16_t)(isnan(value) ? -1 : value));
        CHECK(painted[i] == (isnan(value) ? 0 : 255));
    }
}

static double as_it_is(int i) {
    return 10 * i;
}

static double without_30(int i) {
    return i == 3 ? NAN : 10.0 * i;
}

static double unmasked(int i) {
    return i % 3 ? 10.0 * i : NAN;
}

static double scaled(int i) {
    return i == 3 ? NAN : round(10 * i * -0.25 - 0.1);
}

static double by_table(int i) {
    return i < 2 ? 100 : i > 5 ? 40 : round(100 - (10 * i - 10) * 1.5);
}

static double by_power(int i) {
    double part = fmin(i / 10.0, 1);
    return round(part * part * 200 + 5);
}

static double red(int i) {
    return 10 * i < 100 ? 255 - 10 * i : 10 * i;
}

static double at_most_63(int i) {
    return fmin(10.0 * i, 63);
}

static double always_9(int i) {
    (void)i;
    return 9;
}

static void rules(void) {
    static const double lut[] = {10, 50, 100, 40};
    static uint16_t palette[400];
    reset();
    check(as_it_is);
    band.rule.uses_mask = true;
    check(unmasked);
    reset();
    band.rule.has_nodata = true;
    band.rule.nodata = 30.5; /* the fraction does not count */
    check(without_30);
    band.rule.scaling = COGPU_SCALING_LINEAR;
    band.rule.ratio = -0.25;
    band.rule.offset = -0.1;
    check(scaled);
    reset();
    band.rule.lut = lut;
    band.rule.lut_count = 2;
    check(by_table);
    reset();
    band.rule = (cogpu_sample_rule){.scaling = COGPU_SCALING_EXPONENT,
                                    .exponent = 2,
                                    .source_to = 100,
                                    .from = 5,
                                    .to = 205,
                                    .is_clipped = true};
    check(by_power);
    reset();
    for (int i = 0; i < 100; i++)
        palette[i] = (uint16_t)((255 - i) * 257);
    band.rule.palette_component = 1;
    band.palette = palette;
    band.palette_entries = 100;
    check(red);
    reset();
    band.most = 63;
    check(at_most_63);
    reset();
    band.rule.scaling = COGPU_SCALING_LINEAR;
    band.rule.offset = 9;
    CHECK(cogpu_sample_rule_is_constant(&band.rule));
    check(always_9);
}

/* GDAL compares with nodata where the mask of the source is that of nodata. */
static void nodata_as_mask(void) {
    reset();
    cogpu_nodata_parse("30", COGPU_TYPE_U8, &band.nodata);
    band.rule.uses_mask = true;
    check(without_30);
}

static void positions(void) {
    cogpu_rectangle rectangle = whole();
    reset();
    rectangle.x = 0.5; /* columns 0, 1 and 2, 3 of each row's half */
    rectangle.step_x = 0.5;
    rectangle.to_x = 1;
    rectangle.width = 3;
    rectangle.height = 1;
    CHECK(execute(&rectangle) == COGPU_OK);
    CHECK(made[0] == 10 && made[1] == 10 && made[2] == 20);
}

static void averaged(void) {
    cogpu_rectangle rectangle = whole();
    reset();
    rectangle.averages = true;
    rectangle.step_x = rectangle.step_y = 2;
    rectangle.width = rectangle.height = 2;
    rectangle.across = rectangle.down = (cogpu_rectangle_axis){
        .from_size = 4, .to_size = 2, .pixels = 2, .whole = 2, .count = 4, .length = 4};
    CHECK(execute(&rectangle) == COGPU_OK);
    CHECK(made[0] == 25 && made[1] == 45 && made[2] == 105 && made[3] == 125);
}

static void refused(void) {
    cogpu_rectangle rectangle = whole();
    const uint16_t palette[4] = {0};
    reset();
    band.palette = palette;
    band.palette_entries = 1;
    rectangle.method = COGPU_RESAMPLE_RMS;
    CHECK(execute(&rectangle) == COGPU_UNSUPPORTED && strstr(error.message, "palette"));
    reset();
    rectangle = whole();
    rectangle.to_type = COGPU_TYPE_CF32;
    rectangle.method = COGPU_RESAMPLE_BILINEAR;
    CHECK(execute(&rectangle) == COGPU_UNSUPPORTED && strstr(error.message, "complex"));
    rectangle.method = COGPU_RESAMPLE_NEAREST;
    rectangle.averages = true;
    CHECK(execute(&rectangle) == COGPU_UNSUPPORTED && strstr(error.message, "complex"));
}

TESTS(rectangle) {
    RUN(rules);
    RUN(nodata_as_mask);
    RUN(positions);
    RUN(averaged);
    RUN(refused);
    cogpu_worker_close(&worker);
    return FINISH();
}
