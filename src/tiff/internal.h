/* Shared by the files of this module. */
#ifndef COGPU_TIFF_INTERNAL_H
#define COGPU_TIFF_INTERNAL_H

#include "tiff/tiff.h"

/* ghost.c: sets tiff->ghost. A malformed ghost area is ignored. */
cogpu_status cogpu_ghost_read(cogpu_tiff *tiff, cogpu_error *error);
/* The area that declares these properties, as GDAL's COG driver writes it; returns its size. */
size_t cogpu_ghost_write(uint32_t ghost, char *to);

/* directory.c: fills tiff->directories. */
cogpu_status cogpu_directories_read(cogpu_tiff *tiff, uint64_t first, cogpu_arena *arena,
                                    cogpu_error *error);

#endif
