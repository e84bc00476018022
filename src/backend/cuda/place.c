/*
 * Takes a plan and a raster on the device, hands on what the kernels of cuda_place.cu have to know,
 * and launches them.
 */
#include "backend/cuda/cuda_place.h"

#include "base/bytes.h"
#include "base/checked.h"

#include <string.h>

extern const cogpu_kernel cogpu_kernel_place_whole, cogpu_kernel_place_planes,
    cogpu_kernel_place_bits, cogpu_kernel_place_walk;

_Static_assert(sizeof(struct cogpu_place_args) <= 512, "too much for the arguments of a launch");

/* ---- what the file has: the rules of cpu_restore.c and cpu_place.c ---- */

static bool is_float(cogpu_type type) {
    return type == COGPU_F16 || type == COGPU_F32 || type == COGPU_F64;
}

static bool is_complex(cogpu_type type) {
    return type == COGPU_CI16 || type == COGPU_CI32 || type == COGPU_CF32 || type == COGPU_CF64;
}

static uint32_t swap_of(const cogpu_storage *storage) {
    bool swaps = storage->big_endian != COGPU_HOST_BIG_ENDIAN && storage->predictor != 3;
    return swaps && cogpu_storage_order_unit(storage) > 1 ? cogpu_storage_order_unit(storage) : 0;
}

static enum cogpu_place_way way_of(const cogpu_storage *storage) {
    uint64_t size = cogpu_type_bytes(storage->type);
    if (storage->format.samples * size > COGPU_PLACE_PIXEL)
        return COGPU_PLACE_WALK;
    if (storage->predictor == 3)
        return COGPU_PLACE_PLANES;
    return storage->bits == 8 * size ? COGPU_PLACE_WHOLE : COGPU_PLACE_BITS;
}

/* Pixels that fit, as bytes of the file and as samples. Whole sixteens, so that the next piece is
 * aligned as the first one, and so is each plane. */
static uint32_t piece_pixels_of(const struct cogpu_gpu_pixels *pixels) {
    uint32_t stored_bits = pixels->samples * pixels->bits;
    uint32_t fit = COGPU_PLACE_STAGE / (pixels->samples * pixels->size);
    /* The planes of a piece each begin at a multiple of 16. */
    uint32_t spare = pixels->way == COGPU_PLACE_PLANES && pixels->samples % 16 ? 8 * 15 : 0;
    uint32_t fit_stored = 8 * (COGPU_PLACE_STAGE - spare) / stored_bits;
    if (pixels->way == COGPU_PLACE_PLANES && fit >= pixels->block_width &&
        pixels->block_width * pixels->samples % 16 == 0)
        return pixels->block_width;
    fit = fit < fit_stored ? fit : fit_stored;
    return fit >= 16 ? fit / 16 * 16 : fit;
}

static uint32_t rows_held_of(const struct cogpu_gpu_pixels *pixels) {
    bool fits = pixels->way != COGPU_PLACE_WALK && pixels->piece_pixels >= pixels->block_width &&
                pixels->row_bytes <= COGPU_PLACE_STAGE;
    /* A plane of a row that is held as a whole begins right where the one before ends. */
    uint32_t aligned = pixels->way == COGPU_PLACE_PLANES ? pixels->block_width * pixels->samples
                                                         : pixels->row_bytes;
    return fits && aligned % 16 == 0 ? COGPU_PLACE_STAGE / pixels->row_bytes : 0;
}

static void describe_file(const cogpu_storage *storage, struct cogpu_gpu_pixels *pixels) {
    cogpu_type type = storage->type;
    pixels->type = (uint32_t)type;
    pixels->size = (uint32_t)cogpu_type_bytes(type);
    pixels->bits = storage->bits;
    pixels->predictor = storage->predictor;
    pixels->swap = swap_of(storage);
    pixels->samples = storage->format.samples;
    pixels->block_width = storage->block_width;
    pixels->row_bytes = (uint32_t)storage->format.row_bytes;
    pixels->is_cmyk = storage->colour == COGPU_FROM_CMYK && storage->planes == 1;
    pixels->is_planar = storage->planes > 1;
    pixels->is_signed = type == COGPU_I8 || type == COGPU_I16 || type == COGPU_I32;
    pixels->is_float24 = type == COGPU_F32 && storage->bits == 24;
    pixels->way = (uint32_t)way_of(storage);
    pixels->piece_pixels = pixels->way == COGPU_PLACE_WALK ? 1 : piece_pixels_of(pixels);
    pixels->rows_held = rows_held_of(pixels);
}

/* ---- what the raster has ---- */

/* Whether band p is sample p for all of the file's bands. */
static bool takes_all(const cogpu_read_plan *plan) {
    if (plan->band_count != plan->storage->bands)
        return false;
    for (uint32_t p = 0; plan->bands && p < plan->band_count; p++)
        if (plan->bands[p] != p + 1)
            return false;
    return true;
}

static bool is_scaled(const cogpu_read_plan *plan) {
    return plan->conversion && plan->conversion->bands;
}

static bool needs_list(const cogpu_read_plan *plan) {
    return is_scaled(plan) || (plan->storage->planes == 1 && !takes_all(plan));
}

uint32_t cogpu_gpu_bands_listed(const cogpu_read_plan *plan) {
    return plan->band_count > COGPU_PLACE_BANDS && needs_list(plan) ? plan->band_count : 0;
}

void cogpu_gpu_list_bands(const cogpu_read_plan *plan, struct cogpu_gpu_band *bands) {
    for (uint32_t p = 0; p < plan->band_count; p++) {
        uint32_t band = cogpu_plan_band(plan, p);
        bands[p] =
            (struct cogpu_gpu_band){.sample = plan->storage->planes > 1 ? 0 : band, .scale = 1};
        if (is_scaled(plan)) {
            bands[p].scale = plan->conversion->bands[band].scale;
            bands[p].offset = plan->conversion->bands[band].offset;
        }
    }
}

static cogpu_status describe_bands(const cogpu_read_plan *plan,
                                   const struct cogpu_gpu_band *more_bands,
                                   struct cogpu_gpu_pixels *pixels, cogpu_error *error) {
    uint32_t listed = cogpu_gpu_bands_listed(plan);
    if (listed && !more_bands)
        return cogpu_fail(error, COGPU_UNSUPPORTED, "%u bands need a list of them on the device",
                          listed);
    if (listed)
        pixels->more_bands = more_bands;
    else if (needs_list(plan))
        cogpu_gpu_list_bands(plan, pixels->bands);
    return COGPU_OK;
}

static void describe_raster(const cogpu_read_plan *plan, const cogpu_raster *raster,
                            struct cogpu_gpu_pixels *pixels) {
    pixels->data = raster->data;
    pixels->stride_band = raster->stride_band;
    pixels->stride_y = raster->stride_y;
    pixels->stride_x = raster->stride_x;
    pixels->band_count = plan->band_count;
    pixels->target_type = (uint32_t)raster->type;
    pixels->target_size = (uint32_t)cogpu_type_bytes(raster->type);
    int64_t size = pixels->target_size;
    pixels->in_order = !pixels->is_planar && takes_all(plan);
    pixels->is_flat = pixels->in_order && raster->stride_band == size &&
                      raster->stride_x == size * (int64_t)plan->band_count;
}

/* ---- conversion ---- */

static uint64_t number_of(const uint8_t *sample, uint32_t size) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < size; i++)
        value |= (uint64_t)sample[COGPU_HOST_BIG_ENDIAN ? size - 1 - i : i] << (8 * i);
    return value;
}

static cogpu_status describe_conversion(const cogpu_read_plan *plan, const cogpu_raster *raster,
                                        struct cogpu_gpu_pixels *pixels, cogpu_error *error) {
    cogpu_type from = plan->storage->type;
    const cogpu_conversion *conversion = plan->conversion;
    pixels->scales = is_scaled(plan);
    pixels->converts = conversion || from != raster->type;
    if (!pixels->converts)
        return COGPU_OK;
    pixels->is_mask = conversion && conversion->is_mask;
    if (pixels->is_mask ? from == COGPU_CF64 : is_complex(from))
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "samples of type %s are not converted on the way into a raster",
                          cogpu_type_name(from));
    if (!pixels->is_mask && !is_float(raster->type))
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "samples of type %s are not converted to %s, but to floats only",
                          cogpu_type_name(from), cogpu_type_name(raster->type));
    pixels->has_nodata = conversion && conversion->has_nodata;
    pixels->nodata_is_nan = conversion && conversion->nodata_is_nan;
    for (int i = 0; pixels->has_nodata && i < 2; i++)
        pixels->nodata[i] = number_of(conversion->nodata[i], pixels->size);
    return COGPU_OK;
}

cogpu_status cogpu_gpu_pixels_of(const cogpu_read_plan *plan, const cogpu_raster *raster,
                                 const uint8_t *decoded, const uint32_t *verdicts,
                                 const struct cogpu_gpu_band *more_bands,
                                 struct cogpu_gpu_pixels *pixels, cogpu_error *error) {
    const cogpu_storage *storage = plan->storage;
    *pixels = (struct cogpu_gpu_pixels){.decoded = decoded, .verdicts = verdicts};
    if (cogpu_storage_has_units(storage))
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "YCbCr that is not JPEG is turned into RGB by the host");
    if (storage->format.row_bytes > COGPU_GPU_BLOCK_MAX)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "rows of %llu bytes are too long for the device",
                          (unsigned long long)storage->format.row_bytes);
    describe_file(storage, pixels);
    memcpy(pixels->fill, plan->fill ? plan->fill : storage->format.fill, sizeof pixels->fill);
    describe_raster(plan, raster, pixels);
    TRY(describe_conversion(plan, raster, pixels, error));
    pixels->is_flat = pixels->is_flat && !pixels->scales;
    return describe_bands(plan, more_bands, pixels, error);
}

struct cogpu_placed cogpu_gpu_placed_of(const cogpu_block *block, uint64_t decoded,
                                        uint32_t verdict) {
    return (struct cogpu_placed){.decoded = decoded,
                                 .source_x = block->source_x,
                                 .source_y = block->source_y,
                                 .target_x = block->target_x,
                                 .target_y = block->target_y,
                                 .width = block->width,
                                 .height = block->height,
                                 .plane = block->plane,
                                 .verdict = verdict};
}

/* ---- the step ---- */

/* Few rows to a warp where there are few in all, so that each multiprocessor has some. */
static uint32_t rows_of_warp(const cogpu_gpu *gpu, uint64_t rows) {
    enum { WARPS_BUSY = 32, ROWS_MAX = 16 };
    uint64_t warps = (uint64_t)WARPS_BUSY * (gpu->multiprocessors ? gpu->multiprocessors : 1);
    uint64_t share = rows / warps;
    return share < 1 ? 1 : share > ROWS_MAX ? ROWS_MAX : (uint32_t)share;
}

/* Blocks of threads are counted in 31 bits, and warps in 32. */
static uint32_t blocks_of_launch(uint32_t groups, uint32_t count) {
    uint32_t most = (uint32_t)INT32_MAX / groups;
    return most < 1 ? 1 : most < count ? most : count;
}

cogpu_status cogpu_gpu_place(cogpu_gpu *gpu, const struct cogpu_gpu_pixels *pixels,
                             const struct cogpu_placed *device_blocks,
                             const struct cogpu_placed *blocks, uint32_t count,
                             cogpu_gpu_stream *stream, cogpu_error *error) {
    static const cogpu_kernel *const kernels[] = {[COGPU_PLACE_WHOLE] = &cogpu_kernel_place_whole,
                                                  [COGPU_PLACE_PLANES] = &cogpu_kernel_place_planes,
                                                  [COGPU_PLACE_BITS] = &cogpu_kernel_place_bits,
                                                  [COGPU_PLACE_WALK] = &cogpu_kernel_place_walk};
    struct cogpu_place_args args = {.pixels = *pixels};
    uint32_t height = 1;
    uint64_t rows = 0;
    for (uint32_t i = 0; i < count; i++) {
        rows += blocks[i].height;
        height = blocks[i].height > height ? blocks[i].height : height;
    }
    args.rows = rows_of_warp(gpu, rows);
    args.groups = (uint32_t)divide_up(height, args.rows);
    for (uint32_t first = 0; first < count; first += args.count) {
        args.blocks = device_blocks + first;
        args.count = blocks_of_launch(args.groups, count - first);
        uint64_t warps = (uint64_t)args.groups * args.count;
        uint32_t grid = (uint32_t)divide_up(warps, COGPU_PLACE_WARPS);
        TRY(gpu->calls->launch(gpu, kernels[pixels->way], grid, &args, stream, error));
    }
    return COGPU_OK;
}
