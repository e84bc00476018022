/*
 * The plan of one source of a VRT: a rectangle of source pixels becomes a rectangle of target
 * pixels, as by GDAL's RasterIO with a buffer of another size, and samples may change on the way.
 * grid/vrt_window.c fills it, cpu/rectangle.c executes it.
 */
#ifndef COGPU_PLAN_RECTANGLE_H
#define COGPU_PLAN_RECTANGLE_H

#include "image/image.h"

typedef enum cogpu_scaling {
    COGPU_SCALING_NONE = 0,
    COGPU_SCALING_LINEAR,   /* v * ratio + offset */
    COGPU_SCALING_EXPONENT, /* (to - from) * ((v - source_from) / (source_to - source_from)) ^
                             * exponent + from */
} cogpu_scaling;

/* What a ComplexSource does with the samples of a band, in this order. All zero: copies them. */
typedef struct cogpu_sample_rule {
    bool has_nodata; /* samples that equal it are not painted */
    double nodata;
    bool uses_mask;             /* nor are those that the mask of the source excludes */
    uint32_t palette_component; /* 1 red ... 4 alpha: samples are indices of the source's palette;
                                 * 0: they are not */
    cogpu_scaling scaling;
    double ratio, offset;
    double exponent, source_from, source_to, from, to;
    bool is_clipped;   /* exponent: the fraction is limited to 0 ... 1 */
    const double *lut; /* `lut_count` inputs, which do not decrease; then as many outputs */
    uint32_t lut_count;
} cogpu_sample_rule;

/* One band of a rectangle. */
typedef struct cogpu_rectangle_band {
    cogpu_sample_rule rule;
    cogpu_nodata nodata;     /* of the source: without weight when it is resampled */
    const uint16_t *palette; /* of the source: planes of red, green, blue and alpha */
    uint32_t palette_entries;
    double most; /* results are at most this: 2^NBITS - 1; 0: no limit */
} cogpu_rectangle_band;

/* How GDAL finds source positions of an AveragedSource, step by step: it takes the pixel below a
 * position, so every rounding counts. */
typedef struct cogpu_rectangle_axis {
    double from, from_size, to, to_size; /* source rect and target rect */
    uint32_t first;                      /* the first target pixel, of `pixels` */
    uint32_t pixels, whole;              /* of the VRT: at the level, at full resolution */
    uint32_t origin, count;              /* the pixels that are averaged, and the source pixels */
    double length;                       /* that they are made of, from rectangle.x or y on */
} cogpu_rectangle_axis;

/* Target pixel (i, j) of the rectangle covers the source from x + i * step_x to x + (i + 1) *
 * step_x, in pixels of the source level, and the same of rows. */
typedef struct cogpu_rectangle {
    cogpu_resampling method;
    bool averages; /* an AveragedSource, instead of `method`: the mean, in floats, of samples
                    * whose centres lie in the target pixel, but NaN. As in GDAL, a source rect
                    * that is not of whole pixels becomes whole ones before, by `method` */
    cogpu_type from_type, to_type;
    bool
        is_indexed; /* samples are indices of a palette: kernels take the nearest one, as in GDAL */
    double source_most; /* 2^bits - 1 of samples of few bits, which kernels do not exceed; or 0 */
    uint32_t bands;
    const cogpu_rectangle_band *rules; /* one for each band */
    /* No pixel of the level outside exists: low_x <= x < high_x. */
    uint32_t low_x, low_y, high_x, high_y;
    double x, y, step_x, step_y;
    cogpu_rectangle_axis across, down;  /* with `averages` */
    uint32_t to_x, to_y, width, height; /* the part to make, counted from the first target pixel */
} cogpu_rectangle;

/* Source pixels that the part needs: x0 <= x < x1. */
typedef struct cogpu_rectangle_need {
    uint32_t x0, y0, x1, y1;
} cogpu_rectangle_need;

cogpu_rectangle_need cogpu_rectangle_needs(const cogpu_rectangle *rectangle);

/* The source pixel of target pixel i, by GDAL's rule for nearest. */
static inline uint32_t cogpu_rectangle_nearest(double start, double step, uint32_t i, uint32_t low,
                                               uint32_t high) {
    double at = (i + 0.5) * step + start + 1e-10;
    return at < low ? low : at >= high ? high - 1 : (uint32_t)at;
}

/* Source pixels begin <= x < end. */
typedef struct cogpu_rectangle_range {
    uint32_t begin, end;
} cogpu_rectangle_range;

/* Of an AveragedSource: the source pixels whose centres lie in target pixel i, which may be none;
 * the nearest one if target pixels are smaller than source pixels. */
cogpu_rectangle_range cogpu_rectangle_averaged(const cogpu_rectangle_axis *axis, uint32_t i);

/* The pixels that all target pixels of the part need, of those that an AveragedSource averages. */
void cogpu_rectangle_averages_need(const cogpu_rectangle *rectangle, cogpu_rectangle_range *columns,
                                   cogpu_rectangle_range *rows);

/* Whether an AveragedSource begins or ends inside of a pixel. */
bool cogpu_rectangle_is_averaged_twice(const cogpu_rectangle *rectangle);

/* Whether the rule makes the same sample of every pixel, so that the source need not be read. */
static inline bool cogpu_sample_rule_is_constant(const cogpu_sample_rule *rule) {
    return rule->scaling == COGPU_SCALING_LINEAR && rule->ratio == 0 && !rule->has_nodata &&
           !rule->uses_mask && !rule->palette_component && !rule->lut_count;
}

typedef struct cogpu_rectangle_job {
    const cogpu_rectangle *rectangle;
    /* Pixels of the level from from_x, from_y on: at least those that are needed. */
    const cogpu_raster *source; /* NULL if every rule is constant */
    const cogpu_raster *mask;   /* U8, one band, the same pixels: 0 is invalid; or NULL */
    bool mask_is_alpha;         /* samples of the mask weigh, as those of an alpha band */
    uint32_t from_x, from_y;
    /* Packed planes, band after band: samples of to_type, and 255 for painted ones, else 0. What is
     * not painted stays as it is. */
    uint8_t *pixels, *painted;
} cogpu_rectangle_job;

#endif
