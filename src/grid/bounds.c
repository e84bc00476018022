/* See bounds.h. */
#include "grid/bounds.h"

#include "grid/operations.h"

#include <math.h>

enum { POINTS_OF_SIDE = 22 }; /* a corner and 21 points of the border after it */

/* The border, counter-clockwise from the upper left corner. */
static void place_border(const cogpu_bounds *box, double *x, double *y) {
    const double corners[5][2] = {{box->left, box->top},
                                  {box->left, box->bottom},
                                  {box->right, box->bottom},
                                  {box->right, box->top},
                                  {box->left, box->top}};
    for (int side = 0; side < 4; side++)
        for (int i = 0; i < POINTS_OF_SIDE; i++) {
            const double *a = corners[side], *b = corners[side + 1];
            x[side * POINTS_OF_SIDE + i] = a[0] + i * (b[0] - a[0]) / POINTS_OF_SIDE;
            y[side * POINTS_OF_SIDE + i] = a[1] + i * (b[1] - a[1]) / POINTS_OF_SIDE;
        }
}

/* Neighbours on the border are within half a turn. */
static void unwrap_longitudes(size_t count, double *x) {
    for (size_t i = 1; i < count; i++)
        if (!isnan(x[i]) && !isnan(x[i - 1]))
            x[i] += 360 * floor((x[i - 1] - x[i]) / 360 + 0.5);
}

static void add_pole(const cogpu_reprojection *reprojection, const cogpu_bounds *from,
                     double latitude, cogpu_bounds *to) {
    double x = 0, y = latitude;
    cogpu_reproject(reprojection, true, 1, &x, &y);
    if (!(x >= from->left && x <= from->right && y >= from->bottom && y <= from->top))
        return;
    to->left = -180, to->right = 180;
    to->bottom = fmin(to->bottom, latitude), to->top = fmax(to->top, latitude);
}

cogpu_status cogpu_bounds_reproject(const cogpu_bounds *from, const char *from_crs,
                                    const char *to_crs, cogpu_operations *operations,
                                    cogpu_bounds *to, cogpu_error *error) {
    enum { COUNT = 4 * POINTS_OF_SIDE };
    double x[COUNT], y[COUNT];
    cogpu_bounds box = *from;
    cogpu_reprojection reprojection, back;
    TRY(cogpu_operations_find(operations, from_crs, to_crs, NULL, &reprojection, error));
    TRY(cogpu_operations_find(operations, to_crs, from_crs, NULL, &back, error));
    if (box.left > box.right && reprojection.from_degrees)
        box.right += 360;
    if (box.left >= box.right)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "bbox of the grid is empty: left must be less than right");
    *to = box;
    if (!reprojection.operation)
        return COGPU_OK;
    place_border(&box, x, y);
    cogpu_reproject(&reprojection, false, COUNT, x, y);
    if (back.from_degrees)
        unwrap_longitudes(COUNT, x);
    *to = (cogpu_bounds){INFINITY, INFINITY, -INFINITY, -INFINITY};
    for (int i = 0; i < COUNT; i++) {
        to->left = fmin(to->left, x[i]), to->right = fmax(to->right, x[i]);
        to->bottom = fmin(to->bottom, y[i]), to->top = fmax(to->top, y[i]);
    }
    if (back.from_degrees && !reprojection.from_degrees) {
        add_pole(&reprojection, &box, 90, to);
        add_pole(&reprojection, &box, -90, to);
    }
    if (!(to->left < to->right && to->bottom < to->top && isfinite(to->right - to->left) &&
          isfinite(to->top - to->bottom)))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "bbox of the grid has no positions in the CRS of the grid");
    return COGPU_OK;
}
