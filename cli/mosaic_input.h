/* The inputs of a command line as one file: a mosaic on the grid that the options describe. */
#ifndef COGPU_CLI_MOSAIC_INPUT_H
#define COGPU_CLI_MOSAIC_INPUT_H

#include "input.h"

typedef struct cogpu_mosaic_input {
    cogpu_input input; /* the mosaic; its name is that of the only source, or NULL */
    cogpu_input like;  /* of --like, while the mosaic is opened */
    cogpu_input stdin_source;
    char *wkt; /* CRS of --like */
} cogpu_mosaic_input;

/* All files of the arguments but the last, OUT, in their order. *culprit becomes the name of the
 * file that an error is about, or NULL if its message names it. */
cogpu_status cogpu_mosaic_input_open(const cogpu_arguments *arguments, cogpu_mosaic_input *mosaic,
                                     const char **culprit, cogpu_error *error);

/* Also after a failure of cogpu_mosaic_input_open. */
void cogpu_mosaic_input_close(cogpu_mosaic_input *mosaic);

/* Whether OUT, the last file, can be written. If not, says so on stderr. */
bool cogpu_mosaic_check_output(const cogpu_arguments *arguments);

#endif
