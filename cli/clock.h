/* Monotonic time, for durations. */
#ifndef COGPU_CLI_CLOCK_H
#define COGPU_CLI_CLOCK_H

#include <time.h>

static inline double cogpu_clock_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static inline double cogpu_clock_milliseconds(void) {
    return cogpu_clock_seconds() * 1e3;
}

#endif
