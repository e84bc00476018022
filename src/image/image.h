/*
 * Semantics of directories: images, levels, masks, block layout, georeferencing, metadata. No
 * pixels are read here.
 */
#ifndef COGPU_IMAGE_IMAGE_H
#define COGPU_IMAGE_IMAGE_H

#include "base/span.h"
#include "codec/codec.h"
#include "codec/ycbcr.h"
#include "tiff/tiff.h"

/* Color conversion on read, as in GDAL. */
typedef enum cogpu_colour { COGPU_AS_STORED = 0, COGPU_FROM_YCBCR, COGPU_FROM_CMYK } cogpu_colour;

/* How one directory stores its pixels: all that is needed to find and decode a block. */
typedef struct cogpu_storage {
    const cogpu_tiff *tiff;
    uint32_t directory;
    uint32_t width, height;
    uint32_t bands; /* that a read returns: CMYK becomes RGBA, 4 bands */
    cogpu_layout layout;
    uint32_t block_width, block_height; /* strips are as wide as the image */
    uint32_t across, down;              /* blocks of one plane */
    uint32_t planes;                    /* stored samples of a pixel in a planar file, else 1 */
    uint64_t blocks;                    /* across * down * planes */
    cogpu_type type;
    uint32_t bits, sample_format;
    uint32_t predictor, photometric, orientation;
    bool big_endian;              /* swap the bytes of samples after decoding */
    const cogpu_codec_row *codec; /* NULL for an unknown number */
    cogpu_colour colour;          /* planar: read/planar_colours.c; chunky: cpu/decode.c, restore */
    cogpu_ycbcr ycbcr;            /* for COGPU_FROM_YCBCR */
    cogpu_block_format format;    /* of a full block */
    size_t block_bytes;           /* of a full decoded block, all slices of a volume's tile */
    const cogpu_entry *offsets, *counts; /* either may be NULL: see locate.c */
    cogpu_span scan; /* old-style JPEG: the one block of the image; bytes 0 where offsets count */
    struct cogpu_mosaic *mosaic; /* computes the pixels of this level, or of its mask; NULL: a file
                                  * stores them */
    bool is_validity;            /* pixels say which of the mosaic's have a source: 0 or 255 */
} cogpu_storage;

/* Georeferencing of a directory. */
typedef struct cogpu_georef {
    bool has_transform;
    double transform[6]; /* GDAL's geotransform: corner, PixelIsPoint corrected */
    bool pixel_is_point;
    const cogpu_gcp *gcps;
    uint32_t gcp_count;
    const double *rpc;
    const cogpu_geokey *keys; /* ascending ids */
    uint32_t key_count;
    cogpu_crs crs; /* valid if has_crs */
    bool has_crs;
    const char *crs_text; /* of a sidecar: replaces the CRS of the keys; or NULL */
    bool has_z_scale;     /* one band and a vertical CRS: value scale and offset */
    double z_scale, z_offset;
} cogpu_georef;

/* GDAL_METADATA of a directory. */
typedef struct cogpu_metadata {
    const cogpu_metadata_item *items;
    uint32_t item_count;
} cogpu_metadata;

typedef struct cogpu_pyramid_level {
    cogpu_storage storage;
    bool external;
    bool has_mask;
    bool mask_external; /* in the .msk file, which has masks for the bands that mask_bands names */
    cogpu_storage mask;
} cogpu_pyramid_level;

/* A nodata value as a file states it, and what it means for a sample type. */
typedef struct cogpu_nodata {
    const char *text; /* as in the file; NULL: none */
    bool matches;     /* a sample can equal it */
    double value;     /* rounded to the sample type */
    int64_t i64;      /* exact value for I64 */
    uint64_t u64;     /* exact value for U64 */
} cogpu_nodata;

/* An image with its levels and metadata. */
typedef struct cogpu_pyramid {
    cogpu_image info; /* what cogpu_image_info returns */
    cogpu_pyramid_level *levels;
    cogpu_band *bands;    /* what cogpu_band_info returns */
    cogpu_nodata *nodata; /* of each band */
    cogpu_georef georef;
    cogpu_metadata metadata;
    cogpu_mask_source unmasked; /* mask source of levels without a mask: of band 1, and of all bands
                                 * if has_band_rules is false */
    bool has_band_rules;        /* bands have nodata, or masks in the .msk file, of their own */
    const uint32_t *mask_bands; /* of each band, the band of the .msk file, 1-based; 0 = none; NULL
                                 * without that file */
} cogpu_pyramid;

/* Where the validity of a band's samples comes from. */
typedef struct cogpu_band_rule {
    cogpu_mask_source mask_source;
    const cogpu_storage *storage; /* of the mask; of the level itself by nodata and alpha */
    uint32_t band;                /* of that storage, 1-based */
    const cogpu_nodata *nodata;
} cogpu_band_rule;

/* pyramid.c: bands count from 1. */
cogpu_band_rule cogpu_nodata_rule_of_pyramid(const cogpu_pyramid *pyramid,
                                             const cogpu_pyramid_level *level, uint32_t band);

/* pyramid.c: parts of a pyramid that follow from others. `texts`: nodata of each band, or NULL. */
cogpu_status cogpu_pyramid_set_nodata(cogpu_pyramid *pyramid, const char *const *texts,
                                      cogpu_arena *arena, cogpu_error *error);
void cogpu_pyramid_set_mask_source(cogpu_pyramid *pyramid);
void cogpu_pyramid_describe_storage(const cogpu_storage *storage, cogpu_image *info);
void cogpu_pyramid_describe_georef(const cogpu_georef *georef, cogpu_image *info);

/* What a computed image is made of: a mosaic, or a VRT. Memory that it points to must stay. */
typedef struct cogpu_computed_image {
    struct cogpu_mosaic *mosaic;
    const cogpu_tiff *tiff; /* source and limits; it has no directories */
    uint32_t width, height, band_count;
    cogpu_type type;
    uint32_t block_width, block_height;
    const cogpu_band *bands;          /* infos; nodata is set from `nodata` */
    const char *const *nodata;        /* of each band, or NULL */
    const uint32_t (*level_sizes)[2]; /* width and height, from level 1 on */
    uint32_t level_count;             /* level 0 included */
    bool has_mask;
    cogpu_georef georef;
    cogpu_metadata metadata;
    const uint16_t *palette; /* see cogpu_image */
    uint32_t palette_entries;
} cogpu_computed_image;

/* computed.c */
cogpu_status cogpu_pyramid_of_computed(const cogpu_computed_image *image, cogpu_arena *arena,
                                       cogpu_pyramid **pyramid, cogpu_error *error);

/* storage.c: the directory's structure, checked as a whole. Tags that have a default are named in
 * *warning if they are malformed, and the default is used. */
cogpu_status cogpu_storage_read(const cogpu_tiff *tiff, uint32_t directory, cogpu_arena *arena,
                                cogpu_storage *storage, const char **warning, cogpu_error *error);

/* locate.c: the spans of blocks first .. first+count-1. */
cogpu_status cogpu_storage_locate(const cogpu_storage *storage, uint64_t first, uint32_t count,
                                  cogpu_span *spans, cogpu_error *error);
/* old_jpeg.c: the header of compression 6, and its scan. Malformed parts are ignored; only memory
 * fails. */
cogpu_status cogpu_old_jpeg_read(cogpu_storage *storage, cogpu_arena *arena, cogpu_error *error);
/* Rows that a block holds: the last strip may have fewer. */
uint32_t cogpu_storage_rows(const cogpu_storage *storage, uint64_t index);

/* Whether blocks are data units of YCbCr (codec/ycbcr.h) rather than rows of samples. */
bool cogpu_storage_has_units(const cogpu_storage *storage);
/* Whether YCbCr reaches the caller as RGB, converted here or by the JPEG codec. */
bool cogpu_storage_is_rgb_of_ycbcr(const cogpu_storage *storage);

/* Bytes of the unit that byte order applies to; 1 for packed depths, which are streams of bits with
 * the most significant first. */
uint32_t cogpu_storage_order_unit(const cogpu_storage *storage);

/* georef.c, geokey.c: malformed tags are ignored and named in *warning; only memory and I/O fail.
 */
cogpu_status cogpu_georef_read(const cogpu_tiff *tiff, uint32_t directory, uint32_t bands,
                               cogpu_arena *arena, cogpu_georef *georef, const char **warning,
                               cogpu_error *error);
cogpu_status cogpu_geokeys_read(const cogpu_tiff *tiff, uint32_t directory, cogpu_arena *arena,
                                cogpu_georef *georef, const char **warning, cogpu_error *error);

/* PROJ context with its open database. One thread at a time may use it. */
typedef struct pj_ctx cogpu_crs_database;

/* crs.c: the CRS that the keys name; crs_proj.c (crs_absent.c without PROJ): the CRS as WKT2. If
 * *registry is NULL it is opened, and stays open for the caller. */
void cogpu_crs_from_keys(cogpu_georef *georef);
cogpu_status cogpu_crs_to_wkt(const cogpu_georef *georef, cogpu_crs_database **registry, char *text,
                              size_t capacity, size_t *needed, cogpu_error *error);
/* crs_text.c (or crs_absent.c): a CRS as text from an untrusted file. */
cogpu_status cogpu_crs_from_text(const char *text, cogpu_crs_database **registry,
                                 cogpu_arena *arena, cogpu_crs *crs, cogpu_error *error);
cogpu_status cogpu_crs_database_open(cogpu_crs_database **registry, cogpu_error *error);
void cogpu_crs_database_close(cogpu_crs_database *registry); /* NULL is allowed */

/* metadata.c: GDAL_METADATA's XML. Malformed XML is ignored and named in *warning. */
cogpu_status cogpu_metadata_read(const cogpu_tiff *tiff, uint32_t directory, cogpu_arena *arena,
                                 cogpu_metadata *metadata, const char **warning,
                                 cogpu_error *error);
/* The same from text; `xml` need not be terminated. */
cogpu_status cogpu_metadata_parse(const char *xml, size_t bytes, cogpu_arena *arena,
                                  cogpu_metadata *metadata, const char **warning,
                                  cogpu_error *error);

/* bands.c: names, units, scales and colours of the bands, from metadata, photometric and extra
 * samples. */
cogpu_status cogpu_bands_read(const cogpu_tiff *tiff, const cogpu_storage *storage,
                              const cogpu_georef *georef, const cogpu_metadata *metadata,
                              cogpu_arena *arena, cogpu_image *info, cogpu_band **bands,
                              const char **warning, cogpu_error *error);

/* GDAL's color interpretation as rasterio spells it; "undefined" for others and NULL. */
const char *cogpu_colour_named(const char *text);

/* nodata.c: text to value, and the value as a sample of 1 to 16 bytes (both parts of a complex
 * one). */
void cogpu_nodata_parse(const char *text, cogpu_type type, cogpu_nodata *nodata);
void cogpu_nodata_sample(const cogpu_nodata *nodata, cogpu_type type, uint8_t sample[16]);

/* Sidecars of a file: see sidecar.h. */
typedef struct cogpu_sidecar_data cogpu_sidecar_data;

/* pyramid.c: groups directories and sidecars into images and levels. Sidecars belong to image 0. */
cogpu_status cogpu_pyramids_read(const cogpu_tiff *tiff, cogpu_sidecar_data *beside,
                                 cogpu_arena *arena, cogpu_pyramid **pyramids, uint32_t *count,
                                 cogpu_error *error);

#endif
