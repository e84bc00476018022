/*
 * Copies rows of a raster to another raster, or further up in the same one. A thread copies one
 * sample of a few rows, from top to bottom; neighbouring threads copy neighbouring samples.
 *
 *   block of threads   256 columns of one band, rows_per_thread rows
 *   grid               columns, then bands, then groups of rows
 *
 * Threads share nothing. Rows may overlap as in memmove where one thread copies all rows of its
 * column.
 */
#include "kernels/copy_rows/copy_rows_args.h"
#include "kernels/simt.h"

DEVICE_FN void copy_sample(const uint8_t *from, uint8_t *to, uint32_t size) {
    bool is_aligned = ((uintptr_t)from | (uintptr_t)to) % size == 0;
    if (size == 16 && is_aligned)
        store_words4(to, load_words4(from));
    else if (size == 8 && is_aligned)
        *(number64 *)(void *)to = *(const number64 *)(const void *)from;
    else if (size == 4 && is_aligned)
        *(number32 *)(void *)to = *(const number32 *)(const void *)from;
    else if (size == 2 && is_aligned)
        *(number16 *)(void *)to = *(const number16 *)(const void *)from;
    else
        for (uint32_t i = 0; i < size; i++)
            to[i] = from[i];
}

KERNEL(cogpu_kernel_copy_rows, struct cogpu_rows_args, struct nothing_shared, COGPU_ROWS_THREADS,
       8) {
    const struct cogpu_rows_view *from = &args->from, *to = &args->to;
    uint32_t columns = (args->width + COGPU_ROWS_THREADS - 1) / COGPU_ROWS_THREADS;
    uint32_t x = block_index() % columns * COGPU_ROWS_THREADS + thread_index();
    uint32_t group = block_index() / columns / args->bands;
    uint32_t band = block_index() / columns % args->bands;
    uint32_t first = group * args->rows_per_thread, end = first + args->rows_per_thread;
    (void)shared;
    if (x >= args->width)
        return;
    for (uint32_t y = first; y < end && y < args->rows; y++)
        copy_sample(from->data + (int64_t)band * from->stride_band + (int64_t)y * from->stride_y +
                        (int64_t)x * from->stride_x,
                    to->data + (int64_t)band * to->stride_band + (int64_t)y * to->stride_y +
                        (int64_t)x * to->stride_x,
                    args->size);
}
