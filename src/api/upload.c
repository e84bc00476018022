/*
 * Takes parts of an object of S3, hands them to the store, by the connections of a context: for
 * those who write one object from several machines, and each know no more of it than its address
 * and the id of its upload.
 */
#include "api/room.h"
#include "io/s3_object.h"

#include <string.h>

/* What outsiders say of an upload is checked before it is used. */
static cogpu_status check_upload(const char *upload, cogpu_error *error) {
    const size_t bytes = upload ? strnlen(upload, COGPU_S3_UPLOAD_BYTES) : 0;
    if (bytes == 0 || bytes == COGPU_S3_UPLOAD_BYTES)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "an upload's id has 1 to %d characters, as cogpu_upload_begin gives it",
                          COGPU_S3_UPLOAD_BYTES - 1);
    return COGPU_OK;
}

static cogpu_status open_object(const char *address, cogpu_context *context,
                                cogpu_s3_object **object, cogpu_error *error) {
    cogpu_http *http = NULL;
    if (!address)
        return cogpu_fail(error, COGPU_ARGUMENT, "an upload needs the object's s3:// address");
    TRY(cogpu_context_http(context, &http, error));
    return cogpu_s3_object_open(address, http, object, error);
}

cogpu_status cogpu_upload_plan(uint64_t bytes, uint64_t *part_bytes, uint32_t *parts,
                               cogpu_error *error) {
    if (!part_bytes || !parts)
        return cogpu_fail(error, COGPU_ARGUMENT, "cogpu_upload_plan needs a place for its answer");
    *part_bytes = cogpu_s3_part_bytes(bytes);
    *parts = cogpu_s3_part_count(bytes);
    return COGPU_OK;
}

cogpu_status cogpu_upload_begin(const char *address, cogpu_context *context,
                                char upload[COGPU_S3_UPLOAD_BYTES], cogpu_error *error) {
    cogpu_s3_object *object = NULL;
    TRY(open_object(address, context, &object, error));
    cogpu_status status = cogpu_s3_upload_begin(object, upload, error);
    cogpu_s3_object_close(object);
    return status;
}

cogpu_status cogpu_upload_send(const char *address, const char *upload, cogpu_context *context,
                               uint32_t number, const void *from, size_t bytes, cogpu_s3_part *part,
                               cogpu_error *error) {
    cogpu_s3_object *object = NULL;
    cogpu_s3_sending sending;
    TRY(check_upload(upload, error));
    if (number == 0 || number > COGPU_S3_PARTS_MAX)
        return cogpu_fail(error, COGPU_ARGUMENT, "parts have numbers from 1 to %d, not %u",
                          COGPU_S3_PARTS_MAX, number);
    if (!from || bytes == 0)
        return cogpu_fail(error, COGPU_ARGUMENT, "part %u of an upload has no bytes", number);
    TRY(open_object(address, context, &object, error));
    cogpu_s3_part_start(object, upload, number, from, bytes, &sending);
    cogpu_status status = cogpu_s3_part_wait(object, &sending, part, NULL, error);
    cogpu_s3_object_close(object);
    return status;
}

cogpu_status cogpu_upload_complete(const char *address, const char *upload, cogpu_context *context,
                                   const cogpu_s3_part *parts, size_t count, uint64_t bytes,
                                   cogpu_error *error) {
    cogpu_s3_object *object = NULL;
    TRY(check_upload(upload, error));
    TRY(open_object(address, context, &object, error));
    cogpu_status status = cogpu_s3_upload_complete(object, upload, parts, count, bytes, error);
    cogpu_s3_object_close(object);
    return status;
}

void cogpu_upload_abort(const char *address, const char *upload, cogpu_context *context) {
    cogpu_s3_object *object = NULL;
    if (check_upload(upload, NULL) != COGPU_OK ||
        open_object(address, context, &object, NULL) != COGPU_OK)
        return;
    cogpu_s3_upload_abort(object, upload);
    cogpu_s3_object_close(object);
}
