/* A monotonic clock, for durations and deadlines. */
#ifndef COGPU_BASE_CLOCK_H
#define COGPU_BASE_CLOCK_H

#include <time.h>

/* In seconds. */
static inline double clock_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#endif
