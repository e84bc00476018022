/* The resolution of a source in a box of the grid's CRS, as gdalwarp measures it for -te. */
#include "grid/suggest.h"

#include <math.h>
#include <stdlib.h>

enum { GRID_SIDE = 10 };

static int compare_numbers(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Units of the CRS for a source pixel, at one point: the mean of both axes. */
static double measure_point(const cogpu_transformer *transformer, const cogpu_placement *source,
                            const cogpu_bounds *box, uint32_t i, uint32_t j, bool *is_inside) {
    static const double margin = 1e-4; /* of rounding */
    const double wide = box->right - box->left, high = box->top - box->bottom;
    const double step = fmin(wide, high) / 1000;
    const double at_x = box->left + wide * i / (GRID_SIDE - 1);
    const double at_y = box->bottom + high * j / (GRID_SIDE - 1);
    double x[3] = {at_x, i + 1 < GRID_SIDE ? at_x + step : at_x - step, at_x};
    double y[3] = {at_y, at_y, j + 1 < GRID_SIDE ? at_y + step : at_y - step};
    cogpu_to_source(transformer, 3, x, y);
    *is_inside = x[0] >= -margin && x[0] <= source->width + margin && y[0] >= -margin &&
                 y[0] <= source->height + margin;
    return (step / hypot(x[1] - x[0], y[1] - y[0]) + step / hypot(x[2] - x[0], y[2] - y[0])) / 2;
}

bool cogpu_measure_resolution(const cogpu_transformer *transformer, const cogpu_placement *source,
                              const cogpu_bounds *box, double *resolution) {
    double all[GRID_SIDE * GRID_SIDE];
    size_t count = 0, first = 0;
    double affine[6];
    /* GDAL asks for a point in the source if nothing is reprojected. */
    bool touches = !cogpu_transformer_is_affine(transformer, affine);
    for (uint32_t j = 0; j < GRID_SIDE; j++)
        for (uint32_t i = 0; i < GRID_SIDE; i++) {
            bool is_inside;
            const double one = measure_point(transformer, source, box, i, j, &is_inside);
            touches = touches || is_inside;
            if (isfinite(one) && one > 0)
                all[count++] = one;
        }
    if (count == 0 || !touches)
        return false;
    qsort(all, count, sizeof *all, compare_numbers);
    while (all[first] < all[count / 2] / 10)
        first++;
    *resolution = all[first];
    return true;
}
