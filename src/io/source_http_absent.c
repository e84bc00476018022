/* Stands in for http.c and source_http.c in a build without libcurl. */
#include "io/source.h"

static cogpu_status absent(cogpu_error *error) {
    return cogpu_fail(error, COGPU_UNSUPPORTED,
                      "this build has no libcurl, which URLs need; install it and build again");
}

cogpu_status cogpu_http_open(const cogpu_network *network, cogpu_http **http, cogpu_error *error) {
    (void)network, (void)http;
    return absent(error);
}

const char *cogpu_curl_version(void) {
    return NULL;
}

void cogpu_http_close(cogpu_http *http) {
    (void)http; /* never opened */
}

cogpu_status cogpu_io_open_http(const char *url, cogpu_http *http, cogpu_io **io,
                                cogpu_error *error) {
    (void)url, (void)http, (void)io;
    return absent(error);
}
