/*
 * The main program of a module's tests.
 *
 *     test_io                  all suites, one after the other
 *     test_io url              one suite
 *     test_io coalesce 7       with an argument for the suite: a seed
 *     test_io --list           names of the suites
 *
 * The last line is "N passed, N failed". SUITES_FILE is generated: SUITE(name) for each file.
 */
#include "support/test.h"

int test_passed, test_failed, test_broken;
int test_argc;
char **test_argv;

#define SUITE(name) int cogpu_tests_##name(void);
#include SUITES_FILE
#undef SUITE

static const struct suite {
    const char *name;
    int (*run)(void);
} suites[] = {
#define SUITE(name) {#name, cogpu_tests_##name},
#include SUITES_FILE
#undef SUITE
};
enum { SUITE_COUNT = sizeof suites / sizeof *suites };

bool is_deep_run(void) {
    return getenv("COGPU_TEST_DEEP") != NULL;
}

void test_run(const char *name, void (*function)(void)) {
    const char *selected = getenv("COGPU_TEST");
    if (selected && strcmp(selected, name) != 0)
        return;
    test_broken = 0;
    function();
    if (test_broken) {
        test_failed++;
        printf("FAILED %s\n", name);
    } else {
        test_passed++;
    }
}

static int list_suites(void) {
    for (int i = 0; i < SUITE_COUNT; i++)
        printf("%s\n", suites[i].name);
    return 0;
}

/* A suite that gives up before its end fails without a failed function: *status tells. */
static int run_suites(const char *name, int *status) {
    int found = 0;
    for (int i = 0; i < SUITE_COUNT; i++) {
        if (name && strcmp(suites[i].name, name) != 0)
            continue;
        *status |= suites[i].run() != 0;
        found++;
    }
    return found;
}

int main(int argc, char **argv) {
    int status = 0;
    const char *name = argc > 1 ? argv[1] : NULL;
    if (name && strcmp(name, "--list") == 0)
        return list_suites();
    test_argc = argc > 1 ? argc - 1 : argc;
    test_argv = argc > 1 ? argv + 1 : argv;
    if (!run_suites(name, &status)) {
        printf("no suite %s\n0 passed, 1 failed\n", name);
        return 1;
    }
    printf("%d passed, %d failed\n", test_passed, test_failed);
    return status;
}
