/* What follows an attempt: success, a redirect, a retry after a delay, or an error. */
#include "io/http/client_internal.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { REDIRECTS_MAX = 5 };

/* False if retries or time are used up. */
static bool retry_later(cogpu_transfer *self) {
    const cogpu_network *network = &self->http->network;
    uint32_t retry_after =
        cogpu_response_retry_after(&self->request->response, (int64_t)time(NULL));
    double delay = cogpu_retry_wait(self->attempts, retry_after, &self->http->random);
    self->start_at = clock_now() + delay;
    return self->attempts <= (uint32_t)network->max_retries && self->start_at < self->deadline;
}

/* At another URL: not a retry. */
static void restart_at(cogpu_transfer *self, const char *url) {
    snprintf(self->url, sizeof self->url, "%s", url);
    self->start_at = 0;
    self->attempts--;
}

static bool follow_redirect(cogpu_transfer *self) {
    cogpu_http_request *request = self->request;
    cogpu_error reason;
    char next[COGPU_URL_BYTES];
    if (++self->redirects > REDIRECTS_MAX) {
        cogpu_fail(&request->error, COGPU_IO_ERROR, "%s: more than %d redirects", self->shown,
                   REDIRECTS_MAX);
        return false;
    }
    if (cogpu_url_resolve(self->url, request->response.location, next, sizeof next, &reason) !=
        COGPU_OK) {
        cogpu_fail(&request->error, reason.status, "%s: %s", self->shown, reason.message);
        return false;
    }
    self->is_from_public |= cogpu_transfer_has_public_peer(self);
    restart_at(self, next);
    return true;
}

/* A redirect of an earlier request may have expired: back to the target's own URL, once. */
static bool restart_without_redirect(cogpu_transfer *self) {
    if (!self->starts_at_redirect)
        return false;
    self->starts_at_redirect = self->is_from_public = false;
    self->redirects = 0;
    restart_at(self, self->request->target->url);
    return true;
}

static bool is_transient_curl_code(CURLcode code) {
    switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_GOT_NOTHING:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
        return true;
    default:
        return false;
    }
}

/* The body of a call says more than its status: a 200 may turn out to be an error. */
static void check_call_body(cogpu_transfer *self, bool is_complete) {
    cogpu_http_request *request = self->request;
    cogpu_http_find_error *find_error = request->target->find_error;
    cogpu_error found;
    bool is_transient_error = false;
    request->expected = request->received + !is_complete;
    if (!find_error || !find_error((const char *)request->to, request->received,
                                   request->response.status, &is_transient_error, &found))
        return;
    cogpu_fail(&request->error, found.status, "%s: %s", found.message, self->shown);
    if (self->outcome != COGPU_RESPONSE_RETRY)
        self->outcome = is_transient_error ? COGPU_RESPONSE_RETRY : COGPU_RESPONSE_BAD;
}

/* libcurl's own texts name neither the file nor the setting. */
static bool fail_by_certificates(cogpu_transfer *self, CURLcode code) {
    const cogpu_certificates *trusted = &self->http->certificates;
    cogpu_error *error = &self->request->error;
    if (code == CURLE_SSL_CACERT_BADFILE && trusted->origin)
        cogpu_fail(error, COGPU_IO_ERROR, "%s: cannot read the certificates in %.60s (%s)",
                   self->shown, trusted->file[0] ? trusted->file : trusted->folder,
                   trusted->origin);
    else if (code == CURLE_PEER_FAILED_VERIFICATION && !trusted->origin)
        cogpu_fail(
            error, COGPU_IO_ERROR,
            "%s: no trusted certificates found; install ca-certificates or set SSL_CERT_FILE",
            self->shown);
    else
        return false;
    return true;
}

/* libcurl reports our own refusal of more bytes as a failed write, and headers that are too long
 * for it as lack of memory. */
static void fail_by_code(cogpu_transfer *self, CURLcode code) {
    cogpu_error *error = &self->request->error;
    if (fail_by_certificates(self, code))
        return;
    bool is_in_headers = !self->request->response.has_ended;
    if (code == CURLE_OUT_OF_MEMORY && !is_in_headers) {
        cogpu_fail(error, COGPU_OUT_OF_MEMORY, "%s: out of memory for a response", self->shown);
        return;
    }
    const char *reason = curl_easy_strerror(code);
    if (code == CURLE_OUT_OF_MEMORY)
        reason = "the server's headers are too long";
    if (code == CURLE_WRITE_ERROR)
        reason = is_in_headers ? "the server's headers are too long"
                               : "the server's response is longer than it should be";
    cogpu_fail(error, COGPU_IO_ERROR, "%s: %s (attempt %u)", self->shown, reason, self->attempts);
}

/* The headers were checked, and are not those of a good response. */
static bool continues_after_outcome(cogpu_transfer *self) {
    if (self->outcome == COGPU_RESPONSE_REDIRECT)
        return follow_redirect(self);
    if (self->outcome == COGPU_RESPONSE_WHOLE)
        cogpu_fail(&self->request->error, COGPU_UNSUPPORTED,
                   "the server ignores range requests, and sends the whole file: %s", self->shown);
    return self->outcome == COGPU_RESPONSE_RETRY ? retry_later(self)
                                                 : restart_without_redirect(self);
}

bool cogpu_transfer_continues(cogpu_transfer *self, CURLcode code) {
    cogpu_http_request *request = self->request;
    if (request->response.has_ended || request->response.header_bytes == COGPU_HEADERS_BYTES_MAX)
        cogpu_transfer_check_headers(self);
    if (self->refusal != PEER_ALLOWED) {
        cogpu_transfer_fail_refused(self);
        return false;
    }
    if (request->call && self->is_checked)
        check_call_body(self, code == CURLE_OK);
    if (self->is_checked && self->outcome != COGPU_RESPONSE_GOOD)
        return continues_after_outcome(self);
    /* All bytes may have arrived before the connection broke. */
    if (request->call ? code == CURLE_OK
                      : self->is_checked && request->received == request->expected)
        return false;
    if (code == CURLE_OK) {
        cogpu_range_request range = cogpu_transfer_range(self);
        cogpu_response_outcome outcome = cogpu_response_complete(
            &request->response, &range, request->received - self->resumed_at, &request->error);
        return outcome == COGPU_RESPONSE_RETRY && retry_later(self);
    }
    fail_by_code(self, code);
    return is_transient_curl_code(code) && retry_later(self);
}
