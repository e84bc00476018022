/*
 * A test program: functions that CHECK, run by RUN, counted by a last line "N passed, N failed".
 * With COGPU_TEST in the environment only the function of that name is run.
 */
#ifndef COGPU_TESTS_TEST_H
#define COGPU_TESTS_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int test_passed, test_failed, test_broken;

/* Goes on after a failure, so that one run shows all of them. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            test_broken = 1;                                                                       \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                         \
        }                                                                                          \
    } while (0)

#define CHECK_TEXT(actual, expected)                                                               \
    do {                                                                                           \
        const char *actual_ = (actual), *expected_ = (expected);                                   \
        if (!actual_ || strcmp(actual_, expected_) != 0) {                                         \
            test_broken = 1;                                                                       \
            printf("%s:%d: \"%s\", expected \"%s\"\n", __FILE__, __LINE__,                         \
                   actual_ ? actual_ : "(null)", expected_);                                       \
        }                                                                                          \
    } while (0)

static inline bool test_is_chosen(const char *name) {
    const char *chosen = getenv("COGPU_TEST");
    return !chosen || strcmp(chosen, name) == 0;
}

#define RUN(function)                                                                              \
    do {                                                                                           \
        if (!test_is_chosen(#function))                                                            \
            break;                                                                                 \
        test_broken = 0;                                                                           \
        function();                                                                                \
        if (test_broken) {                                                                         \
            test_failed++;                                                                         \
            printf("FAILED %s\n", #function);                                                      \
        } else {                                                                                   \
            test_passed++;                                                                         \
        }                                                                                          \
    } while (0)

#define FINISH() (printf("%d passed, %d failed\n", test_passed, test_failed), test_failed != 0)

#endif
