/* Host side of the encoders: how many parts the TIFF blocks of a batch are split into. */
#ifndef COGPU_KERNELS_ENCODE_PART_COUNT_H
#define COGPU_KERNELS_ENCODE_PART_COUNT_H

#include "base/checked.h"
#include "base/math.h"
#include "kernels/encoder.h"

/* Decoded bytes of the largest block, at least 1. */
static inline uint32_t cogpu_max_block_bytes(const cogpu_raw_block *blocks, uint32_t count) {
    uint32_t largest = 1;
    for (uint32_t i = 0; i < count; i++)
        largest = max_u32(largest, blocks[i].in_bytes);
    return largest;
}

/* Parts of the largest block. Tables and grids have this many entries for each TIFF block. */
static inline uint32_t cogpu_max_parts(const cogpu_raw_block *blocks, uint32_t count,
                                       uint32_t part_bytes) {
    return (uint32_t)divide_up(cogpu_max_block_bytes(blocks, count), part_bytes);
}

#endif
