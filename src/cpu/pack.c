/*
 * Packs the caller's rows, at any strides, into decoded bytes of blocks, or into interleaved rows
 * for a writer that keeps them until a block row is complete.
 */
#include "cpu/pack.h"
#include "cpu/samples.h"

#include "base/bytes.h"
#include "pixel/bits.h"
#include "pixel/predictor.h"

#include <string.h>

/* ---- rows ---- */

/* Rows of a raster, bands side by side, `row_bytes` apart. */
static void pack_rows(const cogpu_raster *raster, uint32_t first, uint32_t rows, size_t row_bytes,
                      uint8_t *to) {
    size_t size = cogpu_type_bytes(raster->type), pixel = size * raster->bands;
    bool is_packed = raster->stride_x == (int64_t)pixel &&
                     (raster->bands == 1 || raster->stride_band == (int64_t)size);
    for (uint32_t y = 0; y < rows; y++, to += row_bytes) {
        const uint8_t *row =
            (const uint8_t *)raster->data + (int64_t)(first + y) * raster->stride_y;
        if (is_packed) {
            memcpy(to, row, pixel * raster->width);
            continue;
        }
        for (uint32_t b = 0; b < raster->bands; b++)
            cogpu_cpu_copy_samples(to + b * size, (int64_t)pixel, row + b * raster->stride_band,
                                   raster->stride_x, raster->width, size);
    }
}

void cogpu_cpu_pack_rows(const cogpu_raster *raster, uint32_t first, uint32_t rows, bool is_planar,
                         size_t band_bytes, uint8_t *to) {
    size_t size = cogpu_type_bytes(raster->type);
    uint32_t planes = is_planar ? raster->bands : 1;
    cogpu_raster plane = *raster;
    plane.bands = raster->bands / planes;
    for (uint32_t p = 0; p < planes; p++) {
        plane.data = (uint8_t *)raster->data + p * raster->stride_band;
        pack_rows(&plane, first, rows, size * plane.bands * plane.width, to + p * band_bytes);
    }
}

/* ---- blocks ---- */

#define REPLACE_NAN_CASE(kind, bits)                                                               \
    case kind: {                                                                                   \
        LOAD_SAMPLE(bits, fill, plan->fill, 0);                                                    \
        for (size_t i = 0; i < bytes / sizeof(bits); i++) {                                        \
            LOAD_SAMPLE(bits, sample, samples, i);                                                 \
            sample = sample_is_nan(kind, sample) ? fill : sample;                                  \
            memcpy(samples + i * sizeof sample, &sample, sizeof sample);                           \
        }                                                                                          \
        break;                                                                                     \
    }

/* NaN becomes nodata. */
static void replace_nan(const cogpu_write_plan *plan, uint8_t *samples, size_t bytes) {
    switch (plan->type) {
        REPLACE_NAN_CASE(COGPU_TYPE_F16, uint16_t)
        REPLACE_NAN_CASE(COGPU_TYPE_F32, uint32_t)
        REPLACE_NAN_CASE(COGPU_TYPE_F64, uint64_t)
    default:
        break;
    }
}

void cogpu_cpu_pack_block(const cogpu_write_plan *plan, const cogpu_block_grid *grid,
                          const cogpu_new_block *block, const cogpu_raster *from, uint8_t *to) {
    size_t pixel = plan->pixel_bytes, inside = block->width * pixel;
    size_t block_row = grid->block_width * pixel;
    pack_rows(from, 0, block->height, block_row, to);
    for (uint32_t y = 0; y < block->rows; y++) {
        uint8_t *row = to + y * block_row;
        if (y < block->height) {
            if (plan->replaces_nan)
                replace_nan(plan, row, inside);
            cogpu_cpu_repeat(row + inside - pixel, pixel, block_row - inside + pixel);
        } else if (plan->codec->allows_predictor) {
            memcpy(row, row - pixel, pixel);
            cogpu_cpu_repeat(row, pixel, block_row);
        } else {
            memcpy(row, row - block_row, block_row);
        }
    }
}

void cogpu_cpu_pack_mask(const cogpu_block_grid *grid, const cogpu_new_block *block,
                         const cogpu_raster *from, uint8_t *to) {
    size_t packed = (grid->block_width + 7) / 8;
    memset(to, 0, packed * block->rows);
    for (uint32_t y = 0; y < block->height; y++) {
        const uint8_t *at = (const uint8_t *)from->data + y * from->stride_y;
        for (uint32_t x = 0; x < block->width; x++, at += from->stride_x)
            to[y * packed + x / 8] |= (uint8_t)((*at != 0) << (7 - x % 8));
    }
}

#define ARE_NAN_CASE(kind, bits)                                                                   \
    case kind:                                                                                     \
        UNROLL_4 for (size_t i = 0; i < bytes / sizeof(bits); i++) {                               \
            LOAD_SAMPLE(bits, sample, samples, i);                                                 \
            if (!sample_is_nan(kind, sample))                                                      \
                return false;                                                                      \
        }                                                                                          \
        return true;

/* Of float types; others have no NaN. */
static bool are_nan(const uint8_t *samples, size_t bytes, cogpu_type type) {
    switch (type) {
        ARE_NAN_CASE(COGPU_TYPE_F16, uint16_t)
        ARE_NAN_CASE(COGPU_TYPE_F32, uint32_t)
        ARE_NAN_CASE(COGPU_TYPE_F64, uint64_t)
    default:
        return false;
    }
}

bool cogpu_cpu_is_uniform(const uint8_t *samples, size_t bytes, cogpu_type type,
                          const uint8_t *sample) {
    size_t size = cogpu_type_bytes(type);
    if (sample_is_float(type) && are_nan(sample, size, type))
        return are_nan(samples, bytes, type);
    return memcmp(samples, sample, size) == 0 && memcmp(samples, samples + size, bytes - size) == 0;
}

/* ---- predictors ---- */

/* Loops over elements of a constant size, which become vector code. */
#define DIFFERENCE_EACH(type)                                                                      \
    UNROLL_4 for (size_t at = pixel; at + sizeof(type) <= bytes; at += sizeof(type)) {             \
        type here, before;                                                                         \
        memcpy(&here, from + at, sizeof here);                                                     \
        memcpy(&before, from + at - pixel, sizeof before);                                         \
        here = (type)(here - before);                                                              \
        memcpy(to + at, &here, sizeof here);                                                       \
    }

/* Each element of `unit` bytes becomes its difference from the one a pixel before. */
static void difference_row(const uint8_t *restrict from, size_t bytes, size_t pixel, size_t unit,
                           uint8_t *restrict to) {
    memcpy(to, from, pixel);
    switch (unit) {
    case 1:
        DIFFERENCE_EACH(uint8_t) break;
    case 2:
        DIFFERENCE_EACH(uint16_t) break;
    case 4:
        DIFFERENCE_EACH(uint32_t) break;
    default:
        DIFFERENCE_EACH(uint64_t) break;
    }
}

#define SPLIT_PLANES(size)                                                                         \
    for (size_t k = 0; k < (size); k++) {                                                          \
        const uint8_t *byte = row + plane_byte((uint32_t)k, (size), COGPU_HOST_BIG_ENDIAN);        \
        uint8_t *plane = planes + k * samples;                                                     \
        for (size_t i = 0; i < samples; i++)                                                       \
            plane[i] = byte[i * (size)];                                                           \
    }

/* Byte k of every float goes to plane k, the most significant first. */
static void split_planes(const uint8_t *restrict row, size_t samples, size_t size,
                         uint8_t *restrict planes) {
    switch (size) {
    case 2:
        SPLIT_PLANES(2) break;
    case 4:
        SPLIT_PLANES(4) break;
    default:
        SPLIT_PLANES(8) break;
    }
}

/* Files are written little-endian. The two parts of a complex sample are swapped each. */
static void swap_to_little_endian(uint8_t *row, size_t bytes, size_t unit) {
    for (size_t at = 0; COGPU_HOST_BIG_ENDIAN && at < bytes; at += unit)
        for (size_t i = 0; i < unit / 2; i++) {
            uint8_t byte = row[at + i];
            row[at + i] = row[at + unit - 1 - i];
            row[at + unit - 1 - i] = byte;
        }
}

void cogpu_cpu_predict(const cogpu_write_plan *plan, uint8_t *rows, uint32_t count,
                       size_t row_bytes, uint8_t *spare) {
    size_t size = cogpu_type_bytes(plan->type), samples = row_bytes / size;
    size_t unit = cogpu_type_number_bytes(plan->type);
    for (uint32_t y = 0; y < count; y++) {
        uint8_t *row = rows + y * row_bytes;
        if (plan->predictor == 3) {
            split_planes(row, samples, size, spare);
            difference_row(spare, row_bytes, plan->pixel_bytes / size, 1, row);
            continue;
        }
        if (plan->predictor == 2) {
            memcpy(spare, row, row_bytes);
            difference_row(spare, row_bytes, plan->pixel_bytes, size, row);
        }
        swap_to_little_endian(row, row_bytes, unit);
    }
}

/* ---- odd depths ---- */

#define PACK_BITS_ROW(type)                                                                        \
    for (size_t at = 0; at < row_bytes; at += sizeof(type)) {                                      \
        LOAD_SAMPLE(type, sample, row + at, 0);                                                    \
        to = append_bits(&buffer, sample, bits, to);                                               \
    }

void cogpu_cpu_pack_bits(const cogpu_write_plan *plan, uint8_t *rows, uint32_t count,
                         size_t row_bytes) {
    uint32_t bits = plan->encoding.format.bits;
    uint8_t *to = rows; /* never overtakes the samples that are read */
    for (uint32_t y = 0; y < count; y++) {
        const uint8_t *row = rows + y * row_bytes;
        struct bit_buffer buffer = {0, 0};
        if (cogpu_type_bytes(plan->type) == 1)
            PACK_BITS_ROW(uint8_t)
        else
            PACK_BITS_ROW(uint16_t)
        to = flush_bits(&buffer, to);
    }
}
