/* A sink behind the caller's functions. */
#include "io/out.h"

static cogpu_status user_write(cogpu_out *out, uint64_t offset, const void *from, size_t bytes,
                               cogpu_error *error) {
    if (out->user.append_only && offset != out->end)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "the sink is append-only: after %llu bytes there are some for offset "
                          "%llu; use one that is not",
                          (unsigned long long)out->end, (unsigned long long)offset);
    cogpu_status status = out->user.write(out->user.user, offset, from, bytes);
    if (status != COGPU_OK)
        return cogpu_fail(error, status,
                          "the sink's write function failed for %zu bytes at offset %llu", bytes,
                          (unsigned long long)offset);
    out->end = offset + bytes;
    return COGPU_OK;
}

static cogpu_status user_commit(cogpu_out *out, cogpu_error *error) {
    cogpu_status status = out->user.commit ? out->user.commit(out->user.user) : COGPU_OK;
    return status == COGPU_OK ? COGPU_OK
                              : cogpu_fail(error, status, "the sink's commit function failed");
}

static void user_abort(cogpu_out *out) {
    if (out->user.abort)
        out->user.abort(out->user.user);
}

void cogpu_out_to_user(cogpu_out *out, const cogpu_sink *sink) {
    out->write = user_write;
    out->commit = user_commit;
    out->abort = user_abort;
    out->user = *sink;
}
