/*
 * Sums: which part of a source pixel, as a quadrilateral in the target grid, lies in a target
 * pixel.
 */
#ifndef COGPU_PIXEL_WARP_SUM_H
#define COGPU_PIXEL_WARP_SUM_H

#include "pixel/warp_position.h"

/* In order around the pixel. */
struct warp_quad {
    struct warp_point corners[4];
};

enum { CLIPPED_CORNERS = 12 }; /* a quad that is not convex gains at most two on each side */

PIXEL_FN bool is_in_rectangle(const struct warp_quad *quad, double x, double y) {
    double left = quad->corners[0].x, right = left, top = quad->corners[0].y, bottom = top;
    for (uint32_t i = 1; i < 4; i++) {
        left = fmin(left, quad->corners[i].x);
        right = fmax(right, quad->corners[i].x);
        top = fmin(top, quad->corners[i].y);
        bottom = fmax(bottom, quad->corners[i].y);
    }
    return left < x + 1 && right > x && top < y + 1 && bottom > y;
}

/* Twice the area, positive for one direction of rotation. Computed relative to the first corner:
 * positions are large. */
PIXEL_FN double double_area(const struct warp_point *corners, uint32_t count) {
    double sum = 0;
    for (uint32_t i = 1; i + 1 < count; i++)
        sum += (corners[i].x - corners[0].x) * (corners[i + 1].y - corners[0].y) -
               (corners[i + 1].x - corners[0].x) * (corners[i].y - corners[0].y);
    return sum;
}

PIXEL_FN double side_of_line(struct warp_point a, struct warp_point b, struct warp_point p) {
    return (b.x - a.x) * (p.y - a.y) - (p.x - a.x) * (b.y - a.y);
}

PIXEL_FN bool edges_cross(struct warp_point a, struct warp_point b, struct warp_point c,
                          struct warp_point d) {
    return side_of_line(a, b, c) * side_of_line(a, b, d) < 0 &&
           side_of_line(c, d, a) * side_of_line(c, d, b) < 0;
}

/* Whether opposite edges cross: then the quad has no inside. */
PIXEL_FN bool crosses_itself(const struct warp_quad *quad) {
    const struct warp_point *at = quad->corners;
    return edges_cross(at[0], at[1], at[2], at[3]) || edges_cross(at[1], at[2], at[3], at[0]);
}

PIXEL_FN double along_axis(struct warp_point point, uint32_t is_y) {
    return is_y ? point.y : point.x;
}

/* Clips a polygon at a line parallel to an axis (Sutherland and Hodgman): the part on the side of
 * `sign` stays. Returns the number of corners. */
PIXEL_FN uint32_t clip_at_line(const struct warp_point *from, uint32_t count, uint32_t is_y,
                               double line, double sign, struct warp_point *to) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct warp_point a = from[i], b = from[i + 1 < count ? i + 1 : 0], cut;
        double from_line = (along_axis(a, is_y) - line) * sign;
        double to_line = (along_axis(b, is_y) - line) * sign;
        if (from_line >= 0 && kept < CLIPPED_CORNERS)
            to[kept++] = a;
        if ((from_line >= 0) != (to_line >= 0) && kept < CLIPPED_CORNERS) {
            double part = from_line / (from_line - to_line);
            cut.x = is_y ? a.x + (b.x - a.x) * part : line;
            cut.y = is_y ? line : a.y + (b.y - a.y) * part;
            to[kept++] = cut;
        }
    }
    return kept;
}

/* The part of a quad that lies in the pixel from (x, y) to (x + 1, y + 1); 0 for a quad without
 * area or with a NaN. */
PIXEL_FN double part_in_pixel(const struct warp_quad *quad, double x, double y) {
    struct warp_point a[CLIPPED_CORNERS], b[CLIPPED_CORNERS];
    if (!is_in_rectangle(quad, x, y) || crosses_itself(quad))
        return 0;
    double whole = double_area(quad->corners, 4);
    uint32_t count = clip_at_line(quad->corners, 4, 0, x, 1, a);
    count = clip_at_line(a, count, 0, x + 1, -1, b);
    count = clip_at_line(b, count, 1, y, 1, a);
    count = clip_at_line(a, count, 1, y + 1, -1, b);
    double part = count < 3 || whole == 0 ? 0 : double_area(b, count) / whole;
    return part > 0 ? part : 0;
}

#endif
