/*
 * Warps: the loops of cpu/ against pixel/warp.h, bit for bit; pixel/warp.h against plain formulas;
 * and rules of GDAL's warper in numbers that were read off GDAL 3.12 or are plain to see.
 */
#include "cpu/warp.h"
#include "support/test.h"
#include "support/warp_job.h"

#include <math.h>

static uint32_t state = 5;

static uint32_t noise(uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * below >> 32);
}

static double choose(const double *values, uint32_t count) {
    return values[noise(count)];
}
#define CHOOSE(...)                                                                                \
    choose((const double[]){__VA_ARGS__},                                                          \
           (uint32_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

/* ---- cases ---- */

enum { BANDS_MAX = 4, SOURCE_MAX = 80 * 80, TARGET_MAX = 160 * 60 };

/* A case with its memory. */
struct scene {
    struct warp_case given;
    uint8_t source[BANDS_MAX * SOURCE_MAX * 8], mask[SOURCE_MAX];
    uint8_t target[BANDS_MAX * TARGET_MAX * 8], valid[BANDS_MAX * TARGET_MAX];
    uint8_t fill[BANDS_MAX][16];
    double nodata[BANDS_MAX], avoided[BANDS_MAX];
};

static void set_affine(struct scene *scene, double x, double y, double scale_x, double scale_y,
                       double degrees) {
    double turn = degrees * 3.14159265358979 / 180, c = cos(turn), s = sin(turn);
    const double to_source[6] = {x, c / scale_x, -s / scale_y, y, s / scale_x, c / scale_y};
    const double to_target[6] = {-(c * x + s * y) * scale_x, c * scale_x,  s * scale_x,
                                 -(c * y - s * x) * scale_y, -s * scale_y, c * scale_y};
    memcpy(scene->given.to_source, to_source, sizeof to_source);
    memcpy(scene->given.to_target, to_target, sizeof to_target);
    scene->given.scale_x = scale_x < 1 ? scale_x : 1;
    scene->given.scale_y = scale_y < 1 ? scale_y : 1;
}

/* A source of one band, all of it given, and a target. */
static void start(struct scene *scene, uint32_t method, uint32_t type, uint32_t width,
                  uint32_t height, uint32_t target_width, uint32_t target_height) {
    memset(scene, 0, sizeof *scene);
    scene->given = (struct warp_case){.method = method,
                                      .bands = 1,
                                      .from_type = type,
                                      .to_type = type,
                                      .width = width,
                                      .height = height,
                                      .window_width = width,
                                      .window_height = height,
                                      .target_width = target_width,
                                      .target_height = target_height,
                                      .threads = 1,
                                      .source = scene->source,
                                      .target = scene->target,
                                      .valid = scene->valid,
                                      .fill = scene->fill[0]};
    set_affine(scene, 0, 0, 1, 1, 0);
}

static void set_source(struct scene *scene, uint32_t i, double value) {
    uint32_t type = scene->given.from_type;
    store_bits(type, round_to_working(type, value), scene->source + i * sample_bytes(type));
}

static double result(const struct scene *scene, uint32_t i) {
    uint32_t type = scene->given.to_type;
    return sample_to_double(type, load_bits(type, scene->target + i * sample_bytes(type)));
}

static void warp(struct scene *scene) {
    struct warp_job_memory memory;
    open_warp_job(&scene->given, &memory);
    CHECK(cogpu_cpu_warp(&memory.job, NULL, 1, NULL) == COGPU_OK);
    close_warp_job(&memory);
}

/* ---- the same bits from loops and pixels ---- */

static void set_random_samples(struct scene *scene) {
    struct warp_case *given = &scene->given;
    uint32_t pixels = given->window_width * given->window_height;
    uint32_t unusual = (uint32_t)CHOOSE(0, 0, 2, 30, 70);
    double special = CHOOSE(0, 255, -9999, NAN, INFINITY, -0.0);
    for (uint32_t i = 0; i < given->bands * pixels; i++) {
        double value = noise(2000) / 4.0 - (sample_is_signed(given->from_type) ? 250 : 0);
        bool is_special = noise(100) < unusual;
        set_source(scene, i, is_special ? special : value);
        if (given->alpha_band && i / pixels + 1 == given->alpha_band && noise(8) > 0)
            set_source(scene, i, noise(3) ? alpha_of_opaque(given->from_type) : 0);
    }
    for (uint32_t i = 0; i < pixels; i++)
        scene->mask[i] = noise(20) > 0;
    for (uint32_t band = 0; band < given->bands; band++) {
        scene->nodata[band] = special == special && fabs(special) < 1e6 ? special : 7;
        scene->avoided[band] = CHOOSE(0, 255, 100, -9999);
        store_bits(given->to_type, round_to_working(given->to_type, 9), scene->fill[band]);
    }
}

/* A part of a level, smaller or not. */
static void set_random_window(struct warp_case *given) {
    given->width = 1 + noise(80);
    given->height = 1 + noise(80);
    given->x = noise(3) ? 0 : noise(given->width);
    given->y = noise(3) ? 0 : noise(given->height);
    given->window_width = noise(3) ? given->width - given->x : 1 + noise(given->width - given->x);
    given->window_height =
        noise(3) ? given->height - given->y : 1 + noise(given->height - given->y);
}

static void set_random_case(struct scene *scene) {
    struct warp_case *given = &scene->given;
    double scale = CHOOSE(0.1, 0.2, 0.3, 1.0 / 3, 0.5, 0.7, 0.95, 1, 1, 1.3, 2, 4);
    start(scene, 1 + noise(COGPU_RESAMPLE_SUM), 1 + noise(COGPU_TYPE_F64), 1, 1,
          1 + noise(noise(2) ? 20 : 160), 1 + noise(60));
    set_random_window(given);
    given->bands = 1 + noise(BANDS_MAX);
    given->to_type = noise(3) ? given->from_type : 1 + noise(COGPU_TYPE_F64);
    given->target_x = noise(40);
    given->target_y = noise(40);
    given->alpha_band = noise(4) ? 0 : 1 + noise(given->bands);
    given->clamps = noise(5) == 0;
    given->is_exact = noise(2);
    given->mask = noise(4) ? NULL : scene->mask;
    given->nodata = noise(2) ? NULL : scene->nodata;
    given->avoided = noise(2) ? NULL : scene->avoided;
    given->valid = noise(4) ? scene->valid : NULL;
    set_affine(scene, CHOOSE(0, -0.5, 3.3, -20), CHOOSE(0, -0.25, -2.1, 9), scale,
               scale * CHOOSE(1, 1, 1, 0.5, 2), CHOOSE(0, 0, 0, 10, 45, 90, 180));
    set_random_samples(scene);
}

/* Band after band, or pixel by pixel, or from the last row up. */
static void set_strides(cogpu_raster *raster, uint8_t *memory, uint32_t layout) {
    int64_t size = sample_bytes(raster->type);
    raster->data = memory;
    if (layout == 1) {
        raster->stride_band = size;
        raster->stride_x = size * raster->bands;
        raster->stride_y = raster->stride_x * raster->width;
    } else if (layout == 2) {
        raster->data = memory + (raster->height - 1) * raster->stride_y;
        raster->stride_y = -raster->stride_y;
    }
}

/* Runs the job in both ways, into different memory. */
static bool has_same_bits(struct scene *scene, struct scene *other, uint32_t layout,
                          cogpu_pool *pool) {
    struct warp_job_memory memory;
    struct warp_rule rules[BANDS_MAX];
    struct warp_args args;
    memset(scene->target, 0x5A, sizeof scene->target);
    memset(scene->valid, 0x5A, sizeof scene->valid);
    memcpy(other, scene, sizeof *scene);
    open_warp_job(&scene->given, &memory);
    set_strides(&memory.source, scene->source, layout);
    set_strides(&memory.target, scene->target, layout);
    set_strides(&memory.valid, scene->valid, layout);
    CHECK(cogpu_cpu_warp(&memory.job, pool, 3, NULL) == COGPU_OK);
    memory.target.data = other->target + ((uint8_t *)memory.target.data - scene->target);
    memory.valid.data = other->valid + ((uint8_t *)memory.valid.data - scene->valid);
    cogpu_warp_prepare(&memory.job, rules, &args);
    for (uint32_t j = 0; j < args.target_height; j++)
        for (uint32_t i = 0; i < args.target_width; i++)
            warp_pixel(&args, args.method, args.from_type, i, j);
    close_warp_job(&memory);
    return memcmp(scene->target, other->target, sizeof scene->target) == 0 &&
           memcmp(scene->valid, other->valid, sizeof scene->valid) == 0;
}

static void loops_equal_pixels(void) {
    struct scene *scene = malloc(sizeof *scene), *other = malloc(sizeof *other);
    cogpu_pool *pool = NULL;
    CHECK(scene && other && cogpu_pool_open(3, &pool, NULL) == COGPU_OK);
    for (uint32_t i = 0; scene && other && i < 700; i++) {
        set_random_case(scene);
        bool is_same = has_same_bits(scene, other, i % 3, i % 2 ? pool : NULL);
        if (!is_same)
            printf("case %u: method %u, types %u to %u\n", i, scene->given.method,
                   scene->given.from_type, scene->given.to_type);
        CHECK(is_same);
    }
    cogpu_pool_close(pool);
    free(scene);
    free(other);
}

/* ---- plain formulas ---- */

static double plain_kernel(uint32_t method, double x) {
    const double pi = 3.14159265358979323846;
    double a = fabs(x);
    if (method == COGPU_RESAMPLE_BILINEAR)
        return a < 1 ? 1 - a : 0;
    if (method == COGPU_RESAMPLE_CUBIC)
        return a < 1   ? 1.5 * pow(a, 3) - 2.5 * a * a + 1
               : a < 2 ? -0.5 * pow(a, 3) + 2.5 * a * a - 4 * a + 2
                       : 0;
    if (method == COGPU_RESAMPLE_CUBICSPLINE)
        return a < 1 ? (3 * pow(a, 3) - 6 * a * a + 4) / 6 : a < 2 ? pow(2 - a, 3) / 6 : 0;
    return a == 0 ? 1 : a < 3 ? sin(pi * a) / (pi * a) * sin(pi * a / 3) / (pi * a / 3) : 0;
}

/* Of a float source without invalid pixels, far from its edges. */
static double plain_convolution(const struct scene *scene, uint32_t method, double x, double y,
                                double scale) {
    double sum = 0, weights = 0;
    for (uint32_t j = 0; j < scene->given.height; j++)
        for (uint32_t i = 0; i < scene->given.width; i++) {
            float value;
            double weight = plain_kernel(method, (i + 0.5 - x) * scale) *
                            plain_kernel(method, (j + 0.5 - y) * scale);
            memcpy(&value, scene->source + (j * scene->given.width + i) * sizeof value,
                   sizeof value);
            sum += (double)value * weight;
            weights += weight;
        }
    return sum / weights;
}

static void check_convolution(struct scene *scene, uint32_t method, double scale, double degrees) {
    start(scene, method, COGPU_TYPE_F32, 60, 60, 12, 12);
    set_affine(scene, 25.3, 24.1, scale, scale, degrees);
    for (uint32_t i = 0; i < 60 * 60; i++)
        set_source(scene, i, noise(1000));
    warp(scene);
    const double *at = scene->given.to_source;
    for (uint32_t i = 0; i < 144; i++) {
        double x = i % 12 + 0.5, y = i / 12 + 0.5;
        double plain = plain_convolution(scene, method, at[0] + x * at[1] + y * at[2],
                                         at[3] + x * at[4] + y * at[5], scale < 1 ? scale : 1);
        /* Splines that grow have negative weights beyond their end, as in GDAL. */
        double tolerance = method == COGPU_RESAMPLE_CUBICSPLINE && scale < 1 ? 20 : 1e-3;
        CHECK(fabs(result(scene, i) - plain) < tolerance);
        CHECK(scene->valid[i] == 255);
    }
}

/* Normalisation hides a factor, so weights are compared too. */
static void weights_follow_their_formulas(void) {
    for (int32_t i = -320; i <= 320; i++) {
        double x = i / 100.0 + (i % 7 == 0 ? 1e-9 : 0);
        const double factors[] = {1, 1, 6, 1};
        static const uint32_t methods[] = {COGPU_RESAMPLE_BILINEAR, COGPU_RESAMPLE_CUBIC,
                                           COGPU_RESAMPLE_CUBICSPLINE, COGPU_RESAMPLE_LANCZOS};
        for (uint32_t k = 0; k < 4; k++) {
            if (methods[k] == COGPU_RESAMPLE_CUBICSPLINE && x > 2)
                continue;
            double plain = factors[k] * plain_kernel(methods[k], x);
            CHECK(fabs(filter_weight(methods[k], x) - plain) < 4e-15);
        }
    }
    CHECK(filter_weight(COGPU_RESAMPLE_CUBICSPLINE, 2.5) == -0.125); /* as in GDAL */
}

static void kernels_follow_their_formulas(void) {
    static struct scene scene;
    static const uint32_t methods[] = {COGPU_RESAMPLE_BILINEAR, COGPU_RESAMPLE_CUBIC,
                                       COGPU_RESAMPLE_CUBICSPLINE, COGPU_RESAMPLE_LANCZOS};
    for (uint32_t i = 0; i < 4; i++) {
        check_convolution(&scene, methods[i], 1.7, 0);
        check_convolution(&scene, methods[i], 1.2, 30);
        check_convolution(&scene, methods[i], 0.6, 0);
        check_convolution(&scene, methods[i], 1.0 / 3, 0);
    }
}

/* The samples of a box of 3 x 3 with the parts of them that a target pixel covers. */
static void areas_follow_their_formulas(void) {
    static struct scene scene;
    static const double values[9] = {5, 1, 8, 1, 9, 2, 4, 7, 3};
    double sum = 0, squares = 0, weights = 0;
    for (uint32_t i = 0; i < 9; i++) {
        double weight = (i % 3 == 0   ? 0.7
                         : i % 3 == 2 ? 0.4
                                      : 1) *
                        (i / 3 == 0   ? 0.5
                         : i / 3 == 2 ? 0.6
                                      : 1);
        sum += weight * values[i];
        squares += weight * values[i] * values[i];
        weights += weight;
    }
    static const uint32_t methods[] = {
        COGPU_RESAMPLE_MIN, COGPU_RESAMPLE_MAX,     COGPU_RESAMPLE_MEDIAN, COGPU_RESAMPLE_Q1,
        COGPU_RESAMPLE_Q3,  COGPU_RESAMPLE_AVERAGE, COGPU_RESAMPLE_RMS,    COGPU_RESAMPLE_SUM};
    /* Sorted: 1 1 2 3 4 5 7 8 9. Of n, number ceil(q n - 1). */
    const double expected[] = {1, 9, 4, 2, 7, sum / weights, sqrt(squares / weights), sum};
    for (uint32_t i = 0; i < 8; i++) {
        start(&scene, methods[i], COGPU_TYPE_F64, 3, 3, 1, 1);
        set_affine(&scene, 0.3, 0.5, 1 / 2.1, 1 / 2.1, 0);
        for (uint32_t k = 0; k < 9; k++)
            set_source(&scene, k, values[k]);
        warp(&scene);
        CHECK(fabs(result(&scene, 0) - expected[i]) < 1e-12);
    }
}

/* ---- rules ---- */

/* W001: up to 1e-10 left of a border is the right pixel. */
static void nearest_has_a_tolerance(void) {
    static struct scene scene;
    static const double shifts[] = {0, -0.9e-10, -2e-10, 1e-10, 0.999};
    static const double expected[] = {2, 2, 1, 2, 2};
    for (uint32_t i = 0; i < 5; i++) {
        start(&scene, COGPU_RESAMPLE_NEAREST, COGPU_TYPE_U8, 3, 1, 1, 1);
        for (uint32_t k = 0; k < 3; k++)
            set_source(&scene, k, k + 1);
        set_affine(&scene, 0.5 + shifts[i], 0, 1, 1, 0);
        warp(&scene);
        CHECK(result(&scene, 0) == expected[i]);
    }
}

static void positions_outside_have_no_result(void) {
    static struct scene scene;
    for (uint32_t method = COGPU_RESAMPLE_NEAREST; method <= COGPU_RESAMPLE_SUM; method++) {
        start(&scene, method, COGPU_TYPE_I16, 4, 4, 30, 3);
        set_affine(&scene, 100, 0, 1, 1, 0);
        scene.fill[0][0] = 42;
        warp(&scene);
        for (uint32_t i = 0; i < 90; i++)
            CHECK(result(&scene, i) == 42 && scene.valid[i] == 0);
        set_affine(&scene, NAN, 0, 1, 1, 0);
        scene.given.is_exact = 1;
        warp(&scene);
        for (uint32_t i = 0; i < 90; i++)
            CHECK(result(&scene, i) == 42 && scene.valid[i] == 0);
    }
}

static void clamped_positions_take_the_border(void) {
    static struct scene scene;
    start(&scene, COGPU_RESAMPLE_NEAREST, COGPU_TYPE_U8, 2, 1, 6, 1);
    set_affine(&scene, -2, 0, 1, 1, 0);
    set_source(&scene, 0, 10);
    set_source(&scene, 1, 20);
    scene.given.clamps = 1;
    warp(&scene);
    static const double expected[] = {10, 10, 10, 20, 20, 20};
    for (uint32_t i = 0; i < 6; i++)
        CHECK(result(&scene, i) == expected[i]);
}

/* W003: the outer half pixel is that of the border. */
static void one_pixel_is_enough(void) {
    static struct scene scene;
    for (uint32_t method = COGPU_RESAMPLE_NEAREST; method <= COGPU_RESAMPLE_Q3; method++) {
        start(&scene, method, COGPU_TYPE_F32, 1, 1, 5, 5);
        set_affine(&scene, 0, 0, 5, 5, 0);
        set_source(&scene, 0, 3.25);
        warp(&scene);
        for (uint32_t i = 0; i < 25; i++)
            CHECK(result(&scene, i) == 3.25 && scene.valid[i] == 255);
    }
}

/* W010 and W011: the warper rounds half up, the conversion from floats half away from zero. */
static void rounding_depends_on_the_working_type(void) {
    static struct scene scene;
    static const double pairs[][4] = {/* two samples, and both results of their mean */
                                      {-2, -3, -2, -3},
                                      {2, 3, 3, 3},
                                      {-1, 0, 0, -1}};
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t k = 0; k < 2; k++) {
            start(&scene, COGPU_RESAMPLE_BILINEAR, k ? COGPU_TYPE_F32 : COGPU_TYPE_I16, 2, 1, 1, 1);
            scene.given.to_type = COGPU_TYPE_I16;
            set_affine(&scene, 0.5, 0, 1, 1, 0);
            set_source(&scene, 0, pairs[i][0]);
            set_source(&scene, 1, pairs[i][1]);
            warp(&scene);
            CHECK(result(&scene, 0) == pairs[i][2 + k]);
        }
}

static void results_saturate(void) {
    static struct scene scene;
    static const uint32_t types[] = {COGPU_TYPE_U8, COGPU_TYPE_I8, COGPU_TYPE_U16, COGPU_TYPE_I32,
                                     COGPU_TYPE_U64};
    for (uint32_t i = 0; i < 5; i++) { /* W012: the cubic overshoots */
        start(&scene, COGPU_RESAMPLE_CUBIC, types[i], 8, 8, 20, 8);
        set_affine(&scene, 2, 0, 4, 1, 0);
        double high = sample_to_double(types[i], round_half_up(types[i], 1e30));
        double low = sample_to_double(types[i], round_half_up(types[i], -1e30));
        for (uint32_t k = 0; k < 64; k++)
            set_source(&scene, k, k % 8 < 4 ? low : high);
        warp(&scene);
        double least = high, most = low;
        for (uint32_t k = 80; k < 100; k++) {
            least = fmin(least, result(&scene, k));
            most = fmax(most, result(&scene, k));
        }
        CHECK(least == low && most == high);
    }
    CHECK(round_half_up(COGPU_TYPE_I16, NAN) == 0);
    CHECK(round_half_up(COGPU_TYPE_U8, 2.4999) == 2 && round_half_up(COGPU_TYPE_U8, 2.5) == 3);
    CHECK(round_half_up(COGPU_TYPE_U64, 2.4999) == 2 && round_half_up(COGPU_TYPE_U64, 2.5) == 3);
    CHECK(round_half_up(COGPU_TYPE_I8, -2.5) == 0xFE &&
          round_half_up(COGPU_TYPE_I8, -2.5001) == 0xFD);
    CHECK(working_to_target(COGPU_TYPE_F32, COGPU_TYPE_U8, float_bits(NAN)) == 0);
}

static void working_types_are_gdals(void) {
    CHECK(working_type(COGPU_TYPE_U8, COGPU_TYPE_I8) == COGPU_TYPE_I16);
    CHECK(working_type(COGPU_TYPE_U16, COGPU_TYPE_I16) == COGPU_TYPE_I32);
    CHECK(working_type(COGPU_TYPE_I16, COGPU_TYPE_U8) == COGPU_TYPE_I16);
    CHECK(working_type(COGPU_TYPE_U32, COGPU_TYPE_I8) == COGPU_TYPE_I64);
    CHECK(working_type(COGPU_TYPE_U64, COGPU_TYPE_I8) == COGPU_TYPE_F64);
    CHECK(working_type(COGPU_TYPE_F32, COGPU_TYPE_I16) == COGPU_TYPE_F32);
    CHECK(working_type(COGPU_TYPE_F32, COGPU_TYPE_I32) == COGPU_TYPE_F64);
    CHECK(working_type(COGPU_TYPE_F16, COGPU_TYPE_F16) == COGPU_TYPE_F32);
}

/* W005: of one band, an invalid nearest pixel is decisive; of several, all must be invalid. */
static void nearest_pixel_decides(void) {
    static struct scene scene;
    for (uint32_t bands = 1; bands <= 2; bands++) {
        start(&scene, COGPU_RESAMPLE_BILINEAR, COGPU_TYPE_F32, 3, 1, 1, 1);
        scene.given.bands = bands;
        scene.given.nodata = scene.nodata;
        scene.nodata[0] = scene.nodata[1] = -9999;
        set_affine(&scene, 0.8, 0, 1, 1, 0); /* 1.3: nearest is 1 */
        for (uint32_t i = 0; i < 6; i++)
            set_source(&scene, i, i == 1 ? -9999 : 10.0 + i);
        warp(&scene);
        CHECK(scene.valid[0] == (bands == 2 ? 255 : 0));
        if (bands == 2) {
            CHECK(result(&scene, 0) == 10); /* the weight of pixel 0, normalised */
            CHECK(fabs(result(&scene, 1) - (13 * 0.2 + 14 * 0.8)) < 1e-5);
        }
    }
}

/* W004: a cubic with one invalid tap is bilinear. */
static void cubic_falls_back(void) {
    static struct scene scene;
    start(&scene, COGPU_RESAMPLE_CUBIC, COGPU_TYPE_F64, 4, 4, 1, 1);
    scene.given.nodata = scene.nodata;
    scene.nodata[0] = -9999;
    set_affine(&scene, 1.75, 1.5, 1, 1, 0); /* 2.25, 2: centres 1.5 and 2.5 */
    for (uint32_t i = 0; i < 16; i++)
        set_source(&scene, i, i == 15 ? -9999 : (double)i * i);
    warp(&scene);
    CHECK(fabs(result(&scene, 0) - ((25 + 81) * 0.25 + (36 + 100) * 0.75) / 2) < 1e-12);
}

/* W008: doubles are compared by the precision of floats; short integers exactly. */
static void nodata_matches(void) {
    CHECK(matches_nodata(nodata_rule(COGPU_TYPE_F64, -9999), -9998.999));
    CHECK(!matches_nodata(nodata_rule(COGPU_TYPE_F64, -9999), -9998));
    CHECK(matches_nodata(nodata_rule(COGPU_TYPE_F32, NAN), NAN));
    CHECK(!matches_nodata(nodata_rule(COGPU_TYPE_F32, -9999), NAN));
    CHECK(!matches_nodata(nodata_rule(COGPU_TYPE_U8, -9999), 0));
    CHECK(matches_nodata(nodata_rule(COGPU_TYPE_U8, 255), 255));
    CHECK(!matches_nodata(nodata_rule(COGPU_TYPE_U8, 255), 254));
    CHECK(nodata_rule(COGPU_TYPE_U8, 256).match == MATCHES_NOTHING);
}

/* W009 */
static void nodata_is_avoided(void) {
    static const struct {
        uint32_t type;
        double value, moved;
    } cases[] = {{COGPU_TYPE_U8, 0, 1},
                 {COGPU_TYPE_U8, 255, 254},
                 {COGPU_TYPE_I16, -32768, -32767},
                 {COGPU_TYPE_I16, 0, -1},
                 {COGPU_TYPE_F64, 0, 0x1p-1074},
                 {COGPU_TYPE_F64, 1, 1 + 0x1p-52},
                 {COGPU_TYPE_F64, -1, -1 + 0x1p-53}};
    static const uint32_t methods[] = {COGPU_RESAMPLE_NEAREST, COGPU_RESAMPLE_BILINEAR,
                                       COGPU_RESAMPLE_CUBIC,   COGPU_RESAMPLE_AVERAGE,
                                       COGPU_RESAMPLE_MODE,    COGPU_RESAMPLE_MIN};
    static struct scene scene;
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t k = 0; k < sizeof methods / sizeof *methods; k++) {
            start(&scene, methods[k], cases[i].type, 6, 6, 6, 6);
            scene.given.avoided = scene.avoided;
            scene.avoided[0] = cases[i].value;
            for (uint32_t at = 0; at < 36; at++)
                set_source(&scene, at, cases[i].value);
            warp(&scene);
            CHECK(result(&scene, 14) == cases[i].moved && scene.valid[14] == 255);
        }
}

/* W026 to W028: colours count fully where alpha is not 0; alpha is that of the nearest pixel. */
static void alpha_is_not_resampled(void) {
    static struct scene scene;
    static const double alphas[] = {255, 1, 0, 128};
    start(&scene, COGPU_RESAMPLE_BILINEAR, COGPU_TYPE_U8, 4, 1, 3, 1);
    scene.given.bands = 2;
    scene.given.alpha_band = 2;
    set_affine(&scene, 0.25, 0, 1, 1, 0); /* 0.75, 1.75, 2.75 */
    for (uint32_t i = 0; i < 4; i++) {
        set_source(&scene, i, 100 * i);
        set_source(&scene, 4 + i, alphas[i]);
    }
    warp(&scene);
    CHECK(result(&scene, 0) == 25 && result(&scene, 3) == 255);
    CHECK(result(&scene, 1) == 100 && result(&scene, 4) == 1); /* not mixed with pixel 2 */
    CHECK(result(&scene, 2) == 0 && scene.valid[2] == 0 && scene.valid[5] == 0);
    CHECK(density_to_alpha(COGPU_TYPE_U8, alpha_density(COGPU_TYPE_U8, 254)) == 254);
    CHECK(density_to_alpha(COGPU_TYPE_U16, alpha_density(COGPU_TYPE_U16, 255)) == 255);
}

/* W019: the border pixel counts for more than 1 where the target pixel goes beyond. */
static void average_weighs_the_border(void) {
    static struct scene scene;
    start(&scene, COGPU_RESAMPLE_AVERAGE, COGPU_TYPE_F64, 4, 1, 1, 1);
    set_affine(&scene, -0.5, 0, 0.5, 1, 0); /* -0.5 to 1.5 */
    set_source(&scene, 0, 10);
    set_source(&scene, 1, 20);
    warp(&scene);
    CHECK(fabs(result(&scene, 0) - (10 * 1.5 + 20 * 0.5) / 2) < 1e-12);
}

/* W021: of types above 16 bits a value is not compared when it occurs first. */
static void mode_compares_repeated_values(void) {
    static struct scene scene;
    for (uint32_t i = 0; i < 2; i++) {
        start(&scene, COGPU_RESAMPLE_MODE, i ? COGPU_TYPE_F32 : COGPU_TYPE_U8, 2, 1, 1, 1);
        set_affine(&scene, 0.6, 0, 1 / 1.4, 1, 0); /* 0.4 of the first, all of the second */
        set_source(&scene, 0, 3);
        set_source(&scene, 1, 4);
        warp(&scene);
        CHECK(result(&scene, 0) == (i ? 3 : 4));
    }
}

/* W022 */
static void extremes_ignore_nan(void) {
    static struct scene scene;
    for (uint32_t method = COGPU_RESAMPLE_MIN; method <= COGPU_RESAMPLE_MAX; method++)
        for (uint32_t valid = 0; valid < 2; valid++) {
            start(&scene, method, COGPU_TYPE_F32, 2, 2, 1, 1);
            set_affine(&scene, 0, 0, 0.5, 0.5, 0);
            for (uint32_t i = 0; i < 4; i++)
                set_source(&scene, i, valid && i == 2 ? 5 : NAN);
            warp(&scene);
            double infinite = method == COGPU_RESAMPLE_MIN ? INFINITY : -INFINITY;
            CHECK(result(&scene, 0) == (valid ? 5 : infinite));
        }
}

static void sums_are_preserved(void) {
    static struct scene scene;
    static const double scales[] = {0.3, 0.77, 1, 2.3};
    for (uint32_t i = 0; i < 8; i++) {
        double before = 0, after = 0, scale = scales[i % 4];
        start(&scene, COGPU_RESAMPLE_SUM, COGPU_TYPE_F64, 17, 13, 70, 55);
        set_affine(&scene, -2.7, -5.2, scale, scale, i / 4 * 20.0);
        for (uint32_t k = 0; k < 17 * 13; k++) {
            set_source(&scene, k, k % 17 + k / 17.0);
            before += k % 17 + k / 17.0;
        }
        warp(&scene);
        for (uint32_t k = 0; k < 70 * 55; k++)
            after += result(&scene, k);
        CHECK(i / 4 ? after > 0 && after < before + 1e-9 : fabs(after - before) < 1e-6);
    }
}

TESTS(warp) {
    RUN(loops_equal_pixels);
    RUN(weights_follow_their_formulas);
    RUN(kernels_follow_their_formulas);
    RUN(areas_follow_their_formulas);
    RUN(nearest_has_a_tolerance);
    RUN(positions_outside_have_no_result);
    RUN(clamped_positions_take_the_border);
    RUN(one_pixel_is_enough);
    RUN(rounding_depends_on_the_working_type);
    RUN(results_saturate);
    RUN(working_types_are_gdals);
    RUN(nearest_pixel_decides);
    RUN(cubic_falls_back);
    RUN(nodata_matches);
    RUN(nodata_is_avoided);
    RUN(alpha_is_not_resampled);
    RUN(average_weighs_the_border);
    RUN(mode_compares_repeated_values);
    RUN(extremes_ignore_nan);
    RUN(sums_are_preserved);
    return FINISH();
}
