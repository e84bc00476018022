/*
 * A source behind the caller's functions. What they return is checked as a file's content is.
 *
 * If it has read_many, each call is taken for a request over a network: reads go through a range
 * cache, which reads many ranges in one call.
 */
#include "io/io.h"

enum { MAX_INFLIGHT_BYTES = 32 << 20 }; /* memory of prefetched ranges */

struct user_source {
    cogpu_io io;
    cogpu_source user;
    uint64_t inflight_bytes; /* under the cache's lock */
};

static cogpu_status fail_read(cogpu_error *error, cogpu_status status, uint64_t offset,
                              size_t bytes) {
    return cogpu_fail(error, status,
                      "the source's read function failed for %zu bytes at offset %llu", bytes,
                      (unsigned long long)offset);
}

static cogpu_status read_user(const cogpu_io *io, uint64_t offset, size_t bytes, void *to,
                              cogpu_meter *meter, cogpu_error *error) {
    (void)meter;
    const cogpu_source *user = &((const struct user_source *)io)->user;
    size_t got = 0;
    cogpu_status status = user->read(user->user, offset, bytes, to, &got);
    if (status != COGPU_OK)
        return fail_read(error, status, offset, bytes);
    if (got < bytes)
        return cogpu_io_short(error, offset, bytes, offset + got);
    return COGPU_OK;
}

static void close_user(cogpu_io *io) {
    const cogpu_source *user = &((struct user_source *)io)->user;
    if (user->close)
        user->close(user->user);
    cogpu_release(io);
}

/* ---- read_many ---- */

static bool reserve_user_range(void *source, const cogpu_range *range) {
    struct user_source *self = source;
    if (range->bytes > MAX_INFLIGHT_BYTES - self->inflight_bytes)
        return false;
    self->inflight_bytes += range->bytes;
    return true;
}

static void unreserve_user_range(void *source, const cogpu_range *range) {
    ((struct user_source *)source)->inflight_bytes -= range->bytes;
}

static cogpu_status load_ranges(void *source, cogpu_range *const *ranges, size_t count) {
    const cogpu_source *user = &((struct user_source *)source)->user;
    uint64_t offsets[COGPU_RANGE_GROUP_COUNT];
    size_t bytes[COGPU_RANGE_GROUP_COUNT];
    void *to[COGPU_RANGE_GROUP_COUNT];
    for (size_t i = 0; i < count; i++) {
        offsets[i] = ranges[i]->offset;
        bytes[i] = ranges[i]->bytes;
        to[i] = ranges[i]->data;
    }
    return user->read_many(user->user, offsets, bytes, to, count);
}

static cogpu_status read_one_range(void *source, uint64_t offset, size_t bytes, void *to,
                                   cogpu_meter *meter, cogpu_error *error) {
    (void)meter;
    const cogpu_source *user = &((struct user_source *)source)->user;
    cogpu_status status = user->read_many(user->user, &offset, &bytes, &to, 1);
    return status == COGPU_OK ? status : fail_read(error, status, offset, bytes);
}

static cogpu_status open_user_range_cache(struct user_source *self, cogpu_error *error) {
    static const cogpu_range_loader loader = {.range_bytes = sizeof(cogpu_range),
                                              .reserve = reserve_user_range,
                                              .unreserve = unreserve_user_range,
                                              .load = load_ranges,
                                              .read = read_one_range};
    const cogpu_coalesce_limits limits = {COGPU_GAP_BYTES, COGPU_REQUEST_BYTES};
    self->io.cache = cogpu_range_cache_open(&loader, self, self->io.bytes, limits);
    return self->io.cache
               ? COGPU_OK
               : cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory opening the source");
}

cogpu_status cogpu_io_open_user(const cogpu_source *source, cogpu_io **io, cogpu_error *error) {
    static const cogpu_io_kind single_kind = {.read = read_user, .close = close_user};
    static const cogpu_io_kind many_kind = {.read = cogpu_io_read_cached, .close = close_user};
    struct user_source *self = cogpu_allocate(sizeof *self);
    if (!self) {
        if (source->close)
            source->close(source->user);
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory opening the source");
    }
    *self = (struct user_source){.io.kind = source->read_many ? &many_kind : &single_kind,
                                 .user = *source};
    cogpu_status status = source->size(source->user, &self->io.bytes);
    if (status != COGPU_OK)
        cogpu_fail(error, status, "the source's size function failed");
    else if (source->read_many)
        status = open_user_range_cache(self, error);
    if (status != COGPU_OK) {
        close_user(&self->io);
        return status;
    }
    return cogpu_io_open(&self->io, io, error);
}
