/* What the files of this room share. */
#ifndef COGPU_TIFF_ROOM_H
#define COGPU_TIFF_ROOM_H

#include "tiff/tiff.h"

/* ghost.c: sets tiff->ghost. A ghost area that is not sound is no ghost area. */
cogpu_status cogpu_ghost_read(cogpu_tiff *tiff, cogpu_error *error);
/* The area that makes these promises, as GDAL's COG driver writes it; returns its bytes. */
size_t cogpu_ghost_write(uint32_t ghost, char *to);

/* directory.c: fills tiff->directories. */
cogpu_status cogpu_directories_read(cogpu_tiff *tiff, uint64_t first, cogpu_arena *arena,
                                    cogpu_error *error);

#endif
