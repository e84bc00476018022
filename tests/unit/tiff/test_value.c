/*
 * Tag values: every type in both byte orders, classic and BigTIFF, inline and not, in three
 * readings; text without its NUL (T013), no values at all (T014), types that do not fit (T016),
 * zero denominators (T012).
 */
#include "tiff/tiff.h"

#include "support/test.h"
#include "support/tiff_builder.h"

#include <math.h>

static tiff_builder file;
static cogpu_tiff tiff;
static cogpu_arena arena;
static cogpu_io *io;
static cogpu_error error;

static void open_file(const cogpu_limits *given) {
    cogpu_limits limits = cogpu_limits_complete(given);
    build_directory(&file, true);
    cogpu_arena_open(&arena, 1 << 20);
    CHECK(cogpu_io_open_memory(file.bytes, file.size, &io, &error) == COGPU_OK);
    CHECK(cogpu_tiff_open(&tiff, io, &limits, &arena, &error) == COGPU_OK);
}

static void close_file(void) {
    cogpu_io_close(io);
    cogpu_arena_close(&arena);
    build_close(&file);
}

/* The k-th value of a type, as a number. */
static double value_of(uint16_t type, int k) {
    bool is_signed =
        type == 6 || type == 8 || type == 9 || type == 10 || type == 17 || type == 11 || type == 12;
    double value = 3 + 11 * k;
    if (type == 5 || type == 10)
        value /= 4;
    return is_signed && k % 2 ? -value : value;
}

/* Writes it in the machine's order, as build_tag takes it. */
static void put_value(uint16_t type, int k, uint8_t *to) {
    double value = value_of(type, k);
    int64_t whole = (int64_t)(type == 5 || type == 10 ? value * 4 : value);
    float single = (float)value;
    uint32_t four = 4;
    if (type == 11) {
        memcpy(to, &single, 4);
    } else if (type == 12) {
        memcpy(to, &value, 8);
    } else if (type == 5 || type == 10) {
        int32_t above = (int32_t)whole;
        memcpy(to, &above, 4);
        memcpy(to + 4, &four, 4);
    } else {
        size_t width = build_type_bytes(type);
        uint8_t number = (uint8_t)whole;
        uint16_t half = (uint16_t)whole;
        uint32_t word = (uint32_t)whole;
        memcpy(to,
               width == 1   ? (void *)&number
               : width == 2 ? (void *)&half
               : width == 4 ? (void *)&word
                            : (void *)&whole,
               width);
    }
}

static bool is_text(uint16_t type) {
    return type == 2 || type == 7;
}

static bool is_whole(uint16_t type) {
    return type != 5 && type != 10 && type != 11 && type != 12 && type != 2;
}

static void check_type(uint16_t type, int count) {
    uint8_t values[16 * 8], raw[16 * 8];
    uint64_t numbers[16];
    double doubles[16];
    size_t width = build_type_bytes(type);
    for (int k = 0; k < count; k++)
        put_value(type, k, values + (size_t)k * width);
    /* build_tag swaps pairs only of type 5: SRATIONAL is written as the other. */
    build_tag(&file, 400, type == 10 ? BUILD_RATIONAL : type, (uint64_t)count, values);
    file.entries[file.entry_count - 1].type = type;
    open_file(NULL);
    const cogpu_entry *entry = cogpu_tiff_find(&tiff, 0, 400);
    CHECK(entry && entry->type == type && entry->bytes == width * (size_t)count);
    CHECK(cogpu_tiff_raw(&tiff, entry, 0, (uint64_t)count, raw, &error) == COGPU_OK);
    CHECK(memcmp(raw, values, width * (size_t)count) == 0);
    cogpu_status status = cogpu_tiff_doubles(&tiff, entry, 0, (uint64_t)count, doubles, &error);
    CHECK(status == (is_text(type) ? COGPU_CORRUPT : COGPU_OK));
    for (int k = 0; status == COGPU_OK && k < count; k++)
        CHECK(doubles[k] == value_of(type, k));
    bool negative = count > 1 && value_of(type, 1) < 0;
    status = cogpu_tiff_u64s(&tiff, entry, 0, (uint64_t)count, numbers, &error);
    CHECK(status == (is_whole(type) && !negative ? COGPU_OK : COGPU_CORRUPT));
    for (int k = 0; status == COGPU_OK && k < count; k++)
        CHECK((double)numbers[k] == value_of(type, k));
    /* The last alone, and one beyond it. */
    CHECK(cogpu_tiff_raw(&tiff, entry, (uint64_t)count - 1, 1, raw, &error) == COGPU_OK);
    CHECK(memcmp(raw, values + (size_t)(count - 1) * width, width) == 0);
    CHECK(cogpu_tiff_raw(&tiff, entry, (uint64_t)count, 1, raw, &error) == COGPU_CORRUPT);
    CHECK(cogpu_tiff_raw(&tiff, entry, 0, (uint64_t)count + 1, raw, &error) == COGPU_CORRUPT);
    CHECK(cogpu_tiff_raw(&tiff, entry, UINT64_MAX, 2, raw, &error) == COGPU_CORRUPT);
    CHECK(cogpu_tiff_raw(&tiff, entry, 1, UINT64_MAX, raw, &error) == COGPU_CORRUPT);
    close_file();
}

static void test_every_type_in_every_form(void) {
    for (int form = 0; form < 4; form++)
        for (uint16_t type = 1; type <= 18; type++)
            for (int count = 1; build_type_bytes(type) && count <= 12; count++) {
                build_open(&file, form & 1, form & 2);
                check_type(type, count);
            }
}

static void test_widths(void) {
    for (uint32_t type = 0; type < 40; type++)
        CHECK(cogpu_tiff_type_bytes(type) == build_type_bytes(type));
    CHECK(cogpu_tiff_type_bytes(UINT32_MAX) == 0);
}

/* T012 */
static void test_zero_denominators(void) {
    const uint32_t pairs[] = {5, 0, 0, 0, 7, 2};
    double values[3] = {1, 1, 1};
    for (uint16_t type = 5; type <= 10; type += 5) {
        build_open(&file, true, false);
        build_tag(&file, 400, BUILD_RATIONAL, 3, pairs);
        file.entries[0].type = type;
        open_file(NULL);
        CHECK(cogpu_tiff_doubles(&tiff, cogpu_tiff_find(&tiff, 0, 400), 0, 3, values, &error) ==
              COGPU_OK);
        CHECK(values[0] == 0 && values[1] == 0 && values[2] == 3.5);
        close_file();
    }
}

static void test_extremes(void) {
    const uint64_t wide[] = {UINT64_MAX, 1ULL << 63};
    const int64_t least = INT64_MIN;
    uint64_t numbers[2];
    double value = 0;
    build_open(&file, true, true);
    build_tag(&file, 400, 16, 2, wide);
    build_tag(&file, 401, 17, 1, &least);
    open_file(NULL);
    CHECK(cogpu_tiff_u64s(&tiff, cogpu_tiff_find(&tiff, 0, 400), 0, 2, numbers, &error) ==
          COGPU_OK);
    CHECK(numbers[0] == UINT64_MAX && numbers[1] == 1ULL << 63);
    const cogpu_entry *entry = cogpu_tiff_find(&tiff, 0, 401);
    CHECK(cogpu_tiff_u64s(&tiff, entry, 0, 1, numbers, &error) == COGPU_CORRUPT);
    CHECK(cogpu_tiff_doubles(&tiff, entry, 0, 1, &value, &error) == COGPU_OK);
    CHECK(value == -ldexp(1, 63));
    close_file();
}

/* More than one piece of the working memory. */
static void test_long_arrays(void) {
    enum { COUNT = 2000 };
    static uint32_t values[COUNT];
    static uint64_t numbers[COUNT];
    static double doubles[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = i * 2654435761u;
    build_open(&file, true, false);
    build_tag(&file, 400, BUILD_LONG, COUNT, values);
    open_file(NULL);
    const cogpu_entry *entry = cogpu_tiff_find(&tiff, 0, 400);
    CHECK(cogpu_tiff_u64s(&tiff, entry, 3, COUNT - 3, numbers, &error) == COGPU_OK);
    CHECK(cogpu_tiff_doubles(&tiff, entry, 3, COUNT - 3, doubles, &error) == COGPU_OK);
    for (size_t i = 3; i < COUNT; i++)
        CHECK(numbers[i - 3] == values[i] && doubles[i - 3] == values[i]);
    close_file();
}

static void check_text(uint16_t type, const char *bytes, uint64_t count, const char *expected) {
    for (int form = 0; form < 4; form++) {
        const char *text = "untouched";
        build_open(&file, form & 1, form & 2);
        build_raw(&file, 400, type, count, bytes, (size_t)count);
        open_file(NULL);
        CHECK(cogpu_tiff_text(&tiff, 0, 400, &arena, &text, &error) == COGPU_OK);
        CHECK_TEXT(text, expected);
        close_file();
    }
}

/* T013 */
static void test_text(void) {
    check_text(2, "abc", 4, "abc");
    check_text(2, "abcdefghijkl", 12, "abcdefghijkl"); /* not closed, outside of the entry */
    check_text(2, "abcd", 4, "abcd");
    check_text(2, "a\0b", 4, "a");
    check_text(2, "", 1, "");
    check_text(2, "", 0, "");
    check_text(1, "xy", 3, "xy");
    check_text(7, "xy", 2, "xy");
}

static void test_invalid_text(void) {
    const char *text = "x";
    build_open(&file, false, false);
    build_short(&file, 400, 1);
    open_file(NULL);
    CHECK(cogpu_tiff_text(&tiff, 0, 400, &arena, &text, &error) == COGPU_CORRUPT);
    CHECK(cogpu_tiff_text(&tiff, 0, 401, &arena, &text, &error) == COGPU_OK && text == NULL);
    close_file();
}

/* T014 */
static void test_no_values(void) {
    uint64_t value = 5;
    build_open(&file, false, false);
    build_raw(&file, 400, BUILD_SHORT, 0, "", 0);
    build_raw(&file, 401, BUILD_DOUBLE, 0, "", 0);
    build_shorts(&file, 402, 2, (const uint16_t[]){1, 2});
    open_file(NULL);
    CHECK(cogpu_tiff_u64(&tiff, 0, 400, 7, &value, &error) == COGPU_CORRUPT);
    CHECK(cogpu_tiff_u64(&tiff, 0, 402, 7, &value, &error) == COGPU_CORRUPT);
    CHECK(cogpu_tiff_u64(&tiff, 0, 499, 7, &value, &error) == COGPU_OK && value == 7);
    CHECK(cogpu_tiff_u64s(&tiff, cogpu_tiff_find(&tiff, 0, 400), 0, 0, &value, &error) == COGPU_OK);
    CHECK(cogpu_tiff_u64s(&tiff, cogpu_tiff_find(&tiff, 0, 400), 0, 1, &value, &error) ==
          COGPU_CORRUPT);
    close_file();
}

/* T016 */
static void test_wrong_types(void) {
    const double real = 7;
    const int16_t negative = -3;
    uint64_t value = 0;
    build_open(&file, false, false);
    build_doubles(&file, 400, 1, &real);
    build_text(&file, 401, "a");
    build_tag(&file, 402, 8, 1, &negative);
    open_file(NULL);
    for (uint16_t tag = 400; tag <= 402; tag++)
        CHECK(cogpu_tiff_u64s(&tiff, cogpu_tiff_find(&tiff, 0, tag), 0, 1, &value, &error) ==
              COGPU_CORRUPT);
    close_file();
}

static void test_values_outside_of_the_file(void) {
    uint8_t where[8];
    uint64_t numbers[4];
    static const uint64_t places[] = {0, 1 << 20, UINT64_MAX, UINT64_MAX - 31, 1ULL << 63};
    for (size_t i = 1; i < sizeof places / sizeof *places; i++) {
        build_open(&file, false, true);
        build_put(&file, where, places[i], 8);
        build_raw(&file, 400, BUILD_LONG8, 4, where, 8);
        open_file(NULL);
        const cogpu_entry *entry = cogpu_tiff_find(&tiff, 0, 400);
        CHECK(cogpu_tiff_u64s(&tiff, entry, 0, 4, numbers, &error) == COGPU_CORRUPT);
        CHECK(cogpu_tiff_u64s(&tiff, entry, 3, 1, numbers, &error) == COGPU_CORRUPT);
        close_file();
    }
}

static void test_tag_bytes_just_met_and_just_missed(void) {
    uint8_t values[100] = {0}, got[100];
    cogpu_limits limits = {.struct_size = sizeof(cogpu_limits), .tag_bytes = 99};
    build_open(&file, false, false);
    build_tag(&file, 400, BUILD_BYTE, 100, values);
    open_file(&limits);
    const cogpu_entry *entry = cogpu_tiff_find(&tiff, 0, 400);
    CHECK(cogpu_tiff_raw(&tiff, entry, 0, 99, got, &error) == COGPU_OK);
    CHECK(cogpu_tiff_raw(&tiff, entry, 0, 100, got, &error) == COGPU_LIMIT_EXCEEDED);
    CHECK(strstr(error.message, "tag_bytes") != NULL);
    close_file();
}

static bool is_span(const cogpu_entry *entry, uint64_t first, uint64_t count, uint64_t offset,
                    uint64_t bytes) {
    cogpu_byte_range span = cogpu_tiff_span(entry, first, count);
    return span.offset == offset && span.bytes == bytes;
}

static void test_offsets_of_elements(void) {
    cogpu_entry entry = {.type = TYPE_LONG, .count = 100, .bytes = 400, .value_offset = 5000};
    CHECK(is_span(&entry, 0, 100, 5000, 400) && is_span(&entry, 10, 5, 5040, 20));
    CHECK(is_span(&entry, 90, 50, 5360, 40) && is_span(&entry, 99, UINT64_MAX, 5396, 4));
    CHECK(is_span(&entry, 100, 1, 0, 0) && is_span(&entry, UINT64_MAX, 1, 0, 0));
    entry.value_offset = UINT64_MAX - 20;
    CHECK(is_span(&entry, 5, 1, UINT64_MAX, 4) && is_span(&entry, 6, 1, 0, 0));
    entry = (cogpu_entry){.type = TYPE_LONG8, .count = UINT64_MAX / 4, .bytes = UINT64_MAX};
    CHECK(is_span(&entry, 1, UINT64_MAX / 4, 0, 0));
    entry = (cogpu_entry){.type = TYPE_SHORT, .count = 2, .bytes = 4, .is_inline = true};
    CHECK(is_span(&entry, 0, 2, 0, 0));
}

static void test_names(void) {
    CHECK_TEXT(cogpu_tag_name(256), "ImageWidth");
    CHECK_TEXT(cogpu_tag_name(42113), "GDAL_NODATA");
    CHECK_TEXT(cogpu_tag_name(0), "unknown");
    CHECK_TEXT(cogpu_tag_name(UINT32_MAX), "unknown");
}

TESTS(value) {
    RUN(test_every_type_in_every_form);
    RUN(test_widths);
    RUN(test_zero_denominators);
    RUN(test_extremes);
    RUN(test_long_arrays);
    RUN(test_text);
    RUN(test_invalid_text);
    RUN(test_no_values);
    RUN(test_wrong_types);
    RUN(test_values_outside_of_the_file);
    RUN(test_tag_bytes_just_met_and_just_missed);
    RUN(test_offsets_of_elements);
    RUN(test_names);
    return FINISH();
}
