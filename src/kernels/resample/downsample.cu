/*
 * Nearest, and zeros where the result is masked. A thread handles one sample of a few rows
 * (downsample_common.h) and shares nothing.
 */
#include "kernels/resample/downsample_common.h"

/* Samples of any type, complex ones too. */
KERNEL(cogpu_kernel_downsample_nearest, struct cogpu_downsample_args, struct nothing_shared,
       COGPU_DOWNSAMPLE_THREADS, 8) {
    (void)shared;
    for (uint64_t task = block_index(); task < args->tasks; task += block_count()) {
        struct downsample_item mine = item_of_thread(args, task);
        struct band_view view = view_of_band(args, mine.band);
        uint32_t x = column_support(args, mine.item).begin, size = min_u32(args->size, 8);
        for (uint32_t row = mine.row; !mine.is_idle && row < mine.row + mine.rows; row++) {
            const uint8_t *from = source_at(args, view.from, x, row_support(args, row).begin);
            uint8_t *to = target_at(args, &view, mine.item, row);
            uint64_t sample = load_sample(from, size);
            store_sample(to, args->is_mask && sample ? 255 : sample, size);
            if (args->size > 8)
                store_sample(to + 8, load_sample(from + 8, 8), 8);
        }
    }
}

/* Floats without nodata are NaN where nothing is valid. Where the result's mask or alpha is 0 they
 * become 0, like all other types. */
KERNEL(cogpu_kernel_downsample_zero_masked, struct cogpu_downsample_args, struct nothing_shared,
       COGPU_DOWNSAMPLE_THREADS, 8) {
    (void)shared;
    for (uint64_t task = block_index(); task < args->tasks; task += block_count()) {
        struct downsample_item mine = item_of_thread(args, task);
        struct band_view view = view_of_band(args, mine.band);
        for (uint32_t row = mine.row; !mine.is_idle && row < mine.row + mine.rows; row++) {
            const uint8_t *guard = args->guard.data +
                                   (int64_t)(row - args->first) * args->guard.stride_y +
                                   (int64_t)mine.item * args->guard.stride_x;
            if (!view.is_alpha_band && load_sample(guard, args->guard_size) == 0)
                store_sample(target_at(args, &view, mine.item, row), 0, args->size);
        }
    }
}
