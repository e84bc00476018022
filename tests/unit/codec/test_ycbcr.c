/* Data units of YCbCr into RGB, and CMYK into RGBA. The colours are what GDAL 3.12 returns. Trap
 * T058. */
#include "codec/cmyk.h"
#include "codec/ycbcr.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>

static cogpu_block_format block(uint32_t width, uint32_t height, uint32_t x, uint32_t y) {
    return (cogpu_block_format){.width = width,
                                .height = height,
                                .samples = 3,
                                .bits = 8,
                                .type = COGPU_TYPE_U8,
                                .photometric = 6,
                                .subsampling_x = x,
                                .subsampling_y = y};
}

static const uint32_t ratios[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}, {4, 4}};
enum { RATIOS = sizeof ratios / sizeof *ratios };

/* Unpacks from and into heap blocks of the exact sizes; the result is the caller's to free. */
static uint8_t *unpack(const cogpu_block_format *format, const cogpu_ycbcr *ycbcr,
                       const uint8_t *units, size_t unit_bytes, cogpu_status *status) {
    uint8_t *in = malloc(unit_bytes ? unit_bytes : 1);
    uint8_t *out = malloc((size_t)format->width * format->height * 3 + 1);
    memcpy(in, units, unit_bytes);
    *status = cogpu_ycbcr_unpack(format, ycbcr, in, unit_bytes, out, NULL);
    free(in);
    return out;
}

static void colours(void) {
    static const uint8_t stored[] = {0,   0,  0,  255, 255, 255, 214, 66,  27,  81,  90, 240,
                                     145, 54, 34, 41,  240, 110, 100, 128, 128, 235, 16, 200};
    static const uint8_t usual[] = {0,  135, 0,  255, 121, 255, 72,  255, 104, 238, 14,  14,
                                    13, 238, 14, 16,  15,  239, 100, 100, 100, 255, 222, 37};
    static const uint8_t video[] = {0, 77,  0, 255, 184, 255, 50, 255, 100, 255, 24,  0,
                                    0, 215, 0, 0,   15,  255, 97, 97,  97,  255, 241, 19};
    const cogpu_ycbcr as_usual = cogpu_ycbcr_default();
    const cogpu_ycbcr as_video = {{0.2125f, 0.7154f, 0.0721f}, {16, 235, 128, 240, 128, 240}};
    const cogpu_block_format format = block(8, 1, 1, 1);
    cogpu_status status;
    uint8_t *out = unpack(&format, &as_usual, stored, sizeof stored, &status);
    CHECK(status == COGPU_OK && memcmp(out, usual, sizeof usual) == 0);
    free(out);
    out = unpack(&format, &as_video, stored, sizeof stored, &status);
    CHECK(status == COGPU_OK && memcmp(out, video, sizeof video) == 0);
    free(out);
}

/* Each colour within rounding of what the definition says in real numbers. */
static void near_the_definition(void) {
    const cogpu_ycbcr usual = cogpu_ycbcr_default();
    const cogpu_block_format format = block(1, 1, 1, 1);
    for (int i = 0; i < 256 * 256; i += 37) {
        const uint8_t stored[3] = {(uint8_t)(i * 11), (uint8_t)i, (uint8_t)(i >> 8)};
        double y = stored[0], cb = stored[1] - 128.0, cr = stored[2] - 128.0;
        const double expected[3] = {y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr,
                                    y + 1.772 * cb};
        cogpu_status status;
        uint8_t *out = unpack(&format, &usual, stored, 3, &status);
        for (int band = 0; band < 3; band++)
            CHECK(fabs(out[band] - fmin(fmax(expected[band], 0), 255)) <= 1);
        free(out);
    }
}

/* Luma numbers its pixel, chroma is neutral in all units but the third: each must be at its
 * position, in blocks whose sides are no multiples of the units too. */
static void each_pixel_in_its_place(void) {
    const cogpu_ycbcr usual = cogpu_ycbcr_default();
    static uint8_t units[20 * 20 * 3];
    for (size_t i = 0; i < RATIOS * 13 * 11; i++) {
        uint32_t x = ratios[i % RATIOS][0], y = ratios[i % RATIOS][1];
        const cogpu_block_format format =
            block(1 + (uint32_t)(i / RATIOS % 13), 1 + (uint32_t)(i / RATIOS / 13), x, y);
        uint32_t across = (format.width + x - 1) / x, down = (format.height + y - 1) / y;
        size_t bytes = (size_t)across * down * (x * y + 2);
        CHECK(cogpu_ycbcr_bytes(&format) == bytes);
        for (uint32_t u = 0; u < across * down; u++) {
            uint8_t *unit = units + u * (x * y + 2);
            for (uint32_t k = 0; k < x * y; k++) {
                uint32_t column = u % across * x + k % x, row = u / across * y + k / x;
                unit[k] = (uint8_t)(50 + column * 7 + row * 5);
            }
            unit[x * y] = 128;
            unit[x * y + 1] = u == 2 ? 138 : 128;
        }
        cogpu_status status;
        uint8_t *out = unpack(&format, &usual, units, bytes, &status);
        CHECK(status == COGPU_OK);
        for (uint32_t p = 0; p < format.width * format.height; p++) {
            uint32_t column = p % format.width, row = p / format.width;
            uint32_t luma = 50 + column * 7 + row * 5;
            bool third = row / y * across + column / x == 2;
            CHECK(out[3 * p] == luma + (third ? 14 : 0));
            CHECK(out[3 * p + 1] == luma - (third ? 7 : 0));
            CHECK(out[3 * p + 2] == luma);
        }
        free(out);
        out = unpack(&format, &usual, units, bytes - 1, &status);
        CHECK(status == COGPU_CORRUPT);
        free(out);
    }
}

static void not_read(void) {
    const uint32_t other[][2] = {{1, 4}, {2, 4}, {0, 0}, {1, 0}, {4, 0}, {3, 1}, {4, 3}, {8, 1}};
    const cogpu_ycbcr usual = cogpu_ycbcr_default();
    const uint8_t units[100] = {0};
    cogpu_status status;
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        cogpu_block_format format = block(4, 4, other[i][0], other[i][1]);
        CHECK(cogpu_ycbcr_bytes(&format) == 0);
        free(unpack(&format, &usual, units, sizeof units, &status));
        CHECK(status == COGPU_UNSUPPORTED);
    }
    cogpu_block_format wide = block(4, 4, 2, 2);
    wide.bits = 16;
    CHECK(cogpu_ycbcr_bytes(&wide) == 0);
    cogpu_block_format four = block(4, 4, 2, 2);
    four.samples = 4;
    CHECK(cogpu_ycbcr_bytes(&four) == 0);
    cogpu_block_format huge = block(UINT32_MAX, UINT32_MAX, 1, 1);
    CHECK(cogpu_ycbcr_bytes(&huge) == 0);
}

static void numbers_of_no_use(void) {
    const cogpu_block_format format = block(1, 1, 1, 1);
    const uint8_t unit[3] = {10, 20, 30};
    const float bad[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f};
    cogpu_status status;
    for (int i = 0; i < 9 * 5; i++) {
        cogpu_ycbcr ycbcr = cogpu_ycbcr_default();
        *(i % 9 < 3 ? &ycbcr.luma[i % 9] : &ycbcr.reference[i % 9 - 3]) = bad[i / 9];
        free(unpack(&format, &ycbcr, unit, 3, &status));
        CHECK(status == COGPU_CORRUPT);
    }
    cogpu_ycbcr no_green = {{0.5f, 0, 0.5f}, {0, 255, 128, 255, 128, 255}};
    free(unpack(&format, &no_green, unit, 3, &status));
    CHECK(status == COGPU_CORRUPT);
    /* Black that is white, and numbers at the edge of what is taken: no fault, whatever comes out.
     */
    cogpu_ycbcr flat = {{0.3f, 0.6f, 0.1f}, {7, 7, 7, 7, 7, 7}};
    free(unpack(&format, &flat, unit, 3, &status));
    CHECK(status == COGPU_OK);
    cogpu_ycbcr edge = {{-2e9f, 1e-30f, 2e9f}, {-2e9f, 2e9f, 2e9f, -2e9f, 2e9f, 2e9f}};
    free(unpack(&format, &edge, unit, 3, &status));
    CHECK(status == COGPU_OK);
}

static void cmyk(void) {
    uint8_t pixels[] = {214, 66, 27, 76, 0, 0, 0, 0, 255, 255, 255, 0, 0, 0, 0, 255};
    static const uint8_t expected[] = {28, 132, 160, 255, 255, 255, 255, 255,
                                       0,  0,   0,   255, 0,   0,   0,   255};
    cogpu_cmyk_to_rgba(pixels, 4, 4);
    CHECK(memcmp(pixels, expected, sizeof expected) == 0);
}

TESTS(ycbcr) {
    RUN(colours);
    RUN(near_the_definition);
    RUN(each_pixel_in_its_place);
    RUN(not_read);
    RUN(numbers_of_no_use);
    RUN(cmyk);
    return FINISH();
}
