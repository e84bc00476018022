/*
 * The arithmetic of shrinking: which samples of a line of the source one sample of the result is
 * made of and with what weight, and rows of samples one after the other on their way from the
 * source's type to the result's. Nothing here knows of rasters and strides.
 *
 * Weighing is done in doubles. Choosing (mode, min, max, median) is done on keys: whole numbers
 * that are ordered as the samples are, so that 64-bit integers lose nothing.
 */
#ifndef COGPU_BACKEND_CPU_CPU_SHRINK_KERNEL_H
#define COGPU_BACKEND_CPU_CPU_SHRINK_KERNEL_H

#include "backend/cpu/cpu_shrink.h"

/* Samples `begin` up to `end` of the source's line. Never empty. */
typedef struct cogpu_reach {
    uint32_t begin, end;
} cogpu_reach;

/* Of sample i, where lines of `from` samples become such of `to`. */
cogpu_reach cogpu_shrink_reach(cogpu_resampling method, uint32_t from, uint32_t to, uint32_t i);
/* The same reach's weights. */
void cogpu_shrink_weights(cogpu_resampling method, uint32_t from, uint32_t to, uint32_t i,
                          double *weights);

/* Columns of the result that are made together. */
typedef struct cogpu_shrink_columns {
    uint32_t count;
    uint32_t *begin, *taps; /* of each: the reach, counted from the tile's first source column */
    double *weights;        /* `stride` of them a column */
    double *sums;           /* of a column's weights */
    double *scales;         /* what samples are multiplied by, on top */
    uint32_t stride;
} cogpu_shrink_columns;

/* Samples that have a meaning of their own, in the type's bytes. */
typedef struct cogpu_shrink_marks {
    bool has_nodata;
    uint8_t nodata[16];
    uint8_t beside[16]; /* what a result becomes that is nodata by accident */
    uint8_t none[16];   /* the result where nothing is valid */
} cogpu_shrink_marks;

void cogpu_shrink_mark(const cogpu_shrink *shrink, cogpu_type type, cogpu_shrink_marks *marks);

/* ---- from samples ---- */

void cogpu_shrink_load(cogpu_type type, const uint8_t *from, uint32_t count, double *to);
/* Clears valid[i] of NaN and nodata. `values` are the loaded samples. */
void cogpu_shrink_judge(cogpu_type type, const cogpu_shrink_marks *marks, const uint8_t *samples,
                        const double *values, uint32_t count, uint8_t *valid);

/* ---- weighing ---- */

/* A line of the source becomes a value for each column: scaled, where all samples are valid. */
void cogpu_shrink_line(const cogpu_shrink_columns *columns, const double *samples, double *value);
/* The same unscaled, of what is valid, with the weight it stands for; 0: none. A sample weighs as
 * much more as `valid` is. */
void cogpu_shrink_valid_line(cogpu_resampling method, const cogpu_shrink_columns *columns,
                             const double *samples, const uint8_t *valid, double *value,
                             double *weight);
/* How many valid neighbours a cubic asks for: with fewer its negative weights make nonsense. */
uint32_t cogpu_shrink_neighbours(cogpu_resampling method, uint32_t taps);

/* Results become samples of the type, where they have a weight. */
void cogpu_shrink_settle(cogpu_type type, const cogpu_shrink_marks *marks, const double *results,
                         const double *weights, uint32_t count, uint8_t *to);

/* Squares of two by two averaged, all of equal weight. False for types without a short way. */
bool cogpu_shrink_halve(cogpu_type type, const uint8_t *upper, const uint8_t *lower, uint32_t count,
                        uint8_t *to);
/* Where that gave NaN, the sample of `other` is taken. */
void cogpu_shrink_mend(cogpu_type type, const uint8_t *other, uint32_t count, uint8_t *to);
bool cogpu_shrink_has_nan(cogpu_type type, const uint8_t *samples, uint32_t count);

/* ---- choosing ---- */

typedef struct cogpu_shrink_vote {
    uint64_t key;
    uint32_t order; /* in which it came */
} cogpu_shrink_vote;

void cogpu_shrink_keys(cogpu_type type, const uint8_t *samples, uint32_t count, uint64_t *keys);
/* The sample that at least one vote chooses. They are sorted on the way. */
void cogpu_shrink_choose(cogpu_resampling method, cogpu_type type, const cogpu_shrink_marks *marks,
                         cogpu_shrink_vote *votes, uint32_t count, uint8_t *sample);

#endif
