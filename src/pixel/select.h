/*
 * Min, max, median and mode select one of the valid samples instead of weighing them. They work on
 * keys: unsigned integers in the order of the samples, so that 64-bit integers lose nothing.
 *
 *   unsigned   key = sample
 *   signed     key = sample with its sign bit flipped
 *   float      the same, and for negative numbers all other bits flipped too; -0 counts as +0
 *
 * Mode: of equally frequent keys, the one that reached that count first wins.
 * Median: of an even number, the mean of the two in the middle; integers round away from zero.
 */
#ifndef COGPU_PIXEL_SELECT_H
#define COGPU_PIXEL_SELECT_H

#include "pixel/resample.h"

PIXEL_FN uint64_t sample_to_key(uint32_t type, uint64_t sample) {
    uint64_t all = UINT64_MAX >> (64 - 8 * sample_bytes(type)), sign = all ^ all >> 1;
    if (!sample_is_float(type))
        return sample_is_signed(type) ? sample ^ sign : sample;
    sample = sample == sign ? 0 : sample;
    return sample & sign ? ~sample & all : sample ^ sign;
}

PIXEL_FN uint64_t key_to_sample(uint32_t type, uint64_t key) {
    uint64_t all = UINT64_MAX >> (64 - 8 * sample_bytes(type)), sign = all ^ all >> 1;
    if (!sample_is_float(type))
        return sample_to_key(type, key);
    return key & sign ? key ^ sign : ~key & all;
}

/* The median, where `low` and `high` are the two keys in the middle, or the same one twice. */
PIXEL_FN uint64_t median_of_keys(uint32_t type, bool has_nodata, uint64_t nodata,
                                 uint64_t substitute, uint64_t low, uint64_t high) {
    uint64_t middle = low + (high - low) / 2, sample;
    if (low == high || !sample_is_float(type)) {
        middle += (high - low) % 2 && middle >= sample_to_key(type, 0);
        sample = key_to_sample(type, middle);
    } else {
        double a = sample_to_double(type, key_to_sample(type, low));
        double b = sample_to_double(type, key_to_sample(type, high));
        sample = float_result_to_sample(type, a / 2 + b / 2);
    }
    return has_nodata && sample == nodata ? substitute : sample;
}

#endif
