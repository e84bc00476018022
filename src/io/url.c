/* Takes the text of a URL, hands on its parts and its normal form. In doubt a URL is refused: what
 * one reader takes for the host and another for the path is how requests are led astray. */
#include "io/url.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { HOST_NAME_BYTES = 253, PORT_MOST = 65535, SHOWN_BYTES = 96 };

/* Of RFC 3986, besides letters and digits. */
static const char unreserved[] = "-._~";
static const char reserved[] = "!$&'()*+,;=:@/?"; /* those that paths and queries may have */

/* ---- text ---- */

/* Not those of ctype.h, which ask the locale. */
static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* A letter, a digit or one of `others`. */
static bool is_plain(char c, const char *others) {
    return is_letter(c) || is_digit(c) || (c && strchr(others, c));
}

static bool is_control(int byte) {
    return byte < ' ' || byte == 0x7f;
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int hex_digit(char c) {
    if (is_digit(c))
        return c - '0';
    c = lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that a %XX stands for; -1 where there is none. */
static int encoded_byte(const char *at) {
    if (at[0] != '%' || hex_digit(at[1]) < 0 || hex_digit(at[2]) < 0)
        return -1;
    return hex_digit(at[1]) * 16 + hex_digit(at[2]);
}

/* Text in the making. What finds no room is left out, and `is_full` says so. */
typedef struct pen {
    char *text;
    size_t capacity, bytes;
    bool is_full;
} pen;

static void put(pen *out, char c) {
    if (out->is_full || out->capacity - out->bytes < 2) {
        out->is_full = true;
        return;
    }
    out->text[out->bytes++] = c;
    out->text[out->bytes] = '\0';
}

static void put_text(pen *out, const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        put(out, text[i]);
}

static void put_encoded(pen *out, char c) {
    static const char digits[] = "0123456789ABCDEF";
    unsigned byte = (unsigned char)c;
    put(out, '%');
    put(out, digits[byte / 16]);
    put(out, digits[byte % 16]);
}

cogpu_status cogpu_url_encode(const char *text, bool keep_slashes, char *encoded, size_t capacity,
                              cogpu_error *error) {
    pen out = {.text = encoded, .capacity = capacity, .is_full = capacity == 0};
    if (capacity > 0)
        encoded[0] = '\0';
    /* %XX is decoded and encoded again: a server does so before it compares signatures. */
    for (const char *at = text; *at && !out.is_full; at++) {
        int byte = encoded_byte(at);
        char c = byte < 0 ? *at : (char)byte;
        if (is_plain(c, unreserved) || (byte < 0 && c == '/' && keep_slashes))
            put(&out, c);
        else
            put_encoded(&out, c);
        at += byte < 0 ? 0 : 2;
    }
    if (out.is_full)
        return cogpu_fail(error, COGPU_ARGUMENT, "a name is too long for a URL");
    return COGPU_OK;
}

/* ---- the parts of a URL ---- */

static cogpu_status refuse(cogpu_error *error, const char *why) {
    return cogpu_fail(error, COGPU_ARGUMENT, "cannot use the URL: %s", why);
}

/* The length of the scheme before a ":"; 0 where there is none. */
static size_t scheme_bytes(const char *text) {
    size_t bytes = 0;
    if (!is_letter(text[0]))
        return 0;
    while (is_plain(text[bytes], "+-."))
        bytes++;
    return text[bytes] == ':' ? bytes : 0;
}

/* A scheme of one letter would be a drive's. */
bool cogpu_url_is(const char *text) {
    size_t bytes = scheme_bytes(text);
    return bytes > 1 && strncmp(text + bytes, "://", 3) == 0;
}

static cogpu_status check_text(const char *text, cogpu_error *error) {
    if (strnlen(text, COGPU_URL_BYTES) == COGPU_URL_BYTES)
        return refuse(error, "it is too long");
    for (const char *at = text; *at; at++) {
        if (is_control((unsigned char)*at))
            return refuse(error, "it has a control character");
        if (*at == '\\')
            return refuse(error, "it has a backslash; write / or %5C");
        if (encoded_byte(at) == 0)
            return refuse(error, "it has a %00");
    }
    return COGPU_OK;
}

static bool is_same_word(const char *a, const char *b, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (lower(a[i]) != lower(b[i]))
            return false;
    return true;
}

static bool is_listed(const char *word, const char *list) {
    static const char between[] = ", ";
    for (const char *at = list + strspn(list, between); *at; at += strspn(at, between)) {
        size_t bytes = strcspn(at, between);
        if (bytes == strlen(word) && is_same_word(word, at, bytes))
            return true;
        at += bytes;
    }
    return false;
}

static cogpu_status take_scheme(const char *text, const char *schemes, cogpu_url *url,
                                cogpu_error *error) {
    size_t bytes = scheme_bytes(text);
    if (bytes >= sizeof url->scheme)
        return refuse(error, "its scheme is too long");
    for (size_t i = 0; i < bytes; i++)
        url->scheme[i] = lower(text[i]);
    if (schemes && !is_listed(url->scheme, schemes))
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "URLs that begin with %s:// are not allowed, only those of: %s",
                          url->scheme, schemes);
    return COGPU_OK;
}

static cogpu_status take_user(const char *from, size_t bytes, cogpu_url *url, cogpu_error *error) {
    pen out = {.text = url->user, .capacity = sizeof url->user};
    for (size_t i = 0; i < bytes; i++) {
        bool is_encoded = from[i] == '%';
        int byte = is_encoded ? encoded_byte(from + i) : (unsigned char)from[i];
        if (is_control(byte) || from[i] == ' ')
            return refuse(error, "its user name or password has a space, a lone % or a control "
                                 "character; write spaces as %20 and % as %25");
        put(&out, (char)byte);
        i += is_encoded ? 2 : 0;
    }
    return out.is_full ? refuse(error, "its user name and password are too long") : COGPU_OK;
}

/* An IPv6 address, which has many forms, in its usual one. */
static bool take_bracketed(const char *from, size_t bytes, cogpu_url *url) {
    char inside[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (bytes < 2 || bytes - 2 >= sizeof inside || from[bytes - 1] != ']')
        return false;
    memcpy(inside, from + 1, bytes - 2);
    inside[bytes - 2] = '\0';
    if (inet_pton(AF_INET6, inside, &address) != 1 ||
        !inet_ntop(AF_INET6, &address, inside, sizeof inside))
        return false;
    snprintf(url->host, sizeof url->host, "[%s]", inside);
    return true;
}

static bool take_name(const char *from, size_t bytes, cogpu_url *url) {
    if (bytes == 0 || bytes > HOST_NAME_BYTES || from[0] == '.')
        return false;
    for (size_t i = 0; i < bytes; i++) {
        if (!is_plain(from[i], "-._") || (from[i] == '.' && i > 0 && from[i - 1] == '.'))
            return false;
        url->host[i] = lower(from[i]);
    }
    return true;
}

static uint32_t usual_port(const char *scheme) {
    if (strcmp(scheme, "https") == 0)
        return 443;
    return strcmp(scheme, "http") == 0 ? 80 : 0;
}

/* What follows the host: nothing, or ":" and a number, which may be left out. */
static bool take_port(const char *from, size_t bytes, cogpu_url *url) {
    url->port = usual_port(url->scheme);
    if (bytes <= 1)
        return bytes == 0 || from[0] == ':';
    uint32_t port = 0;
    for (size_t i = 1; i < bytes; i++) {
        if (!is_digit(from[i]))
            return false;
        port = port * 10 + (uint32_t)(from[i] - '0');
        if (port > PORT_MOST)
            return false;
    }
    url->port = port;
    return from[0] == ':' && port > 0;
}

/* [USER@]HOST[:PORT]. A second @ is no part of a host's name, and so refused. */
static cogpu_status take_authority(const char *from, size_t bytes, cogpu_url *url,
                                   cogpu_error *error) {
    const char *at = memchr(from, '@', bytes), *end = from + bytes;
    if (at) {
        TRY(take_user(from, (size_t)(at - from), url, error));
        from = at + 1;
    }
    bytes = (size_t)(end - from);
    bool is_bracketed = bytes > 0 && from[0] == '[';
    size_t host = is_bracketed ? strcspn(from, "]") + 1 : strcspn(from, ":");
    host = host < bytes ? host : bytes;
    if (is_bracketed ? !take_bracketed(from, host, url) : !take_name(from, host, url))
        return refuse(error, "its host must be a name of letters, digits, - . _ or an IPv6 address "
                             "in brackets");
    if (!take_port(from + host, bytes - host, url))
        return refuse(error, "its port must be a number from 1 to 65535");
    return COGPU_OK;
}

/* What may not stand in a URL, and a % that says nothing, are encoded; all else stays. */
static void put_clean(pen *out, const char *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (is_plain(from[i], unreserved) || strchr(reserved, from[i]) ||
            encoded_byte(from + i) >= 0)
            put(out, from[i]);
        else
            put_encoded(out, from[i]);
    }
}

/* The normal form; `rest` is what follows host and port. */
static cogpu_status write_text(const char *rest, cogpu_url *url, cogpu_error *error) {
    pen out = {.text = url->text, .capacity = sizeof url->text};
    char port[16] = "";
    if (url->port != usual_port(url->scheme))
        snprintf(port, sizeof port, ":%u", (unsigned)url->port);
    put_text(&out, url->scheme, strlen(url->scheme));
    put_text(&out, "://", 3);
    put_text(&out, url->host, strlen(url->host));
    put_text(&out, port, strlen(port));
    url->path = out.bytes;
    if (rest[0] != '/')
        put(&out, '/');
    size_t path = strcspn(rest, "?#");
    put_clean(&out, rest, path);
    url->query = out.bytes;
    put_clean(&out, rest + path, strcspn(rest + path, "#"));
    return out.is_full ? refuse(error, "it is too long") : COGPU_OK;
}

cogpu_status cogpu_url_parse(const char *text, const char *schemes, cogpu_url *url,
                             cogpu_error *error) {
    memset(url, 0, sizeof *url);
    if (!cogpu_url_is(text))
        return refuse(error, "it does not begin with a scheme and ://");
    TRY(take_scheme(text, schemes, url, error));
    TRY(check_text(text, error));
    const char *authority = text + strlen(url->scheme) + 3;
    size_t bytes = strcspn(authority, "/?#");
    url->is_ambiguous = memchr(authority, ':', bytes) && strchr(authority + bytes, '@');
    TRY(take_authority(authority, bytes, url, error));
    return write_text(authority + bytes, url, error);
}

/* ---- from one URL to another ---- */

/* How much of a base stands before what a Location says: RFC 3986, 5.2.2. */
static size_t kept_of_base(const cogpu_url *base, const char *location) {
    if (scheme_bytes(location) > 0)
        return 0;
    if (strncmp(location, "//", 2) == 0)
        return strlen(base->scheme) + 1;
    switch (location[0]) {
    case '/':
        return base->path;
    case '?':
        return base->query;
    case '#':
    case '\0':
        return strlen(base->text);
    }
    size_t end = base->query;
    while (base->text[end - 1] != '/')
        end--;
    return end;
}

static bool is_dots(const char *segment, size_t bytes, size_t dots) {
    return bytes == dots && strncmp(segment, "..", dots) == 0;
}

/* What is left of a path without its last segment and the "/" before it. */
static size_t parent_bytes(const char *path, size_t bytes) {
    while (bytes > 0 && path[--bytes] != '/')
        continue;
    return bytes;
}

/* The path without its segments "." and "..": RFC 3986, 5.2.4. */
static void remove_dots(cogpu_url *url) {
    char *path = url->text + url->path;
    size_t bytes = url->query - url->path, kept = 0, next;
    for (size_t at = 0; at < bytes; at = next) { /* at a "/" */
        const char *segment = path + at + 1;
        next = at + 1 + strcspn(segment, "/?");
        bool goes_up = is_dots(segment, next - at - 1, 2);
        if (!goes_up && !is_dots(segment, next - at - 1, 1)) {
            memmove(path + kept, path + at, next - at);
            kept += next - at;
            continue;
        }
        if (goes_up)
            kept = parent_bytes(path, kept);
        if (next == bytes)
            path[kept++] = '/';
    }
    memmove(path + kept, path + bytes, strlen(path + bytes) + 1);
    url->query = url->path + kept;
}

/* Never from TLS to plain text, and only to servers of the web; NULL where there is no reason. */
static const char *why_not_follow(const cogpu_url *from, const cogpu_url *to) {
    if (strcmp(to->scheme, "https") == 0)
        return NULL;
    if (strcmp(to->scheme, "http") != 0)
        return "it leads to neither http nor https";
    return strcmp(from->scheme, "http") == 0 ? NULL : "it leads from https to http";
}

/* `to` is NULL where it is no sound URL: it could have secrets anywhere. */
static cogpu_status refuse_redirect(const cogpu_url *to, const char *why, cogpu_error *error) {
    char shown[SHOWN_BYTES];
    return cogpu_fail(error, COGPU_IO, "cannot follow its redirect%s%s: %s", to ? " to " : "",
                      to ? cogpu_url_shown(to, shown, sizeof shown) : "", why);
}

cogpu_status cogpu_url_resolve(const char *base, const char *location, char *text, size_t capacity,
                               cogpu_error *error) {
    cogpu_url from, to;
    cogpu_error reason;
    char joined[COGPU_URL_BYTES];
    TRY(cogpu_url_parse(base, NULL, &from, error));
    int bytes = snprintf(joined, sizeof joined, "%.*s%s", (int)kept_of_base(&from, location),
                         from.text, location);
    if (bytes < 0 || (size_t)bytes >= sizeof joined)
        return refuse_redirect(NULL, "the URL is too long", error);
    if (cogpu_url_parse(joined, NULL, &to, &reason) != COGPU_OK)
        return refuse_redirect(NULL, reason.message, error);
    const char *why = why_not_follow(&from, &to);
    if (why)
        return refuse_redirect(&to, why, error);
    remove_dots(&to);
    if (strlen(to.text) >= capacity)
        return refuse_redirect(&to, "the URL is too long", error);
    memcpy(text, to.text, strlen(to.text) + 1);
    return COGPU_OK;
}

bool cogpu_url_same_host(const char *a, const char *b) {
    cogpu_url one, other;
    return cogpu_url_parse(a, NULL, &one, NULL) == COGPU_OK &&
           cogpu_url_parse(b, NULL, &other, NULL) == COGPU_OK &&
           strcmp(one.scheme, other.scheme) == 0 && strcmp(one.host, other.host) == 0 &&
           one.port == other.port;
}

bool cogpu_url_has_same_place(const char *a, const char *b) {
    size_t bytes = strcspn(a, "?");
    return bytes == strcspn(b, "?") && strncmp(a, b, bytes) == 0;
}

bool cogpu_url_has_host_of(const char *url, const char *other) {
    cogpu_url one, two;
    return cogpu_url_parse(url, NULL, &one, NULL) == COGPU_OK &&
           cogpu_url_parse(other, NULL, &two, NULL) == COGPU_OK && strcmp(one.host, two.host) == 0;
}

bool cogpu_url_has_host_in(const char *url, const char *hosts) {
    cogpu_url one;
    return hosts && cogpu_url_parse(url, NULL, &one, NULL) == COGPU_OK &&
           is_listed(one.host, hosts);
}

/* What found no room ends in dots. */
static const char *end_shown(const pen *out) {
    size_t dots = out->bytes < 3 ? out->bytes : 3;
    if (out->is_full)
        memset(out->text + out->bytes - dots, '.', dots);
    return out->text;
}

const char *cogpu_url_shown(const cogpu_url *url, char *text, size_t capacity) {
    pen out = {.text = text, .capacity = capacity};
    assert(capacity > 0);
    text[0] = '\0';
    put_text(&out, url->text, url->is_ambiguous ? strlen(url->scheme) + 3 : url->query);
    if (url->is_ambiguous)
        put_text(&out, "...", 3);
    else if (url->text[url->query])
        put_text(&out, "?...", 4);
    return end_shown(&out);
}

const char *cogpu_path_shown(const char *path, char *text, size_t capacity) {
    pen out = {.text = text, .capacity = capacity};
    const char *query = strchr(path, '?'), *at = strrchr(path, '@'), *colon = strchr(path, ':');
    bool has_query = query && strchr(query, '=');
    bool has_user = at && colon && colon < at;
    assert(capacity > 0);
    text[0] = '\0';
    if (has_user)
        put_text(&out, "...", 3);
    if (has_user && query && query < at) /* what is user and what is query cannot be told */
        return end_shown(&out);
    path = has_user ? at + 1 : path;
    put_text(&out, path, has_query ? strcspn(path, "?") : strlen(path));
    if (has_query)
        put_text(&out, "?...", 4);
    return end_shown(&out);
}
