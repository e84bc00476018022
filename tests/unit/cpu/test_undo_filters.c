/*
 * Predictors and byte order, for every size of sample, 1 to 7 samples a pixel and widths from 1 on,
 * against a plain reference (T035-T041, T045). Short rows take the plain code and long ones the
 * vectors, so a width range from below to above the vectors' length compares the two.
 */
#include "cpu/cpu.h"

#include "base/bytes.h"
#include "support/test.h"

#include <stdlib.h>

enum { SAMPLES_MAX = 7, WIDTH_MAX = 200, ROW_MAX = WIDTH_MAX * SAMPLES_MAX * 16 };

static uint32_t state = 1;

static uint8_t noise(void) {
    state = state * 1664525u + 1013904223u;
    return (uint8_t)(state >> 24);
}

static cogpu_type unsigned_of(uint32_t bits) {
    return bits == 8    ? COGPU_TYPE_U8
           : bits == 16 ? COGPU_TYPE_U16
           : bits == 32 ? COGPU_TYPE_U32
                        : COGPU_TYPE_U64;
}

static cogpu_type float_of(uint32_t bits) {
    return bits == 16 ? COGPU_TYPE_F16 : bits == 64 ? COGPU_TYPE_F64 : COGPU_TYPE_F32;
}

static cogpu_storage make(uint32_t width, uint32_t samples, uint32_t bits, cogpu_type type,
                          uint32_t predictor, bool big_endian) {
    cogpu_storage storage = {.width = width,
                             .height = 1,
                             .bands = samples,
                             .block_width = width,
                             .block_height = 1,
                             .planes = 1,
                             .type = type,
                             .bits = bits,
                             .predictor = predictor,
                             .big_endian = big_endian,
                             .codec = cogpu_codec_find(COMPRESSION_LZW)};
    storage.format.width = width;
    storage.format.height = 1;
    storage.format.samples = samples;
    storage.format.bits = bits;
    storage.format.type = type;
    storage.format.row_bytes = (size_t)width * samples * bits / 8;
    return storage;
}

/* A sample of `size` bytes in the file's order as a number, and back in the machine's. */
static uint64_t number_of(const uint8_t *at, size_t size, bool big_endian) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)at[big_endian ? size - 1 - i : i] << (8 * i);
    return value;
}

static void put_number(uint8_t *to, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; i++)
        to[COGPU_HOST_BIG_ENDIAN ? size - 1 - i : i] = (uint8_t)(value >> (8 * i));
}

/* TIFF 6: each sample is the difference to the one of the pixel before, at the sample's width. */
static void reference2(const uint8_t *from, uint32_t width, uint32_t samples, size_t size,
                       bool big_endian, uint8_t *to) {
    uint64_t sums[SAMPLES_MAX] = {0};
    for (uint32_t x = 0; x < width; x++)
        for (uint32_t s = 0; s < samples; s++, from += size, to += size) {
            sums[s] += number_of(from, size, big_endian);
            put_number(to, sums[s], size);
        }
}

/* Technical note 3: bytes summed at a distance of the samples, then planes, most significant
 * first in any file. */
static void reference3(const uint8_t *from, uint32_t width, uint32_t samples, size_t size,
                       uint8_t *to) {
    static uint8_t planes[ROW_MAX];
    size_t count = (size_t)width * samples, bytes = count * size;
    for (size_t i = 0; i < bytes; i++)
        planes[i] = (uint8_t)(from[i] + (i >= samples ? planes[i - samples] : 0));
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < size; k++)
            to[i * size + k] = planes[(COGPU_HOST_BIG_ENDIAN ? k : size - 1 - k) * count + i];
}

/* Restores the first `pixels` of two equal rows from exact memory into exact memory, where they lie
 * three bytes apart and the second above the first. */
static int differs(const cogpu_storage *storage, const uint8_t *row, uint32_t pixels,
                   const uint8_t *expected, bool streams) {
    enum { GAP = 3 };
    size_t bytes = (size_t)pixels * storage->format.samples * storage->format.bits / 8;
    size_t row_bytes = storage->format.row_bytes;
    uint8_t *from = malloc(2 * row_bytes), *to = malloc(2 * bytes + GAP);
    if (!from || !to)
        abort();
    memcpy(from, row, row_bytes);
    memcpy(from + row_bytes, row, row_bytes);
    memset(to, 0xA5, 2 * bytes + GAP);
    cogpu_cpu_undo_filters(storage, from, 2, pixels, to + bytes + GAP, -(int64_t)(bytes + GAP),
                           streams);
    int result = memcmp(to, expected, bytes) != 0 ||
                 memcmp(to + bytes + GAP, expected, bytes) != 0 ||
                 memcmp(to + bytes, "\xA5\xA5\xA5", GAP) != 0;
    free(from);
    free(to);
    return result;
}

/* Whole rows, and rows of which only the first pixels are wanted; through the caches and past them.
 */
static int faults(const cogpu_storage *storage, const uint8_t *row, const uint8_t *expected) {
    uint32_t width = storage->format.width, half = 1 + width / 2 < width ? 1 + width / 2 : width;
    int found = 0;
    for (int streams = 0; streams < 2; streams++)
        found += differs(storage, row, width, expected, streams) +
                 differs(storage, row, half, expected, streams) +
                 differs(storage, row, 1, expected, streams);
    return found;
}

static void test_predictor_2(void) {
    static uint8_t row[ROW_MAX], expected[ROW_MAX];
    for (uint32_t bits = 8; bits <= 64; bits *= 2)
        for (uint32_t samples = 1; samples <= SAMPLES_MAX; samples++)
            for (uint32_t width = 1; width <= WIDTH_MAX; width++)
                for (int big = 0; big < 2; big++) {
                    cogpu_storage storage =
                        make(width, samples, bits, unsigned_of(bits), 2, big != 0);
                    for (size_t i = 0; i < storage.format.row_bytes; i++)
                        row[i] = noise();
                    reference2(row, width, samples, bits / 8, big != 0, expected);
                    CHECK(cogpu_cpu_has_filters(&storage));
                    CHECK(faults(&storage, row, expected) == 0);
                }
}

static void test_predictor_3(void) {
    static const uint32_t depths[] = {16, 24, 32, 64};
    static uint8_t row[ROW_MAX], expected[ROW_MAX];
    for (size_t d = 0; d < 4; d++)
        for (uint32_t samples = 1; samples <= SAMPLES_MAX; samples++)
            for (uint32_t width = 1; width <= WIDTH_MAX; width++)
                for (int big = 0; big < 2; big++) {
                    cogpu_storage storage =
                        make(width, samples, depths[d], float_of(depths[d]), 3, big != 0);
                    for (size_t i = 0; i < storage.format.row_bytes; i++)
                        row[i] = noise();
                    reference3(row, width, samples, depths[d] / 8, expected);
                    CHECK(faults(&storage, row, expected) == 0);
                }
}

/* T037: sums wrap, for all the largest numbers. */
static void test_sums_wrap(void) {
    static uint8_t row[ROW_MAX], expected[ROW_MAX];
    memset(row, 0xFF, sizeof row);
    for (uint32_t bits = 8; bits <= 64; bits *= 2) {
        cogpu_storage storage = make(WIDTH_MAX, 3, bits, unsigned_of(bits), 2, false);
        reference2(row, WIDTH_MAX, 3, bits / 8, false, expected);
        CHECK(faults(&storage, row, expected) == 0);
    }
}

struct order {
    cogpu_type type;
    uint32_t bits, unit;
};

/* T028; parts of complex numbers are swapped one by one, packed depths not at all, but for 24 bits,
 * as GDAL has it. */
static void test_byte_order(void) {
    static const struct order orders[] = {
        {COGPU_TYPE_U8, 8, 1},    {COGPU_TYPE_I16, 16, 2},   {COGPU_TYPE_U32, 32, 4},
        {COGPU_TYPE_I64, 64, 8},  {COGPU_TYPE_F16, 16, 2},   {COGPU_TYPE_F32, 32, 4},
        {COGPU_TYPE_F64, 64, 8},  {COGPU_TYPE_CI16, 32, 2},  {COGPU_TYPE_CI32, 64, 4},
        {COGPU_TYPE_CF32, 64, 4}, {COGPU_TYPE_CF64, 128, 8}, {COGPU_TYPE_F32, 24, 3},
        {COGPU_TYPE_U16, 12, 1},  {COGPU_TYPE_U32, 24, 3},   {COGPU_TYPE_U8, 4, 1}};
    const bool other_order = !COGPU_HOST_BIG_ENDIAN;
    static uint8_t row[ROW_MAX], expected[ROW_MAX];
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        for (uint32_t width = 8; width <= 64; width += 8) {
            const struct order *order = &orders[i];
            cogpu_storage storage = make(width, 2, order->bits, order->type, 1, other_order);
            CHECK(cogpu_cpu_has_filters(&storage) == (order->unit > 1));
            storage.big_endian = COGPU_HOST_BIG_ENDIAN;
            CHECK(!cogpu_cpu_has_filters(&storage));
            storage.big_endian = other_order;
            if (order->unit == 1)
                continue;
            for (size_t k = 0; k < storage.format.row_bytes; k++) {
                row[k] = noise();
                expected[k / order->unit * order->unit + order->unit - 1 - k % order->unit] =
                    row[k];
            }
            CHECK(faults(&storage, row, expected) == 0);
        }
}

static void test_the_vectors_have_a_name(void) {
    CHECK(cogpu_cpu_vectors()[0] != '\0');
}

TESTS(undo_filters) {
    RUN(test_predictor_2);
    RUN(test_predictor_3);
    RUN(test_sums_wrap);
    RUN(test_byte_order);
    RUN(test_the_vectors_have_a_name);
    return FINISH();
}
