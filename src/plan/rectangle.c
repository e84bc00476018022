/* Which source pixels a rectangle needs. */
#include "plan/rectangle.h"

#include "pixel/resample.h"

static uint32_t limit_to_range(double value, uint32_t low, uint32_t high) {
    return value < low ? low : value > high ? high : (uint32_t)value;
}

cogpu_rectangle_range cogpu_rectangle_averaged(double start, double step, uint32_t i, uint32_t low,
                                               uint32_t high) {
    double begin = i * step + start, end = (i + 1.0) * step + start;
    cogpu_rectangle_range range;
    if (step >= 1) {
        range.begin = limit_to_range(floor(begin + 0.5), low, high - 1);
        range.end = limit_to_range(floor(end + 0.5), range.begin, high);
    } else {
        range.begin = limit_to_range(floor(begin + 1e-10), low, high - 1);
        range.end = range.begin + 1;
    }
    return range;
}

static void find_side(const cogpu_rectangle *rectangle, double start, double step, uint32_t first,
                      uint32_t count, uint32_t low, uint32_t high, uint32_t *begin, uint32_t *end) {
    const uint32_t last = first + count - 1;
    if (rectangle->averages) {
        *begin = cogpu_rectangle_averaged(start, step, first, low, high).begin;
        *end = cogpu_rectangle_averaged(start, step, last, low, high).end;
        *end = *end > *begin ? *end : *begin + 1;
    } else if (rectangle->method == COGPU_RESAMPLE_NEAREST) {
        *begin = cogpu_rectangle_nearest(start, step, first, low, high);
        *end = cogpu_rectangle_nearest(start, step, last, low, high) + 1;
    } else {
        start -= low;
        *begin = low + resampling_support(rectangle->method, high - low, step, start, first).begin;
        *end = low + resampling_support(rectangle->method, high - low, step, start, last).end;
    }
}

cogpu_rectangle_need cogpu_rectangle_needs(const cogpu_rectangle *rectangle) {
    cogpu_rectangle_need need;
    find_side(rectangle, rectangle->x, rectangle->step_x, rectangle->to_x, rectangle->width,
              rectangle->low_x, rectangle->high_x, &need.x0, &need.x1);
    find_side(rectangle, rectangle->y, rectangle->step_y, rectangle->to_y, rectangle->height,
              rectangle->low_y, rectangle->high_y, &need.y0, &need.y1);
    return need;
}
