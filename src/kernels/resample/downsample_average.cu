/*
 * Averages of pairs of columns that are side by side in memory, without mask and alpha: most of
 * what pyramids are made of. A thread loads a vector of 16 bytes of each source row, which is
 * `pairs` pairs of columns, and stores half a vector of each row of the result:
 *
 *   source row y      | a0 a1 | a2 a3 | ... |     16 bytes, one thread
 *   source row y + 1  | b0 b1 | b2 b3 | ... |
 *   result               r0      r1     ...        8 bytes
 *
 * The last vector of a row begins early where the width is no multiple of `pairs`; it recomputes
 * samples of the thread before and stores only its own. Threads share nothing.
 */
#include "kernels/resample/downsample_weights.h"

enum { VECTOR = 16, PAIRS_MAX = VECTOR / 2 };

DEVICE_FN uint32_t pairs_of_type(uint32_t type) {
    return VECTOR / 2 / sample_bytes(type);
}

/* By loads as wide as the address allows. No byte outside of the vector is read. */
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

DEVICE_FN void load_pairs(const struct cogpu_downsample_args *args, const struct band_view *view,
                          uint32_t type, uint32_t x, uint32_t y, uint64_t *samples) {
    words4 v = load_vector(source_at(args, view->from, x, y));
    uint32_t words[4] = {v.x, v.y, v.z, v.w}, bits = 8 * sample_bytes(type);
    UNROLL for (uint32_t i = 0; i < 2 * pairs_of_type(type); i++) {
        uint32_t word = words[i * bits / 32];
        if (bits == 64)
            samples[i] = (uint64_t)words[2 * i + 1] << 32 | words[2 * i];
        else
            samples[i] = bits == 32 ? word : word >> i * bits % 32 & ((1u << bits % 32) - 1);
    }
}

DEVICE_FN void average_squares(const struct cogpu_downsample_args *args,
                               const struct band_view *view, uint32_t type, uint32_t column,
                               uint32_t y, uint64_t *made) {
    uint64_t upper[2 * PAIRS_MAX], lower[2 * PAIRS_MAX];
    load_pairs(args, view, type, 2 * column, y, upper);
    load_pairs(args, view, type, 2 * column, y + 1, lower);
    UNROLL for (uint32_t i = 0; i < pairs_of_type(type); i++) {
        made[i] = average_square(args, type, column + i, upper + 2 * i, lower + 2 * i);
    }
}

DEVICE_FN void average_all(const struct cogpu_downsample_args *args, const struct band_view *view,
                           uint32_t type, uint32_t column, const struct weights *down,
                           uint64_t *made) {
    double divisor = average_divisor(args->method, type, 2, down->count), scale = 1 / divisor;
    double results[PAIRS_MAX] = {0}, sum = 0;
    struct weight_cursor cursor = begin_weights(down);
    for (uint32_t y = down->support.begin; y < down->support.end; y++) {
        uint64_t samples[2 * PAIRS_MAX];
        double w = next_weight(down, &cursor);
        load_pairs(args, view, type, 2 * column, y, samples);
        UNROLL for (uint32_t i = 0; i < pairs_of_type(type); i++) {
            double left = sample_to_double(type, samples[2 * i]) * scale;
            results[i] += (left + sample_to_double(type, samples[2 * i + 1]) * scale) * w;
        }
        sum += w;
    }
    UNROLL for (uint32_t i = 0; i < pairs_of_type(type); i++) {
        made[i] = finish_sample(args, type, results[i] / (2 * sum) * divisor, 2 * sum, view->empty);
    }
}

DEVICE_FN void average_valid(const struct cogpu_downsample_args *args, const struct band_view *view,
                             uint32_t type, uint32_t column, const struct weights *down,
                             uint64_t *made) {
    double results[PAIRS_MAX] = {0}, weights[PAIRS_MAX] = {0};
    struct weight_cursor cursor = begin_weights(down);
    for (uint32_t y = down->support.begin; y < down->support.end; y++) {
        uint64_t samples[2 * PAIRS_MAX];
        double w = next_weight(down, &cursor);
        load_pairs(args, view, type, 2 * column, y, samples);
        UNROLL for (uint32_t i = 0; i < pairs_of_type(type); i++) {
            double left = sample_to_double(type, samples[2 * i]);
            double right = sample_to_double(type, samples[2 * i + 1]);
            bool has_left = is_valid(args, type, samples[2 * i], left);
            bool has_right = is_valid(args, type, samples[2 * i + 1], right);
            double line = (has_left ? left : 0) + (has_right ? right : 0);
            results[i] += line * w;
            weights[i] += (double)(has_left + has_right) * w;
        }
    }
    UNROLL for (uint32_t i = 0; i < pairs_of_type(type); i++) {
        made[i] = finish_sample(args, type, weights[i] > 0 ? results[i] / weights[i] : 0,
                                weights[i], view->empty);
    }
}

DEVICE_FN void average_pairs(const struct cogpu_downsample_args *args, const struct band_view *view,
                             uint32_t type, uint32_t column, const struct weights *down,
                             uint64_t *made) {
    uint64_t valid_only[PAIRS_MAX];
    bool has_nan = false;
    if (!args->nodata.has_nodata) {
        if (down->count == 2)
            average_squares(args, view, type, column, down->support.begin, made);
        else
            average_all(args, view, type, column, down, made);
        UNROLL for (uint32_t i = 0; i < pairs_of_type(type); i++) {
            has_nan = has_nan || is_nan_result(made[i], type);
        }
        if (!has_nan)
            return;
    }
    average_valid(args, view, type, column, down, valid_only);
    UNROLL for (uint32_t i = 0; i < pairs_of_type(type); i++) {
        made[i] = args->nodata.has_nodata || is_nan_result(made[i], type) ? valid_only[i] : made[i];
    }
}

/* Stores samples from `begin` on: those before it belong to another thread. */
DEVICE_FN void store_pairs(uint8_t *to, uint32_t type, uint32_t begin, const uint64_t *made) {
    const uint32_t size = sample_bytes(type);
    uint64_t all = 0;
    UNROLL for (uint32_t i = 0; i < pairs_of_type(type); i++) {
        all |= (made[i] & UINT64_MAX >> (64 - 8 * size)) << 8 * size * i;
    }
    if (begin == 0 && (uintptr_t)to % sizeof all == 0)
        store_sample(to, all, sizeof all);
    else
        for (uint32_t i = begin; i < pairs_of_type(type); i++)
            store_sample(to + i * size, all >> 8 * size * i, size);
}

DEVICE_FN void compute_averages(const struct cogpu_downsample_args *args, uint32_t type) {
    for (uint64_t task = block_index(); task < args->tasks; task += block_count()) {
        struct downsample_item mine = item_of_thread(args, task);
        struct band_view view = view_of_band(args, mine.band);
        uint32_t first = mine.item * pairs_of_type(type);
        uint32_t column = min_u32(first, args->to_width - pairs_of_type(type));
        for (uint32_t row = mine.row; !mine.is_idle && row < mine.row + mine.rows; row++) {
            struct support support =
                resampling_support(COGPU_RESAMPLE_AVERAGE, args->from_height, args->ratio_y, 0, row);
            struct weights down = weights_of(COGPU_RESAMPLE_AVERAGE, support, args->ratio_y, row, NULL, 0);
            uint64_t made[PAIRS_MAX] = {0};
            average_pairs(args, &view, type, column, &down, made);
            store_pairs(target_at(args, &view, column, row), type, first - column, made);
        }
    }
}

#define AVERAGE_KERNEL(name, type)                                                                 \
    KERNEL(cogpu_kernel_downsample_average_##name, struct cogpu_downsample_args,                   \
           struct nothing_shared, COGPU_DOWNSAMPLE_THREADS, 8) {                                   \
        (void)shared;                                                                              \
        compute_averages(args, type);                                                              \
    }

COGPU_DOWNSAMPLE_AVERAGE_TYPES(AVERAGE_KERNEL)
