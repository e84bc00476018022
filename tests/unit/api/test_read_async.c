/* cogpu_read_async and cogpu_wait: what is pending, and when the result comes. Reads on a device
 * are in unit/gpu. */
#include "unit/api/api_fixture.h"

#include "support/test.h"

static cogpu_error error;
static uint8_t got[FIXTURE_HEIGHT * FIXTURE_WIDTH];

static cogpu_pending *start(void) {
    cogpu_pending *pending = NULL;
    const cogpu_raster raster = fixture_raster(got);
    memset(got, 0, sizeof got);
    CHECK(cogpu_read_async(fixture_file, NULL, &raster, &pending, &error) == COGPU_OK);
    return pending;
}

static bool has_pixels(void) {
    return memcmp(got, fixture_pixels, sizeof got) == 0;
}

static void test_host_memory(void) {
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_pending *pending = start();
    CHECK(pending && has_pixels());
    CHECK(cogpu_wait(pending, &result, &error) == COGPU_OK && error.status == COGPU_OK);
    CHECK(result.blocks == 12);
    CHECK(result.first_bad.status == COGPU_OK && result.bad_blocks == 0);
    CHECK(cogpu_wait(start(), NULL, NULL) == COGPU_OK);
}

static void test_nothing_to_wait_for(void) {
    cogpu_result result = {.struct_size = sizeof result, .blocks = 7};
    memset(&error, 0x55, sizeof error);
    CHECK(cogpu_wait(NULL, NULL, &error) == COGPU_OK);
    CHECK(error.status == COGPU_OK && !error.message[0]);
    CHECK(cogpu_wait(NULL, &result, NULL) == COGPU_OK && result.blocks == 7);
}

/* *pending is NULL after each failure. */
static void test_failures(void) {
    const cogpu_raster raster = fixture_raster(got);
    cogpu_raster wrong = raster, unsized = raster;
    cogpu_request request = {.struct_size = sizeof request, .level = 99};
    int mark;
    cogpu_pending *const before = (cogpu_pending *)(void *)&mark, *pending = before;
    CHECK(cogpu_read_async(fixture_file, &request, &raster, &pending, &error) == COGPU_NOT_FOUND);
    CHECK(!pending && error.status == COGPU_NOT_FOUND && strstr(error.message, "level 99"));
    wrong.bands = 2, pending = before;
    CHECK(cogpu_read_async(fixture_file, NULL, &wrong, &pending, &error) ==
              COGPU_INVALID_ARGUMENT &&
          !pending);
    unsized.struct_size = 0, pending = before;
    CHECK(cogpu_read_async(fixture_file, NULL, &unsized, &pending, &error) ==
              COGPU_INVALID_ARGUMENT &&
          !pending);
    pending = before;
    CHECK(cogpu_read_async(fixture_file, NULL, NULL, &pending, &error) == COGPU_INVALID_ARGUMENT &&
          !pending);
    pending = before;
    CHECK(cogpu_read_async(NULL, NULL, &raster, &pending, &error) == COGPU_INVALID_ARGUMENT &&
          !pending);
    CHECK(cogpu_read_async(fixture_file, NULL, &raster, NULL, &error) == COGPU_INVALID_ARGUMENT);
}

/* A read that fails is not pending, since the CPU does all of it at once. */
static void test_damaged_file(void) {
    const cogpu_raster raster = fixture_raster(got);
    cogpu_request request = COGPU_REQUEST_INIT;
    cogpu_result result = COGPU_RESULT_INIT;
    cogpu_pending *pending = NULL;
    cogpu_file *file = NULL;
    CHECK(cogpu_open_memory(fixture_bytes.data, fixture_bytes.bytes - 30, NULL, &file, &error) ==
          COGPU_OK);
    CHECK(cogpu_read_async(file, &request, &raster, &pending, &error) == COGPU_CORRUPT);
    CHECK(!pending && error.block >= 0);
    request.fill_bad_blocks = 1;
    CHECK(cogpu_read_async(file, &request, &raster, &pending, &error) == COGPU_OK && pending);
    CHECK(cogpu_wait(pending, &result, &error) == COGPU_OK && error.status == COGPU_OK);
    CHECK(result.bad_blocks == 1 && result.first_bad.status == COGPU_CORRUPT);
    cogpu_close(file);
}

/* cogpu_wait frees the read whatever the result is like. */
static void test_result_without_size(void) {
    cogpu_result result = {.struct_size = 0};
    CHECK(cogpu_wait(start(), &result, &error) == COGPU_INVALID_ARGUMENT && has_pixels());
    CHECK(strstr(error.message, "COGPU_RESULT_INIT"));
}

static void test_any_order(void) {
    cogpu_pending *pending[4];
    for (int i = 0; i < 4; i++)
        pending[i] = start();
    for (int i = 3; i >= 0; i--) {
        cogpu_result result = COGPU_RESULT_INIT;
        CHECK(cogpu_wait(pending[i], &result, &error) == COGPU_OK && result.blocks == 12);
    }
}

TESTS(read_async) {
    if (!fixture_open())
        return 1;
    RUN(test_host_memory);
    RUN(test_nothing_to_wait_for);
    RUN(test_failures);
    RUN(test_damaged_file);
    RUN(test_result_without_size);
    RUN(test_any_order);
    fixture_close();
    return FINISH();
}
