/* Names of enumerations: each value has one that parses back, and properties that the tables hold.
 */
#include "base/resampling.h"
#include "base/type.h"

#include "support/test.h"

static void types(void) {
    for (int i = COGPU_TYPE_NONE + 1; i < COGPU_TYPE_COUNT; i++) {
        cogpu_type type = COGPU_TYPE_NONE;
        CHECK(cogpu_type_parse(cogpu_type_name((cogpu_type)i), &type, NULL) == COGPU_OK);
        CHECK((int)type == i && cogpu_type_bytes(type) > 0);
        CHECK(cogpu_type_parse(cogpu_type_table[i].gdal_name, &type, NULL) == COGPU_OK);
        CHECK((int)type == i);
        CHECK(cogpu_type_is_float(type) + cogpu_type_is_integer(type) <= 1);
        CHECK(cogpu_type_number_bytes(type) * (cogpu_type_is_complex(type) ? 2 : 1) ==
              cogpu_type_bytes(type));
    }
    cogpu_type type = COGPU_TYPE_U8;
    CHECK(cogpu_type_parse("none", &type, NULL) == COGPU_INVALID_ARGUMENT && type == COGPU_TYPE_U8);
    CHECK(cogpu_type_parse("FLOAT32", &type, NULL) == COGPU_OK && type == COGPU_TYPE_F32);
    CHECK(cogpu_type_parse(NULL, &type, NULL) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_type_parse("", &type, NULL) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_type_format(COGPU_TYPE_CI32) == SAMPLE_FORMAT_COMPLEX_INTEGER);
    CHECK(cogpu_type_is_float(COGPU_TYPE_F16) && !cogpu_type_is_float(COGPU_TYPE_CF32));
    CHECK(!cogpu_type_is_float((cogpu_type)99) && !cogpu_type_is_complex((cogpu_type)-1));
}

static void resamplings(void) {
    int count = 0;
    for (; cogpu_resampling_name((cogpu_resampling)count); count++) {
        cogpu_resampling method = COGPU_RESAMPLE_DEFAULT;
        const char *name = cogpu_resampling_name((cogpu_resampling)count);
        CHECK(cogpu_resampling_parse(name, &method, NULL) == COGPU_OK && (int)method == count);
    }
    CHECK(count == COGPU_RESAMPLING_COUNT);
    cogpu_resampling method = COGPU_RESAMPLE_NEAREST;
    CHECK(cogpu_resampling_parse("Mean", &method, NULL) == COGPU_OK &&
          method == COGPU_RESAMPLE_AVERAGE);
    CHECK(cogpu_resampling_parse("sinc", &method, NULL) == COGPU_INVALID_ARGUMENT &&
          method == COGPU_RESAMPLE_AVERAGE);
    CHECK(cogpu_resampling_name((cogpu_resampling)-1) == NULL);
    CHECK(cogpu_resampling_find(COGPU_RESAMPLE_MODE)->kind == RESAMPLING_SELECT);
    CHECK(cogpu_resampling_find(COGPU_RESAMPLE_CUBIC)->kernel_radius == 2);
    CHECK(cogpu_resampling_default(COGPU_TYPE_U8, true) == COGPU_RESAMPLE_NEAREST);
    CHECK(cogpu_resampling_default(COGPU_TYPE_CI16, false) == COGPU_RESAMPLE_NEAREST);
    CHECK(cogpu_resampling_default(COGPU_TYPE_F64, false) == COGPU_RESAMPLE_AVERAGE);
}

static void photometrics(void) {
    const cogpu_photometric all[] = {COGPU_PHOTOMETRIC_DEFAULT, COGPU_PHOTOMETRIC_MIN_IS_BLACK,
                                     COGPU_PHOTOMETRIC_RGB,     COGPU_PHOTOMETRIC_PALETTE,
                                     COGPU_PHOTOMETRIC_CMYK,    COGPU_PHOTOMETRIC_YCBCR,
                                     COGPU_PHOTOMETRIC_CIELAB,  COGPU_PHOTOMETRIC_MIN_IS_WHITE};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        cogpu_photometric found = COGPU_PHOTOMETRIC_RGB;
        const char *name = cogpu_photometric_name(all[i]);
        CHECK(name && cogpu_photometric_parse(name, &found, NULL) == COGPU_OK && found == all[i]);
    }
    cogpu_photometric found = COGPU_PHOTOMETRIC_RGB;
    CHECK(cogpu_photometric_parse("MINISWHITE", &found, NULL) == COGPU_OK &&
          found == COGPU_PHOTOMETRIC_MIN_IS_WHITE);
    CHECK(cogpu_photometric_parse("icclab", &found, NULL) == COGPU_INVALID_ARGUMENT);
    CHECK(cogpu_photometric_name((cogpu_photometric)4) == NULL);
}

static void device_kinds(void) {
    for (int i = COGPU_DEVICE_CPU; i <= COGPU_DEVICE_EMULATOR; i++) {
        cogpu_device_kind kind = COGPU_DEVICE_CPU;
        const char *name = cogpu_device_kind_name((cogpu_device_kind)i);
        CHECK(cogpu_device_kind_parse(name, &kind, NULL) == COGPU_OK && (int)kind == i);
    }
    cogpu_device_kind kind = COGPU_DEVICE_CPU;
    CHECK(cogpu_device_kind_parse("cuda:1", &kind, NULL) == COGPU_INVALID_ARGUMENT &&
          kind == COGPU_DEVICE_CPU);
    CHECK(cogpu_device_kind_name((cogpu_device_kind)9) == NULL);
}

TESTS(names) {
    RUN(types);
    RUN(resamplings);
    RUN(photometrics);
    RUN(device_kinds);
    return FINISH();
}
