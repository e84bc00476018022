/*
 * Any response of a server: no failure without a message, no text beyond its buffer, and a good
 * response has the bytes that were requested.
 *
 * Input: 4 bytes that choose the request, see `choose_request`, then the lines of the response.
 */
#include "io/http/response.h"

#include <stdlib.h>
#include <string.h>

enum { CHOICE_BYTES = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(int holds) {
    if (!holds)
        abort();
}

static cogpu_range_request choose_request(const uint8_t *choice) {
    return (cogpu_range_request){.offset = choice[1] * 100u,
                                 .bytes = 1u + choice[2] + choice[3] * 256u,
                                 .has_size = choice[0] & 1,
                                 .size = 1000,
                                 .etag = choice[0] & 2 ? "\"a1\"" : NULL,
                                 .modified = choice[0] & 4 ? "Sun, 06 Nov 1994 08:49:37 GMT" : "",
                                 .url = "https://host/file.tif"};
}

/* Each line in memory of its exact size, so that a read past its end is seen. */
static void parse_lines(cogpu_response *response, const uint8_t *lines, size_t bytes) {
    while (bytes > 0) {
        const uint8_t *end = memchr(lines, '\n', bytes);
        size_t line_bytes = end ? (size_t)(end - lines) + 1 : bytes;
        char *line = malloc(line_bytes);
        if (!line)
            return;
        memcpy(line, lines, line_bytes);
        bool goes_on = cogpu_response_line(response, line, line_bytes);
        free(line);
        if (!goes_on)
            return;
        lines += line_bytes;
        bytes -= line_bytes;
    }
}

/* Terminated, and nothing in it that could begin another header when it is sent back. */
static void check_text(const char *text, size_t capacity) {
    const char *end = memchr(text, '\0', capacity);
    require(end != NULL);
    for (; text < end; text++)
        require((unsigned char)*text >= ' ' || *text == '\t');
}

static void check_body(const cogpu_response *response, const cogpu_range_request *request) {
    cogpu_error error;
    uint64_t bytes;
    if (!cogpu_response_bytes(response, &bytes))
        return;
    require(cogpu_response_complete(response, request, bytes, &error) == COGPU_RESPONSE_GOOD);
    require(cogpu_response_complete(response, request, bytes + 1, &error) == COGPU_RESPONSE_BAD);
    require(bytes == 0 ||
            cogpu_response_complete(response, request, 0, &error) == COGPU_RESPONSE_RETRY);
}

static void check_part(const cogpu_response *response, const cogpu_range_request *request) {
    const cogpu_content_range *range = &response->range;
    uint64_t bytes;
    require(response->status == 206 && range->has_bytes && range->first == request->offset);
    require(cogpu_response_bytes(response, &bytes) && bytes >= 1 && bytes <= request->bytes);
    uint64_t size = range->has_total ? range->total : request->size;
    require(bytes == request->bytes || range->last + 1 == size);
    require(!request->has_size || !range->has_total || range->total == request->size);
    require(!response->has_length || response->length == bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    cogpu_response response = {0};
    cogpu_error error;
    if (bytes < CHOICE_BYTES)
        return 0;
    cogpu_range_request request = choose_request(data);
    parse_lines(&response, data + CHOICE_BYTES, bytes - CHOICE_BYTES);
    require(response.header_bytes <= COGPU_HEADERS_BYTES_MAX && response.length <= INT64_MAX);
    require(response.range.last <= INT64_MAX && response.range.total <= INT64_MAX);
    check_text(response.etag, sizeof response.etag);
    check_text(response.modified, sizeof response.modified);
    check_text(response.location, sizeof response.location);
    require(cogpu_response_retry_after(&response, 784111777) <= COGPU_RETRY_AFTER_MAX);

    cogpu_error_clear(&error);
    cogpu_response_outcome outcome = cogpu_response_check(&response, &request, &error);
    bool is_content = outcome == COGPU_RESPONSE_GOOD || outcome == COGPU_RESPONSE_WHOLE;
    if (is_content)
        require(response.has_ended && !response.malformed && !response.is_encoded);
    if (is_content && request.etag && *response.etag)
        require(strcmp(response.etag, request.etag) == 0);
    if (outcome == COGPU_RESPONSE_GOOD)
        check_part(&response, &request);
    if (outcome == COGPU_RESPONSE_WHOLE)
        require(response.status == 200 && !response.is_page);
    if (is_content)
        check_body(&response, &request);
    require(outcome != COGPU_RESPONSE_REDIRECT || *response.location);
    bool is_error = outcome == COGPU_RESPONSE_RETRY || outcome == COGPU_RESPONSE_BAD;
    require(is_error == (error.status != COGPU_OK) && is_error == (*error.message != '\0'));
    check_text(error.message, sizeof error.message);
    return 0;
}
