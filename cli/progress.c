/*
 * Takes in how many bytes or blocks are done, hands on a line that is written over itself.
 */
#include "progress.h"

#include "numbers.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void cogpu_progress_open(cogpu_progress_bar *progress, uint64_t total) {
    *progress =
        (cogpu_progress_bar){.total = total,
                             .unit = "MB/s",
                             .terminal = isatty(STDERR_FILENO) && !cogpu_report_get()->quiet};
    progress->begin = now();
}

/* Columns of the terminal; the user's word counts more than the terminal's. */
static int columns(void) {
    enum { USUAL = 80 };
    const char *text = getenv("COLUMNS");
    struct winsize size;
    uint32_t number;
    if (text && cogpu_parse_wholes(text, &number, 1) && number > 0 && number < 10000)
        return (int)number;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return USUAL;
}

/* A line that reached the last column would wrap, and could not be written over: what does not
 * fit is left out, the bar first, then the time, then the speed. */
static void show(const cogpu_progress_bar *progress, double seconds) {
    enum { BAR = 30, LEAST_BAR = 4 };
    char bar[BAR + 1] = {0}, percent[16], speed[48], rest[48];
    double part = (double)progress->done / (double)progress->total;
    long left = part > 0 ? (long)(seconds / part - seconds) : 0;
    int room = columns() - 1;
    room -= snprintf(percent, sizeof percent, "%3.0f %%", part * 100);
    int speed_size = snprintf(speed, sizeof speed, "  %.0f %s",
                              (double)progress->done / 1e6 / seconds, progress->unit);
    int rest_size = snprintf(rest, sizeof rest, "  %ld:%02ld left ", left / 60, left % 60);
    if (room < 0)
        return;
    if ((room -= speed_size) < 0)
        speed[0] = '\0';
    if ((room -= rest_size) < 0)
        rest[0] = '\0';
    int length = room - 3 < BAR ? room - 3 : BAR; /* brackets and a space around it */
    if (length >= LEAST_BAR) {
        memset(bar, '.', (size_t)length);
        memset(bar, '#', (size_t)(part * length));
        fprintf(stderr, "\r[%s] %s%s%s\x1b[K", bar, percent, speed, rest);
    } else {
        fprintf(stderr, "\r%s%s%s\x1b[K", percent, speed, rest);
    }
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
