/*
 * How a command reports an error: one line on stderr, and JSON on stdout where asked
 * for. Inside a command errors travel as in the library: a status returned, a cogpu_error filled.
 */
#ifndef COGPU_CLI_REPORT_H
#define COGPU_CLI_REPORT_H

#include "arguments.h"

#include <stdio.h>

/* Sets verbosity and format, before the first message. */
typedef struct cogpu_report_manner {
    bool json;    /* errors as JSON too */
    bool quiet;   /* no notes, no summaries, no progress */
    bool verbose; /* details too */
    FILE *to;     /* results; NULL: stdout */
} cogpu_report_manner;

void cogpu_report_set(const cogpu_report_manner *manner);
const cogpu_report_manner *cogpu_report_get(void);

/* Where results go: stdout, or stderr where stdout gets the file. */
FILE *cogpu_report_stream(void);

/* Leaves the function with the status of `expression` unless it is COGPU_OK. */
#define TRY(expression)                                                                            \
    do {                                                                                           \
        cogpu_status try_status = (expression);                                                    \
        if (try_status != COGPU_OK)                                                                \
            return try_status;                                                                     \
    } while (0)

/* Fills an error that has no place in a TIFF file, and returns its status. */
cogpu_status cogpu_refuse(cogpu_error *error, cogpu_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* " (directory 1, block 2, offset 3)", without those that are negative. */
void cogpu_report_position(FILE *to, int32_t directory, int64_t block, int64_t offset);

/* Prints the error of `file`; returns EXIT_USAGE for COGPU_INVALID_ARGUMENT, else EXIT_FAILED. */
int cogpu_report_error(const char *file, const cogpu_error *error);

/* A line about `file` that is no failure. */
void cogpu_report_note(const char *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The note about blocks or sources that could not be read, if there are any. */
void cogpu_report_bad_blocks(const char *file, const cogpu_result *result);

/* As cogpu_report_note, with --verbose only. */
void cogpu_report_detail(const char *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A mistake in the command line; returns EXIT_USAGE. */
int cogpu_report_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
