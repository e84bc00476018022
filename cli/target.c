/* A cogpu_sink from the command line: a path with what the options say of old files, or stdout. */
#include "target.h"

#include "name.h"
#include "report.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

bool cogpu_target_is_stdout(const char *path) {
    return strcmp(path, "-") == 0;
}

bool cogpu_target_check(const char *path) {
    if (!cogpu_target_is_stdout(path) || !isatty(STDOUT_FILENO))
        return true;
    cogpu_report_usage("OUT is -, and stdout is a terminal; redirect it or give a file's name");
    return false;
}

const char *cogpu_target_find_wrong_url(const char *path) {
    if (cogpu_name_is_url(path) && strncasecmp(path, "s3://", 5) != 0)
        return "OUT cannot be a URL but s3://BUCKET/KEY; write a file, and upload that";
    return NULL;
}

bool cogpu_target_is_same_file(const char *path, const char *other) {
    struct stat one, two;
    return !cogpu_name_is_url(path) && !cogpu_name_is_url(other) && stat(path, &one) == 0 &&
           stat(other, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

void cogpu_target_use_stdout(void) {
    cogpu_report_manner manner = *cogpu_report_get();
    manner.to = stderr;
    cogpu_report_set(&manner);
}

static cogpu_status write_stdout(void *user, uint64_t offset, const void *from, size_t bytes) {
    const char *at = from;
    (void)user;
    (void)offset;
    while (bytes > 0) {
        ssize_t put = write(STDOUT_FILENO, at, bytes);
        if (put < 0 && errno != EINTR)
            return COGPU_IO_ERROR;
        if (put > 0) {
            at += put;
            bytes -= (size_t)put;
        }
    }
    return COGPU_OK;
}

cogpu_sink cogpu_target_sink(const cogpu_arguments *arguments, const char *path,
                             const char *const *inputs, uint32_t count) {
    if (cogpu_target_is_stdout(path))
        return (cogpu_sink){
            .struct_size = sizeof(cogpu_sink), .write = write_stdout, .append_only = 1};
    return (cogpu_sink){.struct_size = sizeof(cogpu_sink),
                        .path = path,
                        .no_replace = arguments->no_clobber,
                        .inputs = inputs,
                        .input_count = count};
}
