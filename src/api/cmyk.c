/*
 * CMYK whose bands lie apart in the file, as RGBA: a pixel needs all four bands at once, which no
 * block has. So they are read side by side a swath at a time, converted, and the wanted bands
 * copied on.
 */
#include "api/room.h"

#include "codec/cmyk.h"

enum { BANDS = 4 };

/* Pixels of a swath to rows first_row .. of the raster, which has the request's bands. */
static void copy_bands(const uint8_t *pixels, const cogpu_request *request, uint32_t first_row,
                       uint32_t rows, const cogpu_raster *raster) {
    for (uint32_t p = 0; p < raster->bands; p++) {
        const uint8_t *sample = pixels + (request->bands ? request->bands[p] - 1 : p);
        for (uint32_t y = first_row; y < first_row + rows; y++) {
            uint8_t *to = (uint8_t *)raster->data + (int64_t)p * raster->stride_band +
                          (int64_t)y * raster->stride_y;
            for (uint32_t x = 0; x < raster->width; x++, sample += BANDS)
                to[(int64_t)x * raster->stride_x] = *sample;
        }
    }
}

static cogpu_status convert_swaths(const cogpu_file *file, const cogpu_request *request,
                                   uint32_t swath_rows, uint8_t *pixels, const cogpu_raster *raster,
                                   cogpu_error *error) {
    for (uint32_t y = 0; y < raster->height; y += swath_rows) {
        cogpu_request swath = *request;
        swath.part = COGPU_STORED;
        swath.bands = NULL;
        swath.y += y;
        swath.height = raster->height - y < swath_rows ? raster->height - y : swath_rows;
        cogpu_raster target = {.data = pixels,
                               .type = COGPU_U8,
                               .bands = BANDS,
                               .width = raster->width,
                               .height = swath.height,
                               .stride_band = 1,
                               .stride_x = BANDS,
                               .stride_y = (int64_t)BANDS * raster->width};
        TRY(cogpu_read(file, &swath, &target, NULL, error));
        cogpu_cmyk_to_rgba(pixels, (size_t)raster->width * swath.height);
        copy_bands(pixels, request, y, swath.height, raster);
    }
    return COGPU_OK;
}

cogpu_status cogpu_read_planar_cmyk(const cogpu_file *file, const cogpu_request *request,
                                    const cogpu_raster *raster, cogpu_error *error) {
    const cogpu_storage *storage = &file->pictures[request->image].levels[request->level].storage;
    uint64_t row_bytes = (uint64_t)raster->width * BANDS;
    uint32_t rows = cogpu_swath_rows(storage, row_bytes, raster->height);
    uint8_t *pixels = cogpu_allocate((size_t)(rows * row_bytes));
    if (!pixels)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a swath of CMYK");
    cogpu_status status = convert_swaths(file, request, rows, pixels, raster, error);
    cogpu_release(pixels);
    return status;
}
