/*
 * The remote sink with a store of this file: objects are what was written, parts have sizes that
 * S3 accepts, at most four are in memory, and whatever fails, nothing is left.
 */
#include "support/test.h"

#include "io/sink.h"
#include "io/store/s3.h"
#include "io/store/store.h"

#if COGPU_HAVE_CURL

#define MIB   ((size_t)1 << 20)
#define LEAST (5 * MIB)
#define PART  (10 * MIB)

/* ---- a store, in place of store.c ---- */

static struct {
    uint8_t *parts[COGPU_S3_PARTS_MAX + 1];
    size_t bytes[COGPU_S3_PARTS_MAX + 1];
    size_t longest;
    uint32_t calls, fails_at; /* 0: none does */
    uint32_t under_way, most, sent, waited;
    uint32_t order[COGPU_S3_PARTS_MAX + 1]; /* in which they were sent */
    uint32_t opened, begun, aborted, completed, at_once;
    uint8_t *object;
    size_t object_bytes;
} store;

static void clear_parts(void) {
    for (uint32_t i = 0; i <= COGPU_S3_PARTS_MAX; i++) {
        free(store.parts[i]);
        store.parts[i] = NULL;
    }
}

static void clear_store(void) {
    clear_parts();
    free(store.object);
    memset(&store, 0, sizeof store);
}

static cogpu_status do_call(cogpu_error *error) {
    return ++store.calls == store.fails_at ? cogpu_fail(error, COGPU_IO_ERROR, "the store fails")
                                           : COGPU_OK;
}

static cogpu_status put_object(cogpu_store *object, const void *from, size_t bytes,
                               cogpu_error *error) {
    (void)object;
    TRY(do_call(error));
    store.at_once++;
    store.object = malloc(bytes);
    memcpy(store.object, from, bytes);
    store.object_bytes = bytes;
    return COGPU_OK;
}

static cogpu_status begin_upload(cogpu_store *object, char upload[COGPU_S3_UPLOAD_BYTES],
                                 cogpu_error *error) {
    (void)object;
    TRY(do_call(error));
    CHECK(store.begun == 0);
    store.begun++;
    snprintf(upload, COGPU_S3_UPLOAD_BYTES, "upload");
    return COGPU_OK;
}

static void start_part(cogpu_store *object, const char *upload, uint32_t number, const void *from,
                       size_t bytes, cogpu_store_sending *sending) {
    (void)object;
    CHECK(strcmp(upload, "upload") == 0 && number >= 1 && number <= COGPU_S3_PARTS_MAX);
    CHECK(!store.parts[number] && !store.bytes[number] && bytes > 0);
    sending->number = number;
    sending->call = (cogpu_http_call){.body = from, .bytes = bytes};
    store.bytes[number] = bytes;
    store.longest = bytes > store.longest ? bytes : store.longest;
    store.order[number] = ++store.sent;
    store.under_way++;
    store.most = store.under_way > store.most ? store.under_way : store.most;
}

/* Reads the bytes as late as possible. */
static cogpu_status wait_part(cogpu_store *object, cogpu_store_sending *sending,
                              cogpu_store_part *part, cogpu_meter *meter, cogpu_error *error) {
    (void)meter;
    (void)object;
    CHECK(store.order[sending->number] == ++store.waited);
    store.under_way--;
    TRY(do_call(error));
    store.parts[sending->number] = malloc(sending->call.bytes);
    memcpy(store.parts[sending->number], sending->call.body, sending->call.bytes);
    *part = (cogpu_store_part){.number = sending->number, .etag = "\"etag\""};
    return COGPU_OK;
}

static void cancel_part(cogpu_store *object, cogpu_store_sending *sending) {
    (void)object, (void)sending;
    store.under_way--;
}

static void join(const cogpu_store_part *parts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const uint32_t number = parts[i].number;
        CHECK(i == 0 || number > parts[i - 1].number);
        CHECK(i + 1 == count || store.bytes[number] >= LEAST);
        memcpy(store.object + store.object_bytes, store.parts[number], store.bytes[number]);
        store.object_bytes += store.bytes[number];
    }
}

static cogpu_status complete_upload(cogpu_store *object, const char *upload,
                                    const cogpu_store_part *parts, size_t count, uint64_t bytes,
                                    cogpu_error *error) {
    (void)object, (void)upload;
    CHECK(store.under_way == 0 && count == store.sent);
    if (do_call(error) != COGPU_OK) {
        store.aborted++;
        return COGPU_IO_ERROR;
    }
    store.completed++;
    store.object = malloc((size_t)bytes);
    join(parts, count);
    CHECK(store.object_bytes == bytes);
    return COGPU_OK;
}

static void abort_upload(cogpu_store *object, const char *upload) {
    (void)object;
    CHECK(strcmp(upload, "upload") == 0 && store.under_way == 0);
    store.aborted++;
}

static const cogpu_store_uploads uploads = {.parts_max = COGPU_S3_PARTS_MAX,
                                            .part_bytes_min = COGPU_S3_PART_BYTES_MIN,
                                            .object_bytes_max = COGPU_S3_OBJECT_BYTES_MAX,
                                            .part_bytes = cogpu_s3_part_bytes,
                                            .put = put_object,
                                            .begin = begin_upload,
                                            .start_part = start_part,
                                            .wait_part = wait_part,
                                            .cancel_part = cancel_part,
                                            .complete = complete_upload,
                                            .abort = abort_upload};
static const cogpu_store_kind kind = {.scheme = "s3", .uploads = &uploads};

cogpu_status cogpu_store_open_for_upload(const char *address, cogpu_http *http,
                                         cogpu_store **object, cogpu_error *error) {
    CHECK(strcmp(address, "s3://bucket/key") == 0 && !http);
    TRY(do_call(error));
    *object = malloc(sizeof **object);
    (*object)->kind = &kind;
    store.opened++;
    return COGPU_OK;
}

cogpu_status cogpu_store_open(const char *address, cogpu_http *http, cogpu_store **object,
                              cogpu_error *error) {
    return cogpu_store_open_for_upload(address, http, object, error);
}

void cogpu_store_close(cogpu_store *object) {
    CHECK(store.under_way == 0);
    store.opened -= object != NULL;
    free(object);
}

/* ---- a writer ---- */

/* `body` bytes at `first`, which turns out to be `start`, then the head before them, then `tail`
 * bytes after the body. */
struct file {
    uint64_t most;
    size_t first, start, body, tail;
};

static uint8_t bytes_of_files[17 * MIB];
static cogpu_error error;

static uint32_t draw(uint32_t below) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

/* In chunks; the content of a file is bytes_of_files, repeated. */
static cogpu_status write_span(cogpu_out *out, uint64_t offset, uint64_t content, size_t bytes) {
    while (bytes > 0) {
        const size_t at = (size_t)(content % sizeof bytes_of_files);
        size_t chunk = 1 + draw(draw(2) ? 3000 : 3 * MIB);
        chunk = chunk < bytes ? chunk : bytes;
        chunk = chunk < sizeof bytes_of_files - at ? chunk : sizeof bytes_of_files - at;
        TRY(cogpu_out_write(out, offset, bytes_of_files + at, chunk, &error));
        offset += chunk;
        content += chunk;
        bytes -= chunk;
    }
    return COGPU_OK;
}

static cogpu_status write_all(cogpu_out *out, const struct file *file) {
    if (file->most)
        cogpu_out_reserve(out, file->most);
    TRY(write_span(out, file->first, file->start, file->body));
    if (file->first != file->start)
        cogpu_out_move_down(out, file->first, file->start);
    TRY(write_span(out, 0, 0, file->start));
    return write_span(out, file->start + file->body, file->start + file->body, file->tail);
}

static cogpu_status write_file(const struct file *file) {
    const cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .path = "s3://bucket/key"};
    cogpu_out *out = NULL;
    TRY(cogpu_out_open(&sink, NULL, &out, &error));
    cogpu_status status = write_all(out, file);
    if (status == COGPU_OK)
        return cogpu_out_commit(out, &error);
    cogpu_out_abort(out);
    return status;
}

static bool is_right(const struct file *file) {
    const size_t bytes = file->start + file->body + file->tail;
    bool is_same = store.object_bytes == bytes;
    for (size_t at = 0, chunk; is_same && at < bytes; at += chunk) {
        chunk = bytes - at < sizeof bytes_of_files ? bytes - at : sizeof bytes_of_files;
        is_same = memcmp(store.object + at, bytes_of_files, chunk) == 0;
    }
    return is_same;
}

static void check(const struct file *file) {
    const size_t bytes = file->start + file->body + file->tail;
    CHECK(write_file(file) == COGPU_OK && is_right(file));
    CHECK(store.opened == 0 && store.aborted == 0 && store.most <= 4);
    CHECK(store.longest <= PART && store.completed == store.begun);
    /* A long head may take two parts, although the file fits into one. */
    CHECK(store.at_once + store.completed == 1 && (bytes > PART ? store.begun : 1));
    CHECK(file->start > LEAST || store.at_once == (bytes <= PART));
    clear_store();
}

/* ---- tests ---- */

static size_t some(void) {
    static const size_t borders[] = {1, LEAST, PART, LEAST + PART, 2 * PART, LEAST + 2 * PART};
    size_t bytes = borders[draw(sizeof borders / sizeof *borders)];
    return draw(2) ? draw(3 * PART) + 1 : bytes + draw(3) - (bytes > 1);
}

static void objects_are_what_was_written(void) {
    for (int i = 0; i < (is_deep_run() ? 60 : 20) && !test_broken; i++) {
        struct file file = {.start = draw(4) ? some() : 16, .body = some()};
        file.first = file.start + (draw(2) ? some() : 0);
        file.tail = draw(2) ? some() : 0;
        check(&file);
    }
}

static void files_without_a_head(void) {
    for (int i = 0; i < 10; i++)
        check(&(struct file){.body = some()});
}

static void parts_go_up_while_more_comes(void) {
    const cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .path = "s3://bucket/key"};
    cogpu_out *out = NULL;
    CHECK(cogpu_out_open(&sink, NULL, &out, &error) == COGPU_OK);
    CHECK(write_span(out, 100 * MIB, 0, LEAST + PART) == COGPU_OK && store.sent == 0);
    CHECK(write_span(out, 100 * MIB + LEAST + PART, 0, 1) == COGPU_OK && store.sent == 1);
    CHECK(!store.bytes[10] && !store.bytes[11] && store.bytes[12] == PART); /* 105 MiB before it */
    cogpu_out_abort(out);
    CHECK(store.aborted == 1 && store.opened == 0 && store.under_way == 0);
    clear_store();
}

static void parts_are_longer_where_files_are(void) {
    const struct file file = {
        .most = (uint64_t)200 << 30, .start = 3 * MIB, .first = 3 * MIB, .body = 60 * MIB};
    CHECK(write_file(&file) == COGPU_OK && is_right(&file));
    const uint64_t parts = ((uint64_t)200 << 30) / store.longest;
    CHECK(parts > 8500 && parts < 9500 && store.sent == 4);
    clear_store();
}

static void a_failure_leaves_no_file(void) {
    const struct file files[] = {{.start = 11 * MIB, .first = 40 * MIB, .body = 58 * MIB},
                                 {.start = 16, .first = 16, .body = MIB, .tail = 20 * MIB},
                                 {.body = 2 * MIB}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        cogpu_status status = COGPU_IO_ERROR;
        for (uint32_t call = 1; status != COGPU_OK; call++) {
            store.fails_at = call;
            status = write_file(&files[i]);
            CHECK(status == COGPU_OK || (status == COGPU_IO_ERROR && store.aborted == store.begun));
            CHECK(store.opened == 0 && store.under_way == 0 && call < 50);
            CHECK((status == COGPU_OK) == (store.object != NULL));
            clear_store();
        }
    }
}

TESTS(remote_sink) {
    for (size_t i = 0; i < sizeof bytes_of_files; i++)
        bytes_of_files[i] = (uint8_t)(i * 31 + i / 251 + i / 65521);
    RUN(objects_are_what_was_written);
    RUN(files_without_a_head);
    RUN(parts_go_up_while_more_comes);
    RUN(parts_are_longer_where_files_are);
    RUN(a_failure_leaves_no_file);
    return FINISH();
}

#else

static void the_build_says_so(void) {
    const cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .path = "s3://bucket/key"};
    cogpu_out *out = NULL;
    cogpu_error error;
    CHECK(cogpu_out_open(&sink, NULL, &out, &error) == COGPU_UNSUPPORTED && !out);
    CHECK(strstr(error.message, "libcurl"));
}

TESTS(remote_sink) {
    RUN(the_build_says_so);
    return FINISH();
}

#endif
