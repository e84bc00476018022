/*
 * Rasters become blocks: rows at any strides, blocks with edges filled, predictors; each against a
 * plain reference, and predictors are undone by the reader's code, too. Rows of all lengths
 * up to 70 pixels cover vector loops and their remainders.
 */
#include "cpu/pack.h"

#include "base/bytes.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>

enum { BANDS_MAX = 5, WIDTH_MAX = 70, ROWS = 3, PIXEL_MAX = BANDS_MAX * 16 };

static uint32_t state = 1;

static uint8_t noise(void) {
    state = state * 1664525u + 1013904223u;
    return (uint8_t)(state >> 24);
}

/* Memory as large as it has to be, so that a sanitizer sees what goes beyond. */
static uint8_t *noisy(size_t bytes) {
    uint8_t *memory = malloc(bytes);
    if (!memory)
        abort();
    for (size_t i = 0; i < bytes; i++)
        memory[i] = noise();
    return memory;
}

/* ---- gather ---- */

/* How a raster lies: the order of its three strides, from the narrowest on, and rows upside down.
 */
struct lie {
    int64_t band, y, x;
    bool is_flipped;
};

/* Strides of pixels, for samples of `size` bytes; `gap` bytes between any two. */
static struct lie lie_of(int order, size_t size, uint32_t bands, uint32_t width, uint32_t rows,
                         int64_t gap) {
    int64_t sample = (int64_t)size + gap;
    if (order == 0) /* bands first */
        return (struct lie){sample * width * rows, sample * width, sample, false};
    if (order == 1) /* bands last */
        return (struct lie){sample, sample * bands * width, sample * bands, false};
    if (order == 2) /* columns first */
        return (struct lie){sample * width * rows, sample, sample * rows, false};
    return (struct lie){sample, sample * bands * width, sample * bands, true};
}

static int count_wrong_rows(cogpu_type type, uint32_t bands, uint32_t width, const struct lie *lie,
                            size_t room, bool is_planar) {
    size_t size = cogpu_type_bytes(type), plane = (ROWS + 1) * size * width;
    uint8_t *from = noisy(room), *to = noisy(bands * plane);
    const uint8_t *top = lie->is_flipped ? from + lie->y * (ROWS - 1) : from;
    int64_t stride_y = lie->is_flipped ? -lie->y : lie->y;
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = (void *)(uintptr_t)top,
                           .type = type,
                           .bands = bands,
                           .height = ROWS,
                           .width = width,
                           .stride_band = lie->band,
                           .stride_y = stride_y,
                           .stride_x = lie->x};
    int found = 0;
    cogpu_cpu_pack_rows(&raster, 1, ROWS - 1, is_planar, plane, to);
    for (uint32_t y = 0; y < ROWS - 1; y++)
        for (uint32_t x = 0; x < width; x++)
            for (uint32_t b = 0; b < bands; b++) {
                const uint8_t *sample = top + (y + 1) * stride_y + x * lie->x + b * lie->band;
                size_t pixel = (size_t)y * width + x;
                size_t at = is_planar ? b * plane + pixel * size : (pixel * bands + b) * size;
                found += memcmp(to + at, sample, size) != 0;
            }
    free(from);
    free(to);
    return found;
}

static void test_rows_are_gathered_at_any_strides(void) {
    static const cogpu_type types[] = {COGPU_TYPE_U8, COGPU_TYPE_I16, COGPU_TYPE_F32,
                                       COGPU_TYPE_F64, COGPU_TYPE_CF64};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (uint32_t bands = 1; bands <= 4; bands++)
            for (uint32_t width = 1; width <= 40; width += 13)
                for (int order = 0; order < 4; order++)
                    for (int64_t gap = 0; gap < 4; gap += 3) {
                        size_t size = cogpu_type_bytes(types[t]);
                        struct lie lie = lie_of(order, size, bands, width, ROWS, gap);
                        size_t room = (size + (size_t)gap) * bands * width * ROWS;
                        CHECK(count_wrong_rows(types[t], bands, width, &lie, room, false) == 0);
                        CHECK(count_wrong_rows(types[t], bands, width, &lie, room, true) == 0);
                    }
}

/* ---- cut ---- */

static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* Pixels beyond the image are those of its last row and column, or the very last one. */
static int miscut(uint32_t compression, size_t size, uint32_t bands, uint32_t width,
                  uint32_t height, uint32_t rows, int order) {
    enum { SIDE = 16, GAP = 5 };
    static const cogpu_type types[] = {
        [1] = COGPU_TYPE_U8, [4] = COGPU_TYPE_F32, [16] = COGPU_TYPE_CF64};
    const size_t pixel = size * bands, room = (size + GAP) * bands * width * SIDE;
    cogpu_write_plan plan = {.pixel_bytes = pixel, .codec = cogpu_codec_find(compression)};
    cogpu_block_grid grid = {.block_width = SIDE, .block_height = SIDE};
    cogpu_new_block block = {.width = width, .height = height, .rows = rows};
    struct lie lie = lie_of(order, size, bands, width, height, order ? GAP : 0);
    uint8_t *from = noisy(room), *to = noisy(SIDE * pixel * rows);
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = lie.is_flipped ? from + lie.y * (height - 1) : from,
                           .type = types[size],
                           .bands = bands,
                           .height = height,
                           .width = width,
                           .stride_band = lie.band,
                           .stride_y = lie.is_flipped ? -lie.y : lie.y,
                           .stride_x = lie.x};
    int found = 0;
    cogpu_cpu_pack_block(&plan, &grid, &block, &raster, to);
    for (uint32_t y = 0; y < rows; y++)
        for (uint32_t x = 0; x < SIDE; x++)
            for (uint32_t b = 0; b < bands; b++) {
                bool is_last = y >= height && compression == COMPRESSION_LZW;
                uint32_t column = is_last ? width - 1 : smaller(x, width - 1);
                const uint8_t *expected = (uint8_t *)raster.data +
                                          smaller(y, height - 1) * raster.stride_y +
                                          column * raster.stride_x + b * raster.stride_band;
                found += memcmp(to + (y * SIDE + x) * pixel + b * size, expected, size) != 0;
            }
    free(from);
    free(to);
    return found;
}

static void test_edges_of_blocks_repeat_the_last_pixels(void) {
    for (size_t size = 1; size <= 16; size *= 4)
        for (uint32_t bands = 1; bands <= 3; bands++)
            for (uint32_t width = 1; width <= 16; width += 5)
                for (uint32_t height = 1; height <= 16; height += 5)
                    for (int order = 0; order < 4; order++) {
                        uint32_t lzw = COMPRESSION_LZW, jpeg = COMPRESSION_JPEG;
                        CHECK(miscut(lzw, size, bands, width, height, 16, order) == 0);
                        CHECK(miscut(jpeg, size, bands, width, height, 16, order) == 0);
                        CHECK(miscut(lzw, size, bands, width, height, height, order) == 0);
                    }
}

static void test_masks_are_packed_into_bits(void) {
    enum { SIDE = 24, GAP = 3, PACKED = SIDE / 8 };
    for (uint32_t width = 1; width <= SIDE; width++) {
        uint32_t height = 1 + width / 2;
        cogpu_block_grid grid = {.block_width = SIDE, .block_height = SIDE};
        cogpu_new_block block = {.width = width, .height = height, .rows = SIDE};
        size_t row_bytes = 2 * width + GAP, bytes = height * row_bytes;
        uint8_t *from = noisy(bytes), *to = noisy(SIDE * PACKED);
        for (size_t i = 0; i < bytes; i++)
            from[i] = from[i] % 2 ? from[i] : 0;
        cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                               .data = from + 2 * (width - 1),
                               .type = COGPU_TYPE_U8,
                               .bands = 1,
                               .stride_y = (int64_t)row_bytes,
                               .stride_x = -2};
        cogpu_cpu_pack_mask(&grid, &block, &raster, to);
        for (uint32_t y = 0; y < SIDE; y++)
            for (uint32_t x = 0; x < SIDE; x++) {
                int bit = to[y * PACKED + x / 8] >> (7 - x % 8) & 1;
                int expected =
                    y < height && x < width && from[y * row_bytes + 2 * (width - 1 - x)] != 0;
                CHECK(bit == expected);
            }
        free(from);
        free(to);
    }
}

/* ---- uniform ---- */

static void test_uniform_blocks_are_found(void) {
    static const cogpu_type types[] = {COGPU_TYPE_U8, COGPU_TYPE_I16, COGPU_TYPE_F32,
                                       COGPU_TYPE_I64, COGPU_TYPE_CF64};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        size_t size = cogpu_type_bytes(types[t]), bytes = 37 * size;
        uint8_t *samples = noisy(bytes), sample[16];
        memset(sample, 0x3A, sizeof sample);
        sample[0] = 0x11;
        for (size_t at = 0; at < bytes; at += size)
            memcpy(samples + at, sample, size);
        CHECK(cogpu_cpu_is_uniform(samples, bytes, types[t], sample));
        CHECK(cogpu_cpu_is_uniform(samples, size, types[t], sample));
        for (size_t at = 0; at < bytes; at++) { /* one bit, anywhere, is seen */
            samples[at] ^= 4;
            CHECK(!cogpu_cpu_is_uniform(samples, bytes, types[t], sample));
            samples[at] ^= 4;
        }
        sample[0] ^= 1;
        CHECK(!cogpu_cpu_is_uniform(samples, bytes, types[t], sample));
        free(samples);
    }
}

/* There are many NaN, and each stands for nodata where one does. */
static void test_any_nan_is_nan(void) {
    float single[5] = {NAN, -NAN, NAN, NAN, NAN}, one = 1;
    double wide[5] = {NAN, -NAN, NAN, NAN, NAN};
    uint16_t half[5] = {0x7E00, 0xFE00, 0x7C01, 0x7FFF, 0xFFFF}, infinite = 0x7C00;
    memcpy(&single[2], (uint32_t[]){0x7F800001}, 4);
    memcpy(&wide[3], (uint64_t[]){0xFFF0000000000001}, 8);
    CHECK(
        cogpu_cpu_is_uniform((uint8_t *)single, sizeof single, COGPU_TYPE_F32, (uint8_t *)single));
    CHECK(cogpu_cpu_is_uniform((uint8_t *)wide, sizeof wide, COGPU_TYPE_F64, (uint8_t *)wide));
    CHECK(cogpu_cpu_is_uniform((uint8_t *)half, sizeof half, COGPU_TYPE_F16, (uint8_t *)half));
    CHECK(!cogpu_cpu_is_uniform((uint8_t *)single, sizeof single, COGPU_TYPE_F32, (uint8_t *)&one));
    CHECK(
        !cogpu_cpu_is_uniform((uint8_t *)half, sizeof half, COGPU_TYPE_F16, (uint8_t *)&infinite));
    single[4] = INFINITY, wide[0] = 0, half[3] = infinite;
    CHECK(
        !cogpu_cpu_is_uniform((uint8_t *)single, sizeof single, COGPU_TYPE_F32, (uint8_t *)single));
    CHECK(!cogpu_cpu_is_uniform((uint8_t *)wide, sizeof wide, COGPU_TYPE_F64, (uint8_t *)&wide[1]));
    CHECK(!cogpu_cpu_is_uniform((uint8_t *)half, sizeof half, COGPU_TYPE_F16, (uint8_t *)half));
    /* The same bits as integers are no NaN. */
    CHECK(!cogpu_cpu_is_uniform((uint8_t *)half, sizeof half, COGPU_TYPE_U16, (uint8_t *)half));
}

/* ---- predict ---- */

static uint64_t number_of(const uint8_t *at, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)at[COGPU_HOST_BIG_ENDIAN ? size - 1 - i : i] << (8 * i);
    return value;
}

/* Numbers, of which a complex sample has two, become little-endian. */
static void reference1(const uint8_t *from, size_t bytes, size_t number_bytes, uint8_t *to) {
    for (size_t i = 0; i < bytes; i += number_bytes) {
        uint64_t value = number_of(from + i, number_bytes);
        store_little(value, to + i, number_bytes);
    }
}

/* TIFF 6: each sample is the difference to the one of the pixel before, at the sample's width. */
static void reference2(const uint8_t *from, uint32_t width, uint32_t bands, size_t size,
                       uint8_t *to) {
    for (size_t i = 0; i < (size_t)width * bands; i++) {
        uint64_t before = i < bands ? 0 : number_of(from + (i - bands) * size, size);
        uint64_t value = number_of(from + i * size, size) - before;
        for (size_t k = 0; k < size; k++)
            to[i * size + k] = (uint8_t)(value >> (8 * k));
    }
}

/* Technical note 3: the bytes of a row by their weight, most significant first; then differences of
 * bytes at a distance of the bands. */
static void reference3(const uint8_t *from, uint32_t width, uint32_t bands, size_t size,
                       uint8_t *to) {
    static uint8_t planes[WIDTH_MAX * PIXEL_MAX];
    size_t count = (size_t)width * bands;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < size; k++)
            planes[k * count + i] = from[i * size + (COGPU_HOST_BIG_ENDIAN ? k : size - 1 - k)];
    for (size_t i = 0; i < count * size; i++)
        to[i] = (uint8_t)(planes[i] - (i < bands ? 0 : planes[i - bands]));
}

static bool is_undone_by_reader(const cogpu_write_plan *plan, uint8_t *predicted, uint32_t width,
                                uint32_t bands, const uint8_t *expected) {
    size_t size = cogpu_type_bytes(plan->type), row_bytes = width * bands * size;
    cogpu_storage storage = {.width = width,
                             .height = ROWS,
                             .bands = bands,
                             .block_width = width,
                             .block_height = ROWS,
                             .planes = 1,
                             .type = plan->type,
                             .bits = (uint32_t)(8 * size),
                             .predictor = plan->predictor,
                             .codec = cogpu_codec_find(COMPRESSION_LZW)};
    storage.format = (cogpu_block_format){.width = width,
                                          .height = ROWS,
                                          .samples = bands,
                                          .bits = storage.bits,
                                          .type = plan->type,
                                          .row_bytes = row_bytes};
    uint8_t *to = noisy(ROWS * row_bytes);
    cogpu_cpu_undo_filters(&storage, predicted, ROWS, width, to, (int64_t)row_bytes, false);
    bool is_same = memcmp(to, expected, ROWS * row_bytes) == 0;
    free(to);
    return is_same;
}

static void check_predictor(cogpu_type type, uint32_t predictor, uint32_t width, uint32_t bands) {
    size_t size = cogpu_type_bytes(type), row_bytes = width * bands * size;
    cogpu_write_plan plan = {.type = type, .predictor = predictor, .pixel_bytes = bands * size};
    uint8_t *pixels = noisy(ROWS * row_bytes), *rows = noisy(ROWS * row_bytes);
    uint8_t *spare = noisy(row_bytes), *expected = noisy(row_bytes);
    size_t number_bytes = cogpu_type_number_bytes(type);
    memcpy(rows, pixels, ROWS * row_bytes);
    cogpu_cpu_predict(&plan, rows, ROWS, row_bytes, spare);
    for (size_t y = 0; y < ROWS; y++) {
        if (predictor == 2)
            reference2(pixels + y * row_bytes, width, bands, size, expected);
        else if (predictor == 3)
            reference3(pixels + y * row_bytes, width, bands, size, expected);
        else
            reference1(pixels + y * row_bytes, row_bytes, number_bytes, expected);
        CHECK(memcmp(rows + y * row_bytes, expected, row_bytes) == 0);
    }
    CHECK(is_undone_by_reader(&plan, rows, width, bands, pixels));
    free(pixels);
    free(rows);
    free(spare);
    free(expected);
}

static void check_types(const cogpu_type *types, size_t count, uint32_t predictor) {
    for (size_t t = 0; t < count; t++)
        for (uint32_t bands = 1; bands <= BANDS_MAX; bands++)
            for (uint32_t width = 1; width <= WIDTH_MAX; width++)
                check_predictor(types[t], predictor, width, bands);
}

static void test_predictor_1(void) {
    static const cogpu_type types[] = {COGPU_TYPE_U8, COGPU_TYPE_F32, COGPU_TYPE_CI16,
                                       COGPU_TYPE_CF64};
    check_types(types, sizeof types / sizeof *types, 1);
}

static void test_predictor_2(void) {
    static const cogpu_type types[] = {COGPU_TYPE_U8,  COGPU_TYPE_I8,  COGPU_TYPE_U16,
                                       COGPU_TYPE_I16, COGPU_TYPE_U32, COGPU_TYPE_F32,
                                       COGPU_TYPE_I64, COGPU_TYPE_F64};
    check_types(types, sizeof types / sizeof *types, 2);
}

static void test_predictor_3(void) {
    static const cogpu_type types[] = {COGPU_TYPE_F16, COGPU_TYPE_F32, COGPU_TYPE_F64};
    check_types(types, sizeof types / sizeof *types, 3);
}

/* ---- pack ---- */

/* Bit by bit: the n-th sample's bits follow those of the one before it. */
static int mispacked(cogpu_type type, uint32_t bits, uint32_t width) {
    size_t size = cogpu_type_bytes(type), packed = (width * bits + 7) / 8;
    uint8_t *rows = noisy(ROWS * width * size), *before = malloc(ROWS * width * size);
    cogpu_write_plan plan = {.type = type, .encoding.format.bits = bits};
    int wrong = 0;
    memcpy(before, rows, ROWS * width * size);
    cogpu_cpu_pack_bits(&plan, rows, ROWS, width * size);
    for (uint32_t y = 0; y < ROWS; y++)
        for (uint32_t i = 0; i < packed * 8; i++) {
            uint32_t x = i / bits, most = (1u << bits) - 1, byte = rows[y * packed + i / 8];
            uint16_t sample = 0;
            if (x < width && size == 1)
                sample = before[y * width + x];
            else if (x < width)
                memcpy(&sample, before + (y * width + x) * 2, 2);
            uint32_t due = (sample < most ? sample : most) >> (bits - 1 - i % bits) & 1;
            wrong += (byte >> (7 - i % 8) & 1) != due;
        }
    free(rows);
    free(before);
    return wrong;
}

static void test_samples_are_packed(void) {
    for (uint32_t width = 1; width <= WIDTH_MAX; width++)
        for (uint32_t bits = 1; bits < 16; bits++)
            CHECK(bits == 8 ||
                  mispacked(bits < 8 ? COGPU_TYPE_U8 : COGPU_TYPE_U16, bits, width) == 0);
}

TESTS(pack) {
    RUN(test_rows_are_gathered_at_any_strides);
    RUN(test_edges_of_blocks_repeat_the_last_pixels);
    RUN(test_masks_are_packed_into_bits);
    RUN(test_uniform_blocks_are_found);
    RUN(test_any_nan_is_nan);
    RUN(test_predictor_1);
    RUN(test_predictor_2);
    RUN(test_predictor_3);
    RUN(test_samples_are_packed);
    return FINISH();
}
