/* See rectangle.h. */
#include "cpu/rectangle.h"

#include "base/checked.h"
#include "base/memory.h"
#include "base/resampling.h"
#include "base/type.h"
#include "cpu/downsample.h"
#include "cpu/samples.h"

/* Scratch memory: packed planes of resampled pixels. */
struct rectangle_planes {
    cogpu_raster pixels; /* of one band */
    cogpu_raster mask, mask_result;
    double *values; /* a row */
    bool has_mask;  /* a rule asks for it */
};

/* ---- checks ---- */

static bool needs_mask(const cogpu_rectangle_job *job) {
    for (uint32_t i = 0; job->mask && i < job->rectangle->bands; i++)
        if (job->rectangle->rules[i].rule.uses_mask && !job->rectangle->rules[i].nodata.text)
            return true;
    return false;
}

static bool has_palette(const cogpu_rectangle *rectangle) {
    for (uint32_t i = 0; i < rectangle->bands; i++)
        if (rectangle->rules[i].palette)
            return true;
    return false;
}

/* Kernels have no meaning for palette indices: GDAL takes the nearest. */
static cogpu_status choose_method(const cogpu_rectangle *rectangle, cogpu_resampling *method,
                                  cogpu_error *error) {
    cogpu_resampling_kind kind = cogpu_resampling_find(rectangle->method)->kind;
    *method = rectangle->method;
    if (has_palette(rectangle) && kind == RESAMPLING_MEAN)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "%s of palette indices: choose nearest or mode",
                          cogpu_resampling_name(rectangle->method));
    if (rectangle->is_indexed && kind == RESAMPLING_KERNEL)
        *method = COGPU_RESAMPLE_NEAREST;
    return COGPU_OK;
}

static bool has_complex(const cogpu_rectangle *rectangle) {
    return cogpu_type_is_complex(rectangle->from_type) || cogpu_type_is_complex(rectangle->to_type);
}

static bool can_change_complex(const cogpu_rectangle_band *band) {
    const cogpu_sample_rule *rule = &band->rule;
    return rule->scaling != COGPU_SCALING_EXPONENT && !rule->lut_count &&
           !rule->palette_component && band->most == 0;
}

static cogpu_status check_complex(const cogpu_rectangle *rectangle, cogpu_error *error) {
    bool is_possible = rectangle->method == COGPU_RESAMPLE_NEAREST && !rectangle->averages;
    if (!has_complex(rectangle))
        return COGPU_OK;
    for (uint32_t i = 0; i < rectangle->bands; i++)
        is_possible &= can_change_complex(&rectangle->rules[i]);
    return is_possible ? COGPU_OK
                       : cogpu_fail(error, COGPU_UNSUPPORTED,
                                    "samples of type %s become %s: complex samples can be copied, "
                                    "converted and scaled, but neither resampled other than by "
                                    "nearest nor looked up",
                                    cogpu_type_name(rectangle->from_type),
                                    cogpu_type_name(rectangle->to_type));
}

/* ---- resampling ---- */

static cogpu_raster packed_raster(void *data, cogpu_type type, uint32_t bands, uint32_t width,
                                  uint32_t height) {
    const int64_t size = (int64_t)cogpu_type_bytes(type);
    return (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                          .data = data,
                          .type = type,
                          .bands = bands,
                          .width = width,
                          .height = height,
                          .stride_x = size,
                          .stride_y = size * width,
                          .stride_band = size * width * height};
}

static cogpu_status reserve_planes(cogpu_worker *worker, const cogpu_rectangle *rectangle,
                                   struct rectangle_planes *planes, cogpu_error *error) {
    const uint32_t width = rectangle->width, height = rectangle->height;
    const cogpu_type type = rectangle->averages ? COGPU_TYPE_F32 : rectangle->from_type;
    const uint64_t pixels = (uint64_t)width * height;
    const uint64_t row = sizeof(double) * (has_complex(rectangle) ? 2 : 1) * (uint64_t)width;
    uint64_t plane, bytes;
    if (!checked_mul(pixels, cogpu_type_bytes(type), &plane) ||
        !checked_add(plane, row + 2 * pixels, &bytes) || bytes > SIZE_MAX)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for %u x %u pixels", width,
                          height);
    TRY(cogpu_worker_reserve(&worker->converted, &worker->converted_bytes, (size_t)bytes, error));
    uint8_t *memory = worker->converted;
    planes->values = (double *)(void *)memory;
    memory += row;
    planes->pixels = packed_raster(memory, type, 1, width, height);
    memory += plane;
    planes->mask = packed_raster(memory, COGPU_TYPE_U8, 1, width, height);
    planes->mask_result = packed_raster(memory + pixels, COGPU_TYPE_U8, 1, width, height);
    return COGPU_OK;
}

static void copy_nearest(const cogpu_rectangle_job *job, const cogpu_raster *from,
                         const cogpu_raster *to) {
    const cogpu_rectangle *rectangle = job->rectangle;
    const size_t size = cogpu_type_bytes(from->type);
    const uint8_t *plane = from->data;
    uint8_t *made = to->data;
    const bool is_shifted = rectangle->step_x == 1;
    for (uint32_t j = 0; j < to->height; j++, made += to->stride_y) {
        uint32_t y = cogpu_rectangle_nearest(rectangle->y, rectangle->step_y, rectangle->to_y + j,
                                             rectangle->low_y, rectangle->high_y);
        const uint8_t *row = plane + (int64_t)(y - job->from_y) * from->stride_y;
        for (uint32_t i = 0; i < to->width; i++) {
            uint32_t x =
                cogpu_rectangle_nearest(rectangle->x, rectangle->step_x, rectangle->to_x + i,
                                        rectangle->low_x, rectangle->high_x);
            const uint8_t *sample = row + (int64_t)(x - job->from_x) * from->stride_x;
            /* One step a pixel: the rest of the row follows, up to the border of the level. */
            uint32_t run = is_shifted ? rectangle->high_x - x : 1;
            run = run > 1 && x > rectangle->low_x ? (run < to->width - i ? run : to->width - i) : 1;
            cogpu_cpu_copy_samples(made + i * size, (int64_t)size, sample, from->stride_x, run,
                                   size);
            i += run - 1;
        }
    }
}

/* How a grid of `to_width` x `to_height` pixels is made of the rectangle's source. */
static cogpu_downsample downsample_to(const cogpu_rectangle *rectangle, cogpu_resampling method,
                                      double step_x, double step_y, uint32_t to_width,
                                      uint32_t to_height) {
    return (cogpu_downsample){.method = method,
                              .bands = 1,
                              .from_width = rectangle->high_x - rectangle->low_x,
                              .from_height = rectangle->high_y - rectangle->low_y,
                              .to_width = to_width,
                              .to_height = to_height,
                              .ratio_x = step_x,
                              .ratio_y = step_y,
                              .offset_x = rectangle->x - rectangle->low_x,
                              .offset_y = rectangle->y - rectangle->low_y};
}

static cogpu_downsample downsample_of(const cogpu_rectangle *rectangle, cogpu_resampling method) {
    return downsample_to(rectangle, method, rectangle->step_x, rectangle->step_y,
                         rectangle->to_x + rectangle->width, rectangle->to_y + rectangle->height);
}

/* The rows and columns of the source count from its limits. */
static cogpu_downsample_position position_of(const cogpu_rectangle_job *job) {
    const cogpu_rectangle *rectangle = job->rectangle;
    return (cogpu_downsample_position){job->from_x - rectangle->low_x,
                                       job->from_y - rectangle->low_y, rectangle->to_x,
                                       rectangle->to_y};
}

static cogpu_raster band_of(const cogpu_raster *raster, uint32_t band) {
    cogpu_raster one = *raster;
    one.data = (uint8_t *)raster->data + band * raster->stride_band;
    one.bands = 1;
    return one;
}

static bool keeps_floats(cogpu_resampling method, cogpu_type type) {
    bool is_short = type == COGPU_TYPE_U8 || type == COGPU_TYPE_U16 || type == COGPU_TYPE_I16;
    return cogpu_resampling_find(method)->kind == RESAMPLING_KERNEL &&
           (is_short || type == COGPU_TYPE_F32);
}

/* Samples of a band and their validity. Nodata goes before the mask, as in RasterIO: GDAL's mask of
 * a band with nodata is that of nodata. */
static void describe_band(const cogpu_rectangle_job *job, uint32_t band,
                          cogpu_downsample *downsample) {
    const cogpu_nodata *nodata = &job->rectangle->rules[band].nodata;
    downsample->type = job->rectangle->from_type;
    downsample->nodata = *nodata;
    downsample->has_mask = job->mask && !nodata->text;
    downsample->mask_is_alpha = job->mask_is_alpha;
    downsample->rounds_lines = keeps_floats(downsample->method, downsample->type);
}

/* Kernels overshoot; samples of few bits are unsigned. */
static void limit_samples(const cogpu_rectangle *rectangle, cogpu_resampling method,
                          const cogpu_raster *pixels) {
    const size_t count = (size_t)pixels->width * pixels->height;
    const uint32_t most = (uint32_t)rectangle->source_most;
    if (!most || cogpu_resampling_find(method)->kind != RESAMPLING_KERNEL)
        return;
    for (size_t i = 0; i < count && pixels->type == COGPU_TYPE_U8; i++) {
        uint8_t *sample = (uint8_t *)pixels->data + i;
        *sample = *sample > most ? (uint8_t)most : *sample;
    }
    for (size_t i = 0; i < count && pixels->type == COGPU_TYPE_U16; i++) {
        uint16_t *sample = (uint16_t *)pixels->data + i;
        *sample = *sample > most ? (uint16_t)most : *sample;
    }
}

static cogpu_status resample_band(cogpu_worker *worker, const cogpu_rectangle_job *job,
                                  cogpu_resampling method, uint32_t band,
                                  const struct rectangle_planes *planes, cogpu_error *error) {
    const cogpu_raster from = band_of(job->source, band);
    const cogpu_downsample_position position = position_of(job);
    cogpu_downsample downsample = downsample_of(job->rectangle, method);
    if (method == COGPU_RESAMPLE_NEAREST) {
        copy_nearest(job, &from, &planes->pixels);
        return COGPU_OK;
    }
    describe_band(job, band, &downsample);
    TRY(cogpu_cpu_downsample(worker, &downsample, &position, &from,
                             downsample.has_mask ? job->mask : NULL, &planes->pixels,
                             downsample.has_mask ? &planes->mask_result : NULL, error));
    limit_samples(job->rectangle, method, &planes->pixels);
    return COGPU_OK;
}

/* The mask as pixels: what RasterIO of GDAL's mask band returns. */
static cogpu_status resample_mask(cogpu_worker *worker, const cogpu_rectangle_job *job,
                                  cogpu_resampling method, const struct rectangle_planes *planes,
                                  cogpu_error *error) {
    const cogpu_downsample_position position = position_of(job);
    cogpu_downsample downsample = downsample_of(job->rectangle, method);
    if (method == COGPU_RESAMPLE_NEAREST) {
        copy_nearest(job, job->mask, &planes->mask);
        return COGPU_OK;
    }
    downsample.type = COGPU_TYPE_U8;
    downsample.rounds_lines = keeps_floats(method, downsample.type);
    return cogpu_cpu_downsample(worker, &downsample, &position, job->mask, NULL, &planes->mask,
                                NULL, error);
}

/* ---- averaged sources ---- */

/* Pixels that are averaged: those of the source, or whole ones that are made of them. */
struct averaged_pixels {
    cogpu_raster raster; /* of one band */
    uint32_t x, y;       /* of its first pixel */
    uint8_t *memory;     /* or NULL */
};

/* Pixels from (x, y) on, counted from the first one that is averaged. */
static cogpu_status make_pixels(cogpu_worker *worker, const cogpu_rectangle_job *job, uint32_t band,
                                cogpu_raster *made, uint32_t x, uint32_t y, cogpu_error *error) {
    const cogpu_rectangle *in = job->rectangle;
    const cogpu_raster from = band_of(job->source, band);
    const double step_x = in->across.length / in->across.count;
    const double step_y = in->down.length / in->down.count;
    cogpu_rectangle whole = *in;
    cogpu_rectangle_job whole_job = *job;
    if (in->method == COGPU_RESAMPLE_NEAREST) {
        whole.step_x = step_x, whole.to_x = x;
        whole.step_y = step_y, whole.to_y = y;
        whole_job.rectangle = &whole;
        copy_nearest(&whole_job, &from, made);
        return COGPU_OK;
    }
    cogpu_downsample downsample =
        downsample_to(in, in->method, step_x, step_y, x + made->width, y + made->height);
    const cogpu_downsample_position position = {job->from_x - in->low_x, job->from_y - in->low_y, x,
                                                y};
    const uint64_t samples = (uint64_t)made->width * made->height;
    cogpu_raster valid =
        packed_raster((uint8_t *)made->data + samples * cogpu_type_bytes(from.type), COGPU_TYPE_U8,
                      1, made->width, made->height);
    describe_band(job, band, &downsample);
    return cogpu_cpu_downsample(worker, &downsample, &position, &from,
                                downsample.has_mask ? job->mask : NULL, made,
                                downsample.has_mask ? &valid : NULL, error);
}

static cogpu_status open_averaged(cogpu_worker *worker, const cogpu_rectangle_job *job,
                                  uint32_t band, struct averaged_pixels *pixels,
                                  cogpu_error *error) {
    const cogpu_type type = job->rectangle->from_type;
    cogpu_rectangle_range columns, rows;
    uint64_t samples, bytes;
    *pixels = (struct averaged_pixels){band_of(job->source, band), job->from_x, job->from_y, NULL};
    if (!cogpu_rectangle_is_averaged_twice(job->rectangle))
        return COGPU_OK;
    cogpu_rectangle_averages_need(job->rectangle, &columns, &rows);
    const uint32_t width = columns.end - columns.begin, height = rows.end - rows.begin;
    if (checked_mul(width, height, &samples) &&
        checked_mul(samples, cogpu_type_bytes(type) + 1, &bytes) && bytes <= SIZE_MAX)
        pixels->memory = cogpu_allocate((size_t)bytes);
    if (!pixels->memory)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for %u x %u pixels", width,
                          height);
    pixels->raster = packed_raster(pixels->memory, type, 1, width, height);
    pixels->x = columns.begin;
    pixels->y = rows.begin;
    return make_pixels(worker, job, band, &pixels->raster,
                       pixels->x - job->rectangle->across.origin,
                       pixels->y - job->rectangle->down.origin, error);
}

static float average_samples(const struct averaged_pixels *pixels, cogpu_rectangle_range columns,
                             cogpu_rectangle_range rows, uint32_t *count) {
    const cogpu_raster *from = &pixels->raster;
    float sum = 0;
    *count = 0;
    for (uint32_t y = rows.begin; y < rows.end; y++)
        for (uint32_t x = columns.begin; x < columns.end; x++) {
            const uint8_t *sample = (const uint8_t *)from->data +
                                    (int64_t)(y - pixels->y) * from->stride_y +
                                    (int64_t)(x - pixels->x) * from->stride_x;
            double value;
            cogpu_cpu_load_doubles(from->type, sample, 1, &value);
            if (value == value) {
                sum += (float)value;
                ++*count;
            }
        }
    return sum;
}

/* Into planes->pixels, as floats, and planes->mask: 0 where there is no sample. */
static void average_pixels(const cogpu_rectangle *rectangle, const struct averaged_pixels *pixels,
                           const struct rectangle_planes *planes) {
    float *made = planes->pixels.data;
    uint8_t *painted = planes->mask.data;
    for (uint32_t j = 0; j < rectangle->height; j++) {
        cogpu_rectangle_range rows =
            cogpu_rectangle_averaged(&rectangle->down, rectangle->to_y + j);
        for (uint32_t i = 0; i < rectangle->width; i++) {
            uint32_t count;
            cogpu_rectangle_range columns =
                cogpu_rectangle_averaged(&rectangle->across, rectangle->to_x + i);
            float sum = average_samples(pixels, columns, rows, &count);
            *made++ = count ? sum / (float)count : 0;
            *painted++ = count ? 255 : 0;
        }
    }
}

static cogpu_status average_band(cogpu_worker *worker, const cogpu_rectangle_job *job,
                                 uint32_t band, const struct rectangle_planes *planes,
                                 cogpu_error *error) {
    struct averaged_pixels pixels;
    cogpu_status status = open_averaged(worker, job, band, &pixels, error);
    if (status == COGPU_OK)
        average_pixels(job->rectangle, &pixels, planes);
    cogpu_release(pixels.memory);
    return status;
}

/* ---- the whole ---- */

/* GDAL compares results with nodata where the source's mask is that of nodata. */
static cogpu_rectangle_band complete_rule(const cogpu_rectangle_band *stated) {
    cogpu_rectangle_band band = *stated;
    if (band.rule.uses_mask && band.nodata.text) {
        band.rule.uses_mask = false;
        band.rule.has_nodata = band.nodata.matches;
        band.rule.nodata = band.nodata.value;
    }
    return band;
}

static void apply_rule(const cogpu_rectangle_job *job, uint32_t band,
                       const struct rectangle_planes *planes) {
    const cogpu_rectangle *rectangle = job->rectangle;
    const cogpu_rectangle_band rule = complete_rule(&rectangle->rules[band]);
    const size_t from_size = cogpu_type_bytes(planes->pixels.type);
    const size_t to_size = cogpu_type_bytes(rectangle->to_type), width = rectangle->width;
    const bool is_masked = rectangle->averages || (planes->has_mask && rule.rule.uses_mask);
    for (size_t j = 0; j < rectangle->height; j++) {
        const size_t at = ((size_t)band * rectangle->height + j) * width;
        const uint8_t *mask = (const uint8_t *)planes->mask.data + j * width;
        cogpu_rectangle_apply(&rule, planes->pixels.type,
                              (const uint8_t *)planes->pixels.data + j * width * from_size,
                              is_masked ? mask : NULL, rectangle->width, planes->values,
                              rectangle->to_type, job->pixels + at * to_size, job->painted + at);
    }
}

cogpu_status cogpu_cpu_rectangle(cogpu_worker *worker, const cogpu_rectangle_job *job,
                                 cogpu_error *error) {
    const cogpu_rectangle *rectangle = job->rectangle;
    struct rectangle_planes planes = {.has_mask = needs_mask(job)};
    cogpu_resampling method;
    TRY(check_complex(rectangle, error));
    TRY(choose_method(rectangle, &method, error));
    TRY(reserve_planes(worker, rectangle, &planes, error));
    if (planes.has_mask && !rectangle->averages)
        TRY(resample_mask(worker, job, method, &planes, error));
    for (uint32_t band = 0; band < rectangle->bands; band++) {
        if (rectangle->averages)
            TRY(average_band(worker, job, band, &planes, error));
        else if (!cogpu_sample_rule_is_constant(&rectangle->rules[band].rule))
            TRY(resample_band(worker, job, method, band, &planes, error));
        apply_rule(job, band, &planes);
    }
    return COGPU_OK;
}
