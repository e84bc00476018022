/* The first bytes of a file: T001 (no TIFF at all), T002 (BigTIFF's own fields). */
#include "tiff/tiff.h"

#include "support/test.h"

static cogpu_error error;
static cogpu_tiff tiff;

static cogpu_status open_bytes(const void *bytes, size_t count) {
    cogpu_limits limits = cogpu_limits_complete(NULL);
    cogpu_arena arena;
    cogpu_io *io = NULL;
    cogpu_error_clear(&error);
    cogpu_arena_open(&arena, 1 << 20);
    cogpu_status status = cogpu_io_open_memory(bytes, count, &io, &error);
    if (status == COGPU_OK)
        status = cogpu_tiff_open(&tiff, io, &limits, &arena, &error);
    cogpu_io_close(io);
    cogpu_arena_close(&arena);
    return status;
}

/* One tag that says little: the smallest file there is. */
static const uint8_t classic[] = "II*\0\x08\0\0\0\1\0\0\1\3\0\1\0\0\0\7\0\0\0\0\0\0\0";
static const uint8_t big[] = "MM\0+\0\x08\0\0\0\0\0\0\0\0\0\x10"
                             "\0\0\0\0\0\0\0\1\1\0\0\3\0\0\0\0\0\0\0\1\0\7\0\0\0\0\0\0"
                             "\0\0\0\0\0\0\0\0";

static void test_the_smallest_files(void) {
    CHECK(open_bytes(classic, sizeof classic - 1) == COGPU_OK);
    CHECK(!tiff.big_endian && !tiff.bigtiff && tiff.directory_count == 1 && tiff.ghost == 0);
    CHECK(open_bytes(big, sizeof big - 1) == COGPU_OK);
    CHECK(tiff.big_endian && tiff.bigtiff && tiff.directory_count == 1);
}

/* T001. Each prefix of a valid file: one without a header is no TIFF, the rest are truncated. The
 * last bytes are the offset of the next directory, which some writers leave out. */
static void test_every_prefix(void) {
    for (size_t bytes = 0; bytes + 5 < sizeof classic; bytes++)
        CHECK(open_bytes(classic, bytes) == (bytes < 8 ? COGPU_NOT_TIFF : COGPU_CORRUPT));
    for (size_t bytes = 0; bytes + 9 < sizeof big; bytes++)
        CHECK(open_bytes(big, bytes) == (bytes < 16 ? COGPU_NOT_TIFF : COGPU_CORRUPT));
    CHECK(open_bytes(classic, sizeof classic - 5) == COGPU_OK);
    CHECK(open_bytes(big, sizeof big - 9) == COGPU_OK);
}

static void test_wrong_magic(void) {
    uint8_t bytes[sizeof classic];
    for (size_t at = 0; at < 4; at++)
        for (unsigned value = 0; value < 256; value++) {
            memcpy(bytes, classic, sizeof classic);
            bytes[at] = (uint8_t)value;
            if (bytes[at] == classic[at] || (at == 2 && value == 43))
                continue;
            CHECK(open_bytes(bytes, sizeof classic - 1) == COGPU_NOT_TIFF);
            CHECK(strstr(error.message, "not a TIFF") != NULL);
        }
}

/* T002 */
static void test_wrong_bigtiff_fields(void) {
    uint8_t bytes[sizeof big];
    for (size_t at = 4; at < 8; at++) {
        memcpy(bytes, big, sizeof big);
        bytes[at] ^= 1;
        CHECK(open_bytes(bytes, sizeof big - 1) == COGPU_NOT_TIFF);
    }
}

static void test_first_directory_nowhere(void) {
    uint8_t bytes[sizeof classic];
    static const uint8_t offsets[][4] = {
        {0, 0, 0, 0}, {0xFF, 0xFF, 0xFF, 0xFF}, {26, 0, 0, 0}, {24, 0, 0, 0}, {25, 0, 0, 0}};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        memcpy(bytes, classic, sizeof classic);
        memcpy(bytes + 4, offsets[i], 4);
        CHECK(open_bytes(bytes, sizeof classic - 1) == COGPU_CORRUPT);
        CHECK(error.message[0] != '\0');
    }
}

TESTS(header) {
    RUN(test_the_smallest_files);
    RUN(test_every_prefix);
    RUN(test_wrong_magic);
    RUN(test_wrong_bigtiff_fields);
    RUN(test_first_directory_nowhere);
    return FINISH();
}
