/* Arithmetic that the kernels of all encoders use. */
#ifndef COGPU_KERNELS_ENCODE_COMMON_H
#define COGPU_KERNELS_ENCODE_COMMON_H

#include "kernels/simt.h"

/* Index of the highest set bit; `value` is not 0. */
DEVICE_FN uint32_t log2_floor(uint32_t value) {
    return 31 - leading_zeros(value);
}

/* The lanes below this one, as a mask for warp_ballot and warp_match. */
DEVICE_FN uint32_t lanes_below(void) {
    return (1u << lane_index()) - 1;
}

/* A length or distance as both formats write it: a symbol of an alphabet, then extra bits. */
struct coded_value {
    uint32_t number; /* of the symbol */
    uint32_t extra_bits, extra;
};

#endif
