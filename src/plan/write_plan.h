/*
 * The write plan: levels, their grids of blocks, how blocks are encoded, and bounds of the file's
 * size, from the profile alone. Arithmetic only: no I/O, no allocation, no device.
 */
#ifndef COGPU_PLAN_WRITE_PLAN_H
#define COGPU_PLAN_WRITE_PLAN_H

#include "image/image.h"

/* The blocks of a level. Its mask has the same grid, of one plane. */
typedef struct cogpu_block_grid {
    uint32_t width, height;             /* of the level */
    uint32_t block_width, block_height; /* strips are as wide as the level */
    uint32_t across, down;              /* blocks of one plane */
} cogpu_block_grid;

typedef struct cogpu_write_plan {
    uint32_t bands, planes; /* planes: bands of a planar file, else 1 */
    cogpu_type type;
    size_t pixel_bytes; /* in a block: of all bands, or of one in a planar file */
    bool is_cog, is_tiled, is_bigtiff, is_sparse, has_mask;
    const cogpu_codec_row *codec, *mask_codec;
    cogpu_encoding encoding; /* of blocks; its format's sizes are those of level 0 */
    uint32_t predictor;
    uint8_t fill[16];              /* a sample of nodata, or 0: the value of sparse blocks */
    bool has_nodata, replaces_nan; /* the latter by `fill` */
    cogpu_resampling resampling;
    uint32_t level_count;
    cogpu_block_grid levels[COGPU_LEVELS_MAX];
    uint64_t max_block_bytes; /* upper bound of an encoded block, of pixels or mask */
    uint64_t max_mask_bytes;  /* upper bound of an encoded block of the mask */
    uint64_t most_bytes;      /* upper bound of all blocks, with COG leaders and trailers */
    uint64_t min_file_bytes;  /* lower bound of all blocks; 0 for compressed ones */
} cogpu_write_plan;

/* Checks all of the profile that concerns how pixels are stored. `is_bigtiff` is set only if the
 * profile demands it; else the writer decides by the sizes. */
cogpu_status cogpu_plan_write(const cogpu_profile *profile, cogpu_write_plan *plan,
                              cogpu_error *error);
/* Sets the photometric interpretation (see image/write_tags.h), on which no size depends. */
void cogpu_plan_set_photometric(cogpu_write_plan *plan, uint32_t photometric);

/* One block of pixels, or of the mask (plane == plan->planes). */
typedef struct cogpu_new_block {
    uint32_t column, row, plane;
    uint32_t width, height; /* inside the image */
    uint32_t rows;          /* stored: tiles extend below the image, strips do not */
} cogpu_new_block;

cogpu_new_block cogpu_plan_new_block(const cogpu_write_plan *plan, const cogpu_block_grid *grid,
                                     uint32_t row, uint32_t column, uint32_t plane);

/* Parameters of its encoder, and the number of its decoded bytes. */
cogpu_encoding cogpu_plan_encoding(const cogpu_write_plan *plan, const cogpu_block_grid *grid,
                                   const cogpu_new_block *block, size_t *decoded_bytes);

/* Its bytes before samples of fewer bits than their type has are packed. */
size_t cogpu_plan_block_bytes(const cogpu_write_plan *plan, const cogpu_block_grid *grid,
                              const cogpu_new_block *block);
bool cogpu_plan_is_packed(const cogpu_write_plan *plan);

/* Its index in the directory of pixels, or of the mask. */
uint64_t cogpu_plan_index(const cogpu_write_plan *plan, const cogpu_block_grid *grid,
                          const cogpu_new_block *block);

#endif
