/* The steps of cogpu_plan_write; each fills its part of the plan. */
#ifndef COGPU_PLAN_WRITE_STEPS_H
#define COGPU_PLAN_WRITE_STEPS_H

#include "plan/write_plan.h"

/* TIFF's sides have 32 bits, but common readers use signed ones. */
#define SIDE_MAX  INT32_MAX
#define BANDS_MAX UINT16_MAX

/* write_codec.c: codec, level, quality, bits and predictor. */
cogpu_status cogpu_plan_codec(const cogpu_profile *profile, cogpu_write_plan *plan,
                              cogpu_error *error);
/* write_grid.c: size of blocks, pyramid levels and their grids. */
cogpu_status cogpu_plan_levels(const cogpu_profile *profile, cogpu_write_plan *plan,
                               cogpu_error *error);

#endif
