/*
 * Resampling of one line or one sample: which source samples contribute, with what weight, and how
 * a result becomes a sample. The order of operations is GDAL's, found by experiment, so that
 * averages agree with it to the last bit.
 *
 *   source   |  0  |  1  |  2  |  3  |  4  |     from = 5
 *   result   |    0    |    1    |    2    |     to = 3, ratio = from / to = 1.667
 *
 *   Support of result 1 with average: samples 1 to 3, weights 0.333, 1 and 0.333.
 *
 * Result 0 begins at source position `offset`: 0 for overviews.
 */
#ifndef COGPU_PIXEL_RESAMPLE_H
#define COGPU_PIXEL_RESAMPLE_H

#include "pixel/sample.h"

#include <math.h>

/* ---- support: the source samples that contribute to one sample of the result ---- */

/* Samples `begin` up to `end`. Never empty. */
struct support {
    uint32_t begin, end;
};

/* The others weigh by covered area, copy or select. */
PIXEL_FN bool resampling_has_kernel(uint32_t method) {
    return method == COGPU_RESAMPLE_BILINEAR || method == COGPU_RESAMPLE_CUBIC ||
           method == COGPU_RESAMPLE_CUBICSPLINE || method == COGPU_RESAMPLE_LANCZOS;
}

PIXEL_FN double kernel_radius(uint32_t method) {
    return method == COGPU_RESAMPLE_BILINEAR ? 1.0 : method == COGPU_RESAMPLE_LANCZOS ? 3.0 : 2.0;
}

/* What distances are multiplied by: where the source has more samples, the kernel grows. */
PIXEL_FN double kernel_scale(double ratio) {
    return ratio > 1 ? 1 / ratio : 1;
}

PIXEL_FN uint32_t clamp_index(double value, uint32_t low, uint32_t high) {
    return value < low ? low : value > high ? high : (uint32_t)value;
}

PIXEL_FN struct support resampling_support(uint32_t method, uint32_t from, double ratio,
                                           double offset, uint32_t i) {
    const double tolerance = 1e-8; /* multiples of a ratio miss whole numbers by this little */
    double begin, end;
    if (method == COGPU_RESAMPLE_NEAREST) {
        begin = floor(i * ratio + offset + 0.5);
        end = begin + 1;
    } else if (resampling_has_kernel(method)) {
        double middle = (i + 0.5) * ratio + offset;
        double radius = kernel_radius(method) / kernel_scale(ratio);
        begin = floor(middle - radius + 0.5);
        end = floor(middle + radius + 0.5);
    } else {
        begin = floor(i * ratio + offset + tolerance);
        end = ceil((i + 1.0) * ratio + offset - tolerance);
    }
    struct support support = {clamp_index(begin, 0, from - 1), 0};
    support.end = clamp_index(end, support.begin + 1, from);
    return support;
}

/* ---- weights ---- */

/* Of average and rms: the samples at both ends of a support of two or more are covered in part; all
 * others weigh 1. */
PIXEL_FN double first_area_weight(struct support support, double ratio, double offset, uint32_t i) {
    return 1 - (i * ratio + offset - support.begin);
}

PIXEL_FN double last_area_weight(struct support support, double ratio, double offset, uint32_t i) {
    return 1 - (support.end - ((i + 1.0) * ratio + offset));
}

/* Of kernels: the distance of the support's first sample from the middle. Distances grow from
 * sample to sample by the addition of kernel_scale, as GDAL's do: whether a sample at the very end
 * of the kernel has a weight depends on that rounding. */
PIXEL_FN double first_kernel_distance(struct support support, double ratio, double offset,
                                      uint32_t i) {
    double middle = (i + 0.5) * ratio + offset;
    return kernel_scale(ratio) * (support.begin - middle + 0.5);
}

/* Triangle, or Catmull-Rom cubic (a = -0.5): the kernels of overviews. `x` is not negative. */
PIXEL_FN double kernel_weight(uint32_t method, double x) {
    if (method == COGPU_RESAMPLE_BILINEAR)
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return x * x * (1.5 * x - 2.5) + 1;
    return x <= 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

/* How many valid samples in a row are needed: with fewer the negative weights of cubic and lanczos
 * make nonsense. */
PIXEL_FN uint32_t valid_run_needed(uint32_t method, uint32_t taps) {
    bool is_strict = method == COGPU_RESAMPLE_CUBIC || method == COGPU_RESAMPLE_LANCZOS;
    return is_strict ? taps / 2 : 0;
}

/* What samples of an average are divided by before they are added, and the sum is multiplied by
 * after, so that no sum overflows: their number. GDAL does not do so with uint8 and uint16. */
PIXEL_FN double average_divisor(uint32_t method, uint32_t type, uint32_t columns, uint32_t rows) {
    bool divides =
        method == COGPU_RESAMPLE_AVERAGE && type != COGPU_TYPE_U8 && type != COGPU_TYPE_U16;
    return divides ? (double)columns * rows : 1;
}

/* Is a row of the result made of squares of two by two? Where the source's height is odd, the two
 * rows of a square should not weigh the same; with GDAL they do. */
PIXEL_FN bool is_made_of_squares(uint32_t method, uint32_t from_width, uint32_t to_width,
                                 uint32_t rows) {
    return (method == COGPU_RESAMPLE_AVERAGE || method == COGPU_RESAMPLE_RMS) &&
           from_width == 2 * (uint64_t)to_width && rows == 2;
}

/* The average of a square (a b over c d). GDAL adds floats by columns where they fill vectors of 16
 * bytes, and one by one in the rest of a row. */
PIXEL_FN uint32_t square_average_integer(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return (a + b + c + d + 2) >> 2;
}

PIXEL_FN float square_average_float(float a, float b, float c, float d, bool by_columns) {
    a *= 0.25F, b *= 0.25F, c *= 0.25F, d *= 0.25F;
    return by_columns ? (a + c) + (b + d) : a + b + c + d;
}

PIXEL_FN double square_average_double(double a, double b, double c, double d, bool by_columns) {
    a *= 0.25, b *= 0.25, c *= 0.25, d *= 0.25;
    return by_columns ? (a + c) + (b + d) : a + b + c + d;
}

/* ---- validity ---- */

/* Nodata of a band, as samples. */
struct resampling_nodata {
    uint64_t nodata;
    uint64_t substitute; /* stored for a valid result that happens to equal nodata */
    uint64_t empty;      /* the result where no source sample is valid */
    bool has_nodata;
};

/* Neither NaN nor nodata. `value` is the sample as a number. */
PIXEL_FN bool resampling_is_valid(uint32_t type, bool has_nodata, uint64_t nodata, uint64_t sample,
                                  double value) {
    bool is_number = !sample_is_float(type) || value == value;
    /* Doubles cannot hold all 64-bit integers. */
    bool differs = type == COGPU_TYPE_I64 || type == COGPU_TYPE_U64
                       ? sample != nodata
                       : value != sample_to_double(type, nodata);
    return is_number & (!has_nodata | differs);
}

/* With a kernel, a pixel of uint8 or uint16 weighs as much as its alpha, reduced to 8 bits; the
 * alpha band itself is only capped at 255. Otherwise any alpha but 0 weighs 1. */
PIXEL_FN uint32_t alpha_weight(uint32_t method, uint32_t type, bool is_alpha_band, uint64_t alpha) {
    uint32_t unit = type == COGPU_TYPE_U16 && !is_alpha_band ? 257 : 1;
    if (!resampling_has_kernel(method) || (type != COGPU_TYPE_U8 && type != COGPU_TYPE_U16) ||
        alpha < unit)
        return sample_to_double(type, alpha) != 0;
    return alpha / unit < 255 ? (uint32_t)alpha / unit : 255;
}

/* ---- results become samples ---- */

/* GDAL rounds uint8 and uint16 in double, int8 and int16 in float, wider integers in double; all
 * saturate. */
PIXEL_FN uint64_t round_unsigned_short(double result, double most) {
    double value = result + 0.5;
    return (uint32_t)(int32_t)(value < 0 ? 0 : value > most ? most : value);
}

PIXEL_FN uint64_t round_signed_short(float value, float low, float high) {
    value += value < 0 ? -0.5F : 0.5F;
    return (uint64_t)(int32_t)(value < low ? low : value > high ? high : value);
}

PIXEL_FN uint64_t round_int32(double result, double low, double high) {
    double value = result + (result < 0 ? -0.5 : 0.5);
    value = value < low ? low : value > high ? high : value;
    return low < 0 ? (uint32_t)(int32_t)value : (uint32_t)value;
}

/* The limits of 64-bit integers are no doubles, so these are compared before the conversion. */
PIXEL_FN uint64_t round_int64(double result, bool is_signed) {
    uint64_t high = UINT64_MAX >> is_signed, low = is_signed ? ~high : 0;
    double value = result + (result < 0 ? -0.5 : 0.5);
    if (value <= (is_signed ? (double)(int64_t)low : 0))
        return low;
    if (value >= (double)high)
        return high;
    return is_signed ? (uint64_t)(int64_t)value : (uint64_t)value;
}

/* Every NaN has the sign that x86 gives to a NaN which an operation makes. */
PIXEL_FN uint64_t float_to_sample(float value) {
    return value != value ? 0xFFC00000u : float_bits(value);
}

PIXEL_FN uint64_t double_to_sample(double value) {
    return value != value ? UINT64_C(0xFFF8000000000000) : double_bits(value);
}

PIXEL_FN uint64_t float_result_to_sample(uint32_t type, double result) {
    return type == COGPU_TYPE_F16   ? half_from_double(result)
           : type == COGPU_TYPE_F32 ? float_to_sample((float)result)
                                    : double_to_sample(result);
}

PIXEL_FN uint64_t result_to_sample(uint32_t type, double result) {
    switch (type) {
    case COGPU_TYPE_U8:
        return round_unsigned_short(result, UINT8_MAX);
    case COGPU_TYPE_U16:
        return round_unsigned_short(result, UINT16_MAX);
    case COGPU_TYPE_I8:
        return round_signed_short((float)result, INT8_MIN, INT8_MAX);
    case COGPU_TYPE_I16:
        return round_signed_short((float)result, INT16_MIN, INT16_MAX);
    case COGPU_TYPE_F16:
    case COGPU_TYPE_F32:
    case COGPU_TYPE_F64:
        return float_result_to_sample(type, result);
    case COGPU_TYPE_U32:
        return round_int32(result, 0, UINT32_MAX);
    case COGPU_TYPE_I32:
        return round_int32(result, INT32_MIN, INT32_MAX);
    default:
        return round_int64(result, type == COGPU_TYPE_I64);
    }
}

/* Does a valid result equal nodata? GDAL compares uint8 and uint16 after rounding, others before.
 */
PIXEL_FN bool result_equals_nodata(uint32_t type, double result, uint64_t sample, uint64_t nodata) {
    double nodata_value = sample_to_double(type, nodata);
    switch (type) {
    case COGPU_TYPE_U8:
    case COGPU_TYPE_U16:
    case COGPU_TYPE_F16:
        return sample == nodata;
    case COGPU_TYPE_I8:
    case COGPU_TYPE_I16:
    case COGPU_TYPE_F32:
        return (float)result == (float)nodata_value;
    default:
        return result == nodata_value;
    }
}

/* The result of a weighted sum as a sample. `weight` is what contributed: 0 means nothing did. */
PIXEL_FN uint64_t finish_result(uint32_t type, const struct resampling_nodata *nodata,
                                double result, double weight) {
    uint64_t sample = result_to_sample(type, result);
    bool is_nodata =
        nodata->has_nodata && result_equals_nodata(type, result, sample, nodata->nodata);
    sample = is_nodata ? nodata->substitute : sample;
    return weight > 0 ? sample : nodata->empty;
}

#endif
