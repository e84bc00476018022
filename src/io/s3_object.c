/* See s3_object.h. */
#include "io/s3_object.h"

#include "io/url.h"

#include <string.h>

struct cogpu_s3_object {
    cogpu_http *http;
    bool owns_http;
    cogpu_http_target target;
    cogpu_s3_place place;
    cogpu_s3_credentials credentials;
    char shown[256];
    cogpu_s3_sending own; /* what is waited for at once */
};

/* ---- opening ---- */

static cogpu_status prepare(cogpu_s3_object *object, const char *address, cogpu_error *error) {
    TRY(cogpu_http_take(&object->http, &object->owns_http, error));
    const cogpu_network *network = cogpu_http_network(object->http);
    cogpu_url url;
    TRY(cogpu_url_parse(address, network->schemes, &url, error));
    object->target =
        (cogpu_http_target){.shown = cogpu_url_shown(&url, object->shown, sizeof object->shown),
                            .may_be_private = network->private_addresses};
    if (strcmp(url.scheme, "s3") != 0)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "files are written to paths and to s3:// addresses, not to %s:// ones: "
                          "%s",
                          url.scheme, object->shown);
    return cogpu_network_find_s3(network, address, &object->place, &object->credentials,
                                 &object->target, error);
}

cogpu_status cogpu_s3_object_open(const char *address, cogpu_http *http, cogpu_s3_object **out,
                                  cogpu_error *error) {
    cogpu_s3_object *object = cogpu_allocate(sizeof *object);
    if (!object)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for an object of S3");
    memset(object, 0, sizeof *object);
    object->http = http;
    cogpu_status status = prepare(object, address, error);
    if (status == COGPU_OK)
        *out = object;
    else
        cogpu_s3_object_close(object);
    return status;
}

void cogpu_s3_object_close(cogpu_s3_object *object) {
    if (!object)
        return;
    if (object->owns_http)
        cogpu_http_close(object->http);
    cogpu_s3_credentials_wipe(&object->credentials);
    cogpu_release(object);
}

/* ---- calls ---- */

static void start(cogpu_s3_object *object, const char *method, const void *body, size_t bytes,
                  cogpu_s3_sending *sending) {
    sending->call =
        (cogpu_s3_request){.method = method, .query = sending->query, .body = body, .bytes = bytes};
    sending->request = (cogpu_http_request){.target = &object->target,
                                            .bytes = sizeof sending->answer,
                                            .to = (uint8_t *)sending->answer,
                                            .call = &sending->call};
    cogpu_http_start(object->http, &sending->request, 1);
}

/* Those who read the object by the same connections meet it anew. */
static void tell_readers(const cogpu_s3_object *object) {
    cogpu_heads_drop_url(cogpu_http_heads(object->http), object->place.url);
}

/* With the query that `own` has. */
static cogpu_status ask(cogpu_s3_object *object, const char *method, const void *body, size_t bytes,
                        cogpu_error *error) {
    start(object, method, body, bytes, &object->own);
    return cogpu_http_wait(object->http, &object->own.request, error);
}

cogpu_status cogpu_s3_object_put(cogpu_s3_object *object, const void *from, size_t bytes,
                                 cogpu_error *error) {
    object->own.query[0] = '\0';
    TRY(ask(object, "PUT", from, bytes, error));
    tell_readers(object);
    return COGPU_OK;
}

cogpu_status cogpu_s3_upload_begin(cogpu_s3_object *object, char upload[COGPU_S3_UPLOAD_BYTES],
                                   cogpu_error *error) {
    memcpy(object->own.query, "uploads=", sizeof "uploads=");
    TRY(ask(object, "POST", NULL, 0, error));
    return cogpu_s3_upload_read(object->own.answer, object->own.request.got, upload, error);
}

/* ---- parts ---- */

void cogpu_s3_part_start(cogpu_s3_object *object, const char *upload, uint32_t number,
                         const void *from, size_t bytes, cogpu_s3_sending *sending) {
    sending->number = number;
    cogpu_s3_query(number, upload, sending->query);
    start(object, "PUT", from, bytes, sending);
}

cogpu_status cogpu_s3_part_wait(cogpu_s3_object *object, cogpu_s3_sending *sending,
                                cogpu_s3_part *part, cogpu_meter *meter, cogpu_error *error) {
    const char *etag = sending->request.answer.etag;
    cogpu_status status = cogpu_http_wait_metered(object->http, &sending->request, meter, error);
    if (status == COGPU_CANCELLED)
        cogpu_s3_part_cancel(object, sending);
    TRY(status);
    if (!*etag || strlen(etag) >= sizeof part->etag)
        return cogpu_fail(
            error, COGPU_IO,
            "the store gave part %u of an upload no sound ETag; is it one that speaks "
            "as S3 does: %s",
            sending->number, object->shown);
    part->number = sending->number;
    memcpy(part->etag, etag, strlen(etag) + 1);
    return COGPU_OK;
}

void cogpu_s3_part_cancel(cogpu_s3_object *object, cogpu_s3_sending *sending) {
    cogpu_http_cancel(object->http, &sending->request);
}

/* ---- the end ---- */

/* Whether there was no such upload any more. */
static bool abort_upload(cogpu_s3_object *object, const char *upload) {
    const cogpu_http_request *request = &object->own.request;
    cogpu_s3_query(0, upload, object->own.query);
    return ask(object, "DELETE", NULL, 0, NULL) != COGPU_OK && request->answer.status == 404 &&
           request->tries == 1;
}

void cogpu_s3_upload_abort(cogpu_s3_object *object, const char *upload) {
    abort_upload(object, upload);
}

static bool has_size(cogpu_s3_object *object, uint64_t bytes) {
    const cogpu_answer *answer = &object->own.request.answer;
    object->own.query[0] = '\0';
    return ask(object, "HEAD", NULL, 0, NULL) == COGPU_OK && answer->has_length &&
           answer->length == bytes;
}

/* The store may have done it, and the answer got lost: then the next try finds no upload any more.
 * So where an upload that was there is gone, and the object has its size, it is complete. */
static cogpu_status complete(cogpu_s3_object *object, const char *upload, const char *body,
                             size_t body_bytes, uint64_t bytes, cogpu_error *error) {
    const cogpu_http_request *request = &object->own.request;
    cogpu_s3_fault fault;
    cogpu_s3_query(0, upload, object->own.query);
    cogpu_status status = ask(object, "POST", body, body_bytes, error);
    if (status == COGPU_OK &&
        cogpu_s3_complete_read(object->own.answer, request->got, &fault) == COGPU_S3_DONE)
        return COGPU_OK;
    if (status == COGPU_OK)
        status = cogpu_fail(error, COGPU_IO,
                            "the store's answer to the end of an upload is none; is it one that "
                            "speaks as S3 does: %s",
                            object->shown);
    const bool was_there = request->tries > 1 || request->answer.status != 404;
    const bool is_gone = abort_upload(object, upload);
    return was_there && is_gone && has_size(object, bytes) ? COGPU_OK : status;
}

cogpu_status cogpu_s3_upload_complete(cogpu_s3_object *object, const char *upload,
                                      const cogpu_s3_part *parts, size_t count, uint64_t bytes,
                                      cogpu_error *error) {
    char *body = NULL;
    size_t body_bytes = 0;
    cogpu_status status = cogpu_s3_complete_write(parts, count, &body, &body_bytes, error);
    if (status == COGPU_OK)
        status = complete(object, upload, body, body_bytes, bytes, error);
    else
        abort_upload(object, upload);
    cogpu_release(body);
    if (status == COGPU_OK)
        tell_readers(object);
    return status;
}
