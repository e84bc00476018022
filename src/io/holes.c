/* Holes of local files, which read as zeros: a sparse file may have terabytes of them. */
#define _GNU_SOURCE /* SEEK_DATA */
#include "io/io.h"

#include <errno.h>
#include <unistd.h>

/* Moves the offset of the descriptor, which pread does not use: several threads may call this. */
uint64_t cogpu_io_next_data(const cogpu_io *io, uint64_t offset) {
#ifdef SEEK_DATA
    int descriptor = cogpu_io_descriptor(io);
    if (descriptor >= 0 && offset < io->bytes) {
        off_t data = lseek(descriptor, (off_t)offset, SEEK_DATA);
        if (data >= 0)
            return (uint64_t)data < io->bytes ? (uint64_t)data : io->bytes;
        return errno == ENXIO ? io->bytes : offset;
    }
#endif
    return offset;
}
