/*
 * Applies a mask to a raster of floats: NaN wherever the mask is 0. A thread handles one pixel in
 * all bands; neighbouring threads read neighbouring mask bytes, and most are done then. Threads
 * share nothing.
 *
 *   mask     255 255  0  255 ...        thread 2 stores NaN in each band
 *   raster    a   b  NaN  d  ...
 */
#include "kernels/mask/apply_mask_args.h"
#include "kernels/simt.h"
#include "pixel/sample.h"

KERNEL(cogpu_kernel_apply_mask, struct cogpu_apply_mask_args, struct nothing_shared,
       COGPU_APPLY_MASK_THREADS, 8) {
    uint32_t pixel = block_index() * thread_count() + thread_index();
    (void)shared;
    if (pixel >= args->pixels)
        return;
    uint32_t row = pixel / args->width, column = pixel % args->width;
    uint8_t *to = args->data + (int64_t)row * args->stride_y + (int64_t)column * args->stride_x;
    for (uint32_t band = 0; band < args->bands; band++, to += args->stride_band) {
        size_t skip = args->mask_bands == 1 ? 0 : (size_t)band * args->pixels;
        if (!args->mask[skip + pixel])
            store_sample(to, sample_quiet_nan(args->type), args->size);
    }
}
