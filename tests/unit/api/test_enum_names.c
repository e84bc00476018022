/* Names of all enums: each value has one, which parses back in any case of letters; a message about
 * an unknown name lists the known ones. */
#include "cogpu.h"

#include "support/test.h"

#include <ctype.h>

static cogpu_error error;

/* An enum's functions, for values as int. */
struct names {
    const char *type;
    const char *(*name)(int value);
    cogpu_status (*parse)(const char *name, int *value);
    const int *values;
    size_t count;
    const char *alias; /* "alias=name ..." */
};

#define NAMES_OF(type)                                                                             \
    static const char *name_##type(int value) {                                                    \
        return cogpu_##type##_name((cogpu_##type)value);                                           \
    }                                                                                              \
    static cogpu_status parse_##type(const char *name, int *value) {                               \
        cogpu_##type found = (cogpu_##type) * value;                                               \
        cogpu_status status = cogpu_##type##_parse(name, &found, &error);                          \
        *value = (int)found;                                                                       \
        return status;                                                                             \
    }

NAMES_OF(status)
NAMES_OF(type)
NAMES_OF(sidecars)
NAMES_OF(layout)
NAMES_OF(interleave)
NAMES_OF(mask_source)
NAMES_OF(geokey_kind)
NAMES_OF(device_kind)
NAMES_OF(content)
NAMES_OF(resampling)
NAMES_OF(composite)
NAMES_OF(vrt_sources)
NAMES_OF(overviews)
NAMES_OF(bigtiff)
NAMES_OF(photometric)
NAMES_OF(severity)
NAMES_OF(verdict)

/* tests/python/test_abi.py compares these lists with the header. */
static const int status_values[] = {COGPU_OK,          COGPU_INVALID_ARGUMENT, COGPU_OUT_OF_MEMORY,
                                    COGPU_IO_ERROR,    COGPU_NOT_TIFF,         COGPU_CORRUPT,
                                    COGPU_UNSUPPORTED, COGPU_LIMIT_EXCEEDED,   COGPU_DEVICE_ERROR,
                                    COGPU_NOT_FOUND,   COGPU_CANCELLED};
static const int type_values[] = {COGPU_TYPE_U8,   COGPU_TYPE_I8,   COGPU_TYPE_U16, COGPU_TYPE_I16,
                                  COGPU_TYPE_U32,  COGPU_TYPE_I32,  COGPU_TYPE_U64, COGPU_TYPE_I64,
                                  COGPU_TYPE_F16,  COGPU_TYPE_F32,  COGPU_TYPE_F64, COGPU_TYPE_CI16,
                                  COGPU_TYPE_CI32, COGPU_TYPE_CF32, COGPU_TYPE_CF64};
static const int sidecars_values[] = {COGPU_SIDECARS_DEFAULT, COGPU_SIDECARS_NONE,
                                      COGPU_SIDECARS_ALL};
static const int layout_values[] = {COGPU_LAYOUT_STRIPS, COGPU_LAYOUT_TILES};
static const int interleave_values[] = {COGPU_INTERLEAVE_PIXEL, COGPU_INTERLEAVE_BAND};
static const int mask_source_values[] = {COGPU_MASK_SOURCE_NONE, COGPU_MASK_SOURCE_DIRECTORY,
                                         COGPU_MASK_SOURCE_NODATA, COGPU_MASK_SOURCE_ALPHA};
static const int geokey_kind_values[] = {COGPU_GEOKEY_SHORT, COGPU_GEOKEY_DOUBLE,
                                         COGPU_GEOKEY_TEXT};
static const int device_kind_values[] = {COGPU_DEVICE_CPU, COGPU_DEVICE_CUDA,
                                         COGPU_DEVICE_EMULATOR};
static const int content_values[] = {COGPU_CONTENT_PIXELS, COGPU_CONTENT_MASK};
static const int resampling_values[] = {
    COGPU_RESAMPLE_DEFAULT, COGPU_RESAMPLE_NEAREST,     COGPU_RESAMPLE_AVERAGE,
    COGPU_RESAMPLE_RMS,     COGPU_RESAMPLE_BILINEAR,    COGPU_RESAMPLE_CUBIC,
    COGPU_RESAMPLE_MODE,    COGPU_RESAMPLE_MIN,         COGPU_RESAMPLE_MAX,
    COGPU_RESAMPLE_MEDIAN,  COGPU_RESAMPLE_CUBICSPLINE, COGPU_RESAMPLE_LANCZOS,
    COGPU_RESAMPLE_Q1,      COGPU_RESAMPLE_Q3,          COGPU_RESAMPLE_SUM};
static const int composite_values[] = {
    COGPU_COMPOSITE_FIRST, COGPU_COMPOSITE_LAST,   COGPU_COMPOSITE_MIN,  COGPU_COMPOSITE_MAX,
    COGPU_COMPOSITE_MEAN,  COGPU_COMPOSITE_MEDIAN, COGPU_COMPOSITE_COUNT};
static const int vrt_sources_values[] = {COGPU_VRT_SOURCES_DEFAULT, COGPU_VRT_SOURCES_BELOW,
                                         COGPU_VRT_SOURCES_ANY};
static const int overviews_values[] = {COGPU_OVERVIEWS_DEFAULT, COGPU_OVERVIEWS_NONE,
                                       COGPU_OVERVIEWS_AUTO, COGPU_OVERVIEWS_LISTED};
static const int bigtiff_values[] = {COGPU_BIGTIFF_AUTO, COGPU_BIGTIFF_YES, COGPU_BIGTIFF_NO};
static const int photometric_values[] = {COGPU_PHOTOMETRIC_DEFAULT, COGPU_PHOTOMETRIC_MIN_IS_BLACK,
                                         COGPU_PHOTOMETRIC_RGB,     COGPU_PHOTOMETRIC_PALETTE,
                                         COGPU_PHOTOMETRIC_CMYK,    COGPU_PHOTOMETRIC_YCBCR,
                                         COGPU_PHOTOMETRIC_CIELAB,  COGPU_PHOTOMETRIC_MIN_IS_WHITE};
static const int severity_values[] = {COGPU_SEVERITY_NOTE, COGPU_SEVERITY_WARNING,
                                      COGPU_SEVERITY_ERROR};
static const int verdict_values[] = {COGPU_VERDICT_INVALID, COGPU_VERDICT_VALID_WITH_WARNINGS,
                                     COGPU_VERDICT_VALID};

#define ROW(type, alias)                                                                           \
    { #type, name_##type, parse_##type, type##_values, sizeof type##_values / sizeof(int), alias }
static const struct names enums[] = {
    ROW(status, ""),
    ROW(type, "Byte=uint8 UInt16=uint16 CInt16=complex_int16 CFloat32=complex64"),
    ROW(sidecars, ""),
    ROW(layout, ""),
    ROW(interleave, ""),
    ROW(mask_source, "directory=mask"),
    ROW(geokey_kind, ""),
    ROW(device_kind, "gpu=cuda emulator=emu"),
    ROW(content, ""),
    ROW(resampling, "near=nearest mean=average med=median cubic_spline=cubicspline"),
    ROW(composite, ""),
    ROW(vrt_sources, ""),
    ROW(overviews, ""),
    ROW(bigtiff, ""),
    ROW(photometric, "auto=default min_is_black=minisblack min_is_white=miniswhite"),
    ROW(severity, ""),
    ROW(verdict, ""),
};
enum { ENUMS = sizeof enums / sizeof *enums, OTHER = 12345 };

static void test_round_trip(void) {
    for (int i = 0; i < ENUMS; i++)
        for (size_t k = 0; k < enums[i].count; k++) {
            const char *name = enums[i].name(enums[i].values[k]);
            char upper[64] = "";
            int found = OTHER;
            CHECK(name && *name && strlen(name) < sizeof upper);
            for (size_t at = 0; name && name[at] && at < sizeof upper - 1; at++)
                upper[at] = (char)toupper((unsigned char)name[at]);
            memset(&error, 0x55, sizeof error);
            CHECK(enums[i].parse(name, &found) == COGPU_OK && found == enums[i].values[k]);
            CHECK(error.status == COGPU_OK && !error.message[0]);
            found = OTHER;
            CHECK(enums[i].parse(upper, &found) == COGPU_OK && found == enums[i].values[k]);
        }
}

static void test_names_differ(void) {
    for (int i = 0; i < ENUMS; i++)
        for (size_t k = 0; k < enums[i].count; k++)
            for (size_t other = 0; other < k; other++)
                CHECK(strcmp(enums[i].name(enums[i].values[k]),
                             enums[i].name(enums[i].values[other])) != 0);
}

static void test_aliases(void) {
    for (int i = 0; i < ENUMS; i++) {
        char list[128], *rest = list;
        strcpy(list, enums[i].alias);
        for (char *pair; (pair = strtok_r(rest, " ", &rest));) {
            char *name = strchr(pair, '=') + 1;
            int found = OTHER;
            name[-1] = '\0';
            CHECK(enums[i].parse(pair, &found) == COGPU_OK);
            CHECK_TEXT(enums[i].name(found), name);
        }
    }
}

static void test_unknown_names(void) {
    static const char *const unknown[] = {"no such name", "", " ", "uint8 ", NULL};
    for (int i = 0; i < ENUMS; i++)
        for (int k = 0; k < 5; k++) {
            int found = OTHER;
            CHECK(enums[i].parse(unknown[k], &found) == COGPU_INVALID_ARGUMENT && found == OTHER);
            CHECK(error.status == COGPU_INVALID_ARGUMENT);
            for (size_t at = 0; at < enums[i].count; at++)
                if (!strstr(error.message, enums[i].name(enums[i].values[at]))) {
                    printf("%s: \"%s\" is not in \"%s\"\n", enums[i].type,
                           enums[i].name(enums[i].values[at]), error.message);
                    test_broken = 1;
                }
        }
}

static void test_unknown_values(void) {
    static const int unknown[] = {-1, 99, 1 << 20};
    for (int i = 0; i < ENUMS; i++)
        for (int k = 0; k < 3; k++) {
            const char *name = enums[i].name(unknown[k]);
            if (strcmp(enums[i].type, "status") == 0)
                CHECK_TEXT(name, "unknown");
            else if (strcmp(enums[i].type, "type") == 0)
                CHECK_TEXT(name, "none");
            else
                CHECK(!name);
        }
    CHECK_TEXT(cogpu_type_name(COGPU_TYPE_NONE), "none");
}

/* Names of codecs are no enum; the message about an unknown one lists them too. */
static void test_codecs(void) {
    uint32_t compression = OTHER;
    cogpu_codec codec = COGPU_CODEC_INIT;
    CHECK(cogpu_codec_parse("zip", &compression, &error) == COGPU_INVALID_ARGUMENT);
    CHECK(compression == OTHER && strstr(error.message, "zip"));
    for (uint32_t i = 0; cogpu_codec_info(i, &codec, NULL) == COGPU_OK; i++) {
        CHECK(strstr(error.message, codec.name) != NULL);
        /* deflate and jpegxl have a second number, which only old files have */
        CHECK(cogpu_codec_parse(codec.name, &compression, NULL) == COGPU_OK);
        CHECK(compression == codec.compression || codec.compression == 32946 ||
              codec.compression == 52546);
    }
}

TESTS(enum_names) {
    RUN(test_round_trip);
    RUN(test_names_differ);
    RUN(test_aliases);
    RUN(test_unknown_names);
    RUN(test_unknown_values);
    RUN(test_codecs);
    return FINISH();
}
