/*
 * Planes made smaller as their rows pass: each pixel of the result is the mean of the valid ones in
 * its box, and NaN where there is none. Every pixel is in one box. Rows of a plane come from the
 * top; planes may come side by side or one after the other.
 */
#ifndef COGPU_CLI_REDUCE_H
#define COGPU_CLI_REDUCE_H

#include "cogpu.h"

typedef struct cogpu_reduction {
    uint32_t from_width, from_height;
    uint32_t width, height; /* of the result, no larger */
    uint32_t planes;
    double *pixels;   /* plane by plane */
    double *sums;     /* of the row that each plane is at */
    uint64_t *counts; /* of the valid pixels in these sums */
} cogpu_reduction;

/* Allocates for the sizes and planes that are set. */
cogpu_status cogpu_reduction_open(cogpu_reduction *reduction, cogpu_error *error);
void cogpu_reduction_close(cogpu_reduction *reduction);

/* The next row of a plane; what is not finite is not valid. */
void cogpu_reduction_add(cogpu_reduction *reduction, uint32_t plane, uint32_t row,
                         const double *values);

double *cogpu_reduction_plane(const cogpu_reduction *reduction, uint32_t plane);

#endif
