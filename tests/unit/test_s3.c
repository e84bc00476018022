/*
 * S3: where an object is, who asks, signatures, and what a store says.
 *
 * URLs and the choice of credentials are those of botocore 1.44, but where a comment says
 * otherwise; signatures are those of Amazon's documentation and of botocore.
 */
#include "io/s3.h"

#include "test.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Part of all that is secret here: no message may have it. */
#define MARK "hunter2"
/* One more than fits. */
#define SIXTY_FOUR "0123456789012345678901234567890123456789012345678901234567890123"

static cogpu_error error;

static void check_no_secret(int line) {
    if (!strstr(error.message, MARK))
        return;
    test_broken = 1;
    printf("line %d: a secret in \"%s\"\n", line, error.message);
}

/* Fails with that status, and its message has the word and no secret. */
#define CHECK_FAILS(call, expected, word)                                                          \
    do {                                                                                           \
        cogpu_error_clear(&error);                                                                 \
        CHECK((call) == (expected));                                                               \
        CHECK(error.status == (expected));                                                         \
        if (!strstr(error.message, word)) {                                                        \
            test_broken = 1;                                                                       \
            printf("%s:%d: no \"%s\" in \"%s\"\n", __FILE__, __LINE__, word, error.message);       \
        }                                                                                          \
        check_no_secret(__LINE__);                                                                 \
    } while (0)

/* ---- a home of our own ---- */

static char home[64];

static void forget_environment(void) {
    static const char *const names[] = {
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL_S3",
        "AWS_ENDPOINT_URL",
        "AWS_PROFILE",
        "AWS_DEFAULT_PROFILE",
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_ACCESS_KEY_ID",
        "AWS_SESSION_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_NO_SIGN_REQUEST",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    setenv("HOME", home, 1);
}

static void name_file(const char *name, char path[128]) {
    snprintf(path, 128, "%s/.aws/%s", home, name);
}

/* NULL: no such file. */
static void put_bytes(const char *name, const char *text, size_t bytes) {
    char path[128];
    name_file(name, path);
    unlink(path);
    FILE *file = text ? fopen(path, "wb") : NULL;
    if (file) {
        CHECK(fwrite(text, 1, bytes, file) == bytes);
        fclose(file);
    }
}

static void put_files(const char *credentials, const char *config) {
    put_bytes("credentials", credentials, credentials ? strlen(credentials) : 0);
    put_bytes("config", config, config ? strlen(config) : 0);
}

static void begin(void) {
    forget_environment();
    put_files(NULL, NULL);
}

static void make_home(void) {
    char folder[128];
    snprintf(home, sizeof home, "/tmp/cogpu-s3-XXXXXX");
    CHECK(mkdtemp(home) != NULL);
    snprintf(folder, sizeof folder, "%s/.aws", home);
    CHECK(mkdir(folder, 0700) == 0);
}

static void remove_home(void) {
    char folder[128];
    put_files(NULL, NULL);
    snprintf(folder, sizeof folder, "%s/.aws", home);
    CHECK(rmdir(folder) == 0 && rmdir(home) == 0);
}

/* ---- memory that is wiped ---- */

/* These take the place of the C library's, also for the library under test: what was read from a
 * file has to be wiped, all of it. */
static struct {
    const uint8_t *at;
    size_t bytes;
    bool is_wiped;
} last_read;

ssize_t read(int file, void *to, size_t bytes) {
    ssize_t got = syscall(SYS_read, file, to, bytes);
    if (got > 0) {
        last_read.at = to;
        last_read.bytes = (size_t)got;
        last_read.is_wiped = false;
    }
    return got;
}

void explicit_bzero(void *memory, size_t bytes) {
    volatile uint8_t *at = memory;
    for (size_t i = 0; i < bytes; i++)
        at[i] = 0;
    if ((uint8_t *)memory <= last_read.at &&
        last_read.at + last_read.bytes <= (uint8_t *)memory + bytes)
        last_read.is_wiped = true;
}

static bool is_zero(const void *memory, size_t bytes) {
    const uint8_t *at = memory;
    for (size_t i = 0; i < bytes; i++)
        if (at[i])
            return false;
    return true;
}

/* ---- where ---- */

static cogpu_s3_place place;

static void check_place(int line, const char *address, cogpu_s3_settings settings, const char *url,
                        const char *host) {
    cogpu_status status = cogpu_s3_locate(address, &settings, &place, &error);
    if (status == COGPU_OK && strcmp(place.url, url) == 0 && strcmp(place.host, host) == 0 &&
        strncmp(place.url + place.path - strlen(host), host, strlen(host)) == 0 &&
        place.url[place.path] == '/')
        return;
    test_broken = 1;
    printf("line %d: %s is at %s of %s: %s\n", line, address, place.url, place.host,
           status == COGPU_OK ? "ok" : error.message);
}

#define CHECK_PLACE(address, url, host, ...)                                                       \
    check_place(__LINE__, address, (cogpu_s3_settings){__VA_ARGS__}, url, host)

static void test_places_at_amazon(void) {
    begin();
    CHECK_PLACE("s3://bucket/key", "https://bucket.s3.eu-west-1.amazonaws.com/key",
                "bucket.s3.eu-west-1.amazonaws.com", .region = "eu-west-1");
    CHECK_TEXT(place.bucket, "bucket");
    CHECK_TEXT(place.region, "eu-west-1");
    CHECK_PLACE("S3://bucket/key", "https://bucket.s3.amazonaws.com/key", "bucket.s3.amazonaws.com",
                .region = NULL);
    CHECK_TEXT(place.region, "us-east-1");
    CHECK_PLACE("s3://bucket/k", "https://bucket.s3.cn-north-1.amazonaws.com.cn/k",
                "bucket.s3.cn-north-1.amazonaws.com.cn", .region = "cn-north-1");
    CHECK_PLACE("s3://bucket/k", "https://bucket.s3.eusc-de-east-1.amazonaws.eu/k",
                "bucket.s3.eusc-de-east-1.amazonaws.eu", .region = "eusc-de-east-1");
    CHECK_PLACE("s3://my.bucket/k", "https://s3.eu-west-1.amazonaws.com/my.bucket/k",
                "s3.eu-west-1.amazonaws.com", .region = "eu-west-1");
    CHECK_PLACE("s3://my.bucket/k", "https://s3.eu-west-1.amazonaws.com/my.bucket/k",
                "s3.eu-west-1.amazonaws.com", .region = "eu-west-1", .style = COGPU_S3_BY_HOST);
    CHECK_PLACE("s3://My_Bucket/k", "https://s3.eu-west-1.amazonaws.com/My_Bucket/k",
                "s3.eu-west-1.amazonaws.com", .region = "eu-west-1");
    CHECK_PLACE("s3://bucket/k", "https://s3.amazonaws.com/bucket/k", "s3.amazonaws.com",
                .style = COGPU_S3_BY_PATH);
}

static void test_keys_are_what_they_are(void) {
    static const char host[] = "bucket.s3.amazonaws.com";
    begin();
    CHECK_PLACE("s3://bucket/a b+c/\xc3\xa9//x~y(1)'!*&=$@:,;?#%20",
                "https://bucket.s3.amazonaws.com/a%20b%2Bc/%C3%A9//"
                "x~y%281%29%27%21%2A%26%3D%24%40%3A%2C%3B%3F%23%2520",
                host, .region = NULL);
    CHECK_PLACE("s3://bucket//lead", "https://bucket.s3.amazonaws.com//lead", host, .region = NULL);
    CHECK_PLACE("s3://bucket///two/", "https://bucket.s3.amazonaws.com///two/", host,
                .region = NULL);
    CHECK_PLACE("s3://bucket/...", "https://bucket.s3.amazonaws.com/...", host, .region = NULL);
    CHECK_PLACE("s3://bucket/.a/b..", "https://bucket.s3.amazonaws.com/.a/b..", host,
                .region = NULL);
    CHECK_PLACE("s3://bucket/\xf0\x9f\x8c\x8d\n", "https://bucket.s3.amazonaws.com/%F0%9F%8C%8D%0A",
                host, .region = NULL);
    char address[1100] = "s3://bucket/";
    memset(address + 12, '+', 1024);
    cogpu_s3_settings settings = {.style = COGPU_S3_BY_PATH};
    CHECK(cogpu_s3_locate(address, &settings, &place, &error) == COGPU_OK);
    CHECK(strlen(place.url + place.path) == 8 + 3 * 1024);
    address[12 + 1024] = '+';
    CHECK_FAILS(cogpu_s3_locate(address, &settings, &place, &error), COGPU_ARGUMENT, "1025 bytes");
}

static void test_addresses_that_are_none(void) {
    static const struct {
        const char *address, *word;
    } cases[] = {
        {"https://bucket.s3.amazonaws.com/key?X-Amz-Signature=" MARK, "begin with s3://"},
        {"s3:/bucket/key" MARK, "begin with"},
        {"", "begin with"},
        {"s3://", "bucket's name"},
        {"s3:///key", "bucket's name"},
        {"s3://ab/key", "bucket's name"},
        {"s3://../key", "bucket's name"},
        {"s3://.../key", "bucket's name"},
        {"s3://a b/key", "bucket's name"},
        {"s3://-bucket/key", "bucket's name"},
        {"s3://bucket-/key", "bucket's name"},
        {"s3://user:" MARK "@bucket/key", "bucket's name"},
        {"s3://bucket:9000/key", "bucket's name"},
        {"s3://buck\xc3\xa9t/key", "bucket's name"},
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
    begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_FAILS(cogpu_s3_locate(cases[i].address, &settings, &place, &error), COGPU_ARGUMENT,
                    cases[i].word);
}

static void test_other_stores(void) {
    begin();
    CHECK_PLACE("s3://bucket/k", "http://localhost:9000/bucket/k", "localhost:9000",
                .endpoint = "http://localhost:9000");
    CHECK_PLACE("s3://bucket/k", "http://localhost:9000/bucket/k", "localhost:9000",
                .endpoint = "http://localhost:9000//");
    CHECK_PLACE("s3://bucket/k", "http://bucket.localhost:9000/k", "bucket.localhost:9000",
                .endpoint = "http://localhost:9000", .style = COGPU_S3_BY_HOST);
    CHECK_PLACE("s3://bucket/k", "https://storage.googleapis.com/bucket/k",
                "storage.googleapis.com", .endpoint = "https://storage.googleapis.com");
    CHECK_PLACE("s3://bucket/k", "https://host/pre/fix/bucket/k", "host",
                .endpoint = "https://host/pre/fix/");
    CHECK_PLACE("s3://bucket/k", "https://bucket.host/pre/fix/k", "bucket.host",
                .endpoint = "https://host/pre/fix", .style = COGPU_S3_BY_HOST);
    CHECK_PLACE("s3://bucket/k", "http://127.0.0.1:9000/bucket/k", "127.0.0.1:9000",
                .endpoint = "http://127.0.0.1:9000", .style = COGPU_S3_BY_HOST);
    CHECK_PLACE("s3://bucket/k", "http://[::1]:9000/bucket/k", "[::1]:9000",
                .endpoint = "http://[::1]:9000", .style = COGPU_S3_BY_HOST);
    CHECK_PLACE("s3://bucket/k", "http://[::1]/bucket/k", "[::1]", .endpoint = "http://[::1]");
    /* The usual port and capitals are left out of URL and header alike, whoever sends it. */
    CHECK_PLACE("s3://bucket/k", "https://host.org/bucket/k", "host.org",
                .endpoint = "HTTPS://HOST.org:443");
    CHECK_PLACE("s3://bucket/k", "http://host/bucket/k", "host", .endpoint = "http://host:80");
    CHECK_PLACE("s3://bucket/k", "http://host:443/bucket/k", "host:443",
                .endpoint = "http://host:443");
    CHECK_PLACE("s3://bucket/k", "https://bucket.s3.eu-west-1.amazonaws.com/k",
                "bucket.s3.eu-west-1.amazonaws.com",
                .endpoint = "https://s3.eu-west-1.amazonaws.com", .style = COGPU_S3_BY_HOST);
}

static void test_settings_that_are_not_sound(void) {
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
    begin();
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++) {
        settings.endpoint = endpoints[i];
        CHECK_FAILS(cogpu_s3_locate("s3://bucket/key", &settings, &place, &error), COGPU_ARGUMENT,
                    "the endpoint");
    }
    settings.endpoint = NULL;
    for (size_t i = 0; i < sizeof regions / sizeof *regions; i++) {
        settings.region = regions[i];
        CHECK_FAILS(cogpu_s3_locate("s3://bucket/key", &settings, &place, &error), COGPU_ARGUMENT,
                    "the region");
    }
    char longest[600] = "http://";
    memset(longest + 7, 'a', 330);
    settings = (cogpu_s3_settings){.endpoint = longest};
    CHECK_FAILS(cogpu_s3_locate("s3://bucket/key", &settings, &place, &error), COGPU_ARGUMENT,
                "the endpoint");
    memset(longest + 7, 'a', 319);
    longest[7 + 319] = '\0';
    settings.style = COGPU_S3_BY_HOST;
    CHECK_FAILS(cogpu_s3_locate("s3://bucket/key", &settings, &place, &error), COGPU_ARGUMENT,
                "too long");
    memset(longest + 7, 'a', 590);
    CHECK_FAILS(cogpu_s3_locate("s3://bucket/key", &settings, &place, &error), COGPU_ARGUMENT,
                "511");
}

/* From the last of those that are asked to the first. */
static void test_who_says_region_and_endpoint(void) {
    cogpu_s3_settings settings = {0};
    begin();
    put_files(NULL, "[default]\nregion = r-default\n"
                    "[profile dev]\nregion=r-dev\nendpoint_url = http://from-file\n"
                    "[services s]\nregion = wrong\n");
    CHECK_PLACE("s3://bucket/k", "https://bucket.s3.r-default.amazonaws.com/k",
                "bucket.s3.r-default.amazonaws.com", .region = NULL);
    CHECK_PLACE("s3://bucket/k", "http://from-file/bucket/k", "from-file", .profile = "dev");
    CHECK_TEXT(place.region, "r-dev");
    setenv("AWS_PROFILE", "dev", 1);
    setenv("AWS_DEFAULT_REGION", "r-second", 1);
    setenv("AWS_ENDPOINT_URL", "http://general", 1);
    CHECK_PLACE("s3://bucket/k", "http://general/bucket/k", "general", .region = NULL);
    CHECK_TEXT(place.region, "r-second");
    /* botocore knows no AWS_REGION, the other libraries of Amazon do. */
    setenv("AWS_REGION", "r-first", 1);
    setenv("AWS_ENDPOINT_URL_S3", "http://special", 1);
    CHECK_PLACE("s3://bucket/k", "http://special/bucket/k", "special", .region = NULL);
    CHECK_TEXT(place.region, "r-first");
    CHECK_PLACE("s3://bucket/k", "http://said/bucket/k", "said", .region = "r-said",
                .endpoint = "http://said");
    CHECK_TEXT(place.region, "r-said");
    setenv("AWS_REGION", "", 1);
    setenv("AWS_ENDPOINT_URL_S3", "", 1);
    CHECK_PLACE("s3://bucket/k", "http://general/bucket/k", "general", .region = "",
                .endpoint = "");
    CHECK_TEXT(place.region, "r-second");
    begin();
    put_files(NULL, "[default]\nregion = not a region\n");
    CHECK_FAILS(cogpu_s3_locate("s3://bucket/key", &settings, &place, &error), COGPU_ARGUMENT,
                "line 2 of");
    put_files(NULL, "[default]\nregion = not.a.region\n");
    CHECK_FAILS(cogpu_s3_locate("s3://bucket/key", &settings, &place, &error), COGPU_ARGUMENT,
                "the region");
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

/* ---- who ---- */

static cogpu_s3_credentials who;

static void check_who(int line, cogpu_s3_settings settings, const char *key, const char *secret,
                      const char *token) {
    memset(&who, 0x55, sizeof who);
    cogpu_status status = cogpu_s3_credentials_find(&settings, &who, &error);
    if (status == COGPU_OK && who.is_anonymous == !*key && strcmp(who.access_key, key) == 0 &&
        strcmp(who.secret_key, secret) == 0 && strcmp(who.session_token, token) == 0)
        return;
    test_broken = 1;
    printf("line %d: %s, %s, %s: %s\n", line, who.access_key, who.secret_key, who.session_token,
           status == COGPU_OK ? "ok" : error.message);
}

#define CHECK_WHO(key, secret, token, ...)                                                         \
    check_who(__LINE__, (cogpu_s3_settings){__VA_ARGS__}, key, secret, token)

#define CHECK_NOBODY(word, ...)                                                                    \
    do {                                                                                           \
        cogpu_s3_settings settings_ = {__VA_ARGS__};                                               \
        memset(&who, 0x55, sizeof who);                                                            \
        CHECK_FAILS(cogpu_s3_credentials_find(&settings_, &who, &error), COGPU_ARGUMENT, word);    \
        CHECK(is_zero(&who, sizeof who));                                                          \
    } while (0)

#define KEYS "aws_access_key_id = AK\naws_secret_access_key = SK" MARK "\n"

static void test_files_of_credentials(void) {
    static const char *const sound[] = {
        "[default]\n" KEYS,
        "[default]\r\naws_access_key_id = AK\r\naws_secret_access_key = SK" MARK "\r\n",
        "[default]\naws_access_key_id=AK\naws_secret_access_key=SK" MARK,
        "[default]\nAWS_ACCESS_KEY_ID=AK\nAWS_Secret_Access_Key=SK" MARK,
        "[default]\n  aws_access_key_id=AK\n  aws_secret_access_key=SK" MARK "\n",
        "[other]\nx = y\n[default]\n  aws_access_key_id=AK\n  aws_secret_access_key=SK" MARK "\n",
        "# c\n; d\n\n[default] # e\n# x = y\naws_access_key_id=AK\n  # f\n   \n"
        "aws_secret_access_key=SK" MARK "\n",
        "[other]\naws_access_key_id=X\naws_secret_access_key=Y\n[default]\n" KEYS
        "[third]\naws_access_key_id=X\naws_secret_access_key=Y\naws_session_token=Z\n",
        "[default]\ns3 =\n  aws_access_key_id = wrong\n\taws_session_token = wrong\n" KEYS,
        /* botocore refuses these, other libraries of Amazon do not. */
        "\xef\xbb\xbf[default]\n" KEYS,
        "[default]\naws_access_key_id=AK # c\naws_secret_access_key=SK" MARK "\t; d\n",
        "[default]\naws_access_key_id=wrong\n" KEYS,
        "[default]\n" KEYS "[default]\nregion=x\n",
    };
    begin();
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++) {
        put_files(sound[i], NULL);
        CHECK_WHO("AK", "SK" MARK, "", .region = NULL);
        CHECK(last_read.is_wiped);
    }
    put_files("[default]\naws_access_key_id=A=/+\naws_secret_access_key=S;#=/+\n"
              "aws_session_token = T==\n",
              NULL);
    CHECK_WHO("A=/+", "S;#=/+", "T==", .region = NULL);
}

static void test_odd_files_name_the_line(void) {
    static const struct {
        const char *text, *line;
    } odd[] = {
        {"[default]\n" MARK "\n" KEYS, "line 2 of"},
        {KEYS, "line 1 of"},
        {"\n\n[default\n" KEYS, "line 3 of"},
        {"[\n", "line 1 of"},
        {"[default]\n= " MARK "\n", "line 2 of"},
        {"[default]\naws_access_key_id: " MARK "\n", "line 2 of"},
        {"[default]\naws_access_key_id = AK " MARK "\n", "line 2 of"},
        {"[default]\naws_access_key_id = AK\x01" MARK "\n", "line 2 of"},
        {"[default]\naws_access_key_id = AK\naws_secret_access_key = \xc3\xa9" MARK "\n",
         "line 3 of"},
        {"[default]\naws_access_key_id=AK\n" MARK " # = x\n[", "line 4 of"},
    };
    begin();
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        put_files(odd[i].text, NULL);
        CHECK_NOBODY(odd[i].line, .region = NULL);
        CHECK(strstr(error.message, "~/.aws/credentials"));
        CHECK(last_read.is_wiped);
        put_files(NULL, odd[i].text);
        CHECK_NOBODY(odd[i].line, .region = NULL);
        CHECK(strstr(error.message, "~/.aws/config"));
    }
    static const char with_nul[] = "[default]\nx = \0" MARK "\n";
    put_files(NULL, NULL);
    put_bytes("credentials", with_nul, sizeof with_nul - 1);
    CHECK_NOBODY("line 2 of", .region = NULL);
}

static void test_large_files(void) {
    enum { LIMIT = 1 << 20 };
    char *text = malloc(LIMIT + 1), longest[COGPU_S3_KEY_BYTES + 64];
    CHECK(text != NULL);
    if (!text)
        return;
    begin();
    memset(text, '#', LIMIT + 1);
    put_bytes("credentials", text, LIMIT + 1);
    CHECK_NOBODY("at most", .region = NULL);
    memcpy(text, "[default]\n" KEYS, strlen("[default]\n" KEYS));
    put_bytes("credentials", text, LIMIT);
    CHECK_WHO("AK", "SK" MARK, "", .region = NULL);
    free(text);
    const char *start = "[default]\naws_secret_access_key=SK\naws_access_key_id=";
    memset(longest, 'k', sizeof longest);
    memcpy(longest, start, strlen(start));
    longest[strlen(start) + COGPU_S3_KEY_BYTES - 1] = '\0';
    put_files(longest, NULL);
    CHECK_WHO(longest + strlen(start), "SK", "", .region = NULL);
    longest[strlen(start) + COGPU_S3_KEY_BYTES - 1] = 'k';
    longest[strlen(start) + COGPU_S3_KEY_BYTES] = '\0';
    put_files(longest, NULL);
    CHECK_NOBODY("line 3 of", .region = NULL);
}

static void test_files_elsewhere_and_files_that_are_none(void) {
    char path[128];
    begin();
    name_file("config", path);
    put_files(NULL, "[dev]\n" KEYS);
    setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
    setenv("AWS_CONFIG_FILE", "/nonexistent/config", 1);
    setenv("AWS_PROFILE", "dev", 1);
    CHECK_WHO("AK", "SK" MARK, "", .region = NULL);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/config", 1);
    CHECK_WHO("AK", "SK" MARK, "", .region = NULL);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/config/below", 1);
    CHECK_NOBODY("~/.aws/config/below", .region = NULL);
    setenv("AWS_SHARED_CREDENTIALS_FILE", home, 1);
    CHECK_NOBODY("is not a file", .region = NULL);
    unsetenv("AWS_SHARED_CREDENTIALS_FILE");
    unsetenv("HOME");
    CHECK_NOBODY("no credentials", .region = NULL);
    setenv("HOME", home, 1);
    name_file("credentials", path);
    CHECK(mkfifo(path, 0600) == 0);
    CHECK_NOBODY("is not a file", .region = NULL);
    unlink(path);
    CHECK(symlink(path, path) == 0);
    cogpu_s3_settings settings = {0};
    CHECK_FAILS(cogpu_s3_credentials_find(&settings, &who, &error), COGPU_IO, "cannot open");
    unlink(path);
}

static void test_profiles(void) {
    begin();
    put_files("[default]\naws_access_key_id=D\naws_secret_access_key=E\n[dev]\n" KEYS, NULL);
    CHECK_WHO("D", "E", "", .region = NULL);
    CHECK_WHO("AK", "SK" MARK, "", .profile = "dev");
    setenv("AWS_DEFAULT_PROFILE", "dev", 1);
    CHECK_WHO("AK", "SK" MARK, "", .profile = "");
    setenv("AWS_PROFILE", "default", 1);
    CHECK_WHO("D", "E", "", .region = NULL);
    CHECK_NOBODY("profile nobody (not there)", .profile = "nobody");
    CHECK_NOBODY("profile profile dev (not there)", .profile = "profile dev");
    begin();
    put_files(NULL, "[profile dev]\n" KEYS "aws_session_token=T\n[dev]\naws_access_key_id=wrong\n"
                    "[default]\naws_access_key_id=D\naws_secret_access_key=E\n");
    CHECK_WHO("AK", "SK" MARK, "T", .profile = "dev");
    CHECK_WHO("D", "E", "", .region = NULL);
    put_files(NULL, "[profile default]\n" KEYS "[profiledefault]\naws_access_key_id=wrong\n");
    CHECK_WHO("AK", "SK" MARK, "", .region = NULL);
    put_files(NULL, "[dev]\n" KEYS);
    CHECK_NOBODY("profile dev (not there)", .profile = "dev");
    /* One file's token is not another file's key's. */
    put_files("[default]\naws_session_token=T\n", "[default]\n" KEYS);
    CHECK_WHO("AK", "SK" MARK, "", .region = NULL);
    put_files("[default]\n" KEYS, "[default]\naws_access_key_id=X\naws_secret_access_key=Y\n");
    CHECK_WHO("AK", "SK" MARK, "", .region = NULL);
}

static void test_who_comes_first(void) {
    begin();
    put_files("[default]\n" KEYS "[dev]\naws_access_key_id=D\naws_secret_access_key=E\n", NULL);
    setenv("AWS_ACCESS_KEY_ID", "EK", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "ES", 1);
    CHECK_WHO("EK", "ES", "", .region = NULL);
    setenv("AWS_SESSION_TOKEN", "ET", 1);
    setenv("AWS_PROFILE", "dev", 1);
    CHECK_WHO("EK", "ES", "ET", .region = NULL);
    CHECK_WHO("D", "E", "", .profile = "dev");
    CHECK_WHO("CK", "CS", "", .access_key = "CK", .secret_key = "CS");
    CHECK_WHO("CK", "CS", "CT", .access_key = "CK", .secret_key = "CS", .session_token = "CT",
              .profile = "dev");
    CHECK_WHO("", "", "", .access_key = "CK", .secret_key = "CS", .is_anonymous = true);
    setenv("AWS_NO_SIGN_REQUEST", "YES", 1);
    CHECK_WHO("", "", "", .region = NULL);
    CHECK_WHO("CK", "CS", "", .access_key = "CK", .secret_key = "CS");
    CHECK_WHO("D", "E", "", .profile = "dev");
    static const char *const no[] = {"NO", "false", "Off", "0", ""};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        setenv("AWS_NO_SIGN_REQUEST", no[i], 1);
        CHECK_WHO("EK", "ES", "ET", .region = NULL);
    }
    setenv("AWS_ACCESS_KEY_ID", "", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "", 1);
    CHECK_WHO("D", "E", "", .region = NULL);
}

static void test_halves_and_oddities(void) {
    char token[COGPU_S3_TOKEN_BYTES + 1];
    begin();
    CHECK_NOBODY("access_key is set and secret_key is not", .access_key = MARK);
    CHECK_NOBODY("secret_key is set and access_key is not", .secret_key = MARK);
    CHECK_NOBODY("secret_key has characters", .access_key = "A", .secret_key = MARK "\r\nx: y");
    memset(token, 't', sizeof token);
    memcpy(token, MARK, strlen(MARK));
    token[COGPU_S3_TOKEN_BYTES - 1] = '\0';
    CHECK_WHO("A", "B", token, .access_key = "A", .secret_key = "B", .session_token = token);
    token[COGPU_S3_TOKEN_BYTES - 1] = 't';
    token[COGPU_S3_TOKEN_BYTES] = '\0';
    CHECK_NOBODY("session_token has", .access_key = "A", .secret_key = "B", .session_token = token);
    setenv("AWS_ACCESS_KEY_ID", MARK, 1);
    CHECK_NOBODY("AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not", .region = NULL);
    setenv("AWS_SECRET_ACCESS_KEY", MARK " ", 1);
    CHECK_NOBODY("AWS_SECRET_ACCESS_KEY has characters", .region = NULL);
    /* botocore goes on to the files here. */
    unsetenv("AWS_ACCESS_KEY_ID");
    CHECK_NOBODY("AWS_SECRET_ACCESS_KEY is set and AWS_ACCESS_KEY_ID is not", .region = NULL);
    begin();
    put_files("[default]\naws_access_key_id=" MARK "\n", NULL);
    CHECK_NOBODY("has aws_access_key_id and no aws_secret_access_key", .region = NULL);
    put_files(NULL, "[default]\naws_secret_access_key=" MARK "\naws_access_key_id =\n");
    CHECK_NOBODY("has aws_secret_access_key and no aws_access_key_id", .region = NULL);
}

static void test_nobody_is_told_what_to_do(void) {
    begin();
    CHECK_NOBODY("AWS_NO_SIGN_REQUEST=YES", .region = NULL);
    CHECK(strstr(error.message, "AWS_ACCESS_KEY_ID"));
    CHECK(strstr(error.message, "profile default (not there) in ~/.aws/credentials"));
    CHECK(strstr(error.message, "~/.aws/config"));
    put_files("[default]\n", NULL);
    CHECK_NOBODY("keys of profile default in", .region = NULL);
    put_files(NULL, "[profile dev]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = default\n");
    CHECK_NOBODY("by role_arn", .profile = "dev");
    CHECK(strstr(error.message, "--profile dev --format env)\""));
    put_files(NULL, "[default]\ncredential_process = /bin/x --secret " MARK "\n");
    CHECK_NOBODY("by credential_process", .region = NULL);
    put_files(NULL, "[default]\nsso_session = s\n");
    CHECK_NOBODY("by sso_session", .region = NULL);
    put_files("[default]\n" KEYS, "[default]\nsso_session = s\n");
    CHECK_WHO("AK", "SK" MARK, "", .region = NULL);
    memset(&who, 0x55, sizeof who);
    cogpu_s3_credentials_wipe(&who);
    CHECK(is_zero(&who, sizeof who));
}

/* ---- signatures ---- */

#define DOCUMENTED_KEY    "AKIAIOSFODNN7EXAMPLE"
#define DOCUMENTED_SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define EMPTY_SUM         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC_SUM           "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

enum { DOCUMENTED_TIME = 1369353600 }; /* 2013-05-24T00:00:00Z */

static cogpu_s3_headers headers;

static void stand_at(const char *url, const char *region) {
    const char *host = strstr(url, "://") + 3;
    snprintf(place.url, sizeof place.url, "%s", url);
    snprintf(place.region, sizeof place.region, "%s", region);
    snprintf(place.host, sizeof place.host, "%.*s", (int)strcspn(host, "/"), host);
    place.path = (size_t)(host - url) + strlen(place.host);
}

static void be(const char *secret, const char *token) {
    who = (cogpu_s3_credentials){.access_key = DOCUMENTED_KEY};
    snprintf(who.secret_key, sizeof who.secret_key, "%s", secret);
    snprintf(who.session_token, sizeof who.session_token, "%s", token);
}

static void check_signature(const char *method, const char *query, const char *body,
                            const char *payload, const char *signature) {
    char expected[512];
    const bool has_token = who.session_token[0];
    cogpu_s3_request request = {method, query, body, strlen(body)};
    cogpu_s3_sign(&place, &who, &request, DOCUMENTED_TIME, &headers);
    CHECK(headers.count == (has_token ? 4 : 3));
    CHECK_TEXT(headers.lines[0], "x-amz-date: 20130524T000000Z");
    snprintf(expected, sizeof expected, "x-amz-content-sha256: %s", payload);
    CHECK_TEXT(headers.lines[1], expected);
    snprintf(expected, sizeof expected,
             "Authorization: AWS4-HMAC-SHA256 Credential=" DOCUMENTED_KEY
             "/20130524/%s/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date%s, "
             "Signature=%s",
             place.region, has_token ? ";x-amz-security-token" : "", signature);
    CHECK_TEXT(headers.lines[2], expected);
    if (has_token) {
        snprintf(expected, sizeof expected, "x-amz-security-token: %.100s", who.session_token);
        CHECK_TEXT(headers.lines[3], expected);
    }
}

static void test_documented_signatures(void) {
    be(DOCUMENTED_SECRET, "");
    stand_at("https://examplebucket.s3.amazonaws.com/", "us-east-1");
    check_signature("GET", "lifecycle=", "", EMPTY_SUM,
                    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    check_signature("GET", "max-keys=2&prefix=J", "", EMPTY_SUM,
                    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void test_signatures_of_botocore(void) {
    be(DOCUMENTED_SECRET, "tok/en+==");
    stand_at("https://examplebucket.s3.eu-west-1.amazonaws.com/a%20b%2Bc/%C3%A9//x~y%28",
             "eu-west-1");
    check_signature("GET", "", "", EMPTY_SUM,
                    "e6a57c72b631d5548a7a3fbb560bed35cbb120f7ccb40f4e2046e20259c6eae9");
    be(DOCUMENTED_SECRET, "");
    stand_at("http://localhost:9000/examplebucket/key", "us-east-1");
    check_signature("POST", "uploads=", "", EMPTY_SUM,
                    "f84b4373941471452fbf0ba35bf0863a7236ab2547464aa8559fb9eb814983fd");
    /* A secret that is longer than a block of the hash. */
    char secret[101] = "";
    memset(secret, 's', 100);
    be(secret, "");
    check_signature("POST", "uploadId=x", "abc", ABC_SUM,
                    "13cd73c7ecc0a41240709e835827034eca55ec2250d12b260e4403079547e86f");
}

static void test_a_body_over_tls_is_not_hashed(void) {
    be(DOCUMENTED_SECRET, "");
    stand_at("https://storage.googleapis.com/examplebucket/key", "auto");
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
    be(DOCUMENTED_SECRET, "");
    stand_at("http://host/bucket/key", "us-east-1");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cogpu_s3_request request = {"PUT", "", cases[i].body, cases[i].bytes};
        cogpu_s3_sign(&place, &who, &request, DOCUMENTED_TIME, &headers);
        CHECK_TEXT(headers.lines[1] + strlen("x-amz-content-sha256: "), cases[i].sum);
    }
}

static void test_headers_of_the_longest_and_of_nobody(void) {
    cogpu_s3_request request = {"GET", "", NULL, 0};
    memset(&who, 'k', sizeof who);
    who.is_anonymous = false;
    who.access_key[COGPU_S3_KEY_BYTES - 1] = who.secret_key[COGPU_S3_KEY_BYTES - 1] = '\0';
    who.session_token[COGPU_S3_TOKEN_BYTES - 1] = '\0';
    memset(place.region, 'r', sizeof place.region - 1);
    cogpu_s3_sign(&place, &who, &request, DOCUMENTED_TIME, &headers);
    CHECK(headers.count == 4);
    CHECK(strlen(strstr(headers.lines[2], "Signature=")) == strlen("Signature=") + 64);
    CHECK(strlen(headers.lines[3]) == strlen("x-amz-security-token: ") + COGPU_S3_TOKEN_BYTES - 1);
    who.is_anonymous = true;
    cogpu_s3_sign(&place, &who, &request, DOCUMENTED_TIME, &headers);
    CHECK(headers.count == 0);
    cogpu_s3_headers_wipe(&headers);
    CHECK(is_zero(&headers, sizeof headers));
}

/* ---- what a store says ---- */

static cogpu_s3_fault fault;

/* In memory of its exact size, so that a read past its end is seen. */
static bool read_fault(const char *xml) {
    const size_t bytes = strlen(xml);
    char *copy = malloc(bytes ? bytes : 1);
    CHECK(copy != NULL);
    if (!copy)
        return false;
    memcpy(copy, xml, bytes);
    const bool is_one = cogpu_s3_fault_read(copy, bytes, &fault);
    free(copy);
    return is_one;
}

#define AN_ERROR(code) "<Error><Code>" code "</Code></Error>"

static void test_faults_are_read(void) {
    CHECK(read_fault("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>NoSuchKey</Code>"
                     "<Message>The specified key does not exist.</Message><Key>a</Key>"
                     "<RequestId>1</RequestId></Error>"));
    CHECK_TEXT(fault.code, "NoSuchKey");
    CHECK_TEXT(fault.message, "The specified key does not exist.");
    CHECK_TEXT(fault.region, "");
    CHECK(read_fault("\n  \n<!-- <Error/> --><Error xmlns='u' >\n<Other><Code>Inner</Code></Other>"
                     "<Code/>\n<Code>\n A.B_1\n</Code><Code>Second</Code>"
                     "<Message>a &lt;b&gt; &amp;amp; &quot;&apos;&#65;&#x42;&nbsp;&#0;&#xE9;"
                     "<i>c</i><![CDATA[<d> &lt;]]></Message></Error>"));
    CHECK_TEXT(fault.code, "A.B_1");
    CHECK_TEXT(fault.message, "a <b> &amp; \"'AB&nbsp;&#0;?c<d> &lt;");
    /* Cut off behind what matters. */
    CHECK(read_fault("<Error><Code>SlowDown</Code><Message>Please"));
    CHECK_TEXT(fault.code, "SlowDown");
    CHECK_TEXT(fault.message, "");
    CHECK(read_fault("<Error>"));
    CHECK_TEXT(fault.code, "");
}

static void test_what_is_no_fault(void) {
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
        CHECK(!read_fault(others[i]));
    CHECK(!fault.code[0] && !fault.message[0] && !fault.region[0]);
}

static void test_hostile_faults(void) {
    char xml[1024];
    CHECK(read_fault(AN_ERROR("a b")) && !fault.code[0]);
    CHECK(read_fault(AN_ERROR("a&#10;b")) && !fault.code[0]);
    CHECK(read_fault(AN_ERROR("a%sb")) && !fault.code[0]);
    CHECK(read_fault(AN_ERROR("\xc3\xa9")) && !fault.code[0]);
    memset(xml, 'a', sizeof xml);
    memcpy(xml, "<Error><Code>", 13);
    memcpy(xml + 13 + 64, "</Code>", 8);
    CHECK(read_fault(xml) && !fault.code[0]);
    memmove(xml + 13 + 63, xml + 13 + 64, 8);
    CHECK(read_fault(xml) && strlen(fault.code) == 63);
    CHECK(read_fault("<Error><Message>a\x1b[31m\r\n\x7f\xff&#27;b</Message></Error>"));
    CHECK_TEXT(fault.message, "a [31m  ?? b");
    static const char with_nul[] = "<Error><Message>a\0b</Message></Error>";
    CHECK(cogpu_s3_fault_read(with_nul, sizeof with_nul - 1, &fault));
    CHECK_TEXT(fault.message, "a b");
    /* What was sent comes back: a signature, a token. */
    CHECK(read_fault("<Error><Message>you sent 0123456789012345678901234567890123456789" MARK
                     " and " MARK "01234567890123456789012345678901234567890123456789</Message>"
                     "<SignatureProvided>" MARK "</SignatureProvided></Error>"));
    CHECK_TEXT(fault.message, "you sent ... and ...");
}

/* No stack grows with it. */
static void test_deep_faults(void) {
    enum { LEVELS = 1 << 20 };
    static char xml[3 * LEVELS + 64] = "<Error>";
    for (size_t i = 0; i < LEVELS; i++)
        memcpy(xml + 7 + 3 * i, "<a>", 3);
    memcpy(xml + 7 + 3 * LEVELS, "<Code>X</Code></a><Code>Y</Code>", 33);
    CHECK(read_fault(xml));
    CHECK_TEXT(fault.code, "");
}

static void test_long_messages_are_cut(void) {
    char xml[1024] = "<Error><Message>";
    for (int i = 0; i < 60; i++)
        strcat(xml, "word ");
    strcat(xml, "</Message></Error>");
    CHECK(read_fault(xml));
    CHECK(strlen(fault.message) >= sizeof fault.message - 2);
}

static void test_what_passes(void) {
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
        CHECK(read_fault(passing[i]) && cogpu_s3_fault_passes(&fault));
    for (size_t i = 0; i < sizeof staying / sizeof *staying; i++)
        CHECK(read_fault(staying[i]) && !cogpu_s3_fault_passes(&fault));
}

static void test_regions_in_faults(void) {
    CHECK(read_fault("<Error><Code>AuthorizationHeaderMalformed</Code><Message>m</Message>"
                     "<Region>eu-west-1</Region></Error>"));
    CHECK_TEXT(fault.region, "eu-west-1");
    CHECK_FAILS(cogpu_s3_fault_fail(&fault, 400, &error), COGPU_IO,
                "400 AuthorizationHeaderMalformed: m; the bucket is in eu-west-1: set AWS_REGION");
    CHECK(read_fault("<Error><Code>AuthorizationHeaderMalformed</Code><Message>The authorization "
                     "header is malformed; the region 'us-east-1' is wrong; expecting "
                     "'eu-west-2'</Message></Error>"));
    CHECK_TEXT(fault.region, "eu-west-2");
    cogpu_s3_fault_set_region(&fault, NULL);
    cogpu_s3_fault_set_region(&fault, "");
    cogpu_s3_fault_set_region(&fault, "evil.org/");
    cogpu_s3_fault_set_region(&fault, SIXTY_FOUR);
    CHECK_TEXT(fault.region, "eu-west-2");
    cogpu_s3_fault_set_region(&fault, "eu-west-3");
    CHECK_TEXT(fault.region, "eu-west-3");
    CHECK(read_fault("<Error><Message>expecting 'a b'</Message><Region>c.d</Region></Error>"));
    CHECK_TEXT(fault.region, "");
    CHECK(read_fault("<Error><Message>expecting '</Message></Error>") && !fault.region[0]);
    /* An answer without a body. */
    fault = (cogpu_s3_fault){0};
    cogpu_s3_fault_set_region(&fault, "eu-west-3");
    CHECK_FAILS(cogpu_s3_fault_fail(&fault, 301, &error), COGPU_IO, "is in eu-west-3: set");
}

static void test_faults_as_errors(void) {
    CHECK(read_fault("<Error><Code>NoSuchKey</Code><Message>No.</Message></Error>"));
    CHECK_FAILS(cogpu_s3_fault_fail(&fault, 404, &error), COGPU_ABSENT, "404 NoSuchKey: No.");
    CHECK(read_fault(AN_ERROR("NoSuchBucket")));
    CHECK_FAILS(cogpu_s3_fault_fail(&fault, 404, &error), COGPU_ABSENT, "404 NoSuchBucket; check");
    CHECK(read_fault(AN_ERROR("NoSuchUpload")));
    CHECK_FAILS(cogpu_s3_fault_fail(&fault, 404, &error), COGPU_IO, "aborted");
    CHECK(read_fault(AN_ERROR("AccessDenied")));
    CHECK_FAILS(cogpu_s3_fault_fail(&fault, 403, &error), COGPU_IO, "403 AccessDenied; these");
    CHECK(read_fault(AN_ERROR("SignatureDoesNotMatch")));
    CHECK_FAILS(cogpu_s3_fault_fail(&fault, 403, &error), COGPU_IO, "the secret key");
    CHECK(read_fault(AN_ERROR("PermanentRedirect")));
    CHECK_FAILS(cogpu_s3_fault_fail(&fault, 301, &error), COGPU_IO, "region (AWS_REGION)");
    CHECK(read_fault(AN_ERROR("SlowDown")));
    CHECK_FAILS(cogpu_s3_fault_fail(&fault, 503, &error), COGPU_IO, "503 SlowDown");
    CHECK(read_fault("<Error></Error>"));
    CHECK_FAILS(cogpu_s3_fault_fail(&fault, 404, &error), COGPU_ABSENT, "404");
    CHECK_FAILS(cogpu_s3_fault_fail(&fault, 403, &error), COGPU_IO, "403");
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
    CHECK_FAILS(read_upload(BEGUN(""), upload), COGPU_IO, "no UploadId");
    CHECK_FAILS(read_upload(BEGUN("a&#10;b"), upload), COGPU_IO, "no UploadId");
    CHECK_FAILS(read_upload(BEGUN("a b"), upload), COGPU_IO, "no UploadId");
    CHECK_FAILS(read_upload(AN_ERROR("SlowDown"), upload), COGPU_IO, "no UploadId");
    CHECK_FAILS(read_upload("", upload), COGPU_IO, "no UploadId");
    char xml[COGPU_S3_UPLOAD_BYTES + 200] = "<InitiateMultipartUploadResult><UploadId>";
    const size_t start = strlen(xml);
    memset(xml + start, 'i', COGPU_S3_UPLOAD_BYTES);
    strcpy(xml + start + COGPU_S3_UPLOAD_BYTES - 1, "</UploadId>");
    CHECK(read_upload(xml, upload) == COGPU_OK && strlen(upload) == COGPU_S3_UPLOAD_BYTES - 1);
    xml[start + COGPU_S3_UPLOAD_BYTES - 1] = 'i';
    strcpy(xml + start + COGPU_S3_UPLOAD_BYTES, "</UploadId>");
    CHECK_FAILS(read_upload(xml, upload), COGPU_IO, "no UploadId");
}

static void test_lists_of_parts(void) {
    cogpu_s3_part parts[] = {{1, "\"a1\""}, {3, "b<&>"}, {10000, "c"}};
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
    CHECK_FAILS(cogpu_s3_complete_write(parts, 3, &body, &bytes, &error), COGPU_IO, "part 10000");
    snprintf(parts[2].etag, sizeof parts[2].etag, "a\nb");
    CHECK_FAILS(cogpu_s3_complete_write(parts, 3, &body, &bytes, &error), COGPU_IO, "part 10000");
    parts[2].etag[0] = '\0';
    CHECK_FAILS(cogpu_s3_complete_write(parts, 3, &body, &bytes, &error), COGPU_IO, "part 10000");
    parts[1].number = 1;
    CHECK_FAILS(cogpu_s3_complete_write(parts, 2, &body, &bytes, &error), COGPU_ARGUMENT,
                "part 1 of an upload follows part 1");
    parts[0].number = 0;
    CHECK_FAILS(cogpu_s3_complete_write(parts, 1, &body, &bytes, &error), COGPU_ARGUMENT, "part 0");
    parts[0].number = 10001;
    CHECK_FAILS(cogpu_s3_complete_write(parts, 1, &body, &bytes, &error), COGPU_ARGUMENT, "10001");
    CHECK_FAILS(cogpu_s3_complete_write(parts, 0, &body, &bytes, &error), COGPU_ARGUMENT, "not 0");
    CHECK_FAILS(cogpu_s3_complete_write(parts, 10001, &body, &bytes, &error), COGPU_ARGUMENT,
                "not 10001");
}

static cogpu_s3_outcome read_outcome(const char *xml) {
    return cogpu_s3_complete_read(xml, strlen(xml), &fault);
}

static void test_ends_of_uploads(void) {
    CHECK(read_outcome("<?xml version=\"1.0\"?>\n  \n <CompleteMultipartUploadResult xmlns=\"u\">"
                       "<ETag>\"e-2\"</ETag></CompleteMultipartUploadResult>") == COGPU_S3_DONE);
    CHECK(read_outcome("<?xml version=\"1.0\"?>\n  \n" AN_ERROR("InternalError")) ==
          COGPU_S3_FAILED);
    CHECK_TEXT(fault.code, "InternalError");
    CHECK(read_outcome("<?xml version=\"1.0\"?>\n   \n") == COGPU_S3_UNKNOWN);
    CHECK(read_outcome("") == COGPU_S3_UNKNOWN);
    CHECK(read_outcome("<html>CompleteMultipartUploadResult</html>") == COGPU_S3_UNKNOWN);
}

int main(void) {
    make_home();
    RUN(test_places_at_amazon);
    RUN(test_keys_are_what_they_are);
    RUN(test_addresses_that_are_none);
    RUN(test_other_stores);
    RUN(test_settings_that_are_not_sound);
    RUN(test_who_says_region_and_endpoint);
    RUN(test_queries_are_encoded_and_sorted);
    RUN(test_files_of_credentials);
    RUN(test_odd_files_name_the_line);
    RUN(test_large_files);
    RUN(test_files_elsewhere_and_files_that_are_none);
    RUN(test_profiles);
    RUN(test_who_comes_first);
    RUN(test_halves_and_oddities);
    RUN(test_nobody_is_told_what_to_do);
    RUN(test_documented_signatures);
    RUN(test_signatures_of_botocore);
    RUN(test_a_body_over_tls_is_not_hashed);
    RUN(test_hashes_of_bodies);
    RUN(test_headers_of_the_longest_and_of_nobody);
    RUN(test_faults_are_read);
    RUN(test_what_is_no_fault);
    RUN(test_hostile_faults);
    RUN(test_deep_faults);
    RUN(test_long_messages_are_cut);
    RUN(test_what_passes);
    RUN(test_regions_in_faults);
    RUN(test_faults_as_errors);
    RUN(test_ids_of_uploads);
    RUN(test_lists_of_parts);
    RUN(test_ends_of_uploads);
    remove_home();
    return FINISH();
}
