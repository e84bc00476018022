/*
 * An object of S3 as a sink: takes bytes, hands them on in parts while more come.
 *
 * The writer gives the body of a file first, which is most of it, and at the end its head: header,
 * directories and, of a COG, overviews. Parts may come in any order, their numbers say where they
 * belong; so the body's have high numbers, and low ones are left for the head. But each part, save
 * the last, has 5 MiB or more, which a head may not have: so the first 5 MiB of the body are held
 * in a spill, and go up behind the head.
 *
 * All parts that are in memory, filled or on their way, are slots, of which there are four. Who
 * needs another waits until a part is there.
 */
#include "base/checked.h"
#include "io/out.h"
#include "io/s3_object.h"

#include <assert.h>
#include <string.h>

enum { SLOTS = 4 };

struct slot {
    uint8_t *memory; /* NULL before it is used */
    size_t bytes;
    bool is_taken;
    uint64_t sent; /* its number among all that were sent; 0: it is not on its way */
    cogpu_s3_sending sending;
};

/* Bytes that follow each other. */
struct run {
    uint64_t end;
    struct slot *slot; /* that is filled; NULL without */
    size_t part_bytes;
    uint32_t number, last; /* of its next part, and that it may not pass */
};

struct cogpu_upload {
    cogpu_s3_object *object;
    size_t part_bytes; /* at most */
    bool has_begun;    /* the first bytes of the body are known */
    uint64_t start;    /* where they stand: there the head ends */
    struct run head, body;
    cogpu_spill *held; /* the first bytes of the body; NULL without */
    size_t held_bytes;
    struct slot slots[SLOTS];
    cogpu_meter *meter; /* the out's */
    uint64_t sent;
    char id[COGPU_S3_UPLOAD_BYTES]; /* "" while it is not begun */
    cogpu_s3_part *parts; /* by their numbers, from 1; those without number are not there */
};

/* ---- slots ---- */

static cogpu_status wait_for(struct cogpu_upload *upload, struct slot *slot, cogpu_error *error) {
    cogpu_s3_part *part = &upload->parts[slot->sending.number - 1];
    cogpu_status status =
        cogpu_s3_part_wait(upload->object, &slot->sending, part, upload->meter, error);
    slot->sent = 0;
    slot->is_taken = false;
    return status;
}

static struct slot *oldest_sent(struct cogpu_upload *upload) {
    struct slot *oldest = NULL;
    for (struct slot *slot = upload->slots; slot < upload->slots + SLOTS; slot++)
        if (slot->sent && (!oldest || slot->sent < oldest->sent))
            oldest = slot;
    return oldest;
}

static struct slot *free_slot(struct cogpu_upload *upload) {
    for (struct slot *slot = upload->slots; slot < upload->slots + SLOTS; slot++)
        if (!slot->is_taken)
            return slot;
    return NULL;
}

/* At most two are filled at a time, so that some are on their way where none is free. */
static cogpu_status take_slot(struct cogpu_upload *upload, struct run *run, cogpu_error *error) {
    if (!free_slot(upload))
        TRY(wait_for(upload, oldest_sent(upload), error));
    struct slot *slot = free_slot(upload);
    if (!slot->memory && !(slot->memory = cogpu_allocate(upload->part_bytes)))
        return cogpu_fail(error, COGPU_MEMORY, "out of memory: %zu bytes for a part of an upload",
                          upload->part_bytes);
    slot->is_taken = true;
    slot->bytes = 0;
    run->slot = slot;
    return COGPU_OK;
}

/* ---- parts ---- */

static cogpu_status begin_upload(struct cogpu_upload *upload, cogpu_error *error) {
    const size_t bytes = COGPU_S3_PARTS_MAX * sizeof *upload->parts;
    if (upload->id[0])
        return COGPU_OK;
    upload->parts = cogpu_allocate(bytes);
    if (!upload->parts)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for the parts of an upload");
    memset(upload->parts, 0, bytes);
    return cogpu_s3_upload_begin(upload->object, upload->id, error);
}

static cogpu_status too_long(cogpu_error *error) {
    return cogpu_fail(
        error, COGPU_LIMIT,
        "the file takes more than the 5 TiB, in %d parts, that an object of S3 has at "
        "most; write it as several, of parts of the image",
        COGPU_S3_PARTS_MAX);
}

static cogpu_status send(struct cogpu_upload *upload, struct run *run, cogpu_error *error) {
    struct slot *slot = run->slot;
    TRY(begin_upload(upload, error));
    if (run->number > run->last)
        return too_long(error);
    run->slot = NULL;
    slot->sent = ++upload->sent;
    cogpu_s3_part_start(upload->object, upload->id, run->number++, slot->memory, slot->bytes,
                        &slot->sending);
    return COGPU_OK;
}

/* A full part is sent when more comes: so at the end there is one to send. */
static cogpu_status append(struct cogpu_upload *upload, struct run *run, const uint8_t *from,
                           size_t bytes, cogpu_error *error) {
    run->end += bytes;
    while (bytes > 0) {
        if (run->slot && run->slot->bytes == run->part_bytes)
            TRY(send(upload, run, error));
        if (!run->slot)
            TRY(take_slot(upload, run, error));
        struct slot *slot = run->slot;
        size_t room = run->part_bytes - slot->bytes, count = bytes < room ? bytes : room;
        memcpy(slot->memory + slot->bytes, from, count);
        slot->bytes += count;
        from += count;
        bytes -= count;
    }
    return COGPU_OK;
}

/* ---- writing ---- */

/* Parts of the head and of what is held behind it. */
static uint64_t head_parts(const struct cogpu_upload *upload) {
    return divide_up(upload->start + COGPU_S3_PART_BYTES_MIN, upload->part_bytes);
}

/* Low numbers are left for a head as long as it may get. */
static cogpu_status begin(cogpu_out *out, uint64_t offset, cogpu_error *error) {
    struct cogpu_upload *upload = out->upload;
    upload->start = offset;
    if (offset > COGPU_S3_OBJECT_BYTES_MAX || head_parts(upload) >= COGPU_S3_PARTS_MAX)
        return too_long(error);
    upload->has_begun = true;
    const uint32_t low = (uint32_t)head_parts(upload);
    upload->head = (struct run){.number = 1, .last = low};
    upload->body = (struct run){.end = offset,
                                .part_bytes = upload->part_bytes,
                                .number = low + 1,
                                .last = COGPU_S3_PARTS_MAX};
    return offset ? cogpu_spill_open(out, COGPU_S3_PART_BYTES_MIN, &upload->held, error) : COGPU_OK;
}

/* In parts of about the same length, so that the last one is none too short, either. */
static void begin_head(struct cogpu_upload *upload) {
    const uint64_t bytes = upload->start + COGPU_S3_PART_BYTES_MIN;
    upload->head.part_bytes = (size_t)divide_up(bytes, head_parts(upload));
}

static cogpu_status write_body(struct cogpu_upload *upload, const uint8_t *from, size_t bytes,
                               cogpu_error *error) {
    size_t left = upload->held ? COGPU_S3_PART_BYTES_MIN - upload->held_bytes : 0;
    size_t held = bytes < left ? bytes : left;
    uint64_t offset;
    if (bytes > COGPU_S3_OBJECT_BYTES_MAX - (upload->body.end - upload->start))
        return too_long(error);
    if (held > 0)
        TRY(cogpu_spill_add(upload->held, from, held, &offset, error));
    upload->held_bytes += held;
    upload->body.end += held;
    return append(upload, &upload->body, from + held, bytes - held, error);
}

static cogpu_status s3_write(cogpu_out *out, uint64_t offset, const void *from, size_t bytes,
                             cogpu_error *error) {
    struct cogpu_upload *upload = out->upload;
    if (!upload->has_begun)
        TRY(begin(out, offset, error));
    if (offset == upload->body.end)
        return write_body(upload, from, bytes, error);
    assert(offset == upload->head.end);
    if (offset == 0)
        begin_head(upload);
    return append(upload, &upload->head, from, bytes, error);
}

static void s3_move_down(cogpu_out *out, uint64_t from, uint64_t to) {
    struct cogpu_upload *upload = out->upload;
    if (!upload->has_begun)
        return;
    upload->start -= from - to;
    upload->body.end -= from - to;
}

/* Sizes stay what they are: so the writer's bound is divided among the parts that there may be. */
static void s3_expect(cogpu_out *out, uint64_t most) {
    out->upload->meter = out->meter;
    out->upload->part_bytes = (size_t)cogpu_s3_part_bytes(most);
}

/* ---- the end ---- */

static void close_upload(cogpu_out *out) {
    struct cogpu_upload *upload = out->upload;
    for (int i = 0; i < SLOTS; i++)
        cogpu_release(upload->slots[i].memory);
    cogpu_spill_close(upload->held);
    cogpu_s3_object_close(upload->object);
    cogpu_release(upload->parts);
    cogpu_release(upload);
}

static void s3_abort(cogpu_out *out) {
    struct cogpu_upload *upload = out->upload;
    if (!upload)
        return;
    for (int i = 0; i < SLOTS; i++)
        if (upload->slots[i].sent)
            cogpu_s3_part_cancel(upload->object, &upload->slots[i].sending);
    if (upload->id[0])
        cogpu_s3_upload_abort(upload->object, upload->id);
    close_upload(out);
}

static cogpu_status put_at_once(struct cogpu_upload *upload, cogpu_error *error) {
    struct slot *first = upload->head.slot, *last = upload->body.slot;
    if (first && last) {
        memcpy(first->memory + first->bytes, last->memory, last->bytes);
        first->bytes += last->bytes;
    }
    const struct slot *all = first ? first : last;
    return cogpu_s3_object_put(upload->object, all->memory, all->bytes, error);
}

static cogpu_status complete(struct cogpu_upload *upload, cogpu_error *error) {
    char id[COGPU_S3_UPLOAD_BYTES];
    size_t count = 0;
    for (size_t i = 0; i < COGPU_S3_PARTS_MAX; i++)
        if (upload->parts[i].number)
            upload->parts[count++] = upload->parts[i];
    memcpy(id, upload->id, sizeof id);
    upload->id[0] = '\0'; /* whatever comes of it, nothing is left to abort */
    return cogpu_s3_upload_complete(upload->object, id, upload->parts, count, upload->body.end,
                                    error);
}

static cogpu_status finish(cogpu_out *out, cogpu_error *error) {
    struct cogpu_upload *upload = out->upload;
    struct run *head = &upload->head, *body = &upload->body;
    if (upload->held_bytes)
        TRY(cogpu_spill_copy(upload->held, 0, upload->held_bytes, out, upload->start, error));
    const size_t bytes =
        (head->slot ? head->slot->bytes : 0) + (body->slot ? body->slot->bytes : 0);
    if (!upload->id[0] && bytes <= upload->part_bytes)
        return put_at_once(upload, error);
    if (head->slot)
        TRY(send(upload, head, error));
    if (body->slot)
        TRY(send(upload, body, error));
    for (struct slot *slot; (slot = oldest_sent(upload));)
        TRY(wait_for(upload, slot, error));
    return complete(upload, error);
}

static cogpu_status s3_commit(cogpu_out *out, cogpu_error *error) {
    cogpu_status status = finish(out, error);
    if (status == COGPU_OK)
        close_upload(out);
    else
        s3_abort(out);
    return status;
}

cogpu_status cogpu_out_to_s3(cogpu_out *out, const char *address, cogpu_http *http,
                             cogpu_error *error) {
    out->write = s3_write;
    out->expect = s3_expect;
    out->move_down = s3_move_down;
    out->commit = s3_commit;
    out->abort = s3_abort;
    struct cogpu_upload *upload = cogpu_allocate(sizeof *upload);
    if (!upload)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory for an upload");
    memset(upload, 0, sizeof *upload);
    upload->part_bytes = (size_t)cogpu_s3_part_bytes(0);
    out->upload = upload;
    return cogpu_s3_object_open(address, http, &upload->object, error);
}
