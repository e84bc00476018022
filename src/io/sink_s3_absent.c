/* Stands in for sink_s3.c in a build without libcurl. */
#include "io/out.h"

static void nothing_to_abort(cogpu_out *out) {
    (void)out;
}

cogpu_status cogpu_out_to_s3(cogpu_out *out, const char *address, cogpu_http *http,
                             cogpu_error *error) {
    (void)address, (void)http;
    out->abort = nothing_to_abort;
    return cogpu_fail(error, COGPU_UNSUPPORTED,
                      "this build has no libcurl, which s3:// addresses need; install it and build "
                      "again");
}
