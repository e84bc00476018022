/*
 * Takes rows of a level, hands on rows of the next one: the twin of cpu_shrink.c.
 *
 * A thread makes samples of one column of the result, a few rows of them, in the host's order of
 * operations, which is GDAL's, each rounded on its own: so they give the same bits. What a sample
 * is made of is found by each thread for itself; caches bring together what neighbours share.
 * Averages of pairs of columns that lie side by side, which is what most pyramids are made of, are
 * loaded by vectors.
 *
 * Functions that take a `type` are inlined, and mostly it is a constant there, so that no sample is
 * asked what it is.
 */
#include "backend/cuda/cuda_shrink.h"
#include "backend/cuda/simt.h"
#include "base/half.h"

#include <math.h>

/* ---- samples ---- */

DEVICE_FN uint32_t size_of(uint32_t type) {
    return type == COGPU_U8 || type == COGPU_I8                          ? 1
           : type == COGPU_U16 || type == COGPU_I16 || type == COGPU_F16 ? 2
           : type == COGPU_U32 || type == COGPU_I32 || type == COGPU_F32 ? 4
                                                                         : 8;
}

DEVICE_FN bool is_float(uint32_t type) {
    return type == COGPU_F16 || type == COGPU_F32 || type == COGPU_F64;
}

DEVICE_FN float float_of(uint64_t sample) {
    uint32_t bits = (uint32_t)sample;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

DEVICE_FN double double_of(uint64_t sample) {
    double value;
    memcpy(&value, &sample, sizeof value);
    return value;
}

/* A NaN that operations make has the sign that x86 gives it. */
DEVICE_FN uint64_t sample_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value != value ? 0xFFC00000u : bits;
}

DEVICE_FN uint64_t sample_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value != value ? 0xFFF8000000000000u : bits;
}

DEVICE_FN double number_of(uint64_t sample, uint32_t type) {
    switch (type) {
    case COGPU_I8:
        return (int8_t)sample;
    case COGPU_I16:
        return (int16_t)sample;
    case COGPU_I32:
        return (int32_t)sample;
    case COGPU_I64:
        return (double)(int64_t)sample;
    case COGPU_U64:
        return (double)sample;
    case COGPU_F16:
        return (double)half_to_float((uint16_t)sample);
    case COGPU_F32:
        return (double)float_of(sample);
    case COGPU_F64:
        return double_of(sample);
    default:
        return (double)(uint32_t)sample;
    }
}

DEVICE_FN bool is_nan(uint64_t sample, uint32_t type) {
    double number = number_of(sample, type);
    return is_float(type) && number != number;
}

/* ---- shares of the work ---- */

/* What a thread makes: rows of the result, in one band. */
struct share {
    uint32_t item; /* which sample of a row, or which vector */
    uint32_t band, row, rows;
    bool is_idle;
};

DEVICE_FN struct share share_of(const struct cogpu_shrink_args *args, uint64_t task) {
    uint32_t item = (uint32_t)(task % args->across) * COGPU_SHRINK_THREADS + thread_index();
    uint64_t rest = task / args->across;
    uint32_t done = (uint32_t)(rest % args->down) * COGPU_SHRINK_ROWS, left = args->rows - done;
    struct share share = {item / args->unit, (uint32_t)(rest / args->down) + item % args->unit,
                          args->first + done, left < COGPU_SHRINK_ROWS ? left : COGPU_SHRINK_ROWS,
                          item >= args->items};
    return share;
}

/* One band on its way. */
struct passage {
    const uint8_t *from;
    uint8_t *to;
    uint64_t none;
    bool is_alpha; /* the guard itself */
};

DEVICE_FN struct passage passage_of(const struct cogpu_shrink_args *args, uint32_t band) {
    bool is_alpha = band + 1 == args->alpha_band;
    struct passage passage = {args->from.data + (int64_t)band * args->from.stride_band,
                              args->to.data + (int64_t)band * args->to.stride_band,
                              is_alpha && !args->has_nodata ? 0 : args->none,
                              is_alpha && !args->guard_is_mask};
    return passage;
}

DEVICE_FN const uint8_t *source_at(const struct cogpu_shrink_args *args, const uint8_t *data,
                                   uint32_t x, uint32_t y) {
    return data + (int64_t)(y - args->from_first) * args->from.stride_y +
           (int64_t)x * args->from.stride_x;
}

DEVICE_FN uint8_t *target_at(const struct cogpu_shrink_args *args, const struct passage *passage,
                             uint32_t x, uint32_t y) {
    return passage->to + (int64_t)(y - args->first) * args->to.stride_y +
           (int64_t)x * args->to.stride_x;
}

DEVICE_FN uint64_t load(const struct cogpu_shrink_args *args, const struct passage *passage,
                        uint32_t type, uint32_t x, uint32_t y) {
    uint64_t sample = load_sample(source_at(args, passage->from, x, y), size_of(type));
    return type == COGPU_U8 && args->is_mask && sample ? 255 : sample;
}

/* ---- reach ---- */

struct reach {
    uint32_t begin, end;
};

DEVICE_FN bool is_kernel(uint32_t method) {
    return method == COGPU_BILINEAR || method == COGPU_CUBIC;
}

DEVICE_FN uint32_t clamp(double value, uint32_t low, uint32_t high) {
    return value < low ? low : value > high ? high : (uint32_t)value;
}

DEVICE_FN struct reach reach_of(uint32_t method, uint32_t from, double ratio, uint32_t i) {
    const double nearly = 1e-8; /* multiples of a ratio miss whole numbers by this little */
    double begin, end;
    if (method == COGPU_NEAREST) {
        begin = floor(i * ratio + 0.5);
        end = begin + 1;
    } else if (is_kernel(method)) {
        double middle = (i + 0.5) * ratio;
        double radius = (method == COGPU_CUBIC ? 2.0 : 1.0) / (1 / ratio);
        begin = floor(middle - radius + 0.5);
        end = floor(middle + radius + 0.5);
    } else {
        begin = floor(i * ratio + nearly);
        end = ceil((i + 1.0) * ratio - nearly);
    }
    struct reach reach = {clamp(begin, 0, from - 1), 0};
    reach.end = clamp(end, reach.begin + 1, from);
    return reach;
}

DEVICE_FN struct reach column_reach(const struct cogpu_shrink_args *args, uint32_t column) {
    return reach_of(args->method, args->from_width, args->ratio_x, column);
}

DEVICE_FN struct reach row_reach(const struct cogpu_shrink_args *args, uint32_t row) {
    return reach_of(args->method, args->from_height, args->ratio_y, row);
}

/* ---- weights ---- */

/* Of the samples of a reach. */
struct weights {
    struct reach reach;
    uint32_t count, method;
    double sum;
    double first, last;           /* of average and rms: of the ends; all between weigh 1 */
    double distance, step, total; /* of kernels: of the first sample from the middle; to the next;
                                   * of all weights before they are divided by it */
    const double *held;           /* weights that are found already, `pitch` apart; NULL: none */
    uint32_t pitch;
};

/* Where in them a loop is. */
struct walk {
    uint32_t k;
    double distance;
};

DEVICE_FN double kernel_at(uint32_t method, double x) {
    if (method == COGPU_BILINEAR)
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return x * x * (1.5 * x - 2.5) + 1;
    return x <= 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

DEVICE_FN struct walk walk_along(const struct weights *weights) {
    struct walk walk = {0, weights->distance};
    return walk;
}

/* Distances grow by addition, as the host's do. */
DEVICE_FN double next_weight(const struct weights *weights, struct walk *walk) {
    uint32_t k = walk->k++;
    if (weights->held)
        return weights->held[k * weights->pitch];
    if (!is_kernel(weights->method))
        return k == 0 ? weights->first : k + 1 == weights->count ? weights->last : 1;
    double weight = kernel_at(weights->method, fabs(walk->distance)) / weights->total;
    walk->distance += weights->step;
    return weight;
}

DEVICE_FN void begin_kernel(struct weights *weights, double ratio, uint32_t i) {
    double middle = (i + 0.5) * ratio, total = 0;
    weights->step = 1 / ratio;
    weights->distance = weights->step * (weights->reach.begin - middle + 0.5);
    double distance = weights->distance;
    for (uint32_t k = 0; k < weights->count; k++, distance += weights->step)
        total += kernel_at(weights->method, fabs(distance));
    weights->total = total;
}

/* Weights of kernels are held in `room`, where there are so few that they fit; NULL: no room. */
DEVICE_FN struct weights weights_of(uint32_t method, struct reach reach, double ratio, uint32_t i,
                                    double *room, uint32_t pitch) {
    struct weights weights = {reach, reach.end - reach.begin, method, 0, 1, 1, 0, 0, 0, NULL,
                              pitch};
    bool is_held = room && is_kernel(method) && weights.count <= COGPU_SHRINK_TAPS;
    if (is_kernel(method)) {
        begin_kernel(&weights, ratio, i);
    } else if (weights.count > 1) {
        weights.first = 1 - (i * ratio - reach.begin);
        weights.last = 1 - (reach.end - (i + 1.0) * ratio);
    }
    struct walk walk = walk_along(&weights);
    for (uint32_t k = 0; k < weights.count; k++) {
        double weight = next_weight(&weights, &walk);
        weights.sum += weight;
        if (is_held)
            room[k * pitch] = weight;
    }
    weights.held = is_held ? room : NULL;
    return weights;
}

/* ---- what is valid ---- */

/* With kernels a pixel weighs by its alpha, of 8 bits; alpha itself by no more than 255. With other
 * methods alpha has but to be more than 0. */
DEVICE_FN uint32_t weight_of_alpha(const struct cogpu_shrink_args *args,
                                   const struct passage *passage, uint32_t type, uint64_t alpha) {
    uint32_t unit = type == COGPU_U16 && !passage->is_alpha ? 257 : 1;
    if (!is_kernel(args->method) || (type != COGPU_U8 && type != COGPU_U16) || alpha < unit)
        return number_of(alpha, type) != 0;
    return alpha / unit < 255 ? (uint32_t)alpha / unit : 255;
}

DEVICE_FN uint32_t weight_of_guard(const struct cogpu_shrink_args *args,
                                   const struct passage *passage, uint32_t type, uint32_t x,
                                   uint32_t y) {
    if (!args->guard.data)
        return 1;
    const uint8_t *guard = args->guard.data +
                           (int64_t)(y - args->from_first) * args->guard.stride_y +
                           (int64_t)x * args->guard.stride_x;
    return args->guard_is_mask
               ? *guard != 0
               : weight_of_alpha(args, passage, type, load_sample(guard, size_of(type)));
}

DEVICE_FN bool is_valid(const struct cogpu_shrink_args *args, uint32_t type, uint64_t sample,
                        double value) {
    if (is_float(type) && value != value)
        return false;
    if (!args->has_nodata)
        return true;
    /* Doubles cannot tell these apart. */
    if (type == COGPU_I64 || type == COGPU_U64)
        return sample != args->nodata;
    return value != number_of(args->nodata, type);
}

/* ---- results become samples ---- */

DEVICE_FN uint64_t round_short(double result, double most) {
    double value = result + 0.5;
    return (uint32_t)(value < 0 ? 0 : value > most ? most : value);
}

DEVICE_FN uint64_t round_narrow(float value, float low, float high) {
    value += value < 0 ? -0.5F : 0.5F;
    return (uint64_t)(int32_t)(value < low ? low : value > high ? high : value);
}

DEVICE_FN uint64_t round_wide(double result, uint32_t type) {
    bool is_signed = type == COGPU_I32 || type == COGPU_I64;
    uint64_t high = UINT64_MAX >> (64 - 8 * size_of(type) + is_signed), low = is_signed ? ~high : 0;
    double value = result + (result < 0 ? -0.5 : 0.5);
    if (value <= (is_signed ? (double)(int64_t)low : 0))
        return low;
    if (value >= (double)high)
        return high;
    return is_signed ? (uint64_t)(int64_t)value : (uint64_t)value;
}

DEVICE_FN uint64_t sample_of_number(double number, uint32_t type) {
    return type == COGPU_F16   ? half_of_double(number)
           : type == COGPU_F32 ? sample_of_float((float)number)
                               : sample_of_double(number);
}

DEVICE_FN uint64_t settle(const struct cogpu_shrink_args *args, uint32_t type, double result,
                          double weight, uint64_t none) {
    double nodata = number_of(args->nodata, type);
    bool is_accident = result == nodata;
    uint64_t sample;
    if (!(weight > 0))
        return none;
    switch (type) {
    case COGPU_U8:
    case COGPU_U16:
        sample = round_short(result, type == COGPU_U8 ? UINT8_MAX : UINT16_MAX);
        is_accident = sample == args->nodata;
        break;
    case COGPU_I8:
    case COGPU_I16:
        sample = type == COGPU_I8 ? round_narrow((float)result, INT8_MIN, INT8_MAX)
                                  : round_narrow((float)result, INT16_MIN, INT16_MAX);
        is_accident = (float)result == (float)nodata;
        break;
    case COGPU_F16:
    case COGPU_F32:
    case COGPU_F64:
        sample = sample_of_number(result, type);
        is_accident = type == COGPU_F16   ? sample == args->nodata
                      : type == COGPU_F32 ? (float)result == (float)nodata
                                          : result == nodata;
        break;
    default:
        sample = round_wide(result, type);
    }
    return args->has_nodata && is_accident ? args->beside : sample;
}

/* ---- weighing ---- */

/* How many valid ones stand side by side. A cubic asks for some: without them its negative weights
 * make nonsense. */
struct neighbours {
    uint32_t run, longest;
};

DEVICE_FN void count_neighbour(struct neighbours *neighbours, bool is_there) {
    neighbours->run = is_there ? neighbours->run + 1 : 0;
    if (neighbours->run > neighbours->longest)
        neighbours->longest = neighbours->run;
}

DEVICE_FN bool are_enough(const struct neighbours *neighbours, const struct weights *weights) {
    return weights->method != COGPU_CUBIC || neighbours->longest >= weights->count / 2;
}

/* A line of what is valid alone, with the weight it stands for. With kernels that is 1, however few
 * of its samples are valid. */
DEVICE_FN double judge_line(const struct cogpu_shrink_args *args, const struct passage *passage,
                            uint32_t type, const struct weights *across, uint32_t y,
                            double *weight) {
    struct walk walk = walk_along(across);
    struct neighbours neighbours = {0, 0};
    double sum = 0, weights = 0;
    for (uint32_t x = across->reach.begin; x < across->reach.end; x++) {
        uint64_t sample = load(args, passage, type, x, y);
        double value = number_of(sample, type), w = next_weight(across, &walk);
        uint32_t valid =
            is_valid(args, type, sample, value) ? weight_of_guard(args, passage, type, x, y) : 0;
        if (args->method == COGPU_RMS)
            value *= value;
        if (valid) {
            sum += value * w * valid;
            weights += w * valid;
        }
        count_neighbour(&neighbours, valid != 0);
    }
    *weight = weights;
    if (!is_kernel(args->method))
        return sum;
    bool is_sound = weights > 0 && are_enough(&neighbours, across);
    *weight = is_sound;
    return is_sound ? sum / weights : 0;
}

DEVICE_FN uint64_t weigh_judged(const struct cogpu_shrink_args *args, const struct passage *passage,
                                uint32_t type, const struct weights *across,
                                const struct weights *down) {
    struct walk walk = walk_along(down);
    struct neighbours neighbours = {0, 0};
    double result = 0, weights = 0;
    for (uint32_t y = down->reach.begin; y < down->reach.end; y++) {
        double line_weight, w = next_weight(down, &walk);
        double line = judge_line(args, passage, type, across, y, &line_weight);
        result += line * w;
        weights += line_weight * w;
        count_neighbour(&neighbours, line_weight > 0);
    }
    if (!are_enough(&neighbours, down))
        weights = 0;
    result = weights > 0 ? result / weights : 0;
    return settle(args, type, args->method == COGPU_RMS ? sqrt(result) : result, weights,
                  passage->none);
}

/* What samples of an average are divided by before they are added up, so that no sum overflows. */
DEVICE_FN double divisor_of(const struct cogpu_shrink_args *args, uint32_t type, uint32_t columns,
                            uint32_t rows) {
    bool divides = args->method == COGPU_AVERAGE && type != COGPU_U8 && type != COGPU_U16;
    return divides ? (double)columns * rows : 1;
}

/* As if all were valid; a NaN spoils what it is in reach of. */
DEVICE_FN uint64_t weigh_plain(const struct cogpu_shrink_args *args, const struct passage *passage,
                               uint32_t type, const struct weights *across,
                               const struct weights *down) {
    double divisor = divisor_of(args, type, across->count, down->count), scale = 1 / divisor;
    struct walk walk_down = walk_along(down);
    double result = 0, sum = 0;
    for (uint32_t y = down->reach.begin; y < down->reach.end; y++) {
        struct walk walk = walk_along(across);
        double line = 0, w = next_weight(down, &walk_down);
        for (uint32_t x = across->reach.begin; x < across->reach.end; x++) {
            double value = number_of(load(args, passage, type, x, y), type);
            if (args->method == COGPU_RMS)
                value *= value;
            line += value * scale * next_weight(across, &walk);
        }
        result += line * w;
        sum += w;
    }
    double weights = across->sum * sum;
    result = result / weights * divisor;
    return settle(args, type, args->method == COGPU_RMS ? sqrt(result) : result, weights,
                  passage->none);
}

/* Is the row made of squares of two by two? Where the height is odd their rows should not weigh the
 * same; with GDAL they do. */
DEVICE_FN bool is_of_squares(const struct cogpu_shrink_args *args, const struct weights *down) {
    return (args->method == COGPU_AVERAGE || args->method == COGPU_RMS) &&
           args->from_width == 2 * (uint64_t)args->to_width && down->count == 2;
}

/* The average of a square. GDAL adds floats by columns, but the last ones of a row, which do not
 * fill a vector, one by one. */
DEVICE_FN uint64_t halve(const struct cogpu_shrink_args *args, uint32_t type, uint32_t column,
                         const uint64_t *upper, const uint64_t *lower) {
    uint32_t in_vector = type == COGPU_F32 ? 4 : 2;
    bool by_columns = column < args->to_width - args->to_width % in_vector;
    if (type == COGPU_U8 || type == COGPU_U16)
        return (uint32_t)(upper[0] + upper[1] + lower[0] + lower[1] + 2) >> 2;
    if (type == COGPU_F32) {
        float a = float_of(upper[0]) * 0.25F, b = float_of(upper[1]) * 0.25F;
        float c = float_of(lower[0]) * 0.25F, d = float_of(lower[1]) * 0.25F;
        return sample_of_float(by_columns ? (a + c) + (b + d) : a + b + c + d);
    }
    double a = number_of(upper[0], type) * 0.25, b = number_of(upper[1], type) * 0.25;
    double c = number_of(lower[0], type) * 0.25, d = number_of(lower[1], type) * 0.25;
    return settle(args, type, by_columns ? (a + c) + (b + d) : a + b + c + d, 1, 0);
}

DEVICE_FN uint64_t halve_square(const struct cogpu_shrink_args *args, const struct passage *passage,
                                uint32_t type, uint32_t column, uint32_t y) {
    uint32_t x = 2 * column;
    uint64_t upper[2] = {load(args, passage, type, x, y), load(args, passage, type, x + 1, y)};
    uint64_t lower[2] = {load(args, passage, type, x, y + 1),
                         load(args, passage, type, x + 1, y + 1)};
    return halve(args, type, column, upper, lower);
}

DEVICE_FN uint64_t weigh(const struct cogpu_shrink_args *args, const struct passage *passage,
                         uint32_t type, uint32_t column, const struct weights *across,
                         const struct weights *down) {
    bool is_judged = args->guard.data || args->has_nodata;
    uint64_t sample = 0;
    if (!is_judged) {
        struct weights even = *down;
        if (is_of_squares(args, down))
            even.first = even.last = 1;
        sample = args->method == COGPU_AVERAGE && is_of_squares(args, down)
                     ? halve_square(args, passage, type, column, down->reach.begin)
                     : weigh_plain(args, passage, type, across, &even);
        /* NaN is never valid, but rare: what it spoiled is made anew. */
        is_judged = is_nan(sample, type);
    }
    return is_judged ? weigh_judged(args, passage, type, across, down) : sample;
}

struct weigh_shared {
    double across[COGPU_SHRINK_TAPS][COGPU_SHRINK_THREADS];
    double down[COGPU_SHRINK_ROWS][COGPU_SHRINK_TAPS];
    struct weights rows[COGPU_SHRINK_ROWS];
};

/* All threads of a block weigh the same rows, but each its own columns. */
DEVICE_FN void weigh_all(const struct cogpu_shrink_args *args, struct weigh_shared *shared,
                         uint32_t type) {
    for (uint64_t task = block_index(); task < args->tasks; task += block_count()) {
        struct share share = share_of(args, task);
        struct passage passage = passage_of(args, share.band);
        uint32_t k = thread_index(), row = share.row + k;
        if (k < share.rows)
            shared->rows[k] = weights_of(args->method, row_reach(args, row), args->ratio_y, row,
                                         shared->down[k], 1);
        sync_block();
        if (!share.is_idle) {
            struct weights across =
                weights_of(args->method, column_reach(args, share.item), args->ratio_x, share.item,
                           &shared->across[0][thread_index()], COGPU_SHRINK_THREADS);
            for (k = 0; k < share.rows; k++)
                store_sample(target_at(args, &passage, share.item, share.row + k),
                             weigh(args, &passage, type, share.item, &across, &shared->rows[k]),
                             size_of(type));
        }
        sync_block();
    }
}

/* ---- averages of pairs of columns, side by side in memory ---- */

enum { VECTOR = 16, PAIRS_MAX = VECTOR / 2 };

/* Pairs that a vector holds: what is made of them is half a vector. */
DEVICE_FN uint32_t pairs_of(uint32_t type) {
    return VECTOR / 2 / size_of(type);
}

/* As wide as memory that lies there allows: no byte is read that is not the caller's. */
DEVICE_FN words4 load_vector(const uint8_t *at) {
    uint32_t words[4];
    if ((uintptr_t)at % VECTOR == 0)
        return load_words4(at);
    UNROLL for (uint32_t i = 0; i < 4; i++, at += 4) {
        words[i] = (uintptr_t)at % 4 == 0
                       ? load_u32_aligned(at)
                       : (uint32_t)(load_sample(at, 2) | load_sample(at + 2, 2) << 16);
    }
    words4 v = {words[0], words[1], words[2], words[3]};
    return v;
}

DEVICE_FN void load_pairs(const struct cogpu_shrink_args *args, const struct passage *passage,
                          uint32_t type, uint32_t x, uint32_t y, uint64_t *samples) {
    words4 v = load_vector(source_at(args, passage->from, x, y));
    uint32_t words[4] = {v.x, v.y, v.z, v.w}, bits = 8 * size_of(type);
    UNROLL for (uint32_t i = 0; i < 2 * pairs_of(type); i++) {
        uint32_t word = words[i * bits / 32];
        if (bits == 64)
            samples[i] = (uint64_t)words[2 * i + 1] << 32 | words[2 * i];
        else
            samples[i] = bits == 32 ? word : word >> i * bits % 32 & ((1u << bits % 32) - 1);
    }
}

DEVICE_FN void halve_pairs(const struct cogpu_shrink_args *args, const struct passage *passage,
                           uint32_t type, uint32_t column, uint32_t y, uint64_t *made) {
    uint64_t upper[2 * PAIRS_MAX], lower[2 * PAIRS_MAX];
    load_pairs(args, passage, type, 2 * column, y, upper);
    load_pairs(args, passage, type, 2 * column, y + 1, lower);
    UNROLL for (uint32_t i = 0; i < pairs_of(type); i++) {
        made[i] = halve(args, type, column + i, upper + 2 * i, lower + 2 * i);
    }
}

DEVICE_FN void weigh_plain_pairs(const struct cogpu_shrink_args *args,
                                 const struct passage *passage, uint32_t type, uint32_t column,
                                 const struct weights *down, uint64_t *made) {
    double divisor = divisor_of(args, type, 2, down->count), scale = 1 / divisor;
    double results[PAIRS_MAX] = {0}, sum = 0;
    struct walk walk = walk_along(down);
    for (uint32_t y = down->reach.begin; y < down->reach.end; y++) {
        uint64_t samples[2 * PAIRS_MAX];
        double w = next_weight(down, &walk);
        load_pairs(args, passage, type, 2 * column, y, samples);
        UNROLL for (uint32_t i = 0; i < pairs_of(type); i++) {
            double left = number_of(samples[2 * i], type) * scale;
            results[i] += (left + number_of(samples[2 * i + 1], type) * scale) * w;
        }
        sum += w;
    }
    UNROLL for (uint32_t i = 0; i < pairs_of(type); i++) {
        made[i] = settle(args, type, results[i] / (2 * sum) * divisor, 2 * sum, passage->none);
    }
}

DEVICE_FN void weigh_judged_pairs(const struct cogpu_shrink_args *args,
                                  const struct passage *passage, uint32_t type, uint32_t column,
                                  const struct weights *down, uint64_t *made) {
    double results[PAIRS_MAX] = {0}, weights[PAIRS_MAX] = {0};
    struct walk walk = walk_along(down);
    for (uint32_t y = down->reach.begin; y < down->reach.end; y++) {
        uint64_t samples[2 * PAIRS_MAX];
        double w = next_weight(down, &walk);
        load_pairs(args, passage, type, 2 * column, y, samples);
        UNROLL for (uint32_t i = 0; i < pairs_of(type); i++) {
            double left = number_of(samples[2 * i], type);
            double right = number_of(samples[2 * i + 1], type);
            bool has_left = is_valid(args, type, samples[2 * i], left);
            bool has_right = is_valid(args, type, samples[2 * i + 1], right);
            double line = (has_left ? left : 0) + (has_right ? right : 0);
            results[i] += line * w;
            weights[i] += (double)(has_left + has_right) * w;
        }
    }
    UNROLL for (uint32_t i = 0; i < pairs_of(type); i++) {
        made[i] = settle(args, type, weights[i] > 0 ? results[i] / weights[i] : 0, weights[i],
                         passage->none);
    }
}

DEVICE_FN void average_pairs(const struct cogpu_shrink_args *args, const struct passage *passage,
                             uint32_t type, uint32_t column, const struct weights *down,
                             uint64_t *made) {
    uint64_t judged[PAIRS_MAX];
    bool is_spoiled = false;
    if (!args->has_nodata) {
        if (down->count == 2)
            halve_pairs(args, passage, type, column, down->reach.begin, made);
        else
            weigh_plain_pairs(args, passage, type, column, down, made);
        UNROLL for (uint32_t i = 0; i < pairs_of(type); i++) {
            is_spoiled = is_spoiled || is_nan(made[i], type);
        }
        if (!is_spoiled)
            return;
    }
    weigh_judged_pairs(args, passage, type, column, down, judged);
    UNROLL for (uint32_t i = 0; i < pairs_of(type); i++) {
        made[i] = args->has_nodata || is_nan(made[i], type) ? judged[i] : made[i];
    }
}

/* From the one of them on that nobody else stores. */
DEVICE_FN void store_pairs(uint8_t *to, uint32_t type, uint32_t begin, const uint64_t *made) {
    const uint32_t size = size_of(type);
    uint64_t all = 0;
    UNROLL for (uint32_t i = 0; i < pairs_of(type); i++) {
        all |= (made[i] & UINT64_MAX >> (64 - 8 * size)) << 8 * size * i;
    }
    if (begin == 0 && (uintptr_t)to % sizeof all == 0)
        store_sample(to, all, sizeof all);
    else
        for (uint32_t i = begin; i < pairs_of(type); i++)
            store_sample(to + i * size, all >> 8 * size * i, size);
}

/* The last ones of a row, where they are fewer than a vector, are made together with some before
 * them. */
DEVICE_FN void average_all(const struct cogpu_shrink_args *args, uint32_t type) {
    for (uint64_t task = block_index(); task < args->tasks; task += block_count()) {
        struct share share = share_of(args, task);
        struct passage passage = passage_of(args, share.band);
        uint32_t first = share.item * pairs_of(type), last = args->to_width - pairs_of(type);
        uint32_t column = first < last ? first : last;
        for (uint32_t row = share.row; !share.is_idle && row < share.row + share.rows; row++) {
            struct reach reach = reach_of(COGPU_AVERAGE, args->from_height, args->ratio_y, row);
            struct weights down = weights_of(COGPU_AVERAGE, reach, args->ratio_y, row, NULL, 0);
            uint64_t made[PAIRS_MAX] = {0};
            average_pairs(args, &passage, type, column, &down, made);
            store_pairs(target_at(args, &passage, column, row), type, first - column, made);
        }
    }
}

/* ---- choosing ---- */

/* Signed numbers and floats are ordered as unsigned ones once their sign bit is turned over, and
 * all other bits too of a negative float. */
DEVICE_FN uint64_t key_of(uint64_t sample, uint32_t type) {
    uint64_t all = UINT64_MAX >> (64 - 8 * size_of(type)), sign = all ^ all >> 1;
    bool is_signed =
        type == COGPU_I8 || type == COGPU_I16 || type == COGPU_I32 || type == COGPU_I64;
    if (!is_float(type))
        return is_signed ? sample ^ sign : sample;
    sample = sample == sign ? 0 : sample; /* both zeros are one number */
    return sample & sign ? ~sample & all : sample ^ sign;
}

DEVICE_FN uint64_t sample_of_key(uint64_t key, uint32_t type) {
    uint64_t all = UINT64_MAX >> (64 - 8 * size_of(type)), sign = all ^ all >> 1;
    if (!is_float(type))
        return key_of(key, type);
    return key & sign ? key ^ sign : ~key & all;
}

/* Whether there is a vote for a sample, and its key. */
DEVICE_FN bool take_vote(const struct cogpu_shrink_args *args, const struct passage *passage,
                         uint32_t x, uint32_t y, uint64_t *key) {
    uint64_t sample = load(args, passage, args->type, x, y);
    *key = key_of(sample, args->type);
    return is_valid(args, args->type, sample, number_of(sample, args->type)) &&
           weight_of_guard(args, passage, args->type, x, y);
}

DEVICE_FN uint64_t choose_extreme(const struct cogpu_shrink_args *args,
                                  const struct passage *passage, struct reach across,
                                  struct reach down) {
    uint64_t chosen = 0, key;
    bool is_chosen = false;
    for (uint32_t y = down.begin; y < down.end; y++)
        for (uint32_t x = across.begin; x < across.end; x++)
            if (take_vote(args, passage, x, y, &key) &&
                (!is_chosen || (args->method == COGPU_MIN ? key < chosen : key > chosen))) {
                chosen = key;
                is_chosen = true;
            }
    return is_chosen ? sample_of_key(chosen, args->type) : passage->none;
}

/* The sample between the two that are in the middle: half way, whole numbers away from zero where
 * that is none. */
DEVICE_FN uint64_t median_of(const struct cogpu_shrink_args *args, uint64_t low, uint64_t high) {
    uint64_t middle = low + (high - low) / 2, sample;
    if (low == high || !is_float(args->type)) {
        middle += (high - low) % 2 && middle >= key_of(0, args->type);
        sample = sample_of_key(middle, args->type);
    } else {
        double a = number_of(sample_of_key(low, args->type), args->type);
        double b = number_of(sample_of_key(high, args->type), args->type);
        sample = sample_of_number(a / 2 + b / 2, args->type);
    }
    return args->has_nodata && sample == args->nodata ? args->beside : sample;
}

/* ---- choosing among few: a thread holds all votes ---- */

/* Each thread has a column of its own. */
struct choose_shared {
    uint64_t keys[COGPU_SHRINK_VOTES][COGPU_SHRINK_THREADS];
};

DEVICE_FN uint32_t hold_votes(const struct cogpu_shrink_args *args, const struct passage *passage,
                              struct reach across, struct reach down,
                              struct choose_shared *shared) {
    uint32_t votes = 0;
    for (uint32_t y = down.begin; y < down.end; y++)
        for (uint32_t x = across.begin; x < across.end && votes < COGPU_SHRINK_VOTES; x++)
            votes += take_vote(args, passage, x, y, &shared->keys[votes][thread_index()]);
    return votes;
}

/* Of equally frequent ones, that which was so first. */
DEVICE_FN uint64_t most_frequent(const struct choose_shared *shared, uint32_t votes) {
    uint32_t most = 0, me = thread_index();
    uint64_t chosen = 0;
    for (uint32_t i = 0; i < votes; i++) {
        uint64_t key = shared->keys[i][me];
        uint32_t count = 1;
        for (uint32_t k = 0; k < i; k++)
            count += shared->keys[k][me] == key;
        if (count > most) {
            most = count;
            chosen = key;
        }
    }
    return chosen;
}

DEVICE_FN void sort_votes(struct choose_shared *shared, uint32_t votes) {
    uint32_t me = thread_index();
    for (uint32_t i = 1; i < votes; i++) {
        uint64_t key = shared->keys[i][me];
        uint32_t k = i;
        for (; k > 0 && key < shared->keys[k - 1][me]; k--)
            shared->keys[k][me] = shared->keys[k - 1][me];
        shared->keys[k][me] = key;
    }
}

DEVICE_FN uint64_t choose(const struct cogpu_shrink_args *args, const struct passage *passage,
                          struct reach across, struct reach down, struct choose_shared *shared) {
    if (args->method == COGPU_MIN || args->method == COGPU_MAX)
        return choose_extreme(args, passage, across, down);
    uint32_t votes = hold_votes(args, passage, across, down, shared), me = thread_index();
    if (votes == 0)
        return passage->none;
    if (args->method == COGPU_MODE)
        return sample_of_key(most_frequent(shared, votes), args->type);
    sort_votes(shared, votes);
    return median_of(args, shared->keys[(votes - 1) / 2][me], shared->keys[votes / 2][me]);
}

/* ---- choosing among many: a block of threads reads the votes again and again ---- */

enum { DIGITS = 256, SLOTS = 1024, PROBES = 64 };

/* A key that was met: by whom first (number + 1; 0: nobody), by whom last, and how often. */
struct slot {
    uint32_t first, last, count;
};

struct poll_shared {
    uint32_t digits[DIGITS];
    struct slot slots[SLOTS];
    uint64_t best[COGPU_SHRINK_THREADS];
    uint64_t prefix;
    uint32_t rank;
};

/* Who may vote on a sample: numbered row by row. */
struct poll {
    struct passage passage;
    struct reach across, down;
    uint32_t width, voters;
};

DEVICE_FN bool poll_vote(const struct cogpu_shrink_args *args, const struct poll *poll,
                         uint32_t voter, uint64_t *key) {
    return take_vote(args, &poll->passage, poll->across.begin + voter % poll->width,
                     poll->down.begin + voter / poll->width, key);
}

/* A collective of the block, as all that follow. */
DEVICE_FN uint32_t count_votes(const struct cogpu_shrink_args *args, const struct poll *poll,
                               struct poll_shared *shared) {
    uint32_t votes = 0;
    uint64_t key;
    if (thread_index() == 0)
        shared->rank = 0;
    sync_block();
    for (uint32_t i = thread_index(); i < poll->voters; i += COGPU_SHRINK_THREADS)
        votes += poll_vote(args, poll, i, &key);
    atomic_add(&shared->rank, votes);
    sync_block();
    votes = shared->rank;
    sync_block();
    return votes;
}

/* The digit of the vote that is looked for joins the prefix, by a warp: each lane adds up some
 * digits. */
DEVICE_FN void choose_digit(struct poll_shared *shared) {
    enum { SHARE = DIGITS / WARP };
    const uint32_t *counts = shared->digits + SHARE * lane_index();
    uint32_t rank = shared->rank, own = 0;
    uint64_t prefix = shared->prefix;
    for (uint32_t i = 0; i < SHARE; i++)
        own += counts[i];
    uint32_t end = warp_scan(own), before = end - own;
    sync_warp();
    if (rank < before || rank >= end)
        return;
    uint32_t i = 0;
    for (; i + 1 < SHARE && rank >= before + counts[i]; i++)
        before += counts[i];
    shared->prefix = prefix << 8 | (SHARE * lane_index() + i);
    shared->rank = rank - before;
}

/* The key of this rank among the votes, digit by digit. */
DEVICE_FN uint64_t key_of_rank(const struct cogpu_shrink_args *args, const struct poll *poll,
                               uint32_t rank, struct poll_shared *shared) {
    uint64_t key;
    if (thread_index() == 0) {
        shared->prefix = 0;
        shared->rank = rank;
    }
    for (uint32_t bits = 8 * args->size; bits > 0; bits -= 8) {
        for (uint32_t i = thread_index(); i < DIGITS; i += COGPU_SHRINK_THREADS)
            shared->digits[i] = 0;
        sync_block();
        for (uint32_t i = thread_index(); i < poll->voters; i += COGPU_SHRINK_THREADS)
            if (poll_vote(args, poll, i, &key) &&
                (bits == 8 * args->size || key >> bits == shared->prefix))
                atomic_add(&shared->digits[key >> (bits - 8) & (DIGITS - 1)], 1);
        sync_block();
        if (warp_index() == 0)
            choose_digit(shared);
        sync_block();
    }
    key = shared->prefix;
    sync_block();
    return key;
}

DEVICE_FN uint64_t poll_median(const struct cogpu_shrink_args *args, const struct poll *poll,
                               struct poll_shared *shared) {
    uint32_t votes = count_votes(args, poll, shared);
    if (votes == 0)
        return poll->passage.none;
    uint64_t low = key_of_rank(args, poll, (votes - 1) / 2, shared);
    uint64_t high = votes % 2 ? low : key_of_rank(args, poll, votes / 2, shared);
    return median_of(args, low, high);
}

/* Different keys stay different. */
DEVICE_FN uint64_t scatter(uint64_t key) {
    key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9u;
    key = (key ^ key >> 27) * 0x94D049BB133111EBu;
    return key ^ key >> 31;
}

/* False: there is no slot left. */
DEVICE_FN bool count_vote(const struct cogpu_shrink_args *args, const struct poll *poll,
                          uint32_t voter, uint64_t key, uint64_t scattered, struct slot *slots) {
    for (uint32_t i = 0; i < PROBES; i++) {
        struct slot *slot = slots + (scattered + i) % SLOTS;
        uint32_t first = atomic_compare_exchange(&slot->first, 0, voter + 1);
        uint64_t other = key;
        if (first)
            poll_vote(args, poll, first - 1, &other);
        if (other == key) {
            atomic_add(&slot->count, 1);
            atomic_max(&slot->last, voter);
            return true;
        }
    }
    return false;
}

/* Counts the votes whose scattered keys begin with the `bits` bits of `part`. False: they are too
 * many different ones. */
DEVICE_FN bool count_part(const struct cogpu_shrink_args *args, const struct poll *poll,
                          uint64_t part, uint32_t bits, struct slot *slots) {
    const struct slot empty = {0, 0, 0};
    bool is_full = false;
    for (uint32_t i = thread_index(); i < SLOTS; i += COGPU_SHRINK_THREADS)
        slots[i] = empty;
    sync_block();
    for (uint32_t i = thread_index(); i < poll->voters && !is_full; i += COGPU_SHRINK_THREADS) {
        uint64_t key;
        if (!poll_vote(args, poll, i, &key))
            continue;
        uint64_t scattered = scatter(key);
        if (bits == 0 || scattered >> (64 - bits) == part)
            is_full = !count_vote(args, poll, i, key, scattered, slots);
    }
    return !sync_block_or(is_full);
}

/* How good a slot is: the more votes, and of equally many the earlier the last of them. */
DEVICE_FN uint64_t rating_of(const struct slot *slot) {
    return slot->count ? (uint64_t)slot->count << 32 | (UINT32_MAX - slot->last) : 0;
}

DEVICE_FN uint64_t best_of_block(uint64_t best, struct poll_shared *shared) {
    uint32_t me = thread_index();
    shared->best[me] = best;
    for (uint32_t by = COGPU_SHRINK_THREADS / 2; by > 0; by /= 2) {
        sync_block();
        if (me < by && shared->best[me + by] > shared->best[me])
            shared->best[me] = shared->best[me + by];
    }
    sync_block();
    best = shared->best[0];
    sync_block();
    return best;
}

/* Keys are counted in a table; where it is too small, first those of one half of the keys, then
 * those of the other, and so on. */
DEVICE_FN uint64_t poll_mode(const struct cogpu_shrink_args *args, const struct poll *poll,
                             struct poll_shared *shared) {
    uint64_t part = 0, best = 0, key = 0;
    uint32_t bits = 0;
    do {
        if (!count_part(args, poll, part, bits, shared->slots)) {
            part *= 2;
            bits++;
            continue;
        }
        for (uint32_t i = thread_index(); i < SLOTS; i += COGPU_SHRINK_THREADS) {
            uint64_t rating = rating_of(&shared->slots[i]);
            best = rating > best ? rating : best;
        }
        sync_block();
        for (; part % 2; part /= 2)
            bits--;
        part++;
    } while (bits > 0);
    best = best_of_block(best, shared);
    if (best == 0)
        return poll->passage.none;
    poll_vote(args, poll, UINT32_MAX - (uint32_t)best, &key);
    return sample_of_key(key, args->type);
}

/* ---- the steps ---- */

#define AVERAGE_KERNEL(name, type)                                                                 \
    KERNEL(cogpu_kernel_average_##name, struct cogpu_shrink_args, struct nothing_shared,           \
           COGPU_SHRINK_THREADS, 8) {                                                              \
        (void)shared;                                                                              \
        average_all(args, type);                                                                   \
    }
#define WEIGH_KERNEL(name, type)                                                                   \
    KERNEL(cogpu_kernel_weigh_##name, struct cogpu_shrink_args, struct weigh_shared,               \
           COGPU_SHRINK_THREADS, 5) {                                                              \
        weigh_all(args, shared, type);                                                             \
    }

COGPU_SHRINK_TYPES(AVERAGE_KERNEL)
COGPU_SHRINK_WEIGHED(WEIGH_KERNEL)

KERNEL(cogpu_kernel_weigh_any, struct cogpu_shrink_args, struct weigh_shared, COGPU_SHRINK_THREADS,
       5) {
    weigh_all(args, shared, args->type);
}

/* Samples of any type, which may be complex. */
KERNEL(cogpu_kernel_shrink_nearest, struct cogpu_shrink_args, struct nothing_shared,
       COGPU_SHRINK_THREADS, 8) {
    (void)shared;
    for (uint64_t task = block_index(); task < args->tasks; task += block_count()) {
        struct share share = share_of(args, task);
        struct passage passage = passage_of(args, share.band);
        uint32_t x = column_reach(args, share.item).begin, size = args->size < 8 ? args->size : 8;
        for (uint32_t row = share.row; !share.is_idle && row < share.row + share.rows; row++) {
            const uint8_t *from = source_at(args, passage.from, x, row_reach(args, row).begin);
            uint8_t *to = target_at(args, &passage, share.item, row);
            uint64_t sample = load_sample(from, size);
            store_sample(to, args->is_mask && sample ? 255 : sample, size);
            if (args->size > 8)
                store_sample(to + 8, load_sample(from + 8, 8), 8);
        }
    }
}

KERNEL(cogpu_kernel_shrink_choose, struct cogpu_shrink_args, struct choose_shared,
       COGPU_SHRINK_THREADS, 8) {
    for (uint64_t task = block_index(); task < args->tasks; task += block_count()) {
        struct share share = share_of(args, task);
        struct passage passage = passage_of(args, share.band);
        struct reach across = column_reach(args, share.item);
        for (uint32_t row = share.row; !share.is_idle && row < share.row + share.rows; row++)
            store_sample(target_at(args, &passage, share.item, row),
                         choose(args, &passage, across, row_reach(args, row), shared), args->size);
    }
}

/* A block of threads to a sample. */
KERNEL(cogpu_kernel_shrink_poll, struct cogpu_shrink_args, struct poll_shared, COGPU_SHRINK_THREADS,
       8) {
    for (uint64_t task = block_index(); task < args->tasks; task += block_count()) {
        uint32_t item = (uint32_t)(task % args->across), column = item / args->unit;
        uint32_t row = args->first + (uint32_t)(task / args->across % args->down);
        uint32_t band = (uint32_t)(task / args->across / args->down) + item % args->unit;
        struct poll poll = {passage_of(args, band), column_reach(args, column),
                            row_reach(args, row), 0, 0};
        poll.width = poll.across.end - poll.across.begin;
        poll.voters = poll.width * (poll.down.end - poll.down.begin);
        uint64_t sample = args->method == COGPU_MODE ? poll_mode(args, &poll, shared)
                                                     : poll_median(args, &poll, shared);
        if (thread_index() == 0)
            store_sample(target_at(args, &poll.passage, column, row), sample, args->size);
    }
}

/* Floats without nodata are NaN where nothing is valid; but where mask or alpha of the result say
 * so, they are 0 as all others. */
KERNEL(cogpu_kernel_shrink_blank, struct cogpu_shrink_args, struct nothing_shared,
       COGPU_SHRINK_THREADS, 8) {
    (void)shared;
    for (uint64_t task = block_index(); task < args->tasks; task += block_count()) {
        struct share share = share_of(args, task);
        struct passage passage = passage_of(args, share.band);
        for (uint32_t row = share.row; !share.is_idle && row < share.row + share.rows; row++) {
            const uint8_t *guard = args->guard.data +
                                   (int64_t)(row - args->first) * args->guard.stride_y +
                                   (int64_t)share.item * args->guard.stride_x;
            if (!passage.is_alpha && load_sample(guard, args->guard_size) == 0)
                store_sample(target_at(args, &passage, share.item, row), 0, args->size);
        }
    }
}
