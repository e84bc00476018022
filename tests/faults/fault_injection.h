/*
 * Faults on demand: the n-th allocation or the n-th read of a file fails, or all from there on.
 *
 * The linker redirects the calls of malloc, free, pread and their kin that the objects of
 * test_faults make to fault_injection.c (-Wl,--wrap). Nothing fails until a test arms a fault. A
 * typical test arms call 1, 2, 3, ... until no fault fires any more:
 *
 *     for (long n = 1; !is_through; n++) {
 *         arm_fault(ALLOCATION, n);
 *         status = read_file();
 *         is_through = atomic_load(&faults_fired) == 0;
 *         arm_fault(NO_FAULT, 0);
 *         CHECK(atomic_load(&live_allocations) == 0);
 *     }
 */
#ifndef COGPU_TESTS_FAULT_INJECTION_H
#define COGPU_TESTS_FAULT_INJECTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum fault { NO_FAULT, ALLOCATION, READ_FAILS, READ_IS_SHORT };

extern enum fault armed_fault;
extern atomic_long failing_call; /* its number; 0: none fails */
extern atomic_long faults_fired;
extern atomic_long live_allocations;
extern bool fails_for_good;               /* all calls from the failing one on */
extern _Thread_local bool faults_are_off; /* for what this thread does now */

/* Call number `call` of the kind fails, counted from here on. */
void arm_fault(enum fault kind, long call);

/* Nothing is armed, and no setting of an earlier suite is left. */
void reset_faults(void);

/* Counts a call of the kind; true if it is to fail. */
bool call_fails(enum fault kind);

#endif
