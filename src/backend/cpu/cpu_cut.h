/*
 * Cut: pixels of a raster become decoded bytes of a block, ready for an encoder: cropped, edges
 * filled, predicted, in the file's byte order. The twin of restore and place.
 */
#ifndef COGPU_BACKEND_CPU_CPU_CUT_H
#define COGPU_BACKEND_CPU_CPU_CUT_H

#include "backend/cpu/cpu.h"
#include "plan/write_plan.h"

/* `rows` rows of a raster from its row `first` on, all bands, into packed ones: pixels of all bands
 * side by side, or the bands of a planar file one after the other, `band_bytes` apart. */
void cogpu_cpu_gather(const cogpu_raster *raster, uint32_t first, uint32_t rows, bool is_planar,
                      size_t band_bytes, uint8_t *to);

/* A block out of a raster of its pixels, as far as they lie inside the image; of a planar file one
 * band. Rows go on to the right of the image with their last pixel; below it each is the last one
 * once more, or, for codecs that see bytes and not pixels, its last pixel throughout: what costs an
 * encoder least. Rows are not predicted yet. */
void cogpu_cpu_cut(const cogpu_write_plan *plan, const cogpu_grid *grid,
                   const cogpu_new_block *block, const cogpu_raster *from, uint8_t *to);
/* A block of the mask, one bit a pixel, out of a raster of bytes. */
void cogpu_cpu_cut_mask(const cogpu_grid *grid, const cogpu_new_block *block,
                        const cogpu_raster *from, uint8_t *to);

/* Whether all samples of so many bytes are `sample`, or NaN where it is. */
bool cogpu_cpu_is_uniform(const uint8_t *samples, size_t bytes, cogpu_type type,
                          const uint8_t *sample);

/* Applies the plan's predictor to rows of a block, and the file's byte order. `spare` has room for
 * a row. */
void cogpu_cpu_predict(const cogpu_write_plan *plan, uint8_t *rows, uint32_t count,
                       size_t row_bytes, uint8_t *spare);

/* Packs samples of fewer bits than their type has, the first one into the highest bits; rows begin
 * at bytes, and close up. Samples that are too large become the largest that there is. */
void cogpu_cpu_pack(const cogpu_write_plan *plan, uint8_t *rows, uint32_t count, size_t row_bytes);

#endif
