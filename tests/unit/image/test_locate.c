/*
 * Where blocks are: arrays too short or too long (T010, T049, T050), missing counts (T011), sparse
 * blocks (T047, T048), COG's leaders (T074, T075), spans outside of the file (T208) or far longer
 * than their block (T218).
 */
#include "image/image.h"

#include "support/test.h"
#include "support/tiff_builder.h"

static tiff_builder file;
static cogpu_storage storage;
static cogpu_arena arena;
static cogpu_io *io;
static cogpu_tiff tiff;
static cogpu_error error;

static void finish(void) {
    cogpu_limits limits = cogpu_limits_complete(NULL);
    build_directory(&file, true);
    const char *warning = NULL;
    cogpu_arena_open(&arena, 1 << 20);
    CHECK(cogpu_io_open_memory(file.bytes, file.size, &io, &error) == COGPU_OK);
    CHECK(cogpu_tiff_open(&tiff, io, &limits, &arena, &error) == COGPU_OK);
    CHECK(cogpu_storage_read(&tiff, 0, &arena, &storage, &warning, &error) == COGPU_OK);
}

static void close_file(void) {
    cogpu_io_close(io);
    cogpu_arena_close(&arena);
    build_close(&file);
}

/* Four tiles of 16 x 16 bytes after 2000 bytes of something; arrays are the caller's. */
static void begin(uint16_t compression) {
    build_open(&file, false, true);
    build_data(&file, NULL, 2000);
    build_short(&file, 256, 32);
    build_short(&file, 257, 32);
    build_short(&file, 258, 8);
    build_short(&file, 259, compression);
    build_short(&file, 322, 16);
    build_short(&file, 323, 16);
}

static void arrays(size_t offset_count, const uint64_t *offsets, size_t count_count,
                   const uint64_t *counts) {
    if (offset_count)
        build_tag(&file, 324, BUILD_LONG8, offset_count, offsets);
    if (count_count)
        build_tag(&file, 325, BUILD_LONG8, count_count, counts);
    finish();
}

static const uint64_t good_offsets[] = {100, 400, 700, 1000, 77, 78};
static const uint64_t good_counts[] = {256, 10, 20, 30, 5, 6};

static cogpu_status locate(uint64_t first, uint32_t count, cogpu_span *spans) {
    cogpu_error_clear(&error);
    return cogpu_storage_locate(&storage, first, count, spans, &error);
}

static void test_all_and_some(void) {
    cogpu_span spans[4];
    begin(8);
    arrays(4, good_offsets, 4, good_counts);
    CHECK(locate(0, 4, spans) == COGPU_OK);
    for (int i = 0; i < 4; i++)
        CHECK(spans[i].offset == good_offsets[i] && spans[i].bytes == good_counts[i]);
    CHECK(locate(2, 1, spans) == COGPU_OK && spans[0].offset == 700 && spans[0].bytes == 20);
    close_file();
}

/* T010, T049: never past the arrays. */
static void test_arrays_too_short(void) {
    cogpu_span spans[4];
    begin(8);
    arrays(3, good_offsets, 3, good_counts);
    CHECK(locate(0, 3, spans) == COGPU_OK);
    CHECK(locate(0, 4, spans) == COGPU_CORRUPT && locate(3, 1, spans) == COGPU_CORRUPT);
    close_file();
    begin(8);
    arrays(4, good_offsets, 2, good_counts);
    CHECK(locate(0, 2, spans) == COGPU_OK);
    CHECK(locate(0, 4, spans) == COGPU_CORRUPT && error.block == 2);
    CHECK(locate(3, 1, spans) == COGPU_CORRUPT && error.block == 3);
    close_file();
    begin(8);
    arrays(0, NULL, 4, good_counts);
    CHECK(locate(0, 1, spans) == COGPU_CORRUPT);
    close_file();
}

/* T050 */
static void test_arrays_too_long(void) {
    cogpu_span spans[4];
    begin(8);
    arrays(6, good_offsets, 5, good_counts);
    CHECK(locate(0, 4, spans) == COGPU_OK && spans[3].offset == 1000 && spans[3].bytes == 30);
    close_file();
}

/* T011: an uncompressed block has a size by its shape, another only if it is the last thing. */
static void test_no_counts(void) {
    cogpu_span spans[4];
    begin(1);
    arrays(4, good_offsets, 0, NULL);
    CHECK(locate(0, 4, spans) == COGPU_OK && spans[3].bytes == 256);
    close_file();
    begin(8);
    arrays(4, good_offsets, 0, NULL);
    CHECK(locate(0, 4, spans) == COGPU_CORRUPT && error.block == 0);
    close_file();
    build_open(&file, false, false);
    build_image(&file, 4, 4, 1, 8, 1, NULL);
    file.entries[3].value[0] = 8; /* deflate, and no StripByteCounts */
    file.entry_count--;
    finish();
    CHECK(locate(0, 1, spans) == COGPU_OK);
    CHECK(spans[0].offset + spans[0].bytes == file.size);
    close_file();
}

/* T047, T048 */
static void test_sparse(void) {
    static const uint64_t offsets[] = {0, 100, 0, 200}, counts[] = {0, 0, 50, 256};
    cogpu_span spans[4];
    for (int plain = 0; plain < 2; plain++) {
        begin(plain ? 1 : 8);
        arrays(4, offsets, 4, counts);
        CHECK(locate(0, 4, spans) == COGPU_OK);
        for (int i = 0; i < 3; i++)
            CHECK(spans[i].bytes == 0);
        CHECK(spans[3].bytes == 256);
        close_file();
    }
}

/* T075: a count of 0 with a leader before the block; T074: one that is invalid, or broken. */
static void test_leaders(void) {
    static const char ghost[] = "GDAL_STRUCTURAL_METADATA_SIZE=000048 bytes\n"
                                "BLOCK_ORDER=ROW_MAJOR\nBLOCK_LEADER=SIZE_AS_UINT4";
    static const char broken[] = "GDAL_STRUCTURAL_METADATA_SIZE=000080 bytes\n"
                                 "BLOCK_ORDER=ROW_MAJOR\nBLOCK_LEADER=SIZE_AS_UINT4\n"
                                 "KNOWN_INCOMPATIBLE_EDITION=YES\n ";
    static const uint64_t offsets[] = {500, 600, 1, 700}, counts[] = {0, 0, 0, 20};
    for (int kind = 0; kind < 4; kind++) {
        cogpu_span spans[4];
        build_open(&file, kind == 3, true);
        if (kind == 1)
            build_data(&file, broken, sizeof broken);
        else if (kind != 2)
            build_data(&file, ghost, sizeof ghost);
        build_data(&file, NULL, 2000);
        build_short(&file, 256, 32);
        build_short(&file, 257, 32);
        build_short(&file, 258, 8);
        build_short(&file, 259, 8);
        build_short(&file, 322, 16);
        build_short(&file, 323, 16);
        memcpy(file.bytes + 496, "\x25\0\0\0", 4); /* little-endian in any file */
        memcpy(file.bytes + 596, "\xFF\xFF\xFF\x7F", 4);
        memcpy(file.bytes + 696, "\x63\0\0\0", 4);
        arrays(4, offsets, 4, counts);
        CHECK(locate(0, 4, spans) == COGPU_OK);
        CHECK(spans[0].bytes == (kind == 0 || kind == 3 ? 0x25 : 0));
        CHECK(spans[1].bytes == 0 && spans[2].bytes == 0 && spans[3].bytes == 20);
        close_file();
    }
}

/* T208: beyond the end, and sums that wrap. An uncompressed block may be cut off at the end. */
static void test_spans_outside_of_the_file(void) {
    static const uint64_t offsets[] = {1 << 20, UINT64_MAX, UINT64_MAX - 511, 1900};
    static const uint64_t counts[] = {10, 10, 520, 100000};
    for (int plain = 0; plain < 2; plain++) {
        cogpu_span span;
        begin(plain ? 1 : 8);
        arrays(4, offsets, 4, counts);
        for (uint64_t i = 0; i < 4; i++) {
            cogpu_status status = locate(i, 1, &span);
            CHECK(status == COGPU_OK || (status == COGPU_CORRUPT && error.block == (int64_t)i));
            CHECK(status != COGPU_OK ||
                  (span.offset <= file.size && span.bytes <= file.size - span.offset));
            CHECK(i == 3 || status == COGPU_CORRUPT);
        }
        close_file();
    }
}

/* T218: blocks that share a span which is far longer than any of them. */
static void test_counts_far_beyond_the_block(void) {
    enum { HUGE_SPAN = 1 << 20 };
    static const uint64_t offsets[] = {16, 16, 16, 16};
    static const uint64_t counts[] = {HUGE_SPAN, HUGE_SPAN, 4096, 20000};
    cogpu_span spans[4];
    begin(8);
    build_data(&file, NULL, HUGE_SPAN);
    arrays(4, offsets, 4, counts);
    CHECK(locate(0, 4, spans) == COGPU_OK);
    CHECK(spans[0].bytes >= 4096 && spans[0].bytes < 64 << 10);
    CHECK(spans[2].bytes == 4096);
    close_file();
}

static void test_uncompressed_counts_that_are_wrong(void) {
    static const uint64_t offsets[] = {100, 400, 700, 1000}, counts[] = {300, 10, 256, 255};
    cogpu_span spans[4];
    begin(1);
    arrays(4, offsets, 4, counts);
    CHECK(locate(0, 4, spans) == COGPU_OK);
    CHECK(spans[0].bytes == 256 && spans[1].bytes == 10 && spans[3].bytes == 255);
    close_file();
}

/* T016 */
static void test_offsets_of_a_wrong_type(void) {
    static const double real[] = {1, 2, 3, 4};
    static const int64_t negative[] = {-1, -2, -3, -4};
    cogpu_span spans[4];
    begin(8);
    build_tag(&file, 324, BUILD_DOUBLE, 4, real);
    build_tag(&file, 325, BUILD_LONG8, 4, good_counts);
    finish();
    CHECK(locate(0, 4, spans) == COGPU_CORRUPT);
    close_file();
    begin(8);
    build_tag(&file, 324, 17, 4, negative);
    build_tag(&file, 325, BUILD_LONG8, 4, good_counts);
    finish();
    CHECK(locate(0, 4, spans) == COGPU_CORRUPT);
    close_file();
}

/* More blocks than one piece of the working memory. */
static void test_many_blocks(void) {
    enum { COUNT = 1500 };
    static uint64_t offsets[COUNT], counts[COUNT];
    static cogpu_span spans[COUNT];
    build_open(&file, true, true);
    build_data(&file, NULL, 4000);
    for (uint64_t i = 0; i < COUNT; i++) {
        offsets[i] = 17 + 2 * i;
        counts[i] = 1 + i % 7;
    }
    build_long(&file, 256, COUNT);
    build_short(&file, 257, 1);
    build_short(&file, 258, 8);
    build_short(&file, 259, 8);
    build_short(&file, 322, 1);
    build_short(&file, 323, 1);
    arrays(COUNT, offsets, COUNT, counts);
    CHECK(locate(0, COUNT, spans) == COGPU_OK);
    for (uint64_t i = 0; i < COUNT; i++)
        CHECK(spans[i].offset == offsets[i] && spans[i].bytes == counts[i]);
    close_file();
}

TESTS(locate) {
    RUN(test_all_and_some);
    RUN(test_arrays_too_short);
    RUN(test_arrays_too_long);
    RUN(test_no_counts);
    RUN(test_sparse);
    RUN(test_leaders);
    RUN(test_spans_outside_of_the_file);
    RUN(test_counts_far_beyond_the_block);
    RUN(test_uncompressed_counts_that_are_wrong);
    RUN(test_offsets_of_a_wrong_type);
    RUN(test_many_blocks);
    return FINISH();
}
