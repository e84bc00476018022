/*
 * Pictures by libpng. In a build without it cogpu_png_check refuses every picture.
 */
#ifndef COGPU_CLI_PNG_FILE_H
#define COGPU_CLI_PNG_FILE_H

#include "selection.h"

typedef struct cogpu_png cogpu_png;

/* What a picture holds: gray, gray and alpha, RGB, or RGBA; or the indices of a palette. */
typedef struct cogpu_png_shape {
    uint32_t width, height;
    uint32_t bands;          /* 1 to 4 */
    cogpu_type type;         /* COGPU_TYPE_U8 or COGPU_TYPE_U16 */
    const uint16_t *palette; /* palette_entries reds, then greens, then blues; NULL without one */
    uint32_t palette_entries;
} cogpu_png_shape;

/* libpng's version, or NULL in a build without it. */
const char *cogpu_png_version(void);

/* The shape of a selection whose samples are taken as they are; where it cannot be one, the error
 * says what to do. */
cogpu_status cogpu_png_fit(const cogpu_selection *selection, cogpu_png_shape *shape,
                           cogpu_error *error);

/* Writes the picture's head; rows follow from the top, samples of a pixel side by side. */
cogpu_status cogpu_png_open(const cogpu_png_shape *shape, cogpu_output *output, cogpu_png **png,
                            cogpu_error *error);
cogpu_status cogpu_png_write(cogpu_png *png, const void *rows, uint32_t count, cogpu_error *error);
/* Writes the picture's end. */
cogpu_status cogpu_png_finish(cogpu_png *png, cogpu_error *error);
void cogpu_png_close(cogpu_png *png);

#endif
