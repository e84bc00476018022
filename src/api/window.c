/* Public functions between pixels and coordinates, for GDAL's geotransform. */
#include "api/sized.h"

#include <math.h>
#include <stdbool.h>

void cogpu_pixel_to_coordinate(const double transform[6], double column, double row, double *x,
                               double *y) {
    const double *t = transform;
    *x = t[0] + column * t[1] + row * t[2];
    *y = t[3] + column * t[4] + row * t[5];
}

cogpu_status cogpu_coordinate_to_pixel(const double transform[6], double x, double y,
                                       double *column, double *row, cogpu_error *error) {
    const double *t = transform;
    cogpu_error_clear(error);
    if (!transform || !column || !row)
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "cogpu_coordinate_to_pixel needs a transform and pointers for column and row");
    const double determinant = t[1] * t[5] - t[2] * t[4];
    if (!isfinite(determinant) || determinant == 0)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the transform has no inverse");
    *column = (t[5] * (x - t[0]) - t[2] * (y - t[3])) / determinant;
    *row = (t[1] * (y - t[3]) - t[4] * (x - t[0])) / determinant;
    return COGPU_OK;
}

/* The pixels of one axis between two coordinates: from *first on, *count of them. */
static bool find_pixels(double origin, double step, double low, double high, uint32_t size,
                        uint32_t *first, uint32_t *count) {
    const double tolerance = 1e-6;
    double a = (low - origin) / step, b = (high - origin) / step;
    double begin = fmax(floor(fmin(a, b) + tolerance), 0);
    double end = fmin(ceil(fmax(a, b) - tolerance), size);
    if (!(begin < end))
        return false;
    *first = (uint32_t)begin;
    *count = (uint32_t)(end - begin);
    return true;
}

static cogpu_status fail_outside(const double *t, uint32_t width, uint32_t height,
                                 cogpu_error *error) {
    const double x = t[0] + t[1] * width, y = t[3] + t[5] * height;
    return cogpu_fail(error, COGPU_NOT_FOUND,
                      "the bounding box does not touch the image, which spans %.15g,%.15g,%.15g,"
                      "%.15g",
                      fmin(t[0], x), fmin(t[3], y), fmax(t[0], x), fmax(t[3], y));
}

cogpu_status cogpu_bbox_to_window(const double transform[6], uint32_t width, uint32_t height,
                                  const double bbox[4], cogpu_window *window, cogpu_error *error) {
    const double *t = transform;
    cogpu_window found = COGPU_WINDOW_INIT;
    cogpu_error_clear(error);
    if (!transform || !bbox || !window)
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "cogpu_bbox_to_window needs a transform, a bounding box and a pointer for the window");
    TRY(CHECK_STRUCT(window, cogpu_window, error));
    if (t[2] != 0 || t[4] != 0)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the transform is rotated, so a bounding box is no window; use pixels");
    if (!isfinite(t[0]) || !isfinite(t[3]) || !isnormal(t[1]) || !isnormal(t[5]))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the transform has no inverse");
    for (int i = 0; i < 4; i++)
        if (isnan(bbox[i]))
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "the bounding box has a NaN");
    if (!find_pixels(t[0], t[1], bbox[0], bbox[2], width, &found.x, &found.width) ||
        !find_pixels(t[3], t[5], bbox[1], bbox[3], height, &found.y, &found.height))
        return fail_outside(t, width, height, error);
    GIVE_STRUCT(window, &found);
    return COGPU_OK;
}
