/*
 * Objects of S3, and of stores with its interface: s3://bucket/key. Requests are signed by SigV4;
 * objects are written at once or by a multipart upload.
 *
 * Nothing here holds bytes: they are the caller's until a part was waited for.
 */
#include "io/store/s3.h"
#include "io/store/store.h"

#include <string.h>

struct s3_store {
    cogpu_store store;
    cogpu_s3_location location;
    cogpu_s3_credentials credentials;
};

/* ---- opening ---- */

static bool sign_s3(const void *signer, const cogpu_http_call *call, cogpu_http_headers *headers) {
    const struct s3_store *self = signer;
    cogpu_s3_headers lines;
    bool is_added = true;
    cogpu_s3_sign(&self->location, &self->credentials, call, time(NULL), &lines);
    for (size_t i = 0; i < lines.count; i++)
        is_added = is_added && cogpu_http_add_header(headers, lines.lines[i]);
    cogpu_s3_headers_wipe(&lines);
    return is_added;
}

static bool find_s3_error(const char *body, size_t bytes, uint32_t http_status, bool *is_transient,
                          cogpu_error *error) {
    cogpu_s3_error document;
    if (!cogpu_s3_error_read(body, bytes, &document))
        return false;
    cogpu_s3_error_report(&document, (long)http_status, error);
    *is_transient = cogpu_s3_error_is_transient(&document);
    return true;
}

/* An endpoint that the caller has set is trusted, wherever it is. */
static cogpu_status locate_s3(cogpu_store *store, const char *address, const cogpu_url *url,
                              cogpu_error *error) {
    struct s3_store *self = (struct s3_store *)store;
    const cogpu_network *network = cogpu_http_network(store->http);
    const cogpu_s3_settings settings = {.endpoint = network->s3_endpoint,
                                        .region = network->s3_region,
                                        .profile = network->s3_profile,
                                        .access_key = network->s3_access_key,
                                        .secret_key = network->s3_secret_key,
                                        .session_token = network->s3_session_token,
                                        .is_anonymous = network->s3_anonymous};
    (void)url; /* a key is not encoded: the address is read as it is */
    TRY(cogpu_s3_locate(address, &settings, &self->location, error));
    TRY(cogpu_s3_credentials_find(&settings, &self->credentials, error));
    store->target.url = self->location.url;
    store->target.sign = sign_s3;
    store->target.signer = self;
    store->target.find_error = find_s3_error;
    store->target.may_be_private |= network->s3_endpoint != NULL;
    store->identity[0] = self->credentials.access_key;
    store->identity[1] = self->credentials.secret_key;
    store->identity[2] = self->credentials.session_token;
    return COGPU_OK;
}

/* ---- calls ---- */

static void start_call(cogpu_store *store, const char *method, const void *body, size_t bytes,
                       cogpu_store_sending *sending) {
    sending->call =
        (cogpu_http_call){.method = method, .query = sending->query, .body = body, .bytes = bytes};
    sending->request = (cogpu_http_request){.target = &store->target,
                                            .bytes = sizeof sending->response,
                                            .to = (uint8_t *)sending->response,
                                            .call = &sending->call};
    cogpu_http_start(store->http, &sending->request, 1);
}

/* With the query that `sending` has. */
static cogpu_status do_call(cogpu_store *store, const char *method, const void *body, size_t bytes,
                            cogpu_store_sending *sending, cogpu_error *error) {
    start_call(store, method, body, bytes, sending);
    return cogpu_http_wait(store->http, &sending->request, error);
}

/* Readers with the same client get the new object's header. */
static void drop_cached_header(const cogpu_store *store) {
    cogpu_header_cache_drop_url(cogpu_http_header_cache(store->http), store->target.url);
}

static cogpu_status put_s3_object(cogpu_store *store, const void *from, size_t bytes,
                                  cogpu_error *error) {
    cogpu_store_sending sending;
    sending.query[0] = '\0';
    TRY(do_call(store, "PUT", from, bytes, &sending, error));
    drop_cached_header(store);
    return COGPU_OK;
}

static cogpu_status begin_s3_upload(cogpu_store *store, char upload[COGPU_S3_UPLOAD_BYTES],
                                    cogpu_error *error) {
    cogpu_store_sending sending;
    memcpy(sending.query, "uploads=", sizeof "uploads=");
    TRY(do_call(store, "POST", NULL, 0, &sending, error));
    return cogpu_s3_upload_read(sending.response, sending.request.received, upload, error);
}

/* ---- parts ---- */

static void start_part(cogpu_store *store, const char *upload, uint32_t number, const void *from,
                       size_t bytes, cogpu_store_sending *sending) {
    sending->number = number;
    cogpu_s3_query(number, upload, sending->query);
    start_call(store, "PUT", from, bytes, sending);
}

static void cancel_part(cogpu_store *store, cogpu_store_sending *sending) {
    cogpu_http_cancel(store->http, &sending->request);
}

static cogpu_status wait_part(cogpu_store *store, cogpu_store_sending *sending,
                              cogpu_store_part *part, cogpu_meter *meter, cogpu_error *error) {
    const char *etag = sending->request.response.etag;
    cogpu_status status = cogpu_http_wait_metered(store->http, &sending->request, meter, error);
    if (status == COGPU_CANCELLED)
        cancel_part(store, sending);
    TRY(status);
    if (!*etag || strlen(etag) >= sizeof part->etag)
        return cogpu_fail(error, COGPU_IO_ERROR,
                          "the store returned no valid ETag for part %u of an upload; is it "
                          "compatible with S3: %s",
                          sending->number, store->shown);
    part->number = sending->number;
    memcpy(part->etag, etag, strlen(etag) + 1);
    return COGPU_OK;
}

/* ---- the end ---- */

/* Whether the upload did not exist any more. */
static bool delete_upload(cogpu_store *store, const char *upload) {
    cogpu_store_sending sending;
    const cogpu_http_request *request = &sending.request;
    cogpu_s3_query(0, upload, sending.query);
    return do_call(store, "DELETE", NULL, 0, &sending, NULL) != COGPU_OK &&
           request->response.status == 404 && request->attempts == 1;
}

static void abort_upload(cogpu_store *store, const char *upload) {
    delete_upload(store, upload);
}

static bool object_has_size(cogpu_store *store, uint64_t bytes) {
    cogpu_store_sending sending;
    const cogpu_response *response = &sending.request.response;
    sending.query[0] = '\0';
    return do_call(store, "HEAD", NULL, 0, &sending, NULL) == COGPU_OK && response->has_length &&
           response->length == bytes;
}

static cogpu_status send_complete(cogpu_store *store, const char *upload, const char *body,
                                  size_t body_bytes, bool *existed, cogpu_error *error) {
    cogpu_store_sending sending;
    const cogpu_http_request *request = &sending.request;
    cogpu_s3_error document;
    cogpu_s3_query(0, upload, sending.query);
    cogpu_status status = do_call(store, "POST", body, body_bytes, &sending, error);
    *existed = request->attempts > 1 || request->response.status != 404;
    if (status != COGPU_OK ||
        cogpu_s3_complete_read(sending.response, request->received, &document) == COGPU_S3_DONE)
        return status;
    return cogpu_fail(error, COGPU_IO_ERROR,
                      "the store's response to completing an upload is not one of S3; is it "
                      "compatible with S3: %s",
                      store->shown);
}

/* The store may have completed the upload, and its response got lost: the next attempt then finds
 * no upload. So if an upload that existed is gone, and the object has its size, it is complete. */
static cogpu_status complete_parts(cogpu_store *store, const char *upload, const char *body,
                                   size_t body_bytes, uint64_t bytes, cogpu_error *error) {
    bool existed;
    cogpu_status status = send_complete(store, upload, body, body_bytes, &existed, error);
    if (status == COGPU_OK)
        return COGPU_OK;
    const bool is_gone = delete_upload(store, upload);
    return existed && is_gone && object_has_size(store, bytes) ? COGPU_OK : status;
}

static cogpu_status complete_s3_upload(cogpu_store *store, const char *upload,
                                       const cogpu_store_part *parts, size_t count, uint64_t bytes,
                                       cogpu_error *error) {
    char *body = NULL;
    size_t body_bytes = 0;
    cogpu_status status = cogpu_s3_complete_write(parts, count, &body, &body_bytes, error);
    if (status == COGPU_OK)
        status = complete_parts(store, upload, body, body_bytes, bytes, error);
    else
        abort_upload(store, upload);
    cogpu_release(body);
    if (status == COGPU_OK)
        drop_cached_header(store);
    return status;
}

static const cogpu_store_uploads s3_uploads = {.parts_max = COGPU_S3_PARTS_MAX,
                                               .part_bytes_min = COGPU_S3_PART_BYTES_MIN,
                                               .object_bytes_max = COGPU_S3_OBJECT_BYTES_MAX,
                                               .part_bytes = cogpu_s3_part_bytes,
                                               .put = put_s3_object,
                                               .begin = begin_s3_upload,
                                               .start_part = start_part,
                                               .wait_part = wait_part,
                                               .cancel_part = cancel_part,
                                               .complete = complete_s3_upload,
                                               .abort = abort_upload};

const cogpu_store_kind cogpu_store_s3 = {.scheme = "s3",
                                         .struct_bytes = sizeof(struct s3_store),
                                         .locate = locate_s3,
                                         .uploads = &s3_uploads};
