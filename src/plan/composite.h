/*
 * How layers are combined where valid pixels of several sources overlap. cpu/composite.c and
 * kernels/composite execute it.
 *
 *     begin     pixels = fill, valid = 0, sums = 0, counts = 0
 *     add       one layer after the other, in the order of priority, at any place of the target
 *     finish    MEAN, MEDIAN, COUNT: sums, counts and stack become pixels
 */
#ifndef COGPU_PLAN_COMPOSITE_H
#define COGPU_PLAN_COMPOSITE_H

#include "cogpu.h"

/* The part of a mosaic that is composed at a time. All memory is in host memory, or all on one
 * device. Planes are packed: band after band, each row-major. Pixels are of any strides and of any
 * type that is not complex. */
typedef struct cogpu_composition {
    cogpu_composite method;
    const cogpu_raster *pixels;
    uint8_t *valid;   /* a plane for each band: 255 where a layer has a valid pixel, else 0. NULL if
                       * no layer is added */
    double *sums;     /* MEAN: a plane for each band; else NULL */
    uint32_t *counts; /* MEAN, COUNT: a plane for each band; else NULL */
    /* MEDIAN: valid samples of the layers, in the order of their arrival: sample k of a pixel is
     * in the k-th of `depth` groups of planes, a plane for each band, of the type of `pixels`. Its
     * number is in `counts`. Else NULL. */
    uint8_t *stack;
    uint32_t depth;            /* at least the number of layers */
    const uint8_t (*fill)[16]; /* a sample for each band */
} cogpu_composition;

/* One layer: pixels of the composition's type and bands, packed, band after band, and a byte of
 * validity for each sample. It covers the composition's pixels from x, y on. */
typedef struct cogpu_composite_layer {
    uint32_t x, y, width, height;
    const uint8_t *pixels;
    const uint8_t *valid;
} cogpu_composite_layer;

#endif
