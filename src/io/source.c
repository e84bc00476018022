/* Reads of any kind of source: bounds checks, the header that is kept, and the window of peeks. */
#include "io/io.h"

#include <string.h>
#include <unistd.h>

/* GDAL reads 16 KiB at first, too: most COGs have all their directories there. */
enum { HEADER_BYTES = 16 << 10, WINDOW_BYTES = 16 << 10 };

static size_t smaller_size(uint64_t a, size_t b) {
    return a < b ? (size_t)a : b;
}

/* A COG's directories are there. */
static cogpu_status read_first_bytes(cogpu_io *io, cogpu_error *error) {
    size_t bytes = smaller_size(io->bytes, HEADER_BYTES);
    if (bytes == 0)
        return COGPU_OK;
    io->header = cogpu_allocate(bytes);
    if (!io->header)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory opening the source");
    TRY(io->kind->read(io, 0, bytes, io->header, NULL, error));
    io->header_bytes = bytes;
    return COGPU_OK;
}

cogpu_status cogpu_io_open(cogpu_io *io, cogpu_io **out, cogpu_error *error) {
    io->process = getpid();
    cogpu_status status = io->mapped || io->header ? COGPU_OK : read_first_bytes(io, error);
    if (status != COGPU_OK) {
        cogpu_io_close(io);
        return status;
    }
    if (io->cache)
        cogpu_range_cache_set_header_bytes(io->cache, io->header_bytes);
    *out = io;
    return COGPU_OK;
}

void cogpu_io_close(cogpu_io *io) {
    if (!io)
        return;
    cogpu_io_seal(io);
    cogpu_range_cache_close(io->cache);
    cogpu_release(io->header);
    io->kind->close(io);
}

uint64_t cogpu_io_bytes(const cogpu_io *io) {
    return io->bytes;
}

const char *cogpu_io_version(const cogpu_io *io) {
    return io->version;
}

cogpu_status cogpu_io_check(const cogpu_io *io, cogpu_error *error) {
    return io->kind->check ? io->kind->check(io, error) : COGPU_OK;
}

int cogpu_io_descriptor(const cogpu_io *io) {
    return io->kind->descriptor ? io->kind->descriptor(io) : -1;
}

/* The child of a fork has no thread that serves connections, and locks may have been held. */
static cogpu_status check_process(const cogpu_io *io, cogpu_error *error) {
    if (!io->cache || io->process == getpid())
        return COGPU_OK;
    return cogpu_fail(error, COGPU_IO_ERROR,
                      "the file was opened before the process was forked; open it again");
}

cogpu_status cogpu_io_read(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                           cogpu_error *error) {
    return cogpu_io_read_metered(io, offset, bytes, to, NULL, error);
}

cogpu_status cogpu_io_read_metered(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                                   cogpu_meter *meter, cogpu_error *error) {
    if (bytes == 0)
        return COGPU_OK;
    if (offset > io->bytes || bytes > io->bytes - offset)
        return cogpu_io_short(error, offset, bytes, io->bytes);
    if (offset + bytes <= io->header_bytes) {
        memcpy(to, io->header + offset, bytes);
        return COGPU_OK;
    }
    TRY(check_process(io, error));
    return io->kind->read(io, offset, bytes, to, meter, error);
}

cogpu_status cogpu_io_read_cached(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                                  cogpu_meter *meter, cogpu_error *error) {
    return cogpu_range_cache_read(io->cache, offset, bytes, to, meter, error);
}

bool cogpu_io_can_prefetch(const cogpu_io *io) {
    return io->cache && check_process(io, NULL) == COGPU_OK;
}

uint64_t cogpu_io_prefetch(const cogpu_io *io, const cogpu_byte_range *spans, uint32_t count) {
    return count && cogpu_io_can_prefetch(io) ? cogpu_range_cache_prefetch(io->cache, spans, count)
                                              : 0;
}

void cogpu_io_end_prefetch(const cogpu_io *io, uint64_t ticket) {
    if (io->cache && ticket)
        cogpu_range_cache_end_prefetch(io->cache, ticket);
}

static bool in_window(const cogpu_io *io, uint64_t offset, size_t bytes) {
    return io->window && offset >= io->window_offset &&
           offset - io->window_offset <= io->window_bytes &&
           bytes <= io->window_bytes - (offset - io->window_offset);
}

/* Moves the window to `offset`. */
static cogpu_status fill_window(cogpu_io *io, uint64_t offset, cogpu_error *error) {
    size_t bytes = smaller_size(io->bytes - offset, WINDOW_BYTES);
    io->window_bytes = 0;
    TRY(io->kind->read(io, offset, bytes, io->window, NULL, error));
    io->window_offset = offset;
    io->window_bytes = bytes;
    return COGPU_OK;
}

/* The bytes may begin in the header. Long values go past the cache in one read. */
static cogpu_status peek_cached(const cogpu_io *io, uint64_t offset, size_t bytes, uint8_t *to,
                                cogpu_error *error) {
    TRY(check_process(io, error));
    if (bytes <= COGPU_READ_AHEAD_BYTES_MAX && offset < io->header_bytes) {
        size_t copied = io->header_bytes - (size_t)offset;
        memcpy(to, io->header + offset, copied);
        offset += copied;
        to += copied;
        bytes -= copied;
    }
    return cogpu_range_cache_peek(io->cache, offset, bytes, to, error);
}

cogpu_status cogpu_io_peek(cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                           cogpu_error *error) {
    bool in_header = offset <= io->header_bytes && bytes <= io->header_bytes - offset;
    if (!in_header && io->cache && offset <= io->bytes && bytes <= io->bytes - offset)
        return peek_cached(io, offset, bytes, to, error);
    if (in_header || io->is_sealed || io->mapped || io->cache || bytes > WINDOW_BYTES ||
        offset >= io->bytes)
        return cogpu_io_read(io, offset, bytes, to, error);
    if (!in_window(io, offset, bytes)) {
        if (!io->window && !(io->window = cogpu_allocate(WINDOW_BYTES)))
            return cogpu_io_read(io, offset, bytes, to, error);
        TRY(fill_window(io, offset, error));
        if (bytes > io->window_bytes)
            return cogpu_io_short(error, offset, bytes, io->bytes);
    }
    memcpy(to, io->window + (offset - io->window_offset), bytes);
    return COGPU_OK;
}

static bool is_span_inside(const cogpu_io *io, const cogpu_byte_range *span) {
    return span->offset <= io->bytes && span->bytes <= io->bytes - span->offset;
}

void cogpu_io_prefetch_peeks(const cogpu_io *io, const cogpu_byte_range spans[2]) {
    if (cogpu_io_can_prefetch(io) && is_span_inside(io, &spans[0]) && is_span_inside(io, &spans[1]))
        cogpu_range_cache_prefetch_peeks(io->cache, spans);
}

void cogpu_io_seal(cogpu_io *io) {
    cogpu_release(io->window);
    io->window = NULL;
    io->window_bytes = 0;
    io->is_sealed = true;
}

const uint8_t *cogpu_io_mapped(const cogpu_io *io, uint64_t offset) {
    return io->mapped ? io->mapped + offset : NULL;
}
