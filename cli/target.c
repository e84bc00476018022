/* A cogpu_sink from the command line: a path with what the options say of old files, or stdout. */
#include "target.h"

#include "name.h"
#include "report.h"

#include <errno.h>
#include <string.h>
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

void cogpu_target_open(const cogpu_arguments *arguments, const char *path, const char *input,
                       cogpu_target *target) {
    *target = (cogpu_target){.input = input, .sink = COGPU_SINK_INIT};
    if (cogpu_target_is_stdout(path)) {
        target->sink.write = write_stdout;
        target->sink.append_only = 1;
        return;
    }
    target->sink.path = path;
    target->sink.no_replace = arguments->no_clobber;
    if (input && !cogpu_name_is_url(input) && strcmp(input, "-") != 0) {
        target->sink.inputs = &target->input;
        target->sink.input_count = 1;
    }
}
