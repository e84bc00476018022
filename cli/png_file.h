/*
 * Pictures by libpng. In a build without it cogpu_png_check refuses every picture.
 */
#ifndef COGPU_CLI_PNG_FILE_H
#define COGPU_CLI_PNG_FILE_H

#include "output.h"
#include "selection.h"

typedef struct cogpu_png cogpu_png;

/* libpng's version, or NULL in a build without it. */
const char *cogpu_png_version(void);

/* Whether the selection can be a PNG; if not, the error says what to do. */
cogpu_status cogpu_png_check(const cogpu_selection *selection, cogpu_error *error);

/* Writes the picture's head; rows follow from the top, samples of a pixel side by side. */
cogpu_status cogpu_png_open(const cogpu_selection *selection, const cogpu_output *output,
                            cogpu_png **png, cogpu_error *error);
cogpu_status cogpu_png_write(cogpu_png *png, const void *rows, uint32_t count, cogpu_error *error);
/* Writes the picture's end. */
cogpu_status cogpu_png_finish(cogpu_png *png, cogpu_error *error);
void cogpu_png_close(cogpu_png *png);

#endif
