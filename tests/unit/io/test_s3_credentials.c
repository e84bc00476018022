/*
 * Credentials of S3: files of AWS, profiles, the environment. The choice is that of botocore 1.44,
 * but where a comment says otherwise.
 */
#include "unit/io/s3_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static cogpu_error error;

/* ---- memory that is wiped ---- */

/* These take the location of the C library's, also for the library under test: what was read from a
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

/* ---- credentials ---- */

static cogpu_s3_credentials credentials;

static void check_who(int line, cogpu_s3_settings settings, const char *key, const char *secret,
                      const char *token) {
    memset(&credentials, 0x55, sizeof credentials);
    cogpu_status status = cogpu_s3_credentials_find(&settings, &credentials, &error);
    if (status == COGPU_OK && credentials.is_anonymous == !*key &&
        strcmp(credentials.access_key, key) == 0 && strcmp(credentials.secret_key, secret) == 0 &&
        strcmp(credentials.session_token, token) == 0)
        return;
    test_broken = 1;
    printf("line %d: %s, %s, %s: %s\n", line, credentials.access_key, credentials.secret_key,
           credentials.session_token, status == COGPU_OK ? "ok" : error.message);
}

#define CHECK_CREDENTIALS(key, secret, token, ...)                                                 \
    check_who(__LINE__, (cogpu_s3_settings){__VA_ARGS__}, key, secret, token)

#define CHECK_NO_CREDENTIALS(word, ...)                                                            \
    do {                                                                                           \
        cogpu_s3_settings settings_ = {__VA_ARGS__};                                               \
        memset(&credentials, 0x55, sizeof credentials);                                            \
        CHECK_FAILS(cogpu_s3_credentials_find(&settings_, &credentials, &error),                   \
                    COGPU_INVALID_ARGUMENT, word);                                                 \
        CHECK(is_zero(&credentials, sizeof credentials));                                          \
    } while (0)

#define KEYS "aws_access_key_id = AK\naws_secret_access_key = SK" MARK "\n"

static void test_files_of_credentials(void) {
    static const char *const valid[] = {
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
    reset_aws_files();
    for (size_t i = 0; i < sizeof valid / sizeof *valid; i++) {
        put_files(valid[i], NULL);
        CHECK_CREDENTIALS("AK", "SK" MARK, "", .region = NULL);
        CHECK(last_read.is_wiped);
    }
    put_files("[default]\naws_access_key_id=A=/+\naws_secret_access_key=S;#=/+\n"
              "aws_session_token = T==\n",
              NULL);
    CHECK_CREDENTIALS("A=/+", "S;#=/+", "T==", .region = NULL);
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
    reset_aws_files();
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        put_files(odd[i].text, NULL);
        CHECK_NO_CREDENTIALS(odd[i].line, .region = NULL);
        CHECK(strstr(error.message, "~/.aws/credentials"));
        CHECK(last_read.is_wiped);
        put_files(NULL, odd[i].text);
        CHECK_NO_CREDENTIALS(odd[i].line, .region = NULL);
        CHECK(strstr(error.message, "~/.aws/config"));
    }
    static const char with_nul[] = "[default]\nx = \0" MARK "\n";
    put_files(NULL, NULL);
    put_bytes("credentials", with_nul, sizeof with_nul - 1);
    CHECK_NO_CREDENTIALS("line 2 of", .region = NULL);
}

static void test_large_files(void) {
    enum { LIMIT = 1 << 20 };
    char *text = malloc(LIMIT + 1), longest[COGPU_S3_KEY_BYTES + 64];
    CHECK(text != NULL);
    if (!text)
        return;
    reset_aws_files();
    memset(text, '#', LIMIT + 1);
    put_bytes("credentials", text, LIMIT + 1);
    CHECK_NO_CREDENTIALS("at most", .region = NULL);
    memcpy(text, "[default]\n" KEYS, strlen("[default]\n" KEYS));
    put_bytes("credentials", text, LIMIT);
    CHECK_CREDENTIALS("AK", "SK" MARK, "", .region = NULL);
    free(text);
    const char *start = "[default]\naws_secret_access_key=SK\naws_access_key_id=";
    memset(longest, 'k', sizeof longest);
    memcpy(longest, start, strlen(start));
    longest[strlen(start) + COGPU_S3_KEY_BYTES - 1] = '\0';
    put_files(longest, NULL);
    CHECK_CREDENTIALS(longest + strlen(start), "SK", "", .region = NULL);
    longest[strlen(start) + COGPU_S3_KEY_BYTES - 1] = 'k';
    longest[strlen(start) + COGPU_S3_KEY_BYTES] = '\0';
    put_files(longest, NULL);
    CHECK_NO_CREDENTIALS("line 3 of", .region = NULL);
}

static void test_paths_from_the_environment_and_invalid_files(void) {
    char path[128];
    reset_aws_files();
    name_file("config", path);
    put_files(NULL, "[dev]\n" KEYS);
    setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
    setenv("AWS_CONFIG_FILE", "/nonexistent/config", 1);
    setenv("AWS_PROFILE", "dev", 1);
    CHECK_CREDENTIALS("AK", "SK" MARK, "", .region = NULL);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/config", 1);
    CHECK_CREDENTIALS("AK", "SK" MARK, "", .region = NULL);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/config/below", 1);
    CHECK_NO_CREDENTIALS("~/.aws/config/below", .region = NULL);
    setenv("AWS_SHARED_CREDENTIALS_FILE", home, 1);
    CHECK_NO_CREDENTIALS("is not a file", .region = NULL);
    unsetenv("AWS_SHARED_CREDENTIALS_FILE");
    unsetenv("HOME");
    CHECK_NO_CREDENTIALS("no credentials", .region = NULL);
    setenv("HOME", home, 1);
    name_file("credentials", path);
    CHECK(mkfifo(path, 0600) == 0);
    CHECK_NO_CREDENTIALS("is not a file", .region = NULL);
    unlink(path);
    CHECK(symlink(path, path) == 0);
    cogpu_s3_settings settings = {0};
    CHECK_FAILS(cogpu_s3_credentials_find(&settings, &credentials, &error), COGPU_IO_ERROR,
                "cannot open");
    unlink(path);
}

static void test_profiles(void) {
    reset_aws_files();
    put_files("[default]\naws_access_key_id=D\naws_secret_access_key=E\n[dev]\n" KEYS, NULL);
    CHECK_CREDENTIALS("D", "E", "", .region = NULL);
    CHECK_CREDENTIALS("AK", "SK" MARK, "", .profile = "dev");
    setenv("AWS_DEFAULT_PROFILE", "dev", 1);
    CHECK_CREDENTIALS("AK", "SK" MARK, "", .profile = "");
    setenv("AWS_PROFILE", "default", 1);
    CHECK_CREDENTIALS("D", "E", "", .region = NULL);
    CHECK_NO_CREDENTIALS("profile absent (not there)", .profile = "absent");
    CHECK_NO_CREDENTIALS("profile profile dev (not there)", .profile = "profile dev");
    reset_aws_files();
    put_files(NULL, "[profile dev]\n" KEYS "aws_session_token=T\n[dev]\naws_access_key_id=wrong\n"
                    "[default]\naws_access_key_id=D\naws_secret_access_key=E\n");
    CHECK_CREDENTIALS("AK", "SK" MARK, "T", .profile = "dev");
    CHECK_CREDENTIALS("D", "E", "", .region = NULL);
    put_files(NULL, "[profile default]\n" KEYS "[profiledefault]\naws_access_key_id=wrong\n");
    CHECK_CREDENTIALS("AK", "SK" MARK, "", .region = NULL);
    put_files(NULL, "[dev]\n" KEYS);
    CHECK_NO_CREDENTIALS("profile dev (not there)", .profile = "dev");
    /* One file's token is not another file's key's. */
    put_files("[default]\naws_session_token=T\n", "[default]\n" KEYS);
    CHECK_CREDENTIALS("AK", "SK" MARK, "", .region = NULL);
    put_files("[default]\n" KEYS, "[default]\naws_access_key_id=X\naws_secret_access_key=Y\n");
    CHECK_CREDENTIALS("AK", "SK" MARK, "", .region = NULL);
}

static void test_order_of_credentials(void) {
    reset_aws_files();
    put_files("[default]\n" KEYS "[dev]\naws_access_key_id=D\naws_secret_access_key=E\n", NULL);
    setenv("AWS_ACCESS_KEY_ID", "EK", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "ES", 1);
    CHECK_CREDENTIALS("EK", "ES", "", .region = NULL);
    setenv("AWS_SESSION_TOKEN", "ET", 1);
    setenv("AWS_PROFILE", "dev", 1);
    CHECK_CREDENTIALS("EK", "ES", "ET", .region = NULL);
    CHECK_CREDENTIALS("D", "E", "", .profile = "dev");
    CHECK_CREDENTIALS("CK", "CS", "", .access_key = "CK", .secret_key = "CS");
    CHECK_CREDENTIALS("CK", "CS", "CT", .access_key = "CK", .secret_key = "CS",
                      .session_token = "CT", .profile = "dev");
    CHECK_CREDENTIALS("", "", "", .access_key = "CK", .secret_key = "CS", .is_anonymous = true);
    setenv("AWS_NO_SIGN_REQUEST", "YES", 1);
    CHECK_CREDENTIALS("", "", "", .region = NULL);
    CHECK_CREDENTIALS("CK", "CS", "", .access_key = "CK", .secret_key = "CS");
    CHECK_CREDENTIALS("D", "E", "", .profile = "dev");
    static const char *const no[] = {"NO", "false", "Off", "0", ""};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        setenv("AWS_NO_SIGN_REQUEST", no[i], 1);
        CHECK_CREDENTIALS("EK", "ES", "ET", .region = NULL);
    }
    setenv("AWS_ACCESS_KEY_ID", "", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "", 1);
    CHECK_CREDENTIALS("D", "E", "", .region = NULL);
}

static void test_incomplete_and_odd_credentials(void) {
    char token[COGPU_S3_TOKEN_BYTES + 1];
    reset_aws_files();
    CHECK_NO_CREDENTIALS("access_key is set and secret_key is not", .access_key = MARK);
    CHECK_NO_CREDENTIALS("secret_key is set and access_key is not", .secret_key = MARK);
    CHECK_NO_CREDENTIALS("secret_key has invalid characters", .access_key = "A",
                         .secret_key = MARK "\r\nx: y");
    memset(token, 't', sizeof token);
    memcpy(token, MARK, strlen(MARK));
    token[COGPU_S3_TOKEN_BYTES - 1] = '\0';
    CHECK_CREDENTIALS("A", "B", token, .access_key = "A", .secret_key = "B",
                      .session_token = token);
    token[COGPU_S3_TOKEN_BYTES - 1] = 't';
    token[COGPU_S3_TOKEN_BYTES] = '\0';
    CHECK_NO_CREDENTIALS("session_token has", .access_key = "A", .secret_key = "B",
                         .session_token = token);
    setenv("AWS_ACCESS_KEY_ID", MARK, 1);
    CHECK_NO_CREDENTIALS("AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not",
                         .region = NULL);
    setenv("AWS_SECRET_ACCESS_KEY", MARK " ", 1);
    CHECK_NO_CREDENTIALS("AWS_SECRET_ACCESS_KEY has invalid characters", .region = NULL);
    /* botocore goes on to the files here. */
    unsetenv("AWS_ACCESS_KEY_ID");
    CHECK_NO_CREDENTIALS("AWS_SECRET_ACCESS_KEY is set and AWS_ACCESS_KEY_ID is not",
                         .region = NULL);
    reset_aws_files();
    put_files("[default]\naws_access_key_id=" MARK "\n", NULL);
    CHECK_NO_CREDENTIALS("has aws_access_key_id and no aws_secret_access_key", .region = NULL);
    put_files(NULL, "[default]\naws_secret_access_key=" MARK "\naws_access_key_id =\n");
    CHECK_NO_CREDENTIALS("has aws_secret_access_key and no aws_access_key_id", .region = NULL);
}

static void test_messages_without_credentials(void) {
    reset_aws_files();
    CHECK_NO_CREDENTIALS("AWS_NO_SIGN_REQUEST=YES", .region = NULL);
    CHECK(strstr(error.message, "AWS_ACCESS_KEY_ID"));
    CHECK(strstr(error.message, "profile default (not there) in ~/.aws/credentials"));
    CHECK(strstr(error.message, "~/.aws/config"));
    put_files("[default]\n", NULL);
    CHECK_NO_CREDENTIALS("keys of profile default in", .region = NULL);
    put_files(NULL, "[profile dev]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = default\n");
    CHECK_NO_CREDENTIALS("by role_arn", .profile = "dev");
    CHECK(strstr(error.message, "--profile dev --format env)\""));
    put_files(NULL, "[default]\ncredential_process = /bin/x --secret " MARK "\n");
    CHECK_NO_CREDENTIALS("by credential_process", .region = NULL);
    put_files(NULL, "[default]\nsso_session = s\n");
    CHECK_NO_CREDENTIALS("by sso_session", .region = NULL);
    put_files("[default]\n" KEYS, "[default]\nsso_session = s\n");
    CHECK_CREDENTIALS("AK", "SK" MARK, "", .region = NULL);
    memset(&credentials, 0x55, sizeof credentials);
    cogpu_s3_credentials_wipe(&credentials);
    CHECK(is_zero(&credentials, sizeof credentials));
}

TESTS(s3_credentials) {
    make_home();
    RUN(test_files_of_credentials);
    RUN(test_odd_files_name_the_line);
    RUN(test_large_files);
    RUN(test_paths_from_the_environment_and_invalid_files);
    RUN(test_profiles);
    RUN(test_order_of_credentials);
    RUN(test_incomplete_and_odd_credentials);
    RUN(test_messages_without_credentials);
    remove_home();
    return FINISH();
}
