/* Kernels of warp_variants.h. Not part of a release: -DCOGPU_WARP_VARIANTS. */
#include "kernels/warp/warp_variants.h"
#include "kernels/warp/warp_strip.h"

#ifdef COGPU_WARP_VARIANTS
#define METHOD_nearest  COGPU_RESAMPLE_NEAREST
#define METHOD_bilinear COGPU_RESAMPLE_BILINEAR
#define METHOD_cubic    COGPU_RESAMPLE_CUBIC
#define VARIANT(method, group, resident)                                                           \
    STRIP_KERNEL(cogpu_kernel_warp_##method##_g##group##_r##resident, METHOD_##method,             \
                 COGPU_TYPE_F32, group, resident)
COGPU_WARP_VARIANTS_OF(VARIANT)
#endif
