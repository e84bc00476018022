/*
 * Offsets and sizes of blocks. The arrays TileOffsets and TileByteCounts (StripOffsets,
 * StripByteCounts) stay in the file; only the needed elements are read.
 *
 * A block is sparse if its offset is 0, or if its count is 0 and no COG leader states another size.
 * The rules for missing and wrong counts are libtiff's, as far as they determine the size.
 */
#include "image/image.h"

#include "base/bytes.h"

/* No codec expands a block this much: a larger count is wrong, and many blocks that share one huge
 * span would cost its size each. */
enum { STORED_BASE = 16 << 10, STORED_FACTOR = 16 };

/* Tiles are stored whole; the last strip ends with the image. */
uint32_t cogpu_storage_rows(const cogpu_storage *storage, uint64_t index) {
    uint64_t block_row = index / storage->across % storage->down;
    uint64_t start = block_row * storage->block_height;
    if (storage->layout == COGPU_LAYOUT_TILES || storage->height - start >= storage->block_height)
        return storage->block_height;
    return (uint32_t)(storage->height - start);
}

/* The size in the block's leader, if the ghost area declares leaders; else 0. */
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

static bool size_follows_shape(const cogpu_storage *storage) {
    return storage->format.compression == COMPRESSION_NONE && !cogpu_storage_has_units(storage);
}

/* The size of a block from its size in pixels, or from the rest of the file; 0 if unknown. */
static uint64_t size_from_shape(const cogpu_storage *storage, uint64_t index, uint64_t offset) {
    if (size_follows_shape(storage))
        return (uint64_t)cogpu_storage_rows(storage, index) * storage->format.row_bytes;
    uint64_t file_bytes = cogpu_io_bytes(storage->tiff->io);
    return storage->blocks == 1 && offset < file_bytes ? file_bytes - offset : 0;
}

/* Clips a span to the file. A truncated uncompressed block may still hold the requested rows. */
static cogpu_status keep_inside(const cogpu_storage *storage, cogpu_span *span,
                                cogpu_error *error) {
    uint64_t file_bytes = cogpu_io_bytes(storage->tiff->io);
    uint64_t left = span->offset < file_bytes ? file_bytes - span->offset : 0;
    if (size_follows_shape(storage) && left > 0 && span->bytes > left)
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
    cogpu_error_locate(error, -1, -1, (int64_t)(span->offset & INT64_MAX));
    return status;
}

static cogpu_status complete_span(const cogpu_storage *storage, uint64_t index, bool has_count,
                                  cogpu_span *span, cogpu_error *error) {
    if (span->offset == 0) {
        span->bytes = 0;
        return COGPU_OK;
    }
    uint64_t shape = size_from_shape(storage, index, span->offset);
    bool single = storage->blocks == 1;
    bool plain = size_follows_shape(storage);
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

/* Requests both arrays at once from a remote source. Counts are read even if each block has a
 * leader (docs/decisions/0019). */
static void prefetch_arrays(const cogpu_storage *storage, uint64_t first, uint32_t count) {
    if (!storage->counts)
        return;
    const cogpu_byte_range both[2] = {cogpu_tiff_span(storage->offsets, first, count),
                                      cogpu_tiff_span(storage->counts, first, count)};
    cogpu_io_prefetch_peeks(storage->tiff->io, both);
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
        return cogpu_fail(error, COGPU_CORRUPT, "the directory has no block offsets");
    for (uint32_t done = 0; done < count;) {
        uint64_t index = first + done;
        uint32_t some = count - done < PIECE ? count - done : PIECE;
        prefetch_arrays(storage, index, some);
        TRY(cogpu_tiff_u64s(storage->tiff, storage->offsets, index, some, offsets, error));
        uint64_t known =
            storage->counts && storage->counts->count > index ? storage->counts->count - index : 0;
        known = known < some ? known : some;
        if (known)
            TRY(cogpu_tiff_u64s(storage->tiff, storage->counts, index, known, bytes, error));
        for (uint32_t i = 0; i < some; i++) {
            cogpu_span *span = &spans[done + i];
            *span = (cogpu_span){.offset = offsets[i], .bytes = i < known ? bytes[i] : 0};
            cogpu_status status = complete_span(storage, index + i, i < known, span, error);
            if (status != COGPU_OK)
                cogpu_error_locate(error, storage->directory, (int64_t)(index + i), -1);
            TRY(status);
        }
        done += some;
    }
    return COGPU_OK;
}
