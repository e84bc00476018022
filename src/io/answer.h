/*
 * What a server says to a GET of one range of bytes (Range, and after the first also If-Match), or
 * to a request that changes something: its status line and headers, line by line, become a verdict;
 * and how long to wait before the next try. Nothing here knows a connection, so all that a server
 * can say is tested without one.
 *
 * The server is not trusted: what it says is kept within fixed limits, and what is broken or
 * contradicts itself is an error, never a guess. No text of a server gets into a message.
 */
#ifndef COGPU_IO_ANSWER_H
#define COGPU_IO_ANSWER_H

#include "base/status.h"

#include <stdbool.h>

/* Of texts, with the NUL; of all lines of a request; seconds that a server may keep us waiting. */
enum {
    COGPU_ETAG_BYTES = 256,
    COGPU_MODIFIED_BYTES = 48,
    COGPU_LOCATION_BYTES = 8192,
    COGPU_HEADERS_BYTES_MAX = 128 << 10,
    COGPU_RETRY_AFTER_MAX = 3600
};

/* Numbers are at most INT64_MAX, `first` is at most `last`, and `last` is below `total`. */
typedef struct cogpu_content_range {
    bool has_bytes, has_total; /* "*" in their place: false */
    uint64_t first, last, total;
} cogpu_content_range;

/* Zeroed before the first line of a request. */
typedef struct cogpu_answer {
    uint32_t status;                     /* 206; 0 while there is none */
    bool has_begun, has_ended;           /* the status line came; the empty line did too */
    uint32_t header_bytes;               /* so far */
    const char *fault;                   /* the first header that is broken, too long or repeated
                                          * with another value; NULL without */
    bool has_length;                     /* Content-Length */
    uint64_t length;                     /* at most INT64_MAX */
    cogpu_content_range range;           /* Content-Range */
    char etag[COGPU_ETAG_BYTES];         /* without the W/ of a weak one; "" without */
    bool etag_is_strong;                 /* good for If-Match, as it stands */
    char modified[COGPU_MODIFIED_BYTES]; /* Last-Modified as it stands; "" without */
    char location[COGPU_LOCATION_BYTES]; /* as it stands, relative or not; "" without */
    bool is_encoded;                     /* Content-Encoding: gzip or the like */
    bool is_page;                        /* Content-Type: HTML or XML */
    uint32_t retry_seconds;              /* Retry-After: a number ... */
    int64_t retry_at;                    /* ... or a date, in seconds since 1970; 0 without */
} cogpu_answer;

/* What was asked for, and what is known of the file from answers before. The range is ours: not
 * empty, and it ends at INT64_MAX at most. */
typedef struct cogpu_asked {
    uint64_t offset, bytes;
    bool has_size;
    uint64_t size;
    const char *etag, *modified; /* as an answer had them; NULL or "" where it had none */
    const char *url;             /* in the form that may be shown */
} cogpu_asked;

typedef enum cogpu_answer_verdict {
    COGPU_ANSWER_GOOD,     /* the range, or what the file has of it */
    COGPU_ANSWER_WHOLE,    /* the whole file: the server knows no ranges */
    COGPU_ANSWER_REDIRECT, /* look at `location` */
    COGPU_ANSWER_RETRY,    /* the same request may succeed later; the error says why it did not */
    COGPU_ANSWER_BAD       /* the error says why */
} cogpu_answer_verdict;

/* Takes one line as it came: not terminated, CRLF at its end. A status line begins a new answer;
 * other lines after the empty one are passed over. Once an answer is found GOOD or WHOLE, no line
 * is handed on any more: what comes then are trailers, which could pose as another answer. False
 * where headers are too many: the caller ends the transfer, and the verdict will say so. */
bool cogpu_answer_line(cogpu_answer *answer, const char *line, size_t bytes);

/* Once the headers are there, or none come any more. */
cogpu_answer_verdict cogpu_answer_judge(const cogpu_answer *answer, const cogpu_asked *asked,
                                        cogpu_error *error);
/* The same for a request that does something else than read, where any 2xx is GOOD. `url` as in
 * cogpu_asked. */
cogpu_answer_verdict cogpu_answer_judge_call(const cogpu_answer *answer, const char *url,
                                             cogpu_error *error);

/* Bytes that the body of a GOOD or WHOLE answer has; false where it does not say. */
bool cogpu_answer_bytes(const cogpu_answer *answer, uint64_t *bytes);

/* Once the body of a GOOD or WHOLE answer ended after `got` bytes: GOOD; RETRY where it is cut off,
 * and the next request may begin behind what came; BAD where it is too long. */
cogpu_answer_verdict cogpu_answer_complete(const cogpu_answer *answer, const cogpu_asked *asked,
                                           uint64_t got, cogpu_error *error);

/* Seconds that the server wants to be left alone, from `now` (seconds since 1970) on: at most
 * COGPU_RETRY_AFTER_MAX, 0 where it does not say. */
uint32_t cogpu_answer_retry_after(const cogpu_answer *answer, int64_t now);

/* Seconds to wait before the next try, after so many that failed: `retry_after`, and on top a share
 * by chance of a step that doubles from 0.2 to 20 seconds, so that many clients do not come back
 * all at once. The same state of `random` gives the same wait. Where it goes beyond the deadline
 * the caller gives up. */
double cogpu_retry_wait(uint32_t tries, uint32_t retry_after, uint64_t *random);

#endif
