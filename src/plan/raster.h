/* Strides of a caller's raster. */
#ifndef COGPU_PLAN_RASTER_H
#define COGPU_PLAN_RASTER_H

#include "base/status.h"

/* Sets the strides of a packed raster if all three are 0. */
cogpu_status cogpu_raster_set_strides(cogpu_raster *raster, cogpu_error *error);

#endif
