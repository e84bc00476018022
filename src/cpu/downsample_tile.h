/*
 * A tile of a downsampling step: as many columns of the result as keep its source rows in the L1
 * and L2 caches, with the scratch memory that they need. downsample.c walks tiles, bands and rows;
 * downsample_rows.c computes a row of one band of a tile.
 *
 *        from_x                  from_x + from_count
 *   source |----------------------------|          tile_rows rows of it are kept as weighted lines,
 *                |------------|                    in a ring: row y is line y % tile_rows.
 *   result       x            x + columns.count
 */
#ifndef COGPU_CPU_DOWNSAMPLE_TILE_H
#define COGPU_CPU_DOWNSAMPLE_TILE_H

#include "base/resampling.h"
#include "cpu/downsample_kernels.h"

enum { DOWNSAMPLE_SAMPLE_MAX_BYTES = 16 };

/* One band of a raster, one part of a complex band, or a mask. */
struct downsample_plane {
    cogpu_type type;
    uint8_t *data; /* of its row `first`, column `left` */
    uint32_t first, left;
    int64_t stride_x, stride_y;
    bool is_mask; /* anything but 0 counts as 255 */
};

/* Rows of the source as one weighted sum for each column, in a ring by row number. */
struct line_ring {
    double *values, *weights;
    uint32_t *rows; /* row number + 1; 0: none */
};

struct downsample_tile {
    const cogpu_downsample *downsample;
    cogpu_downsample_columns columns;
    uint32_t tile_columns, tile_samples, tile_rows; /* at most: result, source, rows of a support */
    uint32_t end;                                   /* of the columns of the result */
    uint32_t x, from_x, from_count;                 /* first column of the result; the source */
    uint8_t *samples[2], *guards, *made, *patched, *valid;
    double *values[2], *results, *weights, *row_weights;
    uint32_t scaled_rows; /* number of rows that the columns' scales are for */
    struct line_ring all,
        valid_only;           /* lines of all samples, which have no weights; of valid ones */
    uint32_t *runs, *longest; /* of valid lines */
    uint64_t *keys;
    cogpu_downsample_candidate *candidates;
};

/* The pass of one band from source to result. */
struct band_pass {
    struct downsample_plane from, to;
    struct downsample_plane guard; /* mask or alpha: 0 where the band is invalid; no data: none */
    struct resampling_nodata nodata;
};

static inline struct support column_support(const cogpu_downsample *downsample, uint32_t x) {
    const cogpu_resampling_axis axis = cogpu_downsample_axis_x(downsample);
    return cogpu_downsample_support(downsample->method, &axis, x);
}

static inline struct support row_support(const cogpu_downsample *downsample, uint32_t y) {
    const cogpu_resampling_axis axis = cogpu_downsample_axis_y(downsample);
    return cogpu_downsample_support(downsample->method, &axis, y);
}

static inline bool selects_sample(cogpu_resampling method) {
    return cogpu_resampling_find(method)->kind == RESAMPLING_SELECT;
}

static inline uint8_t *plane_sample(const struct downsample_plane *plane, uint32_t x, uint32_t y) {
    return plane->data + (int64_t)(y - plane->first) * plane->stride_y +
           (int64_t)(x - plane->left) * plane->stride_x;
}

/* Takes scratch memory of the worker for tiles of a result of `width` columns. */
cogpu_status cogpu_downsample_reserve_tile(cogpu_worker *worker, const cogpu_downsample *downsample,
                                           uint32_t width, struct downsample_tile *tile,
                                           cogpu_error *error);
/* Moves the tile to column x: supports, weights. */
void cogpu_downsample_move_tile(struct downsample_tile *tile, uint32_t x);

/* The tile's samples of a source row, packed: in the raster itself or copied to `scratch`. */
const uint8_t *cogpu_downsample_fetch_row(const struct downsample_tile *tile,
                                          const struct downsample_plane *from, uint32_t row,
                                          uint8_t *scratch);
/* Stores tile->made as a row of the result. */
void cogpu_downsample_store_row(const struct downsample_tile *tile,
                                const struct downsample_plane *to, uint32_t row);

/* Computes a row of the result into tile->made. */
void cogpu_downsample_row(struct downsample_tile *tile, const struct band_pass *pass, uint32_t row);
/* Drops lines of another band. */
void cogpu_downsample_forget_lines(struct downsample_tile *tile);

#endif
