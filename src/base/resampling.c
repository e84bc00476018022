/* The table of resampling methods, and the public functions that read it. */
#include "base/resampling.h"

#include "base/names.h"
#include "base/text.h"
#include "base/type.h"

const cogpu_resampling_row cogpu_resampling_table[COGPU_RESAMPLING_COUNT] = {
    [COGPU_RESAMPLE_DEFAULT] = {"default", NULL, RESAMPLING_COPY, 0},
    [COGPU_RESAMPLE_NEAREST] = {"nearest", "near", RESAMPLING_COPY, 0},
    [COGPU_RESAMPLE_AVERAGE] = {"average", "mean", RESAMPLING_MEAN, 0},
    [COGPU_RESAMPLE_RMS] = {"rms", NULL, RESAMPLING_MEAN, 0},
    [COGPU_RESAMPLE_BILINEAR] = {"bilinear", NULL, RESAMPLING_KERNEL, 1},
    [COGPU_RESAMPLE_CUBIC] = {"cubic", NULL, RESAMPLING_KERNEL, 2},
    [COGPU_RESAMPLE_MODE] = {"mode", NULL, RESAMPLING_SELECT, 0},
    [COGPU_RESAMPLE_MIN] = {"min", NULL, RESAMPLING_SELECT, 0},
    [COGPU_RESAMPLE_MAX] = {"max", NULL, RESAMPLING_SELECT, 0},
    [COGPU_RESAMPLE_MEDIAN] = {"median", "med", RESAMPLING_SELECT, 0},
    [COGPU_RESAMPLE_CUBICSPLINE] = {"cubicspline", "cubic_spline", RESAMPLING_KERNEL, 2},
    [COGPU_RESAMPLE_LANCZOS] = {"lanczos", NULL, RESAMPLING_KERNEL, 3},
    [COGPU_RESAMPLE_Q1] = {"q1", NULL, RESAMPLING_SELECT, 0},
    [COGPU_RESAMPLE_Q3] = {"q3", NULL, RESAMPLING_SELECT, 0},
    [COGPU_RESAMPLE_SUM] = {"sum", NULL, RESAMPLING_SUM, 0},
};

cogpu_resampling cogpu_resampling_default(cogpu_type type, bool has_palette) {
    return has_palette || cogpu_type_is_complex(type) ? COGPU_RESAMPLE_NEAREST
                                                      : COGPU_RESAMPLE_AVERAGE;
}

const char *cogpu_resampling_name(cogpu_resampling method) {
    return cogpu_resampling_is_valid(method) ? cogpu_resampling_table[method].name : NULL;
}

static const char *resampling_name_at(unsigned index) {
    return index < COGPU_RESAMPLING_COUNT ? cogpu_resampling_table[index].name : NULL;
}

cogpu_status cogpu_resampling_parse(const char *name, cogpu_resampling *method,
                                    cogpu_error *error) {
    cogpu_error_clear(error);
    for (unsigned i = 0; name && i < COGPU_RESAMPLING_COUNT; i++)
        if (is_same_name(name, cogpu_resampling_table[i].name) ||
            is_same_name(name, cogpu_resampling_table[i].alias)) {
            *method = (cogpu_resampling)i;
            return COGPU_OK;
        }
    return cogpu_fail_unknown_name(error, "resampling method", name, resampling_name_at);
}
