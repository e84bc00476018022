/*
 * Samples of odd depths: BitsPerSample below the bits of the type (TIFF 6.0, BitsPerSample and
 * FillOrder 1). Samples follow each other without gaps, the most significant bit first; rows begin
 * at bytes. Three samples of 12 bits:
 *
 *   byte      0         1         2         3         4
 *          aaaaaaaa  aaaabbbb  bbbbbbbb  cccccccc  cccc0000
 */
#ifndef COGPU_PIXEL_BITS_H
#define COGPU_PIXEL_BITS_H

#include "pixel/pixel.h"

/* `bits` bits after the first `skip` of a big-endian window of 64. `skip` is at most 7. */
PIXEL_FN uint64_t extract_bits(uint64_t window, uint32_t skip, uint32_t bits) {
    return window << skip >> (64 - bits);
}

PIXEL_FN uint64_t sign_extend(uint64_t value, uint32_t bits, bool is_signed) {
    uint64_t sign = UINT64_C(1) << (bits - 1);
    return is_signed ? (value ^ sign) - sign : value;
}

/* Bits that are not yet a whole byte: the low `count` bits of `bits`. */
struct bit_buffer {
    uint32_t bits, count;
};

/* Appends a sample of 1 to 16 bits and stores whole bytes. Samples that do not fit saturate. */
PIXEL_FN uint8_t *append_bits(struct bit_buffer *buffer, uint32_t sample, uint32_t bits,
                              uint8_t *to) {
    uint32_t most = (1u << bits) - 1;
    buffer->bits = buffer->bits << bits | (sample < most ? sample : most);
    for (buffer->count += bits; buffer->count >= 8; buffer->count -= 8)
        *to++ = (uint8_t)(buffer->bits >> (buffer->count - 8));
    return to;
}

/* Fills the last byte of a row with zeros. */
PIXEL_FN uint8_t *flush_bits(const struct bit_buffer *buffer, uint8_t *to) {
    if (buffer->count > 0)
        *to++ = (uint8_t)(buffer->bits << (8 - buffer->count));
    return to;
}

#endif
