/*
 * Directories and headers that we write: our own reader finds in them what went in, and their bytes
 * stand where TIFF and GDAL's COG driver want them.
 */
#include "tiff/write.h"

#include "support/test.h"

#include <stdlib.h>

static cogpu_arena arena, read_arena;
static cogpu_error error;
static cogpu_tiff tiff;
static cogpu_io *io;
static uint8_t *bytes;
static uint64_t end;

enum { START = 192, FAR = 1000 };

static void open_arena(void) {
    cogpu_error_clear(&error);
    cogpu_arena_open(&arena, 64 << 20);
}

/* A file of header and directories, opened. */
static void write_and_open(cogpu_new_directory *directories, uint32_t count, bool bigtiff) {
    cogpu_limits limits = cogpu_limits_complete(NULL);
    CHECK(cogpu_directories_lay_out(directories, count, bigtiff, START, &end, &error) == COGPU_OK);
    bytes = calloc((size_t)end, 1);
    cogpu_header_write(bigtiff, 0, directories[0].at, bytes);
    memset(bytes + START, 0xAA, (size_t)end - START);
    cogpu_directories_write(directories, count, bigtiff, START, end, bytes + START);
    cogpu_arena_open(&read_arena, limits.working_memory_bytes);
    CHECK(cogpu_io_open_memory(bytes, (size_t)end, &io, &error) == COGPU_OK);
    CHECK(cogpu_tiff_open(&tiff, io, &limits, &read_arena, &error) == COGPU_OK);
    CHECK(!tiff.warning && !tiff.big_endian && tiff.bigtiff == bigtiff);
}

static void close_all(void) {
    cogpu_io_close(io);
    io = NULL;
    cogpu_arena_close(&read_arena);
    cogpu_arena_close(&arena);
    free(bytes);
    bytes = NULL;
}

/* Entries ascend; values outside them lie inside the file, on even bytes, and on nothing else;
 * what is left is 0. */
static void check_structure(uint32_t count) {
    static uint8_t taken[1 << 20];
    size_t field = tiff.bigtiff ? 8 : 4, entry_bytes = tiff.bigtiff ? 20 : 12;
    memset(taken, 0, sizeof taken);
    CHECK(tiff.directory_count == count && end <= sizeof taken);
    for (uint32_t d = 0; d < tiff.directory_count; d++) {
        const cogpu_ifd *directory = &tiff.directories[d];
        size_t own = (tiff.bigtiff ? 8 : 2) + directory->entry_count * entry_bytes + field;
        CHECK(directory->offset % 2 == 0 && directory->offset + own <= end);
        for (size_t i = 0; i < own; i++)
            CHECK(taken[directory->offset + i]++ == 0);
        for (uint32_t i = 0; i < directory->entry_count; i++) {
            const cogpu_entry *entry = &directory->entries[i];
            CHECK(i == 0 || entry->tag > entry[-1].tag);
            CHECK(entry->is_inline == (entry->bytes <= field));
            for (size_t b = (size_t)entry->bytes; entry->is_inline && b < field; b++)
                CHECK(entry->inline_value[b] == 0);
            if (entry->is_inline)
                continue;
            CHECK(entry->value_offset % 2 == 0 && cogpu_tiff_is_inside(&tiff, entry));
            for (uint64_t b = 0; b < entry->bytes; b++)
                CHECK(taken[entry->value_offset + b]++ == 0);
        }
    }
    for (uint64_t i = START; i < end; i++)
        CHECK(taken[i] || bytes[i] == 0);
}

static void check_u64s(uint32_t directory, uint16_t tag, uint16_t type, uint64_t count,
                       const uint64_t *expected) {
    static uint64_t got[4096];
    const cogpu_entry *entry = cogpu_tiff_find(&tiff, directory, tag);
    CHECK(entry && entry->type == type && entry->count == count);
    if (!entry || entry->count != count)
        return;
    CHECK(cogpu_tiff_u64s(&tiff, entry, 0, count, got, &error) == COGPU_OK);
    CHECK(memcmp(got, expected, count * sizeof *got) == 0);
}

/* Every type, as many values as fit an entry and one more, in an order that is not that of TIFF. */
static void test_values_of_every_type(void) {
    static const uint16_t types[] = {12, 1, 18, 2, 17, 3, 16, 4, 13, 5, 11, 6, 10, 7, 9, 8};
    uint8_t values[128];
    for (size_t i = 0; i < sizeof values; i++)
        values[i] = (uint8_t)(i * 37 + 1);
    for (int bigtiff = 0; bigtiff < 2; bigtiff++) {
        uint64_t offsets[] = {FAR}, sizes[] = {77};
        cogpu_new_directory directory = {.blocks = 1, .offsets = offsets, .bytes = sizes};
        open_arena();
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            for (uint16_t count = 1; count < 12; count++) {
                uint16_t id = (uint16_t)((i % 2 ? 100 : 40000) + types[i] * 16 + count);
                CHECK(cogpu_tag_add(&directory.tags, &arena, id, types[i], count, values, &error) ==
                      COGPU_OK);
            }
        write_and_open(&directory, 1, bigtiff);
        check_structure(1);
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            for (uint16_t count = 1; count < 12; count++) {
                uint16_t id = (uint16_t)((i % 2 ? 100 : 40000) + types[i] * 16 + count);
                const cogpu_entry *entry = cogpu_tiff_find(&tiff, 0, id);
                uint8_t got[128];
                CHECK(entry && entry->type == types[i] && entry->count == count);
                CHECK(entry && cogpu_tiff_raw(&tiff, entry, 0, count, got, &error) == COGPU_OK &&
                      memcmp(got, values, (size_t)entry->bytes) == 0);
            }
        check_u64s(0, TAG_STRIP_OFFSETS, bigtiff ? 16 : 4, 1, offsets);
        check_u64s(0, TAG_STRIP_BYTE_COUNTS, 4, 1, sizes);
        close_all();
    }
}

static void test_short_long_and_text(void) {
    uint64_t place[] = {FAR}, value;
    const char *text = NULL;
    cogpu_new_directory directory = {
        .is_tiled = true, .blocks = 1, .offsets = place, .bytes = place};
    open_arena();
    CHECK(cogpu_tag_add_text(&directory.tags, &arena, 42113, "-9999", &error) == COGPU_OK);
    CHECK(cogpu_tag_add_long(&directory.tags, &arena, 257, 70000, &error) == COGPU_OK);
    CHECK(cogpu_tag_add_short(&directory.tags, &arena, 256, 600, &error) == COGPU_OK);
    CHECK(cogpu_tag_add_text(&directory.tags, &arena, 270, "", &error) == COGPU_OK);
    CHECK(cogpu_tag_list_has(&directory.tags, 270) && !cogpu_tag_list_has(&directory.tags, 271));
    write_and_open(&directory, 1, false);
    check_structure(1);
    CHECK(cogpu_tiff_find(&tiff, 0, 256)->type == 3 && cogpu_tiff_find(&tiff, 0, 257)->type == 4);
    CHECK(cogpu_tiff_u64(&tiff, 0, 256, 0, &value, &error) == COGPU_OK && value == 600);
    CHECK(cogpu_tiff_u64(&tiff, 0, 257, 0, &value, &error) == COGPU_OK && value == 70000);
    CHECK(cogpu_tiff_find(&tiff, 0, 42113)->count == 6);
    CHECK(cogpu_tiff_text(&tiff, 0, 42113, &read_arena, &text, &error) == COGPU_OK);
    CHECK_TEXT(text, "-9999");
    CHECK(cogpu_tiff_text(&tiff, 0, 270, &read_arena, &text, &error) == COGPU_OK);
    CHECK_TEXT(text, "");
    close_all();
}

/* What was copied into a list may change afterwards. */
static void test_values_are_copied(void) {
    uint64_t place[] = {FAR}, value;
    uint32_t width = 5;
    cogpu_new_directory directory = {.blocks = 1, .offsets = place, .bytes = place};
    open_arena();
    CHECK(cogpu_tag_add(&directory.tags, &arena, 256, 4, 1, &width, &error) == COGPU_OK);
    width = 6;
    write_and_open(&directory, 1, false);
    CHECK(cogpu_tiff_u64(&tiff, 0, 256, 0, &value, &error) == COGPU_OK && value == 5);
    close_all();
}

static void test_tags_that_are_refused(void) {
    cogpu_tag_list list = {0};
    uint64_t value = 1;
    open_arena();
    CHECK(cogpu_tag_add_short(&list, &arena, 256, 1, &error) == COGPU_OK);
    CHECK(cogpu_tag_add_long(&list, &arena, 256, 1, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "ImageWidth") != NULL);
    for (uint16_t type = 0; type < 30; type++)
        CHECK((cogpu_tag_add(&list, &arena, (uint16_t)(300 + type), type, 1, &value, &error) ==
               COGPU_OK) == (type > 0 && type != 14 && type != 15 && type < 19));
    CHECK(cogpu_tag_add(&list, &arena, 400, 3, 0, &value, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_tag_add(&list, &arena, 400, 12, UINT64_MAX / 8 + 2, &value, &error) ==
          COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_tag_add(&list, &arena, 400, 12, UINT64_MAX / 8, &value, &error) ==
          COGPU_LIMIT_EXCEEDED);
    CHECK(!cogpu_tag_list_has(&list, 400));
    close_all();
}

/* Directories follow each other, then all arrays; the arrays of few blocks are in the entries. */
static void test_a_pyramid(void) {
    enum { LEVELS = 6, MOST = 1025 };
    static const uint64_t blocks[LEVELS] = {MOST, 65, 3, 2, 1, 1};
    static uint64_t offsets[LEVELS][MOST], sizes[LEVELS][MOST];
    for (int form = 0; form < 4; form++) {
        bool bigtiff = form & 1, is_tiled = form & 2;
        cogpu_new_directory directories[LEVELS] = {0};
        uint64_t arrays = UINT64_MAX, directories_end = 0;
        open_arena();
        for (uint32_t d = 0; d < LEVELS; d++) {
            cogpu_tag_list *tags = &directories[d].tags;
            directories[d] = (cogpu_new_directory){.is_tiled = is_tiled,
                                                   .blocks = blocks[d],
                                                   .offsets = offsets[d],
                                                   .bytes = sizes[d]};
            for (uint64_t i = 0; i < blocks[d]; i++) {
                offsets[d][i] = bigtiff ? (i + 1) << 33 | d : UINT32_MAX - i * 4 - d;
                sizes[d][i] = UINT32_MAX - i;
            }
            CHECK(cogpu_tag_add_text(tags, &arena, 65000, "odd, and outside", &error) == COGPU_OK);
            CHECK(cogpu_tag_add_short(tags, &arena, 278, 16, &error) == COGPU_OK);
            CHECK(cogpu_tag_add_short(tags, &arena, 274, 1, &error) == COGPU_OK);
            CHECK(cogpu_tag_add_long(tags, &arena, 254, d ? 1 : 0, &error) == COGPU_OK);
        }
        write_and_open(directories, LEVELS, bigtiff);
        check_structure(LEVELS);
        for (uint32_t d = 0; d < tiff.directory_count; d++) {
            uint16_t id = is_tiled ? TAG_TILE_OFFSETS : TAG_STRIP_OFFSETS;
            uint16_t id_bytes = is_tiled ? TAG_TILE_BYTE_COUNTS : TAG_STRIP_BYTE_COUNTS;
            CHECK(tiff.directories[d].offset == directories[d].at);
            CHECK(tiff.directories[d].subfile_type == (d ? 1 : 0));
            CHECK(tiff.directories[d].entry_count == 6);
            check_u64s(d, id, bigtiff ? 16 : 4, blocks[d], offsets[d]);
            check_u64s(d, id_bytes, 4, blocks[d], sizes[d]);
            const cogpu_entry *array = cogpu_tiff_find(&tiff, d, id);
            const cogpu_entry *text = cogpu_tiff_find(&tiff, d, 65000);
            if (!array->is_inline && array->value_offset < arrays)
                arrays = array->value_offset;
            directories_end = text->value_offset + text->bytes;
        }
        CHECK(directories[0].at == START && directories_end <= arrays);
        CHECK(arrays - directories_end < 2);
        close_all();
    }
}

static void test_an_odd_start(void) {
    cogpu_new_directory directory = {.blocks = 1};
    open_arena();
    CHECK(cogpu_tag_add_short(&directory.tags, &arena, 256, 1, &error) == COGPU_OK);
    CHECK(cogpu_directories_lay_out(&directory, 1, false, 191, &end, &error) == COGPU_OK);
    CHECK(directory.at == 192 && end == 192 + 2 + 3 * 12 + 4);
    CHECK(cogpu_directories_lay_out(&directory, 1, true, 200, &end, &error) == COGPU_OK);
    CHECK(directory.at == 200 && end == 200 + 8 + 3 * 20 + 8);
    close_all();
}

/* Classic offsets end at 4 GiB, and nothing wraps around. */
static void test_too_long(void) {
    cogpu_new_directory directory = {.blocks = 1};
    open_arena();
    CHECK(cogpu_tag_add_short(&directory.tags, &arena, 256, 1, &error) == COGPU_OK);
    uint64_t own = 2 + 3 * 12 + 4, most = (UINT32_MAX - START - own) / 8;
    directory.blocks = most;
    CHECK(cogpu_directories_lay_out(&directory, 1, false, START, &end, &error) == COGPU_OK);
    CHECK(end == START + own + most * 8 && end <= UINT32_MAX);
    directory.blocks = most + 1;
    CHECK(cogpu_directories_lay_out(&directory, 1, false, START, &end, &error) ==
          COGPU_LIMIT_EXCEEDED);
    CHECK(strstr(error.message, "BigTIFF") != NULL);
    CHECK(cogpu_directories_lay_out(&directory, 1, true, START, &end, &error) == COGPU_OK);
    directory.blocks = 1;
    CHECK(cogpu_directories_lay_out(&directory, 1, false, UINT32_MAX - 40, &end, &error) ==
          COGPU_LIMIT_EXCEEDED);
    for (int shift = 56; shift < 64; shift++) {
        directory.blocks = UINT64_C(1) << shift;
        CHECK(cogpu_directories_lay_out(&directory, 1, false, START, &end, &error) ==
              COGPU_LIMIT_EXCEEDED);
        CHECK((cogpu_directories_lay_out(&directory, 1, true, START, &end, &error) == COGPU_OK) ==
              (shift < 60));
    }
    close_all();
}

/* ---- header and ghost area ---- */

static const char ghost_classic[] = "II*\0\xC0\0\0\0"
                                    "GDAL_STRUCTURAL_METADATA_SIZE=000140 bytes\n"
                                    "LAYOUT=IFDS_BEFORE_DATA\n"
                                    "BLOCK_ORDER=ROW_MAJOR\n"
                                    "BLOCK_LEADER=SIZE_AS_UINT4\n"
                                    "BLOCK_TRAILER=LAST_4_BYTES_REPEATED\n"
                                    "KNOWN_INCOMPATIBLE_EDITION=NO\n ";
static const char ghost_big_mask[] = "II+\0\x08\0\0\0\xEA\0\0\0\0\0\0\0"
                                     "GDAL_STRUCTURAL_METADATA_SIZE=000174 bytes\n"
                                     "LAYOUT=IFDS_BEFORE_DATA\n"
                                     "BLOCK_ORDER=ROW_MAJOR\n"
                                     "BLOCK_LEADER=SIZE_AS_UINT4\n"
                                     "BLOCK_TRAILER=LAST_4_BYTES_REPEATED\n"
                                     "KNOWN_INCOMPATIBLE_EDITION=NO\n "
                                     "MASK_INTERLEAVED_WITH_IMAGERY=YES\n";
static const char ghost_tile[] = "II*\0\xD0\0\0\0"
                                 "GDAL_STRUCTURAL_METADATA_SIZE=000156 bytes\n"
                                 "LAYOUT=IFDS_BEFORE_DATA\n"
                                 "BLOCK_ORDER=ROW_MAJOR\n"
                                 "BLOCK_LEADER=SIZE_AS_UINT4\n"
                                 "BLOCK_TRAILER=LAST_4_BYTES_REPEATED\n"
                                 "INTERLEAVE=TILE\n"
                                 "KNOWN_INCOMPATIBLE_EDITION=NO\n ";

enum {
    COG = COGPU_GHOST_PRESENT | COGPU_GHOST_IFDS_BEFORE_DATA | COGPU_GHOST_ROW_MAJOR |
          COGPU_GHOST_LEADER | COGPU_GHOST_TRAILER
};

/* The very bytes of GDAL's COG driver; each text comes with the NUL that makes its length even. */
static void test_ghost_areas(void) {
    uint8_t head[COGPU_NEW_HEADER_MAX];
    memset(head, 0xAA, sizeof head);
    CHECK(cogpu_header_write(false, COG, 192, head) == 192);
    CHECK(sizeof ghost_classic == 192 && memcmp(head, ghost_classic, 192) == 0);
    CHECK(cogpu_header_write(true, COG, 200, head) == 200);
    CHECK(memcmp(head, ghost_big_mask, 8) == 0 && head[8] == 200 && head[199] == 0);
    CHECK(memcmp(head + 16, ghost_classic + 8, 183) == 0);
    CHECK(cogpu_header_write(true, COG | COGPU_GHOST_MASK_INTERLEAVED, 234, head) == 234);
    CHECK(sizeof ghost_big_mask == 234 && memcmp(head, ghost_big_mask, 234) == 0);
    CHECK(cogpu_header_write(false, COG | COGPU_GHOST_MASK_INTERLEAVED, 226, head) == 226);
    CHECK(cogpu_header_write(false, COG | COGPU_GHOST_TILE_INTERLEAVED, 208, head) == 208);
    CHECK(sizeof ghost_tile == 208 && memcmp(head, ghost_tile, 208) == 0);
}

static void test_headers_alone(void) {
    uint8_t head[COGPU_NEW_HEADER_MAX];
    CHECK(cogpu_header_write(false, 0, 0x12345678, head) == 8);
    CHECK(memcmp(head, "II*\0\x78\x56\x34\x12", 8) == 0);
    CHECK(cogpu_header_write(true, 0, 0x123456789ABCDEF0, head) == 16);
    CHECK(memcmp(head, "II+\0\x08\0\0\0\xF0\xDE\xBC\x9A\x78\x56\x34\x12", 16) == 0);
}

/* Our reader sees the promises that were made, and a first directory right behind them. */
static void test_ghosts_that_are_read(void) {
    for (int form = 0; form < 8; form++) {
        bool bigtiff = form & 1;
        uint32_t ghost = COG | (form & 2 ? COGPU_GHOST_MASK_INTERLEAVED : 0) |
                         (form & 4 ? COGPU_GHOST_TILE_INTERLEAVED : 0);
        uint8_t file[1024];
        uint64_t place[] = {FAR};
        cogpu_limits limits = cogpu_limits_complete(NULL);
        cogpu_new_directory directory = {
            .is_tiled = true, .blocks = 1, .offsets = place, .bytes = place};
        open_arena();
        cogpu_arena_open(&read_arena, 1 << 20);
        CHECK(cogpu_tag_add_short(&directory.tags, &arena, 256, 1, &error) == COGPU_OK);
        size_t start = cogpu_header_write(bigtiff, ghost, 0, file);
        CHECK(cogpu_directories_lay_out(&directory, 1, bigtiff, start, &end, &error) == COGPU_OK);
        CHECK(directory.at == start && end <= sizeof file);
        CHECK(cogpu_header_write(bigtiff, ghost, directory.at, file) == start);
        cogpu_directories_write(&directory, 1, bigtiff, start, end, file + start);
        CHECK(cogpu_io_open_memory(file, (size_t)end, &io, &error) == COGPU_OK);
        CHECK(cogpu_tiff_open(&tiff, io, &limits, &read_arena, &error) == COGPU_OK);
        CHECK(tiff.ghost == ghost && tiff.directory_count == 1 && !tiff.warning);
        close_all();
    }
}

TESTS(tiff_write) {
    RUN(test_values_of_every_type);
    RUN(test_short_long_and_text);
    RUN(test_values_are_copied);
    RUN(test_tags_that_are_refused);
    RUN(test_a_pyramid);
    RUN(test_an_odd_start);
    RUN(test_too_long);
    RUN(test_ghost_areas);
    RUN(test_headers_alone);
    RUN(test_ghosts_that_are_read);
    return FINISH();
}
