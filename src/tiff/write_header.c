/* Takes what a file promises and where its first directory stands, hands on the file's first bytes.
 */
#include "tiff/write.h"

#include "base/bytes.h"
#include "tiff/room.h"

#include <string.h>

enum { CLASSIC_HEADER = 8, BIG_HEADER = 16 };

size_t cogpu_header_write(bool bigtiff, uint32_t ghost, uint64_t first_directory, uint8_t *to) {
    size_t bytes = bigtiff ? BIG_HEADER : CLASSIC_HEADER;
    memcpy(to, bigtiff ? "II+\0\x08\0\0" : "II*", bigtiff ? 8 : 4);
    store_little(first_directory, to + bytes / 2, bytes / 2);
    if (ghost)
        bytes += cogpu_ghost_write(ghost, (char *)to + bytes);
    if (bytes % 2)
        to[bytes++] = 0;
    return bytes;
}
