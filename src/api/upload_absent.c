/* Stands in for upload.c in a build without libcurl. */
#include "base/status.h"

static cogpu_status absent(cogpu_error *error) {
    return cogpu_fail(error, COGPU_UNSUPPORTED,
                      "this build has no libcurl, which s3:// addresses need; install it and build "
                      "again");
}

cogpu_status cogpu_upload_plan(uint64_t bytes, uint64_t *part_bytes, uint32_t *parts,
                               cogpu_error *error) {
    (void)bytes, (void)part_bytes, (void)parts;
    return absent(error);
}

cogpu_status cogpu_upload_begin(const char *address, cogpu_context *context,
                                char upload[COGPU_S3_UPLOAD_BYTES], cogpu_error *error) {
    (void)address, (void)context, (void)upload;
    return absent(error);
}

cogpu_status cogpu_upload_send(const char *address, const char *upload, cogpu_context *context,
                               uint32_t number, const void *from, size_t bytes, cogpu_s3_part *part,
                               cogpu_error *error) {
    (void)address, (void)upload, (void)context, (void)number, (void)from, (void)bytes, (void)part;
    return absent(error);
}

cogpu_status cogpu_upload_complete(const char *address, const char *upload, cogpu_context *context,
                                   const cogpu_s3_part *parts, size_t count, uint64_t bytes,
                                   cogpu_error *error) {
    (void)address, (void)upload, (void)context, (void)parts, (void)count, (void)bytes;
    return absent(error);
}

void cogpu_upload_abort(const char *address, const char *upload, cogpu_context *context) {
    (void)address, (void)upload, (void)context; /* none was begun */
}
