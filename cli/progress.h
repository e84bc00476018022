/* A bar on stderr while work takes more than a second, where stderr is a terminal. */
#ifndef COGPU_CLI_PROGRESS_H
#define COGPU_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cogpu_progress_bar {
    uint64_t total, done; /* bytes of pixels, or what `unit` counts */
    const char *unit;     /* of a million a second; "MB/s" unless it is set after opening */
    double begin, shown;  /* seconds */
    bool terminal;
} cogpu_progress_bar;

void cogpu_progress_open(cogpu_progress_bar *progress, uint64_t total);
void cogpu_progress_add(cogpu_progress_bar *progress, uint64_t bytes);

/* Takes the bar away. */
void cogpu_progress_close(cogpu_progress_bar *progress);

#endif
