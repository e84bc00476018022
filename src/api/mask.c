/*
 * Masks of images that have no mask directory: pixels are read a swath at a time and compared with
 * nodata, or the alpha band is; where there is neither, all pixels are valid.
 */
#include "api/room.h"

#include "base/bytes.h"

#include <math.h>
#include <string.h>

static uint8_t *row_of(const cogpu_raster *raster, uint32_t band, uint32_t y) {
    return (uint8_t *)raster->data + (int64_t)band * raster->stride_band +
           (int64_t)y * raster->stride_y;
}

static void spread_band(const cogpu_raster *raster, uint32_t band, uint32_t copies) {
    for (uint32_t y = 0; y < raster->height; y++) {
        for (uint32_t x = 0; x < raster->width; x++) {
            uint8_t *sample = row_of(raster, band, y) + (int64_t)x * raster->stride_x;
            uint8_t valid = *sample ? 255 : 0;
            for (uint32_t copy = 0; copy < copies; copy++)
                sample[(int64_t)copy * raster->stride_band] = valid;
        }
    }
}

void cogpu_mask_spread(const cogpu_raster *raster, uint32_t bands) {
    for (uint32_t band = 0; band < raster->bands; band++)
        spread_band(raster, band, raster->bands == 1 ? bands : 1);
}

static void set_all(const cogpu_raster *raster, uint8_t value) {
    for (uint32_t band = 0; band < raster->bands; band++)
        for (uint32_t y = 0; y < raster->height; y++)
            for (uint32_t x = 0; x < raster->width; x++)
                row_of(raster, band, y)[(int64_t)x * raster->stride_x] = value;
}

/* Is a sample NaN, in either part of a complex one? */
static bool is_nan(const uint8_t *sample, cogpu_type type) {
    float single[2];
    double number[2];
    uint16_t half;
    switch (type) {
    case COGPU_F16:
        memcpy(&half, sample, sizeof half);
        return (half & 0x7C00) == 0x7C00 && (half & 0x03FF);
    case COGPU_F32:
        memcpy(single, sample, sizeof *single);
        return isnan(single[0]);
    case COGPU_CF32:
        memcpy(single, sample, sizeof single);
        return isnan(single[0]) || isnan(single[1]);
    case COGPU_F64:
        memcpy(number, sample, sizeof *number);
        return isnan(number[0]);
    case COGPU_CF64:
        memcpy(number, sample, sizeof number);
        return isnan(number[0]) || isnan(number[1]);
    default:
        return false;
    }
}

/* How a sample is judged. */
struct judge {
    cogpu_type type;
    bool by_alpha, nodata_is_nan;
    uint8_t nodata[16], minus_zero[16]; /* the second for floats whose nodata is 0 */
};

static struct judge judge_for(const cogpu_image *info, bool by_alpha) {
    struct judge judge = {.type = info->type, .by_alpha = by_alpha};
    cogpu_nodata_sample(&info->nodata, info->type, judge.nodata);
    judge.nodata_is_nan = is_nan(judge.nodata, info->type);
    memcpy(judge.minus_zero, judge.nodata, sizeof judge.minus_zero);
    if (info->nodata.value == 0 &&
        (info->type == COGPU_F16 || info->type == COGPU_F32 || info->type == COGPU_F64)) {
        size_t sign = cogpu_type_bytes(info->type) - 1;
        judge.minus_zero[COGPU_HOST_BIG_ENDIAN ? 0 : sign] ^= 0x80;
    }
    return judge;
}

static bool is_valid(const struct judge *judge, const uint8_t *sample) {
    static const uint8_t zero[16];
    size_t size = cogpu_type_bytes(judge->type);
    if (judge->by_alpha)
        return memcmp(sample, zero, size) != 0;
    if (judge->nodata_is_nan)
        return !is_nan(sample, judge->type);
    return memcmp(sample, judge->nodata, size) != 0 && memcmp(sample, judge->minus_zero, size) != 0;
}

/* One band of the mask from one band of pixels, swath by swath through `pixels`. */
static cogpu_status derive_band(const cogpu_file *file, const cogpu_request *request,
                                const struct judge *judge, uint32_t source_band,
                                uint32_t swath_rows, void *pixels, const cogpu_raster *raster,
                                uint32_t band, cogpu_error *error) {
    size_t size = cogpu_type_bytes(judge->type);
    for (uint32_t y = 0; y < raster->height; y += swath_rows) {
        cogpu_request swath = *request;
        swath.part = COGPU_PIXELS;
        swath.y += y;
        swath.height = raster->height - y < swath_rows ? raster->height - y : swath_rows;
        swath.bands = &source_band;
        swath.band_count = 1;
        cogpu_raster target = {.data = pixels,
                               .type = judge->type,
                               .bands = 1,
                               .width = raster->width,
                               .height = swath.height};
        TRY(cogpu_read(file, &swath, &target, NULL, error));
        const uint8_t *sample = pixels;
        for (uint32_t row = 0; row < swath.height; row++)
            for (uint32_t x = 0; x < raster->width; x++, sample += size)
                row_of(raster, band, y + row)[(int64_t)x * raster->stride_x] =
                    is_valid(judge, sample) ? 255 : 0;
    }
    return COGPU_OK;
}

cogpu_status cogpu_mask_derive(const cogpu_file *file, const cogpu_request *request,
                               const cogpu_raster *raster, cogpu_error *error) {
    const cogpu_picture *picture = NULL;
    TRY(cogpu_file_picture(file, request->image, &picture, error));
    const cogpu_image *info = &picture->info;
    bool by_alpha = picture->unmasked == COGPU_BY_ALPHA;
    if (picture->unmasked == COGPU_ALL_VALID) {
        set_all(raster, 255);
        return COGPU_OK;
    }
    struct judge judge = judge_for(info, by_alpha);
    uint64_t row_bytes = (uint64_t)raster->width * cogpu_type_bytes(info->type);
    uint32_t rows =
        cogpu_swath_rows(&picture->levels[request->level].storage, row_bytes, raster->height);
    void *pixels = cogpu_allocate((size_t)(rows * row_bytes));
    if (!pixels)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for a swath of the mask");
    cogpu_status status = COGPU_OK;
    uint32_t derived = by_alpha ? 1 : raster->bands;
    for (uint32_t band = 0; status == COGPU_OK && band < derived; band++) {
        uint32_t source = by_alpha         ? info->alpha_band
                          : request->bands ? request->bands[band]
                                           : band + 1;
        status = derive_band(file, request, &judge, source, rows, pixels, raster, band, error);
    }
    cogpu_release(pixels);
    if (status == COGPU_OK && by_alpha)
        spread_band(raster, 0, raster->bands);
    return status;
}
