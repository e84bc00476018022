/*
 * Scale factors of a warp and the overview level that it reads.
 *
 * GDAL derives the scale of a chunk from its source window (GDALWarpOperation::ComputeSourceWindow)
 * and divides a chunk whose window is mostly outside the source. Here the chunk is the whole
 * target, or the part of it that the source may touch.
 */
#include "grid/affine.h"
#include "grid/grid.h"

#include <math.h>

enum {
    EDGE_POINTS = 21,
    SIDE_POINTS = EDGE_POINTS + 2, /* of the lattice: two are centres of the outer pixels */
    RATIO_SIDE = 10,
    UNDIVIDED = 100 /* pixels a side that GDAL does not divide */
};

/* Least and greatest source position of one axis. */
typedef struct extremes {
    double least, most;
} extremes;

typedef struct source_window {
    extremes x, y;
    uint32_t failed;
} source_window;

static const source_window NOTHING = {{INFINITY, -INFINITY}, {INFINITY, -INFINITY}, 0};

/* fmin and fmax ignore NaN. */
static void extend(extremes *to, uint32_t count, const double *values) {
    for (uint32_t i = 0; i < count; i++) {
        to->least = fmin(to->least, values[i]);
        to->most = fmax(to->most, values[i]);
    }
}

static void add_positions(source_window *to, uint32_t count, const double *x, const double *y) {
    extend(&to->x, count, x);
    extend(&to->y, count, y);
    for (uint32_t i = 0; i < count; i++)
        to->failed += isnan(x[i]) ? 1 : 0;
}

/* ---- the source window of a part of the target ---------------------------------------------- */

/* Whether a pole is in the grid of a geographic CRS. GDAL asks the same of every CRS: 89.9999 units
 * from the origin, which is a pole of polar projections, too. */
static bool contains_pole(const cogpu_placement *target) {
    double inverse[6];
    if (!invert_affine(target->transform, inverse))
        return false;
    for (int sign = -1; sign <= 1; sign += 2) {
        double x = 0, y = sign * 89.9999;
        apply_affine(inverse, &x, &y);
        if (x >= 0 && x <= target->width && y >= 0 && y <= target->height)
            return true;
    }
    return false;
}

static void sample_edges(const cogpu_transformer *transformer, const cogpu_box *part,
                         source_window *window) {
    for (int edge = 0; edge < 4; edge++) {
        double x[EDGE_POINTS], y[EDGE_POINTS];
        for (int i = 0; i < EDGE_POINTS; i++) {
            const double ratio = (double)i / (EDGE_POINTS - 1);
            const double u = edge < 2 ? ratio : edge - 2, v = edge < 2 ? edge : ratio;
            x[i] = (double)part->x0 + u * (double)(part->x1 - part->x0);
            y[i] = (double)part->y0 + v * (double)(part->y1 - part->y0);
        }
        cogpu_to_source(transformer, EDGE_POINTS, x, y);
        add_positions(window, EDGE_POINTS, x, y);
    }
}

/* Steps are added up, as GDAL does: the middle, where longitudes often turn over, is a little less
 * than a half. */
static void find_ratios(double pixels, double ratios[SIDE_POINTS]) {
    double ratio = 0;
    ratios[0] = 0.5 / pixels;
    ratios[SIDE_POINTS - 1] = 1 - 0.5 / pixels;
    for (int i = 1; i < SIDE_POINTS - 1; i++, ratio += 1.0 / (EDGE_POINTS - 1))
        ratios[i] = ratio;
}

static void sample_lattice(const cogpu_transformer *transformer, const cogpu_box *part,
                           source_window *window) {
    const double wide = (double)(part->x1 - part->x0), high = (double)(part->y1 - part->y0);
    double ratios[SIDE_POINTS];
    find_ratios(wide, ratios);
    for (int j = 0; j < SIDE_POINTS; j++) {
        double x[SIDE_POINTS], y[SIDE_POINTS];
        for (int i = 0; i < SIDE_POINTS; i++) {
            x[i] = (double)part->x0 + ratios[i] * wide;
            y[i] = (double)part->y0 + ratios[j] * high;
        }
        cogpu_to_source(transformer, SIDE_POINTS, x, y);
        add_positions(window, SIDE_POINTS, x, y);
    }
}

/* Points of the source that lie in the part. */
static void sample_source(const cogpu_transformer *transformer, const cogpu_placement *source,
                          const cogpu_box *part, source_window *window) {
    double ratios[SIDE_POINTS];
    find_ratios(source->width, ratios);
    for (int j = 0; j < SIDE_POINTS; j++) {
        double x[SIDE_POINTS], y[SIDE_POINTS], from_x[SIDE_POINTS];
        const double from_y = ratios[j] * source->height;
        for (int i = 0; i < SIDE_POINTS; i++) {
            x[i] = from_x[i] = ratios[i] * source->width;
            y[i] = from_y;
        }
        cogpu_to_target(transformer, SIDE_POINTS, x, y);
        for (int i = 0; i < SIDE_POINTS; i++)
            if (x[i] >= (double)part->x0 && x[i] <= (double)part->x1 && y[i] >= (double)part->y0 &&
                y[i] <= (double)part->y1)
                add_positions(window, 1, &from_x[i], &from_y);
    }
}

static double round_close(double value) {
    const double whole = round(value);
    return fabs(whole - value) < 1e-6 ? whole : value;
}

static source_window find_window(const cogpu_transformer *transformer,
                                 const cogpu_placement *source, const cogpu_placement *target,
                                 const cogpu_box *part) {
    source_window window = NOTHING;
    sample_edges(transformer, part, &window);
    if (window.failed || contains_pole(target)) {
        window = NOTHING;
        sample_lattice(transformer, part, &window);
        sample_source(transformer, source, part, &window);
    }
    window.x = (extremes){round_close(window.x.least), round_close(window.x.most)};
    window.y = (extremes){round_close(window.y.least), round_close(window.y.most)};
    return window;
}

/* ---- scale --------------------------------------------------------------------------------- */

/* One axis of a window: what GDAL reads of the source, and why. */
typedef struct window_axis {
    double first, size; /* read, in whole pixels */
    double raw;         /* without margins */
    double padded;      /* with margins, but not clipped */
} window_axis;

static window_axis read_axis(extremes found, double pixels, double size, double radius,
                             uint32_t failed) {
    const double scale = fmax(1e-3, pixels / (found.most - found.least));
    const double margin = (scale < 0.95 ? ceil(radius / scale) : radius) + (failed ? 10 : 0);
    const double first = fmin(fmax(floor(found.least), 0), size);
    const double end = fmin(fmax(ceil(found.most), 0), size);
    window_axis axis = {.first = 0, .size = size};
    if (end - first <= 0.9 * size) {
        axis.first = fmin(fmax(first - margin, 0), size);
        axis.size = fmax(0, fmin(size - axis.first, end - axis.first + margin));
    }
    axis.raw = fmin(fmax(found.most - found.least, 0), size - first);
    axis.padded = ceil(found.most) - floor(found.least) + 2 * margin;
    return axis;
}

static double scale_axis(const window_axis *axis, double pixels) {
    const double extra = axis->size - axis->raw;
    double scale = pixels / axis->raw;
    if (axis->size >= pixels && axis->size <= pixels + extra)
        scale = 1;
    if (!(scale > 0) || !isfinite(scale))
        return 1;
    const double whole = floor(1 / scale + 0.5);
    return scale < 1 && fabs(1 / scale - whole) < 0.05 ? 1 / whole : scale;
}

static cogpu_box whole_grid(const cogpu_placement *target) {
    return (cogpu_box){0, 0, target->width, target->height};
}

void cogpu_warp_scale(const cogpu_transformer *transformer, const cogpu_placement *source,
                      const cogpu_placement *target, double radius, double *scale_x,
                      double *scale_y) {
    cogpu_box part = whole_grid(target);
    *scale_x = *scale_y = 1;
    for (int attempt = 0; attempt < 2; attempt++) {
        const source_window window = find_window(transformer, source, target, &part);
        const double wide = (double)(part.x1 - part.x0), high = (double)(part.y1 - part.y0);
        if (!(window.x.least < window.x.most && window.y.least < window.y.most))
            return;
        const window_axis x = read_axis(window.x, wide, source->width, radius, window.failed);
        const window_axis y = read_axis(window.y, high, source->height, radius, window.failed);
        *scale_x = scale_axis(&x, wide);
        *scale_y = scale_axis(&y, high);
        const bool is_mostly_inside = x.size * y.size >= 0.5 * x.padded * y.padded;
        if (is_mostly_inside || fmax(wide, high) <= UNDIVIDED)
            return;
        part = cogpu_source_extent(transformer, source, target);
        if (part.x0 >= part.x1)
            return;
    }
}

/* ---- overview level ------------------------------------------------------------------------ */

static source_window sample_part(const cogpu_transformer *transformer, const cogpu_box *part) {
    source_window window = NOTHING;
    for (int j = 0; j < RATIO_SIDE; j++) {
        double x[RATIO_SIDE], y[RATIO_SIDE];
        for (int i = 0; i < RATIO_SIDE; i++) {
            x[i] = (double)part->x0 + i * (double)(part->x1 - part->x0) / (RATIO_SIDE - 1);
            y[i] = (double)part->y0 + j * (double)(part->y1 - part->y0) / (RATIO_SIDE - 1);
        }
        cogpu_to_source(transformer, RATIO_SIDE, x, y);
        add_positions(&window, RATIO_SIDE, x, y);
    }
    return window;
}

/* Whether positions are further outside the source than the source is large: in a large mosaic,
 * they say nothing about the source's part of it. */
static bool is_far(const source_window *window, const cogpu_placement *source) {
    return window->failed || window->x.least < -(double)source->width ||
           window->x.most > 2.0 * source->width || window->y.least < -(double)source->height ||
           window->y.most > 2.0 * source->height;
}

double cogpu_warp_ratio(const cogpu_transformer *transformer, const cogpu_placement *source,
                        const cogpu_placement *target) {
    cogpu_box part = whole_grid(target);
    source_window window = sample_part(transformer, &part);
    if (is_far(&window, source)) {
        const cogpu_box touched = cogpu_source_extent(transformer, source, target);
        if (touched.x0 < touched.x1) {
            part = touched;
            window = sample_part(transformer, &part);
        }
    }
    const double ratio = fmin((window.x.most - window.x.least) / (double)(part.x1 - part.x0),
                              (window.y.most - window.y.least) / (double)(part.y1 - part.y0));
    return isfinite(ratio) && ratio > 0 ? ratio : 1;
}

uint32_t cogpu_choose_level(const cogpu_pyramid *pyramid, double ratio) {
    const cogpu_storage *full = &pyramid->levels[0].storage;
    uint32_t chosen = 0;
    double best = 1;
    for (uint32_t i = 1; i < pyramid->info.levels && ratio > 1 && fabs(ratio - best) >= 0.1; i++) {
        const cogpu_storage *level = &pyramid->levels[i].storage;
        const double found =
            fmin((double)full->width / level->width, (double)full->height / level->height);
        if (found < ratio + 0.1 && found > best)
            chosen = i, best = found;
    }
    return chosen;
}
