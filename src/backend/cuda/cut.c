/*
 * Takes a write plan and rasters on the device, hands on what the kernels of cuda_cut.cu have to
 * know, and launches them.
 */
#include "backend/cuda/cuda_cut.h"

#include "base/checked.h"

#include <string.h>

extern const cogpu_kernel cogpu_kernel_cut, cogpu_kernel_cut_walk;

_Static_assert(sizeof(struct cogpu_cut_args) <= 512, "too much for the arguments of a launch");

/* ---- what blocks have in common ---- */

static void set_float(cogpu_type type, struct cogpu_gpu_cutting *cutting) {
    cutting->infinity = type == COGPU_F16   ? 0x7C00
                        : type == COGPU_F32 ? 0x7F800000
                        : type == COGPU_F64 ? 0x7FF0000000000000
                                            : 0;
    if (cutting->infinity)
        cutting->magnitude = UINT64_MAX >> (65 - 8 * cutting->size);
    cutting->fill_is_nan = (cutting->fill[0] & cutting->magnitude) > cutting->infinity;
}

static uint32_t piece_pixels(size_t pixel) {
    enum { UNIT = 16 }; /* pieces of rows that are aligned are aligned too, packed ones to bytes */
    return pixel > COGPU_CUT_PIXEL ? 0 : (uint32_t)(COGPU_CUT_STAGE / pixel / UNIT * UNIT);
}

cogpu_status cogpu_gpu_cutting_of(const cogpu_write_plan *plan, const cogpu_grid *grid,
                                  const cogpu_raster *rows, const cogpu_raster *mask,
                                  struct cogpu_gpu_cutting *cutting, cogpu_error *error) {
    cogpu_new_block block = cogpu_plan_new_block(plan, grid, 0, 0, 0);
    size_t cut_bytes = cogpu_plan_cut_bytes(plan, grid, &block), decoded_bytes = 0;
    cogpu_encoding encoding = cogpu_plan_encoding(plan, grid, &block, &decoded_bytes);
    int64_t size = (int64_t)cogpu_type_bytes(plan->type);
    if (cut_bytes > COGPU_GPU_BLOCK_MAX)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "blocks of %zu bytes are too large for the device, which cuts %d at most",
                          cut_bytes, COGPU_GPU_BLOCK_MAX);
    *cutting = (struct cogpu_gpu_cutting){
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
        .piece_pixels = piece_pixels(plan->pixel_bytes),
        .is_flat = rows->stride_x == (int64_t)plan->pixel_bytes &&
                   (encoding.format.samples == 1 || rows->stride_band == size),
        .ends_with_pixel = plan->codec->takes_predictor,
        .is_sparse = plan->is_sparse,
        .replaces_nan = plan->replaces_nan};
    memcpy(cutting->fill, plan->fill, sizeof cutting->fill);
    set_float(plan->type, cutting);
    if (mask) {
        cutting->mask = mask->data;
        cutting->mask_stride_y = mask->stride_y;
        cutting->mask_stride_x = mask->stride_x;
    }
    return COGPU_OK;
}

struct cogpu_cut_block cogpu_gpu_cut_block_of(const cogpu_write_plan *plan, const cogpu_grid *grid,
                                              const cogpu_new_block *block, uint32_t first,
                                              uint64_t to, uint32_t size) {
    bool is_mask = block->plane == plan->planes;
    return (struct cogpu_cut_block){.to = to,
                                    .x = block->column * grid->block_width,
                                    .y = block->row * grid->block_height - first,
                                    .width = block->width,
                                    .height = block->height,
                                    .rows = block->rows,
                                    .plane = is_mask ? 0 : block->plane,
                                    .is_mask = is_mask,
                                    .size = size};
}

/* ---- the step ---- */

cogpu_status cogpu_gpu_cut(cogpu_gpu *gpu, const struct cogpu_gpu_cutting *cutting,
                           const struct cogpu_cut_block *device_blocks,
                           const struct cogpu_cut_block *blocks, uint32_t count, uint8_t *decoded,
                           uint32_t *sizes, cogpu_gpu_stream *stream, cogpu_error *error) {
    const cogpu_kernel *kernel = cutting->piece_pixels ? &cogpu_kernel_cut : &cogpu_kernel_cut_walk;
    struct cogpu_cut_args args = {.cutting = *cutting, .decoded = decoded};
    uint32_t rows = 1;
    if (count == 0)
        return COGPU_OK;
    for (uint32_t i = 0; i < count; i++)
        rows = blocks[i].rows > rows ? blocks[i].rows : rows;
    args.groups = (uint32_t)divide_up(rows, COGPU_CUT_ROWS);
    TRY(gpu->calls->clear(gpu, sizes, (uint64_t)count * sizeof *sizes, stream, error));
    /* One launch, unless its warps were more than can be counted. */
    uint32_t most = (uint32_t)INT32_MAX / args.groups;
    for (uint32_t first = 0; first < count; first += args.count) {
        args.blocks = device_blocks + first;
        args.sizes = sizes + first;
        args.count = most < count - first ? most : count - first;
        uint64_t warps = (uint64_t)args.groups * args.count;
        TRY(gpu->calls->launch(gpu, kernel, (uint32_t)divide_up(warps, COGPU_CUT_WARPS), &args,
                               stream, error));
    }
    return COGPU_OK;
}
