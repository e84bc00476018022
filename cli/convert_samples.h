/*
 * Sample values that change their type or range, as gdal_translate's -ot and -scale: rounded half
 * away from zero, clamped to the type, NaN becomes 0 in integers.
 */
#ifndef COGPU_CLI_CONVERT_SAMPLES_H
#define COGPU_CLI_CONVERT_SAMPLES_H

#include "cogpu.h"

#include <stdbool.h>

typedef struct cogpu_sample_map {
    cogpu_type from, to; /* real ones; `to` is not COGPU_TYPE_F16 */
    bool is_scaled;
    double ratio, offset; /* value * ratio + offset */
    bool has_nodata;
    double nodata; /* keeps its value where others are scaled */
} cogpu_sample_map;

/* `count` samples that are `from_step` and `to_step` bytes apart. */
void cogpu_samples_convert(const cogpu_sample_map *map, const void *from, int64_t from_step,
                           void *to, int64_t to_step, uint32_t count);

/* A number as it is stored in an integer type. */
double cogpu_sample_clamp(cogpu_type type, double value);

#endif
