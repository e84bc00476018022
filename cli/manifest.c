/* Reads all lines at the start, sorted by output; appends with one write and a flush each. */
#include "manifest.h"

#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char file_name[] = "cogpu-manifest.tsv";
enum { FIELDS = 5 };
static const size_t largest_file = (size_t)1 << 30;

/* A line of the file, still encoded. */
struct line {
    const char *fields[FIELDS];
    size_t number;
};

struct cogpu_manifest {
    int file;
    char *text;
    struct line *lines; /* by output, then by number */
    size_t count;
};

/* ---- reading ----------------------------------------------------------------------------------
 */

static bool split_line(char *line, struct line *split) {
    for (int i = 0; i < FIELDS; i++) {
        split->fields[i] = line;
        char *tab = strchr(line, '\t');
        if ((tab == NULL) != (i + 1 == FIELDS))
            return false;
        if (tab) {
            *tab = '\0';
            line = tab + 1;
        }
    }
    return true;
}

static int compare_lines(const void *a, const void *b) {
    const struct line *first = a, *second = b;
    int order = strcmp(first->fields[0], second->fields[0]);
    return order ? order : (first->number > second->number) - (first->number < second->number);
}

static void split_lines(cogpu_manifest *manifest) {
    char *line = manifest->text;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        struct line *made = &manifest->lines[manifest->count];
        made->number = manifest->count;
        manifest->count += split_line(line, made);
    }
    qsort(manifest->lines, manifest->count, sizeof *manifest->lines, compare_lines);
}

static bool read_manifest_bytes(int file, char *to, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(file, to + done, bytes - done, (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    for (size_t i = 0; i < bytes; i++) /* a NUL would hide the lines behind it */
        to[i] = to[i] ? to[i] : ' ';
    to[bytes] = '\0';
    return true;
}

static cogpu_status read_lines(cogpu_manifest *manifest, size_t bytes, cogpu_error *error) {
    if (bytes > largest_file)
        return cogpu_refuse(error, COGPU_LIMIT_EXCEEDED, "%s has more than 1 GiB; remove it",
                            file_name);
    manifest->text = malloc(bytes + 1);
    if (!manifest->text)
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for %s", file_name);
    if (!read_manifest_bytes(manifest->file, manifest->text, bytes))
        return cogpu_refuse(error, COGPU_IO_ERROR, "%s cannot be read: %s", file_name,
                            strerror(errno));
    size_t count = 0;
    for (const char *at = manifest->text; (at = strchr(at, '\n')); at++)
        count++;
    manifest->lines = calloc(count + 1, sizeof *manifest->lines);
    if (!manifest->lines)
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for %s", file_name);
    split_lines(manifest);
    return COGPU_OK;
}

/* What a crash has cut off gets an end, so that the next line is one of its own. */
static bool end_last_line(int file, off_t bytes) {
    char last;
    return bytes == 0 ||
           (pread(file, &last, 1, bytes - 1) == 1 && (last == '\n' || write(file, "\n", 1) == 1));
}

static cogpu_status open_file(cogpu_manifest *manifest, const char *folder, bool resume,
                              cogpu_error *error) {
    char path[PATH_MAX];
    struct stat about;
    int length = snprintf(path, sizeof path, "%s/%s", folder, file_name);
    if (length >= (int)sizeof path)
        return cogpu_refuse(error, COGPU_INVALID_ARGUMENT, "the folder's name is too long");
    manifest->file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
    if (manifest->file < 0 || fstat(manifest->file, &about) != 0 ||
        (S_ISREG(about.st_mode) && !end_last_line(manifest->file, about.st_size)))
        return cogpu_refuse(error, COGPU_IO_ERROR, "%s cannot be written: %s", file_name,
                            strerror(errno));
    if (!S_ISREG(about.st_mode))
        return cogpu_refuse(error, COGPU_IO_ERROR, "%s is not a regular file", file_name);
    return resume ? read_lines(manifest, (size_t)about.st_size, error) : COGPU_OK;
}

cogpu_status cogpu_manifest_open(const char *folder, bool resume, cogpu_manifest **manifest,
                                 cogpu_error *error) {
    *manifest = calloc(1, sizeof **manifest);
    if (!*manifest)
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for %s", file_name);
    (*manifest)->file = -1;
    cogpu_status status = open_file(*manifest, folder, resume, error);
    if (status != COGPU_OK) {
        cogpu_manifest_close(*manifest);
        *manifest = NULL;
    }
    return status;
}

void cogpu_manifest_close(cogpu_manifest *manifest) {
    if (!manifest)
        return;
    if (manifest->file >= 0)
        close(manifest->file);
    free(manifest->text);
    free(manifest->lines);
    free(manifest);
}

/* ---- lines ------------------------------------------------------------------------------------
 */

static char *add_encoded(char *to, const char *text) {
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at <= ' ' || *at == '%' || *at == 0x7f)
            to += sprintf(to, "%%%02X", *at);
        else
            *to++ = (char)*at;
    }
    *to = '\0';
    return to;
}

/* The whole line with its end, which the caller frees; NULL where there is no memory. */
static char *make_line(const cogpu_manifest_entry *entry) {
    enum { NUMBERS = 64 };
    size_t texts = strlen(entry->output) + strlen(entry->state) + strlen(entry->input);
    char *line = malloc(3 * texts + NUMBERS);
    if (!line)
        return NULL;
    char *at = add_encoded(line, entry->output);
    at += sprintf(at, "\t%" PRIu64 "\t", entry->bytes);
    at = add_encoded(at, entry->state);
    at += sprintf(at, "\t%016" PRIx64 "\t", entry->options);
    at = add_encoded(at, entry->input);
    *at++ = '\n';
    *at = '\0';
    return line;
}

static const struct line *last_of(const cogpu_manifest *manifest, const char *output) {
    size_t low = 0, high = manifest->count;
    while (low < high) { /* the first line behind those of the output */
        size_t middle = low + (high - low) / 2;
        if (strcmp(manifest->lines[middle].fields[0], output) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_found = low > 0 && strcmp(manifest->lines[low - 1].fields[0], output) == 0;
    return is_found ? &manifest->lines[low - 1] : NULL;
}

bool cogpu_manifest_has(const cogpu_manifest *manifest, const cogpu_manifest_entry *entry) {
    char *text = make_line(entry);
    struct line wanted;
    bool is_same = false;
    if (text) {
        text[strlen(text) - 1] = '\0';
        const struct line *found =
            split_line(text, &wanted) ? last_of(manifest, wanted.fields[0]) : NULL;
        is_same = found != NULL;
        for (int i = 0; is_same && i < FIELDS; i++)
            is_same = strcmp(found->fields[i], wanted.fields[i]) == 0;
    }
    free(text);
    return is_same;
}

cogpu_status cogpu_manifest_add(cogpu_manifest *manifest, const cogpu_manifest_entry *entry,
                                cogpu_error *error) {
    char *line = make_line(entry);
    if (!line)
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for %s", file_name);
    size_t bytes = strlen(line);
    bool is_written =
        write(manifest->file, line, bytes) == (ssize_t)bytes && fdatasync(manifest->file) == 0;
    free(line);
    return is_written ? COGPU_OK
                      : cogpu_refuse(error, COGPU_IO_ERROR, "%s cannot be written: %s", file_name,
                                     strerror(errno));
}
