/*
 * The test framework. A file of tests is a suite:
 *
 *     static void adds(void) { CHECK(1 + 1 == 2); }
 *
 *     TESTS(sums) {
 *         RUN(adds);
 *         return FINISH();
 *     }
 *
 * One program per module holds the suites of its files (runner.c). COGPU_TEST in the environment
 * selects one function.
 */
#ifndef COGPU_TESTS_SUPPORT_TEST_H
#define COGPU_TESTS_SUPPORT_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts of the suite that runs; test_broken: the function that runs has a failed check. */
extern int test_passed, test_failed, test_broken;

/* What follows the name of the suite on the command line, with that name first. */
extern int test_argc;
extern char **test_argv;

/* Whether this is a run of all tests (make test-deep), with COGPU_TEST_DEEP in the environment:
 * then sweeps try each case, and otherwise a sample. */
bool is_deep_run(void);

#define TESTS(suite)                                                                               \
    int cogpu_tests_##suite(void);                                                                 \
    int cogpu_tests_##suite(void)

/* Continues after a failure, so that one run shows all of them. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            test_broken = 1;                                                                       \
            printf("%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition);                   \
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

#define RUN(function) test_run(#function, function)
void test_run(const char *name, void (*function)(void));

/* The exit status of the suite. */
#define FINISH() (test_failed != 0)

#endif
