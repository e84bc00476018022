/* What the files of the client share: client.c (connection thread), transfer.c (one attempt),
 * retry.c (what follows an attempt), peer.c (allowed addresses). */
#ifndef COGPU_IO_HTTP_CLIENT_INTERNAL_H
#define COGPU_IO_HTTP_CLIENT_INTERNAL_H

#include "io/http/certificates.h"
#include "io/http/client.h"
#include "io/http/url.h"

#include <curl/curl.h>

#include <pthread.h>
#include <sys/socket.h>
#include <sys/types.h>

enum { COGPU_SHOWN_BYTES = 136 }; /* of URLs in a message, which needs space for more */

struct cogpu_http_headers {
    struct curl_slist *list;
};

/* A request in the hands of the connection thread: its attempts, one after the other. */
typedef struct cogpu_transfer {
    struct cogpu_transfer *next;
    cogpu_http *http;
    cogpu_http_request *request;
    CURL *easy;
    cogpu_http_headers headers;
    enum { TRANSFER_WAITING, TRANSFER_RUNNING, TRANSFER_ENDED } state;
    char url[COGPU_URL_BYTES]; /* that is requested now: after redirects */
    uint32_t attempts, redirects;
    double start_at, deadline;      /* of clock_now */
    size_t resumed_at;              /* bytes of the request that earlier attempts received */
    size_t page_bytes;              /* received of a body that is not the file's */
    bool is_checked;                /* the headers are complete, and `outcome` is theirs */
    cogpu_response_outcome outcome; /* of this attempt */
    bool starts_at_redirect;        /* began at the target's redirect_url */
    bool is_from_public;            /* a server with a public address has led to `url` */
    enum { PEER_ALLOWED, PEER_PRIVATE, PEER_LINK_LOCAL, PEER_FROM_PUBLIC } refusal;
    char shown[COGPU_SHOWN_BYTES]; /* for messages: the target's URL, and `url` if it differs */
} cogpu_transfer;

struct cogpu_http {
    cogpu_network network; /* complete */
    cogpu_certificates certificates;
    cogpu_header_cache *header_cache;
    CURLM *multi;
    pthread_t thread;
    pid_t process; /* that has the thread */
    /* Of the connection thread. */
    uint64_t random; /* state of the retry delays */
    cogpu_transfer *transfers;
    uint32_t running;
    /* Under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t request_done;
    uint64_t reserved_bytes;
    cogpu_http_request *started, **started_end; /* not seen by the thread yet */
    bool is_closing;
};

/* ---- transfer.c ---- */

/* NULL if memory runs out. */
cogpu_transfer *cogpu_transfer_open(cogpu_http *http, cogpu_http_request *request);
void cogpu_transfer_close(cogpu_transfer *transfer);
/* Starts an attempt: RUNNING, or ENDED with an error. */
void cogpu_transfer_start(cogpu_transfer *transfer);
/* Removes it from libcurl, if it is RUNNING. */
void cogpu_transfer_stop(cogpu_transfer *transfer);
/* Checks the headers of the response, once per attempt. */
void cogpu_transfer_check_headers(cogpu_transfer *transfer);
/* The range that this attempt requests, for response.h. */
cogpu_range_request cogpu_transfer_range(const cogpu_transfer *transfer);

/* ---- retry.c ---- */

/* After an attempt: whether another one follows, at start_at. If not, the request's error says why,
 * or all bytes were received. */
bool cogpu_transfer_continues(cogpu_transfer *transfer, CURLcode code);

/* ---- peer.c ---- */

/* CURLOPT_OPENSOCKETFUNCTION, with the transfer as argument. */
curl_socket_t cogpu_transfer_open_socket(void *transfer, curlsocktype purpose,
                                         struct curl_sockaddr *address);
/* Sets `refusal` by the address that is connected to. */
void cogpu_transfer_check_peer(cogpu_transfer *transfer);
bool cogpu_transfer_has_public_peer(const cogpu_transfer *transfer);
/* The request's error, by `refusal`. */
void cogpu_transfer_fail_refused(cogpu_transfer *transfer);

#endif
