/*
 * Faults of allocations that the codec libraries make (libzstd, libLerc, ...), in addition to those
 * of fault_injection.h. They are off until a suite turns them on.
 */
#ifndef COGPU_TESTS_LIBRARY_FAULTS_H
#define COGPU_TESTS_LIBRARY_FAULTS_H

#include "faults/fault_injection.h"

/* From here on an armed ALLOCATION counts calls of the codec libraries too. */
void turn_library_faults_on(void);

void turn_library_faults_off(void);

/* libwebp 1.2.4 survives no failed allocation while it decodes: true turns faults off meanwhile. */
extern bool webp_decodes_without_faults;

#endif
