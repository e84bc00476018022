/* Arrays of structs: struct_size is the distance of their elements, the same for all of them. */
#include "unit/api/api_fixture.h"

#include "support/test.h"

#include <stddef.h>

enum { ARRAY_MAX = 4096, TAIL = 24, GUARD = 0xA5 };

static cogpu_error error;

/* A caller's array of elements of another size, with `fill` behind the fields. */
static union {
    max_align_t align;
    uint8_t bytes[ARRAY_MAX];
} caller;

static void *spread(const void *elements, size_t count, size_t size, size_t stride, uint8_t fill) {
    memset(&caller, fill, sizeof caller);
    for (size_t i = 0; i < count; i++) {
        uint8_t *to = caller.bytes + i * stride;
        memcpy(to, (const uint8_t *)elements + i * size, size < stride ? size : stride);
        memcpy(to, &stride, sizeof stride);
    }
    return &caller;
}

static void set_size(void *elements, size_t index, size_t stride, size_t size) {
    memcpy((uint8_t *)elements + index * stride, &size, sizeof size);
}

/* ---- of a profile ---- */

enum { ITEMS = 3 };

static const uint16_t model = 1, raster_type = 32633, unit = 9001;
static const cogpu_geokey keys[ITEMS] = {
    {.struct_size = sizeof(cogpu_geokey), .id = 1024, .count = 1, .shorts = &model},
    {.struct_size = sizeof(cogpu_geokey), .id = 3072, .count = 1, .shorts = &raster_type},
    {.struct_size = sizeof(cogpu_geokey), .id = 3076, .count = 1, .shorts = &unit}};
static const cogpu_metadata_item metadata[ITEMS] = {
    {sizeof(cogpu_metadata_item), "", "A", "1", "", 0},
    {sizeof(cogpu_metadata_item), "", "B", "2", "", 0},
    {sizeof(cogpu_metadata_item), "X", "C", "3", "", 0}};
static const uint32_t value = 77;
static const cogpu_extra_tag tags[ITEMS] = {{sizeof(cogpu_extra_tag), 65001, 4, 1, &value},
                                            {sizeof(cogpu_extra_tag), 65002, 4, 1, &value},
                                            {sizeof(cogpu_extra_tag), 65003, 4, 1, &value}};

/* An array of a profile. */
struct row {
    const char *type;
    size_t size, cut; /* of an element that has all fields that are written; 0: all */
    const void *elements;
    size_t array, count; /* offsets of the fields in cogpu_profile */
};

#define ROW(type, cut, elements, array, count)                                                     \
    {                                                                                              \
#type, sizeof(type), cut, elements, offsetof(cogpu_profile, array),                        \
            offsetof(cogpu_profile, count)                                                         \
    }
static const struct row rows[] = {
    ROW(cogpu_gcp, offsetof(cogpu_gcp, id), fixture_gcps, gcps, gcp_count),
    ROW(cogpu_geokey, offsetof(cogpu_geokey, doubles), keys, geokeys, geokey_count),
    ROW(cogpu_metadata_item, offsetof(cogpu_metadata_item, band), metadata, metadata,
        metadata_count),
    ROW(cogpu_extra_tag, 0, tags, tags, tag_count),
};
enum { ROWS = sizeof rows / sizeof *rows };

static cogpu_status write_array(const struct row *row, const void *elements, cogpu_memory *bytes) {
    const cogpu_sink sink = {.struct_size = sizeof(cogpu_sink), .memory = bytes};
    const cogpu_raster raster = fixture_raster(fixture_pixels);
    const uint32_t count = ITEMS;
    cogpu_profile profile = fixture_profile();
    memcpy((uint8_t *)&profile + row->array, &elements, sizeof elements);
    memcpy((uint8_t *)&profile + row->count, &count, sizeof count);
    return cogpu_write(&sink, &profile, &raster, NULL, NULL, &error);
}

/* The file is the same as with this version's elements. */
static bool writes_the_same(const struct row *row, const void *elements) {
    cogpu_memory plain = COGPU_MEMORY_INIT, other = COGPU_MEMORY_INIT;
    CHECK(write_array(row, row->elements, &plain) == COGPU_OK);
    cogpu_status status = write_array(row, elements, &other);
    if (status != COGPU_OK)
        printf("%s: %s\n", row->type, error.message);
    bool is_same = status == COGPU_OK && plain.bytes == other.bytes &&
                   memcmp(plain.data, other.data, plain.bytes) == 0;
    cogpu_memory_free(&plain);
    cogpu_memory_free(&other);
    return is_same;
}

static cogpu_status refuse(const struct row *row, const void *elements) {
    cogpu_memory none = COGPU_MEMORY_INIT;
    cogpu_status status = write_array(row, elements, &none);
    CHECK(!none.data && strstr(error.message, row->type));
    return status;
}

static void test_arrays_of_a_profile(void) {
    for (int i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        const size_t size = row->size, longer = size + TAIL;
        CHECK(writes_the_same(row, spread(row->elements, ITEMS, size, longer, 0)));
        CHECK(writes_the_same(row, spread(row->elements, ITEMS, size, 2 * size, 0)));
        if (row->cut)
            CHECK(writes_the_same(row, spread(row->elements, ITEMS, size, row->cut, GUARD)));
    }
}

static void test_refused_arrays_of_a_profile(void) {
    for (int i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        const size_t size = row->size, longer = size + TAIL;
        uint8_t *elements = spread(row->elements, ITEMS, size, longer, 0);
        elements[2 * longer + size] = 1; /* a new field of the last */
        CHECK(refuse(row, elements) == COGPU_UNSUPPORTED);
        elements = spread(row->elements, ITEMS, size, size, 0);
        set_size(elements, 1, size, longer);
        CHECK(refuse(row, elements) == COGPU_INVALID_ARGUMENT);
        CHECK(strstr(error.message, "element 1"));
        set_size(elements, 1, size, 0);
        CHECK(refuse(row, elements) == COGPU_INVALID_ARGUMENT);
        set_size(elements, 0, size, 0);
        CHECK(refuse(row, elements) == COGPU_INVALID_ARGUMENT && strstr(error.message, "_INIT"));
    }
}

/* ---- cogpu_read_many ---- */

static uint8_t got[ITEMS][FIXTURE_HEIGHT * FIXTURE_WIDTH];
static cogpu_raster rasters[ITEMS];
static cogpu_result results[ITEMS];
static cogpu_read_item items[ITEMS];

static void prepare_items(void) {
    memset(got, 0, sizeof got);
    for (int i = 0; i < ITEMS; i++) {
        rasters[i] = fixture_raster(got[i]);
        results[i] = (cogpu_result)COGPU_RESULT_INIT;
        items[i] = (cogpu_read_item){.struct_size = sizeof(cogpu_read_item),
                                     .file = fixture_file,
                                     .raster = &rasters[i],
                                     .result = &results[i],
                                     .status = COGPU_CORRUPT};
    }
}

static bool is_read(int item) {
    return memcmp(got[item], fixture_pixels, sizeof got[item]) == 0 && results[item].blocks == 12;
}

static cogpu_status status_at(size_t item, size_t stride) {
    cogpu_status status;
    memcpy(&status, caller.bytes + item * stride + offsetof(cogpu_read_item, status),
           sizeof status);
    return status;
}

static void test_longer_read_items(void) {
    const size_t longer = sizeof(cogpu_read_item) + TAIL;
    prepare_items();
    void *given = spread(items, ITEMS, sizeof *items, longer, 0);
    CHECK(cogpu_read_many(given, ITEMS, NULL, &error) == COGPU_OK);
    for (int i = 0; i < ITEMS; i++)
        CHECK(is_read(i) && status_at((size_t)i, longer) == COGPU_OK);
    /* A field that the library lacks: the item fails alone, and keeps that field. */
    prepare_items();
    given = spread(items, ITEMS, sizeof *items, longer, 0);
    caller.bytes[longer + sizeof *items] = 1;
    CHECK(cogpu_read_many(given, ITEMS, NULL, &error) == COGPU_UNSUPPORTED);
    CHECK(strstr(error.message, "cogpu_read_item"));
    CHECK(is_read(0) && status_at(0, longer) == COGPU_OK);
    CHECK(!is_read(1) && status_at(1, longer) == COGPU_UNSUPPORTED);
    CHECK(is_read(2) && status_at(2, longer) == COGPU_OK);
    CHECK(caller.bytes[longer + sizeof *items] == 1);
}

static void test_shorter_read_items(void) {
    const size_t cut = offsetof(cogpu_read_item, status);
    prepare_items();
    void *given = spread(items, ITEMS, sizeof *items, cut, GUARD);
    CHECK(cogpu_read_many(given, ITEMS, NULL, &error) == COGPU_OK);
    for (int i = 0; i < ITEMS; i++)
        CHECK(is_read(i));
    for (size_t i = ITEMS * cut; i < sizeof caller; i++)
        CHECK(caller.bytes[i] == GUARD);
}

static void test_read_items_of_mixed_sizes(void) {
    prepare_items();
    items[1].struct_size += TAIL;
    CHECK(cogpu_read_many(items, ITEMS, NULL, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "element 1") && strstr(error.message, "cogpu_read_item"));
    prepare_items();
    items[0].struct_size = 0;
    CHECK(cogpu_read_many(items, ITEMS, NULL, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "COGPU_READ_ITEM_INIT"));
}

/* Structs that an item points to. */
static void test_read_items_that_fail_alone(void) {
    cogpu_request request = COGPU_REQUEST_INIT;
    request.struct_size = 0;
    for (int kind = 0; kind < 4; kind++) {
        prepare_items();
        if (kind == 0)
            items[1].raster = NULL;
        else if (kind == 1)
            items[1].request = &request;
        else if (kind == 2)
            rasters[1].struct_size = 0;
        else
            results[1].struct_size = 0;
        CHECK(cogpu_read_many(items, ITEMS, NULL, &error) == COGPU_INVALID_ARGUMENT);
        CHECK(strstr(error.message, kind == 0   ? "raster"
                                    : kind == 1 ? "COGPU_REQUEST_INIT"
                                    : kind == 2 ? "COGPU_RASTER_INIT"
                                                : "COGPU_RESULT_INIT"));
        CHECK(items[1].status == COGPU_INVALID_ARGUMENT);
        CHECK(is_read(0) && items[0].status == COGPU_OK);
        CHECK(is_read(2) && items[2].status == COGPU_OK);
    }
}

/* ---- parts of an upload ---- */

static cogpu_status complete(const void *parts) {
    fixture_parts = fixture_aborts = 0;
    return cogpu_upload_complete("s3://bucket/key", "id", NULL, parts, ITEMS, 1, &error);
}

static void test_parts(void) {
    const size_t size = sizeof(cogpu_s3_part), longer = size + TAIL;
    cogpu_s3_part parts[ITEMS] = {{size, 1, "a"}, {size, 2, "b"}, {size, 3, "c"}};
    CHECK(complete(parts) == COGPU_OK && fixture_parts == ITEMS);
    CHECK(complete(spread(parts, ITEMS, size, longer, 0)) == COGPU_OK && fixture_parts == ITEMS);
    uint8_t *given = spread(parts, ITEMS, size, longer, 0);
    given[longer - 1] = 1;
    CHECK(complete(given) == COGPU_UNSUPPORTED && fixture_parts == 0 && fixture_aborts == 1);
    parts[2].struct_size = longer;
    CHECK(complete(parts) == COGPU_INVALID_ARGUMENT && fixture_parts == 0 && fixture_aborts == 1);
    CHECK(strstr(error.message, "element 2") && strstr(error.message, "cogpu_s3_part"));
    parts[0].struct_size = 0;
    CHECK(complete(parts) == COGPU_INVALID_ARGUMENT && fixture_parts == 0);
    CHECK(strstr(error.message, "COGPU_S3_PART_INIT"));
}

TESTS(sized_arrays) {
    if (!fixture_open())
        return 1;
    RUN(test_arrays_of_a_profile);
    RUN(test_refused_arrays_of_a_profile);
    RUN(test_longer_read_items);
    RUN(test_shorter_read_items);
    RUN(test_read_items_of_mixed_sizes);
    RUN(test_read_items_that_fail_alone);
    RUN(test_parts);
    fixture_close();
    return FINISH();
}
