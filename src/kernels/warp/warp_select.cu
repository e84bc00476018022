/* Mode, median and quartiles of small areas. */
#include "kernels/warp/warp_pixels.h"

PIXEL_KERNEL(cogpu_kernel_warp_mode_any, COGPU_RESAMPLE_MODE, warp->from_type)
PIXEL_KERNEL(cogpu_kernel_warp_median_any, COGPU_RESAMPLE_MEDIAN, warp->from_type)
PIXEL_KERNEL(cogpu_kernel_warp_q1_any, COGPU_RESAMPLE_Q1, warp->from_type)
PIXEL_KERNEL(cogpu_kernel_warp_q3_any, COGPU_RESAMPLE_Q3, warp->from_type)
