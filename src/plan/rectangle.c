/* Which source pixels a rectangle needs. */
#include "plan/rectangle.h"

#include "pixel/resample.h"

static void find_side(const cogpu_rectangle *rectangle, double start, double step, uint32_t first,
                      uint32_t count, uint32_t size, uint32_t *begin, uint32_t *end) {
    const uint32_t last = first + count - 1;
    if (rectangle->method == COGPU_RESAMPLE_NEAREST) {
        *begin = cogpu_rectangle_nearest(start, step, first, size);
        *end = cogpu_rectangle_nearest(start, step, last, size) + 1;
    } else {
        *begin = resampling_support(rectangle->method, size, step, start, first).begin;
        *end = resampling_support(rectangle->method, size, step, start, last).end;
    }
}

cogpu_rectangle_need cogpu_rectangle_needs(const cogpu_rectangle *rectangle) {
    cogpu_rectangle_need need;
    find_side(rectangle, rectangle->x, rectangle->step_x, rectangle->to_x, rectangle->width,
              rectangle->level_width, &need.x0, &need.x1);
    find_side(rectangle, rectangle->y, rectangle->step_y, rectangle->to_y, rectangle->height,
              rectangle->level_height, &need.y0, &need.y1);
    return need;
}
