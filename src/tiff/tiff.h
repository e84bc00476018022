/*
 * TIFF syntax: header, ghost area, directories, tags. image/ has the semantics.
 *
 * Offsets and counts are checked here against the file size and the limits. These functions never
 * read past the value of a tag.
 */
#ifndef COGPU_TIFF_TIFF_H
#define COGPU_TIFF_TIFF_H

#include "base/limits.h"
#include "base/memory.h"
#include "io/source.h"

#include <stdbool.h>

typedef struct cogpu_entry {
    uint16_t tag;
    uint16_t type; /* a known one: entries of unknown types are dropped */
    uint64_t count;
    uint64_t bytes;        /* count * width of the type, checked */
    uint64_t value_offset; /* in the file, of the value itself, inline or not */
    uint8_t inline_value[8];
    bool is_inline;
} cogpu_entry;

typedef struct cogpu_ifd {
    uint64_t offset;
    int32_t parent;        /* directory that names it as SubIFD, or -1 */
    uint32_t subfile_type; /* NewSubfileType, or what the old SubfileType says */
    uint32_t entry_count;
    const cogpu_entry *entries; /* in file order; only the first of duplicates is kept */
} cogpu_ifd;

typedef struct cogpu_tiff {
    cogpu_io *io;
    cogpu_limits limits;
    bool big_endian, bigtiff;
    uint32_t ghost;     /* COGPU_GHOST_... */
    uint64_t ghost_end; /* where the ghost area ends; 0 without one */
    cogpu_ifd *directories;
    uint32_t directory_count;
    const char *warning; /* what was dropped, a line each; NULL */
    uint32_t number;     /* 0: the file itself; others are its sidecars */
} cogpu_tiff;

/* Reads header, ghost area and all directories. Everything is taken from the arena. */
cogpu_status cogpu_tiff_open(cogpu_tiff *tiff, cogpu_io *io, const cogpu_limits *limits,
                             cogpu_arena *arena, cogpu_error *error);

/* NULL if the directory has no such tag. */
const cogpu_entry *cogpu_tiff_find(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag);

/* Bytes of one element of a type; 0 for an unknown type. */
size_t cogpu_tiff_type_bytes(uint32_t type);

/* "ImageWidth"; "unknown". */
const char *cogpu_tag_name(uint32_t tag);

/* Whether the whole value is inside the file. Check before allocating memory for it. */
bool cogpu_tiff_is_inside(const cogpu_tiff *tiff, const cogpu_entry *entry);

/* Elements first .. first+count-1 of a tag, in three readings. All fail with COGPU_CORRUPT where
 * the range is not inside the tag, the value is not inside the file, or the type does not fit. */
cogpu_status cogpu_tiff_raw(const cogpu_tiff *tiff, const cogpu_entry *entry, uint64_t first,
                            uint64_t count, void *to, cogpu_error *error);
cogpu_status cogpu_tiff_u64s(const cogpu_tiff *tiff, const cogpu_entry *entry, uint64_t first,
                             uint64_t count, uint64_t *to, cogpu_error *error);
/* Any number type; a RATIONAL with denominator 0 is 0. */
cogpu_status cogpu_tiff_doubles(const cogpu_tiff *tiff, const cogpu_entry *entry, uint64_t first,
                                uint64_t count, double *to, cogpu_error *error);

/* The span of elements first .. first+count-1, as far as the tag has them; empty for an inline
 * value. */
cogpu_byte_range cogpu_tiff_span(const cogpu_entry *entry, uint64_t first, uint64_t count);

/* Number of zero elements from `first` on, at most `count`: within the next `buffer_bytes` bytes,
 * which are read to `buffer`, or within a hole of a sparse file of any size. */
cogpu_status cogpu_tiff_zeros(const cogpu_tiff *tiff, const cogpu_entry *entry, uint64_t first,
                              uint64_t count, uint8_t *buffer, size_t buffer_bytes, uint64_t *zeros,
                              cogpu_error *error);

/* The first element of an integer tag, or `fallback` where the directory has none. */
cogpu_status cogpu_tiff_u64(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                            uint64_t fallback, uint64_t *value, cogpu_error *error);

/* An ASCII (or BYTE, UNDEFINED) value up to its first NUL, terminated; *text is NULL where the tag
 * is absent, "" where it is empty. */
cogpu_status cogpu_tiff_text(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                             cogpu_arena *arena, const char **text, cogpu_error *error);

/* Appends a line to a warning text. Out of memory is ignored. */
void cogpu_warn(cogpu_arena *arena, const char **warning, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Types of values, by number. */
enum {
    TYPE_BYTE = 1,
    TYPE_ASCII,
    TYPE_SHORT,
    TYPE_LONG,
    TYPE_RATIONAL,
    TYPE_SBYTE,
    TYPE_UNDEFINED,
    TYPE_SSHORT,
    TYPE_SLONG,
    TYPE_SRATIONAL,
    TYPE_FLOAT,
    TYPE_DOUBLE,
    TYPE_IFD,
    TYPE_LONG8 = 16,
    TYPE_SLONG8,
    TYPE_IFD8
};

/* Tags, by number. */
enum {
    TAG_NEW_SUBFILE_TYPE = 254,
    TAG_SUBFILE_TYPE = 255,
    TAG_IMAGE_WIDTH = 256,
    TAG_IMAGE_LENGTH = 257,
    TAG_BITS_PER_SAMPLE = 258,
    TAG_COMPRESSION = 259,
    TAG_PHOTOMETRIC = 262,
    TAG_FILL_ORDER = 266,
    TAG_IMAGE_DESCRIPTION = 270,
    TAG_STRIP_OFFSETS = 273,
    TAG_ORIENTATION = 274,
    TAG_SAMPLES_PER_PIXEL = 277,
    TAG_ROWS_PER_STRIP = 278,
    TAG_STRIP_BYTE_COUNTS = 279,
    TAG_X_RESOLUTION = 282,
    TAG_Y_RESOLUTION = 283,
    TAG_PLANAR_CONFIGURATION = 284,
    TAG_T4_OPTIONS = 292,
    TAG_RESOLUTION_UNIT = 296,
    TAG_PREDICTOR = 317,
    TAG_COLOR_MAP = 320,
    TAG_TILE_WIDTH = 322,
    TAG_TILE_LENGTH = 323,
    TAG_TILE_OFFSETS = 324,
    TAG_TILE_BYTE_COUNTS = 325,
    TAG_SUB_IFDS = 330,
    TAG_INK_SET = 332,
    TAG_EXTRA_SAMPLES = 338,
    TAG_SAMPLE_FORMAT = 339,
    TAG_JPEG_TABLES = 347,
    TAG_JPEG_STREAM = 513,
    TAG_JPEG_STREAM_BYTES = 514,
    TAG_JPEG_RESTART_INTERVAL = 515,
    TAG_JPEG_Q_TABLES = 519,
    TAG_JPEG_DC_TABLES = 520,
    TAG_JPEG_AC_TABLES = 521,
    TAG_YCBCR_COEFFICIENTS = 529,
    TAG_YCBCR_SUBSAMPLING = 530,
    TAG_REFERENCE_BLACK_WHITE = 532,
    TAG_TILE_DEPTH = 32998,
    TAG_MODEL_PIXEL_SCALE = 33550,
    TAG_MODEL_TIEPOINT = 33922,
    TAG_MODEL_TRANSFORMATION = 34264,
    TAG_GEO_KEY_DIRECTORY = 34735,
    TAG_GEO_DOUBLE_PARAMS = 34736,
    TAG_GEO_ASCII_PARAMS = 34737,
    TAG_GDAL_METADATA = 42112,
    TAG_GDAL_NODATA = 42113,
    TAG_LERC_PARAMETERS = 50674,
    TAG_RPC_COEFFICIENT = 50844
};

#endif
