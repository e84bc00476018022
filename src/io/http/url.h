/*
 * URLs (RFC 3986): text of a user or a server is parsed into its parts and a normal form, which
 * libcurl gets. So no other parser can read the text in another way. No name is resolved here.
 *
 * The normal form is ASCII without spaces: scheme and host in lower case, a port only if it is not
 * the scheme's default, a path that begins with "/", all other characters as %XX. It has no user
 * info and no fragment. What is encoded already stays as it is, because signatures depend on it.
 */
#ifndef COGPU_IO_HTTP_URL_H
#define COGPU_IO_HTTP_URL_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest texts, each with its NUL. */
enum {
    COGPU_URL_BYTES = 8192,
    COGPU_URL_SCHEME_BYTES = 16,
    COGPU_URL_HOST_BYTES = 256,
    COGPU_URL_USER_BYTES = 1024
};

typedef struct cogpu_url {
    char text[COGPU_URL_BYTES]; /* the normal form */
    size_t path, query;         /* offsets in `text`: of "/", and of "?" or the end */
    char scheme[COGPU_URL_SCHEME_BYTES];
    char host[COGPU_URL_HOST_BYTES]; /* IPv6 in brackets */
    char user[COGPU_URL_USER_BYTES]; /* "NAME:PASSWORD", decoded; "" without. Secret */
    uint32_t port;                   /* 0 if the scheme has no default, and none is given */
    bool is_ambiguous; /* an @ follows what was parsed as host and port: that may be a user and the
                        * begin of a password that contains "/" or "?" */
} cogpu_url;

/* Whether a text is a URL and not a path: a scheme of two letters or more, and "://". */
bool cogpu_url_is(const char *text);

/* `schemes` lists those that are allowed, as "https,http,s3", in any case; NULL allows all.
 * UNSUPPORTED for others, ARGUMENT for a malformed URL. Messages contain no part of the text but
 * the scheme. */
cogpu_status cogpu_url_parse(const char *text, const char *schemes, cogpu_url *url,
                             cogpu_error *error);

/* The target of a redirect: the normal form of a Location in a response to a request for `base`. IO
 * for what cogpu_url_parse refuses, for schemes other than http and https, and from https to http.
 * User info in the Location is dropped. */
cogpu_status cogpu_url_resolve(const char *base, const char *location, char *text, size_t capacity,
                               cogpu_error *error);

/* Whether scheme, host and port are equal: only then may credentials be sent. */
bool cogpu_url_same_host(const char *a, const char *b);

/* Whether the host of a URL is that of another, or one of a list as "host1,host2"; whatever the
 * scheme and the port. The list may be NULL. */
bool cogpu_url_same_without_query(const char *a, const char *b); /* equal but for the query */
bool cogpu_url_has_host_of(const char *url, const char *other);
bool cogpu_url_has_host_in(const char *url, const char *hosts);

/* Writes the URL for messages, and returns it: "?..." for a query, "..." for what does not fit, and
 * for all but the scheme if it is ambiguous. The capacity is at least 1. */
const char *cogpu_url_shown(const cogpu_url *url, char *text, size_t capacity);
/* The same for a path, or a misspelt URL such as "http:/user:password@host". Text before an "@" is
 * left out if it has a ":", and so is a query with a "=". */
const char *cogpu_path_shown(const char *path, char *text, size_t capacity);

#endif
