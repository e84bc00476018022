/*
 * Errors: a function returns a cogpu_status, and fills the caller's cogpu_error with a message and
 * a location.
 *
 * A status is for errors of input, system and devices. Programming errors are for assert.
 */
#ifndef COGPU_BASE_STATUS_H
#define COGPU_BASE_STATUS_H

#include "cogpu.h"

/* Returns the status of `expression` unless it is COGPU_OK. */
#define TRY(expression)                                                                            \
    do {                                                                                           \
        cogpu_status try_status = (expression);                                                    \
        if (try_status != COGPU_OK)                                                                \
            return try_status;                                                                     \
    } while (0)

/* Resets to COGPU_OK, without a location. `error` may be NULL, as in all functions here. */
void cogpu_error_clear(cogpu_error *error);

/* Fills status and message, clears the location, and returns the status: `return cogpu_fail(...)`.
 */
cogpu_status cogpu_fail(cogpu_error *error, cogpu_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets parts of the location that are not set yet: the innermost caller knows best. -1 = unknown.
 */
void cogpu_error_locate(cogpu_error *error, int64_t directory, int64_t block, int64_t offset);

#endif
