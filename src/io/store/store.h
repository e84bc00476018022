/*
 * Stores: where remote files are, how requests for them are authenticated, and how they are
 * written. One interface for all of them; the HTTP client below it knows none.
 *
 *   cogpu_store_open("s3://bucket/key")      table of kinds: https, http, s3
 *     -> target   URL, sign, find_error      -> range requests (remote_source.c)
 *     -> uploads  put, begin, part, complete -> multipart upload (remote_sink.c, api/upload.c)
 *
 * A new store is one file that defines a cogpu_store_kind, and one row in the table of store.c.
 */
#ifndef COGPU_IO_STORE_STORE_H
#define COGPU_IO_STORE_STORE_H

#include "cogpu_distributed.h"
#include "io/http/client.h"
#include "io/http/url.h"

enum {
    COGPU_STORE_QUERY_BYTES = 3 * COGPU_S3_UPLOAD_BYTES + 64, /* an upload's id as %XX, and more */
    COGPU_STORE_RESPONSE_BYTES = 16 << 10,
    COGPU_STORE_IDENTITY_COUNT = 3
};

typedef struct cogpu_store_kind cogpu_store_kind;
typedef struct cogpu_store_uploads cogpu_store_uploads;
/* The public struct of a part that was sent: its number, and the store's token (ETag) for it. */
typedef cogpu_s3_part cogpu_store_part;

/* One file in a store. A kind's own struct begins with it. */
typedef struct cogpu_store {
    const cogpu_store_kind *kind;
    cogpu_http *http;
    bool owns_http;
    cogpu_http_target target; /* for range requests, see client.h */
    char shown[256];          /* the URL as it may be shown */
    /* Who requests: user or credentials, without line breaks. Secret. NULL at the end. */
    const char *identity[COGPU_STORE_IDENTITY_COUNT];
} cogpu_store;

struct cogpu_store_kind {
    const char *scheme;  /* of its URLs, in lower case */
    size_t struct_bytes; /* of its struct, which is zeroed before `locate` */
    /* Sets the target's url, authentication and find_error, and the identity. Sends no request. */
    cogpu_status (*locate)(cogpu_store *store, const char *address, const cogpu_url *url,
                           cogpu_error *error);
    const cogpu_store_uploads *uploads; /* NULL for a store that is only read */
};

/* A part on its way. The caller keeps it, and the bytes, until it was waited for or cancelled. */
typedef struct cogpu_store_sending {
    uint32_t number;
    cogpu_http_request request;
    cogpu_http_call call;
    char query[COGPU_STORE_QUERY_BYTES];
    char response[COGPU_STORE_RESPONSE_BYTES];
} cogpu_store_sending;

/* How a store is written. With an upload's id, parts may be sent, in any order and from any
 * machine. The object appears when the upload is completed. */
struct cogpu_store_uploads {
    uint32_t parts_max;
    size_t part_bytes_min; /* of all parts but the last */
    uint64_t object_bytes_max;
    /* Length of a part of an object that may get so long. */
    uint64_t (*part_bytes)(uint64_t object_bytes);
    /* The whole object in one request. */
    cogpu_status (*put)(cogpu_store *store, const void *from, size_t bytes, cogpu_error *error);
    cogpu_status (*begin)(cogpu_store *store, char upload[COGPU_S3_UPLOAD_BYTES],
                          cogpu_error *error);
    void (*start_part)(cogpu_store *store, const char *upload, uint32_t number, const void *from,
                       size_t bytes, cogpu_store_sending *sending);
    /* Fills *part, for `complete`. Polls `meter`, which may be NULL, and cancels the part if that
     * is cancelled. */
    cogpu_status (*wait_part)(cogpu_store *store, cogpu_store_sending *sending,
                              cogpu_store_part *part, cogpu_meter *meter, cogpu_error *error);
    void (*cancel_part)(cogpu_store *store, cogpu_store_sending *sending);
    /* Of parts in the order of their numbers, `bytes` in all. Aborts the upload if it fails. */
    cogpu_status (*complete)(cogpu_store *store, const char *upload, const cogpu_store_part *parts,
                             size_t count, uint64_t bytes, cogpu_error *error);
    /* Deletes its parts, if the store can be reached. No part may be on its way. */
    void (*abort)(cogpu_store *store, const char *upload);
};

/* Sends no request. `http` may be NULL: the store then opens a client of its own, with default
 * settings. UNSUPPORTED for schemes that the settings do not allow, or no store has. */
cogpu_status cogpu_store_open(const char *address, cogpu_http *http, cogpu_store **store,
                              cogpu_error *error);
/* The same for writing: UNSUPPORTED for stores without uploads. */
cogpu_status cogpu_store_open_for_upload(const char *address, cogpu_http *http, cogpu_store **store,
                                         cogpu_error *error);
/* Wipes its secrets. NULL is allowed. */
void cogpu_store_close(cogpu_store *store);

/* The kinds. */
extern const cogpu_store_kind cogpu_store_http, cogpu_store_https; /* store_http.c */
extern const cogpu_store_kind cogpu_store_s3;                      /* store_s3.c */

#endif
