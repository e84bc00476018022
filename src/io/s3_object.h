/*
 * An object of S3 that is written: at once, or in parts. Those who know an upload's id may send
 * parts of it, in any order and from any machine; one of them completes it.
 *
 * Nothing here holds bytes: they are the caller's until a part was waited for.
 */
#ifndef COGPU_IO_S3_OBJECT_H
#define COGPU_IO_S3_OBJECT_H

#include "io/http.h"

enum { COGPU_S3_ANSWER_BYTES = 16 << 10 };

typedef struct cogpu_s3_object cogpu_s3_object;

/* `http` may be NULL: the object has its own then, with defaults. UNSUPPORTED for URLs but s3://.
 * Nobody is asked yet. */
cogpu_status cogpu_s3_object_open(const char *address, cogpu_http *http, cogpu_s3_object **object,
                                  cogpu_error *error);
void cogpu_s3_object_close(cogpu_s3_object *object);

/* At once. */
cogpu_status cogpu_s3_object_put(cogpu_s3_object *object, const void *from, size_t bytes,
                                 cogpu_error *error);

cogpu_status cogpu_s3_upload_begin(cogpu_s3_object *object, char upload[COGPU_S3_UPLOAD_BYTES],
                                   cogpu_error *error);

/* A part on its way. The caller keeps it, and the bytes, until it was waited for or cancelled. */
typedef struct cogpu_s3_sending {
    uint32_t number;
    cogpu_http_request request;
    cogpu_s3_request call;
    char query[COGPU_S3_QUERY_BYTES];
    char answer[COGPU_S3_ANSWER_BYTES];
} cogpu_s3_sending;

void cogpu_s3_part_start(cogpu_s3_object *object, const char *upload, uint32_t number,
                         const void *from, size_t bytes, cogpu_s3_sending *sending);
/* Fills what it takes to complete the upload. `meter`, which may be NULL, is polled; if it is
 * cancelled, so is the part. */
cogpu_status cogpu_s3_part_wait(cogpu_s3_object *object, cogpu_s3_sending *sending,
                                cogpu_s3_part *part, cogpu_meter *meter, cogpu_error *error);
void cogpu_s3_part_cancel(cogpu_s3_object *object, cogpu_s3_sending *sending);

/* Of parts in the order of their numbers, `bytes` in all. Where it fails, the upload is aborted. */
cogpu_status cogpu_s3_upload_complete(cogpu_s3_object *object, const char *upload,
                                      const cogpu_s3_part *parts, size_t count, uint64_t bytes,
                                      cogpu_error *error);
/* Its parts are gone, once none is on its way any more; as far as the store can be reached. */
void cogpu_s3_upload_abort(cogpu_s3_object *object, const char *upload);

#endif
