/* Launches apply_mask. */
#include "kernels/mask/apply_mask_args.h"

#include "base/checked.h"

extern const cogpu_kernel cogpu_kernel_apply_mask;

cogpu_status cogpu_gpu_apply_mask(cogpu_gpu *gpu, const cogpu_raster *mask, uint32_t first_row,
                                  const cogpu_raster *raster, cogpu_gpu_stream *stream,
                                  cogpu_error *error) {
    const struct cogpu_apply_mask_args args = {.mask = mask->data,
                                               .pixels = mask->width * mask->height,
                                               .width = mask->width,
                                               .bands = raster->bands,
                                               .mask_bands = mask->bands,
                                               .data = (uint8_t *)raster->data +
                                                       (int64_t)first_row * raster->stride_y,
                                               .stride_band = raster->stride_band,
                                               .stride_y = raster->stride_y,
                                               .stride_x = raster->stride_x,
                                               .type = (uint32_t)raster->type,
                                               .size = (uint32_t)cogpu_type_bytes(raster->type)};
    uint32_t blocks = (uint32_t)divide_up(args.pixels, COGPU_APPLY_MASK_THREADS);
    return gpu->calls->launch(gpu, &cogpu_kernel_apply_mask, blocks, &args, stream, error);
}
