/*
 * Bilinear, cubic and other kernels over the tile of a unit. Pixels with all taps valid are
 * computed four at a time, by the formulas of pixel/warp.h in the same order; the others after
 * them, one by one.
 */
#include "cpu/warp_unit.h"

enum { LANES = 4, SCRATCH = UNIT_COLUMNS + LANES };

typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));

#define LOAD_LANES(to, from)  memcpy(&(to), (from), sizeof(lanes))
#define STORE_LANES(from, to) memcpy((to), &(from), sizeof(lanes))

/* Lane k of `to` is from[k][0]. */
#define GATHER_LANES(to, from, index)                                                              \
    const lanes to = {(from)[0][index], (from)[1][index], (from)[2][index], (from)[3][index]}

/* A row of a unit. */
struct warp_row {
    const double *x, *y, *left, *top;
    const int32_t *origin;
    const uint8_t *has_place;
    uint8_t *is_found;
    double *results;
};

static inline struct warp_row row_of_unit(struct warp_unit *unit, uint32_t j) {
    uint32_t at = j * UNIT_COLUMNS;
    return (struct warp_row){.x = unit->x + at,
                             .y = unit->y + at,
                             .left = unit->left + at,
                             .top = unit->top + at,
                             .origin = unit->origin + at,
                             .has_place = unit->has_place + at,
                             .is_found = unit->is_found + at,
                             .results = unit->results + at};
}

static struct warp_point point_of_row(const struct warp_row *row, uint32_t i) {
    return (struct warp_point){row->x[i], row->y[i]};
}

static void set_result(const struct warp_row *row, uint32_t i, const struct warp_result *result) {
    row->results[i] = result->value;
    row->is_found[i] = result->is_found;
}

/* ---- bilinear ---- */

/* With invalid taps: bilinear_result. */
static struct warp_result bilinear_of_tile(const struct warp_args *args,
                                           const struct warp_unit *unit, struct warp_point point,
                                           int32_t origin) {
    double weight_x = linear_weight(point.x, pixel_left_of(point.x));
    double weight_y = linear_weight(point.y, pixel_left_of(point.y));
    struct warp_mean mean = {0, 0, 0};
    for (uint32_t i = 0; i < 4; i++) {
        size_t at = (size_t)origin + i / 2 * unit->tile.width + i % 2;
        double weight = (i % 2 ? 1 - weight_x : weight_x) * (i / 2 ? 1 - weight_y : weight_y);
        if (!unit->valid[at])
            continue;
        mean.sum += unit->values[at] * weight;
        mean.weight += weight;
        mean.density += weight;
    }
    return finish_mean(args, &mean, 1e-5, 0);
}

static inline bool are_two_by_two_valid(const struct warp_unit *unit, int32_t origin) {
    const uint8_t *valid = unit->valid + origin;
    uint32_t width = unit->tile.width;
    return valid[0] & valid[1] & valid[width] & valid[width + 1];
}

static inline __attribute__((always_inline)) void bilinear_row(const struct warp_unit *unit,
                                                               const struct warp_row *row) {
    uint32_t width = unit->tile.width;
    for (uint32_t i = 0; i < unit->columns; i += LANES) {
        const double *from[LANES];
        lanes x, y, left, top;
        for (uint32_t k = 0; k < LANES; k++)
            from[k] = unit->values + row->origin[i + k];
        LOAD_LANES(x, row->x + i);
        LOAD_LANES(y, row->y + i);
        LOAD_LANES(left, row->left + i);
        LOAD_LANES(top, row->top + i);
        GATHER_LANES(a, from, 0);
        GATHER_LANES(b, from, 1);
        GATHER_LANES(c, from, width);
        GATHER_LANES(d, from, width + 1);
        lanes across = 1.5 - (x - left), down = 1.5 - (y - top); /* linear_weight */
        lanes upper = a * across + b * (1 - across), lower = c * across + d * (1 - across);
        lanes result = upper * down + lower * (1 - down);
        STORE_LANES(result, row->results + i);
    }
    memcpy(row->is_found, row->has_place, unit->columns);
}

BODY cogpu_warp_bilinear_body(const struct warp_args *args, struct warp_unit *unit) {
    EACH_UNIT_ROW(unit, j) {
        const struct warp_row row = row_of_unit(unit, j);
        bilinear_row(unit, &row);
        if (unit->tile.are_all_valid)
            continue;
        EACH_UNIT_COLUMN(unit, i) {
            if (!row.has_place[i] || are_two_by_two_valid(unit, row.origin[i]))
                continue;
            struct warp_result result =
                bilinear_of_tile(args, unit, point_of_row(&row, i), row.origin[i]);
            set_result(&row, i, &result);
        }
    }
}
FOR_AVX2(extern, cogpu_warp_bilinear, (const struct warp_args *args, struct warp_unit *unit),
         (args, unit))

/* ---- cubic ---- */

/* cubic_weights for a row: weights[k][i]. */
static inline __attribute__((always_inline)) void cubic_weights_of_row(
    const double *restrict x, const double *restrict left, uint32_t count,
    double weights[restrict 4][SCRATCH]) {
    for (uint32_t i = 0; i < count; i++) {
        double own[4];
        cubic_weights(x[i], left[i], own);
        for (uint32_t k = 0; k < 4; k++)
            weights[k][i] = own[k];
    }
}

static inline bool are_four_by_four_valid(const struct warp_unit *unit, int32_t origin) {
    const uint8_t *valid = unit->valid + origin - unit->tile.width - 1;
    uint32_t all = 0x01010101u;
    for (uint32_t j = 0; j < 4; j++) {
        uint32_t four;
        memcpy(&four, valid + (size_t)j * unit->tile.width, sizeof four);
        all &= four;
    }
    return all == 0x01010101u;
}

#define SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)

/* weigh_four down the columns of pixel k, then across, for four pixels. */
static inline __attribute__((always_inline)) void cubic_row(const struct warp_unit *unit,
                                                            const struct warp_row *row) {
    double across[4][SCRATCH] = {{0}}, down[4][SCRATCH] = {{0}};
    uint32_t width = unit->tile.width;
    cubic_weights_of_row(row->x, row->left, unit->columns, across);
    cubic_weights_of_row(row->y, row->top, unit->columns, down);
    for (uint32_t i = 0; i < unit->columns; i += LANES) {
        lanes columns[LANES], weight[4];
        for (uint32_t k = 0; k < LANES; k++) {
            const double *from =
                unit->values +
                (row->has_place[i + k] ? row->origin[i + k] - (int32_t)width - 1 : 0);
            lanes a, b, c, d;
            LOAD_LANES(a, from);
            LOAD_LANES(b, from + width);
            LOAD_LANES(c, from + 2 * (size_t)width);
            LOAD_LANES(d, from + 3 * (size_t)width);
            columns[k] = ((a * down[0][i + k] + b * down[1][i + k]) + c * down[2][i + k]) +
                         d * down[3][i + k];
        }
        lanes ab_low = SHUFFLE(columns[0], columns[1], 0, 4, 2, 6);
        lanes ab_high = SHUFFLE(columns[0], columns[1], 1, 5, 3, 7);
        lanes cd_low = SHUFFLE(columns[2], columns[3], 0, 4, 2, 6);
        lanes cd_high = SHUFFLE(columns[2], columns[3], 1, 5, 3, 7);
        for (uint32_t k = 0; k < 4; k++)
            LOAD_LANES(weight[k], across[k] + i);
        lanes result = ((SHUFFLE(ab_low, cd_low, 0, 1, 4, 5) * weight[0] +
                         SHUFFLE(ab_high, cd_high, 0, 1, 4, 5) * weight[1]) +
                        SHUFFLE(ab_low, cd_low, 2, 3, 6, 7) * weight[2]) +
                       SHUFFLE(ab_high, cd_high, 2, 3, 6, 7) * weight[3];
        STORE_LANES(result, row->results + i);
    }
    memcpy(row->is_found, row->has_place, unit->columns);
}

/* cubic_result with invalid taps: bilinear. */
static struct warp_result fallback_of_tile(const struct warp_args *args,
                                           const struct warp_unit *unit, struct warp_point point,
                                           int32_t origin) {
    const double *from = unit->values + origin;
    uint32_t width = unit->tile.width;
    if (!are_two_by_two_valid(unit, origin))
        return bilinear_of_tile(args, unit, point, origin);
    double weight_x = linear_weight(point.x, pixel_left_of(point.x));
    double weight_y = linear_weight(point.y, pixel_left_of(point.y));
    return result_of_value(weigh_two(weigh_two(from[0], from[1], weight_x),
                                     weigh_two(from[width], from[width + 1], weight_x), weight_y));
}

BODY cogpu_warp_cubic_body(const struct warp_args *args, struct warp_unit *unit) {
    EACH_UNIT_ROW(unit, j) {
        const struct warp_row row = row_of_unit(unit, j);
        cubic_row(unit, &row);
        if (unit->tile.are_all_valid)
            continue;
        EACH_UNIT_COLUMN(unit, i) {
            if (!row.has_place[i] || are_four_by_four_valid(unit, row.origin[i]))
                continue;
            struct warp_result result =
                fallback_of_tile(args, unit, point_of_row(&row, i), row.origin[i]);
            set_result(&row, i, &result);
        }
    }
}
FOR_AVX2(extern, cogpu_warp_cubic, (const struct warp_args *args, struct warp_unit *unit),
         (args, unit))

/* ---- convolution ---- */

enum { TAPS_MAX = 64 }; /* with more, pixels are computed without a tile */

/* The taps of a position along an axis, kept for the next pixel with the same. */
struct warp_axis_taps {
    double position; /* NaN: none yet */
    double sum;      /* of the weights */
    struct warp_taps taps;
    double weights[TAPS_MAX];
};

static inline __attribute__((always_inline)) void find_axis_taps(uint32_t method,
                                                                 const struct warp_filter *filter,
                                                                 double position, uint32_t window,
                                                                 uint32_t size,
                                                                 struct warp_axis_taps *axis) {
    if (axis->position == position)
        return;
    axis->position = position;
    axis->taps = taps_of_axis(filter, position, window, size);
    uint32_t count = (uint32_t)count_taps(&axis->taps);
    for (uint32_t k = 0; k < count; k++)
        axis->weights[k] = weight_of_tap(method, &axis->taps, axis->taps.first + (int32_t)k);
    axis->sum = 0;
    for (uint32_t k = 0; k < count; k++)
        axis->sum += axis->weights[k];
}

/* Where the taps of a pixel begin in the tile. */
static inline size_t first_tap(const struct warp_tile *tile, const struct warp_axis_taps *across,
                               const struct warp_axis_taps *down) {
    int64_t x = across->taps.origin + across->taps.first - tile->left;
    int64_t y = down->taps.origin + down->taps.first - tile->top;
    return (size_t)y * tile->width + (size_t)x;
}

static inline uint64_t count_valid_taps(const struct warp_unit *unit, size_t first,
                                        uint32_t columns, uint32_t rows) {
    uint64_t valid = 0;
    for (uint32_t j = 0; j < rows; j++)
        for (uint32_t i = 0; i < columns; i++)
            valid += unit->valid[first + (size_t)j * unit->tile.width + i];
    return valid;
}

static inline __attribute__((always_inline)) struct warp_mean mean_of_valid_taps(
    const double *restrict values, uint32_t width, uint32_t columns, uint32_t rows,
    const double *restrict across, const struct warp_axis_taps *restrict down) {
    double sums[TAPS_MAX];
    struct warp_mean mean = {0, 0, 0};
    for (uint32_t i = 0; i < columns; i++)
        sums[i] = 0 + values[i] * down->weights[0];
    for (uint32_t j = 1; j < rows; j++)
        for (uint32_t i = 0; i < columns; i++)
            sums[i] += values[(size_t)j * width + i] * down->weights[j];
    for (uint32_t i = 0; i < columns; i++) {
        mean.sum += sums[i] * across[i];
        mean.weight += down->sum * across[i];
    }
    mean.density = mean.weight;
    return mean;
}

static struct warp_mean mean_of_some_taps(const struct warp_unit *unit, size_t first,
                                          uint32_t columns, uint32_t rows, const double *across,
                                          const double *down) {
    struct warp_mean mean = {0, 0, 0};
    for (uint32_t i = 0; i < columns; i++) {
        double sum = 0, weight = 0;
        for (uint32_t j = 0; j < rows; j++) {
            size_t at = first + (size_t)j * unit->tile.width + i;
            if (!unit->valid[at])
                continue;
            sum += unit->values[at] * down[j];
            weight += down[j];
        }
        mean.sum += sum * across[i];
        mean.weight += weight * across[i];
    }
    mean.density = mean.weight;
    return mean;
}

/* convolved_result. */
static inline __attribute__((always_inline)) struct warp_result convolve_taps(
    const struct warp_args *args, uint32_t method, const struct warp_unit *unit,
    const struct warp_axis_taps *across, const struct warp_axis_taps *down) {
    uint32_t columns = (uint32_t)count_taps(&across->taps);
    uint32_t rows = (uint32_t)count_taps(&down->taps);
    size_t first = first_tap(&unit->tile, across, down);
    uint64_t all = (uint64_t)columns * rows, valid = all;
    struct warp_mean mean;
    if (!unit->tile.are_all_valid)
        valid = count_valid_taps(unit, first, columns, rows);
    if (valid == 0 || (method == COGPU_RESAMPLE_LANCZOS && 2 * valid < all))
        return no_result();
    if (valid == all)
        mean = mean_of_valid_taps(unit->values + first, unit->tile.width, columns, rows,
                                  across->weights, down);
    else
        mean = mean_of_some_taps(unit, first, columns, rows, across->weights, down->weights);
    return finish_mean(args, &mean, 1e-6, 1e-5);
}

static inline __attribute__((always_inline)) void convolve_unit(const struct warp_args *args,
                                                                uint32_t method,
                                                                struct warp_unit *unit,
                                                                struct warp_axis_taps *columns) {
    struct warp_axis_taps down = {.position = NAN};
    EACH_UNIT_COLUMN(unit, i)
    columns[i].position = NAN;
    EACH_UNIT_ROW(unit, j) {
        const struct warp_row row = row_of_unit(unit, j);
        EACH_UNIT_COLUMN(unit, i) {
            struct warp_result result = no_result();
            if (row.has_place[i]) {
                find_axis_taps(method, &args->across, row.x[i], args->x, args->width, &columns[i]);
                find_axis_taps(method, &args->down, row.y[i], args->y, args->height, &down);
                result = convolve_taps(args, method, unit, &columns[i], &down);
            }
            set_result(&row, i, &result);
        }
    }
}

BODY cogpu_warp_convolve_body(const struct warp_args *args, struct warp_unit *unit) {
    struct warp_axis_taps columns[UNIT_COLUMNS];
    if (args->method == COGPU_RESAMPLE_BILINEAR)
        convolve_unit(args, COGPU_RESAMPLE_BILINEAR, unit, columns);
    else if (args->method == COGPU_RESAMPLE_CUBIC)
        convolve_unit(args, COGPU_RESAMPLE_CUBIC, unit, columns);
    else if (args->method == COGPU_RESAMPLE_LANCZOS)
        convolve_unit(args, COGPU_RESAMPLE_LANCZOS, unit, columns);
    else
        convolve_unit(args, COGPU_RESAMPLE_CUBICSPLINE, unit, columns);
}
FOR_AVX2(extern, cogpu_warp_convolve, (const struct warp_args *args, struct warp_unit *unit),
         (args, unit))

bool cogpu_warp_has_few_taps(const struct warp_args *args) {
    return args->across.last - args->across.first < TAPS_MAX &&
           args->down.last - args->down.first < TAPS_MAX;
}
