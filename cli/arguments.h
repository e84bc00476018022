/*
 * The command line as plain values. A command names the options it has; all commands share one
 * table of them, so that an option means the same everywhere and each command's help comes from
 * that table.
 */
#ifndef COGPU_CLI_ARGUMENTS_H
#define COGPU_CLI_ARGUMENTS_H

#include "cogpu.h"

#include <stdbool.h>

typedef struct cogpu_command cogpu_command;

enum {
    OPTION_OUTPUT = 1 << 0,
    OPTION_IMAGE = 1 << 1,
    OPTION_LEVEL = 1 << 2,
    OPTION_WINDOW = 1 << 3,
    OPTION_BBOX = 1 << 4,
    OPTION_BAND = 1 << 5,
    OPTION_MASK = 1 << 6,
    OPTION_FILL = 1 << 7,
    OPTION_TAGS = 1 << 8,
    OPTION_WKT = 1 << 9,
    OPTION_THREADS = 1 << 10,
    OPTION_DEVICE = 1 << 11,
    OPTION_JSON = 1 << 12,
    OPTION_COMMON = 1 << 13, /* what every command has: --quiet, --verbose, --help */
    OPTION_TYPE = 1 << 14,
    OPTION_NAN = 1 << 15,
    OPTION_UNSCALE = 1 << 16,
    OPTION_STRICT = 1 << 17,
    OPTION_FAST = 1 << 18,
    OPTION_PICTURE = 1 << 19, /* all that a picture has: --size, --percent, --stretch */
    OPTION_PROFILE = 1 << 20, /* all that a file to be written has; --level is the codec's then, and
                               * that of the pyramid is --from-level */
    OPTION_NETWORK = 1 << 21, /* all that opening an input has: sidecars, and URLs */
    OPTION_FORMAT = 1 << 22,
    OPTION_NO_CLOBBER = 1 << 23,
    OPTION_MANY = 1 << 24,    /* all that a run over many files has */
    OPTION_RESHAPE = 1 << 25, /* what convert changes about pixels and their place */
    OPTION_GRID = 1 << 26,    /* all that a mosaic has */
    OPTION_WARP = 1 << 27,    /* what a mosaic has besides if its pixels are computed */
    /* What the new file depends on. */
    OPTIONS_OF_OUTPUT = OPTION_PROFILE | OPTION_RESHAPE | OPTION_IMAGE | OPTION_WINDOW |
                        OPTION_BBOX | OPTION_BAND | OPTION_FILL | OPTION_DEVICE | OPTION_LEVEL
};

/* One --metadata [BAND:][DOMAIN:]KEY=VALUE. */
typedef struct cogpu_metadata_option {
    char *memory; /* that the texts lie in */
    int32_t band; /* 0 = of the whole image */
    const char *domain, *name, *value;
} cogpu_metadata_option;

/* What --scale says, as gdal_translate's -scale. */
typedef struct cogpu_scale_option {
    bool is_given, has_source;
    double source[2], target[2];
} cogpu_scale_option;

typedef struct cogpu_arguments {
    const char **files;
    char **names; /* of the files, as they are shown */
    int file_count;
    const char *output; /* NULL where not given */
    const char *format;
    const char *folder; /* of --to; NULL where not given */
    uint32_t jobs;
    uint64_t output_options; /* hash of those that the new file depends on */
    bool resume, no_clobber, quiet, verbose;
    uint32_t image, level, threads;
    bool has_level;
    cogpu_device_kind device, decode;
    uint32_t device_index, decode_index;
    bool has_window;
    uint32_t x, y, width, height;
    bool has_bbox;
    double bbox[4]; /* xmin, ymin, xmax, ymax */
    uint32_t *bands;
    uint32_t band_count;          /* 0 = all */
    cogpu_type type;              /* COGPU_TYPE_NONE where not given */
    uint32_t size;                /* of a picture; 0 where not given */
    uint32_t to_width, to_height; /* of --size W,H; 0 where not given */
    cogpu_type dtype;             /* of the file to be written; COGPU_TYPE_NONE: as is */
    cogpu_scale_option scale;
    bool without_crs, has_transform, has_bounds;
    double transform[6], bounds[4];
    cogpu_metadata_option *metadata;
    uint32_t metadata_count;
    bool has_stretch, has_percent;
    double stretch[2], percent[2];
    cogpu_profile profile; /* what the options say of a file to be written, the rest 0 */
    uint32_t *factors;     /* of profile.overview_factors */
    bool without_nodata;
    cogpu_network network; /* what the options say of it, the rest 0 */
    cogpu_sidecars sidecars;
    cogpu_vrt_sources vrt_sources;
    const char *input_list;
    char *list_text;             /* that the paths of the list lie in */
    cogpu_grid grid;             /* what the options say of it, the rest 0 */
    const char *like;            /* a file that has the grid; NULL where not given */
    cogpu_mosaic_options mosaic; /* likewise; without pointers to others */
    cogpu_mosaic_source source;  /* what the options say of all sources */
    bool mask, masked, unscaled, fill_bad_blocks, tags, wkt, strict, fast, json, help;
} cogpu_arguments;

/* Reads what follows the command's name. On a mistake says so on stderr and returns false. */
bool cogpu_arguments_parse(const cogpu_command *command, int count, char **words,
                           cogpu_arguments *arguments);
void cogpu_arguments_free(cogpu_arguments *arguments);

/* The table of the options that `options` names, for the help. */
void cogpu_arguments_help(uint32_t options);

/* The one of `count` names that `word` most likely meant, or NULL when none is near. */
const char *cogpu_nearest_name(const char *word, const char *const *names, int count);

#endif
