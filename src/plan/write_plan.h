/*
 * What a write has to do: levels, their grids of blocks, how blocks are coded, and how large the
 * file may get, from the profile alone. Arithmetic only: no I/O, no memory, no device.
 */
#ifndef COGPU_PLAN_WRITE_PLAN_H
#define COGPU_PLAN_WRITE_PLAN_H

#include "image/image.h"

/* The blocks of a level; those of its mask are the same, of one plane. */
typedef struct cogpu_grid {
    uint32_t width, height;             /* of the level */
    uint32_t block_width, block_height; /* strips are as wide as the level */
    uint32_t across, down;              /* blocks of one plane */
} cogpu_grid;

typedef struct cogpu_write_plan {
    uint32_t bands, planes; /* planes: bands of a planar file, else 1 */
    cogpu_type type;
    size_t pixel_bytes; /* in a block: of all bands, or of one in a planar file */
    bool is_cog, is_tiled, is_bigtiff, is_sparse, has_mask;
    const cogpu_codec_row *codec, *mask_codec;
    cogpu_encoding encoding; /* of blocks; its format's sizes are those of level 0 */
    uint32_t predictor;
    uint8_t fill[16];              /* a sample of nodata, or 0: what a sparse block stands for */
    bool has_nodata, replaces_nan; /* the latter by `fill` */
    cogpu_resampling resampling;
    uint32_t level_count;
    cogpu_grid levels[COGPU_LEVELS_MAX];
    uint64_t most_block_bytes; /* of the largest block of pixels, encoded: at most */
    uint64_t most_mask_bytes;  /* of a block of the mask: at most */
    uint64_t most_bytes;       /* of all blocks, with what a COG puts around them: at most */
    uint64_t least_bytes;      /* of all blocks: what is surely written, where that is known */
} cogpu_write_plan;

/* Checks all of the profile that has to do with how pixels are stored. Whether it is a BigTIFF is
 * left open unless the profile says so. */
cogpu_status cogpu_plan_write(const cogpu_profile *profile, cogpu_write_plan *plan,
                              cogpu_error *error);
/* What image/describe.h finds of colours, which no size depends on. */
void cogpu_plan_set_photometric(cogpu_write_plan *plan, uint32_t photometric);

/* One block of pixels, or of the mask (plane == plan->planes). */
typedef struct cogpu_new_block {
    uint32_t column, row, plane;
    uint32_t width, height; /* that lie inside the image */
    uint32_t rows;          /* that are stored: tiles reach below the image, strips do not */
} cogpu_new_block;

cogpu_new_block cogpu_plan_new_block(const cogpu_write_plan *plan, const cogpu_grid *grid,
                                     uint32_t row, uint32_t column, uint32_t plane);

/* What its encoder is told, and how many decoded bytes that is. */
cogpu_encoding cogpu_plan_encoding(const cogpu_write_plan *plan, const cogpu_grid *grid,
                                   const cogpu_new_block *block, size_t *decoded_bytes);

/* Bytes of it when it is cut, before samples of fewer bits than their type has are packed. */
size_t cogpu_plan_cut_bytes(const cogpu_write_plan *plan, const cogpu_grid *grid,
                            const cogpu_new_block *block);
bool cogpu_plan_is_packed(const cogpu_write_plan *plan);

/* Its index in the directory of pixels, or of the mask. */
uint64_t cogpu_plan_index(const cogpu_write_plan *plan, const cogpu_grid *grid,
                          const cogpu_new_block *block);

#endif
