/*
 * CMYK and YCbCr whose bands lie apart in the file, as RGBA and RGB: a pixel needs all bands at
 * once, which no block has. So they are read side by side some rows at a time, converted, and the
 * wanted bands copied on.
 */
#include "api/job.h"

#include "codec/cmyk.h"

#include <string.h>

/* A swath on its way. */
struct swath {
    uint32_t rows, bands;
    uint8_t *pixels;           /* of all rows, chunky */
    uint8_t *band, *converted; /* a row of one band, as it is and converted */
};

/* One row of band p, of the raster's type, side by side. */
static const uint8_t *row_of_band(const struct swath *swath, const cogpu_read_plan *plan,
                                  uint32_t p, uint32_t row, cogpu_type type) {
    const uint8_t *sample =
        swath->pixels + (size_t)row * plan->width * swath->bands + cogpu_plan_band(plan, p);
    for (uint32_t x = 0; x < plan->width; x++)
        swath->band[x] = sample[(size_t)x * swath->bands];
    if (!plan->conversion)
        return swath->band;
    cogpu_cpu_convert(plan, p, swath->band, plan->width, type, swath->converted);
    return swath->converted;
}

/* Pixels of a swath to rows first_row .. of the raster, which has the plan's bands. */
static void copy_bands(const struct swath *swath, const cogpu_read_plan *plan, uint32_t first_row,
                       uint32_t rows, const cogpu_raster *raster) {
    size_t size = cogpu_type_bytes(raster->type);
    for (uint32_t p = 0; p < raster->bands; p++)
        for (uint32_t row = 0; row < rows; row++) {
            const uint8_t *from = row_of_band(swath, plan, p, row, raster->type);
            uint8_t *to = (uint8_t *)raster->data + (int64_t)p * raster->stride_band +
                          (int64_t)(first_row + row) * raster->stride_y;
            for (uint32_t x = 0; x < raster->width; x++, from += size)
                memcpy(to + (int64_t)x * raster->stride_x, from, size);
        }
}

bool cogpu_has_planar_colours(const cogpu_storage *storage) {
    return storage->colour != COGPU_AS_STORED && storage->planes > 1;
}

static cogpu_status convert_colours(const cogpu_storage *storage, uint8_t *pixels, uint32_t width,
                                    uint32_t rows, cogpu_error *error) {
    size_t count = (size_t)width * rows;
    if (storage->colour == COGPU_FROM_CMYK) {
        cogpu_cmyk_to_rgba(pixels, count, storage->bands);
        return COGPU_OK;
    }
    cogpu_block_format chunky = storage->format;
    chunky.samples = storage->bands;
    chunky.width = width;
    chunky.height = rows;
    return cogpu_ycbcr_unpack(&chunky, &storage->ycbcr, pixels, count * storage->bands, pixels,
                              error);
}

static cogpu_status read_swaths(const cogpu_file *file, const cogpu_request *request,
                                const struct swath *swath, const cogpu_read_plan *plan,
                                const cogpu_raster *raster, cogpu_error *error) {
    cogpu_meter *meter = plan->meter;
    for (uint32_t y = 0, rows; y < raster->height; y += rows) {
        cogpu_request part = *request;
        rows = raster->height - y < swath->rows ? raster->height - y : swath->rows;
        part.part = COGPU_STORED;
        part.bands = NULL;
        part.nan_where_invalid = part.scaled = 0;
        part.y += y;
        part.height = rows;
        cogpu_share share = cogpu_share_of_rows(meter, 0, meter->total, y, rows, raster->height);
        cogpu_request_share(&part, &share);
        cogpu_raster target = {.data = swath->pixels,
                               .type = COGPU_U8,
                               .bands = swath->bands,
                               .width = raster->width,
                               .height = rows,
                               .stride_band = 1,
                               .stride_x = swath->bands,
                               .stride_y = (int64_t)swath->bands * raster->width};
        TRY(cogpu_read(file, &part, &target, NULL, error));
        TRY(convert_colours(plan->storage, swath->pixels, raster->width, rows, error));
        copy_bands(swath, plan, y, rows, raster);
    }
    return COGPU_OK;
}

cogpu_status cogpu_read_planar_colours(const cogpu_file *file, const cogpu_request *request,
                                       const cogpu_read_plan *plan, const cogpu_raster *raster,
                                       cogpu_error *error) {
    uint64_t width = raster->width, row_bytes = width * plan->storage->bands;
    struct swath swath = {.rows = cogpu_swath_rows(plan->storage, row_bytes, raster->height),
                          .bands = plan->storage->bands};
    uint64_t pixel_bytes = swath.rows * row_bytes;
    swath.pixels =
        cogpu_allocate((size_t)(pixel_bytes + width + width * cogpu_type_bytes(raster->type)));
    if (!swath.pixels)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory to convert planar colours");
    swath.band = swath.pixels + pixel_bytes;
    swath.converted = swath.band + width;
    cogpu_status status = read_swaths(file, request, &swath, plan, raster, error);
    cogpu_release(swath.pixels);
    return status;
}
