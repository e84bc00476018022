/* Planes, packed bits and CMYK in shared memory become samples, by the lanes of one warp. */
#ifndef COGPU_KERNELS_UNPACK_UNPACK_SAMPLES_H
#define COGPU_KERNELS_UNPACK_UNPACK_SAMPLES_H

#include "kernels/unpack/unpack_common.h"
#include "pixel/bits.h"
#include "pixel/half.h"

/* ---- predictor 3: planes of bytes to samples ---- */

/* Four samples of four bytes from four words of planes; `lowest` has the least significant bytes. A
 * transposition of 4 x 4 bytes by eight byte permutes. */
DEVICE_FN words4 interleave_bytes(uint32_t lowest, uint32_t low, uint32_t high, uint32_t highest) {
    uint32_t low01 = pick_bytes(lowest, low, 0x5140), low23 = pick_bytes(lowest, low, 0x7362);
    uint32_t high01 = pick_bytes(high, highest, 0x5140), high23 = pick_bytes(high, highest, 0x7362);
    words4 samples = {pick_bytes(low01, high01, 0x5410), pick_bytes(low01, high01, 0x7632),
                      pick_bytes(low23, high23, 0x5410), pick_bytes(low23, high23, 0x7632)};
    return samples;
}

/* Planes `pitch` bytes apart to samples, four at a time by each lane. Up to three more are written.
 */
DEVICE_FN void interleave_planes(const uint8_t *planes, uint32_t pitch, uint32_t count,
                                 uint32_t planes_count, uint8_t *to) {
    for (uint32_t i = 4 * lane_index(); i < count; i += 4 * WARP) {
        uint32_t word[8];
        UNROLL for (uint32_t k = 0; k < 8; k++) {
            word[k] = k < planes_count ? load_u32_aligned(planes + k * pitch + i) : 0;
        }
        if (planes_count == 4) {
            store_words4(to + 4 * i, interleave_bytes(word[3], word[2], word[1], word[0]));
        } else if (planes_count == 8) {
            words4 low = interleave_bytes(word[7], word[6], word[5], word[4]);
            words4 high = interleave_bytes(word[3], word[2], word[1], word[0]);
            words4 first = {low.x, high.x, low.y, high.y}, second = {low.z, high.z, low.w, high.w};
            store_words4(to + 8 * i, first);
            store_words4(to + 8 * i + 16, second);
        } else if (planes_count == 3) {
            words4 v = interleave_bytes(word[2], word[1], word[0], 0);
            words4 wide = {float24_to_float_bits(v.x), float24_to_float_bits(v.y),
                           float24_to_float_bits(v.z), float24_to_float_bits(v.w)};
            store_words4(to + 4 * i, wide);
        } else {
            store_aligned(to + 2 * i, pick_bytes(word[1], word[0], 0x5140), 4);
            store_aligned(to + 2 * i + 4, pick_bytes(word[1], word[0], 0x7362), 4);
        }
    }
    sync_warp();
}

/* ---- odd depths ---- */

/* From two aligned words of a row, most significant bit first. */
DEVICE_FN uint32_t load_bits(const uint8_t *row, uint32_t bit, uint32_t bits) {
    const uint8_t *at = row + bit / 32 * 4;
    uint32_t high = swap_word(load_u32_aligned(at)), low = swap_word(load_u32_aligned(at + 4));
    return funnel_left(low, high, bit % 32) >> (32 - bits);
}

/* Bits of the file as a sample of the type. */
DEVICE_FN uint32_t widen_sample(const struct cogpu_gpu_pixels *pixels, uint32_t value) {
    /* Floats of 24 bits follow the file's byte order. Integers of 24 bits are most significant bit
     * first, but GDAL swaps their bytes in big-endian files. */
    bool is_swapped = pixels->is_float24 ? pixels->swap == 0 : pixels->swap == 3;
    if (is_swapped)
        value = swap_word(value) >> 8;
    if (pixels->is_float24)
        return float24_to_float_bits(value);
    return (uint32_t)sign_extend(value, pixels->bits, pixels->is_signed);
}

DEVICE_FN void widen_row(const struct cogpu_gpu_pixels *pixels, const uint8_t *row,
                         uint32_t first_bit, uint32_t count, uint8_t *to) {
    uint32_t bits = pixels->bits, size = pixels->size;
    for (uint32_t i = lane_index(); i < count; i += WARP)
        store_aligned(to + i * size,
                      widen_sample(pixels, load_bits(row, first_bit + i * bits, bits)), size);
    sync_warp();
}

/* ---- CMYK ---- */

DEVICE_FN void cmyk_to_rgba(uint8_t *row, uint32_t count) {
    for (uint32_t i = lane_index(); i < count; i += WARP) {
        uint32_t pixel = load_u32_aligned(row + 4 * i), light = 255 - (pixel >> 24);
        uint32_t rgba = 0xFF000000u;
        UNROLL for (uint32_t k = 0; k < 24; k += 8) {
            rgba |= light * (255 - (pixel >> k & 255)) / 255 << k;
        }
        store_aligned(row + 4 * i, rgba, 4);
    }
    sync_warp();
}

#endif
