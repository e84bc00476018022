/*
 * The rules of COG validation as a table: the severity of a violation
 *
 *     for us      GDAL's. What only rio-cogeo rejects is a warning, what only the standard rejects
 *                 a note.
 *     strict      as for us, but what rio-cogeo or the standard rejects is an error too
 *     GDAL        validate_cloud_optimized_geotiff.py and `gdal driver cog validate`
 *     rio-cogeo   cog_validate
 *     OGC         OGC 21-026: "shall" is an error, a recommendation a warning
 *
 * Rows that deviate from this say why in a comment.
 */
#include "check/check.h"

enum {
    NONE = 0,
    NOTE = COGPU_SEVERITY_NOTE,
    WARN = COGPU_SEVERITY_WARNING,
    FAULT = COGPU_SEVERITY_ERROR
};

/* clang-format off */
const cogpu_check_rule cogpu_check_rules[RULE_COUNT] = {
    /*                             name                      us     strict GDAL   rio-c. OGC
                                   advice */
    [RULE_EDITED]               = {"edited",                 FAULT, FAULT, FAULT, FAULT, NONE,
                                  "rewrite the file as a COG"},
    [RULE_EXTERNAL_OVERVIEWS]   = {"external-overviews",     FAULT, FAULT, FAULT, FAULT, NONE,
                                  "rewrite the file as a COG with internal overviews"},
    [RULE_FIRST_DIRECTORY_FAR]  = {"first-directory",        FAULT, FAULT, FAULT, FAULT, NONE,
                                  "rewrite the file as a COG: directories come first"},
    [RULE_FIRST_DIRECTORY]      = {"first-directory",        FAULT, FAULT, FAULT, NONE,  NONE,
                                  "rewrite the file as a COG: directories come first"},
    [RULE_DIRECTORY_ORDER]      = {"directory-order",        FAULT, FAULT, FAULT, FAULT, WARN,
                                  "rewrite the file as a COG: directories from large to small"},
    [RULE_DATA_BEFORE_DIRECTORY] = {"data-before-directory",FAULT, FAULT, FAULT, FAULT, WARN,
                                  "rewrite the file as a COG: directories before data"},
    [RULE_DATA_ORDER]           = {"data-order",             FAULT, FAULT, FAULT, FAULT, WARN,
                                  "rewrite the file as a COG: data of the smallest level first"},
    [RULE_STRIPS_WIDE]          = {"not-tiled",              FAULT, FAULT, FAULT, FAULT, FAULT,
                                  "rewrite the file with tiles"},
    [RULE_STRIPS_LARGE]         = {"not-tiled",              WARN,  FAULT, NONE,  FAULT, FAULT,
                                  "rewrite the file with tiles"},
    [RULE_STRIPS_SMALL]         = {"not-tiled",              NOTE,  FAULT, NONE,  NONE,  FAULT,
                                  "rewrite the file with tiles"},
    /* GDAL and rio-cogeo recognise strips by their width, and take tiles that are as wide as the
     * image for strips. They are tiles, and good ones if they are small. */
    [RULE_TILES_WIDE]           = {"wide-tiles",             WARN,  WARN,  FAULT, FAULT, NONE,
                                  "use smaller tiles"},
    [RULE_TILES_AS_WIDE]        = {"wide-tiles",             NOTE,  NOTE,  NONE,  FAULT, NONE,
                                  "nothing, or use smaller tiles"},
    [RULE_TILES_NOT_SQUARE]     = {"tiles-not-square",       NOTE,  WARN,  NONE,  NONE,  WARN,
                                  "use square tiles of 512 or 256 pixels"},
    [RULE_TILES_NO_POWER]       = {"tiles-no-power-of-two",  NOTE,  WARN,  NONE,  NONE,  WARN,
                                  "use tiles of 512 or 256 pixels"},
    [RULE_NO_OVERVIEWS]         = {"no-overviews",           WARN,  FAULT, WARN,  WARN,  FAULT,
                                  "rewrite the file with overviews"},
    [RULE_COARSEST_LEVEL]       = {"coarsest-level",         NOTE,  FAULT, NONE,  NONE,  FAULT,
                                  "add overviews until one tile covers the image"},
    [RULE_OVERVIEW_LARGER]      = {"overview-size",          FAULT, FAULT, FAULT, FAULT, FAULT,
                                  "rewrite the file with overviews from large to small"},
    [RULE_OVERVIEW_TALLER]      = {"overview-size",          FAULT, FAULT, FAULT, NONE,  FAULT,
                                  "rewrite the file with overviews from large to small"},
    [RULE_OVERVIEW_FULL_SIZE]   = {"overview-size",          WARN,  FAULT, NONE,  FAULT, FAULT,
                                  "rewrite the file with overviews from large to small"},
    [RULE_OVERVIEW_SAME_SIZE]   = {"overview-size",          NOTE,  FAULT, NONE,  NONE,  FAULT,
                                  "rewrite the file with overviews from large to small"},
    [RULE_OVERVIEW_FACTOR]      = {"overview-factor",        NOTE,  FAULT, NONE,  NONE,  FAULT,
                                  "rewrite the file with overviews by 2, 4, 8 and so on"},
    [RULE_OVERVIEW_NEAR_FULL]   = {"overview-factor",        WARN,  FAULT, NONE,  FAULT, FAULT,
                                  "rewrite the file with overviews by 2, 4, 8 and so on"},
    /* rio-cogeo computes factors from widths only, and a width of one pixel remains. */
    [RULE_OVERVIEW_NARROW]      = {"overview-width",         NOTE,  NOTE,  NONE,  FAULT, NONE,
                                  "nothing"},
    [RULE_GEOREFERENCE]         = {"georeference-in-overview",NOTE,  FAULT, NONE,  NONE,  FAULT,
                                  "keep GeoTIFF tags in the full resolution only"},
    [RULE_NOT_BIGTIFF]          = {"not-bigtiff",            NOTE,  FAULT, NONE,  NONE,  FAULT,
                                  "write the file as BigTIFF"},
    [RULE_BLOCK_ORDER]          = {"block-order",            FAULT, FAULT, FAULT, NONE,  NONE,
                                  "rewrite the file as a COG: readers rely on the order"},
    [RULE_BLOCK_LEADER]         = {"block-leader",           FAULT, FAULT, FAULT, NONE,  NONE,
                                  "rewrite the file as a COG: readers rely on the leaders"},
    [RULE_BLOCK_TRAILER]        = {"block-trailer",          FAULT, FAULT, FAULT, NONE,  NONE,
                                  "rewrite the file as a COG: the block may have been changed"},
    [RULE_MASK_OFFSET]          = {"mask-offset",            FAULT, FAULT, FAULT, NONE,  NONE,
                                  "rewrite the file as a COG: readers fetch a block with its mask"},
    [RULE_MASK_BLOCK_SIZE]      = {"mask-block-size",        FAULT, FAULT, FAULT, NONE,  NONE,
                                  "rewrite the file as a COG with mask and image in equal tiles"},
    /* Damage. No validator has a rule for it: they fail, or do not look. */
    [RULE_BLOCK_OUTSIDE]        = {"block-outside",          FAULT, FAULT, NONE,  NONE,  NONE,
                                  "download or copy the file again"},
    [RULE_BLOCK_TABLE]          = {"block-table",            FAULT, FAULT, NONE,  NONE,  NONE,
                                  "download or copy the file again"},
    [RULE_DIRECTORY_MALFORMED]  = {"malformed-directory",    WARN,  WARN,  NONE,  NONE,  NONE,
                                  "inspect it with `cogpu info --tags`"},
    [RULE_OTHER_IMAGES]         = {"other-images",           NOTE,  NOTE,  NONE,  NONE,  NONE,
                                  "use one file for each image"},
};
/* clang-format on */
