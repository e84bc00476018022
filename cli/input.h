/*
 * The FILE of a command line, open: a path, a URL, or "-" for stdin.
 */
#ifndef COGPU_CLI_INPUT_H
#define COGPU_CLI_INPUT_H

#include "arguments.h"

typedef struct cogpu_input {
    const char *name; /* as it is shown */
    cogpu_file *file;
    cogpu_context *context; /* of connections, where the command has a URL, or of a device; else
                             * NULL */
    bool shares_context;    /* with another input, whose it is */
    void *memory;           /* what stdin gave */
} cogpu_input;

/* The file of that index. `first` is another input of the command, whose context serves both, and
 * which is closed after this one; or NULL. */
cogpu_status cogpu_input_open(const cogpu_arguments *arguments, int index, const cogpu_input *first,
                              cogpu_input *input, cogpu_error *error);
void cogpu_input_close(cogpu_input *input);

/* An input without a file, that has the context which all files of the command share, if they need
 * one: `first` of cogpu_input_open. */
cogpu_status cogpu_input_share(const cogpu_arguments *arguments, cogpu_input *shared,
                               cogpu_error *error);

/* A context for the command, with its threads and its network settings. */
cogpu_status cogpu_input_open_context(const cogpu_arguments *arguments, cogpu_context **context,
                                      cogpu_error *error);

/* How the command opens files. */
cogpu_open_options cogpu_input_options(const cogpu_arguments *arguments, cogpu_context *context);

/* A command on one of several inputs, by index; returns an exit code. */
typedef int cogpu_input_command(const cogpu_arguments *arguments, const cogpu_input *input,
                                int index);

/* Opens each file of the command line, which share a context, and runs the command on it; the
 * largest exit code counts. Where several are asked for, JSON is a list. */
int cogpu_input_each(const cogpu_arguments *arguments, cogpu_input_command *command);

#endif
