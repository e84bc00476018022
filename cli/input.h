/*
 * The FILE of a command line, open: a path, a URL, or "-" for what comes by stdin.
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

#endif
