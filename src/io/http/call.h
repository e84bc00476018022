/*
 * Requests other than reads of a byte range, and what a store adds to any request: the seam between
 * the HTTP client, which knows no store, and the stores (io/store/).
 */
#ifndef COGPU_IO_HTTP_CALL_H
#define COGPU_IO_HTTP_CALL_H

#include "cogpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The client may repeat a call after a failure: doing it twice must do no harm. */
typedef struct cogpu_http_call {
    const char *method; /* "GET", "HEAD", "PUT", "POST" or "DELETE" */
    const char *query;  /* encoded, without "?"; "" for none */
    const void *body;
    size_t bytes; /* of the body */
} cogpu_http_call;

/* The headers of a request that is being set up. */
typedef struct cogpu_http_headers cogpu_http_headers;
/* Adds a copy of a "Name: value" line. False if memory runs out. */
bool cogpu_http_add_header(cogpu_http_headers *headers, const char *line);

/* Adds the headers that authenticate a request. Called anew for each attempt, because signatures
 * expire; a read of a range is a GET without query and body. False if memory runs out. */
typedef bool cogpu_http_sign(const void *signer, const cogpu_http_call *call,
                             cogpu_http_headers *headers);

/* Looks for an error in the body of a response to a call: stores may report one with status 200.
 * If there is one, fills *error and says whether the same call may succeed later. */
typedef bool cogpu_http_find_error(const char *body, size_t bytes, uint32_t http_status,
                                   bool *is_transient, cogpu_error *error);

#endif
