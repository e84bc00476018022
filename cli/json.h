/*
 * A JSON writer. It gathers the text in memory, so that a command which fails half way prints its
 * error and not a half object. `key` is NULL inside arrays. JSON has no nan and no infinity:
 * numbers that are none are written as the strings "nan", "inf" and "-inf".
 */
#ifndef COGPU_CLI_JSON_H
#define COGPU_CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cogpu_json {
    char *text;
    size_t bytes, capacity;
    bool failed; /* no memory: nothing more is added */
    bool more;   /* the next value follows another one */
    int depth;
    int line_depth;   /* where lists on one line begin; 0 = not in one */
    char closing[16]; /* the brackets that are open */
} cogpu_json;

/* Begins an object '{', an array '[' or an array on a single line '-'. */
void cogpu_json_open(cogpu_json *json, const char *key, char kind);
void cogpu_json_close(cogpu_json *json);

void cogpu_json_text(cogpu_json *json, const char *key, const char *value); /* NULL: null */
/* Text that is JSON already: a number. */
void cogpu_json_plain(cogpu_json *json, const char *key, const char *value);
void cogpu_json_integer(cogpu_json *json, const char *key, int64_t value);
void cogpu_json_unsigned(cogpu_json *json, const char *key, uint64_t value);
void cogpu_json_number(cogpu_json *json, const char *key, double value);
void cogpu_json_boolean(cogpu_json *json, const char *key, bool value);
void cogpu_json_null(cogpu_json *json, const char *key);
/* An index or offset; null if it is negative. */
void cogpu_json_index(cogpu_json *json, const char *key, int64_t value);

/* A list of `count` numbers on a line. */
void cogpu_json_numbers(cogpu_json *json, const char *key, const double *values, size_t count);

/* Prints where results go (report.h) and frees; false when there was no memory for it. Between
 * the next two calls what is printed becomes a list. */
bool cogpu_json_print(cogpu_json *json);
void cogpu_json_list_open(void);
void cogpu_json_list_close(void);
void cogpu_json_free(cogpu_json *json);

#endif
