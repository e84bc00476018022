/*
 * Planar CMYK and YCbCr as RGBA and RGB. A pixel needs all components, and no block has them
 * together. So rows of all components are read side by side, converted, and the requested
 * bands are copied into the raster.
 */
#include "read/job.h"

#include "codec/cmyk.h"

#include <string.h>

/* Memory for some rows. */
struct colour_rows {
    uint32_t rows, bands;
    uint8_t *pixels;           /* all components, chunky */
    uint8_t *band, *converted; /* a row of one band, before and after the plan's conversion */
};

bool cogpu_has_planar_colours(const cogpu_storage *storage) {
    return storage->colour != COGPU_AS_STORED && storage->planes > 1;
}

/* One row of band p of the raster, packed, in the raster's type. */
static const uint8_t *extract_band_row(const struct colour_rows *chunk, const cogpu_read_plan *plan,
                                       uint32_t p, uint32_t row, cogpu_type type) {
    const uint8_t *sample =
        chunk->pixels + (size_t)row * plan->width * chunk->bands + cogpu_plan_band(plan, p);
    for (uint32_t x = 0; x < plan->width; x++)
        chunk->band[x] = sample[(size_t)x * chunk->bands];
    if (!plan->conversion)
        return chunk->band;
    cogpu_cpu_convert(plan, p, chunk->band, plan->width, type, chunk->converted);
    return chunk->converted;
}

static void copy_bands(const struct colour_rows *chunk, const cogpu_read_plan *plan,
                       uint32_t first_row, uint32_t rows, const cogpu_raster *raster) {
    size_t size = cogpu_type_bytes(raster->type);
    for (uint32_t p = 0; p < raster->bands; p++)
        for (uint32_t row = 0; row < rows; row++) {
            const uint8_t *from = extract_band_row(chunk, plan, p, row, raster->type);
            uint8_t *to = (uint8_t *)raster->data + (int64_t)p * raster->stride_band +
                          (int64_t)(first_row + row) * raster->stride_y;
            for (uint32_t x = 0; x < raster->width; x++, from += size)
                memcpy(to + (int64_t)x * raster->stride_x, from, size);
        }
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

static cogpu_status read_components(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                    const struct colour_rows *chunk, uint32_t y, uint32_t rows,
                                    cogpu_error *error) {
    const cogpu_read_plan *plan = &window->plan;
    struct cogpu_read_window part =
        cogpu_window_part(&window->parts[0], plan->x, plan->y + y, plan->width, rows);
    part.raster.data = chunk->pixels;
    part.raster.stride_band = 1;
    part.raster.stride_x = chunk->bands;
    part.raster.stride_y = (int64_t)chunk->bands * plan->width;
    cogpu_share share = cogpu_share_of_rows(&window->meter, 0, plan->count, y, rows, plan->height);
    return cogpu_read_part(job, &part, share, window->result, error);
}

static cogpu_status read_colour_chunks(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                       const struct colour_rows *chunk, cogpu_error *error) {
    const cogpu_read_plan *plan = &window->plan;
    for (uint32_t y = 0, rows; y < plan->height; y += rows) {
        rows = plan->height - y < chunk->rows ? plan->height - y : chunk->rows;
        TRY(read_components(job, window, chunk, y, rows, error));
        TRY(convert_colours(plan->storage, chunk->pixels, plan->width, rows, error));
        copy_bands(chunk, plan, y, rows, &window->raster);
    }
    return COGPU_OK;
}

cogpu_status cogpu_read_planar_colours(struct cogpu_read_job *job, struct cogpu_read_window *window,
                                       cogpu_error *error) {
    const cogpu_storage *storage = window->plan.storage;
    const cogpu_raster *raster = &window->raster;
    uint64_t width = raster->width, row_bytes = width * storage->bands;
    struct colour_rows chunk = {.rows = cogpu_chunk_rows(storage, row_bytes, raster->height),
                                .bands = storage->bands};
    uint64_t pixel_bytes = chunk.rows * row_bytes;
    chunk.pixels =
        cogpu_allocate((size_t)(pixel_bytes + width + width * cogpu_type_bytes(raster->type)));
    if (!chunk.pixels)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory to convert planar colours");
    chunk.band = chunk.pixels + pixel_bytes;
    chunk.converted = chunk.band + width;
    cogpu_status status = read_colour_chunks(job, window, &chunk, error);
    cogpu_release(chunk.pixels);
    return status;
}
