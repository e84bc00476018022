/* A sink in memory, which becomes the caller's when it is complete, or is the caller's from the
 * beginning. */
#include "base/checked.h"
#include "io/out.h"

#include <string.h>

enum { FIRST_ROOM = 64 << 10 };
/* Files of more are seldom meant for memory, and most of them are much smaller than they may be. */
#define MOST_EXPECTED (UINT64_C(16) << 30)

/* At least doubled, so that each byte is copied twice at most on average, where it has to be. */
static cogpu_status grow(cogpu_out *out, uint64_t bytes, cogpu_error *error) {
    uint64_t room = out->room ? out->room : FIRST_ROOM;
    if (bytes <= out->room)
        return COGPU_OK;
    if (!out->memory)
        return cogpu_fail(error, COGPU_LIMIT,
                          "the file needs %llu bytes or more, the buffer has %zu",
                          (unsigned long long)bytes, out->room);
    while (room < bytes && room <= PTRDIFF_MAX / 2)
        room *= 2;
    uint8_t *grown = room < bytes ? NULL : cogpu_resize(out->data, (size_t)room);
    if (!grown)
        return cogpu_fail(error, COGPU_MEMORY,
                          "out of memory: the file needs %llu bytes; write it to a path",
                          (unsigned long long)bytes);
    out->data = grown;
    out->room = (size_t)room;
    return COGPU_OK;
}

static cogpu_status memory_room(cogpu_out *out, uint64_t offset, size_t bytes, uint8_t **room,
                                cogpu_error *error) {
    uint64_t end;
    if (!checked_add(offset, bytes, &end))
        end = UINT64_MAX;
    TRY(grow(out, end, error));
    if (offset > out->end)
        memset(out->data + out->end, 0, (size_t)(offset - out->end));
    if (end > out->end)
        out->end = end;
    *room = out->data + offset;
    return COGPU_OK;
}

static cogpu_status memory_write(cogpu_out *out, uint64_t offset, const void *from, size_t bytes,
                                 cogpu_error *error) {
    uint8_t *room;
    TRY(memory_room(out, offset, bytes, &room, error));
    memcpy(room, from, bytes);
    return COGPU_OK;
}

/* What was expected and did not come is given back. */
static cogpu_status memory_commit(cogpu_out *out, cogpu_error *error) {
    uint8_t *fitting = out->data ? cogpu_resize(out->data, (size_t)out->end) : NULL;
    (void)error;
    out->data = fitting ? fitting : out->data;
    *out->memory = (cogpu_memory){.data = out->data, .bytes = (size_t)out->end};
    return COGPU_OK;
}

static void memory_abort(cogpu_out *out) {
    cogpu_release(out->data);
}

static void memory_expect(cogpu_out *out, uint64_t most) {
    if (out->data || most > MOST_EXPECTED || most > PTRDIFF_MAX)
        return;
    out->data = cogpu_reserve((size_t)most);
    out->room = out->data ? (size_t)most : 0;
}

void cogpu_out_to_memory(cogpu_out *out, cogpu_memory *memory) {
    out->write = memory_write;
    out->expect = memory_expect;
    out->room_for = memory_room;
    out->commit = memory_commit;
    out->abort = memory_abort;
    out->memory = memory;
}

static cogpu_status buffer_commit(cogpu_out *out, cogpu_error *error) {
    (void)out;
    (void)error;
    return COGPU_OK;
}

static void buffer_abort(cogpu_out *out) {
    (void)out;
}

void cogpu_out_to_buffer(cogpu_out *out, void *buffer, size_t bytes) {
    out->write = memory_write;
    out->room_for = memory_room;
    out->commit = buffer_commit;
    out->abort = buffer_abort;
    out->data = buffer;
    out->room = bytes;
}

void cogpu_memory_release(cogpu_memory *memory) {
    if (!memory)
        return;
    cogpu_release(memory->data);
    *memory = (cogpu_memory){0};
}
