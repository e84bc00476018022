/* Describes a read plan and a raster for the unpack kernels, and launches them. */
#include "base/type.h"
#include "kernels/unpack/unpack_args.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/math.h"
#include "pixel/sample.h"

#include <string.h>

extern const cogpu_kernel cogpu_kernel_unpack_whole, cogpu_kernel_unpack_planes,
    cogpu_kernel_unpack_bits, cogpu_kernel_unpack_large_pixels;

_Static_assert(sizeof(struct cogpu_unpack_args) <= 512, "too much for the arguments of a launch");

/* ---- the file: rules of cpu/undo_filters.c and unpack.c ---- */

static uint32_t swap_of(const cogpu_storage *storage) {
    bool swaps = storage->big_endian != COGPU_HOST_BIG_ENDIAN && storage->predictor != 3;
    return swaps && cogpu_storage_order_unit(storage) > 1 ? cogpu_storage_order_unit(storage) : 0;
}

static enum cogpu_unpack_kind kind_of_rows(const cogpu_storage *storage) {
    uint64_t size = cogpu_type_bytes(storage->type);
    if (storage->format.samples * size > COGPU_UNPACK_PIXEL)
        return COGPU_UNPACK_LARGE_PIXELS;
    if (storage->predictor == 3)
        return COGPU_UNPACK_PLANES;
    return storage->bits == 8 * size ? COGPU_UNPACK_WHOLE : COGPU_UNPACK_BITS;
}

/* Pixels of a segment: they fit as bytes of the file and as samples. A multiple of 16, so that all
 * segments and planes are aligned as the first one is. */
static uint32_t segment_pixels_for(const struct cogpu_gpu_pixels *pixels) {
    uint32_t stored_bits = pixels->samples * pixels->bits;
    uint32_t fit = COGPU_UNPACK_STAGE / (pixels->samples * pixels->size);
    /* Each plane of a segment begins at a multiple of 16 bytes. */
    uint32_t spare = pixels->kind == COGPU_UNPACK_PLANES && pixels->samples % 16 ? 8 * 15 : 0;
    uint32_t fit_stored = 8 * (COGPU_UNPACK_STAGE - spare) / stored_bits;
    if (pixels->kind == COGPU_UNPACK_PLANES && fit >= pixels->block_width &&
        pixels->block_width * pixels->samples % 16 == 0)
        return pixels->block_width;
    fit = min_u32(fit, fit_stored);
    return fit >= 16 ? fit / 16 * 16 : fit;
}

static uint32_t rows_staged_for(const struct cogpu_gpu_pixels *pixels) {
    bool fits = pixels->kind != COGPU_UNPACK_LARGE_PIXELS &&
                pixels->segment_pixels >= pixels->block_width &&
                pixels->row_bytes <= COGPU_UNPACK_STAGE;
    /* In a row staged as a whole, planes follow each other without a gap. */
    uint32_t aligned = pixels->kind == COGPU_UNPACK_PLANES ? pixels->block_width * pixels->samples
                                                           : pixels->row_bytes;
    return fits && aligned % 16 == 0 ? COGPU_UNPACK_STAGE / pixels->row_bytes : 0;
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
    pixels->is_signed = sample_is_signed(type);
    pixels->is_float24 = type == COGPU_TYPE_F32 && storage->bits == 24;
    pixels->kind = (uint32_t)kind_of_rows(storage);
    pixels->segment_pixels =
        pixels->kind == COGPU_UNPACK_LARGE_PIXELS ? 1 : segment_pixels_for(pixels);
    pixels->rows_staged = rows_staged_for(pixels);
}

/* ---- the raster ---- */

/* Whether band p is sample p for all of the file's bands. */
static bool reads_all_bands(const cogpu_read_plan *plan) {
    if (plan->band_count != plan->storage->bands)
        return false;
    for (uint32_t p = 0; plan->bands && p < plan->band_count; p++)
        if (plan->bands[p] != p + 1)
            return false;
    return true;
}

static bool is_unscaled(const cogpu_read_plan *plan) {
    return plan->conversion && plan->conversion->bands;
}

static bool needs_band_list(const cogpu_read_plan *plan) {
    return is_unscaled(plan) || (plan->storage->planes == 1 && !reads_all_bands(plan));
}

uint32_t cogpu_gpu_bands_listed(const cogpu_read_plan *plan) {
    return plan->band_count > COGPU_UNPACK_BANDS && needs_band_list(plan) ? plan->band_count : 0;
}

void cogpu_gpu_list_bands(const cogpu_read_plan *plan, struct cogpu_gpu_band *bands) {
    /* A plane of any one band of a mosaic has pixels of one sample, too. */
    bool has_one_sample = plan->storage->planes > 1 || plan->storage->format.samples == 1;
    for (uint32_t p = 0; p < plan->band_count; p++) {
        uint32_t band = cogpu_plan_band(plan, p);
        bands[p] = (struct cogpu_gpu_band){.sample = has_one_sample ? 0 : band, .scale = 1};
        if (is_unscaled(plan)) {
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
    else if (needs_band_list(plan))
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
    pixels->bands_in_order = !pixels->is_planar && reads_all_bands(plan);
    pixels->has_file_interleave = pixels->bands_in_order && raster->stride_band == size &&
                                  raster->stride_x == size * (int64_t)plan->band_count;
}

/* ---- conversion ---- */

static uint64_t sample_bits(const uint8_t *sample, uint32_t size) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < size; i++)
        value |= (uint64_t)sample[COGPU_HOST_BIG_ENDIAN ? size - 1 - i : i] << (8 * i);
    return value;
}

static cogpu_status describe_conversion(const cogpu_read_plan *plan, const cogpu_raster *raster,
                                        struct cogpu_gpu_pixels *pixels, cogpu_error *error) {
    cogpu_type from = plan->storage->type;
    const cogpu_conversion *conversion = plan->conversion;
    pixels->scales = is_unscaled(plan);
    pixels->converts = conversion || from != raster->type;
    if (!pixels->converts)
        return COGPU_OK;
    pixels->is_mask = conversion && conversion->is_mask;
    if (pixels->is_mask ? from == COGPU_TYPE_CF64 : cogpu_type_is_complex(from))
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "samples of type %s are not converted on the way into a raster",
                          cogpu_type_name(from));
    if (!pixels->is_mask && !sample_is_float(raster->type))
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "samples of type %s are not converted to %s, but to floats only",
                          cogpu_type_name(from), cogpu_type_name(raster->type));
    pixels->has_nodata = conversion && conversion->has_nodata;
    pixels->nodata_is_nan = conversion && conversion->nodata_is_nan;
    for (int i = 0; pixels->has_nodata && i < 2; i++)
        pixels->nodata[i] = sample_bits(conversion->nodata[i], pixels->size);
    return COGPU_OK;
}

cogpu_status cogpu_gpu_describe_pixels(const cogpu_read_plan *plan, const cogpu_raster *raster,
                                       const uint8_t *decoded, const uint32_t *statuses,
                                       const struct cogpu_gpu_band *more_bands,
                                       struct cogpu_gpu_pixels *pixels, cogpu_error *error) {
    const cogpu_storage *storage = plan->storage;
    *pixels = (struct cogpu_gpu_pixels){.decoded = decoded, .statuses = statuses};
    if (cogpu_storage_has_units(storage))
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "YCbCr that is not JPEG is turned into RGB by the host");
    if (storage->format.row_bytes > COGPU_GPU_BLOCK_BYTES_MAX)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "rows of %llu bytes are too long for the device",
                          (unsigned long long)storage->format.row_bytes);
    describe_file(storage, pixels);
    memcpy(pixels->fill, plan->fill ? plan->fill : storage->format.fill, sizeof pixels->fill);
    describe_raster(plan, raster, pixels);
    TRY(describe_conversion(plan, raster, pixels, error));
    pixels->has_file_interleave = pixels->has_file_interleave && !pixels->scales;
    return describe_bands(plan, more_bands, pixels, error);
}

struct cogpu_unpack_block cogpu_gpu_unpack_block_of(const cogpu_block *block, uint64_t decoded,
                                                    uint32_t block_status) {
    return (struct cogpu_unpack_block){.decoded = decoded,
                                       .source_x = block->source_x,
                                       .source_y = block->source_y,
                                       .target_x = block->target_x,
                                       .target_y = block->target_y,
                                       .width = block->width,
                                       .height = block->height,
                                       .plane = block->plane,
                                       .block_status = block_status};
}

/* ---- launch ---- */

/* Fewer rows for a warp where there are few in all, so that every multiprocessor has work. */
static uint32_t rows_per_warp(const cogpu_gpu *gpu, uint64_t rows) {
    enum { WARPS_BUSY = 32, ROWS_MAX = 16 };
    uint64_t warps = (uint64_t)WARPS_BUSY * (gpu->multiprocessors ? gpu->multiprocessors : 1);
    uint64_t share = rows / warps;
    return (uint32_t)min_u64(max_u64(share, 1), ROWS_MAX);
}

/* A grid has at most 2^31 - 1 blocks of threads. */
static uint32_t blocks_per_launch(uint32_t groups, uint32_t count) {
    uint32_t most = (uint32_t)INT32_MAX / groups;
    return min_u32(max_u32(most, 1), count);
}

cogpu_status cogpu_gpu_unpack(cogpu_gpu *gpu, const struct cogpu_gpu_pixels *pixels,
                              const struct cogpu_unpack_block *device_blocks,
                              const struct cogpu_unpack_block *blocks, uint32_t count,
                              cogpu_gpu_stream *stream, cogpu_error *error) {
    static const cogpu_kernel *const kernels[] = {
        [COGPU_UNPACK_WHOLE] = &cogpu_kernel_unpack_whole,
        [COGPU_UNPACK_PLANES] = &cogpu_kernel_unpack_planes,
        [COGPU_UNPACK_BITS] = &cogpu_kernel_unpack_bits,
        [COGPU_UNPACK_LARGE_PIXELS] = &cogpu_kernel_unpack_large_pixels};
    struct cogpu_unpack_args args = {.pixels = *pixels};
    uint32_t height = 1;
    uint64_t rows = 0;
    for (uint32_t i = 0; i < count; i++) {
        rows += blocks[i].height;
        height = max_u32(height, blocks[i].height);
    }
    args.rows = rows_per_warp(gpu, rows);
    args.groups = (uint32_t)divide_up(height, args.rows);
    for (uint32_t first = 0; first < count; first += args.count) {
        args.blocks = device_blocks + first;
        args.count = blocks_per_launch(args.groups, count - first);
        uint64_t warps = (uint64_t)args.groups * args.count;
        uint32_t grid = (uint32_t)divide_up(warps, COGPU_UNPACK_WARPS);
        TRY(gpu->calls->launch(gpu, kernels[pixels->kind], grid, &args, stream, error));
    }
    return COGPU_OK;
}
