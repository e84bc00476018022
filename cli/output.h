/*
 * A file that appears under its name when it is whole: until then it stands beside it under another
 * name, which goes away on every error and when the user interrupts. One at a time.
 */
#ifndef COGPU_CLI_OUTPUT_H
#define COGPU_CLI_OUTPUT_H

#include "cogpu.h"

typedef struct cogpu_output {
    char *path, *temporary;
    int descriptor;
} cogpu_output;

cogpu_status cogpu_output_open(const char *path, cogpu_output *output, cogpu_error *error);

cogpu_status cogpu_output_write(const cogpu_output *output, uint64_t offset, const void *data,
                                size_t bytes, cogpu_error *error);

/* Gives the file its name. */
cogpu_status cogpu_output_commit(cogpu_output *output, cogpu_error *error);

/* Frees; without a commit the file is gone. */
void cogpu_output_close(cogpu_output *output);

#endif
