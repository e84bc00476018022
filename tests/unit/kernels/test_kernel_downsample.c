/*
 * Downsampling on the device against the CPU, which is compared with GDAL: all types and methods,
 * any factor, nodata, NaN, infinities, masks and alpha, rasters at any address and stride, all rows
 * of the CPU at once against a few at a time of the device. A raster's memory ends with its last
 * sample, and all of it is compared.
 */
#include "kernels/resample/downsample_args.h"

#include "support/gpu_step_test.h"
#include "support/raster_pair.h"
#include "support/test.h"

static cogpu_error error;

static cogpu_worker worker;

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
        cogpu_nodata_parse(draw(2) ? "4" : raster_pair_numbers[draw(RASTER_PAIR_NUMBERS)],
                           downsample.type, &downsample.nodata);
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
    rows.data = raster_pair_sample(raster, 0, begin, 0);
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
        raster_pair_any(downsample->type, downsample->bands, end - begin, downsample->from_width);
    struct raster_pair mask =
        raster_pair_any(COGPU_TYPE_U8, 1, end - begin, downsample->from_width);
    struct raster_pair to =
        raster_pair_any(downsample->type, downsample->bands, rows, downsample->to_width);
    struct raster_pair to_mask = raster_pair_any(COGPU_TYPE_U8, 1, rows, downsample->to_width);
    struct raster_pair *const all[] = {&from, &mask, &to, &to_mask};
    const struct taste taste = raster_pair_taste(downsample->type);
    raster_pair_fill(&from.host, &taste);
    raster_pair_fill_mask(&mask.host);
    for (int i = 0; i < 4; i++)
        raster_pair_upload(all[i]);
    downsample_on_device(downsample, &from, &mask, begin, first, &to, &to_mask);
    gpu_test_need(gpu->calls->finish_stream(gpu, stream, &error), &error);
    const cogpu_downsample_position position = {.from_y = begin, .y = first};
    gpu_test_need(cogpu_cpu_downsample(&worker, downsample, &position, &from.host, &mask.host,
                                       &to.host, &to_mask.host, &error),
                  &error);
    bool same = raster_pair_is_same(&from) && raster_pair_is_same(&mask) &&
                raster_pair_is_same(&to) && raster_pair_is_same(&to_mask);
    if (!same)
        print_step(downsample, first, rows);
    for (int i = 0; i < 4; i++)
        raster_pair_drop(all[i]);
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
