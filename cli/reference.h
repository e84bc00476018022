/* `cogpu reference FORMAT`: the reference of the command line, from the tables of commands and
 * options. The build makes the manual page and the shell completions with it. */
#ifndef COGPU_CLI_REFERENCE_H
#define COGPU_CLI_REFERENCE_H

#include "command.h"

/* Prints to stdout: "markdown", "man", "bash" or "zsh". Returns the exit code. */
int cogpu_reference_print(const char *format, const cogpu_command *const *commands, int count);

#endif
