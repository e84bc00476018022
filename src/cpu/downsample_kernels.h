/*
 * Loops of downsampling over rows of packed samples and columns of a tile. pixel/resample.h and
 * pixel/select.h have the arithmetic of one sample, which the kernels of kernels/resample share.
 * Nothing here knows of rasters and strides.
 *
 * Average, rms, bilinear and cubic add weighted samples in double precision. Mode, min, max and
 * median select among keys.
 */
#ifndef COGPU_CPU_DOWNSAMPLE_KERNELS_H
#define COGPU_CPU_DOWNSAMPLE_KERNELS_H

#include "base/type.h"
#include "cpu/downsample.h"
#include "pixel/select.h"

/* Support of sample i of the result. */
static inline struct support cogpu_downsample_support(cogpu_resampling method,
                                                      const cogpu_resampling_axis *axis,
                                                      uint32_t i) {
    return resampling_support(method, axis->from, axis->ratio, axis->offset, i);
}
/* Weights of that support. */
void cogpu_downsample_weights(cogpu_resampling method, const cogpu_resampling_axis *axis,
                              uint32_t i, double *weights);

/* Do mask or alpha make pixels invalid? Nearest uses neither, nor does GDAL's mode of uint8. */
static inline bool cogpu_downsample_has_guard(const cogpu_downsample *downsample) {
    bool ignores_validity =
        downsample->method == COGPU_RESAMPLE_NEAREST ||
        (downsample->method == COGPU_RESAMPLE_MODE && downsample->type == COGPU_TYPE_U8);
    return !ignores_validity && (downsample->has_mask || downsample->alpha_band);
}

/* Parts of a complex sample are downsampled one by one, but nearest copies both. */
static inline uint32_t cogpu_downsample_parts(const cogpu_downsample *downsample) {
    return cogpu_type_is_complex(downsample->type) && downsample->method != COGPU_RESAMPLE_NEAREST
               ? 2
               : 1;
}

static inline cogpu_type cogpu_downsample_part_type(const cogpu_downsample *downsample) {
    return cogpu_downsample_parts(downsample) == 1 ? downsample->type
                                                   : cogpu_type_part(downsample->type);
}

/* Columns of the result that are computed together. */
typedef struct cogpu_downsample_columns {
    uint32_t count;
    uint32_t *begin, *taps; /* of each: its support, counted from the tile's first source column */
    double *weights;        /* `stride` of them a column */
    double *sums;           /* of a column's weights */
    double *scales;         /* what samples are multiplied by before they are added */
    uint32_t stride;
} cogpu_downsample_columns;

/* Nodata of bands of this type. Without nodata, floats are NaN where nothing is valid. */
struct resampling_nodata cogpu_downsample_nodata(const cogpu_downsample *downsample,
                                                 cogpu_type type);

/* Clears valid[i] of NaN and nodata. `values` are the samples as doubles. */
void cogpu_downsample_validate(cogpu_type type, const struct resampling_nodata *nodata,
                               const uint8_t *samples, const double *values, uint32_t count,
                               uint8_t *valid);

/* ---- weighted sums ---- */

/* A line of the source becomes a scaled sum for each column. All samples are valid. */
void cogpu_downsample_line(const cogpu_downsample_columns *columns, const double *samples,
                           double *value);
/* The same, unscaled, of valid samples only, with the weight that they have; 0: none is valid. A
 * sample's weight is multiplied by valid[i]. */
void cogpu_downsample_valid_line(cogpu_resampling method, const cogpu_downsample_columns *columns,
                                 const double *samples, const uint8_t *valid, double *value,
                                 double *weight);

/* Rounds results to samples; where nothing contributed, the weight is 0. */
void cogpu_downsample_finish(cogpu_type type, const struct resampling_nodata *nodata,
                             const double *results, const double *weights, uint32_t count,
                             uint8_t *to);

/* Averages squares of two by two. False for types that have no such loop. */
bool cogpu_downsample_squares(cogpu_type type, const uint8_t *upper, const uint8_t *lower,
                              uint32_t count, uint8_t *to);
/* Replaces NaN in `to` by the samples of `other`. */
void cogpu_downsample_patch(cogpu_type type, const uint8_t *other, uint32_t count, uint8_t *to);
bool cogpu_downsample_has_nan(cogpu_type type, const uint8_t *samples, uint32_t count);

/* ---- selection ---- */

typedef struct cogpu_downsample_candidate {
    uint64_t key;
    uint32_t order; /* position among the candidates, before they are sorted */
} cogpu_downsample_candidate;

void cogpu_downsample_keys(cogpu_type type, const uint8_t *samples, uint32_t count, uint64_t *keys);
/* Selects one of at least one candidate, which are sorted on the way. */
void cogpu_downsample_select(cogpu_resampling method, cogpu_type type,
                             const struct resampling_nodata *nodata,
                             cogpu_downsample_candidate *candidates, uint32_t count, uint8_t *to);

/* Stores the bits of a sample. */
void cogpu_downsample_store(cogpu_type type, uint64_t sample, uint8_t *to);

#endif
