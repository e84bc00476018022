/*
 * The walk over directories: loops (T003), offsets beyond the file and limits (T004), SubIFDs
 * (T005), duplicates (T006), order (T007), counts that are absurd (T014, T205), directories that
 * share their tags' values (T218).
 */
#include "tiff/tiff.h"

#include "support/test.h"
#include "support/tiff_builder.h"

#include <time.h>

static tiff_builder file;
static cogpu_tiff tiff;
static cogpu_arena arena;
static cogpu_io *io;
static cogpu_error error;

static cogpu_status open_with(cogpu_limits limits) {
    limits = cogpu_limits_complete(&limits);
    cogpu_error_clear(&error);
    cogpu_arena_open(&arena, limits.working_memory_bytes);
    CHECK(cogpu_io_open_memory(file.bytes, file.size, &io, &error) == COGPU_OK);
    return cogpu_tiff_open(&tiff, io, &limits, &arena, &error);
}

static cogpu_status open_file(void) {
    return open_with((cogpu_limits)COGPU_LIMITS_INIT);
}

static void close_file(void) {
    cogpu_io_close(io);
    cogpu_arena_close(&arena);
    build_close(&file);
}

/* Overwrites an offset in the file. */
static void link_to(size_t at, uint64_t offset) {
    build_put(&file, file.bytes + at, offset, file.bigtiff ? 8 : 4);
}

static bool warns_of(const char *text) {
    return tiff.warning && strstr(tiff.warning, text);
}

static void test_chains_in_all_four_forms(void) {
    for (int form = 0; form < 4; form++) {
        build_open(&file, form & 1, form & 2);
        for (uint16_t i = 0; i < 20; i++) {
            build_short(&file, 256, i);
            build_long(&file, 254, i % 5);
            build_directory(&file, true);
        }
        CHECK(open_file() == COGPU_OK);
        CHECK(tiff.directory_count == 20 && !tiff.warning);
        for (uint32_t i = 0; i < tiff.directory_count; i++) {
            uint64_t width = 99;
            CHECK(cogpu_tiff_u64(&tiff, i, 256, 0, &width, &error) == COGPU_OK && width == i);
            CHECK(tiff.directories[i].subfile_type == i % 5 && tiff.directories[i].parent == -1);
        }
        close_file();
    }
}

/* T003: to itself, to the first, to the middle. What is before the loop is kept. */
static void test_loops(void) {
    for (int to = 0; to < 3; to++)
        for (int form = 0; form < 4; form++) {
            uint64_t at[3];
            build_open(&file, form & 1, form & 2);
            for (int i = 0; i < 3; i++) {
                build_short(&file, 256, 1);
                at[i] = build_directory(&file, true);
            }
            link_to(file.link, at[to]);
            CHECK(open_file() == COGPU_OK);
            CHECK(tiff.directory_count == 3 && warns_of("malformed"));
            close_file();
        }
}

static void test_loops_through_sub_directories(void) {
    build_open(&file, false, false);
    size_t array = build_data(&file, NULL, 8);
    uint8_t offset[4];
    build_put(&file, offset, array, 4);
    build_short(&file, 256, 1);
    build_raw(&file, 330, BUILD_LONG, 2, offset, 4);
    uint64_t first = build_directory(&file, true);
    build_short(&file, 256, 2);
    uint32_t back = (uint32_t)first;
    build_tag(&file, 330, BUILD_LONG, 1, &back);
    uint64_t second = build_directory(&file, false);
    link_to(array, second);
    link_to(array + 4, second); /* the same twice, and it names its parent */
    CHECK(open_file() == COGPU_OK);
    CHECK(tiff.directory_count == 2 && tiff.directories[1].parent == 0 && tiff.warning);
    close_file();
}

/* T004 */
static void test_offsets_beyond_the_file(void) {
    static const uint64_t beyond[] = {1000000, UINT32_MAX, UINT64_MAX, UINT64_MAX - 7, 1ULL << 63};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        build_open(&file, false, true);
        build_short(&file, 256, 1);
        build_directory(&file, true);
        link_to(file.link, beyond[i]);
        CHECK(open_file() == COGPU_OK && tiff.directory_count == 1 && warns_of("malformed"));
        close_file();
        build_open(&file, false, true);
        build_short(&file, 256, 1);
        build_directory(&file, true);
        link_to(8, beyond[i]);
        CHECK(open_file() == COGPU_CORRUPT && error.directory == 0);
        close_file();
    }
}

static void build_chain(int count) {
    build_open(&file, false, false);
    for (int i = 0; i < count; i++) {
        build_short(&file, 256, 1);
        build_short(&file, 257, 1);
        build_directory(&file, true);
    }
}

static void test_limits_just_met_and_just_missed(void) {
    build_chain(8);
    CHECK(open_with((cogpu_limits){.struct_size = sizeof(cogpu_limits), .directories = 8}) ==
              COGPU_OK &&
          !tiff.warning);
    CHECK(tiff.directory_count == 8);
    cogpu_io_close(io);
    cogpu_arena_close(&arena);
    CHECK(open_with((cogpu_limits){.struct_size = sizeof(cogpu_limits), .directories = 7}) ==
              COGPU_OK &&
          tiff.warning);
    CHECK(tiff.directory_count == 7);
    cogpu_io_close(io);
    cogpu_arena_close(&arena);
    CHECK(open_with((cogpu_limits){.struct_size = sizeof(cogpu_limits), .tags = 2}) == COGPU_OK &&
          tiff.directory_count == 8);
    cogpu_io_close(io);
    cogpu_arena_close(&arena);
    CHECK(open_with((cogpu_limits){.struct_size = sizeof(cogpu_limits), .tags = 1}) ==
          COGPU_LIMIT_EXCEEDED);
    CHECK(strstr(error.message, "tags") != NULL);
    close_file();
}

/* T005: one below the other, deeper than anybody follows. */
static void test_sub_directories_are_bounded_in_depth(void) {
    build_open(&file, false, true);
    uint64_t below = 0;
    for (int i = 0; i < 10; i++) {
        build_short(&file, 256, 1);
        if (below)
            build_tag(&file, 330, BUILD_LONG8, 1, &below);
        below = build_directory(&file, i == 9);
    }
    CHECK(open_file() == COGPU_OK);
    CHECK(tiff.directory_count == 1 + COGPU_SUBIFD_DEPTH_MAX);
    for (uint32_t i = 1; i < tiff.directory_count; i++)
        CHECK(tiff.directories[i].parent == (int32_t)i - 1);
    close_file();
}

static void test_sub_directories_in_order_with_chains(void) {
    build_open(&file, true, false);
    uint32_t below[2];
    build_short(&file, 256, 10);
    uint64_t chained = build_directory(&file, false);
    for (uint16_t i = 0; i < 2; i++) {
        build_short(&file, 256, i);
        below[i] = (uint32_t)build_directory(&file, false);
    }
    link_to(below[0] + 2 + 12, chained);
    build_short(&file, 256, 3);
    build_tag(&file, 330, 13, 2, below);
    build_directory(&file, true);
    CHECK(open_file() == COGPU_OK && tiff.directory_count == 4 && !tiff.warning);
    CHECK(tiff.directories[1].offset == below[0] && tiff.directories[2].offset == chained);
    CHECK(tiff.directories[3].offset == below[1] && tiff.directories[2].parent == 0);
    close_file();
}

/* T006: the first counts, and a warning tells. */
static void test_duplicates(void) {
    build_open(&file, false, false);
    build_short(&file, 256, 5);
    build_short(&file, 256, 6);
    build_short(&file, 257, 7);
    uint64_t at = build_directory(&file, true);
    /* qsort need not keep their order: write the values by hand. */
    build_put(&file, file.bytes + at + 2 + 8, 5, 2);
    build_put(&file, file.bytes + at + 2 + 12 + 8, 6, 2);
    uint64_t width = 0;
    CHECK(open_file() == COGPU_OK && warns_of("twice"));
    CHECK(cogpu_tiff_u64(&tiff, 0, 256, 0, &width, &error) == COGPU_OK && width == 5);
    CHECK(tiff.directories[0].entry_count == 2);
    close_file();
}

/* T007 */
static void test_unsorted_entries_are_found(void) {
    build_open(&file, false, false);
    build_short(&file, 256, 5);
    build_short(&file, 257, 6);
    build_short(&file, 258, 7);
    uint64_t at = build_directory(&file, true);
    uint8_t entry[12];
    memcpy(entry, file.bytes + at + 2, 12);
    memmove(file.bytes + at + 2, file.bytes + at + 2 + 12, 24);
    memcpy(file.bytes + at + 2 + 24, entry, 12);
    uint64_t value = 0;
    CHECK(open_file() == COGPU_OK && !tiff.warning);
    CHECK(cogpu_tiff_u64(&tiff, 0, 256, 0, &value, &error) == COGPU_OK && value == 5);
    CHECK(cogpu_tiff_u64(&tiff, 0, 258, 0, &value, &error) == COGPU_OK && value == 7);
    CHECK(tiff.directories[0].entries[0].tag == 257);
    close_file();
}

static void test_unknown_types_are_left_out(void) {
    static const uint16_t types[] = {0, 14, 15, 19, 255, 65535};
    build_open(&file, false, false);
    build_short(&file, 256, 1);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        build_raw(&file, (uint16_t)(300 + i), types[i], 1, "abcd", 4);
    build_directory(&file, true);
    CHECK(open_file() == COGPU_OK && warns_of("unknown type"));
    CHECK(tiff.directories[0].entry_count == 1);
    close_file();
}

/* T002, T014, T205: a count that no file can hold stays what it is and fails when it is read. */
static void test_huge_counts(void) {
    static const uint64_t counts[] = {UINT64_MAX, 1ULL << 61, 1ULL << 32, 1ULL << 40};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint64_t numbers[2];
        uint8_t where[8];
        build_open(&file, false, true);
        build_put(&file, where, 16, 8);
        build_raw(&file, 324, BUILD_LONG8, counts[i], where, 8);
        build_raw(&file, 270, BUILD_ASCII, counts[i], where, 8);
        build_directory(&file, true);
        CHECK(open_file() == COGPU_OK && tiff.directories[0].entry_count == 2);
        const cogpu_entry *entry = cogpu_tiff_find(&tiff, 0, 324);
        CHECK(entry && entry->count == counts[i] && !entry->is_inline);
        CHECK(cogpu_tiff_u64s(&tiff, entry, 0, 2, numbers, &error) == COGPU_OK);
        CHECK(cogpu_tiff_u64s(&tiff, entry, counts[i] - 2, 2, numbers, &error) == COGPU_CORRUPT);
        const char *text = NULL;
        CHECK(cogpu_tiff_text(&tiff, 0, 270, &arena, &text, &error) == COGPU_CORRUPT);
        close_file();
    }
}

static void test_huge_numbers_of_entries(void) {
    static const uint64_t counts[] = {0, 4096, 4097, UINT64_MAX, UINT64_MAX / 20 + 1, 1ULL << 60};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        build_open(&file, false, true);
        build_short(&file, 256, 1);
        uint64_t at = build_directory(&file, true);
        build_put(&file, file.bytes + at, counts[i], 8);
        cogpu_status status = open_file();
        CHECK(status == (counts[i] > 4096 ? COGPU_LIMIT_EXCEEDED : COGPU_CORRUPT));
        close_file();
    }
}

/* Directories at every byte of a run of others: together longer than the file. */
static void test_overlapping_directories_are_bounded(void) {
    build_open(&file, false, false);
    size_t count = 3000;
    uint8_t *bytes = malloc(count);
    CHECK(bytes != NULL);
    memset(bytes, 0, count);
    for (size_t i = 0; i + 2 < count; i += 2)
        bytes[i] = 100; /* each even offset: a directory of 100 entries */
    uint64_t start = build_data(&file, bytes, count);
    free(bytes);
    uint32_t *offsets = malloc(700 * sizeof *offsets);
    for (uint32_t i = 0; i < 700; i++)
        offsets[i] = (uint32_t)start + 2 * i;
    build_short(&file, 256, 1);
    build_tag(&file, 330, BUILD_LONG, 700, offsets);
    build_directory(&file, true);
    free(offsets);
    CHECK(open_file() == COGPU_OK && tiff.warning);
    CHECK(tiff.directory_count < 10);
    close_file();
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* T217, T218: a value that all directories share costs its size each, and the file pays once. */
static void test_shared_values_are_bounded(void) {
    enum { SHARED = 200000, DIRECTORIES = 4000 };
    build_open(&file, false, false);
    uint8_t where[4];
    build_put(&file, where, build_data(&file, NULL, SHARED), 4);
    for (int i = 0; i < DIRECTORIES; i++) {
        build_short(&file, 256, 1);
        build_raw(&file, 270, BUILD_ASCII, SHARED, where, 4);
        build_directory(&file, true);
    }
    CHECK(open_file() == COGPU_OK && tiff.warning);
    CHECK((uint64_t)tiff.directory_count * SHARED < 32 * (uint64_t)file.size);
    CHECK(tiff.directory_count > 4); /* a few that share are nothing to refuse */
    close_file();
}

static void test_shared_lists_of_sub_directories_are_bounded(void) {
    enum { LISTED = 60000, DIRECTORIES = 2000 };
    build_open(&file, false, false);
    uint8_t where[4];
    build_put(&file, where, build_data(&file, NULL, LISTED * 4), 4);
    for (int i = 0; i < LISTED; i++)
        link_to(8 + 4 * (size_t)i, 9);
    for (int i = 0; i < DIRECTORIES; i++) {
        build_short(&file, 256, 1);
        build_raw(&file, 330, BUILD_LONG, LISTED, where, 4);
        build_directory(&file, true);
    }
    double start = seconds();
    CHECK(open_file() == COGPU_OK);
    CHECK(seconds() - start < 5); /* without a bound: minutes */
    close_file();
}

/* Warnings tell a little, however much there is to tell. */
static void test_warnings_are_bounded(void) {
    build_open(&file, false, false);
    for (uint16_t i = 0; i < 60; i++)
        build_raw(&file, (uint16_t)(300 + i), 99, 1, "abcd", 4);
    build_short(&file, 256, 1);
    build_directory(&file, true);
    for (int k = 0; k < 50; k++) {
        for (uint16_t i = 0; i < 60; i++)
            build_raw(&file, (uint16_t)(300 + i), 99, 1, "abcd", 4);
        build_directory(&file, true);
    }
    CHECK(open_file() == COGPU_OK && tiff.directory_count == 51);
    CHECK(tiff.warning && strlen(tiff.warning) < 2500);
    close_file();
}

TESTS(directory) {
    RUN(test_chains_in_all_four_forms);
    RUN(test_loops);
    RUN(test_loops_through_sub_directories);
    RUN(test_offsets_beyond_the_file);
    RUN(test_limits_just_met_and_just_missed);
    RUN(test_sub_directories_are_bounded_in_depth);
    RUN(test_sub_directories_in_order_with_chains);
    RUN(test_duplicates);
    RUN(test_unsorted_entries_are_found);
    RUN(test_unknown_types_are_left_out);
    RUN(test_huge_counts);
    RUN(test_huge_numbers_of_entries);
    RUN(test_overlapping_directories_are_bounded);
    RUN(test_shared_values_are_bounded);
    RUN(test_shared_lists_of_sub_directories_are_bounded);
    RUN(test_warnings_are_bounded);
    return FINISH();
}
