/* `cogpu convert IN... --to DIR`: many files, some at once. */
#ifndef COGPU_CLI_CONVERT_MANY_H
#define COGPU_CLI_CONVERT_MANY_H

#include "arguments.h"

/* Returns an exit code. */
int cogpu_convert_many(const cogpu_arguments *arguments);

#endif
