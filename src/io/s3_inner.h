/* What the files of S3 share: text of a bounded length, checks of characters, profiles. */
#ifndef COGPU_IO_S3_INNER_H
#define COGPU_IO_S3_INNER_H

#include "io/s3.h"

#include <string.h>

/* ---- text that is written ---- */

/* NUL-terminated at all times; `fits` is false once something was left out. */
typedef struct s3_text {
    char *at;
    size_t room, used;
    bool fits;
} s3_text;

static inline s3_text s3_text_in(char *room, size_t bytes) {
    room[0] = '\0';
    return (s3_text){.at = room, .room = bytes, .fits = true};
}

static inline void s3_put_bytes(s3_text *text, const char *from, size_t bytes) {
    text->fits = text->fits && bytes < text->room - text->used;
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

static inline bool s3_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static inline bool s3_is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool s3_is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* What stands for itself in a header, between blanks. */
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

/* What an environment's variable says; NULL also where it is empty. */
const char *cogpu_s3_variable(const char *name);

/* Fit for a signature and for a host's name. */
bool cogpu_s3_is_region(const char *text, size_t bytes);

typedef enum cogpu_s3_file { COGPU_S3_CREDENTIALS_FILE, COGPU_S3_CONFIG_FILE } cogpu_s3_file;

/* A name that is looked for in a profile. Its value is of graphic characters; `value` may be NULL
 * where only `is_there` is asked for. */
typedef struct cogpu_s3_wish {
    const char *name;
    char *value;
    size_t room;
    bool is_there;
} cogpu_s3_wish;

/* The caller's, the environment's or "default". */
const char *cogpu_s3_profile_name(const cogpu_s3_settings *settings);

/* Of the profile in one of the shared files; *has_profile is false where the file is not there or
 * has none of that name. ARGUMENT where the file is odd, with the line. */
cogpu_status cogpu_s3_profile_read(cogpu_s3_file file, const char *profile, cogpu_s3_wish *wishes,
                                   size_t count, bool *has_profile, cogpu_error *error);

/* Where that file is, for messages: the environment's path, or the usual one. */
const char *cogpu_s3_file_name(cogpu_s3_file file);

/* ---- XML ---- */

/* Whether the root has this name; then `to` is the text of its first child of that name, ASCII
 * without control characters, elements inside passed over. "" where it is not there, and where it
 * does not fit, unless it may be cut. */
bool cogpu_s3_xml_text(const char *xml, size_t bytes, const char *root, const char *child,
                       bool may_be_cut, char *to, size_t room);

#endif
