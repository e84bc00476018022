/*
 * Packing: pixels of a raster become the decoded bytes of a block, ready for an encoder. Blocks are
 * cropped, edges filled, the predictor applied, bytes put into the file's order. The inverse of
 * undo_filters.c and unpack.c.
 */
#ifndef COGPU_CPU_PACK_H
#define COGPU_CPU_PACK_H

#include "cpu/cpu.h"
#include "plan/write_plan.h"

/* Copies `rows` rows of a raster, from row `first` on, without gaps: bands interleaved by pixel, or
 * the bands of a planar file one after the other, `band_bytes` apart. */
void cogpu_cpu_pack_rows(const cogpu_raster *raster, uint32_t first, uint32_t rows, bool is_planar,
                         size_t band_bytes, uint8_t *to);

/* Packs a block, of a planar file one band. `from` holds the part of the block inside the image.
 * Right of the image, rows repeat their last pixel. Below it, the last row is repeated; for codecs
 * that see bytes and not pixels, its last pixel is, which compresses best. The predictor is not
 * applied yet. */
void cogpu_cpu_pack_block(const cogpu_write_plan *plan, const cogpu_block_grid *grid,
                          const cogpu_new_block *block, const cogpu_raster *from, uint8_t *to);
/* Packs a block of the mask, one bit a pixel, from a raster of bytes. */
void cogpu_cpu_pack_mask(const cogpu_block_grid *grid, const cogpu_new_block *block,
                         const cogpu_raster *from, uint8_t *to);

/* Whether all samples of so many bytes are `sample`, or NaN where it is. */
bool cogpu_cpu_is_uniform(const uint8_t *samples, size_t bytes, cogpu_type type,
                          const uint8_t *sample);

/* Applies the plan's predictor and the file's byte order to rows of a block. `spare` holds one row.
 */
void cogpu_cpu_predict(const cogpu_write_plan *plan, uint8_t *rows, uint32_t count,
                       size_t row_bytes, uint8_t *spare);

/* Packs samples of odd depths in place (pixel/bits.h). Rows move together; samples saturate. */
void cogpu_cpu_pack_bits(const cogpu_write_plan *plan, uint8_t *rows, uint32_t count,
                         size_t row_bytes);

#endif
