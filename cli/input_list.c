/*
 * Reads a list of inputs. The paths stay in the text of the list, whose line ends become NULs.
 */
#include "input_list.h"

#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t list_limit = (size_t)64 << 20;

/* The whole text with a closing NUL, or NULL with errno set. */
static char *read_text(FILE *from) {
    size_t used = 0, capacity = (size_t)1 << 16;
    char *text = malloc(capacity);
    while (text) {
        used += fread(text + used, 1, capacity - 1 - used, from);
        if (used < capacity - 1 || capacity > list_limit)
            break;
        capacity *= 2;
        char *grown = realloc(text, capacity);
        if (!grown)
            free(text);
        text = grown;
    }
    if (text && !ferror(from) && used < list_limit) {
        text[used] = '\0';
        return text;
    }
    if (used >= list_limit)
        errno = EFBIG;
    free(text);
    return NULL;
}

static char *read_list(const char *path) {
    FILE *from = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char *text = from ? read_text(from) : NULL;
    int wrong = errno;
    if (from && from != stdin)
        fclose(from);
    errno = wrong;
    return text;
}

static int count_lines(const char *text) {
    int count = 1;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

/* Cuts the next line that is not empty out of the text; NULL at the end. */
static char *next_line(char **text) {
    for (char *line = *text; *line; line = *text) {
        size_t length = strcspn(line, "\r\n");
        *text = line + length + (line[length] != '\0');
        line[length] = '\0';
        if (length > 0)
            return line;
    }
    return NULL;
}

static void insert_lines(cogpu_arguments *arguments) {
    char *text = arguments->list_text;
    const char *out = arguments->files[--arguments->file_count];
    for (const char *line; (line = next_line(&text)) != NULL;)
        arguments->files[arguments->file_count++] = line;
    arguments->files[arguments->file_count++] = out;
}

bool cogpu_input_list_insert(cogpu_arguments *arguments) {
    if (arguments->file_count == 0) { /* or the last line would be OUT */
        cogpu_report_usage("--input-list: OUT is missing behind the inputs");
        return false;
    }
    arguments->list_text = read_list(arguments->input_list);
    if (!arguments->list_text) {
        cogpu_report_usage("--input-list %s: cannot be read: %s", arguments->input_list,
                           strerror(errno));
        return false;
    }
    size_t most = (size_t)arguments->file_count + (size_t)count_lines(arguments->list_text);
    const char **files = realloc(arguments->files, (most + 1) * sizeof *files);
    if (!files) {
        cogpu_report_usage("--input-list %s: out of memory", arguments->input_list);
        return false;
    }
    arguments->files = files;
    insert_lines(arguments);
    return true;
}
