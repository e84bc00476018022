/*
 * Costs of symbols in sixteenths of a bit, for the optimal parse.
 *
 * A symbol that occurs `count` times among `total` costs its entropy, log2(total / count) bits.
 * Integer arithmetic only: every device gives the same costs, hence the same stream.
 */
#ifndef COGPU_KERNELS_ENCODE_COST_H
#define COGPU_KERNELS_ENCODE_COST_H

#include "kernels/encode/part.h"

enum {
    BIT_COST = 16, /* the cost of one bit */
    SYMBOL_COST_MAX = 15 * BIT_COST
};

/*
 * log2(value) in units of 1 / BIT_COST. With value = 2^top (1 + x), 0 <= x < 1:
 *
 *     log2(1 + x) = x + 0.344 x (1 - x)        error below 0.008; x in 16-bit fixed point
 */
DEVICE_FN uint32_t log2_cost(uint32_t value) {
    const uint32_t top = log2_floor(value);
    const uint32_t x = (value << (31 - top) & 0x7FFFFFFF) >> 15;
    const uint32_t correction = (x * (0x10000 - x) >> 16) * 22544 >> 16; /* 0.344 * 2^16 */
    return top * BIT_COST + ((x + correction) * BIT_COST >> 16);
}

/* A symbol that has not occurred costs one bit more than one that occurs once. */
DEVICE_FN uint32_t symbol_cost(uint32_t count, uint32_t total) {
    const uint32_t all = log2_cost(total | 1);
    return min_u32(count > 0 ? all - log2_cost(count) : all + BIT_COST, SYMBOL_COST_MAX);
}

/* Copies of a histogram in shared memory: fewer warps add to the same word. */
enum { HISTOGRAM_COPIES = 4 };

/*
 * Counts the bytes that will probably become literals: those that do not continue a run, since
 * matches cover runs. In "aaaab" it counts a, a and b: a third equal byte is not counted.
 *
 * `histograms` has HISTOGRAM_COPIES * BYTE_VALUES counts, all zero. The caller synchronises.
 */
DEVICE_FN void count_bytes_outside_runs(const uint32_t *words, uint32_t bytes,
                                        uint32_t *histograms) {
    uint32_t *counts = histograms + warp_index() % HISTOGRAM_COPIES * BYTE_VALUES;
    for (uint32_t index = thread_index(); 4 * index < bytes; index += PART_THREADS) {
        const uint32_t word = padded_word(words, index);
        const uint32_t previous = index > 0 ? padded_word(words, index - 1) : ~word;
        const uint64_t both = (uint64_t)word << 32 | previous;
        for (uint32_t j = 0; j < 4 && 4 * index + j < bytes; j++) {
            const uint32_t byte = word >> 8 * j & 0xFF;
            if ((both >> (16 + 8 * j) & 0xFFFF) != byte * 0x0101) /* the two bytes before it */
                atomic_add(&counts[byte], 1);
        }
    }
}

/* The count of one byte value in all copies. */
DEVICE_FN uint32_t sum_histograms(const uint32_t *histograms, uint32_t byte) {
    uint32_t count = 0;
    for (uint32_t copy = 0; copy < HISTOGRAM_COPIES; copy++)
        count += histograms[copy * BYTE_VALUES + byte];
    return count;
}

#endif
