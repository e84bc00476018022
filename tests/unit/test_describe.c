/*
 * What a profile says, as tags. Tags are put into a file and read by our reader; that others read
 * them alike is for the tests in Python.
 */
#include "test.h"

#include "image/describe.h"
#include "image/geokey.h"
#include "unit/opened_tiff.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>

static cogpu_arena arena;
static cogpu_tag_list list;
static cogpu_error error;
static uint32_t photometric;

typedef cogpu_status describe(const cogpu_profile *profile);

static cogpu_status georef(const cogpu_profile *profile) {
    return cogpu_describe_georef(profile, &arena, &list, &error);
}

static cogpu_status metadata(const cogpu_profile *profile) {
    return cogpu_describe_metadata(profile, &arena, &list, &error);
}

static cogpu_status colours(const cogpu_profile *profile) {
    return cogpu_describe_colours(profile, COMPRESSION_DEFLATE, &arena, &list, &photometric,
                                  &error);
}

static cogpu_status colours_as_jpeg(const cogpu_profile *profile) {
    return cogpu_describe_colours(profile, COMPRESSION_JPEG, &arena, &list, &photometric, &error);
}

static void begin(void) {
    cogpu_arena_close(&arena);
    cogpu_arena_open(&arena, 1 << 28);
    list = (cogpu_tag_list){0};
    cogpu_error_clear(&error);
}

static bool accepts(describe *part, const cogpu_profile *profile) {
    begin();
    cogpu_status status = part(profile);
    if (status != COGPU_OK)
        printf("refused: %s\n", error.message);
    return status == COGPU_OK;
}

/* With ARGUMENT and words of which `why` is one part. */
static bool refuses(describe *part, const cogpu_profile *profile, const char *why) {
    begin();
    cogpu_status status = part(profile);
    bool is_so = status == COGPU_ARGUMENT && strstr(error.message, why);
    if (!is_so)
        printf("%s: %s\n", cogpu_status_name(status), error.message);
    return is_so;
}

static const cogpu_new_tag *find(uint16_t id) {
    for (uint32_t i = 0; i < list.count; i++)
        if (list.tags[i].id == id)
            return &list.tags[i];
    return NULL;
}

static const char *text_of(uint16_t id) {
    const cogpu_new_tag *tag = find(id);
    bool is_text = tag && tag->type == TYPE_ASCII && strlen(tag->values) + 1 == (size_t)tag->count;
    return is_text ? tag->values : NULL;
}

static bool has_doubles(uint16_t id, uint64_t count, const double *expected) {
    const cogpu_new_tag *tag = find(id);
    return tag && tag->type == TYPE_DOUBLE && tag->count == count &&
           memcmp(tag->values, expected, (size_t)count * sizeof *expected) == 0;
}

static bool has_shorts(uint16_t id, uint64_t count, const uint16_t *expected) {
    const cogpu_new_tag *tag = find(id);
    return tag && tag->type == TYPE_SHORT && tag->count == count &&
           memcmp(tag->values, expected, (size_t)count * sizeof *expected) == 0;
}

/* The tags in a file of one image. */
static void open_written(opened_tiff *opened, uint16_t bands) {
    build_open(&opened->file, false, false);
    build_image(&opened->file, 4, 4, bands, 8, (uint16_t)photometric, NULL);
    for (uint32_t i = 0; i < list.count; i++)
        if (list.tags[i].id != TAG_PHOTOMETRIC)
            build_tag(&opened->file, list.tags[i].id, list.tags[i].type, list.tags[i].count,
                      list.tags[i].values);
    CHECK(open_built(opened) == COGPU_OK);
}

static cogpu_profile of_one_band(void) {
    return (cogpu_profile){.width = 4, .height = 4, .bands = 1, .type = COGPU_U8};
}

static cogpu_profile with_transform(double x, double a, double b, double y, double d, double e) {
    cogpu_profile profile = of_one_band();
    profile.has_transform = 1;
    const double transform[6] = {x, a, b, y, d, e};
    memcpy(profile.transform, transform, sizeof transform);
    return profile;
}

/* ---- georeference -------------------------------------------------------------------------- */

static void nothing_said_nothing_written(void) {
    cogpu_profile profile = of_one_band();
    CHECK(accepts(georef, &profile) && list.count == 0);
    CHECK(accepts(metadata, &profile) && list.count == 0);
}

static void north_up(void) {
    static const double scale[] = {30, 20, 0}, tiepoint[] = {0, 0, 0, 500, 900, 0};
    static const double centre[] = {0, 0, 0, 515, 890, 0};
    static const uint16_t point[] = {1, 1, 0, 1, 1025, 0, 1, 2};
    cogpu_profile profile = with_transform(500, 30, 0, 900, 0, -20);
    CHECK(accepts(georef, &profile) && list.count == 2);
    CHECK(has_doubles(33550, 3, scale) && has_doubles(33922, 6, tiepoint));
    profile.pixel_is_point = 1;
    CHECK(accepts(georef, &profile) && list.count == 3);
    CHECK(has_doubles(33550, 3, scale) && has_doubles(33922, 6, centre));
    CHECK(has_shorts(34735, 8, point));
}

/* T126, T127: a matrix keeps rotation, shear and the sign of either axis. */
static void rotated_or_flipped(void) {
    static const double rotated[16] = {2, 1, 0, 500, 3, -4, 0, 900, [15] = 1};
    static const double of_centre[16] = {2, 1, 0, 501.5, 3, -4, 0, 899.5, [15] = 1};
    static const double signs[][2] = {{2, 4}, {-2, -4}, {-2, 4}};
    cogpu_profile profile = with_transform(500, 2, 1, 900, 3, -4);
    CHECK(accepts(georef, &profile) && list.count == 1 && has_doubles(34264, 16, rotated));
    profile.pixel_is_point = 1;
    CHECK(accepts(georef, &profile) && has_doubles(34264, 16, of_centre));
    for (size_t i = 0; i < 3; i++) {
        profile = with_transform(500, signs[i][0], 0, 900, 0, signs[i][1]);
        CHECK(accepts(georef, &profile) && !find(33550) && !find(33922) && find(34264));
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
            CHECK(accepts(georef, &profile));
            open_written(&opened, 1);
            CHECK(cogpu_georef_read(&opened.tiff, 0, 1, &opened.arena, &read, &opened.warning,
                                    &error) == COGPU_OK);
            CHECK(read.has_transform && read.pixel_is_point == (point == 1) && !opened.warning);
            CHECK(memcmp(read.transform, transforms[i], sizeof read.transform) == 0);
            close_built(&opened);
        }
}

/* T125 */
static void impossible_transforms(void) {
    cogpu_profile profile = with_transform(500, 30, 0, NAN, 0, -20);
    CHECK(refuses(georef, &profile, "not finite"));
    profile = with_transform(500, INFINITY, 0, 900, 0, -20);
    CHECK(refuses(georef, &profile, "not finite"));
    profile = with_transform(500, 0, 0, 900, 0, -20);
    CHECK(refuses(georef, &profile, "no area"));
    profile = with_transform(500, 1, 2, 900, 2, 4);
    CHECK(refuses(georef, &profile, "no area"));
}

static void control_points(void) {
    static const cogpu_gcp points[] = {{0, 0, 0, 10, 20, 1, NULL, NULL},
                                       {4, 2, 0.5, 11, 21, 2, NULL, NULL}};
    static const double area[] = {0, 0, 0, 10, 20, 1, 4, 2, 0.5, 11, 21, 2};
    static const double centre[] = {-0.5, -0.5, 0, 10, 20, 1, 3.5, 1.5, 0.5, 11, 21, 2};
    cogpu_profile profile = of_one_band();
    profile.gcps = points;
    profile.gcp_count = 2;
    CHECK(accepts(georef, &profile) && has_doubles(33922, 12, area) && !find(34735));
    profile.pixel_is_point = 1;
    CHECK(accepts(georef, &profile) && has_doubles(33922, 12, centre));
    opened_tiff opened;
    cogpu_georef read;
    open_written(&opened, 1);
    CHECK(cogpu_georef_read(&opened.tiff, 0, 1, &opened.arena, &read, &opened.warning, &error) ==
          COGPU_OK);
    CHECK(read.gcp_count == 2 && memcmp(read.gcps, points, sizeof points) == 0);
    close_built(&opened);
    profile.has_transform = 1;
    CHECK(refuses(georef, &profile, "not both"));
    profile.has_transform = 0;
    profile.gcp_count = 10923; /* T140 */
    CHECK(refuses(georef, &profile, "10922"));
    profile.gcps = NULL;
    CHECK(refuses(georef, &profile, "NULL"));
    const cogpu_gcp nowhere = {.x = NAN};
    profile.gcps = &nowhere;
    profile.gcp_count = 1;
    CHECK(refuses(georef, &profile, "not finite"));
}

static void rational_polynomials(void) {
    double rpc[92];
    for (int i = 0; i < 92; i++)
        rpc[i] = i;
    cogpu_profile profile = of_one_band();
    profile.rpc = rpc;
    CHECK(accepts(georef, &profile) && list.count == 1 && has_doubles(50844, 92, rpc));
    rpc[91] = INFINITY;
    CHECK(refuses(georef, &profile, "not finite"));
}

/* ---- keys ---------------------------------------------------------------------------------- */

static cogpu_geokey short_key(uint32_t id, const uint16_t *values, uint32_t count) {
    return (cogpu_geokey){.id = id, .kind = COGPU_KEY_SHORT, .count = count, .shorts = values};
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
        {.id = 3082, .kind = COGPU_KEY_DOUBLE, .count = 1, .doubles = doubles},
        short_key(40000, numbers + 3, 3),
        short_key(1025, numbers + 1, 1),
        {.id = 1026, .kind = COGPU_KEY_TEXT, .text = "a|b"},
        short_key(1024, numbers, 1),
        {.id = 2062, .kind = COGPU_KEY_DOUBLE, .count = 3, .doubles = doubles},
        {.id = 3073, .kind = COGPU_KEY_TEXT, .text = ""}};
    static const uint16_t expected[] = {1,    1,     1, 7, 1024,  0,     1, 1,  1025, 0,     1, 1,
                                        1026, 34737, 4, 0, 2062,  34736, 3, 0,  3073, 34737, 1, 4,
                                        3082, 34736, 1, 3, 40000, 34735, 3, 32, 7,    8,     9};
    static const double expected_doubles[] = {0.5, 1.5, 2.5, 0.5};
    cogpu_profile profile = with_keys(keys, 7);
    CHECK(accepts(georef, &profile) && list.count == 3);
    CHECK(has_shorts(34735, 35, expected) && has_doubles(34736, 4, expected_doubles));
    CHECK_TEXT(text_of(34737), "a|b||");
    opened_tiff opened;
    cogpu_georef read;
    open_written(&opened, 1);
    CHECK(cogpu_georef_read(&opened.tiff, 0, 1, &opened.arena, &read, &opened.warning, &error) ==
          COGPU_OK);
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
    CHECK(accepts(georef, &profile) && ((const uint16_t *)find(34735)->values)[2] == 0);
    profile = with_keys(keys, 2);
    CHECK(accepts(georef, &profile) && ((const uint16_t *)find(34735)->values)[2] == 1);
}

/* That of the profile, where it has one, else that of the keys. */
static void epochs(void) {
    static const uint16_t code = 4326;
    static const double in_keys = 1999, in_profile = 2010.5;
    const cogpu_geokey keys[] = {
        {.id = 5120, .kind = COGPU_KEY_DOUBLE, .count = 1, .doubles = &in_keys},
        short_key(2048, &code, 1)};
    static const uint16_t expected[] = {1,    1, 1, 3,    1025, 0,     1, 1,
                                        2048, 0, 1, 4326, 5120, 34736, 1, 0};
    cogpu_profile profile = with_keys(keys, 2);
    CHECK(accepts(georef, &profile) && has_doubles(34736, 1, &in_keys));
    profile.epoch = in_profile;
    CHECK(accepts(georef, &profile) && has_doubles(34736, 1, &in_profile));
    CHECK(has_shorts(34735, 16, expected));
    profile.epoch = NAN;
    CHECK(refuses(georef, &profile, "not finite"));
    profile = with_keys(NULL, 0);
    profile.epoch = in_profile;
    CHECK(refuses(georef, &profile, "set `crs`"));
}

static void keys_that_are_not_sound(void) {
    static const uint16_t number = 1;
    static const double real = 1;
    static char text[70000];
    memset(text, 'x', sizeof text - 1);
    const cogpu_geokey sound = short_key(1024, &number, 1);
    cogpu_geokey keys[2] = {sound, sound};
    cogpu_profile profile = with_keys(keys, 2);
    CHECK(refuses(georef, &profile, "twice"));
    profile = with_keys(NULL, 2);
    CHECK(refuses(georef, &profile, "NULL"));
    profile = with_keys(keys, 1);
    profile.crs = "EPSG:4326";
    CHECK(refuses(georef, &profile, "both"));
    profile.crs = NULL;
    keys[0].id = 65536;
    CHECK(refuses(georef, &profile, "no GeoKey 65536"));
    keys[0] = short_key(1024, &number, 0);
    CHECK(refuses(georef, &profile, "no value"));
    keys[0] = short_key(1024, NULL, 1);
    CHECK(refuses(georef, &profile, "no value"));
    keys[0] = (cogpu_geokey){.id = 1024, .kind = COGPU_KEY_DOUBLE, .count = 1, .doubles = &real};
    CHECK(refuses(georef, &profile, "wrong kind")); /* T143 */
    keys[0] = (cogpu_geokey){.id = 1026, .kind = (cogpu_key_kind)7, .count = 1, .text = "x"};
    CHECK(refuses(georef, &profile, "no kind"));
    keys[0] = (cogpu_geokey){.id = 1026, .kind = COGPU_KEY_TEXT, .text = text};
    CHECK(refuses(georef, &profile, "65535"));
    text[65534] = '\0';
    CHECK(accepts(georef, &profile) && find(34737)->count == 65536);
}

/* ---- coordinate systems -------------------------------------------------------------------- */

static const cogpu_geokey *crs_keys;
static uint32_t crs_key_count;

static cogpu_status describe_crs(const char *words) {
    begin();
    return cogpu_describe_crs(words, &arena, &crs_keys, &crs_key_count, &error);
}

static cogpu_georef described(void) {
    cogpu_georef read = {.keys = crs_keys, .key_count = crs_key_count};
    cogpu_crs_from_keys(&read);
    return read;
}

/* The keys name the system by its code. */
static bool is_coded(const char *words, const char *model, uint32_t code, uint32_t vertical) {
    if (describe_crs(words) != COGPU_OK)
        return printf("%s: %s\n", words, error.message), false;
    cogpu_georef read = described();
    bool is_so = strcmp(read.crs.model, model) == 0 && read.crs.code == code &&
                 read.crs.vertical == vertical;
    if (!is_so)
        printf("%s: %s %u + %u\n", words, read.crs.model, read.crs.code, read.crs.vertical);
    return is_so;
}

static bool has_double(const cogpu_georef *read, uint32_t key, double expected) {
    double value;
    bool is_so = cogpu_geokey_double(read, key, &value) && fabs(value - expected) < 1e-9;
    if (!is_so)
        printf("key %u is not %g\n", key, expected);
    return is_so;
}

static bool crs_refused(const char *words, cogpu_status expected) {
    cogpu_status status = describe_crs(words);
    if (status != expected)
        printf("%s: %s\n", words, cogpu_status_name(status));
    return status == expected && error.message[0];
}

/* What every build can do; the model is never guessed. */
static void common_codes(void) {
    CHECK(is_coded("EPSG:4326", "geographic", 4326, 0));
    CHECK(is_coded("epsg:4269", "geographic", 4269, 0));
    CHECK(is_coded("EPSG:32633", "projected", 32633, 0));
    CHECK(is_coded("EPSG:3857", "projected", 3857, 0));
    CHECK(is_coded("EPSG:3035", "projected", 3035, 0));
    CHECK(is_coded("EPSG:27700", "projected", 27700, 0));
    CHECK(is_coded("EPSG:7844", "geographic", 7844, 0));
    if (cogpu_proj_version())
        return;
    CHECK(crs_refused("EPSG:4087", COGPU_UNSUPPORTED) && strstr(error.message, "PROJ"));
    CHECK(crs_refused("EPSG:4978", COGPU_UNSUPPORTED));
    CHECK(crs_refused("EPSG:", COGPU_UNSUPPORTED));
    CHECK(crs_refused("EPSG:43260", COGPU_UNSUPPORTED));
    CHECK(crs_refused("EPSG:4294971622", COGPU_UNSUPPORTED)); /* 4326 + 2^32 */
    CHECK(crs_refused("EPSG:4326+5773", COGPU_UNSUPPORTED));
    CHECK(crs_refused("E", COGPU_UNSUPPORTED));
    CHECK(crs_refused("+proj=utm +zone=33", COGPU_UNSUPPORTED));
}

/* T131, T132: what ranges would tell wrongly, and codes that do not go where they seem to. */
static void codes_by_the_registry(void) {
    if (!cogpu_proj_version())
        return;
    CHECK(is_coded("EPSG:4087", "projected", 4087, 0));
    CHECK(is_coded("EPSG:9057", "geographic", 9057, 0));
    CHECK(is_coded("EPSG:7415", "projected", 28992, 5709));
    CHECK(is_coded("WGS 84", "geographic", 4326, 0));
    CHECK(crs_refused("foo", COGPU_ARGUMENT)); /* PROJ: Amersfoort */
    CHECK(is_coded("EPSG:6349", "geographic", 6318, 5703));
    CHECK(is_coded("EPSG:4326+3855", "geographic", 4326, 3855));
    CHECK(is_coded("EPSG:4979", "geographic", 4326, 4979));
    CHECK(is_coded("EPSG:4978", "geocentric", 0, 0));
    CHECK(is_coded("OGC:CRS84", "geographic", 4326, 0));
    CHECK(is_coded("ESRI:102100", "projected", 3857, 0));
    CHECK(is_coded("urn:ogc:def:crs:EPSG::3035", "projected", 3035, 0));
    CHECK(is_coded("+init=epsg:32633", "projected", 32633, 0));
    CHECK(is_coded("+proj=utm +zone=33 +datum=WGS84", "projected", 32633, 0));
    CHECK(is_coded("+proj=longlat +datum=NAD83", "geographic", 4269, 0));
    CHECK(is_coded("+proj=utm +zone=33 +ellps=GRS80", "projected", 0, 0)); /* no datum known */
}

/* A projection by its method, and the keys of some of its parameters. */
static void methods(void) {
    static const struct {
        const char *words;
        uint16_t method;
        uint16_t keys[3];
        double values[3];
    } cases[] = {
        {"tmerc +lat_0=1 +lon_0=2 +k=0.9", 1, {3081, 3080, 3092}, {1, 2, 0.9}},
        {"omerc +lat_0=4 +lonc=5 +alpha=50 +gamma=60 +no_uoff", 3, {3089, 3094, 3096}, {4, 50, 60}},
        {"omerc +lat_0=4 +lonc=5 +alpha=50 +x_0=7", 9815, {3089, 3088, 3082}, {4, 5, 7}},
        {"merc +lon_0=5 +k=0.9", 7, {3080, 3092, 3081}, {5, 0.9, 0}},
        {"merc +lat_ts=40 +lon_0=5", 7, {3078, 3080, 3082}, {40, 5, 0}},
        {"lcc +lat_1=3 +lat_2=4 +lat_0=2 +lon_0=9", 8, {3078, 3079, 3085}, {3, 4, 2}},
        {"lcc +lat_1=46 +lat_0=46 +lon_0=2 +k_0=0.9", 9, {3081, 3080, 3092}, {46, 2, 0.9}},
        {"laea +lat_0=52 +lon_0=10 +x_0=3", 10, {3089, 3088, 3082}, {52, 10, 3}},
        {"aea +lat_1=29 +lat_2=45 +lat_0=23 +lon_0=-96", 11, {3081, 3080, 3079}, {23, -96, 45}},
        {"aeqd +lat_0=10 +lon_0=20", 12, {3089, 3088, 3083}, {10, 20, 0}},
        {"eqdc +lat_1=20 +lat_2=60 +lat_0=40 +y_0=8", 13, {3078, 3081, 3083}, {20, 40, 8}},
        {"stere +lat_0=30 +lon_0=20 +k=0.9", 14, {3089, 3088, 3092}, {30, 20, 0.9}},
        {"stere +lat_0=90 +lat_ts=71 +lon_0=-45", 15, {3081, 3095, 3082}, {71, -45, 0}},
        {"stere +lat_0=-90 +k=0.994 +lon_0=12", 15, {3081, 3095, 3092}, {-90, 12, 0.994}},
        {"sterea +lat_0=52 +lon_0=5 +k=0.9", 16, {3081, 3080, 3092}, {52, 5, 0.9}},
        {"eqc +lat_ts=30 +lon_0=7", 17, {3078, 3088, 3082}, {30, 7, 0}},
        {"eqc +lat_ts=30 +lat_0=10 +lon_0=7", 17, {3078, 3089, 3088}, {30, 10, 7}},
        {"cass +lat_0=10 +lon_0=-61", 18, {3081, 3080, 3082}, {10, -61, 0}},
        {"gnom +lat_0=80 +lon_0=5", 19, {3089, 3088, 3082}, {80, 5, 0}},
        {"mill +lon_0=10", 20, {3088, 3082, 3083}, {10, 0, 0}},
        {"ortho +lat_0=40 +lon_0=10", 21, {3089, 3088, 3082}, {40, 10, 0}},
        {"poly +lat_0=10 +lon_0=-54", 22, {3081, 3080, 3082}, {10, -54, 0}},
        {"robin +lon_0=11", 23, {3088, 3082, 3083}, {11, 0, 0}},
        {"sinu +lon_0=11", 24, {3088, 3082, 3083}, {11, 0, 0}},
        {"vandg +lon_0=11", 25, {3088, 3082, 3083}, {11, 0, 0}},
        {"nzmg +lat_0=-41 +lon_0=173 +x_0=2", 26, {3081, 3080, 3082}, {-41, 173, 2}},
        {"tmerc +lat_0=-10 +lon_0=29 +axis=wsu", 27, {3081, 3080, 3092}, {-10, 29, 1}},
        {"cea +lat_ts=30 +lon_0=10", 28, {3078, 3080, 3082}, {30, 10, 0}},
        {"cea +lat_ts=30 +R=6371000", 28, {3078, 2057, 2058}, {30, 6371000, 6371000}},
        {"eqc +lat_ts=30 +R=6371000", 17, {3078, 2057, 2058}, {30, 6371000, 6371000}},
        {"laea +lat_0=90 +R=6371000", 10, {3089, 2057, 2058}, {90, 6371000, 6371000}},
    };
    for (size_t i = 0; cogpu_proj_version() && i < sizeof cases / sizeof *cases; i++) {
        char words[160];
        bool is_sphere = strstr(cases[i].words, "+R=");
        snprintf(words, sizeof words, "+proj=%s%s", cases[i].words,
                 is_sphere ? "" : " +ellps=bessel");
        CHECK(is_coded(words, "projected", 0, 0));
        cogpu_georef read = described();
        CHECK(cogpu_geokey_short(&read, KEY_METHOD) == cases[i].method);
        for (size_t j = 0; j < 3; j++)
            CHECK(has_double(&read, cases[i].keys[j], cases[i].values[j]));
        CHECK(is_sphere || has_double(&read, KEY_INVERSE_FLATTENING, 299.1528128));
    }
}

/* Written, read as WKT, and written again: the same WKT. */
static void systems_come_back(void) {
    static const char *const systems[] = {
        "+proj=longlat +ellps=bessel +pm=10.5",
        "+proj=longlat +R=1737400",
        "+proj=longlat +ellps=bessel +towgs84=598.1,73.7,418.2,0.202,0.045,-2.455,6.7",
        "+proj=utm +zone=33 +ellps=GRS80 +towgs84=1,2,3",
        "+proj=tmerc +lon_0=9 +k=0.9 +x_0=100 +datum=NAD83 +units=us-ft",
        "+proj=aea +lat_1=29.5 +lat_2=45.5 +x_0=100 +datum=NAD83 +units=ft",
        "+proj=laea +lat_0=10 +datum=NAD27 +units=km",
        "+proj=moll +lon_0=5 +ellps=bessel",
        "+proj=geocent +ellps=bessel",
        "ESRI:102001",
        "ESRI:54009",
        "EPSG:27572",
        "EPSG:2053",
        "EPSG:7415",
        "EPSG:4979",
        "EPSG:5514"};
    for (size_t i = 0; cogpu_proj_version() && i < sizeof systems / sizeof *systems; i++) {
        static char wkt[2][16384];
        const char *words = systems[i];
        for (int turn = 0; turn < 2; turn++) {
            cogpu_registry *registry = NULL;
            size_t needed;
            wkt[turn][0] = '\0';
            CHECK(describe_crs(words) == COGPU_OK);
            cogpu_georef read = described();
            CHECK(cogpu_crs_to_wkt(&read, &registry, wkt[turn], sizeof wkt[turn], &needed,
                                   &error) == COGPU_OK);
            cogpu_registry_close(registry);
            words = wkt[turn];
        }
        CHECK_TEXT(wkt[1], wkt[0]);
    }
}

static void prime_meridians(void) {
    if (!cogpu_proj_version())
        return;
    CHECK(is_coded("+proj=longlat +ellps=bessel +pm=paris", "geographic", 0, 0));
    cogpu_georef read = described();
    CHECK(cogpu_geokey_short(&read, KEY_PRIME_MERIDIAN) == 8903);
    CHECK(is_coded("+proj=longlat +ellps=bessel +pm=10.5", "geographic", 0, 0));
    read = described();
    CHECK(has_double(&read, KEY_PRIME_MERIDIAN_LONGITUDE, 10.5));
}

/* A code that stands beside other parameters is not believed. */
static void codes_that_lie(void) {
    static const char liar[] =
        "PROJCS[\"liar\",GEOGCS[\"WGS 84\",DATUM[\"WGS_1984\",SPHEROID[\"WGS 84\",6378137,"
        "298.257223563]],PRIMEM[\"Greenwich\",0],UNIT[\"degree\",0.0174532925199433]],"
        "PROJECTION[\"Transverse_Mercator\"],PARAMETER[\"latitude_of_origin\",0],"
        "PARAMETER[\"central_meridian\",15],PARAMETER[\"scale_factor\",0.5],"
        "PARAMETER[\"false_easting\",500000],PARAMETER[\"false_northing\",0],UNIT[\"metre\",1],"
        "AUTHORITY[\"EPSG\",\"32633\"]]";
    if (!cogpu_proj_version())
        return;
    CHECK(is_coded(liar, "projected", 0, 0));
    cogpu_georef read = described();
    CHECK(has_double(&read, KEY_SCALE_AT_NATURAL_ORIGIN, 0.5));
}

/* Methods and parameters by their names, and not in the units of the system. */
static void names_and_units(void) {
    static const char words[] =
        "PROJCRS[\"x\",BASEGEOGCRS[\"g\",DATUM[\"d\",ELLIPSOID[\"e\",6377397.155,299.1528128]]],"
        "CONVERSION[\"c\",METHOD[\"Transverse Mercator\"],"
        "PARAMETER[\"Latitude of natural origin\",0,ANGLEUNIT[\"degree\",0.0174532925199433]],"
        "PARAMETER[\"Longitude of natural origin\",10,ANGLEUNIT[\"grad\",0.015707963267949]],"
        "PARAMETER[\"Scale factor at natural origin\",1,SCALEUNIT[\"unity\",1]],"
        "PARAMETER[\"False easting\",1000,LENGTHUNIT[\"metre\",1]],"
        "PARAMETER[\"False northing\",0,LENGTHUNIT[\"metre\",1]]],"
        "CS[Cartesian,2],AXIS[\"e\",east],AXIS[\"n\",north],LENGTHUNIT[\"foot\",0.3048]]";
    if (!cogpu_proj_version())
        return;
    CHECK(is_coded(words, "projected", 0, 0));
    cogpu_georef read = described();
    CHECK(cogpu_geokey_short(&read, KEY_METHOD) == 1);
    CHECK(cogpu_geokey_short(&read, KEY_LINEAR_UNIT) == 9002);
    CHECK(has_double(&read, KEY_NATURAL_LONGITUDE, 9));
    CHECK(has_double(&read, KEY_FALSE_EASTING, 1000 / 0.3048));
    CHECK(is_coded("GEOGCRS[\"g\",DATUM[\"d\",ELLIPSOID[\"e\",6377397.155,299.1528128]],"
                   "CS[ellipsoidal,2],AXIS[\"lat\",north],AXIS[\"lon\",east],"
                   "ANGLEUNIT[\"radian\",1]]",
                   "geographic", 0, 0));
    read = described();
    CHECK(cogpu_geokey_short(&read, KEY_ANGULAR_UNIT) == 9101);
}

static void vertical_of_parameters(void) {
    static const char words[] =
        "COMPD_CS[\"both\",GEOGCS[\"WGS 84\",DATUM[\"WGS_1984\",SPHEROID[\"WGS 84\",6378137,"
        "298.257223563]],PRIMEM[\"Greenwich\",0],UNIT[\"degree\",0.0174532925199433],"
        "AUTHORITY[\"EPSG\",\"4326\"]],VERT_CS[\"my height\",VERT_DATUM[\"my datum\",2005],"
        "UNIT[\"foot\",0.3048],AXIS[\"Up\",UP]]]";
    if (!cogpu_proj_version())
        return;
    CHECK(is_coded(words, "geographic", 4326, 0));
    cogpu_georef read = described();
    CHECK(cogpu_geokey_short(&read, KEY_VERTICAL_CRS) == KEY_USER_DEFINED);
    CHECK(cogpu_geokey_short(&read, KEY_VERTICAL_UNIT) == 9002);
    CHECK_TEXT(cogpu_geokey_text(&read, KEY_VERTICAL_CITATION),
               "VCS Name = my height|Datum Name = my datum|");
    CHECK_TEXT(cogpu_geokey_text(&read, KEY_CITATION), "both");
}

static void systems_without_keys(void) {
    if (!cogpu_proj_version())
        return;
    CHECK(crs_refused("rubbish", COGPU_ARGUMENT));
    CHECK(crs_refused("", COGPU_ARGUMENT));
    CHECK(crs_refused("EPSG:999999", COGPU_ARGUMENT));
    CHECK(crs_refused("+proj=utm", COGPU_ARGUMENT));
    CHECK(crs_refused("EPSG:5773", COGPU_UNSUPPORTED));
    CHECK(crs_refused("+proj=lcca +lat_0=46 +ellps=bessel", COGPU_UNSUPPORTED));
    CHECK(crs_refused("+proj=ob_tran +o_proj=longlat +o_lat_p=39 +lon_0=18", COGPU_UNSUPPORTED));
    CHECK(crs_refused("+proj=utm +zone=33 +ellps=bessel +nadgrids=x.gsb", COGPU_UNSUPPORTED));
    CHECK(crs_refused("+proj=utm +zone=3 +datum=WGS84 +geoidgrids=x.gtx", COGPU_UNSUPPORTED));
}

/* ---- metadata ------------------------------------------------------------------------------ */

static cogpu_profile with_items(const cogpu_item *items, uint32_t count) {
    cogpu_profile profile = of_one_band();
    profile.bands = 3;
    profile.items = items;
    profile.item_count = count;
    return profile;
}

static void items_as_gdal_writes_them(void) {
    static const cogpu_item items[] = {
        {.name = "A", .value = "1 < 2 & \"3\""},
        {.domain = "D&", .name = "\"B\"", .value = "x"},
        {.name = "DESCRIPTION", .value = "red", .role = "description", .band = 2},
        {.name = "EMPTY"},
        {.name = "BLANKS", .value = " x\r\n "}};
    cogpu_profile profile = with_items(items, 5);
    CHECK(accepts(metadata, &profile) && list.count == 1);
    CHECK_TEXT(text_of(42112),
               "<GDALMetadata>\n"
               "  <Item name=\"A\">1 &amp;lt; 2 &amp;amp; &amp;quot;3&amp;quot;</Item>\n"
               "  <Item name=\"&quot;B&quot;\" domain=\"D&amp;\">x</Item>\n"
               "  <Item name=\"DESCRIPTION\" sample=\"1\" role=\"description\">red</Item>\n"
               "  <Item name=\"EMPTY\"></Item>\n"
               "  <Item name=\"BLANKS\">&amp;#32;x&amp;#13;\n </Item>\n"
               "</GDALMetadata>\n");
}

static void items_come_back(void) {
    static const cogpu_item items[] = {
        {"", "A", " \t<&>\"'\n\r\x01\x7f\xc3\xa9 &amp; &lt; &#65; ]]> <!-- ", "", 0},
        {"<&>\"'", "<&>\"'", "<&>", "", 0},
        {"", "BLANK", " \n ", "", 0},
        {"", "EMPTY", "", "", 0},
        {"xml:X", "doc", "<a b='c'>&amp;<![CDATA[x]]></a>", "", 0},
        {"", "UNITTYPE", "m\xc2\xb2", "unittype", 3}};
    enum { COUNT = sizeof items / sizeof *items };
    cogpu_profile profile = with_items(items, COUNT);
    opened_tiff opened;
    cogpu_metadata read;
    CHECK(accepts(metadata, &profile));
    open_written(&opened, 3);
    CHECK(cogpu_metadata_read(&opened.tiff, 0, &opened.arena, &read, &opened.warning, &error) ==
          COGPU_OK);
    CHECK(read.item_count == COUNT && !opened.warning);
    for (uint32_t i = 0; i < COUNT && i < read.item_count; i++) {
        CHECK_TEXT(read.items[i].domain, items[i].domain);
        CHECK_TEXT(read.items[i].name, items[i].name);
        CHECK_TEXT(read.items[i].value, items[i].value);
        CHECK_TEXT(read.items[i].role, items[i].role);
        CHECK(read.items[i].band == items[i].band);
    }
    close_built(&opened);
}

static void scale_and_offset_go_together(void) {
    static const cogpu_item items[] = {
        {.name = "SCALE", .value = "0.1", .role = "scale", .band = 1},
        {.name = "OFFSET", .value = "-3e2", .role = "offset", .band = 2},
        {.name = "SCALE", .value = "2", .role = "SCALE", .band = 3},
        {.name = "OFFSET", .value = "5", .role = "offset", .band = 3}};
    cogpu_profile profile = with_items(items, 4);
    CHECK(accepts(metadata, &profile));
    const char *xml = text_of(42112);
    CHECK(xml && strstr(xml, "<Item name=\"OFFSET\" sample=\"0\" role=\"offset\">0</Item>"));
    CHECK(xml && strstr(xml, "<Item name=\"SCALE\" sample=\"1\" role=\"scale\">1</Item>"));
    CHECK(xml && strstr(xml, "<Item name=\"SCALE\" sample=\"0\" role=\"scale\">0.1</Item>"));
    CHECK(xml && !strstr(xml, "sample=\"2\" role=\"offset\">0<"));
}

static void items_that_are_not_sound(void) {
    static const char *const numbers[] = {"nan", "inf", "-inf", "1e999", "x", "", "1,5", "0x10"};
    cogpu_item item = {.name = "A", .value = "x", .band = 4};
    cogpu_profile profile = with_items(&item, 1);
    CHECK(refuses(metadata, &profile, "band 4"));
    item.band = -1;
    CHECK(refuses(metadata, &profile, "band -1"));
    item = (cogpu_item){.value = "x"};
    CHECK(refuses(metadata, &profile, "no name"));
    item.name = "";
    CHECK(refuses(metadata, &profile, "no name"));
    item = (cogpu_item){.name = "a\nb", .value = "x"};
    CHECK(refuses(metadata, &profile, "control"));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        item = (cogpu_item){.name = "SCALE", .value = numbers[i], .role = "scale", .band = 1};
        CHECK(refuses(metadata, &profile, "finite number"));
    }
    profile = with_items(NULL, 1);
    CHECK(refuses(metadata, &profile, "NULL"));
}

/* What is no UTF-8 is Latin-1, byte by byte. */
static void items_become_utf8(void) {
    static const char *const cases[][2] = {
        {"\xc3\xa9", "\xc3\xa9"},
        {"\xe2\x82\xac", "\xe2\x82\xac"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
        {"\xe9", "\xc3\xa9"},
        {"caf\xe9 x", "caf\xc3\xa9 x"},
        {"\xff", "\xc3\xbf"},
        {"\xc3", "\xc3\x83"},
        {"\xe2\x82", "\xc3\xa2\xc2\x82"},
        {"\xc0\x80", "\xc3\x80\xc2\x80"},             /* too long for what it says */
        {"\xed\xa0\x80", "\xc3\xad\xc2\xa0\xc2\x80"}, /* a surrogate */
        {"\xf4\x90\x80\x80", "\xc3\xb4\xc2\x90\xc2\x80\xc2\x80"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[200];
        cogpu_item item = {.name = cases[i][0], .value = cases[i][0]};
        cogpu_profile profile = with_items(&item, 1);
        snprintf(expected, sizeof expected,
                 "<GDALMetadata>\n  <Item name=\"%s\">%s</Item>\n</GDALMetadata>\n", cases[i][1],
                 cases[i][1]);
        CHECK(accepts(metadata, &profile));
        CHECK_TEXT(text_of(42112), expected);
    }
}

static void nodata_as_the_type_has_it(void) {
    static const struct {
        cogpu_type type;
        const char *given, *written; /* NULL: refused */
    } cases[] = {
        {COGPU_U8, "255", "255"},
        {COGPU_U8, "0", "0"},
        {COGPU_U8, "1e2", "100"},
        {COGPU_U8, "7.0", "7"},
        {COGPU_U8, "256", NULL},
        {COGPU_U8, "-9999", NULL},
        {COGPU_U8, "nan", NULL},
        {COGPU_U8, "inf", NULL},
        {COGPU_U8, "1.5", NULL},
        {COGPU_U8, "", NULL},
        {COGPU_U8, "12x", NULL},
        {COGPU_U8, "0x10", NULL},
        {COGPU_U8, "1 2", NULL},
        {COGPU_I8, "-128", "-128"},
        {COGPU_I16, "-9999", "-9999"},
        {COGPU_I16, "40000", NULL},
        {COGPU_U32, "4294967295", "4294967295"},
        {COGPU_U32, "4294967296", NULL},
        {COGPU_I64, "-9223372036854775808", "-9223372036854775808"},
        {COGPU_I64, "9223372036854775807", "9223372036854775807"},
        {COGPU_I64, "9223372036854775808", NULL},
        {COGPU_U64, "18446744073709551615", "18446744073709551615"},
        {COGPU_U64, "18446744073709551616", NULL},
        {COGPU_U64, "-1", NULL},
        {COGPU_F32, "-9999", "-9999"},
        {COGPU_F32, "0.1", "0.10000000000000001"},
        {COGPU_F32, "NaN", "nan"},
        {COGPU_F32, "-nan", "nan"},
        {COGPU_F32, "-inf", "-inf"},
        {COGPU_F32, "-3.4028234663852886e+38", "-3.4028234663852886e+38"},
        {COGPU_F32, "1e39", NULL},
        {COGPU_F16, "65504", "65504"},
        {COGPU_F16, "1e5", NULL},
        {COGPU_F64, "1e300", "1.0000000000000001e+300"},
        {COGPU_F64, "1e400", NULL},
        {COGPU_CI16, "-5", "-5"},
        {COGPU_CF32, "nan", "nan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cogpu_profile profile = of_one_band();
        profile.type = cases[i].type;
        profile.nodata = cases[i].given;
        if (!cases[i].written)
            CHECK(refuses(metadata, &profile, "nodata"));
        else if (accepts(metadata, &profile))
            CHECK_TEXT(text_of(42113), cases[i].written);
        else
            CHECK(!"accepted");
    }
}

/* The decimal point of the process's locale is not that of the file. */
static void locale_does_not_matter(void) {
    static const char *const others[] = {"ps_AF", "ps_AF.utf8", "de_DE.UTF-8", "de_DE.utf8",
                                         "de_DE"};
    cogpu_profile profile = of_one_band();
    profile.type = COGPU_F64;
    profile.nodata = "-0.25";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (setlocale(LC_ALL, others[i]))
            break;
    CHECK(accepts(metadata, &profile));
    CHECK_TEXT(text_of(42113), "-0.25");
    setlocale(LC_ALL, "C");
}

static void description(void) {
    cogpu_profile profile = of_one_band();
    profile.description = "what it is";
    CHECK(accepts(metadata, &profile) && list.count == 1);
    CHECK_TEXT(text_of(270), "what it is");
}

static void extra_tags(void) {
    static const uint16_t shorts[] = {7, 8};
    cogpu_extra_tag tags[] = {{65001, TYPE_SHORT, 2, shorts}, {305, TYPE_ASCII, 6, "cogpu"}};
    cogpu_profile profile = of_one_band();
    profile.tags = tags;
    profile.tag_count = 2;
    CHECK(accepts(metadata, &profile) && list.count == 2 && has_shorts(65001, 2, shorts));
    CHECK_TEXT(text_of(305), "cogpu");
    tags[1] = tags[0];
    CHECK(refuses(metadata, &profile, "twice"));
    profile.tags = NULL;
    CHECK(refuses(metadata, &profile, "NULL"));
}

/* A value that no sample can have, as other writers store it. */
static void nodata_as_an_extra_tag(void) {
    cogpu_extra_tag tag = {42113, TYPE_ASCII, 6, "-9999"};
    cogpu_profile profile = of_one_band();
    profile.tags = &tag;
    profile.tag_count = 1;
    CHECK(accepts(metadata, &profile) && list.count == 1);
    CHECK_TEXT(text_of(42113), "-9999");
    profile.nodata = "7";
    CHECK(refuses(metadata, &profile, "made by the writer"));
}

/* T147, and what would point into the void. */
static void extra_tags_that_are_refused(void) {
    static const uint16_t ours[] = {254,   255,   256,   257,   258,   259,   262,   266,   270,
                                    273,   277,   278,   279,   284,   317,   320,   322,   323,
                                    324,   325,   338,   339,   347,   513,   530,   532,   33550,
                                    33922, 34264, 34735, 34736, 34737, 42112, 42113, 50674, 50844};
    static const uint16_t pointers[] = {288, 330, 34665, 34853, 40965};
    static const uint32_t value[2] = {1, 1};
    cogpu_extra_tag tag;
    cogpu_profile profile = of_one_band();
    profile.tags = &tag;
    profile.tag_count = 1;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        tag = (cogpu_extra_tag){ours[i], TYPE_LONG, 1, value};
        CHECK(refuses(metadata, &profile, "made by the writer"));
    }
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
        tag = (cogpu_extra_tag){pointers[i], TYPE_LONG, 1, value};
        CHECK(refuses(metadata, &profile, "another place"));
    }
    tag = (cogpu_extra_tag){65001, TYPE_IFD, 1, value};
    CHECK(refuses(metadata, &profile, "another place"));
    tag = (cogpu_extra_tag){65001, 14, 1, value};
    CHECK(refuses(metadata, &profile, "type 14"));
    tag = (cogpu_extra_tag){65001, 65536 + TYPE_LONG, 1, value};
    CHECK(refuses(metadata, &profile, "type"));
    tag = (cogpu_extra_tag){65536, TYPE_LONG, 1, value};
    CHECK(refuses(metadata, &profile, "no tag 65536"));
    tag = (cogpu_extra_tag){65001, TYPE_LONG, 0, value};
    CHECK(refuses(metadata, &profile, "no values"));
    tag = (cogpu_extra_tag){65001, TYPE_LONG, 1, NULL};
    CHECK(refuses(metadata, &profile, "no values"));
    tag = (cogpu_extra_tag){65001, TYPE_DOUBLE, UINT64_MAX / 4, value};
    CHECK(refuses(metadata, &profile, "4 GiB"));
    tag = (cogpu_extra_tag){65001, TYPE_ASCII, 3, "abc"};
    CHECK(refuses(metadata, &profile, "NUL"));
}

/* ---- colours ------------------------------------------------------------------------------- */

static cogpu_profile of_bands(uint32_t bands, cogpu_type type) {
    return (cogpu_profile){.width = 4, .height = 4, .bands = bands, .type = type};
}

/* The photometric interpretation that is chosen, with so many extra samples; -1 where refused. */
static int chosen(describe *part, const cogpu_profile *profile, uint64_t extras) {
    if (!accepts(part, profile))
        return -1;
    const cogpu_new_tag *tag = find(338);
    uint16_t stated = (uint16_t)photometric;
    CHECK(has_shorts(262, 1, &stated));
    CHECK((tag ? tag->count : 0) == extras);
    return (int)photometric;
}

static void colours_by_default(void) {
    cogpu_profile profile = of_bands(1, COGPU_U8);
    CHECK(chosen(colours, &profile, 0) == 1);
    profile = of_bands(3, COGPU_U8);
    CHECK(chosen(colours, &profile, 0) == 2);
    CHECK(chosen(colours_as_jpeg, &profile, 0) == 6 && find(530) && find(532));
    profile.planar = 1;
    CHECK(chosen(colours_as_jpeg, &profile, 0) == 2 && !find(530));
    profile = of_bands(3, COGPU_U8);
    profile.photometric = COGPU_RGB;
    CHECK(chosen(colours_as_jpeg, &profile, 0) == 2 && !find(530));
    profile = of_bands(3, COGPU_U16);
    CHECK(chosen(colours, &profile, 2) == 1);
    profile = of_bands(4, COGPU_U8); /* never guess alpha */
    CHECK(chosen(colours, &profile, 3) == 1);
    profile.alpha_band = 4;
    CHECK(chosen(colours, &profile, 1) == 2);
    CHECK(chosen(colours_as_jpeg, &profile, 1) == 2);
    profile.alpha_band = 3;
    CHECK(chosen(colours, &profile, 3) == 1);
    profile = of_bands(3, COGPU_U8);
    profile.alpha_band = 3;
    CHECK(chosen(colours, &profile, 2) == 1);
}

static void colours_as_asked(void) {
    static const struct {
        cogpu_photometric asked;
        uint32_t bands;
        int stored;
    } cases[] = {{COGPU_MIN_IS_BLACK, 3, 1}, {COGPU_MIN_IS_WHITE, 1, 0}, {COGPU_RGB, 5, 2},
                 {COGPU_CMYK, 4, 5},         {COGPU_CMYK, 3, -1},        {COGPU_RGB, 2, -1},
                 {COGPU_CIELAB, 3, 8},       {COGPU_CIELAB, 1, -1}};
    static const uint32_t coloured[] = {[0] = 1, [1] = 1, [2] = 3, [5] = 4, [8] = 3};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cogpu_profile profile = of_bands(cases[i].bands, COGPU_U16);
        profile.photometric = cases[i].asked;
        if (cases[i].stored < 0)
            CHECK(refuses(colours, &profile, "bands"));
        else
            CHECK(chosen(colours, &profile, cases[i].bands - coloured[cases[i].stored]) ==
                  cases[i].stored);
    }
    cogpu_profile profile = of_bands(3, COGPU_U8);
    profile.photometric = (cogpu_photometric)4;
    CHECK(refuses(colours, &profile, "photometric 4"));
}

static void ycbcr_is_for_jpeg(void) {
    static const uint16_t subsampling[] = {2, 2};
    static const uint32_t range[] = {0, 1, 255, 1, 128, 1, 255, 1, 128, 1, 255, 1};
    cogpu_profile profile = of_bands(3, COGPU_U8);
    profile.photometric = COGPU_YCBCR;
    CHECK(refuses(colours, &profile, "jpeg"));
    CHECK(chosen(colours_as_jpeg, &profile, 0) == 6 && has_shorts(530, 2, subsampling));
    CHECK(find(532)->type == TYPE_RATIONAL && find(532)->count == 6 &&
          memcmp(find(532)->values, range, sizeof range) == 0);
    profile.planar = 1;
    CHECK(refuses(colours_as_jpeg, &profile, "planar"));
    profile.planar = 0;
    profile.bands = 4;
    CHECK(refuses(colours_as_jpeg, &profile, "3 bands"));
    profile.bands = 3;
    profile.type = COGPU_U16;
    CHECK(refuses(colours_as_jpeg, &profile, "uint8"));
}

static void palettes(void) {
    static const uint16_t palette[] = {1, 2, 3, 4, 5, 6};
    uint16_t map[768] = {1, 2, [256] = 3, [257] = 4, [512] = 5, [513] = 6};
    cogpu_profile profile = of_bands(1, COGPU_U8);
    profile.palette = palette;
    profile.palette_entries = 2;
    CHECK(chosen(colours, &profile, 0) == 3 && has_shorts(320, 768, map));
    profile.photometric = COGPU_PALETTE;
    CHECK(chosen(colours, &profile, 0) == 3);
    profile.type = COGPU_U16;
    CHECK(chosen(colours, &profile, 0) == 3 && find(320)->count == 3 * 65536);
    profile.type = COGPU_I16;
    CHECK(refuses(colours, &profile, "uint8 or uint16"));
    profile.type = COGPU_U8;
    CHECK(refuses(colours_as_jpeg, &profile, "jpeg"));
    profile.bands = 2; /* the second is an extra sample */
    CHECK(chosen(colours, &profile, 1) == 3);
    profile.bands = 1;
    profile.palette_entries = 257;
    CHECK(refuses(colours, &profile, "257 entries"));
    profile.palette_entries = 0;
    CHECK(refuses(colours, &profile, "at least one"));
    profile.palette = NULL;
    CHECK(refuses(colours, &profile, "at least one"));
    profile.palette = palette;
    profile.palette_entries = 2;
    profile.photometric = COGPU_MIN_IS_BLACK;
    CHECK(refuses(colours, &profile, "COGPU_PALETTE"));
}

static void alpha_bands(void) {
    static const uint16_t straight[] = {0, 2, 0}, premultiplied[] = {0, 1, 0};
    cogpu_profile profile = of_bands(6, COGPU_U16);
    profile.photometric = COGPU_RGB;
    profile.alpha_band = 5;
    CHECK(chosen(colours, &profile, 3) == 2 && has_shorts(338, 3, straight));
    profile.premultiplied = 1;
    CHECK(chosen(colours, &profile, 3) == 2 && has_shorts(338, 3, premultiplied));
    profile.alpha_band = 7;
    CHECK(refuses(colours, &profile, "from 1 to 6"));
    profile.alpha_band = 3;
    CHECK(refuses(colours, &profile, "colours"));
    profile.alpha_band = 0;
    CHECK(refuses(colours, &profile, "alpha_band"));
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Every part ends with a status, however little it gets. */
static void memory_that_ends(void) {
    static const cogpu_item item = {.name = "A", .value = "b"};
    static const cogpu_gcp point = {0};
    static const uint16_t palette[3] = {0};
    cogpu_profile profile = with_items(&item, 1);
    profile.bands = 1;
    profile.gcps = &point;
    profile.gcp_count = 1;
    profile.crs = cogpu_proj_version() ? "+proj=moll +ellps=bessel" : "EPSG:4326";
    profile.palette = palette;
    profile.palette_entries = 1;
    describe *parts[] = {georef, metadata, colours};
    for (size_t i = 0; i < 3; i++) {
        cogpu_status status = COGPU_LIMIT;
        uint32_t refused = 0;
        for (uint64_t limit = 0; limit < 1 << 20 && status != COGPU_OK; limit += 512 + limit / 4) {
            begin();
            arena.limit = limit;
            status = parts[i](&profile);
            refused += status == COGPU_LIMIT;
            CHECK(status == COGPU_OK || status == COGPU_LIMIT);
        }
        CHECK(status == COGPU_OK && refused > 0);
    }
}

int main(void) {
    cogpu_arena_open(&arena, 1 << 28);
    RUN(nothing_said_nothing_written);
    RUN(north_up);
    RUN(rotated_or_flipped);
    RUN(transforms_come_back);
    RUN(impossible_transforms);
    RUN(control_points);
    RUN(rational_polynomials);
    RUN(raw_keys);
    RUN(version_of_keys);
    RUN(epochs);
    RUN(keys_that_are_not_sound);
    RUN(common_codes);
    RUN(codes_by_the_registry);
    RUN(methods);
    RUN(systems_come_back);
    RUN(prime_meridians);
    RUN(codes_that_lie);
    RUN(names_and_units);
    RUN(vertical_of_parameters);
    RUN(systems_without_keys);
    RUN(items_as_gdal_writes_them);
    RUN(items_come_back);
    RUN(scale_and_offset_go_together);
    RUN(items_that_are_not_sound);
    RUN(items_become_utf8);
    RUN(nodata_as_the_type_has_it);
    RUN(locale_does_not_matter);
    RUN(description);
    RUN(extra_tags);
    RUN(nodata_as_an_extra_tag);
    RUN(extra_tags_that_are_refused);
    RUN(colours_by_default);
    RUN(colours_as_asked);
    RUN(ycbcr_is_for_jpeg);
    RUN(palettes);
    RUN(alpha_bands);
    RUN(memory_that_ends);
    cogpu_arena_close(&arena);
    return FINISH();
}
