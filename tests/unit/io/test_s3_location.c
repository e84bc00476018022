/*
 * URLs of S3 objects: endpoint, region, key. They are those of botocore 1.44, but where a comment
 * says otherwise.
 */
#include "unit/io/s3_test.h"

static cogpu_error error;

static cogpu_s3_location location;

static void check_location(int line, const char *address, cogpu_s3_settings settings,
                           const char *url, const char *host) {
    cogpu_status status = cogpu_s3_locate(address, &settings, &location, &error);
    if (status == COGPU_OK && strcmp(location.url, url) == 0 && strcmp(location.host, host) == 0 &&
        strncmp(location.url + location.path - strlen(host), host, strlen(host)) == 0 &&
        location.url[location.path] == '/')
        return;
    test_broken = 1;
    printf("line %d: %s is at %s of %s: %s\n", line, address, location.url, location.host,
           status == COGPU_OK ? "ok" : error.message);
}

#define CHECK_LOCATION(address, url, host, ...)                                                    \
    check_location(__LINE__, address, (cogpu_s3_settings){__VA_ARGS__}, url, host)

static void test_locations_at_amazon(void) {
    reset_aws_files();
    CHECK_LOCATION("s3://bucket/key", "https://bucket.s3.eu-west-1.amazonaws.com/key",
                   "bucket.s3.eu-west-1.amazonaws.com", .region = "eu-west-1");
    CHECK_TEXT(location.bucket, "bucket");
    CHECK_TEXT(location.region, "eu-west-1");
    CHECK_LOCATION("S3://bucket/key", "https://bucket.s3.amazonaws.com/key",
                   "bucket.s3.amazonaws.com", .region = NULL);
    CHECK_TEXT(location.region, "us-east-1");
    CHECK_LOCATION("s3://bucket/k", "https://bucket.s3.cn-north-1.amazonaws.com.cn/k",
                   "bucket.s3.cn-north-1.amazonaws.com.cn", .region = "cn-north-1");
    CHECK_LOCATION("s3://bucket/k", "https://bucket.s3.eusc-de-east-1.amazonaws.eu/k",
                   "bucket.s3.eusc-de-east-1.amazonaws.eu", .region = "eusc-de-east-1");
    CHECK_LOCATION("s3://my.bucket/k", "https://s3.eu-west-1.amazonaws.com/my.bucket/k",
                   "s3.eu-west-1.amazonaws.com", .region = "eu-west-1");
    CHECK_LOCATION("s3://my.bucket/k", "https://s3.eu-west-1.amazonaws.com/my.bucket/k",
                   "s3.eu-west-1.amazonaws.com", .region = "eu-west-1", .style = COGPU_S3_BY_HOST);
    CHECK_LOCATION("s3://My_Bucket/k", "https://s3.eu-west-1.amazonaws.com/My_Bucket/k",
                   "s3.eu-west-1.amazonaws.com", .region = "eu-west-1");
    CHECK_LOCATION("s3://bucket/k", "https://s3.amazonaws.com/bucket/k", "s3.amazonaws.com",
                   .style = COGPU_S3_BY_PATH);
}

static void test_keys_are_not_normalised(void) {
    static const char host[] = "bucket.s3.amazonaws.com";
    reset_aws_files();
    CHECK_LOCATION("s3://bucket/a b+c/\xc3\xa9//x~y(1)'!*&=$@:,;?#%20",
                   "https://bucket.s3.amazonaws.com/a%20b%2Bc/%C3%A9//"
                   "x~y%281%29%27%21%2A%26%3D%24%40%3A%2C%3B%3F%23%2520",
                   host, .region = NULL);
    CHECK_LOCATION("s3://bucket//lead", "https://bucket.s3.amazonaws.com//lead", host,
                   .region = NULL);
    CHECK_LOCATION("s3://bucket///two/", "https://bucket.s3.amazonaws.com///two/", host,
                   .region = NULL);
    CHECK_LOCATION("s3://bucket/...", "https://bucket.s3.amazonaws.com/...", host, .region = NULL);
    CHECK_LOCATION("s3://bucket/.a/b..", "https://bucket.s3.amazonaws.com/.a/b..", host,
                   .region = NULL);
    CHECK_LOCATION("s3://bucket/\xf0\x9f\x8c\x8d\n",
                   "https://bucket.s3.amazonaws.com/%F0%9F%8C%8D%0A", host, .region = NULL);
    char address[1100] = "s3://bucket/";
    memset(address + 12, '+', 1024);
    cogpu_s3_settings settings = {.style = COGPU_S3_BY_PATH};
    CHECK(cogpu_s3_locate(address, &settings, &location, &error) == COGPU_OK);
    CHECK(strlen(location.url + location.path) == 8 + 3 * 1024);
    address[12 + 1024] = '+';
    CHECK_FAILS(cogpu_s3_locate(address, &settings, &location, &error), COGPU_INVALID_ARGUMENT,
                "1025 bytes");
}

static void test_malformed_addresses(void) {
    static const struct {
        const char *address, *word;
    } cases[] = {
        {"https://bucket.s3.amazonaws.com/key?X-Amz-Signature=" MARK, "begin with s3://"},
        {"s3:/bucket/key" MARK, "begin with"},
        {"", "begin with"},
        {"s3://", "bucket name"},
        {"s3:///key", "bucket name"},
        {"s3://ab/key", "bucket name"},
        {"s3://../key", "bucket name"},
        {"s3://.../key", "bucket name"},
        {"s3://a b/key", "bucket name"},
        {"s3://-bucket/key", "bucket name"},
        {"s3://bucket-/key", "bucket name"},
        {"s3://user:" MARK "@bucket/key", "bucket name"},
        {"s3://bucket:9000/key", "bucket name"},
        {"s3://buck\xc3\xa9t/key", "bucket name"},
        {"s3://arn:aws:s3:eu-west-1:123456789012:accesspoint/x", "alias"},
        {"s3://" SIXTY_FOUR "/k", "63"},
        {"s3://bucket", "no key"},
        {"s3://bucket/", "no key"},
        {"s3://bucket/a/../b", "\"..\""},
        {"s3://bucket/..", "\"..\""},
        {"s3://bucket/./a", "\"..\""},
        {"s3://bucket/a/.", "\"..\""},
        {"s3://bucket/\xff", "UTF-8"},
        {"s3://bucket/\xc3", "UTF-8"},
        {"s3://bucket/\xc0\xaf", "UTF-8"},
        {"s3://bucket/\xe0\x80\xaf", "UTF-8"},
        {"s3://bucket/\xed\xa0\x80", "UTF-8"},
        {"s3://bucket/\xf4\x90\x80\x80", "UTF-8"},
        {"s3://bucket/\xf0\x80\x80\x80", "UTF-8"},
        {"s3://bucket/\xf5\x80\x80\x80", "UTF-8"},
        {"s3://bucket/\xf8\x88\x80\x80\x80", "UTF-8"},
    };
    cogpu_s3_settings settings = {0};
    reset_aws_files();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_FAILS(cogpu_s3_locate(cases[i].address, &settings, &location, &error),
                    COGPU_INVALID_ARGUMENT, cases[i].word);
}

static void test_other_stores(void) {
    reset_aws_files();
    CHECK_LOCATION("s3://bucket/k", "http://localhost:9000/bucket/k", "localhost:9000",
                   .endpoint = "http://localhost:9000");
    CHECK_LOCATION("s3://bucket/k", "http://localhost:9000/bucket/k", "localhost:9000",
                   .endpoint = "http://localhost:9000//");
    CHECK_LOCATION("s3://bucket/k", "http://bucket.localhost:9000/k", "bucket.localhost:9000",
                   .endpoint = "http://localhost:9000", .style = COGPU_S3_BY_HOST);
    CHECK_LOCATION("s3://bucket/k", "https://storage.googleapis.com/bucket/k",
                   "storage.googleapis.com", .endpoint = "https://storage.googleapis.com");
    CHECK_LOCATION("s3://bucket/k", "https://host/pre/fix/bucket/k", "host",
                   .endpoint = "https://host/pre/fix/");
    CHECK_LOCATION("s3://bucket/k", "https://bucket.host/pre/fix/k", "bucket.host",
                   .endpoint = "https://host/pre/fix", .style = COGPU_S3_BY_HOST);
    CHECK_LOCATION("s3://bucket/k", "http://127.0.0.1:9000/bucket/k", "127.0.0.1:9000",
                   .endpoint = "http://127.0.0.1:9000", .style = COGPU_S3_BY_HOST);
    CHECK_LOCATION("s3://bucket/k", "http://[::1]:9000/bucket/k", "[::1]:9000",
                   .endpoint = "http://[::1]:9000", .style = COGPU_S3_BY_HOST);
    CHECK_LOCATION("s3://bucket/k", "http://[::1]/bucket/k", "[::1]", .endpoint = "http://[::1]");
    /* The usual port and capitals are left out of URL and header alike, whichever library sends it.
     */
    CHECK_LOCATION("s3://bucket/k", "https://host.org/bucket/k", "host.org",
                   .endpoint = "HTTPS://HOST.org:443");
    CHECK_LOCATION("s3://bucket/k", "http://host/bucket/k", "host", .endpoint = "http://host:80");
    CHECK_LOCATION("s3://bucket/k", "http://host:443/bucket/k", "host:443",
                   .endpoint = "http://host:443");
    CHECK_LOCATION("s3://bucket/k", "https://bucket.s3.eu-west-1.amazonaws.com/k",
                   "bucket.s3.eu-west-1.amazonaws.com",
                   .endpoint = "https://s3.eu-west-1.amazonaws.com", .style = COGPU_S3_BY_HOST);
}

static void test_settings_that_are_invalid(void) {
    static const char *const endpoints[] = {"localhost:9000",
                                            "ftp://host",
                                            "http://",
                                            "http:///x",
                                            "http://:9000",
                                            "http://host:0",
                                            "http://host:65536",
                                            "http://host:4294967376",

                                            "http://host:",
                                            "http://host:9a",
                                            "http://user:" MARK "@host",
                                            "http://host?a=" MARK,
                                            "http://host/a?b=" MARK,
                                            "http://host/a#b",
                                            "http://host/a/../b",
                                            "http://host/a%2e",
                                            "http://ho st",
                                            "http://host\r\nx: y",
                                            "http://[::1",
                                            "http://[::1]x",
                                            "http://[::1@]",
                                            "http://.host",
                                            "http://h\xc3\xb6st"};
    static const char *const regions[] = {"eu west", "eu-west-1.evil.org/", "a/b", "x\ny",
                                          SIXTY_FOUR};
    cogpu_s3_settings settings = {0};
    reset_aws_files();
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++) {
        settings.endpoint = endpoints[i];
        CHECK_FAILS(cogpu_s3_locate("s3://bucket/key", &settings, &location, &error),
                    COGPU_INVALID_ARGUMENT, "the endpoint");
    }
    settings.endpoint = NULL;
    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++) {
        settings.region = regions[i];
        CHECK_FAILS(cogpu_s3_locate("s3://bucket/key", &settings, &location, &error),
                    COGPU_INVALID_ARGUMENT, "the region");
    }
    char longest[600] = "http://";
    memset(longest + 7, 'a', 330);
    settings = (cogpu_s3_settings){.endpoint = longest};
    CHECK_FAILS(cogpu_s3_locate("s3://bucket/key", &settings, &location, &error),
                COGPU_INVALID_ARGUMENT, "the endpoint");
    memset(longest + 7, 'a', 319);
    longest[7 + 319] = '\0';
    settings.style = COGPU_S3_BY_HOST;
    CHECK_FAILS(cogpu_s3_locate("s3://bucket/key", &settings, &location, &error),
                COGPU_INVALID_ARGUMENT, "too long");
    memset(longest + 7, 'a', 590);
    CHECK_FAILS(cogpu_s3_locate("s3://bucket/key", &settings, &location, &error),
                COGPU_INVALID_ARGUMENT, "511");
}

/* From the last of those that are asked to the first. */
static void test_order_of_region_and_endpoint(void) {
    cogpu_s3_settings settings = {0};
    reset_aws_files();
    put_files(NULL, "[default]\nregion = r-default\n"
                    "[profile dev]\nregion=r-dev\nendpoint_url = http://from-file\n"
                    "[services s]\nregion = wrong\n");
    CHECK_LOCATION("s3://bucket/k", "https://bucket.s3.r-default.amazonaws.com/k",
                   "bucket.s3.r-default.amazonaws.com", .region = NULL);
    CHECK_LOCATION("s3://bucket/k", "http://from-file/bucket/k", "from-file", .profile = "dev");
    CHECK_TEXT(location.region, "r-dev");
    setenv("AWS_PROFILE", "dev", 1);
    setenv("AWS_DEFAULT_REGION", "r-second", 1);
    setenv("AWS_ENDPOINT_URL", "http://general", 1);
    CHECK_LOCATION("s3://bucket/k", "http://general/bucket/k", "general", .region = NULL);
    CHECK_TEXT(location.region, "r-second");
    /* botocore knows no AWS_REGION, the other libraries of Amazon do. */
    setenv("AWS_REGION", "r-first", 1);
    setenv("AWS_ENDPOINT_URL_S3", "http://special", 1);
    CHECK_LOCATION("s3://bucket/k", "http://special/bucket/k", "special", .region = NULL);
    CHECK_TEXT(location.region, "r-first");
    CHECK_LOCATION("s3://bucket/k", "http://said/bucket/k", "said", .region = "r-said",
                   .endpoint = "http://said");
    CHECK_TEXT(location.region, "r-said");
    setenv("AWS_REGION", "", 1);
    setenv("AWS_ENDPOINT_URL_S3", "", 1);
    CHECK_LOCATION("s3://bucket/k", "http://general/bucket/k", "general", .region = "",
                   .endpoint = "");
    CHECK_TEXT(location.region, "r-second");
    reset_aws_files();
    put_files(NULL, "[default]\nregion = not a region\n");
    CHECK_FAILS(cogpu_s3_locate("s3://bucket/key", &settings, &location, &error),
                COGPU_INVALID_ARGUMENT, "line 2 of");
    put_files(NULL, "[default]\nregion = not.a.region\n");
    CHECK_FAILS(cogpu_s3_locate("s3://bucket/key", &settings, &location, &error),
                COGPU_INVALID_ARGUMENT, "the region");
}

static void test_queries_are_encoded_and_sorted(void) {
    char query[COGPU_S3_QUERY_BYTES], upload[COGPU_S3_UPLOAD_BYTES];
    cogpu_s3_query(7, "a.b-c_d~e/=", query);
    CHECK_TEXT(query, "partNumber=7&uploadId=a.b-c_d~e%2F%3D");
    cogpu_s3_query(0, "x&y+z", query);
    CHECK_TEXT(query, "uploadId=x%26y%2Bz");
    memset(upload, '/', sizeof upload - 1);
    upload[sizeof upload - 1] = '\0';
    cogpu_s3_query(10000, upload, query);
    CHECK(strlen(query) == strlen("partNumber=10000&uploadId=") + 3 * strlen(upload));
}

TESTS(s3_location) {
    make_home();
    RUN(test_locations_at_amazon);
    RUN(test_keys_are_not_normalised);
    RUN(test_malformed_addresses);
    RUN(test_other_stores);
    RUN(test_settings_that_are_invalid);
    RUN(test_order_of_region_and_endpoint);
    RUN(test_queries_are_encoded_and_sorted);
    remove_home();
    return FINISH();
}
