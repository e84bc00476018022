/*
 * Error documents of a store: whether to retry, and a status and message with what to do.
 *
 * Only the code and the message are shown. The document has more, which is secret: the key, the
 * string that was signed, the signature.
 */
#include "base/text.h"
#include "io/store/s3_internal.h"

#include <stdio.h>

/* Longer than any English word, shorter than a signature. */
enum { WORD_BYTES_MAX = 40, HINT_BYTES = 128 };

static bool is_code(const char *text) {
    for (; *text; text++)
        if (!ascii_is_letter(*text) && !ascii_is_digit(*text) && *text != '.' && *text != '_')
            return false;
    return true;
}

/* A store may echo what it was sent. */
static void remove_long_words(char *text) {
    size_t written = 0;
    for (size_t i = 0, bytes; text[i]; i += bytes) {
        bytes = strcspn(text + i, " ");
        bytes = bytes ? bytes : 1;
        const bool is_long = bytes > WORD_BYTES_MAX;
        memmove(text + written, is_long ? "..." : text + i, is_long ? 3 : bytes);
        written += is_long ? 3 : bytes;
    }
    text[written] = '\0';
}

/* AuthorizationHeaderMalformed: "the region 'a' is wrong; expecting 'b'". */
static void find_expected_region(const char *message, char region[COGPU_S3_REGION_BYTES]) {
    static const char word[] = "expecting '";
    const char *at = strstr(message, word);
    const size_t bytes = at ? strcspn(at + sizeof word - 1, "'") : 0;
    if (at && cogpu_s3_is_region(at + sizeof word - 1, bytes)) {
        memcpy(region, at + sizeof word - 1, bytes);
        region[bytes] = '\0';
    }
}

bool cogpu_s3_error_read(const char *xml, size_t bytes, cogpu_s3_error *document) {
    *document = (cogpu_s3_error){0};
    if (!cogpu_s3_xml_text(xml, bytes, "Error", "Code", false, document->code,
                           sizeof document->code))
        return false;
    cogpu_s3_xml_text(xml, bytes, "Error", "Message", true, document->message,
                      sizeof document->message);
    cogpu_s3_xml_text(xml, bytes, "Error", "Region", false, document->region,
                      sizeof document->region);
    if (!is_code(document->code))
        document->code[0] = '\0';
    if (!cogpu_s3_is_region(document->region, strlen(document->region)))
        document->region[0] = '\0';
    if (!document->region[0])
        find_expected_region(document->message, document->region);
    remove_long_words(document->message);
    return true;
}

/* ---- meaning ---- */

typedef struct meaning {
    const char *code;
    cogpu_status status;
    const char *hint; /* NULL: transient */
} meaning;

/* Codes of Amazon, and of MinIO if they differ. Other codes are not transient. */
static const meaning meanings[] = {
    {"SlowDown", COGPU_IO_ERROR, NULL},
    {"SlowDownRead", COGPU_IO_ERROR, NULL},
    {"SlowDownWrite", COGPU_IO_ERROR, NULL},
    {"InternalError", COGPU_IO_ERROR, NULL},
    {"ServiceUnavailable", COGPU_IO_ERROR, NULL},
    {"RequestTimeout", COGPU_IO_ERROR, NULL},
    {"Throttling", COGPU_IO_ERROR, NULL},
    {"ThrottlingException", COGPU_IO_ERROR, NULL},
    {"RequestLimitExceeded", COGPU_IO_ERROR, NULL},
    {"BandwidthLimitExceeded", COGPU_IO_ERROR, NULL},
    {"OperationAborted", COGPU_IO_ERROR, NULL},
    {"NoSuchKey", COGPU_NOT_FOUND, ""},
    {"NoSuchBucket", COGPU_NOT_FOUND, "; check the bucket's name and the endpoint"},
    {"NoSuchUpload", COGPU_IO_ERROR, "; the upload was completed or aborted by another process"},
    {"AccessDenied", COGPU_IO_ERROR,
     "; these credentials lack the permission, or the key does not exist and they may not list"},
    {"AllAccessDisabled", COGPU_IO_ERROR, "; check the bucket's name"},
    {"SignatureDoesNotMatch", COGPU_IO_ERROR, "; check the secret key"},
    {"InvalidAccessKeyId", COGPU_IO_ERROR, "; check the access key and the endpoint"},
    {"ExpiredToken", COGPU_IO_ERROR, "; get new credentials"},
    {"InvalidToken", COGPU_IO_ERROR, "; check the session token"},
    {"RequestTimeTooSkewed", COGPU_IO_ERROR, "; set this computer's clock"},
    {"InvalidObjectState", COGPU_IO_ERROR, "; the object is archived: restore it first"},
    {"PermanentRedirect", COGPU_IO_ERROR, "; set the bucket's region (AWS_REGION) or the endpoint"},
    {"AuthorizationHeaderMalformed", COGPU_IO_ERROR, "; set the bucket's region (AWS_REGION)"},
    {"IllegalLocationConstraintException", COGPU_IO_ERROR,
     "; set the bucket's region (AWS_REGION)"},
};

static const meaning *find_meaning(const char *code) {
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (strcmp(code, meanings[i].code) == 0)
            return &meanings[i];
    return NULL;
}

bool cogpu_s3_error_is_transient(const cogpu_s3_error *document) {
    const meaning *known = find_meaning(document->code);
    return known && !known->hint;
}

/* If the region was wrong, the store has named the right one. */
static const char *choose_hint(const meaning *known, const char *region, char text[HINT_BYTES]) {
    if (!known || !known->hint)
        return "";
    if (!*region || !strstr(known->hint, "AWS_REGION"))
        return known->hint;
    snprintf(text, HINT_BYTES, "; the bucket is in %s: set AWS_REGION", region);
    return text;
}

cogpu_status cogpu_s3_error_report(const cogpu_s3_error *document, long http_status,
                                   cogpu_error *error) {
    const meaning *known = find_meaning(document->code);
    const char *region = document->region;
    char hint[HINT_BYTES];
    const cogpu_status status = known                ? known->status
                                : http_status == 404 ? COGPU_NOT_FOUND
                                                     : COGPU_IO_ERROR;
    if (!*document->code && http_status == 301 && *region)
        return cogpu_fail(error, status,
                          "the store responded with %ld: the bucket is in %s: set AWS_REGION",
                          http_status, region);
    if (!*document->code)
        return cogpu_fail(error, status, "the store responded with %ld, without a reason",
                          http_status);
    return cogpu_fail(error, status, "the store responded with %ld %s%s%.80s%s", http_status,
                      document->code, *document->message ? ": " : "", document->message,
                      choose_hint(known, region, hint));
}
