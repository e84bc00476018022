/*
 * Takes a mask and a raster of floats, hands on the raster with NaN wherever the mask has 0. A
 * thread for each pixel: most load a byte and are done.
 */
#include "backend/cuda/cuda_void.h"
#include "backend/cuda/simt.h"

/* The quiet NaN of a float of so many bytes, anywhere. */
DEVICE_FN void store_nan(uint8_t *at, uint32_t size) {
    uint64_t nan = size == 2 ? 0x7E00u : size == 4 ? 0x7FC00000u : 0x7FF8000000000000u;
    if ((uintptr_t)at % size != 0)
        for (uint32_t i = 0; i < size; i++)
            at[i] = (uint8_t)(nan >> (8 * i));
    else if (size == 2)
        *(number16 *)(void *)at = (uint16_t)nan;
    else if (size == 4)
        *(number32 *)(void *)at = (uint32_t)nan;
    else
        *(number64 *)(void *)at = nan;
}

KERNEL(cogpu_kernel_void, struct cogpu_void_args, struct nothing_shared, 256, 8) {
    uint32_t pixel = block_index() * thread_count() + thread_index();
    (void)shared;
    if (pixel >= args->pixels)
        return;
    uint32_t row = pixel / args->width, column = pixel % args->width;
    uint8_t *to = args->data + (int64_t)row * args->stride_y + (int64_t)column * args->stride_x;
    for (uint32_t band = 0; band < args->bands; band++, to += args->stride_band) {
        size_t skip = args->mask_bands == 1 ? 0 : (size_t)band * args->pixels;
        if (!args->mask[skip + pixel])
            store_nan(to, args->size);
    }
}
