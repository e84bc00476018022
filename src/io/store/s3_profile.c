/*
 * Profiles in the AWS config files, ~/.aws/config and ~/.aws/credentials.
 *
 * Their syntax: [sections], NAME = VALUE, comments after '#' and ';', and lines that are indented
 * deeper than the one before: nested values, which are ignored. Any other line is an error, whose
 * message has the number of the line and never its text. The file has secrets: the one buffer that
 * it is read into is wiped.
 */
#include "io/io.h"
#include "io/store/s3_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 20, PATH_BYTES = 4096 };

/* ---- files ---- */

const char *cogpu_s3_profile_name(const cogpu_s3_settings *settings) {
    const char *name = settings->profile && *settings->profile ? settings->profile
                                                               : cogpu_s3_variable("AWS_PROFILE");
    if (!name)
        name = cogpu_s3_variable("AWS_DEFAULT_PROFILE");
    return name ? name : "default";
}

const char *cogpu_s3_file_name(cogpu_s3_file file) {
    const bool is_config = file == COGPU_S3_CONFIG_FILE;
    const char *chosen =
        cogpu_s3_variable(is_config ? "AWS_CONFIG_FILE" : "AWS_SHARED_CREDENTIALS_FILE");
    return chosen ? chosen : is_config ? "~/.aws/config" : "~/.aws/credentials";
}

/* With "~/" replaced; false if there is no HOME, or the path is too long. */
static bool find_path(const char *name, char path[PATH_BYTES]) {
    const bool is_at_home = strncmp(name, "~/", 2) == 0;
    const char *home = is_at_home ? cogpu_s3_variable("HOME") : "";
    if (!home)
        return false;
    return snprintf(path, PATH_BYTES, "%s%s", home, name + is_at_home) < PATH_BYTES;
}

/* Reads to the end of the file, but not beyond the size that it had when it was opened. */
static cogpu_status read_all(int file, const char *name, char *to, size_t capacity, size_t *bytes,
                             cogpu_error *error) {
    *bytes = 0;
    while (*bytes < capacity) {
        ssize_t got = read(file, to + *bytes, capacity - *bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return cogpu_fail_errno(error, "cannot read", name);
        if (got == 0)
            break;
        *bytes += (size_t)got;
    }
    return COGPU_OK;
}

/* *text is NULL if there is no file; else it has `capacity` bytes, for free_text. */
static cogpu_status load_file(const char *name, char **text, size_t *capacity, size_t *bytes,
                              cogpu_error *error) {
    char path[PATH_BYTES];
    struct stat about;
    *text = NULL;
    if (!find_path(name, path))
        return COGPU_OK;
    /* O_NONBLOCK: a pipe without a writer would block. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return errno == ENOENT || errno == ENOTDIR ? COGPU_OK
                                                   : cogpu_fail_errno(error, "cannot open", name);
    cogpu_status status = COGPU_OK;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size > FILE_BYTES_MAX)
        status = cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                            "%.120s is not a file of at most %d bytes", name, FILE_BYTES_MAX);
    if (status == COGPU_OK) {
        *capacity = (size_t)about.st_size + 1;
        *text = cogpu_allocate(*capacity);
        status =
            *text ? read_all(file, name, *text, *capacity, bytes, error)
                  : cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory: %zu bytes", *capacity);
    }
    close(file);
    return status;
}

static void free_text(char *text, size_t capacity) {
    if (text)
        explicit_bzero(text, capacity);
    cogpu_release(text);
}

/* ---- lines ---- */

/* The state of parsing. */
typedef struct profile_reader {
    s3_slice left;
    const char *name; /* of the file, for messages */
    unsigned line;    /* from 1 */
    bool in_section, in_profile;
    bool has_value; /* the line before may continue here */
    size_t indent;  /* of that line */
} profile_reader;

static cogpu_status fail_line(const profile_reader *in, const char *what, cogpu_error *error) {
    return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "line %u of %.120s: %s", in->line, in->name,
                      what);
}

static s3_slice trim_slice(s3_slice text) {
    while (text.bytes && s3_is_blank(text.at[0]))
        text.at++, text.bytes--;
    while (text.bytes && s3_is_blank(text.at[text.bytes - 1]))
        text.bytes--;
    return text;
}

/* A comment begins after a blank. */
static s3_slice without_comment(s3_slice text) {
    for (size_t i = 1; i < text.bytes; i++)
        if ((text.at[i] == '#' || text.at[i] == ';') && s3_is_blank(text.at[i - 1]))
            text.bytes = i;
    return trim_slice(text);
}

static bool slice_equals_word(s3_slice text, const char *word) {
    return text.bytes == strlen(word) && memcmp(text.at, word, text.bytes) == 0;
}

/* "[name]"; in the config file "[profile name]", and "[default]" needs no such word. */
static bool is_section_of(s3_slice section, cogpu_s3_file file, const char *profile) {
    static const char word[] = "profile";
    const size_t bytes = sizeof word - 1;
    if (file == COGPU_S3_CONFIG_FILE && section.bytes > bytes && s3_is_blank(section.at[bytes]) &&
        memcmp(section.at, word, bytes) == 0)
        return slice_equals_word(trim_slice((s3_slice){section.at + bytes, section.bytes - bytes}),
                                 profile);
    if (file == COGPU_S3_CONFIG_FILE && strcmp(profile, "default") != 0)
        return false;
    return slice_equals_word(section, profile);
}

static cogpu_status parse_section(profile_reader *in, s3_slice line, cogpu_s3_file file,
                                  const char *profile, bool *has_profile, cogpu_error *error) {
    line = without_comment(line);
    if (line.at[line.bytes - 1] != ']')
        return fail_line(in, "the section's name has no end", error);
    s3_slice section = trim_slice((s3_slice){line.at + 1, line.bytes - 2});
    in->in_section = true;
    in->in_profile = is_section_of(section, file, profile);
    in->has_value = false;
    *has_profile |= in->in_profile;
    return COGPU_OK;
}

static cogpu_status store_value(const profile_reader *in, cogpu_s3_profile_value *wanted,
                                s3_slice value, cogpu_error *error) {
    char what[96];
    value = without_comment(value);
    snprintf(what, sizeof what, "%s has invalid characters, or too many", wanted->name);
    wanted->is_there = value.bytes > 0;
    if (!wanted->value)
        return COGPU_OK;
    if (value.bytes >= wanted->capacity || !s3_are_graphic(value.at, value.bytes))
        return fail_line(in, what, error);
    explicit_bzero(wanted->value, wanted->capacity);
    memcpy(wanted->value, value.at, value.bytes);
    return COGPU_OK;
}

static cogpu_status parse_value(profile_reader *in, s3_slice line, cogpu_s3_profile_value *values,
                                size_t count, cogpu_error *error) {
    const char *equals = memchr(line.at, '=', line.bytes);
    if (!equals || equals == line.at || !in->in_section)
        return fail_line(in, "it is neither [SECTION] nor NAME = VALUE in one", error);
    const s3_slice name = trim_slice((s3_slice){line.at, (size_t)(equals - line.at)});
    const s3_slice value = {equals + 1, line.bytes - (size_t)(equals + 1 - line.at)};
    for (size_t i = 0; i < count && in->in_profile; i++)
        if (name.bytes == strlen(values[i].name) &&
            strncasecmp(name.at, values[i].name, name.bytes) == 0)
            TRY(store_value(in, &values[i], value, error));
    in->has_value = true;
    return COGPU_OK;
}

/* The next line without its end; false after the last. */
static bool next_line(profile_reader *in, s3_slice *line) {
    if (!in->left.bytes)
        return false;
    const char *end = memchr(in->left.at, '\n', in->left.bytes);
    const size_t bytes = end ? (size_t)(end - in->left.at) : in->left.bytes;
    *line = (s3_slice){in->left.at, bytes};
    in->left.at += bytes + (end != NULL);
    in->left.bytes -= bytes + (end != NULL);
    in->line++;
    return true;
}

static cogpu_status parse_lines(profile_reader *in, cogpu_s3_file file, const char *profile,
                                cogpu_s3_profile_value *values, size_t count, bool *has_profile,
                                cogpu_error *error) {
    for (s3_slice line; next_line(in, &line);) {
        if (memchr(line.at, '\0', line.bytes))
            return fail_line(in, "it has a NUL, so this is not text", error);
        const s3_slice words = trim_slice(line);
        if (!words.bytes || words.at[0] == '#' || words.at[0] == ';')
            continue;
        const size_t indent = (size_t)(words.at - line.at);
        if (in->has_value && indent > in->indent)
            continue;
        in->indent = indent;
        if (words.at[0] == '[')
            TRY(parse_section(in, words, file, profile, has_profile, error));
        else
            TRY(parse_value(in, words, values, count, error));
    }
    return COGPU_OK;
}

/* Editors on Windows write a byte order mark. */
static s3_slice skip_byte_order_mark(s3_slice text) {
    const bool has_mark = text.bytes >= 3 && memcmp(text.at, "\xef\xbb\xbf", 3) == 0;
    return has_mark ? (s3_slice){text.at + 3, text.bytes - 3} : text;
}

cogpu_status cogpu_s3_profile_read(cogpu_s3_file file, const char *profile,
                                   cogpu_s3_profile_value *values, size_t count, bool *has_profile,
                                   cogpu_error *error) {
    char *text;
    size_t capacity = 0, bytes = 0;
    profile_reader in = {.name = cogpu_s3_file_name(file)};
    *has_profile = false;
    cogpu_status status = load_file(in.name, &text, &capacity, &bytes, error);
    if (status == COGPU_OK && text) {
        in.left = skip_byte_order_mark((s3_slice){text, bytes});
        status = parse_lines(&in, file, profile, values, count, has_profile, error);
    }
    free_text(text, capacity);
    return status;
}
