/* Kernels with a thread for each pixel of the target, which computes all of its bands by
 * pixel/warp.h. A thread block computes a piece of 32 x 4 pixels at a time. */
#ifndef COGPU_KERNELS_WARP_WARP_PIXELS_H
#define COGPU_KERNELS_WARP_WARP_PIXELS_H

#include "kernels/simt.h"
#include "kernels/warp/warp_args.h"

/* `type` is the type of source samples: a constant, or that of the arguments. */
#define PIXEL_KERNEL(name, method, type)                                                           \
    KERNEL(name, struct cogpu_warp_args, struct nothing_shared, COGPU_WARP_THREADS, 4) {           \
        const struct warp_args *warp = &args->warp;                                                \
        const uint32_t i = thread_index() % COGPU_WARP_PIECE_COLUMNS;                              \
        const uint32_t j = thread_index() / COGPU_WARP_PIECE_COLUMNS;                              \
        (void)shared;                                                                              \
        for (uint32_t task = block_index(); task < args->across * args->down;                      \
             task += block_count()) {                                                              \
            uint32_t column = task % args->across * COGPU_WARP_PIECE_COLUMNS + i;                  \
            uint32_t row = task / args->across * COGPU_WARP_PIECE_ROWS + j;                        \
            if (column < warp->target_width && row < warp->target_height)                          \
                warp_pixel(warp, method, type, column, row);                                       \
        }                                                                                          \
    }

/* One for each type of the strip kernels, and one for all others. */
#define PIXEL_KERNELS_OF(prefix, method)                                                           \
    PIXEL_KERNEL(prefix##_u8, method, COGPU_TYPE_U8)                                               \
    PIXEL_KERNEL(prefix##_u16, method, COGPU_TYPE_U16)                                             \
    PIXEL_KERNEL(prefix##_i16, method, COGPU_TYPE_I16)                                             \
    PIXEL_KERNEL(prefix##_f32, method, COGPU_TYPE_F32)                                             \
    PIXEL_KERNEL(prefix##_any, method, warp->from_type)

#endif
