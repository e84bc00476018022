/*
 * GDAL's VRT format: parsing, placement of sources, writing. No file is opened here, and no pixel
 * is read.
 *
 *   vrt_parse.c    dataset, bands, masks, overviews         vrt_window.c   which pixels a source
 *   vrt_source.c   sources, grouped over bands                             paints, from which of
 * its vrt_warped.c   GDALWarpOptions                                         own vrt_write.c text
 * from a description
 */
#ifndef COGPU_GRID_VRT_H
#define COGPU_GRID_VRT_H

#include "plan/rectangle.h"
#include "plan/warp.h"

typedef struct cogpu_vrt cogpu_vrt;

/* A file that a VRT names. */
typedef struct cogpu_vrt_file {
    const char *path;        /* as in the VRT; NULL for a VRT inside the VRT */
    bool relative;           /* to the folder of the VRT */
    const cogpu_vrt *nested; /* or NULL */
    uint32_t line;           /* of the element in the text, for messages */
} cogpu_vrt_file;

typedef struct cogpu_vrt_rect {
    double x, y, width, height;
} cogpu_vrt_rect;

typedef enum cogpu_vrt_source_kind {
    COGPU_VRT_SIMPLE = 0, /* paints every pixel, also nodata */
    COGPU_VRT_COMPLEX,
    COGPU_VRT_AVERAGED /* also a SimpleSource with resampling="average" */
} cogpu_vrt_source_kind;

/* A band that a source paints. */
typedef struct cogpu_vrt_source_band {
    uint32_t target;               /* band of the VRT, from 1; 1 in lists of masks */
    uint32_t band;                 /* of the source, from 1; with of_mask: of whose mask */
    const cogpu_sample_rule *rule; /* of a ComplexSource; else NULL */
} cogpu_vrt_source_band;

/* Sources are painted in their order, later ones over earlier ones. Bands that the same part of the
 * same file paints in the same way share a source. */
typedef struct cogpu_vrt_source {
    cogpu_vrt_source_kind kind;
    cogpu_vrt_file file;
    bool of_mask;         /* samples are those of the source's mask, 0 or 255; it is its own mask */
    uint32_t first_level; /* open option OVERVIEW_LEVEL: the level that counts as the image */
    bool has_one_level;   /* it has no overviews then */
    bool has_rects;       /* else pixel (x, y) of the source is pixel (x, y) of the VRT */
    cogpu_vrt_rect source, target;
    cogpu_resampling resampling; /* COGPU_RESAMPLE_DEFAULT: that of the read, else nearest. Of an
                                  * averaged source: before it is averaged */
    const cogpu_vrt_source_band *bands;
    uint32_t band_count;
} cogpu_vrt_source;

typedef struct cogpu_vrt_source_array {
    const cogpu_vrt_source *entries;
    uint32_t count;
} cogpu_vrt_source_array;

/* <Overview> of a band. */
typedef struct cogpu_vrt_overview {
    cogpu_vrt_file file;
    uint32_t band;
    bool of_mask;
} cogpu_vrt_overview;

typedef struct cogpu_vrt_mask cogpu_vrt_mask;

typedef struct cogpu_vrt_band {
    cogpu_type type;
    const char *nodata; /* text of the VRT, also the value of pixels without a source; or NULL */
    bool hides_nodata;  /* `nodata` is that value, but no nodata */
    const char *colour; /* ColorInterp, or NULL */
    const char *description, *unit; /* or NULL */
    double scale, offset;
    bool has_scale;          /* the VRT states scale or offset */
    const uint16_t *palette; /* planes of red, green, blue and alpha; or NULL */
    uint32_t palette_entries;
    uint32_t bits; /* NBITS; 0: all of the type */
    uint32_t block_width, block_height;
    const cogpu_vrt_mask *mask; /* of this band alone; or NULL */
    const cogpu_vrt_overview *overviews;
    uint32_t overview_count;
} cogpu_vrt_band;

/* A mask band and its sources, whose target band is 1. */
struct cogpu_vrt_mask {
    cogpu_vrt_band band;
    cogpu_vrt_source_array sources;
};

/* A name and its text: an option. */
typedef struct cogpu_vrt_option {
    const char *name, *value;
} cogpu_vrt_option;

typedef struct cogpu_vrt_warp_band {
    uint32_t source, target;                   /* bands, from 1 */
    const char *source_nodata, *target_nodata; /* or NULL */
    const char *initial; /* INIT_DEST of the band: a number, "NO_DATA"; NULL: 0 */
} cogpu_vrt_warp_band;

/* VRTWarpedDataset: GDALWarpOptions. */
typedef struct cogpu_vrt_warp {
    cogpu_vrt_file file;
    cogpu_resampling resampling;
    cogpu_type working_type; /* NONE: not stated */
    double max_error;        /* source pixels; 0: exact */
    const cogpu_vrt_warp_band *bands;
    uint32_t band_count;
    uint32_t source_alpha, target_alpha; /* bands, from 1; 0: none */
    const cogpu_vrt_option *options;     /* all <Option>s */
    uint32_t option_count;
    cogpu_warp_nodata unites; /* UNIFIED_SRC_NODATA */
    int32_t overview_level;   /* SrcOvrLevel: -1 AUTO, -2 NONE, AUTO-n: -2 - n; else the level */

    /* Placement of the source: one of the three. The target's is that of the VRT. */
    bool has_source_transform;
    double source_transform[6], source_inverse[6];
    const cogpu_gcp *gcps;
    uint32_t gcp_count;
    uint32_t gcp_order; /* of the polynomial, 1 to 3; 0: by the number of points */
    const double *rpc;  /* 92 numbers */
    double rpc_height, rpc_height_scale;
    const char *rpc_dem; /* path as in the VRT, or NULL */

    bool has_target_transform;
    double target_transform[6], target_inverse[6];
    bool reprojects; /* from source_srs to target_srs */
    const char *source_srs, *target_srs;
    const cogpu_vrt_option *reprojection; /* options of the reprojection: CENTER_LONG, ... */
    uint32_t reprojection_count;
} cogpu_vrt_warp;

struct cogpu_vrt {
    uint32_t width, height;
    bool has_transform;
    double transform[6];
    const char *srs;          /* any text that cogpu_crs_create accepts; NULL: none */
    const char *axis_mapping; /* dataAxisToSRSAxisMapping: "2,1"; or NULL */
    double epoch;             /* 0: none */
    const cogpu_gcp *gcps;
    uint32_t gcp_count;
    const char *gcp_srs;
    cogpu_metadata metadata; /* of image and bands, in all domains; descriptions, units, scales and
                              * colours of bands are items with a role as well */
    const double *rpc;       /* 92 numbers of the domain RPC, or NULL */
    const cogpu_vrt_band *bands;
    uint32_t band_count;
    cogpu_vrt_source_array sources;
    const cogpu_vrt_mask *mask;       /* of the dataset, or NULL */
    const uint32_t *overview_factors; /* OverviewList */
    uint32_t overview_factor_count;
    cogpu_resampling overview_resampling; /* nearest by default */
    const cogpu_vrt_warp *warp;           /* a warped VRT, which has no sources; or NULL */
    uint64_t total_sources;               /* those of masks and nested VRTs included */
};

/* Whether a file that begins with these bytes is a VRT. */
bool cogpu_vrt_identify(const void *start, size_t bytes);

/* COGPU_CORRUPT, COGPU_UNSUPPORTED and COGPU_LIMIT_EXCEEDED name the element and its line. What is
 * parsed may point into the arena, not into `xml`. */
cogpu_status cogpu_vrt_parse(const char *xml, size_t bytes, const cogpu_limits *limits,
                             cogpu_arena *arena, const cogpu_vrt **vrt, cogpu_error *error);

/* ---- vrt_window.c ---- */

/* Where a source lies in a read of the whole VRT into to_width x to_height pixels: the target
 * pixels that it paints, x0 <= x < x1, and the source position of the first one's corner. */
typedef struct cogpu_vrt_placement {
    uint32_t x0, y0, x1, y1;               /* empty if x0 >= x1 or y0 >= y1 */
    double x, y, step_x, step_y;           /* source pixels at full resolution */
    uint32_t low_x, low_y, high_x, high_y; /* source pixels inside the source rect, or at its
                                            * border */
    uint32_t width, height;                /* of the VRT */
    uint32_t to_width, to_height;          /* of the read */
} cogpu_vrt_placement;

void cogpu_vrt_place(const cogpu_vrt *vrt, const cogpu_vrt_source *source, uint32_t source_width,
                     uint32_t source_height, uint32_t to_width, uint32_t to_height,
                     cogpu_vrt_placement *placement);

/* A size in pixels. */
typedef struct cogpu_vrt_size {
    uint32_t width, height;
} cogpu_vrt_size;

/* The level that a read by that resampling takes, by GDAL's rule: levels[0] is full resolution. A
 * source may have a resampling of its own. */
uint32_t cogpu_vrt_choose_level(const cogpu_vrt_placement *placement,
                                const cogpu_vrt_source *source, cogpu_resampling method,
                                const cogpu_vrt_size *levels, uint32_t count);

/* Pixels of a read of to_width x to_height pixels. */
typedef struct cogpu_vrt_window {
    uint32_t x, y, width, height;
} cogpu_vrt_window;

/* The rectangle of the window in that placement, of a source level; false if the source paints
 * nothing in the window. *x, *y: where the rectangle's part lies in the window. The caller sets
 * types, bands and rules. */
bool cogpu_vrt_rectangle(const cogpu_vrt_placement *placement, const cogpu_vrt_source *source,
                         cogpu_resampling method, cogpu_vrt_size full, cogpu_vrt_size level,
                         const cogpu_vrt_window *window, cogpu_rectangle *rectangle, uint32_t *x,
                         uint32_t *y);

/* Whether the source paints samples as they are: nothing but nodata and mask decides on a pixel,
 * and pixels are not resampled, but by nearest. */
bool cogpu_vrt_source_is_simple(const cogpu_vrt_source *source, cogpu_resampling method);

#endif
