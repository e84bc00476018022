/*
 * Downsampling on the device against the CPU, which is compared with GDAL: all types and methods,
 * any factor, nodata, NaN, infinities, masks and alpha, rasters at any address and stride, all rows
 * of the CPU at once against a few at a time of the device. A raster's memory ends with its last
 * sample, and all of it is compared.
 */
#include "kernels/resample/downsample_args.h"

#include "support/gpu_step_test.h"
#include "support/test.h"

static cogpu_error error;

static cogpu_worker worker;

/* ---- rasters ---- */

/* A raster on the host and its copy on the device. */
struct raster_pair {
    cogpu_raster host, device;
    uint8_t *memory;
    void *device_memory;
    size_t bytes;
};

static struct raster_pair any_raster_pair(cogpu_type type, uint32_t bands, uint32_t height,
                                          uint32_t width) {
    static const int orders[4][3] = {{2, 1, 0}, {0, 2, 1}, {1, 2, 0}, {2, 1, 0}};
    const int64_t size = (int64_t)cogpu_type_bytes(type);
    struct raster_pair raster_pair = {.host = {.struct_size = sizeof(cogpu_raster),
                                               .type = type,
                                               .bands = bands,
                                               .height = height,
                                               .width = width}};
    cogpu_raster *raster = &raster_pair.host;
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
    raster_pair.bytes = skip + (size_t)(last + size);
    for (int axis = 0; axis < 3; axis++)
        if (draw(6) == 0) {
            skip += (size_t)(*strides[axis] * (lengths[axis] - 1));
            *strides[axis] = -*strides[axis];
        }
    raster_pair.memory = allocate_host(raster_pair.bytes);
    memset(raster_pair.memory, GPU_TEST_GUARD, raster_pair.bytes);
    gpu_test_need(gpu->calls->allocate(gpu, raster_pair.bytes, &raster_pair.device_memory, &error),
                  &error);
    raster_pair.device = raster_pair.host;
    raster_pair.host.data = raster_pair.memory + skip;
    raster_pair.device.data = (uint8_t *)raster_pair.device_memory + skip;
    return raster_pair;
}

static void upload_raster_pair(const struct raster_pair *raster_pair) {
    gpu_test_need(gpu->calls->copy_up(gpu, raster_pair->device_memory, raster_pair->memory,
                                      raster_pair->bytes, stream, &error),
                  &error);
}

static bool are_same(const struct raster_pair *raster_pair) {
    uint8_t *got = allocate_host(raster_pair->bytes);
    gpu_test_need(gpu->calls->copy_down(gpu, got, raster_pair->device_memory, raster_pair->bytes,
                                        stream, &error),
                  &error);
    gpu_test_need(gpu->calls->finish_stream(gpu, stream, &error), &error);
    bool same = memcmp(got, raster_pair->memory, raster_pair->bytes) == 0;
    free(got);
    return same;
}

static void drop(struct raster_pair *raster_pair) {
    free(raster_pair->memory);
    gpu->calls->release(gpu, raster_pair->device_memory);
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
    for (uint32_t i = 0; i < NUMBERS && type < COGPU_TYPE_CI16; i++) {
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
static void fill_mask(const cogpu_raster *raster) {
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

static cogpu_downsample any_downsample(cogpu_resampling method) {
    cogpu_downsample downsample = {.method = method,
                                   .type = (cogpu_type)(COGPU_TYPE_U8 + draw(COGPU_TYPE_CF64)),
                                   .bands = draw(2) ? 1 : 1 + draw(4),
                                   .to_width = 1 + draw(draw(8) ? 40 : 1300),
                                   .to_height = 1 + draw(12)};
    if (downsample.to_width > 40)
        downsample.to_height = 1 + draw(3);
    downsample.from_width = any_length(downsample.to_width);
    downsample.from_height = any_length(downsample.to_height);
    downsample.has_mask = draw(4) == 0;
    if (downsample.type >= COGPU_TYPE_CI16) {
        bool is_float = downsample.type == COGPU_TYPE_CF32 || downsample.type == COGPU_TYPE_CF64;
        downsample.method = is_float && method != COGPU_RESAMPLE_NEAREST ? COGPU_RESAMPLE_AVERAGE
                                                                         : COGPU_RESAMPLE_NEAREST;
        return downsample;
    }
    if (draw(4) == 0)
        downsample.alpha_band = 1 + draw(downsample.bands);
    if (draw(2)) /* often one that lies between others */
        cogpu_nodata_parse(draw(2) ? "4" : numbers[draw(NUMBERS)], downsample.type,
                           &downsample.nodata);
    return downsample;
}

static void print_step(const cogpu_downsample *downsample, uint32_t first, uint32_t rows) {
    printf("%s, method %d, %u bands, %u x %u to %u x %u, rows %u + %u, nodata %s, mask %d, "
           "alpha %u\n",
           cogpu_type_name(downsample->type), (int)downsample->method, downsample->bands,
           downsample->from_width, downsample->from_height, downsample->to_width,
           downsample->to_height, first, rows,
           downsample->nodata.text ? downsample->nodata.text : "none", downsample->has_mask,
           downsample->alpha_band);
}

static cogpu_raster rows_of(const cogpu_raster *raster, uint32_t begin, uint32_t count) {
    cogpu_raster rows = *raster;
    rows.data = sample_at(raster, 0, begin, 0);
    rows.height = count;
    return rows;
}

/* `from` begins with the level's row `begin`; `to` with row `first` of the next. */
static void downsample_on_device(const cogpu_downsample *downsample, const struct raster_pair *from,
                                 const struct raster_pair *mask, uint32_t begin, uint32_t first,
                                 const struct raster_pair *to, const struct raster_pair *to_mask) {
    for (uint32_t done = 0, count; done < to->host.height; done += count) {
        uint32_t left = to->host.height - done;
        count = draw(2) ? left : 1 + draw(left);
        cogpu_raster rows = rows_of(&to->device, done, count);
        cogpu_raster mask_rows = rows_of(&to_mask->device, done, count);
        gpu_test_need(cogpu_gpu_downsample(gpu, downsample, &from->device, &mask->device, begin,
                                           first + done, &rows, &mask_rows, stream, &error),
                      &error);
    }
}

static bool downsamples_as_host(const cogpu_downsample *downsample) {
    const uint32_t first = draw(2) ? 0 : draw(downsample->to_height);
    const uint32_t most = downsample->to_height - first, rows = draw(2) ? most : 1 + draw(most);
    uint32_t begin, end;
    cogpu_downsample_source_rows(downsample, first, rows, &begin, &end);
    struct raster_pair from =
        any_raster_pair(downsample->type, downsample->bands, end - begin, downsample->from_width);
    struct raster_pair mask =
        any_raster_pair(COGPU_TYPE_U8, 1, end - begin, downsample->from_width);
    struct raster_pair to =
        any_raster_pair(downsample->type, downsample->bands, rows, downsample->to_width);
    struct raster_pair to_mask = any_raster_pair(COGPU_TYPE_U8, 1, rows, downsample->to_width);
    struct raster_pair *const all[] = {&from, &mask, &to, &to_mask};
    const struct taste taste = any_taste(downsample->type);
    fill(&from.host, &taste);
    fill_mask(&mask.host);
    for (int i = 0; i < 4; i++)
        upload_raster_pair(all[i]);
    downsample_on_device(downsample, &from, &mask, begin, first, &to, &to_mask);
    gpu_test_need(gpu->calls->finish_stream(gpu, stream, &error), &error);
    const cogpu_downsample_position position = {.from_y = begin, .y = first};
    gpu_test_need(cogpu_cpu_downsample(&worker, downsample, &position, &from.host, &mask.host,
                                       &to.host, &to_mask.host, &error),
                  &error);
    bool same = are_same(&from) && are_same(&mask) && are_same(&to) && are_same(&to_mask);
    if (!same)
        print_step(downsample, first, rows);
    for (int i = 0; i < 4; i++)
        drop(all[i]);
    return same;
}

static void check_method(cogpu_resampling method, int steps) {
    int different = 0;
    for (int i = 0; i < steps; i++) {
        const cogpu_downsample downsample = any_downsample(method);
        different += !downsamples_as_host(&downsample);
    }
    CHECK(different == 0);
}

static void test_nearest(void) {
    check_method(COGPU_RESAMPLE_NEAREST, 60);
}

static void test_average(void) {
    check_method(COGPU_RESAMPLE_AVERAGE, 200);
}

static void test_rms(void) {
    check_method(COGPU_RESAMPLE_RMS, 100);
}

static void test_bilinear(void) {
    check_method(COGPU_RESAMPLE_BILINEAR, 150);
}

static void test_cubic(void) {
    check_method(COGPU_RESAMPLE_CUBIC, 150);
}

static void test_min(void) {
    check_method(COGPU_RESAMPLE_MIN, 60);
}

static void test_max(void) {
    check_method(COGPU_RESAMPLE_MAX, 60);
}

static void test_mode(void) {
    check_method(COGPU_RESAMPLE_MODE, 150);
}

static void test_median(void) {
    check_method(COGPU_RESAMPLE_MEDIAN, 150);
}

/* What most pyramids are made of, and what the device has a way of its own for. */
static void test_pairs_of_columns(void) {
    static const cogpu_type types[] = {COGPU_TYPE_U8, COGPU_TYPE_U16, COGPU_TYPE_F32,
                                       COGPU_TYPE_F32, COGPU_TYPE_F64};
    int different = 0;
    for (int i = 0; i < 100; i++) {
        cogpu_downsample downsample = {.method = COGPU_RESAMPLE_AVERAGE,
                                       .type = types[draw(5)],
                                       .bands = 1 + draw(2),
                                       .to_width = 8 + draw(600),
                                       .to_height = 1 + draw(8)};
        downsample.from_width = 2 * downsample.to_width;
        downsample.from_height = 2 * downsample.to_height - draw(2);
        if (draw(2))
            cogpu_nodata_parse(draw(2) ? "4" : "nan", downsample.type, &downsample.nodata);
        different += !downsamples_as_host(&downsample);
    }
    CHECK(different == 0);
}

/* More different ones than a table holds, and more than once. */
static void test_many_votes(void) {
    for (int i = 0; i < 4; i++) {
        const cogpu_downsample downsample = {.method = i % 2 ? COGPU_RESAMPLE_MODE
                                                             : COGPU_RESAMPLE_MEDIAN,
                                             .type = i < 2 ? COGPU_TYPE_F32 : COGPU_TYPE_I16,
                                             .bands = 1,
                                             .from_width = 140,
                                             .from_height = 150,
                                             .to_width = 1,
                                             .to_height = 1};
        CHECK(downsamples_as_host(&downsample));
    }
}

/* Whole numbers that doubles cannot tell from nodata. */
static void test_nodata_of_64_bits(void) {
    int different = 0;
    for (int i = 0; i < 40; i++) {
        cogpu_downsample downsample =
            any_downsample(i % 2 ? COGPU_RESAMPLE_AVERAGE : COGPU_RESAMPLE_MAX);
        downsample.type = draw(2) ? COGPU_TYPE_I64 : COGPU_TYPE_U64;
        cogpu_nodata_parse("9007199254740993", downsample.type, &downsample.nodata);
        different += !downsamples_as_host(&downsample);
    }
    CHECK(different == 0);
}

TESTS(kernel_downsample) {
    open_gpu(test_argc, test_argv);
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
    cogpu_worker_close(&worker);
    close_gpu();
    return FINISH();
}
