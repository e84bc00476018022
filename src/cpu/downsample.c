/*
 * Downsamples a window of a level, at any strides, to a window of the next level.
 *
 * A tile passes down all rows of one band before the next band begins. The mask is one more band,
 * whose invalid samples are 0: so it becomes 0 where no valid sample is in the support, by the
 * method's own rule. With mode the majority decides on it too, as in GDAL.
 */
#include "cpu/downsample_tile.h"

#include "base/type.h"

#include <assert.h>
#include <string.h>

enum { FACTOR_MAX = 1024 };

static bool has_nodata(const cogpu_downsample *downsample) {
    return downsample->nodata.text && downsample->nodata.matches;
}

/* ---- arguments ---- */

static bool can_be_resampled(const cogpu_downsample *downsample) {
    if (!cogpu_type_is_complex(downsample->type) || downsample->method == COGPU_RESAMPLE_NEAREST)
        return true;
    bool has_float_parts = cogpu_type_format(downsample->type) == SAMPLE_FORMAT_COMPLEX_FLOAT;
    return has_float_parts && downsample->method == COGPU_RESAMPLE_AVERAGE &&
           !has_nodata(downsample) && !downsample->alpha_band;
}

cogpu_status cogpu_downsample_check(const cogpu_downsample *downsample, cogpu_error *error) {
    const cogpu_resampling_axis across = cogpu_downsample_axis_x(downsample);
    const cogpu_resampling_axis down = cogpu_downsample_axis_y(downsample);
    assert(downsample->to_width && downsample->to_height);
    assert(downsample->ratio_x > 0 || (across.ratio >= 1 && down.ratio >= 1));
    if (!can_be_resampled(downsample))
        return cogpu_fail(
            error, COGPU_UNSUPPORTED, "overviews of %s samples by %s%s: choose nearest",
            cogpu_type_name(downsample->type), cogpu_resampling_name(downsample->method),
            has_nodata(downsample) ? " with nodata" : "");
    if (across.ratio > FACTOR_MAX || down.ratio > FACTOR_MAX)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "an overview of %u x %u is made of %u x %u pixels: at most by a factor "
                          "of %d at once, ask for one between",
                          downsample->to_width, downsample->to_height, downsample->from_width,
                          downsample->from_height, FACTOR_MAX);
    return COGPU_OK;
}

void cogpu_downsample_source_rows(const cogpu_downsample *downsample, uint32_t first,
                                  uint32_t count, uint32_t *begin, uint32_t *end) {
    *begin = row_support(downsample, first).begin;
    *end = count ? row_support(downsample, first + count - 1).end : *begin;
}

void cogpu_downsample_source_columns(const cogpu_downsample *downsample, uint32_t first,
                                     uint32_t count, uint32_t *begin, uint32_t *end) {
    *begin = column_support(downsample, first).begin;
    *end = count ? column_support(downsample, first + count - 1).end : *begin;
}

/* ---- planes and passes ---- */

/* A raster with its mask, and its position in the level. */
struct downsample_window {
    const cogpu_raster *pixels, *mask;
    uint32_t left, first;
};

static struct downsample_plane band_plane(const struct downsample_window *window,
                                          const cogpu_raster *raster, uint32_t band) {
    return (struct downsample_plane){.type = raster->type,
                                     .data = (uint8_t *)raster->data + band * raster->stride_band,
                                     .first = window->first,
                                     .left = window->left,
                                     .stride_x = raster->stride_x,
                                     .stride_y = raster->stride_y};
}

static struct downsample_plane part_plane(const cogpu_downsample *downsample,
                                          const struct downsample_window *window, uint32_t p) {
    uint32_t parts = cogpu_downsample_parts(downsample);
    struct downsample_plane plane = band_plane(window, window->pixels, p / parts);
    plane.type = cogpu_downsample_part_type(downsample);
    plane.data += p % parts * cogpu_type_bytes(plane.type);
    return plane;
}

static struct downsample_plane mask_plane(const struct downsample_window *window, bool is_alpha) {
    struct downsample_plane plane = band_plane(window, window->mask, 0);
    plane.is_mask = !is_alpha;
    return plane;
}

/* Arguments of one call. */
struct downsample_call {
    const cogpu_downsample *downsample;
    struct downsample_window from, to;
    struct downsample_plane guard, to_guard; /* without data: none */
};

/* A mask goes before alpha, as in GDAL. */
static void find_guards(struct downsample_call *call) {
    const cogpu_downsample *downsample = call->downsample;
    if (!cogpu_downsample_has_guard(downsample))
        return;
    if (downsample->has_mask) {
        call->guard = mask_plane(&call->from, downsample->mask_is_alpha);
        call->to_guard = mask_plane(&call->to, false);
    } else {
        call->guard = band_plane(&call->from, call->from.pixels, downsample->alpha_band - 1);
        call->to_guard = band_plane(&call->to, call->to.pixels, downsample->alpha_band - 1);
    }
}

static struct band_pass pass_of_band(const struct downsample_call *call, uint32_t p) {
    const cogpu_downsample *downsample = call->downsample;
    struct band_pass pass = {.from = part_plane(downsample, &call->from, p),
                             .to = part_plane(downsample, &call->to, p),
                             .guard = call->guard};
    if (downsample->method == COGPU_RESAMPLE_NEAREST)
        return pass;
    pass.nodata = cogpu_downsample_nodata(downsample, pass.from.type);
    bool is_empty_zero = p + 1 == downsample->alpha_band ||
                         (call->guard.data && downsample->method == COGPU_RESAMPLE_MODE);
    if (is_empty_zero && !pass.nodata.has_nodata)
        pass.nodata.empty = 0;
    return pass;
}

static struct band_pass pass_of_mask(const struct downsample_call *call) {
    struct band_pass pass = {.from = mask_plane(&call->from, false),
                             .to = band_plane(&call->to, call->to.mask, 0),
                             .guard = call->guard};
    if (call->downsample->method == COGPU_RESAMPLE_MODE)
        pass.guard.data = NULL;
    return pass;
}

/* ---- tiles ---- */

static void downsample_band(struct downsample_tile *tile, const struct downsample_call *call,
                            const struct band_pass *pass) {
    cogpu_downsample_forget_lines(tile);
    for (uint32_t i = 0; i < call->to.pixels->height; i++) {
        cogpu_downsample_row(tile, pass, call->to.first + i);
        cogpu_downsample_store_row(tile, &pass->to, call->to.first + i);
    }
}

/* Floats without nodata are NaN where nothing is valid. Where the result's mask or alpha is 0 they
 * become 0, like all other types. */
static void zero_masked_pixels(const struct downsample_tile *tile,
                               const struct downsample_call *call,
                               const struct downsample_plane *to) {
    const uint8_t zero[DOWNSAMPLE_SAMPLE_MAX_BYTES] = {0};
    const struct downsample_plane *guard = &call->to_guard;
    size_t size = cogpu_type_bytes(to->type), guard_size = cogpu_type_bytes(guard->type);
    for (uint32_t y = to->first; y < to->first + call->to.pixels->height; y++)
        for (uint32_t x = tile->x; x < tile->x + tile->columns.count; x++)
            if (memcmp(plane_sample(guard, x, y), zero, guard_size) == 0)
                memcpy(plane_sample(to, x, y), zero, size);
}

static void downsample_tile(struct downsample_tile *tile, const struct downsample_call *call) {
    const cogpu_downsample *downsample = call->downsample;
    uint32_t planes = downsample->bands * cogpu_downsample_parts(downsample);
    for (uint32_t p = 0; p < planes; p++) {
        struct band_pass pass = pass_of_band(call, p);
        downsample_band(tile, call, &pass);
    }
    if (downsample->has_mask) {
        struct band_pass pass = pass_of_mask(call);
        downsample_band(tile, call, &pass);
    }
    for (uint32_t p = 0;
         p < planes && call->guard.data && downsample->method != COGPU_RESAMPLE_MODE; p++) {
        struct band_pass pass = pass_of_band(call, p);
        if (sample_is_float(pass.to.type) && !pass.nodata.has_nodata)
            zero_masked_pixels(tile, call, &pass.to);
    }
}

cogpu_status cogpu_cpu_downsample(cogpu_worker *worker, const cogpu_downsample *downsample,
                                  const cogpu_downsample_position *position,
                                  const cogpu_raster *from, const cogpu_raster *from_mask,
                                  const cogpu_raster *to, const cogpu_raster *to_mask,
                                  cogpu_error *error) {
    struct downsample_call call = {.downsample = downsample,
                                   .from = {from, from_mask, position->from_x, position->from_y},
                                   .to = {to, to_mask, position->x, position->y}};
    struct downsample_tile tile = {.end = position->x + to->width};
    TRY(cogpu_downsample_check(downsample, error));
    TRY(cogpu_downsample_reserve_tile(worker, downsample, to->width, &tile, error));
    find_guards(&call);
    for (uint32_t x = position->x; x < tile.end; x += tile.columns.count) {
        cogpu_downsample_move_tile(&tile, x);
        downsample_tile(&tile, &call);
    }
    return COGPU_OK;
}
