/*
 * From a block into the raster: every packed depth, signed and not, against a reference (T023,
 * T024), float24 (T026), crops, lists of bands (T034), and any strides.
 */
#include "cpu/cpu.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>

static uint32_t state = 7;

static uint8_t noise(void) {
    state = state * 1664525u + 1013904223u;
    return (uint8_t)(state >> 24);
}

static cogpu_type type_for(uint32_t bits, bool is_signed) {
    cogpu_type type = bits <= 8    ? COGPU_TYPE_U8
                      : bits <= 16 ? COGPU_TYPE_U16
                      : bits <= 32 ? COGPU_TYPE_U32
                                   : COGPU_TYPE_U64;
    return is_signed ? (cogpu_type)(type + 1) : type;
}

static cogpu_storage make(uint32_t width, uint32_t height, uint32_t bands, bool planar,
                          uint32_t bits, cogpu_type type) {
    cogpu_storage storage = {.width = width,
                             .height = height,
                             .bands = bands,
                             .layout = COGPU_LAYOUT_TILES,
                             .block_width = width,
                             .block_height = height,
                             .across = 1,
                             .down = 1,
                             .planes = planar ? bands : 1,
                             .blocks = planar ? bands : 1,
                             .type = type,
                             .bits = bits,
                             .predictor = 1,
                             .codec = cogpu_codec_find(COMPRESSION_LZW)};
    storage.format.width = width;
    storage.format.height = height;
    storage.format.samples = planar ? 1 : bands;
    storage.format.bits = bits;
    storage.format.type = type;
    storage.format.compression = COMPRESSION_LZW;
    storage.format.row_bytes =
        (size_t)divide_up((uint64_t)width * storage.format.samples * bits, 8);
    storage.block_bytes = storage.format.row_bytes * height;
    return storage;
}

/* Those of a number that a sample of `size` bytes has. */
static uint8_t *low_bytes(uint64_t *number, size_t size) {
    return (uint8_t *)number + (COGPU_HOST_BIG_ENDIAN ? sizeof *number - size : 0);
}

/* Bit by bit, most significant first. Whole bytes are numbers of the machine. */
static uint64_t sample_at(const cogpu_storage *storage, const uint8_t *block, uint32_t x,
                          uint32_t y, uint32_t s, bool is_signed) {
    uint32_t bits = storage->bits;
    const uint8_t *row = block + y * storage->format.row_bytes;
    uint64_t value = 0, index = (uint64_t)x * storage->format.samples + s;
    if (bits == 8 * cogpu_type_bytes(storage->type)) {
        memcpy(low_bytes(&value, bits / 8), row + index * bits / 8, bits / 8);
        return value;
    }
    for (uint64_t bit = index * bits; bit < (index + 1) * bits; bit++)
        value = value << 1 | (row[bit / 8] >> (7 - bit % 8) & 1);
    if (is_signed && value >> (bits - 1))
        value |= ~0ULL << bits;
    size_t size = cogpu_type_bytes(storage->type);
    return size == 8 ? value : value & ((1ULL << (8 * size)) - 1);
}

/* How a raster lies in its memory. */
enum { PACKED, CHUNKY, UPSIDE_DOWN, SPREAD, LAYOUTS };

struct target {
    uint8_t *memory;
    size_t bytes;
    cogpu_raster raster;
};

static struct target target_for(const cogpu_storage *storage, uint32_t width, uint32_t height,
                                uint32_t bands, int layout) {
    int64_t size = (int64_t)cogpu_type_bytes(storage->type), w = width, h = height, b = bands;
    struct target target = {.bytes = (size_t)(size * w * h * b * (layout == SPREAD ? 3 : 1))};
    target.raster = (cogpu_raster){.struct_size = sizeof(cogpu_raster),
                                   .type = storage->type,
                                   .bands = bands,
                                   .width = width,
                                   .height = height};
    cogpu_raster *raster = &target.raster;
    target.memory = malloc(target.bytes);
    if (!target.memory)
        abort();
    memset(target.memory, 0xA5, target.bytes);
    raster->data = target.memory;
    raster->stride_x = layout == CHUNKY ? b * size : layout == SPREAD ? 3 * size : size;
    raster->stride_y = raster->stride_x * w;
    raster->stride_band = layout == CHUNKY ? size : raster->stride_y * h;
    if (layout == UPSIDE_DOWN) {
        raster->data = target.memory + target.bytes - size;
        raster->stride_x = -size;
        raster->stride_y = -size * w;
        raster->stride_band = -size * w * h;
    }
    return target;
}

static int wrong_samples(const cogpu_read_plan *plan, const struct target *target,
                         const uint8_t *blocks, bool is_signed) {
    const cogpu_storage *storage = plan->storage;
    size_t size = cogpu_type_bytes(storage->type);
    int wrong = 0;
    for (uint32_t p = 0; p < plan->band_count; p++)
        for (uint32_t y = 0; y < plan->height; y++)
            for (uint32_t x = 0; x < plan->width; x++) {
                uint32_t band = plan->bands ? plan->bands[p] - 1 : p;
                bool planar = storage->planes > 1;
                uint64_t want =
                    sample_at(storage, blocks + (planar ? band * storage->block_bytes : 0),
                              plan->x + x, plan->y + y, planar ? 0 : band, is_signed);
                const uint8_t *at =
                    (const uint8_t *)target->raster.data + (int64_t)p * target->raster.stride_band +
                    (int64_t)y * target->raster.stride_y + (int64_t)x * target->raster.stride_x;
                wrong += memcmp(at, low_bytes(&want, size), size) != 0;
            }
    return wrong;
}

/* Bytes between the samples of a spread raster must stay as they were. */
static int spoilt_gaps(const struct target *target, int layout, size_t size) {
    int spoilt = 0;
    for (size_t i = 0; layout == SPREAD && i < target->bytes; i++)
        spoilt += i % (3 * size) >= size && target->memory[i] != 0xA5;
    return spoilt;
}

struct window {
    uint32_t x, y, width, height;
};

/* As if the memory were the first rows of a raster that no cache holds. */
static void declare_large(cogpu_raster *raster) {
    raster->height = 1 << 28;
}

static int faults_in(const cogpu_storage *storage, struct window w, const uint32_t *bands,
                     uint32_t band_count, int layout, bool is_signed, bool is_large) {
    cogpu_read_plan plan;
    cogpu_worker worker = {0};
    uint8_t *blocks = malloc(storage->block_bytes * storage->planes);
    if (!blocks)
        abort();
    for (size_t i = 0; i < storage->block_bytes * storage->planes; i++)
        blocks[i] = noise();
    cogpu_plan_read(storage, w.x, w.y, w.width, w.height, bands, band_count, &plan);
    struct target target = target_for(storage, w.width, w.height, plan.band_count, layout);
    int wrong = 0;
    if (is_large)
        declare_large(&target.raster);
    for (uint64_t i = 0; i < plan.count; i++) {
        cogpu_block block = cogpu_plan_block(&plan, i);
        wrong +=
            cogpu_cpu_unpack(&worker, &plan, &block, blocks + block.index * storage->block_bytes,
                             true, &target.raster, NULL) != COGPU_OK;
    }
    wrong += wrong_samples(&plan, &target, blocks, is_signed) +
             spoilt_gaps(&target, layout, cogpu_type_bytes(storage->type));
    cogpu_worker_close(&worker);
    free(target.memory);
    free(blocks);
    return wrong;
}

static int faults(const cogpu_storage *storage, struct window w, const uint32_t *bands,
                  uint32_t band_count, int layout, bool is_signed) {
    return faults_in(storage, w, bands, band_count, layout, is_signed, false) +
           faults_in(storage, w, bands, band_count, layout, is_signed, true);
}

static void test_every_depth(void) {
    static const struct window windows[] = {
        {0, 0, 13, 3}, {1, 1, 12, 2}, {7, 0, 1, 3}, {12, 2, 1, 1}, {3, 1, 5, 1}};
    for (uint32_t bits = 1; bits <= 32; bits++)
        for (int is_signed = 0; is_signed < 2; is_signed++)
            for (uint32_t bands = 1; bands <= 5; bands += 2)
                for (int planar = 0; planar < 2; planar++)
                    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
                        cogpu_storage storage =
                            make(13, 3, bands, planar, bits, type_for(bits, is_signed));
                        CHECK(faults(&storage, windows[i], NULL, 0, (int)i % LAYOUTS, is_signed) ==
                              0);
                    }
}

/* Whole samples of every size, pixels of 1 to 6 bands, rows below and above the vectors' length. */
static void test_every_interleave(void) {
    static const cogpu_type types[] = {COGPU_TYPE_U8, COGPU_TYPE_I16, COGPU_TYPE_F32,
                                       COGPU_TYPE_U64};
    for (size_t t = 0; t < 4; t++)
        for (uint32_t bands = 1; bands <= 6; bands++)
            for (uint32_t width = 1; width <= 40; width += 3)
                for (int layout = 0; layout < LAYOUTS; layout++)
                    for (int planar = 0; planar < 2; planar++) {
                        uint32_t bits = 8 * (uint32_t)cogpu_type_bytes(types[t]);
                        cogpu_storage storage = make(width, 3, bands, planar, bits, types[t]);
                        struct window all = {0, 0, width, 3};
                        struct window some = {width / 3, 1, width - width / 3, 2};
                        CHECK(faults(&storage, all, NULL, 0, layout, false) == 0);
                        CHECK(faults(&storage, some, NULL, 0, layout, false) == 0);
                    }
}

/* T034 */
static void test_lists_of_bands(void) {
    static const uint32_t lists[][5] = {{1}, {4}, {4, 3, 2, 1}, {2, 2, 2}, {1, 4, 1, 4, 1}};
    static const uint32_t counts[] = {1, 1, 4, 3, 5};
    for (size_t i = 0; i < 5; i++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (int planar = 0; planar < 2; planar++)
                for (uint32_t bits = 4; bits <= 16; bits += 4) {
                    cogpu_storage storage = make(37, 4, 4, planar, bits, type_for(bits, false));
                    struct window window = {5, 1, 30, 3};
                    CHECK(faults(&storage, window, lists[i], counts[i], layout, false) == 0);
                }
}

static float float24(uint8_t low, uint8_t middle, uint8_t high) {
    cogpu_storage storage = make(1, 1, 1, false, 24, COGPU_TYPE_F32);
    const bool big = COGPU_HOST_BIG_ENDIAN;
    uint8_t row[3] = {big ? high : low, middle, big ? low : high};
    float value = 0;
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .data = &value,
                           .type = COGPU_TYPE_F32,
                           .bands = 1,
                           .width = 1,
                           .height = 1,
                           .stride_band = 4,
                           .stride_y = 4,
                           .stride_x = 4};
    cogpu_read_plan plan;
    cogpu_worker worker = {0};
    cogpu_plan_read(&storage, 0, 0, 1, 1, NULL, 0, &plan);
    cogpu_block block = cogpu_plan_block(&plan, 0);
    CHECK(cogpu_cpu_unpack(&worker, &plan, &block, row, true, &raster, NULL) == COGPU_OK);
    cogpu_worker_close(&worker);
    return value;
}

/* T026: 1 sign, 7 exponent (bias 63), 16 mantissa. */
static void test_float24(void) {
    CHECK(float24(0, 0, 0x3F) == 1 && float24(0, 0, 0xBF) == -1 && float24(0, 0, 0x40) == 2);
    CHECK(float24(0, 0x80, 0x3F) == 1.5f && float24(1, 0, 0x3F) == 1 + ldexpf(1, -16));
    CHECK(float24(0, 0, 0) == 0 && signbit(float24(0, 0, 0x80)));
    CHECK(isinf(float24(0, 0, 0x7F)) && float24(0, 0, 0xFF) < 0 && isnan(float24(1, 0, 0x7F)));
    CHECK(float24(1, 0, 0) == ldexpf(1, -78) && float24(0, 0x80, 0) == ldexpf(1, -63));
    CHECK(float24(0xFF, 0xFF, 0) == ldexpf(65535, -78));
    CHECK(float24(0, 0, 1) == ldexpf(1, -62));
    CHECK(float24(0xFF, 0xFF, 0x7E) == ldexpf(2 - ldexpf(1, -16), 63));
}

static int wrong_fill(const cogpu_storage *storage, int layout, const uint32_t *bands,
                      uint32_t band_count) {
    size_t size = cogpu_type_bytes(storage->type);
    cogpu_read_plan plan;
    cogpu_plan_read(storage, 2, 1, 6, 2, bands, band_count, &plan);
    struct target target = target_for(storage, 6, 2, plan.band_count, layout);
    for (uint64_t i = 0; i < plan.count; i++) {
        cogpu_block block = cogpu_plan_block(&plan, i);
        cogpu_cpu_fill(&plan, &block, &target.raster);
    }
    int wrong = spoilt_gaps(&target, layout, size);
    size_t step = layout == SPREAD ? 3 * size : size;
    for (size_t at = 0; at + size <= target.bytes; at += step)
        wrong += memcmp(target.memory + at, storage->format.fill, size) != 0;
    free(target.memory);
    return wrong;
}

/* T047: what a block without data becomes. */
static void test_fill(void) {
    static const cogpu_type types[] = {COGPU_TYPE_U8, COGPU_TYPE_U16, COGPU_TYPE_F32,
                                       COGPU_TYPE_F64, COGPU_TYPE_CF64};
    static const uint32_t bands[] = {3, 1};
    for (size_t t = 0; t < 5; t++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (int planar = 0; planar < 2; planar++) {
                uint32_t bits = 8 * (uint32_t)cogpu_type_bytes(types[t]);
                cogpu_storage storage = make(9, 4, 3, planar, bits, types[t]);
                for (uint8_t i = 0; i < 16; i++)
                    storage.format.fill[i] = (uint8_t)(i + 1);
                CHECK(wrong_fill(&storage, layout, NULL, 0) == 0);
                CHECK(wrong_fill(&storage, layout, bands, 2) == 0);
            }
}

static int faults_of_filters(const cogpu_storage *storage, uint32_t x, int layout, bool is_large) {
    const uint32_t width = storage->block_width - 2 * x, height = storage->block_height;
    size_t bytes = storage->block_bytes, row_bytes = storage->format.row_bytes;
    uint8_t *before = malloc(bytes), *after = malloc(bytes), *copy = malloc(bytes);
    if (!before || !after || !copy)
        abort();
    for (size_t i = 0; i < bytes; i++)
        before[i] = copy[i] = noise();
    cogpu_cpu_undo_filters(storage, copy, height, storage->block_width, after, (int64_t)row_bytes,
                           false);
    cogpu_read_plan plan;
    cogpu_worker worker = {0};
    cogpu_plan_read(storage, x, 0, width, height, NULL, 0, &plan);
    cogpu_block block = cogpu_plan_block(&plan, 0);
    struct target target = target_for(storage, width, height, plan.band_count, layout);
    if (is_large)
        declare_large(&target.raster);
    int wrong =
        cogpu_cpu_unpack(&worker, &plan, &block, before, false, &target.raster, NULL) != COGPU_OK;
    wrong += wrong_samples(&plan, &target, after, false);
    cogpu_worker_close(&worker);
    free(target.memory);
    free(before);
    free(after);
    free(copy);
    return wrong;
}

/* Filters undone by unpack: the same as undone before. Blocks of few rows, and of more than are
 * undone at once. */
static void test_filters_undone_by_unpack(void) {
    static const uint32_t heights[] = {2, 300};
    for (uint32_t bands = 1; bands <= 5; bands++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            for (uint32_t x = 0; x < 20; x += 9)
                for (uint32_t i = 0; i < 8; i++) {
                    bool is_float = i & 1;
                    cogpu_storage storage =
                        make(40, heights[i >> 1 & 1], bands, false, is_float ? 32 : 16,
                             is_float ? COGPU_TYPE_F32 : COGPU_TYPE_U16);
                    storage.predictor = is_float ? 3 : 2;
                    CHECK(faults_of_filters(&storage, x, layout, i & 4) == 0);
                }
}

TESTS(unpack) {
    RUN(test_every_depth);
    RUN(test_every_interleave);
    RUN(test_lists_of_bands);
    RUN(test_float24);
    RUN(test_fill);
    RUN(test_filters_undone_by_unpack);
    return FINISH();
}
