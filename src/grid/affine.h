/* Affine transforms as GDAL's geotransforms: x' = t[0] + x t[1] + y t[2], y' = t[3] + x t[4] +
 * y t[5]. Sums are from left to right: results have the same bits as GDAL's. */
#ifndef COGPU_GRID_AFFINE_H
#define COGPU_GRID_AFFINE_H

#include <math.h>
#include <stdbool.h>

static inline void apply_affine(const double t[6], double *x, double *y) {
    double column = *x, row = *y;
    *x = t[0] + column * t[1] + row * t[2];
    *y = t[3] + column * t[4] + row * t[5];
}

/* False if there is no inverse, or if it is not a number. */
static inline bool invert_affine(const double t[6], double inverse[6]) {
    if (t[2] == 0 && t[4] == 0 && t[1] != 0 && t[5] != 0) {
        inverse[0] = -t[0] / t[1];
        inverse[1] = 1 / t[1];
        inverse[2] = 0;
        inverse[3] = -t[3] / t[5];
        inverse[4] = 0;
        inverse[5] = 1 / t[5];
    } else {
        double determinant = t[1] * t[5] - t[2] * t[4];
        double largest = fmax(fmax(fabs(t[1]), fabs(t[2])), fmax(fabs(t[4]), fabs(t[5])));
        if (!(fabs(determinant) > 1e-10 * largest * largest))
            return false;
        double scale = 1 / determinant;
        inverse[1] = t[5] * scale;
        inverse[4] = -t[4] * scale;
        inverse[2] = -t[2] * scale;
        inverse[5] = t[1] * scale;
        inverse[0] = (t[2] * t[3] - t[0] * t[5]) * scale;
        inverse[3] = (-t[1] * t[3] + t[0] * t[4]) * scale;
    }
    for (int i = 0; i < 6; i++)
        if (!isfinite(inverse[i]))
            return false;
    return true;
}

#endif
