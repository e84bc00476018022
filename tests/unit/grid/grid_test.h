/* What the tests of grids share: placements, and positions of single pixels. */
#ifndef COGPU_TESTS_GRID_TEST_H
#define COGPU_TESTS_GRID_TEST_H

#include "grid/grid.h"

/* A raster on a CRS, with GDAL's geotransform. */
cogpu_placement place(const char *crs, uint32_t width, uint32_t height, double left, double pixel_x,
                      double top, double pixel_y);

/* The position of a pixel, or of its corner (column, row), by plan/warp.h. */
void find_position(const cogpu_coordinates *in, uint32_t column, uint32_t row, double *x,
                   double *y);

/* Random numbers that are the same in every run. */
uint32_t draw_below(uint32_t end);

#endif
