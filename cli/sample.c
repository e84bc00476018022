/*
 * Samples of any type as numbers and text. A complex sample is two parts of a
 * plain type, so all that follows is about parts.
 */
#include "sample.h"

#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cogpu_type part_type(cogpu_type type) {
    switch (type) {
    case COGPU_TYPE_CI16:
        return COGPU_TYPE_I16;
    case COGPU_TYPE_CI32:
        return COGPU_TYPE_I32;
    case COGPU_TYPE_CF32:
        return COGPU_TYPE_F32;
    case COGPU_TYPE_CF64:
        return COGPU_TYPE_F64;
    default:
        return type;
    }
}

static size_t part_count(cogpu_type type) {
    return part_type(type) == type ? 1 : 2;
}

bool cogpu_sample_is_float(cogpu_type type) {
    return type == COGPU_TYPE_F16 || type == COGPU_TYPE_F32 || type == COGPU_TYPE_F64;
}

bool cogpu_sample_is_complex(cogpu_type type) {
    return part_count(type) == 2;
}

cogpu_type cogpu_sample_float_type(cogpu_type type) {
    return cogpu_type_bytes(type) <= 2 || type == COGPU_TYPE_F32 ? COGPU_TYPE_F32 : COGPU_TYPE_F64;
}

double cogpu_sample_half(const void *sample) {
    uint16_t bits;
    memcpy(&bits, sample, sizeof bits);
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size;
    if (exponent == 31)
        size = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        size = ldexp(fraction, -24);
    else
        size = ldexp(fraction + 1024, exponent - 25);
    return bits & 0x8000 ? -size : size;
}

#define LOAD(ctype)                                                                                \
    do {                                                                                           \
        ctype value;                                                                               \
        memcpy(&value, sample, sizeof value);                                                      \
        return (long double)value;                                                                 \
    } while (0)

static long double part_value(cogpu_type type, const void *sample) {
    switch (type) {
    case COGPU_TYPE_U8:
        LOAD(uint8_t);
    case COGPU_TYPE_I8:
        LOAD(int8_t);
    case COGPU_TYPE_U16:
        LOAD(uint16_t);
    case COGPU_TYPE_I16:
        LOAD(int16_t);
    case COGPU_TYPE_U32:
        LOAD(uint32_t);
    case COGPU_TYPE_I32:
        LOAD(int32_t);
    case COGPU_TYPE_U64:
        LOAD(uint64_t);
    case COGPU_TYPE_I64:
        LOAD(int64_t);
    case COGPU_TYPE_F32:
        LOAD(float);
    case COGPU_TYPE_F64:
        LOAD(double);
    default:
        return cogpu_sample_half(sample);
    }
}

static const void *part_of(cogpu_type type, const void *sample, size_t part) {
    return (const char *)sample + part * cogpu_type_bytes(part_type(type));
}

/* Nine digits distinguish any two floats, five any two halves; doubles take up to seventeen. */
static void float_text(cogpu_type type, double value, char text[NUMBER_TEXT]) {
    if (type == COGPU_TYPE_F64 || isnan(value)) {
        cogpu_text_number(value, text);
        return;
    }
    for (int digits = 3; digits <= 9; digits++) {
        snprintf(text, NUMBER_TEXT, "%.*g", digits, value);
        if (strtof(text, NULL) == (float)value)
            break;
    }
}

static void part_text(cogpu_type type, const void *sample, char text[NUMBER_TEXT]) {
    long double value = part_value(type, sample);
    if (cogpu_sample_is_float(type))
        float_text(type, (double)value, text);
    else
        snprintf(text, NUMBER_TEXT, "%.0Lf", value);
}

void cogpu_sample_text(cogpu_type type, const void *sample, char text[SAMPLE_TEXT]) {
    char real[NUMBER_TEXT], imaginary[NUMBER_TEXT];
    part_text(part_type(type), sample, real);
    if (part_count(type) == 1) {
        snprintf(text, SAMPLE_TEXT, "%s", real);
        return;
    }
    part_text(part_type(type), part_of(type, sample, 1), imaginary);
    snprintf(text, SAMPLE_TEXT, "%s%s%si", real, imaginary[0] == '-' ? "" : "+", imaginary);
}

bool cogpu_sample_equal(cogpu_type type, const void *a, const void *b) {
    for (size_t i = 0; i < part_count(type); i++) {
        long double x = part_value(part_type(type), part_of(type, a, i));
        long double y = part_value(part_type(type), part_of(type, b, i));
        if (!(x == y || (isnan(x) && isnan(y))))
            return false;
    }
    return true;
}

long double cogpu_sample_distance(cogpu_type type, const void *a, const void *b) {
    long double parts[2] = {0};
    for (size_t i = 0; i < part_count(type); i++) {
        long double x = part_value(part_type(type), part_of(type, a, i));
        long double y = part_value(part_type(type), part_of(type, b, i));
        parts[i] = x == y || (isnan(x) && isnan(y)) ? 0 : fabsl(x - y);
    }
    return parts[1] == 0 ? parts[0] : hypotl(parts[0], parts[1]);
}

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
void cogpu_sample_to_file(cogpu_type type, void *samples, size_t count) {
    size_t bytes = cogpu_type_bytes(part_type(type));
    uint8_t *part = samples;
    for (size_t i = 0; i < count * part_count(type); i++, part += bytes) {
        for (size_t low = 0, high = bytes - 1; low < high; low++, high--) {
            uint8_t kept = part[low];
            part[low] = part[high];
            part[high] = kept;
        }
    }
}
#else
void cogpu_sample_to_file(cogpu_type type, void *samples, size_t count) {
    (void)type;
    (void)samples;
    (void)count;
}
#endif
