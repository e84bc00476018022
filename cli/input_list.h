/* --input-list: inputs that a text file names, one on each line. */
#ifndef COGPU_CLI_INPUT_LIST_H
#define COGPU_CLI_INPUT_LIST_H

#include "arguments.h"

/* Adds the inputs of the list to the files of the arguments, behind the other inputs and before
 * OUT. On a mistake says so on stderr and returns false. */
bool cogpu_input_list_insert(cogpu_arguments *arguments);

#endif
