/* GDAL's ghost area (T072): a valid one is used, a malformed one promises nothing and is no error.
 */
#include "tiff/tiff.h"

#include "support/test.h"
#include "support/tiff_builder.h"

#include <stdio.h>

static const char promises[] = "LAYOUT=IFDS_BEFORE_DATA\n"
                               "BLOCK_ORDER=ROW_MAJOR\n"
                               "BLOCK_LEADER=SIZE_AS_UINT4\n"
                               "BLOCK_TRAILER=LAST_4_BYTES_REPEATED\n"
                               "KNOWN_INCOMPATIBLE_EDITION=NO\n ";

enum {
    ALL = COGPU_GHOST_PRESENT | COGPU_GHOST_IFDS_BEFORE_DATA | COGPU_GHOST_ROW_MAJOR |
          COGPU_GHOST_LEADER | COGPU_GHOST_TRAILER
};

/* The promises of a file that has this text after its header; UINT32_MAX where it did not open. */
static uint32_t ghost_of(const char *text, size_t bytes, int form) {
    tiff_builder file;
    cogpu_limits limits = cogpu_limits_complete(NULL);
    cogpu_arena arena;
    cogpu_io *io = NULL;
    cogpu_tiff tiff = {0};
    cogpu_error error;
    build_open(&file, form & 1, form & 2);
    build_data(&file, text, bytes);
    build_short(&file, 256, 1);
    build_directory(&file, true);
    cogpu_arena_open(&arena, 1 << 20);
    CHECK(cogpu_io_open_memory(file.bytes, file.size, &io, &error) == COGPU_OK);
    cogpu_status status = cogpu_tiff_open(&tiff, io, &limits, &arena, &error);
    cogpu_io_close(io);
    cogpu_arena_close(&arena);
    build_close(&file);
    return status == COGPU_OK ? tiff.ghost : UINT32_MAX;
}

/* The same with an opening that states `stated` bytes. */
static uint32_t ghost_stating(const char *stated, const char *text, int form) {
    static char area[24000];
    int bytes =
        snprintf(area, sizeof area, "GDAL_STRUCTURAL_METADATA_SIZE=%s bytes\n%s", stated, text);
    return ghost_of(area, (size_t)bytes, form);
}

static uint32_t ghost_with(const char *text, int form) {
    char stated[16];
    snprintf(stated, sizeof stated, "%06d", (int)strlen(text));
    return ghost_stating(stated, text, form);
}

static void test_all_promises(void) {
    for (int form = 0; form < 4; form++) {
        CHECK(ghost_with(promises, form) == ALL);
        CHECK(ghost_of("", 0, form) == 0);
    }
}

static void test_unknown_lines(void) {
    char text[1024];
    snprintf(text, sizeof text, "  SOMETHING=ELSE\n  %s\nMASK_INTERLEAVED_WITH_IMAGERY=YES\n",
             promises);
    CHECK(ghost_with(text, 0) == (ALL | COGPU_GHOST_MASK_INTERLEAVED));
    CHECK(ghost_with("BLOCK_LEADER=SOMETHING_ELSE\n", 0) == COGPU_GHOST_PRESENT);
    CHECK(ghost_with("x", 0) == COGPU_GHOST_PRESENT);
}

static void test_an_edited_file_says_so(void) {
    CHECK(ghost_with("KNOWN_INCOMPATIBLE_EDITION=YES\n", 0) & COGPU_GHOST_BROKEN);
    CHECK(!(ghost_with(promises, 0) & COGPU_GHOST_BROKEN));
}

static void test_sizes_that_are_wrong(void) {
    static const char *const stated[] = {"000000", "99999x", "-00001", "      ",
                                         "999999", "004097", "+00005"};
    for (size_t i = 0; i < sizeof stated / sizeof *stated; i++)
        CHECK(ghost_stating(stated[i], promises, 0) == 0);
    /* The promises beyond the size that is stated are none. */
    CHECK(ghost_stating("000024", promises, 0) ==
          (COGPU_GHOST_PRESENT | COGPU_GHOST_IFDS_BEFORE_DATA));
    CHECK(ghost_stating("000023", promises, 0) ==
          (COGPU_GHOST_PRESENT | COGPU_GHOST_IFDS_BEFORE_DATA));
    CHECK(ghost_stating("000022", promises, 0) == COGPU_GHOST_PRESENT);
}

/* Longer than any such text is, in a file that is long enough. */
static void test_a_text_that_is_too_long(void) {
    static char text[20000];
    memset(text, ' ', sizeof text);
    memcpy(text, promises, strlen(promises));
    for (size_t bytes = 4090; bytes <= 4103; bytes++) {
        text[bytes] = '\0';
        uint32_t ghost = ghost_with(text, 0);
        CHECK(ghost == (bytes <= 4096 ? ALL : 0));
        text[bytes] = ' ';
    }
    text[sizeof text - 1] = '\0';
    CHECK(ghost_with(text, 0) == 0);
}

/* A size that ends beyond the file, and a file that ends inside the opening. */
static void test_cut_off(void) {
    CHECK(ghost_stating("004000", promises, 0) == 0);
    const char opening[] = "GDAL_STRUCTURAL_METADATA_SIZE=000100 bytes\n";
    for (size_t bytes = 0; bytes < sizeof opening; bytes++)
        CHECK(ghost_of(opening, bytes, 0) != UINT32_MAX);
}

TESTS(ghost) {
    RUN(test_all_promises);
    RUN(test_unknown_lines);
    RUN(test_an_edited_file_says_so);
    RUN(test_sizes_that_are_wrong);
    RUN(test_a_text_that_is_too_long);
    RUN(test_cut_off);
    return FINISH();
}
