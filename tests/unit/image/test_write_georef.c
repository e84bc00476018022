/*
 * Georeferencing of a profile as tags: transforms, control points, RPCs, and raw GeoKeys.
 */
#include "unit/image/write_tags_test.h"

#include <math.h>
#include <stdio.h>

/* ---- georeference -------------------------------------------------------------------------- */

static void an_empty_profile_has_no_tags(void) {
    cogpu_profile profile = of_one_band();
    CHECK(accepts(describe_georef, &profile) && tag_list.count == 0);
    CHECK(accepts(describe_metadata, &profile) && tag_list.count == 0);
}

static void north_up(void) {
    static const double scale[] = {30, 20, 0}, tiepoint[] = {0, 0, 0, 500, 900, 0};
    static const double centre[] = {0, 0, 0, 515, 890, 0};
    static const uint16_t point[] = {1, 1, 0, 1, 1025, 0, 1, 2};
    cogpu_profile profile = with_transform(500, 30, 0, 900, 0, -20);
    CHECK(accepts(describe_georef, &profile) && tag_list.count == 2);
    CHECK(has_doubles(33550, 3, scale) && has_doubles(33922, 6, tiepoint));
    profile.pixel_is_point = 1;
    CHECK(accepts(describe_georef, &profile) && tag_list.count == 3);
    CHECK(has_doubles(33550, 3, scale) && has_doubles(33922, 6, centre));
    CHECK(has_shorts(34735, 8, point));
}

/* T126, T127: a matrix keeps rotation, shear and the sign of either axis. */
static void rotated_or_flipped(void) {
    static const double rotated[16] = {2, 1, 0, 500, 3, -4, 0, 900, [15] = 1};
    static const double of_centre[16] = {2, 1, 0, 501.5, 3, -4, 0, 899.5, [15] = 1};
    static const double signs[][2] = {{2, 4}, {-2, -4}, {-2, 4}};
    cogpu_profile profile = with_transform(500, 2, 1, 900, 3, -4);
    CHECK(accepts(describe_georef, &profile) && tag_list.count == 1 &&
          has_doubles(34264, 16, rotated));
    profile.pixel_is_point = 1;
    CHECK(accepts(describe_georef, &profile) && has_doubles(34264, 16, of_centre));
    for (size_t i = 0; i < 3; i++) {
        profile = with_transform(500, signs[i][0], 0, 900, 0, signs[i][1]);
        CHECK(accepts(describe_georef, &profile) && !find_tag(33550) && !find_tag(33922) &&
              find_tag(34264));
    }
}

static void transforms_come_back(void) {
    static const double transforms[][6] = {{500000.25, 30, 0, 4e6, 0, -30},
                                           {10, 0.5, 0.25, 50, 0.125, -0.5},
                                           {10, -0.5, 0, 50, 0, 0.5}};
    for (size_t i = 0; i < 3; i++)
        for (int point = 0; point < 2; point++) {
            cogpu_profile profile = of_one_band();
            opened_tiff opened;
            cogpu_georef read;
            profile.has_transform = 1;
            profile.pixel_is_point = point;
            memcpy(profile.transform, transforms[i], sizeof profile.transform);
            CHECK(accepts(describe_georef, &profile));
            open_written(&opened, 1);
            CHECK(cogpu_georef_read(&opened.tiff, 0, 1, &opened.arena, &read, &opened.warning,
                                    &tags_error) == COGPU_OK);
            CHECK(read.has_transform && read.pixel_is_point == (point == 1) && !opened.warning);
            CHECK(memcmp(read.transform, transforms[i], sizeof read.transform) == 0);
            close_built(&opened);
        }
}

/* T125 */
static void impossible_transforms(void) {
    cogpu_profile profile = with_transform(500, 30, 0, NAN, 0, -20);
    CHECK(refuses(describe_georef, &profile, "not finite"));
    profile = with_transform(500, INFINITY, 0, 900, 0, -20);
    CHECK(refuses(describe_georef, &profile, "not finite"));
    profile = with_transform(500, 0, 0, 900, 0, -20);
    CHECK(refuses(describe_georef, &profile, "no area"));
    profile = with_transform(500, 1, 2, 900, 2, 4);
    CHECK(refuses(describe_georef, &profile, "no area"));
}

static void control_points(void) {
    static const cogpu_gcp points[] = {{sizeof(cogpu_gcp), 0, 0, 0, 10, 20, 1, NULL, NULL},
                                       {sizeof(cogpu_gcp), 4, 2, 0.5, 11, 21, 2, NULL, NULL}};
    static const double area[] = {0, 0, 0, 10, 20, 1, 4, 2, 0.5, 11, 21, 2};
    static const double centre[] = {-0.5, -0.5, 0, 10, 20, 1, 3.5, 1.5, 0.5, 11, 21, 2};
    cogpu_profile profile = of_one_band();
    profile.gcps = points;
    profile.gcp_count = 2;
    CHECK(accepts(describe_georef, &profile) && has_doubles(33922, 12, area) && !find_tag(34735));
    profile.pixel_is_point = 1;
    CHECK(accepts(describe_georef, &profile) && has_doubles(33922, 12, centre));
    opened_tiff opened;
    cogpu_georef read;
    open_written(&opened, 1);
    CHECK(cogpu_georef_read(&opened.tiff, 0, 1, &opened.arena, &read, &opened.warning,
                            &tags_error) == COGPU_OK);
    CHECK(read.gcp_count == 2);
    for (uint32_t i = 0; i < 2; i++) {
        cogpu_gcp found = read.gcps[i];
        found.struct_size = sizeof found;
        CHECK(memcmp(&found, &points[i], sizeof found) == 0);
    }
    close_built(&opened);
    profile.has_transform = 1;
    CHECK(refuses(describe_georef, &profile, "not both"));
    profile.has_transform = 0;
    profile.gcp_count = 10923; /* T140 */
    CHECK(refuses(describe_georef, &profile, "10922"));
    profile.gcps = NULL;
    CHECK(refuses(describe_georef, &profile, "NULL"));
    const cogpu_gcp nowhere = {.struct_size = sizeof(cogpu_gcp), .x = NAN};
    profile.gcps = &nowhere;
    profile.gcp_count = 1;
    CHECK(refuses(describe_georef, &profile, "not finite"));
}

static void rational_polynomials(void) {
    double rpc[92];
    for (int i = 0; i < 92; i++)
        rpc[i] = i;
    cogpu_profile profile = of_one_band();
    profile.rpc = rpc;
    CHECK(accepts(describe_georef, &profile) && tag_list.count == 1 && has_doubles(50844, 92, rpc));
    rpc[91] = INFINITY;
    CHECK(refuses(describe_georef, &profile, "not finite"));
}

/* ---- keys ---------------------------------------------------------------------------------- */

static cogpu_geokey short_key(uint32_t id, const uint16_t *values, uint32_t count) {
    return (cogpu_geokey){.struct_size = sizeof(cogpu_geokey),
                          .id = id,
                          .kind = COGPU_GEOKEY_SHORT,
                          .count = count,
                          .shorts = values};
}

static cogpu_profile with_keys(const cogpu_geokey *keys, uint32_t count) {
    cogpu_profile profile = of_one_band();
    profile.geokeys = keys;
    profile.geokey_count = count;
    return profile;
}

/* Sorted, with the raster type that the profile states, and all values in their places. */
static void raw_keys(void) {
    static const uint16_t numbers[] = {1, 2, 32767, 7, 8, 9};
    static const double doubles[] = {0.5, 1.5, 2.5};
    const cogpu_geokey keys[] = {
        {.struct_size = sizeof(cogpu_geokey),
         .id = 3082,
         .kind = COGPU_GEOKEY_DOUBLE,
         .count = 1,
         .doubles = doubles},
        short_key(40000, numbers + 3, 3),
        short_key(1025, numbers + 1, 1),
        {.struct_size = sizeof(cogpu_geokey), .id = 1026, .kind = COGPU_GEOKEY_TEXT, .text = "a|b"},
        short_key(1024, numbers, 1),
        {.struct_size = sizeof(cogpu_geokey),
         .id = 2062,
         .kind = COGPU_GEOKEY_DOUBLE,
         .count = 3,
         .doubles = doubles},
        {.struct_size = sizeof(cogpu_geokey), .id = 3073, .kind = COGPU_GEOKEY_TEXT, .text = ""}};
    static const uint16_t expected[] = {1,    1,     1, 7, 1024,  0,     1, 1,  1025, 0,     1, 1,
                                        1026, 34737, 4, 0, 2062,  34736, 3, 0,  3073, 34737, 1, 4,
                                        3082, 34736, 1, 3, 40000, 34735, 3, 32, 7,    8,     9};
    static const double expected_doubles[] = {0.5, 1.5, 2.5, 0.5};
    cogpu_profile profile = with_keys(keys, 7);
    CHECK(accepts(describe_georef, &profile) && tag_list.count == 3);
    CHECK(has_shorts(34735, 35, expected) && has_doubles(34736, 4, expected_doubles));
    CHECK_TEXT(text_of(34737), "a|b||");
    opened_tiff opened;
    cogpu_georef read;
    open_written(&opened, 1);
    CHECK(cogpu_georef_read(&opened.tiff, 0, 1, &opened.arena, &read, &opened.warning,
                            &tags_error) == COGPU_OK);
    CHECK(read.key_count == 7 && !read.pixel_is_point && !opened.warning);
    CHECK_TEXT(cogpu_geokey_text(&read, 1026), "a|b");
    CHECK_TEXT(cogpu_geokey_text(&read, 3073), "");
    CHECK(cogpu_geokey_find(&read, 40000)->shorts[2] == 9);
    CHECK(cogpu_geokey_find(&read, 2062)->doubles[2] == 2.5);
    close_built(&opened);
}

static void version_of_keys(void) {
    static const uint16_t codes[] = {4326, 5773, 2};
    const cogpu_geokey keys[] = {short_key(2048, codes, 1), short_key(4096, codes + 1, 1)};
    cogpu_profile profile = with_keys(keys, 1);
    CHECK(accepts(describe_georef, &profile) &&
          ((const uint16_t *)find_tag(34735)->values)[2] == 0);
    profile = with_keys(keys, 2);
    CHECK(accepts(describe_georef, &profile) &&
          ((const uint16_t *)find_tag(34735)->values)[2] == 1);
}

/* That of the profile, where it has one, else that of the keys. */
static void epochs(void) {
    static const uint16_t code = 4326;
    static const double in_keys = 1999, in_profile = 2010.5;
    const cogpu_geokey keys[] = {{.struct_size = sizeof(cogpu_geokey),
                                  .id = 5120,
                                  .kind = COGPU_GEOKEY_DOUBLE,
                                  .count = 1,
                                  .doubles = &in_keys},
                                 short_key(2048, &code, 1)};
    static const uint16_t expected[] = {1,    1, 1, 3,    1025, 0,     1, 1,
                                        2048, 0, 1, 4326, 5120, 34736, 1, 0};
    cogpu_profile profile = with_keys(keys, 2);
    CHECK(accepts(describe_georef, &profile) && has_doubles(34736, 1, &in_keys));
    profile.epoch = in_profile;
    CHECK(accepts(describe_georef, &profile) && has_doubles(34736, 1, &in_profile));
    CHECK(has_shorts(34735, 16, expected));
    profile.epoch = NAN;
    CHECK(refuses(describe_georef, &profile, "not finite"));
    profile = with_keys(NULL, 0);
    profile.epoch = in_profile;
    CHECK(refuses(describe_georef, &profile, "set `crs`"));
}

static void keys_that_are_invalid(void) {
    static const uint16_t number = 1;
    static const double real = 1;
    static char text[70000];
    memset(text, 'x', sizeof text - 1);
    const cogpu_geokey valid = short_key(1024, &number, 1);
    cogpu_geokey keys[2] = {valid, valid};
    cogpu_profile profile = with_keys(keys, 2);
    CHECK(refuses(describe_georef, &profile, "twice"));
    profile = with_keys(NULL, 2);
    CHECK(refuses(describe_georef, &profile, "NULL"));
    profile = with_keys(keys, 1);
    profile.crs = "EPSG:4326";
    CHECK(refuses(describe_georef, &profile, "both"));
    profile.crs = NULL;
    keys[0].id = 65536;
    CHECK(refuses(describe_georef, &profile, "GeoKey 65536 does not exist"));
    keys[0] = short_key(1024, &number, 0);
    CHECK(refuses(describe_georef, &profile, "no value"));
    keys[0] = short_key(1024, NULL, 1);
    CHECK(refuses(describe_georef, &profile, "no value"));
    keys[0] = (cogpu_geokey){.struct_size = sizeof(cogpu_geokey),
                             .id = 1024,
                             .kind = COGPU_GEOKEY_DOUBLE,
                             .count = 1,
                             .doubles = &real};
    CHECK(refuses(describe_georef, &profile, "wrong type")); /* T143 */
    keys[0] = (cogpu_geokey){.struct_size = sizeof(cogpu_geokey),
                             .id = 1026,
                             .kind = (cogpu_geokey_kind)7,
                             .count = 1,
                             .text = "x"};
    CHECK(refuses(describe_georef, &profile, "unknown kind"));
    keys[0] = (cogpu_geokey){
        .struct_size = sizeof(cogpu_geokey), .id = 1026, .kind = COGPU_GEOKEY_TEXT, .text = text};
    CHECK(refuses(describe_georef, &profile, "65535"));
    text[65534] = '\0';
    CHECK(accepts(describe_georef, &profile) && find_tag(34737)->count == 65536);
}

TESTS(write_georef) {
    begin_tags();
    RUN(an_empty_profile_has_no_tags);
    RUN(north_up);
    RUN(rotated_or_flipped);
    RUN(transforms_come_back);
    RUN(impossible_transforms);
    RUN(control_points);
    RUN(rational_polynomials);
    RUN(raw_keys);
    RUN(version_of_keys);
    RUN(epochs);
    RUN(keys_that_are_invalid);
    cogpu_arena_close(&tags_arena);
    return FINISH();
}
