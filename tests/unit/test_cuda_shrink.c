/*
 * shrink on the device against backend/cpu's, which GDAL judges: all types and methods, any factor,
 * nodata, NaN, infinities, masks and alpha, rasters at any place and stride, all rows of the host
 * at once against a few at a time of the device. A raster's memory ends where its last sample does,
 * and all of it is compared.
 */
#include "backend/cuda/cuda_shrink.h"

#include "gpu_step_test.h"
#include "test.h"

static cogpu_seat seat;

/* ---- rasters ---- */

/* A raster on the host and its copy on the device. */
struct twins {
    cogpu_raster host, device;
    uint8_t *memory;
    void *device_memory;
    size_t bytes;
};

static struct twins any_twins(cogpu_type type, uint32_t bands, uint32_t height, uint32_t width) {
    static const int orders[4][3] = {{2, 1, 0}, {0, 2, 1}, {1, 2, 0}, {2, 1, 0}};
    const int64_t size = (int64_t)cogpu_type_bytes(type);
    struct twins twins = {.host = {.type = type, .bands = bands, .height = height, .width = width}};
    cogpu_raster *raster = &twins.host;
    const uint32_t order = draw(4), lengths[3] = {bands, height, width};
    int64_t *const strides[3] = {&raster->stride_band, &raster->stride_y, &raster->stride_x};
    int64_t stride = size + (draw(4) ? 0 : draw(5)), last = 0;
    size_t skip = draw(2) ? 0 : draw(20);
    for (int i = 0; i < 3; i++) {
        int axis = orders[order][i];
        *strides[axis] = stride;
        last += stride * (lengths[axis] - 1);
        stride = stride * lengths[axis] + (draw(3) ? 0 : draw(40));
    }
    twins.bytes = skip + (size_t)(last + size);
    for (int axis = 0; axis < 3; axis++)
        if (draw(6) == 0) {
            skip += (size_t)(*strides[axis] * (lengths[axis] - 1));
            *strides[axis] = -*strides[axis];
        }
    twins.memory = room(twins.bytes);
    memset(twins.memory, GPU_TEST_GUARD, twins.bytes);
    gpu_test_need(gpu->calls->allocate(gpu, twins.bytes, &twins.device_memory, &error), &error);
    twins.device = twins.host;
    twins.host.data = twins.memory + skip;
    twins.device.data = (uint8_t *)twins.device_memory + skip;
    return twins;
}

static void upload_twins(const struct twins *twins) {
    gpu_test_need(
        gpu->calls->copy_up(gpu, twins->device_memory, twins->memory, twins->bytes, stream, &error),
        &error);
}

static bool are_same(const struct twins *twins) {
    uint8_t *got = room(twins->bytes);
    gpu_test_need(
        gpu->calls->copy_down(gpu, got, twins->device_memory, twins->bytes, stream, &error),
        &error);
    gpu_test_need(gpu->calls->finish_stream(gpu, stream, &error), &error);
    bool same = memcmp(got, twins->memory, twins->bytes) == 0;
    free(got);
    return same;
}

static void drop(struct twins *twins) {
    free(twins->memory);
    gpu->calls->release(gpu, twins->device_memory);
}

/* ---- pixels ---- */

/* Of the last two a double knows but one. */
static const char *const numbers[] = {"0",
                                      "-0",
                                      "3",
                                      "4",
                                      "5",
                                      "7",
                                      "127",
                                      "250",
                                      "255",
                                      "65535",
                                      "-3",
                                      "-12",
                                      "-128",
                                      "nan",
                                      "inf",
                                      "1.7e308",
                                      "9007199254740992",
                                      "9007199254740993"};
enum { NUMBERS = sizeof numbers / sizeof *numbers, LARGEST_SAMPLE = 16 };

/* Noise, or few numbers, so that some are met often: nodata, 0, NaN; or many that are like them. */
struct taste {
    uint32_t count, noise; /* one of `noise` samples is any bits */
    uint32_t grain;        /* bytes of the others that are noise */
    uint8_t samples[NUMBERS][LARGEST_SAMPLE];
};

static struct taste any_taste(cogpu_type type) {
    struct taste taste = {.noise = draw(3) ? 1 + draw(40) : 1,
                          .grain = draw(2) ? 0 : draw((uint32_t)cogpu_type_bytes(type))};
    for (uint32_t i = 0; i < NUMBERS && type < COGPU_CI16; i++) {
        cogpu_nodata number = {0};
        cogpu_nodata_parse(numbers[i], type, &number);
        if (number.matches && draw(3))
            cogpu_nodata_sample(&number, type, taste.samples[taste.count++]);
    }
    if (taste.count == 0)
        taste.noise = 1;
    return taste;
}

static void draw_sample(const struct taste *taste, size_t size, uint8_t *sample) {
    const bool is_noise = draw(taste->noise) == 0;
    if (!is_noise)
        memcpy(sample, taste->samples[draw(taste->count)], size);
    for (size_t i = 0; i < (is_noise ? size : taste->grain); i++)
        sample[i] = (uint8_t)draw(256);
}

static uint8_t *sample_at(const cogpu_raster *raster, uint32_t b, uint32_t y, uint32_t x) {
    return (uint8_t *)raster->data + b * raster->stride_band + y * raster->stride_y +
           x * raster->stride_x;
}

static void fill(const cogpu_raster *raster, const struct taste *taste) {
    for (uint32_t b = 0; b < raster->bands; b++)
        for (uint32_t y = 0; y < raster->height; y++)
            for (uint32_t x = 0; x < raster->width; x++)
                draw_sample(taste, cogpu_type_bytes(raster->type), sample_at(raster, b, y, x));
}

/* Mostly areas that are valid or not, and any number but 0 for the former. */
static void veil(const cogpu_raster *raster) {
    uint8_t valid = 0;
    const uint32_t often = 1 + draw(20);
    for (uint32_t y = 0; y < raster->height; y++)
        for (uint32_t x = 0; x < raster->width; x++) {
            if (draw(often) == 0)
                valid = (uint8_t)(draw(2) ? 0 : 1 + draw(255));
            *sample_at(raster, 0, y, x) = valid;
        }
}

/* ---- steps of a pyramid ---- */

static uint32_t any_length(uint32_t to) {
    switch (draw(5)) {
    case 0:
        return 2 * to - (to > 1 ? 1 : 0);
    case 1:
        return to * (1 + draw(4)) + draw(to);
    case 2:
        return to * (1 + draw(to > 8 ? 5 : 40));
    default:
        return 2 * to;
    }
}

static cogpu_shrink any_shrink(cogpu_resampling method) {
    cogpu_shrink shrink = {.method = method,
                           .type = (cogpu_type)(COGPU_U8 + draw(COGPU_CF64)),
                           .bands = draw(2) ? 1 : 1 + draw(4),
                           .to_width = 1 + draw(draw(8) ? 40 : 1300),
                           .to_height = 1 + draw(12)};
    if (shrink.to_width > 40)
        shrink.to_height = 1 + draw(3);
    shrink.from_width = any_length(shrink.to_width);
    shrink.from_height = any_length(shrink.to_height);
    shrink.has_mask = draw(4) == 0;
    if (shrink.type >= COGPU_CI16) {
        bool is_float = shrink.type == COGPU_CF32 || shrink.type == COGPU_CF64;
        shrink.method = is_float && method != COGPU_NEAREST ? COGPU_AVERAGE : COGPU_NEAREST;
        return shrink;
    }
    if (draw(4) == 0)
        shrink.alpha_band = 1 + draw(shrink.bands);
    if (draw(2)) /* often one that lies between others */
        cogpu_nodata_parse(draw(2) ? "4" : numbers[draw(NUMBERS)], shrink.type, &shrink.nodata);
    return shrink;
}

static void print_step(const cogpu_shrink *shrink, uint32_t first, uint32_t rows) {
    printf("%s, method %d, %u bands, %u x %u to %u x %u, rows %u + %u, nodata %s, mask %d, "
           "alpha %u\n",
           cogpu_type_name(shrink->type), (int)shrink->method, shrink->bands, shrink->from_width,
           shrink->from_height, shrink->to_width, shrink->to_height, first, rows,
           shrink->nodata.text ? shrink->nodata.text : "none", shrink->has_mask,
           shrink->alpha_band);
}

static cogpu_raster rows_of(const cogpu_raster *raster, uint32_t begin, uint32_t count) {
    cogpu_raster rows = *raster;
    rows.data = sample_at(raster, 0, begin, 0);
    rows.height = count;
    return rows;
}

/* `from` begins with the level's row `begin`; `to` with row `first` of the next. */
static void shrink_on_device(const cogpu_shrink *shrink, const struct twins *from,
                             const struct twins *mask, uint32_t begin, uint32_t first,
                             const struct twins *to, const struct twins *to_mask) {
    for (uint32_t done = 0, count; done < to->host.height; done += count) {
        uint32_t left = to->host.height - done;
        count = draw(2) ? left : 1 + draw(left);
        cogpu_raster rows = rows_of(&to->device, done, count);
        cogpu_raster mask_rows = rows_of(&to_mask->device, done, count);
        gpu_test_need(cogpu_gpu_shrink(gpu, shrink, &from->device, &mask->device, begin,
                                       first + done, &rows, &mask_rows, stream, &error),
                      &error);
    }
}

static bool shrinks_as_host(const cogpu_shrink *shrink) {
    const uint32_t first = draw(2) ? 0 : draw(shrink->to_height);
    const uint32_t most = shrink->to_height - first, rows = draw(2) ? most : 1 + draw(most);
    uint32_t begin, end;
    cogpu_shrink_needs(shrink, first, rows, &begin, &end);
    struct twins from = any_twins(shrink->type, shrink->bands, end - begin, shrink->from_width);
    struct twins mask = any_twins(COGPU_U8, 1, end - begin, shrink->from_width);
    struct twins to = any_twins(shrink->type, shrink->bands, rows, shrink->to_width);
    struct twins to_mask = any_twins(COGPU_U8, 1, rows, shrink->to_width);
    struct twins *const all[] = {&from, &mask, &to, &to_mask};
    const struct taste taste = any_taste(shrink->type);
    fill(&from.host, &taste);
    veil(&mask.host);
    for (int i = 0; i < 4; i++)
        upload_twins(all[i]);
    shrink_on_device(shrink, &from, &mask, begin, first, &to, &to_mask);
    gpu_test_need(gpu->calls->finish_stream(gpu, stream, &error), &error);
    const cogpu_shrink_place place = {.from_y = begin, .y = first};
    gpu_test_need(cogpu_cpu_shrink(&seat, shrink, &place, &from.host, &mask.host, &to.host,
                                   &to_mask.host, &error),
                  &error);
    bool same = are_same(&from) && are_same(&mask) && are_same(&to) && are_same(&to_mask);
    if (!same)
        print_step(shrink, first, rows);
    for (int i = 0; i < 4; i++)
        drop(all[i]);
    return same;
}

static void check_method(cogpu_resampling method, int steps) {
    int different = 0;
    for (int i = 0; i < steps; i++) {
        const cogpu_shrink shrink = any_shrink(method);
        different += !shrinks_as_host(&shrink);
    }
    CHECK(different == 0);
}

static void test_nearest(void) {
    check_method(COGPU_NEAREST, 60);
}

static void test_average(void) {
    check_method(COGPU_AVERAGE, 200);
}

static void test_rms(void) {
    check_method(COGPU_RMS, 100);
}

static void test_bilinear(void) {
    check_method(COGPU_BILINEAR, 150);
}

static void test_cubic(void) {
    check_method(COGPU_CUBIC, 150);
}

static void test_min(void) {
    check_method(COGPU_MIN, 60);
}

static void test_max(void) {
    check_method(COGPU_MAX, 60);
}

static void test_mode(void) {
    check_method(COGPU_MODE, 150);
}

static void test_median(void) {
    check_method(COGPU_MEDIAN, 150);
}

/* What most pyramids are made of, and what the device has a way of its own for. */
static void test_pairs_of_columns(void) {
    static const cogpu_type types[] = {COGPU_U8, COGPU_U16, COGPU_F32, COGPU_F32, COGPU_F64};
    int different = 0;
    for (int i = 0; i < 100; i++) {
        cogpu_shrink shrink = {.method = COGPU_AVERAGE,
                               .type = types[draw(5)],
                               .bands = 1 + draw(2),
                               .to_width = 8 + draw(600),
                               .to_height = 1 + draw(8)};
        shrink.from_width = 2 * shrink.to_width;
        shrink.from_height = 2 * shrink.to_height - draw(2);
        if (draw(2))
            cogpu_nodata_parse(draw(2) ? "4" : "nan", shrink.type, &shrink.nodata);
        different += !shrinks_as_host(&shrink);
    }
    CHECK(different == 0);
}

/* More different ones than a table holds, and more than once. */
static void test_many_votes(void) {
    for (int i = 0; i < 4; i++) {
        const cogpu_shrink shrink = {.method = i % 2 ? COGPU_MODE : COGPU_MEDIAN,
                                     .type = i < 2 ? COGPU_F32 : COGPU_I16,
                                     .bands = 1,
                                     .from_width = 140,
                                     .from_height = 150,
                                     .to_width = 1,
                                     .to_height = 1};
        CHECK(shrinks_as_host(&shrink));
    }
}

/* Whole numbers that doubles cannot tell from nodata. */
static void test_nodata_of_64_bits(void) {
    int different = 0;
    for (int i = 0; i < 40; i++) {
        cogpu_shrink shrink = any_shrink(i % 2 ? COGPU_AVERAGE : COGPU_MAX);
        shrink.type = draw(2) ? COGPU_I64 : COGPU_U64;
        cogpu_nodata_parse("9007199254740993", shrink.type, &shrink.nodata);
        different += !shrinks_as_host(&shrink);
    }
    CHECK(different == 0);
}

int main(int argc, char **argv) {
    open_gpu(argc, argv);
    RUN(test_nearest);
    RUN(test_average);
    RUN(test_rms);
    RUN(test_bilinear);
    RUN(test_cubic);
    RUN(test_min);
    RUN(test_max);
    RUN(test_mode);
    RUN(test_median);
    RUN(test_pairs_of_columns);
    RUN(test_many_votes);
    RUN(test_nodata_of_64_bits);
    cogpu_seat_close(&seat);
    close_gpu();
    return FINISH();
}
