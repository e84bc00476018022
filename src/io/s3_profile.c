/*
 * Takes the name of a profile, hands on values of it from the shared files of AWS, ~/.aws/config
 * and ~/.aws/credentials.
 *
 * Their form: [sections], NAME = VALUE, comments behind '#' and ';', and lines that are indented
 * deeper than the one before, which belong to it and say nothing to us. Whatever else a line is,
 * is an error that names the line and never what it holds. The file has secrets: it is read into
 * one piece of memory, which is wiped.
 */
#include "io/io.h"
#include "io/s3_inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 20, PATH_BYTES = 4096 };

typedef struct slice {
    const char *at;
    size_t bytes;
} slice;

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
    const char *said =
        cogpu_s3_variable(is_config ? "AWS_CONFIG_FILE" : "AWS_SHARED_CREDENTIALS_FILE");
    return said ? said : is_config ? "~/.aws/config" : "~/.aws/credentials";
}

/* With "~/" replaced; false where nobody is at home or the path is too long. */
static bool find_path(const char *name, char path[PATH_BYTES]) {
    const bool is_at_home = strncmp(name, "~/", 2) == 0;
    const char *home = is_at_home ? cogpu_s3_variable("HOME") : "";
    if (!home)
        return false;
    return snprintf(path, PATH_BYTES, "%s%s", home, name + is_at_home) < PATH_BYTES;
}

/* All bytes; a file that changes meanwhile is cut where it was. */
static cogpu_status read_all(int file, const char *name, char *to, size_t room, size_t *bytes,
                             cogpu_error *error) {
    *bytes = 0;
    while (*bytes < room) {
        ssize_t got = read(file, to + *bytes, room - *bytes);
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

/* *text is NULL where there is no file; else it has `room` bytes, to be wiped and released. */
static cogpu_status load(const char *name, char **text, size_t *room, size_t *bytes,
                         cogpu_error *error) {
    char path[PATH_BYTES];
    struct stat about;
    *text = NULL;
    if (!find_path(name, path))
        return COGPU_OK;
    /* O_NONBLOCK: not to wait for whoever writes to a pipe. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return errno == ENOENT || errno == ENOTDIR ? COGPU_OK
                                                   : cogpu_fail_errno(error, "cannot open", name);
    cogpu_status status = COGPU_OK;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size > FILE_BYTES_MAX)
        status = cogpu_fail(error, COGPU_ARGUMENT, "%.120s is not a file of at most %d bytes", name,
                            FILE_BYTES_MAX);
    if (status == COGPU_OK) {
        *room = (size_t)about.st_size + 1;
        *text = cogpu_allocate(*room);
        status = *text ? read_all(file, name, *text, *room, bytes, error)
                       : cogpu_fail(error, COGPU_MEMORY, "out of memory: %zu bytes", *room);
    }
    close(file);
    return status;
}

static void forget(char *text, size_t room) {
    if (text)
        explicit_bzero(text, room);
    cogpu_release(text);
}

/* ---- lines ---- */

/* Where the reader stands, and in what. */
typedef struct reader {
    slice left;
    const char *name; /* of the file, for messages */
    unsigned line;    /* from 1 */
    bool in_section, in_profile;
    bool has_value; /* a line before this one may go on here */
    size_t indent;  /* of that line */
} reader;

static cogpu_status odd(const reader *in, const char *what, cogpu_error *error) {
    return cogpu_fail(error, COGPU_ARGUMENT, "line %u of %.120s: %s", in->line, in->name, what);
}

static slice trimmed(slice text) {
    while (text.bytes && s3_is_blank(text.at[0]))
        text.at++, text.bytes--;
    while (text.bytes && s3_is_blank(text.at[text.bytes - 1]))
        text.bytes--;
    return text;
}

/* Without a comment, which begins behind a blank. */
static slice without_comment(slice text) {
    for (size_t i = 1; i < text.bytes; i++)
        if ((text.at[i] == '#' || text.at[i] == ';') && s3_is_blank(text.at[i - 1]))
            text.bytes = i;
    return trimmed(text);
}

static bool is_word(slice text, const char *word) {
    return text.bytes == strlen(word) && memcmp(text.at, word, text.bytes) == 0;
}

/* "[name]"; in the config file "[profile name]", and "[default]" needs no such word. */
static bool is_section_of(slice section, cogpu_s3_file file, const char *profile) {
    static const char word[] = "profile";
    const size_t bytes = sizeof word - 1;
    if (file == COGPU_S3_CONFIG_FILE && section.bytes > bytes && s3_is_blank(section.at[bytes]) &&
        memcmp(section.at, word, bytes) == 0)
        return is_word(trimmed((slice){section.at + bytes, section.bytes - bytes}), profile);
    if (file == COGPU_S3_CONFIG_FILE && strcmp(profile, "default") != 0)
        return false;
    return is_word(section, profile);
}

static cogpu_status enter_section(reader *in, slice line, cogpu_s3_file file, const char *profile,
                                  bool *has_profile, cogpu_error *error) {
    line = without_comment(line);
    if (line.at[line.bytes - 1] != ']')
        return odd(in, "the section's name has no end", error);
    slice section = trimmed((slice){line.at + 1, line.bytes - 2});
    in->in_section = true;
    in->in_profile = is_section_of(section, file, profile);
    in->has_value = false;
    *has_profile |= in->in_profile;
    return COGPU_OK;
}

static cogpu_status grant(const reader *in, cogpu_s3_wish *wish, slice value, cogpu_error *error) {
    char what[96];
    value = without_comment(value);
    snprintf(what, sizeof what, "%s has characters that it cannot have, or too many", wish->name);
    wish->is_there = value.bytes > 0;
    if (!wish->value)
        return COGPU_OK;
    if (value.bytes >= wish->room || !s3_are_graphic(value.at, value.bytes))
        return odd(in, what, error);
    explicit_bzero(wish->value, wish->room);
    memcpy(wish->value, value.at, value.bytes);
    return COGPU_OK;
}

static cogpu_status take_value(reader *in, slice line, cogpu_s3_wish *wishes, size_t count,
                               cogpu_error *error) {
    const char *equals = memchr(line.at, '=', line.bytes);
    if (!equals || equals == line.at || !in->in_section)
        return odd(in, "it is neither [SECTION] nor NAME = VALUE in one", error);
    const slice name = trimmed((slice){line.at, (size_t)(equals - line.at)});
    const slice value = {equals + 1, line.bytes - (size_t)(equals + 1 - line.at)};
    for (size_t i = 0; i < count && in->in_profile; i++)
        if (name.bytes == strlen(wishes[i].name) &&
            strncasecmp(name.at, wishes[i].name, name.bytes) == 0)
            TRY(grant(in, &wishes[i], value, error));
    in->has_value = true;
    return COGPU_OK;
}

/* The next line without its end; false behind the last. */
static bool next_line(reader *in, slice *line) {
    if (!in->left.bytes)
        return false;
    const char *end = memchr(in->left.at, '\n', in->left.bytes);
    const size_t bytes = end ? (size_t)(end - in->left.at) : in->left.bytes;
    *line = (slice){in->left.at, bytes};
    in->left.at += bytes + (end != NULL);
    in->left.bytes -= bytes + (end != NULL);
    in->line++;
    return true;
}

static cogpu_status read_lines(reader *in, cogpu_s3_file file, const char *profile,
                               cogpu_s3_wish *wishes, size_t count, bool *has_profile,
                               cogpu_error *error) {
    for (slice line; next_line(in, &line);) {
        if (memchr(line.at, '\0', line.bytes))
            return odd(in, "it has a NUL, so this is not text", error);
        const slice words = trimmed(line);
        if (!words.bytes || words.at[0] == '#' || words.at[0] == ';')
            continue;
        const size_t indent = (size_t)(words.at - line.at);
        if (in->has_value && indent > in->indent)
            continue;
        in->indent = indent;
        if (words.at[0] == '[')
            TRY(enter_section(in, words, file, profile, has_profile, error));
        else
            TRY(take_value(in, words, wishes, count, error));
    }
    return COGPU_OK;
}

/* Editors of Windows put a mark in front of UTF-8. */
static slice without_mark(slice text) {
    const bool has_mark = text.bytes >= 3 && memcmp(text.at, "\xef\xbb\xbf", 3) == 0;
    return has_mark ? (slice){text.at + 3, text.bytes - 3} : text;
}

cogpu_status cogpu_s3_profile_read(cogpu_s3_file file, const char *profile, cogpu_s3_wish *wishes,
                                   size_t count, bool *has_profile, cogpu_error *error) {
    char *text;
    size_t room = 0, bytes = 0;
    reader in = {.name = cogpu_s3_file_name(file)};
    *has_profile = false;
    cogpu_status status = load(in.name, &text, &room, &bytes, error);
    if (status == COGPU_OK && text) {
        in.left = without_mark((slice){text, bytes});
        status = read_lines(&in, file, profile, wishes, count, has_profile, error);
    }
    forget(text, room);
    return status;
}
