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

/* Another word for an option: a short form, or GDAL's word. */
typedef struct cogpu_option_alias {
    const char *alias, *name;
} cogpu_option_alias;

/* Ends with NULL. */
extern const cogpu_option_alias cogpu_option_aliases[];

extern const cogpu_option cogpu_options[];
extern const int cogpu_option_count;

enum { OPTION_HELP_TEXT = 512 };

/* The help of an option, with names from the library's tables in place of marks such as @codecs. */
void cogpu_option_help(const cogpu_option *option, char text[OPTION_HELP_TEXT]);

#endif
