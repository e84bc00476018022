/*
 * Bytes from servers and to them: takes requests for ranges, hands them on where the caller wants
 * them; and takes calls to stores, hands on what they answer.
 *
 * One thread holds all connections, by libcurl's multi interface; any thread may start requests and
 * wait for them. What a request meets on its way is dealt with here: redirects, answers that ask
 * for patience, connections that break, after which the next try begins at the byte where the last
 * one stopped.
 */
#ifndef COGPU_IO_HTTP_H
#define COGPU_IO_HTTP_H

#include "io/answer.h"
#include "io/heads.h"
#include "io/s3.h"
#include "io/source.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Whom to ask, and what is known of the file: the same for all its requests. */
typedef struct cogpu_http_target {
    const char *url;             /* the normal form of url.h; http or https */
    const char *moved;           /* where it has led to before, which is asked in its place until it
                                  * refuses; "" or NULL where it leads nowhere */
    const char *shown;           /* the same as `url`, for messages */
    const char *user;            /* "NAME:PASSWORD" of the URL; NULL or "" without */
    const cogpu_s3_place *place; /* of S3, where requests are signed; NULL elsewhere */
    const cogpu_s3_credentials *credentials;
    const char *etag, *modified; /* that answers must have; "" or NULL while none is known */
    bool etag_is_strong;
    bool has_size;
    uint64_t size;       /* of the file */
    bool may_be_private; /* its host may have a private address; those that it sends us to may not,
                          * unless the settings say so */
    bool moved_from_public; /* a server with a public address led to `moved` */
} cogpu_http_target;

/* One range of bytes, or a call. The caller fills the first seven and keeps all of it, and what it
 * points to, until it was waited for or cancelled.
 *
 * What a call answers is a short text, which is kept as far as it has room; an Error of S3's is an
 * error, whatever the status. Calls are made again as reads are: they must be such that nothing
 * comes of doing them twice. Redirects of calls are not followed. */
typedef struct cogpu_http_request {
    const cogpu_http_target *target;
    uint64_t offset;
    size_t bytes;
    uint8_t *to;
    bool may_be_whole; /* a server that knows no ranges may send the file, if it has room */
    const cogpu_s3_request *call; /* instead of a range; NULL without */
    char *moved; /* room for COGPU_URL_BYTES: where redirects led to, "" without any; NULL where
                  * nobody asks */
    bool moved_from_public; /* as the target's, of where redirects led to */
    uint32_t tries;
    size_t got; /* bytes that have come, for good */
    size_t due; /* bytes that will have: fewer than `bytes` where the file ends */
    cogpu_answer answer;
    cogpu_error error;
    atomic_bool is_dropped;
    bool is_through;
    bool is_too_long; /* the server knows no ranges, and the file has no room */
    struct cogpu_http_request *next;
} cogpu_http_request;

/* network.c: settings as cogpu.h has them; none is left to a default in complete ones. */
cogpu_network cogpu_network_complete(const cogpu_network *network);

/* Completes a target that is an s3:// address. `place` and `credentials` must live as long. */
cogpu_status cogpu_network_find_s3(const cogpu_network *network, const char *address,
                                   cogpu_s3_place *place, cogpu_s3_credentials *credentials,
                                   cogpu_http_target *target, cogpu_error *error);

const cogpu_network *cogpu_http_network(const cogpu_http *http); /* complete */
cogpu_heads *cogpu_http_heads(const cogpu_http *http);
/* Not so in the child of a fork, where nothing below may be called. */
bool cogpu_http_is_here(const cogpu_http *http);
/* What somebody is to work with: his own, to be closed, where he was given none; IO where they are
 * those of another process. */
cogpu_status cogpu_http_take(cogpu_http **http, bool *is_own, cogpu_error *error);

/* Memory of `held_bytes` of the settings, which all files of these connections share: whether there
 * is so much, which is taken then; and back again. */
bool cogpu_http_hold(cogpu_http *http, uint64_t bytes);
void cogpu_http_let_go(cogpu_http *http, uint64_t bytes);

/* All of them are under way, as far as the settings allow, before the first is waited for. */
void cogpu_http_start(cogpu_http *http, cogpu_http_request *requests, uint32_t count);
cogpu_status cogpu_http_wait(cogpu_http *http, cogpu_http_request *request, cogpu_error *error);
/* The same, polling `meter`, which may be NULL; CANCELLED if that is cancelled. The request is
 * still under way then. */
cogpu_status cogpu_http_wait_metered(cogpu_http *http, cogpu_http_request *request,
                                     cogpu_meter *meter, cogpu_error *error);
/* Ends what is under way; `to` is not written to afterwards. */
void cogpu_http_cancel(cogpu_http *http, cogpu_http_request *request);

#endif
