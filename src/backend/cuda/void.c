/* Takes rows of a mask and a raster on the device, launches the kernel of cuda_void.cu. */
#include "backend/cuda/cuda_void.h"

#include "base/checked.h"

extern const cogpu_kernel cogpu_kernel_void;

cogpu_status cogpu_gpu_void(cogpu_gpu *gpu, const cogpu_raster *mask, uint32_t first_row,
                            const cogpu_raster *raster, cogpu_gpu_stream *stream,
                            cogpu_error *error) {
    const struct cogpu_void_args args = {.mask = mask->data,
                                         .pixels = mask->width * mask->height,
                                         .width = mask->width,
                                         .bands = raster->bands,
                                         .mask_bands = mask->bands,
                                         .data = (uint8_t *)raster->data +
                                                 (int64_t)first_row * raster->stride_y,
                                         .stride_band = raster->stride_band,
                                         .stride_y = raster->stride_y,
                                         .stride_x = raster->stride_x,
                                         .size = (uint32_t)cogpu_type_bytes(raster->type)};
    uint32_t blocks = (uint32_t)divide_up(args.pixels, COGPU_VOID_THREADS);
    return gpu->calls->launch(gpu, &cogpu_kernel_void, blocks, &args, stream, error);
}
