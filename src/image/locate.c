/*
 * Where the blocks of a directory stand in the file. The arrays of offsets and byte counts stay in
 * the file; only the elements asked for are read.
 *
 * A block is sparse where its offset is 0, or its count is 0 and no leader before it says
 * otherwise. The rules for missing and wrong counts are libtiff's, as far as the size is certain.
 */
#include "image/image.h"

#include "base/bytes.h"

/* No codec makes a block so much longer than it is: a count beyond that is wrong, and blocks that
 * share a huge span would cost its size each. */
enum { STORED_BASE = 16 << 10, STORED_FACTOR = 16 };

/* Tiles are stored whole; the last strip ends with the image. */
uint32_t cogpu_storage_rows(const cogpu_storage *storage, uint64_t index) {
    uint64_t block_row = index / storage->across % storage->down;
    uint64_t start = block_row * storage->block_height;
    if (storage->layout == COGPU_TILES || storage->height - start >= storage->block_height)
        return storage->block_height;
    return (uint32_t)(storage->height - start);
}

/* What the writer put before the block, if the ghost area promises it; 0 where it did not. */
static uint64_t size_from_leader(const cogpu_storage *storage, uint64_t offset) {
    const uint32_t needed = COGPU_GHOST_LEADER | COGPU_GHOST_ROW_MAJOR;
    const cogpu_tiff *tiff = storage->tiff;
    uint8_t leader[4];
    if ((tiff->ghost & needed) != needed || tiff->ghost & COGPU_GHOST_BROKEN || offset < 4 ||
        cogpu_io_peek(tiff->io, offset - 4, 4, leader, NULL) != COGPU_OK)
        return 0;
    uint64_t bytes = load_u32(leader, false), file_bytes = cogpu_io_bytes(tiff->io);
    return offset <= file_bytes && bytes <= file_bytes - offset ? bytes : 0;
}

static bool is_plain(const cogpu_storage *storage) {
    return storage->format.compression == COMPRESSION_NONE && !cogpu_storage_has_units(storage);
}

/* Bytes of a block by its size in pixels, or by what is left of the file; 0 where nobody can tell.
 */
static uint64_t size_from_shape(const cogpu_storage *storage, uint64_t index, uint64_t offset) {
    if (is_plain(storage))
        return (uint64_t)cogpu_storage_rows(storage, index) * storage->format.row_bytes;
    uint64_t file_bytes = cogpu_io_bytes(storage->tiff->io);
    return storage->blocks == 1 && offset < file_bytes ? file_bytes - offset : 0;
}

/* From here on a span lies inside the file. An uncompressed block that does not may still hold the
 * rows that are wanted. */
static cogpu_status keep_inside(const cogpu_storage *storage, cogpu_span *span,
                                cogpu_error *error) {
    uint64_t file_bytes = cogpu_io_bytes(storage->tiff->io);
    uint64_t left = span->offset < file_bytes ? file_bytes - span->offset : 0;
    if (is_plain(storage) && left > 0 && span->bytes > left)
        span->bytes = left;
    if (span->bytes <= left)
        return COGPU_OK;
    cogpu_status status =
        cogpu_fail(error, COGPU_CORRUPT,
                   "the block's %llu bytes at offset %llu go beyond the end of the file at %llu: "
                   "it is cut off or "
                   "an offset in it is wrong",
                   (unsigned long long)span->bytes, (unsigned long long)span->offset,
                   (unsigned long long)file_bytes);
    cogpu_error_place(error, -1, -1, (int64_t)(span->offset & INT64_MAX));
    return status;
}

static cogpu_status settle(const cogpu_storage *storage, uint64_t index, bool has_count,
                           cogpu_span *span, cogpu_error *error) {
    if (span->offset == 0) {
        span->bytes = 0;
        return COGPU_OK;
    }
    uint64_t shape = size_from_shape(storage, index, span->offset);
    bool single = storage->blocks == 1;
    bool plain = is_plain(storage);
    if (!has_count && shape == 0)
        return cogpu_fail(error, COGPU_CORRUPT, "the byte count of the block is missing");
    if (has_count && span->bytes == 0)
        span->bytes = size_from_leader(storage, span->offset);
    if (!has_count || (span->bytes == 0 && single) || (plain && span->bytes > shape) ||
        (plain && single && span->bytes < shape))
        span->bytes = shape;
    if (span->bytes > STORED_BASE &&
        (span->bytes - STORED_BASE) / STORED_FACTOR > storage->block_bytes)
        span->bytes = STORED_BASE + STORED_FACTOR * (uint64_t)storage->block_bytes;
    return keep_inside(storage, span, error);
}

/* Over the network both arrays come at once. The counts are read even where each block has a leader
 * that says the same (docs/decisions/0019). */
static void peek_soon(const cogpu_storage *storage, uint64_t first, uint32_t count) {
    if (!storage->counts)
        return;
    const cogpu_span_of_source both[2] = {cogpu_tiff_span(storage->offsets, first, count),
                                          cogpu_tiff_span(storage->counts, first, count)};
    cogpu_io_peek_soon(storage->tiff->io, both);
}

cogpu_status cogpu_storage_locate(const cogpu_storage *storage, uint64_t first, uint32_t count,
                                  cogpu_span *spans, cogpu_error *error) {
    enum { PIECE = 512 };
    uint64_t offsets[PIECE], bytes[PIECE];
    if (storage->scan.bytes > 0) {
        for (uint32_t i = 0; i < count; i++)
            spans[i] = storage->scan;
        return COGPU_OK;
    }
    if (!storage->offsets)
        return cogpu_fail(error, COGPU_CORRUPT, "the directory does not say where its blocks are");
    for (uint32_t done = 0; done < count;) {
        uint64_t index = first + done;
        uint32_t some = count - done < PIECE ? count - done : PIECE;
        peek_soon(storage, index, some);
        TRY(cogpu_tiff_u64s(storage->tiff, storage->offsets, index, some, offsets, error));
        uint64_t known =
            storage->counts && storage->counts->count > index ? storage->counts->count - index : 0;
        known = known < some ? known : some;
        if (known)
            TRY(cogpu_tiff_u64s(storage->tiff, storage->counts, index, known, bytes, error));
        for (uint32_t i = 0; i < some; i++) {
            cogpu_span *span = &spans[done + i];
            *span = (cogpu_span){.offset = offsets[i], .bytes = i < known ? bytes[i] : 0};
            cogpu_status status = settle(storage, index + i, i < known, span, error);
            if (status != COGPU_OK)
                cogpu_error_place(error, storage->directory, (int64_t)(index + i), -1);
            TRY(status);
        }
        done += some;
    }
    return COGPU_OK;
}
