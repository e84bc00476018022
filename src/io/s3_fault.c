/*
 * Takes the Error that a store answers with, hands on what it means: try again, or a status and a
 * message with what to do.
 *
 * Only the code and the message are shown. An Error has more: the key, the string that was signed,
 * the signature.
 */
#include "io/s3_inner.h"

#include <stdio.h>

/* Longer words than any of English, shorter than a signature. */
enum { WORD_BYTES_MAX = 40, HINT_BYTES = 128 };

static bool is_code(const char *text) {
    for (; *text; text++)
        if (!s3_is_letter(*text) && !s3_is_digit(*text) && *text != '.' && *text != '_')
            return false;
    return true;
}

/* A store may repeat what it was sent. */
static void leave_out_long_words(char *text) {
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

bool cogpu_s3_fault_read(const char *xml, size_t bytes, cogpu_s3_fault *fault) {
    *fault = (cogpu_s3_fault){0};
    if (!cogpu_s3_xml_text(xml, bytes, "Error", "Code", false, fault->code, sizeof fault->code))
        return false;
    cogpu_s3_xml_text(xml, bytes, "Error", "Message", true, fault->message, sizeof fault->message);
    cogpu_s3_xml_text(xml, bytes, "Error", "Region", false, fault->region, sizeof fault->region);
    if (!is_code(fault->code))
        fault->code[0] = '\0';
    if (!cogpu_s3_is_region(fault->region, strlen(fault->region)))
        fault->region[0] = '\0';
    if (!fault->region[0])
        find_expected_region(fault->message, fault->region);
    leave_out_long_words(fault->message);
    return true;
}

void cogpu_s3_fault_set_region(cogpu_s3_fault *fault, const char *header) {
    if (header && cogpu_s3_is_region(header, strlen(header)))
        snprintf(fault->region, sizeof fault->region, "%s", header);
}

/* ---- what it means ---- */

typedef struct meaning {
    const char *code;
    cogpu_status status;
    const char *hint; /* NULL: it passes */
} meaning;

/* Amazon's, and MinIO's where they differ. What is not here is neither. */
static const meaning meanings[] = {
    {"SlowDown", COGPU_IO, NULL},
    {"SlowDownRead", COGPU_IO, NULL},
    {"SlowDownWrite", COGPU_IO, NULL},
    {"InternalError", COGPU_IO, NULL},
    {"ServiceUnavailable", COGPU_IO, NULL},
    {"RequestTimeout", COGPU_IO, NULL},
    {"Throttling", COGPU_IO, NULL},
    {"ThrottlingException", COGPU_IO, NULL},
    {"RequestLimitExceeded", COGPU_IO, NULL},
    {"BandwidthLimitExceeded", COGPU_IO, NULL},
    {"OperationAborted", COGPU_IO, NULL},
    {"NoSuchKey", COGPU_ABSENT, ""},
    {"NoSuchBucket", COGPU_ABSENT, "; check the bucket's name and the endpoint"},
    {"NoSuchUpload", COGPU_IO, "; the upload was completed or aborted by somebody"},
    {"AccessDenied", COGPU_IO,
     "; these credentials may not do this, or there is no such key and they may not list"},
    {"AllAccessDisabled", COGPU_IO, "; check the bucket's name"},
    {"SignatureDoesNotMatch", COGPU_IO, "; check the secret key"},
    {"InvalidAccessKeyId", COGPU_IO, "; check the access key and the endpoint"},
    {"ExpiredToken", COGPU_IO, "; get new credentials"},
    {"InvalidToken", COGPU_IO, "; check the session token"},
    {"RequestTimeTooSkewed", COGPU_IO, "; set this computer's clock"},
    {"InvalidObjectState", COGPU_IO, "; the object is archived: restore it first"},
    {"PermanentRedirect", COGPU_IO, "; set the bucket's region (AWS_REGION) or the endpoint"},
    {"AuthorizationHeaderMalformed", COGPU_IO, "; set the bucket's region (AWS_REGION)"},
    {"IllegalLocationConstraintException", COGPU_IO, "; set the bucket's region (AWS_REGION)"},
};

static const meaning *find_meaning(const char *code) {
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (strcmp(code, meanings[i].code) == 0)
            return &meanings[i];
    return NULL;
}

bool cogpu_s3_fault_passes(const cogpu_s3_fault *fault) {
    const meaning *found = find_meaning(fault->code);
    return found && !found->hint;
}

/* Where it was a matter of the region, the store said which. */
static const char *hint_of(const meaning *found, const char *region, char room[HINT_BYTES]) {
    if (!found || !found->hint)
        return "";
    if (!*region || !strstr(found->hint, "AWS_REGION"))
        return found->hint;
    snprintf(room, HINT_BYTES, "; the bucket is in %s: set AWS_REGION", region);
    return room;
}

cogpu_status cogpu_s3_fault_fail(const cogpu_s3_fault *fault, long http_status,
                                 cogpu_error *error) {
    const meaning *found = find_meaning(fault->code);
    char room[HINT_BYTES];
    const cogpu_status status = found                ? found->status
                                : http_status == 404 ? COGPU_ABSENT
                                                     : COGPU_IO;
    const bool is_elsewhere = http_status == 301 && *fault->region;
    if (!*fault->code && is_elsewhere)
        return cogpu_fail(error, status,
                          "the store answered %ld: the bucket is in %s: set AWS_REGION",
                          http_status, fault->region);
    if (!*fault->code)
        return cogpu_fail(error, status, "the store answered %ld and did not say why", http_status);
    return cogpu_fail(error, status, "the store answered %ld %s%s%.80s%s", http_status, fault->code,
                      *fault->message ? ": " : "", fault->message,
                      hint_of(found, fault->region, room));
}
