/*
 * HTTP client: byte ranges from servers into the caller's memory, and calls that change something
 * on a server. It knows no store: how requests are signed and how a store reports errors comes with
 * the target (call.h).
 *
 * One thread owns all connections through libcurl's multi interface. Any thread may start requests
 * and wait for them. The client follows redirects, retries transient errors, and resumes a broken
 * transfer at the first missing byte.
 */
#ifndef COGPU_IO_HTTP_CLIENT_H
#define COGPU_IO_HTTP_CLIENT_H

#include "io/http/call.h"
#include "io/http/header_cache.h"
#include "io/http/response.h"
#include "io/source.h"

#include <stdatomic.h>
#include <stdbool.h>

/* A file on a server, and what is known of it: shared by all its requests. */
typedef struct cogpu_http_target {
    const char *url;          /* http or https, in the normal form of url.h */
    const char *redirect_url; /* where `url` has led to before: requested first, until it fails; ""
                               * or NULL for none */
    const char *shown;        /* of the URL, for messages */
    const char *user;         /* "NAME:PASSWORD" for HTTP authentication; NULL or "" for none */
    cogpu_http_sign *sign;    /* authenticates requests in place of `user`; NULL for none */
    const void *signer;       /* its argument */
    cogpu_http_find_error *find_error; /* NULL for none */
    const char *etag, *modified;       /* that responses must have; "" or NULL while unknown */
    bool etag_is_strong;
    bool has_size;
    uint64_t size;       /* of the file */
    bool may_be_private; /* its host may have a private address. Hosts that it redirects to may not,
                          * unless the settings say so */
    bool redirected_from_public; /* a server with a public address led to `redirect_url` */
} cogpu_http_target;

/* A read of one byte range, or a call. The caller fills the first part. It keeps the struct, and
 * what it points to, until the request was waited for or cancelled.
 *
 * The body of a response to a call is kept as far as it fits in `to`. Redirects of calls are not
 * followed. */
typedef struct cogpu_http_request {
    const cogpu_http_target *target;
    uint64_t offset;
    size_t bytes;
    uint8_t *to;
    bool accepts_whole_file;     /* a server that ignores ranges may send the file, if it fits */
    const cogpu_http_call *call; /* in place of a range; NULL for a read */
    char *redirect_url; /* COGPU_URL_BYTES: where redirects led to, "" without any; may be NULL */

    bool redirected_from_public; /* see cogpu_http_target */
    bool ignores_ranges;         /* the server sends the whole file, and that does not fit */
    uint32_t attempts;
    size_t received; /* bytes in `to` */
    size_t expected; /* bytes in all: fewer than `bytes` at the end of the file */
    cogpu_response response;
    cogpu_error error;
    atomic_bool is_cancelled;
    bool is_done;
    struct cogpu_http_request *next;
} cogpu_http_request;

/* network.c: the settings with defaults in place of zeros. */
cogpu_network cogpu_network_complete(const cogpu_network *network);

const cogpu_network *cogpu_http_network(const cogpu_http *http); /* complete */
cogpu_header_cache *cogpu_http_header_cache(const cogpu_http *http);
/* False in the child of a fork, where none of the functions below may be called. */
bool cogpu_http_is_usable(const cogpu_http *http);
/* Opens a client of its own for a caller that has none (*http is NULL): *is_own says to close it.
 * IO if *http belongs to the parent of a fork. */
cogpu_status cogpu_http_ensure(cogpu_http **http, bool *is_own, cogpu_error *error);

/* Memory of the setting `max_inflight_bytes`, which all files of the client share. False if that is
 * used up. */
bool cogpu_http_reserve(cogpu_http *http, uint64_t bytes);
void cogpu_http_unreserve(cogpu_http *http, uint64_t bytes);

/* Starts all of them, as far as the settings allow, before the first is waited for. */
void cogpu_http_start(cogpu_http *http, cogpu_http_request *requests, uint32_t count);
cogpu_status cogpu_http_wait(cogpu_http *http, cogpu_http_request *request, cogpu_error *error);
/* The same, polling `meter`, which may be NULL. CANCELLED if that is cancelled: the request is
 * still under way then. */
cogpu_status cogpu_http_wait_metered(cogpu_http *http, cogpu_http_request *request,
                                     cogpu_meter *meter, cogpu_error *error);
/* Ends a request; `to` is not written afterwards. */
void cogpu_http_cancel(cogpu_http *http, cogpu_http_request *request);

#endif
