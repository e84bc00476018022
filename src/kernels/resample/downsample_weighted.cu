/*
 * Average, rms, bilinear and cubic: weighted sums. A thread computes one column of the result, four
 * rows of it, from the support of that column and row:
 *
 *              across: weights of the columns          result = sum over y of
 *                x0   x1   x2                                     down[y] * sum over x of
 *   down:  y0    .    .    .                                                across[x] * sample
 *          y1    .    .    .
 *
 * Shared memory: weights of each thread's column (a column of `across`, used by that thread alone)
 * and of the rows, which the first threads compute for all. sync_block is between computing the
 * rows' weights and using them, and again before the next task overwrites them.
 */
#include "kernels/resample/downsample_weights.h"

struct weighted_shared {
    double across[COGPU_DOWNSAMPLE_TAPS][COGPU_DOWNSAMPLE_THREADS];
    double down[COGPU_DOWNSAMPLE_ROWS][COGPU_DOWNSAMPLE_TAPS];
    struct weights rows[COGPU_DOWNSAMPLE_ROWS];
};

/* ---- valid samples only ---- */

/* Runs of valid samples or lines, of which a cubic needs some length. */
struct valid_run {
    uint32_t length, longest;
};

DEVICE_FN void extend_run(struct valid_run *run, bool is_valid) {
    run->length = is_valid ? run->length + 1 : 0;
    if (run->length > run->longest)
        run->longest = run->length;
}

DEVICE_FN bool is_run_enough(const struct valid_run *run, const struct weights *weights) {
    return run->longest >= valid_run_needed(weights->method, weights->count);
}

/* The sum of a line's valid samples, and the weight they have. With kernels a line weighs 1,
 * however few of its samples are valid. */
DEVICE_FN double sum_valid_line(const struct cogpu_downsample_args *args,
                                const struct band_view *view, uint32_t type,
                                const struct weights *across, uint32_t y, double *weight) {
    struct weight_cursor cursor = begin_weights(across);
    struct valid_run run = {0, 0};
    double sum = 0, weights = 0;
    for (uint32_t x = across->support.begin; x < across->support.end; x++) {
        uint64_t sample = load_source(args, view, type, x, y);
        double value = sample_to_double(type, sample), w = next_weight(across, &cursor);
        uint32_t valid =
            is_valid(args, type, sample, value) ? weight_of_guard(args, view, type, x, y) : 0;
        if (args->method == COGPU_RESAMPLE_RMS)
            value *= value;
        if (valid) {
            sum += value * w * valid;
            weights += w * valid;
        }
        extend_run(&run, valid != 0);
    }
    *weight = weights;
    if (!resampling_has_kernel(args->method))
        return sum;
    bool is_usable = weights > 0 && is_run_enough(&run, across);
    *weight = is_usable;
    return is_usable ? sum / weights : 0;
}

DEVICE_FN uint64_t sum_valid(const struct cogpu_downsample_args *args, const struct band_view *view,
                             uint32_t type, const struct weights *across,
                             const struct weights *down) {
    struct weight_cursor cursor = begin_weights(down);
    struct valid_run run = {0, 0};
    double result = 0, weights = 0;
    for (uint32_t y = down->support.begin; y < down->support.end; y++) {
        double line_weight, w = next_weight(down, &cursor);
        double line = sum_valid_line(args, view, type, across, y, &line_weight);
        result += line * w;
        weights += line_weight * w;
        extend_run(&run, line_weight > 0);
    }
    if (!is_run_enough(&run, down))
        weights = 0;
    result = weights > 0 ? result / weights : 0;
    return finish_sample(args, type, args->method == COGPU_RESAMPLE_RMS ? sqrt(result) : result, weights,
                         view->empty);
}

/* ---- all samples ---- */

/* A NaN makes NaN of every result whose support it is in. */
DEVICE_FN uint64_t sum_all(const struct cogpu_downsample_args *args, const struct band_view *view,
                           uint32_t type, const struct weights *across,
                           const struct weights *down) {
    double divisor = average_divisor(args->method, type, across->count, down->count);
    double scale = 1 / divisor;
    struct weight_cursor rows = begin_weights(down);
    double result = 0, sum = 0;
    for (uint32_t y = down->support.begin; y < down->support.end; y++) {
        struct weight_cursor cursor = begin_weights(across);
        double line = 0, w = next_weight(down, &rows);
        for (uint32_t x = across->support.begin; x < across->support.end; x++) {
            double value = sample_to_double(type, load_source(args, view, type, x, y));
            if (args->method == COGPU_RESAMPLE_RMS)
                value *= value;
            line += value * scale * next_weight(across, &cursor);
        }
        result += line * w;
        sum += w;
    }
    double weights = across->sum * sum;
    result = result / weights * divisor;
    return finish_sample(args, type, args->method == COGPU_RESAMPLE_RMS ? sqrt(result) : result, weights,
                         view->empty);
}

DEVICE_FN uint64_t average_square_at(const struct cogpu_downsample_args *args,
                                     const struct band_view *view, uint32_t type, uint32_t column,
                                     uint32_t y) {
    uint32_t x = 2 * column;
    uint64_t upper[2] = {load_source(args, view, type, x, y),
                         load_source(args, view, type, x + 1, y)};
    uint64_t lower[2] = {load_source(args, view, type, x, y + 1),
                         load_source(args, view, type, x + 1, y + 1)};
    return average_square(args, type, column, upper, lower);
}

DEVICE_FN uint64_t compute_sample(const struct cogpu_downsample_args *args,
                                  const struct band_view *view, uint32_t type, uint32_t column,
                                  const struct weights *across, const struct weights *down) {
    bool needs_validity = args->guard.data || args->nodata.has_nodata;
    uint64_t sample = 0;
    if (!needs_validity) {
        bool is_square =
            is_made_of_squares(args->method, args->from_width, args->to_width, down->count);
        struct weights even = *down;
        if (is_square)
            even.first = even.last = 1;
        sample = args->method == COGPU_RESAMPLE_AVERAGE && is_square
                     ? average_square_at(args, view, type, column, down->support.begin)
                     : sum_all(args, view, type, across, &even);
        /* NaN is never valid, but rare: compute again without it. */
        needs_validity = is_nan_result(sample, type);
    }
    return needs_validity ? sum_valid(args, view, type, across, down) : sample;
}

/* ---- kernels ---- */

DEVICE_FN void compute_weighted(const struct cogpu_downsample_args *args,
                                struct weighted_shared *shared, uint32_t type) {
    for (uint64_t task = block_index(); task < args->tasks; task += block_count()) {
        struct downsample_item mine = item_of_thread(args, task);
        struct band_view view = view_of_band(args, mine.band);
        uint32_t k = thread_index(), row = mine.row + k;
        if (k < mine.rows)
            shared->rows[k] = weights_of(args->method, row_support(args, row), args->ratio_y, row,
                                         shared->down[k], 1);
        sync_block();
        if (!mine.is_idle) {
            struct weights across =
                weights_of(args->method, column_support(args, mine.item), args->ratio_x, mine.item,
                           &shared->across[0][thread_index()], COGPU_DOWNSAMPLE_THREADS);
            for (k = 0; k < mine.rows; k++)
                store_sample(
                    target_at(args, &view, mine.item, mine.row + k),
                    compute_sample(args, &view, type, mine.item, &across, &shared->rows[k]),
                    sample_bytes(type));
        }
        sync_block();
    }
}

#define WEIGHTED_KERNEL(name, type)                                                                \
    KERNEL(cogpu_kernel_downsample_weighted_##name, struct cogpu_downsample_args,                  \
           struct weighted_shared, COGPU_DOWNSAMPLE_THREADS, 5) {                                  \
        compute_weighted(args, shared, type);                                                      \
    }

COGPU_DOWNSAMPLE_WEIGHTED_TYPES(WEIGHTED_KERNEL)
WEIGHTED_KERNEL(any, args->type)
