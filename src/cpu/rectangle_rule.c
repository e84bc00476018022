/*
 * What a ComplexSource does with samples: nodata, mask, palette, scaling, lookup table, NBITS,
 * conversion, in GDAL's order and working types.
 */
#include "base/type.h"
#include "cpu/rectangle.h"
#include "cpu/samples.h"
#include "pixel/resample.h"

#include <float.h>
#include <math.h>

/* ---- working type ---- */

/* Double if a float cannot hold the integers of source or VRT, or for a VRT of doubles. */
static bool needs_double(cogpu_type from_type, cogpu_type to_type) {
    bool has_wide_source = !sample_is_float(from_type) && sample_bytes(from_type) > 2;
    bool has_wide_target = !sample_is_float(to_type) && sample_bytes(to_type) > 2;
    return has_wide_source || has_wide_target || to_type == COGPU_TYPE_F64;
}

/* Integers of up to 16 bits are compared with nodata as they are, without its fraction. */
static bool is_short(cogpu_type type) {
    return !sample_is_float(type) && sample_bytes(type) <= 2;
}

static double round_to(bool works_in_double, double value) {
    return works_in_double ? value : (double)(float)value;
}

static void load_values(cogpu_type type, const uint8_t *from, bool works_in_double, uint32_t count,
                        double *values) {
    cogpu_cpu_load_doubles(type, from, count, values);
    for (uint32_t i = 0; type == COGPU_TYPE_F64 && i < count; i++)
        values[i] = round_to(works_in_double, values[i]);
}

/* ---- nodata and mask ---- */

static bool equals_nearly(bool works_in_double, double value, double nodata) {
    float a = (float)value, b = (float)nodata;
    if (works_in_double)
        return value == nodata || fabs(value - nodata) < FLT_EPSILON * fabs(value + nodata) * 2;
    return a == b || fabsf(a - b) < FLT_EPSILON * fabsf(a + b) * 2;
}

static void clear_nodata(double nodata, bool is_exact, bool works_in_double, const double *values,
                         uint32_t count, uint8_t *painted) {
    for (uint32_t i = 0; i < count; i++) {
        bool is_nodata = is_exact ? values[i] == nodata
                         : values[i] != values[i]
                             ? nodata != nodata
                             : equals_nearly(works_in_double, values[i], nodata);
        painted[i] = is_nodata ? 0 : painted[i];
    }
}

/* ---- values ---- */

/* An index outside of the palette is left as it is. */
static void expand_palette(const cogpu_rectangle_band *band, double *values, uint32_t count) {
    const uint32_t entries = band->palette_entries;
    const uint16_t *plane = band->palette + (size_t)(band->rule.palette_component - 1) * entries;
    for (uint32_t i = 0; i < count; i++)
        if (values[i] >= 0 && values[i] < entries)
            values[i] = plane[(uint32_t)values[i]] / 257;
}

static void scale_linearly(const cogpu_sample_rule *rule, bool works_in_double, double *values,
                           uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        values[i] = round_to(works_in_double, values[i] * rule->ratio + rule->offset);
}

static void scale_by_power(const cogpu_sample_rule *rule, bool works_in_double, double *values,
                           uint32_t count) {
    const double range = rule->source_to - rule->source_from, made = rule->to - rule->from;
    for (uint32_t i = 0; i < count; i++) {
        double part = (values[i] - rule->source_from) / range;
        if (rule->is_clipped)
            part = part < 0 ? 0 : part > 1 ? 1 : part;
        values[i] = round_to(works_in_double, made * pow(part, rule->exponent) + rule->from);
    }
}

/* Between two inputs the output is interpolated; of equal inputs the first counts. */
static double look_up(const cogpu_sample_rule *rule, double value) {
    const double *in = rule->lut, *out = in + rule->lut_count;
    uint32_t low = 0, high = rule->lut_count; /* the first input that is not below the value */
    if (value != value)
        return out[0];
    if (in[0] != in[0])
        low = 1;
    const uint32_t first = low;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (in[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == rule->lut_count)
        return out[low - 1];
    if (low == first || in[low] == value)
        return out[low];
    return out[low - 1] +
           (value - in[low - 1]) * ((out[low] - out[low - 1]) / (in[low] - in[low - 1]));
}

static void change_values(const cogpu_rectangle_band *band, bool works_in_double, double *values,
                          uint32_t count) {
    const cogpu_sample_rule *rule = &band->rule;
    if (rule->palette_component && band->palette)
        expand_palette(band, values, count);
    if (rule->scaling == COGPU_SCALING_LINEAR)
        scale_linearly(rule, works_in_double, values, count);
    else if (rule->scaling == COGPU_SCALING_EXPONENT)
        scale_by_power(rule, works_in_double, values, count);
    for (uint32_t i = 0; rule->lut_count && i < count; i++)
        values[i] = round_to(works_in_double, look_up(rule, values[i]));
}

/* ---- conversion ---- */

/* Half away from zero, saturated; NaN becomes 0 in integers. */
static uint64_t to_sample(cogpu_type type, double most, double value) {
    if (most > 0 && value > most)
        value = most;
    return value != value && !sample_is_float(type) ? 0 : result_to_sample(type, value);
}

#define STORE_VALUES_CASE(kind, bits)                                                              \
    case kind:                                                                                     \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            bits sample = (bits)to_sample(kind, most, values[i]);                                  \
            if (painted[i])                                                                        \
                memcpy(to + i * sizeof sample, &sample, sizeof sample);                            \
        }                                                                                          \
        break;

static void store_values(cogpu_type type, double most, const double *values, uint32_t count,
                         uint8_t *to, const uint8_t *painted) {
    switch (type) {
        EACH_SAMPLE_TYPE(STORE_VALUES_CASE)
    default:
        break;
    }
}

static void store_unchanged(size_t size, const uint8_t *from, uint32_t count, uint8_t *to,
                            const uint8_t *painted) {
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && painted[end] == painted[i]; end++)
            ;
        if (painted[i])
            memcpy(to + i * size, from + i * size, (end - i) * size);
    }
}

/* Doubles cannot hold all 64-bit integers. */
static void store_other_sign(cogpu_type to_type, const uint8_t *from, uint32_t count, uint8_t *to,
                             const uint8_t *painted) {
    const uint64_t beyond = to_type == COGPU_TYPE_U64 ? 0 : INT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        LOAD_SAMPLE(uint64_t, sample, from, i);
        sample = sample > INT64_MAX ? beyond : sample;
        if (painted[i])
            memcpy(to + i * sizeof sample, &sample, sizeof sample);
    }
}

static bool is_long(cogpu_type type) {
    return type == COGPU_TYPE_I64 || type == COGPU_TYPE_U64;
}

static bool changes_values(const cogpu_rectangle_band *band) {
    const cogpu_sample_rule *rule = &band->rule;
    return rule->scaling || rule->lut_count || (rule->palette_component && band->palette) ||
           band->most > 0;
}

void cogpu_rectangle_apply(const cogpu_rectangle_band *band, cogpu_type from_type,
                           const uint8_t *from, const uint8_t *mask, uint32_t count, double *values,
                           cogpu_type to_type, uint8_t *to, uint8_t *painted) {
    const cogpu_sample_rule *rule = &band->rule;
    const bool works_in_double = needs_double(from_type, to_type);
    const bool is_copied = from_type == to_type && !changes_values(band);
    memset(painted, 255, count);
    for (uint32_t i = 0; mask && i < count; i++)
        painted[i] = mask[i] ? 255 : 0;
    if (cogpu_type_is_complex(from_type) || cogpu_type_is_complex(to_type)) {
        cogpu_rectangle_apply_complex(band, from_type, from, count, values, to_type, to, painted);
        return;
    }
    if (cogpu_sample_rule_is_constant(rule))
        memset(values, 0, count * sizeof *values);
    else if (!is_copied || rule->has_nodata)
        load_values(from_type, from, works_in_double, count, values);
    if (rule->has_nodata)
        clear_nodata(is_short(from_type) ? trunc(rule->nodata) : rule->nodata, is_short(from_type),
                     works_in_double, values, count, painted);
    if (is_copied) {
        store_unchanged(cogpu_type_bytes(to_type), from, count, to, painted);
    } else if (is_long(from_type) && is_long(to_type) && !changes_values(band)) {
        store_other_sign(to_type, from, count, to, painted);
    } else {
        change_values(band, works_in_double, values, count);
        store_values(to_type, band->most, values, count, to, painted);
    }
}
