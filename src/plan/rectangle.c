/* Which source pixels a rectangle needs. */
#include "plan/rectangle.h"

#include "pixel/resample.h"

static void find_side(const cogpu_rectangle *rectangle, double start, double step, uint32_t first,
                      uint32_t count, uint32_t low, uint32_t high, uint32_t *begin, uint32_t *end) {
    const uint32_t last = first + count - 1;
    if (rectangle->method == COGPU_RESAMPLE_NEAREST) {
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
