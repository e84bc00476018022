/*
 * Uploads in parts: several machines write one object of a store, and each knows no more than its
 * address and the id of the upload. Connections are the context's.
 */
#include "api/sized.h"
#include "context/context.h"
#include "io/store/s3.h"
#include "io/store/store.h"

#include <string.h>

static cogpu_status check_upload_id(const char *upload, cogpu_error *error) {
    const size_t bytes = upload ? strnlen(upload, COGPU_S3_UPLOAD_BYTES) : 0;
    if (bytes == 0 || bytes == COGPU_S3_UPLOAD_BYTES)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "an upload's id has 1 to %d characters, as cogpu_upload_begin returns it",
                          COGPU_S3_UPLOAD_BYTES - 1);
    return COGPU_OK;
}

static cogpu_status open_object(const char *address, cogpu_context *context, cogpu_store **object,
                                cogpu_error *error) {
    cogpu_http *http = NULL;
    if (!address)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "an upload needs the object's s3:// address");
    TRY(cogpu_context_http(context, &http, error));
    return cogpu_store_open_for_upload(address, http, object, error);
}

cogpu_status cogpu_upload_plan(uint64_t bytes, uint64_t *part_bytes, uint32_t *parts,
                               cogpu_error *error) {
    cogpu_error_clear(error);
    if (!part_bytes || !parts)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_upload_plan needs part_bytes and parts, which it sets");
    *part_bytes = cogpu_s3_part_bytes(bytes);
    *parts = cogpu_s3_part_count(bytes);
    return COGPU_OK;
}

cogpu_status cogpu_upload_begin(const char *address, cogpu_context *context,
                                char upload[COGPU_S3_UPLOAD_BYTES], cogpu_error *error) {
    cogpu_store *object = NULL;
    cogpu_error_clear(error);
    TRY(open_object(address, context, &object, error));
    cogpu_status status = object->kind->uploads->begin(object, upload, error);
    cogpu_store_close(object);
    return status;
}

cogpu_status cogpu_upload_send(const char *address, const char *upload, cogpu_context *context,
                               uint32_t number, const void *from, size_t bytes, cogpu_s3_part *part,
                               cogpu_error *error) {
    cogpu_store *object = NULL;
    cogpu_store_sending sending;
    cogpu_s3_part sent = COGPU_S3_PART_INIT;
    cogpu_error_clear(error);
    TRY(check_upload_id(upload, error));
    TRY(CHECK_STRUCT(part, cogpu_s3_part, error));
    if (number == 0 || number > COGPU_S3_PARTS_MAX)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the number of a part must be between 1 and %d, got %u",
                          COGPU_S3_PARTS_MAX, number);
    if (!from || bytes == 0 || !part)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "part %u of an upload needs bytes and a pointer for the result", number);
    TRY(open_object(address, context, &object, error));
    object->kind->uploads->start_part(object, upload, number, from, bytes, &sending);
    cogpu_status status = object->kind->uploads->wait_part(object, &sending, &sent, NULL, error);
    if (status == COGPU_OK)
        GIVE_STRUCT(part, &sent);
    cogpu_store_close(object);
    return status;
}

static cogpu_status complete_upload(cogpu_store *object, const char *upload,
                                    const cogpu_s3_part *parts, size_t count, uint64_t bytes,
                                    cogpu_error *error) {
    cogpu_arena arena;
    cogpu_arena_open(&arena, UINT64_MAX);
    cogpu_status status = TAKE_STRUCTS(&arena, parts, count, cogpu_s3_part, error);
    if (status == COGPU_OK)
        status = object->kind->uploads->complete(object, upload, parts, count, bytes, error);
    else
        object->kind->uploads->abort(object, upload);
    cogpu_arena_close(&arena);
    return status;
}

cogpu_status cogpu_upload_complete(const char *address, const char *upload, cogpu_context *context,
                                   const cogpu_s3_part *parts, size_t count, uint64_t bytes,
                                   cogpu_error *error) {
    cogpu_store *object = NULL;
    cogpu_error_clear(error);
    TRY(check_upload_id(upload, error));
    TRY(open_object(address, context, &object, error));
    cogpu_status status = complete_upload(object, upload, parts, count, bytes, error);
    cogpu_store_close(object);
    return status;
}

void cogpu_upload_abort(const char *address, const char *upload, cogpu_context *context) {
    cogpu_store *object = NULL;
    if (check_upload_id(upload, NULL) != COGPU_OK ||
        open_object(address, context, &object, NULL) != COGPU_OK)
        return;
    object->kind->uploads->abort(object, upload);
    cogpu_store_close(object);
}
