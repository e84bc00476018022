/*
 * The description of an image for `cogpu info`, gathered by cmd_info.c and printed by info_text.c
 * for a person and by info_json.c for a program.
 */
#ifndef COGPU_CLI_INFO_H
#define COGPU_CLI_INFO_H

#include "arguments.h"
#include "input.h"
#include "json.h"

typedef struct cogpu_details {
    const cogpu_file *file;
    const char *name;
    uint32_t number; /* of the image */
    cogpu_image image;
    cogpu_band first_band;
    double bounds[4]; /* xmin, ymin, xmax, ymax, where there is a transform */
    bool has_crs;
    cogpu_crs crs;
    char *wkt;              /* NULL where there is none */
    cogpu_error wkt_error;  /* why there is none */
    bool cog;               /* by what is cheap to see */
    const char *cog_reason; /* what makes it one, or not */
    bool tags;              /* wanted too */
    bool is_mosaic;         /* or a VRT: it has no directories */
} cogpu_details;

/* A bit of cogpu_image.ghost: its key in JSON and its meaning. */
typedef struct cogpu_ghost_word {
    uint32_t bit;
    const char *key, *meaning;
} cogpu_ghost_word;

/* Ends with a bit of 0. */
extern const cogpu_ghost_word cogpu_ghost_words[];

cogpu_status cogpu_info_print_text(const cogpu_details *details, cogpu_error *error);
cogpu_status cogpu_info_add_json(const cogpu_details *details, cogpu_json *json,
                                 cogpu_error *error);

#endif
