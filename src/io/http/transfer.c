/* One attempt of a request: the options of its libcurl handle, its headers, and the callbacks that
 * receive the response. */
#include "io/http/client_internal.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    HEADER_LINE_BYTES = 1200,
    PAGE_BYTES_MAX = 64 << 10 /* of a body that is not the file's */
};

/* ---- the response ---- */

cogpu_range_request cogpu_transfer_range(const cogpu_transfer *self) {
    const cogpu_http_request *request = self->request;
    const cogpu_http_target *target = request->target;
    return (cogpu_range_request){.offset = request->offset + self->resumed_at,
                                 .bytes = request->bytes - self->resumed_at,
                                 .has_size = target->has_size,
                                 .size = target->size,
                                 .etag = target->etag,
                                 .modified = target->modified,
                                 .url = self->shown};
}

/* Sets how many bytes to expect. A whole file in place of its first range is accepted if it fits.
 */
static void check_range_headers(cogpu_transfer *self) {
    cogpu_http_request *request = self->request;
    cogpu_range_request range = cogpu_transfer_range(self);
    uint64_t bytes = 0;
    self->outcome = cogpu_response_check(&request->response, &range, &request->error);
    bool is_known = cogpu_response_bytes(&request->response, &bytes);
    if (self->outcome == COGPU_RESPONSE_WHOLE && request->accepts_whole_file && is_known &&
        bytes <= request->bytes)
        self->outcome = COGPU_RESPONSE_GOOD;
    request->ignores_ranges = self->outcome == COGPU_RESPONSE_WHOLE;
    if (self->outcome == COGPU_RESPONSE_GOOD && is_known &&
        bytes <= request->bytes - self->resumed_at)
        request->expected = self->resumed_at + (size_t)bytes;
}

void cogpu_transfer_check_headers(cogpu_transfer *self) {
    cogpu_http_request *request = self->request;
    if (self->is_checked)
        return;
    self->is_checked = true;
    cogpu_transfer_check_peer(self);
    if (request->call)
        self->outcome = cogpu_response_check_call(&request->response, self->shown, &request->error);
    else
        check_range_headers(self);
}

/* Checked at the empty line: trailers after the body could pose as another response. */
static size_t receive_header(char *line, size_t size, size_t count, void *argument) {
    cogpu_transfer *self = argument;
    const cogpu_response *response = &self->request->response;
    if (self->is_checked)
        return size * count;
    if (!cogpu_response_line(&self->request->response, line, size * count))
        return 0;
    if (response->has_ended && response->status >= 200)
        cogpu_transfer_check_headers(self);
    return size * count;
}

/* Of a response to a call: as far as it fits. */
static void keep_call_body(cogpu_http_request *request, const char *data, size_t bytes) {
    size_t left = request->bytes - request->received;
    size_t kept = bytes < left ? bytes : left;
    memcpy(request->to + request->received, data, kept);
    request->received += kept;
}

/* Returning fewer bytes than given ends the transfer. */
static size_t receive_body(char *data, size_t size, size_t count, void *argument) {
    cogpu_transfer *self = argument;
    cogpu_http_request *request = self->request;
    size_t bytes = size * count;
    cogpu_transfer_check_headers(self);
    if (self->refusal != PEER_ALLOWED)
        return 0;
    if (request->call)
        keep_call_body(request, data, bytes);
    if (request->call || self->outcome != COGPU_RESPONSE_GOOD) {
        self->page_bytes += bytes;
        return self->page_bytes > PAGE_BYTES_MAX ? 0 : bytes;
    }
    if (bytes > request->expected - request->received) {
        self->outcome = COGPU_RESPONSE_BAD;
        cogpu_fail(&request->error, COGPU_IO_ERROR, "%s: the server sent more bytes than requested",
                   self->shown);
        return 0;
    }
    memcpy(request->to + request->received, data, bytes);
    request->received += bytes;
    return bytes;
}

/* ---- headers of the request ---- */

bool cogpu_http_add_header(cogpu_http_headers *headers, const char *line) {
    struct curl_slist *longer = curl_slist_append(headers->list, line);
    if (longer)
        headers->list = longer;
    return longer;
}

static bool add_header_value(cogpu_transfer *self, const char *name, const char *value) {
    char line[HEADER_LINE_BYTES];
    int length = snprintf(line, sizeof line, "%s: %s", name, value);
    return length > 0 && (size_t)length < sizeof line &&
           cogpu_http_add_header(&self->headers, line);
}

/* Credentials go to the host that they are for, and to no host that it redirects to. */
static bool add_credentials(cogpu_transfer *self) {
    static const cogpu_http_call read = {.method = "GET", .query = ""};
    const cogpu_http_target *target = self->request->target;
    if (!cogpu_url_same_host(self->url, target->url))
        return true;
    if (target->sign)
        return target->sign(target->signer, self->request->call ? self->request->call : &read,
                            &self->headers);
    return !target->user || !target->user[0] ||
           curl_easy_setopt(self->easy, CURLOPT_USERPWD, target->user) == CURLE_OK;
}

static bool add_range_headers(cogpu_transfer *self) {
    const cogpu_http_request *request = self->request;
    char range[64];
    uint64_t first = request->offset + request->received,
             last = request->offset + request->bytes - 1;
    snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)first,
             (unsigned long long)last);
    return add_header_value(self, "Range", range) &&
           add_header_value(self, "Accept-Encoding", "identity") &&
           (!request->target->etag_is_strong ||
            add_header_value(self, "If-Match", request->target->etag)) &&
           add_credentials(self);
}

/* ---- options of libcurl ---- */

static bool set_option_number(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value) == CURLE_OK;
}

/* A POST may take minutes, since the server assembles parts: no low-speed limit. libcurl repeats a
 * request by itself if a reused connection turns out to be dead. All methods but PUT change what
 * the next attempt finds, so their attempts must be counted: they get a fresh connection. */
static bool set_call_options(cogpu_transfer *self) {
    const cogpu_http_call *call = self->request->call;
    CURL *easy = self->easy;
    const bool is_put = strcmp(call->method, "PUT") == 0,
               is_post = strcmp(call->method, "POST") == 0;
    bool is_set = curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method) == CURLE_OK;
    if (strcmp(call->method, "HEAD") == 0)
        is_set = is_set && set_option_number(easy, CURLOPT_NOBODY, 1);
    if (is_put || is_post)
        is_set =
            is_set &&
            curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->bytes) ==
                CURLE_OK &&
            curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->bytes ? call->body : "") == CURLE_OK;
    if (!is_put)
        is_set = is_set && set_option_number(easy, CURLOPT_FRESH_CONNECT, 1);
    if (is_post)
        is_set = is_set && set_option_number(easy, CURLOPT_LOW_SPEED_TIME, 0);
    /* libcurl would send a Content-Type, which is not signed. */
    return is_set && cogpu_http_add_header(&self->headers, "Content-Type:") &&
           add_credentials(self);
}

static bool set_callbacks(cogpu_transfer *self) {
    CURL *easy = self->easy;
    return curl_easy_setopt(easy, CURLOPT_PRIVATE, self) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive_body) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, self) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, receive_header) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERDATA, self) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, cogpu_transfer_open_socket) ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, self) == CURLE_OK;
}

static bool set_timeouts(cogpu_transfer *self) {
    const cogpu_network *network = &self->http->network;
    const double left = self->deadline - clock_now();
    CURL *easy = self->easy;
    return set_option_number(easy, CURLOPT_CONNECTTIMEOUT_MS,
                             (long)(network->connect_timeout_seconds * 1000)) &&
           set_option_number(easy, CURLOPT_LOW_SPEED_LIMIT,
                             (long)network->low_speed_bytes_per_second) &&
           set_option_number(easy, CURLOPT_LOW_SPEED_TIME,
                             (long)ceil(network->low_speed_seconds)) &&
           set_option_number(easy, CURLOPT_TIMEOUT_MS, (long)(left * 1000) + 1);
}

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)
static const char user_agent[] = "cogpu/" TEXT(COGPU_VERSION_MAJOR) "." TEXT(COGPU_VERSION_MINOR);

static bool set_certificates(CURL *easy, const cogpu_certificates *trusted) {
    return (!trusted->file[0] ||
            curl_easy_setopt(easy, CURLOPT_CAINFO, trusted->file) == CURLE_OK) &&
           (!trusted->folder[0] ||
            curl_easy_setopt(easy, CURLOPT_CAPATH, trusted->folder) == CURLE_OK);
}

static bool set_options(cogpu_transfer *self) {
    CURL *easy = self->easy;
    curl_easy_reset(easy);
    /* Optional: a libcurl may lack them. */
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    return curl_easy_setopt(easy, CURLOPT_URL, self->url) == CURLE_OK &&
           set_option_number(easy, CURLOPT_PATH_AS_IS, 1) &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
           set_option_number(easy, CURLOPT_NOSIGNAL, 1) &&
           curl_easy_setopt(easy, CURLOPT_USERAGENT, user_agent) == CURLE_OK &&
           set_certificates(easy, &self->http->certificates) && set_callbacks(self) &&
           set_timeouts(self) &&
           (self->request->call ? set_call_options(self) : add_range_headers(self)) &&
           curl_easy_setopt(easy, CURLOPT_HTTPHEADER, self->headers.list) == CURLE_OK;
}

/* ---- attempts ---- */

/* The target's URL, and after redirects also where they led to. */
static void write_shown(cogpu_transfer *self) {
    const char *first = self->request->target->shown;
    const bool is_redirected = !cogpu_url_same_without_query(self->url, self->request->target->url);
    const size_t most = is_redirected ? COGPU_SHOWN_BYTES / 2 - 8 : COGPU_SHOWN_BYTES - 4;
    char second[COGPU_SHOWN_BYTES / 2 - 8];
    cogpu_url url;
    bool is_valid = is_redirected && cogpu_url_parse(self->url, NULL, &url, NULL) == COGPU_OK;
    snprintf(self->shown, sizeof self->shown, "%.*s%s%s%s", (int)most, first,
             strlen(first) > most ? "..." : "", is_valid ? ", redirected to " : "",
             is_valid ? cogpu_url_shown(&url, second, sizeof second) : "");
}

static void reset_attempt(cogpu_transfer *self) {
    cogpu_http_request *request = self->request;
    curl_slist_free_all(self->headers.list);
    self->headers.list = NULL;
    self->is_checked = false;
    self->refusal = PEER_ALLOWED;
    self->page_bytes = 0;
    write_shown(self);
    /* Until the file's version is known, another attempt may get another version. */
    if (request->call || !request->target->has_size)
        request->received = 0;
    self->resumed_at = request->received;
    memset(&request->response, 0, sizeof request->response);
}

void cogpu_transfer_start(cogpu_transfer *self) {
    if (self->attempts++ == 0)
        self->deadline = clock_now() + self->http->network.timeout_seconds;
    self->request->attempts = self->attempts;
    reset_attempt(self);
    if (set_options(self) && curl_multi_add_handle(self->http->multi, self->easy) == CURLM_OK) {
        self->state = TRANSFER_RUNNING;
        self->http->running++;
    } else {
        cogpu_fail(&self->request->error, COGPU_OUT_OF_MEMORY,
                   "%s: libcurl could not start a request", self->shown);
        self->state = TRANSFER_ENDED;
    }
}

void cogpu_transfer_stop(cogpu_transfer *self) {
    if (self->state != TRANSFER_RUNNING)
        return;
    curl_multi_remove_handle(self->http->multi, self->easy);
    self->http->running--;
    self->state = TRANSFER_WAITING;
}

cogpu_transfer *cogpu_transfer_open(cogpu_http *http, cogpu_http_request *request) {
    cogpu_transfer *self = cogpu_allocate(sizeof *self);
    CURL *easy = self ? curl_easy_init() : NULL;
    if (!easy) {
        cogpu_release(self);
        return NULL;
    }
    const cogpu_http_target *target = request->target;
    const bool is_redirected = target->redirect_url && target->redirect_url[0];
    const char *query = request->call ? request->call->query : "";
    *self = (cogpu_transfer){.http = http,
                             .request = request,
                             .easy = easy,
                             .starts_at_redirect = is_redirected,
                             .is_from_public = is_redirected && target->redirected_from_public};
    snprintf(self->url, sizeof self->url, "%s%s%s",
             is_redirected ? target->redirect_url : target->url, *query ? "?" : "", query);
    return self;
}

void cogpu_transfer_close(cogpu_transfer *self) {
    curl_slist_free_all(self->headers.list);
    curl_easy_cleanup(self->easy);
    cogpu_release(self);
}
