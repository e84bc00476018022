/*
 * A file in a store as a sink: a multipart upload that goes on while the file is written.
 *
 * The writer produces the body of a file first, which is most of it, and at the end its head:
 * header, directories and, in a COG, overviews. Parts may be sent in any order, and their numbers
 * say where they belong. So low numbers are kept for the head:
 *
 *   file      | head | first 5 MiB of the body | rest of the body ............ |
 *   numbers   | 1 .. low                       | low + 1, low + 2, ...         |
 *   sent      | last                           | first                         |
 *
 * A store has a minimum size of all parts but the last (S3: 5 MiB), and a head may be shorter. So
 * as many bytes of the body are deferred in a spill, and are sent after the head.
 *
 * Parts that are filled or on their way have one of four buffers. If none is free, the writer waits
 * for the oldest part.
 */
#include "base/checked.h"
#include "io/out.h"
#include "io/store/store.h"

#include <assert.h>
#include <string.h>

enum { BUFFERS = 4 };

struct part_buffer {
    uint8_t *memory; /* NULL before its first use */
    size_t bytes;
    bool is_used;
    uint64_t sent_as; /* number of sent parts when it was sent; 0: it is not on its way */
    cogpu_store_sending sending;
};

/* Contiguous bytes of the file, in parts with ascending numbers. */
struct part_sequence {
    uint64_t end;
    struct part_buffer *buffer; /* that is filled; NULL without */
    size_t part_bytes;
    uint32_t number, last_number; /* of its next part, and the highest that it may have */
};

struct remote_sink {
    cogpu_out out;
    cogpu_store *store;
    const cogpu_store_uploads *uploads;
    size_t part_bytes; /* of a part, at most */
    bool has_body;     /* the first bytes of the body were written */
    uint64_t start;    /* offset of the body: there the head ends */
    struct part_sequence head, body;
    cogpu_spill *deferred; /* the first bytes of the body; NULL without */
    size_t deferred_bytes;
    struct part_buffer buffers[BUFFERS];
    uint64_t sent;
    char id[COGPU_S3_UPLOAD_BYTES]; /* of the upload; "" before it is begun */
    cogpu_store_part *parts;        /* by number, from 1; number 0 for those not sent */
};

/* ---- buffers ---- */

static cogpu_status wait_for_part(struct remote_sink *self, struct part_buffer *buffer,
                                  cogpu_error *error) {
    cogpu_store_part *part = &self->parts[buffer->sending.number - 1];
    cogpu_status status =
        self->uploads->wait_part(self->store, &buffer->sending, part, self->out.meter, error);
    buffer->sent_as = 0;
    buffer->is_used = false;
    return status;
}

static struct part_buffer *find_oldest_sent(struct remote_sink *self) {
    struct part_buffer *oldest = NULL;
    for (struct part_buffer *buffer = self->buffers; buffer < self->buffers + BUFFERS; buffer++)
        if (buffer->sent_as && (!oldest || buffer->sent_as < oldest->sent_as))
            oldest = buffer;
    return oldest;
}

static struct part_buffer *find_free_buffer(struct remote_sink *self) {
    for (struct part_buffer *buffer = self->buffers; buffer < self->buffers + BUFFERS; buffer++)
        if (!buffer->is_used)
            return buffer;
    return NULL;
}

/* At most two are filled at a time: if none is free, some are on their way. */
static cogpu_status assign_buffer(struct remote_sink *self, struct part_sequence *sequence,
                                  cogpu_error *error) {
    if (!find_free_buffer(self))
        TRY(wait_for_part(self, find_oldest_sent(self), error));
    struct part_buffer *buffer = find_free_buffer(self);
    if (!buffer->memory && !(buffer->memory = cogpu_allocate(self->part_bytes)))
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY,
                          "out of memory: %zu bytes for a part of an upload", self->part_bytes);
    buffer->is_used = true;
    buffer->bytes = 0;
    sequence->buffer = buffer;
    return COGPU_OK;
}

/* ---- parts ---- */

static cogpu_status begin_multipart_upload(struct remote_sink *self, cogpu_error *error) {
    const size_t bytes = self->uploads->parts_max * sizeof *self->parts;
    if (self->id[0])
        return COGPU_OK;
    self->parts = cogpu_allocate(bytes);
    if (!self->parts)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for the parts of an upload");
    memset(self->parts, 0, bytes);
    return self->uploads->begin(self->store, self->id, error);
}

static cogpu_status fail_object_too_long(const struct remote_sink *self, cogpu_error *error) {
    return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                      "the file is longer than the %llu TiB, in %u parts, that an object may have; "
                      "write parts of the image to several files",
                      (unsigned long long)(self->uploads->object_bytes_max >> 40),
                      (unsigned)self->uploads->parts_max);
}

static cogpu_status send_part(struct remote_sink *self, struct part_sequence *sequence,
                              cogpu_error *error) {
    struct part_buffer *buffer = sequence->buffer;
    TRY(begin_multipart_upload(self, error));
    if (sequence->number > sequence->last_number)
        return fail_object_too_long(self, error);
    sequence->buffer = NULL;
    buffer->sent_as = ++self->sent;
    self->uploads->start_part(self->store, self->id, sequence->number++, buffer->memory,
                              buffer->bytes, &buffer->sending);
    return COGPU_OK;
}

/* A full part is sent when more bytes follow: so at the end there is one left to send. */
static cogpu_status append_bytes(struct remote_sink *self, struct part_sequence *sequence,
                                 const uint8_t *from, size_t bytes, cogpu_error *error) {
    sequence->end += bytes;
    while (bytes > 0) {
        if (sequence->buffer && sequence->buffer->bytes == sequence->part_bytes)
            TRY(send_part(self, sequence, error));
        if (!sequence->buffer)
            TRY(assign_buffer(self, sequence, error));
        struct part_buffer *buffer = sequence->buffer;
        size_t left = sequence->part_bytes - buffer->bytes, count = bytes < left ? bytes : left;
        memcpy(buffer->memory + buffer->bytes, from, count);
        buffer->bytes += count;
        from += count;
        bytes -= count;
    }
    return COGPU_OK;
}

/* ---- writing ---- */

/* Parts of the head, and of the deferred bytes after it. */
static uint64_t count_head_parts(const struct remote_sink *self) {
    return divide_up(self->start + self->uploads->part_bytes_min, self->part_bytes);
}

/* Keeps numbers for a head as long as it may get. */
static cogpu_status begin_body(struct remote_sink *self, uint64_t offset, cogpu_error *error) {
    const cogpu_store_uploads *uploads = self->uploads;
    self->start = offset;
    if (offset > uploads->object_bytes_max || count_head_parts(self) >= uploads->parts_max)
        return fail_object_too_long(self, error);
    self->has_body = true;
    const uint32_t low = (uint32_t)count_head_parts(self);
    self->head = (struct part_sequence){.number = 1, .last_number = low};
    self->body = (struct part_sequence){.end = offset,
                                        .part_bytes = self->part_bytes,
                                        .number = low + 1,
                                        .last_number = uploads->parts_max};
    return offset ? cogpu_spill_open(&self->out, uploads->part_bytes_min, &self->deferred, error)
                  : COGPU_OK;
}

/* In parts of about equal length, so that the last one is not too short. */
static void begin_head(struct remote_sink *self) {
    const uint64_t bytes = self->start + self->uploads->part_bytes_min;
    self->head.part_bytes = (size_t)divide_up(bytes, count_head_parts(self));
}

static cogpu_status write_body(struct remote_sink *self, const uint8_t *from, size_t bytes,
                               cogpu_error *error) {
    size_t left = self->deferred ? self->uploads->part_bytes_min - self->deferred_bytes : 0;
    size_t deferred = bytes < left ? bytes : left;
    uint64_t offset;
    if (bytes > self->uploads->object_bytes_max - (self->body.end - self->start))
        return fail_object_too_long(self, error);
    if (deferred > 0)
        TRY(cogpu_spill_add(self->deferred, from, deferred, &offset, error));
    self->deferred_bytes += deferred;
    self->body.end += deferred;
    return append_bytes(self, &self->body, from + deferred, bytes - deferred, error);
}

static cogpu_status write_remote(cogpu_out *out, uint64_t offset, const void *from, size_t bytes,
                                 cogpu_error *error) {
    struct remote_sink *self = (struct remote_sink *)out;
    if (!self->has_body)
        TRY(begin_body(self, offset, error));
    if (offset == self->body.end)
        return write_body(self, from, bytes, error);
    assert(offset == self->head.end);
    if (offset == 0)
        begin_head(self);
    return append_bytes(self, &self->head, from, bytes, error);
}

static void move_body_down(cogpu_out *out, uint64_t from, uint64_t to) {
    struct remote_sink *self = (struct remote_sink *)out;
    if (!self->has_body)
        return;
    self->start -= from - to;
    self->body.end -= from - to;
}

static void choose_part_bytes(cogpu_out *out, uint64_t most) {
    struct remote_sink *self = (struct remote_sink *)out;
    self->part_bytes = (size_t)self->uploads->part_bytes(most);
}

/* ---- the end ---- */

static void free_upload(struct remote_sink *self) {
    for (int i = 0; i < BUFFERS; i++)
        cogpu_release(self->buffers[i].memory);
    cogpu_spill_close(self->deferred);
    cogpu_store_close(self->store);
    cogpu_release(self->parts);
}

static void abort_remote(cogpu_out *out) {
    struct remote_sink *self = (struct remote_sink *)out;
    for (int i = 0; i < BUFFERS; i++)
        if (self->buffers[i].sent_as)
            self->uploads->cancel_part(self->store, &self->buffers[i].sending);
    if (self->id[0])
        self->uploads->abort(self->store, self->id);
    free_upload(self);
}

/* A short file needs no multipart upload. */
static cogpu_status put_short_object(struct remote_sink *self, cogpu_error *error) {
    struct part_buffer *first = self->head.buffer, *last = self->body.buffer;
    if (first && last) {
        memcpy(first->memory + first->bytes, last->memory, last->bytes);
        first->bytes += last->bytes;
    }
    const struct part_buffer *all = first ? first : last;
    return self->uploads->put(self->store, all->memory, all->bytes, error);
}

static cogpu_status complete_multipart_upload(struct remote_sink *self, cogpu_error *error) {
    char id[COGPU_S3_UPLOAD_BYTES];
    size_t count = 0;
    for (size_t i = 0; i < self->uploads->parts_max; i++)
        if (self->parts[i].number)
            self->parts[count++] = self->parts[i];
    memcpy(id, self->id, sizeof id);
    self->id[0] = '\0'; /* completed or aborted: nothing is left to abort */
    return self->uploads->complete(self->store, id, self->parts, count, self->body.end, error);
}

static cogpu_status send_rest(struct remote_sink *self, cogpu_error *error) {
    if (self->deferred_bytes)
        TRY(cogpu_spill_copy(self->deferred, 0, self->deferred_bytes, &self->out, self->start,
                             error));
    const struct part_buffer *head = self->head.buffer, *body = self->body.buffer;
    const size_t bytes = (head ? head->bytes : 0) + (body ? body->bytes : 0);
    if (!self->id[0] && bytes <= self->part_bytes)
        return put_short_object(self, error);
    if (self->head.buffer)
        TRY(send_part(self, &self->head, error));
    if (self->body.buffer)
        TRY(send_part(self, &self->body, error));
    for (struct part_buffer *buffer; (buffer = find_oldest_sent(self));)
        TRY(wait_for_part(self, buffer, error));
    return complete_multipart_upload(self, error);
}

static cogpu_status commit_remote(cogpu_out *out, cogpu_error *error) {
    cogpu_status status = send_rest((struct remote_sink *)out, error);
    if (status == COGPU_OK)
        free_upload((struct remote_sink *)out);
    else
        abort_remote(out);
    return status;
}

cogpu_status cogpu_out_open_remote(const char *address, cogpu_http *http, cogpu_out **out,
                                   cogpu_error *error) {
    static const cogpu_out_kind remote_kind = {.write = write_remote,
                                               .reserve = choose_part_bytes,
                                               .move_down = move_body_down,
                                               .commit = commit_remote,
                                               .abort = abort_remote};
    struct remote_sink *self;
    TRY(cogpu_out_allocate(sizeof *self, &remote_kind, &self, error));
    cogpu_status status = cogpu_store_open_for_upload(address, http, &self->store, error);
    if (status != COGPU_OK) {
        cogpu_release(self);
        return status;
    }
    self->uploads = self->store->kind->uploads;
    self->part_bytes = (size_t)self->uploads->part_bytes(0);
    *out = &self->out;
    return COGPU_OK;
}
