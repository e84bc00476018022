/* Strip kernels of bilinear: warp_strip.h. */
#include "kernels/warp/warp_strip.h"

#define BILINEAR_KERNEL(name, type)                                                                \
    STRIP_KERNEL(cogpu_kernel_warp_bilinear_##name, COGPU_RESAMPLE_BILINEAR, type, 2, 4)
COGPU_WARP_STRIP_TYPES(BILINEAR_KERNEL)
