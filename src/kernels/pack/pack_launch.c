/* Describes a write plan and rasters on the device for the pack kernels, and launches them. */
#include "kernels/pack/pack_args.h"

#include "base/checked.h"
#include "base/math.h"
#include "pixel/sample.h"

#include <string.h>

extern const cogpu_kernel cogpu_kernel_pack, cogpu_kernel_pack_large_pixels;

_Static_assert(sizeof(struct cogpu_pack_args) <= 512, "too much for the arguments of a launch");

/* ---- arguments ---- */

static void set_nan_test(cogpu_type type, struct cogpu_gpu_packing *packing) {
    packing->infinity = sample_infinity(type);
    if (packing->infinity)
        packing->magnitude = sample_magnitude_mask(packing->size);
    packing->fill_is_nan = (packing->fill[0] & packing->magnitude) > packing->infinity;
}

static uint32_t segment_pixels_for(size_t pixel) {
    enum { UNIT = 16 }; /* segments of aligned rows are aligned, and packed bits end with a byte */
    return pixel > COGPU_PACK_PIXEL ? 0 : (uint32_t)(COGPU_PACK_STAGE / pixel / UNIT * UNIT);
}

cogpu_status cogpu_gpu_describe_packing(const cogpu_write_plan *plan, const cogpu_block_grid *grid,
                                        const cogpu_raster *rows, const cogpu_raster *mask,
                                        struct cogpu_gpu_packing *packing, cogpu_error *error) {
    cogpu_new_block block = cogpu_plan_new_block(plan, grid, 0, 0, 0);
    size_t block_bytes = cogpu_plan_block_bytes(plan, grid, &block), decoded_bytes = 0;
    cogpu_encoding encoding = cogpu_plan_encoding(plan, grid, &block, &decoded_bytes);
    int64_t size = (int64_t)cogpu_type_bytes(plan->type);
    if (block_bytes > COGPU_GPU_BLOCK_BYTES_MAX)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "blocks of %zu bytes are too large for the device: at most %d",
                          block_bytes, COGPU_GPU_BLOCK_BYTES_MAX);
    *packing = (struct cogpu_gpu_packing){
        .data = rows->data,
        .stride_band = rows->stride_band,
        .stride_y = rows->stride_y,
        .stride_x = rows->stride_x,
        .size = (uint32_t)size,
        .samples = encoding.format.samples,
        .predictor = plan->predictor,
        .bits = encoding.format.bits,
        .block_width = grid->block_width,
        .row_bytes = (uint32_t)encoding.format.row_bytes,
        .mask_row_bytes = (uint32_t)divide_up(grid->block_width, 8),
        .segment_pixels = segment_pixels_for(plan->pixel_bytes),
        .has_file_interleave = rows->stride_x == (int64_t)plan->pixel_bytes &&
                               (encoding.format.samples == 1 || rows->stride_band == size),
        .ends_with_pixel = plan->codec->allows_predictor,
        .is_sparse = plan->is_sparse,
        .replaces_nan = plan->replaces_nan};
    memcpy(packing->fill, plan->fill, sizeof packing->fill);
    set_nan_test(plan->type, packing);
    if (mask) {
        packing->mask = mask->data;
        packing->mask_stride_y = mask->stride_y;
        packing->mask_stride_x = mask->stride_x;
    }
    return COGPU_OK;
}

struct cogpu_pack_block cogpu_gpu_pack_block_of(const cogpu_write_plan *plan,
                                                const cogpu_block_grid *grid,
                                                const cogpu_new_block *block, uint32_t first,
                                                uint64_t to, uint32_t size) {
    bool is_mask = block->plane == plan->planes;
    return (struct cogpu_pack_block){.to = to,
                                     .x = block->column * grid->block_width,
                                     .y = block->row * grid->block_height - first,
                                     .width = block->width,
                                     .height = block->height,
                                     .rows = block->rows,
                                     .plane = is_mask ? 0 : block->plane,
                                     .is_mask = is_mask,
                                     .size = size};
}

/* ---- launch ---- */

cogpu_status cogpu_gpu_pack(cogpu_gpu *gpu, const struct cogpu_gpu_packing *packing,
                            const struct cogpu_pack_block *device_blocks,
                            const struct cogpu_pack_block *blocks, uint32_t count, uint8_t *decoded,
                            uint32_t *sizes, cogpu_gpu_stream *stream, cogpu_error *error) {
    const cogpu_kernel *kernel =
        packing->segment_pixels ? &cogpu_kernel_pack : &cogpu_kernel_pack_large_pixels;
    struct cogpu_pack_args args = {.packing = *packing, .decoded = decoded};
    uint32_t rows = 1;
    if (count == 0)
        return COGPU_OK;
    for (uint32_t i = 0; i < count; i++)
        rows = max_u32(rows, blocks[i].rows);
    args.groups = (uint32_t)divide_up(rows, COGPU_PACK_ROWS);
    TRY(gpu->calls->clear(gpu, sizes, (uint64_t)count * sizeof *sizes, stream, error));
    /* One launch, unless the grid would exceed 2^31 - 1 blocks of threads. */
    uint32_t most = (uint32_t)INT32_MAX / args.groups;
    for (uint32_t first = 0; first < count; first += args.count) {
        args.blocks = device_blocks + first;
        args.sizes = sizes + first;
        args.count = min_u32(most, count - first);
        uint64_t warps = (uint64_t)args.groups * args.count;
        TRY(gpu->calls->launch(gpu, kernel, (uint32_t)divide_up(warps, COGPU_PACK_WARPS), &args,
                               stream, error));
    }
    return COGPU_OK;
}
