/* A built file, opened: what tests of image/ need around the function that they try. */
#ifndef COGPU_TESTS_OPENED_TIFF_H
#define COGPU_TESTS_OPENED_TIFF_H

#include "image/image.h"
#include "unit/tiff_builder.h"

typedef struct opened_tiff {
    tiff_builder file;
    cogpu_io *io;
    cogpu_arena arena;
    cogpu_tiff tiff;
    cogpu_error error;
    const char *warning;
} opened_tiff;

/* After build_open and the tags of one directory: writes the directory and opens the file. */
static inline cogpu_status open_built(opened_tiff *opened) {
    cogpu_limits limits = cogpu_limits_complete(NULL);
    build_directory(&opened->file, true);
    cogpu_arena_open(&opened->arena, limits.call_bytes);
    opened->warning = NULL;
    opened->io = NULL;
    TRY(cogpu_io_open_memory(opened->file.bytes, opened->file.size, &opened->io, &opened->error));
    return cogpu_tiff_open(&opened->tiff, opened->io, &limits, &opened->arena, &opened->error);
}

static inline void close_built(opened_tiff *opened) {
    cogpu_io_close(opened->io);
    cogpu_arena_close(&opened->arena);
    build_close(&opened->file);
}

#endif
