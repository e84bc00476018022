/*
 * unpack on the device against the CPU: the same decoded bytes, every type, depth, predictor, byte
 * order and interleave, windows, band lists and strides. The whole memory of both rasters is
 * compared, so that a changed byte between two samples is found. Conversions of both are compared
 * with a plain model.
 */
#include "cpu/cpu.h"
#include "kernels/unpack/unpack_args.h"

#include "base/checked.h"
#include "support/draw.h"
#include "support/gpu_test.h"
#include "support/test.h"

#include <math.h>
#include <stdlib.h>

static cogpu_gpu *gpu;

static void *must(void *memory) {
    if (!memory)
        abort();
    return memory;
}

/* ---- images ---- */

struct kind {
    cogpu_type type;
    uint32_t bits, predictor;
};

static cogpu_storage make(struct kind kind, uint32_t bands, bool planar, bool big_endian,
                          uint32_t block_width, uint32_t block_height) {
    cogpu_storage storage = {.width = block_width + (draw(2) ? draw(block_width) : 0),
                             .height = block_height + draw(block_height + 1),
                             .bands = bands,
                             .layout = COGPU_LAYOUT_TILES,
                             .block_width = block_width,
                             .block_height = block_height,
                             .planes = planar ? bands : 1,
                             .type = kind.type,
                             .bits = kind.bits,
                             .predictor = kind.predictor,
                             .big_endian = big_endian,
                             .codec = cogpu_codec_find(COMPRESSION_LZW)};
    storage.across = (uint32_t)divide_up(storage.width, block_width);
    storage.down = (uint32_t)divide_up(storage.height, block_height);
    storage.blocks = (uint64_t)storage.across * storage.down * storage.planes;
    storage.format.width = block_width;
    storage.format.height = block_height;
    storage.format.samples = planar ? 1 : bands;
    storage.format.bits = kind.bits;
    storage.format.type = kind.type;
    storage.format.compression = COMPRESSION_LZW;
    storage.format.fill_order = 1;
    storage.format.row_bytes =
        (size_t)divide_up((uint64_t)block_width * storage.format.samples * kind.bits, 8);
    storage.block_bytes = storage.format.row_bytes * block_height;
    for (int i = 0; i < 16; i++)
        storage.format.fill[i] = (uint8_t)draw(256);
    return storage;
}

/* A raster and all of its memory, with random gaps and signs of strides, at any alignment. */
struct target {
    uint8_t *memory;
    size_t bytes, start; /* of band 0, row 0, column 0 */
    cogpu_raster raster; /* its data is `memory` + `start` */
};

enum layout { PACKED, CHUNKY, ANYHOW };

static int64_t flipped(int64_t stride, uint32_t count, size_t *start) {
    if (draw(3))
        return stride;
    *start += (size_t)stride * (count - 1);
    return -stride;
}

static struct target target_for(cogpu_type type, uint32_t bands, uint32_t height, uint32_t width,
                                enum layout layout) {
    struct target target = {.raster = {.struct_size = sizeof(cogpu_raster),
                                       .type = type,
                                       .bands = bands,
                                       .height = height,
                                       .width = width}};
    cogpu_raster *raster = &target.raster;
    int64_t size = (int64_t)cogpu_type_bytes(type), gap = layout == ANYHOW ? draw(7) : 0;
    bool chunky = layout == CHUNKY || (layout == ANYHOW && draw(2));
    raster->stride_x = (chunky ? bands * size : size) + gap;
    raster->stride_y = raster->stride_x * width + (layout == ANYHOW ? draw(20) : 0);
    raster->stride_band = chunky ? size : raster->stride_y * height;
    target.bytes = (size_t)(raster->stride_x * (width - 1) + raster->stride_y * (height - 1) +
                            raster->stride_band * (bands - 1) + size);
    if (layout == ANYHOW) {
        target.start = draw(17);
        target.bytes += target.start;
        raster->stride_x = flipped(raster->stride_x, width, &target.start);
        raster->stride_y = flipped(raster->stride_y, height, &target.start);
        raster->stride_band = flipped(raster->stride_band, bands, &target.start);
    }
    target.memory = must(malloc(target.bytes));
    memset(target.memory, 0xA5, target.bytes);
    raster->data = target.memory + target.start;
    return target;
}

/* ---- one batch ---- */

struct batch {
    const cogpu_read_plan *plan;
    uint32_t count;
    cogpu_block *blocks;
    struct cogpu_unpack_block *unpacked;
    uint32_t *statuses;
    uint8_t *decoded;
    size_t decoded_bytes;
};

/* Blocks of noise. With `mixed` some have no data and some a bad block_status. */
static struct batch batch_for(const cogpu_read_plan *plan, bool mixed) {
    const cogpu_storage *storage = plan->storage;
    struct batch batch = {.plan = plan, .count = (uint32_t)plan->count};
    batch.blocks = must(calloc(batch.count, sizeof *batch.blocks));
    batch.unpacked = must(calloc(batch.count, sizeof *batch.unpacked));
    batch.statuses = must(calloc(batch.count, sizeof *batch.statuses));
    uint64_t pitch = gpu_test_align(storage->block_bytes), at = COGPU_GPU_ALIGN;
    batch.decoded_bytes = (size_t)(at + pitch * batch.count + COGPU_GPU_SLACK_BYTES);
    batch.decoded = must(malloc(batch.decoded_bytes));
    for (size_t i = 0; i < batch.decoded_bytes; i++)
        batch.decoded[i] = (uint8_t)draw(256);
    for (uint32_t i = 0; i < batch.count; i++, at += pitch) {
        bool is_sparse = mixed && draw(4) == 0;
        uint32_t block_status = batch.count - 1 - i;
        batch.blocks[i] = cogpu_plan_block(plan, i);
        batch.unpacked[i] = cogpu_gpu_unpack_block_of(
            &batch.blocks[i], is_sparse ? COGPU_UNPACK_FILL : at, block_status);
        batch.statuses[block_status] = mixed && draw(6) == 0 ? COGPU_GPU_UNSUPPORTED : 0;
    }
    return batch;
}

static void batch_close(struct batch *batch) {
    free(batch->blocks);
    free(batch->unpacked);
    free(batch->statuses);
    free(batch->decoded);
}

static void place_on_host(const struct batch *batch, const cogpu_raster *raster) {
    const cogpu_storage *storage = batch->plan->storage;
    cogpu_worker worker = {0};
    uint8_t *copy = must(malloc(storage->block_bytes));
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct cogpu_unpack_block *unpacked = &batch->unpacked[i];
        if (batch->statuses[unpacked->block_status])
            continue;
        if (unpacked->decoded == COGPU_UNPACK_FILL) {
            cogpu_cpu_fill(batch->plan, &batch->blocks[i], raster);
            continue;
        }
        memcpy(copy, batch->decoded + unpacked->decoded, storage->block_bytes);
        CHECK(cogpu_cpu_unpack(&worker, batch->plan, &batch->blocks[i], copy,
                               !cogpu_cpu_has_filters(storage), raster, NULL) == COGPU_OK);
    }
    free(copy);
    cogpu_worker_close(&worker);
}

static void *uploaded(const void *from, size_t bytes, cogpu_gpu_stream *stream) {
    cogpu_error error;
    void *memory;
    gpu_test_need(gpu->calls->allocate(gpu, bytes ? bytes : 1, &memory, &error), &error);
    gpu_test_need(gpu->calls->copy_up(gpu, memory, from, bytes, stream, &error), &error);
    return memory;
}

/* Into `target`, which the device works on a copy of. */
static void place_on_device(const struct batch *batch, struct target *target) {
    const cogpu_gpu_driver *calls = gpu->calls;
    cogpu_gpu_stream *stream;
    cogpu_error error;
    struct cogpu_gpu_pixels pixels;
    gpu_test_need(calls->stream_open(gpu, true, &stream, &error), &error);
    uint32_t listed = cogpu_gpu_bands_listed(batch->plan);
    struct cogpu_gpu_band *bands = must(calloc(listed + 1, sizeof *bands));
    if (listed)
        cogpu_gpu_list_bands(batch->plan, bands);
    void *memory[5] = {uploaded(target->memory, target->bytes, stream),
                       uploaded(batch->decoded, batch->decoded_bytes, stream),
                       uploaded(batch->unpacked, batch->count * sizeof *batch->unpacked, stream),
                       uploaded(batch->statuses, batch->count * sizeof *batch->statuses, stream),
                       uploaded(bands, listed * sizeof *bands, stream)};
    cogpu_raster raster = target->raster;
    raster.data = (uint8_t *)memory[0] + target->start;
    gpu_test_need(cogpu_gpu_describe_pixels(batch->plan, &raster, memory[1], memory[3],
                                            listed ? memory[4] : NULL, &pixels, &error),
                  &error);
    gpu_test_need(
        cogpu_gpu_unpack(gpu, &pixels, memory[2], batch->unpacked, batch->count, stream, &error),
        &error);
    gpu_test_need(calls->copy_down(gpu, target->memory, memory[0], target->bytes, stream, &error),
                  &error);
    gpu_test_need(calls->finish_stream(gpu, stream, &error), &error);
    for (int i = 0; i < 5; i++)
        calls->release(gpu, memory[i]);
    calls->stream_close(gpu, stream);
    free(bands);
}

/* ---- without a conversion ---- */

static uint32_t cases, differences;

static void report(const cogpu_storage *storage, const cogpu_read_plan *plan,
                   const cogpu_raster *raster) {
    if (differences++ < 10)
        printf("%s, %u bits, predictor %u, %s, %u bands in %u planes, tiles of %u x %u, window "
               "%u %u %u %u, %s bands, strides %lld %lld %lld\n",
               cogpu_type_name(storage->type), storage->bits, storage->predictor,
               storage->big_endian ? "big" : "little", storage->bands, storage->planes,
               storage->block_width, storage->block_height, plan->x, plan->y, plan->width,
               plan->height, plan->bands ? "listed" : "all", (long long)raster->stride_band,
               (long long)raster->stride_y, (long long)raster->stride_x);
}

/* Since it was last asked. */
static bool all_equal(void) {
    uint32_t found = differences;
    differences = 0;
    return found == 0;
}

enum { LIST_MAX = 12 };

/* A random window and list of bands. */
static void plan_anything(const cogpu_storage *storage, uint32_t *list, cogpu_read_plan *plan) {
    uint32_t x = draw(3) ? 0 : draw(storage->width), y = draw(storage->height);
    uint32_t width = draw(2) ? storage->width - x : 1 + draw(storage->width - x);
    uint32_t height = 1 + draw(storage->height - y), count = 1 + draw(LIST_MAX);
    for (uint32_t i = 0; i < count; i++)
        list[i] = 1 + draw(storage->bands);
    bool listed = draw(3) == 0;
    cogpu_plan_read(storage, x, y, width, height, listed ? list : NULL, count, plan);
}

static void compare(const cogpu_storage *storage, enum layout layout) {
    uint32_t list[LIST_MAX];
    cogpu_read_plan plan;
    plan_anything(storage, list, &plan);
    struct batch batch = batch_for(&plan, true);
    struct target ours =
        target_for(storage->type, plan.band_count, plan.height, plan.width, layout);
    struct target theirs = ours;
    theirs.memory = must(malloc(ours.bytes));
    memcpy(theirs.memory, ours.memory, ours.bytes);
    theirs.raster.data = theirs.memory + theirs.start;
    place_on_host(&batch, &theirs.raster);
    place_on_device(&batch, &ours);
    cases++;
    if (memcmp(ours.memory, theirs.memory, ours.bytes) != 0)
        report(storage, &plan, &ours.raster);
    free(ours.memory);
    free(theirs.memory);
    batch_close(&batch);
}

static const uint32_t widths[] = {1, 2, 3, 16, 31, 33, 64, 100, 200, 256, 300, 700, 1000};

static uint32_t any_width(void) {
    return widths[draw(sizeof widths / sizeof *widths)];
}

static void compare_kind(struct kind kind) {
    for (uint32_t bands = 1; bands <= 5; bands++)
        for (int planar = 0; planar < 2; planar++)
            for (int big = 0; big < 2; big++)
                for (int layout = PACKED; layout <= ANYHOW; layout++) {
                    cogpu_storage storage =
                        make(kind, bands, planar, big, any_width(), 1 + draw(2));
                    compare(&storage, (enum layout)layout);
                }
}

static void test_whole_samples(void) {
    static const struct kind kinds[] = {
        {COGPU_TYPE_U8, 8, 1},    {COGPU_TYPE_I8, 8, 2},    {COGPU_TYPE_U8, 8, 2},
        {COGPU_TYPE_I16, 16, 1},  {COGPU_TYPE_U16, 16, 2},  {COGPU_TYPE_U32, 32, 1},
        {COGPU_TYPE_I32, 32, 2},  {COGPU_TYPE_I64, 64, 1},  {COGPU_TYPE_U64, 64, 2},
        {COGPU_TYPE_F16, 16, 2},  {COGPU_TYPE_F32, 32, 1},  {COGPU_TYPE_F32, 32, 2},
        {COGPU_TYPE_F64, 64, 1},  {COGPU_TYPE_F64, 64, 2},  {COGPU_TYPE_CI16, 32, 1},
        {COGPU_TYPE_CI16, 32, 2}, {COGPU_TYPE_CI32, 64, 1}, {COGPU_TYPE_CI32, 64, 2},
        {COGPU_TYPE_CF32, 64, 1}, {COGPU_TYPE_CF32, 64, 2}, {COGPU_TYPE_CF64, 128, 1}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        compare_kind(kinds[i]);
    CHECK(all_equal());
}

static void test_planes_of_bytes(void) {
    static const struct kind kinds[] = {{COGPU_TYPE_F16, 16, 3},
                                        {COGPU_TYPE_F32, 24, 3},
                                        {COGPU_TYPE_F32, 32, 3},
                                        {COGPU_TYPE_F64, 64, 3}};
    for (size_t i = 0; i < 4; i++)
        compare_kind(kinds[i]);
    CHECK(all_equal());
}

/* 1 to 31 bits, signed and not, and floats of 24. */
static void test_packed_depths(void) {
    for (uint32_t bits = 1; bits < 32; bits++)
        for (uint32_t bands = 1; bands <= 5; bands++)
            for (int big = 0; big < 2; big++) {
                cogpu_type type = bits <= 8    ? COGPU_TYPE_U8
                                  : bits <= 16 ? COGPU_TYPE_U16
                                               : COGPU_TYPE_U32;
                struct kind kind = {(cogpu_type)(type + draw(2)), bits, 1};
                if (bits % 8 == 0 && bits != 24)
                    continue;
                cogpu_storage storage = make(kind, bands, draw(2), big, any_width(), 1 + draw(2));
                compare(&storage, (enum layout)draw(3));
            }
    compare_kind((struct kind){COGPU_TYPE_U32, 24, 1});
    compare_kind((struct kind){COGPU_TYPE_I32, 24, 1});
    compare_kind((struct kind){COGPU_TYPE_F32, 24, 1});
    CHECK(all_equal());
}

/* Rows in several segments, and pixels that are too large for shared memory. */
static void test_long_rows(void) {
    static const struct kind kinds[] = {
        {COGPU_TYPE_U8, 8, 1},   {COGPU_TYPE_U8, 8, 2},   {COGPU_TYPE_U16, 16, 2},
        {COGPU_TYPE_U32, 32, 2}, {COGPU_TYPE_U64, 64, 2}, {COGPU_TYPE_F16, 16, 3},
        {COGPU_TYPE_F32, 24, 3}, {COGPU_TYPE_F32, 32, 3}, {COGPU_TYPE_F64, 64, 3},
        {COGPU_TYPE_U8, 1, 1},   {COGPU_TYPE_U16, 11, 1}, {COGPU_TYPE_F32, 24, 1}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (uint32_t bands = 1; bands <= 5; bands++) {
            cogpu_storage storage =
                make(kinds[i], bands, false, draw(2), draw(2) ? 5000 : 4900 + draw(300), 1);
            compare(&storage, (enum layout)draw(3));
        }
    CHECK(all_equal());
}

/* So many rows that a warp takes several of them, and holds several at a time. */
static void test_tall_blocks(void) {
    static const struct kind kinds[] = {
        {COGPU_TYPE_U8, 8, 1},   {COGPU_TYPE_U8, 8, 2},   {COGPU_TYPE_U16, 16, 2},
        {COGPU_TYPE_U32, 32, 2}, {COGPU_TYPE_U64, 64, 2}, {COGPU_TYPE_F16, 16, 3},
        {COGPU_TYPE_F32, 24, 3}, {COGPU_TYPE_F32, 32, 3}, {COGPU_TYPE_F64, 64, 3},
        {COGPU_TYPE_U8, 4, 1},   {COGPU_TYPE_U16, 12, 1}, {COGPU_TYPE_F32, 24, 1}};
    uint32_t multiprocessors = gpu->multiprocessors;
    gpu->multiprocessors = 1;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (uint32_t bands = 1; bands <= 4; bands++) {
            uint32_t width = draw(2) ? 16 * (1 + draw(4)) : 1 + draw(70);
            cogpu_storage storage = make(kinds[i], bands, false, draw(2), width, 64 + draw(64));
            compare(&storage, (enum layout)draw(3));
        }
    gpu->multiprocessors = multiprocessors;
    CHECK(all_equal());
}

static void test_many_bands(void) {
    static const uint32_t bands[] = {6, 7, 12, 17, 31, 32, 33, 64, 70, 130, 257, 300};
    static const struct kind kinds[] = {
        {COGPU_TYPE_U8, 8, 1},   {COGPU_TYPE_U8, 8, 2},    {COGPU_TYPE_U16, 16, 2},
        {COGPU_TYPE_U32, 32, 2}, {COGPU_TYPE_U64, 64, 2},  {COGPU_TYPE_F16, 16, 3},
        {COGPU_TYPE_F32, 24, 3}, {COGPU_TYPE_F32, 32, 3},  {COGPU_TYPE_F64, 64, 3},
        {COGPU_TYPE_U8, 3, 1},   {COGPU_TYPE_I16, 12, 1},  {COGPU_TYPE_F32, 24, 1},
        {COGPU_TYPE_I32, 24, 1}, {COGPU_TYPE_CF32, 64, 2}, {COGPU_TYPE_CF64, 128, 1}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t b = 0; b < sizeof bands / sizeof *bands; b++) {
            cogpu_storage storage =
                make(kinds[i], bands[b], false, draw(2), 1 + draw(40), 1 + draw(2));
            compare(&storage, (enum layout)draw(3));
        }
    CHECK(all_equal());
}

/* Bytes of pixels into bands that lie apart, aligned and with a few pixels left over. */
static void test_split_pixels(void) {
    for (uint32_t bands = 3; bands <= 4; bands++)
        for (uint32_t width = 16; width <= 64; width += 4) {
            cogpu_storage storage =
                make((struct kind){COGPU_TYPE_U8, 8, 2}, bands, false, false, width, 4);
            storage.width = width;
            storage.height = 4;
            storage.across = storage.down = 1;
            compare(&storage, PACKED);
            storage.width -= draw(4);
            compare(&storage, PACKED);
        }
    CHECK(all_equal());
}

static void test_cmyk(void) {
    for (uint32_t predictor = 1; predictor <= 2; predictor++)
        for (int i = 0; i < 30; i++) {
            cogpu_storage storage = make((struct kind){COGPU_TYPE_U8, 8, predictor}, 4, i % 5 == 0,
                                         false, any_width(), 2);
            storage.colour = COGPU_FROM_CMYK;
            compare(&storage, (enum layout)(i % 3));
        }
    CHECK(all_equal());
}

/* ---- conversions ---- */

static double half_value(uint16_t half) {
    int exponent = half >> 10 & 31, mantissa = half & 1023;
    double value = exponent == 31  ? (mantissa ? NAN : INFINITY)
                   : exponent == 0 ? ldexp(mantissa, -24)
                                   : ldexp(1024 + mantissa, exponent - 25);
    return half >> 15 ? -value : value;
}

static uint16_t half_bits(double value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    if (isnan(value))
        return 0x7E00;
    if (size >= 65520)
        return sign | 0x7C00;
    int exponent = size < ldexp(1, -14) ? -14 : ilogb(size);
    double steps = nearbyint(ldexp(size, 10 - exponent));
    return (uint16_t)(sign | (uint16_t)(steps + (exponent + 14) * 1024.0));
}

#define VALUE_OF(number)                                                                           \
    {                                                                                              \
        number value_;                                                                             \
        memcpy(&value_, at, sizeof value_);                                                        \
        *wide = (double)value_;                                                                    \
        *narrow = (float)value_;                                                                   \
        break;                                                                                     \
    }

static void value_of(const uint8_t *at, cogpu_type type, double *wide, float *narrow) {
    uint16_t half;
    switch (type) {
    case COGPU_TYPE_U8:
        VALUE_OF(uint8_t)
    case COGPU_TYPE_I8:
        VALUE_OF(int8_t)
    case COGPU_TYPE_U16:
        VALUE_OF(uint16_t)
    case COGPU_TYPE_I16:
        VALUE_OF(int16_t)
    case COGPU_TYPE_U32:
        VALUE_OF(uint32_t)
    case COGPU_TYPE_I32:
        VALUE_OF(int32_t)
    case COGPU_TYPE_U64:
        VALUE_OF(uint64_t)
    case COGPU_TYPE_I64:
        VALUE_OF(int64_t)
    case COGPU_TYPE_F32:
        VALUE_OF(float)
    case COGPU_TYPE_F64:
        VALUE_OF(double)
    default:
        memcpy(&half, at, sizeof half);
        *wide = half_value(half);
        *narrow = (float)*wide;
    }
}

static bool is_nodata(const uint8_t *at, cogpu_type type, const uint8_t *nodata) {
    size_t size = cogpu_type_bytes(type);
    double wide, other;
    float narrow;
    value_of(at, type, &wide, &narrow);
    value_of(nodata, type, &other, &narrow);
    return memcmp(at, nodata, size) == 0 || (type >= COGPU_TYPE_F16 && wide == other);
}

static void model(const uint8_t *at, cogpu_type from, cogpu_type to,
                  const cogpu_conversion *conversion, uint32_t band, uint8_t *sample) {
    bool scales = conversion->bands;
    double scale = scales ? conversion->bands[band].scale : 1;
    double offset = scales ? conversion->bands[band].offset : 0, wide;
    float narrow;
    value_of(at, from, &wide, &narrow);
    bool is_invalid = conversion->has_nodata && is_nodata(at, from, conversion->nodata[0]);
    if (conversion->is_mask) {
        *sample = is_invalid || (conversion->nodata_is_nan && isnan(wide)) ? 0 : 255;
        return;
    }
    if (scales) {
        wide = wide * scale;
        wide = wide + offset;
        narrow = narrow * (float)scale;
        narrow = narrow + (float)offset;
    }
    if (is_invalid)
        wide = narrow = NAN;
    if (isnan(wide))
        wide = fabs((double)NAN);
    if (isnan(narrow))
        narrow = fabsf(NAN);
    uint16_t half = half_bits(scales ? (double)narrow : wide);
    if (to == COGPU_TYPE_F64)
        memcpy(sample, &wide, 8);
    else if (to == COGPU_TYPE_F32)
        memcpy(sample, &narrow, 4);
    else
        memcpy(sample, &half, 2);
}

/* A sample of the batch's pixels becomes nodata. */
static void choose_nodata(const struct target *plain, cogpu_conversion *conversion) {
    cogpu_type type = plain->raster.type;
    size_t size = cogpu_type_bytes(type);
    const uint8_t *sample = plain->memory + draw((uint32_t)(plain->bytes / size)) * size;
    double value;
    float narrow;
    value_of(sample, type, &value, &narrow);
    cogpu_nodata nodata = {.value = type >= COGPU_TYPE_F16 && draw(3) == 0 ? NAN : value};
    memcpy(&nodata.i64, sample, size < 8 ? size : 8);
    memcpy(&nodata.u64, sample, size < 8 ? size : 8);
    cogpu_conversion_nodata(&nodata, type, conversion);
}

/* The CPU backend places the samples as they are, and the model converts them: to floats, or to a
 * mask where `to` is U8. */
static void compare_converted(struct kind kind, cogpu_type to, enum layout layout) {
    uint32_t list[LIST_MAX], bands = 1 + draw(4);
    cogpu_band scales[LIST_MAX];
    cogpu_storage storage = make(kind, bands, draw(4) == 0, draw(2), any_width() % 250 + 1, 2);
    cogpu_conversion conversion = {.bands = draw(2) ? scales : NULL};
    cogpu_read_plan plan;
    plan_anything(&storage, list, &plan);
    struct batch batch = batch_for(&plan, false);
    for (uint32_t i = 0; i < batch.count; i++)
        if (draw(4) == 0)
            batch.unpacked[i].decoded = COGPU_UNPACK_FILL;
    struct target plain = target_for(kind.type, plan.band_count, plan.height, plan.width, PACKED);
    place_on_host(&batch, &plain.raster);
    for (uint32_t band = 0; band < bands; band++)
        scales[band] = (cogpu_band){.struct_size = sizeof(cogpu_band),
                                    .scale = (draw(2000) - 1000.0) / 768,
                                    .offset = draw(1000) / 3.0};
    conversion.is_mask = to == COGPU_TYPE_U8;
    if (conversion.is_mask || draw(2))
        choose_nodata(&plain, &conversion);
    plan.conversion = &conversion;
    struct target ours = target_for(to, plan.band_count, plan.height, plan.width, layout);
    struct target hosts = ours;
    hosts.memory = must(malloc(ours.bytes));
    memcpy(hosts.memory, ours.memory, ours.bytes);
    hosts.raster.data = hosts.memory + hosts.start;
    uint8_t *expected = must(malloc(ours.bytes)), *at = plain.memory;
    memcpy(expected, ours.memory, ours.bytes);
    for (uint32_t p = 0; p < plan.band_count; p++)
        for (uint32_t y = 0; y < plan.height; y++)
            for (uint32_t x = 0; x < plan.width; x++, at += cogpu_type_bytes(kind.type))
                model(at, kind.type, to, &conversion, cogpu_plan_band(&plan, p),
                      expected + (int64_t)ours.start + p * ours.raster.stride_band +
                          y * ours.raster.stride_y + x * ours.raster.stride_x);
    place_on_device(&batch, &ours);
    place_on_host(&batch, &hosts.raster);
    cases++;
    bool by_device = memcmp(ours.memory, expected, ours.bytes) == 0;
    if (!by_device || memcmp(hosts.memory, expected, ours.bytes) != 0) {
        printf("%s, to %s, nodata %d: ", by_device ? "cpu" : "gpu", cogpu_type_name(to),
               conversion.has_nodata);
        report(&storage, &plan, &ours.raster);
    }
    free(ours.memory);
    free(hosts.memory);
    free(plain.memory);
    free(expected);
    batch_close(&batch);
}

static void test_conversions(void) {
    static const struct kind kinds[] = {
        {COGPU_TYPE_U8, 8, 2},   {COGPU_TYPE_I8, 8, 1},   {COGPU_TYPE_U16, 16, 2},
        {COGPU_TYPE_I16, 16, 1}, {COGPU_TYPE_U32, 32, 1}, {COGPU_TYPE_I32, 32, 2},
        {COGPU_TYPE_U64, 64, 1}, {COGPU_TYPE_I64, 64, 2}, {COGPU_TYPE_F16, 16, 1},
        {COGPU_TYPE_F32, 32, 3}, {COGPU_TYPE_F64, 64, 1}, {COGPU_TYPE_U8, 3, 1},
        {COGPU_TYPE_I16, 12, 1}, {COGPU_TYPE_F32, 24, 3}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (cogpu_type to = COGPU_TYPE_F16; to <= COGPU_TYPE_F64; to = (cogpu_type)(to + 1))
            for (int turn = 0; turn < 9; turn++)
                compare_converted(kinds[i], to, (enum layout)(turn % 3));
    CHECK(all_equal());
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int turn = 0; turn < 9; turn++)
            compare_converted(kinds[i], COGPU_TYPE_U8, (enum layout)(turn % 3)); /* a mask */
    CHECK(all_equal());
}

/* Every half there is, and both zeros as nodata. */
static void test_halves(void) {
    enum { COUNT = 1 << 16 };
    static uint8_t expected[COUNT * 4];
    cogpu_storage storage = make((struct kind){COGPU_TYPE_F16, 16, 1}, 1, false, false, COUNT, 1);
    storage.width = COUNT;
    storage.height = storage.across = storage.down = 1;
    storage.blocks = 1;
    cogpu_read_plan plan;
    cogpu_plan_read(&storage, 0, 0, COUNT, 1, NULL, 0, &plan);
    struct batch batch = batch_for(&plan, false);
    cogpu_conversion conversion = {0};
    cogpu_conversion_nodata(&(cogpu_nodata){.value = 0}, COGPU_TYPE_F16, &conversion);
    plan.conversion = &conversion;
    for (uint32_t i = 0; i < COUNT; i++) {
        uint16_t half = (uint16_t)i;
        memcpy(batch.decoded + batch.unpacked[0].decoded + 2 * i, &half, 2);
        model((const uint8_t *)&half, COGPU_TYPE_F16, COGPU_TYPE_F32, &conversion, 0,
              expected + 4 * i);
    }
    struct target target = target_for(COGPU_TYPE_F32, 1, 1, COUNT, PACKED);
    place_on_device(&batch, &target);
    CHECK(memcmp(target.memory, expected, sizeof expected) == 0);
    float first, minus;
    memcpy(&first, target.memory, 4);
    memcpy(&minus, target.memory + 4 * 0x8000, 4);
    CHECK(isnan(first) && isnan(minus));
    free(target.memory);
    batch_close(&batch);
}

/* Values at the edges of a half: ties, denormals, overflow. */
static void test_to_halves(void) {
    enum { COUNT = 4000 };
    cogpu_storage storage = make((struct kind){COGPU_TYPE_F64, 64, 1}, 1, false, false, COUNT, 1);
    storage.width = COUNT;
    storage.height = storage.across = storage.down = 1;
    storage.blocks = 1;
    cogpu_read_plan plan;
    cogpu_plan_read(&storage, 0, 0, COUNT, 1, NULL, 0, &plan);
    struct batch batch = batch_for(&plan, false);
    struct target target = target_for(COGPU_TYPE_F16, 1, 1, COUNT, PACKED);
    double values[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        double half = half_value((uint16_t)draw(1 << 16)), nudge = ldexp(1, -40);
        double step = ldexp(1, half == 0 || !isfinite(half) ? -25 : ilogb(half) - 11);
        values[i] = half + step * (i % 3 - 1.0) *
                               (i % 5 == 0   ? 1 + nudge
                                : i % 5 == 1 ? 1 - nudge
                                             : 1);
        if (i % 7 == 0)
            values[i] = ldexp(draw(1 << 20) / 64.0, -(int)draw(45));
    }
    values[1] = 65519.999, values[2] = 65520, values[3] = -65536, values[4] = 1e300;
    values[5] = ldexp(1, -25), values[6] = ldexp(1.0001, -25), values[7] = 1e-300;
    memcpy(batch.decoded + batch.unpacked[0].decoded, values, sizeof values);
    place_on_device(&batch, &target);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        uint16_t half;
        memcpy(&half, target.memory + 2 * i, 2);
        wrong += half != half_bits(values[i]);
    }
    CHECK(wrong == 0);
    free(target.memory);
    batch_close(&batch);
}

/* ---- what is refused ---- */

static void test_refusals(void) {
    struct cogpu_gpu_pixels pixels;
    cogpu_error error;
    cogpu_read_plan plan;
    cogpu_raster raster = {.struct_size = sizeof(cogpu_raster),
                           .type = COGPU_TYPE_U8,
                           .bands = 3,
                           .height = 1,
                           .width = 8};
    cogpu_storage storage = make((struct kind){COGPU_TYPE_U8, 8, 1}, 3, false, false, 8, 1);
    cogpu_plan_read(&storage, 0, 0, 8, 1, NULL, 0, &plan);
    CHECK(cogpu_gpu_describe_pixels(&plan, &raster, NULL, NULL, NULL, &pixels, &error) == COGPU_OK);
    raster.type = COGPU_TYPE_U16;
    CHECK(cogpu_gpu_describe_pixels(&plan, &raster, NULL, NULL, NULL, &pixels, &error) ==
          COGPU_UNSUPPORTED);
    raster.type = COGPU_TYPE_F32;
    storage.type = COGPU_TYPE_CI16;
    CHECK(cogpu_gpu_describe_pixels(&plan, &raster, NULL, NULL, NULL, &pixels, &error) ==
          COGPU_UNSUPPORTED);
    storage.type = COGPU_TYPE_U8;
    uint32_t list[9] = {1, 2, 3, 1, 2, 3, 1, 2, 3};
    cogpu_plan_read(&storage, 0, 0, 8, 1, list, 9, &plan);
    CHECK(cogpu_gpu_bands_listed(&plan) == 9);
    CHECK(cogpu_gpu_describe_pixels(&plan, &raster, NULL, NULL, NULL, &pixels, &error) ==
          COGPU_UNSUPPORTED);
    raster.type = COGPU_TYPE_U8;
    cogpu_plan_read(&storage, 0, 0, 8, 1, NULL, 0, &plan);
    storage.colour = COGPU_FROM_YCBCR;
    CHECK(cogpu_gpu_describe_pixels(&plan, &raster, NULL, NULL, NULL, &pixels, &error) ==
          COGPU_UNSUPPORTED);
    storage.colour = COGPU_AS_STORED;
    storage.format.row_bytes = (size_t)COGPU_GPU_BLOCK_BYTES_MAX + 1;
    CHECK(cogpu_gpu_describe_pixels(&plan, &raster, NULL, NULL, NULL, &pixels, &error) ==
          COGPU_UNSUPPORTED);
}

TESTS(kernel_unpack) {
    draw_from(test_argc, test_argv);
    gpu = gpu_test_open(draw_state);
    RUN(test_whole_samples);
    RUN(test_planes_of_bytes);
    RUN(test_packed_depths);
    RUN(test_long_rows);
    RUN(test_tall_blocks);
    RUN(test_many_bands);
    RUN(test_split_pixels);
    RUN(test_cmyk);
    RUN(test_conversions);
    RUN(test_halves);
    RUN(test_to_halves);
    RUN(test_refusals);
    printf("%u rasters compared\n", cases);
    gpu->calls->close(gpu);
    return FINISH();
}
