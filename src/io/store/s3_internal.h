/* Shared by the files of S3: bounded text, character classes, profiles. */
#ifndef COGPU_IO_STORE_S3_INTERNAL_H
#define COGPU_IO_STORE_S3_INTERNAL_H

#include "io/store/s3.h"

#include <string.h>

/* A part of a text; not terminated. */
typedef struct s3_slice {
    const char *at;
    size_t bytes;
} s3_slice;

/* ---- bounded text ---- */

/* Always NUL-terminated; `fits` is false once something was left out. */
typedef struct s3_text {
    char *at;
    size_t capacity, used;
    bool fits;
} s3_text;

static inline s3_text s3_text_in(char *capacity, size_t bytes) {
    capacity[0] = '\0';
    return (s3_text){.at = capacity, .capacity = bytes, .fits = true};
}

static inline void s3_put_bytes(s3_text *text, const char *from, size_t bytes) {
    text->fits = text->fits && bytes < text->capacity - text->used;
    if (!text->fits)
        return;
    memcpy(text->at + text->used, from, bytes);
    text->used += bytes;
    text->at[text->used] = '\0';
}

static inline void s3_put(s3_text *text, const char *word) {
    s3_put_bytes(text, word, strlen(word));
}

/* ---- characters ---- */

static inline bool s3_is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Printable ASCII without blanks. */
static inline bool s3_is_graphic(char c) {
    return c > ' ' && c <= '~';
}

static inline bool s3_are_graphic(const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (!s3_is_graphic(text[i]))
            return false;
    return true;
}

/* ---- settings ---- */

/* Value of an environment variable; NULL if it is empty, too. */
const char *cogpu_s3_variable(const char *name);

/* Whether it is valid in a signature and in a host name. */
bool cogpu_s3_is_region(const char *text, size_t bytes);

typedef enum cogpu_s3_file { COGPU_S3_CREDENTIALS_FILE, COGPU_S3_CONFIG_FILE } cogpu_s3_file;

/* A value that is looked up in a profile. It must be printable; `value` may be NULL if only
 * `is_there` matters. */
typedef struct cogpu_s3_profile_value {
    const char *name;
    char *value;
    size_t capacity;
    bool is_there;
} cogpu_s3_profile_value;

/* The caller's, the environment's or "default". */
const char *cogpu_s3_profile_name(const cogpu_s3_settings *settings);

/* Looks up values of a profile in one of the AWS config files; *has_profile is false if the file or
 * the profile does not exist. ARGUMENT if the file is malformed; the message has the line. */
cogpu_status cogpu_s3_profile_read(cogpu_s3_file file, const char *profile,
                                   cogpu_s3_profile_value *wishes, size_t count, bool *has_profile,
                                   cogpu_error *error);

/* Path of that file, for messages: of the environment, or the default. */
const char *cogpu_s3_file_name(cogpu_s3_file file);

/* ---- XML ---- */

/* False if the root has another name. `to` becomes the text of the first child `child`, ASCII
 * without control characters and nested elements. "" if there is none, or if it does not fit,
 * unless it may be truncated. */
bool cogpu_s3_xml_text(const char *xml, size_t bytes, const char *root, const char *child,
                       bool may_be_truncated, char *to, size_t capacity);

#endif
