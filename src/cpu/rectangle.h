/*
 * Executes one source of a VRT on the CPU (plan/rectangle.h): the source window is resampled as by
 * GDAL's RasterIO, then the samples of each band pass the rule of the band and become samples of
 * the VRT.
 */
#ifndef COGPU_CPU_RECTANGLE_H
#define COGPU_CPU_RECTANGLE_H

#include "cpu/cpu.h"
#include "plan/rectangle.h"

/* Scratch memory is the worker's. COGPU_UNSUPPORTED: complex samples that are resampled other than
 * by nearest, or that a rule changes other than linearly; averages of palette indices. */
cogpu_status cogpu_cpu_rectangle(cogpu_worker *worker, const cogpu_rectangle_job *job,
                                 cogpu_error *error);

/* rectangle_rule.c: one row of a band. `mask` (or NULL) is 0 where the source is masked. `values`
 * is scratch memory for `count` numbers, or twice as many if a type is complex. */
void cogpu_rectangle_apply(const cogpu_rectangle_band *band, cogpu_type from_type,
                           const uint8_t *from, const uint8_t *mask, uint32_t count, double *values,
                           cogpu_type to_type, uint8_t *to, uint8_t *painted);

/* rectangle_complex.c: the same if one of the types is complex. Samples with painted[i] == 0 are
 * left out. */
void cogpu_rectangle_apply_complex(const cogpu_rectangle_band *band, cogpu_type from_type,
                                   const uint8_t *from, uint32_t count, double *values,
                                   cogpu_type to_type, uint8_t *to, uint8_t *painted);

#endif
