/*
 * Masks. A mask is a read like any other, of samples that are compared on their way into the
 * raster: those of a mask directory and of an alpha band with 0, all others with nodata. And masks
 * that make NaN of what they call invalid: they are read a swath at a time, after the pixels.
 */
#include "api/job.h"

#include <math.h>
#include <string.h>

/* The storage's band for each of the plan's. */
static cogpu_status list_bands(const cogpu_picture *picture, const cogpu_picture_level *level,
                               const cogpu_read_plan *plan, cogpu_arena *arena,
                               const uint32_t **list, cogpu_error *error) {
    uint32_t *bands = NULL;
    TRY(cogpu_arena_take(arena, plan->band_count, sizeof *bands, &bands, error));
    for (uint32_t p = 0; p < plan->band_count; p++)
        bands[p] = cogpu_picture_rule(picture, level, cogpu_plan_band(plan, p) + 1).band;
    *list = bands;
    return COGPU_OK;
}

bool cogpu_mask_is_shared(const cogpu_picture *picture, const cogpu_picture_level *level,
                          const cogpu_read_plan *plan) {
    uint32_t first = cogpu_picture_rule(picture, level, cogpu_plan_band(plan, 0) + 1).band;
    for (uint32_t p = 1; p < plan->band_count; p++)
        if (cogpu_picture_rule(picture, level, cogpu_plan_band(plan, p) + 1).band != first)
            return false;
    return true;
}

/* A mask beside the file may be smaller than the image. */
static cogpu_status check_size(const cogpu_storage *mask, const cogpu_read_plan *plan,
                               cogpu_error *error) {
    if (plan->x + plan->width <= mask->width && plan->y + plan->height <= mask->height)
        return COGPU_OK;
    return cogpu_fail(error, COGPU_CORRUPT,
                      "the .msk file has %u x %u pixels, fewer than the image; remove it, or open "
                      "the file without sidecars",
                      mask->width, mask->height);
}

cogpu_status cogpu_mask_plan(const cogpu_picture *picture, const cogpu_picture_level *level,
                             cogpu_arena *arena, struct cogpu_reading *reading,
                             cogpu_error *error) {
    static const cogpu_nodata zero = {.value = 0};
    const cogpu_read_plan plan = reading->plan;
    cogpu_band_rule rule = cogpu_picture_rule(picture, level, cogpu_plan_band(&plan, 0) + 1);
    bool by_nodata = rule.validity == COGPU_BY_NODATA;
    const uint32_t *bands = plan.bands;
    if (!by_nodata)
        TRY(list_bands(picture, level, &plan, arena, &bands, error));
    TRY(check_size(rule.storage, &plan, error));
    cogpu_plan_read(rule.storage, plan.x, plan.y, plan.width, plan.height, bands, plan.band_count,
                    &reading->plan);
    reading->plan.fill = rule.storage == plan.storage ? plan.fill : reading->plan.fill;
    reading->conversion.is_mask = true;
    cogpu_conversion_nodata(by_nodata ? rule.nodata : &zero, rule.storage->type,
                            &reading->conversion);
    if (rule.validity != COGPU_ALL_VALID)
        reading->plan.conversion = &reading->conversion;
    return COGPU_OK;
}

static uint8_t *row_of(const cogpu_raster *raster, uint32_t band, uint32_t y) {
    return (uint8_t *)raster->data + (int64_t)band * raster->stride_band +
           (int64_t)y * raster->stride_y;
}

void cogpu_mask_all_valid(const cogpu_raster *raster) {
    for (uint32_t band = 0; band < raster->bands; band++)
        for (uint32_t y = 0; y < raster->height; y++)
            for (uint32_t x = 0; x < raster->width; x++)
                row_of(raster, band, y)[(int64_t)x * raster->stride_x] = 255;
}

/* ---- NaN where a mask says so ---- */

/* Rows of a mask, in memory of the raster's device. */
struct veil {
    uint8_t *memory;
    bool is_shared; /* one band for all of the raster; else it has as many */
    uint32_t rows;
};

#define VOID_CASE(type)                                                                            \
    case sizeof(type):                                                                             \
        for (uint32_t x = 0; x < width; x++)                                                       \
            if (!valid[x])                                                                         \
                memcpy(row + (int64_t)x * stride, nan, sizeof(type));                              \
        break

static void void_row(const uint8_t *valid, uint32_t width, const uint8_t *nan, size_t size,
                     uint8_t *row, int64_t stride) {
    switch (size) {
        VOID_CASE(uint16_t);
        VOID_CASE(uint32_t);
        VOID_CASE(uint64_t);
    }
}

static void void_on_host(const struct veil *veil, uint32_t y, uint32_t rows,
                         const cogpu_raster *raster) {
    const uint8_t *valid = veil->memory;
    uint8_t nan[16];
    cogpu_nodata_sample(&(cogpu_nodata){.value = NAN}, raster->type, nan);
    for (uint32_t band = 0; band < raster->bands; band++) {
        if (veil->is_shared)
            valid = veil->memory;
        for (uint32_t row = y; row < y + rows; row++, valid += raster->width)
            void_row(valid, raster->width, nan, cogpu_type_bytes(raster->type),
                     row_of(raster, band, row), raster->stride_x);
    }
}

uint64_t cogpu_mask_void_blocks(const struct cogpu_reading *reading) {
    const cogpu_read_plan *plan = &reading->plan;
    cogpu_read_plan mask = {0};
    if (reading->voids)
        cogpu_plan_read(reading->voids, plan->x, plan->y, plan->width, plan->height, NULL, 0,
                        &mask);
    return mask.count;
}

static cogpu_status void_swaths(struct cogpu_reading *reading, cogpu_gpu_reader *reader,
                                const struct veil *veil, cogpu_error *error) {
    const cogpu_raster *raster = &reading->raster;
    const uint32_t any_band = cogpu_plan_band(&reading->plan, 0) + 1;
    cogpu_meter *meter = &reading->meter;
    uint64_t first = meter->total - cogpu_mask_void_blocks(reading);
    for (uint32_t y = 0, rows; y < raster->height; y += rows) {
        cogpu_request request = reading->item->request;
        cogpu_result result = {0};
        rows = raster->height - y < veil->rows ? raster->height - y : veil->rows;
        request.part = COGPU_MASK;
        request.nan_where_invalid = request.scaled = 0;
        request.y = reading->plan.y + y;
        request.height = rows;
        cogpu_share share =
            cogpu_share_of_rows(meter, first, meter->total, y, rows, raster->height);
        cogpu_request_share(&request, &share);
        if (veil->is_shared) {
            request.bands = &any_band;
            request.band_count = 1;
        }
        cogpu_raster mask = {.data = veil->memory,
                             .type = COGPU_U8,
                             .bands = veil->is_shared ? 1 : raster->bands,
                             .height = rows,
                             .width = raster->width,
                             .device = raster->device,
                             .device_index = raster->device_index};
        TRY(cogpu_read(reading->item->file, &request, &mask, &result, error));
        cogpu_result_add(&result, &reading->item->result);
        if (reader)
            TRY(cogpu_gpu_reader_void(reader, &mask, y, raster, error));
        else
            void_on_host(veil, y, rows, raster);
    }
    return COGPU_OK;
}

cogpu_status cogpu_mask_void(struct cogpu_reading *reading, cogpu_gpu_reader *reader,
                             cogpu_error *error) {
    const cogpu_raster *raster = &reading->raster;
    const cogpu_storage *mask = reading->voids;
    struct veil veil = {.is_shared = reading->is_void_shared};
    uint64_t row_bytes = (uint64_t)raster->width * (veil.is_shared ? 1 : raster->bands);
    veil.rows = cogpu_tall_swath_rows(mask, row_bytes, raster->height);
    if (reader)
        TRY(cogpu_gpu_reader_allocate(reader, veil.rows * row_bytes, (void **)&veil.memory, error));
    else
        veil.memory = cogpu_allocate((size_t)(veil.rows * row_bytes));
    if (!veil.memory)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a swath of the mask");
    cogpu_status status = void_swaths(reading, reader, &veil, error);
    if (reader)
        cogpu_gpu_reader_release(reader, veil.memory);
    else
        cogpu_release(veil.memory);
    return status;
}
