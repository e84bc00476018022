/*
 * Data units of subsampled YCbCr (TIFF 6.0 section 21) to RGB, one byte per sample.
 *
 * Chroma is repeated, not interpolated, and the arithmetic is 16.16 fixed point, as in libtiff, so
 * that pixels are exactly GDAL's.
 */
#include "codec/ycbcr.h"
#include "base/math.h"

#include "base/checked.h"

enum { FRACTION_BITS = 16, HALF = 1 << (FRACTION_BITS - 1), CODES = 256, SCALED_MAX = 4096 };

/* Contribution of each code to a colour; those to green keep their fraction. */
typedef struct colour_tables {
    int32_t luma[CODES];
    int32_t cr_red[CODES], cr_green[CODES];
    int32_t cb_blue[CODES], cb_green[CODES];
} colour_tables;

cogpu_ycbcr cogpu_ycbcr_default(void) {
    return (cogpu_ycbcr){.luma = {0.299f, 0.587f, 0.114f},
                         .reference = {0, 255, 128, 255, 128, 255}};
}

/* The ratios that libtiff can turn into RGB. */
static bool known_subsampling(uint32_t x, uint32_t y) {
    return (x == 1 && y <= 2) || (x == 2 && y <= 2) || (x == 4 && y != 3 && y <= 4);
}

size_t cogpu_ycbcr_bytes(const cogpu_block_format *format) {
    uint32_t x = format->subsampling_x, y = format->subsampling_y;
    uint64_t units, bytes;
    if (format->bits != 8 || format->samples != 3 || y == 0 || !known_subsampling(x, y))
        return 0;
    if (!checked_mul(divide_up(format->width, x), divide_up(format->height, y), &units) ||
        !checked_mul(units, x * y + 2, &bytes) || bytes > SIZE_MAX)
        return 0;
    return (size_t)bytes;
}

/* A negated test, so that no NaN passes. */
static bool out_of_range(float value) {
    return !(value > -2147483520.0f && value < 2147483520.0f);
}

static bool is_valid_ycbcr(const cogpu_ycbcr *ycbcr) {
    bool broken = ycbcr->luma[1] == 0;
    for (int i = 0; i < 3; i++)
        broken = broken || out_of_range(ycbcr->luma[i]);
    for (int i = 0; i < 6; i++)
        broken = broken || out_of_range(ycbcr->reference[i]);
    return !broken;
}

static float clamp_float(float value, float low, float high) {
    return value < low ? low : value > high ? high : value;
}

static int32_t fixed_point(float factor) {
    return (int32_t)(clamp_float(factor, 0, 2) * (1 << FRACTION_BITS) + 0.5);
}

/* A code on the scale where black is 0 and white is `full`. */
static int32_t scale_code(int32_t code, float black, float white, float full) {
    float range = white - black != 0 ? white - black : 1;
    float value = (float)(code - (int64_t)black) * full / range;
    return (int32_t)clamp_float(value, -SCALED_MAX, SCALED_MAX);
}

static void build_colour_tables(const cogpu_ycbcr *ycbcr, colour_tables *tables) {
    const float *luma = ycbcr->luma, *reference = ycbcr->reference;
    float red = 2 - 2 * luma[0], blue = 2 - 2 * luma[2];
    int32_t cr_red = fixed_point(red), cr_green = -fixed_point(luma[0] * red / luma[1]);
    int32_t cb_blue = fixed_point(blue), cb_green = -fixed_point(luma[2] * blue / luma[1]);
    for (int32_t code = 0; code < CODES; code++) {
        int32_t cb = scale_code(code - 128, reference[2] - 128, reference[3] - 128, 127);
        int32_t cr = scale_code(code - 128, reference[4] - 128, reference[5] - 128, 127);
        tables->luma[code] = scale_code(code, reference[0], reference[1], 255);
        tables->cr_red[code] = (cr_red * cr + HALF) >> FRACTION_BITS;
        tables->cb_blue[code] = (cb_blue * cb + HALF) >> FRACTION_BITS;
        tables->cr_green[code] = cr_green * cr;
        tables->cb_green[code] = cb_green * cb + HALF;
    }
}

static uint8_t byte_of(int32_t value) {
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* One unit, of which `columns` x `rows` pixels are inside the block. */
static void unpack_unit(const colour_tables *tables, const uint8_t *unit, uint32_t unit_width,
                        uint32_t unit_height, uint32_t columns, uint32_t rows, uint8_t *out,
                        size_t row_bytes) {
    uint8_t cb = unit[unit_width * unit_height], cr = unit[unit_width * unit_height + 1];
    int32_t red = tables->cr_red[cr], blue = tables->cb_blue[cb];
    int32_t green = (tables->cb_green[cb] + tables->cr_green[cr]) >> FRACTION_BITS;
    for (uint32_t y = 0; y < rows; y++) {
        uint8_t *pixel = out + y * row_bytes;
        for (uint32_t x = 0; x < columns; x++, pixel += 3) {
            int32_t luma = tables->luma[unit[y * unit_width + x]];
            pixel[0] = byte_of(luma + red);
            pixel[1] = byte_of(luma + green);
            pixel[2] = byte_of(luma + blue);
        }
    }
}

cogpu_status cogpu_ycbcr_unpack(const cogpu_block_format *format, const cogpu_ycbcr *ycbcr,
                                const uint8_t *units, size_t unit_bytes, uint8_t *out,
                                cogpu_error *error) {
    colour_tables tables;
    uint32_t unit_width = format->subsampling_x, unit_height = format->subsampling_y;
    size_t needed = cogpu_ycbcr_bytes(format), row_bytes = (size_t)format->width * 3;
    if (needed == 0)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "YCbCr of %u bands of %u bits, subsampled %u, %u: not read",
                          format->samples, format->bits, unit_width, unit_height);
    if (unit_bytes < needed)
        return cogpu_fail(error, COGPU_CORRUPT, "the block has %zu bytes of YCbCr and needs %zu",
                          unit_bytes, needed);
    if (!is_valid_ycbcr(ycbcr))
        return cogpu_fail(error, COGPU_CORRUPT,
                          "YCbCrCoefficients or ReferenceBlackWhite hold no usable numbers");
    build_colour_tables(ycbcr, &tables);
    for (uint32_t y = 0; y < format->height; y += unit_height) {
        for (uint32_t x = 0; x < format->width; x += unit_width) {
            unpack_unit(&tables, units, unit_width, unit_height,
                        min_u32(unit_width, format->width - x),
                        min_u32(unit_height, format->height - y),
                        out + y * row_bytes + (size_t)x * 3, row_bytes);
            units += unit_width * unit_height + 2;
        }
    }
    return COGPU_OK;
}
