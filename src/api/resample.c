/*
 * Rows resampled to a smaller size, for callers that decimate what they read. The kernel is that of
 * overviews (backend/cpu/cpu_shrink.c); here the caller's description is checked.
 */
#include "api/writer.h"

static bool is_method(cogpu_resampling method) {
    return method >= COGPU_RESAMPLE_DEFAULT && method <= COGPU_MEDIAN;
}

static cogpu_status plan_resampling(const cogpu_resample *how, cogpu_shrink *shrink,
                                    cogpu_error *error) {
    if (!how || !is_method(how->method) || !cogpu_type_bytes(how->type) || !how->bands ||
        how->alpha_band > how->bands)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "resampling needs a method, a sample type and a number of bands");
    if (!how->width || !how->height || how->width > how->from_width ||
        how->height > how->from_height)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cannot resample %u x %u pixels to %u x %u: each side must be at least 1 "
                          "and no larger than before",
                          how->from_width, how->from_height, how->width, how->height);
    cogpu_resampling natural = how->type >= COGPU_CI16 ? COGPU_NEAREST : COGPU_AVERAGE;
    *shrink = (cogpu_shrink){.method = how->method ? how->method : natural,
                             .type = how->type,
                             .bands = how->bands,
                             .from_width = how->from_width,
                             .from_height = how->from_height,
                             .to_width = how->width,
                             .to_height = how->height,
                             .alpha_band = how->alpha_band,
                             .has_mask = how->mask};
    cogpu_nodata_parse(how->nodata, how->type, &shrink->nodata);
    return cogpu_shrink_check(shrink, error);
}

static cogpu_status check_rows(const cogpu_resample *how, uint32_t row, uint32_t count,
                               cogpu_error *error) {
    if (count > 0 && row < how->height && count <= how->height - row)
        return COGPU_OK;
    return cogpu_fail(error, COGPU_ARGUMENT, "rows %u to %u are not inside a result of %u rows",
                      row, row + count, how->height);
}

cogpu_status cogpu_resample_needs(const cogpu_resample *how, uint32_t row, uint32_t count,
                                  uint32_t *begin, uint32_t *end, cogpu_error *error) {
    cogpu_shrink shrink;
    TRY(plan_resampling(how, &shrink, error));
    TRY(check_rows(how, row, count, error));
    cogpu_shrink_needs(&shrink, row, count, begin, end);
    return COGPU_OK;
}

static cogpu_status check_raster(const cogpu_resample *how, uint32_t width, uint32_t height,
                                 cogpu_raster *pixels, cogpu_raster *mask, cogpu_error *error) {
    TRY(cogpu_check_pixels(pixels, how->type, how->bands, width, height, error));
    return how->mask ? cogpu_check_pixels(mask, COGPU_U8, 1, width, height, error) : COGPU_OK;
}

cogpu_status cogpu_resample_rows(const cogpu_resample *how, uint32_t from_row,
                                 const cogpu_raster *from, const cogpu_raster *from_mask,
                                 uint32_t row, cogpu_raster *to, cogpu_raster *to_mask,
                                 cogpu_error *error) {
    cogpu_shrink shrink;
    uint32_t begin, end;
    TRY(plan_resampling(how, &shrink, error));
    if (!from || !to || (how->mask && (!from_mask || !to_mask)))
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "resampling needs rasters, and masks where `mask` is set");
    TRY(check_rows(how, row, to->height, error));
    cogpu_shrink_needs(&shrink, row, to->height, &begin, &end);
    cogpu_raster rows = *from, made = *to, guard = {0}, made_guard = {0};
    if (how->mask) {
        guard = *from_mask;
        made_guard = *to_mask;
    }
    TRY(check_raster(how, how->from_width, rows.height, &rows, &guard, error));
    TRY(check_raster(how, how->width, made.height, &made, &made_guard, error));
    if (begin < from_row || end - from_row > rows.height)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "rows %u to %u of the source are needed, and the raster has %u to %u",
                          begin, end, from_row, from_row + rows.height);
    cogpu_seat *seat = cogpu_context_seat(NULL);
    if (!seat)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory to resample rows");
    const cogpu_shrink_place place = {.from_y = from_row, .y = row};
    cogpu_status status = cogpu_cpu_shrink(seat, &shrink, &place, &rows, how->mask ? &guard : NULL,
                                           &made, how->mask ? &made_guard : NULL, error);
    cogpu_context_give_back(NULL, seat);
    return status;
}
