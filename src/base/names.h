/* Names of enumerators: tables, and the error of an unknown name. */
#ifndef COGPU_BASE_NAMES_H
#define COGPU_BASE_NAMES_H

#include "base/status.h"

/* "no WHAT is called `NAME`; known: A, B, C". `name_at` returns NULL past the last; numbers without
 * a name are "". */
cogpu_status cogpu_fail_unknown_name(cogpu_error *error, const char *what, const char *name,
                                     const char *(*name_at)(unsigned index));

#endif
