/* The table of resampling methods: names, and how a method makes a sample of those it covers. */
#ifndef COGPU_BASE_RESAMPLING_H
#define COGPU_BASE_RESAMPLING_H

#include "cogpu.h"

#include <stdbool.h>

typedef enum cogpu_resampling_kind {
    RESAMPLING_COPY,   /* one sample, as it is */
    RESAMPLING_MEAN,   /* a mean over the area of the new pixel */
    RESAMPLING_KERNEL, /* a sum weighted by a kernel */
    RESAMPLING_SELECT, /* one of the samples in the area, by count or by rank */
    RESAMPLING_SUM     /* the sum of the samples in the area */
} cogpu_resampling_kind;

typedef struct cogpu_resampling_row {
    const char *name;
    const char *alias; /* GDAL's or NumPy's other name; NULL: none */
    cogpu_resampling_kind kind;
    double kernel_radius; /* of RESAMPLING_KERNEL, in new pixels */
} cogpu_resampling_row;

enum {
    COGPU_RESAMPLING_OVERVIEW_COUNT = COGPU_RESAMPLE_MEDIAN + 1, /* methods of overviews */
    COGPU_RESAMPLING_COUNT = COGPU_RESAMPLE_SUM + 1
};
extern const cogpu_resampling_row cogpu_resampling_table[COGPU_RESAMPLING_COUNT];

/* For a method that was checked. */
static inline const cogpu_resampling_row *cogpu_resampling_find(cogpu_resampling method) {
    return &cogpu_resampling_table[method];
}

static inline bool cogpu_resampling_is_valid(cogpu_resampling method) {
    return (unsigned)method < COGPU_RESAMPLING_COUNT;
}

static inline bool cogpu_resampling_is_of_overviews(cogpu_resampling method) {
    return (unsigned)method < COGPU_RESAMPLING_OVERVIEW_COUNT;
}

/* What COGPU_RESAMPLE_DEFAULT stands for: palette indices and complex numbers have no mean. */
cogpu_resampling cogpu_resampling_default(cogpu_type type, bool has_palette);

#endif
