/*
 * What a response means for a request: the bytes that were requested, a redirect, a retry, or an
 * error that tells the user what to do. And how long to wait before a retry.
 */
#include "io/http/response.h"

#include <assert.h>
#include <string.h>

static cogpu_response_outcome fail_response(cogpu_error *error, const cogpu_range_request *request,
                                            cogpu_status status, const char *what) {
    cogpu_fail(error, status, "%s: %s", what, request->url);
    return COGPU_RESPONSE_BAD;
}

static cogpu_response_outcome fail_changed(cogpu_error *error, const cogpu_range_request *request) {
    return fail_response(error, request, COGPU_IO_ERROR,
                         "the file changed while it was read; open it again");
}

static cogpu_response_outcome fail_malformed(const cogpu_response *response,
                                             const cogpu_range_request *request,
                                             cogpu_error *error) {
    cogpu_fail(error, COGPU_IO_ERROR,
               "in the server's response %s is malformed, too long or contradictory: %s",
               response->malformed, request->url);
    return COGPU_RESPONSE_BAD;
}

/* Servers give a new file a weak tag, and later the same tag as a strong one: so tags are compared
 * without the weakness (RFC 9110, 8.8.3.2). A response without a version may be of any. */
static bool is_other_version(const cogpu_response *response, const cogpu_range_request *request) {
    bool knows_etag = request->etag && *request->etag;
    bool knows_modified = request->modified && *request->modified;
    if (knows_etag && *response->etag)
        return strcmp(request->etag, response->etag) != 0;
    if (knows_modified && *response->modified)
        return strcmp(request->modified, response->modified) != 0;
    return knows_etag || knows_modified;
}

static bool is_other_size(const cogpu_range_request *request, bool has_size, uint64_t size) {
    return request->has_size && has_size && request->size != size;
}

/* For parts and whole files: valid headers, no compression, the known version. */
static bool is_content(const cogpu_response *response, const cogpu_range_request *request,
                       bool has_size, uint64_t size, cogpu_error *error) {
    if (response->malformed)
        fail_malformed(response, request, error);
    else if (is_other_version(response, request) || is_other_size(request, has_size, size))
        fail_changed(error, request);
    else if (response->is_encoded)
        fail_response(
            error, request, COGPU_UNSUPPORTED,
            "the server sends the file compressed (Content-Encoding), so byte ranges of it are "
            "meaningless; configure it to send the file as it is");
    else
        return true;
    return false;
}

static cogpu_response_outcome check_part(const cogpu_response *response,
                                         const cogpu_range_request *request, cogpu_error *error) {
    const cogpu_content_range *range = &response->range;
    if (!is_content(response, request, range->has_total, range->total, error))
        return COGPU_RESPONSE_BAD;
    if (!range->has_bytes)
        return fail_response(
            error, request, COGPU_IO_ERROR,
            "the server sent a part of the file without saying which (no Content-Range)");
    uint64_t last = request->offset + request->bytes - 1;
    bool has_end = range->has_total || request->has_size;
    uint64_t end = range->has_total ? range->total : request->size;
    bool is_short = has_end && range->last < last && range->last + 1 == end;
    if (range->first != request->offset || (range->last != last && !is_short)) {
        cogpu_fail(
            error, COGPU_IO_ERROR,
            "requested bytes %llu to %llu, but the server sent %llu to %llu; the server or a "
            "cache in front of it is faulty: %s",
            (unsigned long long)request->offset, (unsigned long long)last,
            (unsigned long long)range->first, (unsigned long long)range->last, request->url);
        cogpu_error_locate(error, -1, -1, (int64_t)request->offset);
        return COGPU_RESPONSE_BAD;
    }
    if (response->has_length && response->length != range->last - range->first + 1)
        return fail_response(
            error, request, COGPU_IO_ERROR,
            "in the server's response Content-Length and Content-Range contradict each other");
    return COGPU_RESPONSE_GOOD;
}

static cogpu_response_outcome check_full_response(const cogpu_response *response,
                                                  const cogpu_range_request *request,
                                                  cogpu_error *error) {
    /* First, because a page is not the file, whatever its version. */
    if (response->is_page)
        return fail_response(
            error, request, COGPU_NOT_TIFF,
            "the server sent a page (HTML or XML), not a raster; check that the URL is the "
            "file's own, and whether it needs a login");
    if (!is_content(response, request, response->has_length, response->length, error))
        return COGPU_RESPONSE_BAD;
    if (response->range.has_bytes || response->range.has_total)
        return fail_response(error, request, COGPU_IO_ERROR,
                             "the server sends the whole file (200), but names a part of it "
                             "(Content-Range)");
    return COGPU_RESPONSE_WHOLE;
}

static cogpu_response_outcome check_redirect(const cogpu_response *response,
                                             const cogpu_range_request *request,
                                             cogpu_error *error) {
    if (response->malformed)
        return fail_malformed(response, request, error);
    if (*response->location)
        return COGPU_RESPONSE_REDIRECT;
    cogpu_fail(error, COGPU_IO_ERROR,
               "the server redirects (%u) without a Location; of an object store, check region and "
               "endpoint: %s",
               (unsigned)response->status, request->url);
    return COGPU_RESPONSE_BAD;
}

static cogpu_response_outcome check_unsatisfiable(const cogpu_response *response,
                                                  const cogpu_range_request *request,
                                                  cogpu_error *error) {
    const cogpu_content_range *range = &response->range;
    if (response->malformed)
        return fail_malformed(response, request, error);
    if (is_other_size(request, range->has_total, range->total))
        return fail_changed(error, request);
    if (range->has_total && range->total == 0)
        return fail_response(error, request, COGPU_NOT_TIFF, "not a TIFF: the file is empty");
    if (range->has_total && range->total <= request->offset)
        cogpu_fail(
            error, COGPU_CORRUPT,
            "%llu bytes at offset %llu are needed, but the file ends at %llu: it is truncated "
            "or an offset in it is wrong: %s",
            (unsigned long long)request->bytes, (unsigned long long)request->offset,
            (unsigned long long)range->total, request->url);
    else
        cogpu_fail(error, COGPU_IO_ERROR, "the server has no %llu bytes at offset %llu (416): %s",
                   (unsigned long long)request->bytes, (unsigned long long)request->offset,
                   request->url);
    cogpu_error_locate(error, -1, -1, (int64_t)request->offset);
    return COGPU_RESPONSE_BAD;
}

static cogpu_response_outcome check_error_status(const cogpu_response *response,
                                                 const cogpu_range_request *request,
                                                 cogpu_error *error) {
    static const struct {
        uint32_t status;
        cogpu_status means;
        const char *what;
    } errors[] = {
        {400, COGPU_IO_ERROR,
         "the server rejects the request; check the URL and, of an object store, region and "
         "endpoint"},
        {401, COGPU_IO_ERROR, "the server requires authentication; check the credentials"},
        {403, COGPU_IO_ERROR,
         "access denied; check the credentials, and whether a signed URL has expired"},
        {404, COGPU_NOT_FOUND, "there is no such file"},
        {407, COGPU_IO_ERROR, "the proxy requires authentication; check its credentials"},
        {410, COGPU_NOT_FOUND, "there is no such file any more"},
    };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (response->status == errors[i].status) {
            cogpu_fail(error, errors[i].means, "%s (%u): %s", errors[i].what,
                       (unsigned)response->status, request->url);
            return COGPU_RESPONSE_BAD;
        }
    cogpu_fail(error, COGPU_IO_ERROR,
               "the server responded with status %u, which is not valid for a read: %s",
               (unsigned)response->status, request->url);
    return COGPU_RESPONSE_BAD;
}

static cogpu_response_outcome check_status(const cogpu_response *response,
                                           const cogpu_range_request *request, cogpu_error *error) {
    switch (response->status) {
    case 200:
        return check_full_response(response, request, error);
    case 206:
        return check_part(response, request, error);
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
        return check_redirect(response, request, error);
    case 412:
        return fail_changed(error, request);
    case 416:
        return check_unsatisfiable(response, request, error);
    default:
        return check_error_status(response, request, error);
    }
}

static bool is_transient_status(uint32_t status) {
    static const uint32_t transient[] = {408, 425, 429, 500, 502, 503, 504};
    for (size_t i = 0; i < sizeof transient / sizeof *transient; i++)
        if (status == transient[i])
            return true;
    return false;
}

/* Errors of any request. GOOD if there is none. */
static cogpu_response_outcome check_server(const cogpu_response *response,
                                           const cogpu_range_request *request, cogpu_error *error) {
    if (response->header_bytes >= COGPU_HEADERS_BYTES_MAX)
        return fail_response(error, request, COGPU_IO_ERROR,
                             "the server sends more than 128 KiB of headers");
    if (!response->has_ended || (response->status >= 100 && response->status < 200)) {
        cogpu_fail(error, COGPU_IO_ERROR,
                   "the connection ended before the response was complete: %s", request->url);
        return COGPU_RESPONSE_RETRY;
    }
    if (is_transient_status(response->status)) {
        cogpu_fail(error, COGPU_IO_ERROR, "the server failed or is busy (%u); try again later: %s",
                   (unsigned)response->status, request->url);
        return COGPU_RESPONSE_RETRY;
    }
    return COGPU_RESPONSE_GOOD;
}

cogpu_response_outcome cogpu_response_check(const cogpu_response *response,
                                            const cogpu_range_request *request,
                                            cogpu_error *error) {
    assert(request->bytes > 0 && request->offset <= INT64_MAX &&
           request->bytes <= INT64_MAX - request->offset);
    cogpu_response_outcome outcome = check_server(response, request, error);
    return outcome == COGPU_RESPONSE_GOOD ? check_status(response, request, error) : outcome;
}

cogpu_response_outcome cogpu_response_check_call(const cogpu_response *response, const char *url,
                                                 cogpu_error *error) {
    const cogpu_range_request request = {.url = url};
    cogpu_response_outcome outcome = check_server(response, &request, error);
    if (outcome != COGPU_RESPONSE_GOOD)
        return outcome;
    if (response->status >= 300) {
        cogpu_fail(
            error, response->status == 404 ? COGPU_NOT_FOUND : COGPU_IO_ERROR,
            "the server refused the request (%u); check URL and credentials and, of an object "
            "store, region and endpoint: %s",
            (unsigned)response->status, url);
        return COGPU_RESPONSE_BAD;
    }
    return response->malformed ? fail_malformed(response, &request, error) : COGPU_RESPONSE_GOOD;
}

bool cogpu_response_bytes(const cogpu_response *response, uint64_t *bytes) {
    bool is_part = response->range.has_bytes;
    *bytes = is_part ? response->range.last - response->range.first + 1 : response->length;
    return is_part || response->has_length;
}

cogpu_response_outcome cogpu_response_complete(const cogpu_response *response,
                                               const cogpu_range_request *request,
                                               uint64_t received, cogpu_error *error) {
    uint64_t bytes;
    if (!cogpu_response_bytes(response, &bytes)) {
        if (!request->has_size)
            return COGPU_RESPONSE_GOOD;
        bytes = request->size;
    }
    if (received == bytes)
        return COGPU_RESPONSE_GOOD;
    cogpu_fail(error, COGPU_IO_ERROR,
               received < bytes
                   ? "the connection ended after %llu of %llu bytes: %s"
                   : "the server sent %llu bytes, more than the %llu that it announced: "
                     "%s",
               (unsigned long long)received, (unsigned long long)bytes, request->url);
    return received < bytes ? COGPU_RESPONSE_RETRY : COGPU_RESPONSE_BAD;
}

/* ---- delays of retries ---- */

uint32_t cogpu_response_retry_after(const cogpu_response *response, int64_t now) {
    int64_t wait = response->retry_seconds;
    if (response->retry_at > now && response->retry_at - now > wait)
        wait = response->retry_at - now;
    return wait < COGPU_RETRY_AFTER_MAX ? (uint32_t)wait : COGPU_RETRY_AFTER_MAX;
}

/* A random number in [0, 1), by splitmix64. */
static double next_random(uint64_t *random) {
    uint64_t mixed = *random += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return (double)((mixed ^ mixed >> 31) >> 11) * 0x1p-53;
}

double cogpu_retry_wait(uint32_t attempts, uint32_t retry_after, uint64_t *random) {
    const double first = 0.2, longest = 20;
    double step = first;
    while (attempts-- > 1 && step < longest)
        step *= 2;
    return retry_after + next_random(random) * (step < longest ? step : longest);
}
