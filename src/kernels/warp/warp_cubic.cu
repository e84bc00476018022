/* Strip kernels of cubic: warp_strip.h. */
#include "kernels/warp/warp_strip.h"

#define CUBIC_KERNEL(name, type)                                                                   \
    STRIP_KERNEL(cogpu_kernel_warp_cubic_##name, COGPU_RESAMPLE_CUBIC, type, 1, 4)
COGPU_WARP_STRIP_TYPES(CUBIC_KERNEL)
