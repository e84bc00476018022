/*
 * What every header of pixel/ is built on: arithmetic of single samples, written once as C11 that
 * is CUDA C++ as well. cpu/ calls these functions in loops over rows, kernels/ in threads.
 *
 * A sample is a uint64_t here: its bits, zero-extended. The sample type is a cogpu_type. Callers
 * pass it as a constant wherever speed matters, so that switches over it fold away.
 *
 * CPU and GPU give the same bits because every operation is rounded on its own: kernels are
 * compiled with -fmad=false, and no function here relies on a fused multiply-add.
 */
#ifndef COGPU_PIXEL_PIXEL_H
#define COGPU_PIXEL_PIXEL_H

#include "cogpu.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define PIXEL_FN static __device__ __forceinline__
#else
#define PIXEL_FN static inline __attribute__((always_inline, unused))
#endif

PIXEL_FN float float_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

PIXEL_FN uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

PIXEL_FN double double_from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

PIXEL_FN uint64_t double_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

#endif
