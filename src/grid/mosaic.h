/*
 * A mosaic: sources on one grid. This module computes which source pixels a part of the grid needs
 * and how they become pixels of the grid. Nothing is opened or read here: context/mosaic_files.c
 * opens the sources, read/mosaic.c executes layers.
 *
 *     mosaic
 *       member     a source, and how its pixels lie in the grid
 *         view     the same for one level of the mosaic: transformer, extent, source level, scale
 *           layer  what one member contributes to one part of a level: a plan
 */
#ifndef COGPU_GRID_MOSAIC_H
#define COGPU_GRID_MOSAIC_H

#include "grid/grid.h"
#include "grid/vrt.h"

#include <pthread.h>

typedef struct cogpu_mosaic cogpu_mosaic;

/* A member at one level of the mosaic. */
typedef struct cogpu_mosaic_view {
    bool is_ready;
    cogpu_transformer *transformer;
    double ratio;     /* source pixels for each pixel of the level, in one direction */
    bool is_copied;   /* its pixels are pixels of level 0 */
    cogpu_box extent; /* pixels of the level that the member may touch */
    uint32_t source_level;
    double scale_x, scale_y; /* of cogpu_warp */
} cogpu_mosaic_view;

typedef struct cogpu_mosaic_member {
    const char *path;        /* NULL: `given` */
    const cogpu_file *given; /* opened by the caller */
    uint32_t image;
    const uint32_t *bands; /* the member's band for each band of the mosaic, from 1; 0: none */
    uint32_t band_count;   /* of the mosaic */
    const char *nodata;    /* in place of the file's; "": none; NULL: the file's */
    const char *rpc_dem;   /* path, or NULL */
    bool ignores_mask;
    cogpu_status status; /* why the member is left out; COGPU_OK: it is not */
    const char *message;
    /* A warped member. */
    cogpu_placement placement;
    uint32_t alpha_band;      /* of the member, from 1; 0: none */
    bool is_copied;           /* its pixels are pixels of level 0 */
    cogpu_box extent;         /* pixels of level 0 of the mosaic that the member may touch */
    cogpu_mosaic_view *views; /* one for each level of the mosaic, made when they are needed */
    /* A member of a VRT that is placed by rectangles; else NULL. */
    const cogpu_vrt_source *rectangle;
    const cogpu_vrt *nested; /* a VRT inside the VRT, in place of a path; else NULL */
} cogpu_mosaic_member;

struct cogpu_mosaic {
    cogpu_placement target; /* level 0 */
    const cogpu_pyramid *pyramid;
    cogpu_mosaic_member *members; /* by priority, highest first */
    uint32_t count;
    struct cogpu_mosaic_files *files; /* of members: context/mosaic_files.h */
    cogpu_resampling resampling;
    cogpu_composite composite;
    double max_error; /* 0: exact */
    bool uses_full_resolution, skips_bad_members;
    const cogpu_vrt *vrt; /* whose members are placed by rectangles, and painted in their order;
                           * else NULL */
    bool is_nested;       /* the mosaic is of a VRT that another VRT names */
    bool needs_host;      /* a member is resampled or changed as only the CPU does */
    bool reads_all_bands; /* nodata of all bands decides about pixels */
    /* Of a warped VRT. */
    cogpu_warp_nodata unites;
    uint32_t made_alpha;      /* band that says where the source has pixels, from 1; 0: none */
    const cogpu_nodata *fill; /* of each band, the value of pixels without a source; NULL: nodata of
                               * the image */
    cogpu_operations *operations;
    pthread_mutex_t lock; /* of views and of the arena */
    cogpu_arena *arena;   /* of the mosaic's file */
};

/* ---- mosaic.c ---- */

/* The grid of a level. */
cogpu_placement cogpu_mosaic_level_grid(const cogpu_mosaic *mosaic, uint32_t level);
/* The view of a member, made at the first call. `pyramid` is the member's. */
cogpu_status cogpu_mosaic_member_view(cogpu_mosaic *mosaic, cogpu_mosaic_member *member,
                                      const cogpu_pyramid *pyramid, uint32_t level,
                                      const cogpu_mosaic_view **view, cogpu_error *error);
void cogpu_mosaic_close_views(cogpu_mosaic *mosaic);
/* Pixels of a level that the member may touch, without its file. */
cogpu_box cogpu_mosaic_member_extent(const cogpu_mosaic *mosaic, const cogpu_mosaic_member *member,
                                     uint32_t level);
static inline bool cogpu_box_is_empty(cogpu_box box) {
    return box.x0 >= box.x1 || box.y0 >= box.y1;
}
cogpu_box cogpu_box_intersect(cogpu_box a, cogpu_box b);
uint64_t cogpu_box_pixels(cogpu_box box); /* 0 if it is empty */
/* Of a level, the sample of a band for pixels without a source. */
void cogpu_mosaic_fill_sample(const cogpu_mosaic *mosaic, uint32_t band, uint8_t sample[16]);

/* ---- layer.c ---- */

typedef enum cogpu_layer_kind {
    COGPU_LAYER_NONE,     /* nothing to contribute */
    COGPU_LAYER_COPIED,   /* source pixels are target pixels: no resampling */
    COGPU_LAYER_WARPED,   /* cogpu_warp */
    COGPU_LAYER_RECTANGLE /* plan/rectangle.h, on the CPU alone */
} cogpu_layer_kind;

/* Source positions scale * (target + 0.5) + offset on each axis. */
typedef struct cogpu_axis_map {
    double scale_x, offset_x, scale_y, offset_y;
} cogpu_axis_map;

typedef struct cogpu_layer {
    cogpu_layer_kind kind;
    uint32_t member;
    const cogpu_pyramid *pyramid;  /* of the source */
    uint32_t level;                /* of the source */
    cogpu_box target;              /* pixels of the mosaic's level */
    cogpu_box source;              /* window of the source's level that is read */
    const cogpu_mosaic_view *view; /* of a warped member; else positions follow from `map` */
    cogpu_axis_map map;
    /* Bands that are read, in order, and the composition's band that each becomes, from 0. The last
     * bands may be some that decide about validity only: COGPU_LAYER_NO_BAND. */
    uint32_t *bands, *targets;
    uint32_t band_count;
    bool reads_mask; /* the mask decides about validity */
    bool makes_mask; /* that mask is made of the nodata of all bands: cogpu_warp_unite */
    bool is_of_mask; /* pixels are those of the source's mask, 0 or 255 */
    cogpu_coordinates coordinates, forward;
    cogpu_warp warp;
    cogpu_rectangle rectangle;
} cogpu_layer;
#define COGPU_LAYER_NO_BAND UINT32_MAX

/* A part of a level, and the bands that are composed. */
typedef struct cogpu_layer_request {
    uint32_t level;
    cogpu_box target;
    const uint32_t *bands; /* of the mosaic, from 1 */
    uint32_t band_count;
    cogpu_pool *pool; /* may be NULL */
    bool is_exact;    /* the windows of sources are not estimated */
} cogpu_layer_request;

/* Whether positions in the grid and in the source differ by a whole number of pixels: resampling
 * then is a copy, by all methods. */
bool cogpu_is_translation(const cogpu_transformer *transformer, const cogpu_placement *grid,
                          int64_t shift[2]);

/* Whether a source of a VRT is placed by nearest neighbours, and its samples stay as they are. */
bool cogpu_vrt_source_is_plain(const cogpu_vrt *vrt, const cogpu_vrt_source *source);

/* Plans what a member contributes: all but the positions. Memory comes from the arena. */
cogpu_status cogpu_layer_plan(cogpu_mosaic *mosaic, uint32_t member, const cogpu_pyramid *pyramid,
                              const cogpu_layer_request *request, cogpu_arena *arena,
                              cogpu_layer *layer, cogpu_error *error);

/* Computes the positions, while source pixels are read. *is_covered: the window of the source,
 * which may be an estimate, has all pixels that are needed. Any thread. */
cogpu_status cogpu_layer_compute(const cogpu_mosaic *mosaic, const cogpu_layer_request *request,
                                 cogpu_arena *arena, cogpu_layer *layer, bool *is_covered,
                                 cogpu_error *error);

/* Bytes of the source pixels and positions that executing the layer needs. */
uint64_t cogpu_layer_bytes(const cogpu_mosaic *mosaic, const cogpu_layer *layer);

#endif
