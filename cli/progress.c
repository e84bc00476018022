/*
 * Takes in how many bytes or blocks are done, hands on a line that is written over itself.
 */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void cogpu_progress_open(cogpu_progress_bar *progress, uint64_t total) {
    *progress =
        (cogpu_progress_bar){.total = total, .unit = "MB/s", .terminal = isatty(STDERR_FILENO)};
    progress->begin = now();
}

static void show(const cogpu_progress_bar *progress, double seconds) {
    enum { BAR = 30 };
    char bar[BAR + 1] = {0};
    double part = (double)progress->done / (double)progress->total;
    long left = part > 0 ? (long)(seconds / part - seconds) : 0;
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)(part * BAR));
    fprintf(stderr, "\r[%s] %3.0f %%  %.0f %s  %ld:%02ld left \x1b[K", bar, part * 100,
            (double)progress->done / 1e6 / seconds, progress->unit, left / 60, left % 60);
    fflush(stderr);
}

void cogpu_progress_add(cogpu_progress_bar *progress, uint64_t bytes) {
    progress->done += bytes;
    if (!progress->terminal)
        return;
    double time = now();
    if (time - progress->begin > 1 && time - progress->shown > 0.2) {
        progress->shown = time;
        show(progress, time - progress->begin);
    }
}

void cogpu_progress_close(cogpu_progress_bar *progress) {
    if (progress->shown > 0)
        fputs("\r\x1b[K", stderr);
}
