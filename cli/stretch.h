/* Values of any range as the 256 grays of a picture. */
#ifndef COGPU_CLI_STRETCH_H
#define COGPU_CLI_STRETCH_H

#include "cogpu.h"

typedef struct cogpu_range {
    double low, high; /* that become black and white */
} cogpu_range;

/* The range between two percentiles (NumPy's, with linear interpolation) of the pixels that are not
 * NaN; from smallest to largest where the percentiles are one value; 0 to 0 without such pixels.
 * Of many such pixels every n-th is looked at. */
cogpu_status cogpu_stretch_find(const double *pixels, size_t count, const double percent[2],
                                cogpu_range *range, cogpu_error *error);

/* The middle where the range is one value. */
uint8_t cogpu_stretch_apply(const cogpu_range *range, double value);

#endif
