/*
 * XML documents of a store: errors, hostile ones too, and the steps of a multipart upload.
 */
#include "unit/io/s3_test.h"

static cogpu_error error;

/* ---- what a store says ---- */

static cogpu_s3_error document;

/* In memory of its exact size, so that a read past its end is seen. */
static bool read_error(const char *xml) {
    const size_t bytes = strlen(xml);
    char *copy = malloc(bytes ? bytes : 1);
    CHECK(copy != NULL);
    if (!copy)
        return false;
    memcpy(copy, xml, bytes);
    const bool is_one = cogpu_s3_error_read(copy, bytes, &document);
    free(copy);
    return is_one;
}

#define AN_ERROR(code) "<Error><Code>" code "</Code></Error>"

static void test_error_documents_are_read(void) {
    CHECK(read_error("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>NoSuchKey</Code>"
                     "<Message>The specified key does not exist.</Message><Key>a</Key>"
                     "<RequestId>1</RequestId></Error>"));
    CHECK_TEXT(document.code, "NoSuchKey");
    CHECK_TEXT(document.message, "The specified key does not exist.");
    CHECK_TEXT(document.region, "");
    CHECK(read_error("\n  \n<!-- <Error/> --><Error xmlns='u' >\n<Other><Code>Inner</Code></Other>"
                     "<Code/>\n<Code>\n A.B_1\n</Code><Code>Second</Code>"
                     "<Message>a &lt;b&gt; &amp;amp; &quot;&apos;&#65;&#x42;&nbsp;&#0;&#xE9;"
                     "<i>c</i><![CDATA[<d> &lt;]]></Message></Error>"));
    CHECK_TEXT(document.code, "A.B_1");
    CHECK_TEXT(document.message, "a <b> &amp; \"'AB&nbsp;&#0;?c<d> &lt;");
    /* Cut off behind what matters. */
    CHECK(read_error("<Error><Code>SlowDown</Code><Message>Please"));
    CHECK_TEXT(document.code, "SlowDown");
    CHECK_TEXT(document.message, "");
    CHECK(read_error("<Error>"));
    CHECK_TEXT(document.code, "");
}

static void test_documents_without_errors(void) {
    static const char *const others[] = {
        "",
        " ",
        "<",
        "<>",
        "</Error>",
        "<Error",
        "<Error/>",
        "Error",
        "<html><Error><Code>SlowDown</Code></Error></html>",
        "<Errors><Code>SlowDown</Code></Errors>",
        "<!DOCTYPE Error [<!ENTITY a \"b\">]>" AN_ERROR("&a;"),
        "<!-- " AN_ERROR("SlowDown"),
        "<?xml " AN_ERROR("SlowDown"),
        "<![CDATA[x]]>" AN_ERROR("SlowDown"),
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK(!read_error(others[i]));
    CHECK(!document.code[0] && !document.message[0] && !document.region[0]);
}

static void test_hostile_documents(void) {
    char xml[1024];
    CHECK(read_error(AN_ERROR("a b")) && !document.code[0]);
    CHECK(read_error(AN_ERROR("a&#10;b")) && !document.code[0]);
    CHECK(read_error(AN_ERROR("a%sb")) && !document.code[0]);
    CHECK(read_error(AN_ERROR("\xc3\xa9")) && !document.code[0]);
    memset(xml, 'a', sizeof xml);
    memcpy(xml, "<Error><Code>", 13);
    memcpy(xml + 13 + 64, "</Code>", 8);
    CHECK(read_error(xml) && !document.code[0]);
    memmove(xml + 13 + 63, xml + 13 + 64, 8);
    CHECK(read_error(xml) && strlen(document.code) == 63);
    CHECK(read_error("<Error><Message>a\x1b[31m\r\n\x7f\xff&#27;b</Message></Error>"));
    CHECK_TEXT(document.message, "a [31m  ?? b");
    static const char with_nul[] = "<Error><Message>a\0b</Message></Error>";
    CHECK(cogpu_s3_error_read(with_nul, sizeof with_nul - 1, &document));
    CHECK_TEXT(document.message, "a b");
    /* What was sent comes back: a signature, a token. */
    CHECK(read_error("<Error><Message>you sent 0123456789012345678901234567890123456789" MARK
                     " and " MARK "01234567890123456789012345678901234567890123456789</Message>"
                     "<SignatureProvided>" MARK "</SignatureProvided></Error>"));
    CHECK_TEXT(document.message, "you sent ... and ...");
}

/* No stack grows with it. */
static void test_deep_documents(void) {
    enum { LEVELS = 1 << 20 };
    static char xml[3 * LEVELS + 64] = "<Error>";
    for (size_t i = 0; i < LEVELS; i++)
        memcpy(xml + 7 + 3 * i, "<a>", 3);
    memcpy(xml + 7 + 3 * LEVELS, "<Code>X</Code></a><Code>Y</Code>", 33);
    CHECK(read_error(xml));
    CHECK_TEXT(document.code, "");
}

static void test_long_messages_are_cut(void) {
    char xml[1024] = "<Error><Message>";
    for (int i = 0; i < 60; i++)
        strcat(xml, "word ");
    strcat(xml, "</Message></Error>");
    CHECK(read_error(xml));
    CHECK(strlen(document.message) >= sizeof document.message - 2);
}

static void test_temporary_errors(void) {
    static const char *const passing[] = {AN_ERROR("SlowDown"), AN_ERROR("InternalError"),
                                          AN_ERROR("RequestTimeout"),
                                          AN_ERROR("ServiceUnavailable")};
    static const char *const staying[] = {AN_ERROR("RequestTimeTooSkewed"),
                                          AN_ERROR("NoSuchKey"),
                                          AN_ERROR("AccessDenied"),
                                          AN_ERROR("slowdown"),
                                          AN_ERROR("Unheard"),
                                          "<Error></Error>"};
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        CHECK(read_error(passing[i]) && cogpu_s3_error_is_transient(&document));
    for (size_t i = 0; i < sizeof staying / sizeof *staying; i++)
        CHECK(read_error(staying[i]) && !cogpu_s3_error_is_transient(&document));
}

static void test_regions_in_error_documents(void) {
    CHECK(read_error("<Error><Code>AuthorizationHeaderMalformed</Code><Message>m</Message>"
                     "<Region>eu-west-1</Region></Error>"));
    CHECK_TEXT(document.region, "eu-west-1");
    CHECK_FAILS(cogpu_s3_error_report(&document, 400, &error), COGPU_IO_ERROR,
                "400 AuthorizationHeaderMalformed: m; the bucket is in eu-west-1: set AWS_REGION");
    CHECK(read_error("<Error><Code>AuthorizationHeaderMalformed</Code><Message>The authorization "
                     "header is malformed; the region 'us-east-1' is wrong; expecting "
                     "'eu-west-2'</Message></Error>"));
    CHECK_TEXT(document.region, "eu-west-2");
    CHECK(read_error("<Error><Message>expecting 'a b'</Message><Region>c.d</Region></Error>"));
    CHECK_TEXT(document.region, "");
    CHECK(read_error("<Error><Message>expecting '</Message></Error>") && !document.region[0]);
    /* A region, and no code. */
    CHECK(read_error("<Error><Region>eu-west-3</Region></Error>"));
    CHECK_FAILS(cogpu_s3_error_report(&document, 301, &error), COGPU_IO_ERROR,
                "is in eu-west-3: set");
}

static void test_error_documents_as_errors(void) {
    CHECK(read_error("<Error><Code>NoSuchKey</Code><Message>No.</Message></Error>"));
    CHECK_FAILS(cogpu_s3_error_report(&document, 404, &error), COGPU_NOT_FOUND,
                "404 NoSuchKey: No.");
    CHECK(read_error(AN_ERROR("NoSuchBucket")));
    CHECK_FAILS(cogpu_s3_error_report(&document, 404, &error), COGPU_NOT_FOUND,
                "404 NoSuchBucket; check");
    CHECK(read_error(AN_ERROR("NoSuchUpload")));
    CHECK_FAILS(cogpu_s3_error_report(&document, 404, &error), COGPU_IO_ERROR, "aborted");
    CHECK(read_error(AN_ERROR("AccessDenied")));
    CHECK_FAILS(cogpu_s3_error_report(&document, 403, &error), COGPU_IO_ERROR,
                "403 AccessDenied; these");
    CHECK(read_error(AN_ERROR("SignatureDoesNotMatch")));
    CHECK_FAILS(cogpu_s3_error_report(&document, 403, &error), COGPU_IO_ERROR, "the secret key");
    CHECK(read_error(AN_ERROR("PermanentRedirect")));
    CHECK_FAILS(cogpu_s3_error_report(&document, 301, &error), COGPU_IO_ERROR,
                "region (AWS_REGION)");
    CHECK(read_error(AN_ERROR("SlowDown")));
    CHECK_FAILS(cogpu_s3_error_report(&document, 503, &error), COGPU_IO_ERROR, "503 SlowDown");
    CHECK(read_error("<Error></Error>"));
    CHECK_FAILS(cogpu_s3_error_report(&document, 404, &error), COGPU_NOT_FOUND, "404");
    CHECK_FAILS(cogpu_s3_error_report(&document, 403, &error), COGPU_IO_ERROR, "403");
}

/* ---- uploads ---- */

static cogpu_status read_upload(const char *xml, char upload[COGPU_S3_UPLOAD_BYTES]) {
    return cogpu_s3_upload_read(xml, strlen(xml), upload, &error);
}

static void test_ids_of_uploads(void) {
    char upload[COGPU_S3_UPLOAD_BYTES];
#define BEGUN(id)                                                                                  \
    "<InitiateMultipartUploadResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"            \
    "<Bucket>b</Bucket><Key>UploadId</Key><UploadId>" id "</UploadId>"                             \
    "</InitiateMultipartUploadResult>"
    CHECK(read_upload(BEGUN("VXBsb2Fk.-_~&amp;x="), upload) == COGPU_OK);
    CHECK_TEXT(upload, "VXBsb2Fk.-_~&x=");
    CHECK_FAILS(read_upload(BEGUN(""), upload), COGPU_IO_ERROR, "no UploadId");
    CHECK_FAILS(read_upload(BEGUN("a&#10;b"), upload), COGPU_IO_ERROR, "no UploadId");
    CHECK_FAILS(read_upload(BEGUN("a b"), upload), COGPU_IO_ERROR, "no UploadId");
    CHECK_FAILS(read_upload(AN_ERROR("SlowDown"), upload), COGPU_IO_ERROR, "no UploadId");
    CHECK_FAILS(read_upload("", upload), COGPU_IO_ERROR, "no UploadId");
    char xml[COGPU_S3_UPLOAD_BYTES + 200] = "<InitiateMultipartUploadResult><UploadId>";
    const size_t start = strlen(xml);
    memset(xml + start, 'i', COGPU_S3_UPLOAD_BYTES);
    strcpy(xml + start + COGPU_S3_UPLOAD_BYTES - 1, "</UploadId>");
    CHECK(read_upload(xml, upload) == COGPU_OK && strlen(upload) == COGPU_S3_UPLOAD_BYTES - 1);
    xml[start + COGPU_S3_UPLOAD_BYTES - 1] = 'i';
    strcpy(xml + start + COGPU_S3_UPLOAD_BYTES, "</UploadId>");
    CHECK_FAILS(read_upload(xml, upload), COGPU_IO_ERROR, "no UploadId");
}

static void test_lists_of_parts(void) {
    cogpu_s3_part parts[] = {{sizeof(cogpu_s3_part), 1, "\"a1\""},
                             {sizeof(cogpu_s3_part), 3, "b<&>"},
                             {sizeof(cogpu_s3_part), 10000, "c"}};
    char *body = NULL;
    size_t bytes = 0;
    CHECK(cogpu_s3_complete_write(parts, 3, &body, &bytes, &error) == COGPU_OK);
    CHECK_TEXT(body, "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                     "<Part><PartNumber>1</PartNumber><ETag>&quot;a1&quot;</ETag></Part>"
                     "<Part><PartNumber>3</PartNumber><ETag>b&lt;&amp;&gt;</ETag></Part>"
                     "<Part><PartNumber>10000</PartNumber><ETag>c</ETag></Part>"
                     "</CompleteMultipartUpload>");
    CHECK(body && bytes == strlen(body));
    cogpu_release(body);
    memset(parts[2].etag, '"', sizeof parts[2].etag - 1);
    CHECK(cogpu_s3_complete_write(parts + 2, 1, &body, &bytes, &error) == COGPU_OK);
    const char end[] = "&quot;</ETag></Part></CompleteMultipartUpload>";
    CHECK_TEXT(body + bytes - strlen(end), end);
    cogpu_release(body);
    parts[2].etag[COGPU_S3_ETAG_BYTES - 1] = '"';
    CHECK_FAILS(cogpu_s3_complete_write(parts, 3, &body, &bytes, &error), COGPU_IO_ERROR,
                "part 10000");
    snprintf(parts[2].etag, sizeof parts[2].etag, "a\nb");
    CHECK_FAILS(cogpu_s3_complete_write(parts, 3, &body, &bytes, &error), COGPU_IO_ERROR,
                "part 10000");
    parts[2].etag[0] = '\0';
    CHECK_FAILS(cogpu_s3_complete_write(parts, 3, &body, &bytes, &error), COGPU_IO_ERROR,
                "part 10000");
    parts[1].number = 1;
    CHECK_FAILS(cogpu_s3_complete_write(parts, 2, &body, &bytes, &error), COGPU_INVALID_ARGUMENT,
                "part 1 of an upload follows part 1");
    parts[0].number = 0;
    CHECK_FAILS(cogpu_s3_complete_write(parts, 1, &body, &bytes, &error), COGPU_INVALID_ARGUMENT,
                "part 0");
    parts[0].number = 10001;
    CHECK_FAILS(cogpu_s3_complete_write(parts, 1, &body, &bytes, &error), COGPU_INVALID_ARGUMENT,
                "10001");
    CHECK_FAILS(cogpu_s3_complete_write(parts, 0, &body, &bytes, &error), COGPU_INVALID_ARGUMENT,
                "got 0");
    CHECK_FAILS(cogpu_s3_complete_write(parts, 10001, &body, &bytes, &error),
                COGPU_INVALID_ARGUMENT, "got 10001");
}

static cogpu_s3_outcome read_outcome(const char *xml) {
    return cogpu_s3_complete_read(xml, strlen(xml), &document);
}

static void test_ends_of_uploads(void) {
    CHECK(read_outcome("<?xml version=\"1.0\"?>\n  \n <CompleteMultipartUploadResult xmlns=\"u\">"
                       "<ETag>\"e-2\"</ETag></CompleteMultipartUploadResult>") == COGPU_S3_DONE);
    CHECK(read_outcome("<?xml version=\"1.0\"?>\n  \n" AN_ERROR("InternalError")) ==
          COGPU_S3_FAILED);
    CHECK_TEXT(document.code, "InternalError");
    CHECK(read_outcome("<?xml version=\"1.0\"?>\n   \n") == COGPU_S3_UNKNOWN);
    CHECK(read_outcome("") == COGPU_S3_UNKNOWN);
    CHECK(read_outcome("<html>CompleteMultipartUploadResult</html>") == COGPU_S3_UNKNOWN);
}

TESTS(s3_xml) {
    RUN(test_error_documents_are_read);
    RUN(test_documents_without_errors);
    RUN(test_hostile_documents);
    RUN(test_deep_documents);
    RUN(test_long_messages_are_cut);
    RUN(test_temporary_errors);
    RUN(test_regions_in_error_documents);
    RUN(test_error_documents_as_errors);
    RUN(test_ids_of_uploads);
    RUN(test_lists_of_parts);
    RUN(test_ends_of_uploads);
    return FINISH();
}
