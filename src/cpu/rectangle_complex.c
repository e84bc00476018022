/*
 * Complex samples of VRTs and mosaics: copied or converted. As in GDAL, a real sample becomes a
 * real part, a real band gets the real part of a complex sample, and scale and offset change both
 * parts.
 */
#include "base/type.h"
#include "cpu/rectangle.h"
#include "cpu/samples.h"
#include "pixel/resample.h"
#include "pixel/warp_sample.h"

/* Two numbers for each sample: the imaginary part of a real one is 0. */
static void load_pairs(cogpu_type type, const uint8_t *from, uint32_t count, double *pairs) {
    const bool is_complex = cogpu_type_is_complex(type);
    cogpu_cpu_load_doubles(cogpu_type_part(type), from, is_complex ? 2 * count : count, pairs);
    for (uint32_t i = is_complex ? 0 : count; i-- > 0;) {
        pairs[2 * i] = pairs[i];
        pairs[2 * i + 1] = 0;
    }
}

/* The real part decides. */
static void clear_nodata(double nodata, const double *pairs, uint32_t count, uint8_t *painted) {
    for (uint32_t i = 0; i < count; i++) {
        double real = pairs[2 * i];
        if (real == nodata || (real != real && nodata != nodata))
            painted[i] = 0;
    }
}

static void store_number(cogpu_type type, double value, uint8_t *to) {
    bool is_undefined = value != value && !sample_is_float(type);
    store_bits(type, is_undefined ? 0 : result_to_sample(type, value), to);
}

static void store_pairs(cogpu_type type, const double *pairs, uint32_t count, uint8_t *to,
                        const uint8_t *painted) {
    const cogpu_type part = cogpu_type_part(type);
    const size_t size = cogpu_type_bytes(type), part_size = cogpu_type_bytes(part);
    for (uint32_t i = 0; i < count; i++)
        for (size_t at = 0; painted[i] && at < size; at += part_size)
            store_number(part, pairs[2 * i + (at > 0)], to + i * size + at);
}

void cogpu_rectangle_apply_complex(const cogpu_rectangle_band *band, cogpu_type from_type,
                                   const uint8_t *from, uint32_t count, double *values,
                                   cogpu_type to_type, uint8_t *to, uint8_t *painted) {
    const cogpu_sample_rule *rule = &band->rule;
    if (cogpu_sample_rule_is_constant(rule))
        memset(values, 0, 2 * (size_t)count * sizeof *values);
    else
        load_pairs(from_type, from, count, values);
    if (rule->has_nodata)
        clear_nodata(rule->nodata, values, count, painted);
    for (uint32_t i = 0; rule->scaling == COGPU_SCALING_LINEAR && i < 2 * count; i++)
        values[i] = values[i] * rule->ratio + rule->offset;
    store_pairs(to_type, values, count, to, painted);
}
