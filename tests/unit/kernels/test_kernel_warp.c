/*
 * Warps on the device against the CPU, bit for bit: all methods and types, rasters at any address
 * and strides, nodata, mask, alpha, several bands. Positions are those of a grid that is scaled and
 * rotated, with noise; some are NaN, infinite, far outside or at edges, in interpolated and exact
 * cells. A raster's memory ends with its last sample, so that a load outside of it is found.
 */
#include "kernels/warp/warp_args.h"

#include "cpu/warp.h"
#include "support/raster_pair.h"
#include "support/test.h"

#include <math.h>

enum { BANDS_MAX = 4 };

static cogpu_error error;

/* ---- positions ---- */

/* A random position and its change from pixel to pixel. */
struct affine {
    double x, y, right_x, right_y, down_x, down_y;
};

static double draw_part(void) {
    return draw(1 << 20) / (double)(1 << 20);
}

/* Positions of a target window around a source window. */
static struct affine any_affine(double scale, double x, double y, double width, double height) {
    double angle = draw(3) ? 0 : (draw_part() - 0.5) * (draw(2) ? 0.1 : 6);
    struct affine affine = {.right_x = cos(angle) / scale,
                            .right_y = sin(angle) / scale,
                            .down_x = -sin(angle) / scale,
                            .down_y = cos(angle) / scale};
    affine.x = x + (draw_part() - 0.3) * width;
    affine.y = y + (draw_part() - 0.3) * height;
    if (draw(4) == 0) { /* at borders of pixels, or their centres */
        affine.x = floor(affine.x) + draw(3) / 2.0;
        affine.y = floor(affine.y) + draw(3) / 2.0;
    }
    return affine;
}

static double any_strange_number(double x) {
    const double strange[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 1e300,
                              -1e300,      4294967296.0,     -2147483649.0,     9.3e18,
                              -0.0,        x + 1e-10,        x + 30000};
    return strange[draw(sizeof strange / sizeof *strange)];
}

static void set_point(const struct affine *affine, double column, double row, uint32_t strange,
                      double *point) {
    point[0] = affine->x + affine->right_x * column + affine->down_x * row;
    point[1] = affine->y + affine->right_y * column + affine->down_y * row;
    for (int i = 0; i < 2; i++)
        if (strange && draw(strange) == 0)
            point[i] = any_strange_number(point[i]);
}

static bool is_finite_cell(const cogpu_coordinates *coordinates, const double *nodes,
                           uint32_t cell) {
    const uint32_t row = cell / coordinates->across, column = cell % coordinates->across;
    bool is_finite = true;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t node = (row + i / 2) * (coordinates->across + 1) + column + i % 2;
        is_finite &= isfinite(nodes[2 * node]) && isfinite(nodes[2 * node + 1]);
    }
    return is_finite;
}

/* Coordinates of a window. Frees nothing: see drop_coordinates. */
static cogpu_coordinates any_coordinates(const struct affine *affine, bool of_corners, uint32_t x,
                                         uint32_t y, uint32_t width, uint32_t height) {
    cogpu_coordinates coordinates = {.x = x,
                                     .y = y,
                                     .width = width,
                                     .height = height,
                                     .of_corners = of_corners,
                                     .first_cell_x = x / 16,
                                     .first_cell_y = y / 16};
    if (coordinates.first_cell_x && draw(3) == 0)
        coordinates.first_cell_x--;
    coordinates.across = (x + width - 1) / 16 + 1 - coordinates.first_cell_x + !draw(3);
    coordinates.down = (y + height - 1) / 16 + 1 - coordinates.first_cell_y;
    const uint32_t points = cogpu_cell_points(&coordinates), table = 2 * points * points;
    const uint32_t cell_count = coordinates.across * coordinates.down;
    const uint32_t strange = draw(3) ? 0 : 1 + draw(30), exact = draw(2) ? 0 : 1 + draw(4);
    const double left = coordinates.first_cell_x * 16.0 - x,
                 top = coordinates.first_cell_y * 16.0 - y;
    double *nodes = allocate_host((coordinates.across + 1) * (coordinates.down + 1) * 16);
    uint32_t *cells = allocate_host(cell_count * sizeof *cells);
    double *tables = allocate_host((size_t)cell_count * table * sizeof *tables);
    for (uint32_t i = 0; i < (coordinates.across + 1) * (coordinates.down + 1); i++)
        set_point(affine, left + 16.0 * (i % (coordinates.across + 1)),
                  top + 16.0 * (i / (coordinates.across + 1)), strange, nodes + 2 * i);
    for (uint32_t i = 0; i < cell_count; i++) {
        double *points_of_cell = tables + (size_t)coordinates.exact_count * table;
        cells[i] = COGPU_CELL_INTERPOLATED;
        if (is_finite_cell(&coordinates, nodes, i) && (!exact || draw(exact)))
            continue;
        cells[i] = coordinates.exact_count++;
        for (uint32_t j = 0; j < points * points; j++)
            set_point(affine, left + 16.0 * (i % coordinates.across) + j % points,
                      top + 16.0 * (i / coordinates.across) + j / points, strange,
                      points_of_cell + 2 * j);
    }
    coordinates.nodes = nodes;
    coordinates.cells = cells;
    coordinates.exact = tables;
    return coordinates;
}

static void drop_coordinates(const cogpu_coordinates *coordinates) {
    free((void *)(uintptr_t)coordinates->nodes);
    free((void *)(uintptr_t)coordinates->cells);
    free((void *)(uintptr_t)coordinates->exact);
}

/* ---- jobs ---- */

enum { SOURCE, MASK, TARGET, VALID, RASTERS };

/* A job; its rasters on both sides. */
struct case_of_warp {
    cogpu_warp warp;
    cogpu_warp_band rules[BANDS_MAX];
    cogpu_coordinates coordinates, forward;
    uint8_t fill[BANDS_MAX][16];
    struct raster_pair rasters[RASTERS];
    bool has_mask, has_valid;
    struct taste taste;
};

static cogpu_type any_common_type(void) {
    static const cogpu_type common[] = {COGPU_TYPE_U8, COGPU_TYPE_U16, COGPU_TYPE_I16,
                                        COGPU_TYPE_F32};
    return common[draw(4)];
}

static cogpu_type any_type(void) {
    return draw(3) ? any_common_type() : (cogpu_type)(COGPU_TYPE_U8 + draw(COGPU_TYPE_F64));
}

static bool needs_corners(cogpu_resampling method) {
    return method != COGPU_RESAMPLE_NEAREST && method != COGPU_RESAMPLE_BILINEAR &&
           method != COGPU_RESAMPLE_CUBIC && method != COGPU_RESAMPLE_CUBICSPLINE &&
           method != COGPU_RESAMPLE_LANCZOS;
}

/* Often a number that samples have. */
static double any_number(const struct case_of_warp *at) {
    static const double numbers[] = {0,    3, 4, 5, 255, -3, -9999, (double)NAN, (double)INFINITY,
                                     1e300};
    if (draw(2) && at->taste.count)
        return sample_to_double(
            at->warp.from_type,
            load_bits(at->warp.from_type, at->taste.samples[draw(at->taste.count)]));
    return numbers[draw(sizeof numbers / sizeof *numbers)];
}

static void set_any_rules(struct case_of_warp *at) {
    const bool is_often = draw(2);
    for (uint32_t i = 0; i < at->warp.bands; i++) {
        cogpu_warp_band *rule = &at->rules[i];
        rule->has_nodata = is_often || draw(4) == 0;
        rule->nodata = any_number(at);
        rule->avoids = draw(2);
        rule->avoided = draw(2) ? rule->nodata : any_number(at);
        at->warp.has_nodata |= rule->has_nodata;
        for (int j = 0; j < 16; j++)
            at->fill[i][j] = (uint8_t)draw(256);
    }
}

static void paint_area(const cogpu_raster *source, const uint8_t *sample) {
    const uint32_t x = draw(source->width), y = draw(source->height);
    const uint32_t right = x + 1 + draw(source->width - x),
                   bottom = y + 1 + draw(source->height - y), only = draw(2 * source->bands);
    for (uint32_t band = 0; band < source->bands; band++)
        for (uint32_t i = 0;
             i < (right - x) * (bottom - y) && (only >= source->bands || only == band); i++)
            memcpy(raster_pair_sample(source, band, y + i / (right - x), x + i % (right - x)),
                   sample, cogpu_type_bytes(source->type));
}

/* Areas of one number, which is nodata in most bands, as scenes have them: in one band or in all.
 */
static void paint_any_areas(struct case_of_warp *at) {
    if (!at->taste.count || draw(2))
        return;
    const uint8_t *sample = at->taste.samples[draw(at->taste.count)];
    const double value =
        sample_to_double(at->warp.from_type, load_bits(at->warp.from_type, sample));
    for (uint32_t i = 0; i < at->warp.bands; i++)
        if (draw(4)) {
            at->rules[i].has_nodata = at->warp.has_nodata = true;
            at->rules[i].nodata = value;
        }
    for (uint32_t i = 1 + draw(4); i > 0; i--)
        paint_area(&at->rasters[SOURCE].host, sample);
}

static void set_any_samples(struct case_of_warp *at) {
    raster_pair_fill(&at->rasters[SOURCE].host, &at->taste);
    paint_any_areas(at);
    raster_pair_fill_mask(&at->rasters[MASK].host);
    for (int i = 0; i < RASTERS; i++)
        raster_pair_upload(&at->rasters[i]);
}

static void set_any_case(cogpu_resampling method, struct case_of_warp *at) {
    static const double scales[] = {1, 1, 1.02, 0.97, 1.7, 4, 0.6, 0.5, 0.37, 0.2};
    cogpu_warp *warp = &at->warp;
    const uint32_t width = 1 + draw(draw(3) ? 120 : 8), height = 1 + draw(draw(3) ? 60 : 8);
    const uint32_t to_width = 1 + draw(draw(3) ? 60 : 300), to_height = 1 + draw(40);
    const double scale = scales[draw(sizeof scales / sizeof *scales)];
    *warp = (cogpu_warp){.method = method,
                         .bands = draw(2) ? 1 : 1 + draw(BANDS_MAX),
                         .from_type = any_type(),
                         .x = draw(2) ? 0 : draw(1000),
                         .y = draw(2) ? 0 : draw(1000),
                         .scale_x = scale,
                         .scale_y = draw(4) ? scale : scales[draw(10)],
                         .rules = at->rules,
                         .is_round = draw(2) == 0,
                         .clamps = draw(4) == 0};
    warp->to_type = draw(3) ? warp->from_type : any_type();
    warp->level_width = warp->x + width + (draw(2) ? 0 : draw(30));
    warp->level_height = warp->y + height + (draw(2) ? 0 : draw(30));
    if (draw(5) == 0)
        warp->alpha_band = 1 + draw(warp->bands);
    at->has_mask = draw(5) == 0;
    at->has_valid = draw(3) != 0;
    at->taste = raster_pair_taste(warp->from_type);
    if (draw(4))
        set_any_rules(at);
    const struct affine affine = any_affine(scale, warp->x, warp->y, width, height);
    const struct affine back = any_affine(1 / scale, 20, 20, to_width, to_height);
    at->coordinates =
        any_coordinates(&affine, needs_corners(method), draw(70), draw(70), to_width, to_height);
    at->forward = any_coordinates(&back, true, warp->x, warp->y, width, height);
    at->rasters[SOURCE] = raster_pair_any(warp->from_type, warp->bands, height, width);
    at->rasters[MASK] = raster_pair_any(COGPU_TYPE_U8, 1, height, width);
    at->rasters[TARGET] = raster_pair_any(warp->to_type, warp->bands, to_height, to_width);
    at->rasters[VALID] = raster_pair_any(COGPU_TYPE_U8, warp->bands, to_height, to_width);
    set_any_samples(at);
}

static bool is_aligned(const cogpu_raster *raster) {
    const int64_t size = (int64_t)cogpu_type_bytes(raster->type);
    return (intptr_t)raster->data % size == 0 && raster->stride_x % size == 0 &&
           raster->stride_y % size == 0 && raster->stride_band % size == 0;
}

static struct raster_pair any_aligned_raster(cogpu_type type, uint32_t bands, uint32_t height,
                                             uint32_t width) {
    struct raster_pair pair = raster_pair_any(type, bands, height, width);
    while (!is_aligned(&pair.host)) {
        raster_pair_drop(&pair);
        pair = raster_pair_any(type, bands, height, width);
    }
    return pair;
}

/* A case for kernels that work on strips of cells. */
static void set_strip_case(cogpu_resampling method, struct case_of_warp *at) {
    static const double scales[] = {1, 1.02, 1.7, 4};
    cogpu_warp *warp = &at->warp;
    const uint32_t width = 4 + draw(120), height = 4 + draw(60), to_width = 1 + draw(300),
                   to_height = 1 + draw(40);
    *warp = (cogpu_warp){.method = method,
                         .bands = draw(2) ? 1 : 1 + draw(BANDS_MAX),
                         .from_type = any_common_type(),
                         .scale_x = scales[draw(4)],
                         .level_width = width + draw(2) * draw(30),
                         .level_height = height + draw(2) * draw(30),
                         .rules = at->rules};
    warp->to_type = warp->from_type;
    warp->scale_y = warp->scale_x;
    at->has_valid = draw(3) != 0;
    at->taste = raster_pair_taste(warp->from_type);
    if (draw(4))
        set_any_rules(at);
    const struct affine affine =
        any_affine(warp->scale_x, -0.2 * width, -0.2 * height, 0.5 * width, 0.5 * height);
    at->coordinates = any_coordinates(&affine, false, draw(70), draw(70), to_width, to_height);
    at->rasters[SOURCE] = any_aligned_raster(warp->from_type, warp->bands, height, width);
    at->rasters[MASK] = raster_pair_any(COGPU_TYPE_U8, 1, height, width);
    at->rasters[TARGET] = any_aligned_raster(warp->to_type, warp->bands, to_height, to_width);
    at->rasters[VALID] = raster_pair_any(COGPU_TYPE_U8, warp->bands, to_height, to_width);
    set_any_samples(at);
}

static cogpu_warp_job job_of(const struct case_of_warp *at, bool is_on_device) {
    const cogpu_raster *rasters[RASTERS];
    for (int i = 0; i < RASTERS; i++)
        rasters[i] = is_on_device ? &at->rasters[i].device : &at->rasters[i].host;
    return (cogpu_warp_job){.warp = &at->warp,
                            .coordinates = &at->coordinates,
                            .forward = at->warp.method == COGPU_RESAMPLE_SUM ? &at->forward : NULL,
                            .source = rasters[SOURCE],
                            .mask = at->has_mask ? rasters[MASK] : NULL,
                            .target = rasters[TARGET],
                            .fill = at->fill,
                            .valid = at->has_valid ? rasters[VALID] : NULL};
}

static void warp_on_device(const struct case_of_warp *at) {
    const cogpu_warp_job job = job_of(at, true);
    const uint64_t bytes = cogpu_gpu_warp_table_bytes(&job);
    void *table = allocate_host(bytes);
    cogpu_gpu_warp_fill_table(&job, table);
    void *device_table = upload(table, bytes);
    gpu_test_need(cogpu_gpu_warp(gpu, &job, device_table, stream, &error), &error);
    gpu_test_need(gpu->calls->finish_stream(gpu, stream, &error), &error);
    gpu->calls->release(gpu, device_table);
    free(table);
}

static bool warps_as_host(struct case_of_warp *at) {
    const cogpu_warp_job job = job_of(at, false);
    bool same = true;
    warp_on_device(at);
    gpu_test_need(cogpu_cpu_warp(&job, NULL, 1, &error), &error);
    for (int i = 0; i < RASTERS; i++)
        same &= raster_pair_is_same(&at->rasters[i]);
    if (!same)
        printf(
            "method %d, %s to %s, %u bands, %u x %u to %u x %u, scale %g x %g, mask %d, alpha %u, "
            "nodata %d\n",
            (int)at->warp.method, cogpu_type_name(at->warp.from_type),
            cogpu_type_name(at->warp.to_type), at->warp.bands, job.source->width,
            job.source->height, job.target->width, job.target->height, at->warp.scale_x,
            at->warp.scale_y, at->has_mask, at->warp.alpha_band, at->warp.has_nodata);
    return same;
}

static void drop_case(struct case_of_warp *at) {
    for (int i = 0; i < RASTERS; i++)
        raster_pair_drop(&at->rasters[i]);
    drop_coordinates(&at->coordinates);
    drop_coordinates(&at->forward);
}

static void check_cases(cogpu_resampling method, int cases,
                        void (*set_case)(cogpu_resampling method, struct case_of_warp *at)) {
    int different = 0;
    for (int i = 0; i < cases; i++) {
        struct case_of_warp at = {.has_mask = false};
        set_case(method, &at);
        different += !warps_as_host(&at);
        drop_case(&at);
    }
    CHECK(different == 0);
}

static void check_method(cogpu_resampling method, int cases) {
    check_cases(method, cases, set_any_case);
}

/* ---- suites ---- */

static void test_strips(void) {
    check_cases(COGPU_RESAMPLE_NEAREST, 60, set_strip_case);
    check_cases(COGPU_RESAMPLE_BILINEAR, 120, set_strip_case);
    check_cases(COGPU_RESAMPLE_CUBIC, 120, set_strip_case);
}

static void test_nearest(void) {
    check_method(COGPU_RESAMPLE_NEAREST, 60);
}

static void test_bilinear(void) {
    check_method(COGPU_RESAMPLE_BILINEAR, 80);
}

static void test_cubic(void) {
    check_method(COGPU_RESAMPLE_CUBIC, 80);
}

static void test_filters(void) {
    check_method(COGPU_RESAMPLE_CUBICSPLINE, 30);
    check_method(COGPU_RESAMPLE_LANCZOS, 30);
}

static void test_means(void) {
    check_method(COGPU_RESAMPLE_AVERAGE, 30);
    check_method(COGPU_RESAMPLE_RMS, 20);
}

static void test_extremes(void) {
    check_method(COGPU_RESAMPLE_MIN, 20);
    check_method(COGPU_RESAMPLE_MAX, 20);
}

static void test_mode(void) {
    check_method(COGPU_RESAMPLE_MODE, 30);
}

static void test_quantiles(void) {
    check_method(COGPU_RESAMPLE_MEDIAN, 20);
    check_method(COGPU_RESAMPLE_Q1, 10);
    check_method(COGPU_RESAMPLE_Q3, 10);
}

static void test_sum(void) {
    check_method(COGPU_RESAMPLE_SUM, 30);
}

TESTS(kernel_warp) {
    open_gpu(test_argc, test_argv);
    RUN(test_strips);
    RUN(test_nearest);
    RUN(test_bilinear);
    RUN(test_cubic);
    RUN(test_filters);
    RUN(test_means);
    RUN(test_extremes);
    RUN(test_mode);
    RUN(test_quantiles);
    RUN(test_sum);
    close_gpu();
    return FINISH();
}
