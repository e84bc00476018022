/*
 * Converts samples of one band to the raster's float type: nodata becomes NaN, the others are cast
 * and scaled. Or makes a mask of them: 0 for nodata, 255 otherwise. plan/plan.h says what is
 * rounded when; pixel/sample.h has the arithmetic, which the unpack kernels share.
 *
 * A few samples at a time pass through arrays that the L1 cache holds, with one simple loop for
 * each step: those become vector code.
 */
#include "cpu/cpu.h"
#include "cpu/samples.h"

#include <string.h>

enum { CHUNK_SAMPLES = 256 };

/* ---- steps ---- */

#define LOAD_FLOATS(kind, bits)                                                                    \
    for (uint32_t i = 0; i < count; i++) {                                                         \
        LOAD_SAMPLE(bits, sample, from, i);                                                        \
        to[i] = sample_to_float(kind, sample);                                                     \
    }                                                                                              \
    break;
#define LOAD_FLOATS_CASE(kind, bits)                                                               \
    case kind:                                                                                     \
        LOAD_FLOATS(kind, bits)
#define LOAD_SCALAR_FLOATS_CASE(kind, bits)                                                        \
    case kind:                                                                                     \
        UNROLL_4 LOAD_FLOATS(kind, bits)

static void load_floats(cogpu_type type, const uint8_t *restrict from, uint32_t count,
                        float *restrict to) {
    switch (type) {
        EACH_VECTOR_TYPE(LOAD_FLOATS_CASE)
        EACH_SCALAR_TYPE(LOAD_SCALAR_FLOATS_CASE)
    default:
        break;
    }
}

static void scale_floats(float *values, uint32_t count, float scale, float offset) {
    for (uint32_t i = 0; i < count; i++)
        values[i] = scale_float(values[i], scale, offset);
}

static void scale_doubles(double *values, uint32_t count, double scale, double offset) {
    for (uint32_t i = 0; i < count; i++)
        values[i] = scale_double(values[i], scale, offset);
}

#define FIND_NAN_CASE(type, parts)                                                                 \
    UNROLL_4 for (uint32_t i = 0; i < count; i++) {                                                \
        type part[parts];                                                                          \
        memcpy(part, from + i * sizeof part, sizeof part);                                         \
        is_nodata[i] = (part[0] != part[0]) | (part[(parts)-1] != part[(parts)-1]);                \
    }                                                                                              \
    break

#define FIND_NAN_BITS_CASE(bits, kind, unroll)                                                     \
    unroll for (uint32_t i = 0; i < count; i++) {                                                  \
        LOAD_SAMPLE(bits, sample, from, i);                                                        \
        is_nodata[i] = sample_is_nan(kind, sample);                                                \
    }                                                                                              \
    break

/* In either part of a complex sample. SSE2 compares floats faster than their bits. */
static void find_nans(cogpu_type type, const uint8_t *restrict from, uint32_t count,
                      uint8_t *restrict is_nodata) {
    switch (type) {
    case COGPU_TYPE_F32:
        FIND_NAN_CASE(float, 1);
    case COGPU_TYPE_F64:
        FIND_NAN_BITS_CASE(uint64_t, COGPU_TYPE_F64, UNROLL_4);
    case COGPU_TYPE_CF32:
        FIND_NAN_CASE(float, 2);
    case COGPU_TYPE_CF64:
        FIND_NAN_CASE(double, 2);
    default:
        FIND_NAN_BITS_CASE(uint16_t, COGPU_TYPE_F16, );
    }
}

#define FIND_VALUE_CASE(bits, unroll)                                                              \
    case sizeof(bits): {                                                                           \
        LOAD_SAMPLE(bits, first, conversion->nodata[0], 0);                                        \
        LOAD_SAMPLE(bits, second, conversion->nodata[1], 0);                                       \
        unroll for (uint32_t i = 0; i < count; i++) {                                              \
            LOAD_SAMPLE(bits, sample, from, i);                                                    \
            is_nodata[i] = (sample == first) | (sample == second);                                 \
        }                                                                                          \
        break;                                                                                     \
    }

static void find_value(const cogpu_conversion *conversion, size_t size,
                       const uint8_t *restrict from, uint32_t count, uint8_t *restrict is_nodata) {
    switch (size) {
        FIND_VALUE_CASE(uint8_t, )
        FIND_VALUE_CASE(uint16_t, )
        FIND_VALUE_CASE(uint32_t, )
        FIND_VALUE_CASE(uint64_t, UNROLL_4)
    default: /* complex samples of 16 bytes */
        for (uint32_t i = 0; i < count; i++)
            is_nodata[i] = memcmp(from + i * size, conversion->nodata[0], size) == 0;
    }
}

static void find_nodata(const cogpu_conversion *conversion, cogpu_type type, const uint8_t *from,
                        uint32_t count, uint8_t *restrict is_nodata) {
    if (!conversion->has_nodata)
        memset(is_nodata, 0, count);
    else if (conversion->nodata_is_nan)
        find_nans(type, from, count, is_nodata);
    else
        find_value(conversion, cogpu_type_bytes(type), from, count, is_nodata);
}

static void store_mask(const uint8_t *restrict is_nodata, uint32_t count, uint8_t *restrict to) {
    for (uint32_t i = 0; i < count; i++)
        to[i] = is_nodata[i] ? 0 : 255;
}

/* `is_nodata` NULL: no sample is nodata, or nodata is NaN already. */
#define STORE_EACH(bits, convert, is_nodata_here)                                                  \
    for (uint32_t i = 0; i < count; i++) {                                                         \
        bits sample = convert(values[i], is_nodata_here);                                          \
        memcpy(to + i * sizeof sample, &sample, sizeof sample);                                    \
    }

static void store_doubles(const double *restrict values, const uint8_t *restrict is_nodata,
                          uint32_t count, uint8_t *restrict to) {
    if (is_nodata)
        STORE_EACH(uint64_t, converted_double_bits, is_nodata[i])
    else
        STORE_EACH(uint64_t, converted_double_bits, 0)
}

static void store_floats(const float *restrict values, const uint8_t *restrict is_nodata,
                         uint32_t count, uint8_t *restrict to) {
    if (is_nodata)
        STORE_EACH(uint32_t, converted_float_bits, is_nodata[i])
    else
        STORE_EACH(uint32_t, converted_float_bits, 0)
}

static void store_halves(const double *restrict values, const uint8_t *restrict is_nodata,
                         uint32_t count, uint8_t *restrict to) {
    if (is_nodata)
        STORE_EACH(uint16_t, converted_half_bits, is_nodata[i])
    else
        STORE_EACH(uint16_t, converted_half_bits, 0)
}

/* ---- all of them ---- */

/* Converts at most CHUNK_SAMPLES samples. `band` has scale and offset; NULL: not scaled.
 * `is_nodata` NULL: no flags. */
static void convert_chunk(const cogpu_band *band, cogpu_type type, const uint8_t *from,
                          const uint8_t *is_nodata, uint32_t count, cogpu_type to_type,
                          uint8_t *to) {
    float singles[CHUNK_SAMPLES];
    double doubles[CHUNK_SAMPLES];
    bool in_float = to_type == COGPU_TYPE_F32 || (to_type == COGPU_TYPE_F16 && band);
    if (in_float)
        load_floats(type, from, count, singles);
    else
        cogpu_cpu_load_doubles(type, from, count, doubles);
    if (band && in_float)
        scale_floats(singles, count, (float)band->scale, (float)band->offset);
    else if (band)
        scale_doubles(doubles, count, band->scale, band->offset);
    if (to_type == COGPU_TYPE_F16 && in_float)
        cogpu_cpu_load_doubles(COGPU_TYPE_F32, (const uint8_t *)singles, count, doubles);
    if (to_type == COGPU_TYPE_F64)
        store_doubles(doubles, is_nodata, count, to);
    else if (to_type == COGPU_TYPE_F32)
        store_floats(singles, is_nodata, count, to);
    else
        store_halves(doubles, is_nodata, count, to);
}

void cogpu_cpu_convert(const cogpu_read_plan *plan, uint32_t p, const uint8_t *from, uint32_t count,
                       cogpu_type to_type, uint8_t *to) {
    const cogpu_conversion *conversion = plan->conversion;
    cogpu_type type = plan->storage->type;
    size_t size = cogpu_type_bytes(type), to_size = cogpu_type_bytes(to_type);
    const cogpu_band *band =
        conversion->bands ? &conversion->bands[cogpu_plan_band(plan, p)] : NULL;
    /* NaN needs no flag: it becomes the quiet NaN without one. */
    bool has_flags = conversion->is_mask || (conversion->has_nodata && !conversion->nodata_is_nan);
    for (uint32_t done; count > 0; count -= done, from += done * size, to += done * to_size) {
        uint8_t is_nodata[CHUNK_SAMPLES];
        done = count < CHUNK_SAMPLES ? count : CHUNK_SAMPLES;
        if (has_flags)
            find_nodata(conversion, type, from, done, is_nodata);
        if (conversion->is_mask)
            store_mask(is_nodata, done, to);
        else
            convert_chunk(band, type, from, has_flags ? is_nodata : NULL, done, to_type, to);
    }
}
