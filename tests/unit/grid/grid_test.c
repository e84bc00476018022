/* See grid_test.h. */
#include "grid_test.h"

cogpu_placement place(const char *crs, uint32_t width, uint32_t height, double left, double pixel_x,
                      double top, double pixel_y) {
    return (cogpu_placement){.width = width,
                             .height = height,
                             .crs = crs,
                             .has_transform = true,
                             .transform = {left, pixel_x, 0, top, 0, pixel_y}};
}

void find_position(const cogpu_coordinates *in, uint32_t column, uint32_t row, double *x,
                   double *y) {
    uint32_t i = column / COGPU_CELL_SIDE - in->first_cell_x;
    uint32_t j = row / COGPU_CELL_SIDE - in->first_cell_y;
    i -= i == in->across, j -= j == in->down; /* the last corners */
    const uint32_t u = column - (in->first_cell_x + i) * COGPU_CELL_SIDE;
    const uint32_t v = row - (in->first_cell_y + j) * COGPU_CELL_SIDE;
    const uint32_t table = in->cells[(size_t)j * in->across + i], side = cogpu_cell_points(in);
    const double *node = in->nodes + 2 * ((size_t)j * (in->across + 1) + i);
    double found[2];
    for (int axis = 0; axis < 2; axis++) {
        const double *below = node + 2 * ((size_t)in->across + 1);
        const double upper = node[axis] + (node[axis + 2] - node[axis]) * u / COGPU_CELL_SIDE;
        const double lower = below[axis] + (below[axis + 2] - below[axis]) * u / COGPU_CELL_SIDE;
        found[axis] = table == COGPU_CELL_INTERPOLATED
                          ? upper + (lower - upper) * v / COGPU_CELL_SIDE
                          : in->exact[2 * (((size_t)table * side + v) * side + u) + (size_t)axis];
    }
    *x = found[0], *y = found[1];
}

uint32_t draw_below(uint32_t end) {
    static uint64_t state = 0x9E3779B97F4A7C15;
    state = state * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)((state >> 33) % end);
}
