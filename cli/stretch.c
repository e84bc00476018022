/*
 * The value range that a picture of pixels shows.
 */
#include "stretch.h"

#include "report.h"

#include <math.h>
#include <stdlib.h>

static const size_t most_samples = 1 << 18; /* enough for percentiles, and soon sorted */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double percentile_of(const double *sorted, size_t count, double percent) {
    double place = percent / 100 * (double)(count - 1);
    size_t below = (size_t)place;
    if (below + 1 >= count)
        return sorted[count - 1];
    double part = place - (double)below;
    return sorted[below] * (1 - part) + sorted[below + 1] * part;
}

cogpu_status cogpu_stretch_find(const double *pixels, size_t count, const double percent[2],
                                cogpu_range *range, cogpu_error *error) {
    size_t valid = 0, seen = 0, samples = 0;
    for (size_t i = 0; i < count; i++)
        valid += isnan(pixels[i]) ? 0 : 1;
    size_t step = valid / most_samples + 1;
    double *sorted = malloc((valid / step + 1) * sizeof *sorted);
    if (!sorted)
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for the range of the pixels");
    for (size_t i = 0; i < count; i++)
        if (!isnan(pixels[i]) && seen++ % step == 0)
            sorted[samples++] = pixels[i];
    qsort(sorted, samples, sizeof *sorted, by_value);
    *range = (cogpu_range){0, 0};
    if (samples > 0) {
        range->low = percentile_of(sorted, samples, percent[0]);
        range->high = percentile_of(sorted, samples, percent[1]);
        if (range->low == range->high)
            *range = (cogpu_range){sorted[0], sorted[samples - 1]};
    }
    free(sorted);
    return COGPU_OK;
}

uint8_t cogpu_stretch_apply(const cogpu_range *range, double value) {
    /* long, since the distance of two doubles need not be one */
    long double width = (long double)range->high - range->low;
    long double part = width > 0 ? ((long double)value - range->low) / width : 0.5L;
    if (part <= 0)
        return 0;
    return part >= 1 ? 255 : (uint8_t)(part * 255 + 0.5L);
}
