/*
 * Computes one row of one band of a tile, by one of four ways:
 *
 *   nearest    copies samples
 *   squares    averages of two by two, all valid: a loop of its own, by far the most frequent
 *   sums       average, rms, bilinear, cubic: weighted lines of the source, then a sum of lines
 *   selection  mode, min, max, median: all candidates of a column
 *
 * Sums assume first that all samples are valid, unless there is nodata, a mask or alpha. Where a
 * NaN then turns up in the result, those samples are computed again from valid samples only.
 */
#include "cpu/downsample_tile.h"
#include "cpu/samples.h"

#include <math.h>
#include <string.h>

/* ---- validity ---- */

#define WEIGH_BY_ALPHA(kind, bits)                                                                 \
    for (uint32_t i = 0; i < count; i++) {                                                         \
        LOAD_SAMPLE(bits, alpha, alphas, i);                                                       \
        valid[i] = (uint8_t)alpha_weight(method, kind, is_alpha_band, alpha);                      \
    }

/* With a kernel, of uint8 or uint16. */
static void weigh_by_alpha(const struct downsample_tile *tile, const struct band_pass *pass,
                           const uint8_t *restrict alphas, uint8_t *restrict valid) {
    const cogpu_resampling method = tile->downsample->method;
    const uint32_t count = tile->from_count;
    const bool is_alpha_band = pass->from.data == pass->guard.data;
    if (pass->guard.type == COGPU_TYPE_U8)
        WEIGH_BY_ALPHA(COGPU_TYPE_U8, uint8_t)
    else
        WEIGH_BY_ALPHA(COGPU_TYPE_U16, uint16_t)
}

static void weigh_by_guard(struct downsample_tile *tile, const struct band_pass *pass, uint32_t row,
                           uint8_t *valid) {
    cogpu_type type = pass->guard.type;
    uint32_t count = tile->from_count;
    double *values = tile->values[0];
    const uint8_t *guards = cogpu_downsample_fetch_row(tile, &pass->guard, row, tile->guards);
    if (resampling_has_kernel(tile->downsample->method) && !pass->guard.is_mask &&
        (type == COGPU_TYPE_U8 || type == COGPU_TYPE_U16)) {
        weigh_by_alpha(tile, pass, guards, valid);
        return;
    }
    cogpu_cpu_load_doubles(type, guards, count, values);
    for (uint32_t i = 0; i < count; i++)
        valid[i] = values[i] != 0;
}

/* Loads a source row into values[0] and sets the weights by validity: 0 for invalid samples. */
static void load_validated(struct downsample_tile *tile, const struct band_pass *pass, uint32_t row,
                           const uint8_t *samples, uint8_t *valid) {
    uint32_t count = tile->from_count;
    if (pass->guard.data)
        weigh_by_guard(tile, pass, row, valid);
    else
        memset(valid, 1, count);
    cogpu_cpu_load_doubles(pass->from.type, samples, count, tile->values[0]);
    cogpu_downsample_validate(pass->from.type, &pass->nodata, samples, tile->values[0], count,
                              valid);
}

/* ---- nearest ---- */

static void copy_nearest(struct downsample_tile *tile, const struct band_pass *pass, uint32_t row) {
    size_t size = cogpu_type_bytes(pass->from.type);
    const uint8_t *samples = cogpu_downsample_fetch_row(
        tile, &pass->from, row_support(tile->downsample, row).begin, tile->samples[0]);
    for (uint32_t i = 0; i < tile->columns.count; i++)
        memcpy(tile->made + i * size, samples + tile->columns.begin[i] * size, size);
}

/* ---- sums ---- */

static void square_values(double *values, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        values[i] *= values[i];
}

static void take_roots(double *values, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        values[i] = sqrt(values[i]);
}

static void round_line(const struct downsample_tile *tile, double *values) {
    for (uint32_t i = 0; tile->downsample->rounds_lines && i < tile->columns.count; i++)
        values[i] = (double)(float)values[i];
}

/* Returns where in the ring the row's line begins. Computes it unless it is there already. */
static size_t line_of_all(struct downsample_tile *tile, const struct band_pass *pass,
                          uint32_t row) {
    uint32_t slot = row % tile->tile_rows;
    size_t at = (size_t)slot * tile->tile_columns;
    if (tile->all.rows[slot] == row + 1)
        return at;
    const uint8_t *samples = cogpu_downsample_fetch_row(tile, &pass->from, row, tile->samples[0]);
    cogpu_cpu_load_doubles(pass->from.type, samples, tile->from_count, tile->values[0]);
    if (tile->downsample->method == COGPU_RESAMPLE_RMS)
        square_values(tile->values[0], tile->from_count);
    cogpu_downsample_line(&tile->columns, tile->values[0], tile->all.values + at);
    round_line(tile, tile->all.values + at);
    tile->all.rows[slot] = row + 1;
    return at;
}

static size_t line_of_valid(struct downsample_tile *tile, const struct band_pass *pass,
                            uint32_t row) {
    uint32_t slot = row % tile->tile_rows;
    size_t at = (size_t)slot * tile->tile_columns;
    if (tile->valid_only.rows[slot] == row + 1)
        return at;
    const uint8_t *samples = cogpu_downsample_fetch_row(tile, &pass->from, row, tile->samples[0]);
    load_validated(tile, pass, row, samples, tile->valid);
    if (tile->downsample->method == COGPU_RESAMPLE_RMS)
        square_values(tile->values[0], tile->from_count);
    cogpu_downsample_valid_line(tile->downsample->method, &tile->columns, tile->values[0],
                                tile->valid, tile->valid_only.values + at,
                                tile->valid_only.weights + at);
    round_line(tile, tile->valid_only.values + at);
    tile->valid_only.rows[slot] = row + 1;
    return at;
}

static void forget_ring(const struct downsample_tile *tile, const struct line_ring *ring) {
    memset(ring->rows, 0, tile->tile_rows * sizeof *ring->rows);
}

void cogpu_downsample_forget_lines(struct downsample_tile *tile) {
    if (!tile->all.rows)
        return;
    forget_ring(tile, &tile->all);
    forget_ring(tile, &tile->valid_only);
}

static double divisor_of_column(const struct downsample_tile *tile, uint32_t column,
                                uint32_t rows) {
    return average_divisor(tile->downsample->method, tile->downsample->type,
                           tile->columns.taps[column], rows);
}

/* Lines hold scaled samples, so another number of rows makes them useless. */
static void set_scales(struct downsample_tile *tile, uint32_t rows) {
    if (tile->scaled_rows == rows)
        return;
    for (uint32_t i = 0; i < tile->columns.count; i++)
        tile->columns.scales[i] = 1 / divisor_of_column(tile, i, rows);
    tile->scaled_rows = rows;
    forget_ring(tile, &tile->all);
}

static bool has_squares(const struct downsample_tile *tile, struct support rows) {
    const cogpu_resampling_axis axis = cogpu_downsample_axis_x(tile->downsample);
    bool halves = axis.ratio == 2 && axis.offset == floor(axis.offset) &&
                  tile->from_count == 2 * tile->columns.count;
    return is_made_of_squares(tile->downsample->method, halves ? 2 : 1, 1, rows.end - rows.begin);
}

static void compute_row_weights(const struct downsample_tile *tile, uint32_t row) {
    const cogpu_resampling_axis axis = cogpu_downsample_axis_y(tile->downsample);
    cogpu_downsample_weights(tile->downsample->method, &axis, row, tile->row_weights);
}

static void finish_row(struct downsample_tile *tile, const struct band_pass *pass, uint8_t *made) {
    uint32_t count = tile->columns.count;
    if (tile->downsample->method == COGPU_RESAMPLE_RMS)
        take_roots(tile->results, count);
    cogpu_downsample_finish(pass->from.type, &pass->nodata, tile->results, tile->weights, count,
                            made);
}

/* Takes all samples as valid. A NaN makes NaN of every result whose support it is in. */
static void sum_all(struct downsample_tile *tile, const struct band_pass *pass, uint32_t row) {
    struct support support = row_support(tile->downsample, row);
    uint32_t count = tile->columns.count, rows = support.end - support.begin;
    double *restrict results = tile->results, *restrict weights = tile->weights, sum = 0;
    compute_row_weights(tile, row);
    if (has_squares(tile, support))
        tile->row_weights[0] = tile->row_weights[1] = 1;
    set_scales(tile, rows);
    memset(results, 0, count * sizeof *results);
    for (uint32_t k = 0; k < rows; k++) {
        const double *restrict values =
            tile->all.values + line_of_all(tile, pass, support.begin + k);
        double weight = tile->row_weights[k];
        for (uint32_t i = 0; i < count; i++)
            results[i] += values[i] * weight;
        sum += weight;
    }
    for (uint32_t i = 0; i < count; i++) {
        weights[i] = tile->columns.sums[i] * sum;
        results[i] = results[i] / weights[i] * divisor_of_column(tile, i, rows);
    }
    finish_row(tile, pass, tile->made);
}

/* Clears the weight of columns with too few valid lines in a row. */
static void drop_short_runs(struct downsample_tile *tile, struct support support) {
    uint32_t needed = valid_run_needed(tile->downsample->method, support.end - support.begin);
    uint32_t count = tile->columns.count, *restrict runs = tile->runs;
    uint32_t *restrict longest = tile->longest;
    memset(runs, 0, count * sizeof *runs);
    memset(longest, 0, count * sizeof *longest);
    for (uint32_t y = support.begin; y < support.end; y++) {
        const double *restrict weights =
            tile->valid_only.weights + (size_t)(y % tile->tile_rows) * tile->tile_columns;
        for (uint32_t i = 0; i < count; i++) {
            runs[i] = weights[i] > 0 ? runs[i] + 1 : 0;
            longest[i] = runs[i] > longest[i] ? runs[i] : longest[i];
        }
    }
    for (uint32_t i = 0; i < count; i++)
        tile->weights[i] = longest[i] >= needed ? tile->weights[i] : 0;
}

static void sum_valid(struct downsample_tile *tile, const struct band_pass *pass, uint32_t row,
                      uint8_t *made) {
    struct support support = row_support(tile->downsample, row);
    uint32_t count = tile->columns.count;
    double *restrict results = tile->results, *restrict weights = tile->weights;
    compute_row_weights(tile, row);
    memset(results, 0, count * sizeof *results);
    memset(weights, 0, count * sizeof *weights);
    for (uint32_t y = support.begin; y < support.end; y++) {
        size_t at = line_of_valid(tile, pass, y);
        const double *restrict values = tile->valid_only.values + at;
        const double *restrict line_weights = tile->valid_only.weights + at;
        double weight = tile->row_weights[y - support.begin];
        for (uint32_t i = 0; i < count; i++) {
            results[i] += values[i] * weight;
            weights[i] += line_weights[i] * weight;
        }
    }
    if (valid_run_needed(tile->downsample->method, support.end - support.begin))
        drop_short_runs(tile, support);
    for (uint32_t i = 0; i < count; i++)
        results[i] = weights[i] > 0 ? results[i] / weights[i] : 0;
    finish_row(tile, pass, made);
}

/* Averages of squares: what sum_all gives, only faster. */
static void average_squares(struct downsample_tile *tile, const struct band_pass *pass,
                            uint32_t row) {
    cogpu_type type = pass->from.type;
    uint32_t y = row_support(tile->downsample, row).begin, count = tile->columns.count;
    const uint8_t *upper = cogpu_downsample_fetch_row(tile, &pass->from, y, tile->samples[0]);
    const uint8_t *lower = cogpu_downsample_fetch_row(tile, &pass->from, y + 1, tile->samples[1]);
    if (cogpu_downsample_squares(type, upper, lower, count, tile->made))
        return;
    cogpu_cpu_load_doubles(type, upper, 2 * count, tile->values[0]);
    cogpu_cpu_load_doubles(type, lower, 2 * count, tile->values[1]);
    cogpu_downsample_squares(COGPU_TYPE_F64, (uint8_t *)tile->values[0], (uint8_t *)tile->values[1],
                             count, (uint8_t *)tile->results);
    cogpu_downsample_finish(type, &pass->nodata, tile->results, tile->columns.sums, count,
                            tile->made);
}

static void sum_row(struct downsample_tile *tile, const struct band_pass *pass, uint32_t row) {
    cogpu_type type = pass->from.type;
    if (pass->guard.data || pass->nodata.has_nodata) {
        sum_valid(tile, pass, row, tile->made);
        return;
    }
    if (tile->downsample->method == COGPU_RESAMPLE_AVERAGE &&
        has_squares(tile, row_support(tile->downsample, row)))
        average_squares(tile, pass, row);
    else
        sum_all(tile, pass, row);
    if (cogpu_downsample_has_nan(type, tile->made, tile->columns.count)) {
        sum_valid(tile, pass, row, tile->patched);
        cogpu_downsample_patch(type, tile->patched, tile->columns.count, tile->made);
    }
}

/* ---- selection ---- */

static uint32_t collect_candidates(const struct downsample_tile *tile, uint32_t column,
                                   uint32_t rows) {
    const uint32_t taps = tile->columns.taps[column];
    cogpu_downsample_candidate *candidates = tile->candidates;
    uint32_t count = 0;
    for (uint32_t r = 0; r < rows; r++) {
        size_t at = (size_t)r * tile->tile_samples + tile->columns.begin[column];
        UNROLL_4 for (uint32_t k = 0; k < taps; k++) {
            /* Without a branch: an invalid one is overwritten by the next. */
            candidates[count] = (cogpu_downsample_candidate){tile->keys[at + k], count};
            count += tile->valid[at + k] != 0;
        }
    }
    return count;
}

static void select_row(struct downsample_tile *tile, const struct band_pass *pass, uint32_t row) {
    cogpu_type type = pass->from.type;
    struct support support = row_support(tile->downsample, row);
    size_t size = cogpu_type_bytes(type);
    for (uint32_t y = support.begin; y < support.end; y++) {
        size_t at = (size_t)(y - support.begin) * tile->tile_samples;
        const uint8_t *samples = cogpu_downsample_fetch_row(tile, &pass->from, y, tile->samples[0]);
        load_validated(tile, pass, y, samples, tile->valid + at);
        cogpu_downsample_keys(type, samples, tile->from_count, tile->keys + at);
    }
    for (uint32_t i = 0; i < tile->columns.count; i++) {
        uint32_t count = collect_candidates(tile, i, support.end - support.begin);
        if (count)
            cogpu_downsample_select(tile->downsample->method, type, &pass->nodata, tile->candidates,
                                    count, tile->made + i * size);
        else
            cogpu_downsample_store(type, pass->nodata.empty, tile->made + i * size);
    }
}

void cogpu_downsample_row(struct downsample_tile *tile, const struct band_pass *pass,
                          uint32_t row) {
    if (tile->downsample->method == COGPU_RESAMPLE_NEAREST)
        copy_nearest(tile, pass, row);
    else if (selects_sample(tile->downsample->method))
        select_row(tile, pass, row);
    else
        sum_row(tile, pass, row);
}
