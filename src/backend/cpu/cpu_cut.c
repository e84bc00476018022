/*
 * Takes a caller's rows, at any strides, and hands on decoded bytes of blocks, or packed rows for a
 * writer that has to keep them.
 */
#include "backend/cpu/cpu_cut.h"

#include "base/bytes.h"

#include <string.h>

/* ---- gather -------------------------------------------------------------------------------- */

#define COPY_SAMPLES(type)                                                                         \
    for (uint32_t x = 0; x < count; x++, from += from_stride, to += to_stride)                     \
        memcpy(to, from, sizeof(type));

/* One row of one band. */
static void copy_samples(const uint8_t *from, int64_t from_stride, uint8_t *to, int64_t to_stride,
                         uint32_t count, size_t size) {
    if (from_stride == (int64_t)size && to_stride == (int64_t)size) {
        memcpy(to, from, size * count);
        return;
    }
    switch (size) {
    case 1:
        COPY_SAMPLES(uint8_t) break;
    case 2:
        COPY_SAMPLES(uint16_t) break;
    case 4:
        COPY_SAMPLES(uint32_t) break;
    case 8:
        COPY_SAMPLES(uint64_t) break;
    default:
        for (uint32_t x = 0; x < count; x++, from += from_stride, to += to_stride)
            memcpy(to, from, size);
    }
}

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
            copy_samples(row + b * raster->stride_band, raster->stride_x, to + b * size,
                         (int64_t)pixel, raster->width, size);
    }
}

void cogpu_cpu_gather(const cogpu_raster *raster, uint32_t first, uint32_t rows, bool is_planar,
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

/* ---- cut ----------------------------------------------------------------------------------- */

/* The first pixel of so many bytes goes to all that follow. */
static void repeat_pixel(uint8_t *pixels, size_t pixel, size_t bytes) {
    for (size_t done = pixel, count; done < bytes; done += count) {
        count = done < bytes - done ? done : bytes - done;
        memcpy(pixels + done, pixels, count);
    }
}

/* Samples that are NaN become nodata. */
static void replace_nan(const cogpu_write_plan *plan, uint8_t *samples, size_t bytes) {
    const size_t size = cogpu_type_bytes(plan->type);
    const uint64_t infinity = plan->type == COGPU_F16   ? 0x7C00
                              : plan->type == COGPU_F32 ? 0x7F800000
                                                        : 0x7FF0000000000000;
    const uint64_t magnitude = UINT64_MAX >> (65 - 8 * size);
    for (size_t at = 0; at < bytes; at += size) {
        uint64_t sample = 0;
        memcpy(&sample, samples + at, size);
        if ((sample & magnitude) > infinity)
            memcpy(samples + at, plan->fill, size);
    }
}

void cogpu_cpu_cut(const cogpu_write_plan *plan, const cogpu_grid *grid,
                   const cogpu_new_block *block, const cogpu_raster *from, uint8_t *to) {
    size_t pixel = plan->pixel_bytes, inside = block->width * pixel;
    size_t block_row = grid->block_width * pixel;
    pack_rows(from, 0, block->height, block_row, to);
    for (uint32_t y = 0; y < block->rows; y++) {
        uint8_t *row = to + y * block_row;
        if (y < block->height) {
            if (plan->replaces_nan)
                replace_nan(plan, row, inside);
            repeat_pixel(row + inside - pixel, pixel, block_row - inside + pixel);
        } else if (plan->codec->takes_predictor) {
            memcpy(row, row - pixel, pixel);
            repeat_pixel(row, pixel, block_row);
        } else {
            memcpy(row, row - block_row, block_row);
        }
    }
}

void cogpu_cpu_cut_mask(const cogpu_grid *grid, const cogpu_new_block *block,
                        const cogpu_raster *from, uint8_t *to) {
    size_t packed = (grid->block_width + 7) / 8;
    memset(to, 0, packed * block->rows);
    for (uint32_t y = 0; y < block->height; y++) {
        const uint8_t *at = (const uint8_t *)from->data + y * from->stride_y;
        for (uint32_t x = 0; x < block->width; x++, at += from->stride_x)
            to[y * packed + x / 8] |= (uint8_t)((*at != 0) << (7 - x % 8));
    }
}

static bool is_nan(const uint8_t *sample, cogpu_type type) {
    float single;
    double wide;
    switch (type) {
    case COGPU_F16:
        return (load_u16(sample, COGPU_HOST_BIG_ENDIAN) & 0x7FFF) > 0x7C00;
    case COGPU_F32:
        memcpy(&single, sample, sizeof single);
        return single != single;
    case COGPU_F64:
        memcpy(&wide, sample, sizeof wide);
        return wide != wide;
    default:
        return false;
    }
}

bool cogpu_cpu_is_uniform(const uint8_t *samples, size_t bytes, cogpu_type type,
                          const uint8_t *sample) {
    size_t size = cogpu_type_bytes(type);
    if (is_nan(sample, type)) {
        for (size_t at = 0; at < bytes; at += size)
            if (!is_nan(samples + at, type))
                return false;
        return true;
    }
    return memcmp(samples, sample, size) == 0 && memcmp(samples, samples + size, bytes - size) == 0;
}

/* ---- predict ------------------------------------------------------------------------------- */

/* Loops over elements of a constant size, from one place to another, which compilers make vectors
 * of. */
#define SUBTRACT(type)                                                                             \
    for (size_t at = pixel; at + sizeof(type) <= bytes; at += sizeof(type)) {                      \
        type here, before;                                                                         \
        memcpy(&here, from + at, sizeof here);                                                     \
        memcpy(&before, from + at - pixel, sizeof before);                                         \
        here = (type)(here - before);                                                              \
        memcpy(to + at, &here, sizeof here);                                                       \
    }

/* Each element of `unit` bytes becomes its difference from the one a pixel before. */
static void subtract(const uint8_t *restrict from, size_t bytes, size_t pixel, size_t unit,
                     uint8_t *restrict to) {
    memcpy(to, from, pixel);
    switch (unit) {
    case 1:
        SUBTRACT(uint8_t) break;
    case 2:
        SUBTRACT(uint16_t) break;
    case 4:
        SUBTRACT(uint32_t) break;
    default:
        SUBTRACT(uint64_t) break;
    }
}

#define SCATTER(size)                                                                              \
    for (size_t k = 0; k < (size); k++) {                                                          \
        const uint8_t *byte = row + (COGPU_HOST_BIG_ENDIAN ? k : (size)-1 - k);                    \
        uint8_t *plane = planes + k * samples;                                                     \
        for (size_t i = 0; i < samples; i++)                                                       \
            plane[i] = byte[i * (size)];                                                           \
    }

/* Byte k of every float goes to plane k, the most significant first. */
static void scatter(const uint8_t *restrict row, size_t samples, size_t size,
                    uint8_t *restrict planes) {
    switch (size) {
    case 2:
        SCATTER(2) break;
    case 4:
        SCATTER(4) break;
    default:
        SCATTER(8) break;
    }
}

/* TIFF files of ours are little endian. Parts of complex samples are swapped each. */
static void order(uint8_t *row, size_t bytes, size_t unit) {
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
    size_t unit = plan->type >= COGPU_CI16 ? size / 2 : size;
    for (uint32_t y = 0; y < count; y++) {
        uint8_t *row = rows + y * row_bytes;
        if (plan->predictor == 3) {
            scatter(row, samples, size, spare);
            subtract(spare, row_bytes, plan->pixel_bytes / size, 1, row);
            continue;
        }
        if (plan->predictor == 2) {
            memcpy(spare, row, row_bytes);
            subtract(spare, row_bytes, plan->pixel_bytes, size, row);
        }
        order(row, row_bytes, unit);
    }
}

/* ---- pack ---------------------------------------------------------------------------------- */

void cogpu_cpu_pack(const cogpu_write_plan *plan, uint8_t *rows, uint32_t count, size_t row_bytes) {
    size_t size = cogpu_type_bytes(plan->type);
    uint32_t bits = plan->encoding.format.bits, most = (1u << bits) - 1;
    uint8_t *to = rows; /* never beyond what is read */
    for (uint32_t y = 0; y < count; y++) {
        const uint8_t *row = rows + y * row_bytes;
        uint32_t held = 0, held_bits = 0;
        for (size_t at = 0; at < row_bytes; at += size) {
            uint32_t sample = size == 1 ? row[at] : load_u16(row + at, COGPU_HOST_BIG_ENDIAN);
            held = held << bits | (sample < most ? sample : most);
            for (held_bits += bits; held_bits >= 8; held_bits -= 8)
                *to++ = (uint8_t)(held >> (held_bits - 8));
        }
        if (held_bits)
            *to++ = (uint8_t)(held << (8 - held_bits));
    }
}
