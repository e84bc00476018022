/* Sums, gathered: a target pixel adds the parts of source pixels that lie in it. */
#include "kernels/warp/warp_pixels.h"

PIXEL_KERNEL(cogpu_kernel_warp_sum_any, COGPU_RESAMPLE_SUM, warp->from_type)
