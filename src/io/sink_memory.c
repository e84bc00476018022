/* Sinks in memory: memory that grows and becomes the caller's when it is complete, or a buffer of
 * the caller. */
#include "base/checked.h"
#include "io/out.h"

#include <string.h>

enum { FIRST_CAPACITY_BYTES = 64 << 10 };
/* Longer files are seldom written to memory, and most get much shorter than they might. */
#define RESERVE_BYTES_MAX (UINT64_C(16) << 30)

struct memory_sink {
    cogpu_out out;
    cogpu_memory *memory; /* the caller's; NULL for a buffer */
    uint8_t *data;        /* that it will get, or the buffer */
    size_t capacity;
    uint64_t end; /* of what is written */
};

/* At least doubles, so that each byte is copied at most twice on average. */
static cogpu_status grow_memory(struct memory_sink *self, uint64_t bytes, cogpu_error *error) {
    uint64_t capacity = self->capacity ? self->capacity : FIRST_CAPACITY_BYTES;
    if (bytes <= self->capacity)
        return COGPU_OK;
    if (!self->memory)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                          "the file needs %llu bytes or more, the buffer has %zu",
                          (unsigned long long)bytes, self->capacity);
    while (capacity < bytes && capacity <= PTRDIFF_MAX / 2)
        capacity *= 2;
    uint8_t *grown = capacity < bytes ? NULL : cogpu_resize(self->data, (size_t)capacity);
    if (!grown)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY,
                          "out of memory: the file needs %llu bytes; write it to a path",
                          (unsigned long long)bytes);
    self->data = grown;
    self->capacity = (size_t)capacity;
    return COGPU_OK;
}

static cogpu_status get_memory_at(cogpu_out *out, uint64_t offset, size_t bytes, uint8_t **buffer,
                                  cogpu_error *error) {
    struct memory_sink *self = (struct memory_sink *)out;
    uint64_t end;
    if (!checked_add(offset, bytes, &end))
        end = UINT64_MAX;
    TRY(grow_memory(self, end, error));
    if (offset > self->end)
        memset(self->data + self->end, 0, (size_t)(offset - self->end));
    if (end > self->end)
        self->end = end;
    *buffer = self->data + offset;
    return COGPU_OK;
}

static cogpu_status write_memory(cogpu_out *out, uint64_t offset, const void *from, size_t bytes,
                                 cogpu_error *error) {
    uint8_t *buffer;
    TRY(get_memory_at(out, offset, bytes, &buffer, error));
    memcpy(buffer, from, bytes);
    return COGPU_OK;
}

static size_t memory_capacity(const cogpu_out *out) {
    return ((const struct memory_sink *)out)->capacity;
}

static void set_memory_end(cogpu_out *out, uint64_t end) {
    ((struct memory_sink *)out)->end = end;
}

/* ---- memory that becomes the caller's ---- */

/* Gives back what was reserved and not written. */
static cogpu_status commit_memory(cogpu_out *out, cogpu_error *error) {
    struct memory_sink *self = (struct memory_sink *)out;
    uint8_t *fitting = self->data ? cogpu_resize(self->data, (size_t)self->end) : NULL;
    (void)error;
    self->memory->data = fitting ? fitting : self->data;
    self->memory->bytes = (size_t)self->end;
    return COGPU_OK;
}

static void abort_memory(cogpu_out *out) {
    cogpu_release(((struct memory_sink *)out)->data);
}

static void reserve_memory(cogpu_out *out, uint64_t most) {
    struct memory_sink *self = (struct memory_sink *)out;
    if (self->data || most > RESERVE_BYTES_MAX || most > PTRDIFF_MAX)
        return;
    self->data = cogpu_reserve((size_t)most);
    self->capacity = self->data ? (size_t)most : 0;
}

cogpu_status cogpu_out_open_memory(cogpu_memory *memory, cogpu_out **out, cogpu_error *error) {
    static const cogpu_out_kind memory_kind = {.write = write_memory,
                                               .reserve = reserve_memory,
                                               .buffer_at = get_memory_at,
                                               .capacity = memory_capacity,
                                               .set_end = set_memory_end,
                                               .commit = commit_memory,
                                               .abort = abort_memory};
    struct memory_sink *self;
    TRY(cogpu_out_allocate(sizeof *self, &memory_kind, &self, error));
    self->memory = memory;
    *out = &self->out;
    return COGPU_OK;
}

void cogpu_memory_free(cogpu_memory *memory) {
    if (!memory)
        return;
    cogpu_release(memory->data);
    memory->data = NULL;
    memory->bytes = 0;
}

/* ---- a buffer of the caller ---- */

static void *fixed_buffer(const cogpu_out *out) {
    return ((const struct memory_sink *)out)->data;
}

static cogpu_status commit_buffer(cogpu_out *out, cogpu_error *error) {
    (void)out, (void)error;
    return COGPU_OK;
}

static void abort_buffer(cogpu_out *out) {
    (void)out;
}

cogpu_status cogpu_out_open_buffer(void *buffer, size_t bytes, cogpu_out **out,
                                   cogpu_error *error) {
    static const cogpu_out_kind buffer_kind = {.write = write_memory,
                                               .buffer_at = get_memory_at,
                                               .capacity = memory_capacity,
                                               .set_end = set_memory_end,
                                               .fixed_buffer = fixed_buffer,
                                               .commit = commit_buffer,
                                               .abort = abort_buffer};
    struct memory_sink *self;
    TRY(cogpu_out_allocate(sizeof *self, &buffer_kind, &self, error));
    self->data = buffer;
    self->capacity = bytes;
    *out = &self->out;
    return COGPU_OK;
}
