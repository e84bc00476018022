/* The option table: all commands share it, so that an option means the same everywhere. */
#ifndef COGPU_CLI_OPTIONS_H
#define COGPU_CLI_OPTIONS_H

#include "arguments.h"

#include <stddef.h>

/* Stores the value of an option. Returns NULL, or what is wrong with the value. */
typedef const char *cogpu_option_set(cogpu_arguments *arguments, const char *value);

typedef struct cogpu_option {
    uint32_t id;
    const char *name;
    const char *value; /* its name in the help; NULL for a flag */
    const char *help;
    cogpu_option_set *set;          /* NULL: the member of cogpu_arguments below becomes true */
    size_t flag_offset, flag_bytes; /* a bool, or an int of the public structs */
} cogpu_option;

extern const cogpu_option cogpu_options[];
extern const int cogpu_option_count;

#endif
