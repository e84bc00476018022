/*
 * Predictor 3: a row of byte planes to samples (TIFF Technical Note 3; pixel/predictor.h shows the
 * layout). Where a pixel has one sample, differences are summed in the same pass: they run on from
 * plane to plane, so what a plane begins with is the sum of the planes before it. These sums are
 * found first, by additions alone; then all planes are read side by side.
 */
#ifndef COGPU_CPU_PLANES_H
#define COGPU_CPU_PLANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first `count` samples of a row of `samples`, each of `size` bytes, at most 8. `vector_bytes`
 * is at most cogpu_cpu_vector_bytes(); the result does not depend on it. `streams`: see vector.h.
 */
void cogpu_cpu_interleave_planes(const uint8_t *planes, size_t samples, size_t count, size_t size,
                                 uint8_t *to, size_t vector_bytes, bool streams);
/* The same of planes of differences, in pixels of one sample. */
void cogpu_cpu_undo_planes(const uint8_t *planes, size_t samples, size_t count, size_t size,
                           uint8_t *to, size_t vector_bytes, bool streams);

#endif
