/* Errors that sources and sinks share. */
#include "io/http/url.h"
#include "io/io.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

cogpu_status cogpu_fail_errno(cogpu_error *error, const char *doing, const char *path) {
    char text[128];
    int number = errno;
    if (strerror_r(number, text, sizeof text) != 0)
        text[0] = '\0';
    cogpu_status status = number == ENOENT ? COGPU_NOT_FOUND : COGPU_IO_ERROR;
    if (number == EFBIG)
        snprintf(text, sizeof text,
                 "File too large: exceeds the limit of this process (ulimit -f) or of the file "
                 "system");
    char shown[160];
    return cogpu_fail(error, status, "%s: %s%s%s", doing, text, path ? ": " : "",
                      path ? cogpu_path_shown(path, shown, sizeof shown) : "");
}

cogpu_status cogpu_io_short(cogpu_error *error, uint64_t offset, size_t bytes, uint64_t size) {
    cogpu_status status =
        cogpu_fail(error, COGPU_CORRUPT,
                   "%zu bytes at offset %llu are needed, but the file ends at %llu:"
                   " it is truncated or an offset in it is wrong",
                   bytes, (unsigned long long)offset, (unsigned long long)size);
    cogpu_error_locate(error, -1, -1, (int64_t)(offset & INT64_MAX));
    return status;
}
