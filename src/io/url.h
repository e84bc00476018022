/*
 * URLs: takes text that a user or a server wrote, hands on its parts and one normal
 * form of it, which libcurl gets: so that nobody behind reads the text another way. Here no name is
 * looked up and nobody is asked.
 *
 * The normal form is ASCII without spaces: scheme and host in lower case, a port only where it is
 * not the scheme's own, a path from "/" on, what may not stand in a URL as %XX. It has no user info
 * and no fragment. What has been encoded stays as it was written, since signatures are made of it.
 */
#ifndef COGPU_IO_URL_H
#define COGPU_IO_URL_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest, each with its NUL. */
enum {
    COGPU_URL_BYTES = 8192,
    COGPU_URL_SCHEME_BYTES = 16,
    COGPU_URL_HOST_BYTES = 256,
    COGPU_URL_USER_BYTES = 1024
};

typedef struct cogpu_url {
    char text[COGPU_URL_BYTES]; /* the normal form */
    size_t path, query;         /* where they begin in `text`: at "/", and at "?" or the end */
    char scheme[COGPU_URL_SCHEME_BYTES];
    char host[COGPU_URL_HOST_BYTES]; /* IPv6 in brackets */
    char user[COGPU_URL_USER_BYTES]; /* "NAME:PASSWORD", decoded; "" without. A secret */
    uint32_t port;                   /* 0 where the scheme has none of its own and none is given */
    bool is_ambiguous; /* an @ follows what was read as host and port: they may be a user and a part
                        * of a password with "/" or "?" in it */
} cogpu_url;

/* Whether a text is a URL and not a path: a scheme of two letters or more, and "://". */
bool cogpu_url_is(const char *text);

/* `schemes` names those that are allowed, as "https,http,s3", in any case; NULL allows all.
 * UNSUPPORTED for others, ARGUMENT for what is no sound URL. No message has a part of the text but
 * the scheme. */
cogpu_status cogpu_url_parse(const char *text, const char *schemes, cogpu_url *url,
                             cogpu_error *error);

/* Where a redirect leads: the normal form of what Location means in an answer to a request for
 * `base`. IO for what cogpu_url_parse refuses, for schemes but http and https, and from https down
 * to http. User info that the server wrote is dropped. */
cogpu_status cogpu_url_resolve(const char *base, const char *location, char *text, size_t capacity,
                               cogpu_error *error);

/* Scheme, host and port alike: only then credentials may go along. */
bool cogpu_url_same_host(const char *a, const char *b);

/* Whether the host of a URL is that of another, or one of a list as "host1,host2"; whatever the
 * scheme and the port. The list may be NULL. */
bool cogpu_url_has_same_place(const char *a, const char *b); /* all but queries alike */
bool cogpu_url_has_host_of(const char *url, const char *other);
bool cogpu_url_has_host_in(const char *url, const char *hosts);

/* A form for messages, which it returns: "?..." for a query, "..." for what finds no room, and for
 * all but the scheme where that is ambiguous. The capacity is 1 at least. */
const char *cogpu_url_shown(const cogpu_url *url, char *text, size_t capacity);
/* The same for what is no URL: a path, or a URL that was misspelt, as "http:/user:password@host".
 * What stands before an "@" is left out if it has a ":", and so is a query with a "=". */
const char *cogpu_path_shown(const char *path, char *text, size_t capacity);

/* A path, or a part of a query, as SigV4 wants it: all bytes as %XX but letters, digits, "-._~",
 * and slashes if they are kept. What is %XX already is not encoded again, so that a "%" before two
 * hex digits is only meant where it is written "%25". ARGUMENT where the result finds no room. */
cogpu_status cogpu_url_encode(const char *text, bool keep_slashes, char *encoded, size_t capacity,
                              cogpu_error *error);

#endif
