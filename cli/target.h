/*
 * Where a command writes: OUT of the command line as a cogpu_sink. "-" is stdout.
 */
#ifndef COGPU_CLI_TARGET_H
#define COGPU_CLI_TARGET_H

#include "arguments.h"

typedef struct cogpu_target {
    cogpu_sink sink; /* points into this struct */
    const char *input;
} cogpu_target;

bool cogpu_target_is_stdout(const char *path);

/* Refuses stdout where it is a terminal; returns false after a message. */
bool cogpu_target_check(const char *path);

/* Results that would go to stdout go to stderr. */
void cogpu_target_use_stdout(void);

/* `input` is the path that is read for the file, as given; NULL where there is none. */
void cogpu_target_open(const cogpu_arguments *arguments, const char *path, const char *input,
                       cogpu_target *target);

#endif
