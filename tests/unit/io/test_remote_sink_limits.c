/*
 * The remote sink at the limits of S3, with a store of this file: bytes are counted and not copied,
 * so that objects of 5 TiB can be written.
 */
#include "support/test.h"

#include "io/store/s3.h"
#include "io/store/store.h"

#if COGPU_HAVE_CURL

static void *copy_id(void *to, const void *from, size_t bytes) {
    return bytes == COGPU_S3_UPLOAD_BYTES ? memcpy(to, from, bytes) : to;
}

#define memcpy copy_id
#include "io/store/remote_sink.c" /* in place of the library's */
#undef memcpy

#define MIB        ((uint64_t)1 << 20)
#define PART_MIN   (5 * MIB)
#define PART       (10 * MIB)
#define PART_MAX   (5 * MIB << 10)
#define OBJECT_MAX (5 * MIB << 20)

enum { AT_ONCE = 4 };

/* ---- a store, in place of store.c ---- */

static struct {
    uint32_t calls, parts;
    size_t bytes[COGPU_S3_PARTS_MAX + 1]; /* by number */
    const void
        *memory[AT_ONCE + 1]; /* of parts; the last element stays NULL if there are not too many */
    uint64_t object_bytes;    /* 0 while it is not complete */
} store;

static cogpu_status fake_put_object(cogpu_store *object, const void *from, size_t bytes,
                                    cogpu_error *error) {
    (void)object, (void)from, (void)error;
    store.calls++;
    store.object_bytes = bytes;
    return COGPU_OK;
}

static cogpu_status fake_begin_upload(cogpu_store *object, char upload[COGPU_S3_UPLOAD_BYTES],
                                      cogpu_error *error) {
    (void)object, (void)error;
    store.calls++;
    snprintf(upload, COGPU_S3_UPLOAD_BYTES, "upload");
    return COGPU_OK;
}

static void note_memory(const void *from) {
    uint32_t i = 0;
    while (i < AT_ONCE && store.memory[i] && store.memory[i] != from)
        i++;
    store.memory[i] = from;
}

static void fake_start_part(cogpu_store *object, const char *upload, uint32_t number,
                            const void *from, size_t bytes, cogpu_store_sending *sending) {
    (void)object, (void)upload;
    CHECK(number >= 1 && number <= COGPU_S3_PARTS_MAX && !store.bytes[number] && bytes > 0);
    note_memory(from);
    store.calls++;
    store.parts++;
    store.bytes[number] = bytes;
    sending->number = number;
}

static cogpu_status fake_wait_part(cogpu_store *object, cogpu_store_sending *sending,
                                   cogpu_store_part *part, cogpu_meter *meter, cogpu_error *error) {
    (void)meter;
    (void)object, (void)error;
    *part = (cogpu_store_part){.number = sending->number, .etag = "\"etag\""};
    return COGPU_OK;
}

static void fake_cancel_part(cogpu_store *object, cogpu_store_sending *sending) {
    (void)object, (void)sending;
}

static cogpu_status fake_complete_upload(cogpu_store *object, const char *upload,
                                         const cogpu_store_part *parts, size_t count,
                                         uint64_t bytes, cogpu_error *error) {
    (void)object, (void)upload, (void)error;
    CHECK(count == store.parts);
    for (size_t i = 0; i < count; i++) {
        const size_t size = store.bytes[parts[i].number];
        CHECK((i + 1 == count || size >= PART_MIN) && size <= PART_MAX);
        store.object_bytes += size;
    }
    CHECK(store.object_bytes == bytes);
    return COGPU_OK;
}

static void fake_abort_upload(cogpu_store *object, const char *upload) {
    (void)object, (void)upload;
}

static const cogpu_store_uploads uploads = {.parts_max = COGPU_S3_PARTS_MAX,
                                            .part_bytes_min = COGPU_S3_PART_BYTES_MIN,
                                            .object_bytes_max = COGPU_S3_OBJECT_BYTES_MAX,
                                            .part_bytes = cogpu_s3_part_bytes,
                                            .put = fake_put_object,
                                            .begin = fake_begin_upload,
                                            .start_part = fake_start_part,
                                            .wait_part = fake_wait_part,
                                            .cancel_part = fake_cancel_part,
                                            .complete = fake_complete_upload,
                                            .abort = fake_abort_upload};
static const cogpu_store_kind kind = {.scheme = "s3", .uploads = &uploads};
static cogpu_store fake_store = {.kind = &kind};

cogpu_status cogpu_store_open_for_upload(const char *address, cogpu_http *http,
                                         cogpu_store **object, cogpu_error *error) {
    (void)address, (void)http, (void)error;
    *object = &fake_store;
    return COGPU_OK;
}

cogpu_status cogpu_store_open(const char *address, cogpu_http *http, cogpu_store **object,
                              cogpu_error *error) {
    return cogpu_store_open_for_upload(address, http, object, error);
}

void cogpu_store_close(cogpu_store *object) {
    (void)object;
}

/* ---- a writer ---- */

static cogpu_error error;

/* Of a long write only the first bytes exist, which the sink may copy to its spill. */
static cogpu_status write_span(cogpu_out *out, uint64_t offset, uint64_t bytes) {
    static const uint8_t zeros[PART_MIN];
    return bytes ? cogpu_out_write(out, offset, zeros, (size_t)bytes, &error) : COGPU_OK;
}

/* A body after a gap, then a head that may be shorter: the body moves down to its end. */
static cogpu_status write_all(cogpu_out *out, uint64_t gap, uint64_t head, uint64_t body) {
    TRY(write_span(out, gap, body));
    if (head < gap)
        cogpu_out_move_down(out, gap, head);
    return write_span(out, 0, head);
}

static cogpu_status write_file(uint64_t most, uint64_t gap, uint64_t head, uint64_t body) {
    const cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .path = "s3://bucket/key"};
    cogpu_out *out = NULL;
    memset(&store, 0, sizeof store);
    TRY(cogpu_out_open(&sink, NULL, &out, &error));
    cogpu_out_reserve(out, most);
    cogpu_status status = write_all(out, gap, head, body);
    if (status == COGPU_OK)
        return cogpu_out_commit(out, &error);
    cogpu_out_abort(out);
    return status;
}

/* ---- tests ---- */

#define PLANNED (9000 * PART) /* what is longer has longer parts */
static const uint64_t bounds[] = {1,       PART + 1,    100 * MIB, PLANNED - 1,
                                  PLANNED, PLANNED + 1, MIB << 20, OBJECT_MAX};
static const uint64_t shares[] = {0, 1, 40, 99}; /* of the head, in hundredths */

/* Files that are as long as they may be, and those whose overviews turn out to be shorter. */
static void all_that_may_be_expected_fits(void) {
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        for (size_t j = 0; j < sizeof shares / sizeof *shares; j++) {
            const uint64_t most = bounds[i], gap = most / 100 * shares[j], body = most - gap;
            CHECK(write_file(most, gap, gap, body) == COGPU_OK);
            CHECK(store.object_bytes == most && !store.memory[AT_ONCE]);
            CHECK(write_file(most, gap, gap / 3, body) == COGPU_OK);
            CHECK(store.object_bytes == gap / 3 + body && !store.memory[AT_ONCE]);
        }
}

/* What is compressed turns out to be shorter than it may get. */
static void what_may_get_too_long_need_not(void) {
    CHECK(write_file(UINT64_MAX, 0, 0, OBJECT_MAX) == COGPU_OK);
    CHECK(store.object_bytes == OBJECT_MAX && !store.memory[AT_ONCE]);
    CHECK(write_file(2 * OBJECT_MAX, OBJECT_MAX / 2, OBJECT_MAX / 3, OBJECT_MAX / 2) == COGPU_OK);
    CHECK(write_file(UINT64_MAX, 0, 0, OBJECT_MAX + 1) == COGPU_LIMIT_EXCEEDED &&
          store.object_bytes == 0);
    CHECK(strstr(error.message, "5 TiB"));
}

static void a_head_that_is_too_long_is_not_begun(void) {
    CHECK(write_file(1000, UINT64_MAX - 1000, 1, 100) == COGPU_LIMIT_EXCEEDED && store.calls == 0);
    CHECK(write_file(1000, COGPU_S3_PARTS_MAX * PART, 1, 100) == COGPU_LIMIT_EXCEEDED &&
          store.calls == 0);
}

/* No writer does that. A number is kept for the head, even without one. */
static void more_than_was_expected_ends(void) {
    CHECK(write_file(1000, 0, 0, (COGPU_S3_PARTS_MAX - 1) * PART) == COGPU_OK);
    CHECK(write_file(1000, 0, 0, (COGPU_S3_PARTS_MAX - 1) * PART + 1) == COGPU_LIMIT_EXCEEDED);
    CHECK(store.parts == COGPU_S3_PARTS_MAX - 1 && store.object_bytes == 0);
}

TESTS(remote_sink_limits) {
    RUN(all_that_may_be_expected_fits);
    RUN(what_may_get_too_long_need_not);
    RUN(a_head_that_is_too_long_is_not_begun);
    RUN(more_than_was_expected_ends);
    return FINISH();
}

#else

TESTS(remote_sink_limits) {
    return FINISH();
}

#endif
