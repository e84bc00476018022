/* A decode or an encode for which memory ends: each of its allocations fails in turn. */
#ifndef COGPU_TESTS_CODEC_FAULTS_H
#define COGPU_TESTS_CODEC_FAULTS_H

#include "codec_test.h"
#include "faults/world.h"

/* The n-th allocation of the attempt fails, for n = 1, 2, ... until none does. That is told as such
 * and leaks nothing; without a fault `out` becomes `expected`. */
static inline void try_each_allocation(cogpu_status (*attempt)(size_t *got, cogpu_error *error),
                                       uint8_t *out, const uint8_t *expected, size_t bytes) {
    long n = 0;
    bool is_through = false;
    while (!is_through && ++n < 1000) {
        size_t got = 0;
        cogpu_error error;
        memset(out, 0, bytes);
        atomic_store(&live, 0);
        arm(ALLOCATION, n);
        cogpu_status status = attempt(&got, &error);
        is_through = atomic_load(&fired) == 0;
        arm(NO_FAULT, 0);
        CHECK(atomic_load(&live) == 0);
        CHECK(is_through ? status == COGPU_OK && got == bytes && memcmp(out, expected, bytes) == 0
                         : status == COGPU_MEMORY && strstr(error.message, "out of memory"));
    }
    CHECK(is_through && n > 2);
}

#endif
