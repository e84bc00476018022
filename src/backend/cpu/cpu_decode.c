/* Takes the stored bytes of a block, hands on its decoded rows. Judges sizes before and after. */
#include "backend/cpu/cpu.h"

#include <string.h>

/* Vector code may look this far past the end of a row. */
enum { SLACK = 64 };

void cogpu_seat_close(cogpu_seat *seat) {
    cogpu_release(seat->stored);
    cogpu_release(seat->decoded);
    cogpu_release(seat->units);
    cogpu_release(seat->row);
    cogpu_release(seat->wide_row);
    cogpu_release(seat->sunk);
    cogpu_release(seat->plain);
    cogpu_release(seat->converted);
    cogpu_release(seat->shrunk);
    cogpu_release(seat->shared);
    cogpu_codec_state_close(&seat->codec);
}

cogpu_status cogpu_seat_room(uint8_t **memory, size_t *held, size_t bytes, cogpu_error *error) {
    if (*held >= bytes)
        return COGPU_OK;
    cogpu_release(*memory);
    *held = 0;
    *memory = cogpu_allocate(bytes + SLACK);
    if (!*memory)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory: %zu bytes for a block", bytes);
    *held = bytes;
    return COGPU_OK;
}

/* Memory of the seat may be changed; a mapped source may not. */
static bool is_own(const cogpu_seat *seat, const uint8_t *stored) {
    return seat->stored && stored >= seat->stored && stored < seat->stored + seat->stored_bytes;
}

void cogpu_cpu_reverse_bits(const uint8_t *from, size_t bytes, uint8_t *to) {
    for (size_t i = 0; i < bytes; i++) {
        unsigned b = from[i];
        b = (b & 0x0F) << 4 | (b & 0xF0) >> 4;
        b = (b & 0x33) << 2 | (b & 0xCC) >> 2;
        b = (b & 0x55) << 1 | (b & 0xAA) >> 1;
        to[i] = (uint8_t)b;
    }
}

static cogpu_status too_short(cogpu_error *error, size_t got, size_t needed) {
    return cogpu_fail(error, COGPU_CORRUPT, "the block holds %zu bytes where %zu are due", got,
                      needed);
}

cogpu_status cogpu_cpu_check_expansion(uint64_t stored, uint64_t decoded, cogpu_error *error) {
    if (decoded <= COGPU_EXPANSION_BASE + stored * COGPU_EXPANSION_FACTOR)
        return COGPU_OK;
    return cogpu_fail(error, COGPU_CORRUPT, "%llu stored bytes cannot be a block of %llu bytes",
                      (unsigned long long)stored, (unsigned long long)decoded);
}

/* Are both sizes within the limits, and can so few stored bytes become so many? */
static cogpu_status check_sizes(const cogpu_storage *storage, size_t stored, uint64_t decoded,
                                cogpu_error *error) {
    const cogpu_limits *limits = &storage->tiff->limits;
    uint64_t limit =
        limits->block_bytes < limits->call_bytes ? limits->block_bytes : limits->call_bytes;
    if (decoded > limit || stored > limit)
        return cogpu_fail(error, COGPU_LIMIT,
                          "the block has %zu bytes, decoded %llu; the limit is %llu: raise "
                          "`block_bytes` to go on",
                          stored, (unsigned long long)decoded, (unsigned long long)limit);
    return cogpu_cpu_check_expansion(stored, decoded, error);
}

static cogpu_status decode_with(cogpu_seat *seat, const cogpu_storage *storage,
                                const cogpu_block_format *format, const uint8_t *stored,
                                size_t stored_bytes, size_t needed, size_t capacity, uint8_t *to,
                                cogpu_error *error) {
    size_t got = 0;
    TRY(storage->codec->decode(&seat->codec, format, stored, stored_bytes, to, capacity, &got,
                               error));
    return got < needed ? too_short(error, got, needed) : COGPU_OK;
}

/* Undoes predictor 2 over units of one pixel, three bytes. */
static void sum_units(uint8_t *units, size_t row_bytes, uint32_t rows) {
    for (uint32_t y = 0; y < rows; y++, units += row_bytes)
        for (size_t i = 3; i < row_bytes; i++)
            units[i] = (uint8_t)(units[i] + units[i - 3]);
}

/* YCbCr that is not JPEG: units of several pixels that share their colour, spread to pixels. */
static cogpu_status decode_units(cogpu_seat *seat, const cogpu_storage *storage,
                                 const cogpu_block_format *format, const uint8_t *stored,
                                 size_t stored_bytes, uint8_t **decoded, cogpu_error *error) {
    size_t unit_bytes = cogpu_ycbcr_bytes(format), bytes = format->row_bytes * format->height;
    if (unit_bytes == 0)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "YCbCr with subsampling %u, %u is not supported", format->subsampling_x,
                          format->subsampling_y);
    if (storage->predictor != 1 && format->subsampling_x * format->subsampling_y != 1)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "YCbCr with subsampling %u, %u and a predictor is not supported",
                          format->subsampling_x, format->subsampling_y);
    TRY(check_sizes(storage, stored_bytes, unit_bytes, error));
    TRY(check_sizes(storage, stored_bytes, bytes, error));
    TRY(cogpu_seat_room(&seat->units, &seat->units_bytes, unit_bytes, error));
    TRY(cogpu_seat_room(&seat->decoded, &seat->decoded_bytes, bytes, error));
    TRY(decode_with(seat, storage, format, stored, stored_bytes, unit_bytes, unit_bytes,
                    seat->units, error));
    if (storage->predictor == 2)
        sum_units(seat->units, format->row_bytes, format->height);
    *decoded = seat->decoded;
    return cogpu_ycbcr_unpack(format, &storage->ycbcr, seat->units, unit_bytes, seat->decoded,
                              error);
}

/* An uncompressed block needs no decoding: it is used where it lies, or copied if it will be
 * changed. */
static cogpu_status take_plain(cogpu_seat *seat, const cogpu_storage *storage,
                               const uint8_t *stored, size_t bytes, uint8_t **decoded,
                               cogpu_error *error) {
    if (!is_own(seat, stored) && cogpu_cpu_needs_restore(storage)) {
        TRY(cogpu_seat_room(&seat->decoded, &seat->decoded_bytes, bytes, error));
        memcpy(seat->decoded, stored, bytes);
        *decoded = seat->decoded;
    } else {
        *decoded = (uint8_t *)(uintptr_t)stored;
    }
    return COGPU_OK;
}

static cogpu_status undo_fill_order(cogpu_seat *seat, const uint8_t **stored, size_t stored_bytes,
                                    cogpu_error *error) {
    uint8_t *to = is_own(seat, *stored) ? seat->stored + (*stored - seat->stored) : NULL;
    if (!to) {
        TRY(cogpu_seat_room(&seat->stored, &seat->stored_bytes, stored_bytes, error));
        to = seat->stored;
    }
    cogpu_cpu_reverse_bits(*stored, stored_bytes, to);
    *stored = to;
    return COGPU_OK;
}

cogpu_status cogpu_cpu_decode(cogpu_seat *seat, const cogpu_storage *storage,
                              const cogpu_block *block, const uint8_t *stored, size_t stored_bytes,
                              uint8_t **decoded, cogpu_error *error) {
    cogpu_block_format format = storage->format;
    format.height = block->rows;
    size_t needed = format.row_bytes * block->needed_rows;
    if (format.fill_order == 2 && !storage->codec->own_bit_order)
        TRY(undo_fill_order(seat, &stored, stored_bytes, error));
    if (cogpu_storage_has_units(storage))
        return decode_units(seat, storage, &format, stored, stored_bytes, decoded, error);
    if (format.compression == COMPRESSION_NONE)
        return stored_bytes < needed ? too_short(error, stored_bytes, needed)
                                     : take_plain(seat, storage, stored, needed, decoded, error);
    /* Some writers pad the last strip to full height; a tile may hold several slices of a volume.
     */
    size_t capacity = storage->block_bytes;
    TRY(check_sizes(storage, stored_bytes, needed, error));
    if (check_sizes(storage, stored_bytes, capacity, NULL) != COGPU_OK)
        capacity = format.row_bytes * block->rows;
    TRY(check_sizes(storage, stored_bytes, capacity, error));
    TRY(cogpu_seat_room(&seat->decoded, &seat->decoded_bytes, capacity, error));
    *decoded = seat->decoded;
    return decode_with(seat, storage, &format, stored, stored_bytes, needed, capacity,
                       seat->decoded, error);
}
