/*
 * Takes rows of samples, one after the other in memory, hands on such of the next level. Where it
 * matters the order of operations is GDAL's, found by experiment, so that averages are equal to the
 * last bit.
 */
#include "backend/cpu/cpu_shrink_kernel.h"

#include "base/half.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- reach and weights ---- */

/* Multiples of a ratio miss whole numbers by this little. */
#define NEARLY 1e-8

static bool is_kernel(cogpu_resampling method) {
    return method == COGPU_BILINEAR || method == COGPU_CUBIC;
}

static double kernel_radius(cogpu_resampling method) {
    return method == COGPU_CUBIC ? 2 : 1;
}

static uint32_t clamp(double value, uint32_t low, uint32_t high) {
    return value < low ? low : value > high ? high : (uint32_t)value;
}

cogpu_reach cogpu_shrink_reach(cogpu_resampling method, uint32_t from, uint32_t to, uint32_t i) {
    double ratio = (double)from / to, begin, end;
    if (method == COGPU_NEAREST) {
        begin = floor(i * ratio + 0.5);
        end = begin + 1;
    } else if (is_kernel(method)) {
        double middle = (i + 0.5) * ratio, radius = kernel_radius(method) / (1 / ratio);
        begin = floor(middle - radius + 0.5);
        end = floor(middle + radius + 0.5);
    } else {
        begin = floor(i * ratio + NEARLY);
        end = ceil((i + 1.0) * ratio - NEARLY);
    }
    cogpu_reach reach = {.begin = clamp(begin, 0, from - 1)};
    reach.end = clamp(end, reach.begin + 1, from);
    return reach;
}

static double bilinear(double x) {
    return x < 1 ? 1 - x : 0;
}

static double cubic(double x) {
    if (x <= 1)
        return x * x * (1.5 * x - 2.5) + 1;
    return x <= 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

/* Distances grow by addition as GDAL's do: whether a sample at the very end of the kernel has a
 * weight is a matter of rounding. */
static void kernel_weights(cogpu_resampling method, cogpu_reach reach, double ratio, double middle,
                           double *weights) {
    double scale = 1 / ratio, x = scale * (reach.begin - middle + 0.5), sum = 0;
    for (uint32_t k = 0; k < reach.end - reach.begin; k++, x += scale) {
        weights[k] = method == COGPU_CUBIC ? cubic(fabs(x)) : bilinear(fabs(x));
        sum += weights[k];
    }
    for (uint32_t k = 0; k < reach.end - reach.begin; k++)
        weights[k] /= sum;
}

void cogpu_shrink_weights(cogpu_resampling method, uint32_t from, uint32_t to, uint32_t i,
                          double *weights) {
    cogpu_reach reach = cogpu_shrink_reach(method, from, to, i);
    uint32_t count = reach.end - reach.begin;
    double ratio = (double)from / to;
    if (is_kernel(method)) {
        kernel_weights(method, reach, ratio, (i + 0.5) * ratio, weights);
        return;
    }
    for (uint32_t k = 0; k < count; k++)
        weights[k] = 1;
    if (count > 1) {
        weights[0] = 1 - (i * ratio - reach.begin);
        weights[count - 1] = 1 - (reach.end - (i + 1.0) * ratio);
    }
}

/* ---- types ---- */

/* Each whole type with its unsigned twin, its range, and where a nodata of it is stated. */
#define EACH_INTEGER(X)                                                                            \
    X(COGPU_U8, uint8_t, uint8_t, 0, UINT8_MAX, value)                                             \
    X(COGPU_I8, int8_t, uint8_t, INT8_MIN, INT8_MAX, value)                                        \
    X(COGPU_U16, uint16_t, uint16_t, 0, UINT16_MAX, value)                                         \
    X(COGPU_I16, int16_t, uint16_t, INT16_MIN, INT16_MAX, value)                                   \
    X(COGPU_U32, uint32_t, uint32_t, 0, UINT32_MAX, value)                                         \
    X(COGPU_I32, int32_t, uint32_t, INT32_MIN, INT32_MAX, value)                                   \
    X(COGPU_U64, uint64_t, uint64_t, 0, UINT64_MAX, u64)                                           \
    X(COGPU_I64, int64_t, uint64_t, INT64_MIN, INT64_MAX, i64)

#define GET(type, name, from, i)                                                                   \
    type name;                                                                                     \
    memcpy(&name, (from) + (i) * sizeof name, sizeof name)

static bool is_float(cogpu_type type) {
    return type == COGPU_F16 || type == COGPU_F32 || type == COGPU_F64;
}

/* ---- marks ---- */

#define MARK_INTEGER(kind, type, bits, low, high, stated)                                          \
    case kind: {                                                                                   \
        type nodata = (type)shrink->nodata.stated;                                                 \
        type beside = (type)(nodata == (high) ? nodata - 1 : nodata + 1);                          \
        memcpy(marks->nodata, &nodata, sizeof nodata);                                             \
        memcpy(marks->beside, &beside, sizeof beside);                                             \
        break;                                                                                     \
    }

static void mark_float(float nodata, cogpu_shrink_marks *marks) {
    float beside = nextafterf(nodata, nodata == FLT_MAX ? 0 : FLT_MAX);
    memcpy(marks->nodata, &nodata, sizeof nodata);
    memcpy(marks->beside, &beside, sizeof beside);
}

static void mark_double(double nodata, cogpu_shrink_marks *marks) {
    double beside = nextafter(nodata, nodata == DBL_MAX ? 0 : DBL_MAX);
    memcpy(marks->nodata, &nodata, sizeof nodata);
    memcpy(marks->beside, &beside, sizeof beside);
}

static void mark_half(uint16_t nodata, cogpu_shrink_marks *marks) {
    enum { LARGEST = 0x7BFF, NEGATIVE_ZERO = 0x8000 };
    bool is_down = nodata >= LARGEST && nodata != NEGATIVE_ZERO;
    uint16_t beside = (uint16_t)(is_down ? nodata - 1 : (nodata & ~NEGATIVE_ZERO) + 1);
    memcpy(marks->nodata, &nodata, sizeof nodata);
    memcpy(marks->beside, &beside, sizeof beside);
}

static void mark_nan(cogpu_type type, uint8_t *sample) {
    uint16_t half = QUIET_NAN16;
    float single = NAN;
    double twice = NAN;
    if (type == COGPU_F16)
        memcpy(sample, &half, sizeof half);
    else if (type == COGPU_F32)
        memcpy(sample, &single, sizeof single);
    else
        memcpy(sample, &twice, sizeof twice);
}

void cogpu_shrink_mark(const cogpu_shrink *shrink, cogpu_type type, cogpu_shrink_marks *marks) {
    *marks = (cogpu_shrink_marks){.has_nodata = shrink->nodata.text && shrink->nodata.matches};
    if (!marks->has_nodata) {
        if (is_float(type))
            mark_nan(type, marks->none);
        return;
    }
    switch (type) {
        EACH_INTEGER(MARK_INTEGER)
    case COGPU_F32:
        mark_float((float)shrink->nodata.value, marks);
        break;
    case COGPU_F64:
        mark_double(shrink->nodata.value, marks);
        break;
    default: /* COGPU_F16 */
        mark_half(half_of_double(shrink->nodata.value), marks);
    }
    memcpy(marks->none, marks->nodata, sizeof marks->none);
}

/* ---- from samples ---- */

#define LOAD_INTEGER(kind, type, bits, low, high, stated) LOAD_CASE(kind, type)
#define LOAD_CASE(kind, type)                                                                      \
    case kind:                                                                                     \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            GET(type, sample, from, i);                                                            \
            to[i] = (double)sample;                                                                \
        }                                                                                          \
        break;

void cogpu_shrink_load(cogpu_type type, const uint8_t *restrict from, uint32_t count,
                       double *restrict to) {
    switch (type) {
        EACH_INTEGER(LOAD_INTEGER)
        LOAD_CASE(COGPU_F32, float)
        LOAD_CASE(COGPU_F64, double)
    default: /* COGPU_F16 */
        for (uint32_t i = 0; i < count; i++) {
            GET(uint16_t, half, from, i);
            to[i] = (double)half_to_float(half);
        }
    }
}

#define JUDGE_CASE(kind, type)                                                                     \
    case kind:                                                                                     \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            GET(type, sample, samples, i);                                                         \
            GET(type, stated, marks->nodata, 0);                                                   \
            valid[i] = sample != stated ? valid[i] : 0;                                            \
        }                                                                                          \
        break;

void cogpu_shrink_judge(cogpu_type type, const cogpu_shrink_marks *marks, const uint8_t *samples,
                        const double *values, uint32_t count, uint8_t *valid) {
    double nodata = NAN;
    if (is_float(type))
        for (uint32_t i = 0; i < count; i++)
            valid[i] = values[i] == values[i] ? valid[i] : 0;
    if (!marks->has_nodata)
        return;
    switch (type) {
        /* Doubles cannot tell these apart. */
        JUDGE_CASE(COGPU_I64, int64_t)
        JUDGE_CASE(COGPU_U64, uint64_t)
    default:
        cogpu_shrink_load(type, marks->nodata, 1, &nodata);
        for (uint32_t i = 0; i < count; i++)
            valid[i] = values[i] != nodata ? valid[i] : 0;
    }
}

/* ---- weighing ---- */

/* The product with the scale comes first: GDAL's order. */
void cogpu_shrink_line(const cogpu_shrink_columns *columns, const double *restrict samples,
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

uint32_t cogpu_shrink_neighbours(cogpu_resampling method, uint32_t taps) {
    return method == COGPU_CUBIC ? taps / 2 : 0;
}

static bool has_neighbours(const uint8_t *valid, uint32_t taps, uint32_t asked) {
    uint32_t run = 0;
    for (uint32_t k = 0; k < taps && run < asked; k++)
        run = valid[k] ? run + 1 : 0;
    return run >= asked;
}

static void weigh_valid(const cogpu_shrink_columns *columns, const double *restrict samples,
                        const uint8_t *restrict valid, double *restrict value,
                        double *restrict weight) {
    for (uint32_t x = 0; x < columns->count; x++) {
        const double *sample = samples + columns->begin[x];
        const uint8_t *is_valid = valid + columns->begin[x];
        const double *w = columns->weights + (size_t)x * columns->stride;
        double sum = 0, weights = 0;
        for (uint32_t k = 0; k < columns->taps[x]; k++) {
            sum += is_valid[k] ? sample[k] * w[k] * is_valid[k] : 0;
            weights += w[k] * is_valid[k];
        }
        value[x] = sum;
        weight[x] = weights;
    }
}

/* As GDAL has it, a line counts fully however few of its samples are valid. */
static void even_out(cogpu_resampling method, const cogpu_shrink_columns *columns,
                     const uint8_t *valid, double *value, double *weight) {
    for (uint32_t x = 0; x < columns->count; x++) {
        uint32_t taps = columns->taps[x];
        bool is_sound = weight[x] > 0 && has_neighbours(valid + columns->begin[x], taps,
                                                        cogpu_shrink_neighbours(method, taps));
        value[x] = is_sound ? value[x] / weight[x] : 0;
        weight[x] = is_sound;
    }
}

void cogpu_shrink_valid_line(cogpu_resampling method, const cogpu_shrink_columns *columns,
                             const double *samples, const uint8_t *valid, double *value,
                             double *weight) {
    weigh_valid(columns, samples, valid, value, weight);
    if (is_kernel(method))
        even_out(method, columns, valid, value, weight);
}

#define CLAMP(value, low, high) ((value) < (low) ? (low) : (value) > (high) ? (high) : (value))

/* GDAL takes uint8 and uint16 as they are, and avoids nodata after rounding... */
#define ROUND_SHORT(type, low, high)                                                               \
    type sample = (type)CLAMP(result + 0.5, (low), (high));                                        \
    bool is_accident = sample == nodata

/* ... others as the narrowest float that holds them, and avoids nodata before. */
#define ROUND_NARROW(type, low, high)                                                              \
    float value = (float)result;                                                                   \
    bool is_accident = value == (float)nodata;                                                     \
    value += value < 0 ? -0.5F : 0.5F;                                                             \
    type sample = (type)CLAMP(value, (float)(low), (float)(high))

#define ROUND_WIDE(type, low, high)                                                                \
    double value = result + (result < 0 ? -0.5 : 0.5);                                             \
    bool is_accident = result == (double)nodata;                                                   \
    type sample = value <= (double)(low) ? (low) : value >= (double)(high) ? (high) : (type)value

#define ROUND_NOT(type, cast)                                                                      \
    type sample = cast(result);                                                                    \
    bool is_accident = sample == nodata

#define SETTLE(type, round)                                                                        \
    do {                                                                                           \
        GET(type, nodata, marks->nodata, 0);                                                       \
        GET(type, beside, marks->beside, 0);                                                       \
        GET(type, none, marks->none, 0);                                                           \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            double result = results[i];                                                            \
            round;                                                                                 \
            sample = marks->has_nodata && is_accident ? beside : sample;                           \
            sample = weights[i] > 0 ? sample : none;                                               \
            memcpy(to + i * sizeof sample, &sample, sizeof sample);                                \
        }                                                                                          \
    } while (0)

void cogpu_shrink_settle(cogpu_type type, const cogpu_shrink_marks *marks,
                         const double *restrict results, const double *restrict weights,
                         uint32_t count, uint8_t *restrict to) {
    switch (type) {
    case COGPU_U8:
        SETTLE(uint8_t, ROUND_SHORT(uint8_t, 0, UINT8_MAX));
        break;
    case COGPU_I8:
        SETTLE(int8_t, ROUND_NARROW(int8_t, INT8_MIN, INT8_MAX));
        break;
    case COGPU_U16:
        SETTLE(uint16_t, ROUND_SHORT(uint16_t, 0, UINT16_MAX));
        break;
    case COGPU_I16:
        SETTLE(int16_t, ROUND_NARROW(int16_t, INT16_MIN, INT16_MAX));
        break;
    case COGPU_U32:
        SETTLE(uint32_t, ROUND_WIDE(uint32_t, 0, UINT32_MAX));
        break;
    case COGPU_I32:
        SETTLE(int32_t, ROUND_WIDE(int32_t, INT32_MIN, INT32_MAX));
        break;
    case COGPU_U64:
        SETTLE(uint64_t, ROUND_WIDE(uint64_t, 0, UINT64_MAX));
        break;
    case COGPU_I64:
        SETTLE(int64_t, ROUND_WIDE(int64_t, INT64_MIN, INT64_MAX));
        break;
    case COGPU_F32:
        SETTLE(float, ROUND_NOT(float, (float)));
        break;
    case COGPU_F64:
        SETTLE(double, ROUND_NOT(double, ));
        break;
    default: /* COGPU_F16 */
        SETTLE(uint16_t, ROUND_NOT(uint16_t, half_of_double));
    }
}

/* ---- halving ---- */

#define HALVE(type, begin, end, average)                                                           \
    for (uint32_t i = (begin); i < (end); i++) {                                                   \
        GET(type, a, upper, 2 * (size_t)i);                                                        \
        GET(type, b, upper, 2 * (size_t)i + 1);                                                    \
        GET(type, c, lower, 2 * (size_t)i);                                                        \
        GET(type, d, lower, 2 * (size_t)i + 1);                                                    \
        type sample = (type)(average);                                                             \
        memcpy(to + i * sizeof sample, &sample, sizeof sample);                                    \
    }

/* GDAL adds floats by columns, but the last ones, which do not fill a vector, one by one. */
#define HALVE_FLOATS(type, quarter)                                                                \
    do {                                                                                           \
        uint32_t vectors = count - count % (uint32_t)(16 / sizeof(type));                          \
        HALVE(type, 0, vectors, (a * quarter + c * quarter) + (b * quarter + d * quarter))         \
        HALVE(type, vectors, count, a *quarter + b * quarter + c * quarter + d * quarter)          \
    } while (0)

bool cogpu_shrink_halve(cogpu_type type, const uint8_t *restrict upper,
                        const uint8_t *restrict lower, uint32_t count, uint8_t *restrict to) {
    switch (type) {
    case COGPU_U8:
        HALVE(uint8_t, 0, count, (a + b + c + d + 2) >> 2)
        return true;
    case COGPU_U16:
        HALVE(uint16_t, 0, count, ((uint32_t)a + b + c + d + 2) >> 2)
        return true;
    case COGPU_F32:
        HALVE_FLOATS(float, 0.25F);
        return true;
    case COGPU_F64:
        HALVE_FLOATS(double, 0.25);
        return true;
    default:
        return false;
    }
}

#define HAS_NAN(type)                                                                              \
    for (uint32_t i = 0; i < count; i++) {                                                         \
        GET(type, sample, samples, i);                                                             \
        found |= sample != sample;                                                                 \
    }

bool cogpu_shrink_has_nan(cogpu_type type, const uint8_t *samples, uint32_t count) {
    int found = 0;
    if (type == COGPU_F32)
        HAS_NAN(float)
    else if (type == COGPU_F64)
        HAS_NAN(double)
    else if (type == COGPU_F16)
        for (uint32_t i = 0; i < count; i++) {
            GET(uint16_t, half, samples, i);
            found |= (half & 0x7FFF) > 0x7C00;
        }
    return found;
}

void cogpu_shrink_mend(cogpu_type type, const uint8_t *other, uint32_t count, uint8_t *to) {
    size_t size = cogpu_type_bytes(type);
    for (uint32_t i = 0; i < count; i++)
        if (cogpu_shrink_has_nan(type, to + i * size, 1))
            memcpy(to + i * size, other + i * size, size);
}

/* ---- choosing ---- */

/* Signed numbers and floats are ordered as unsigned ones once their sign bit is turned over, and
 * all other bits too of a negative float. */
#define KEY_INTEGER(kind, type, bits, low, high, stated)                                           \
    case kind:                                                                                     \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            GET(bits, sample, samples, i);                                                         \
            keys[i] = (bits)(sample ^ (bits)(low));                                                \
        }                                                                                          \
        break;

#define KEY_FLOAT(kind, bits)                                                                      \
    case kind:                                                                                     \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            GET(bits, sample, samples, i);                                                         \
            bits sign = (bits)((bits)1 << (8 * sizeof sample - 1));                                \
            sample = sample == sign ? 0 : sample; /* both zeros are one number */                  \
            keys[i] = (bits)(sample & sign ? ~sample : sample ^ sign);                             \
        }                                                                                          \
        break;

void cogpu_shrink_keys(cogpu_type type, const uint8_t *samples, uint32_t count, uint64_t *keys) {
    switch (type) {
        EACH_INTEGER(KEY_INTEGER)
        KEY_FLOAT(COGPU_F16, uint16_t)
        KEY_FLOAT(COGPU_F32, uint32_t)
        KEY_FLOAT(COGPU_F64, uint64_t)
    default:
        break;
    }
}

#define UNKEY_INTEGER(kind, type, bits, low, high, stated)                                         \
    case kind: {                                                                                   \
        bits value = (bits)((bits)key ^ (bits)(low));                                              \
        memcpy(sample, &value, sizeof value);                                                      \
        break;                                                                                     \
    }

#define UNKEY_FLOAT(kind, bits)                                                                    \
    case kind: {                                                                                   \
        bits sign = (bits)((bits)1 << (8 * sizeof(bits) - 1));                                     \
        bits value = (bits)(key & sign ? key ^ sign : ~key);                                       \
        memcpy(sample, &value, sizeof value);                                                      \
        break;                                                                                     \
    }

static void unkey(cogpu_type type, uint64_t key, uint8_t *sample) {
    switch (type) {
        EACH_INTEGER(UNKEY_INTEGER)
        UNKEY_FLOAT(COGPU_F16, uint16_t)
        UNKEY_FLOAT(COGPU_F32, uint32_t)
        UNKEY_FLOAT(COGPU_F64, uint64_t)
    default:
        break;
    }
}

static bool is_before(cogpu_shrink_vote a, cogpu_shrink_vote b) {
    return a.key != b.key ? a.key < b.key : a.order < b.order;
}

/* Shell's: as good as any for the four of a square, and still quick for a thousand. */
static void sort(cogpu_shrink_vote *votes, uint32_t count) {
    uint32_t gap = 1;
    while (gap < count / 3)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
        for (uint32_t i = gap; i < count; i++) {
            cogpu_shrink_vote vote = votes[i];
            uint32_t k = i;
            for (; k >= gap && is_before(vote, votes[k - gap]); k -= gap)
                votes[k] = votes[k - gap];
            votes[k] = vote;
        }
}

/* Of equally frequent ones, that which was so first. */
static uint64_t most_frequent(const cogpu_shrink_vote *votes, uint32_t count) {
    uint32_t most = 0, reached = 0;
    uint64_t key = 0;
    for (uint32_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && votes[end].key == votes[begin].key; end++)
            ;
        uint32_t run = end - begin, order = votes[end - 1].order;
        if (run > most || (run == most && order < reached)) {
            most = run;
            reached = order;
            key = votes[begin].key;
        }
    }
    return key;
}

static bool is_all_one(const cogpu_shrink_vote *votes, uint32_t count) {
    uint64_t differs = 0;
    for (uint32_t k = 1; k < count; k++)
        differs |= votes[k].key ^ votes[0].key;
    return !differs;
}

/* Half way between two whole numbers, away from zero where that is none. */
static uint64_t integer_between(uint64_t low, uint64_t high, uint64_t zero) {
    uint64_t middle = low + (high - low) / 2;
    return middle + ((high - low) % 2 && middle >= zero);
}

static void float_between(cogpu_type type, uint64_t low, uint64_t high, uint8_t *sample) {
    const cogpu_shrink_marks no_marks = {0};
    const double weight = 1;
    uint8_t pair[16];
    double values[2];
    unkey(type, low, pair);
    unkey(type, high, pair + cogpu_type_bytes(type));
    cogpu_shrink_load(type, pair, 2, values);
    values[0] = values[0] / 2 + values[1] / 2;
    cogpu_shrink_settle(type, &no_marks, values, &weight, 1, sample);
}

static void median(cogpu_type type, const cogpu_shrink_marks *marks, const cogpu_shrink_vote *votes,
                   uint32_t count, uint8_t *sample) {
    const uint8_t zero_sample[8] = {0};
    uint64_t low = votes[(count - 1) / 2].key, high = votes[count / 2].key, zero = 0;
    cogpu_shrink_keys(type, zero_sample, 1, &zero);
    if (low == high || !is_float(type))
        unkey(type, integer_between(low, high, zero), sample);
    else
        float_between(type, low, high, sample);
    size_t size = cogpu_type_bytes(type);
    if (marks->has_nodata && memcmp(sample, marks->nodata, size) == 0)
        memcpy(sample, marks->beside, size);
}

void cogpu_shrink_choose(cogpu_resampling method, cogpu_type type, const cogpu_shrink_marks *marks,
                         cogpu_shrink_vote *votes, uint32_t count, uint8_t *sample) {
    uint64_t key = votes[0].key;
    if (!is_all_one(votes, count)) {
        if (method == COGPU_MODE || method == COGPU_MEDIAN)
            sort(votes, count);
        if (method == COGPU_MEDIAN) {
            median(type, marks, votes, count, sample);
            return;
        }
        if (method == COGPU_MODE)
            key = most_frequent(votes, count);
        for (uint32_t k = 0; k < count && method != COGPU_MODE; k++)
            if (method == COGPU_MIN ? votes[k].key < key : votes[k].key > key)
                key = votes[k].key;
    }
    unkey(type, key, sample);
}
