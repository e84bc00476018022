/* Parses the status line and headers of a response (RFC 9110, RFC 9112), line by line. What they
 * mean for a request is decided in response_check.c. */
#include "io/http/response.h"
#include "base/text.h"

#include <string.h>
#include <time.h>

/* A part of a line; not terminated. */
typedef struct text {
    const char *at;
    size_t bytes;
} text;

static bool is_blank_char(char c) {
    return c == ' ' || c == '\t';
}

static text trim_blanks(text part) {
    while (part.bytes && is_blank_char(part.at[part.bytes - 1]))
        part.bytes--;
    while (part.bytes && is_blank_char(*part.at))
        part.at++, part.bytes--;
    return part;
}

/* Equal except for the case of ASCII letters; `word` is in lower case. */
static bool equals_ignoring_case(text part, const char *word) {
    if (part.bytes != strlen(word))
        return false;
    for (size_t i = 0; i < part.bytes; i++)
        if (ascii_lower(part.at[i]) != word[i])
            return false;
    return true;
}

static bool skip_char(text *rest, char c) {
    if (rest->bytes == 0 || *rest->at != c)
        return false;
    rest->at++, rest->bytes--;
    return true;
}

/* Skips digits. False if there are none, or the number exceeds INT64_MAX. */
static bool skip_number(text *rest, uint64_t *number) {
    const char *first = rest->at;
    for (*number = 0; rest->bytes && ascii_is_digit(*rest->at); rest->at++, rest->bytes--) {
        uint64_t digit = (uint64_t)(*rest->at - '0');
        if (*number > (INT64_MAX - digit) / 10)
            return false;
        *number = *number * 10 + digit;
    }
    return rest->at > first;
}

/* ---- the headers -------------------------------------------------------------------------------
 * Each stores a value, and returns false if it is malformed or contradicts an earlier one.
 */

static bool store_text(char *to, size_t capacity, text value) {
    if (*to)
        return strlen(to) == value.bytes && memcmp(to, value.at, value.bytes) == 0;
    if (value.bytes >= capacity)
        return false;
    memcpy(to, value.at, value.bytes);
    to[value.bytes] = '\0';
    return true;
}

static bool store_length(cogpu_response *response, text value) {
    uint64_t length;
    if (!skip_number(&value, &length) || value.bytes ||
        (response->has_length && response->length != length))
        return false;
    response->has_length = true;
    response->length = length;
    return true;
}

/* RFC 9110, 14.4: "bytes 0-99/1000", "bytes 0-99/" and a star, or "bytes ", a star and "/1000". */
static bool parse_range(text value, cogpu_content_range *range) {
    const size_t unit = strlen("bytes");
    *range = (cogpu_content_range){0};
    if (value.bytes < unit || !equals_ignoring_case((text){value.at, unit}, "bytes"))
        return false;
    text rest = {value.at + unit, value.bytes - unit};
    if (!skip_char(&rest, ' '))
        return false;
    range->has_bytes = !skip_char(&rest, '*');
    if (range->has_bytes && (!skip_number(&rest, &range->first) || !skip_char(&rest, '-') ||
                             !skip_number(&rest, &range->last) || range->first > range->last))
        return false;
    if (!skip_char(&rest, '/'))
        return false;
    range->has_total = !skip_char(&rest, '*');
    if (range->has_total &&
        (!skip_number(&rest, &range->total) || (range->has_bytes && range->last >= range->total)))
        return false;
    return rest.bytes == 0 && (range->has_bytes || range->has_total);
}

static bool store_range(cogpu_response *response, text value) {
    cogpu_content_range parsed, *kept = &response->range;
    if (!parse_range(value, &parsed))
        return false;
    if (kept->has_bytes || kept->has_total)
        return parsed.has_bytes == kept->has_bytes && parsed.has_total == kept->has_total &&
               parsed.first == kept->first && parsed.last == kept->last &&
               parsed.total == kept->total;
    *kept = parsed;
    return true;
}

/* A valid entity tag (RFC 9110, 8.8.3), because it is sent back in If-Match. */
static bool is_quoted(text tag) {
    return tag.bytes >= 2 && *tag.at == '"' &&
           memchr(tag.at + 1, '"', tag.bytes - 1) == tag.at + tag.bytes - 1 &&
           !memchr(tag.at, ' ', tag.bytes) && !memchr(tag.at, '\t', tag.bytes);
}

static bool store_etag(cogpu_response *response, text value) {
    bool is_weak = value.bytes >= 2 && memcmp(value.at, "W/", 2) == 0;
    text tag = is_weak ? (text){value.at + 2, value.bytes - 2} : value;
    bool is_strong = !is_weak && is_quoted(tag);
    bool is_first = !*response->etag;
    if (!store_text(response->etag, sizeof response->etag, tag) ||
        (!is_first && is_strong != response->etag_is_strong))
        return false;
    response->etag_is_strong = is_strong;
    return true;
}

static bool store_modified(cogpu_response *response, text value) {
    return store_text(response->modified, sizeof response->modified, value);
}

static bool store_location(cogpu_response *response, text value) {
    return store_text(response->location, sizeof response->location, value);
}

static bool store_encoding(cogpu_response *response, text value) {
    if (value.bytes && !equals_ignoring_case(value, "identity"))
        response->is_encoded = true;
    return true;
}

static bool store_type(cogpu_response *response, text value) {
    const char *parameters = memchr(value.at, ';', value.bytes);
    if (parameters)
        value.bytes = (size_t)(parameters - value.at);
    value = trim_blanks(value);
    if (equals_ignoring_case(value, "text/html") ||
        equals_ignoring_case(value, "application/xhtml+xml") ||
        equals_ignoring_case(value, "text/xml") || equals_ignoring_case(value, "application/xml"))
        response->is_page = true;
    return true;
}

static bool two_digits(const char *at, int low, int high, int *number) {
    if (at[0] < '0' || at[0] > '9' || at[1] < '0' || at[1] > '9')
        return false;
    *number = (at[0] - '0') * 10 + (at[1] - '0');
    return *number >= low && *number <= high;
}

static bool month_of(const char *at, int *month) {
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (*month = 0; *month < 12; ++*month)
        if (memcmp(at, names + 3 * *month, 3) == 0)
            return true;
    return false;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT": IMF-fixdate, the only form that servers may send (RFC 9110,
 * 5.6.7). */
static bool parse_date(text value, int64_t *seconds) {
    static const char form[] = "Sun, 06 Nov 1994 08:49:37 GMT", fixed[] = ", :GMT";
    struct tm date = {0};
    int century, year;
    const char *at = value.at;
    if (value.bytes != strlen(form))
        return false;
    for (size_t i = 3; i < value.bytes; i++)
        if (strchr(fixed, form[i]) && at[i] != form[i])
            return false;
    if (!two_digits(at + 5, 1, 31, &date.tm_mday) || !month_of(at + 8, &date.tm_mon) ||
        !two_digits(at + 12, 0, 99, &century) || !two_digits(at + 14, 0, 99, &year) ||
        !two_digits(at + 17, 0, 23, &date.tm_hour) || !two_digits(at + 20, 0, 59, &date.tm_min) ||
        !two_digits(at + 23, 0, 60, &date.tm_sec))
        return false;
    date.tm_year = century * 100 + year - 1900;
    *seconds = (int64_t)timegm(&date);
    return true;
}

/* A hint (RFC 9110, 10.2.3): one that cannot be parsed is ignored, and the longer of two counts. */
static bool store_retry_after(cogpu_response *response, text value) {
    text rest = value;
    uint64_t seconds;
    int64_t at;
    if (skip_number(&rest, &seconds) && rest.bytes == 0) {
        seconds = seconds < COGPU_RETRY_AFTER_MAX ? seconds : COGPU_RETRY_AFTER_MAX;
        if (seconds > response->retry_seconds)
            response->retry_seconds = (uint32_t)seconds;
    } else if (parse_date(value, &at) && at > response->retry_at) {
        response->retry_at = at;
    }
    return true;
}

typedef struct known_header {
    const char *name, *shown;
    bool (*store)(cogpu_response *response, text value);
} known_header;

static const known_header *header_of(text name) {
    static const known_header headers[] = {
        {"content-length", "Content-Length", store_length},
        {"content-range", "Content-Range", store_range},
        {"etag", "ETag", store_etag},
        {"last-modified", "Last-Modified", store_modified},
        {"location", "Location", store_location},
        {"content-encoding", "Content-Encoding", store_encoding},
        {"content-type", "Content-Type", store_type},
        {"retry-after", "Retry-After", store_retry_after},
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (equals_ignoring_case(name, headers[i].name))
            return &headers[i];
    return NULL;
}

static void note_malformed(cogpu_response *response, const char *name) {
    if (!response->malformed)
        response->malformed = name;
}

static bool has_controls(text value) {
    for (size_t i = 0; i < value.bytes; i++)
        if (((unsigned char)value.at[i] < ' ' && value.at[i] != '\t') || value.at[i] == 0x7f)
            return true;
    return false;
}

static void parse_header(cogpu_response *response, text line) {
    /* Line folding is obsolete (RFC 9112, 5.2), and could change a value that is stored already. */
    if (is_blank_char(*line.at)) {
        note_malformed(response, "a folded header");
        return;
    }
    const char *colon = memchr(line.at, ':', line.bytes);
    if (!colon)
        return;
    size_t name_bytes = (size_t)(colon - line.at);
    const known_header *known = header_of(trim_blanks((text){line.at, name_bytes}));
    text value = trim_blanks((text){colon + 1, line.bytes - name_bytes - 1});
    if (known && (has_controls(value) || !known->store(response, value)))
        note_malformed(response, known->shown);
}

/* "HTTP/1.1 206 Partial Content" or "HTTP/2 206": three digits after the first blank. 0 if it is
 * malformed. */
static uint32_t parse_status(text line) {
    const char *blank = memchr(line.at, ' ', line.bytes);
    uint64_t status = 0;
    if (!blank)
        return 0;
    text rest = {blank + 1, line.bytes - (size_t)(blank + 1 - line.at)};
    const char *first = rest.at;
    bool is_number = skip_number(&rest, &status) && rest.at - first == 3 && status >= 100;
    return is_number && (rest.bytes == 0 || *rest.at == ' ') ? (uint32_t)status : 0;
}

static void parse_status_line(cogpu_response *response, text line) {
    /* A new response begins only after the end of another: this is a header that looks like one. */
    if (response->has_begun && !response->has_ended) {
        note_malformed(response, "the status line");
        return;
    }
    *response = (cogpu_response){
        .status = parse_status(line), .has_begun = true, .header_bytes = response->header_bytes};
}

bool cogpu_response_line(cogpu_response *response, const char *line, size_t bytes) {
    static const char start[] = "HTTP/";
    text rest = {line, bytes};
    if (bytes > COGPU_HEADERS_BYTES_MAX - response->header_bytes) {
        response->header_bytes = COGPU_HEADERS_BYTES_MAX;
        return false;
    }
    response->header_bytes += (uint32_t)bytes;
    while (rest.bytes && (line[rest.bytes - 1] == '\n' || line[rest.bytes - 1] == '\r'))
        rest.bytes--;
    if (rest.bytes >= strlen(start) && memcmp(line, start, strlen(start)) == 0)
        parse_status_line(response, rest);
    else if (rest.bytes == 0)
        response->has_ended = true;
    else if (!response->has_ended)
        parse_header(response, rest);
    return response->header_bytes < COGPU_HEADERS_BYTES_MAX;
}
