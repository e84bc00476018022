/* Which source pixels a rectangle needs. */
#include "plan/rectangle.h"

#include "pixel/resample.h"

static uint32_t limit_to_range(double value, uint32_t low, uint32_t high) {
    return value < low ? low : value > high ? high : (uint32_t)value;
}

cogpu_rectangle_range cogpu_rectangle_averaged(const cogpu_rectangle_axis *axis, uint32_t i) {
    const uint32_t low = axis->origin, high = axis->origin + axis->count;
    const double pixel = (double)axis->whole / axis->pixels;
    const double at = ((double)axis->first + i) / axis->pixels * axis->whole;
    const double begin = (at - axis->to) / axis->to_size * axis->from_size + axis->from;
    const double end = (at + pixel - axis->to) / axis->to_size * axis->from_size + axis->from;
    cogpu_rectangle_range range;
    if (end >= begin + 1) {
        range.begin = limit_to_range(floor(begin + 0.5), low, high);
        range.end = limit_to_range(floor(end + 0.5), range.begin, high);
    } else {
        range.begin = limit_to_range(floor(begin), low, high);
        range.end = limit_to_range(floor(begin) + 1, range.begin, high);
    }
    return range;
}

/* One side of a rectangle. */
struct rectangle_side {
    double start, step;
    uint32_t first, last; /* target pixels */
    uint32_t low, high;
    const cogpu_rectangle_axis *axis;
};

static struct rectangle_side across_of(const cogpu_rectangle *in) {
    return (struct rectangle_side){.start = in->x,
                                   .step = in->step_x,
                                   .first = in->to_x,
                                   .last = in->to_x + in->width - 1,
                                   .low = in->low_x,
                                   .high = in->high_x,
                                   .axis = &in->across};
}

static struct rectangle_side down_of(const cogpu_rectangle *in) {
    return (struct rectangle_side){.start = in->y,
                                   .step = in->step_y,
                                   .first = in->to_y,
                                   .last = in->to_y + in->height - 1,
                                   .low = in->low_y,
                                   .high = in->high_y,
                                   .axis = &in->down};
}

static cogpu_rectangle_range find_support(cogpu_resampling method,
                                          const struct rectangle_side *side, double ratio,
                                          uint32_t first, uint32_t last) {
    const uint32_t size = side->high - side->low;
    const double offset = side->start - side->low;
    return (cogpu_rectangle_range){
        side->low + resampling_support(method, size, ratio, offset, first).begin,
        side->low + resampling_support(method, size, ratio, offset, last).end};
}

/* Never empty. */
static cogpu_rectangle_range find_averaged(const struct rectangle_side *side) {
    const uint32_t last = side->axis->origin + side->axis->count - 1;
    cogpu_rectangle_range range = {cogpu_rectangle_averaged(side->axis, side->first).begin,
                                   cogpu_rectangle_averaged(side->axis, side->last).end};
    range.begin = range.begin < last ? range.begin : last;
    range.end = range.end > range.begin ? range.end : range.begin + 1;
    return range;
}

/* A side of whole pixels begins and ends with them. */
static bool is_whole(const struct rectangle_side *side) {
    const double tolerance = 1e-6;
    return fabs(side->start - side->axis->origin) < tolerance &&
           fabs(side->axis->length - side->axis->count) < tolerance;
}

bool cogpu_rectangle_is_averaged_twice(const cogpu_rectangle *rectangle) {
    const struct rectangle_side across = across_of(rectangle), down = down_of(rectangle);
    return rectangle->averages && !(is_whole(&across) && is_whole(&down));
}

static cogpu_rectangle_range find_nearest(const struct rectangle_side *side, double step,
                                          uint32_t first, uint32_t last) {
    return (cogpu_rectangle_range){
        cogpu_rectangle_nearest(side->start, step, first, side->low, side->high),
        cogpu_rectangle_nearest(side->start, step, last, side->low, side->high) + 1};
}

static cogpu_rectangle_range find_side(const cogpu_rectangle *in,
                                       const struct rectangle_side *side) {
    double step = side->step;
    uint32_t first = side->first, last = side->last;
    if (in->averages) {
        cogpu_rectangle_range range = find_averaged(side);
        if (!cogpu_rectangle_is_averaged_twice(in))
            return range;
        step = side->axis->length / side->axis->count;
        first = range.begin - side->axis->origin;
        last = range.end - side->axis->origin - 1;
    }
    return in->method == COGPU_RESAMPLE_NEAREST ? find_nearest(side, step, first, last)
                                                : find_support(in->method, side, step, first, last);
}

cogpu_rectangle_need cogpu_rectangle_needs(const cogpu_rectangle *rectangle) {
    const struct rectangle_side across = across_of(rectangle), down = down_of(rectangle);
    const cogpu_rectangle_range x = find_side(rectangle, &across), y = find_side(rectangle, &down);
    return (cogpu_rectangle_need){x.begin, y.begin, x.end, y.end};
}

void cogpu_rectangle_averages_need(const cogpu_rectangle *rectangle, cogpu_rectangle_range *columns,
                                   cogpu_rectangle_range *rows) {
    const struct rectangle_side across = across_of(rectangle), down = down_of(rectangle);
    *columns = find_averaged(&across);
    *rows = find_averaged(&down);
}
