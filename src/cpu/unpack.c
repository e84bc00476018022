/*
 * Unpacks a decoded block into the caller's raster: cropped to the window, the requested bands at
 * the raster's strides, odd depths widened to whole bytes. Predictor and byte order are undone here
 * if the caller has not done so. Samples to convert are unpacked to scratch memory of the worker, a
 * few rows at a time, and converted from there.
 */
#include "cpu/cpu.h"
#include "cpu/samples.h"
#include "cpu/vector.h"

#include "base/bytes.h"
#include "pixel/bits.h"

#include <string.h>

/* ---- odd depths: packed samples to samples of whole bytes ---- */

static bool has_odd_depth(const cogpu_storage *storage) {
    return storage->bits != 8 * cogpu_type_bytes(storage->type);
}

/* A window of 64 bits, big-endian. Bytes after the row count as 0. */
static uint64_t load_bit_window(const uint8_t *row, size_t row_bytes, size_t at) {
    uint64_t window = 0;
    if (row_bytes - at >= 8)
        return load_u64(row + at, true);
    for (size_t i = at; i < at + 8; i++)
        window = window << 8 | (i < row_bytes ? row[i] : 0);
    return window;
}

#define UNPACK_BITS(type)                                                                          \
    for (uint32_t i = 0; i < count; i++, to += sizeof(type), bit += (uint64_t)step * bits) {       \
        uint64_t window = load_bit_window(row, row_bytes, (size_t)(bit / 8));                      \
        uint64_t value = extract_bits(window, (uint32_t)(bit % 8), bits);                          \
        type sample = (type)sign_extend(value, bits, is_signed);                                   \
        memcpy(to, &sample, sizeof sample);                                                        \
    }

static void unpack_bits(const uint8_t *row, size_t row_bytes, uint64_t first, uint32_t step,
                        uint32_t count, uint32_t bits, cogpu_type type, uint8_t *to) {
    uint64_t bit = first * bits;
    bool is_signed = sample_is_signed(type);
    switch (cogpu_type_bytes(type)) {
    case 1:
        UNPACK_BITS(uint8_t) break;
    case 2:
        UNPACK_BITS(uint16_t) break;
    default:
        UNPACK_BITS(uint32_t) break;
    }
}

/* Floats of 24 bits are in host byte order by now. */
static void unpack_float24(const uint8_t *row, uint64_t first, uint32_t step, uint32_t count,
                           uint8_t *to) {
    row += first * 3;
    for (uint32_t i = 0; i < count; i++, row += (size_t)step * 3, to += 4) {
        uint32_t value = COGPU_HOST_BIG_ENDIAN
                             ? (uint32_t)row[0] << 16 | (uint32_t)row[1] << 8 | row[2]
                             : (uint32_t)row[2] << 16 | (uint32_t)row[1] << 8 | row[0];
        uint32_t sample = float24_to_float_bits(value);
        memcpy(to, &sample, sizeof sample);
    }
}

/* Unpacks `count` samples of a row, `step` apart, from sample `first` on: one band. */
static void unpack_odd_depth(const cogpu_storage *storage, const uint8_t *row, uint64_t first,
                             uint32_t step, uint32_t count, uint8_t *to) {
    if (storage->type == COGPU_TYPE_F32)
        unpack_float24(row, first, step, count, to);
    else
        unpack_bits(row, storage->format.row_bytes, first, step, count, storage->bits,
                    storage->type, to);
}

/* ---- deinterleaving: 16 bytes of a band come from as many vectors as the pixel has bands ---- */

enum { DEINTERLEAVE_BANDS_MAX = 4 };

/* Shuffle controls: which bytes of which vector belong to a band. Zero bands: vectors do not fit.
 */
struct deinterleave {
    uint32_t bands;
    uint8_t control[DEINTERLEAVE_BANDS_MAX][DEINTERLEAVE_BANDS_MAX][VECTOR];
};

#if HAVE_VECTORS
static struct deinterleave deinterleave_for(uint32_t bands, size_t size) {
    struct deinterleave shuffle = {.bands = 0};
    if (bands < 2 || bands > DEINTERLEAVE_BANDS_MAX || size > 4 || !can_shuffle_vectors())
        return shuffle;
    shuffle.bands = bands;
    memset(shuffle.control, 0x80, sizeof shuffle.control);
    for (uint32_t band = 0; band < bands; band++)
        for (size_t i = 0; i < VECTOR; i++) {
            size_t byte = i / size * size * bands + band * size + i % size;
            shuffle.control[band][byte / VECTOR][i] = (uint8_t)(byte % VECTOR);
        }
    return shuffle;
}

/* Returns the samples done; the rest does not fill a vector. */
WITH_SHUFFLE static uint32_t deinterleave_vectors(const struct deinterleave *shuffle, uint32_t band,
                                                  const uint8_t *pixels, uint32_t count,
                                                  size_t size, uint8_t *to, bool streams) {
    uint32_t step = (uint32_t)(VECTOR / size), done = 0;
    vector control[DEINTERLEAVE_BANDS_MAX];
    memcpy(control, shuffle->control[band], sizeof control);
    for (; done + step <= count; done += step, to += VECTOR) {
        vector sum = zero_vector();
        for (uint32_t v = 0; v < shuffle->bands; v++, pixels += VECTOR)
            sum = or_vectors(sum, shuffle_vector(load_vector(pixels), control[v]));
        store_or_stream(to, sum, streams);
    }
    return done;
}
#else
static struct deinterleave deinterleave_for(uint32_t bands, size_t size) {
    (void)bands, (void)size;
    return (struct deinterleave){.bands = 0};
}

static uint32_t deinterleave_vectors(const struct deinterleave *shuffle, uint32_t band,
                                     const uint8_t *pixels, uint32_t count, size_t size,
                                     uint8_t *to, bool streams) {
    (void)shuffle, (void)band, (void)pixels, (void)count, (void)size, (void)to, (void)streams;
    return 0;
}
#endif

/* Packed samples of one band (0-based) out of pixels. */
static void deinterleave_band(const struct deinterleave *shuffle, uint32_t band,
                              const uint8_t *pixels, uint32_t per_pixel, uint32_t count,
                              size_t size, uint8_t *to, bool streams) {
    uint32_t done = deinterleave_vectors(shuffle, band, pixels, count, size, to, streams);
    size_t pixel = per_pixel * size;
    cogpu_cpu_copy_samples(to + done * size, (int64_t)size, pixels + done * pixel + band * size,
                           (int64_t)pixel, count - done, size);
}

/* How the rows of a block are copied: filled in once for all of them. */
struct band_copy {
    struct deinterleave shuffle;
    bool streams;
};

/* Samples of one band (0-based) out of pixels, to packed samples or at a stride. */
static void copy_band(const struct band_copy *copy, uint32_t band, const uint8_t *pixels,
                      uint32_t per_pixel, uint32_t count, size_t size, uint8_t *to,
                      int64_t to_step) {
    bool is_packed = to_step == (int64_t)size;
    if (is_packed && per_pixel == 1) {
        cogpu_cpu_copy_bytes(to, pixels, count * size, copy->streams);
    } else if (is_packed && copy->shuffle.bands) {
        bool streams = copy->streams && (uintptr_t)to % VECTOR == 0;
        deinterleave_band(&copy->shuffle, band, pixels, per_pixel, count, size, to, streams);
    } else {
        cogpu_cpu_copy_samples(to, to_step, pixels + band * size, (int64_t)(per_pixel * size),
                               count, size);
    }
}

/* ---- rows ---- */

/* Address of the block's first pixel in band p of the raster. */
static uint8_t *target_address(const cogpu_block *block, const cogpu_raster *raster, uint32_t p) {
    return (uint8_t *)raster->data + (int64_t)p * raster->stride_band +
           (int64_t)block->target_y * raster->stride_y +
           (int64_t)block->target_x * raster->stride_x;
}

/* The raster has the file's pixel interleave: all bands, in order, side by side. */
static bool has_file_interleave(const cogpu_read_plan *plan, const cogpu_raster *raster,
                                size_t size) {
    const cogpu_storage *storage = plan->storage;
    return plan->planes == 1 && !plan->bands && storage->format.samples == storage->bands &&
           raster->stride_band == (int64_t)size &&
           raster->stride_x == (int64_t)(size * storage->bands);
}

static void unpack_row(const cogpu_read_plan *plan, const cogpu_block *block,
                       const struct band_copy *copy, uint32_t row, const uint8_t *samples,
                       const cogpu_raster *raster) {
    const cogpu_storage *storage = plan->storage;
    size_t size = cogpu_type_bytes(storage->type);
    int64_t down = (int64_t)row * raster->stride_y;
    uint32_t per_pixel = storage->format.samples;
    if (storage->planes > 1) {
        copy_band(copy, 0, samples, 1, block->width, size,
                  target_address(block, raster, block->plane) + down, raster->stride_x);
    } else if (has_file_interleave(plan, raster, size)) {
        cogpu_cpu_copy_bytes(target_address(block, raster, 0) + down, samples,
                             (size_t)block->width * per_pixel * size, copy->streams);
    } else {
        for (uint32_t p = 0; p < plan->band_count; p++) {
            uint32_t band = cogpu_plan_band(plan, p);
            copy_band(copy, band, samples, per_pixel, block->width, size,
                      target_address(block, raster, p) + down, raster->stride_x);
        }
    }
}

/* Band by band, so that bands that were not requested cost nothing. */
static void unpack_odd_depth_row(cogpu_worker *worker, const cogpu_read_plan *plan,
                                 const cogpu_block *block, uint32_t row, const uint8_t *packed,
                                 const cogpu_raster *raster) {
    const cogpu_storage *storage = plan->storage;
    size_t size = cogpu_type_bytes(storage->type);
    uint32_t per_pixel = storage->format.samples;
    bool planar = storage->planes > 1;
    for (uint32_t p = 0; p < (planar ? 1 : plan->band_count); p++) {
        uint32_t band = planar ? 0 : cogpu_plan_band(plan, p);
        unpack_odd_depth(storage, packed, (uint64_t)block->source_x * per_pixel + band, per_pixel,
                         block->width, worker->wide_row);
        cogpu_cpu_copy_samples(target_address(block, raster, planar ? block->plane : p) +
                                   (int64_t)row * raster->stride_y,
                               raster->stride_x, worker->wide_row, (int64_t)size, block->width,
                               size);
    }
}

/* Rows that begin with the block's first pixel and have the same layout in block and raster:
 * filters are undone straight into the raster. */
static bool can_unpack_in_place(const cogpu_read_plan *plan, const cogpu_block *block,
                                const cogpu_raster *raster) {
    const cogpu_storage *storage = plan->storage;
    size_t size = cogpu_type_bytes(storage->type);
    bool one_sample = storage->format.samples == 1 && raster->stride_x == (int64_t)size &&
                      (storage->planes > 1 || plan->band_count == 1);
    return block->source_x == 0 && !has_odd_depth(storage) &&
           (one_sample || has_file_interleave(plan, raster, size));
}

/* One row of the block, with filters undone. */
static void unpack_any_row(cogpu_worker *worker, const cogpu_read_plan *plan,
                           const cogpu_block *block, const struct band_copy *copy, uint32_t i,
                           const uint8_t *row, const cogpu_raster *raster) {
    const cogpu_storage *storage = plan->storage;
    uint64_t first = (uint64_t)block->source_x * storage->format.samples;
    if (has_odd_depth(storage))
        unpack_odd_depth_row(worker, plan, block, i, row, raster);
    else
        unpack_row(plan, block, copy, i, row + first * cogpu_type_bytes(storage->type), raster);
}

/* Rows to undo filters of at once: what the L1 cache holds until they are unpacked. */
static uint32_t rows_per_pass(const cogpu_block *block, size_t row_bytes) {
    enum { HELD_BYTES = 16 << 10 };
    size_t rows = HELD_BYTES / row_bytes;
    return rows < 1 ? 1 : rows < block->height ? (uint32_t)rows : block->height;
}

/* ---- with a conversion ---- */

static void convert_row(cogpu_worker *worker, const cogpu_read_plan *plan, uint32_t p,
                        const uint8_t *samples, uint32_t count, const cogpu_raster *raster,
                        uint8_t *to) {
    size_t size = cogpu_type_bytes(raster->type);
    bool is_packed_row = raster->stride_x == (int64_t)size;
    cogpu_cpu_convert(plan, p, samples, count, raster->type,
                      is_packed_row ? to : worker->converted);
    if (!is_packed_row)
        cogpu_cpu_copy_samples(to, raster->stride_x, worker->converted, (int64_t)size, count, size);
}

/* Rows of the block to convert at once: as many as the L1 and L2 caches hold. */
static uint32_t rows_per_conversion(const cogpu_block *block, size_t row_bytes) {
    enum { HELD_BYTES = 64 << 10 };
    size_t rows = HELD_BYTES / row_bytes;
    return rows < 1 ? 1 : rows < block->height ? (uint32_t)rows : block->height;
}

static cogpu_status unpack_converted(cogpu_worker *worker, const cogpu_read_plan *plan,
                                     const cogpu_block *block, uint8_t *decoded,
                                     bool filters_undone, const cogpu_raster *raster,
                                     cogpu_error *error) {
    cogpu_read_plan plain_plan = *plan;
    bool planar = plan->storage->planes > 1;
    uint32_t bands = planar ? 1 : plan->band_count;
    size_t size = cogpu_type_bytes(plan->storage->type), band_row = block->width * size;
    uint32_t step = rows_per_conversion(block, band_row * bands);
    TRY(cogpu_worker_reserve(&worker->plain, &worker->plain_bytes, step * band_row * bands, error));
    TRY(cogpu_worker_reserve(&worker->converted, &worker->converted_bytes,
                             block->width * cogpu_type_bytes(raster->type), error));
    plain_plan.conversion = NULL;
    cogpu_raster plain = {.data = worker->plain,
                          .type = plan->storage->type,
                          .bands = bands,
                          .height = step,
                          .width = block->width,
                          .stride_band = (int64_t)(step * band_row),
                          .stride_y = (int64_t)band_row,
                          .stride_x = (int64_t)size};
    cogpu_block part = *block;
    part.plane = part.target_x = part.target_y = 0;
    for (uint32_t y = 0; y < block->height; y += step, part.source_y += step) {
        part.height = block->height - y < step ? block->height - y : step;
        TRY(cogpu_cpu_unpack(worker, &plain_plan, &part, decoded, filters_undone, &plain, error));
        for (uint32_t b = 0; b < bands; b++)
            for (uint32_t row = 0; row < part.height; row++) {
                uint32_t p = planar ? block->plane : b;
                convert_row(worker, plan, p, worker->plain + (b * step + row) * band_row,
                            block->width, raster,
                            target_address(block, raster, p) +
                                (int64_t)(y + row) * raster->stride_y);
            }
    }
    return COGPU_OK;
}

/* ---- blocks ---- */

static void unpack_rows(cogpu_worker *worker, const cogpu_read_plan *plan, const cogpu_block *block,
                        const struct band_copy *copy, uint8_t *decoded, bool filters_undone,
                        const cogpu_raster *raster) {
    const cogpu_storage *storage = plan->storage;
    size_t row_bytes = storage->format.row_bytes;
    uint32_t step = filters_undone ? block->height : rows_per_pass(block, row_bytes);
    for (uint32_t y = 0, rows; y < block->height; y += rows) {
        uint8_t *row = decoded + (size_t)(block->source_y + y) * row_bytes;
        rows = block->height - y < step ? block->height - y : step;
        if (!filters_undone) {
            cogpu_cpu_undo_filters(storage, row, rows, block->source_x + block->width, worker->row,
                                   (int64_t)row_bytes, false);
            row = worker->row;
        }
        for (uint32_t i = 0; i < rows; i++, row += row_bytes)
            unpack_any_row(worker, plan, block, copy, y + i, row, raster);
    }
}

cogpu_status cogpu_cpu_unpack(cogpu_worker *worker, const cogpu_read_plan *plan,
                              const cogpu_block *block, uint8_t *decoded, bool filters_undone,
                              const cogpu_raster *raster, cogpu_error *error) {
    const cogpu_storage *storage = plan->storage;
    size_t row_bytes = storage->format.row_bytes, size = cogpu_type_bytes(storage->type);
    bool streams = cogpu_cpu_is_beyond_caches(raster, size);
    if (plan->conversion)
        return unpack_converted(worker, plan, block, decoded, filters_undone, raster, error);
    if (!filters_undone && can_unpack_in_place(plan, block, raster)) {
        uint8_t *to = target_address(block, raster, storage->planes > 1 ? block->plane : 0);
        cogpu_cpu_undo_filters(storage, decoded + block->source_y * row_bytes, block->height,
                               block->width, to, raster->stride_y, streams);
        return COGPU_OK;
    }
    if (!filters_undone)
        TRY(cogpu_worker_reserve(&worker->row, &worker->row_bytes,
                                 rows_per_pass(block, row_bytes) * row_bytes, error));
    if (has_odd_depth(storage))
        TRY(cogpu_worker_reserve(&worker->wide_row, &worker->wide_row_bytes, block->width * size,
                                 error));
    struct band_copy copy = {.shuffle = deinterleave_for(storage->format.samples, size),
                             .streams = streams};
    unpack_rows(worker, plan, block, &copy, decoded, filters_undone, raster);
    cogpu_cpu_finish_copies(streams);
    return COGPU_OK;
}

uint8_t *cogpu_cpu_direct_target(const cogpu_read_plan *plan, const cogpu_block *block,
                                 const cogpu_raster *raster) {
    const cogpu_storage *storage = plan->storage;
    bool plain = storage->format.compression == COMPRESSION_NONE &&
                 storage->colour == COGPU_AS_STORED && storage->format.fill_order == 1 &&
                 !cogpu_cpu_has_filters(storage);
    if (!plain || plan->conversion || !can_unpack_in_place(plan, block, raster) ||
        block->width != storage->block_width ||
        raster->stride_y != (int64_t)storage->format.row_bytes)
        return NULL;
    return target_address(block, raster, storage->planes > 1 ? block->plane : 0);
}

void cogpu_cpu_fill(const cogpu_read_plan *plan, const cogpu_block *block,
                    const cogpu_raster *raster) {
    const uint8_t *fill = plan->fill ? plan->fill : plan->storage->format.fill;
    size_t size = cogpu_type_bytes(raster->type);
    bool planar = plan->storage->planes > 1;
    for (uint32_t b = 0; b < (planar ? 1 : plan->band_count); b++) {
        uint32_t p = planar ? block->plane : b;
        uint8_t converted[16];
        if (plan->conversion)
            cogpu_cpu_convert(plan, p, fill, 1, raster->type, converted);
        for (uint32_t i = 0; i < block->height; i++)
            cogpu_cpu_copy_samples(target_address(block, raster, p) + (int64_t)i * raster->stride_y,
                                   raster->stride_x, plan->conversion ? converted : fill, 0,
                                   block->width, size);
    }
}
