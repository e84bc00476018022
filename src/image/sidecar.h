/*
 * Files beside a TIFF (GDAL's sidecars): PAM, world file, RPC text, ArcGIS metadata. Parsers of
 * their texts; context/sidecars.c finds and reads the files.
 *
 * A sidecar never makes a read fail: an unreadable one is ignored, with a warning. Only memory
 * fails.
 */
#ifndef COGPU_IMAGE_SIDECAR_H
#define COGPU_IMAGE_SIDECAR_H

#include "image/pam_elements.h"

/* The numbers of tag 50844. */
enum { COGPU_RPC_NUMBERS = 92 };

/* sidecar_world.c: six lines A D B E C F as a geotransform. False if GDAL would ignore the
 * file, or if pixels get no finite position or size. */
bool cogpu_world_parse(xml_slice text, double transform[6]);

/* sidecar_rpc.c: DigitalGlobe's RPB, and the lines "KEY: value" of _RPC.TXT and .rpc files. False
 * where a value is missing. Errors that are not stated are NaN. */
bool cogpu_rpb_parse(xml_slice text, double rpc[COGPU_RPC_NUMBERS]);
bool cogpu_rpc_text_parse(xml_slice text, double rpc[COGPU_RPC_NUMBERS]);
/* The same from metadata items of the domain "RPC". */
bool cogpu_rpc_items_parse(const cogpu_metadata *metadata, double rpc[COGPU_RPC_NUMBERS]);

/* Contents of a PAM file. */
typedef struct cogpu_pam {
    const char *srs; /* as the file has it: WKT, "EPSG:4326", a PROJ string; NULL without one */
    double epoch;
    bool has_transform;
    double transform[6];
    const cogpu_gcp *gcps;
    uint32_t gcp_count;
    const char *gcp_srs;
    cogpu_metadata metadata; /* of image and bands; descriptions, units, scales and colours of bands
                              * as items with a role */
    const char **nodata;     /* of each band; NULL where none is stated */
    const uint16_t *palette;
    uint32_t palette_entries;
} cogpu_pam;

/* Properties of the image that PAM refers to. */
typedef struct cogpu_pam_image {
    uint32_t height, bands;
    double pixels_per_inch[2]; /* across and down; 0 where the TIFF does not state both */
} cogpu_pam_image;

/* sidecar_pam.c: *fault is NULL, or why the text was ignored. */
cogpu_status cogpu_pam_parse(xml_slice text, const cogpu_pam_image *image, cogpu_arena *arena,
                             cogpu_pam *pam, const char **fault, cogpu_error *error);
/* sidecar_esri.c: <GeodataXform>, of ArcGIS. */
cogpu_status cogpu_geodata_xform_parse(xml_slice content, const cogpu_pam_image *image,
                                       cogpu_arena *arena, cogpu_pam *pam, cogpu_error *error);

/* sidecar_esri.c: the code in ArcGIS's metadata as "EPSG:n" or "ESRI:n"; false without one. */
enum { COGPU_CODE_CHARS = 24 };
bool cogpu_arcgis_code(xml_slice text, char code[COGPU_CODE_CHARS]);

/* A transform that gives pixels a finite position and size. */
bool cogpu_transform_is_valid(const double transform[6]);

/* Text sidecars, in the order in which GDAL prefers those of one purpose. */
typedef enum cogpu_sidecar_kind {
    SIDECAR_PAM = 0,
    SIDECAR_WORLD_SHORT, /* x.tfw */
    SIDECAR_WORLD_LONG,  /* x.tifw */
    SIDECAR_WORLD_WLD,
    SIDECAR_ARCGIS, /* x.xml */
    SIDECAR_RPB,
    SIDECAR_RPC_TEXT, /* x_RPC.TXT */
    SIDECAR_RPC,      /* x.rpc */
    SIDECAR_KINDS
} cogpu_sidecar_kind;

typedef struct cogpu_sidecar_text {
    xml_slice text; /* bytes 0: there is no such file */
    bool is_used;   /* set where the image took something from it */
} cogpu_sidecar_text;

enum { COGPU_OVERVIEW_FILES_MAX = 32 };

/* All sidecars of a file. */
struct cogpu_sidecar_data {
    const cogpu_tiff *overviews[COGPU_OVERVIEW_FILES_MAX]; /* x.tif.ovr, x.tif.ovr.ovr, ... */
    uint32_t overview_count;
    const cogpu_tiff *mask, *mask_overviews; /* x.tif.msk, x.tif.msk.ovr; NULL without one */
    cogpu_sidecar_text texts[SIDECAR_KINDS];
    cogpu_crs_database **registry; /* for CRSs as text */
};

/* sidecar.c: the parts of an image that sidecars change, in GDAL's order of precedence. */
cogpu_status cogpu_sidecar_georef(cogpu_sidecar_data *beside, const cogpu_pam *pam,
                                  cogpu_arena *arena, cogpu_georef *georef, const char **warning,
                                  cogpu_error *error);
/* Items of the domain "RPC" are left out where the image has rational polynomials. */
cogpu_status cogpu_sidecar_metadata(const cogpu_pam *pam, bool has_rpc, cogpu_arena *arena,
                                    cogpu_metadata *metadata, cogpu_error *error);

#endif
