/*
 * pack on the device against cpu/pack.c: random profiles of all types, depths, predictors, layouts
 * of file and raster, tiles and strips of all sizes, masks, sparse blocks, NaN that becomes nodata.
 * The raster's memory ends with its last sample, and all memory around the blocks is compared, too.
 */
#include "cpu/pack.h"
#include "kernels/pack/pack_args.h"

#include "support/gpu_step_test.h"
#include "support/test.h"

static cogpu_error error;

static uint32_t min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* ---- profiles ---- */

static uint32_t any_side(uint32_t most) {
    return 1 + draw(draw(4) ? min_u32(most, 70) : most);
}

static const char *any_nodata(cogpu_type type) {
    static const char *const texts[] = {NULL, "0", "7", "nan", "-9999"};
    bool is_real = type == COGPU_TYPE_F16 || type == COGPU_TYPE_F32 || type == COGPU_TYPE_F64;
    return texts[draw(is_real ? 5 : 3)];
}

static cogpu_profile any_profile(void) {
    static const char *const codecs[] = {"lzw", "deflate", "lzw", "packbits", "none"};
    cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                             .type = (cogpu_type)(COGPU_TYPE_U8 + draw(COGPU_TYPE_CF64)),
                             .bands = draw(8) ? 1 + draw(5) : 1 + draw(280),
                             .interleave = draw(3) == 0,
                             .strips = draw(3) == 0,
                             .codec = codecs[draw(5)],
                             .predictor = (int)draw(4),
                             .sparse = (int)draw(2),
                             .mask = draw(3) == 0};
    size_t pixel = profile.bands * cogpu_type_bytes(profile.type);
    profile.width = any_side((uint32_t)(20000 / pixel) + 20);
    profile.height = any_side(min_u32(300, (uint32_t)(60000 / (pixel * profile.width)) + 20));
    profile.nodata = any_nodata(profile.type);
    profile.nan_is_nodata = (int)draw(2);
    if (profile.type == COGPU_TYPE_U8 && draw(2))
        profile.bits = 1 + draw(8);
    if (profile.type == COGPU_TYPE_U16 && draw(2))
        profile.bits = 9 + draw(8);
    profile.block_height = profile.strips ? draw(2) * (1 + draw(40)) : 16 * (1 + draw(4));
    if (!profile.strips)
        profile.block_width = 16 * (1 + draw(draw(3) ? 5 : (uint32_t)(12000 / pixel) / 16 + 1));
    return profile;
}

/* ---- rasters ---- */

/* A raster in `bytes` bytes of memory, at `skip`. */
struct laid {
    cogpu_raster raster;
    size_t bytes, skip;
};

/* Bands first, bands last or columns first, with gaps or without, and any side turned round. */
static struct laid any_raster(cogpu_type type, uint32_t bands, uint32_t height, uint32_t width) {
    const int64_t size = (int64_t)cogpu_type_bytes(type), gap = draw(3) ? 0 : draw(5);
    struct laid laid = {.raster = {.struct_size = sizeof(cogpu_raster),
                                   .type = type,
                                   .bands = bands,
                                   .height = height,
                                   .width = width}};
    cogpu_raster *raster = &laid.raster;
    const uint32_t order = draw(4), lengths[3] = {bands, height, width};
    int64_t *const strides[3] = {&raster->stride_band, &raster->stride_y, &raster->stride_x};
    static const int orders[4][3] = {{2, 1, 0}, {0, 2, 1}, {1, 2, 0}, {0, 2, 1}};
    int64_t stride = size + gap, last = 0;
    laid.skip = draw(2) ? 0 : draw(20);
    for (int i = 0; i < 3; i++) {
        int axis = orders[order][i];
        *strides[axis] = stride;
        last += stride * (lengths[axis] - 1);
        stride = stride * lengths[axis] + (draw(3) ? 0 : draw(40));
    }
    laid.bytes = laid.skip + (size_t)(last + size);
    for (int axis = 0; axis < 3; axis++)
        if (draw(5) == 0) {
            laid.skip += (size_t)(*strides[axis] * (lengths[axis] - 1));
            *strides[axis] = -*strides[axis];
        }
    return laid;
}

static uint8_t *sample_of(const cogpu_raster *raster, uint32_t b, uint32_t y, uint32_t x) {
    return (uint8_t *)raster->data + b * raster->stride_band + y * raster->stride_y +
           x * raster->stride_x;
}

static bool is_nan(const uint8_t *sample, cogpu_type type) {
    uint64_t value = 0;
    memcpy(&value, sample, min_u32((uint32_t)cogpu_type_bytes(type), sizeof value));
    return type == COGPU_TYPE_F16   ? (value & 0x7FFF) > 0x7C00
           : type == COGPU_TYPE_F32 ? (value & 0x7FFFFFFF) > 0x7F800000
           : type == COGPU_TYPE_F64 ? (value & INT64_MAX) > 0x7FF0000000000000
                                    : false;
}

enum contents { NOISE, SMOOTH, FILL, NEARLY_FILL, CONTENTS };

static void draw_sample(const cogpu_write_plan *plan, enum contents contents, uint32_t x,
                        uint8_t *sample) {
    const size_t size = cogpu_type_bytes(plan->type);
    const bool is_fill = contents == FILL || (contents == NEARLY_FILL && draw(2000));
    for (size_t i = 0; i < size; i++)
        sample[i] = (uint8_t)(is_fill              ? plan->fill[i]
                              : contents == SMOOTH ? x * (i + 1) / 3 + draw(3)
                                                   : draw(256));
    if (draw(contents >= FILL ? 3000 : 9) == 0 && size > 1) /* an infinity or a NaN */
        memset(sample + size - 2, 0xFF, 2);
    if (contents == FILL && is_nan(plan->fill, plan->type)) /* NaN of any kind are fill, too */
        sample[0] = (uint8_t)draw(256);
}

static void fill_raster(const cogpu_write_plan *plan, const cogpu_raster *raster) {
    enum contents contents = (enum contents)draw(CONTENTS);
    for (uint32_t b = 0; b < raster->bands; b++)
        for (uint32_t y = 0; y < raster->height; y++)
            for (uint32_t x = 0; x < raster->width; x++)
                draw_sample(plan, contents, x, sample_of(raster, b, y, x));
}

static void replace_nan(const cogpu_write_plan *plan, const cogpu_raster *raster) {
    for (uint32_t b = 0; b < raster->bands; b++)
        for (uint32_t y = 0; y < raster->height; y++)
            for (uint32_t x = 0; x < raster->width; x++)
                if (is_nan(sample_of(raster, b, y, x), plan->type))
                    memcpy(sample_of(raster, b, y, x), plan->fill, cogpu_type_bytes(plan->type));
}

/* ---- as the host does it: the steps of write/blocks.c ---- */

static void cut_on_host(const cogpu_write_plan *plan, const cogpu_block_grid *grid,
                        const cogpu_new_block *block, const struct cogpu_pack_block *cut,
                        const cogpu_raster *rows, const cogpu_raster *mask, uint8_t *decoded,
                        uint32_t *size) {
    static const uint8_t invalid[16];
    const bool is_mask = block->plane == plan->planes;
    cogpu_raster from = is_mask ? *mask : *rows;
    size_t bytes = cogpu_plan_block_bytes(plan, grid, block), decoded_bytes = 0;
    uint8_t *cut_bytes = allocate_host(bytes), *spare = allocate_host(bytes);
    from.data = sample_of(&from, is_mask ? 0 : block->plane, cut->y, cut->x);
    from.width = block->width;
    from.height = block->height;
    from.bands = is_mask || plan->planes > 1 ? 1 : plan->bands;
    if (is_mask)
        cogpu_cpu_pack_mask(grid, block, &from, cut_bytes);
    else
        cogpu_cpu_pack_block(plan, grid, block, &from, cut_bytes);
    *size = plan->is_sparse &&
                    cogpu_cpu_is_uniform(cut_bytes, bytes, is_mask ? COGPU_TYPE_U8 : plan->type,
                                         is_mask ? invalid : plan->fill)
                ? COGPU_GPU_SPARSE
                : cut->size;
    if (!is_mask && cogpu_plan_is_packed(plan))
        cogpu_cpu_pack_bits(plan, cut_bytes, block->rows, bytes / block->rows);
    else if (!is_mask)
        cogpu_cpu_predict(plan, cut_bytes, block->rows, bytes / block->rows, spare);
    cogpu_plan_encoding(plan, grid, block, &decoded_bytes);
    memcpy(decoded, cut_bytes, decoded_bytes);
    free(cut_bytes);
    free(spare);
}

/* ---- a batch ---- */

/* All blocks from some row of blocks on: they begin with the raster's first row. */
static uint32_t list_blocks(const cogpu_write_plan *plan, const cogpu_block_grid *grid,
                            uint32_t top, cogpu_new_block *blocks,
                            struct cogpu_pack_block *packed_blocks, uint64_t *end) {
    uint32_t count = 0;
    for (uint32_t row = top; row < grid->down; row++)
        for (uint32_t column = 0; column < grid->across; column++)
            for (uint32_t p = 0; p < plan->planes + plan->has_mask; p++, count++) {
                size_t bytes;
                blocks[count] = cogpu_plan_new_block(plan, grid, row, column, p);
                cogpu_plan_encoding(plan, grid, &blocks[count], &bytes);
                packed_blocks[count] =
                    cogpu_gpu_pack_block_of(plan, grid, &blocks[count], top * grid->block_height,
                                            *end, draw(2) ? COGPU_GPU_TO_ENCODE : (uint32_t)bytes);
                *end += gpu_test_align(bytes) + COGPU_GPU_ALIGN;
            }
    return count;
}

/* Prints what was cut wrongly, so that it can be found. */
static bool is_same(const cogpu_write_plan *plan, const cogpu_block_grid *grid, const uint8_t *got,
                    const uint8_t *expected, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i++)
        if (got[i] != expected[i]) {
            printf("byte %llu: %u, expected %u; %s, %u bands of %u planes, predictor %u, %u bits, "
                   "%u x %u in %u x %u\n",
                   (unsigned long long)i, got[i], expected[i], cogpu_type_name(plan->type),
                   plan->bands, plan->planes, plan->predictor, plan->encoding.format.bits,
                   grid->width, grid->height, grid->block_width, grid->block_height);
            return false;
        }
    return true;
}

static bool cuts_as_host(const cogpu_write_plan *given) {
    const cogpu_gpu_driver *calls = gpu->calls;
    const cogpu_write_plan plan = *given;
    const cogpu_block_grid *grid = &plan.levels[0];
    const uint32_t top = draw(2) ? 0 : draw(grid->down),
                   height = grid->height - top * grid->block_height;
    const uint32_t most = grid->across * (grid->down - top) * (plan.planes + 1);
    struct laid laid = any_raster(plan.type, plan.bands, height, grid->width);
    struct laid laid_mask = any_raster(COGPU_TYPE_U8, 1, height, grid->width);
    cogpu_new_block *blocks = allocate_host(most * sizeof *blocks);
    struct cogpu_pack_block *packed_blocks = allocate_host(most * sizeof *packed_blocks);
    uint8_t *pixels = allocate_host(laid.bytes), *valid = allocate_host(laid_mask.bytes);
    uint64_t end = COGPU_GPU_ALIGN;
    uint32_t count = list_blocks(&plan, grid, top, blocks, packed_blocks, &end);
    uint8_t *decoded = allocate_host(end), *expected = allocate_host(end);
    uint32_t *sizes = allocate_host(count * sizeof *sizes),
             *expected_sizes = allocate_host(count * sizeof *sizes);
    const uint32_t invalid = draw(3);
    struct cogpu_gpu_packing packing;

    memset(pixels, 0x5A, laid.bytes);
    laid.raster.data = pixels + laid.skip;
    fill_raster(&plan, &laid.raster);
    for (size_t i = 0; i < laid_mask.bytes; i++)
        valid[i] = (uint8_t)(invalid == 0 ? 0 : draw(invalid == 1 ? 3 : 5000) ? 0 : 1 + draw(255));
    laid_mask.raster.data = valid + laid_mask.skip;
    memset(decoded, GPU_TEST_GUARD, end);
    memset(sizes, 0xEE, count * sizeof *sizes);
    uint8_t *device_pixels = upload(pixels, laid.bytes),
            *device_valid = upload(valid, laid_mask.bytes);
    void *device_packed_blocks = upload(packed_blocks, count * sizeof *packed_blocks);
    uint8_t *device_decoded = upload(decoded, end);
    uint32_t *device_sizes = upload(sizes, count * sizeof *sizes);
    cogpu_raster rows = laid.raster, mask = laid_mask.raster;
    rows.data = device_pixels + laid.skip;
    mask.data = device_valid + laid_mask.skip;
    gpu_test_need(cogpu_gpu_describe_packing(&plan, grid, &rows, plan.has_mask ? &mask : NULL,
                                             &packing, &error),
                  &error);
    gpu_test_need(cogpu_gpu_pack(gpu, &packing, device_packed_blocks, packed_blocks, count,
                                 device_decoded, device_sizes, stream, &error),
                  &error);
    gpu_test_need(calls->copy_down(gpu, decoded, device_decoded, end, stream, &error), &error);
    gpu_test_need(calls->copy_down(gpu, sizes, device_sizes, count * sizeof *sizes, stream, &error),
                  &error);
    uint8_t *after = allocate_host(laid.bytes);
    gpu_test_need(calls->copy_down(gpu, after, device_pixels, laid.bytes, stream, &error), &error);
    gpu_test_need(calls->finish_stream(gpu, stream, &error), &error);
    bool same = memcmp(after, pixels, laid.bytes) == 0;

    if (plan.replaces_nan)
        replace_nan(&plan, &laid.raster);
    memset(expected, GPU_TEST_GUARD, end);
    for (uint32_t i = 0; i < count; i++)
        cut_on_host(&plan, grid, &blocks[i], &packed_blocks[i], &laid.raster, &laid_mask.raster,
                    expected + packed_blocks[i].to, &expected_sizes[i]);
    same = is_same(&plan, grid, decoded, expected, end) && same &&
           memcmp(sizes, expected_sizes, count * sizeof *sizes) == 0;

    void *const device[] = {device_pixels, device_valid, device_packed_blocks, device_decoded,
                            device_sizes};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        calls->release(gpu, device[i]);
    void *const host[] = {blocks,   packed_blocks, pixels,         valid, decoded,
                          expected, sizes,         expected_sizes, after};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
    return same;
}

static void test_any_profile(void) {
    int different = 0;
    for (int i = 0; i < 100; i++) {
        cogpu_write_plan plan;
        cogpu_profile profile = any_profile();
        while (cogpu_plan_write(&profile, &plan, &error) != COGPU_OK)
            profile = any_profile();
        different += !cuts_as_host(&plan);
    }
    CHECK(different == 0);
}

/* What chance brings together too seldom: NaN of any kind that are fill, complex samples of which
 * one part is, pixels too large to be held that are packed, planes in many pieces. */
static void test_rare_profiles(void) {
    const cogpu_profile profiles[] = {{.struct_size = sizeof(cogpu_profile),
                                       .type = COGPU_TYPE_F32,
                                       .bands = 1,
                                       .width = 50,
                                       .height = 30,
                                       .sparse = 1,
                                       .nodata = "nan"},
                                      {.struct_size = sizeof(cogpu_profile),
                                       .type = COGPU_TYPE_F16,
                                       .bands = 2,
                                       .width = 50,
                                       .height = 30,
                                       .sparse = 1,
                                       .nodata = "nan"},
                                      {.struct_size = sizeof(cogpu_profile),
                                       .type = COGPU_TYPE_CF64,
                                       .bands = 1,
                                       .width = 60,
                                       .height = 50,
                                       .sparse = 1},
                                      {.struct_size = sizeof(cogpu_profile),
                                       .type = COGPU_TYPE_U8,
                                       .bands = 301,
                                       .width = 5,
                                       .height = 4,
                                       .strips = 1,
                                       .bits = 3},
                                      {.struct_size = sizeof(cogpu_profile),
                                       .type = COGPU_TYPE_U16,
                                       .bands = 131,
                                       .width = 3,
                                       .height = 4,
                                       .strips = 1,
                                       .bits = 11},
                                      {.struct_size = sizeof(cogpu_profile),
                                       .type = COGPU_TYPE_F64,
                                       .bands = 33,
                                       .width = 20,
                                       .height = 4,
                                       .strips = 1},
                                      {.struct_size = sizeof(cogpu_profile),
                                       .type = COGPU_TYPE_F64,
                                       .bands = 3,
                                       .width = 700,
                                       .height = 4,
                                       .strips = 1},
                                      {.struct_size = sizeof(cogpu_profile),
                                       .type = COGPU_TYPE_U64,
                                       .bands = 1,
                                       .width = 1300,
                                       .height = 4,
                                       .strips = 1,
                                       .nodata = "5"}};
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++) {
        cogpu_profile profile = profiles[i];
        int different = 0;
        if (!profile.strips)
            profile.block_width = profile.block_height = 16;
        for (int turn = 0; turn < 12; turn++) {
            cogpu_write_plan plan;
            gpu_test_need(cogpu_plan_write(&profile, &plan, &error), &error);
            different += !cuts_as_host(&plan);
        }
        CHECK(different == 0);
    }
}

static void test_blocks_that_are_too_large_are_refused(void) {
    cogpu_profile profile = {.struct_size = sizeof(cogpu_profile),
                             .type = COGPU_TYPE_F64,
                             .bands = 1,
                             .width = 10000,
                             .height = 10000,
                             .block_width = 8192,
                             .block_height = 8192};
    cogpu_write_plan plan;
    struct cogpu_gpu_packing packing;
    cogpu_raster rows = {.struct_size = sizeof(cogpu_raster), .type = COGPU_TYPE_F64, .bands = 1};
    gpu_test_need(cogpu_plan_write(&profile, &plan, &error), &error);
    CHECK(cogpu_gpu_describe_packing(&plan, &plan.levels[0], &rows, NULL, &packing, &error) ==
          COGPU_UNSUPPORTED);
}

TESTS(kernel_pack) {
    open_gpu(test_argc, test_argv);
    RUN(test_any_profile);
    RUN(test_rare_profiles);
    RUN(test_blocks_that_are_too_large_are_refused);
    close_gpu();
    return FINISH();
}
