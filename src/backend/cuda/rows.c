/* Takes rows of two rasters on the device, launches the kernel of cuda_rows.cu. */
#include "backend/cuda/cuda_rows.h"

#include "base/checked.h"

extern const cogpu_kernel cogpu_kernel_rows;

static struct cogpu_rows_view view_of(const cogpu_raster *raster) {
    return (struct cogpu_rows_view){raster->data, raster->stride_band, raster->stride_y,
                                    raster->stride_x};
}

/* Bands of a pixel that lie side by side in both are one sample of more bytes, and so are pixels
 * of a row. */
static void widen(struct cogpu_rows_args *args) {
    enum { WIDEST = 16 };
    const int64_t size = args->size, pixel = size * args->bands;
    struct cogpu_rows_view *from = &args->from, *to = &args->to;
    bool is_chunky = args->bands == 1 || (from->stride_band == size && to->stride_band == size);
    if (!is_chunky || from->stride_x != pixel || to->stride_x != pixel ||
        (uint64_t)pixel * args->width > UINT32_MAX)
        return;
    uint64_t places = (uintptr_t)from->data | (uintptr_t)to->data | (uint64_t)from->stride_y |
                      (uint64_t)to->stride_y | (uint64_t)pixel * args->width;
    uint32_t wide = WIDEST;
    while (places % wide != 0)
        wide /= 2;
    args->width = (uint32_t)((uint64_t)pixel * args->width / wide);
    args->bands = 1;
    args->size = wide;
    from->stride_x = to->stride_x = wide;
}

cogpu_status cogpu_gpu_move_rows(cogpu_gpu *gpu, const cogpu_raster *from, const cogpu_raster *to,
                                 uint32_t rows, cogpu_gpu_stream *stream, cogpu_error *error) {
    enum { ROWS_A_THREAD = 4 };
    uintptr_t begin = (uintptr_t)to->data, other = (uintptr_t)from->data;
    bool is_same = begin <= other && from->stride_y > 0 && from->stride_y == to->stride_y &&
                   (other - begin) / (uint64_t)from->stride_y < rows;
    struct cogpu_rows_args args = {.from = view_of(from),
                                   .to = view_of(to),
                                   .width = from->width,
                                   .rows = rows,
                                   .bands = from->bands,
                                   .size = (uint32_t)cogpu_type_bytes(from->type)};
    widen(&args);
    args.rows_a_thread = is_same ? rows : ROWS_A_THREAD;
    uint64_t blocks = divide_up(args.width, COGPU_ROWS_THREADS) * args.bands *
                      divide_up(rows, args.rows_a_thread);
    if (rows == 0 || begin == other)
        return COGPU_OK;
    if (blocks > INT32_MAX)
        return cogpu_fail(error, COGPU_LIMIT, "%u rows of %u bands are too many at once", rows,
                          from->bands);
    return gpu->calls->launch(gpu, &cogpu_kernel_rows, (uint32_t)blocks, &args, stream, error);
}
