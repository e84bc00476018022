/*
 * Rows of a level become rows of the next: every method and type against plain loops, at any
 * strides, whole and in parts (with no row more than needed), and GDAL 3.12's own overviews
 * of small rasters with mask, alpha, nodata and NaN (T105 to T108).
 */
#include "cpu/downsample.h"

#include "pixel/half.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>

static uint32_t state = 11;

static uint32_t noise(uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * below >> 32);
}

/* ---- rasters of numbers ---- */

static void set_sample(cogpu_type type, uint8_t *at, double value) {
    switch (type) {
#define SET_CASE(kind, c_type)                                                                     \
    case kind: {                                                                                   \
        c_type sample = (c_type)value;                                                             \
        memcpy(at, &sample, sizeof sample);                                                        \
        break;                                                                                     \
    }
        SET_CASE(COGPU_TYPE_U8, uint8_t)
        SET_CASE(COGPU_TYPE_I8, int8_t)
        SET_CASE(COGPU_TYPE_U16, uint16_t)
        SET_CASE(COGPU_TYPE_I16, int16_t)
        SET_CASE(COGPU_TYPE_U32, uint32_t)
        SET_CASE(COGPU_TYPE_I32, int32_t)
        SET_CASE(COGPU_TYPE_U64, uint64_t)
        SET_CASE(COGPU_TYPE_I64, int64_t)
        SET_CASE(COGPU_TYPE_F32, float)
        SET_CASE(COGPU_TYPE_F64, double)
    default: {
        uint16_t half = half_from_double(value);
        memcpy(at, &half, sizeof half);
    }
    }
}

static double get_sample(cogpu_type type, const uint8_t *at) {
    switch (type) {
#define GET_CASE(kind, c_type)                                                                     \
    case kind: {                                                                                   \
        c_type sample;                                                                             \
        memcpy(&sample, at, sizeof sample);                                                        \
        return (double)sample;                                                                     \
    }
        GET_CASE(COGPU_TYPE_U8, uint8_t)
        GET_CASE(COGPU_TYPE_I8, int8_t)
        GET_CASE(COGPU_TYPE_U16, uint16_t)
        GET_CASE(COGPU_TYPE_I16, int16_t)
        GET_CASE(COGPU_TYPE_U32, uint32_t)
        GET_CASE(COGPU_TYPE_I32, int32_t)
        GET_CASE(COGPU_TYPE_U64, uint64_t)
        GET_CASE(COGPU_TYPE_I64, int64_t)
        GET_CASE(COGPU_TYPE_F32, float)
        GET_CASE(COGPU_TYPE_F64, double)
    default: {
        uint16_t half;
        memcpy(&half, at, sizeof half);
        return (double)half_to_float(half);
    }
    }
}

enum { PLANAR, CHUNKY, UPSIDE_DOWN, SPREAD, LAYOUTS };

/* Of exactly the memory it needs, so that a look beyond is seen. */
static cogpu_raster new_raster(cogpu_type type, uint32_t bands, uint32_t height, uint32_t width,
                               int layout) {
    int64_t size = (int64_t)cogpu_type_bytes(type);
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .type = type,
                           .bands = bands,
                           .height = height,
                           .width = width};
    raster.stride_x = layout == CHUNKY ? bands * size : layout == SPREAD ? 3 * size : size;
    raster.stride_y = raster.stride_x * width;
    raster.stride_band = layout == CHUNKY ? size : raster.stride_y * height;
    size_t bytes =
        (size_t)(layout == CHUNKY ? raster.stride_y * height : raster.stride_band * (int64_t)bands);
    raster.data = calloc(1, bytes);
    if (!raster.data)
        abort();
    if (layout == UPSIDE_DOWN) {
        raster.data = (uint8_t *)raster.data + bytes - size;
        raster.stride_x = -raster.stride_x;
        raster.stride_y = -raster.stride_y;
        raster.stride_band = -raster.stride_band;
    }
    return raster;
}

static void free_raster(cogpu_raster *raster) {
    uint8_t *data = raster->data;
    if (raster->stride_x < 0)
        data -=
            -raster->stride_band * (int64_t)raster->bands - (int64_t)cogpu_type_bytes(raster->type);
    free(data);
}

static uint8_t *at(const cogpu_raster *raster, uint32_t p, uint32_t y, uint32_t x) {
    return (uint8_t *)raster->data + p * raster->stride_band + y * raster->stride_y +
           x * raster->stride_x;
}

static double value_at(const cogpu_raster *raster, uint32_t p, uint32_t y, uint32_t x) {
    return get_sample(raster->type, at(raster, p, y, x));
}

static bool is_float(cogpu_type type) {
    return type == COGPU_TYPE_F16 || type == COGPU_TYPE_F32 || type == COGPU_TYPE_F64;
}

static bool is_signed(cogpu_type type) {
    return is_float(type) || type == COGPU_TYPE_I8 || type == COGPU_TYPE_I16 ||
           type == COGPU_TYPE_I32 || type == COGPU_TYPE_I64;
}

/* Few different values, so that mode has something to count; some are negative. */
static void fill(cogpu_raster *raster, uint32_t values) {
    for (uint32_t p = 0; p < raster->bands; p++)
        for (uint32_t y = 0; y < raster->height; y++)
            for (uint32_t x = 0; x < raster->width; x++) {
                double value = noise(values);
                if (is_signed(raster->type))
                    value -= values / 2;
                set_sample(raster->type, at(raster, p, y, x), value);
            }
}

static void copy_rows(const cogpu_raster *from, uint32_t first, const cogpu_raster *to) {
    for (uint32_t p = 0; p < to->bands; p++)
        for (uint32_t y = 0; y < to->height; y++)
            for (uint32_t x = 0; x < to->width; x++)
                memcpy(at(to, p, y, x), at(from, p, first + y, x), cogpu_type_bytes(to->type));
}

static bool same_rows(const cogpu_raster *whole, uint32_t first, const cogpu_raster *part) {
    for (uint32_t p = 0; p < part->bands; p++)
        for (uint32_t y = 0; y < part->height; y++)
            for (uint32_t x = 0; x < part->width; x++)
                if (memcmp(at(whole, p, first + y, x), at(part, p, y, x),
                           cogpu_type_bytes(part->type)) != 0)
                    return false;
    return true;
}

static cogpu_downsample downsample_of(cogpu_resampling method, const cogpu_raster *from,
                                      uint32_t factor) {
    return (cogpu_downsample){.method = method,
                              .type = from->type,
                              .bands = from->bands,
                              .from_width = from->width,
                              .from_height = from->height,
                              .to_width = (from->width + factor - 1) / factor,
                              .to_height = (from->height + factor - 1) / factor};
}

static void state_nodata(cogpu_downsample *downsample, double value) {
    downsample->nodata =
        (cogpu_nodata){.text = "stated", .matches = 1, .value = value, .i64 = (int64_t)value};
    if (value >= 0)
        downsample->nodata.u64 = (uint64_t)value;
}

static cogpu_raster downsample_whole(const cogpu_downsample *downsample, const cogpu_raster *from,
                                     const cogpu_raster *mask, const cogpu_raster *to_mask,
                                     int layout) {
    cogpu_raster to = new_raster(downsample->type, downsample->bands, downsample->to_height,
                                 downsample->to_width, layout);
    cogpu_worker worker = {0};
    CHECK(cogpu_cpu_downsample(&worker, downsample, &(cogpu_downsample_position){0}, from, mask,
                               &to, to_mask, NULL) == COGPU_OK);
    cogpu_worker_close(&worker);
    return to;
}

/* ---- plain loops ---- */

static double window_weight(double low, double high, uint32_t k) {
    double begin = low > k ? low : k, end = high < k + 1.0 ? high : k + 1.0;
    return end - begin;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double choose(cogpu_resampling method, double *values, int count) {
    double best = values[0];
    int most = 0;
    if (method == COGPU_RESAMPLE_MEDIAN) {
        qsort(values, (size_t)count, sizeof *values, by_value);
        return (values[(count - 1) / 2] + values[count / 2]) / 2;
    }
    for (int i = 0; i < count; i++) {
        int so_far = 0;
        for (int k = 0; k <= i; k++)
            so_far += values[k] == values[i];
        if (method == COGPU_RESAMPLE_MODE
                ? so_far > most
                : (method == COGPU_RESAMPLE_MIN ? values[i] < best : values[i] > best)) {
            best = values[i];
            most = so_far;
        }
    }
    return best;
}

/* What average, rms, mode, min, max and median make of all that the result's pixel covers and that
 * is not `nodata`. */
static double area_of(const cogpu_downsample *downsample, const cogpu_raster *from, uint32_t p,
                      uint32_t y, uint32_t x, double nodata) {
    double across = (double)downsample->from_width / downsample->to_width;
    double down = (double)downsample->from_height / downsample->to_height;
    double values[4096], total = 0, weights = 0;
    int count = 0;
    for (uint32_t r = 0; r < downsample->from_height; r++)
        for (uint32_t c = 0; c < downsample->from_width; c++) {
            double value = value_at(from, p, r, c);
            double wide = window_weight(x * across, (x + 1) * across, c);
            double high = window_weight(y * down, (y + 1) * down, r);
            if (wide < 1e-6 || high < 1e-6 || value == nodata || isnan(value))
                continue;
            total +=
                wide * high * (downsample->method == COGPU_RESAMPLE_RMS ? value * value : value);
            weights += wide * high;
            values[count++] = value;
        }
    if (!count)
        return nodata;
    if (downsample->method >= COGPU_RESAMPLE_MODE)
        return choose(downsample->method, values, count);
    return downsample->method == COGPU_RESAMPLE_RMS ? sqrt(total / weights) : total / weights;
}

static double kernel(cogpu_resampling method, double x) {
    x = fabs(x);
    if (method == COGPU_RESAMPLE_BILINEAR)
        return x < 1 ? 1 - x : 0;
    return x <= 1   ? 1.5 * x * x * x - 2.5 * x * x + 1
           : x <= 2 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2
                    : 0;
}

static double kernel_of(const cogpu_downsample *downsample, const cogpu_raster *from, uint32_t p,
                        uint32_t y, uint32_t x) {
    double across = (double)downsample->from_width / downsample->to_width;
    double down = (double)downsample->from_height / downsample->to_height, total = 0, weights = 0;
    for (uint32_t r = 0; r < downsample->from_height; r++)
        for (uint32_t c = 0; c < downsample->from_width; c++) {
            double weight = kernel(downsample->method, (c + 0.5) / across - (x + 0.5)) *
                            kernel(downsample->method, (r + 0.5) / down - (y + 0.5));
            total += weight * value_at(from, p, r, c);
            weights += weight;
        }
    return total / weights;
}

static double nearest_of(const cogpu_downsample *downsample, const cogpu_raster *from, uint32_t p,
                         uint32_t y, uint32_t x) {
    double across = (double)downsample->from_width / downsample->to_width;
    double down = (double)downsample->from_height / downsample->to_height;
    return value_at(from, p, (uint32_t)(y * down + 0.5), (uint32_t)(x * across + 0.5));
}

/* Integers are rounded half away from zero, and a tie may fall either way where weights are not
 * whole. */
static bool is_near(cogpu_type type, double made, double expected, bool is_whole) {
    if (is_float(type))
        return fabs(made - expected) <=
               (type == COGPU_TYPE_F16 ? 1e-3 : 1e-6) * (1 + fabs(expected));
    return is_whole ? made == round(expected) : fabs(made - expected) <= 0.5 + 1e-6;
}

static int wrong_samples(const cogpu_downsample *downsample, const cogpu_raster *from,
                         const cogpu_raster *to, double nodata) {
    bool is_whole = downsample->from_width % downsample->to_width == 0 &&
                    downsample->from_height % downsample->to_height == 0 &&
                    downsample->method != COGPU_RESAMPLE_CUBIC &&
                    downsample->method != COGPU_RESAMPLE_BILINEAR;
    int wrong = 0;
    for (uint32_t p = 0; p < downsample->bands; p++)
        for (uint32_t y = 0; y < downsample->to_height; y++)
            for (uint32_t x = 0; x < downsample->to_width; x++) {
                double expected = downsample->method == COGPU_RESAMPLE_NEAREST
                                      ? nearest_of(downsample, from, p, y, x)
                                  : downsample->method == COGPU_RESAMPLE_BILINEAR ||
                                          downsample->method == COGPU_RESAMPLE_CUBIC
                                      ? kernel_of(downsample, from, p, y, x)
                                      : area_of(downsample, from, p, y, x, nodata);
                wrong += !is_near(downsample->type, value_at(to, p, y, x), expected, is_whole);
            }
    return wrong;
}

static const struct {
    uint32_t height, width, factor;
} sizes[] = {{8, 8, 2},  {7, 9, 2},  {1, 1, 2},   {1, 13, 2}, {13, 1, 2}, {2, 2, 2}, {3, 3, 2},
             {12, 9, 3}, {16, 7, 4}, {11, 23, 5}, {6, 50, 2}, {50, 6, 2}, {5, 6, 2}};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* All but rows of squares that should not weigh the same, which GDAL takes for whole. */
static bool is_gdals_own(const cogpu_downsample *downsample) {
    return (downsample->method == COGPU_RESAMPLE_AVERAGE ||
            downsample->method == COGPU_RESAMPLE_RMS) &&
           downsample->from_width == 2 * downsample->to_width &&
           downsample->from_height % downsample->to_height;
}

static void all_methods_and_types(void) {
    for (int s = 0; s < SIZES; s++)
        for (cogpu_type type = COGPU_TYPE_U8; type <= COGPU_TYPE_F64; type++)
            for (cogpu_resampling method = COGPU_RESAMPLE_NEAREST; method <= COGPU_RESAMPLE_MEDIAN;
                 method++) {
                int layout = (int)noise(LAYOUTS);
                cogpu_raster from = new_raster(type, 2, sizes[s].height, sizes[s].width, layout);
                fill(&from, 5 + noise(90));
                cogpu_downsample downsample = downsample_of(method, &from, sizes[s].factor);
                cogpu_raster to =
                    downsample_whole(&downsample, &from, NULL, NULL, (int)noise(LAYOUTS));
                CHECK(is_gdals_own(&downsample) ||
                      wrong_samples(&downsample, &from, &to, NAN) == 0);
                free_raster(&from);
                free_raster(&to);
            }
}

static void nodata_has_no_weight(void) {
    static const cogpu_resampling methods[] = {COGPU_RESAMPLE_AVERAGE, COGPU_RESAMPLE_RMS,
                                               COGPU_RESAMPLE_MODE,    COGPU_RESAMPLE_MIN,
                                               COGPU_RESAMPLE_MAX,     COGPU_RESAMPLE_MEDIAN};
    for (int s = 0; s < SIZES; s++)
        for (cogpu_type type = COGPU_TYPE_U8; type <= COGPU_TYPE_F64; type++)
            for (int m = 0; m < 6; m++) {
                cogpu_raster from =
                    new_raster(type, 2, sizes[s].height, sizes[s].width, (int)noise(LAYOUTS));
                fill(&from, 40);
                /* An average cannot come to it by accident. */
                double nodata = is_float(type) ? -1000 : 100;
                for (uint32_t y = 0; y < from.height; y++)
                    for (uint32_t x = 0; x < from.width; x++)
                        if (noise(3) == 0 || (y < 4 && x < 4))
                            set_sample(type, at(&from, 1, y, x), nodata);
                cogpu_downsample downsample = downsample_of(methods[m], &from, sizes[s].factor);
                state_nodata(&downsample, nodata);
                cogpu_raster to = downsample_whole(&downsample, &from, NULL, NULL, PLANAR);
                CHECK(wrong_samples(&downsample, &from, &to, nodata) == 0);
                free_raster(&from);
                free_raster(&to);
            }
}

/* ---- in parts ---- */

static bool is_same_in_parts(const cogpu_downsample *downsample, const cogpu_raster *from,
                             const cogpu_raster *mask, uint32_t step) {
    cogpu_raster whole_mask =
        new_raster(COGPU_TYPE_U8, 1, downsample->to_height, downsample->to_width, PLANAR);
    cogpu_raster whole = downsample_whole(downsample, from, mask, &whole_mask, PLANAR);
    cogpu_worker worker = {0};
    uint32_t last_begin = 0, last_end = 0;
    bool same = true;
    for (uint32_t first = 0; first < downsample->to_height; first += step) {
        uint32_t rows = downsample->to_height - first < step ? downsample->to_height - first : step;
        uint32_t begin, end;
        cogpu_downsample_source_rows(downsample, first, rows, &begin, &end);
        same = same && begin >= last_begin && end >= last_end && end <= from->height;
        cogpu_raster part =
            new_raster(from->type, from->bands, end - begin, from->width, (int)noise(LAYOUTS));
        cogpu_raster part_mask = new_raster(COGPU_TYPE_U8, 1, end - begin, from->width, SPREAD);
        cogpu_raster to = new_raster(from->type, from->bands, rows, downsample->to_width, CHUNKY);
        cogpu_raster to_mask =
            new_raster(COGPU_TYPE_U8, 1, rows, downsample->to_width, UPSIDE_DOWN);
        copy_rows(from, begin, &part);
        if (mask)
            copy_rows(mask, begin, &part_mask);
        const cogpu_downsample_position position = {.from_y = begin, .y = first};
        same = same &&
               cogpu_cpu_downsample(&worker, downsample, &position, &part, mask ? &part_mask : NULL,
                                    &to, mask ? &to_mask : NULL, NULL) == COGPU_OK;
        same = same && same_rows(&whole, first, &to) &&
               (!mask || same_rows(&whole_mask, first, &to_mask));
        free_raster(&part);
        free_raster(&part_mask);
        free_raster(&to);
        free_raster(&to_mask);
        last_begin = begin;
        last_end = end;
    }
    cogpu_worker_close(&worker);
    free_raster(&whole);
    free_raster(&whole_mask);
    return same;
}

static void rows_in_parts(void) {
    static const cogpu_type types[] = {COGPU_TYPE_U8, COGPU_TYPE_I32, COGPU_TYPE_F32};
    for (int s = 0; s < SIZES; s++)
        for (int t = 0; t < 3; t++)
            for (cogpu_resampling method = COGPU_RESAMPLE_NEAREST; method <= COGPU_RESAMPLE_MEDIAN;
                 method++)
                for (int how = 0; how < 3; how++) {
                    cogpu_raster from =
                        new_raster(types[t], 3, sizes[s].height, sizes[s].width, CHUNKY);
                    cogpu_raster mask =
                        new_raster(COGPU_TYPE_U8, 1, from.height, from.width, PLANAR);
                    fill(&from, 9);
                    fill(&mask, 3);
                    cogpu_downsample downsample = downsample_of(method, &from, sizes[s].factor);
                    downsample.has_mask = how == 1;
                    if (how == 2)
                        state_nodata(&downsample, 1);
                    CHECK(is_same_in_parts(&downsample, &from, how == 1 ? &mask : NULL, 1));
                    CHECK(is_same_in_parts(&downsample, &from, how == 1 ? &mask : NULL,
                                           1 + noise(5)));
                    free_raster(&from);
                    free_raster(&mask);
                }
}

/* Wider than what is worked on at once. */
static void wide_rows(void) {
    for (cogpu_resampling method = COGPU_RESAMPLE_NEAREST; method <= COGPU_RESAMPLE_MEDIAN;
         method++)
        for (uint32_t width = 9000; width <= 9001; width++) {
            cogpu_raster from = new_raster(COGPU_TYPE_F32, 1, 2, width, PLANAR);
            fill(&from, 50);
            cogpu_downsample downsample = downsample_of(method, &from, 2);
            cogpu_raster to = downsample_whole(&downsample, &from, NULL, NULL, PLANAR);
            int wrong = 0;
            for (uint32_t x = 0; x < downsample.to_width; x += 1 + noise(40)) {
                double expected =
                    method == COGPU_RESAMPLE_NEAREST ? nearest_of(&downsample, &from, 0, 0, x)
                    : method == COGPU_RESAMPLE_BILINEAR || method == COGPU_RESAMPLE_CUBIC
                        ? kernel_of(&downsample, &from, 0, 0, x)
                        : area_of(&downsample, &from, 0, 0, x, NAN);
                wrong += !is_near(COGPU_TYPE_F32, value_at(&to, 0, 0, x), expected, false);
            }
            CHECK(wrong == 0);
            free_raster(&from);
            free_raster(&to);
        }
}

/* ---- as GDAL has them ---- */

static void average_of_square(cogpu_type type, const double *square, double nodata,
                              double expected) {
    cogpu_raster from = new_raster(type, 1, 2, 2, PLANAR);
    for (uint32_t i = 0; i < 4; i++)
        set_sample(type, at(&from, 0, i / 2, i % 2), square[i]);
    cogpu_downsample downsample = downsample_of(COGPU_RESAMPLE_AVERAGE, &from, 2);
    if (!isnan(nodata))
        state_nodata(&downsample, nodata);
    cogpu_raster to = downsample_whole(&downsample, &from, NULL, NULL, PLANAR);
    double made = value_at(&to, 0, 0, 0);
    CHECK(made == expected || (isnan(made) && isnan(expected)));
    free_raster(&from);
    free_raster(&to);
}

static void averages_are_rounded(void) {
    for (cogpu_type type = COGPU_TYPE_U8; type <= COGPU_TYPE_I64; type++) {
        average_of_square(type, (double[]){3, 4, 1, 2}, NAN, 3);
        average_of_square(type, (double[]){3, 4, 1, 1}, NAN, 2);
        average_of_square(type, (double[]){4, 6, 4, 6}, 5, 6); /* not nodata by accident */
        average_of_square(type, (double[]){5, 5, 5, 5}, 5, 5);
        average_of_square(type, (double[]){7, 5, 5, 5}, 5, 7);
        if (is_signed(type))
            average_of_square(type, (double[]){-3, -4, -1, -2}, NAN, -3);
    }
    /* GDAL looks before it rounds, but for uint8 and uint16. */
    average_of_square(COGPU_TYPE_U8, (double[]){4, 6, 4, 7}, 5, 6);
    average_of_square(COGPU_TYPE_U16, (double[]){4, 6, 4, 7}, 5, 6);
    average_of_square(COGPU_TYPE_I16, (double[]){4, 6, 4, 7}, 5, 5);
    average_of_square(COGPU_TYPE_U8, (double[]){255, 255, 255, 253}, 255, 253);
    average_of_square(COGPU_TYPE_F32, (double[]){1, 3, 1, 3}, 2, (double)nextafterf(2, 3));
    average_of_square(COGPU_TYPE_F64, (double[]){1, 3, 1, 3}, 2, nextafter(2, 3));
}

/* To the last bit: GDAL's order of operations shows. */
static void averages_as_gdal(void) {
    static const struct {
        cogpu_type type;
        uint32_t height, width;
        bool has_nodata;
        double expected[12];
    } cases[] = {{COGPU_TYPE_F64,
                  3,
                  11,
                  false,
                  {0x1.ea9b26c9b26c9p+11, 0x1.0cb9364d9364ep+12, 0x1.0eed6fee44b5cp+13,
                   0x1.84839a0b150e6p+12, 0x1.5526b7f7225b0p+12, 0x1.c1b1861861860p+12,
                   0x1.612e682c5439ap+12, 0x1.f65a520237694p+11, 0x1.74d78cbe9d5e4p+12,
                   0x1.734046ed29010p+12, 0x1.40f811bb4a404p+13, 0x1.43a298ef606a5p+13}},
                 {COGPU_TYPE_F64,
                  3,
                  5,
                  true,
                  {0x1.7a81041041041p+12, 0x1.be55b6db6db6dp+11, 0x1.43cca5ca5ca5cp+12,
                   0x1.fb0a5ca5ca5cbp+12, 0x1.0b8a79e79e79fp+12, 0x1.402c57c57c57cp+12}},
                 {COGPU_TYPE_F32,
                  2,
                  10,
                  false,
                  {0x1.5f85b6p+12, 0x1.fd449p+11, 0x1.2fcap+13, 0x1.75b092p+12, 0x1.352adcp+12}},
                 {COGPU_TYPE_F64,
                  2,
                  6,
                  false,
                  {0x1.2686492492492p+12, 0x1.4c05b6db6db6ep+11, 0x1.24696db6db6dbp+13}}};
    for (int c = 0; c < 4; c++) {
        cogpu_raster from = new_raster(cases[c].type, 1, cases[c].height, cases[c].width, PLANAR);
        state = 11;
        for (uint32_t y = 0; y < from.height; y++)
            for (uint32_t x = 0; x < from.width; x++)
                set_sample(from.type, at(&from, 0, y, x), noise(100000) / 7.0);
        cogpu_downsample downsample = downsample_of(COGPU_RESAMPLE_AVERAGE, &from, 2);
        if (cases[c].has_nodata) {
            state_nodata(&downsample, 5);
            set_sample(from.type, at(&from, 0, 0, 0), 5);
            set_sample(from.type, at(&from, 0, 1, 2), 5);
        }
        cogpu_raster to = downsample_whole(&downsample, &from, NULL, NULL, PLANAR);
        for (uint32_t i = 0; i < to.height * to.width; i++)
            CHECK(value_at(&to, 0, i / to.width, i % to.width) == cases[c].expected[i]);
        free_raster(&from);
        free_raster(&to);
    }
}

/* A tie of weights that are not whole. */
static void ties_as_gdal(void) {
    static const uint16_t samples[14] = {35601, 49362, 47391, 24923, 51595, 49788, 6801,
                                         597,   6133,  21902, 6581,  4717,  15525, 39156};
    static const uint16_t expected[4] = {22234, 28263, 25255, 27126};
    cogpu_raster from = new_raster(COGPU_TYPE_U16, 1, 2, 7, PLANAR);
    memcpy(from.data, samples, sizeof samples);
    cogpu_downsample downsample = downsample_of(COGPU_RESAMPLE_AVERAGE, &from, 2);
    cogpu_raster to = downsample_whole(&downsample, &from, NULL, NULL, PLANAR);
    CHECK(memcmp(to.data, expected, sizeof expected) == 0);
    free_raster(&from);
    free_raster(&to);
}

/* Five rows become three, the first of the upper two: both weigh the same, as they should not. */
static void squares_as_gdal(void) {
    static const double column[5] = {10, 20, 30, 40, 50};
    static const cogpu_resampling methods[] = {COGPU_RESAMPLE_AVERAGE, COGPU_RESAMPLE_RMS};
    const double expected[2][3] = {{15, 30, 45}, {sqrt(250), NAN, sqrt(2050)}};
    for (int m = 0; m < 2; m++) {
        cogpu_raster from = new_raster(COGPU_TYPE_F64, 1, 5, 2, PLANAR);
        for (uint32_t i = 0; i < 10; i++)
            set_sample(COGPU_TYPE_F64, at(&from, 0, i / 2, i % 2), column[i / 2]);
        cogpu_downsample downsample = downsample_of(methods[m], &from, 2);
        cogpu_raster to = downsample_whole(&downsample, &from, NULL, NULL, PLANAR);
        for (uint32_t y = 0; y < 3; y++)
            CHECK(isnan(expected[m][y]) ||
                  fabs(value_at(&to, 0, y, 0) - expected[m][y]) < 1e-12 * expected[m][y]);
        free_raster(&from);
        free_raster(&to);
    }
}

/* Mode heeds mask and alpha, but of uint8; the majority decides on the mask itself. */
static void mode_as_gdal(void) {
    static const uint16_t pixels[8] = {1, 9, 2, 0, 2, 0, 2, 0};
    cogpu_raster from = new_raster(COGPU_TYPE_U16, 2, 2, 2, CHUNKY);
    cogpu_raster mask = new_raster(COGPU_TYPE_U8, 1, 2, 2, PLANAR);
    cogpu_raster to_mask = new_raster(COGPU_TYPE_U8, 1, 1, 1, PLANAR);
    memcpy(from.data, pixels, sizeof pixels);
    *at(&mask, 0, 1, 0) = 1;
    cogpu_downsample downsample = downsample_of(COGPU_RESAMPLE_MODE, &from, 2);
    downsample.alpha_band = 2;
    cogpu_raster to = downsample_whole(&downsample, &from, NULL, NULL, PLANAR);
    CHECK(value_at(&to, 0, 0, 0) == 1 && value_at(&to, 1, 0, 0) == 9);
    free_raster(&to);
    downsample.alpha_band = 0;
    downsample.has_mask = true;
    to = downsample_whole(&downsample, &from, &mask, &to_mask, PLANAR);
    CHECK(value_at(&to, 0, 0, 0) == 2 && value_at(&to, 1, 0, 0) == 0);
    CHECK(*at(&to_mask, 0, 0, 0) == 0);
    free_raster(&to);
    free_raster(&from);
    free_raster(&mask);
    free_raster(&to_mask);
}

static void nan_has_no_weight(void) {
    static const cogpu_type types[] = {COGPU_TYPE_F16, COGPU_TYPE_F32, COGPU_TYPE_F64};
    for (int t = 0; t < 3; t++) {
        average_of_square(types[t], (double[]){1, NAN, 2, 3}, NAN, 2);
        average_of_square(types[t], (double[]){1, NAN, -9, 3}, -9, 2);
        average_of_square(types[t], (double[]){NAN, NAN, -9, -9}, -9, -9);
        average_of_square(types[t], (double[]){NAN, NAN, NAN, NAN}, NAN, NAN);
        average_of_square(types[t], (double[]){INFINITY, 1, 2, 3}, NAN, INFINITY);
    }
    average_of_square(COGPU_TYPE_F32, (double[]){3e38, 3e38, 3e38, 3e38}, NAN, (double)3e38F);
}

/* 64-bit integers that doubles cannot tell apart. */
static void large_integers_are_exact(void) {
    const int64_t large = INT64_C(1) << 62;
    const int64_t samples[4] = {large + 1, large + 3, large, large + 1};
    static const struct {
        cogpu_resampling method;
        int64_t above;
    } cases[] = {{COGPU_RESAMPLE_NEAREST, 1},
                 {COGPU_RESAMPLE_MODE, 1},
                 {COGPU_RESAMPLE_MAX, 3},
                 {COGPU_RESAMPLE_MIN, 1},
                 {COGPU_RESAMPLE_MEDIAN, 1}};
    for (int c = 0; c < 5; c++) {
        cogpu_raster from = new_raster(COGPU_TYPE_I64, 1, 2, 2, PLANAR);
        memcpy(from.data, samples, sizeof samples);
        cogpu_downsample downsample = downsample_of(cases[c].method, &from, 2);
        downsample.nodata =
            (cogpu_nodata){.text = "x", .matches = 1, .value = 0x1p62, .i64 = large};
        cogpu_raster to = downsample_whole(&downsample, &from, NULL, NULL, PLANAR);
        int64_t made;
        memcpy(&made, to.data, sizeof made);
        CHECK(made == large + cases[c].above);
        free_raster(&from);
        free_raster(&to);
    }
}

static const uint8_t picture[64] = {95,  102, 151, 190, 7,   29,  164, 189, 50,  63,  173, 85,  55,
                                    165, 52,  82,  129, 110, 18,  6,   173, 150, 167, 108, 163, 66,
                                    91,  157, 25,  61,  25,  91,  195, 27,  77,  81,  180, 41,  100,
                                    53,  4,   150, 13,  56,  100, 97,  24,  196, 150, 192, 19,  145,
                                    59,  108, 185, 56,  145, 32,  65,  194, 84,  103, 59,  24};
static const uint8_t alpha[64] = {
    0,   0,  0, 0, 195, 0,   0,  185, 0, 0,   0, 110, 0,   0,   0, 0,  22,  0,  0,  0, 246, 0,
    223, 50, 0, 0, 0,   0,   38, 66,  0, 0,   0, 66,  234, 0,   0, 0,  197, 0,  0,  0, 0,   107,
    0,   0,  0, 0, 0,   149, 0,  214, 0, 185, 0, 93,  0,   114, 0, 94, 0,   28, 12, 0};

/* gdaladdo's results for the picture with the mask `alpha` != 0, and for both as two bands. */
static const struct {
    cogpu_resampling method;
    uint8_t masked[16], mask[16], with_alpha[16], alpha[16];
} gdals[] = {{COGPU_RESAMPLE_NEAREST,
              {95, 151, 7, 164, 129, 18, 173, 167, 195, 77, 180, 100, 150, 19, 59, 185},
              {0, 0, 255, 0, 255, 0, 255, 255, 0, 255, 0, 255, 0, 0, 0, 0},
              {95, 151, 7, 164, 129, 18, 173, 167, 195, 77, 180, 100, 150, 19, 59, 185},
              {0, 0, 195, 0, 22, 0, 246, 223, 0, 234, 0, 197, 0, 0, 0, 0}},
             {COGPU_RESAMPLE_AVERAGE,
              {0, 85, 7, 189, 129, 0, 86, 138, 27, 67, 0, 100, 112, 170, 106, 58},
              {0, 255, 255, 255, 255, 0, 255, 255, 255, 255, 0, 255, 255, 255, 255, 255},
              {0, 85, 7, 189, 129, 0, 86, 138, 27, 67, 0, 100, 112, 170, 106, 58},
              {0, 110, 195, 185, 22, 0, 117, 137, 66, 171, 0, 197, 132, 154, 107, 53}},
             {COGPU_RESAMPLE_RMS,
              {0, 85, 7, 189, 129, 0, 107, 141, 27, 67, 0, 100, 138, 171, 106, 58},
              {0, 255, 255, 255, 255, 0, 255, 255, 255, 255, 0, 255, 255, 255, 255, 255},
              {0, 85, 7, 189, 129, 0, 107, 141, 27, 67, 0, 100, 138, 171, 106, 58},
              {0, 110, 195, 185, 22, 0, 149, 162, 66, 182, 0, 197, 133, 165, 132, 66}},
             {COGPU_RESAMPLE_BILINEAR,
              {129, 64, 64, 176, 107, 93, 104, 99, 78, 68, 79, 86, 112, 141, 106, 70},
              {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
              {129, 64, 64, 181, 110, 94, 105, 107, 89, 71, 79, 88, 112, 137, 121, 77},
              {22, 166, 165, 187, 56, 148, 150, 138, 155, 152, 145, 157, 132, 145, 124, 74}},
             {COGPU_RESAMPLE_CUBIC,
              {0, 0, 0, 162, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
              {0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
              {0, 0, 0, 194, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
              {0, 0, 0, 239, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
             {COGPU_RESAMPLE_MODE,
              {95, 151, 7, 164, 129, 18, 173, 167, 195, 77, 180, 100, 150, 19, 59, 185},
              {0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0, 0, 0, 0, 255},
              {95, 151, 7, 164, 129, 18, 173, 167, 195, 77, 180, 100, 150, 19, 59, 185},
              {0, 0, 0, 0, 0, 0, 246, 0, 0, 0, 0, 0, 0, 0, 0, 0}}};

static void masks_and_alpha_as_gdal(void) {
    for (size_t g = 0; g < sizeof gdals / sizeof *gdals; g++) {
        cogpu_raster from = new_raster(COGPU_TYPE_U8, 1, 8, 8, PLANAR);
        cogpu_raster mask = new_raster(COGPU_TYPE_U8, 1, 8, 8, PLANAR);
        cogpu_raster both = new_raster(COGPU_TYPE_U8, 2, 8, 8, CHUNKY);
        cogpu_raster to_mask = new_raster(COGPU_TYPE_U8, 1, 4, 4, PLANAR);
        memcpy(from.data, picture, 64);
        memcpy(mask.data, alpha, 64); /* anything but 0 is valid */
        for (uint32_t i = 0; i < 64; i++) {
            *at(&both, 0, i / 8, i % 8) = picture[i];
            *at(&both, 1, i / 8, i % 8) = alpha[i];
        }
        cogpu_downsample masked = downsample_of(gdals[g].method, &from, 2);
        masked.has_mask = true;
        cogpu_raster to = downsample_whole(&masked, &from, &mask, &to_mask, PLANAR);
        CHECK(memcmp(to.data, gdals[g].masked, 16) == 0);
        CHECK(memcmp(to_mask.data, gdals[g].mask, 16) == 0);
        free_raster(&to);
        cogpu_downsample with_alpha = downsample_of(gdals[g].method, &both, 2);
        with_alpha.alpha_band = 2;
        to = downsample_whole(&with_alpha, &both, NULL, NULL, PLANAR);
        CHECK(memcmp(to.data, gdals[g].with_alpha, 16) == 0);
        CHECK(memcmp((uint8_t *)to.data + 16, gdals[g].alpha, 16) == 0);
        free_raster(&to);
        free_raster(&from);
        free_raster(&mask);
        free_raster(&both);
        free_raster(&to_mask);
    }
}

/* Floats under a mask: 0 where it says so, NaN where there is nothing but NaN. */
static void masked_floats(void) {
    static const cogpu_resampling methods[] = {COGPU_RESAMPLE_AVERAGE, COGPU_RESAMPLE_RMS,
                                               COGPU_RESAMPLE_BILINEAR, COGPU_RESAMPLE_MIN,
                                               COGPU_RESAMPLE_MEDIAN};
    for (int m = 0; m < 5; m++) {
        cogpu_raster from = new_raster(COGPU_TYPE_F32, 1, 2, 16, PLANAR);
        cogpu_raster mask = new_raster(COGPU_TYPE_U8, 1, 2, 16, PLANAR);
        cogpu_raster to_mask = new_raster(COGPU_TYPE_U8, 1, 1, 8, PLANAR);
        for (uint32_t i = 0; i < 32; i++) {
            uint32_t x = i % 16;
            set_sample(COGPU_TYPE_F32, at(&from, 0, i / 16, x), x < 6 ? 5 : (double)NAN);
            *at(&mask, 0, i / 16, x) = x < 11 ? 1 : 0;
        }
        cogpu_downsample downsample = downsample_of(methods[m], &from, 2);
        downsample.has_mask = true;
        cogpu_raster to = downsample_whole(&downsample, &from, &mask, &to_mask, PLANAR);
        CHECK(value_at(&to, 0, 0, 0) == 5 && *at(&to_mask, 0, 0, 0) == 255);
        CHECK(isnan(value_at(&to, 0, 0, 4)) && *at(&to_mask, 0, 0, 4) == 255);
        CHECK(value_at(&to, 0, 0, 7) == 0 && *at(&to_mask, 0, 0, 7) == 0);
        free_raster(&from);
        free_raster(&mask);
        free_raster(&to);
        free_raster(&to_mask);
    }
}

/* ---- complex, and what is refused ---- */

static void complex_samples(void) {
    cogpu_raster from = new_raster(COGPU_TYPE_CF32, 2, 4, 6, CHUNKY);
    for (uint32_t i = 0; i < 48; i++) {
        float pair[2] = {(float)noise(100), (float)noise(100)};
        memcpy(at(&from, i / 24, i / 6 % 4, i % 6), pair, sizeof pair);
    }
    cogpu_downsample nearest = downsample_of(COGPU_RESAMPLE_NEAREST, &from, 2);
    cogpu_downsample average = downsample_of(COGPU_RESAMPLE_AVERAGE, &from, 2);
    cogpu_raster near = downsample_whole(&nearest, &from, NULL, NULL, PLANAR);
    cogpu_raster mean = downsample_whole(&average, &from, NULL, NULL, UPSIDE_DOWN);
    for (uint32_t p = 0; p < 2; p++)
        for (uint32_t y = 0; y < 2; y++)
            for (uint32_t x = 0; x < 3; x++) {
                float sum[2] = {0}, pair[2];
                for (uint32_t k = 0; k < 4; k++) {
                    memcpy(pair, at(&from, p, 2 * y + k / 2, 2 * x + k % 2), sizeof pair);
                    sum[0] += pair[0] / 4;
                    sum[1] += pair[1] / 4;
                }
                memcpy(pair, at(&mean, p, y, x), sizeof pair);
                CHECK(pair[0] == sum[0] && pair[1] == sum[1]);
                CHECK(memcmp(at(&near, p, y, x), at(&from, p, 2 * y, 2 * x), 8) == 0);
            }
    free_raster(&from);
    free_raster(&near);
    free_raster(&mean);
}

static void refusals(void) {
    cogpu_error error;
    cogpu_downsample downsample = {.method = COGPU_RESAMPLE_AVERAGE,
                                   .type = COGPU_TYPE_CI16,
                                   .bands = 1,
                                   .from_width = 4,
                                   .from_height = 4,
                                   .to_width = 2,
                                   .to_height = 2};
    CHECK(cogpu_downsample_check(&downsample, &error) == COGPU_UNSUPPORTED);
    CHECK(strstr(error.message, "complex_int16") && strstr(error.message, "average"));
    downsample.method = COGPU_RESAMPLE_NEAREST;
    CHECK(cogpu_downsample_check(&downsample, &error) == COGPU_OK);
    downsample.type = COGPU_TYPE_CF64;
    downsample.method = COGPU_RESAMPLE_MODE;
    CHECK(cogpu_downsample_check(&downsample, &error) == COGPU_UNSUPPORTED);
    downsample.type = COGPU_TYPE_U8;
    CHECK(cogpu_downsample_check(&downsample, &error) == COGPU_OK);
    downsample.from_height = 100000;
    CHECK(cogpu_downsample_check(&downsample, &error) == COGPU_UNSUPPORTED);
}

/* A large factor at once: a window of thousands. */
static void large_factors(void) {
    for (cogpu_resampling method = COGPU_RESAMPLE_AVERAGE; method <= COGPU_RESAMPLE_MEDIAN;
         method++) {
        cogpu_raster from = new_raster(COGPU_TYPE_U16, 1, 63, 130, PLANAR);
        fill(&from, 500);
        cogpu_downsample downsample = downsample_of(method, &from, 63);
        cogpu_raster to = downsample_whole(&downsample, &from, NULL, NULL, PLANAR);
        CHECK(wrong_samples(&downsample, &from, &to, NAN) == 0);
        free_raster(&from);
        free_raster(&to);
    }
}

TESTS(downsample) {
    RUN(all_methods_and_types);
    RUN(nodata_has_no_weight);
    RUN(rows_in_parts);
    RUN(wide_rows);
    RUN(averages_are_rounded);
    RUN(averages_as_gdal);
    RUN(ties_as_gdal);
    RUN(squares_as_gdal);
    RUN(mode_as_gdal);
    RUN(nan_has_no_weight);
    RUN(large_integers_are_exact);
    RUN(masks_and_alpha_as_gdal);
    RUN(masked_floats);
    RUN(complex_samples);
    RUN(refusals);
    RUN(large_factors);
    return FINISH();
}
