/*
 * An nvJPEG for tests, where the device's memory is memory of the host: what it is told to do, and
 * what it has counted. libjpeg decodes and encodes for it.
 */
#ifndef COGPU_TESTS_FAKE_NVJPEG_H
#define COGPU_TESTS_FAKE_NVJPEG_H

#include <stdint.h>

typedef struct fake_nvjpeg {
    /* Orders. 0 of each is what a good library does. */
    int create_error, state_error, size_error, decode_error; /* to answer with */
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
