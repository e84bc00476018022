/*
 * An nvJPEG for tests, with host memory as device memory: the faults that a test orders, and counts
 * of calls. libjpeg decodes and encodes for it.
 */
#ifndef COGPU_TESTS_FAKE_NVJPEG_H
#define COGPU_TESTS_FAKE_NVJPEG_H

#include <stdint.h>

typedef struct fake_nvjpeg {
    /* Faults. 0: none. */
    int create_error, state_error, size_error, decode_error; /* status to return */
    int decode_fails_at; /* the n-th call alone, from 1 on, with decode_error; 0 = all */
    int encode_error, encode_fails_at; /* the n-th call that has to do with encoding */

    /* Counts. */
    int handles, states, encoders; /* that are open; parameters count as an encoder */
    int sizes, decodes;            /* calls */
    int encode_calls;              /* of all kinds, but for those that destroy */
    int encoded, at_once;          /* images, and how many were under way at most */
    int last_batch, last_format;
    int wrong; /* calls that the interface does not allow */
} fake_nvjpeg;

/* "fake_nvjpeg_control" in the library hands it out. */

#endif
