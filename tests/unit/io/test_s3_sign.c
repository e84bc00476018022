/*
 * Signatures of S3 (version 4): those of Amazon's documentation and of botocore.
 */
#include "unit/io/s3_test.h"

static cogpu_s3_location location;
static cogpu_s3_credentials credentials;

#define DOCUMENTED_KEY    "AKIAIOSFODNN7EXAMPLE"
#define DOCUMENTED_SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define EMPTY_SUM         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC_SUM           "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

enum { DOCUMENTED_TIME = 1369353600 }; /* 2013-05-24T00:00:00Z */

static cogpu_s3_headers headers;

static void set_location(const char *url, const char *region) {
    const char *host = strstr(url, "://") + 3;
    snprintf(location.url, sizeof location.url, "%s", url);
    snprintf(location.region, sizeof location.region, "%s", region);
    snprintf(location.host, sizeof location.host, "%.*s", (int)strcspn(host, "/"), host);
    location.path = (size_t)(host - url) + strlen(location.host);
}

static void set_credentials(const char *secret, const char *token) {
    credentials = (cogpu_s3_credentials){.access_key = DOCUMENTED_KEY};
    snprintf(credentials.secret_key, sizeof credentials.secret_key, "%s", secret);
    snprintf(credentials.session_token, sizeof credentials.session_token, "%s", token);
}

static void check_signature(const char *method, const char *query, const char *body,
                            const char *payload, const char *signature) {
    char expected[512];
    const bool has_token = credentials.session_token[0];
    cogpu_http_call request = {method, query, body, strlen(body)};
    cogpu_s3_sign(&location, &credentials, &request, DOCUMENTED_TIME, &headers);
    CHECK(headers.count == (has_token ? 4 : 3));
    CHECK_TEXT(headers.lines[0], "x-amz-date: 20130524T000000Z");
    snprintf(expected, sizeof expected, "x-amz-content-sha256: %s", payload);
    CHECK_TEXT(headers.lines[1], expected);
    snprintf(expected, sizeof expected,
             "Authorization: AWS4-HMAC-SHA256 Credential=" DOCUMENTED_KEY
             "/20130524/%s/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date%s, "
             "Signature=%s",
             location.region, has_token ? ";x-amz-security-token" : "", signature);
    CHECK_TEXT(headers.lines[2], expected);
    if (has_token) {
        snprintf(expected, sizeof expected, "x-amz-security-token: %.100s",
                 credentials.session_token);
        CHECK_TEXT(headers.lines[3], expected);
    }
}

static void test_documented_signatures(void) {
    set_credentials(DOCUMENTED_SECRET, "");
    set_location("https://examplebucket.s3.amazonaws.com/", "us-east-1");
    check_signature("GET", "lifecycle=", "", EMPTY_SUM,
                    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    check_signature("GET", "max-keys=2&prefix=J", "", EMPTY_SUM,
                    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void test_signatures_of_botocore(void) {
    set_credentials(DOCUMENTED_SECRET, "tok/en+==");
    set_location("https://examplebucket.s3.eu-west-1.amazonaws.com/a%20b%2Bc/%C3%A9//x~y%28",
                 "eu-west-1");
    check_signature("GET", "", "", EMPTY_SUM,
                    "e6a57c72b631d5548a7a3fbb560bed35cbb120f7ccb40f4e2046e20259c6eae9");
    set_credentials(DOCUMENTED_SECRET, "");
    set_location("http://localhost:9000/examplebucket/key", "us-east-1");
    check_signature("POST", "uploads=", "", EMPTY_SUM,
                    "f84b4373941471452fbf0ba35bf0863a7236ab2547464aa8559fb9eb814983fd");
    /* A secret that is longer than a block of the hash. */
    char secret[101] = "";
    memset(secret, 's', 100);
    set_credentials(secret, "");
    check_signature("POST", "uploadId=x", "abc", ABC_SUM,
                    "13cd73c7ecc0a41240709e835827034eca55ec2250d12b260e4403079547e86f");
}

static void test_a_body_over_tls_is_not_hashed(void) {
    set_credentials(DOCUMENTED_SECRET, "");
    set_location("https://storage.googleapis.com/examplebucket/key", "auto");
    check_signature("PUT", "partNumber=7&uploadId=a.b-c_d~e%2F%3D", "abc", "UNSIGNED-PAYLOAD",
                    "1dfa7dae765cd3407eb8e749c7afaee71259b321d29d855e0a068efeaf937de3");
}

/* Of FIPS 180-4, around the length that a last block has room for, and long. */
static void test_hashes_of_bodies(void) {
    static char million[1000000];
    static const struct {
        const char *body;
        size_t bytes;
        const char *sum;
    } cases[] = {
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {million, 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {million, 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {million, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    memset(million, 'a', sizeof million);
    set_credentials(DOCUMENTED_SECRET, "");
    set_location("http://host/bucket/key", "us-east-1");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cogpu_http_call request = {"PUT", "", cases[i].body, cases[i].bytes};
        cogpu_s3_sign(&location, &credentials, &request, DOCUMENTED_TIME, &headers);
        CHECK_TEXT(headers.lines[1] + strlen("x-amz-content-sha256: "), cases[i].sum);
    }
}

static void test_headers_of_the_longest_and_of_anonymous_requests(void) {
    cogpu_http_call request = {"GET", "", NULL, 0};
    memset(&credentials, 'k', sizeof credentials);
    credentials.is_anonymous = false;
    credentials.access_key[COGPU_S3_KEY_BYTES - 1] =
        credentials.secret_key[COGPU_S3_KEY_BYTES - 1] = '\0';
    credentials.session_token[COGPU_S3_TOKEN_BYTES - 1] = '\0';
    memset(location.region, 'r', sizeof location.region - 1);
    cogpu_s3_sign(&location, &credentials, &request, DOCUMENTED_TIME, &headers);
    CHECK(headers.count == 4);
    CHECK(strlen(strstr(headers.lines[2], "Signature=")) == strlen("Signature=") + 64);
    CHECK(strlen(headers.lines[3]) == strlen("x-amz-security-token: ") + COGPU_S3_TOKEN_BYTES - 1);
    credentials.is_anonymous = true;
    cogpu_s3_sign(&location, &credentials, &request, DOCUMENTED_TIME, &headers);
    CHECK(headers.count == 0);
    cogpu_s3_headers_wipe(&headers);
    CHECK(is_zero(&headers, sizeof headers));
}

TESTS(s3_sign) {
    RUN(test_documented_signatures);
    RUN(test_signatures_of_botocore);
    RUN(test_a_body_over_tls_is_not_hashed);
    RUN(test_hashes_of_bodies);
    RUN(test_headers_of_the_longest_and_of_anonymous_requests);
    return FINISH();
}
