/* Convolution by kernels of more than four taps along an axis, or that grow. */
#include "kernels/warp/warp_pixels.h"

PIXEL_KERNELS_OF(cogpu_kernel_warp_spline, COGPU_RESAMPLE_CUBICSPLINE)
PIXEL_KERNELS_OF(cogpu_kernel_warp_lanczos, COGPU_RESAMPLE_LANCZOS)
