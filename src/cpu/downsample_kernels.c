/* Loops of downsampling over rows of packed samples and columns of a tile. */
#include "cpu/downsample_kernels.h"
#include "cpu/samples.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- support and weights ---- */

/* Cubic B-spline. */
static double spline_weight(double x) {
    double rest = 2 - x;
    if (x <= 1)
        return (3 * x * x * x - 6 * x * x + 4) / 6;
    return x < 2 ? rest * rest * rest / 6 : 0;
}

/* Sinc, windowed by the middle lobe of a sinc three times as wide. */
static double lanczos_weight(double x) {
    const double pi = 3.14159265358979323846;
    if (x == 0)
        return 1;
    return x < 3 ? sin(pi * x) * sin(pi * x / 3) / (pi * x * (pi * x / 3)) : 0;
}

static double any_kernel_weight(cogpu_resampling method, double x) {
    return method == COGPU_RESAMPLE_CUBICSPLINE ? spline_weight(x)
           : method == COGPU_RESAMPLE_LANCZOS   ? lanczos_weight(x)
                                                : kernel_weight(method, x);
}

static void kernel_weights(cogpu_resampling method, struct support support,
                           const cogpu_resampling_axis *axis, uint32_t i, double *weights) {
    double distance = first_kernel_distance(support, axis->ratio, axis->offset, i), sum = 0;
    double step = kernel_scale(axis->ratio);
    uint32_t count = support.end - support.begin;
    for (uint32_t k = 0; k < count; k++, distance += step) {
        weights[k] = any_kernel_weight(method, fabs(distance));
        sum += weights[k];
    }
    for (uint32_t k = 0; k < count; k++)
        weights[k] /= sum;
}

void cogpu_downsample_weights(cogpu_resampling method, const cogpu_resampling_axis *axis,
                              uint32_t i, double *weights) {
    struct support support = cogpu_downsample_support(method, axis, i);
    uint32_t count = support.end - support.begin;
    if (resampling_has_kernel(method)) {
        kernel_weights(method, support, axis, i, weights);
        return;
    }
    for (uint32_t k = 0; k < count; k++)
        weights[k] = 1;
    if (count > 1) {
        weights[0] = first_area_weight(support, axis->ratio, axis->offset, i);
        weights[count - 1] = last_area_weight(support, axis->ratio, axis->offset, i);
    }
}

/* ---- nodata ---- */

/* Nodata as a sample, and the sample next to it, which valid results get instead. */
#define INTEGER_NODATA(kind, type, bits, high, stated)                                             \
    case kind: {                                                                                   \
        type stated_value = (type)downsample->nodata.stated;                                       \
        nodata.nodata = (bits)stated_value;                                                        \
        nodata.substitute = (bits)(stated_value == (high) ? stated_value - 1 : stated_value + 1);  \
        break;                                                                                     \
    }

static uint16_t next_half(uint16_t half) {
    enum { LARGEST = 0x7BFF, NEGATIVE_ZERO = 0x8000 };
    bool is_down = half >= LARGEST && half != NEGATIVE_ZERO;
    return (uint16_t)(is_down ? half - 1 : (half & ~NEGATIVE_ZERO) + 1);
}

static struct resampling_nodata stated_nodata(const cogpu_downsample *downsample, cogpu_type type) {
    struct resampling_nodata nodata = {.has_nodata = true};
    double value = downsample->nodata.value;
    float single = (float)value;
    switch (type) {
        INTEGER_NODATA(COGPU_TYPE_U8, uint8_t, uint8_t, UINT8_MAX, value)
        INTEGER_NODATA(COGPU_TYPE_I8, int8_t, uint8_t, INT8_MAX, value)
        INTEGER_NODATA(COGPU_TYPE_U16, uint16_t, uint16_t, UINT16_MAX, value)
        INTEGER_NODATA(COGPU_TYPE_I16, int16_t, uint16_t, INT16_MAX, value)
        INTEGER_NODATA(COGPU_TYPE_U32, uint32_t, uint32_t, UINT32_MAX, value)
        INTEGER_NODATA(COGPU_TYPE_I32, int32_t, uint32_t, INT32_MAX, value)
        INTEGER_NODATA(COGPU_TYPE_U64, uint64_t, uint64_t, UINT64_MAX, u64)
        INTEGER_NODATA(COGPU_TYPE_I64, int64_t, uint64_t, INT64_MAX, i64)
    case COGPU_TYPE_F32:
        nodata.nodata = float_bits(single);
        nodata.substitute = float_bits(nextafterf(single, single == FLT_MAX ? 0 : FLT_MAX));
        break;
    case COGPU_TYPE_F64:
        nodata.nodata = double_bits(value);
        nodata.substitute = double_bits(nextafter(value, value == DBL_MAX ? 0 : DBL_MAX));
        break;
    default: /* COGPU_TYPE_F16 */
        nodata.nodata = half_from_double(value);
        nodata.substitute = next_half((uint16_t)nodata.nodata);
    }
    nodata.empty = nodata.nodata;
    return nodata;
}

struct resampling_nodata cogpu_downsample_nodata(const cogpu_downsample *downsample,
                                                 cogpu_type type) {
    struct resampling_nodata none = {.empty = sample_is_float(type) ? sample_quiet_nan(type) : 0};
    bool has_nodata = downsample->nodata.text && downsample->nodata.matches;
    return has_nodata ? stated_nodata(downsample, type) : none;
}

/* Doubles cannot hold all 64-bit integers, so these are compared as they are. */
static void clear_nodata(cogpu_type type, uint64_t nodata, const uint8_t *samples,
                         const double *values, uint32_t count, uint8_t *valid) {
    double value = sample_to_double(type, nodata);
    if (type == COGPU_TYPE_I64 || type == COGPU_TYPE_U64)
        for (uint32_t i = 0; i < count; i++) {
            LOAD_SAMPLE(uint64_t, sample, samples, i);
            valid[i] = sample != nodata ? valid[i] : 0;
        }
    else
        for (uint32_t i = 0; i < count; i++)
            valid[i] = values[i] != value ? valid[i] : 0;
}

/* resampling_is_valid of many samples, as two loops that are quick in SSE2. */
void cogpu_downsample_validate(cogpu_type type, const struct resampling_nodata *nodata,
                               const uint8_t *samples, const double *values, uint32_t count,
                               uint8_t *valid) {
    for (uint32_t i = 0; sample_is_float(type) && i < count; i++)
        valid[i] = values[i] == values[i] ? valid[i] : 0;
    if (nodata->has_nodata)
        clear_nodata(type, nodata->nodata, samples, values, count, valid);
}

/* ---- weighted sums ---- */

/* The product with the scale comes first, as in GDAL. */
void cogpu_downsample_line(const cogpu_downsample_columns *columns, const double *restrict samples,
                           double *restrict value) {
    for (uint32_t x = 0; x < columns->count; x++) {
        const double *sample = samples + columns->begin[x];
        const double *weight = columns->weights + (size_t)x * columns->stride;
        double scale = columns->scales[x], sum = *sample * scale * *weight;
        for (uint32_t k = 1; k < columns->taps[x]; k++)
            sum += sample[k] * scale * weight[k];
        value[x] = sum;
    }
}

static bool has_valid_run(const uint8_t *valid, uint32_t taps, uint32_t needed) {
    uint32_t run = 0;
    for (uint32_t k = 0; k < taps && run < needed; k++)
        run = valid[k] ? run + 1 : 0;
    return run >= needed;
}

PIXEL_FN void sum_valid_taps(const double *sample, const uint8_t *is_valid, const double *w,
                             uint32_t taps, double *value, double *weight) {
    double sum = 0, weights = 0;
    for (uint32_t k = 0; k < taps; k++) {
        sum += is_valid[k] ? sample[k] * w[k] * is_valid[k] : 0;
        weights += w[k] * is_valid[k];
    }
    *value = sum;
    *weight = weights;
}

static void sum_valid(const cogpu_downsample_columns *columns, const double *restrict samples,
                      const uint8_t *restrict valid, double *restrict value,
                      double *restrict weight) {
    for (uint32_t x = 0; x < columns->count; x++) {
        const double *sample = samples + columns->begin[x];
        const uint8_t *is_valid = valid + columns->begin[x];
        const double *w = columns->weights + (size_t)x * columns->stride;
        if (columns->taps[x] == 2) /* halving is the most frequent step */
            sum_valid_taps(sample, is_valid, w, 2, value + x, weight + x);
        else
            sum_valid_taps(sample, is_valid, w, columns->taps[x], value + x, weight + x);
    }
}

/* With kernels a line has the weight 1, however few of its samples are valid, as in GDAL. */
static void normalize_lines(cogpu_resampling method, const cogpu_downsample_columns *columns,
                            const uint8_t *valid, double *value, double *weight) {
    for (uint32_t x = 0; x < columns->count; x++) {
        uint32_t taps = columns->taps[x];
        bool is_usable = weight[x] > 0 && has_valid_run(valid + columns->begin[x], taps,
                                                        valid_run_needed(method, taps));
        value[x] = is_usable ? value[x] / weight[x] : 0;
        weight[x] = is_usable;
    }
}

void cogpu_downsample_valid_line(cogpu_resampling method, const cogpu_downsample_columns *columns,
                                 const double *samples, const uint8_t *valid, double *value,
                                 double *weight) {
    sum_valid(columns, samples, valid, value, weight);
    if (resampling_has_kernel(method))
        normalize_lines(method, columns, valid, value, weight);
}

/* finish_result in the width of the type, which takes fewer vectors than 64 bits. */
#define FINISH_CASE(kind, bits)                                                                    \
    case kind:                                                                                     \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            bits sample = (bits)result_to_sample(kind, results[i]);                                \
            bool is_nodata = stated.has_nodata &&                                                  \
                             result_equals_nodata(kind, results[i], sample, stated.nodata);        \
            sample = is_nodata ? (bits)stated.substitute : sample;                                 \
            sample = weights[i] > 0 ? sample : (bits)stated.empty;                                 \
            memcpy(to + i * sizeof sample, &sample, sizeof sample);                                \
        }                                                                                          \
        break;

void cogpu_downsample_finish(cogpu_type type, const struct resampling_nodata *nodata,
                             const double *restrict results, const double *restrict weights,
                             uint32_t count, uint8_t *restrict to) {
    const struct resampling_nodata stated = *nodata;
    switch (type) {
        EACH_SAMPLE_TYPE(FINISH_CASE)
    default:
        break;
    }
}

/* ---- squares of two by two ---- */

#define AVERAGE_SQUARES(type, begin, end, average)                                                 \
    for (uint32_t i = (begin); i < (end); i++) {                                                   \
        LOAD_SAMPLE(type, a, upper, 2 * (size_t)i);                                                \
        LOAD_SAMPLE(type, b, upper, 2 * (size_t)i + 1);                                            \
        LOAD_SAMPLE(type, c, lower, 2 * (size_t)i);                                                \
        LOAD_SAMPLE(type, d, lower, 2 * (size_t)i + 1);                                            \
        type sample = (type)(average);                                                             \
        memcpy(to + i * sizeof sample, &sample, sizeof sample);                                    \
    }

bool cogpu_downsample_squares(cogpu_type type, const uint8_t *restrict upper,
                              const uint8_t *restrict lower, uint32_t count, uint8_t *restrict to) {
    const uint32_t floats = count - count % 4, doubles = count - count % 2; /* by columns */
    switch (type) {
    case COGPU_TYPE_U8:
        AVERAGE_SQUARES(uint8_t, 0, count, square_average_integer(a, b, c, d))
        return true;
    case COGPU_TYPE_U16:
        AVERAGE_SQUARES(uint16_t, 0, count, square_average_integer(a, b, c, d))
        return true;
    case COGPU_TYPE_F32:
        AVERAGE_SQUARES(float, 0, floats, square_average_float(a, b, c, d, true))
        AVERAGE_SQUARES(float, floats, count, square_average_float(a, b, c, d, false))
        return true;
    case COGPU_TYPE_F64:
        AVERAGE_SQUARES(double, 0, doubles, square_average_double(a, b, c, d, true))
        AVERAGE_SQUARES(double, doubles, count, square_average_double(a, b, c, d, false))
        return true;
    default:
        return false;
    }
}

#define FIND_NAN(type)                                                                             \
    for (uint32_t i = 0; i < count; i++) {                                                         \
        LOAD_SAMPLE(type, sample, samples, i);                                                     \
        found |= sample != sample;                                                                 \
    }

bool cogpu_downsample_has_nan(cogpu_type type, const uint8_t *samples, uint32_t count) {
    int found = 0;
    if (type == COGPU_TYPE_F32)
        FIND_NAN(float)
    else if (type == COGPU_TYPE_F64)
        FIND_NAN(double)
    else if (type == COGPU_TYPE_F16)
        for (uint32_t i = 0; i < count; i++) {
            LOAD_SAMPLE(uint16_t, half, samples, i);
            found |= sample_is_nan(COGPU_TYPE_F16, half);
        }
    return found;
}

void cogpu_downsample_patch(cogpu_type type, const uint8_t *other, uint32_t count, uint8_t *to) {
    size_t size = cogpu_type_bytes(type);
    for (uint32_t i = 0; i < count; i++)
        if (cogpu_downsample_has_nan(type, to + i * size, 1))
            memcpy(to + i * size, other + i * size, size);
}

/* ---- selection ---- */

#define KEYS_CASE(kind, bits)                                                                      \
    case kind:                                                                                     \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            LOAD_SAMPLE(bits, sample, samples, i);                                                 \
            keys[i] = sample_to_key(kind, sample);                                                 \
        }                                                                                          \
        break;

void cogpu_downsample_keys(cogpu_type type, const uint8_t *samples, uint32_t count,
                           uint64_t *keys) {
    switch (type) {
        EACH_SAMPLE_TYPE(KEYS_CASE)
    default:
        break;
    }
}

#define STORE_CASE(kind, bits)                                                                     \
    case kind: {                                                                                   \
        bits stored = (bits)sample;                                                                \
        memcpy(to, &stored, sizeof stored);                                                        \
        break;                                                                                     \
    }

void cogpu_downsample_store(cogpu_type type, uint64_t sample, uint8_t *to) {
    switch (type) {
        EACH_SAMPLE_TYPE(STORE_CASE)
    default:
        break;
    }
}

#define STORE_KEY_CASE(kind, bits)                                                                 \
    case kind: {                                                                                   \
        bits stored = (bits)key_to_sample(kind, key);                                              \
        memcpy(to, &stored, sizeof stored);                                                        \
        break;                                                                                     \
    }

static void store_key(cogpu_type type, uint64_t key, uint8_t *to) {
    switch (type) {
        EACH_SAMPLE_TYPE(STORE_KEY_CASE)
    default:
        break;
    }
}

static bool is_before(cogpu_downsample_candidate a, cogpu_downsample_candidate b) {
    return a.key != b.key ? a.key < b.key : a.order < b.order;
}

/* Shellsort: no slower than others for the four of a square, and still quick for a thousand. */
static void sort_candidates(cogpu_downsample_candidate *candidates, uint32_t count) {
    uint32_t gap = 1;
    while (gap < count / 3)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
        for (uint32_t i = gap; i < count; i++) {
            cogpu_downsample_candidate candidate = candidates[i];
            uint32_t k = i;
            for (; k >= gap && is_before(candidate, candidates[k - gap]); k -= gap)
                candidates[k] = candidates[k - gap];
            candidates[k] = candidate;
        }
}

/* Of sorted candidates: runs of equal keys, of which the last one tells when the count was reached.
 */
static uint64_t most_frequent_key(const cogpu_downsample_candidate *candidates, uint32_t count) {
    uint32_t most = 0, reached = 0;
    uint64_t key = 0;
    for (uint32_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && candidates[end].key == candidates[begin].key; end++)
            ;
        uint32_t run = end - begin, order = candidates[end - 1].order;
        if (run > most || (run == most && order < reached)) {
            most = run;
            reached = order;
            key = candidates[begin].key;
        }
    }
    return key;
}

static uint64_t smaller_key(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t larger_key(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t extreme_key(cogpu_resampling method, const cogpu_downsample_candidate *candidates,
                            uint32_t count) {
    uint64_t key = candidates[0].key;
    if (method == COGPU_RESAMPLE_MIN)
        UNROLL_4 for (uint32_t k = 1; k < count; k++) key = smaller_key(key, candidates[k].key);
    else
        UNROLL_4 for (uint32_t k = 1; k < count; k++) key = larger_key(key, candidates[k].key);
    return key;
}

static bool are_all_equal(const cogpu_downsample_candidate *candidates, uint32_t count) {
    uint64_t differs = 0;
    for (uint32_t k = 1; k < count; k++)
        differs |= candidates[k].key ^ candidates[0].key;
    return !differs;
}

/* The two keys in the middle, or the same one twice. */
struct middle {
    uint64_t low, high;
};

/* Of four, without branches: the larger of two minima and the smaller of two maxima. */
static struct middle middle_of_four(const cogpu_downsample_candidate *candidates) {
    uint64_t a = candidates[0].key, b = candidates[1].key;
    uint64_t c = candidates[2].key, d = candidates[3].key;
    uint64_t x = larger_key(smaller_key(a, b), smaller_key(c, d));
    uint64_t y = smaller_key(larger_key(a, b), larger_key(c, d));
    return (struct middle){smaller_key(x, y), larger_key(x, y)};
}

static struct middle middle_keys(cogpu_downsample_candidate *candidates, uint32_t count) {
    if (count == 4)
        return middle_of_four(candidates);
    if (!are_all_equal(candidates, count))
        sort_candidates(candidates, count);
    return (struct middle){candidates[(count - 1) / 2].key, candidates[count / 2].key};
}

#define STORE_MEDIAN_CASE(kind, bits)                                                              \
    case kind: {                                                                                   \
        bits stored = (bits)median_of_keys(kind, nodata->has_nodata, nodata->nodata,               \
                                           nodata->substitute, middle.low, middle.high);           \
        memcpy(to, &stored, sizeof stored);                                                        \
        break;                                                                                     \
    }

static void store_median(cogpu_type type, const struct resampling_nodata *nodata,
                         struct middle middle, uint8_t *to) {
    switch (type) {
        EACH_SAMPLE_TYPE(STORE_MEDIAN_CASE)
    default:
        break;
    }
}

/* Of few candidates, in their order: each is counted among those before it. */
static uint64_t mode_of_few(const cogpu_downsample_candidate *candidates, uint32_t count) {
    uint32_t most = 0;
    uint64_t key = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t run = 1;
        for (uint32_t k = 0; k < i; k++)
            run += candidates[k].key == candidates[i].key;
        key = run > most ? candidates[i].key : key;
        most = run > most ? run : most;
    }
    return key;
}

static uint64_t mode_key(cogpu_downsample_candidate *candidates, uint32_t count) {
    enum { FEW = 9 }; /* more are counted faster when sorted */
    if (count <= FEW)
        return mode_of_few(candidates, count);
    if (are_all_equal(candidates, count))
        return candidates[0].key;
    sort_candidates(candidates, count);
    return most_frequent_key(candidates, count);
}

void cogpu_downsample_select(cogpu_resampling method, cogpu_type type,
                             const struct resampling_nodata *nodata,
                             cogpu_downsample_candidate *candidates, uint32_t count, uint8_t *to) {
    if (method == COGPU_RESAMPLE_MEDIAN)
        store_median(type, nodata, middle_keys(candidates, count), to);
    else
        store_key(type,
                  method == COGPU_RESAMPLE_MODE ? mode_key(candidates, count)
                                                : extreme_key(method, candidates, count),
                  to);
}
