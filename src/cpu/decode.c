/* Decodes one block; checks its sizes before and after. Scratch memory of workers. */
#include "cpu/cpu.h"

#include <string.h>

/* Vector code may read this far past the end of a row. */
enum { PADDING_BYTES = 64 };

void cogpu_worker_close(cogpu_worker *worker) {
    cogpu_release(worker->stored);
    cogpu_release(worker->decoded);
    cogpu_release(worker->units);
    cogpu_release(worker->row);
    cogpu_release(worker->wide_row);
    cogpu_release(worker->packed_rows);
    cogpu_release(worker->plain);
    cogpu_release(worker->converted);
    cogpu_release(worker->downsampled);
    cogpu_release(worker->shared);
    for (uint32_t i = 0; i < CODEC_LANES; i++)
        cogpu_release(worker->lane_decoded[i]);
    for (uint32_t i = 0; i < COGPU_LANE_FETCHES; i++)
        cogpu_release(worker->lane_stored[i]);
    cogpu_codec_state_close(&worker->codec);
}

cogpu_status cogpu_worker_reserve(uint8_t **memory, size_t *capacity, size_t bytes,
                                  cogpu_error *error) {
    if (*capacity >= bytes)
        return COGPU_OK;
    cogpu_release(*memory);
    *capacity = 0;
    *memory = cogpu_allocate(bytes + PADDING_BYTES);
    if (!*memory)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory: %zu bytes for a block",
                          bytes);
    *capacity = bytes;
    return COGPU_OK;
}

/* Scratch memory may be changed; a mapped source may not. */
static bool is_worker_memory(const cogpu_worker *worker, const uint8_t *stored) {
    return worker->stored && stored >= worker->stored &&
           stored < worker->stored + worker->stored_bytes;
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

static cogpu_status fail_too_short(cogpu_error *error, size_t got, size_t needed) {
    return cogpu_fail(error, COGPU_CORRUPT, "the block has %zu bytes, expected at least %zu", got,
                      needed);
}

cogpu_status cogpu_cpu_check_expansion(uint64_t stored, uint64_t decoded, cogpu_error *error) {
    if (decoded <= COGPU_EXPANSION_BASE + stored * COGPU_EXPANSION_FACTOR)
        return COGPU_OK;
    return cogpu_fail(error, COGPU_CORRUPT, "%llu bytes cannot decode to a block of %llu bytes",
                      (unsigned long long)stored, (unsigned long long)decoded);
}

cogpu_status cogpu_cpu_check_block_bytes(const cogpu_storage *storage, uint64_t stored,
                                         uint64_t decoded, cogpu_error *error) {
    const cogpu_limits *limits = &storage->tiff->limits;
    bool is_call_limit = limits->working_memory_bytes < limits->block_bytes;
    uint64_t limit = is_call_limit ? limits->working_memory_bytes : limits->block_bytes;
    uint64_t bytes = decoded > stored ? decoded : stored;
    if (bytes <= limit)
        return COGPU_OK;
    return cogpu_fail(
        error, COGPU_LIMIT_EXCEEDED, "the block has %llu bytes%s, the limit is %llu: raise `%s`",
        (unsigned long long)bytes, decoded > stored ? " when decoded" : "",
        (unsigned long long)limit, is_call_limit ? "working_memory_bytes" : "block_bytes");
}

static cogpu_status check_sizes(const cogpu_storage *storage, size_t stored, uint64_t decoded,
                                cogpu_error *error) {
    TRY(cogpu_cpu_check_block_bytes(storage, stored, decoded, error));
    return cogpu_cpu_check_expansion(stored, decoded, error);
}

static cogpu_status decode_at_least(cogpu_worker *worker, const cogpu_storage *storage,
                                    const cogpu_block_format *format, const uint8_t *stored,
                                    size_t stored_bytes, size_t needed, size_t capacity,
                                    uint8_t *to, cogpu_error *error) {
    size_t got = 0;
    TRY(storage->codec->decode(&worker->codec, format, stored, stored_bytes, to, capacity, &got,
                               error));
    return got < needed ? fail_too_short(error, got, needed) : COGPU_OK;
}

/* Undoes predictor 2 (TIFF 6.0 section 14) over data units of one pixel, three bytes. */
static void undo_unit_predictor(uint8_t *units, size_t row_bytes, uint32_t rows) {
    for (uint32_t y = 0; y < rows; y++, units += row_bytes)
        for (size_t i = 3; i < row_bytes; i++)
            units[i] = (uint8_t)(units[i] + units[i - 3]);
}

/* YCbCr that is not JPEG: data units of several pixels that share chroma (TIFF 6.0 section 21). */
static cogpu_status decode_ycbcr_units(cogpu_worker *worker, const cogpu_storage *storage,
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
    TRY(cogpu_worker_reserve(&worker->units, &worker->units_bytes, unit_bytes, error));
    TRY(cogpu_worker_reserve(&worker->decoded, &worker->decoded_bytes, bytes, error));
    TRY(decode_at_least(worker, storage, format, stored, stored_bytes, unit_bytes, unit_bytes,
                        worker->units, error));
    if (storage->predictor == 2)
        undo_unit_predictor(worker->units, format->row_bytes, format->height);
    *decoded = worker->decoded;
    return cogpu_ycbcr_unpack(format, &storage->ycbcr, worker->units, unit_bytes, worker->decoded,
                              error);
}

/* An uncompressed block is used where it is, or copied if restoring will change it. */
static cogpu_status use_uncompressed(cogpu_worker *worker, const cogpu_storage *storage,
                                     const uint8_t *stored, size_t bytes, uint8_t **decoded,
                                     cogpu_error *error) {
    if (!is_worker_memory(worker, stored) && cogpu_cpu_has_filters(storage)) {
        TRY(cogpu_worker_reserve(&worker->decoded, &worker->decoded_bytes, bytes, error));
        memcpy(worker->decoded, stored, bytes);
        *decoded = worker->decoded;
    } else {
        *decoded = (uint8_t *)(uintptr_t)stored;
    }
    return COGPU_OK;
}

static cogpu_status undo_fill_order(cogpu_worker *worker, const uint8_t **stored,
                                    size_t stored_bytes, cogpu_error *error) {
    uint8_t *to =
        is_worker_memory(worker, *stored) ? worker->stored + (*stored - worker->stored) : NULL;
    if (!to) {
        TRY(cogpu_worker_reserve(&worker->stored, &worker->stored_bytes, stored_bytes, error));
        to = worker->stored;
    }
    cogpu_cpu_reverse_bits(*stored, stored_bytes, to);
    *stored = to;
    return COGPU_OK;
}

/* Some writers pad the last strip to full height, and a tile may hold slices of a volume. So a
 * decoder may write a whole block, if the limits allow one, even if fewer rows are needed. */
cogpu_status cogpu_cpu_decoded_capacity(const cogpu_storage *storage, const cogpu_block *block,
                                        size_t stored_bytes, size_t *capacity, cogpu_error *error) {
    const size_t row_bytes = storage->format.row_bytes;
    TRY(check_sizes(storage, stored_bytes, row_bytes * block->needed_rows, error));
    *capacity = storage->block_bytes;
    if (check_sizes(storage, stored_bytes, *capacity, NULL) != COGPU_OK)
        *capacity = row_bytes * block->rows;
    return check_sizes(storage, stored_bytes, *capacity, error);
}

bool cogpu_cpu_can_use_lanes(const cogpu_storage *storage) {
    enum { LANE_BLOCK_BYTES = 4 << 20 };
    const cogpu_lane_codec *lanes = storage->codec->lanes;
    return lanes && lanes->is_available() && storage->block_bytes <= LANE_BLOCK_BYTES &&
           storage->format.fill_order == 1 && !cogpu_storage_has_units(storage);
}

cogpu_status cogpu_cpu_decode(cogpu_worker *worker, const cogpu_storage *storage,
                              const cogpu_block *block, const uint8_t *stored, size_t stored_bytes,
                              uint8_t **decoded, cogpu_error *error) {
    cogpu_block_format format = storage->format;
    format.height = block->rows;
    size_t needed = format.row_bytes * block->needed_rows;
    if (format.fill_order == 2 && !storage->codec->own_bit_order)
        TRY(undo_fill_order(worker, &stored, stored_bytes, error));
    if (cogpu_storage_has_units(storage))
        return decode_ycbcr_units(worker, storage, &format, stored, stored_bytes, decoded, error);
    if (format.compression == COMPRESSION_NONE)
        return stored_bytes < needed
                   ? fail_too_short(error, stored_bytes, needed)
                   : use_uncompressed(worker, storage, stored, needed, decoded, error);
    size_t capacity;
    TRY(cogpu_cpu_decoded_capacity(storage, block, stored_bytes, &capacity, error));
    TRY(cogpu_worker_reserve(&worker->decoded, &worker->decoded_bytes, capacity, error));
    *decoded = worker->decoded;
    return decode_at_least(worker, storage, &format, stored, stored_bytes, needed, capacity,
                           worker->decoded, error);
}
