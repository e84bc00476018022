/* Methods of one, two or four taps along an axis, for all that strip kernels do not compute; and
 * bilinear and cubic that grow. */
#include "kernels/warp/warp_pixels.h"

PIXEL_KERNEL(cogpu_kernel_warp_nearest_any, COGPU_RESAMPLE_NEAREST, warp->from_type)
PIXEL_KERNEL(cogpu_kernel_warp_bilinear_any, COGPU_RESAMPLE_BILINEAR, warp->from_type)
PIXEL_KERNEL(cogpu_kernel_warp_cubic_any, COGPU_RESAMPLE_CUBIC, warp->from_type)
