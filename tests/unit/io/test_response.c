/* Responses of servers, valid, malformed and hostile, and the outcome of each. */
#include "support/test.h"

#include "io/http/response.h"

#define URL "https://host/file.tif"

static cogpu_error error;

/* Lines as libcurl delivers them: each in memory of its exact size. */
static bool parse_lines(cogpu_response *response, const char *lines) {
    bool goes_on = true;
    while (*lines) {
        size_t bytes = strcspn(lines, "\n");
        bytes += lines[bytes] == '\n';
        char *line = malloc(bytes);
        memcpy(line, lines, bytes);
        goes_on = cogpu_response_line(response, line, bytes) && goes_on;
        free(line);
        lines += bytes;
    }
    return goes_on;
}

static cogpu_response parsed(const char *lines) {
    cogpu_response response = {0};
    CHECK(parse_lines(&response, lines));
    return response;
}

/* Bytes 100 to 199 of a file of which nothing is known yet. */
static cogpu_range_request plain(void) {
    return (cogpu_range_request){.offset = 100, .bytes = 100, .url = URL};
}

/* The same of one of 1000 bytes. */
static cogpu_range_request known(void) {
    return (cogpu_range_request){.offset = 100,
                                 .bytes = 100,
                                 .has_size = true,
                                 .size = 1000,
                                 .etag = "\"a1\"",
                                 .modified = "Sun, 06 Nov 1994 08:49:37 GMT",
                                 .url = URL};
}

static cogpu_response_outcome check(const char *lines, cogpu_range_request asked) {
    cogpu_response response = parsed(lines);
    cogpu_error_clear(&error);
    return cogpu_response_check(&response, &asked, &error);
}

/* The error has the status and these words, and ends with the URL. */
static bool says(cogpu_status status, const char *words) {
    size_t length = strlen(error.message), url = strlen(URL);
    bool is_said = error.status == status && strstr(error.message, words) && length > url &&
                   strcmp(error.message + length - url, URL) == 0;
    if (!is_said)
        printf("%s: %s\n", cogpu_status_name(error.status), error.message);
    return is_said;
}

static bool is_bad(const char *lines, cogpu_range_request asked, cogpu_status status,
                   const char *words) {
    return check(lines, asked) == COGPU_RESPONSE_BAD && says(status, words);
}

static bool is_good(const char *lines, cogpu_range_request asked) {
    return check(lines, asked) == COGPU_RESPONSE_GOOD && error.status == COGPU_OK;
}

#define PART  "HTTP/1.1 206 Partial Content\r\n"
#define RANGE "Content-Range: bytes 100-199/1000\r\n"

/* ---- headers -------------------------------------------------------------------------------- */

static void headers_are_kept(void) {
    cogpu_response response = parsed("HTTP/1.1 206 Partial Content\r\n"
                                     "Server: any\r\n"
                                     "CONTENT-LENGTH: 100\r\n"
                                     "content-range:bytes 100-199/1000\r\n"
                                     "ETag: \t \"a1\" \r\n"
                                     "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                                     "Location: /elsewhere?a=b\r\n"
                                     "Content-Type: image/tiff\r\n"
                                     "Content-Encoding: identity\r\n"
                                     "Retry-After: 7\r\n"
                                     "\r\n");
    CHECK(response.status == 206 && response.has_begun && response.has_ended &&
          !response.malformed);
    CHECK(response.has_length && response.length == 100);
    CHECK(response.range.has_bytes && response.range.first == 100 && response.range.last == 199);
    CHECK(response.range.has_total && response.range.total == 1000);
    CHECK_TEXT(response.etag, "\"a1\"");
    CHECK(response.etag_is_strong);
    CHECK_TEXT(response.modified, "Sun, 06 Nov 1994 08:49:37 GMT");
    CHECK_TEXT(response.location, "/elsewhere?a=b");
    CHECK(!response.is_page && !response.is_encoded && response.retry_seconds == 7);
}

static void lines_may_end_in_many_ways(void) {
    CHECK(parsed("HTTP/2 206 \r\n\r\n").status == 206 &&
          parsed("HTTP/2 206\r\n\r\n").status == 206);
    CHECK(parsed("HTTP/3 404\n\n").has_ended && parsed("HTTP/1.0 206\n").status == 206);
    CHECK(!parsed("HTTP/1.1 206 OK\r\nA: b\r\n").has_ended);
    cogpu_response response = parsed("HTTP/1.1 206 OK\r\nContent-Length: 5");
    CHECK(response.has_length && response.length == 5);
    response = parsed("HTTP/1.1 206 OK\r\nContent-Length : 5\r\nEtag:\r\nno colon\r\n: 7\r\n\r\n");
    CHECK(response.has_length && !*response.etag && !response.malformed && response.has_ended);
}

static void broken_status_lines(void) {
    static const char *const lines[] = {"HTTP/1.1\r\n\r\n",      "HTTP/1.1 \r\n\r\n",
                                        "HTTP/1.1 20\r\n\r\n",   "HTTP/1.1 2060\r\n\r\n",
                                        "HTTP/1.1 abc\r\n\r\n",  "HTTP/1.1 099 X\r\n\r\n",
                                        "HTTP/1.1 206x\r\n\r\n", "HTTP/1.1  206\r\n\r\n",
                                        "HTTP/\r\n\r\n",         "HTTP/1.1 -06\r\n\r\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        CHECK(parsed(lines[i]).status == 0);
        CHECK(is_bad(lines[i], plain(), COGPU_IO_ERROR, "status 0"));
    }
    CHECK(is_bad("HTTP/1.1 999 X\r\n\r\n", plain(), COGPU_IO_ERROR, "status 999"));
}

/* 1xx and redirects come first; nothing of theirs stays. */
static void a_status_line_begins_anew(void) {
    cogpu_response response =
        parsed("HTTP/1.1 100 Continue\r\n\r\n"
               "HTTP/1.1 302 Found\r\nLocation: /x\r\nETag: \"b\"\r\nRetry-After: 9\r\n"
               "Content-Length: 3\r\nContent-Length: 4\r\nContent-Type: text/html\r\n"
               "Content-Encoding: br\r\nLast-Modified: x\r\n\r\n" PART RANGE "\r\n");
    CHECK(response.status == 206 && !*response.location && !*response.etag && !*response.modified);
    CHECK(!response.has_length && !response.malformed && !response.is_page && !response.is_encoded);
    CHECK(response.retry_seconds == 0 && response.range.has_bytes && response.has_ended);
    CHECK(!parsed("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 206 OK\r\n").has_ended);
    /* In the midst of headers it is none. */
    CHECK(is_bad("HTTP/1.1 200 OK\r\nHTTP/1.1 206 OK\r\n" RANGE "\r\n", plain(), COGPU_IO_ERROR,
                 "the status line"));
}

static void trailers_change_nothing(void) {
    cogpu_response response =
        parsed(PART RANGE "ETag: \"a\"\r\n\r\n"
                          "Content-Range: bytes 0-9/10\r\nETag: \"b\"\r\n\r\n");
    CHECK(response.range.first == 100 && !response.malformed);
    CHECK_TEXT(response.etag, "\"a\"");
}

static void broken_numbers(void) {
    static const char *const lengths[] = {"",
                                          "-1",
                                          "+1",
                                          "1 2",
                                          "1,1",
                                          "0x10",
                                          "1.0",
                                          "abc",
                                          "1a",
                                          "9223372036854775808",
                                          "18446744073709551617",
                                          "99999999999999999999999999999999999"};
    static const char *const ranges[] = {"",
                                         "bytes",
                                         "bytes ",
                                         "bytes=100-199/1000",
                                         "100-199/1000",
                                         "bytes 100-199",
                                         "bytes 100-199/",
                                         "bytes 100-/1000",
                                         "bytes -199/1000",
                                         "bytes 100/1000",
                                         "bytes 199-100/1000",
                                         "bytes 100-199/199",
                                         "bytes 100-199/1000 ,",
                                         "bytes 100-199/1000, bytes 0-1/1000",
                                         "bytes */*",
                                         "bytes *",
                                         "bytes  100-199/1000",
                                         "bytes\t100-199/1000",
                                         "pages 100-199/1000",
                                         "bytes 100-9223372036854775808/*",
                                         "bytes 100-18446744073709551815/*",
                                         "bytes 100-199/0x3e8",
                                         "bytes100-199/1000",
                                         "bytes 100-199*"};
    char lines[256];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        snprintf(lines, sizeof lines, PART RANGE "Content-Length: %s\r\n\r\n", lengths[i]);
        CHECK(is_bad(lines, plain(), COGPU_IO_ERROR, "Content-Length is malformed"));
    }
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        snprintf(lines, sizeof lines, PART "Content-Range: %s\r\n\r\n", ranges[i]);
        CHECK(is_bad(lines, plain(), COGPU_IO_ERROR, "Content-Range is malformed"));
    }
    cogpu_response response =
        parsed("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n"
               "Content-Range: bytes 0-9223372036854775806/9223372036854775807\r\n");
    CHECK(response.length == INT64_MAX && response.range.total == INT64_MAX && !response.malformed);
}

static void repeated_headers(void) {
    CHECK(is_good(PART RANGE RANGE "Content-Length: 100\r\nContent-Length: 100\r\n"
                                   "ETag: \"a\"\r\nETag: \"a\"\r\n\r\n",
                  plain()));
    static const char *const pairs[][2] = {
        {"Content-Range: bytes 100-199/1000\r\nContent-Range: bytes 0-99/1000\r\n",
         "Content-Range is"},
        {"Content-Range: bytes 100-198/1000\r\nContent-Range: bytes 100-199/1000\r\n",
         "Content-Range is"},
        {RANGE "Content-Range: bytes 100-199/1001\r\n", "Content-Range is"},
        {RANGE "Content-Range: bytes 99-199/1000\r\n", "Content-Range is"},
        {RANGE "Content-Range: bytes 100-199/*\r\n", "Content-Range is"},
        {"Content-Range: bytes */1000\r\n" RANGE, "Content-Range is"},
        {RANGE "Content-Length: 100\r\nContent-Length: 101\r\n", "Content-Length is"},
        {RANGE "ETag: \"a\"\r\nETag: \"b\"\r\n", "ETag is"},
        {RANGE "ETag: \"a\"\r\nETag: W/\"a\"\r\n", "ETag is"},
        {RANGE "Last-Modified: a\r\nLast-Modified: ab\r\n", "Last-Modified is"},
        {RANGE "Last-Modified: ab\r\nLast-Modified: a\r\n", "Last-Modified is"},
        {RANGE "Location: /a\r\nLocation: /b\r\n", "Location is"}};
    char lines[256];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        snprintf(lines, sizeof lines, PART "%s\r\n", pairs[i][0]);
        CHECK(is_bad(lines, plain(), COGPU_IO_ERROR, pairs[i][1]));
    }
    CHECK(is_bad("HTTP/1.1 307 X\r\nLocation: /a\r\nLocation: /b\r\n\r\n", plain(), COGPU_IO_ERROR,
                 "Location is"));
}

static void folded_lines_and_control_characters(void) {
    CHECK(is_bad(PART "Content-Range:\r\n bytes 100-199/1000\r\n\r\n", plain(), COGPU_IO_ERROR,
                 "Content-Range is malformed"));
    CHECK(is_bad(PART RANGE "ETag: \"a\"\r\n\tb\r\n\r\n", plain(), COGPU_IO_ERROR, "folded"));
    CHECK(is_bad(PART RANGE "ETag: \"a\rb\"\r\n\r\n", plain(), COGPU_IO_ERROR, "ETag is"));
    CHECK(is_bad("HTTP/1.1 302 X\r\nLocation: /a\x1b[2J\r\n\r\n", plain(), COGPU_IO_ERROR,
                 "Location is"));
    CHECK(is_bad("HTTP/1.1 302 X\r\nLocation: /a\x7f\r\n\r\n", plain(), COGPU_IO_ERROR,
                 "Location is"));
    cogpu_response response = {0};
    static const char nul[] = "Location: /a\0b\r\n";
    CHECK(parse_lines(&response, "HTTP/1.1 302 X\r\n") &&
          cogpu_response_line(&response, nul, sizeof nul - 1));
    CHECK_TEXT(response.malformed, "Location");
    CHECK(is_good(PART RANGE "X-Other: \x01\x02\r\n\r\n", plain()));
}

static void etags(void) {
    static const struct {
        const char *sent, *kept;
        bool is_strong;
    } tags[] = {{"\"a1\"", "\"a1\"", true},
                {"\"\"", "\"\"", true},
                {"\"\xc3\xa4!\"", "\"\xc3\xa4!\"", true},
                {"W/\"a1\"", "\"a1\"", false},
                {"w/\"a1\"", "w/\"a1\"", false},
                {"a1", "a1", false},
                {"\"a1", "\"a1", false},
                {"a1\"", "a1\"", false},
                {"\"", "\"", false},
                {"\"a\"b\"", "\"a\"b\"", false},
                {"\"a b\"", "\"a b\"", false},
                {"\"a\tb\"", "\"a\tb\"", false},
                {"\"a\", \"b\"", "\"a\", \"b\"", false}};
    char lines[1024];
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        snprintf(lines, sizeof lines, PART "ETag: %s\r\n\r\n", tags[i].sent);
        cogpu_response response = parsed(lines);
        CHECK_TEXT(response.etag, tags[i].kept);
        CHECK(response.etag_is_strong == tags[i].is_strong && !response.malformed);
    }
}

/* As long as there is room for, and a byte more. */
static void texts_have_limits(void) {
    static const struct {
        const char *name;
        size_t room;
    } texts[] = {{"ETag", COGPU_ETAG_BYTES},
                 {"Last-Modified", COGPU_MODIFIED_BYTES},
                 {"Location", COGPU_LOCATION_BYTES}};
    static char lines[COGPU_LOCATION_BYTES + 100], value[COGPU_LOCATION_BYTES + 1];
    for (size_t i = 0; i < 3; i++)
        for (size_t more = 0; more < 2; more++) {
            size_t bytes = texts[i].room - 1 + more;
            memset(value, 'x', bytes);
            value[bytes] = '\0';
            snprintf(lines, sizeof lines, "HTTP/1.1 302 X\r\n%s: %s\r\n\r\n", texts[i].name, value);
            cogpu_response response = parsed(lines);
            const char *kept = i == 0   ? response.etag
                               : i == 1 ? response.modified
                                        : response.location;
            CHECK_TEXT(kept, more ? "" : value);
            CHECK((response.malformed != NULL) == more);
        }
}

static void headers_end_at_a_limit(void) {
    static char line[1024];
    memset(line, 'x', sizeof line);
    cogpu_response response = {0};
    CHECK(cogpu_response_line(&response, line, 1000));
    for (int i = 1; i < 128; i++)
        CHECK(cogpu_response_line(&response, line, sizeof line));
    CHECK(parse_lines(&response, "HTTP/1.1 206 OK\r\n"));
    CHECK(!cogpu_response_line(&response, line, 7)); /* the last byte is one too many */
    CHECK(!parse_lines(&response, "\r\n"));
    cogpu_range_request asked = plain();
    CHECK(cogpu_response_check(&response, &asked, &error) == COGPU_RESPONSE_BAD);
    CHECK(says(COGPU_IO_ERROR, "headers"));
    /* Many small responses are as many bytes. */
    response = (cogpu_response){0};
    int lines = 0;
    while (lines < 10000 && parse_lines(&response, "HTTP/1.1 100 X\r\n\r\n"))
        lines++;
    CHECK(lines == COGPU_HEADERS_BYTES_MAX / 18);
    CHECK(cogpu_response_check(&response, &asked, &error) == COGPU_RESPONSE_BAD);
    response = (cogpu_response){0};
    CHECK(!cogpu_response_line(&response, line, SIZE_MAX));
}

/* ---- outcomes ---------------------------------------------------------------------------------
 */

static void good_parts(void) {
    CHECK(is_good(PART RANGE "\r\n", plain()));
    CHECK(is_good(PART RANGE "Content-Length: 100\r\nETag: \"a1\"\r\n\r\n", known()));
    CHECK(is_good(PART "Content-Range: BYTES 100-199/*\r\n\r\n", plain()));
    CHECK(is_good(PART RANGE "Content-Type: text/html\r\n\r\n", plain()));
    cogpu_range_request last = {.offset = INT64_MAX - 1, .bytes = 1, .url = URL};
    CHECK(is_good(PART "Content-Range: bytes 9223372036854775806-9223372036854775806/*\r\n\r\n",
                  last));
}

/* Where the file ends before the range does. */
static void parts_cut_at_the_end(void) {
    cogpu_range_request asked = plain();
    CHECK(is_good(PART "Content-Range: bytes 100-149/150\r\nContent-Length: 50\r\n\r\n", asked));
    CHECK(is_good(PART "Content-Range: bytes 100-100/101\r\n\r\n", asked));
    CHECK(is_bad(PART "Content-Range: bytes 100-149/151\r\n\r\n", asked, COGPU_IO_ERROR,
                 "100 to 149"));
    CHECK(
        is_bad(PART "Content-Range: bytes 100-149/*\r\n\r\n", asked, COGPU_IO_ERROR, "100 to 149"));
    asked.has_size = true;
    asked.size = 150;
    CHECK(is_good(PART "Content-Range: bytes 100-149/*\r\n\r\n", asked));
    CHECK(
        is_bad(PART "Content-Range: bytes 100-148/*\r\n\r\n", asked, COGPU_IO_ERROR, "100 to 148"));
}

/* T233. */
static void wrong_ranges(void) {
    static const char *const ranges[] = {"0-99/1000",    "99-199/1000",  "101-199/1000",
                                         "100-200/1000", "100-198/1000", "100-999/1000",
                                         "101-200/1000", "200-299/1000", "100-200/201",
                                         "0-999/1000",   "100-100/1000"};
    char lines[256];
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        snprintf(lines, sizeof lines, PART "Content-Range: bytes %s\r\n\r\n", ranges[i]);
        CHECK(is_bad(lines, plain(), COGPU_IO_ERROR, "requested bytes 100 to 199"));
        CHECK(error.offset == 100);
    }
    CHECK(is_bad(PART "Content-Range: bytes 7-9/1000\r\n\r\n", plain(), COGPU_IO_ERROR,
                 "sent 7 to 9;"));
    CHECK(is_bad(PART "\r\n", plain(), COGPU_IO_ERROR, "no Content-Range"));
    CHECK(is_bad(PART "Content-Range: bytes */1000\r\n\r\n", plain(), COGPU_IO_ERROR,
                 "no Content-Range"));
    CHECK(is_bad(PART "Content-Type: multipart/byteranges; boundary=x\r\n\r\n", plain(),
                 COGPU_IO_ERROR, "no Content-Range"));
    CHECK(is_bad(PART RANGE "Content-Length: 99\r\n\r\n", plain(), COGPU_IO_ERROR, "contradict"));
    CHECK(is_bad(PART RANGE "Content-Length: 101\r\n\r\n", plain(), COGPU_IO_ERROR, "contradict"));
    CHECK(is_bad(PART "Content-Length: 100\r\n\r\n", plain(), COGPU_IO_ERROR, "no Content-Range"));
}

/* T233: never bytes of two versions. */
static void files_that_change(void) {
    const char *changed = "changed while it was read; open it again";
    cogpu_range_request asked = known();
    CHECK(is_good(PART RANGE "ETag: \"a1\"\r\n\r\n", asked));
    CHECK(is_good(PART RANGE "ETag: W/\"a1\"\r\n\r\n", asked));
    CHECK(is_good(PART RANGE "ETag: \"a1\"\r\nLast-Modified: now\r\n\r\n", asked));
    CHECK(is_good(PART RANGE "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n", asked));
    CHECK(is_bad(PART RANGE "ETag: \"a2\"\r\n\r\n", asked, COGPU_IO_ERROR, changed));
    CHECK(is_bad(PART RANGE "ETag: \"a1\r\n\r\n", asked, COGPU_IO_ERROR, changed));
    CHECK(is_bad(PART RANGE "ETag: \"a2\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
                 asked, COGPU_IO_ERROR, changed));
    CHECK(is_bad(PART RANGE "Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT\r\n\r\n", asked,
                 COGPU_IO_ERROR, changed));
    CHECK(is_bad(PART RANGE "\r\n", asked, COGPU_IO_ERROR, changed));
    CHECK(is_bad(PART "Content-Range: bytes 100-199/1001\r\nETag: \"a1\"\r\n\r\n", asked,
                 COGPU_IO_ERROR, changed));
    CHECK(is_bad("HTTP/1.1 412 Precondition Failed\r\n\r\n", asked, COGPU_IO_ERROR, changed));
    CHECK(is_bad("HTTP/1.1 416 X\r\nContent-Range: bytes */50\r\n\r\n", asked, COGPU_IO_ERROR,
                 changed));
    CHECK(is_bad("HTTP/1.1 200 OK\r\nContent-Length: 999\r\nETag: \"a1\"\r\n\r\n", asked,
                 COGPU_IO_ERROR, changed));
    CHECK(is_bad("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"a2\"\r\n\r\n", asked,
                 COGPU_IO_ERROR, changed));
    asked.etag = asked.modified = "";
    CHECK(is_good(PART RANGE "\r\n", asked) && is_good(PART RANGE "ETag: \"b\"\r\n\r\n", asked));
}

/* T231. */
static void whole_files(void) {
    CHECK(check("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", plain()) ==
          COGPU_RESPONSE_WHOLE);
    CHECK(check("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"a1\"\r\n\r\n", known()) ==
          COGPU_RESPONSE_WHOLE);
    CHECK(check("HTTP/1.1 200 OK\r\n\r\n", plain()) == COGPU_RESPONSE_WHOLE);
    CHECK(is_bad("HTTP/1.1 200 OK\r\n" RANGE "\r\n", plain(), COGPU_IO_ERROR, "names a part"));
    CHECK(is_bad("HTTP/1.1 200 OK\r\nContent-Range: bytes */9\r\n\r\n", plain(), COGPU_IO_ERROR,
                 "names a part"));
    CHECK(is_bad("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", plain(), COGPU_IO_ERROR,
                 "Content-Length is"));
}

static void pages_are_no_rasters(void) {
    static const char *const types[] = {"text/html", "TEXT/HTML; charset=utf-8", "application/xml",
                                        "text/xml ;q", "application/xhtml+xml"};
    static const char *const others[] = {"image/tiff", "text/plain", "text/htmlx", "",
                                         "application/octet-stream; text/html"};
    char lines[256];
    for (size_t i = 0; i < 5; i++) {
        snprintf(lines, sizeof lines, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n", types[i]);
        CHECK(is_bad(lines, plain(), COGPU_NOT_TIFF, "a page (HTML or XML)"));
        CHECK(is_bad(lines, known(), COGPU_NOT_TIFF, "a page (HTML or XML)"));
        snprintf(lines, sizeof lines, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n", others[i]);
        CHECK(check(lines, plain()) == COGPU_RESPONSE_WHOLE);
    }
}

static void compressed_responses(void) {
    static const char *const encodings[] = {"gzip", "br", "identity, gzip", "x-gzip"};
    char lines[256];
    for (size_t i = 0; i < 4; i++) {
        snprintf(lines, sizeof lines, PART RANGE "Content-Encoding: %s\r\n\r\n", encodings[i]);
        CHECK(is_bad(lines, plain(), COGPU_UNSUPPORTED, "compressed"));
        snprintf(lines, sizeof lines, "HTTP/2 200\r\nContent-Encoding: %s\r\n\r\n", encodings[i]);
        CHECK(is_bad(lines, plain(), COGPU_UNSUPPORTED, "compressed"));
    }
    CHECK(is_good(PART RANGE "Content-Encoding: Identity\r\nContent-Encoding:\r\n\r\n", plain()));
    CHECK(is_bad(PART RANGE "Content-Encoding: gzip\r\nContent-Encoding: identity\r\n\r\n", plain(),
                 COGPU_UNSUPPORTED, "compressed"));
}

static void redirects(void) {
    static const uint32_t statuses[] = {301, 302, 303, 307, 308};
    char lines[256];
    for (size_t i = 0; i < 5; i++) {
        snprintf(lines, sizeof lines, "HTTP/1.1 %u X\r\nLocation: http://b/c\r\n\r\n", statuses[i]);
        CHECK(check(lines, known()) == COGPU_RESPONSE_REDIRECT);
        snprintf(lines, sizeof lines, "HTTP/1.1 %u X\r\n\r\n", statuses[i]);
        CHECK(is_bad(lines, known(), COGPU_IO_ERROR, "without a Location"));
    }
    CHECK(is_bad("HTTP/1.1 300 X\r\nLocation: /x\r\n\r\n", known(), COGPU_IO_ERROR, "status 300"));
    CHECK(is_bad("HTTP/1.1 304 X\r\nLocation: /x\r\n\r\n", known(), COGPU_IO_ERROR, "status 304"));
    CHECK(is_good(PART RANGE "ETag: \"a1\"\r\nLocation: /x\r\n\r\n", known()));
}

/* T234: these, whatever else the server says with them; no others. */
static void what_is_tried_again(void) {
    static const uint32_t statuses[] = {408, 425, 429, 500, 502, 503, 504};
    char lines[256];
    for (uint32_t status = 100, next = 0; status < 600; status++) {
        bool is_again = next < 7 && statuses[next] == status;
        next += is_again;
        snprintf(lines, sizeof lines,
                 "HTTP/1.1 %u X\r\nContent-Length: x\r\nContent-Type: text/html\r\n"
                 "Content-Encoding: gzip\r\nETag: \"other\"\r\n\r\n",
                 status);
        cogpu_response_outcome outcome = check(lines, known());
        CHECK((outcome == COGPU_RESPONSE_RETRY) == (is_again || status < 200));
        CHECK(status < 200 ? says(COGPU_IO_ERROR, "ended before") : true);
        CHECK(is_again ? says(COGPU_IO_ERROR, "try again later") : true);
        CHECK(outcome == COGPU_RESPONSE_RETRY || outcome == COGPU_RESPONSE_BAD);
        CHECK(error.status != COGPU_OK && strlen(error.message) > 20);
    }
}

/* Cut off in the midst of the headers, Content-Range may just not be there yet. */
static void responses_that_stop_in_their_headers(void) {
    static const char lines[] = PART RANGE "ETag: \"a1\"\r\n\r\n";
    for (size_t bytes = 0; bytes < sizeof lines - 3; bytes++) {
        char cut[sizeof lines];
        memcpy(cut, lines, bytes);
        cut[bytes] = '\0';
        CHECK(check(cut, known()) == COGPU_RESPONSE_RETRY && says(COGPU_IO_ERROR, "ended before"));
    }
    CHECK(is_good(lines, known()));
}

static void refusals(void) {
    cogpu_range_request asked = known();
    CHECK(is_bad("HTTP/1.1 401 X\r\n\r\n", asked, COGPU_IO_ERROR, "credentials"));
    CHECK(is_bad("HTTP/1.1 403 X\r\n\r\n", asked, COGPU_IO_ERROR, "credentials"));
    CHECK(is_bad("HTTP/1.1 404 X\r\n\r\n", asked, COGPU_NOT_FOUND, "no such file (404)"));
    CHECK(is_bad("HTTP/1.1 410 X\r\n\r\n", asked, COGPU_NOT_FOUND, "no such file any more (410)"));
    CHECK(is_bad("HTTP/1.1 400 X\r\n\r\n", asked, COGPU_IO_ERROR, "region"));
    CHECK(is_bad("HTTP/1.1 407 X\r\n\r\n", asked, COGPU_IO_ERROR, "proxy"));
    CHECK(is_bad("HTTP/1.1 204 X\r\n" RANGE "\r\n", asked, COGPU_IO_ERROR, "status 204"));
    CHECK(is_bad("HTTP/1.1 501 X\r\n\r\n", asked, COGPU_IO_ERROR, "status 501"));
}

static void ranges_outside_the_file(void) {
    CHECK(is_bad("HTTP/1.1 416 X\r\nContent-Range: bytes */0\r\n\r\n", plain(), COGPU_NOT_TIFF,
                 "empty"));
    CHECK(is_bad("HTTP/1.1 416 X\r\nContent-Range: bytes */100\r\n\r\n", plain(), COGPU_CORRUPT,
                 "the file ends at 100"));
    CHECK(error.offset == 100);
    CHECK(is_bad("HTTP/1.1 416 X\r\nContent-Range: bytes */101\r\n\r\n", plain(), COGPU_IO_ERROR,
                 "416"));
    CHECK(is_bad("HTTP/1.1 416 X\r\n\r\n", plain(), COGPU_IO_ERROR, "100 bytes at offset 100"));
    CHECK(is_bad("HTTP/1.1 416 X\r\nContent-Range: bytes */1000\r\n\r\n", known(), COGPU_IO_ERROR,
                 "416"));
    CHECK(is_bad("HTTP/1.1 416 X\r\nContent-Range: bytes */x\r\n\r\n", known(), COGPU_IO_ERROR,
                 "Content-Range is"));
}

static cogpu_response_outcome check_call(const char *lines) {
    cogpu_response response = {0};
    parse_lines(&response, lines);
    cogpu_error_clear(&error);
    return cogpu_response_check_call(&response, URL, &error);
}

static void calls(void) {
    CHECK(check_call("HTTP/1.1 200 OK\r\nETag: \"a1\"\r\n\r\n") == COGPU_RESPONSE_GOOD);
    CHECK(check_call("HTTP/1.1 204 No Content\r\n\r\n") == COGPU_RESPONSE_GOOD);
    CHECK(check_call("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
                     "Content-Type: application/xml\r\n\r\n") == COGPU_RESPONSE_GOOD);
    CHECK(error.status == COGPU_OK);
    CHECK(check_call("HTTP/1.1 503 Slow Down\r\n\r\n") == COGPU_RESPONSE_RETRY &&
          says(COGPU_IO_ERROR, "503"));
    CHECK(check_call("HTTP/1.1 200 OK\r\nETag: ") == COGPU_RESPONSE_RETRY &&
          says(COGPU_IO_ERROR, "ended before"));
    CHECK(check_call("HTTP/1.1 100 Continue\r\n\r\n") == COGPU_RESPONSE_RETRY);
    CHECK(check_call("HTTP/1.1 307 Elsewhere\r\nLocation: https://other/\r\n\r\n") ==
              COGPU_RESPONSE_BAD &&
          says(COGPU_IO_ERROR, "307"));
    CHECK(check_call("HTTP/1.1 403 Forbidden\r\n\r\n") == COGPU_RESPONSE_BAD &&
          says(COGPU_IO_ERROR, "403"));
    CHECK(check_call("HTTP/1.1 404 Not Found\r\n\r\n") == COGPU_RESPONSE_BAD &&
          says(COGPU_NOT_FOUND, "404"));
    CHECK(check_call("HTTP/1.1 200 OK\r\nETag: \"a\"\r\nETag: \"b\"\r\n\r\n") ==
              COGPU_RESPONSE_BAD &&
          says(COGPU_IO_ERROR, "ETag"));
}

static void messages_are_ours(void) {
    char url[400];
    memset(url, 'u', sizeof url - 1);
    url[sizeof url - 1] = '\0';
    cogpu_range_request asked = known();
    asked.url = url;
    CHECK(check("HTTP/1.1 403 SECRET\r\nLocation: SECRET\r\nETag: SECRET\r\n\r\n", asked) ==
          COGPU_RESPONSE_BAD);
    CHECK(!strstr(error.message, "SECRET") && strstr(error.message, "credentials"));
    CHECK(check(PART RANGE "ETag: SECRET\r\n\r\n", asked) == COGPU_RESPONSE_BAD);
    CHECK(!strstr(error.message, "SECRET") && strstr(error.message, "open it again"));
    CHECK(check("HTTP/1.1 200 X\r\nContent-Encoding: SECRET\r\nETag: \"a1\"\r\n\r\n", asked) ==
          COGPU_RESPONSE_BAD);
    CHECK(!strstr(error.message, "SECRET") && strstr(error.message, "as it is"));
    CHECK(strlen(error.message) == sizeof error.message - 1);
    cogpu_response response = parsed("HTTP/1.1 404 X\r\n\r\n");
    CHECK(cogpu_response_check(&response, &asked, NULL) == COGPU_RESPONSE_BAD);
}

/* ---- bodies -----------------------------------------------------------------------------------
 */

static cogpu_response_outcome completed(const char *lines, cogpu_range_request asked,
                                        uint64_t got) {
    cogpu_response response = parsed(lines);
    cogpu_error_clear(&error);
    return cogpu_response_complete(&response, &asked, got, &error);
}

static void bodies(void) {
    uint64_t bytes = 0;
    cogpu_response response = parsed(PART RANGE "\r\n");
    CHECK(cogpu_response_bytes(&response, &bytes) && bytes == 100);
    response = parsed("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    CHECK(cogpu_response_bytes(&response, &bytes) && bytes == 1000);
    response = parsed("HTTP/1.1 200 OK\r\n\r\n");
    CHECK(!cogpu_response_bytes(&response, &bytes));

    const char *part = PART RANGE "\r\n", *cut = PART "Content-Range: bytes 100-149/150\r\n\r\n";
    CHECK(completed(part, plain(), 100) == COGPU_RESPONSE_GOOD && error.status == COGPU_OK);
    CHECK(completed(part, plain(), 99) == COGPU_RESPONSE_RETRY);
    CHECK(says(COGPU_IO_ERROR, "ended after 99 of 100 bytes"));
    CHECK(completed(part, plain(), 0) == COGPU_RESPONSE_RETRY);
    CHECK(completed(part, plain(), 101) == COGPU_RESPONSE_BAD);
    CHECK(says(COGPU_IO_ERROR, "sent 101 bytes, more than the 100"));
    CHECK(completed(cut, plain(), 50) == COGPU_RESPONSE_GOOD);
    CHECK(completed(cut, plain(), 49) == COGPU_RESPONSE_RETRY);
    CHECK(completed(cut, plain(), 51) == COGPU_RESPONSE_BAD);

    const char *whole = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    CHECK(completed(whole, plain(), 1000) == COGPU_RESPONSE_GOOD);
    CHECK(completed(whole, plain(), 999) == COGPU_RESPONSE_RETRY);
    CHECK(completed("HTTP/1.1 200 OK\r\n\r\n", plain(), 77) == COGPU_RESPONSE_GOOD);
    CHECK(completed("HTTP/1.1 200 OK\r\n\r\n", known(), 999) == COGPU_RESPONSE_RETRY);
    CHECK(completed("HTTP/1.1 200 OK\r\n\r\n", known(), 1000) == COGPU_RESPONSE_GOOD);
}

/* ---- waits ------------------------------------------------------------------------------------
 */

static uint32_t wait_of(const char *value, int64_t now) {
    char lines[256];
    snprintf(lines, sizeof lines, "HTTP/1.1 503 X\r\nRetry-After: %s\r\n\r\n", value);
    cogpu_response response = parsed(lines);
    CHECK(!response.malformed);
    return cogpu_response_retry_after(&response, now);
}

static void retry_after(void) {
    const int64_t now = 784111777; /* Sun, 06 Nov 1994 08:49:37 GMT */
    CHECK(wait_of("0", now) == 0 && wait_of("120", now) == 120 && wait_of(" 3 ", now) == 3);
    CHECK(wait_of("3600", now) == 3600 && wait_of("3601", now) == 3600);
    CHECK(wait_of("4294967296", now) == 3600 && wait_of("9223372036854775807", now) == 3600);
    CHECK(wait_of("Sun, 06 Nov 1994 08:49:37 GMT", now) == 0);
    CHECK(wait_of("Sun, 06 Nov 1994 08:50:00 GMT", now) == 23);
    CHECK(wait_of("Sun, 06 Nov 1994 08:49:00 GMT", now) == 0);
    CHECK(wait_of("Mon, 07 Nov 1994 08:49:37 GMT", now) == 3600);
    CHECK(wait_of("Fri, 31 Dec 9999 23:59:60 GMT", now) == 3600);
    CHECK(wait_of("Thu, 29 Feb 2024 00:00:00 GMT", 1709164800 - 5) == 5);
    CHECK(wait_of("Mon, 01 Jan 0000 00:00:00 GMT", now) == 0);
    CHECK(wait_of("Sun, 06 Jan 1980 00:00:01 GMT", 315964800) == 1);
    static const char *const broken[] = {"",
                                         "-5",
                                         "1.5",
                                         "soon",
                                         "5 s",
                                         "99999999999999999999",
                                         "Sun, 06 Nov 1994 08:50:00 UTC",
                                         "Sun, 06 Nov 1994 08:50:00",
                                         "Sun, 06 Nov 1994 08:50:00 GMT+1",
                                         "Sun, 00 Nov 1994 08:50:00 GMT",
                                         "Sun, 32 Nov 1994 08:50:00 GMT",
                                         "Sun, 06 nov 1994 08:50:00 GMT",
                                         "Sun, 06 ovD 1994 08:50:00 GMT",
                                         "Sun, 06 Nov 1994 24:50:00 GMT",
                                         "Sun, 06 Nov 1994 08:60:00 GMT",
                                         "Sun, 06 Nov 1994 08:50:61 GMT",
                                         "Sun, 06 Nov -994 08:50:00 GMT",
                                         "Sun, 06-Nov-1994 08:50:00 GMT",
                                         "Sun, 6 Nov 1994 08:50:00 GMT "};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        CHECK(wait_of(broken[i], now) == 0);
    CHECK(wait_of("5\r\nRetry-After: 4", now) == 5);
    CHECK(wait_of("5\r\nRetry-After: 4\r\nRetry-After: Sun, 06 Nov 1994 08:49:44 GMT", now) == 7);
    CHECK(wait_of("Sun, 06 Nov 1994 08:49:44 GMT\r\nRetry-After: 9", now) == 9);
}

static void waits_grow_to_a_cap(void) {
    static const double most[] = {0.2, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 20, 20, 20};
    uint64_t random = 42;
    for (uint32_t tries = 0; tries <= 10; tries++) {
        double longest = 0, shortest = 1000, sum = 0;
        for (int i = 0; i < 2000; i++) {
            double wait = cogpu_retry_wait(tries, 0, &random);
            longest = wait > longest ? wait : longest;
            shortest = wait < shortest ? wait : shortest;
            sum += wait;
        }
        CHECK(shortest >= 0 && shortest < 0.01 * most[tries]);
        CHECK(longest < most[tries] && longest > 0.99 * most[tries]);
        CHECK(sum > 900 * most[tries] && sum < 1100 * most[tries]);
    }
    CHECK(cogpu_retry_wait(UINT32_MAX, 0, &random) < 20);
}

static void waits_are_no_shorter_than_asked_for(void) {
    uint64_t random = 7;
    for (int i = 0; i < 1000; i++) {
        double wait = cogpu_retry_wait(1, 5, &random);
        CHECK(wait >= 5 && wait < 5.2);
        wait = cogpu_retry_wait(20, COGPU_RETRY_AFTER_MAX, &random);
        CHECK(wait >= 3600 && wait < 3620);
    }
}

static void waits_come_from_their_state_alone(void) {
    uint64_t a = 99, b = 99, c = 100;
    int same = 0;
    for (int i = 0; i < 100; i++) {
        double wait = cogpu_retry_wait(3, 1, &a);
        CHECK(wait == cogpu_retry_wait(3, 1, &b));
        same += wait == cogpu_retry_wait(3, 1, &c);
    }
    CHECK(a == b && same < 5);
}

TESTS(response) {
    RUN(headers_are_kept);
    RUN(lines_may_end_in_many_ways);
    RUN(broken_status_lines);
    RUN(a_status_line_begins_anew);
    RUN(trailers_change_nothing);
    RUN(broken_numbers);
    RUN(repeated_headers);
    RUN(folded_lines_and_control_characters);
    RUN(etags);
    RUN(texts_have_limits);
    RUN(headers_end_at_a_limit);
    RUN(good_parts);
    RUN(parts_cut_at_the_end);
    RUN(wrong_ranges);
    RUN(files_that_change);
    RUN(whole_files);
    RUN(pages_are_no_rasters);
    RUN(compressed_responses);
    RUN(redirects);
    RUN(what_is_tried_again);
    RUN(responses_that_stop_in_their_headers);
    RUN(refusals);
    RUN(ranges_outside_the_file);
    RUN(calls);
    RUN(messages_are_ours);
    RUN(bodies);
    RUN(retry_after);
    RUN(waits_grow_to_a_cap);
    RUN(waits_are_no_shorter_than_asked_for);
    RUN(waits_come_from_their_state_alone);
    return FINISH();
}
