/* Takes a kind of source, hands on bounded reads, the kept head and the window of peeks. */
#include "io/io.h"

#include <string.h>
#include <unistd.h>

/* GDAL promises that the directories of a COG lie in its first 16 KiB. */
enum { HEAD_BYTES = 16 << 10, WINDOW_BYTES = 16 << 10 };

static size_t smaller(uint64_t a, size_t b) {
    return a < b ? (size_t)a : b;
}

cogpu_status cogpu_io_open(const cogpu_io *kind, cogpu_io **out, cogpu_error *error) {
    cogpu_io *io = cogpu_allocate(sizeof *io);
    size_t head_bytes = kind->data || kind->head ? 0 : smaller(kind->bytes, HEAD_BYTES);
    uint8_t *head = head_bytes ? cogpu_allocate(head_bytes) : NULL;
    cogpu_shelf *shelf = kind->is_far ? cogpu_shelf_open() : NULL;
    if (!io || (head_bytes && !head) || (kind->is_far && !shelf)) {
        cogpu_io copy = *kind;
        cogpu_release(copy.head);
        copy.close(&copy);
        cogpu_release(io);
        cogpu_release(head);
        cogpu_shelf_close(shelf);
        return cogpu_fail(error, COGPU_MEMORY, "out of memory opening the source");
    }
    *io = *kind;
    io->process = getpid();
    io->shelf = shelf;
    if (head_bytes) {
        cogpu_status status = io->read(io, 0, head_bytes, head, NULL, error);
        if (status != COGPU_OK) {
            cogpu_release(head);
            cogpu_io_close(io);
            return status;
        }
        io->head = head;
        io->head_bytes = head_bytes;
    }
    *out = io;
    return COGPU_OK;
}

void cogpu_io_close(cogpu_io *io) {
    if (!io)
        return;
    cogpu_io_settle(io);
    cogpu_shelf_close(io->shelf);
    cogpu_release(io->head);
    io->close(io);
    cogpu_release(io);
}

uint64_t cogpu_io_bytes(const cogpu_io *io) {
    return io->bytes;
}

const char *cogpu_io_state(const cogpu_io *io) {
    return io->state;
}

cogpu_status cogpu_io_check(const cogpu_io *io, cogpu_error *error) {
    return io->check ? io->check(io, error) : COGPU_OK;
}

cogpu_status cogpu_io_short(cogpu_error *error, uint64_t offset, size_t bytes, uint64_t size) {
    cogpu_status status =
        cogpu_fail(error, COGPU_CORRUPT,
                   "%zu bytes at offset %llu are needed, but the file ends at %llu:"
                   " it is cut off or an offset in it is wrong",
                   bytes, (unsigned long long)offset, (unsigned long long)size);
    cogpu_error_place(error, -1, -1, (int64_t)(offset & INT64_MAX));
    return status;
}

/* In the child of a fork nobody serves a source on the network, nor opens locks that were held. */
static cogpu_status check_process(const cogpu_io *io, cogpu_error *error) {
    if (!io->is_far || io->process == getpid())
        return COGPU_OK;
    return cogpu_fail(error, COGPU_IO,
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
    if (offset + bytes <= io->head_bytes) {
        memcpy(to, io->head + offset, bytes);
        return COGPU_OK;
    }
    TRY(check_process(io, error));
    return io->read(io, offset, bytes, to, meter, error);
}

bool cogpu_io_expects(const cogpu_io *io) {
    return io->expect && check_process(io, NULL) == COGPU_OK;
}

uint64_t cogpu_io_expect(const cogpu_io *io, const cogpu_span_of_source *spans, uint32_t count) {
    return count && cogpu_io_expects(io) ? io->expect(io, spans, count) : 0;
}

void cogpu_io_forget(const cogpu_io *io, uint64_t ticket) {
    if (io->forget && ticket)
        io->forget(io, ticket);
}

static bool in_window(const cogpu_io *io, uint64_t offset, size_t bytes) {
    return io->window && offset >= io->window_offset &&
           offset - io->window_offset <= io->window_bytes &&
           bytes <= io->window_bytes - (offset - io->window_offset);
}

cogpu_status cogpu_io_peek(cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                           cogpu_error *error) {
    bool in_head = offset <= io->head_bytes && bytes <= io->head_bytes - offset;
    if (!in_head && io->shelf && offset <= io->bytes && bytes <= io->bytes - offset) {
        TRY(check_process(io, error));
        return cogpu_shelf_read(io->shelf, io, offset, bytes, to, error);
    }
    if (in_head || io->settled || io->data || io->shelf || bytes > WINDOW_BYTES ||
        offset >= io->bytes)
        return cogpu_io_read(io, offset, bytes, to, error);
    if (!in_window(io, offset, bytes)) {
        if (!io->window && !(io->window = cogpu_allocate(WINDOW_BYTES)))
            return cogpu_io_read(io, offset, bytes, to, error);
        io->window_bytes = 0;
        size_t span = smaller(io->bytes - offset, WINDOW_BYTES);
        TRY(io->read(io, offset, span, io->window, NULL, error));
        io->window_offset = offset;
        io->window_bytes = span;
        if (bytes > span)
            return cogpu_io_short(error, offset, bytes, io->bytes);
    }
    memcpy(to, io->window + (offset - io->window_offset), bytes);
    return COGPU_OK;
}

static bool is_inside(const cogpu_io *io, const cogpu_span_of_source *span) {
    return span->offset <= io->bytes && span->bytes <= io->bytes - span->offset;
}

void cogpu_io_peek_soon(const cogpu_io *io, const cogpu_span_of_source spans[2]) {
    if (io->shelf && check_process(io, NULL) == COGPU_OK && is_inside(io, &spans[0]) &&
        is_inside(io, &spans[1]))
        cogpu_shelf_fetch(io->shelf, io, spans);
}

void cogpu_io_settle(cogpu_io *io) {
    cogpu_release(io->window);
    io->window = NULL;
    io->window_bytes = 0;
    io->settled = true;
}

const uint8_t *cogpu_io_mapped(const cogpu_io *io, uint64_t offset) {
    return io->data ? io->data + offset : NULL;
}
