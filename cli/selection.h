/*
 * The pixels that a command is about: its options, resolved against a file.
 */
#ifndef COGPU_CLI_SELECTION_H
#define COGPU_CLI_SELECTION_H

#include "arguments.h"
#include "input.h"
#include "json.h"

typedef struct cogpu_selection {
    const cogpu_file *file;
    cogpu_request request; /* its width and height are set; its bands may be NULL: all. Its
                            * context is the input's */
    cogpu_image image;
    cogpu_band first_band; /* of the image */
    cogpu_level level;
    bool is_mosaic; /* a VRT, too: it has no directories, tags and blocks */
    cogpu_type type;
    uint32_t bands;
    uint32_t written_width, written_height; /* of what convert makes of it: see derive.h */
    cogpu_type written;
    cogpu_device_kind device; /* that reads it */
    uint32_t device_index;
} cogpu_selection;

cogpu_status cogpu_selection_make(const cogpu_input *input, const cogpu_arguments *arguments,
                                  cogpu_selection *selection, cogpu_error *error);

/* The number in the file of the index-th selected band. */
uint32_t cogpu_selection_band(const cogpu_selection *selection, uint32_t index);

uint64_t cogpu_selection_samples(const cogpu_selection *selection);

/* "image", "level", "window", "bands", "shape" and "type", as members of the open object. */
void cogpu_selection_json(const cogpu_selection *selection, cogpu_json *json);

#endif
