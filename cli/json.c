/*
 * Writes values one by one as indented JSON to stdout.
 */
#include "json.h"

#include "report.h"
#include "text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append_json(cogpu_json *json, const char *text, size_t bytes) {
    if (json->failed)
        return;
    if (json->capacity - json->bytes < bytes) {
        size_t capacity = (json->capacity + bytes) * 2;
        char *grown = realloc(json->text, capacity);
        if (!grown) {
            json->failed = true;
            return;
        }
        json->text = grown;
        json->capacity = capacity;
    }
    memcpy(json->text + json->bytes, text, bytes);
    json->bytes += bytes;
}

static void add_plain(cogpu_json *json, const char *text) {
    append_json(json, text, strlen(text));
}

static void add_quoted(cogpu_json *json, const char *text) {
    add_plain(json, "\"");
    while (*text) {
        char bytes[16];
        uint32_t code = cogpu_text_next(&text);
        if (code == '"' || code == '\\') {
            bytes[0] = '\\';
            bytes[1] = (char)code;
            append_json(json, bytes, 2);
        } else if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
            append_json(json, bytes,
                        (size_t)snprintf(bytes, sizeof bytes, "\\u%04x", (unsigned)code));
        } else {
            append_json(json, bytes, cogpu_text_encode(code, bytes));
        }
    }
    add_plain(json, "\"");
}

static void add_new_line(cogpu_json *json) {
    add_plain(json, "\n");
    for (int i = 0; i < json->depth; i++)
        add_plain(json, "  ");
}

/* The text before a value: comma, indentation, key. */
static void begin_value(cogpu_json *json, const char *key) {
    if (json->more)
        add_plain(json, json->line_depth ? ", " : ",");
    if (json->depth > 0 && !json->line_depth)
        add_new_line(json);
    if (key) {
        add_quoted(json, key);
        add_plain(json, ": ");
    }
    json->more = true;
}

void cogpu_json_open(cogpu_json *json, const char *key, char kind) {
    assert(json->depth + 1 < (int)sizeof json->closing);
    begin_value(json, key);
    add_plain(json, kind == '{' ? "{" : "[");
    json->closing[json->depth++] = kind == '{' ? '}' : ']';
    if (kind == '-' && !json->line_depth)
        json->line_depth = json->depth;
    json->more = false;
}

void cogpu_json_close(cogpu_json *json) {
    json->depth--;
    if (json->more && !json->line_depth)
        add_new_line(json);
    if (json->line_depth > json->depth)
        json->line_depth = 0;
    append_json(json, &json->closing[json->depth], 1);
    json->more = true;
}

void cogpu_json_text(cogpu_json *json, const char *key, const char *value) {
    if (!value) {
        cogpu_json_null(json, key);
        return;
    }
    begin_value(json, key);
    add_quoted(json, value);
}

void cogpu_json_plain(cogpu_json *json, const char *key, const char *value) {
    begin_value(json, key);
    add_plain(json, value);
}

void cogpu_json_integer(cogpu_json *json, const char *key, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    cogpu_json_plain(json, key, text);
}

void cogpu_json_unsigned(cogpu_json *json, const char *key, uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    cogpu_json_plain(json, key, text);
}

void cogpu_json_number(cogpu_json *json, const char *key, double value) {
    char text[NUMBER_TEXT];
    cogpu_text_number(value, text);
    if (isfinite(value))
        cogpu_json_plain(json, key, text);
    else
        cogpu_json_text(json, key, text);
}

void cogpu_json_boolean(cogpu_json *json, const char *key, bool value) {
    cogpu_json_plain(json, key, value ? "true" : "false");
}

void cogpu_json_null(cogpu_json *json, const char *key) {
    cogpu_json_plain(json, key, "null");
}

void cogpu_json_index(cogpu_json *json, const char *key, int64_t value) {
    if (value >= 0)
        cogpu_json_integer(json, key, value);
    else
        cogpu_json_null(json, key);
}

void cogpu_json_numbers(cogpu_json *json, const char *key, const double *values, size_t count) {
    cogpu_json_open(json, key, '-');
    for (size_t i = 0; i < count; i++)
        cogpu_json_number(json, NULL, values[i]);
    cogpu_json_close(json);
}

static enum { NO_LIST, EMPTY_LIST, LIST } list;

void cogpu_json_list_open(void) {
    list = EMPTY_LIST;
}

void cogpu_json_list_close(void) {
    fputs(list == EMPTY_LIST ? "[]\n" : "]\n", cogpu_report_stream());
    list = NO_LIST;
}

bool cogpu_json_print(cogpu_json *json) {
    bool is_complete = !json->failed;
    if (is_complete) {
        FILE *to = cogpu_report_stream();
        if (list != NO_LIST)
            fputs(list == LIST ? ",\n" : "[\n", to);
        list = list == NO_LIST ? NO_LIST : LIST;
        fwrite(json->text, 1, json->bytes, to);
        fputc('\n', to);
    } else {
        fputs("cogpu: not enough memory for the JSON text\n", stderr);
    }
    cogpu_json_free(json);
    return is_complete;
}

void cogpu_json_free(cogpu_json *json) {
    free(json->text);
    *json = (cogpu_json){0};
}
