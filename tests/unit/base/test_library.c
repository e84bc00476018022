/* Libraries that are loaded at run time: which name is tried, which symbols must be there, and what
 * the reason says if not. */
#include "base/library.h"

#include "support/test.h"

#include <stdlib.h>

static double (*cosine)(double);
static int (*missing)(void);

static const cogpu_library_symbol symbols[] = {{"cos", &cosine, false},
                                               {"cogpu_no_such_function", &missing, true}};

static cogpu_library library_of(const char *first, const char *second) {
    return (cogpu_library){.title = "A library",
                           .variable = "COGPU_TEST_LIBRARY",
                           .names = {first, second},
                           .symbols = symbols,
                           .symbol_count = 2,
                           .lock = PTHREAD_MUTEX_INITIALIZER};
}

static void test_symbols_are_resolved(void) {
    cogpu_library library = library_of("libm.so.6", NULL);
    missing = (int (*)(void))1;
    CHECK(!cogpu_library_load(&library) && cosine && cosine(0) == 1);
    CHECK(!missing);
}

static void test_names_are_tried_in_order(void) {
    cogpu_library library = library_of("libcogpu-none.so.9", "libm.so.6");
    CHECK(!cogpu_library_load(&library));
    library = library_of("libcogpu-none.so.9", "libcogpu-none.so.8");
    const char *reason = cogpu_library_load(&library);
    CHECK(reason && strstr(reason, "A library (libcogpu-none.so.9) is not installed"));
}

static void test_a_missing_symbol_is_named(void) {
    static const cogpu_library_symbol wanted[] = {{"cogpu_no_such_function", &missing, false}};
    cogpu_library library = library_of("libm.so.6", NULL);
    library.symbols = wanted;
    library.symbol_count = 1;
    const char *reason = cogpu_library_load(&library);
    CHECK(reason && strstr(reason, "too old: it lacks cogpu_no_such_function"));
}

static void test_the_environment_names_another_file(void) {
    cogpu_library library = library_of("libm.so.6", NULL);
    CHECK(!cogpu_library_override(&library));
    setenv("COGPU_TEST_LIBRARY", "/nowhere/libx.so", 1);
    CHECK(cogpu_library_override(&library));
    const char *reason = cogpu_library_load(&library);
    CHECK(reason && strstr(reason, "COGPU_TEST_LIBRARY"));
    setenv("COGPU_TEST_LIBRARY", "", 1);
    CHECK(!cogpu_library_override(&library));
    CHECK(cogpu_library_load(&library) == reason); /* tried once */
    setenv("COGPU_TEST_LIBRARY", "libm.so.6", 1);
    library = library_of("libcogpu-none.so.9", NULL);
    CHECK(!cogpu_library_load(&library));
    unsetenv("COGPU_TEST_LIBRARY");
}

static void *load_shared(void *library) {
    CHECK(!cogpu_library_load(library) && cosine(0) == 1);
    return NULL;
}

static void test_threads_load_it_once(void) {
    cogpu_library library = library_of("libm.so.6", NULL);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, load_shared, &library) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

TESTS(library) {
    RUN(test_symbols_are_resolved);
    RUN(test_names_are_tried_in_order);
    RUN(test_a_missing_symbol_is_named);
    RUN(test_the_environment_names_another_file);
    RUN(test_threads_load_it_once);
    return FINISH();
}
