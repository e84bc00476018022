/*
 * Where a pixel of the target lies in the source. plan/warp.h describes the lattice of cells that
 * positions are stored in.
 *
 * In an interpolated cell, the position is interpolated down both sides of the cell first, then
 * across, so that a loop over a row repeats only the second step:
 *
 *     a ---------- b        left  = a + (c - a) * j / 16
 *   left --- p -- right     right = b + (d - b) * j / 16
 *     c ---------- d        p     = left + (right - left) * i / 16
 */
#ifndef COGPU_PIXEL_WARP_POSITION_H
#define COGPU_PIXEL_WARP_POSITION_H

#include "pixel/pixel.h"

#include <math.h>

enum { WARP_CELL = 16 }; /* COGPU_CELL_SIDE */

struct warp_lattice {
    const double *nodes;   /* pairs x, y */
    const uint32_t *cells; /* number of an exact table, or UINT32_MAX */
    const double *exact;
    uint32_t first_cell_x, first_cell_y, across;
    uint32_t points; /* in a row of an exact table */
};

struct warp_point {
    double x, y;
};

/* Both ends of a row of an interpolated cell. */
struct warp_span {
    struct warp_point left, right;
};

PIXEL_FN uint64_t cell_of_pixel(const struct warp_lattice *lattice, uint32_t x, uint32_t y) {
    return (uint64_t)(y / WARP_CELL - lattice->first_cell_y) * lattice->across +
           (x / WARP_CELL - lattice->first_cell_x);
}

/* Of the cell at this place in the lattice. `j`: row in the cell, up to WARP_CELL. */
PIXEL_FN struct warp_span span_at(const struct warp_lattice *lattice, uint32_t column, uint32_t row,
                                  uint32_t j) {
    const uint64_t nodes_across = (uint64_t)lattice->across + 1;
    const double *upper = lattice->nodes + 2 * (row * nodes_across + column);
    const double *lower = upper + 2 * nodes_across;
    double down = j * (1.0 / WARP_CELL);
    struct warp_span span;
    span.left.x = upper[0] + (lower[0] - upper[0]) * down;
    span.left.y = upper[1] + (lower[1] - upper[1]) * down;
    span.right.x = upper[2] + (lower[2] - upper[2]) * down;
    span.right.y = upper[3] + (lower[3] - upper[3]) * down;
    return span;
}

PIXEL_FN struct warp_span span_of_cell(const struct warp_lattice *lattice, uint64_t cell,
                                       uint32_t j) {
    return span_at(lattice, (uint32_t)(cell % lattice->across), (uint32_t)(cell / lattice->across),
                   j);
}

PIXEL_FN struct warp_point point_of_span(const struct warp_span *span, uint32_t i) {
    double across = i * (1.0 / WARP_CELL);
    struct warp_point point;
    point.x = span->left.x + (span->right.x - span->left.x) * across;
    point.y = span->left.y + (span->right.y - span->left.y) * across;
    return point;
}

/* Point (i, j) of an exact table. */
PIXEL_FN struct warp_point point_of_table(const struct warp_lattice *lattice, uint32_t table,
                                          uint32_t i, uint32_t j) {
    const double *at =
        lattice->exact + 2 * (((uint64_t)table * lattice->points + j) * lattice->points + i);
    struct warp_point point = {at[0], at[1]};
    return point;
}

/* Position of a pixel of the grid; or of its corner (right, below). */
PIXEL_FN struct warp_point point_of_pixel(const struct warp_lattice *lattice, uint32_t x,
                                          uint32_t y, uint32_t right, uint32_t below) {
    uint32_t column = x / WARP_CELL - lattice->first_cell_x;
    uint32_t row = y / WARP_CELL - lattice->first_cell_y;
    uint32_t i = x % WARP_CELL + right, j = y % WARP_CELL + below;
    uint32_t table = lattice->cells[(uint64_t)row * lattice->across + column];
    if (table != UINT32_MAX)
        return point_of_table(lattice, table, i, j);
    struct warp_span span = span_at(lattice, column, row, j);
    return point_of_span(&span, i);
}

/* ---- nearest pixel ---- */

/* A position up to this little left of a border between two pixels belongs to the right one. */
#define WARP_TOLERANCE 1e-10

/* Whether a position lies in an axis of so many pixels. False for NaN. */
PIXEL_FN bool is_in_axis(double x, uint32_t size) {
    return x >= 0 && x + WARP_TOLERANCE <= size;
}

/* Of a position in the axis. */
PIXEL_FN int64_t nearest_in_axis(double x, uint32_t size) {
    int64_t nearest = (int64_t)(x + WARP_TOLERANCE);
    return nearest < size ? nearest : (int64_t)size - 1;
}

PIXEL_FN double clamp_to_axis(double x, uint32_t size) {
    double last = size - 0.5;
    return x < 0 ? 0 : x > last ? last : x;
}

#endif
