/*
 * The plan of a warp: one source resampled into a window of a target raster. cpu/warp.c and
 * kernels/warp execute it. Structs only: grid/ fills them.
 */
#ifndef COGPU_PLAN_WARP_H
#define COGPU_PLAN_WARP_H

#include "base/status.h"

#include <stdbool.h>

/*
 * Source positions of the target pixels of a window, in pixels of the source level: (0, 0) is the
 * outer corner of its first pixel. They are stored at the nodes of a lattice of cells, 16 x 16
 * target pixels each. Cells are aligned to multiples of 16 in the target grid, so that a pixel has
 * the same position whatever window it is read in.
 *
 *     node (0,0)      node (1,0)        interpolated cell: bilinear between its four nodes
 *        +---------------+              exact cell: a table with a position for each pixel
 *        |  16 x 16      |
 *        |  pixels       |              centres: the position of node (i, j) is that of the centre
 *        +---------------+              of target pixel (16 i, 16 j); corners: of its upper left
 *     node (0,1)      node (1,1)        corner
 *
 * Positions that do not exist are NaN. A cell with such a node is always exact.
 */
enum { COGPU_CELL_SIDE = 16 };
#define COGPU_CELL_INTERPOLATED UINT32_MAX

typedef struct cogpu_coordinates {
    uint32_t x, y, width, height; /* the window, in pixels of the target grid */
    bool of_corners;              /* else of pixel centres */
    uint32_t first_cell_x, first_cell_y;
    uint32_t across, down; /* cells */
    const double *nodes;   /* pairs x, y: (across + 1) * (down + 1), row-major */
    const uint32_t *cells; /* across * down: number of the exact table, or
                            * COGPU_CELL_INTERPOLATED */
    const double *exact;   /* tables of pairs x, y: cogpu_cell_points squared of them, row-major */
    uint32_t exact_count;  /* of tables */
} cogpu_coordinates;

/* Positions in a row of an exact table. The corners of 16 pixels are 17. */
static inline uint32_t cogpu_cell_points(const cogpu_coordinates *coordinates) {
    return COGPU_CELL_SIDE + (coordinates->of_corners ? 1 : 0);
}

/* Nodata of a band. */
typedef struct cogpu_warp_band {
    bool has_nodata; /* samples that equal `nodata` are invalid, by the tolerance of GDAL's warp */
    double nodata;   /* of the source */
    bool avoids;     /* a valid result must not equal `avoided`: it moves to its neighbour */
    double avoided;  /* nodata of the target */
} cogpu_warp_band;

/* GDAL's UNIFIED_SRC_NODATA. */
typedef enum cogpu_warp_nodata {
    COGPU_WARP_NODATA_PARTIAL = 0, /* pixels are invalid if all bands are; samples too */
    COGPU_WARP_NODATA_UNITED,  /* YES: pixels alone, by a mask of the caller: cogpu_warp_unite */
    COGPU_WARP_NODATA_OF_BANDS /* NO: samples alone */
} cogpu_warp_nodata;

typedef struct cogpu_warp {
    cogpu_resampling method;
    uint32_t bands;
    cogpu_type from_type, to_type; /* of source and target samples; none is complex */
    uint32_t x, y;                 /* of the source raster's first pixel, in the source level */
    uint32_t level_width, level_height; /* no pixel outside exists: weights are normalised */
    /* Target pixels for each source pixel, GDAL's XSCALE and YSCALE: below 1 kernels grow wider. */
    double scale_x, scale_y;
    const cogpu_warp_band *rules; /* one for each band */
    bool has_nodata;              /* at least one rule has */
    cogpu_warp_nodata unites;     /* how the nodata of bands becomes that of pixels */
    uint32_t alpha_band; /* from 1: the source's density, in the target too; 0: none. Weighed and
                          * blended as gdalwarp does */
    bool is_round; /* the first column of the level lies beside the last, round the Earth. Areas
                    * and sums that reach over both need all columns in the source window */
    bool clamps;   /* positions outside the level move to its border; else they have no result */
} cogpu_warp;

/* One source window warped into one window of a target. The rasters are all in host memory, or all
 * on one device; all else is in host memory. */
typedef struct cogpu_warp_job {
    const cogpu_warp *warp;
    const cogpu_coordinates *coordinates; /* of the target window */
    /* COGPU_RESAMPLE_SUM: where the corners of the source window's pixels lie in the target grid,
     * in pixels. The roles are swapped: forward->x, forward->y are warp->x, warp->y. Else NULL. */
    const cogpu_coordinates *forward;
    const cogpu_raster *source; /* pixels of the level from warp->x, warp->y on */
    const cogpu_raster *mask;   /* U8, one band, the same window: 0 is invalid; or NULL */
    const cogpu_raster *target; /* the window; every pixel is written */
    const uint8_t (*fill)[16];  /* a sample for each band: where there is no valid result */
    const cogpu_raster *valid; /* U8, the target's bands: 255 for a valid result, else 0; or NULL */
} cogpu_warp_job;

#endif
