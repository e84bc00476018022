/*
 * The protocol of S3 and compatible stores: location of an object, credentials, signatures, and
 * the XML of their responses. store_s3.c sends the requests.
 *
 * Text in, text out: no request is sent here, so all of it is tested without a server. libcurl's
 * own signatures are not used: 7.88 sends no x-amz-content-sha256, which Amazon requires, signs an
 * upload as an empty body, and signs headers that it must not send; other versions differ.
 */
#ifndef COGPU_IO_STORE_S3_H
#define COGPU_IO_STORE_S3_H

#include "base/memory.h"
#include "cogpu_distributed.h"
#include "io/http/call.h"

#include <stdbool.h>
#include <time.h>

/* All with the NUL. */
enum {
    COGPU_S3_BUCKET_BYTES = 64,
    COGPU_S3_REGION_BYTES = 64,
    COGPU_S3_HOST_BYTES = 320,
    COGPU_S3_URL_BYTES = 4096,
    COGPU_S3_KEY_BYTES = 256,    /* access key, secret key */
    COGPU_S3_TOKEN_BYTES = 8192, /* longest header of S3 */
    COGPU_S3_LINES_BYTES = COGPU_S3_TOKEN_BYTES + 1024,
    COGPU_S3_QUERY_BYTES = 3 * COGPU_S3_UPLOAD_BYTES + 64
};

/* AUTO: virtual-hosted at Amazon if the bucket's name allows it, else path-style. */
typedef enum cogpu_s3_style {
    COGPU_S3_AUTO = 0,
    COGPU_S3_BY_PATH, /* path-style: https://host/bucket/key */
    COGPU_S3_BY_HOST /* virtual-hosted: https://bucket.host/key, unless the host is an IP address or
                      * the bucket's name has dots, which no certificate matches */
} cogpu_s3_style;

/* Settings of the caller; zero: those of the environment and of the AWS config files. */
typedef struct cogpu_s3_settings {
    const char *endpoint; /* another store: "https://storage.googleapis.com" */
    const char *region;
    const char *profile;
    const char *access_key, *secret_key, *session_token;
    bool is_anonymous;
    cogpu_s3_style style;
} cogpu_s3_settings;

/* ---- location ---- */

typedef struct cogpu_s3_location {
    char bucket[COGPU_S3_BUCKET_BYTES];
    char region[COGPU_S3_REGION_BYTES];
    char host[COGPU_S3_HOST_BYTES]; /* as in the header: with a port unless it is the default */
    char url[COGPU_S3_URL_BYTES];   /* encoded, without a query */
    size_t path;                    /* offset of the path in the URL */
} cogpu_s3_location;

/* Of "s3://bucket/key"; the key is literal, nothing in it is encoded. ARGUMENT if a name or a
 * setting is not valid. */
cogpu_status cogpu_s3_locate(const char *address, const cogpu_s3_settings *settings,
                             cogpu_s3_location *location, cogpu_error *error);

/* "partNumber=N&uploadId=ID", encoded and sorted; without the number if it is 0. The query that
 * begins an upload is "uploads=". */
void cogpu_s3_query(uint32_t part, const char *upload, char query[COGPU_S3_QUERY_BYTES]);

/* ---- credentials ---- */

typedef struct cogpu_s3_credentials {
    bool is_anonymous;
    char access_key[COGPU_S3_KEY_BYTES];
    char secret_key[COGPU_S3_KEY_BYTES];
    char session_token[COGPU_S3_TOKEN_BYTES]; /* "" without */
} cogpu_s3_credentials;

/* The caller's; else the environment's, unless the caller names a profile; else the profile's in
 * the AWS config files. ARGUMENT if there are none; the message lists what was tried. */
cogpu_status cogpu_s3_credentials_find(const cogpu_s3_settings *settings,
                                       cogpu_s3_credentials *credentials, cogpu_error *error);
void cogpu_s3_credentials_wipe(cogpu_s3_credentials *credentials);

/* ---- signatures ---- */

/* Headers to send with a request, "name: value"; none if it is anonymous. */
typedef struct cogpu_s3_headers {
    const char *lines[4];
    size_t count;
    char text[COGPU_S3_LINES_BYTES];
} cogpu_s3_headers;

/* Valid for 15 minutes and for this location only. Other headers may be sent without a signature,
 * except Content-Type and x-amz-..., which must not be sent. */
void cogpu_s3_sign(const cogpu_s3_location *location, const cogpu_s3_credentials *credentials,
                   const cogpu_http_call *request, time_t now, cogpu_s3_headers *headers);
void cogpu_s3_headers_wipe(cogpu_s3_headers *headers);

/* ---- errors ---- */

/* An Error document: "" for what it lacks. Bounded, and may be shown. */
typedef struct cogpu_s3_error {
    char code[64];
    char message[128];
    char region[COGPU_S3_REGION_BYTES]; /* of the bucket, if the request went to another */
} cogpu_s3_error;

/* False if the body is not an Error document. */
bool cogpu_s3_error_read(const char *xml, size_t bytes, cogpu_s3_error *document);
/* Whether the same request may succeed later. */
bool cogpu_s3_error_is_transient(const cogpu_s3_error *document);
/* Fills *error with a message and what to do: ABSENT for objects that do not exist, else IO. */
cogpu_status cogpu_s3_error_report(const cogpu_s3_error *document, long http_status,
                                   cogpu_error *error);

/* ---- uploads ---- */

#define COGPU_S3_OBJECT_BYTES_MAX ((uint64_t)5 << 40)

/* Length of a part of an object that may get as long as `bytes`, and the number of parts. */
uint64_t cogpu_s3_part_bytes(uint64_t bytes);
uint32_t cogpu_s3_part_count(uint64_t bytes);

cogpu_status cogpu_s3_upload_read(const char *xml, size_t bytes, char upload[COGPU_S3_UPLOAD_BYTES],
                                  cogpu_error *error);

/* The body of CompleteMultipartUpload, of parts in the order of their numbers. The caller releases
 * it. */
cogpu_status cogpu_s3_complete_write(const cogpu_s3_part *parts, size_t count, char **body,
                                     size_t *bytes, cogpu_error *error);

/* Its response has status 200 before the result is known. UNKNOWN: it is truncated, or something
 * else; the request may be repeated. */
typedef enum cogpu_s3_outcome { COGPU_S3_DONE, COGPU_S3_FAILED, COGPU_S3_UNKNOWN } cogpu_s3_outcome;
cogpu_s3_outcome cogpu_s3_complete_read(const char *xml, size_t bytes, cogpu_s3_error *document);

#endif
