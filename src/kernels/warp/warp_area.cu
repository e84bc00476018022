/* Means and extremes of the area that a target pixel covers. */
#include "kernels/warp/warp_pixels.h"

PIXEL_KERNELS_OF(cogpu_kernel_warp_average, COGPU_RESAMPLE_AVERAGE)
PIXEL_KERNEL(cogpu_kernel_warp_rms_any, COGPU_RESAMPLE_RMS, warp->from_type)
PIXEL_KERNEL(cogpu_kernel_warp_min_any, COGPU_RESAMPLE_MIN, warp->from_type)
PIXEL_KERNEL(cogpu_kernel_warp_max_any, COGPU_RESAMPLE_MAX, warp->from_type)
