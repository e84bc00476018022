/*
 * Takes a block that is too large to be held, hands on its rows in the raster: stored bytes are
 * read a part at a time and decoded to a few rows, which are restored and placed before the next.
 */
#include "backend/cpu/cpu.h"

#include <string.h>

/* Smaller blocks are faster in one piece. */
enum { HELD_BYTES = 8 << 20 };

/* Read at once, and decoded at once. */
enum { PART_BYTES = 1 << 20, ROWS_BYTES = 1 << 20 };

bool cogpu_cpu_is_streamed(const cogpu_storage *storage) {
    return storage->codec && storage->codec->stream && storage->block_bytes > HELD_BYTES &&
           !cogpu_storage_has_units(storage);
}

static uint32_t rows_at_once(const cogpu_storage *storage) {
    size_t rows = ROWS_BYTES / storage->format.row_bytes;
    return rows < 1 ? 1 : rows < storage->block_height ? (uint32_t)rows : storage->block_height;
}

uint64_t cogpu_cpu_stream_bytes(const cogpu_storage *storage) {
    return STREAM_WINDOW_MAX + PART_BYTES + rows_at_once(storage) * storage->format.row_bytes;
}

/* The block's bytes as they come from the file: through `memory`, or where they lie. */
struct feeding {
    cogpu_feed feed; /* first: the codec hands its address back */
    const cogpu_io *io;
    uint64_t offset; /* of the next part */
    cogpu_meter *meter;
    uint8_t *memory;
    bool reverses; /* the bits of each byte */
    uint64_t read;
};

static void feed_more(cogpu_feed *feed) {
    struct feeding *f = (struct feeding *)feed;
    size_t room = PART_BYTES - feed->bytes;
    size_t part = feed->left < room ? (size_t)feed->left : room;
    memmove(f->memory, feed->at, feed->bytes);
    feed->at = f->memory;
    if (cogpu_io_read_metered(f->io, f->offset, part, f->memory + feed->bytes, f->meter,
                              &feed->failure) != COGPU_OK) {
        feed->left = 0;
        return;
    }
    if (f->reverses)
        cogpu_cpu_reverse_bits(f->memory + feed->bytes, part, f->memory + feed->bytes);
    feed->bytes += part;
    feed->left -= part;
    f->offset += part;
    f->read += part;
}

static cogpu_status open_feed(cogpu_seat *seat, const cogpu_read_plan *plan, cogpu_span span,
                              struct feeding *f, cogpu_error *error) {
    const cogpu_storage *storage = plan->storage;
    *f = (struct feeding){.io = storage->tiff->io, .offset = span.offset, .meter = plan->meter};
    f->reverses = storage->format.fill_order == 2 && !storage->codec->own_bit_order;
    cogpu_error_clear(&f->feed.failure);
    f->feed.at = f->reverses ? NULL : cogpu_io_mapped(f->io, span.offset);
    if (f->feed.at) {
        f->feed.bytes = (size_t)span.bytes;
        return COGPU_OK;
    }
    TRY(cogpu_seat_room(&seat->stored, &seat->stored_bytes, PART_BYTES, error));
    f->memory = seat->stored;
    f->feed.at = seat->stored;
    f->feed.left = span.bytes;
    f->feed.more = feed_more;
    return COGPU_OK;
}

/* The next `bytes` bytes of the block. What is wrong with the source comes before what is wrong
 * with the bytes, which end where it failed. */
static cogpu_status decode_some(cogpu_stream *stream, const cogpu_storage *storage, uint8_t *to,
                                size_t bytes, size_t *got, cogpu_error *error) {
    cogpu_status status = storage->codec->stream->decode(stream, to, bytes, got, error);
    if (stream->feed->failure.status == COGPU_OK)
        return status;
    if (error)
        *error = stream->feed->failure;
    return stream->feed->failure.status;
}

/* By way of packed memory. */
static cogpu_status sink_rows(cogpu_seat *seat, const cogpu_read_plan *plan,
                              const cogpu_block *part, const cogpu_raster *raster,
                              const cogpu_row_sink *sink, cogpu_error *error) {
    bool planar = plan->storage->planes > 1;
    size_t size = cogpu_type_bytes(raster->type), row = part->width * size;
    size_t band = row * part->height;
    TRY(cogpu_seat_room(&seat->sunk, &seat->sunk_bytes, band * (planar ? 1 : plan->band_count),
                        error));
    cogpu_raster packed = {.data = seat->sunk,
                           .type = raster->type,
                           .bands = raster->bands,
                           .height = part->height,
                           .width = part->width,
                           .stride_band = planar ? 0 : (int64_t)band,
                           .stride_y = (int64_t)row,
                           .stride_x = (int64_t)size};
    cogpu_block here = *part;
    here.target_x = here.target_y = 0;
    TRY(cogpu_cpu_place(seat, plan, &here, seat->decoded, !cogpu_cpu_needs_restore(plan->storage),
                        &packed, error));
    return sink->put(sink->user, seat->sunk, part, error);
}

/* Rows first .. first+count-1 of the block, as far as the window has them. */
static cogpu_status place_rows(cogpu_seat *seat, const cogpu_read_plan *plan,
                               const cogpu_block *block, uint32_t first, uint32_t count,
                               const cogpu_raster *raster, const cogpu_row_sink *sink,
                               cogpu_error *error) {
    uint32_t top = first > block->source_y ? first : block->source_y;
    uint32_t end = block->source_y + block->height;
    end = first + count < end ? first + count : end;
    if (top >= end)
        return COGPU_OK;
    cogpu_block part = *block;
    part.source_y = top - first;
    part.target_y += top - block->source_y;
    part.height = end - top;
    if (sink)
        return sink_rows(seat, plan, &part, raster, sink, error);
    return cogpu_cpu_place(seat, plan, &part, seat->decoded,
                           !cogpu_cpu_needs_restore(plan->storage), raster, error);
}

/* After the image's last row: what is left of the block must be sound, and a stream that ends with
 * the block must end as it should. One that goes on, if by a byte, is not looked at further. */
static cogpu_status check_end(cogpu_seat *seat, cogpu_stream *stream, const cogpu_storage *storage,
                              uint64_t done, cogpu_error *error) {
    size_t got = 1;
    while (got > 0 && done <= storage->block_bytes) {
        uint64_t left = storage->block_bytes - done;
        size_t part = left < seat->decoded_bytes ? (size_t)left : seat->decoded_bytes;
        TRY(decode_some(stream, storage, seat->decoded, part > 0 ? part : 1, &got, error));
        done += got;
    }
    return COGPU_OK;
}

static cogpu_status stream_rows(cogpu_seat *seat, const cogpu_read_plan *plan,
                                const cogpu_block *block, cogpu_stream *stream,
                                const cogpu_raster *raster, const cogpu_row_sink *sink,
                                cogpu_error *error) {
    const cogpu_storage *storage = plan->storage;
    size_t row_bytes = storage->format.row_bytes;
    uint32_t step = rows_at_once(storage), end = block->source_y + block->height;
    for (uint32_t row = 0; row < end; row += step) {
        uint32_t rows = end - row < step ? end - row : step;
        size_t got = 0;
        if (!cogpu_meter_add(plan->meter, 0)) /* a step is long enough to ask each time */
            return cogpu_fail_cancelled(error);
        TRY(decode_some(stream, storage, seat->decoded, rows * row_bytes, &got, error));
        if (got < rows * row_bytes)
            return cogpu_fail(error, COGPU_CORRUPT, "the block holds %llu bytes where %llu are due",
                              (unsigned long long)row * row_bytes + got,
                              (unsigned long long)block->needed_rows * row_bytes);
        TRY(place_rows(seat, plan, block, row, rows, raster, sink, error));
    }
    return end == block->needed_rows && storage->codec->stream->ends_itself
               ? check_end(seat, stream, storage, (uint64_t)end * row_bytes, error)
               : COGPU_OK;
}

cogpu_status cogpu_cpu_stream(cogpu_seat *seat, const cogpu_read_plan *plan,
                              const cogpu_block *block, cogpu_span span, const cogpu_raster *raster,
                              const cogpu_row_sink *sink, bool *needs_whole, uint64_t *read,
                              cogpu_error *error) {
    const cogpu_storage *storage = plan->storage;
    cogpu_block_format format = storage->format;
    format.height = block->rows;
    uint64_t needed = (uint64_t)block->needed_rows * format.row_bytes;
    struct feeding feeding;
    TRY(cogpu_cpu_check_expansion(span.bytes, needed, error));
    TRY(open_feed(seat, plan, span, &feeding, error));
    TRY(cogpu_seat_room(&seat->decoded, &seat->decoded_bytes,
                        rows_at_once(storage) * format.row_bytes, error));
    cogpu_stream stream = {
        .format = &format, .feed = &feeding.feed, .block_bytes = storage->block_bytes};
    cogpu_status status = stream_rows(seat, plan, block, &stream, raster, sink, error);
    storage->codec->stream->close(&stream);
    *needs_whole = stream.needs_whole;
    *read += feeding.read;
    return status;
}
