/*
 * The part of a target grid that a source may touch. Points of the source are projected on 5 x 5
 * places; if neighbours differ smoothly, the differences bound the rest. If not, 33 x 33
 * places are projected, in both directions, and boxes grow by the distance of neighbours. Where
 * positions are missing or endless, the whole grid counts.
 */
#include "grid/affine.h"
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

/* Whole pixels of positions moved by `shift`, with a margin: two target pixels, and one source
 * pixel.
 */
static void place_axis(const axis_extent *from, double shift, double margin, double source_pixel,
                       uint32_t size, int64_t *first, int64_t *end) {
    const double whole = 2 + margin + source_pixel;
    *first = (int64_t)fmin(fmax(floor(from->least + shift - whole), 0), size);
    *end = (int64_t)fmin(fmax(ceil(from->most + shift + whole), 0), size);
}

static cogpu_box place_box(const extent *from, const double shift[2], bool smooth, double pixels,
                           const cogpu_placement *target) {
    cogpu_box box;
    place_axis(&from->x, shift[0], smooth ? from->x.second : from->x.first, from->x.first / pixels,
               target->width, &box.x0, &box.x1);
    place_axis(&from->y, shift[1], smooth ? from->y.second : from->y.first, from->y.first / pixels,
               target->height, &box.y0, &box.y1);
    return box;
}

static bool is_empty(const cogpu_box *box) {
    return box->x0 >= box->x1 || box->y0 >= box->y1;
}

static cogpu_box join_boxes(cogpu_box a, cogpu_box b) {
    if (is_empty(&a) || is_empty(&b))
        return is_empty(&a) ? b : a;
    return (cogpu_box){a.x0 < b.x0 ? a.x0 : b.x0, a.y0 < b.y0 ? a.y0 : b.y0,
                       a.x1 > b.x1 ? a.x1 : b.x1, a.y1 > b.y1 ? a.y1 : b.y1};
}

/* In a grid of longitudes, a source has places that are a turn apart. False if the grid is none: a
 * step of 360 units leads elsewhere. */
static bool find_turn(const cogpu_transformer *transformer, const cogpu_placement *target,
                      const extent *found, double turn[2]) {
    double inverse[6];
    if (!invert_affine(target->transform, inverse))
        return false;
    turn[0] = 360 * inverse[1], turn[1] = 360 * inverse[4];
    double x[3], y[3];
    for (int i = 0; i < 3; i++) {
        x[i] = (found->x.least + found->x.most) / 2 + (i - 1) * turn[0];
        y[i] = (found->y.least + found->y.most) / 2 + (i - 1) * turn[1];
    }
    cogpu_to_source(transformer, 3, x, y);
    return (fabs(x[0] - x[1]) < 1e-3 && fabs(y[0] - y[1]) < 1e-3) ||
           (fabs(x[2] - x[1]) < 1e-3 && fabs(y[2] - y[1]) < 1e-3);
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
    if (found.failed)
        return (cogpu_box){0, 0, target->width, target->height};
    const double pixels = fmin(source->width, source->height) / (side - 1);
    double shift[2] = {0, 0}, turn[2];
    cogpu_box box = place_box(&found, shift, smooth, pixels, target);
    const bool turns = find_turn(transformer, target, &found, turn);
    for (int i = -1; turns && i <= 1; i += 2) {
        shift[0] = i * turn[0], shift[1] = i * turn[1];
        box = join_boxes(box, place_box(&found, shift, smooth, pixels, target));
    }
    return is_empty(&box) ? (cogpu_box){0} : box;
}
