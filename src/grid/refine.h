/*
 * The quadtree of a grid's positions. Groups of 2 x 2 cells, 512 pixels a side, are divided until
 * bilinear interpolation between the corners of a cell is precise. See grid.h for the rules, and
 * coordinates.c, which fills the lattice of a window from the leaves. Positions outside the other
 * raster need no precision, as long as they stay outside.
 */
#ifndef COGPU_GRID_REFINE_H
#define COGPU_GRID_REFINE_H

#include "grid/mapping.h"

typedef enum cogpu_leaf_kind {
    COGPU_LEAF_INTERPOLATED,
    COGPU_LEAF_EXACT, /* 16 pixels a side */
    COGPU_LEAF_ABSENT /* no pixel has a position */
} cogpu_leaf_kind;

/* A cell that is not divided. At the right and lower border of the grid it may reach beyond. */
typedef struct cogpu_leaf {
    cogpu_leaf_kind kind;
    uint32_t x, y, size;             /* pixels of the grid */
    double extent_x, extent_y;       /* from the first to the last corner; less at the border */
    double corner_x[4], corner_y[4]; /* positions: upper left, upper right, lower left, lower right
                                      */
    double tolerance; /* interpolated: the most by which positions may differ from these */
} cogpu_leaf;

/* Strips of so many rows, from the top of the grid, are refined independently: a window may be
 * refined strip by strip, on several threads. */
enum { COGPU_REFINE_STRIP = 1024 };

/* Leaves that hold at least one of the pixels x0 <= x <= x1, y0 <= y <= y1. */
typedef struct cogpu_leaves {
    cogpu_leaf *items; /* of cogpu_release */
    size_t count, capacity;
} cogpu_leaves;

cogpu_status cogpu_refine(const cogpu_mapping *mapping, double max_error, uint32_t x0, uint32_t y0,
                          uint32_t x1, uint32_t y1, cogpu_leaves *leaves, cogpu_error *error);

#endif
