/*
 * File names of the command line: paths, "-", or URLs.
 */
#ifndef COGPU_CLI_NAME_H
#define COGPU_CLI_NAME_H

#include <stdbool.h>

/* A path may hold "://" further on. */
bool cogpu_name_is_url(const char *name);

/* The name as all messages and JSON show it, which the caller frees; NULL where there is no memory.
 * Of a URL it leaves out user info and fragment, and "?..." stands for the query: secrets are
 * there, as the signature of a presigned URL. */
char *cogpu_name_shown(const char *name);

#endif
