/* A sink behind the caller's functions. */
#include "io/out.h"

struct user_sink {
    cogpu_out out;
    cogpu_sink user;
    uint64_t end; /* of what was written last */
};

static cogpu_status write_user(cogpu_out *out, uint64_t offset, const void *from, size_t bytes,
                               cogpu_error *error) {
    struct user_sink *self = (struct user_sink *)out;
    if (self->user.append_only && offset != self->end)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "the sink is append-only: after %llu bytes there are some for offset "
                          "%llu; use one that is not",
                          (unsigned long long)self->end, (unsigned long long)offset);
    cogpu_status status = self->user.write(self->user.user, offset, from, bytes);
    if (status != COGPU_OK)
        return cogpu_fail(error, status,
                          "the sink's write function failed for %zu bytes at offset %llu", bytes,
                          (unsigned long long)offset);
    self->end = offset + bytes;
    return COGPU_OK;
}

static cogpu_status commit_user(cogpu_out *out, cogpu_error *error) {
    const cogpu_sink *user = &((struct user_sink *)out)->user;
    cogpu_status status = user->commit ? user->commit(user->user) : COGPU_OK;
    return status == COGPU_OK ? COGPU_OK
                              : cogpu_fail(error, status, "the sink's commit function failed");
}

static void abort_user(cogpu_out *out) {
    const cogpu_sink *user = &((struct user_sink *)out)->user;
    if (user->abort)
        user->abort(user->user);
}

cogpu_status cogpu_out_open_user(const cogpu_sink *sink, cogpu_out **out, cogpu_error *error) {
    static const cogpu_out_kind user_kind = {
        .write = write_user, .commit = commit_user, .abort = abort_user};
    struct user_sink *self;
    TRY(cogpu_out_allocate(sizeof *self, &user_kind, &self, error));
    self->user = *sink;
    self->out.is_append_only = sink->append_only;
    *out = &self->out;
    return COGPU_OK;
}
