/* Keys as coordinate systems. What is asked of PROJ is asked only where the build has it. */
#include "support/test.h"

#include "image/geokey.h"

enum { KEYS_MAX = 32, WKT_BYTES = 16384 };

static cogpu_geokey keys[KEYS_MAX];
static uint16_t shorts[KEYS_MAX];
static double doubles[KEYS_MAX];
static cogpu_georef georef;
static char wkt[WKT_BYTES];
static cogpu_crs_database *registry; /* one for all: what fails leaves it as it was */

static void begin(void) {
    georef = (cogpu_georef){.keys = keys};
}

/* Keys are added in ascending order. */
static cogpu_geokey *add(uint32_t id, cogpu_geokey_kind kind) {
    cogpu_geokey *key = &keys[georef.key_count++];
    *key = (cogpu_geokey){.struct_size = sizeof(cogpu_geokey), .id = id, .kind = kind, .count = 1};
    return key;
}

static void add_short(uint32_t id, uint16_t value) {
    shorts[georef.key_count] = value;
    cogpu_geokey *key = add(id, COGPU_GEOKEY_SHORT);
    key->shorts = &shorts[key - keys];
}

static void add_double(uint32_t id, double value) {
    doubles[georef.key_count] = value;
    cogpu_geokey *key = add(id, COGPU_GEOKEY_DOUBLE);
    key->doubles = &doubles[key - keys];
}

static void add_text(uint32_t id, const char *text) {
    add(id, COGPU_GEOKEY_TEXT)->text = text;
}

static void codes(uint16_t model, uint16_t geographic, uint16_t projected, uint16_t vertical) {
    begin();
    if (model)
        add_short(1024, model);
    if (geographic)
        add_short(2048, geographic);
    if (projected)
        add_short(3072, projected);
    if (vertical)
        add_short(4096, vertical);
    cogpu_crs_from_keys(&georef);
}

/* The WKT of the keys holds this text; so does every build without PROJ. */
static bool wkt_has(const char *text) {
    size_t needed;
    cogpu_error error;
    if (!cogpu_proj_version())
        return true;
    cogpu_crs_from_keys(&georef);
    cogpu_status status = cogpu_crs_to_wkt(&georef, &registry, wkt, sizeof wkt, &needed, &error);
    bool has = status == COGPU_OK && strstr(wkt, text);
    if (!has)
        printf("no %s in %s\n", text, status == COGPU_OK ? wkt : error.message);
    return has;
}

/* In the text that wkt_has made: PROJ takes long to make one. */
static bool has_too(const char *text) {
    return !cogpu_proj_version() || strstr(wkt, text);
}

static bool wkt_fails(void) {
    size_t needed;
    cogpu_error error;
    cogpu_crs_from_keys(&georef);
    return cogpu_crs_to_wkt(&georef, &registry, wkt, sizeof wkt, &needed, &error) ==
               COGPU_UNSUPPORTED &&
           needed == 0 && wkt[0] == '\0';
}

static void codes_and_models(void) {
    codes(1, 0, 32633, 0);
    CHECK(georef.has_crs && georef.crs.code == 32633);
    CHECK_TEXT(georef.crs.model, "projected");
    CHECK_TEXT(georef.crs.authority, "EPSG");
    CHECK(wkt_has("ID[\"EPSG\",32633]"));
    codes(2, 4326, 0, 0);
    CHECK_TEXT(georef.crs.model, "geographic");
    CHECK(georef.crs.code == 4326 && georef.crs.vertical == 0 && wkt_has("GEOGCRS[\"WGS 84\""));
    codes(3, 4978, 0, 0);
    CHECK_TEXT(georef.crs.model, "geocentric");
    CHECK(georef.crs.code == 4978 && wkt_has("CS[Cartesian,3]"));
    codes(1, 0, 54009, 0);
    CHECK_TEXT(georef.crs.authority, "ESRI");
    CHECK(wkt_has("Mollweide"));
    codes(0, 0, 0, 0);
    CHECK(!georef.has_crs);
}

/* T131: geographic codes above, and projected ones below, what ranges would say. */
static void codes_that_ranges_miss(void) {
    static const uint16_t geographic[] = {6318, 7844, 9057, 8252}, projected[] = {4087, 4088, 4499};
    char id[32];
    for (size_t i = 0; i < 4; i++) {
        codes(2, geographic[i], 0, 0);
        snprintf(id, sizeof id, "ID[\"EPSG\",%u]", geographic[i]);
        CHECK(georef.crs.code == geographic[i] && wkt_has(id) && wkt_has("CS[ellipsoidal"));
    }
    for (size_t i = 0; i < 3; i++) {
        codes(1, 0, projected[i], 0);
        snprintf(id, sizeof id, "ID[\"EPSG\",%u]", projected[i]);
        CHECK(georef.crs.code == projected[i] && wkt_has(id) && wkt_has("PROJCRS["));
    }
}

/* T133: the model decides; a base beside a projected system is normal. */
static void models_and_contradictions(void) {
    codes(1, 4326, 32633, 0);
    CHECK(georef.crs.code == 32633);
    codes(2, 4326, 32633, 0);
    CHECK(georef.crs.code == 4326);
    CHECK_TEXT(georef.crs.model, "geographic");
    codes(0, 4326, 32633, 0);
    CHECK(georef.crs.code == 32633);
}

/* Keys that describe no other CRS make an engineering CRS, in GDAL too. */
static void engineering_systems(void) {
    codes(1, 4326, 0, 0);
    CHECK(georef.crs.code == 0 && georef.has_crs && wkt_has("ENGCRS[\"unnamed\""));
    CHECK_TEXT(georef.crs.authority, "");
    codes(1, 0, 12345, 0);
    CHECK(georef.crs.code == 12345 && wkt_has("ENGCRS[\"unnamed\""));
    codes(32767, 0, 0, 0);
    CHECK_TEXT(georef.crs.model, "engineering");
    CHECK(georef.has_crs && wkt_has("LENGTHUNIT[\"unknown\",1]"));
    codes(0, 4326, 0, 0); /* a geographic code without a model */
    CHECK_TEXT(georef.crs.model, "engineering");
    CHECK(georef.crs.code == 0 && wkt_has("ENGCRS["));
    begin();
    add_text(1026, "the \"site\"");
    add_text(2049, "not this");
    add_short(3076, 9003);
    CHECK(wkt_has("ENGCRS[\"the \"\"site\"\"\"") && wkt_has("LENGTHUNIT[\"US survey foot\""));
    begin();
    add_text(2049, "this");
    add_short(3076, 32767);
    add_double(3077, 0.5);
    CHECK(wkt_has("ENGCRS[\"this\"") && wkt_has("LENGTHUNIT[\"unknown\",0.5]"));
}

/* Keys beside a code that contradict the registry: the keys count, and the code stays. */
static void contradicting_ellipsoids(void) {
    codes(2, 4267, 0, 0);
    CHECK(wkt_has("ELLIPSOID[\"Clarke 1866\",6378206.4,294.978698213898"));
    add_double(2057, 6371000);
    add_double(2059, 0);
    CHECK(wkt_has("ELLIPSOID[\"Clarke 1866\",6371000,0,") && wkt_has("ID[\"EPSG\",4267]"));
    begin();
    add_short(1024, 2);
    add_short(2048, 4326); /* a datum ensemble stays as the registry has it */
    add_double(2057, 6371000);
    add_double(2059, 0);
    CHECK(wkt_has("298.257223563") && wkt_has("ID[\"EPSG\",4326]"));
    begin();
    add_short(1024, 1);
    add_short(2056, 7030);
    add_short(3072, 26711);
    CHECK(wkt_has("ELLIPSOID[\"WGS 84\"") && wkt_has("ID[\"EPSG\",26711]"));
    begin();
    add_short(1024, 1); /* axes alone do not count beside a projected code */
    add_double(2057, 6371000);
    add_short(3072, 26711);
    CHECK(wkt_has("ELLIPSOID[\"Clarke 1866\",6378206.4,") && wkt_has("ID[\"EPSG\",26711]"));
    begin();
    add_short(1024, 2);
    add_short(2048, 4267);
    add_double(2057, -1);
    CHECK(wkt_fails());
}

/* Axes along meridians, and a code only with the registry's name. */
static void polar_stereographic(const char *name, double latitude) {
    begin();
    add_short(1024, 1);
    if (name)
        add_text(1026, name);
    add_short(2048, 4326);
    add_short(3072, 32767);
    add_short(3074, 32767);
    add_short(3075, 15);
    add_double(3081, latitude);
    add_double(3092, 1);
    add_double(3095, 0);
}

static void polar_systems(void) {
    polar_stereographic("WGS 84 / Antarctic Polar Stereographic", -71);
    CHECK(wkt_has("ID[\"EPSG\",3031]"));
    polar_stereographic(NULL, -71);
    CHECK(wkt_has("PROJCRS[\"unnamed\"") && wkt_has("AXIS[\"(E)\",north"));
    CHECK(!cogpu_proj_version() || !strstr(wkt, "ID[\"EPSG\",3031]"));
    polar_stereographic(NULL, 70);
    CHECK(wkt_has("AXIS[\"(E)\",south") && wkt_has("Latitude of standard parallel\",70"));
}

static void vertical_systems(void) {
    codes(2, 4326, 0, 3855);
    CHECK(georef.crs.vertical == 3855 && wkt_has("COMPOUNDCRS[") && wkt_has("EGM2008 height"));
    codes(1, 0, 27700, 5701);
    CHECK(wkt_has("COMPOUNDCRS[") && wkt_has("ID[\"EPSG\",27700]"));
    codes(2, 4326, 0, 4979); /* the heights of a system of three dimensions */
    CHECK(wkt_has("CS[ellipsoidal,3]"));
    codes(2, 4326, 0, 32767);
    CHECK(georef.crs.vertical == 0 && wkt_has("GEOGCRS["));
    codes(2, 4326, 0, 60000); /* no such code: the rest is told */
    CHECK(wkt_has("GEOGCRS["));
}

static void names_and_epoch(void) {
    begin();
    add_short(1024, 1);
    add_text(1026, "a system");
    add_text(2049, "its base");
    add_short(3072, 32767);
    add_double(5120, 2010.5);
    cogpu_crs_from_keys(&georef);
    CHECK_TEXT(georef.crs.name, "a system");
    CHECK(georef.crs.epoch == 2010.5 && georef.crs.code == 0);
    CHECK_TEXT(georef.crs.authority, "");
    shorts[0] = 2;
    cogpu_crs_from_keys(&georef);
    CHECK_TEXT(georef.crs.name, "its base");
}

/* The geographic part of a system without a code: Bessel's ellipsoid. */
static void add_base(uint16_t model) {
    begin();
    add_short(1024, model);
    add_short(2048, 32767);
    add_text(2049,
             "GCS Name = own|Datum = own datum|Ellipsoid = own ellipsoid|Primem = Greenwich|");
    add_short(2050, 32767);
    add_short(2054, 9102);
    add_double(2057, 6377397.155);
    add_double(2059, 299.1528128);
}

static void geographic_of_parameters(void) {
    add_base(2);
    CHECK(wkt_has("GEOGCRS[\"own\"") && wkt_has("DATUM[\"own datum\""));
    CHECK(wkt_has("ELLIPSOID[\"own ellipsoid\",6377397.155,299.1528128"));
    add_double(2061, 2.5);
    CHECK(wkt_has("PRIMEM[\"Greenwich\",2.5"));
    begin();
    add_short(1024, 2);
    add_short(2048, 32767);
    add_double(2057, 3396190);
    add_double(2058, 3396190);
    CHECK(wkt_has("3396190,0,")); /* a sphere */
    begin();
    add_short(1024, 2);
    add_short(2050, 6275);
    add_short(2054, 9105);
    CHECK(wkt_has("Nouvelle Triangulation Francaise") && wkt_has("ANGLEUNIT[\"grad\""));
    begin();
    add_short(1024, 2);
    add_short(2048, 32767);
    add_short(2056, 7030);
    CHECK(wkt_has("ELLIPSOID[\"WGS 84\",6378137,298.257223563"));
    begin();
    add_short(1024, 2);
    add_short(2048, 32767);
    add_double(2057, -1);
    CHECK(wkt_fails());
}

static void projected_of_parameters(void) {
    static const struct {
        uint16_t method;
        const char *name;
    } methods[] = {{1, "Transverse Mercator"},
                   {3, "Hotine Oblique Mercator (variant A)"},
                   {5, "Hotine Oblique Mercator (variant B)"},
                   {8, "Lambert Conic Conformal (2SP)"},
                   {9, "Lambert Conic Conformal (1SP)"},
                   {10, "Lambert Azimuthal Equal Area"},
                   {11, "Albers Equal Area"},
                   {12, "Azimuthal Equidistant"},
                   {13, "Equidistant Conic"},
                   {14, "Stereographic"},
                   {16, "Oblique Stereographic"},
                   {18, "Cassini-Soldner"},
                   {19, "Gnomonic"},
                   {20, "Miller Cylindrical"},
                   {21, "Orthographic"},
                   {22, "American Polyconic"},
                   {23, "Robinson"},
                   {24, "Sinusoidal"},
                   {25, "Van Der Grinten"},
                   {26, "New Zealand Map Grid"},
                   {27, "Transverse Mercator (South Orientated)"},
                   {28, "Lambert Cylindrical Equal Area"},
                   {9815, "Hotine Oblique Mercator (variant B)"}};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        add_base(1);
        add_short(3072, 32767);
        add_short(3074, 32767);
        add_short(3075, methods[i].method);
        add_double(3078, 41);
        add_double(3079, 49);
        add_double(3080, 11.25);
        add_double(3081, 46.5);
        add_double(3082, 500001);
        add_double(3083, 1003);
        CHECK(wkt_has(methods[i].name) && has_too("own ellipsoid"));
        CHECK(has_too(",11.25,") && has_too(",500001,") && has_too(",1003,"));
    }
    add_base(1);
    add_short(3075, 2); /* no such method in PROJ */
    CHECK(wkt_has("ENGCRS["));
    add_base(1);
    CHECK(wkt_has("ENGCRS["));
}

/* Numbers that stand for two forms. */
static void variants_of_methods(void) {
    add_base(1);
    add_short(3075, 7);
    add_double(3080, 110);
    add_double(3092, 0.997);
    CHECK(wkt_has("Mercator (variant A)") && wkt_has("0.997"));
    add_base(1);
    add_short(3075, 7);
    add_double(3078, 42);
    CHECK(wkt_has("Mercator (variant B)") && wkt_has("\"Latitude of 1st standard parallel\",42"));
    add_base(1);
    add_short(3075, 15);
    add_double(3081, 70);
    add_double(3095, -45);
    CHECK(wkt_has("Polar Stereographic (variant B)") && wkt_has("\"Longitude of origin\",-45"));
    CHECK(wkt_has("\"Latitude of standard parallel\",70"));
    add_base(1);
    add_short(3075, 15);
    add_double(3081, 90);
    add_double(3092, 0.994);
    CHECK(wkt_has("Polar Stereographic (variant A)") && wkt_has("0.994"));
    add_base(1);
    add_short(3075, 17);
    add_double(3078, 30);
    add_double(3089, 10);
    CHECK(wkt_has("Equidistant Cylindrical") && wkt_has("\"Latitude of natural origin\",10"));
}

static void units_of_length(void) {
    add_base(1);
    add_short(3075, 1);
    add_short(3076, 9003);
    add_double(3082, 1640416.5);
    CHECK(wkt_has("LENGTHUNIT[\"US survey foot\"") && wkt_has("\"False easting\",1640416.5"));
    add_base(1);
    add_short(3075, 1);
    add_short(3076, 32767);
    add_double(3077, 0.25);
    CHECK(wkt_has("LENGTHUNIT[\"unknown\",0.25") && !strstr(wkt, "\"unknown\",1]"));
    begin(); /* another unit than the code's own */
    add_short(1024, 1);
    add_short(3072, 32633);
    add_short(3076, 9003);
    CHECK(wkt_has("US survey foot"));
}

static void conversion_by_code(void) {
    add_base(1);
    add_short(3072, 32767);
    add_short(3074, 16033);
    CHECK(wkt_has("UTM zone 33N") && wkt_has("own ellipsoid"));
}

static void shift_to_wgs84(void) {
    static const double shift[] = {582, 105, 414, 1.04, 0.35, -3.08, 8.3};
    add_base(2);
    cogpu_geokey *key = add(2062, COGPU_GEOKEY_DOUBLE);
    key->doubles = shift;
    key->count = 7;
    CHECK(wkt_has("BOUNDCRS[") && wkt_has("\"Y-axis translation\",105"));
    CHECK(wkt_has("\"Z-axis rotation\",-3.08") && wkt_has("ID[\"EPSG\",9606]"));
    key->count = 3;
    CHECK(wkt_has("ID[\"EPSG\",9603]"));
    key->count = 5;
    CHECK(wkt_has("GEOGCRS[\"own\""));
}

static void esri_texts(void) {
    static const char text[] =
        "ESRI PE String = PROJCS[\"World_Mollweide\",GEOGCS[\"GCS_WGS_1984\",DATUM[\"D_WGS_1984\","
        "SPHEROID[\"WGS_1984\",6378137.0,298.257223563]],PRIMEM[\"Greenwich\",0.0],UNIT[\"Degree\","
        "0.0174532925199433]],PROJECTION[\"Mollweide\"],PARAMETER[\"False_Easting\",0.0],"
        "PARAMETER[\"False_Northing\",0.0],PARAMETER[\"Central_Meridian\",10.0],UNIT[\"Meter\",1.0]"
        "]";
    begin();
    add_short(1024, 32767);
    add_text(3073, text);
    cogpu_crs_from_keys(&georef);
    CHECK_TEXT(georef.crs.model, "projected");
    CHECK(wkt_has("METHOD[\"Mollweide\"]"));
    begin();
    add_short(1024, 32767);
    add_text(3073, "ESRI PE String = PROJCS[\"broken");
    CHECK(wkt_has("ENGCRS["));
}

/* Nothing is cut off: the text is whole or empty, and *needed tells. */
static void capacity(void) {
    size_t needed = 0, again = 0;
    cogpu_error error;
    codes(2, 4326, 0, 0);
    if (!cogpu_proj_version())
        return;
    CHECK(cogpu_crs_to_wkt(&georef, &registry, NULL, 0, &needed, &error) == COGPU_OK &&
          needed > 100);
    wkt[0] = 'x';
    CHECK(cogpu_crs_to_wkt(&georef, &registry, wkt, needed - 1, &again, &error) == COGPU_OK);
    CHECK(again == needed && wkt[0] == '\0');
    CHECK(cogpu_crs_to_wkt(&georef, &registry, wkt, needed, &again, &error) == COGPU_OK);
    CHECK(strlen(wkt) + 1 == needed);
    codes(0, 0, 0, 0);
    CHECK(cogpu_crs_to_wkt(&georef, &registry, wkt, sizeof wkt, &needed, &error) ==
          COGPU_NOT_FOUND);
}

TESTS(crs) {
    RUN(codes_and_models);
    RUN(codes_that_ranges_miss);
    RUN(models_and_contradictions);
    RUN(engineering_systems);
    RUN(contradicting_ellipsoids);
    RUN(polar_systems);
    RUN(vertical_systems);
    RUN(names_and_epoch);
    RUN(geographic_of_parameters);
    RUN(projected_of_parameters);
    RUN(variants_of_methods);
    RUN(units_of_length);
    RUN(conversion_by_code);
    RUN(shift_to_wgs84);
    RUN(esri_texts);
    RUN(capacity);
    cogpu_crs_database_close(registry);
    return FINISH();
}
