/* A source behind the caller's functions. What they answer is checked like a file's content. */
#include "io/io.h"

static cogpu_status fail_read(cogpu_error *error, cogpu_status status, uint64_t offset,
                              size_t bytes) {
    return cogpu_fail(error, status,
                      "the source's read function failed for %zu bytes at offset %llu", bytes,
                      (unsigned long long)offset);
}

static cogpu_status user_read(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                              cogpu_meter *meter, cogpu_error *error) {
    (void)meter;
    size_t got = 0;
    cogpu_status status = io->user.read(io->user.user, offset, bytes, to, &got);
    if (status != COGPU_OK)
        return fail_read(error, status, offset, bytes);
    if (got < bytes)
        return cogpu_io_short(error, offset, bytes, offset + got);
    return COGPU_OK;
}

static cogpu_status far_read(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                             cogpu_meter *meter, cogpu_error *error) {
    (void)meter;
    cogpu_status status = cogpu_many_read(io->many, offset, bytes, to);
    return status == COGPU_OK ? status : fail_read(error, status, offset, bytes);
}

static uint64_t far_expect(const cogpu_io *io, const cogpu_span_of_source *spans, uint32_t count) {
    return cogpu_many_expect(io->many, spans, count);
}

static void far_forget(const cogpu_io *io, uint64_t ticket) {
    cogpu_many_forget(io->many, ticket);
}

static void user_close(cogpu_io *io) {
    cogpu_many_close(io->many);
    if (io->user.close)
        io->user.close(io->user.user);
}

static cogpu_status open_far(cogpu_io *kind, cogpu_error *error) {
    kind->is_far = true;
    kind->read = far_read;
    kind->expect = far_expect;
    kind->forget = far_forget;
    kind->many = cogpu_many_open(&kind->user, kind->bytes);
    return kind->many ? COGPU_OK
                      : cogpu_fail(error, COGPU_MEMORY, "out of memory opening the source");
}

cogpu_status cogpu_io_open_user(const cogpu_source *source, cogpu_io **io, cogpu_error *error) {
    cogpu_io kind = {.read = user_read, .close = user_close, .user = *source};
    cogpu_status status = source->size(source->user, &kind.bytes);
    if (status != COGPU_OK)
        cogpu_fail(error, status, "the source's size function failed");
    else if (source->read_many)
        status = open_far(&kind, error);
    if (status != COGPU_OK) {
        user_close(&kind);
        return status;
    }
    return cogpu_io_open(&kind, io, error);
}
