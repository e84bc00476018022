/* Conversion of samples on their way into the raster: pixel/sample.h, with the choice of type and
 * band made once for many samples. plan/plan.h says what is rounded when. */
#ifndef COGPU_KERNELS_UNPACK_UNPACK_CONVERT_H
#define COGPU_KERNELS_UNPACK_UNPACK_CONVERT_H

#include "kernels/unpack/unpack_common.h"
#include "pixel/sample.h"

/* The conversion of one band, in registers for a loop over its samples. */
struct band_conversion {
    uint32_t from, to;
    uint32_t spare_bits; /* of an integer of up to 32 bits: those above it */
    bool is_small, is_signed, is_mask, has_nodata, nodata_is_nan, scales;
    uint64_t nodata[2], nan;
    double scale, offset;
    float scale32, offset32;
};

DEVICE_FN const struct cogpu_gpu_band *band_of(const struct cogpu_gpu_pixels *pixels, uint32_t p) {
    return pixels->more_bands ? pixels->more_bands + p : pixels->bands + p;
}

DEVICE_FN struct band_conversion conversion_of_band(const struct cogpu_gpu_pixels *pixels,
                                                    uint32_t p) {
    struct band_conversion c;
    c.from = pixels->type;
    c.to = pixels->target_type;
    c.is_small = c.from <= COGPU_TYPE_I32; /* integers of up to 32 bits come first */
    c.is_signed = pixels->is_signed;
    c.spare_bits = c.is_small ? 32 - 8 * pixels->size : 0;
    c.is_mask = pixels->is_mask;
    c.has_nodata = pixels->has_nodata;
    c.nodata_is_nan = pixels->nodata_is_nan;
    c.nodata[0] = pixels->nodata[0];
    c.nodata[1] = pixels->nodata[1];
    c.nan = sample_quiet_nan(c.to);
    c.scales = pixels->scales;
    c.scale = c.scales ? band_of(pixels, p)->scale : 1;
    c.offset = c.scales ? band_of(pixels, p)->offset : 0;
    c.scale32 = (float)c.scale;
    c.offset32 = (float)c.offset;
    return c;
}

DEVICE_FN int32_t small_integer(const struct band_conversion *c, uint32_t sample) {
    return (int32_t)(sample << c->spare_bits) >> c->spare_bits;
}

/* Integers of up to 32 bits, which are frequent, need no switch over the type. */
DEVICE_FN float to_float(const struct band_conversion *c, uint64_t sample) {
    if (c->is_small)
        return c->is_signed ? (float)small_integer(c, (uint32_t)sample) : (float)(uint32_t)sample;
    return sample_to_float(c->from, sample);
}

DEVICE_FN double to_double(const struct band_conversion *c, uint64_t sample) {
    if (c->is_small)
        return c->is_signed ? (double)small_integer(c, (uint32_t)sample) : (double)(uint32_t)sample;
    return sample_to_double(c->from, sample);
}

DEVICE_FN bool is_nodata(const struct band_conversion *c, uint64_t sample) {
    if (c->nodata_is_nan)
        return sample_is_nan(c->from, sample);
    return c->has_nodata && (sample == c->nodata[0] || sample == c->nodata[1]);
}

/* The sample as one of the raster's type. */
DEVICE_FN uint64_t convert_sample(const struct band_conversion *c, uint64_t sample) {
    bool is_invalid = is_nodata(c, sample);
    if (c->is_mask)
        return is_invalid ? 0 : 255;
    if (is_invalid)
        return c->nan;
    if (c->to == COGPU_TYPE_F64) {
        double value = to_double(c, sample);
        if (c->scales)
            value = scale_double(value, c->scale, c->offset);
        return converted_double_bits(value, 0);
    }
    if (c->to == COGPU_TYPE_F16 && !c->scales)
        return half_from_double(to_double(c, sample));
    float value = to_float(c, sample);
    if (c->scales)
        value = scale_float(value, c->scale32, c->offset32);
    return c->to == COGPU_TYPE_F16 ? half_from_double((double)value)
                                   : converted_float_bits(value, 0);
}

#endif
