/* Launches the copy of rows between rasters on the device. */
#include "kernels/copy_rows/copy_rows_args.h"

#include "base/checked.h"

extern const cogpu_kernel cogpu_kernel_copy_rows;

static struct cogpu_rows_view rows_view(const cogpu_raster *raster) {
    return (struct cogpu_rows_view){raster->data, raster->stride_band, raster->stride_y,
                                    raster->stride_x};
}

/* Where pixels are side by side in both rasters, copies units of up to 16 bytes instead of samples.
 */
static void merge_samples(struct cogpu_rows_args *args) {
    enum { WIDEST = 16 };
    const int64_t size = args->size, pixel = size * args->bands;
    struct cogpu_rows_view *from = &args->from, *to = &args->to;
    bool is_interleaved =
        args->bands == 1 || (from->stride_band == size && to->stride_band == size);
    if (!is_interleaved || from->stride_x != pixel || to->stride_x != pixel ||
        (uint64_t)pixel * args->width > UINT32_MAX)
        return;
    uint64_t addresses = (uintptr_t)from->data | (uintptr_t)to->data | (uint64_t)from->stride_y |
                         (uint64_t)to->stride_y | (uint64_t)pixel * args->width;
    uint32_t wide = WIDEST;
    while (addresses % wide != 0)
        wide /= 2;
    args->width = (uint32_t)((uint64_t)pixel * args->width / wide);
    args->bands = 1;
    args->size = wide;
    from->stride_x = to->stride_x = wide;
}

cogpu_status cogpu_gpu_copy_rows(cogpu_gpu *gpu, const cogpu_raster *from, const cogpu_raster *to,
                                 uint32_t rows, cogpu_gpu_stream *stream, cogpu_error *error) {
    enum { ROWS_PER_THREAD = 4 };
    uintptr_t begin = (uintptr_t)to->data, other = (uintptr_t)from->data;
    bool overlaps = begin <= other && from->stride_y > 0 && from->stride_y == to->stride_y &&
                    (other - begin) / (uint64_t)from->stride_y < rows;
    struct cogpu_rows_args args = {.from = rows_view(from),
                                   .to = rows_view(to),
                                   .width = from->width,
                                   .rows = rows,
                                   .bands = from->bands,
                                   .size = (uint32_t)cogpu_type_bytes(from->type)};
    merge_samples(&args);
    args.rows_per_thread = overlaps ? rows : ROWS_PER_THREAD;
    uint64_t blocks = divide_up(args.width, COGPU_ROWS_THREADS) * args.bands *
                      divide_up(rows, args.rows_per_thread);
    if (rows == 0 || begin == other)
        return COGPU_OK;
    if (blocks > INT32_MAX)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED, "%u rows of %u bands are too many at once",
                          rows, from->bands);
    return gpu->calls->launch(gpu, &cogpu_kernel_copy_rows, (uint32_t)blocks, &args, stream, error);
}
