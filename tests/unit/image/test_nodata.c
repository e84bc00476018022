/* Texts of GDAL_NODATA against sample types: what GDAL 3.12 makes of them, but where nodata.c says
 * otherwise. */
#include "support/test.h"

#include "image/image.h"

#include <float.h>
#include <locale.h>
#include <math.h>

static cogpu_nodata parsed(const char *text, cogpu_type type) {
    cogpu_nodata nodata;
    cogpu_nodata_parse(text, type, &nodata);
    return nodata;
}

/* The integer that fills sparse blocks; of the first part where the type is complex. */
static int64_t filled(const char *text, cogpu_type type) {
    cogpu_nodata nodata = parsed(text, type);
    uint8_t sample[16];
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    cogpu_nodata_sample(&nodata, type, sample);
    memcpy(&i8, sample, 1), memcpy(&i16, sample, 2), memcpy(&i32, sample, 4),
        memcpy(&i64, sample, 8);
    switch (type) {
    case COGPU_TYPE_U8:
        return (uint8_t)i8;
    case COGPU_TYPE_I8:
        return i8;
    case COGPU_TYPE_U16:
        return (uint16_t)i16;
    case COGPU_TYPE_I16:
    case COGPU_TYPE_CI16:
        return i16;
    case COGPU_TYPE_U32:
        return (uint32_t)i32;
    case COGPU_TYPE_I32:
    case COGPU_TYPE_CI32:
        return i32;
    default:
        return i64;
    }
}

static void matches_in_range(void) {
    CHECK(parsed("255", COGPU_TYPE_U8).matches && parsed("255", COGPU_TYPE_U8).value == 255);
    CHECK(parsed("-9999", COGPU_TYPE_I16).matches &&
          parsed("-9999", COGPU_TYPE_I16).value == -9999);
    CHECK(parsed("  7", COGPU_TYPE_U8).value == 7 && parsed("7  ", COGPU_TYPE_U8).matches);
    CHECK(parsed("+5", COGPU_TYPE_I32).value == 5 && parsed("1e2", COGPU_TYPE_U8).value == 100);
    CHECK(parsed("7 abc", COGPU_TYPE_U8).value == 7);
    CHECK(filled("-9999", COGPU_TYPE_I32) == -9999 &&
          filled("4294967295", COGPU_TYPE_U32) == 4294967295);
}

/* T109: the text is kept, no sample matches, and sparse blocks get the nearest value. */
static void out_of_range_matches_nothing(void) {
    cogpu_nodata nodata = parsed("-9999", COGPU_TYPE_U16);
    CHECK(!nodata.matches && nodata.value == -9999);
    CHECK_TEXT(nodata.text, "-9999");
    CHECK(!parsed("256", COGPU_TYPE_U8).matches && !parsed("-129", COGPU_TYPE_I8).matches);
    CHECK(!parsed("200", COGPU_TYPE_I8).matches && filled("200", COGPU_TYPE_I8) == 127);
    CHECK(filled("-9999", COGPU_TYPE_U16) == 0 && filled("256", COGPU_TYPE_U8) == 255);
    CHECK(filled("-9999", COGPU_TYPE_I8) == -128 && filled("70000", COGPU_TYPE_I16) == 32767);
    CHECK(filled("1e30", COGPU_TYPE_I32) == INT32_MAX &&
          filled("-1e30", COGPU_TYPE_CI16) == INT16_MIN);
}

/* T110, T111. */
static void integers_ignore_nan_and_fractions(void) {
    static const cogpu_type types[] = {
        COGPU_TYPE_U8,  COGPU_TYPE_I8,  COGPU_TYPE_U16, COGPU_TYPE_I16,  COGPU_TYPE_U32,
        COGPU_TYPE_I32, COGPU_TYPE_U64, COGPU_TYPE_I64, COGPU_TYPE_CI16, COGPU_TYPE_CI32};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        CHECK(!parsed("nan", types[i]).matches && filled("nan", types[i]) == 0);
        CHECK(!parsed("inf", types[i]).matches && !parsed("-inf", types[i]).matches);
        CHECK(!parsed("1.5", types[i]).matches && filled("1.5", types[i]) == 2);
        CHECK(filled("0.4", types[i]) == 0);
    }
    CHECK(filled("inf", COGPU_TYPE_U8) == 255 && filled("-inf", COGPU_TYPE_I16) == -32768);
    CHECK(filled("inf", COGPU_TYPE_I64) == INT64_MAX && filled("-inf", COGPU_TYPE_U64) == 0);
}

/* T112. */
static void integers_of_64_bits_are_exact(void) {
    CHECK(parsed("9223372036854775807", COGPU_TYPE_I64).i64 == INT64_MAX);
    CHECK(parsed("-9223372036854775808", COGPU_TYPE_I64).i64 == INT64_MIN);
    CHECK(parsed("-9223372036854775807", COGPU_TYPE_I64).i64 == -INT64_MAX);
    CHECK(parsed("18446744073709551615", COGPU_TYPE_U64).u64 == UINT64_MAX);
    CHECK(parsed("9007199254740993", COGPU_TYPE_U64).u64 == 9007199254740993u);
    CHECK(parsed("9007199254740993", COGPU_TYPE_I64).matches);
    CHECK(filled("9007199254740993", COGPU_TYPE_I64) == 9007199254740993);
    CHECK(!parsed("9223372036854775808", COGPU_TYPE_I64).matches);
    CHECK(filled("9223372036854775808", COGPU_TYPE_I64) == INT64_MAX);
    CHECK(!parsed("18446744073709551616", COGPU_TYPE_U64).matches);
    CHECK(!parsed("-1", COGPU_TYPE_U64).matches && filled("-1", COGPU_TYPE_U64) == 0);
    CHECK(parsed("1e2", COGPU_TYPE_I64).i64 == 100 && parsed("1e2", COGPU_TYPE_I64).matches);
    CHECK(parsed("-0", COGPU_TYPE_U64).matches);
}

static void floats_are_rounded_to_their_type(void) {
    CHECK(parsed("0.1", COGPU_TYPE_F32).value == (double)0.1f &&
          parsed("0.1", COGPU_TYPE_F64).value == 0.1);
    CHECK(parsed("-3.4028234663852886e+38", COGPU_TYPE_F32).value == -FLT_MAX);
    CHECK(parsed("-3.4028235e+38", COGPU_TYPE_F32).value == -FLT_MAX);
    CHECK(parsed("-3.4028235e+38", COGPU_TYPE_CF32).value == -FLT_MAX);
    CHECK(isinf(parsed("3.4028235677973366e+38", COGPU_TYPE_F32).value));
    CHECK(parsed("3.402824e38", COGPU_TYPE_F64).value == 3.402824e38);
    CHECK(isinf(parsed("1e400", COGPU_TYPE_F64).value) &&
          parsed("1e-400", COGPU_TYPE_F64).value == 0);
    CHECK(parsed("nan", COGPU_TYPE_F32).matches && isnan(parsed("nan", COGPU_TYPE_F32).value));
    CHECK(parsed("-inf", COGPU_TYPE_F64).value == -INFINITY);
    cogpu_nodata nodata = parsed("-3.4028235e+38", COGPU_TYPE_F32);
    uint8_t sample[16];
    float value;
    cogpu_nodata_sample(&nodata, COGPU_TYPE_F32, sample);
    memcpy(&value, sample, sizeof value);
    CHECK(value == -FLT_MAX);
}

static uint16_t half(const char *text) {
    cogpu_nodata nodata = parsed(text, COGPU_TYPE_F16);
    uint8_t sample[16];
    uint16_t bits;
    cogpu_nodata_sample(&nodata, COGPU_TYPE_F16, sample);
    memcpy(&bits, sample, sizeof bits);
    return bits;
}

static void floats_of_16_bits(void) {
    CHECK(half("1") == 0x3c00 && half("-2") == 0xc000 && half("0") == 0 && half("-0") == 0x8000);
    CHECK(half("65504") == 0x7bff && half("65519") == 0x7bff && half("65520") == 0x7c00);
    CHECK(half("-inf") == 0xfc00 && half("nan") == 0x7e00);
    CHECK(half("6.103515625e-05") == 0x0400);       /* the smallest normal */
    CHECK(half("5.960464477539063e-08") == 0x0001); /* the smallest subnormal */
    CHECK(half("6.097555160522461e-05") == 0x03ff); /* the largest subnormal */
    CHECK(half("2.98e-08") == 0 && half("2049") == 0x6800 && half("2051") == 0x6802); /* to even */
    CHECK(parsed("254.6", COGPU_TYPE_F16).value == 254.625);
}

/* T124. */
static void odd_texts_have_a_defined_result(void) {
    CHECK(!parsed(NULL, COGPU_TYPE_U8).matches && !parsed(NULL, COGPU_TYPE_U8).text);
    CHECK(!parsed("", COGPU_TYPE_U8).matches && !parsed("   ", COGPU_TYPE_F32).matches);
    CHECK(!parsed("abc", COGPU_TYPE_F32).matches && !parsed("-", COGPU_TYPE_I16).matches);
    CHECK(!parsed(".", COGPU_TYPE_F64).matches && !parsed("e5", COGPU_TYPE_F64).matches);
    CHECK(parsed("1,5", COGPU_TYPE_F32).value == 1.5 && parsed("0x10", COGPU_TYPE_U8).value == 0);
    CHECK(parsed("1e", COGPU_TYPE_F32).value == 1 && parsed("1e+", COGPU_TYPE_F32).value == 1);
    CHECK(isnan(parsed("-1.#IND", COGPU_TYPE_F32).value) &&
          isinf(parsed("1.#INF", COGPU_TYPE_F32).value));
    CHECK(isnan(parsed("NaN", COGPU_TYPE_F64).value) &&
          isnan(parsed("nan(1)", COGPU_TYPE_F64).value));
    CHECK(isinf(parsed("1e99999999999999999999999", COGPU_TYPE_F64).value));
    char digits[1000];
    memset(digits, '9', sizeof digits - 1);
    digits[sizeof digits - 1] = '\0';
    CHECK(!parsed(digits, COGPU_TYPE_F64).matches && !parsed(digits, COGPU_TYPE_U64).matches);
    CHECK(!parsed("5", COGPU_TYPE_NONE).i64 && filled("5", COGPU_TYPE_NONE) == 0);
}

/* The decimal point of the process's locale is not that of the file. */
static void locale_does_not_matter(void) {
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    for (size_t i = 0; i < sizeof commas / sizeof *commas; i++)
        if (setlocale(LC_ALL, commas[i]))
            break;
    CHECK(parsed("0.25", COGPU_TYPE_F64).value == 0.25);
    setlocale(LC_ALL, "C");
}

TESTS(nodata) {
    RUN(matches_in_range);
    RUN(out_of_range_matches_nothing);
    RUN(integers_ignore_nan_and_fractions);
    RUN(integers_of_64_bits_are_exact);
    RUN(floats_are_rounded_to_their_type);
    RUN(floats_of_16_bits);
    RUN(odd_texts_have_a_defined_result);
    RUN(locale_does_not_matter);
    return FINISH();
}
