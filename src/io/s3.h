/*
 * What S3, and the stores that speak as it does, want of a request: where an object is, who asks,
 * a signature; and what they say in XML.
 *
 * Text in, text out: no request is made here, so all of it is tested without a server. Requests are
 * signed here because libcurl does not do all of it: 7.88 sends no x-amz-content-sha256, which
 * Amazon wants, takes an upload for an empty one, and signs headers that it was told not to send;
 * others differ.
 */
#ifndef COGPU_IO_S3_H
#define COGPU_IO_S3_H

#include "base/memory.h"

#include <stdbool.h>
#include <time.h>

/* All with the NUL. */
enum {
    COGPU_S3_BUCKET_BYTES = 64,
    COGPU_S3_REGION_BYTES = 64,
    COGPU_S3_HOST_BYTES = 320,
    COGPU_S3_URL_BYTES = 4096,
    COGPU_S3_KEY_BYTES = 256,    /* of credentials, and the secret */
    COGPU_S3_TOKEN_BYTES = 8192, /* what a header may have at S3 */
    COGPU_S3_LINES_BYTES = COGPU_S3_TOKEN_BYTES + 1024,
    COGPU_S3_QUERY_BYTES = 3 * COGPU_S3_UPLOAD_BYTES + 64
};

/* AUTO: by the host's name at Amazon where the bucket's name allows, else by the path. */
typedef enum cogpu_s3_style {
    COGPU_S3_AUTO = 0,
    COGPU_S3_BY_PATH, /* https://host/bucket/key */
    COGPU_S3_BY_HOST  /* https://bucket.host/key, unless the host is an IP address or the bucket's
                         name has dots, which no certificate would fit */
} cogpu_s3_style;

/* What the caller says; zero is nothing, and the environment and the files of AWS are asked. */
typedef struct cogpu_s3_settings {
    const char *endpoint; /* another store: "https://storage.googleapis.com" */
    const char *region;
    const char *profile;
    const char *access_key, *secret_key, *session_token;
    bool is_anonymous;
    cogpu_s3_style style;
} cogpu_s3_settings;

/* ---- where ---- */

typedef struct cogpu_s3_place {
    char bucket[COGPU_S3_BUCKET_BYTES];
    char region[COGPU_S3_REGION_BYTES];
    char host[COGPU_S3_HOST_BYTES]; /* as the header has it: with a port unless it is the usual */
    char url[COGPU_S3_URL_BYTES]; /* encoded, without a query; dots and slashes as they are meant */
    size_t path;                  /* where it begins in the URL */
} cogpu_s3_place;

/* Of "s3://bucket/key", where the key is text as it is and nothing in it is encoded. ARGUMENT
 * where a name is not one, or a setting is not sound. */
cogpu_status cogpu_s3_locate(const char *address, const cogpu_s3_settings *settings,
                             cogpu_s3_place *place, cogpu_error *error);

/* "partNumber=N&uploadId=ID", encoded and sorted; without the number where it is 0. The query that
 * begins an upload is "uploads=". */
void cogpu_s3_query(uint32_t part, const char *upload, char query[COGPU_S3_QUERY_BYTES]);

/* ---- who ---- */

typedef struct cogpu_s3_credentials {
    bool is_anonymous;
    char access_key[COGPU_S3_KEY_BYTES];
    char secret_key[COGPU_S3_KEY_BYTES];
    char session_token[COGPU_S3_TOKEN_BYTES]; /* "" without */
} cogpu_s3_credentials;

/* The caller's; else the environment's, unless the caller names a profile; else the profile's in
 * the shared files. ARGUMENT where there are none, with what was looked for. */
cogpu_status cogpu_s3_credentials_find(const cogpu_s3_settings *settings,
                                       cogpu_s3_credentials *credentials, cogpu_error *error);
void cogpu_s3_credentials_wipe(cogpu_s3_credentials *credentials);

/* ---- signatures ---- */

typedef struct cogpu_s3_request {
    const char *method;
    const char *query; /* "" without; as cogpu_s3_query has it */
    const void *body;
    size_t bytes;
} cogpu_s3_request;

/* Headers to send with a request, "name: value"; none where it is anonymous. */
typedef struct cogpu_s3_headers {
    const char *lines[4];
    size_t count;
    char text[COGPU_S3_LINES_BYTES];
} cogpu_s3_headers;

/* Good for a quarter of an hour, for this place only: another URL has to be signed anew. Other
 * headers may be sent and are not signed, but for Content-Type and x-amz-..., which must not be. */
void cogpu_s3_sign(const cogpu_s3_place *place, const cogpu_s3_credentials *credentials,
                   const cogpu_s3_request *request, time_t now, cogpu_s3_headers *headers);
void cogpu_s3_headers_wipe(cogpu_s3_headers *headers);

/* ---- what a store says ---- */

/* An Error: "" for what it does not say. Bounded and fit to be shown. */
typedef struct cogpu_s3_fault {
    char code[64];
    char message[128];
    char region[COGPU_S3_REGION_BYTES]; /* that the bucket is in, where a request went wrong */
} cogpu_s3_fault;

/* Whether the body is an Error. */
bool cogpu_s3_fault_read(const char *xml, size_t bytes, cogpu_s3_fault *fault);
/* Takes the header x-amz-bucket-region, which also answers without a body have; NULL without. */
void cogpu_s3_fault_set_region(cogpu_s3_fault *fault, const char *header);
/* Whether the same request may well succeed a little later. */
bool cogpu_s3_fault_passes(const cogpu_s3_fault *fault);
/* The status and message of it, with a hint: ABSENT for what is not there, else IO. */
cogpu_status cogpu_s3_fault_fail(const cogpu_s3_fault *fault, long http_status, cogpu_error *error);

/* ---- uploads ---- */

#define COGPU_S3_OBJECT_BYTES_MAX ((uint64_t)5 << 40)

/* Of an object that may get as long as `bytes`: of one part at most, and how many parts that makes.
 */
uint64_t cogpu_s3_part_bytes(uint64_t bytes);
uint32_t cogpu_s3_part_count(uint64_t bytes);

cogpu_status cogpu_s3_upload_read(const char *xml, size_t bytes, char upload[COGPU_S3_UPLOAD_BYTES],
                                  cogpu_error *error);

/* The body that completes an upload, of parts in the order of their numbers; to be released. */
cogpu_status cogpu_s3_complete_write(const cogpu_s3_part *parts, size_t count, char **body,
                                     size_t *bytes, cogpu_error *error);

/* What an answer to that says, which is 200 before the store knows. UNKNOWN: it was cut off, or is
 * something else; the request may be made again. */
typedef enum cogpu_s3_outcome { COGPU_S3_DONE, COGPU_S3_FAILED, COGPU_S3_UNKNOWN } cogpu_s3_outcome;
cogpu_s3_outcome cogpu_s3_complete_read(const char *xml, size_t bytes, cogpu_s3_fault *fault);

#endif
