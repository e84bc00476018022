/*
 * Decodes a block that is too large to be held: its bytes are read a part at a time and decoded to
 * a few rows, which are restored and unpacked before the next.
 */
#include "cpu/cpu.h"

#include <string.h>

/* Smaller blocks are faster decoded as a whole. */
enum { WHOLE_BLOCK_BYTES = 8 << 20 };

/* Bytes that are read at a time, and decoded at a time. */
enum { FEED_BYTES = 1 << 20, ROWS_BYTES = 1 << 20 };

bool cogpu_cpu_is_streamed(const cogpu_storage *storage) {
    return storage->codec && storage->codec->stream && storage->block_bytes > WHOLE_BLOCK_BYTES &&
           !cogpu_storage_has_units(storage);
}

static uint32_t rows_at_a_time(const cogpu_storage *storage) {
    size_t rows = ROWS_BYTES / storage->format.row_bytes;
    return rows < 1 ? 1 : rows < storage->block_height ? (uint32_t)rows : storage->block_height;
}

uint64_t cogpu_cpu_stream_bytes(const cogpu_storage *storage) {
    return STREAM_WINDOW_MAX + FEED_BYTES + rows_at_a_time(storage) * storage->format.row_bytes;
}

/* The block's bytes as they come from the file: through `memory`, or from a mapped source. */
struct block_feed {
    cogpu_feed feed; /* first: the codec passes its address to refill_feed */
    const cogpu_io *io;
    uint64_t offset; /* of the next part */
    cogpu_meter *meter;
    uint8_t *memory;
    bool reverses_bits; /* the bits of each byte */
    uint64_t read;
};

static void refill_feed(cogpu_feed *feed) {
    struct block_feed *f = (struct block_feed *)feed;
    size_t space = FEED_BYTES - feed->bytes;
    size_t part = feed->left < space ? (size_t)feed->left : space;
    memmove(f->memory, feed->at, feed->bytes);
    feed->at = f->memory;
    if (cogpu_io_read_metered(f->io, f->offset, part, f->memory + feed->bytes, f->meter,
                              &feed->failure) != COGPU_OK) {
        feed->left = 0;
        return;
    }
    if (f->reverses_bits)
        cogpu_cpu_reverse_bits(f->memory + feed->bytes, part, f->memory + feed->bytes);
    feed->bytes += part;
    feed->left -= part;
    f->offset += part;
    f->read += part;
}

static cogpu_status open_feed(cogpu_worker *worker, const cogpu_read_plan *plan, cogpu_span span,
                              struct block_feed *f, cogpu_error *error) {
    const cogpu_storage *storage = plan->storage;
    *f = (struct block_feed){.io = storage->tiff->io, .offset = span.offset, .meter = plan->meter};
    f->reverses_bits = storage->format.fill_order == 2 && !storage->codec->own_bit_order;
    cogpu_error_clear(&f->feed.failure);
    f->feed.at = f->reverses_bits ? NULL : cogpu_io_mapped(f->io, span.offset);
    if (f->feed.at) {
        f->feed.bytes = (size_t)span.bytes;
        return COGPU_OK;
    }
    TRY(cogpu_worker_reserve(&worker->stored, &worker->stored_bytes, FEED_BYTES, error));
    f->memory = worker->stored;
    f->feed.at = worker->stored;
    f->feed.left = span.bytes;
    f->feed.more = refill_feed;
    return COGPU_OK;
}

/* The next `bytes` bytes of the block. An error of the source takes precedence: the bytes end where
 * it failed. */
static cogpu_status decode_next(cogpu_stream_decoder *stream, const cogpu_storage *storage,
                                uint8_t *to, size_t bytes, size_t *got, cogpu_error *error) {
    cogpu_status status = storage->codec->stream->decode(stream, to, bytes, got, error);
    if (stream->feed->failure.status == COGPU_OK)
        return status;
    if (error)
        *error = stream->feed->failure;
    return stream->feed->failure.status;
}

/* Unpacks rows into scratch memory, packed, and passes them to the sink. */
static cogpu_status send_rows_to_sink(cogpu_worker *worker, const cogpu_read_plan *plan,
                                      const cogpu_block *part, const cogpu_raster *raster,
                                      const cogpu_row_sink *sink, cogpu_error *error) {
    bool planar = plan->storage->planes > 1;
    size_t size = cogpu_type_bytes(raster->type), row = part->width * size;
    size_t band = row * part->height;
    TRY(cogpu_worker_reserve(&worker->packed_rows, &worker->packed_rows_bytes,
                             band * (planar ? 1 : plan->band_count), error));
    cogpu_raster packed = {.data = worker->packed_rows,
                           .type = raster->type,
                           .bands = raster->bands,
                           .height = part->height,
                           .width = part->width,
                           .stride_band = planar ? 0 : (int64_t)band,
                           .stride_y = (int64_t)row,
                           .stride_x = (int64_t)size};
    cogpu_block here = *part;
    here.target_x = here.target_y = 0;
    TRY(cogpu_cpu_unpack(worker, plan, &here, worker->decoded,
                         !cogpu_cpu_has_filters(plan->storage), &packed, error));
    return sink->put(sink->user, worker->packed_rows, part, error);
}

/* Of rows first .. first+count-1 of the block, those in the window; false if there are none. */
static bool clip_rows(const cogpu_block *block, uint32_t first, uint32_t count, cogpu_block *part) {
    uint32_t top = first > block->source_y ? first : block->source_y;
    uint32_t end = block->source_y + block->height;
    end = first + count < end ? first + count : end;
    if (top >= end)
        return false;
    *part = *block;
    part->source_y = top - first;
    part->target_y += top - block->source_y;
    part->height = end - top;
    return true;
}

cogpu_status cogpu_cpu_unpack_rows(cogpu_worker *worker, const cogpu_read_plan *plan,
                                   const cogpu_block *block, uint32_t first, uint32_t count,
                                   uint8_t *rows, const cogpu_raster *raster, cogpu_error *error) {
    cogpu_block part;
    return clip_rows(block, first, count, &part)
               ? cogpu_cpu_unpack(worker, plan, &part, rows, !cogpu_cpu_has_filters(plan->storage),
                                  raster, error)
               : COGPU_OK;
}

/* Rows that are in worker->decoded. */
static cogpu_status unpack_rows(cogpu_worker *worker, const cogpu_read_plan *plan,
                                const cogpu_block *block, uint32_t first, uint32_t count,
                                const cogpu_raster *raster, const cogpu_row_sink *sink,
                                cogpu_error *error) {
    cogpu_block part;
    if (!sink)
        return cogpu_cpu_unpack_rows(worker, plan, block, first, count, worker->decoded, raster,
                                     error);
    return clip_rows(block, first, count, &part)
               ? send_rows_to_sink(worker, plan, &part, raster, sink, error)
               : COGPU_OK;
}

/* After the last row of the image: the rest of the block must decode, and a stream that ends with
 * the block must have a valid end. A stream that is longer, even by a byte, is not read further. */
static cogpu_status check_end_of_block(cogpu_worker *worker, cogpu_stream_decoder *stream,
                                       const cogpu_storage *storage, uint64_t done,
                                       cogpu_error *error) {
    size_t got = 1;
    while (got > 0 && done <= storage->block_bytes) {
        uint64_t left = storage->block_bytes - done;
        size_t part = left < worker->decoded_bytes ? (size_t)left : worker->decoded_bytes;
        TRY(decode_next(stream, storage, worker->decoded, part > 0 ? part : 1, &got, error));
        done += got;
    }
    return COGPU_OK;
}

static cogpu_status stream_rows(cogpu_worker *worker, const cogpu_read_plan *plan,
                                const cogpu_block *block, cogpu_stream_decoder *stream,
                                const cogpu_raster *raster, const cogpu_row_sink *sink,
                                cogpu_error *error) {
    const cogpu_storage *storage = plan->storage;
    size_t row_bytes = storage->format.row_bytes;
    uint32_t step = rows_at_a_time(storage), end = block->source_y + block->height;
    for (uint32_t row = 0; row < end; row += step) {
        uint32_t rows = end - row < step ? end - row : step;
        size_t got = 0;
        if (!cogpu_meter_add(plan->meter, 0)) /* a step takes long enough to poll each time */
            return cogpu_fail_cancelled(error);
        TRY(decode_next(stream, storage, worker->decoded, rows * row_bytes, &got, error));
        if (got < rows * row_bytes)
            return cogpu_fail(error, COGPU_CORRUPT,
                              "the block has %llu bytes, expected at least %llu",
                              (unsigned long long)row * row_bytes + got,
                              (unsigned long long)block->needed_rows * row_bytes);
        TRY(unpack_rows(worker, plan, block, row, rows, raster, sink, error));
    }
    return end == block->needed_rows && storage->codec->stream->ends_itself
               ? check_end_of_block(worker, stream, storage, (uint64_t)end * row_bytes, error)
               : COGPU_OK;
}

cogpu_status cogpu_cpu_stream(cogpu_worker *worker, const cogpu_read_plan *plan,
                              const cogpu_block *block, cogpu_span span, const cogpu_raster *raster,
                              const cogpu_row_sink *sink, bool *needs_whole, uint64_t *read,
                              cogpu_error *error) {
    const cogpu_storage *storage = plan->storage;
    cogpu_block_format format = storage->format;
    format.height = block->rows;
    uint64_t needed = (uint64_t)block->needed_rows * format.row_bytes;
    struct block_feed feed;
    TRY(cogpu_cpu_check_expansion(span.bytes, needed, error));
    TRY(open_feed(worker, plan, span, &feed, error));
    TRY(cogpu_worker_reserve(&worker->decoded, &worker->decoded_bytes,
                             rows_at_a_time(storage) * format.row_bytes, error));
    cogpu_stream_decoder stream = {
        .format = &format, .feed = &feed.feed, .block_bytes = storage->block_bytes};
    cogpu_status status = stream_rows(worker, plan, block, &stream, raster, sink, error);
    storage->codec->stream->close(&stream);
    *needs_whole = stream.needs_whole;
    *read += feed.read;
    return status;
}
