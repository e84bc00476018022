/* Arithmetic on sizes from a file: each returns false if the result overflows. */
#ifndef COGPU_BASE_CHECKED_H
#define COGPU_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool checked_add(uint64_t a, uint64_t b, uint64_t *sum) {
    return !__builtin_add_overflow(a, b, sum);
}

static inline bool checked_mul(uint64_t a, uint64_t b, uint64_t *product) {
    return !__builtin_mul_overflow(a, b, product);
}

/* a / unit, rounded up. */
static inline uint64_t divide_up(uint64_t a, uint64_t unit) {
    return a / unit + (a % unit != 0);
}

#endif
