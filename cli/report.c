/*
 * Prints errors. A name or a message may hold what a hostile file put there, so
 * all of it passes through text.h before a terminal sees it.
 */
#include "report.h"

#include "command.h"
#include "json.h"
#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static cogpu_report_manner manner;

void cogpu_report_set(const cogpu_report_manner *set) {
    manner = *set;
}

const cogpu_report_manner *cogpu_report_get(void) {
    return &manner;
}

FILE *cogpu_report_stream(void) {
    return manner.to ? manner.to : stdout;
}

cogpu_status cogpu_refuse(cogpu_error *error, cogpu_status status, const char *format, ...) {
    *error = (cogpu_error){.status = status, .directory = -1, .block = -1, .offset = -1};
    va_list values;
    va_start(values, format);
    vsnprintf(error->message, sizeof error->message, format, values);
    va_end(values);
    return status;
}

static void print_line(const char *file, const char *message) {
    fputs("cogpu: ", stderr);
    if (file) {
        cogpu_text_print(stderr, file, SIZE_MAX);
        fputs(": ", stderr);
    }
    cogpu_text_print(stderr, message, SIZE_MAX);
}

void cogpu_report_position(FILE *to, int32_t directory, int64_t block, int64_t offset) {
    static const char *const names[] = {"directory", "block", "offset"};
    const int64_t numbers[] = {directory, block, offset};
    const char *before = " (";
    for (int i = 0; i < 3; i++) {
        if (numbers[i] < 0)
            continue;
        fprintf(to, "%s%s %" PRId64, before, names[i], numbers[i]);
        before = ", ";
    }
    if (before[0] == ',')
        fputc(')', to);
}

/* `status` is the library's word, or "usage". */
static void print_error_json(const char *file, const char *status, const cogpu_error *error) {
    cogpu_json json = {0};
    cogpu_json_open(&json, NULL, '{');
    cogpu_json_open(&json, "error", '{');
    cogpu_json_text(&json, "file", file);
    cogpu_json_text(&json, "status", status);
    cogpu_json_text(&json, "message", error->message);
    cogpu_json_index(&json, "directory", error->directory);
    cogpu_json_index(&json, "block", error->block);
    cogpu_json_index(&json, "offset", error->offset);
    cogpu_json_close(&json);
    cogpu_json_close(&json);
    cogpu_json_print(&json);
}

/* Whether a message already names the file: at its end or, with URLs, at its start. */
static bool names_file(const char *message, const char *file) {
    size_t all = strlen(message), name = file ? strlen(file) : 0;
    if (name == 0 || name >= all)
        return false;
    return strcmp(message + all - name, file) == 0 ||
           (strncmp(message, file, name) == 0 && message[name] == ':');
}

int cogpu_report_error(const char *file, const cogpu_error *error) {
    print_line(names_file(error->message, file) ? NULL : file, error->message);
    cogpu_report_position(stderr, error->directory, error->block, error->offset);
    fputc('\n', stderr);
    if (manner.json)
        print_error_json(file, cogpu_status_name(error->status), error);
    return error->status == COGPU_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
}

static void print_message(const char *file, const char *format, va_list values) {
    char message[512];
    vsnprintf(message, sizeof message, format, values);
    print_line(file, message);
    fputc('\n', stderr);
}

void cogpu_report_note(const char *file, const char *format, ...) {
    va_list values;
    va_start(values, format);
    if (!manner.quiet)
        print_message(file, format, values);
    va_end(values);
}

void cogpu_report_bad_blocks(const char *file, const cogpu_result *result) {
    if (result->bad_blocks > 0)
        cogpu_report_note(file,
                          "%" PRIu64 " blocks could not be read and were filled; the first: %s",
                          result->bad_blocks, result->first_bad.message);
    else if (result->bad_sources > 0)
        cogpu_report_note(file, "sources could not be read and were left out; the first: %s",
                          result->first_bad.message);
}

void cogpu_report_detail(const char *file, const char *format, ...) {
    va_list values;
    va_start(values, format);
    if (manner.verbose && !manner.quiet)
        print_message(file, format, values);
    va_end(values);
}

int cogpu_report_usage(const char *format, ...) {
    cogpu_error error = {.directory = -1, .block = -1, .offset = -1};
    va_list values;
    va_start(values, format);
    if (manner.json)
        vsnprintf(error.message, sizeof error.message, format, values);
    va_end(values);
    va_start(values, format);
    print_message(NULL, format, values);
    va_end(values);
    if (manner.json)
        print_error_json(NULL, "usage", &error);
    return EXIT_USAGE;
}
