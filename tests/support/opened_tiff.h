/* A built file, opened: what tests of image/ need around the function that they try. */
#ifndef COGPU_TESTS_OPENED_TIFF_H
#define COGPU_TESTS_OPENED_TIFF_H

#include "image/image.h"
#include "support/tiff_builder.h"

typedef struct opened_tiff {
    tiff_builder file;
    cogpu_io *io;
    cogpu_arena arena;
    cogpu_tiff tiff;
    cogpu_error error;
    const char *warning;
} opened_tiff;

/* After build_open and the tags of one directory: writes the directory and opens the file. */
cogpu_status open_built(opened_tiff *opened);

void close_built(opened_tiff *opened);

#endif
