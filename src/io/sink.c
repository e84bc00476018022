/* Takes the caller's sink, hands on an out of its kind. */
#include "io/out.h"
#include "io/url.h"

cogpu_status cogpu_out_open(const cogpu_sink *sink, cogpu_http *http, cogpu_out **out,
                            cogpu_error *error) {
    if (!!sink->path + !!sink->memory + !!sink->buffer + !!sink->write != 1)
        return cogpu_fail(
            error, COGPU_ARGUMENT,
            "a sink is either a path, or memory, or a buffer, or has a write function");
    cogpu_out *made = cogpu_allocate(sizeof *made);
    if (!made)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory opening the sink");
    *made = (cogpu_out){.file = -1, .folder = -1};
    cogpu_status status = COGPU_OK;
    if (sink->path && cogpu_url_is(sink->path))
        status = cogpu_out_to_s3(made, sink->path, http, error);
    else if (sink->path)
        status = cogpu_out_to_file(made, sink, error);
    else if (sink->memory)
        cogpu_out_to_memory(made, sink->memory);
    else if (sink->buffer)
        cogpu_out_to_buffer(made, sink->buffer, sink->buffer_bytes);
    else
        cogpu_out_to_user(made, sink);
    if (status == COGPU_OK)
        *out = made;
    else
        cogpu_out_abort(made);
    return status;
}

void cogpu_out_set_meter(cogpu_out *out, cogpu_meter *meter) {
    out->meter = meter;
}

void cogpu_out_expect(cogpu_out *out, uint64_t most) {
    if (out->expect)
        out->expect(out, most);
}

cogpu_status cogpu_out_write(cogpu_out *out, uint64_t offset, const void *from, size_t bytes,
                             cogpu_error *error) {
    if (!cogpu_meter_poll(out->meter))
        return cogpu_fail_cancelled(error);
    return bytes ? out->write(out, offset, from, bytes, error) : COGPU_OK;
}

cogpu_status cogpu_out_room(cogpu_out *out, uint64_t offset, size_t bytes, uint8_t **room,
                            cogpu_error *error) {
    *room = NULL;
    return out->room_for && bytes ? out->room_for(out, offset, bytes, room, error) : COGPU_OK;
}

bool cogpu_out_holds(const cogpu_out *out, uint64_t bytes) {
    return out->room_for && bytes <= out->room;
}

void cogpu_out_set_end(cogpu_out *out, uint64_t end) {
    out->end = end;
}

bool cogpu_out_takes_gap(const cogpu_out *out, uint64_t bytes) {
    return out->move_down || cogpu_out_holds(out, bytes);
}

void cogpu_out_move_down(cogpu_out *out, uint64_t from, uint64_t to) {
    if (out->move_down)
        out->move_down(out, from, to);
}

bool cogpu_out_is_append_only(const cogpu_out *out) {
    return out->user.append_only;
}

bool cogpu_out_may_have(uint64_t bytes) {
    return cogpu_part_may_have(bytes);
}

int cogpu_out_descriptor(const cogpu_out *out) {
    return out->file;
}

void *cogpu_out_buffer(const cogpu_out *out, size_t *bytes) {
    *bytes = out->room;
    return out->memory ? NULL : out->data;
}

cogpu_status cogpu_out_commit(cogpu_out *out, cogpu_error *error) {
    cogpu_status status = out->commit(out, error);
    cogpu_release(out);
    return status;
}

void cogpu_out_abort(cogpu_out *out) {
    if (!out)
        return;
    out->abort(out);
    cogpu_release(out);
}
