/*
 * Names from the command line: whether one is a URL, and the form without secrets for messages.
 */
#include "name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

/* How many letters "http" of "http://..." has; 0 for what is no URL. One letter would be a drive's.
 */
static size_t scheme_length(const char *name) {
    size_t length = strspn(name, LETTERS) ? strspn(name, LETTERS DIGITS "+-.") : 0;
    return length > 1 && strncmp(name + length, "://", 3) == 0 ? length : 0;
}

bool cogpu_name_is_url(const char *name) {
    return scheme_length(name) > 0;
}

/* Where the host begins, behind the user info, in the part of a URL that ends at `end`. */
static const char *host_in(const char *begin, const char *end) {
    for (const char *at = end; at > begin; at--)
        if (at[-1] == '@')
            return at;
    return begin;
}

/* A host, and a port if any. What looks otherwise may be a piece of a password with a "/" in it. */
static bool is_host(const char *host, const char *end) {
    size_t name = *host == '[' ? strcspn(host, "]") + 1 : strspn(host, LETTERS DIGITS "-._");
    if (name >= (size_t)(end - host))
        return name == (size_t)(end - host);
    const char *port = host + name + 1;
    return host[name] == ':' && strspn(port, DIGITS) == (size_t)(end - port);
}

/* The path of a file as it is. What is no file may be a misspelt URL, as
 * "http:/user:password@host". */
static void show_path(const char *name, char *shown, size_t bytes) {
    if (access(name, F_OK) == 0) {
        snprintf(shown, bytes, "%s", name);
        return;
    }
    const char *query = strchr(name, '?'), *at = strrchr(name, '@'), *colon = strchr(name, ':');
    bool has_query = query && strchr(query, '=');
    bool has_user = at && colon && colon < at;
    if (has_user && query && query < at) /* user and query cannot be separated */
        name = "";
    else if (has_user)
        name = at + 1;
    snprintf(shown, bytes, "%s%.*s%s", has_user ? "..." : "",
             (int)(has_query ? strcspn(name, "?") : strlen(name)), name,
             has_query && *name ? "?..." : "");
}

char *cogpu_name_shown(const char *name) {
    size_t scheme = scheme_length(name), bytes = strlen(name) + sizeof "...?...";
    char *shown = malloc(bytes);
    if (!shown)
        return NULL;
    if (scheme == 0) {
        show_path(name, shown, bytes);
        return shown;
    }
    const char *begin = name + scheme + 3, *end = begin + strcspn(begin, "/?#");
    const char *host = host_in(begin, end);
    size_t length = strcspn(host, "?#");
    /* What looks like a host and a port may be a user and a part of a password. */
    bool is_ambiguous = memchr(begin, ':', (size_t)(end - begin)) && strchr(end, '@');
    if (is_host(host, end) && !is_ambiguous)
        snprintf(shown, bytes, "%.*s%.*s%s", (int)(scheme + 3), name, (int)length, host,
                 host[length] == '?' ? "?..." : "");
    else
        snprintf(shown, bytes, "%.*s...", (int)(scheme + 3), name);
    return shown;
}
