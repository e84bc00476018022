/*
 * Takes what a store says of an upload in parts, hands on its id and how it ended; and takes its
 * parts, hands on the list of them that completes it. And how long parts are.
 */
#include "base/checked.h"
#include "io/s3_inner.h"

#include <stdio.h>

enum {
    PARTS_PLANNED = 9000, /* that sizes are chosen for; the rest is for what is not full */
    /* Twice the least: what is longer can be divided into parts that are none too short. */
    USUAL_BYTES = 2 * COGPU_S3_PART_BYTES_MIN
};

static uint64_t bounded(uint64_t bytes) {
    return bytes < COGPU_S3_OBJECT_BYTES_MAX ? bytes : COGPU_S3_OBJECT_BYTES_MAX;
}

uint64_t cogpu_s3_part_bytes(uint64_t bytes) {
    const uint64_t part = divide_up(bounded(bytes), PARTS_PLANNED);
    return part > USUAL_BYTES ? part : USUAL_BYTES;
}

uint32_t cogpu_s3_part_count(uint64_t bytes) {
    return (uint32_t)divide_up(bounded(bytes), cogpu_s3_part_bytes(bytes));
}

cogpu_status cogpu_s3_upload_read(const char *xml, size_t bytes, char upload[COGPU_S3_UPLOAD_BYTES],
                                  cogpu_error *error) {
    const bool is_one = cogpu_s3_xml_text(xml, bytes, "InitiateMultipartUploadResult", "UploadId",
                                          false, upload, COGPU_S3_UPLOAD_BYTES);
    if (!is_one || !upload[0] || !s3_are_graphic(upload, strlen(upload)))
        return cogpu_fail(error, COGPU_IO,
                          "the store's answer to the beginning of an upload has no UploadId; is "
                          "it a store that speaks as S3 does?");
    return COGPU_OK;
}

/* An ETag has quotes, as a rule; what a header had is not trusted to be XML. */
static void put_escaped(s3_text *text, const char *from) {
    for (; *from; from++) {
        const char *word = *from == '"'   ? "&quot;"
                           : *from == '&' ? "&amp;"
                           : *from == '<' ? "&lt;"
                           : *from == '>' ? "&gt;"
                                          : NULL;
        if (word)
            s3_put(text, word);
        else
            s3_put_bytes(text, from, 1);
    }
}

static void put_part(s3_text *text, const cogpu_s3_part *part) {
    char number[32];
    snprintf(number, sizeof number, "%u", part->number);
    s3_put(text, "<Part><PartNumber>");
    s3_put(text, number);
    s3_put(text, "</PartNumber><ETag>");
    put_escaped(text, part->etag);
    s3_put(text, "</ETag></Part>");
}

static cogpu_status check_parts(const cogpu_s3_part *parts, size_t count, cogpu_error *error) {
    if (count == 0 || count > COGPU_S3_PARTS_MAX)
        return cogpu_fail(error, COGPU_ARGUMENT, "an upload has 1 to %d parts, not %zu",
                          COGPU_S3_PARTS_MAX, count);
    for (size_t i = 0; i < count; i++) {
        const uint32_t before = i ? parts[i - 1].number : 0;
        if (parts[i].number <= before || parts[i].number > COGPU_S3_PARTS_MAX)
            return cogpu_fail(error, COGPU_ARGUMENT,
                              "part %u of an upload follows part %u: they go up, from 1 to %d",
                              parts[i].number, before, COGPU_S3_PARTS_MAX);
        const size_t bytes = strnlen(parts[i].etag, COGPU_S3_ETAG_BYTES);
        if (bytes == 0 || bytes == COGPU_S3_ETAG_BYTES || !s3_are_graphic(parts[i].etag, bytes))
            return cogpu_fail(error, COGPU_IO, "the store gave part %u of an upload no sound ETag",
                              parts[i].number);
    }
    return COGPU_OK;
}

cogpu_status cogpu_s3_complete_write(const cogpu_s3_part *parts, size_t count, char **body,
                                     size_t *bytes, cogpu_error *error) {
    static const char start[] = "<CompleteMultipartUpload "
                                "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
    static const char end[] = "</CompleteMultipartUpload>";
    enum { PART_BYTES = 64 + 6 * COGPU_S3_ETAG_BYTES };
    TRY(check_parts(parts, count, error));
    const size_t room = sizeof start + sizeof end + count * PART_BYTES;
    *body = cogpu_allocate(room);
    if (!*body)
        return cogpu_fail(error, COGPU_MEMORY, "out of memory: %zu bytes", room);
    s3_text text = s3_text_in(*body, room);
    s3_put(&text, start);
    for (size_t i = 0; i < count; i++)
        put_part(&text, &parts[i]);
    s3_put(&text, end);
    *bytes = text.used;
    return COGPU_OK;
}

cogpu_s3_outcome cogpu_s3_complete_read(const char *xml, size_t bytes, cogpu_s3_fault *fault) {
    char ignored[1];
    if (cogpu_s3_fault_read(xml, bytes, fault))
        return COGPU_S3_FAILED;
    const bool is_done = cogpu_s3_xml_text(xml, bytes, "CompleteMultipartUploadResult", "ETag",
                                           false, ignored, sizeof ignored);
    return is_done ? COGPU_S3_DONE : COGPU_S3_UNKNOWN;
}
