/* Smaller and larger of two numbers, by the type that the caller computes in. */
#ifndef COGPU_BASE_MATH_H
#define COGPU_BASE_MATH_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static inline uint32_t max_u32(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static inline size_t min_size(size_t a, size_t b) {
    return a < b ? a : b;
}

#endif
