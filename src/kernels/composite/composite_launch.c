/* Launches the kernels of composite.cu. */
#include "kernels/composite/composite_args.h"

#include "base/checked.h"
#include "base/math.h"

extern const cogpu_kernel cogpu_kernel_composite_begin, cogpu_kernel_composite_replace,
    cogpu_kernel_composite_collect, cogpu_kernel_composite_finish;

static struct cogpu_composite_args arguments_of(const cogpu_composition *composition, uint32_t x,
                                                uint32_t y, uint32_t columns, uint32_t rows) {
    const cogpu_raster *pixels = composition->pixels;
    return (struct cogpu_composite_args){
        .method = (uint32_t)composition->method,
        .type = (uint32_t)pixels->type,
        .size = (uint32_t)cogpu_type_bytes(pixels->type),
        .bands = pixels->bands,
        .depth = composition->depth,
        .x = x,
        .y = y,
        .columns = columns,
        .rows = rows,
        .across = (uint32_t)divide_up(columns, COGPU_COMPOSITE_THREADS),
        .down = (uint32_t)divide_up(rows, COGPU_COMPOSITE_ROWS),
        .width = pixels->width,
        .plane = (uint64_t)pixels->width * pixels->height,
        .data = (uint8_t *)pixels->data + y * pixels->stride_y + x * pixels->stride_x,
        .stride_band = pixels->stride_band,
        .stride_y = pixels->stride_y,
        .stride_x = pixels->stride_x,
        .valid = composition->valid,
        .sums = composition->sums,
        .counts = composition->counts,
        .stack = composition->stack,
        .fill = composition->fill};
}

static cogpu_status launch(cogpu_gpu *gpu, const cogpu_kernel *kernel,
                           const struct cogpu_composite_args *args, cogpu_gpu_stream *stream,
                           cogpu_error *error) {
    uint64_t tasks = (uint64_t)args->across * args->down * args->bands;
    if (tasks == 0)
        return COGPU_OK;
    return gpu->calls->launch(gpu, kernel, (uint32_t)min_u64(tasks, INT32_MAX), args, stream,
                              error);
}

cogpu_status cogpu_gpu_composite_begin(cogpu_gpu *gpu, const cogpu_composition *composition,
                                       cogpu_gpu_stream *stream, cogpu_error *error) {
    const cogpu_raster *pixels = composition->pixels;
    const struct cogpu_composite_args args =
        arguments_of(composition, 0, 0, pixels->width, pixels->height);
    return launch(gpu, &cogpu_kernel_composite_begin, &args, stream, error);
}

static bool replaces_pixels(cogpu_composite method) {
    return method == COGPU_COMPOSITE_FIRST || method == COGPU_COMPOSITE_LAST ||
           method == COGPU_COMPOSITE_MIN || method == COGPU_COMPOSITE_MAX;
}

cogpu_status cogpu_gpu_composite_add(cogpu_gpu *gpu, const cogpu_composition *composition,
                                     const cogpu_composite_layer *layer, cogpu_gpu_stream *stream,
                                     cogpu_error *error) {
    struct cogpu_composite_args args =
        arguments_of(composition, layer->x, layer->y, layer->width, layer->height);
    args.layer = layer->pixels;
    args.layer_valid = layer->valid;
    return launch(gpu,
                  replaces_pixels(composition->method) ? &cogpu_kernel_composite_replace
                                                       : &cogpu_kernel_composite_collect,
                  &args, stream, error);
}

cogpu_status cogpu_gpu_composite_finish(cogpu_gpu *gpu, const cogpu_composition *composition,
                                        cogpu_gpu_stream *stream, cogpu_error *error) {
    const cogpu_raster *pixels = composition->pixels;
    const struct cogpu_composite_args args =
        arguments_of(composition, 0, 0, pixels->width, pixels->height);
    if (replaces_pixels(composition->method))
        return COGPU_OK;
    return launch(gpu, &cogpu_kernel_composite_finish, &args, stream, error);
}
