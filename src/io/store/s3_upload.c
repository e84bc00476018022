/* Multipart uploads: the length of parts, and the XML that begins and completes an upload. */
#include "base/checked.h"
#include "io/store/s3_internal.h"

#include <stdio.h>

enum {
    PARTS_PLANNED = 9000, /* lengths are chosen for; the rest is for parts that are not full */
    /* Twice the minimum: what is longer can be divided into parts that are not too short. */
    DEFAULT_PART_BYTES = 2 * COGPU_S3_PART_BYTES_MIN
};

static uint64_t clamp_bytes(uint64_t bytes) {
    return bytes < COGPU_S3_OBJECT_BYTES_MAX ? bytes : COGPU_S3_OBJECT_BYTES_MAX;
}

uint64_t cogpu_s3_part_bytes(uint64_t bytes) {
    const uint64_t part = divide_up(clamp_bytes(bytes), PARTS_PLANNED);
    return part > DEFAULT_PART_BYTES ? part : DEFAULT_PART_BYTES;
}

uint32_t cogpu_s3_part_count(uint64_t bytes) {
    return (uint32_t)divide_up(clamp_bytes(bytes), cogpu_s3_part_bytes(bytes));
}

cogpu_status cogpu_s3_upload_read(const char *xml, size_t bytes, char upload[COGPU_S3_UPLOAD_BYTES],
                                  cogpu_error *error) {
    const bool is_one = cogpu_s3_xml_text(xml, bytes, "InitiateMultipartUploadResult", "UploadId",
                                          false, upload, COGPU_S3_UPLOAD_BYTES);
    if (!is_one || !upload[0] || !s3_are_graphic(upload, strlen(upload)))
        return cogpu_fail(error, COGPU_IO_ERROR,
                          "the store's response to an upload's begin has no UploadId; is it "
                          "compatible with S3?");
    return COGPU_OK;
}

/* An ETag usually has quotes; a header is not trusted to be valid in XML. */
static void append_xml_escaped(s3_text *text, const char *from) {
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
    append_xml_escaped(text, part->etag);
    s3_put(text, "</ETag></Part>");
}

static cogpu_status check_parts(const cogpu_s3_part *parts, size_t count, cogpu_error *error) {
    if (count == 0 || count > COGPU_S3_PARTS_MAX)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "an upload must have between 1 and %d parts, got %zu", COGPU_S3_PARTS_MAX,
                          count);
    for (size_t i = 0; i < count; i++) {
        const uint32_t before = i ? parts[i - 1].number : 0;
        if (parts[i].number <= before || parts[i].number > COGPU_S3_PARTS_MAX)
            return cogpu_fail(
                error, COGPU_INVALID_ARGUMENT,
                "part %u of an upload follows part %u: numbers must ascend, from 1 to %d",
                parts[i].number, before, COGPU_S3_PARTS_MAX);
        const size_t bytes = strnlen(parts[i].etag, COGPU_S3_ETAG_BYTES);
        if (bytes == 0 || bytes == COGPU_S3_ETAG_BYTES || !s3_are_graphic(parts[i].etag, bytes))
            return cogpu_fail(error, COGPU_IO_ERROR, "part %u of an upload has no valid ETag",
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
    const size_t capacity = sizeof start + sizeof end + count * PART_BYTES;
    *body = cogpu_allocate(capacity);
    if (!*body)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory: %zu bytes", capacity);
    s3_text text = s3_text_in(*body, capacity);
    s3_put(&text, start);
    for (size_t i = 0; i < count; i++)
        put_part(&text, &parts[i]);
    s3_put(&text, end);
    *bytes = text.used;
    return COGPU_OK;
}

cogpu_s3_outcome cogpu_s3_complete_read(const char *xml, size_t bytes, cogpu_s3_error *document) {
    char ignored[1];
    if (cogpu_s3_error_read(xml, bytes, document))
        return COGPU_S3_FAILED;
    const bool is_done = cogpu_s3_xml_text(xml, bytes, "CompleteMultipartUploadResult", "ETag",
                                           false, ignored, sizeof ignored);
    return is_done ? COGPU_S3_DONE : COGPU_S3_UNKNOWN;
}
