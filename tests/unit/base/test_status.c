/* Errors: names, the location set by the innermost caller, texts that are always terminated. */
#include "base/status.h"

#include "support/test.h"

static void test_names(void) {
    CHECK_TEXT(cogpu_status_name(COGPU_OK), "ok");
    CHECK_TEXT(cogpu_status_name(COGPU_CORRUPT), "corrupt");
    CHECK_TEXT(cogpu_status_name(COGPU_NOT_FOUND), "not_found");
    CHECK_TEXT(cogpu_status_name(COGPU_CANCELLED), "cancelled");
    CHECK_TEXT(cogpu_status_name((cogpu_status)(COGPU_CANCELLED + 1)), "unknown");
    CHECK_TEXT(cogpu_status_name((cogpu_status)-1), "unknown");
}

static void test_fail_fills_and_clears(void) {
    cogpu_error error;
    memset(&error, 0x55, sizeof error);
    CHECK(cogpu_fail(&error, COGPU_LIMIT_EXCEEDED, "%d of %s", 7, "x") == COGPU_LIMIT_EXCEEDED);
    CHECK(error.status == COGPU_LIMIT_EXCEEDED && error.directory == -1 && error.block == -1);
    CHECK(error.offset == -1);
    CHECK_TEXT(error.message, "7 of x");
    CHECK(cogpu_fail(NULL, COGPU_IO_ERROR, "no error is asked for") == COGPU_IO_ERROR);
    cogpu_error_clear(&error);
    CHECK(error.status == COGPU_OK && error.message[0] == '\0' && error.offset == -1);
    cogpu_error_clear(NULL);
}

static void test_long_text_is_cut_and_closed(void) {
    cogpu_error error;
    char text[1000];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    CHECK(cogpu_fail(&error, COGPU_CORRUPT, "%s", text) == COGPU_CORRUPT);
    CHECK(strlen(error.message) == sizeof error.message - 1);
}

static void test_the_innermost_place_stays(void) {
    cogpu_error error;
    CHECK(cogpu_fail(&error, COGPU_CORRUPT, "x") == COGPU_CORRUPT);
    cogpu_error_locate(&error, -1, 5, -1);
    CHECK(error.directory == -1 && error.block == 5 && error.offset == -1);
    cogpu_error_locate(&error, 3, 9, 100);
    CHECK(error.directory == 3 && error.block == 5 && error.offset == 100);
    cogpu_error_locate(NULL, 1, 2, 3);
}

static cogpu_status tried(cogpu_status status, int *reached) {
    TRY(status);
    *reached = 1;
    return COGPU_OK;
}

static void test_try_returns_at_once(void) {
    int reached = 0;
    CHECK(tried(COGPU_IO_ERROR, &reached) == COGPU_IO_ERROR && !reached);
    CHECK(tried(COGPU_OK, &reached) == COGPU_OK && reached);
}

TESTS(status) {
    RUN(test_names);
    RUN(test_fail_fills_and_clears);
    RUN(test_long_text_is_cut_and_closed);
    RUN(test_the_innermost_place_stays);
    RUN(test_try_returns_at_once);
    return FINISH();
}
