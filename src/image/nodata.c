/*
 * Parses GDAL_NODATA (tag 42113) for a sample type: the value, whether a sample can have it, and
 * the sample that fills sparse blocks. People and many programs write this text, and it may hold
 * values that the sample type cannot.
 *
 * As GDAL: trailing text is ignored, ',' is a point, a value outside an integer type fills
 * sparse blocks with the nearest value of the type, NaN with 0. Unlike GDAL: text that is not
 * a number matches nothing (GDAL: 0), a fraction on an integer type matches nothing (GDAL:
 * sometimes its whole part), "1e2" on a 64-bit integer is 100 (GDAL: 1), and floats of 16 bits are
 * rounded before they are compared as those of 32 bits are.
 */
#include "base/bytes.h"
#include "base/text.h"
#include "image/image.h"
#include "image/values.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Range of an integer type, and of the parts of a complex one. */
typedef struct integer_range {
    double low, high;
} integer_range;

static const integer_range *range_of(cogpu_type type) {
    static const integer_range ranges[] = {
        [COGPU_TYPE_U8] = {0, UINT8_MAX},
        [COGPU_TYPE_I8] = {INT8_MIN, INT8_MAX},
        [COGPU_TYPE_U16] = {0, UINT16_MAX},
        [COGPU_TYPE_I16] = {INT16_MIN, INT16_MAX},
        [COGPU_TYPE_U32] = {0, UINT32_MAX},
        [COGPU_TYPE_I32] = {INT32_MIN, INT32_MAX},
        [COGPU_TYPE_U64] = {0, 0x1p64},
        [COGPU_TYPE_I64] = {-0x1p63, 0x1p63},
        [COGPU_TYPE_CI16] = {INT16_MIN, INT16_MAX},
        [COGPU_TYPE_CI32] = {INT32_MIN, INT32_MAX},
    };
    if ((size_t)type >= sizeof ranges / sizeof *ranges || ranges[type].high == 0)
        return NULL;
    return &ranges[type];
}

static double round_to_f32(double value) {
    const double halfway = 0x1.ffffffp127; /* between the largest float and the one after it */
    if (fabs(value) >= halfway)
        return copysign(INFINITY, value);
    if (fabs(value) > FLT_MAX)
        return copysign(FLT_MAX, value);
    return (double)(float)value;
}

static double round_to_f16(double value) {
    if (!isfinite(value) || value == 0)
        return value;
    int exponent;
    frexp(value, &exponent);
    int last_bit = (exponent < -13 ? -13 : exponent) - 11; /* -24 in the subnormal range */
    double rounded = ldexp(nearbyint(ldexp(value, -last_bit)), last_bit);
    return fabs(rounded) > 65504 ? copysign(INFINITY, value) : rounded;
}

/* `value` must have been rounded. */
static uint16_t bits_of_f16(double value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    if (isnan(value))
        return 0x7e00;
    if (isinf(value))
        return sign | 0x7c00;
    if (size < 0x1p-14)
        return (uint16_t)(sign | (uint16_t)(size * 0x1p24));
    int exponent;
    int fraction = (int)(frexp(size, &exponent) * 2048); /* its top bit counts as an exponent */
    return (uint16_t)(sign + ((exponent + 13) << 10) + fraction);
}

/* A text that starts with a whole number. */
static bool parse_whole(const char *text, bool *negative, uint64_t *size) {
    while (*text == ' ')
        text++;
    *negative = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    const char *first = text;
    for (*size = 0; ascii_is_digit(*text); text++)
        if (__builtin_mul_overflow(*size, 10, size) ||
            __builtin_add_overflow(*size, (uint64_t)(*text - '0'), size))
            return false;
    bool goes_on = *text == '.' || *text == ',' || *text == 'e' || *text == 'E';
    return text > first && !goes_on;
}

static bool parse_exactly(const char *text, cogpu_type type, cogpu_nodata *nodata) {
    bool negative;
    uint64_t size;
    if (!parse_whole(text, &negative, &size))
        return false;
    if (type == COGPU_TYPE_U64 && (!negative || size == 0)) {
        nodata->u64 = size;
        nodata->value = (double)size;
        return true;
    }
    if (type == COGPU_TYPE_I64 && size <= (uint64_t)INT64_MAX + negative) {
        nodata->i64 = negative ? (int64_t)(0 - size) : (int64_t)size;
        nodata->value = (double)nodata->i64;
        return true;
    }
    return false;
}

/* The nearest value of a 64-bit type, halves away from zero. */
static int64_t nearest_i64(double value) {
    if (isnan(value))
        return 0;
    if (value >= 0x1p63)
        return INT64_MAX;
    return value <= -0x1p63 ? INT64_MIN : (int64_t)round(value);
}

static uint64_t nearest_u64(double value) {
    if (!(value > 0))
        return 0;
    return value >= 0x1p64 ? UINT64_MAX : (uint64_t)round(value);
}

static bool fits_type(double value, cogpu_type type) {
    const integer_range *range = range_of(type);
    if (!range)
        return true;
    bool below_top = type == COGPU_TYPE_U64 || type == COGPU_TYPE_I64 ? value < range->high
                                                                      : value <= range->high;
    return value >= range->low && below_top && value == floor(value);
}

void cogpu_nodata_parse(const char *text, cogpu_type type, cogpu_nodata *nodata) {
    *nodata = (cogpu_nodata){.text = text};
    if (!text)
        return;
    if (parse_exactly(text, type, nodata)) {
        nodata->matches = 1;
        return;
    }
    double value;
    if (!cogpu_number_parse(text, &value))
        return;
    if (type == COGPU_TYPE_F32 || type == COGPU_TYPE_CF32)
        value = round_to_f32(value);
    if (type == COGPU_TYPE_F16)
        value = round_to_f16(value);
    nodata->value = value;
    nodata->matches = fits_type(value, type);
    nodata->i64 = type == COGPU_TYPE_I64 ? nearest_i64(value) : 0;
    nodata->u64 = type == COGPU_TYPE_U64 ? nearest_u64(value) : 0;
}

/* The low bytes of `bits` in native byte order. */
static void store_low_bytes(uint64_t bits, size_t bytes, uint8_t *sample) {
    size_t skip = COGPU_HOST_BIG_ENDIAN ? sizeof bits - bytes : 0;
    memcpy(sample, (const uint8_t *)&bits + skip, bytes);
}

static void put_integer(double value, cogpu_type type, uint8_t *sample) {
    const integer_range *range = range_of(type);
    if (!range || isnan(value))
        return;
    int64_t nearest = nearest_i64(fmin(fmax(value, range->low), range->high));
    store_low_bytes((uint64_t)nearest, cogpu_type_number_bytes(type), sample);
}

/* A complex nodata value has imaginary part 0. */
void cogpu_nodata_sample(const cogpu_nodata *nodata, cogpu_type type, uint8_t sample[16]) {
    memset(sample, 0, 16);
    if (type == COGPU_TYPE_F16) {
        store_low_bytes(bits_of_f16(nodata->value), sizeof(uint16_t), sample);
    } else if (type == COGPU_TYPE_F32 || type == COGPU_TYPE_CF32) {
        float value = (float)nodata->value; /* which was rounded when it was parsed */
        memcpy(sample, &value, sizeof value);
    } else if (type == COGPU_TYPE_F64 || type == COGPU_TYPE_CF64) {
        memcpy(sample, &nodata->value, sizeof nodata->value);
    } else if (type == COGPU_TYPE_U64) {
        store_low_bytes(nodata->u64, sizeof nodata->u64, sample);
    } else if (type == COGPU_TYPE_I64) {
        store_low_bytes((uint64_t)nodata->i64, sizeof nodata->i64, sample);
    } else {
        put_integer(nodata->value, type, sample);
    }
}
