/* The table of resampling methods, and the public functions that read it. */
#include "base/resampling.h"

#include "base/text.h"
#include "base/type.h"

const cogpu_resampling_row cogpu_resampling_table[COGPU_RESAMPLING_COUNT] = {
    [COGPU_RESAMPLE_DEFAULT] = {"default", NULL, RESAMPLING_COPY, 0},
    [COGPU_NEAREST] = {"nearest", "near", RESAMPLING_COPY, 0},
    [COGPU_AVERAGE] = {"average", "mean", RESAMPLING_MEAN, 0},
    [COGPU_RMS] = {"rms", NULL, RESAMPLING_MEAN, 0},
    [COGPU_BILINEAR] = {"bilinear", NULL, RESAMPLING_KERNEL, 1},
    [COGPU_CUBIC] = {"cubic", NULL, RESAMPLING_KERNEL, 2},
    [COGPU_MODE] = {"mode", NULL, RESAMPLING_SELECT, 0},
    [COGPU_MIN] = {"min", NULL, RESAMPLING_SELECT, 0},
    [COGPU_MAX] = {"max", NULL, RESAMPLING_SELECT, 0},
    [COGPU_MEDIAN] = {"median", "med", RESAMPLING_SELECT, 0},
};

cogpu_resampling cogpu_resampling_default(cogpu_type type, bool has_palette) {
    return has_palette || cogpu_type_is_complex(type) ? COGPU_NEAREST : COGPU_AVERAGE;
}

const char *cogpu_resampling_name(cogpu_resampling method) {
    return cogpu_resampling_is_valid(method) ? cogpu_resampling_table[method].name : NULL;
}

cogpu_status cogpu_resampling_parse(const char *name, cogpu_resampling *method) {
    for (unsigned i = 0; name && i < COGPU_RESAMPLING_COUNT; i++)
        if (is_same_name(name, cogpu_resampling_table[i].name) ||
            is_same_name(name, cogpu_resampling_table[i].alias)) {
            *method = (cogpu_resampling)i;
            return COGPU_OK;
        }
    return COGPU_ARGUMENT;
}
