/*
 * Coordinate reference systems as GeoKeys. What needs PROJ is tested where the build has it.
 */
#include "unit/image/write_tags_test.h"

#include <math.h>
#include <stdio.h>

static const cogpu_geokey *crs_keys;
static uint32_t crs_key_count;

static cogpu_status describe_crs(const char *words) {
    begin_tags();
    return cogpu_write_crs_keys(words, &tags_arena, &crs_keys, &crs_key_count, &tags_error);
}

static cogpu_georef described(void) {
    cogpu_georef read = {.keys = crs_keys, .key_count = crs_key_count};
    cogpu_crs_from_keys(&read);
    return read;
}

/* The keys name the system by its code. */
static bool is_coded(const char *words, const char *model, uint32_t code, uint32_t vertical) {
    if (describe_crs(words) != COGPU_OK)
        return printf("%s: %s\n", words, tags_error.message), false;
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
    return status == expected && tags_error.message[0];
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
    CHECK(crs_refused("EPSG:4087", COGPU_UNSUPPORTED) && strstr(tags_error.message, "PROJ"));
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
    CHECK(crs_refused("foo", COGPU_INVALID_ARGUMENT)); /* PROJ: Amersfoort */
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
            cogpu_crs_database *registry = NULL;
            size_t needed;
            wkt[turn][0] = '\0';
            CHECK(describe_crs(words) == COGPU_OK);
            cogpu_georef read = described();
            CHECK(cogpu_crs_to_wkt(&read, &registry, wkt[turn], sizeof wkt[turn], &needed,
                                   &tags_error) == COGPU_OK);
            cogpu_crs_database_close(registry);
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
static void wrong_codes(void) {
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
    CHECK(crs_refused("rubbish", COGPU_INVALID_ARGUMENT));
    CHECK(crs_refused("", COGPU_INVALID_ARGUMENT));
    CHECK(crs_refused("EPSG:999999", COGPU_INVALID_ARGUMENT));
    CHECK(crs_refused("+proj=utm", COGPU_INVALID_ARGUMENT));
    CHECK(crs_refused("EPSG:5773", COGPU_UNSUPPORTED));
    CHECK(crs_refused("+proj=lcca +lat_0=46 +ellps=bessel", COGPU_UNSUPPORTED));
    CHECK(crs_refused("+proj=ob_tran +o_proj=longlat +o_lat_p=39 +lon_0=18", COGPU_UNSUPPORTED));
    CHECK(crs_refused("+proj=utm +zone=33 +ellps=bessel +nadgrids=x.gsb", COGPU_UNSUPPORTED));
    CHECK(crs_refused("+proj=utm +zone=3 +datum=WGS84 +geoidgrids=x.gtx", COGPU_UNSUPPORTED));
}

TESTS(write_crs) {
    begin_tags();
    RUN(common_codes);
    RUN(codes_by_the_registry);
    RUN(methods);
    RUN(systems_come_back);
    RUN(prime_meridians);
    RUN(wrong_codes);
    RUN(names_and_units);
    RUN(vertical_of_parameters);
    RUN(systems_without_keys);
    cogpu_arena_close(&tags_arena);
    return FINISH();
}
