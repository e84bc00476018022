/*
 * How errors travel: a status by return value, its text and place in the caller's cogpu_error.
 *
 * Statuses are for the world's mistakes. Ours are caught by assert.
 */
#ifndef COGPU_BASE_STATUS_H
#define COGPU_BASE_STATUS_H

#include "cogpu.h"

/* Leaves the function with the status of `expression` unless it is COGPU_OK. */
#define TRY(expression)                                                                            \
    do {                                                                                           \
        cogpu_status try_status = (expression);                                                    \
        if (try_status != COGPU_OK)                                                                \
            return try_status;                                                                     \
    } while (0)

/* Sets the error to "nothing happened, nowhere". NULL is allowed, as in all functions here. */
void cogpu_error_clear(cogpu_error *error);

/* Fills status and text, clears the place, and returns the status: `return cogpu_fail(...)`. */
cogpu_status cogpu_fail(cogpu_error *error, cogpu_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Says where, for places that are not known yet: the innermost caller knows best. -1 = leave. */
void cogpu_error_place(cogpu_error *error, int64_t directory, int64_t block, int64_t offset);

#endif
