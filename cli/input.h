/*
 * The FILE of a command line, open: a path, or "-" for what comes by stdin.
 */
#ifndef COGPU_CLI_INPUT_H
#define COGPU_CLI_INPUT_H

#include "cogpu.h"

typedef struct cogpu_input {
    const char *name;
    cogpu_file *file;
    void *memory; /* what stdin gave */
} cogpu_input;

cogpu_status cogpu_input_open(const char *name, cogpu_input *input, cogpu_error *error);
void cogpu_input_close(cogpu_input *input);

/* How many letters "http" of "http://..." has; 0 for what is no URL. */
size_t cogpu_scheme_length(const char *name);

#endif
