/*
 * Where a command writes: OUT of the command line as a cogpu_sink. "-" is stdout.
 */
#ifndef COGPU_CLI_TARGET_H
#define COGPU_CLI_TARGET_H

#include "arguments.h"

bool cogpu_target_is_stdout(const char *path);

/* Refuses stdout where it is a terminal; returns false after a message. */
bool cogpu_target_check(const char *path);

/* Results that would go to stdout go to stderr. */
void cogpu_target_use_stdout(void);

/* What is wrong with a URL as OUT, or NULL. */
const char *cogpu_target_find_wrong_url(const char *path);

/* Whether both are names of one file that exists. */
bool cogpu_target_is_same_file(const char *path, const char *other);

/* The sink of a path, or of stdout. `inputs` are the paths that are read for the file, as given;
 * they stay the caller's. */
cogpu_sink cogpu_target_sink(const cogpu_arguments *arguments, const char *path,
                             const char *const *inputs, uint32_t count);

#endif
