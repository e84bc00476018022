/* Candidates of mode, median, min and max: the keys (pixel/select.h) of valid samples. */
#ifndef COGPU_KERNELS_RESAMPLE_DOWNSAMPLE_SELECT_H
#define COGPU_KERNELS_RESAMPLE_DOWNSAMPLE_SELECT_H

#include "kernels/resample/downsample_common.h"

/* Sets *key; false if the sample is not valid. */
DEVICE_FN bool load_candidate(const struct cogpu_downsample_args *args,
                              const struct band_view *view, uint32_t x, uint32_t y, uint64_t *key) {
    uint64_t sample = load_source(args, view, args->type, x, y);
    *key = sample_to_key(args->type, sample);
    return is_valid(args, args->type, sample, sample_to_double(args->type, sample)) &&
           weight_of_guard(args, view, args->type, x, y);
}

DEVICE_FN uint64_t median_sample(const struct cogpu_downsample_args *args, uint64_t low,
                                 uint64_t high) {
    return median_of_keys(args->type, args->nodata.has_nodata, args->nodata.nodata,
                          args->nodata.substitute, low, high);
}

#endif
