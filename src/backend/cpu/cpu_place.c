/*
 * Takes restored rows of a block, hands on samples in the caller's raster: cropped to the window,
 * the wanted bands at the raster's strides, packed depths widened on the way. Samples that are to
 * be converted are placed as they are in memory of the seat, a few rows at a time, and go from
 * there.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/cpu_vector.h"

#include "base/bytes.h"

#include <string.h>

/* ---- widening: one row of packed samples to one of whole bytes ---- */

static bool is_packed(const cogpu_storage *storage) {
    return storage->bits != 8 * cogpu_type_bytes(storage->type);
}

static uint64_t sign_extend(uint64_t value, uint32_t bits, bool is_signed) {
    uint64_t sign = 1ULL << (bits - 1);
    return is_signed ? (value ^ sign) - sign : value;
}

static void put_sample(uint8_t *to, uint64_t value, size_t size) {
    if (size == 1) {
        *to = (uint8_t)value;
    } else if (size == 2) {
        uint16_t sample = (uint16_t)value;
        memcpy(to, &sample, sizeof sample);
    } else {
        uint32_t sample = (uint32_t)value;
        memcpy(to, &sample, sizeof sample);
    }
}

/* Bits run from the most significant down. */
static uint64_t bits_at(const uint8_t *row, size_t row_bytes, uint64_t bit, uint32_t bits) {
    size_t at = (size_t)(bit / 8);
    uint64_t window = 0;
    if (row_bytes - at >= 8)
        window = load_u64(row + at, true);
    else
        for (size_t i = at; i < at + 8; i++)
            window = window << 8 | (i < row_bytes ? row[i] : 0);
    return window << bit % 8 >> (64 - bits);
}

static void widen_bits(const uint8_t *row, size_t row_bytes, uint64_t first, uint32_t step,
                       uint32_t count, uint32_t bits, size_t size, bool is_signed, uint8_t *to) {
    uint64_t bit = first * bits;
    for (uint32_t i = 0; i < count; i++, to += size, bit += (uint64_t)step * bits)
        put_sample(to, sign_extend(bits_at(row, row_bytes, bit, bits), bits, is_signed), size);
}

/* A number of 1 + 7 + 16 bits as one of 1 + 8 + 23. */
static uint32_t float24_to_32(uint32_t value) {
    uint32_t sign = value >> 23 << 31, exponent = value >> 16 & 0x7F, mantissa = value & 0xFFFF;
    if (exponent == 0x7F)
        return sign | 0x7F800000U | mantissa << 7;
    if (exponent == 0) {
        if (mantissa == 0)
            return sign;
        /* A denormal of 24 bits is a normal number of 32. */
        exponent = 1;
        while (!(mantissa & 0x10000)) {
            mantissa <<= 1;
            exponent--;
        }
        mantissa &= 0xFFFF;
    }
    return sign | (exponent + 127 - 63) << 23 | mantissa << 7;
}

static void widen_float24(const uint8_t *row, uint64_t first, uint32_t step, uint32_t count,
                          uint8_t *to) {
    row += first * 3;
    for (uint32_t i = 0; i < count; i++, row += (size_t)step * 3, to += 4) {
        uint32_t value = COGPU_HOST_BIG_ENDIAN
                             ? (uint32_t)row[0] << 16 | (uint32_t)row[1] << 8 | row[2]
                             : (uint32_t)row[2] << 16 | (uint32_t)row[1] << 8 | row[0];
        put_sample(to, float24_to_32(value), 4);
    }
}

/* `count` samples from the first-th of a row on, each `step` after the one before: one band. */
static void widen(const cogpu_storage *storage, const uint8_t *row, uint64_t first, uint32_t step,
                  uint32_t count, uint8_t *to) {
    bool is_signed =
        storage->type == COGPU_I8 || storage->type == COGPU_I16 || storage->type == COGPU_I32;
    if (storage->type == COGPU_F32)
        widen_float24(row, first, step, count, to);
    else
        widen_bits(row, storage->format.row_bytes, first, step, count, storage->bits,
                   cogpu_type_bytes(storage->type), is_signed, to);
}

/* ---- copying samples at strides ---- */

#define COPY_LOOP(type)                                                                            \
    for (uint32_t i = 0; i < count; i++) {                                                         \
        type sample;                                                                               \
        memcpy(&sample, from + (int64_t)i * from_step, sizeof sample);                             \
        memcpy(to + (int64_t)i * to_step, &sample, sizeof sample);                                 \
    }

typedef struct pair128 {
    uint64_t half[2];
} pair128;

static void copy_steps(uint8_t *to, int64_t to_step, const uint8_t *from, int64_t from_step,
                       uint32_t count, size_t size) {
    switch (size) {
    case 1:
        COPY_LOOP(uint8_t) break;
    case 2:
        COPY_LOOP(uint16_t) break;
    case 4:
        COPY_LOOP(uint32_t) break;
    case 8:
        COPY_LOOP(uint64_t) break;
    default:
        COPY_LOOP(pair128) break;
    }
}

static void copy_samples(uint8_t *to, int64_t to_step, const uint8_t *from, int64_t from_step,
                         uint32_t count, size_t size) {
    if (to_step == (int64_t)size && from_step == to_step)
        memcpy(to, from, count * size);
    else
        copy_steps(to, to_step, from, from_step, count, size);
}

/* ---- taking one band out of pixels of a few: 16 bytes of it come from as many vectors as bands
 * ---- */

enum { SPLIT_BANDS_MAX = 4 };

/* Which bytes of which vector a band's samples are; zero bands: not for vectors. `streams`: see
 * restore. */
struct split {
    uint32_t bands;
    bool streams;
    uint8_t control[SPLIT_BANDS_MAX][SPLIT_BANDS_MAX][VECTOR];
};

#if HAVE_VECTORS
static struct split split_for(uint32_t bands, size_t size) {
    struct split split = {.bands = 0};
    if (bands < 2 || bands > SPLIT_BANDS_MAX || size > 4 || !__builtin_cpu_supports("ssse3"))
        return split;
    split.bands = bands;
    memset(split.control, 0x80, sizeof split.control);
    for (uint32_t band = 0; band < bands; band++)
        for (size_t i = 0; i < VECTOR; i++) {
            size_t byte = i / size * size * bands + band * size + i % size;
            split.control[band][byte / VECTOR][i] = (uint8_t)(byte % VECTOR);
        }
    return split;
}

/* Returns the samples done; the rest does not fill a vector. */
__attribute__((target("ssse3"))) static uint32_t split_vectors(const struct split *split,
                                                               uint32_t band, const uint8_t *pixels,
                                                               uint32_t count, size_t size,
                                                               uint8_t *to) {
    uint32_t step = (uint32_t)(VECTOR / size), done = 0;
    bool streams = split->streams && (uintptr_t)to % VECTOR == 0;
    __m128i control[SPLIT_BANDS_MAX];
    memcpy(control, split->control[band], sizeof control);
    for (; done + step <= count; done += step, to += VECTOR) {
        __m128i sum = _mm_setzero_si128();
        for (uint32_t v = 0; v < split->bands; v++, pixels += VECTOR)
            sum = _mm_or_si128(sum, _mm_shuffle_epi8(load(pixels), control[v]));
        store(to, sum, streams);
    }
    return done;
}
#else
static struct split split_for(uint32_t bands, size_t size) {
    (void)bands, (void)size;
    return (struct split){.bands = 0};
}

static uint32_t split_vectors(const struct split *split, uint32_t band, const uint8_t *pixels,
                              uint32_t count, size_t size, uint8_t *to) {
    (void)split, (void)band, (void)pixels, (void)count, (void)size, (void)to;
    return 0;
}
#endif

/* Samples of one band (0-based) out of pixels, to packed samples or at a stride. */
static void take_band(const struct split *split, uint32_t band, const uint8_t *pixels,
                      uint32_t per_pixel, uint32_t count, size_t size, uint8_t *to,
                      int64_t to_step) {
    uint32_t done = 0;
    size_t pixel = per_pixel * size;
    if (split->bands && to_step == (int64_t)size)
        done = split_vectors(split, band, pixels, count, size, to);
    copy_samples(to + (int64_t)done * to_step, to_step, pixels + done * pixel + band * size,
                 (int64_t)pixel, count - done, size);
}

/* ---- rows ---- */

/* Where band position `p` of the block's first pixel goes. */
static uint8_t *target_of(const cogpu_block *block, const cogpu_raster *raster, uint32_t p) {
    return (uint8_t *)raster->data + (int64_t)p * raster->stride_band +
           (int64_t)block->target_y * raster->stride_y +
           (int64_t)block->target_x * raster->stride_x;
}

/* The raster takes pixels as the file has them: all bands, in order, side by side. */
static bool same_interleave(const cogpu_read_plan *plan, const cogpu_raster *raster, size_t size) {
    const cogpu_storage *storage = plan->storage;
    return plan->planes == 1 && !plan->bands && storage->format.samples == storage->bands &&
           raster->stride_band == (int64_t)size &&
           raster->stride_x == (int64_t)(size * storage->bands);
}

static void place_row(const cogpu_read_plan *plan, const cogpu_block *block,
                      const struct split *split, uint32_t row, const uint8_t *samples,
                      const cogpu_raster *raster) {
    const cogpu_storage *storage = plan->storage;
    size_t size = cogpu_type_bytes(storage->type);
    int64_t down = (int64_t)row * raster->stride_y;
    uint32_t per_pixel = storage->format.samples;
    if (storage->planes > 1) {
        copy_samples(target_of(block, raster, block->plane) + down, raster->stride_x, samples,
                     (int64_t)size, block->width, size);
    } else if (same_interleave(plan, raster, size)) {
        memcpy(target_of(block, raster, 0) + down, samples,
               (size_t)block->width * per_pixel * size);
    } else {
        for (uint32_t p = 0; p < plan->band_count; p++) {
            uint32_t band = cogpu_plan_band(plan, p);
            take_band(split, band, samples, per_pixel, block->width, size,
                      target_of(block, raster, p) + down, raster->stride_x);
        }
    }
}

/* Packed samples are widened a band at a time, so that bands nobody asked for cost nothing. */
static void place_packed_row(cogpu_seat *seat, const cogpu_read_plan *plan,
                             const cogpu_block *block, uint32_t row, const uint8_t *packed,
                             const cogpu_raster *raster) {
    const cogpu_storage *storage = plan->storage;
    size_t size = cogpu_type_bytes(storage->type);
    uint32_t per_pixel = storage->format.samples;
    bool planar = storage->planes > 1;
    for (uint32_t p = 0; p < (planar ? 1 : plan->band_count); p++) {
        uint32_t band = planar ? 0 : cogpu_plan_band(plan, p);
        widen(storage, packed, (uint64_t)block->source_x * per_pixel + band, per_pixel,
              block->width, seat->wide_row);
        copy_samples(target_of(block, raster, planar ? block->plane : p) +
                         (int64_t)row * raster->stride_y,
                     raster->stride_x, seat->wide_row, (int64_t)size, block->width, size);
    }
}

/* Rows that begin with the block's first pixel and lie in the raster as in the block are restored
 * straight into it: no copy at all. */
static bool goes_direct(const cogpu_read_plan *plan, const cogpu_block *block,
                        const cogpu_raster *raster) {
    const cogpu_storage *storage = plan->storage;
    size_t size = cogpu_type_bytes(storage->type);
    bool one_sample = storage->format.samples == 1 && raster->stride_x == (int64_t)size &&
                      (storage->planes > 1 || plan->band_count == 1);
    return block->source_x == 0 && !is_packed(storage) &&
           (one_sample || same_interleave(plan, raster, size));
}

/* Nobody will find the first rows of such a raster in a cache, so none is filled with it. */
static bool is_beyond_caches(const cogpu_raster *raster, size_t size) {
    enum { CACHES = 64 << 20 };
    return (uint64_t)raster->width * raster->height * raster->bands > CACHES / size;
}

/* One row of the block into the raster; `row` is restored, or will be here. */
static void take_row(cogpu_seat *seat, const cogpu_read_plan *plan, const cogpu_block *block,
                     const struct split *split, uint32_t i, uint8_t *row, bool is_restored,
                     const cogpu_raster *raster) {
    const cogpu_storage *storage = plan->storage;
    uint32_t per_pixel = storage->format.samples;
    uint64_t first = (uint64_t)block->source_x * per_pixel;
    if (!is_restored) {
        cogpu_cpu_restore(storage, row, 1, block->source_x + block->width, seat->row, 0, false);
        row = seat->row;
    }
    if (is_packed(storage))
        place_packed_row(seat, plan, block, i, row, raster);
    else
        place_row(plan, block, split, i, row + first * cogpu_type_bytes(storage->type), raster);
}

/* ---- with a conversion ---- */

static void convert_row(cogpu_seat *seat, const cogpu_read_plan *plan, uint32_t p,
                        const uint8_t *samples, uint32_t count, const cogpu_raster *raster,
                        uint8_t *to) {
    size_t size = cogpu_type_bytes(raster->type);
    bool is_packed_row = raster->stride_x == (int64_t)size;
    cogpu_cpu_convert(plan, p, samples, count, raster->type, is_packed_row ? to : seat->converted);
    if (!is_packed_row)
        copy_steps(to, raster->stride_x, seat->converted, (int64_t)size, count, size);
}

/* Rows of the block to convert at once: as many as the nearest caches hold. */
static uint32_t rows_converted(const cogpu_block *block, size_t row_bytes) {
    enum { HELD_BYTES = 64 << 10 };
    size_t rows = HELD_BYTES / row_bytes;
    return rows < 1 ? 1 : rows < block->height ? (uint32_t)rows : block->height;
}

static cogpu_status place_converted(cogpu_seat *seat, const cogpu_read_plan *plan,
                                    const cogpu_block *block, uint8_t *decoded, bool is_restored,
                                    const cogpu_raster *raster, cogpu_error *error) {
    cogpu_read_plan plain_plan = *plan;
    bool planar = plan->storage->planes > 1;
    uint32_t bands = planar ? 1 : plan->band_count;
    size_t size = cogpu_type_bytes(plan->storage->type), band_row = block->width * size;
    uint32_t step = rows_converted(block, band_row * bands);
    TRY(cogpu_seat_room(&seat->plain, &seat->plain_bytes, step * band_row * bands, error));
    TRY(cogpu_seat_room(&seat->converted, &seat->converted_bytes,
                        block->width * cogpu_type_bytes(raster->type), error));
    plain_plan.conversion = NULL;
    cogpu_raster plain = {.data = seat->plain,
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
        TRY(cogpu_cpu_place(seat, &plain_plan, &part, decoded, is_restored, &plain, error));
        for (uint32_t b = 0; b < bands; b++)
            for (uint32_t row = 0; row < part.height; row++) {
                uint32_t p = planar ? block->plane : b;
                convert_row(seat, plan, p, seat->plain + (b * step + row) * band_row, block->width,
                            raster,
                            target_of(block, raster, p) + (int64_t)(y + row) * raster->stride_y);
            }
    }
    return COGPU_OK;
}

/* ---- the step ---- */

cogpu_status cogpu_cpu_place(cogpu_seat *seat, const cogpu_read_plan *plan,
                             const cogpu_block *block, uint8_t *decoded, bool is_restored,
                             const cogpu_raster *raster, cogpu_error *error) {
    const cogpu_storage *storage = plan->storage;
    size_t row_bytes = storage->format.row_bytes;
    size_t wide_bytes = block->width * cogpu_type_bytes(storage->type);
    uint8_t *row = decoded + block->source_y * row_bytes;
    if (plan->conversion)
        return place_converted(seat, plan, block, decoded, is_restored, raster, error);
    if (!is_restored && goes_direct(plan, block, raster)) {
        uint8_t *to = target_of(block, raster, storage->planes > 1 ? block->plane : 0);
        bool streams = is_beyond_caches(raster, cogpu_type_bytes(storage->type));
        cogpu_cpu_restore(storage, row, block->height, block->width, to, raster->stride_y, streams);
        return COGPU_OK;
    }
    if (!is_restored)
        TRY(cogpu_seat_room(&seat->row, &seat->row_bytes, row_bytes, error));
    if (is_packed(storage))
        TRY(cogpu_seat_room(&seat->wide_row, &seat->wide_row_bytes, wide_bytes, error));
    struct split split = split_for(storage->format.samples, cogpu_type_bytes(storage->type));
    split.streams = is_beyond_caches(raster, cogpu_type_bytes(storage->type));
    for (uint32_t i = 0; i < block->height; i++, row += row_bytes)
        take_row(seat, plan, block, &split, i, row, is_restored, raster);
    if (split.streams)
        settle_streams();
    return COGPU_OK;
}

uint8_t *cogpu_cpu_direct(const cogpu_read_plan *plan, const cogpu_block *block,
                          const cogpu_raster *raster) {
    const cogpu_storage *storage = plan->storage;
    bool plain = storage->format.compression == COMPRESSION_NONE &&
                 storage->colour == COGPU_AS_STORED && storage->format.fill_order == 1 &&
                 !cogpu_cpu_needs_restore(storage);
    if (!plain || plan->conversion || !goes_direct(plan, block, raster) ||
        block->width != storage->block_width ||
        raster->stride_y != (int64_t)storage->format.row_bytes)
        return NULL;
    return target_of(block, raster, storage->planes > 1 ? block->plane : 0);
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
            copy_samples(target_of(block, raster, p) + (int64_t)i * raster->stride_y,
                         raster->stride_x, plan->conversion ? converted : fill, 0, block->width,
                         size);
    }
}
