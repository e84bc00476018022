/*
 * Takes the lines of an answer to a range request, hands on what it means: bytes that are those
 * asked for, another place, another time, or an error that tells a user what to do.
 */
#include "io/answer.h"

#include <assert.h>
#include <string.h>
#include <time.h>

/* A piece of a line; not terminated. */
typedef struct text {
    const char *at;
    size_t bytes;
} text;

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static text trim(text piece) {
    while (piece.bytes && is_blank(piece.at[piece.bytes - 1]))
        piece.bytes--;
    while (piece.bytes && is_blank(*piece.at))
        piece.at++, piece.bytes--;
    return piece;
}

/* Equal but for the case of ASCII letters; `word` has small ones. */
static bool is_word(text piece, const char *word) {
    if (piece.bytes != strlen(word))
        return false;
    for (size_t i = 0; i < piece.bytes; i++) {
        char c = piece.at[i];
        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != word[i])
            return false;
    }
    return true;
}

static bool skip(text *rest, char c) {
    if (rest->bytes == 0 || *rest->at != c)
        return false;
    rest->at++, rest->bytes--;
    return true;
}

/* Digits, as far as they go. */
static bool skip_number(text *rest, uint64_t *number) {
    const char *first = rest->at;
    for (*number = 0; rest->bytes && *rest->at >= '0' && *rest->at <= '9';
         rest->at++, rest->bytes--) {
        uint64_t digit = (uint64_t)(*rest->at - '0');
        if (*number > (INT64_MAX - digit) / 10)
            return false;
        *number = *number * 10 + digit;
    }
    return rest->at > first;
}

/* ---- the headers -------------------------------------------------------------------------------
 * Each takes a value, and returns false where it is broken or says something else than before.
 */

static bool keep(char *room, size_t room_bytes, text value) {
    if (*room)
        return strlen(room) == value.bytes && memcmp(room, value.at, value.bytes) == 0;
    if (value.bytes >= room_bytes)
        return false;
    memcpy(room, value.at, value.bytes);
    room[value.bytes] = '\0';
    return true;
}

static bool take_length(cogpu_answer *answer, text value) {
    uint64_t length;
    if (!skip_number(&value, &length) || value.bytes ||
        (answer->has_length && answer->length != length))
        return false;
    answer->has_length = true;
    answer->length = length;
    return true;
}

/* "bytes 0-99/1000", "bytes 0-99/" and a star, or "bytes ", a star and "/1000". */
static bool parse_range(text value, cogpu_content_range *range) {
    const size_t unit = strlen("bytes");
    *range = (cogpu_content_range){0};
    if (value.bytes < unit || !is_word((text){value.at, unit}, "bytes"))
        return false;
    text rest = {value.at + unit, value.bytes - unit};
    if (!skip(&rest, ' '))
        return false;
    range->has_bytes = !skip(&rest, '*');
    if (range->has_bytes && (!skip_number(&rest, &range->first) || !skip(&rest, '-') ||
                             !skip_number(&rest, &range->last) || range->first > range->last))
        return false;
    if (!skip(&rest, '/'))
        return false;
    range->has_total = !skip(&rest, '*');
    if (range->has_total &&
        (!skip_number(&rest, &range->total) || (range->has_bytes && range->last >= range->total)))
        return false;
    return rest.bytes == 0 && (range->has_bytes || range->has_total);
}

static bool take_range(cogpu_answer *answer, text value) {
    cogpu_content_range said, *kept = &answer->range;
    if (!parse_range(value, &said))
        return false;
    if (kept->has_bytes || kept->has_total)
        return said.has_bytes == kept->has_bytes && said.has_total == kept->has_total &&
               said.first == kept->first && said.last == kept->last && said.total == kept->total;
    *kept = said;
    return true;
}

/* It goes back to the server, so it must be one by the book: no quotes between the quotes. */
static bool is_quoted(text tag) {
    return tag.bytes >= 2 && *tag.at == '"' &&
           memchr(tag.at + 1, '"', tag.bytes - 1) == tag.at + tag.bytes - 1 &&
           !memchr(tag.at, ' ', tag.bytes) && !memchr(tag.at, '\t', tag.bytes);
}

static bool take_etag(cogpu_answer *answer, text value) {
    bool is_weak = value.bytes >= 2 && memcmp(value.at, "W/", 2) == 0;
    text tag = is_weak ? (text){value.at + 2, value.bytes - 2} : value;
    bool is_strong = !is_weak && is_quoted(tag);
    bool is_first = !*answer->etag;
    if (!keep(answer->etag, sizeof answer->etag, tag) ||
        (!is_first && is_strong != answer->etag_is_strong))
        return false;
    answer->etag_is_strong = is_strong;
    return true;
}

static bool take_modified(cogpu_answer *answer, text value) {
    return keep(answer->modified, sizeof answer->modified, value);
}

static bool take_location(cogpu_answer *answer, text value) {
    return keep(answer->location, sizeof answer->location, value);
}

static bool take_encoding(cogpu_answer *answer, text value) {
    if (value.bytes && !is_word(value, "identity"))
        answer->is_encoded = true;
    return true;
}

static bool take_type(cogpu_answer *answer, text value) {
    const char *parameters = memchr(value.at, ';', value.bytes);
    if (parameters)
        value.bytes = (size_t)(parameters - value.at);
    value = trim(value);
    if (is_word(value, "text/html") || is_word(value, "application/xhtml+xml") ||
        is_word(value, "text/xml") || is_word(value, "application/xml"))
        answer->is_page = true;
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

/* "Sun, 06 Nov 1994 08:49:37 GMT": the one form of a date that servers may send today. */
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

/* A wish: where it cannot be understood there is none, and of two the longer one counts. */
static bool take_retry_after(cogpu_answer *answer, text value) {
    text rest = value;
    uint64_t seconds;
    int64_t at;
    if (skip_number(&rest, &seconds) && rest.bytes == 0) {
        seconds = seconds < COGPU_RETRY_AFTER_MAX ? seconds : COGPU_RETRY_AFTER_MAX;
        if (seconds > answer->retry_seconds)
            answer->retry_seconds = (uint32_t)seconds;
    } else if (parse_date(value, &at) && at > answer->retry_at) {
        answer->retry_at = at;
    }
    return true;
}

typedef struct header {
    const char *name, *shown;
    bool (*take)(cogpu_answer *answer, text value);
} header;

static const header *header_of(text name) {
    static const header headers[] = {
        {"content-length", "Content-Length", take_length},
        {"content-range", "Content-Range", take_range},
        {"etag", "ETag", take_etag},
        {"last-modified", "Last-Modified", take_modified},
        {"location", "Location", take_location},
        {"content-encoding", "Content-Encoding", take_encoding},
        {"content-type", "Content-Type", take_type},
        {"retry-after", "Retry-After", take_retry_after},
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (is_word(name, headers[i].name))
            return &headers[i];
    return NULL;
}

static void note_fault(cogpu_answer *answer, const char *what) {
    if (!answer->fault)
        answer->fault = what;
}

static bool has_controls(text value) {
    for (size_t i = 0; i < value.bytes; i++)
        if (((unsigned char)value.at[i] < ' ' && value.at[i] != '\t') || value.at[i] == 0x7f)
            return true;
    return false;
}

static void take_header(cogpu_answer *answer, text line) {
    /* What goes on with the line before is out of use, and could change a value that we have. */
    if (is_blank(*line.at)) {
        note_fault(answer, "a folded header");
        return;
    }
    const char *colon = memchr(line.at, ':', line.bytes);
    if (!colon)
        return;
    size_t name_bytes = (size_t)(colon - line.at);
    const header *known = header_of(trim((text){line.at, name_bytes}));
    text value = trim((text){colon + 1, line.bytes - name_bytes - 1});
    if (known && (has_controls(value) || !known->take(answer, value)))
        note_fault(answer, known->shown);
}

/* "HTTP/1.1 206 Partial Content" or "HTTP/2 206": three digits after the first blank. */
static uint32_t status_of(text line) {
    const char *blank = memchr(line.at, ' ', line.bytes);
    uint64_t status = 0;
    if (!blank)
        return 0;
    text rest = {blank + 1, line.bytes - (size_t)(blank + 1 - line.at)};
    const char *first = rest.at;
    bool is_number = skip_number(&rest, &status) && rest.at - first == 3 && status >= 100;
    return is_number && (rest.bytes == 0 || *rest.at == ' ') ? (uint32_t)status : 0;
}

static void take_status_line(cogpu_answer *answer, text line) {
    /* Only after the end of an answer comes another: this is a header that looks like one. */
    if (answer->has_begun && !answer->has_ended) {
        note_fault(answer, "the status line");
        return;
    }
    *answer = (cogpu_answer){
        .status = status_of(line), .has_begun = true, .header_bytes = answer->header_bytes};
}

bool cogpu_answer_line(cogpu_answer *answer, const char *line, size_t bytes) {
    static const char start[] = "HTTP/";
    text rest = {line, bytes};
    if (bytes > COGPU_HEADERS_BYTES_MAX - answer->header_bytes) {
        answer->header_bytes = COGPU_HEADERS_BYTES_MAX;
        return false;
    }
    answer->header_bytes += (uint32_t)bytes;
    while (rest.bytes && (line[rest.bytes - 1] == '\n' || line[rest.bytes - 1] == '\r'))
        rest.bytes--;
    if (rest.bytes >= strlen(start) && memcmp(line, start, strlen(start)) == 0)
        take_status_line(answer, rest);
    else if (rest.bytes == 0)
        answer->has_ended = true;
    else if (!answer->has_ended)
        take_header(answer, rest);
    return answer->header_bytes < COGPU_HEADERS_BYTES_MAX;
}

/* ---- the verdict ---------------------------------------------------------------------------- */

static cogpu_answer_verdict bad(cogpu_error *error, const cogpu_asked *asked, cogpu_status status,
                                const char *what) {
    cogpu_fail(error, status, "%s: %s", what, asked->url);
    return COGPU_ANSWER_BAD;
}

static cogpu_answer_verdict judge_change(cogpu_error *error, const cogpu_asked *asked) {
    return bad(error, asked, COGPU_IO, "the file changed while it was read; open it again");
}

static cogpu_answer_verdict judge_fault(const cogpu_answer *answer, const cogpu_asked *asked,
                                        cogpu_error *error) {
    cogpu_fail(error, COGPU_IO,
               "in the server's answer %s is broken, too long or contradicts another one: %s",
               answer->fault, asked->url);
    return COGPU_ANSWER_BAD;
}

/* Servers give a file that they wrote a moment ago a weak tag, later the same one as a strong tag:
 * so tags are compared without that. An answer that no longer says of which version it is may be of
 * any. */
static bool is_other_version(const cogpu_answer *answer, const cogpu_asked *asked) {
    bool knows_etag = asked->etag && *asked->etag;
    bool knows_modified = asked->modified && *asked->modified;
    if (knows_etag && *answer->etag)
        return strcmp(asked->etag, answer->etag) != 0;
    if (knows_modified && *answer->modified)
        return strcmp(asked->modified, answer->modified) != 0;
    return knows_etag || knows_modified;
}

static bool is_other_size(const cogpu_asked *asked, bool has_size, uint64_t size) {
    return asked->has_size && has_size && asked->size != size;
}

/* What holds for parts and whole files: sound headers, plain bytes, the version that we know. */
static bool is_content(const cogpu_answer *answer, const cogpu_asked *asked, bool has_size,
                       uint64_t size, cogpu_error *error) {
    if (answer->fault)
        judge_fault(answer, asked, error);
    else if (is_other_version(answer, asked) || is_other_size(asked, has_size, size))
        judge_change(error, asked);
    else if (answer->is_encoded)
        bad(error, asked, COGPU_UNSUPPORTED,
            "the server sends the file compressed (Content-Encoding), so that ranges of it mean "
            "nothing; have it stored and sent as it is");
    else
        return true;
    return false;
}

static cogpu_answer_verdict judge_part(const cogpu_answer *answer, const cogpu_asked *asked,
                                       cogpu_error *error) {
    const cogpu_content_range *range = &answer->range;
    if (!is_content(answer, asked, range->has_total, range->total, error))
        return COGPU_ANSWER_BAD;
    if (!range->has_bytes)
        return bad(error, asked, COGPU_IO,
                   "the server sends a part of the file and does not say which (no Content-Range)");
    uint64_t last = asked->offset + asked->bytes - 1;
    bool has_end = range->has_total || asked->has_size;
    uint64_t end = range->has_total ? range->total : asked->size;
    bool is_cut = has_end && range->last < last && range->last + 1 == end;
    if (range->first != asked->offset || (range->last != last && !is_cut)) {
        cogpu_fail(error, COGPU_IO,
                   "bytes %llu to %llu were asked for, but the server sends %llu to %llu; it or a "
                   "cache before it is at fault: %s",
                   (unsigned long long)asked->offset, (unsigned long long)last,
                   (unsigned long long)range->first, (unsigned long long)range->last, asked->url);
        cogpu_error_place(error, -1, -1, (int64_t)asked->offset);
        return COGPU_ANSWER_BAD;
    }
    if (answer->has_length && answer->length != range->last - range->first + 1)
        return bad(error, asked, COGPU_IO,
                   "in the server's answer Content-Length and Content-Range contradict each other");
    return COGPU_ANSWER_GOOD;
}

static cogpu_answer_verdict judge_whole(const cogpu_answer *answer, const cogpu_asked *asked,
                                        cogpu_error *error) {
    /* First, since a page is not the file, whatever it says of its version. */
    if (answer->is_page)
        return bad(error, asked, COGPU_FORMAT,
                   "the server sends a page (HTML or XML) and no raster: is the URL that of the "
                   "file itself, and does it need a login?");
    if (!is_content(answer, asked, answer->has_length, answer->length, error))
        return COGPU_ANSWER_BAD;
    if (answer->range.has_bytes || answer->range.has_total)
        return bad(error, asked, COGPU_IO,
                   "the server sends the whole file (200), but names a part of it "
                   "(Content-Range)");
    return COGPU_ANSWER_WHOLE;
}

static cogpu_answer_verdict judge_redirect(const cogpu_answer *answer, const cogpu_asked *asked,
                                           cogpu_error *error) {
    if (answer->fault)
        return judge_fault(answer, asked, error);
    if (*answer->location)
        return COGPU_ANSWER_REDIRECT;
    cogpu_fail(error, COGPU_IO,
               "the server says that the file is elsewhere (%u), but not where; of a bucket the "
               "region or endpoint may be wrong: %s",
               (unsigned)answer->status, asked->url);
    return COGPU_ANSWER_BAD;
}

static cogpu_answer_verdict judge_outside(const cogpu_answer *answer, const cogpu_asked *asked,
                                          cogpu_error *error) {
    const cogpu_content_range *range = &answer->range;
    if (answer->fault)
        return judge_fault(answer, asked, error);
    if (is_other_size(asked, range->has_total, range->total))
        return judge_change(error, asked);
    if (range->has_total && range->total == 0)
        return bad(error, asked, COGPU_FORMAT, "not a TIFF: the file is empty");
    if (range->has_total && range->total <= asked->offset)
        cogpu_fail(error, COGPU_CORRUPT,
                   "%llu bytes at offset %llu are needed, but the file ends at %llu: it is cut off "
                   "or an offset in it is wrong: %s",
                   (unsigned long long)asked->bytes, (unsigned long long)asked->offset,
                   (unsigned long long)range->total, asked->url);
    else
        cogpu_fail(error, COGPU_IO, "the server has no %llu bytes at offset %llu (416): %s",
                   (unsigned long long)asked->bytes, (unsigned long long)asked->offset, asked->url);
    cogpu_error_place(error, -1, -1, (int64_t)asked->offset);
    return COGPU_ANSWER_BAD;
}

static cogpu_answer_verdict judge_refusal(const cogpu_answer *answer, const cogpu_asked *asked,
                                          cogpu_error *error) {
    static const struct {
        uint32_t status;
        cogpu_status means;
        const char *what;
    } refusals[] = {
        {400, COGPU_IO, "the server does not take the request; are URL, region and endpoint right"},
        {401, COGPU_IO, "the server asks who we are; are credentials missing or wrong"},
        {403, COGPU_IO,
         "the server does not allow it; are credentials missing or wrong, or has a signed URL "
         "expired"},
        {404, COGPU_ABSENT, "there is no such file"},
        {407, COGPU_IO, "the proxy asks who we are; are its credentials missing or wrong"},
        {410, COGPU_ABSENT, "there is no such file any more"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (answer->status == refusals[i].status) {
            cogpu_fail(error, refusals[i].means, "%s (%u): %s", refusals[i].what,
                       (unsigned)answer->status, asked->url);
            return COGPU_ANSWER_BAD;
        }
    cogpu_fail(error, COGPU_IO, "the server answers with status %u, which is none for a read: %s",
               (unsigned)answer->status, asked->url);
    return COGPU_ANSWER_BAD;
}

static cogpu_answer_verdict judge_status(const cogpu_answer *answer, const cogpu_asked *asked,
                                         cogpu_error *error) {
    switch (answer->status) {
    case 200:
        return judge_whole(answer, asked, error);
    case 206:
        return judge_part(answer, asked, error);
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
        return judge_redirect(answer, asked, error);
    case 412:
        return judge_change(error, asked);
    case 416:
        return judge_outside(answer, asked, error);
    default:
        return judge_refusal(answer, asked, error);
    }
}

static bool is_passing(uint32_t status) {
    static const uint32_t passing[] = {408, 425, 429, 500, 502, 503, 504};
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (status == passing[i])
            return true;
    return false;
}

/* What is no answer to any question: GOOD where it is one. */
static cogpu_answer_verdict judge_server(const cogpu_answer *answer, const cogpu_asked *asked,
                                         cogpu_error *error) {
    if (answer->header_bytes >= COGPU_HEADERS_BYTES_MAX)
        return bad(error, asked, COGPU_IO, "the server sends more than 128 KiB of headers");
    if (!answer->has_ended || (answer->status >= 100 && answer->status < 200)) {
        cogpu_fail(error, COGPU_IO, "the connection ended before the server's answer was there: %s",
                   asked->url);
        return COGPU_ANSWER_RETRY;
    }
    if (is_passing(answer->status)) {
        cogpu_fail(error, COGPU_IO, "the server fails or is busy (%u); try again later: %s",
                   (unsigned)answer->status, asked->url);
        return COGPU_ANSWER_RETRY;
    }
    return COGPU_ANSWER_GOOD;
}

cogpu_answer_verdict cogpu_answer_judge(const cogpu_answer *answer, const cogpu_asked *asked,
                                        cogpu_error *error) {
    assert(asked->bytes > 0 && asked->offset <= INT64_MAX &&
           asked->bytes <= INT64_MAX - asked->offset);
    cogpu_answer_verdict verdict = judge_server(answer, asked, error);
    return verdict == COGPU_ANSWER_GOOD ? judge_status(answer, asked, error) : verdict;
}

cogpu_answer_verdict cogpu_answer_judge_call(const cogpu_answer *answer, const char *url,
                                             cogpu_error *error) {
    const cogpu_asked asked = {.url = url};
    cogpu_answer_verdict verdict = judge_server(answer, &asked, error);
    if (verdict != COGPU_ANSWER_GOOD)
        return verdict;
    if (answer->status >= 300) {
        cogpu_fail(error, answer->status == 404 ? COGPU_ABSENT : COGPU_IO,
                   "the server does not do it (%u); are bucket, region, endpoint and credentials "
                   "right: %s",
                   (unsigned)answer->status, url);
        return COGPU_ANSWER_BAD;
    }
    return answer->fault ? judge_fault(answer, &asked, error) : COGPU_ANSWER_GOOD;
}

bool cogpu_answer_bytes(const cogpu_answer *answer, uint64_t *bytes) {
    bool is_part = answer->range.has_bytes;
    *bytes = is_part ? answer->range.last - answer->range.first + 1 : answer->length;
    return is_part || answer->has_length;
}

cogpu_answer_verdict cogpu_answer_complete(const cogpu_answer *answer, const cogpu_asked *asked,
                                           uint64_t got, cogpu_error *error) {
    uint64_t bytes;
    if (!cogpu_answer_bytes(answer, &bytes)) {
        if (!asked->has_size)
            return COGPU_ANSWER_GOOD;
        bytes = asked->size;
    }
    if (got == bytes)
        return COGPU_ANSWER_GOOD;
    cogpu_fail(error, COGPU_IO,
               got < bytes ? "the connection ended after %llu of %llu bytes: %s"
                           : "the server sends %llu bytes, more than the %llu that it announced: "
                             "%s",
               (unsigned long long)got, (unsigned long long)bytes, asked->url);
    return got < bytes ? COGPU_ANSWER_RETRY : COGPU_ANSWER_BAD;
}

/* ---- the waits ------------------------------------------------------------------------------ */

uint32_t cogpu_answer_retry_after(const cogpu_answer *answer, int64_t now) {
    int64_t wait = answer->retry_seconds;
    if (answer->retry_at > now && answer->retry_at - now > wait)
        wait = answer->retry_at - now;
    return wait < COGPU_RETRY_AFTER_MAX ? (uint32_t)wait : COGPU_RETRY_AFTER_MAX;
}

/* splitmix64, as a number from 0 to below 1. */
static double draw_share(uint64_t *random) {
    uint64_t mixed = *random += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return (double)((mixed ^ mixed >> 31) >> 11) * 0x1p-53;
}

double cogpu_retry_wait(uint32_t tries, uint32_t retry_after, uint64_t *random) {
    const double first = 0.2, longest = 20;
    double step = first;
    while (tries-- > 1 && step < longest)
        step *= 2;
    return retry_after + draw_share(random) * (step < longest ? step : longest);
}
