/* The GeoKey directory, valid and malformed. */
#include "support/test.h"

#include "image/geokey.h"
#include "support/opened_tiff.h"

static opened_tiff opened;
static cogpu_georef georef;

/* Texts and doubles may be NULL and 0; close_built(&opened) belongs to the caller. */
static void read_keys(const uint16_t *shorts, size_t count, const double *doubles, size_t numbers,
                      const char *text) {
    build_open(&opened.file, true, false);
    build_image(&opened.file, 1, 1, 1, 8, 1, NULL);
    build_shorts(&opened.file, TAG_GEO_KEY_DIRECTORY, count, shorts);
    if (numbers)
        build_doubles(&opened.file, TAG_GEO_DOUBLE_PARAMS, numbers, doubles);
    if (text)
        build_text(&opened.file, TAG_GEO_ASCII_PARAMS, text);
    CHECK(open_built(&opened) == COGPU_OK);
    georef = (cogpu_georef){0};
    CHECK(cogpu_geokeys_read(&opened.tiff, 0, &opened.arena, &georef, &opened.warning,
                             &opened.error) == COGPU_OK);
}

static void keys_of_each_kind(void) {
    static const uint16_t shorts[] = {1,    1,     1, 5, 1024, 0,     1, 1, 1026, 34737, 7, 0,
                                      2049, 34737, 3, 7, 2057, 34736, 1, 1, 2062, 34736, 3, 0};
    static const double doubles[] = {1.5, 6378137, 3};
    read_keys(shorts, 24, doubles, 3, "WGS 84|AB|");
    CHECK(georef.key_count == 5 && !opened.warning);
    CHECK(georef.keys[0].id == 1024 && georef.keys[0].kind == COGPU_GEOKEY_SHORT);
    CHECK_TEXT(georef.keys[0].name, "GTModelType");
    CHECK(georef.keys[0].count == 1 && georef.keys[0].shorts[0] == 1);
    CHECK_TEXT(cogpu_geokey_text(&georef, 1026), "WGS 84");
    CHECK_TEXT(cogpu_geokey_text(&georef, 2049), "AB");
    double value = 0;
    CHECK(cogpu_geokey_double(&georef, 2057, &value) && value == 6378137);
    CHECK(georef.keys[4].count == 3 && georef.keys[4].doubles[2] == 3);
    CHECK(!cogpu_geokey_find(&georef, 3072) && cogpu_geokey_short(&georef, 3072) == 0);
    CHECK(!cogpu_geokey_text(&georef, 1024) && !cogpu_geokey_double(&georef, 1026, &value));
    close_built(&opened);
}

/* T142: a malformed key is dropped, the others stay. */
static void malformed_keys_are_dropped(void) {
    static const double doubles[] = {1, 2};
    static const uint16_t entries[][4] = {
        {2057, 34736, 1, 2},     /* behind the doubles */
        {2062, 34736, 3, 0},     /* longer than they are */
        {2057, 34736, 0, 0},     /* no value */
        {2057, 34736, 65535, 1}, /* much longer */
        {1026, 34737, 9, 0},     /* longer than the text */
        {1026, 34737, 1, 4000},  /* behind the text */
        {1026, 34737, 0, 0},     /* no text */
        {2048, 0, 0, 4326},      /* no value in place */
        {2048, 34735, 1, 900},   /* behind the directory */
        {2048, 12345, 1, 0},     /* in a tag that holds no keys */
        {1024, 0, 1, 3},         /* a second time */
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        uint16_t shorts[12] = {1, 1, 0, 2, 1024, 0, 1, 2};
        memcpy(shorts + 8, entries[i], sizeof entries[i]);
        read_keys(shorts, 12, doubles, 2, "abc|");
        CHECK(georef.key_count == 1 && cogpu_geokey_short(&georef, 1024) == 2 && opened.warning);
        close_built(&opened);
    }
}

/* T143. */
static void keys_of_the_wrong_kind_are_dropped(void) {
    static const double doubles[] = {1, 2};
    static const uint16_t entries[][4] = {{2048, 34736, 1, 0},
                                          {2057, 0, 1, 7},
                                          {1026, 0, 1, 7},
                                          {2057, 34737, 2, 0},
                                          {3072, 34737, 2, 0}};
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        uint16_t shorts[8] = {1, 1, 0, 1};
        memcpy(shorts + 4, entries[i], sizeof entries[i]);
        read_keys(shorts, 8, doubles, 2, "abc|");
        CHECK(georef.key_count == 0 && opened.warning);
        close_built(&opened);
    }
}

/* T142. */
static void directory_shorter_than_its_count(void) {
    static const uint16_t shorts[] = {1, 1, 0, 500, 1024, 0, 1, 1, 2048, 0};
    for (size_t count = 1; count <= 10; count++) {
        read_keys(shorts, count, NULL, 0, NULL);
        CHECK(georef.key_count == (count >= 8) && opened.warning);
        close_built(&opened);
    }
}

static void unknown_version(void) {
    static const uint16_t shorts[] = {2, 1, 0, 1, 1024, 0, 1, 1};
    read_keys(shorts, 8, NULL, 0, NULL);
    CHECK(georef.key_count == 0 && opened.warning);
    close_built(&opened);
}

static void unknown_and_unsorted_keys(void) {
    static const uint16_t shorts[] = {1, 1, 0, 3, 3072, 0, 1, 32633, 50000, 0, 1, 7, 1024, 0, 1, 1};
    read_keys(shorts, 16, NULL, 0, NULL);
    CHECK(georef.key_count == 3 && !opened.warning);
    CHECK(georef.keys[0].id == 1024 && georef.keys[1].id == 3072 && georef.keys[2].id == 50000);
    CHECK_TEXT(georef.keys[2].name, "unknown");
    CHECK(cogpu_geokey_short(&georef, 3072) == 32633);
    close_built(&opened);
}

/* A text may end with a bar, a NUL or nothing. */
static void endings_of_texts(void) {
    static const uint16_t shorts[] = {1,    1,     0, 3, 1026, 34737, 3, 0,
                                      2049, 34737, 3, 3, 3073, 34737, 1, 6};
    read_keys(shorts, 16, NULL, 0, "abcde||");
    CHECK_TEXT(cogpu_geokey_text(&georef, 1026), "abc");
    CHECK_TEXT(cogpu_geokey_text(&georef, 2049), "de");
    CHECK_TEXT(cogpu_geokey_text(&georef, 3073), "");
    close_built(&opened);
}

static void no_directory(void) {
    build_open(&opened.file, false, true);
    build_image(&opened.file, 1, 1, 1, 8, 1, NULL);
    CHECK(open_built(&opened) == COGPU_OK);
    CHECK(cogpu_geokeys_read(&opened.tiff, 0, &opened.arena, &georef, &opened.warning,
                             &opened.error) == COGPU_OK);
    CHECK(georef.key_count == 0 && !opened.warning && !cogpu_geokey_find(&georef, 1024));
    close_built(&opened);
}

TESTS(geokey) {
    RUN(keys_of_each_kind);
    RUN(malformed_keys_are_dropped);
    RUN(keys_of_the_wrong_kind_are_dropped);
    RUN(directory_shorter_than_its_count);
    RUN(unknown_version);
    RUN(unknown_and_unsorted_keys);
    RUN(endings_of_texts);
    RUN(no_directory);
    return FINISH();
}
