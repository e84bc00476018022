/*
 * Responses of HTTP servers: to a GET of one byte range (Range, and If-Match once the version is
 * known), or to a call that changes something. Their status line and headers are parsed line by
 * line (response.c), and checked against the request (response_check.c). No connection is needed,
 * so every response can be tested.
 *
 * Servers are not trusted: what they send is stored within fixed limits, and what is malformed or
 * contradictory is an error, never a guess. No text of a server gets into a message.
 */
#ifndef COGPU_IO_HTTP_RESPONSE_H
#define COGPU_IO_HTTP_RESPONSE_H

#include "base/status.h"

#include <stdbool.h>

/* Of texts, with the NUL; of all header lines of a request; of Retry-After, in seconds. */
enum {
    COGPU_ETAG_BYTES = 256,
    COGPU_MODIFIED_BYTES = 48,
    COGPU_LOCATION_BYTES = 8192,
    COGPU_HEADERS_BYTES_MAX = 128 << 10,
    COGPU_RETRY_AFTER_MAX = 3600
};

/* Numbers are at most INT64_MAX, `first` is at most `last`, and `last` is below `total`. */
typedef struct cogpu_content_range {
    bool has_bytes, has_total; /* false for "*" */
    uint64_t first, last, total;
} cogpu_content_range;

/* Zeroed before the first line. */
typedef struct cogpu_response {
    uint32_t status;                     /* 206; 0 while there is none */
    bool has_begun, has_ended;           /* the status line, the empty line was parsed */
    uint32_t header_bytes;               /* so far */
    const char *malformed;               /* the first header that is malformed, too long or
                                          * contradicts itself; NULL without */
    bool has_length;                     /* Content-Length */
    uint64_t length;                     /* at most INT64_MAX */
    cogpu_content_range range;           /* Content-Range */
    char etag[COGPU_ETAG_BYTES];         /* without the W/ of a weak one; "" without */
    bool etag_is_strong;                 /* valid in If-Match */
    char modified[COGPU_MODIFIED_BYTES]; /* Last-Modified as it was sent; "" without */
    char location[COGPU_LOCATION_BYTES]; /* as it was sent, relative or not; "" without */
    bool is_encoded;                     /* Content-Encoding: gzip or the like */
    bool is_page;                        /* Content-Type: HTML or XML */
    uint32_t retry_seconds;              /* Retry-After: a number ... */
    int64_t retry_at;                    /* ... or a date, in seconds since 1970; 0 without */
} cogpu_response;

/* What was requested, and what earlier responses said of the file. The range is not empty, and ends
 * at INT64_MAX at most. */
typedef struct cogpu_range_request {
    uint64_t offset, bytes;
    bool has_size;
    uint64_t size;
    const char *etag, *modified; /* of an earlier response; NULL or "" without */
    const char *url;             /* as it may be shown */
} cogpu_range_request;

typedef enum cogpu_response_outcome {
    COGPU_RESPONSE_GOOD,     /* the range, or what the file has of it */
    COGPU_RESPONSE_WHOLE,    /* the whole file: the server ignores ranges */
    COGPU_RESPONSE_REDIRECT, /* to `location` */
    COGPU_RESPONSE_RETRY,    /* the same request may succeed later; the error says why it failed */
    COGPU_RESPONSE_BAD       /* the error says why */
} cogpu_response_outcome;

/* Parses one line as it was received: not terminated, CRLF at its end. A status line begins a new
 * response; other lines after the empty one are ignored. Pass no more lines once a response is
 * GOOD or WHOLE: they are trailers, which could pose as another response. False if there are too
 * many headers: end the transfer, and check the response. */
bool cogpu_response_line(cogpu_response *response, const char *line, size_t bytes);

/* Once the headers are complete, or no more will arrive. */
cogpu_response_outcome cogpu_response_check(const cogpu_response *response,
                                            const cogpu_range_request *request, cogpu_error *error);
/* The same for a call, where any 2xx is GOOD. `url` as in cogpu_range_request. */
cogpu_response_outcome cogpu_response_check_call(const cogpu_response *response, const char *url,
                                                 cogpu_error *error);

/* Length of the body of a GOOD or WHOLE response; false if it is not known. */
bool cogpu_response_bytes(const cogpu_response *response, uint64_t *bytes);

/* Once the body of a GOOD or WHOLE response has ended: GOOD; RETRY if it is truncated, from the
 * first missing byte; BAD if it is too long. */
cogpu_response_outcome cogpu_response_complete(const cogpu_response *response,
                                               const cogpu_range_request *request,
                                               uint64_t received, cogpu_error *error);

/* Seconds that the server asks to wait, from `now` (seconds since 1970) on: at most
 * COGPU_RETRY_AFTER_MAX, 0 if it does not say. */
uint32_t cogpu_response_retry_after(const cogpu_response *response, int64_t now);

/* Seconds to wait before the next attempt: `retry_after`, plus exponential backoff with full
 * jitter, a random share of a step that doubles from 0.2 to 20 seconds. So clients do not return
 * all at once. `random` is the state of the generator. */
double cogpu_retry_wait(uint32_t attempts, uint32_t retry_after, uint64_t *random);

#endif
