/* Input: the body of a store's response. What is parsed of it can be shown, sent and signed. */
#include "io/store/s3.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t capacity, char first) {
    if (strnlen(text, capacity) == capacity)
        abort();
    for (; *text; text++)
        if (*text < first || *text > '~')
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char upload[COGPU_S3_UPLOAD_BYTES], query[COGPU_S3_QUERY_BYTES];
    cogpu_s3_error document;
    cogpu_error error;
    char *xml = malloc(size ? size : 1); /* of its exact size, so that ASan sees an overrun */
    if (!xml)
        return 0;
    memcpy(xml, data, size);
    const bool is_error = cogpu_s3_error_read(xml, size, &document);
    check_text(document.code, sizeof document.code, '!');
    check_text(document.message, sizeof document.message, ' ');
    check_text(document.region, sizeof document.region, '!');
    const bool is_upload = cogpu_s3_upload_read(xml, size, upload, &error) == COGPU_OK;
    check_text(upload, sizeof upload, ' ');
    if (is_upload) {
        cogpu_s3_query(1, upload, query);
        check_text(query, sizeof query, '!');
    }
    if (is_error != (cogpu_s3_complete_read(xml, size, &document) == COGPU_S3_FAILED) ||
        (is_error && is_upload))
        abort();
    cogpu_s3_error_report(&document, 500, &error);
    check_text(error.message, sizeof error.message, ' ');
    free(xml);
    return 0;
}
