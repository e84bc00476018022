/* Serialises the header of a TIFF or BigTIFF file, and the ghost area of a COG behind it. */
#include "tiff/write.h"

#include "base/bytes.h"
#include "tiff/internal.h"

#include <string.h>

enum { CLASSIC_HEADER_BYTES = 8, BIGTIFF_HEADER_BYTES = 16 };

size_t cogpu_header_write(bool bigtiff, uint32_t ghost, uint64_t first_directory, uint8_t *to) {
    size_t bytes = bigtiff ? BIGTIFF_HEADER_BYTES : CLASSIC_HEADER_BYTES;
    memcpy(to, bigtiff ? "II+\0\x08\0\0" : "II*", bigtiff ? 8 : 4);
    store_little(first_directory, to + bytes / 2, bytes / 2);
    if (ghost)
        bytes += cogpu_ghost_write(ghost, (char *)to + bytes);
    if (bytes % 2)
        to[bytes++] = 0;
    return bytes;
}
