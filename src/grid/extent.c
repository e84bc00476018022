/*
 * The part of a target grid that a source may touch. Points of the source are projected on 5 x 5
 * places; if neighbours differ smoothly, the differences bound what lies between. If not, 33 x 33
 * places are projected, in both directions, and boxes grow by the distance of neighbours. Where
 * positions are missing or endless, the whole grid counts.
 */
#include "grid/grid.h"

#include <math.h>

enum { FEW = 5, MANY = 33 };

/* Positions of one axis: bounds, and the largest differences of neighbours. */
typedef struct axis_extent {
    double least, most;
    double first, second; /* largest first and second difference */
} axis_extent;

typedef struct extent {
    axis_extent x, y;
    uint32_t failed;
} extent;

static const extent NOTHING = {{INFINITY, -INFINITY, 0, 0}, {INFINITY, -INFINITY, 0, 0}, 0};

static void add_line(axis_extent *to, const double *values, int count, int step) {
    for (int i = 0; i < count; i++) {
        const double a = values[i * step];
        to->least = fmin(to->least, a), to->most = fmax(to->most, a);
        if (i + 1 < count)
            to->first = fmax(to->first, fabs(values[(i + 1) * step] - a));
        if (i + 2 < count)
            to->second =
                fmax(to->second, fabs(values[(i + 2) * step] - 2 * values[(i + 1) * step] + a));
    }
}

static extent project_source(const cogpu_transformer *transformer, const cogpu_placement *source,
                             int side) {
    double x[MANY * MANY], y[MANY * MANY];
    extent found = NOTHING;
    for (int i = 0; i < side * side; i++) {
        x[i] = source->width * (double)(i % side) / (side - 1);
        y[i] = source->height * (double)(i / side) / (side - 1);
    }
    cogpu_to_target(transformer, (size_t)side * (size_t)side, x, y);
    for (int i = 0; i < side * side; i++)
        found.failed += isnan(x[i]) ? 1 : 0;
    for (int line = 0; line < side; line++) {
        add_line(&found.x, x + line * side, side, 1), add_line(&found.x, x + line, side, side);
        add_line(&found.y, y + line * side, side, 1), add_line(&found.y, y + line, side, side);
    }
    return found;
}

/* The second difference of a curve bounds its distance from the chord by an eighth; more, where the
 * curvature changes. */
static bool is_smooth(const extent *found) {
    return found->failed == 0 && found->x.second <= 0.125 * found->x.first + 1 &&
           found->y.second <= 0.125 * found->y.first + 1;
}

/* Whole pixels with a margin: two target pixels, and one source pixel. */
static void place_box(const axis_extent *from, double margin, double source_pixel, uint32_t size,
                      int64_t *first, int64_t *end) {
    const double whole = 2 + margin + source_pixel;
    *first = (int64_t)fmin(fmax(floor(from->least - whole), 0), size);
    *end = (int64_t)fmin(fmax(ceil(from->most + whole), 0), size);
}

/* Adds points of the target that lie in the source, and their surroundings. */
static void add_target(const cogpu_transformer *transformer, const cogpu_placement *source,
                       const cogpu_placement *target, extent *found) {
    double x[MANY * MANY], y[MANY * MANY];
    const double step_x = target->width / (MANY - 1.0), step_y = target->height / (MANY - 1.0);
    for (int i = 0; i < MANY * MANY; i++)
        x[i] = step_x * (i % MANY), y[i] = step_y * (double)(i / MANY);
    cogpu_to_source(transformer, MANY * MANY, x, y);
    for (int i = 0; i < MANY * MANY; i++) {
        const double at_x = step_x * (i % MANY), at_y = step_y * (double)(i / MANY);
        if (!(x[i] >= 0 && x[i] <= source->width && y[i] >= 0 && y[i] <= source->height))
            continue;
        found->x.least = fmin(found->x.least, at_x - step_x);
        found->x.most = fmax(found->x.most, at_x + step_x);
        found->y.least = fmin(found->y.least, at_y - step_y);
        found->y.most = fmax(found->y.most, at_y + step_y);
    }
}

cogpu_box cogpu_source_extent(const cogpu_transformer *transformer, const cogpu_placement *source,
                              const cogpu_placement *target) {
    int side = FEW;
    extent found = project_source(transformer, source, side);
    const bool smooth = is_smooth(&found);
    if (!smooth) {
        side = MANY;
        found = project_source(transformer, source, side);
        add_target(transformer, source, target, &found);
    }
    cogpu_box box = {0, 0, target->width, target->height};
    if (found.failed)
        return box;
    const double pixels = fmin(source->width, source->height) / (side - 1);
    place_box(&found.x, smooth ? found.x.second : found.x.first, found.x.first / pixels,
              target->width, &box.x0, &box.x1);
    place_box(&found.y, smooth ? found.y.second : found.y.first, found.y.first / pixels,
              target->height, &box.y0, &box.y1);
    return box;
}
