/* See status.h. The only file that formats messages. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

void cogpu_error_clear(cogpu_error *error) {
    if (error)
        *error = (cogpu_error){.status = COGPU_OK, .directory = -1, .block = -1, .offset = -1};
}

cogpu_status cogpu_fail(cogpu_error *error, cogpu_status status, const char *format, ...) {
    if (error) {
        cogpu_error_clear(error);
        error->status = status;
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
    }
    return status;
}

void cogpu_error_locate(cogpu_error *error, int64_t directory, int64_t block, int64_t offset) {
    if (!error)
        return;
    if (error->directory < 0 && directory >= 0)
        error->directory = (int32_t)directory;
    if (error->block < 0)
        error->block = block;
    if (error->offset < 0)
        error->offset = offset;
}
