/*
 * Masks. A mask is read like pixels, with a conversion that compares samples: those of a mask
 * directory or an alpha band with 0, all others with nodata. With `masked`, a mask
 * directory or alpha band is read after the pixels, some rows at a time, and applied to the raster.
 */
#include "read/job.h"

#include <math.h>
#include <string.h>

/* ---- plan ---------------------------------------------------------------------------------- */

/* The mask's band for each band of the plan. */
static cogpu_status list_mask_bands(const struct cogpu_read_spec *spec, const cogpu_read_plan *plan,
                                    cogpu_arena *arena, const uint32_t **list, cogpu_error *error) {
    uint32_t *bands = NULL;
    TRY(cogpu_arena_allocate(arena, plan->band_count, sizeof *bands, &bands, error));
    for (uint32_t p = 0; p < plan->band_count; p++)
        bands[p] =
            cogpu_nodata_rule_of_pyramid(spec->pyramid, spec->level, cogpu_plan_band(plan, p) + 1)
                .band;
    *list = bands;
    return COGPU_OK;
}

/* The mask of a .msk file may be smaller than the image. */
static cogpu_status check_mask_size(const cogpu_storage *mask, const cogpu_read_plan *plan,
                                    cogpu_error *error) {
    if (plan->x + plan->width <= mask->width && plan->y + plan->height <= mask->height)
        return COGPU_OK;
    return cogpu_fail(error, COGPU_CORRUPT,
                      "the .msk file has %u x %u pixels, fewer than the image; remove it, or open "
                      "the file without sidecars",
                      mask->width, mask->height);
}

cogpu_status cogpu_plan_mask(const struct cogpu_read_spec *spec, cogpu_arena *arena,
                             struct cogpu_read_window *window, cogpu_error *error) {
    static const cogpu_nodata zero = {.value = 0};
    const cogpu_read_plan plan = window->plan;
    cogpu_band_rule rule =
        cogpu_nodata_rule_of_pyramid(spec->pyramid, spec->level, cogpu_plan_band(&plan, 0) + 1);
    bool is_by_nodata = rule.mask_source == COGPU_MASK_SOURCE_NODATA;
    const uint32_t *bands = plan.bands;
    if (!is_by_nodata)
        TRY(list_mask_bands(spec, &plan, arena, &bands, error));
    TRY(check_mask_size(rule.storage, &plan, error));
    cogpu_plan_read(rule.storage, plan.x, plan.y, plan.width, plan.height, bands, plan.band_count,
                    &window->plan);
    window->plan.fill = rule.storage == plan.storage ? plan.fill : window->plan.fill;
    window->conversion.is_mask = true;
    cogpu_conversion_nodata(is_by_nodata ? rule.nodata : &zero, rule.storage->type,
                            &window->conversion);
    if (rule.mask_source != COGPU_MASK_SOURCE_NONE)
        window->plan.conversion = &window->conversion;
    return COGPU_OK;
}

/* ---- a mask without a file ----------------------------------------------------------------- */

static uint8_t *raster_row(const cogpu_raster *raster, uint32_t band, uint32_t y) {
    return (uint8_t *)raster->data + (int64_t)band * raster->stride_band +
           (int64_t)y * raster->stride_y;
}

void cogpu_mask_fill_valid(const cogpu_raster *raster) {
    for (uint32_t band = 0; band < raster->bands; band++)
        for (uint32_t y = 0; y < raster->height; y++)
            for (uint32_t x = 0; x < raster->width; x++)
                raster_row(raster, band, y)[(int64_t)x * raster->stride_x] = 255;
}

/* ---- NaN where a mask is 0 ----------------------------------------------------------------- */

#define APPLY_TO_ROW(type)                                                                         \
    case sizeof(type):                                                                             \
        for (uint32_t x = 0; x < width; x++)                                                       \
            if (!valid[x])                                                                         \
                memcpy(row + (int64_t)x * stride, nan, sizeof(type));                              \
        break

static void apply_mask_row(const uint8_t *valid, uint32_t width, const uint8_t *nan, size_t size,
                           uint8_t *row, int64_t stride) {
    switch (size) {
        APPLY_TO_ROW(uint16_t);
        APPLY_TO_ROW(uint32_t);
        APPLY_TO_ROW(uint64_t);
    }
}

/* `mask` is packed and covers the raster's rows from first_row on, with one band or with all. */
static void apply_mask_on_host(const cogpu_raster *mask, uint32_t first_row,
                               const cogpu_raster *raster) {
    uint8_t nan[16];
    cogpu_nodata_sample(&(cogpu_nodata){.value = NAN}, raster->type, nan);
    for (uint32_t band = 0; band < raster->bands; band++)
        for (uint32_t row = 0; row < mask->height; row++)
            apply_mask_row(raster_row(mask, mask->bands > 1 ? band : 0, row), raster->width, nan,
                           cogpu_type_bytes(raster->type),
                           raster_row(raster, band, first_row + row), raster->stride_x);
}

/* The mask's progress is the last of the window's. */
static cogpu_status apply_mask_chunks(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                      uint8_t *memory, uint32_t chunk_rows, cogpu_error *error) {
    const cogpu_read_plan *plan = &window->plan;
    const cogpu_raster *raster = &window->raster;
    cogpu_meter *meter = &window->meter;
    uint64_t first = meter->total - window->mask->plan.count;
    for (uint32_t y = 0, rows; y < raster->height; y += rows) {
        rows = raster->height - y < chunk_rows ? raster->height - y : chunk_rows;
        struct cogpu_read_window chunk =
            cogpu_window_part(window->mask, plan->x, plan->y + y, plan->width, rows);
        cogpu_share share =
            cogpu_share_of_rows(meter, first, meter->total, y, rows, raster->height);
        chunk.raster.data = memory;
        TRY(cogpu_read_part(job, &chunk, share, window->result, error));
        if (window->device)
            TRY(cogpu_gpu_device_apply_mask(window->device, &chunk.raster, y, raster, error));
        else
            apply_mask_on_host(&chunk.raster, y, raster);
    }
    return COGPU_OK;
}

cogpu_status cogpu_apply_mask(struct cogpu_read_job *job, struct cogpu_read_window *window,
                              cogpu_error *error) {
    const cogpu_raster *raster = &window->raster;
    uint64_t row_bytes = (uint64_t)raster->width * (window->is_mask_shared ? 1 : raster->bands);
    uint32_t rows = cogpu_tall_chunk_rows(window->mask->plan.storage, row_bytes, raster->height);
    uint8_t *memory = NULL;
    if (window->device)
        TRY(cogpu_gpu_device_allocate(window->device, rows * row_bytes, (void **)&memory, error));
    else if (!(memory = cogpu_allocate((size_t)(rows * row_bytes))))
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for %u rows of the mask",
                          rows);
    cogpu_status status = apply_mask_chunks(job, window, memory, rows, error);
    if (window->device)
        cogpu_gpu_device_release(window->device, memory);
    else
        cogpu_release(memory);
    return status;
}
