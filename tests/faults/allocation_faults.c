#include "faults/allocation_faults.h"

void try_each_allocation(cogpu_status (*attempt)(size_t *got, cogpu_error *error), uint8_t *out,
                         const uint8_t *expected, size_t bytes) {
    long n = 0;
    bool is_through = false;
    while (!is_through && ++n < 1000) {
        size_t got = 0;
        cogpu_error error;
        memset(out, 0, bytes);
        atomic_store(&live_allocations, 0);
        arm_fault(ALLOCATION, n);
        cogpu_status status = attempt(&got, &error);
        is_through = atomic_load(&faults_fired) == 0;
        arm_fault(NO_FAULT, 0);
        CHECK(atomic_load(&live_allocations) == 0);
        CHECK(is_through ? status == COGPU_OK && got == bytes && memcmp(out, expected, bytes) == 0
                         : status == COGPU_OUT_OF_MEMORY && strstr(error.message, "out of memory"));
    }
    CHECK(is_through && n > 2);
}
