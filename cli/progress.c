/*
 * The progress line of a command: rewritten in place on a terminal.
 */
#include "progress.h"
#include "clock.h"

#include "numbers.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void cogpu_progress_open(cogpu_progress_bar *progress, uint64_t total) {
    *progress =
        (cogpu_progress_bar){.total = total,
                             .unit = "MB/s",
                             .terminal = isatty(STDERR_FILENO) && !cogpu_report_get()->quiet};
    progress->begin = cogpu_clock_seconds();
}

/* Columns of the terminal; the user's word counts more than the terminal's. */
static int terminal_columns(void) {
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
static void print_bar(const cogpu_progress_bar *progress, double seconds) {
    enum { BAR = 30, LEAST_BAR = 4 };
    char bar[BAR + 1] = {0}, percent[16], speed[48], rest[48];
    double part = (double)progress->done / (double)progress->total;
    long left = part > 0 ? (long)(seconds / part - seconds) : 0;
    int columns_left = terminal_columns() - 1;
    columns_left -= snprintf(percent, sizeof percent, "%3.0f %%", part * 100);
    int speed_size = snprintf(speed, sizeof speed, "  %.0f %s",
                              (double)progress->done / 1e6 / seconds, progress->unit);
    int rest_size = snprintf(rest, sizeof rest, "  %ld:%02ld left ", left / 60, left % 60);
    if (columns_left < 0)
        return;
    if ((columns_left -= speed_size) < 0)
        speed[0] = '\0';
    if ((columns_left -= rest_size) < 0)
        rest[0] = '\0';
    int length =
        columns_left - 3 < BAR ? columns_left - 3 : BAR; /* brackets and a space around it */
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
    double time = cogpu_clock_seconds();
    if (time - progress->begin > 1 && time - progress->shown > 0.2) {
        progress->shown = time;
        print_bar(progress, time - progress->begin);
    }
}

void cogpu_progress_close(cogpu_progress_bar *progress) {
    if (progress->shown > 0)
        fputs("\r\x1b[K", stderr);
}
