/*
 * Composition of one pixel from the samples of several layers (plan/composite.h).
 *
 *   FIRST, LAST   by validity alone
 *   MIN, MAX      of equal samples the first; -0 equals +0
 *   MEAN          sum and quotient in double; integers round half away from zero and saturate
 *   MEDIAN        of an even number the lower of the two in the middle; -0 becomes +0
 *   COUNT         saturates
 *
 * A valid NaN never wins against a number: MIN and MAX keep the number, MEAN and MEDIAN leave the
 * NaN out. Where all valid samples are NaN the result is NaN. COUNT counts it.
 */
#ifndef COGPU_PIXEL_COMPOSITE_H
#define COGPU_PIXEL_COMPOSITE_H

#include "pixel/select.h"

/* ---- MIN and MAX ---- */

PIXEL_FN bool composite_is_nan(uint32_t type, uint64_t sample) {
    return sample_is_float(type) && sample_is_nan(type, sample);
}

/* Orders samples by the method: the smaller rank wins. NaN has the largest one. */
PIXEL_FN uint64_t composite_rank(uint32_t method, uint32_t type, uint64_t sample) {
    uint64_t key = sample_to_key(type, sample);
    return composite_is_nan(type, sample)  ? UINT64_MAX
           : method == COGPU_COMPOSITE_MAX ? UINT64_MAX - 1 - key
                                           : key;
}

/* Does a valid sample replace the pixel's? */
PIXEL_FN bool composite_replaces(uint32_t method, uint32_t type, bool was_valid, uint64_t old,
                                 uint64_t sample) {
    if (method == COGPU_COMPOSITE_FIRST)
        return !was_valid;
    if (method == COGPU_COMPOSITE_LAST)
        return true;
    return !was_valid | (composite_rank(method, type, sample) < composite_rank(method, type, old));
}

/* ---- MEAN and COUNT ---- */

/* A number as a sample: integers round half away from zero and saturate. */
PIXEL_FN uint64_t composite_number_to_sample(uint32_t type, double value) {
    switch (type) {
    case COGPU_TYPE_U8:
        return round_int32(value, 0, UINT8_MAX);
    case COGPU_TYPE_I8:
        return round_int32(value, INT8_MIN, INT8_MAX) & UINT8_MAX;
    case COGPU_TYPE_U16:
        return round_int32(value, 0, UINT16_MAX);
    case COGPU_TYPE_I16:
        return round_int32(value, INT16_MIN, INT16_MAX) & UINT16_MAX;
    case COGPU_TYPE_U32:
        return round_int32(value, 0, UINT32_MAX);
    case COGPU_TYPE_I32:
        return round_int32(value, INT32_MIN, INT32_MAX);
    case COGPU_TYPE_U64:
    case COGPU_TYPE_I64:
        return round_int64(value, type == COGPU_TYPE_I64);
    default:
        return float_result_to_sample(type, value);
    }
}

/* `count` samples are no NaN; 0: all are. */
PIXEL_FN uint64_t composite_mean(uint32_t type, double sum, uint32_t count) {
    return count ? composite_number_to_sample(type, sum / count)
                 : float_result_to_sample(type, (double)NAN);
}

/* ---- MEDIAN ---- */

/* Samples of one pixel, aligned to their size and `stride` bytes apart. None is NaN. */
struct composite_stack {
    const uint8_t *samples;
    uint64_t stride;
    uint32_t count, type;
};

PIXEL_FN uint64_t composite_stack_key(const struct composite_stack *stack, uint32_t i) {
    const uint8_t *at = stack->samples + i * stack->stride;
    uint16_t sample16 = 0;
    uint32_t sample32 = 0;
    uint64_t sample64 = 0;
    switch (sample_bytes(stack->type)) {
    case 1:
        return sample_to_key(stack->type, *at);
    case 2:
        memcpy(&sample16, __builtin_assume_aligned(at, 2), 2);
        return sample_to_key(stack->type, sample16);
    case 4:
        memcpy(&sample32, __builtin_assume_aligned(at, 4), 4);
        return sample_to_key(stack->type, sample32);
    default:
        memcpy(&sample64, __builtin_assume_aligned(at, 8), 8);
        return sample_to_key(stack->type, sample64);
    }
}

/* The middle one, in the order of arrival, of the `inside` keys between `low` and `high`. */
PIXEL_FN uint64_t composite_pivot(const struct composite_stack *stack, uint64_t low, uint64_t high,
                                  uint32_t inside) {
    uint64_t pivot = low;
    uint32_t left = inside / 2 + 1;
    for (uint32_t i = 0; i < stack->count && left > 0; i++) {
        uint64_t key = composite_stack_key(stack, i);
        bool is_inside = key >= low && key <= high;
        pivot = is_inside ? key : pivot;
        left -= is_inside;
    }
    return pivot;
}

/*
 * Quickselect without memory: the samples stay where they are, and each pass counts those below a
 * pivot. Keys that can still be the median lie in [low, high]; `rank` is that of the median among
 * them. A pass drops at least the pivot, so passes end; their number is about log2(count) as a
 * rule.
 */
PIXEL_FN uint64_t composite_median(const struct composite_stack *stack) {
    uint64_t low = 0, high = UINT64_MAX;
    uint32_t inside = stack->count, rank = (stack->count - 1) / 2;
    if (stack->count == 0)
        return float_result_to_sample(stack->type, (double)NAN);
    while (inside > 1) {
        uint64_t pivot = composite_pivot(stack, low, high, inside);
        uint32_t below = 0, equal = 0;
        for (uint32_t i = 0; i < stack->count; i++) {
            uint64_t key = composite_stack_key(stack, i);
            below += key >= low && key < pivot;
            equal += key == pivot;
        }
        if (rank < below) {
            high = pivot - 1;
            inside = below;
        } else if (rank < below + equal) {
            return key_to_sample(stack->type, pivot);
        } else {
            low = pivot + 1;
            rank -= below + equal;
            inside -= below + equal;
        }
    }
    return key_to_sample(stack->type, composite_pivot(stack, low, high, inside));
}

#endif
