/*
 * A cuFile for tests, with host memory as device memory: the faults that a test orders, and counts
 * of calls. Bytes are moved as late as possible, when the end of a read or write is reported.
 */
#ifndef COGPU_TESTS_FAKE_CUFILE_H
#define COGPU_TESTS_FAKE_CUFILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct fake_cufile {
    /* Faults. 0: none. */
    int open_error, properties_error, file_error, memory_error; /* status to return */
    bool is_through_host;                                       /* no driver for the direct way */
    unsigned entries;                                           /* that a batch may have; 0 = 128 */
    unsigned setup_fails_at;  /* the n-th set-up, from 1 on, and all later ones */
    unsigned submit_fails_at; /* the n-th submission alone */
    unsigned status_fails_at; /* the n-th question how a batch stands alone */
    unsigned status_lies_at;  /* one that is answered with more events than fit */
    unsigned late;            /* so many of these questions are answered with no event */
    unsigned piece;           /* events in an answer at most; 0 = all */
    uint64_t short_each, fail_each, stuck_each; /* at each n-th page of the file; 0 = none */
    bool ignores_cancel;
    bool passes_cache; /* files keep O_DIRECT: then all has to be aligned, in memory too */
    bool has_strays;   /* events of no request, of one that has not ended, and of one told before */
    bool (*is_current)(void); /* whether the calling thread has the device's context */

    /* Counts. */
    atomic_uint driver_opens;
    atomic_uint setups, submits, submitted, waits, cancels;
    atomic_uint alone;                    /* reads and writes in no batch */
    atomic_uint reads, writes;            /* that were tried, in batches or in none */
    atomic_uint submitted_before_wait;    /* when the first question came */
    atomic_uint batches, files, memories; /* that are open */
    atomic_uint closed_under_way;         /* requests of batches that were destroyed too early */
    atomic_uint wrong;                    /* calls that the interface does not allow */
    atomic_uint without_context;
    atomic_uint unaligned; /* reads and writes that would take a detour */
} fake_cufile;

/* "fake_cufile_control" in the library hands it out. */

#endif
