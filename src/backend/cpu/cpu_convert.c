/*
 * Takes samples of one band as the file has them, hands on the same as floats of the raster's type:
 * nodata as NaN, cast, scaled; or a mask of them, 0 for nodata. plan/plan.h says what is rounded
 * when; the twin of `convert` in cuda_place.cu, bit for bit.
 *
 * A few samples at a time go through arrays that the nearest cache holds, with a simple loop for
 * each step, of which the compiler makes vectors.
 */
#include "backend/cpu/cpu.h"

#include "base/half.h"

#include <string.h>

enum { STEP = 256 };

#define QUIET_NAN64 UINT64_C(0x7FF8000000000000)
enum { QUIET_NAN32 = 0x7FC00000 };

/* ---- steps ---- */

#define LOAD_CASE(kind, type)                                                                      \
    case kind:                                                                                     \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            type sample;                                                                           \
            memcpy(&sample, from + i * sizeof sample, sizeof sample);                              \
            to[i] = (number)sample;                                                                \
        }                                                                                          \
        break;

#define LOAD_CASES                                                                                 \
    LOAD_CASE(COGPU_U8, uint8_t)                                                                   \
    LOAD_CASE(COGPU_I8, int8_t)                                                                    \
    LOAD_CASE(COGPU_U16, uint16_t)                                                                 \
    LOAD_CASE(COGPU_I16, int16_t)                                                                  \
    LOAD_CASE(COGPU_U32, uint32_t)                                                                 \
    LOAD_CASE(COGPU_I32, int32_t)                                                                  \
    LOAD_CASE(COGPU_U64, uint64_t)                                                                 \
    LOAD_CASE(COGPU_I64, int64_t)                                                                  \
    LOAD_CASE(COGPU_F32, float)                                                                    \
    LOAD_CASE(COGPU_F64, double)                                                                   \
    default: /* COGPU_F16 */                                                                       \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            uint16_t half;                                                                         \
            memcpy(&half, from + i * sizeof half, sizeof half);                                    \
            to[i] = (number)half_to_float(half);                                                   \
        }

static void load_floats(cogpu_type type, const uint8_t *from, uint32_t count, float *to) {
    typedef float number;
    switch (type) { LOAD_CASES }
}

static void load_doubles(cogpu_type type, const uint8_t *from, uint32_t count, double *to) {
    typedef double number;
    switch (type) { LOAD_CASES }
}

/* Product and sum are rounded one after the other: they must not become one instruction. */
static void scale_floats(float *values, uint32_t count, float scale, float offset) {
    for (uint32_t i = 0; i < count; i++) {
        float product = values[i] * scale;
        values[i] = product + offset;
    }
}

static void scale_doubles(double *values, uint32_t count, double scale, double offset) {
    for (uint32_t i = 0; i < count; i++) {
        double product = values[i] * scale;
        values[i] = product + offset;
    }
}

#define FIND_NAN_CASE(type, parts)                                                                 \
    for (uint32_t i = 0; i < count; i++) {                                                         \
        type part[parts];                                                                          \
        memcpy(part, from + i * sizeof part, sizeof part);                                         \
        is_void[i] = (part[0] != part[0]) | (part[(parts)-1] != part[(parts)-1]);                  \
    }                                                                                              \
    break

/* In either part of a complex sample. */
static void find_nans(cogpu_type type, const uint8_t *from, uint32_t count, uint8_t *is_void) {
    switch (type) {
    case COGPU_F32:
        FIND_NAN_CASE(float, 1);
    case COGPU_F64:
        FIND_NAN_CASE(double, 1);
    case COGPU_CF32:
        FIND_NAN_CASE(float, 2);
    case COGPU_CF64:
        FIND_NAN_CASE(double, 2);
    default: /* COGPU_F16 */
        for (uint32_t i = 0; i < count; i++) {
            uint16_t half;
            memcpy(&half, from + i * sizeof half, sizeof half);
            is_void[i] = (half & 0x7FFF) > 0x7C00;
        }
    }
}

#define FIND_CASE(type)                                                                            \
    case sizeof(type): {                                                                           \
        type first, second;                                                                        \
        memcpy(&first, conversion->nodata[0], sizeof first);                                       \
        memcpy(&second, conversion->nodata[1], sizeof second);                                     \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            type sample;                                                                           \
            memcpy(&sample, from + i * sizeof sample, sizeof sample);                              \
            is_void[i] = (sample == first) | (sample == second);                                   \
        }                                                                                          \
        break;                                                                                     \
    }

static void find_value(const cogpu_conversion *conversion, size_t size, const uint8_t *from,
                       uint32_t count, uint8_t *is_void) {
    switch (size) {
        FIND_CASE(uint8_t)
        FIND_CASE(uint16_t)
        FIND_CASE(uint32_t)
        FIND_CASE(uint64_t)
    default: /* complex samples of 16 bytes */
        for (uint32_t i = 0; i < count; i++)
            is_void[i] = memcmp(from + i * size, conversion->nodata[0], size) == 0;
    }
}

static void find_nodata(const cogpu_conversion *conversion, cogpu_type type, const uint8_t *from,
                        uint32_t count, uint8_t *is_void) {
    if (!conversion->has_nodata)
        memset(is_void, 0, count);
    else if (conversion->nodata_is_nan)
        find_nans(type, from, count, is_void);
    else
        find_value(conversion, cogpu_type_bytes(type), from, count, is_void);
}

static void store_mask(const uint8_t *is_void, uint32_t count, uint8_t *to) {
    for (uint32_t i = 0; i < count; i++)
        to[i] = is_void[i] ? 0 : 255;
}

static void store_doubles(const double *values, const uint8_t *is_void, uint32_t count,
                          uint8_t *to) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bits = (is_void[i] | (values[i] != values[i])) ? QUIET_NAN64 : bits;
        memcpy(to + i * sizeof bits, &bits, sizeof bits);
    }
}

static void store_floats(const float *values, const uint8_t *is_void, uint32_t count, uint8_t *to) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bits = (is_void[i] | (values[i] != values[i])) ? QUIET_NAN32 : bits;
        memcpy(to + i * sizeof bits, &bits, sizeof bits);
    }
}

static void store_halves(const double *values, const uint8_t *is_void, uint32_t count,
                         uint8_t *to) {
    for (uint32_t i = 0; i < count; i++) {
        uint16_t bits = is_void[i] ? QUIET_NAN16 : half_of_double(values[i]);
        memcpy(to + i * sizeof bits, &bits, sizeof bits);
    }
}

/* ---- all of them ---- */

/* Samples to floats, at most STEP. `band` says how they are scaled, or is NULL. */
static void convert_few(const cogpu_band *band, cogpu_type type, const uint8_t *from,
                        const uint8_t *is_void, uint32_t count, cogpu_type to_type, uint8_t *to) {
    float singles[STEP];
    double doubles[STEP];
    bool in_float = to_type == COGPU_F32 || (to_type == COGPU_F16 && band);
    if (in_float)
        load_floats(type, from, count, singles);
    else
        load_doubles(type, from, count, doubles);
    if (band && in_float)
        scale_floats(singles, count, (float)band->scale, (float)band->offset);
    else if (band)
        scale_doubles(doubles, count, band->scale, band->offset);
    if (to_type == COGPU_F16 && in_float)
        load_doubles(COGPU_F32, (const uint8_t *)singles, count, doubles);
    if (to_type == COGPU_F64)
        store_doubles(doubles, is_void, count, to);
    else if (to_type == COGPU_F32)
        store_floats(singles, is_void, count, to);
    else
        store_halves(doubles, is_void, count, to);
}

void cogpu_cpu_convert(const cogpu_read_plan *plan, uint32_t p, const uint8_t *from, uint32_t count,
                       cogpu_type to_type, uint8_t *to) {
    const cogpu_conversion *conversion = plan->conversion;
    cogpu_type type = plan->storage->type;
    size_t size = cogpu_type_bytes(type), to_size = cogpu_type_bytes(to_type);
    const cogpu_band *band =
        conversion->bands ? &conversion->bands[cogpu_plan_band(plan, p)] : NULL;
    for (uint32_t few; count > 0; count -= few, from += few * size, to += few * to_size) {
        uint8_t is_void[STEP];
        few = count < STEP ? count : STEP;
        find_nodata(conversion, type, from, few, is_void);
        if (conversion->is_mask)
            store_mask(is_void, few, to);
        else
            convert_few(band, type, from, is_void, few, to_type, to);
    }
}
