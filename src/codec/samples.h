/* Stores samples of decoders that return integers, as the rows of a block have them. */
#ifndef COGPU_CODEC_SAMPLES_H
#define COGPU_CODEC_SAMPLES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Writes sample `index` of a row: depths of 8, 16 and 32 bits in the machine's byte order, others
 * as a stream of bits, most significant first, into a row that is zero at the start. */
static inline void cogpu_put_sample(uint8_t *row, size_t index, uint32_t bits, uint32_t value) {
    if (bits == 8) {
        row[index] = (uint8_t)value;
    } else if (bits == 16) {
        uint16_t narrow = (uint16_t)value;
        memcpy(row + 2 * index, &narrow, sizeof narrow);
    } else if (bits == 32) {
        memcpy(row + 4 * index, &value, sizeof value);
    } else {
        size_t bit = index * bits;
        for (uint32_t i = bits; i-- > 0; bit++)
            row[bit / 8] |= (uint8_t)((value >> i & 1u) << (7 - bit % 8));
    }
}

#endif
