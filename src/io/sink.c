/* Opens a sink of the kind that the caller chose, and calls it. */
#include "io/http/url.h"
#include "io/out.h"

#include <string.h>

cogpu_status cogpu_out_allocate(size_t bytes, const cogpu_out_kind *kind, void *out,
                                cogpu_error *error) {
    cogpu_out *made = cogpu_allocate(bytes);
    if (!made)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory opening the sink");
    memset(made, 0, bytes);
    *made = (cogpu_out){.kind = kind, .descriptor = -1, .folder = -1};
    memcpy(out, &made, sizeof made);
    return COGPU_OK;
}

cogpu_status cogpu_out_open(const cogpu_sink *sink, cogpu_http *http, cogpu_out **out,
                            cogpu_error *error) {
    if (!!sink->path + !!sink->memory + !!sink->buffer + !!sink->write != 1)
        return cogpu_fail(
            error, COGPU_INVALID_ARGUMENT,
            "a sink is either a path, or memory, or a buffer, or has a write function");
    if (sink->path && cogpu_url_is(sink->path))
        return cogpu_out_open_remote(sink->path, http, out, error);
    if (sink->path)
        return cogpu_out_open_file(sink, out, error);
    if (sink->memory)
        return cogpu_out_open_memory(sink->memory, out, error);
    if (sink->buffer)
        return cogpu_out_open_buffer(sink->buffer, sink->buffer_bytes, out, error);
    return cogpu_out_open_user(sink, out, error);
}

void cogpu_out_set_meter(cogpu_out *out, cogpu_meter *meter) {
    out->meter = meter;
}

void cogpu_out_reserve(cogpu_out *out, uint64_t most) {
    if (out->kind->reserve)
        out->kind->reserve(out, most);
}

cogpu_status cogpu_out_write(cogpu_out *out, uint64_t offset, const void *from, size_t bytes,
                             cogpu_error *error) {
    if (!cogpu_meter_poll(out->meter))
        return cogpu_fail_cancelled(error);
    return bytes ? out->kind->write(out, offset, from, bytes, error) : COGPU_OK;
}

cogpu_status cogpu_out_buffer_at(cogpu_out *out, uint64_t offset, size_t bytes, uint8_t **buffer,
                                 cogpu_error *error) {
    *buffer = NULL;
    return out->kind->buffer_at && bytes ? out->kind->buffer_at(out, offset, bytes, buffer, error)
                                         : COGPU_OK;
}

bool cogpu_out_has_memory_for(const cogpu_out *out, uint64_t bytes) {
    return out->kind->capacity && bytes <= out->kind->capacity(out);
}

void cogpu_out_set_end(cogpu_out *out, uint64_t end) {
    if (out->kind->set_end)
        out->kind->set_end(out, end);
}

bool cogpu_out_allows_gap(const cogpu_out *out, uint64_t bytes) {
    return out->kind->move_down || cogpu_out_has_memory_for(out, bytes);
}

void cogpu_out_move_down(cogpu_out *out, uint64_t from, uint64_t to) {
    if (out->kind->move_down)
        out->kind->move_down(out, from, to);
}

bool cogpu_out_is_append_only(const cogpu_out *out) {
    return out->is_append_only;
}

bool cogpu_out_may_grow_to(uint64_t bytes) {
    return cogpu_part_may_grow_to(bytes);
}

int cogpu_out_descriptor(const cogpu_out *out) {
    return out->descriptor;
}

void *cogpu_out_buffer(const cogpu_out *out, size_t *bytes) {
    *bytes = out->kind->capacity ? out->kind->capacity(out) : 0;
    return out->kind->fixed_buffer ? out->kind->fixed_buffer(out) : NULL;
}

cogpu_status cogpu_out_commit(cogpu_out *out, cogpu_error *error) {
    cogpu_status status = out->kind->commit(out, error);
    cogpu_release(out);
    return status;
}

void cogpu_out_abort(cogpu_out *out) {
    if (!out)
        return;
    out->kind->abort(out);
    cogpu_release(out);
}
