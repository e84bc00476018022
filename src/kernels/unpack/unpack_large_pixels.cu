/*
 * Unpacks blocks whose pixels have more than COGPU_UNPACK_PIXEL bytes, and so many samples that
 * they do not fit shared memory. A warp handles a few rows of a block, and lane l the bands l, l +
 * 32, ... of the raster: it goes along the row with one sample, and neighbouring lanes read
 * neighbouring bytes. Lanes share nothing. Slow where the raster is planar, but for any number of
 * bands.
 *
 *   pixel 0            pixel 1                lane 0: s0 of pixel 0, s0 of pixel 1, ...
 *   s0 s1 s2 ... s199  s0 s1 s2 ... s199      lane 1: s1 of pixel 0, ...
 */
#include "kernels/unpack/unpack_convert.h"
#include "kernels/unpack/unpack_samples.h"

/* Half `half` of a sample (complex samples of 16 bytes have two), in little-endian order. */
DEVICE_FN uint64_t load_large(const struct cogpu_gpu_pixels *pixels, const uint8_t *row,
                              uint64_t index, uint32_t half) {
    uint32_t bytes = pixels->size < 8 ? pixels->size : 8,
             flip = pixels->swap ? pixels->swap - 1 : 0;
    const uint8_t *at = row + index * pixels->size + 8 * half;
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[i ^ flip] << (8 * i);
    return value;
}

DEVICE_FN uint32_t load_large_bits(const struct cogpu_gpu_pixels *pixels, const uint8_t *row,
                                   uint64_t index) {
    uint64_t bit = index * pixels->bits, window = 0;
    const uint8_t *at = row + bit / 8;
    uint32_t shift = (uint32_t)(bit % 8), bytes = (shift + pixels->bits + 7) / 8;
    for (uint32_t i = 0; i < bytes; i++)
        window |= (uint64_t)at[i] << (56 - 8 * i);
    return widen_sample(pixels, (uint32_t)extract_bits(window, shift, pixels->bits));
}

DEVICE_FN void store_large(const struct cogpu_gpu_pixels *pixels, uint8_t *to, uint64_t sample,
                           uint32_t p) {
    uint32_t size = pixels->target_size < 8 ? pixels->target_size : 8;
    struct band_conversion conversion = conversion_of_band(pixels, p);
    store_sample(to, pixels->converts ? convert_sample(&conversion, sample) : sample, size);
}

/* Predictor 3: the sum that each plane begins with, for one sample of the pixel. */
DEVICE_FN void sum_plane_starts(const struct cogpu_gpu_pixels *pixels, const uint8_t *row,
                                uint32_t sample, uint32_t *sums) {
    uint32_t sum = 0, planes = pixels->bits / 8, width = pixels->block_width;
    const uint8_t *at = row + sample;
    UNROLL for (uint32_t k = 0; k < 8; k++) {
        sums[k] = sum;
        for (uint32_t x = 0; k < planes && x < width; x++, at += pixels->samples)
            sum += *at;
    }
}

DEVICE_FN uint64_t walk_interleave_bytes(const struct cogpu_gpu_pixels *pixels, const uint8_t *row,
                                         uint64_t index, uint32_t *sums) {
    size_t plane = (size_t)pixels->block_width * pixels->samples;
    uint32_t planes = pixels->bits / 8;
    uint64_t value = 0;
    UNROLL for (uint32_t k = 0; k < 8; k++) {
        if (k >= planes)
            continue;
        sums[k] += row[k * plane + index];
        value = value << 8 | (sums[k] & 255);
    }
    return pixels->is_float24 ? float24_to_float_bits((uint32_t)value) : value;
}

/* Unpacks one sample of all pixels of a row into band p. */
DEVICE_FN void unpack_large_row(const struct cogpu_gpu_pixels *pixels,
                                const struct cogpu_unpack_block *block, const uint8_t *row,
                                uint32_t sample, uint32_t p, uint8_t *to) {
    bool is_bits = pixels->bits != 8 * pixels->size;
    uint32_t predictor = pixels->predictor, end = block->source_x + block->width;
    uint32_t sums[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    uint64_t sum = 0;
    if (predictor == 3)
        sum_plane_starts(pixels, row, sample, sums);
    for (uint32_t x = predictor == 1 ? block->source_x : 0; x < end; x++) {
        uint64_t index = (uint64_t)x * pixels->samples + sample;
        uint64_t value = predictor == 3 ? walk_interleave_bytes(pixels, row, index, sums)
                         : is_bits      ? load_large_bits(pixels, row, index)
                                        : load_large(pixels, row, index, 0);
        if (predictor == 2)
            value = sum += value;
        if (predictor == 2 && pixels->size < 8)
            value &= (1ull << 8 * pixels->size) - 1;
        if (x < block->source_x)
            continue;
        store_large(pixels, to, value, p);
        if (pixels->size == 16)
            store_large(pixels, to + 8, load_large(pixels, row, index, 1), p);
        to += pixels->stride_x;
    }
}

DEVICE_FN void fill_large_row(const struct cogpu_gpu_pixels *pixels,
                              const struct cogpu_unpack_block *block, uint32_t p, uint8_t *to) {
    uint64_t half[2] = {0, 0};
    UNROLL for (uint32_t i = 0; i < 16; i++) {
        half[i / 8] |= i < pixels->size ? (uint64_t)pixels->fill[i] << (8 * (i % 8)) : 0;
    }
    for (uint32_t x = 0; x < block->width; x++, to += pixels->stride_x) {
        store_large(pixels, to, half[0], p);
        if (pixels->size == 16)
            store_large(pixels, to + 8, half[1], p);
    }
}

KERNEL(cogpu_kernel_unpack_large_pixels, struct cogpu_unpack_args, struct nothing_shared, 128, 8) {
    const struct cogpu_gpu_pixels *pixels = &args->pixels;
    struct row_range range = rows_of_warp(args);
    if (range.row >= range.end)
        return;
    const struct cogpu_unpack_block block = args->blocks[range.block];
    for (; range.row < range.end; range.row++)
        for (uint32_t p = lane_index(); p < pixels->band_count; p += WARP) {
            uint32_t sample = pixels->bands_in_order ? p : band_of(pixels, p)->sample;
            uint8_t *to = pixels->data + args->blocks[range.block].raster +
                          (int64_t)p * pixels->stride_band +
                          (int64_t)(block.target_y + range.row) * pixels->stride_y +
                          (int64_t)block.target_x * pixels->stride_x;
            if (block.decoded == COGPU_UNPACK_FILL)
                fill_large_row(pixels, &block, p, to);
            else
                unpack_large_row(pixels, &block,
                                 pixels->decoded + block.decoded +
                                     (size_t)(block.source_y + range.row) * pixels->row_bytes,
                                 sample, p, to);
        }
}
