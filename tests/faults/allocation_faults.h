/* A decode or an encode for which memory ends: each of its allocations fails in turn. */
#ifndef COGPU_TESTS_ALLOCATION_FAULTS_H
#define COGPU_TESTS_ALLOCATION_FAULTS_H

#include "faults/fault_injection.h"
#include "support/codec_test.h"

/* The n-th allocation of the attempt fails, for n = 1, 2, ... until none does. The status is
 * COGPU_OUT_OF_MEMORY and nothing leaks; without a fault `out` becomes `expected`. */
void try_each_allocation(cogpu_status (*attempt)(size_t *got, cogpu_error *error), uint8_t *out,
                         const uint8_t *expected, size_t bytes);

#endif
