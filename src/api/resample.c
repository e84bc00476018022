/*
 * Public resampling of rows to a smaller size, for callers that decimate what they read. The
 * caller's description is checked here; cpu/downsample.c, which also makes overviews, does the
 * work.
 */
#include "api/sized.h"
#include "base/resampling.h"
#include "write/writer.h"

static cogpu_status plan_resampling(const cogpu_resample *how, cogpu_downsample *downsample,
                                    cogpu_error *error) {
    if (!cogpu_resampling_is_of_overviews(how->method) || !cogpu_type_bytes(how->type) ||
        !how->bands || how->alpha_band > how->bands)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "resampling needs a method, a sample type and a number of bands");
    if (!how->width || !how->height || how->width > how->from_width ||
        how->height > how->from_height)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cannot resample %u x %u pixels to %u x %u: each side must be at least 1 "
                          "and no larger than before",
                          how->from_width, how->from_height, how->width, how->height);
    cogpu_resampling default_method = cogpu_resampling_default(how->type, false);
    *downsample = (cogpu_downsample){.method = how->method ? how->method : default_method,
                                     .type = how->type,
                                     .bands = how->bands,
                                     .from_width = how->from_width,
                                     .from_height = how->from_height,
                                     .to_width = how->width,
                                     .to_height = how->height,
                                     .alpha_band = how->alpha_band,
                                     .has_mask = how->mask};
    cogpu_nodata_parse(how->nodata, how->type, &downsample->nodata);
    return cogpu_downsample_check(downsample, error);
}

static cogpu_status check_resample_rows(const cogpu_resample *how, uint32_t row, uint32_t count,
                                        cogpu_error *error) {
    if (count > 0 && row < how->height && count <= how->height - row)
        return COGPU_OK;
    return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                      "rows %u to %u exceed the %u rows of the result", row, row + count,
                      how->height);
}

static cogpu_status take_resample(const cogpu_resample *given, cogpu_resample *how,
                                  cogpu_error *error) {
    cogpu_error_clear(error);
    if (!given)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "resampling needs a cogpu_resample");
    return TAKE_STRUCT(how, given, cogpu_resample, error);
}

cogpu_status cogpu_resample_source_rows(const cogpu_resample *given, uint32_t row, uint32_t count,
                                        uint32_t *begin, uint32_t *end, cogpu_error *error) {
    cogpu_downsample downsample;
    cogpu_resample how;
    TRY(take_resample(given, &how, error));
    TRY(plan_resampling(&how, &downsample, error));
    TRY(check_resample_rows(&how, row, count, error));
    cogpu_downsample_source_rows(&downsample, row, count, begin, end);
    return COGPU_OK;
}

static cogpu_status check_resample_raster(const cogpu_resample *how, uint32_t width,
                                          uint32_t height, cogpu_raster *pixels, cogpu_raster *mask,
                                          cogpu_error *error) {
    TRY(cogpu_check_pixels(pixels, how->type, how->bands, width, height, error));
    return how->mask ? cogpu_check_pixels(mask, COGPU_TYPE_U8, 1, width, height, error) : COGPU_OK;
}

/* Pixels of source or result, with their mask. */
struct resample_rows {
    cogpu_raster pixels, mask;
};

static cogpu_status take_rows(const cogpu_resample *how, const cogpu_raster *pixels,
                              const cogpu_raster *mask, struct resample_rows *rows,
                              cogpu_error *error) {
    if (!pixels || (how->mask && !mask))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "resampling needs rasters, and masks if `mask` is set");
    TRY(TAKE_STRUCT(&rows->pixels, pixels, cogpu_raster, error));
    return TAKE_STRUCT(&rows->mask, how->mask ? mask : NULL, cogpu_raster, error);
}

static cogpu_status resample_rows(const cogpu_resample *how, uint32_t from_row,
                                  struct resample_rows *from, uint32_t row,
                                  struct resample_rows *to, cogpu_error *error) {
    cogpu_downsample downsample;
    uint32_t begin, end;
    TRY(plan_resampling(how, &downsample, error));
    TRY(check_resample_rows(how, row, to->pixels.height, error));
    cogpu_downsample_source_rows(&downsample, row, to->pixels.height, &begin, &end);
    TRY(check_resample_raster(how, how->from_width, from->pixels.height, &from->pixels, &from->mask,
                              error));
    TRY(check_resample_raster(how, how->width, to->pixels.height, &to->pixels, &to->mask, error));
    if (begin < from_row || end - from_row > from->pixels.height)
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "rows %u to %u of the source are needed, but the raster has rows %u to %u", begin, end,
            from_row, from_row + from->pixels.height);
    cogpu_worker *worker = cogpu_context_take_worker(NULL);
    if (!worker)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory to resample rows");
    const cogpu_downsample_position position = {.from_y = from_row, .y = row};
    cogpu_status status = cogpu_cpu_downsample(worker, &downsample, &position, &from->pixels,
                                               how->mask ? &from->mask : NULL, &to->pixels,
                                               how->mask ? &to->mask : NULL, error);
    cogpu_context_return_worker(NULL, worker);
    return status;
}

cogpu_status cogpu_resample_rows(const cogpu_resample *given, uint32_t from_row,
                                 const cogpu_raster *from, const cogpu_raster *from_mask,
                                 uint32_t row, const cogpu_raster *to, const cogpu_raster *to_mask,
                                 cogpu_error *error) {
    cogpu_resample how;
    struct resample_rows source, result;
    TRY(take_resample(given, &how, error));
    TRY(take_rows(&how, from, from_mask, &source, error));
    TRY(take_rows(&how, to, to_mask, &result, error));
    return resample_rows(&how, from_row, &source, row, &result, error);
}
