/*
 * Samples go through a small buffer of doubles, or of 64-bit integers where both types are integers
 * and nothing is scaled, so that no digit is lost.
 */
#include "convert_samples.h"

#include "sample.h"

#include <math.h>
#include <string.h>

enum { RUN = 512 };

#define FOR_SIGNED_64_BITS(DO)                                                                     \
    DO(COGPU_TYPE_U8, uint8_t)                                                                     \
    DO(COGPU_TYPE_I8, int8_t)                                                                      \
    DO(COGPU_TYPE_U16, uint16_t)                                                                   \
    DO(COGPU_TYPE_I16, int16_t)                                                                    \
    DO(COGPU_TYPE_U32, uint32_t)                                                                   \
    DO(COGPU_TYPE_I32, int32_t)                                                                    \
    DO(COGPU_TYPE_I64, int64_t)

#define FOR_REAL_TYPES(DO)                                                                         \
    FOR_SIGNED_64_BITS(DO)                                                                         \
    DO(COGPU_TYPE_U64, uint64_t)                                                                   \
    DO(COGPU_TYPE_F32, float)                                                                      \
    DO(COGPU_TYPE_F64, double)

/* What an integer type holds; the upper end is the first value beyond it, which doubles hold. */
static const struct {
    double least, beyond;
    int64_t low, high; /* in 64 signed bits */
} bounds[] = {
    [COGPU_TYPE_U8] = {0, 0x1p8, 0, UINT8_MAX},
    [COGPU_TYPE_I8] = {-0x1p7, 0x1p7, INT8_MIN, INT8_MAX},
    [COGPU_TYPE_U16] = {0, 0x1p16, 0, UINT16_MAX},
    [COGPU_TYPE_I16] = {-0x1p15, 0x1p15, INT16_MIN, INT16_MAX},
    [COGPU_TYPE_U32] = {0, 0x1p32, 0, UINT32_MAX},
    [COGPU_TYPE_I32] = {-0x1p31, 0x1p31, INT32_MIN, INT32_MAX},
    [COGPU_TYPE_U64] = {0, 0x1p64, 0, INT64_MAX},
    [COGPU_TYPE_I64] = {-0x1p63, 0x1p63, INT64_MIN, INT64_MAX},
};

static bool is_integer(cogpu_type type) {
    return type <= COGPU_TYPE_I64;
}

/* Samples of one type, as the `loaded` type of the function. */
#define LOAD(TYPE, ctype)                                                                          \
    case TYPE:                                                                                     \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            ctype value;                                                                           \
            memcpy(&value, from + step * i, sizeof value);                                         \
            values[i] = (loaded)value;                                                             \
        }                                                                                          \
        break;

static void load_doubles(cogpu_type type, const char *from, int64_t step, double *values,
                         uint32_t count) {
    typedef double loaded;
    switch (type) {
        FOR_REAL_TYPES(LOAD)
    default:
        for (uint32_t i = 0; i < count; i++)
            values[i] = cogpu_sample_half(from + step * i);
    }
}

/* Large unsigned ones become the largest signed one: it is larger than all that a smaller type, or
 * a signed one, holds. */
static void load_integers(cogpu_type type, const char *from, int64_t step, int64_t *values,
                          uint32_t count) {
    typedef int64_t loaded;
    switch (type) {
        FOR_SIGNED_64_BITS(LOAD)
    default:
        for (uint32_t i = 0; i < count; i++) {
            uint64_t value;
            memcpy(&value, from + step * i, sizeof value);
            values[i] = value > INT64_MAX ? INT64_MAX : (int64_t)value;
        }
    }
}

#undef LOAD

static int64_t clamp_integer(cogpu_type type, int64_t value) {
    int64_t low = bounds[type].low, high = bounds[type].high;
    return value < low ? low : value > high ? high : value;
}

double cogpu_sample_clamp(cogpu_type type, double value) {
    if (isnan(value))
        return 0;
    value = round(value);
    if (value < bounds[type].least)
        return bounds[type].least;
    if (value < bounds[type].beyond)
        return value;
    return type >= COGPU_TYPE_U64 ? nextafter(bounds[type].beyond, 0) : bounds[type].beyond - 1;
}

/* The largest 64-bit integers are no doubles. */
static uint64_t clamp_to_bits(cogpu_type type, double value) {
    if (type >= COGPU_TYPE_U64 && value >= bounds[type].beyond)
        return type == COGPU_TYPE_U64 ? UINT64_MAX : (uint64_t)INT64_MAX;
    double clamped = cogpu_sample_clamp(type, value);
    return type == COGPU_TYPE_U64 ? (uint64_t)clamped : (uint64_t)(int64_t)clamped;
}

#define STORE_SAMPLES(TYPE, ctype, sample)                                                         \
    case TYPE:                                                                                     \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            ctype value = (ctype)(sample);                                                         \
            memcpy(to + step * i, &value, sizeof value);                                           \
        }                                                                                          \
        break;
#define STORE_DOUBLES(TYPE, ctype)                                                                 \
    STORE_SAMPLES(TYPE, ctype,                                                                     \
                  is_integer(TYPE) ? (ctype)clamp_to_bits(TYPE, values[i]) : (ctype)values[i])
#define STORE_INTEGERS(TYPE, ctype) STORE_SAMPLES(TYPE, ctype, clamp_integer(TYPE, values[i]))

static void store_doubles(cogpu_type type, const double *values, char *to, int64_t step,
                          uint32_t count) {
    switch (type) {
        FOR_REAL_TYPES(STORE_DOUBLES)
    default:
        break;
    }
}

static void store_integers(cogpu_type type, const int64_t *values, char *to, int64_t step,
                           uint32_t count) {
    switch (type) {
        FOR_REAL_TYPES(STORE_INTEGERS)
    default:
        break;
    }
}

static void scale_values(const cogpu_sample_map *map, double *values, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        bool is_nodata = map->has_nodata &&
                         (values[i] == map->nodata || (isnan(values[i]) && isnan(map->nodata)));
        if (!is_nodata)
            values[i] = values[i] * map->ratio + map->offset;
    }
}

static void convert_run(const cogpu_sample_map *map, const char *from, int64_t from_step, char *to,
                        int64_t to_step, uint32_t count) {
    if (is_integer(map->from) && is_integer(map->to) && !map->is_scaled) {
        int64_t values[RUN];
        load_integers(map->from, from, from_step, values, count);
        store_integers(map->to, values, to, to_step, count);
        return;
    }
    double values[RUN];
    load_doubles(map->from, from, from_step, values, count);
    if (map->is_scaled)
        scale_values(map, values, count);
    store_doubles(map->to, values, to, to_step, count);
}

void cogpu_samples_convert(const cogpu_sample_map *map, const void *from, int64_t from_step,
                           void *to, int64_t to_step, uint32_t count) {
    for (uint32_t i = 0; i < count; i += RUN) {
        uint32_t run = count - i < RUN ? count - i : RUN;
        convert_run(map, (const char *)from + from_step * i, from_step, (char *)to + to_step * i,
                    to_step, run);
    }
}
