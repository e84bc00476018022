/* The source pixels that a warp of a window needs: see grid.h. */
#include "grid/grid.h"

#include "base/math.h"
#include "grid/mapping.h"

#include <math.h>

enum { LANES = 8 };

/* Least and greatest of positions; NaN is ignored. */
typedef struct bounds {
    double x0, y0, x1, y1;
} bounds;

static const bounds NOTHING = {INFINITY, INFINITY, -INFINITY, -INFINITY};

static void add_position(bounds *to, double x, double y) {
    to->x0 = x < to->x0 ? x : to->x0, to->x1 = x > to->x1 ? x : to->x1;
    to->y0 = y < to->y0 ? y : to->y0, to->y1 = y > to->y1 ? y : to->y1;
}

/* Pairs in lanes, which compilers turn into vectors. */
static void add_pairs(bounds *to, const double *pairs, size_t count) {
    double least[LANES], most[LANES];
    size_t i = 0;
    for (uint32_t k = 0; k < LANES; k++)
        least[k] = INFINITY, most[k] = -INFINITY;
    for (; i + LANES / 2 <= count; i += LANES / 2)
        for (uint32_t k = 0; k < LANES; k++) {
            const double value = pairs[2 * i + k];
            least[k] = value < least[k] ? value : least[k];
            most[k] = value > most[k] ? value : most[k];
        }
    for (uint32_t k = 0; k < LANES; k += 2) {
        to->x0 = fmin(to->x0, least[k]), to->x1 = fmax(to->x1, most[k]);
        to->y0 = fmin(to->y0, least[k + 1]), to->y1 = fmax(to->y1, most[k + 1]);
    }
    for (; i < count; i++)
        add_position(to, pairs[2 * i], pairs[2 * i + 1]);
}

/* First and last point of a cell, in the window: its pixels, or their corners. */
typedef struct cell_span {
    uint32_t first, last;
} cell_span;

static cell_span clip_cell(uint32_t cell, uint32_t begin, uint32_t size, bool of_corners) {
    const uint32_t at = cell * COGPU_CELL_SIDE, end = begin + size;
    const uint32_t last = min_u32(at + COGPU_CELL_SIDE, end) - (of_corners ? 0 : 1);
    return (cell_span){begin > at ? begin - at : 0, last - at};
}

static void add_interpolated(bounds *to, const double *node, uint32_t across, cell_span x,
                             cell_span y) {
    const double *below = node + 2 * ((size_t)across + 1);
    for (uint32_t corner = 0; corner < 4; corner++) {
        const double u = (corner & 1 ? x.last : x.first) / (double)COGPU_CELL_SIDE;
        const double v = (corner & 2 ? y.last : y.first) / (double)COGPU_CELL_SIDE;
        const double above_x = node[0] + (node[2] - node[0]) * u;
        const double above_y = node[1] + (node[3] - node[1]) * u;
        const double below_x = below[0] + (below[2] - below[0]) * u;
        const double below_y = below[1] + (below[3] - below[1]) * u;
        add_position(to, above_x + (below_x - above_x) * v, above_y + (below_y - above_y) * v);
    }
}

static void add_cell(bounds *to, const cogpu_coordinates *in, uint32_t column, uint32_t row) {
    const cell_span x = clip_cell(in->first_cell_x + column, in->x, in->width, in->of_corners);
    const cell_span y = clip_cell(in->first_cell_y + row, in->y, in->height, in->of_corners);
    const uint32_t table = in->cells[(size_t)row * in->across + column];
    const uint32_t side = cogpu_cell_points(in);
    if (table == COGPU_CELL_INTERPOLATED) {
        add_interpolated(to, in->nodes + 2 * ((size_t)row * (in->across + 1) + column), in->across,
                         x, y);
        return;
    }
    for (uint32_t j = y.first; j <= y.last; j++)
        add_pairs(to, in->exact + 2 * (((size_t)table * side + j) * side + x.first),
                  x.last - x.first + 1);
}

/* Bilinear positions are extreme at the corners of cells. Cells at the border of the window count
 * as far as they are inside; of all others, the nodes count. */
static bounds find_bounds(const cogpu_coordinates *in) {
    bounds found = NOTHING;
    for (uint32_t row = 0; row < in->down; row++) {
        const bool is_border = row == 0 || row + 1 == in->down;
        const uint32_t *cells = in->cells + (size_t)row * in->across;
        if (!is_border && in->across > 2)
            add_pairs(&found, in->nodes + 2 * ((size_t)row * (in->across + 1) + 1), in->across - 1);
        for (uint32_t column = 0; column < in->across; column++)
            if (is_border || column == 0 || column + 1 == in->across ||
                cells[column] != COGPU_CELL_INTERPOLATED)
                add_cell(&found, in, column, row);
    }
    return found;
}

/* Pixels first <= i < end that positions from `least` to `most` need. A position just left of a
 * pixel's border may count as that pixel's: see plan/warp.h. */
static void clip_pixels(double least, double most, double radius, uint32_t size, int64_t *first,
                        int64_t *end) {
    static const double margin = 1e-6;
    const double a = floor(least - radius - margin), b = floor(most + radius + margin) + 1;
    *first = a > 0 ? (int64_t)fmin(a, size) : 0;
    *end = b > 0 ? (int64_t)fmin(b, size) : 0;
}

cogpu_box cogpu_coordinates_extent(const cogpu_coordinates *coordinates, double radius_x,
                                   double radius_y, uint32_t level_width, uint32_t level_height) {
    const bounds found = find_bounds(coordinates);
    cogpu_box box = {0};
    if (!(found.x0 <= found.x1))
        return box;
    clip_pixels(found.x0, found.x1, radius_x, level_width, &box.x0, &box.x1);
    clip_pixels(found.y0, found.y1, radius_y, level_height, &box.y0, &box.y1);
    if (box.x0 >= box.x1 || box.y0 >= box.y1)
        return (cogpu_box){0};
    return box;
}

/* ---- estimate ------------------------------------------------------------------------------ */

enum { ESTIMATE_SIDE = 9 }; /* positions along each side of a window */

/* A map between grids bends little between two of these positions; this share of the box is more
 * than it bends nearly always. */
#define ESTIMATE_MARGIN 0.01

cogpu_box cogpu_coordinates_estimate(const cogpu_transformer *transformer,
                                     const cogpu_placement *source, const cogpu_placement *target,
                                     uint32_t level_width, uint32_t level_height, cogpu_box window,
                                     double radius_x, double radius_y) {
    const cogpu_mapping mapping =
        cogpu_mapping_to_source(transformer, source, target, level_width, level_height, true, NULL);
    const double width = (double)(window.x1 - window.x0), height = (double)(window.y1 - window.y0);
    double pairs[2 * ESTIMATE_SIDE * ESTIMATE_SIDE], x[ESTIMATE_SIDE * ESTIMATE_SIDE],
        y[ESTIMATE_SIDE * ESTIMATE_SIDE];
    const cogpu_box whole = {0, 0, level_width, level_height};
    bounds found = NOTHING;
    cogpu_box box;
    for (uint32_t i = 0; i < ESTIMATE_SIDE * ESTIMATE_SIDE; i++) {
        x[i] = (double)window.x0 + width * (i % ESTIMATE_SIDE) / (ESTIMATE_SIDE - 1);
        y[i] = (double)window.y0 + height * (i / ESTIMATE_SIDE) / (ESTIMATE_SIDE - 1);
    }
    cogpu_mapping_transform(&mapping, ESTIMATE_SIDE * ESTIMATE_SIDE, x, y);
    for (uint32_t i = 0; i < ESTIMATE_SIDE * ESTIMATE_SIDE; i++) {
        if (!isfinite(x[i]))
            return whole;
        pairs[2 * i] = x[i];
        pairs[2 * i + 1] = y[i];
    }
    add_pairs(&found, pairs, ESTIMATE_SIDE * ESTIMATE_SIDE);
    clip_pixels(found.x0, found.x1, radius_x + 2 + ESTIMATE_MARGIN * (found.x1 - found.x0),
                level_width, &box.x0, &box.x1);
    clip_pixels(found.y0, found.y1, radius_y + 2 + ESTIMATE_MARGIN * (found.y1 - found.y0),
                level_height, &box.y0, &box.y1);
    return box;
}
