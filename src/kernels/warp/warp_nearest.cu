/* Strip kernels of nearest: warp_strip.h. */
#include "kernels/warp/warp_strip.h"

#define NEAREST_KERNEL(name, type)                                                                 \
    STRIP_KERNEL(cogpu_kernel_warp_nearest_##name, COGPU_RESAMPLE_NEAREST, type, 4, 6)
COGPU_WARP_STRIP_TYPES(NEAREST_KERNEL)
