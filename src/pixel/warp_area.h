/*
 * Methods that use all source pixels which a target pixel covers: average, rms, mode, min, max,
 * median and quartiles. The area is the box of two opposite corners of the target pixel, as in
 * GDAL, also where the grids are rotated against each other.
 */
#ifndef COGPU_PIXEL_WARP_AREA_H
#define COGPU_PIXEL_WARP_AREA_H

#include "pixel/warp_position.h"

/* Covered pixels along an axis: first <= i < end. Columns from `size` on are those from 0 on, of a
 * source that goes round the Earth. */
struct warp_extent {
    double low, high; /* may lie outside the axis */
    int64_t first, end;
};

/* The other way round the Earth: from the right corner over the last column to the left one. */
PIXEL_FN void turn_extent(struct warp_extent *extent, uint32_t size) {
    double low = extent->high, high = extent->low + size;
    bool is_beyond = low + WARP_TOLERANCE >= size;
    extent->low = is_beyond ? low - size : low;
    extent->high = is_beyond ? high - size : high;
}

/* Of two corners. False if it lies outside the axis, or a corner further outside than `margin`. Two
 * corners on the first edge, as along a seam, have the first pixel.
 * `is_round`: corners that are more than half the axis apart are on both sides of its ends. */
PIXEL_FN bool find_extent(double a, double b, uint32_t size, double margin, bool is_round,
                          struct warp_extent *extent) {
    extent->low = a < b ? a : b;
    extent->high = a < b ? b : a;
    if (!(extent->low >= -margin && extent->high <= size + margin) ||
        !(extent->low + WARP_TOLERANCE < size) ||
        !(extent->high > WARP_TOLERANCE || extent->low >= 0))
        return false;
    uint64_t limit = size;
    if (is_round && extent->high - extent->low > 0.5 * size) {
        turn_extent(extent, size);
        limit = 2 * limit;
    }
    double first = floor(extent->low + WARP_TOLERANCE), end = ceil(extent->high - WARP_TOLERANCE);
    extent->first = first > 0 ? (int64_t)first : 0;
    extent->end = end < (double)limit ? (int64_t)end : (int64_t)limit;
    if (extent->end <= extent->first)
        extent->end = extent->first + 1;
    return true;
}

/* How many pixels a corner may lie outside the source. */
PIXEL_FN double extent_margin(double scale) {
    double pixels = scale < 1 ? ceil(1 / scale) : 1;
    return 2 * pixels;
}

/* What part of pixel i is covered. As in GDAL, the outermost pixel counts for more than 1 where the
 * area goes beyond the source. */
PIXEL_FN double covered_part(const struct warp_extent *extent, int64_t i) {
    if (extent->end - extent->first == 1)
        return 1;
    if (i == extent->first)
        return 1 - (extent->low - (double)i);
    return i + 1 == extent->end ? 1 - ((double)extent->end - extent->high) : 1;
}

/* Which of `count` samples in ascending order is selected. */
PIXEL_FN uint64_t quantile_index(uint32_t method, uint64_t count) {
    double part = method == COGPU_RESAMPLE_Q1 ? 0.25 : method == COGPU_RESAMPLE_Q3 ? 0.75 : 0.5;
    double index = ceil(part * (double)count - 1);
    return index > 0 ? (uint64_t)index : 0;
}

#endif
