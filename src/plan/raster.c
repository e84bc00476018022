/* See raster.h. */
#include "plan/raster.h"

cogpu_status cogpu_raster_set_strides(cogpu_raster *raster, cogpu_error *error) {
    int64_t size = (int64_t)cogpu_type_bytes(raster->type);
    if (raster->stride_band || raster->stride_y || raster->stride_x)
        return COGPU_OK;
    raster->stride_x = size;
    raster->stride_y = size * raster->width;
    if (__builtin_mul_overflow(raster->stride_y, raster->height, &raster->stride_band))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "a raster of %u x %u pixels exceeds the address space", raster->width,
                          raster->height);
    return COGPU_OK;
}
