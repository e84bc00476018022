/* Input: the body of a store's answer. What is read of it can be shown, sent and signed. */
#include "io/s3.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text, size_t room, char first) {
    if (strnlen(text, room) == room)
        abort();
    for (; *text; text++)
        if (*text < first || *text > '~')
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char upload[COGPU_S3_UPLOAD_BYTES], query[COGPU_S3_QUERY_BYTES];
    cogpu_s3_fault fault;
    cogpu_error error;
    char *xml = malloc(size ? size : 1); /* so that a read past the end is seen */
    if (!xml)
        return 0;
    memcpy(xml, data, size);
    const bool is_fault = cogpu_s3_fault_read(xml, size, &fault);
    check(fault.code, sizeof fault.code, '!');
    check(fault.message, sizeof fault.message, ' ');
    check(fault.region, sizeof fault.region, '!');
    const bool is_upload = cogpu_s3_upload_read(xml, size, upload, &error) == COGPU_OK;
    check(upload, sizeof upload, ' ');
    if (is_upload) {
        cogpu_s3_query(1, upload, query);
        check(query, sizeof query, '!');
    }
    if (is_fault != (cogpu_s3_complete_read(xml, size, &fault) == COGPU_S3_FAILED) ||
        (is_fault && is_upload))
        abort();
    cogpu_s3_fault_fail(&fault, 500, &error);
    check(error.message, sizeof error.message, ' ');
    free(xml);
    return 0;
}
