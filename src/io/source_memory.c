/* A source in the caller's memory. */
#include "io/io.h"

#include <string.h>

static cogpu_status read_memory(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                                cogpu_meter *meter, cogpu_error *error) {
    (void)meter, (void)error;
    memcpy(to, io->mapped + offset, bytes);
    return COGPU_OK;
}

static void close_memory(cogpu_io *io) {
    cogpu_release(io);
}

cogpu_status cogpu_io_open_memory(const void *data, size_t bytes, cogpu_io **io,
                                  cogpu_error *error) {
    static const cogpu_io_kind memory_kind = {.read = read_memory, .close = close_memory};
    cogpu_io *self = cogpu_allocate(sizeof *self);
    if (!self)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory opening the source");
    /* An address even for no bytes: `mapped` is NULL for other kinds. */
    *self = (cogpu_io){.kind = &memory_kind,
                       .mapped = data ? data : (const uint8_t *)"",
                       .bytes = data ? bytes : 0};
    return cogpu_io_open(self, io, error);
}
