/*
 * Anything that a server may answer: no verdict without a reason, no text beyond its room, and what
 * is called good are bytes that were asked for.
 *
 * Input: 4 bytes of what is known and asked for, see `choose`, then the lines of the answer.
 */
#include "io/answer.h"

#include <stdlib.h>
#include <string.h>

enum { CHOICE_BYTES = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(int holds) {
    if (!holds)
        abort();
}

static cogpu_asked choose(const uint8_t *choice) {
    return (cogpu_asked){.offset = choice[1] * 100u,
                         .bytes = 1u + choice[2] + choice[3] * 256u,
                         .has_size = choice[0] & 1,
                         .size = 1000,
                         .etag = choice[0] & 2 ? "\"a1\"" : NULL,
                         .modified = choice[0] & 4 ? "Sun, 06 Nov 1994 08:49:37 GMT" : "",
                         .url = "https://host/file.tif"};
}

/* Each line in memory of its exact size, so that a read past its end is seen. */
static void tell(cogpu_answer *answer, const uint8_t *lines, size_t bytes) {
    while (bytes > 0) {
        const uint8_t *end = memchr(lines, '\n', bytes);
        size_t line_bytes = end ? (size_t)(end - lines) + 1 : bytes;
        char *line = malloc(line_bytes);
        if (!line)
            return;
        memcpy(line, lines, line_bytes);
        bool goes_on = cogpu_answer_line(answer, line, line_bytes);
        free(line);
        if (!goes_on)
            return;
        lines += line_bytes;
        bytes -= line_bytes;
    }
}

/* Terminated, and nothing in it that could begin another header when it is sent back. */
static void check_text(const char *text, size_t room) {
    const char *end = memchr(text, '\0', room);
    require(end != NULL);
    for (; text < end; text++)
        require((unsigned char)*text >= ' ' || *text == '\t');
}

static void check_body(const cogpu_answer *answer, const cogpu_asked *asked) {
    cogpu_error error;
    uint64_t bytes;
    if (!cogpu_answer_bytes(answer, &bytes))
        return;
    require(cogpu_answer_complete(answer, asked, bytes, &error) == COGPU_ANSWER_GOOD);
    require(cogpu_answer_complete(answer, asked, bytes + 1, &error) == COGPU_ANSWER_BAD);
    require(bytes == 0 || cogpu_answer_complete(answer, asked, 0, &error) == COGPU_ANSWER_RETRY);
}

static void check_part(const cogpu_answer *answer, const cogpu_asked *asked) {
    const cogpu_content_range *range = &answer->range;
    uint64_t bytes;
    require(answer->status == 206 && range->has_bytes && range->first == asked->offset);
    require(cogpu_answer_bytes(answer, &bytes) && bytes >= 1 && bytes <= asked->bytes);
    uint64_t size = range->has_total ? range->total : asked->size;
    require(bytes == asked->bytes || range->last + 1 == size);
    require(!asked->has_size || !range->has_total || range->total == asked->size);
    require(!answer->has_length || answer->length == bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    cogpu_answer answer = {0};
    cogpu_error error;
    if (bytes < CHOICE_BYTES)
        return 0;
    cogpu_asked asked = choose(data);
    tell(&answer, data + CHOICE_BYTES, bytes - CHOICE_BYTES);
    require(answer.header_bytes <= COGPU_HEADERS_BYTES_MAX && answer.length <= INT64_MAX);
    require(answer.range.last <= INT64_MAX && answer.range.total <= INT64_MAX);
    check_text(answer.etag, sizeof answer.etag);
    check_text(answer.modified, sizeof answer.modified);
    check_text(answer.location, sizeof answer.location);
    require(cogpu_answer_retry_after(&answer, 784111777) <= COGPU_RETRY_AFTER_MAX);

    cogpu_error_clear(&error);
    cogpu_answer_verdict verdict = cogpu_answer_judge(&answer, &asked, &error);
    bool is_content = verdict == COGPU_ANSWER_GOOD || verdict == COGPU_ANSWER_WHOLE;
    if (is_content)
        require(answer.has_ended && !answer.fault && !answer.is_encoded);
    if (is_content && asked.etag && *answer.etag)
        require(strcmp(answer.etag, asked.etag) == 0);
    if (verdict == COGPU_ANSWER_GOOD)
        check_part(&answer, &asked);
    if (verdict == COGPU_ANSWER_WHOLE)
        require(answer.status == 200 && !answer.is_page);
    if (is_content)
        check_body(&answer, &asked);
    require(verdict != COGPU_ANSWER_REDIRECT || *answer.location);
    bool is_error = verdict == COGPU_ANSWER_RETRY || verdict == COGPU_ANSWER_BAD;
    require(is_error == (error.status != COGPU_OK) && is_error == (*error.message != '\0'));
    check_text(error.message, sizeof error.message);
    return 0;
}
