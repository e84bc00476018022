/*
 * Weights of the kernels that a warp convolves with, and which source pixels they reach.
 *
 * `x` is the distance of a source pixel's centre from the position, in source pixels, or in target
 * pixels where the source is larger: a kernel grows with the scale, so that it covers the target
 * pixel.
 */
#ifndef COGPU_PIXEL_WARP_KERNEL_H
#define COGPU_PIXEL_WARP_KERNEL_H

#include "pixel/pixel.h"

#include <math.h>

/* A kernel along an axis: source pixels from floor(position - 0.5) + first to ... + last. */
struct warp_filter {
    double scale; /* at most 1 */
    double reach; /* outermost taps must not be further away, in target pixels */
    int32_t first, last;
};

PIXEL_FN uint32_t filter_radius(uint32_t method) {
    return method == COGPU_RESAMPLE_BILINEAR ? 1 : method == COGPU_RESAMPLE_LANCZOS ? 3 : 2;
}

PIXEL_FN struct warp_filter make_filter(uint32_t method, double scale) {
    uint32_t radius = filter_radius(method);
    struct warp_filter filter = {scale < 1 ? scale : 1,
                                 method == COGPU_RESAMPLE_LANCZOS ? 3.0 : 4.0, 0, 0};
    double reach = ceil(radius / filter.scale);
    filter.last = reach < (1 << 30) ? (int32_t)reach : 1 << 30;
    filter.first = 1 - filter.last;
    return filter;
}

/* sin(pi x) for 0 <= x <= 1. The Taylor series converges to the last bit below 0.5. */
PIXEL_FN double sine_of_half_turns(double x) {
    double r = x > 0.5 ? 1 - x : x;
    double s = r * r;
    double sum = 5.392664662608129e-10;
    sum = sum * s + -2.2948428997269873e-08;
    sum = sum * s + 7.952054001475513e-07;
    sum = sum * s + -2.1915353447830217e-05;
    sum = sum * s + 0.00046630280576761255;
    sum = sum * s + -0.0073704309457143504;
    sum = sum * s + 0.08214588661112823;
    sum = sum * s + -0.5992645293207921;
    sum = sum * s + 2.5501640398773455;
    sum = sum * s + -5.16771278004997;
    sum = sum * s + 3.141592653589793;
    return sum * r;
}

/* sinc(x) sinc(x / 3), with sin(pi x) from sin(pi x / 3). Selects instead of branches: loops over
 * it become vector code. */
PIXEL_FN double lanczos_weight(double x) {
    const double third_of_square = 3.2898681336964529; /* pi^2 / 3 */
    double a = fabs(x), inside = a < 3 ? a : 3;
    double third = sine_of_half_turns(inside * (1.0 / 3)), sine = (3 - 4 * (third * third)) * third;
    double weight = sine * third / (third_of_square * (inside * inside));
    weight = a < 1e-8 ? 1 : weight;
    return a < 3 ? weight : 0;
}

/* a = -0.5 */
PIXEL_FN double catmull_rom_weight(double x) {
    double a = fabs(x), square = a * a;
    if (a <= 1)
        return square * (1.5 * a - 2.5) + 1;
    return a <= 2 ? square * (-0.5 * a + 2.5) - 4 * a + 2 : 0;
}

/* Six times the cubic B-spline. A kernel that grows reaches beyond its end on one side: weights are
 * negative there, as in GDAL. */
PIXEL_FN double spline_weight(double x) {
    double a = fabs(x), b = 2 - a;
    if (a <= 1)
        return a * a * (3 * a - 6) + 4;
    return x > -2 ? b * b * b : 0;
}

PIXEL_FN double filter_weight(uint32_t method, double x) {
    if (method == COGPU_RESAMPLE_BILINEAR)
        return fabs(x) < 1 ? 1 - fabs(x) : 0;
    if (method == COGPU_RESAMPLE_CUBIC)
        return catmull_rom_weight(x);
    return method == COGPU_RESAMPLE_LANCZOS ? lanczos_weight(x) : spline_weight(x);
}

/* ---- two or four pixels along an axis ---- */

/* floor(position - 0.5): the pixel whose centre is left of the position, or at it. */
PIXEL_FN double pixel_left_of(double x) {
    return floor(x - 0.5);
}

/* Weight of that pixel; its neighbour has the rest. */
PIXEL_FN double linear_weight(double x, double left) {
    return 1.5 - (x - left);
}

/* Weights of the pixels -1, 0, 1, 2 from it. */
PIXEL_FN void cubic_weights(double x, double left, double weights[4]) {
    double d = x - 0.5 - left, half = 0.5 * d, half_square = half * d;
    weights[0] = half * (d * (2 - d) - 1);
    weights[1] = 1 + half_square * (3 * d - 5);
    weights[2] = half * (1 + d * (4 - 3 * d));
    weights[3] = half_square * (d - 1);
}

PIXEL_FN double weigh_two(double a, double b, double weight) {
    return a * weight + b * (1 - weight);
}

PIXEL_FN double weigh_four(const double values[4], const double weights[4]) {
    return ((values[0] * weights[0] + values[1] * weights[1]) + values[2] * weights[2]) +
           values[3] * weights[3];
}

#endif
