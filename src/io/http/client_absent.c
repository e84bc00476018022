/* The client of a build without libcurl: it cannot be opened, so nothing else here is called. */
#include "io/http/client.h"

static cogpu_status fail_without_curl(cogpu_error *error) {
    return cogpu_fail(error, COGPU_UNSUPPORTED,
                      "this build has no libcurl, which URLs need; install it and build again");
}

cogpu_status cogpu_http_open(const cogpu_network *network, cogpu_http **http, cogpu_error *error) {
    (void)network, (void)http;
    return fail_without_curl(error);
}

void cogpu_http_close(cogpu_http *http) {
    (void)http;
}

const char *cogpu_curl_version(void) {
    return NULL;
}

cogpu_status cogpu_http_ensure(cogpu_http **http, bool *is_own, cogpu_error *error) {
    (void)http;
    *is_own = false;
    return fail_without_curl(error);
}

const cogpu_network *cogpu_http_network(const cogpu_http *http) {
    (void)http;
    return NULL;
}

cogpu_header_cache *cogpu_http_header_cache(const cogpu_http *http) {
    (void)http;
    return NULL;
}

bool cogpu_http_add_header(cogpu_http_headers *headers, const char *line) {
    (void)headers, (void)line;
    return false;
}

bool cogpu_http_reserve(cogpu_http *http, uint64_t bytes) {
    (void)http, (void)bytes;
    return false;
}

void cogpu_http_unreserve(cogpu_http *http, uint64_t bytes) {
    (void)http, (void)bytes;
}

void cogpu_http_start(cogpu_http *http, cogpu_http_request *requests, uint32_t count) {
    (void)http, (void)requests, (void)count;
}

cogpu_status cogpu_http_wait(cogpu_http *http, cogpu_http_request *request, cogpu_error *error) {
    (void)http, (void)request;
    return fail_without_curl(error);
}

cogpu_status cogpu_http_wait_metered(cogpu_http *http, cogpu_http_request *request,
                                     cogpu_meter *meter, cogpu_error *error) {
    (void)meter;
    return cogpu_http_wait(http, request, error);
}

void cogpu_http_cancel(cogpu_http *http, cogpu_http_request *request) {
    (void)http, (void)request;
}
