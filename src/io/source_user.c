/* A source behind the caller's functions. What they answer is checked like a file's content. */
#include "io/io.h"

static cogpu_status user_read(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                              cogpu_error *error) {
    size_t got = 0;
    cogpu_status status = io->user.read(io->user.user, offset, bytes, to, &got);
    if (status != COGPU_OK)
        return cogpu_fail(error, status,
                          "the source's read function failed for %zu bytes at offset %llu", bytes,
                          (unsigned long long)offset);
    if (got < bytes)
        return cogpu_io_short(error, offset, bytes, offset + got);
    return COGPU_OK;
}

static void user_close(cogpu_io *io) {
    if (io->user.close)
        io->user.close(io->user.user);
}

cogpu_status cogpu_io_open_user(const cogpu_source *source, cogpu_io **io, cogpu_error *error) {
    cogpu_io kind = {.read = user_read, .close = user_close, .user = *source};
    cogpu_status status = source->size(source->user, &kind.bytes);
    if (status != COGPU_OK) {
        user_close(&kind);
        return cogpu_fail(error, status, "the source's size function failed");
    }
    return cogpu_io_open(&kind, io, error);
}
