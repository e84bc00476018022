/* See url.h. In doubt a URL is refused: if two parsers disagree about where the host ends, a
 * request reaches a server that was not checked. */
#include "io/http/url.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { HOST_NAME_BYTES = 253, PORT_MAX = 65535, SHOWN_BYTES = 96 };

/* RFC 3986, 2.2 and 2.3, besides letters and digits. */
static const char unreserved[] = "-._~";
static const char reserved[] = "!$&'()*+,;=:@/?"; /* allowed in paths and queries */

/* ---- text ---- */

/* A letter, a digit or one of `others`. */
static bool is_unreserved(char c, const char *others) {
    return ascii_is_letter(c) || ascii_is_digit(c) || (c && strchr(others, c));
}

static bool is_control_byte(int byte) {
    return byte < ' ' || byte == 0x7f;
}

/* The byte of a %XX; -1 if there is none. */
static int encoded_byte(const char *at) {
    if (at[0] != '%' || ascii_hex_value(at[1]) < 0 || ascii_hex_value(at[2]) < 0)
        return -1;
    return ascii_hex_value(at[1]) * 16 + ascii_hex_value(at[2]);
}

/* Text that is written. What does not fit is left out, and `is_full` set. */
typedef struct text_writer {
    char *text;
    size_t capacity, bytes;
    bool is_full;
} text_writer;

static void put_char(text_writer *out, char c) {
    if (out->is_full || out->capacity - out->bytes < 2) {
        out->is_full = true;
        return;
    }
    out->text[out->bytes++] = c;
    out->text[out->bytes] = '\0';
}

static void append_url_text(text_writer *out, const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        put_char(out, text[i]);
}

static void append_percent_encoded(text_writer *out, char c) {
    static const char digits[] = "0123456789ABCDEF";
    unsigned byte = (unsigned char)c;
    put_char(out, '%');
    put_char(out, digits[byte / 16]);
    put_char(out, digits[byte % 16]);
}

/* ---- the parts of a URL ---- */

static cogpu_status fail_url(cogpu_error *error, const char *why) {
    return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "cannot use the URL: %s", why);
}

/* The length of the scheme before a ":"; 0 if there is none. */
static size_t scheme_bytes(const char *text) {
    size_t bytes = 0;
    if (!ascii_is_letter(text[0]))
        return 0;
    while (is_unreserved(text[bytes], "+-."))
        bytes++;
    return text[bytes] == ':' ? bytes : 0;
}

/* One letter would be a drive. */
bool cogpu_url_is(const char *text) {
    size_t bytes = scheme_bytes(text);
    return bytes > 1 && strncmp(text + bytes, "://", 3) == 0;
}

static cogpu_status check_text(const char *text, cogpu_error *error) {
    if (strnlen(text, COGPU_URL_BYTES) == COGPU_URL_BYTES)
        return fail_url(error, "it is too long");
    for (const char *at = text; *at; at++) {
        if (is_control_byte((unsigned char)*at))
            return fail_url(error, "it has a control character");
        if (*at == '\\')
            return fail_url(error, "it has a backslash; write / or %5C");
        if (encoded_byte(at) == 0)
            return fail_url(error, "it has a %00");
    }
    return COGPU_OK;
}

static bool is_same_word(const char *a, const char *b, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (ascii_lower(a[i]) != ascii_lower(b[i]))
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

static cogpu_status parse_scheme(const char *text, const char *schemes, cogpu_url *url,
                                 cogpu_error *error) {
    size_t bytes = scheme_bytes(text);
    if (bytes >= sizeof url->scheme)
        return fail_url(error, "its scheme is too long");
    for (size_t i = 0; i < bytes; i++)
        url->scheme[i] = ascii_lower(text[i]);
    if (schemes && !is_listed(url->scheme, schemes))
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "URLs that begin with %s:// are not allowed, only those of: %s",
                          url->scheme, schemes);
    return COGPU_OK;
}

static cogpu_status parse_user(const char *from, size_t bytes, cogpu_url *url, cogpu_error *error) {
    text_writer out = {.text = url->user, .capacity = sizeof url->user};
    for (size_t i = 0; i < bytes; i++) {
        bool is_encoded = from[i] == '%';
        int byte = is_encoded ? encoded_byte(from + i) : (unsigned char)from[i];
        if (is_control_byte(byte) || from[i] == ' ')
            return fail_url(error, "its user name or password has a space, a lone % or a control "
                                   "character; write spaces as %20 and % as %25");
        put_char(&out, (char)byte);
        i += is_encoded ? 2 : 0;
    }
    return out.is_full ? fail_url(error, "its user name and password are too long") : COGPU_OK;
}

/* An IPv6 address, in its canonical form. */
static bool parse_ipv6(const char *from, size_t bytes, cogpu_url *url) {
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

static bool parse_host_name(const char *from, size_t bytes, cogpu_url *url) {
    if (bytes == 0 || bytes > HOST_NAME_BYTES || from[0] == '.')
        return false;
    for (size_t i = 0; i < bytes; i++) {
        if (!is_unreserved(from[i], "-._") || (from[i] == '.' && i > 0 && from[i - 1] == '.'))
            return false;
        url->host[i] = ascii_lower(from[i]);
    }
    return true;
}

static uint32_t default_port(const char *scheme) {
    if (strcmp(scheme, "https") == 0)
        return 443;
    return strcmp(scheme, "http") == 0 ? 80 : 0;
}

/* After the host: nothing, or ":" and an optional number. */
static bool parse_port(const char *from, size_t bytes, cogpu_url *url) {
    url->port = default_port(url->scheme);
    if (bytes <= 1)
        return bytes == 0 || from[0] == ':';
    uint32_t port = 0;
    for (size_t i = 1; i < bytes; i++) {
        if (!ascii_is_digit(from[i]))
            return false;
        port = port * 10 + (uint32_t)(from[i] - '0');
        if (port > PORT_MAX)
            return false;
    }
    url->port = port;
    return from[0] == ':' && port > 0;
}

/* [USER@]HOST[:PORT]. A second @ is not valid in a host, and is refused. */
static cogpu_status parse_authority(const char *from, size_t bytes, cogpu_url *url,
                                    cogpu_error *error) {
    const char *at = memchr(from, '@', bytes), *end = from + bytes;
    if (at) {
        TRY(parse_user(from, (size_t)(at - from), url, error));
        from = at + 1;
    }
    bytes = (size_t)(end - from);
    bool is_bracketed = bytes > 0 && from[0] == '[';
    size_t host = is_bracketed ? strcspn(from, "]") + 1 : strcspn(from, ":");
    host = host < bytes ? host : bytes;
    if (is_bracketed ? !parse_ipv6(from, host, url) : !parse_host_name(from, host, url))
        return fail_url(error,
                        "its host must be a name of letters, digits, - . _ or an IPv6 address "
                        "in brackets");
    if (!parse_port(from + host, bytes - host, url))
        return fail_url(error, "its port must be a number from 1 to 65535");
    return COGPU_OK;
}

/* Encodes characters that are not valid in a URL, and a % without hex digits. */
static void put_normalized(text_writer *out, const char *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (is_unreserved(from[i], unreserved) || strchr(reserved, from[i]) ||
            encoded_byte(from + i) >= 0)
            put_char(out, from[i]);
        else
            append_percent_encoded(out, from[i]);
    }
}

/* Writes the normal form; `rest` follows host and port. */
static cogpu_status write_normal_form(const char *rest, cogpu_url *url, cogpu_error *error) {
    text_writer out = {.text = url->text, .capacity = sizeof url->text};
    char port[16] = "";
    if (url->port != default_port(url->scheme))
        snprintf(port, sizeof port, ":%u", (unsigned)url->port);
    append_url_text(&out, url->scheme, strlen(url->scheme));
    append_url_text(&out, "://", 3);
    append_url_text(&out, url->host, strlen(url->host));
    append_url_text(&out, port, strlen(port));
    url->path = out.bytes;
    if (rest[0] != '/')
        put_char(&out, '/');
    size_t path = strcspn(rest, "?#");
    put_normalized(&out, rest, path);
    url->query = out.bytes;
    put_normalized(&out, rest + path, strcspn(rest + path, "#"));
    return out.is_full ? fail_url(error, "it is too long") : COGPU_OK;
}

cogpu_status cogpu_url_parse(const char *text, const char *schemes, cogpu_url *url,
                             cogpu_error *error) {
    memset(url, 0, sizeof *url);
    if (!cogpu_url_is(text))
        return fail_url(error, "it does not begin with a scheme and ://");
    TRY(parse_scheme(text, schemes, url, error));
    TRY(check_text(text, error));
    const char *authority = text + strlen(url->scheme) + 3;
    size_t bytes = strcspn(authority, "/?#");
    url->is_ambiguous = memchr(authority, ':', bytes) && strchr(authority + bytes, '@');
    TRY(parse_authority(authority, bytes, url, error));
    return write_normal_form(authority + bytes, url, error);
}

/* ---- from one URL to another ---- */

/* How many bytes of the base precede a relative Location: RFC 3986, 5.2.2. */
static size_t base_bytes(const cogpu_url *base, const char *location) {
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

/* Length of a path without its last segment and the "/" before it. */
static size_t parent_bytes(const char *path, size_t bytes) {
    while (bytes > 0 && path[--bytes] != '/')
        continue;
    return bytes;
}

/* Removes the segments "." and ".." of the path: RFC 3986, 5.2.4. */
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

/* Never from https to http, and only to these two; NULL if the redirect is allowed. */
static const char *redirect_obstacle(const cogpu_url *from, const cogpu_url *to) {
    if (strcmp(to->scheme, "https") == 0)
        return NULL;
    if (strcmp(to->scheme, "http") != 0)
        return "it leads to neither http nor https";
    return strcmp(from->scheme, "http") == 0 ? NULL : "it leads from https to http";
}

/* `to` is NULL if it is malformed: it could have secrets anywhere. */
static cogpu_status fail_redirect(const cogpu_url *to, const char *why, cogpu_error *error) {
    char shown[SHOWN_BYTES];
    return cogpu_fail(error, COGPU_IO_ERROR, "cannot follow its redirect%s%s: %s", to ? " to " : "",
                      to ? cogpu_url_shown(to, shown, sizeof shown) : "", why);
}

cogpu_status cogpu_url_resolve(const char *base, const char *location, char *text, size_t capacity,
                               cogpu_error *error) {
    cogpu_url from, to;
    cogpu_error reason;
    char joined[COGPU_URL_BYTES];
    TRY(cogpu_url_parse(base, NULL, &from, error));
    int bytes = snprintf(joined, sizeof joined, "%.*s%s", (int)base_bytes(&from, location),
                         from.text, location);
    if (bytes < 0 || (size_t)bytes >= sizeof joined)
        return fail_redirect(NULL, "the URL is too long", error);
    if (cogpu_url_parse(joined, NULL, &to, &reason) != COGPU_OK)
        return fail_redirect(NULL, reason.message, error);
    const char *why = redirect_obstacle(&from, &to);
    if (why)
        return fail_redirect(&to, why, error);
    remove_dots(&to);
    if (strlen(to.text) >= capacity)
        return fail_redirect(&to, "the URL is too long", error);
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

bool cogpu_url_same_without_query(const char *a, const char *b) {
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

/* Text that did not fit ends in dots. */
static const char *finish_shown(const text_writer *out) {
    size_t dots = out->bytes < 3 ? out->bytes : 3;
    if (out->is_full)
        memset(out->text + out->bytes - dots, '.', dots);
    return out->text;
}

const char *cogpu_url_shown(const cogpu_url *url, char *text, size_t capacity) {
    text_writer out = {.text = text, .capacity = capacity};
    assert(capacity > 0);
    text[0] = '\0';
    append_url_text(&out, url->text, url->is_ambiguous ? strlen(url->scheme) + 3 : url->query);
    if (url->is_ambiguous)
        append_url_text(&out, "...", 3);
    else if (url->text[url->query])
        append_url_text(&out, "?...", 4);
    return finish_shown(&out);
}

const char *cogpu_path_shown(const char *path, char *text, size_t capacity) {
    text_writer out = {.text = text, .capacity = capacity};
    const char *query = strchr(path, '?'), *at = strrchr(path, '@'), *colon = strchr(path, ':');
    bool has_query = query && strchr(query, '=');
    bool has_user = at && colon && colon < at;
    assert(capacity > 0);
    text[0] = '\0';
    if (has_user)
        append_url_text(&out, "...", 3);
    if (has_user && query && query < at) /* user and query cannot be distinguished */
        return finish_shown(&out);
    path = has_user ? at + 1 : path;
    append_url_text(&out, path, has_query ? strcspn(path, "?") : strlen(path));
    if (has_query)
        append_url_text(&out, "?...", 4);
    return finish_shown(&out);
}
