#include "unit/io/s3_test.h"

#include <sys/stat.h>
#include <unistd.h>

void check_no_secret(const char *message, int line) {
    if (!strstr(message, MARK))
        return;
    test_broken = 1;
    printf("line %d: a secret in \"%s\"\n", line, message);
}

char home[64];

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

void name_file(const char *name, char path[128]) {
    snprintf(path, 128, "%s/.aws/%s", home, name);
}

void put_bytes(const char *name, const char *text, size_t bytes) {
    char path[128];
    name_file(name, path);
    unlink(path);
    FILE *file = text ? fopen(path, "wb") : NULL;
    if (file) {
        CHECK(fwrite(text, 1, bytes, file) == bytes);
        fclose(file);
    }
}

void put_files(const char *credentials, const char *config) {
    put_bytes("credentials", credentials, credentials ? strlen(credentials) : 0);
    put_bytes("config", config, config ? strlen(config) : 0);
}

void reset_aws_files(void) {
    forget_environment();
    put_files(NULL, NULL);
}

void make_home(void) {
    char folder[128];
    snprintf(home, sizeof home, "/tmp/cogpu-s3-XXXXXX");
    CHECK(mkdtemp(home) != NULL);
    snprintf(folder, sizeof folder, "%s/.aws", home);
    CHECK(mkdir(folder, 0700) == 0);
}

void remove_home(void) {
    char folder[128];
    put_files(NULL, NULL);
    snprintf(folder, sizeof folder, "%s/.aws", home);
    CHECK(rmdir(folder) == 0 && rmdir(home) == 0);
}

bool is_zero(const void *memory, size_t bytes) {
    const uint8_t *at = memory;
    for (size_t i = 0; i < bytes; i++)
        if (at[i])
            return false;
    return true;
}
