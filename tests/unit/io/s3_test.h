/*
 * What the tests of S3 share: checks of messages, which must have no secret, and a home folder with
 * the files of AWS.
 */
#ifndef COGPU_TESTS_S3_TEST_H
#define COGPU_TESTS_S3_TEST_H

#include "io/store/s3.h"
#include "support/test.h"

#include <stdint.h>

/* Part of all that is secret here: no message may have it. */
#define MARK "hunter2"
/* One more than fits. */
#define SIXTY_FOUR "0123456789012345678901234567890123456789012345678901234567890123"

void check_no_secret(const char *message, int line);

/* The call sets `error` of the file and fails with that status; the message has the word and no
 * secret. */
#define CHECK_FAILS(call, expected, word)                                                          \
    do {                                                                                           \
        cogpu_error_clear(&error);                                                                 \
        CHECK((call) == (expected));                                                               \
        CHECK(error.status == (expected));                                                         \
        if (!strstr(error.message, word)) {                                                        \
            test_broken = 1;                                                                       \
            printf("%s:%d: no \"%s\" in \"%s\"\n", __FILE__, __LINE__, word, error.message);       \
        }                                                                                          \
        check_no_secret(error.message, __LINE__);                                                  \
    } while (0)

bool is_zero(const void *memory, size_t bytes);

/* ---- a home folder ---- */

extern char home[64];

void name_file(const char *name, char path[128]);

/* NULL: no such file. */
void put_bytes(const char *name, const char *text, size_t bytes);

void put_files(const char *credentials, const char *config);

/* No variables and no files of AWS. */
void reset_aws_files(void);

void make_home(void);

void remove_home(void);

#endif
