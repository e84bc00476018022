/*
 * Bilinear, cubic and other kernels over the tile of a unit. Pixels with all taps valid are
 * computed four at a time, by the formulas of pixel/warp.h in the same order; the others after
 * them, one by one.
 */
#include "cpu/warp_unit.h"

enum { SCRATCH = UNIT_COLUMNS + LANES };

/* Lane k of `to` is from[k][index]. */
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

static void set_result(const struct warp_row *row, uint32_t i, const struct warp_result *result) {
    row->results[i] = result->value;
    row->is_found[i] = result->is_found;
}

/* Results of some other formula for a row. */
struct other_row {
    double results[UNIT_COLUMNS];
    uint8_t is_found[UNIT_COLUMNS];
};

/* Whether all taps of all pixels of a row are valid: flags are of the taps from `distance` samples
 * before a pixel's origin on. */
static inline bool are_blocks_valid(const struct warp_row *row, uint32_t count,
                                    const uint8_t *flags, size_t distance) {
    uint8_t all = 1;
    for (uint32_t i = 0; i < count; i++)
        all &= row->has_place[i] ? *(flags + row->origin[i] - distance) : 1;
    return all;
}

/* Takes the other results where flags are 0. */
static inline void replace_results(const struct warp_row *row, uint32_t count, const uint8_t *flags,
                                   size_t distance, const struct other_row *other) {
    for (uint32_t i = 0; i < count; i++) {
        if (!row->has_place[i] || *(flags + row->origin[i] - distance))
            continue;
        row->results[i] = other->results[i];
        row->is_found[i] = other->is_found[i];
    }
}

/* ---- bilinear ---- */

/* Taps of four pixels: two by two, at `origin` of each. */
#define LOAD_TWO_BY_TWO(a, b, c, d, memory, origin, width)                                         \
    const double *const a##_from[LANES] = {(memory) + (origin)[0], (memory) + (origin)[1],         \
                                           (memory) + (origin)[2], (memory) + (origin)[3]};        \
    GATHER_LANES(a, a##_from, 0);                                                                  \
    GATHER_LANES(b, a##_from, 1);                                                                  \
    GATHER_LANES(c, a##_from, width);                                                              \
    GATHER_LANES(d, a##_from, width + 1)

/* linear_weight of four pixels. */
static inline __attribute__((always_inline)) void load_linear_weights(const double *x,
                                                                      const double *left,
                                                                      lanes *weights) {
    lanes position, pixel;
    LOAD_LANES(position, x);
    LOAD_LANES(pixel, left);
    *weights = 1.5 - (position - pixel);
}

/* bilinear_result with valid taps. */
static inline __attribute__((always_inline)) void bilinear_row(const struct warp_unit *unit,
                                                               const struct warp_row *row,
                                                               double *results) {
    uint32_t width = unit->tile.width;
    for (uint32_t i = 0; i < unit->columns; i += LANES) {
        lanes across, down;
        LOAD_TWO_BY_TWO(a, b, c, d, unit->values, row->origin + i, width);
        load_linear_weights(row->x + i, row->left + i, &across);
        load_linear_weights(row->y + i, row->top + i, &down);
        lanes upper = a * across + b * (1 - across), lower = c * across + d * (1 - across);
        lanes result = upper * down + lower * (1 - down);
        STORE_LANES(result, results + i);
    }
}

/* bilinear_result with invalid taps, whose values and masks are 0: they add nothing. */
static inline __attribute__((always_inline)) void masked_bilinear_row(const struct warp_unit *unit,
                                                                      const struct warp_row *row,
                                                                      struct other_row *other) {
    uint32_t width = unit->tile.width;
    double weights[UNIT_COLUMNS];
    for (uint32_t i = 0; i < unit->columns; i += LANES) {
        lanes across, down;
        LOAD_TWO_BY_TWO(a, b, c, d, unit->values, row->origin + i, width);
        LOAD_TWO_BY_TWO(is_a, is_b, is_c, is_d, unit->masks, row->origin + i, width);
        load_linear_weights(row->x + i, row->left + i, &across);
        load_linear_weights(row->y + i, row->top + i, &down);
        lanes rest = 1 - across, below = 1 - down;
        lanes sum =
            0 + a * (across * down) + b * (rest * down) + c * (across * below) + d * (rest * below);
        lanes weight = 0 + is_a * (across * down) + is_b * (rest * down) + is_c * (across * below) +
                       is_d * (rest * below);
        STORE_LANES(sum, other->results + i);
        STORE_LANES(weight, weights + i);
    }
    for (uint32_t i = 0; i < unit->columns; i++) {
        other->results[i] = weights[i] == 1 ? other->results[i] : other->results[i] / weights[i];
        other->is_found[i] = weights[i] >= 1e-5;
    }
}

BODY cogpu_warp_bilinear_body(const struct warp_args *args, struct warp_unit *unit) {
    struct other_row masked;
    (void)args;
    if (!unit->tile.are_all_valid)
        cogpu_warp_find_blocks(unit, 2, unit->squares);
    EACH_UNIT_ROW(unit, j) {
        const struct warp_row row = row_of_unit(unit, j);
        bilinear_row(unit, &row, row.results);
        memcpy(row.is_found, row.has_place, unit->columns);
        if (unit->tile.are_all_valid || are_blocks_valid(&row, unit->columns, unit->squares, 0))
            continue;
        masked_bilinear_row(unit, &row, &masked);
        replace_results(&row, unit->columns, unit->squares, 0, &masked);
    }
}
FOR_AVX2(extern, cogpu_warp_bilinear, (const struct warp_args *args, struct warp_unit *unit),
         (args, unit))

/* ---- four by four, six by six ---- */

#define SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)

/* to[k] has lane k of all four. */
static inline __attribute__((always_inline)) void transpose(const lanes from[LANES],
                                                            lanes to[LANES]) {
    lanes ab_low = SHUFFLE(from[0], from[1], 0, 4, 2, 6);
    lanes ab_high = SHUFFLE(from[0], from[1], 1, 5, 3, 7);
    lanes cd_low = SHUFFLE(from[2], from[3], 0, 4, 2, 6);
    lanes cd_high = SHUFFLE(from[2], from[3], 1, 5, 3, 7);
    to[0] = SHUFFLE(ab_low, cd_low, 0, 1, 4, 5);
    to[1] = SHUFFLE(ab_high, cd_high, 0, 1, 4, 5);
    to[2] = SHUFFLE(ab_low, cd_low, 2, 3, 6, 7);
    to[3] = SHUFFLE(ab_high, cd_high, 2, 3, 6, 7);
}

enum { FIXED_TAPS = 6 }; /* at most, along an axis */

/* Weights of a row: of tap k of pixel i. */
typedef double row_weights[FIXED_TAPS][SCRATCH];

static inline __attribute__((always_inline)) void find_cubic_weights(const double *restrict x,
                                                                     const double *restrict left,
                                                                     row_weights weights) {
    for (uint32_t i = 0; i < UNIT_COLUMNS; i++) {
        double own[4];
        cubic_weights(x[i], left[i], own);
        for (uint32_t k = 0; k < 4; k++)
            weights[k][i] = own[k];
    }
}

/* weigh_four, or more, down the columns of four pixels, each with its square of taps; then all are
 * transposed: columns[k] is column k of each pixel. */
static inline __attribute__((always_inline)) void sum_columns(const double *const from[LANES],
                                                              uint32_t width, uint32_t taps,
                                                              row_weights down, uint32_t i,
                                                              lanes *columns) {
    for (uint32_t part = 0; part < taps; part += LANES) {
        lanes sums[LANES];
        for (uint32_t p = 0; p < LANES; p++) {
            const double *at = from[p] + part;
            lanes row;
            LOAD_LANES(row, at);
            sums[p] = row * down[0][i + p];
            for (uint32_t k = 1; k < taps; k++) {
                LOAD_LANES(row, at + (size_t)k * width);
                sums[p] += row * down[k][i + p];
            }
        }
        transpose(sums, columns + part);
    }
}

/* Squares of taps begin `distance` samples before a pixel's origin. */
#define SQUARES_OF_PIXELS(name, unit, row, i, distance)                                            \
    const double *name[LANES];                                                                     \
    for (uint32_t p = 0; p < LANES; p++)                                                           \
    name[p] = (unit)->values +                                                                     \
              ((row)->has_place[(i) + p] ? (row)->origin[(i) + p] - (int32_t)(distance) : 0)

static inline __attribute__((always_inline)) void cubic_row(const struct warp_unit *unit,
                                                            const struct warp_row *row,
                                                            row_weights across, row_weights down) {
    uint32_t width = unit->tile.width;
    find_cubic_weights(row->x, row->left, across);
    find_cubic_weights(row->y, row->top, down);
    for (uint32_t i = 0; i < unit->columns; i += LANES) {
        lanes columns[LANES], weight, result;
        SQUARES_OF_PIXELS(from, unit, row, i, width + 1);
        sum_columns(from, width, 4, down, i, columns);
        LOAD_LANES(weight, across[0] + i);
        result = columns[0] * weight;
        for (uint32_t k = 1; k < 4; k++) {
            LOAD_LANES(weight, across[k] + i);
            result += columns[k] * weight;
        }
        STORE_LANES(result, row->results + i);
    }
    memcpy(row->is_found, row->has_place, unit->columns);
}

/* With invalid taps: bilinear. */
BODY cogpu_warp_cubic_body(const struct warp_args *args, struct warp_unit *unit) {
    size_t distance = unit->tile.width + 1;
    row_weights across, down;
    struct other_row plain, masked;
    (void)args;
    if (!unit->tile.are_all_valid) {
        cogpu_warp_find_blocks(unit, 2, unit->squares);
        cogpu_warp_find_blocks(unit, 4, unit->blocks);
    }
    EACH_UNIT_ROW(unit, j) {
        struct warp_row row = row_of_unit(unit, j);
        cubic_row(unit, &row, across, down);
        if (unit->tile.are_all_valid ||
            are_blocks_valid(&row, unit->columns, unit->blocks, distance))
            continue;
        bilinear_row(unit, &row, plain.results);
        memcpy(plain.is_found, row.has_place, unit->columns);
        replace_results(&row, unit->columns, unit->blocks, distance, &plain);
        if (are_blocks_valid(&row, unit->columns, unit->squares, 0))
            continue;
        masked_bilinear_row(unit, &row, &masked);
        replace_results(&row, unit->columns, unit->squares, 0, &masked);
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
    if (valid == 0 || !has_enough_taps(method, valid, all))
        return no_result();
    if (valid == all)
        mean = mean_of_valid_taps(unit->values + first, unit->tile.width, columns, rows,
                                  across->weights, down);
    else
        mean = mean_of_some_taps(unit, first, columns, rows, across->weights, down->weights);
    return finish_convolution(args, method, &mean);
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

/* Weights of a kernel that does not grow. */
static inline __attribute__((always_inline)) void find_fixed_weights(uint32_t method, uint32_t taps,
                                                                     const double *restrict x,
                                                                     const double *restrict left,
                                                                     row_weights weights) {
    for (uint32_t k = 0; k < taps; k++)
        for (uint32_t i = 0; i < UNIT_COLUMNS; i++) {
            double delta = x[i] - 0.5 - left[i];
            weights[k][i] = filter_weight(method, (double)k + 1 - taps / 2 - delta);
        }
}

/* convolved_result with valid taps, of a kernel that does not grow. */
static inline __attribute__((always_inline)) void convolve_row(const struct warp_unit *unit,
                                                               const struct warp_row *row,
                                                               uint32_t method, uint32_t taps,
                                                               row_weights across,
                                                               row_weights down) {
    uint32_t width = unit->tile.width, distance = (taps / 2 - 1) * (width + 1);
    double weights[UNIT_COLUMNS];
    find_fixed_weights(method, taps, row->x, row->left, across);
    find_fixed_weights(method, taps, row->y, row->top, down);
    for (uint32_t i = 0; i < unit->columns; i += LANES) {
        lanes columns[2 * LANES], weight, of_column, sum = {0}, total = {0};
        SQUARES_OF_PIXELS(from, unit, row, i, distance);
        sum_columns(from, width, taps, down, i, columns);
        LOAD_LANES(of_column, down[0] + i);
        for (uint32_t k = 1; k < taps; k++) {
            LOAD_LANES(weight, down[k] + i);
            of_column += weight;
        }
        for (uint32_t k = 0; k < taps; k++) {
            LOAD_LANES(weight, across[k] + i);
            sum += columns[k] * weight;
            total += of_column * weight;
        }
        STORE_LANES(sum, row->results + i);
        STORE_LANES(total, weights + i);
    }
    for (uint32_t i = 0; i < unit->columns; i++) {
        bool is_normal = fabs(weights[i] - 1) <= 1e-5;
        row->results[i] = is_normal ? row->results[i] : row->results[i] / weights[i];
        row->is_found[i] = row->has_place[i] & (weights[i] >= 1e-6);
    }
}

/* With invalid taps pixel by pixel. */
static inline __attribute__((always_inline)) void convolve_fixed(const struct warp_args *args,
                                                                 uint32_t method, uint32_t taps,
                                                                 struct warp_unit *unit) {
    struct warp_axis_taps columns = {.position = NAN}, rows = {.position = NAN};
    size_t distance = (taps / 2 - 1) * ((size_t)unit->tile.width + 1);
    row_weights across, down;
    if (!unit->tile.are_all_valid)
        cogpu_warp_find_blocks(unit, taps, unit->blocks);
    EACH_UNIT_ROW(unit, j) {
        const struct warp_row row = row_of_unit(unit, j);
        convolve_row(unit, &row, method, taps, across, down);
        if (unit->tile.are_all_valid ||
            are_blocks_valid(&row, unit->columns, unit->blocks, distance))
            continue;
        EACH_UNIT_COLUMN(unit, i) {
            if (!row.has_place[i] || *(unit->blocks + row.origin[i] - distance))
                continue;
            find_axis_taps(method, &args->across, row.x[i], args->x, args->width, &columns);
            find_axis_taps(method, &args->down, row.y[i], args->y, args->height, &rows);
            struct warp_result result = convolve_taps(args, method, unit, &columns, &rows);
            set_result(&row, i, &result);
        }
    }
}

BODY cogpu_warp_convolve_body(const struct warp_args *args, struct warp_unit *unit) {
    bool grows = args->across.scale < 1 || args->down.scale < 1;
    struct warp_axis_taps columns[UNIT_COLUMNS];
    if (!grows && args->method == COGPU_RESAMPLE_LANCZOS)
        convolve_fixed(args, COGPU_RESAMPLE_LANCZOS, 6, unit);
    else if (!grows)
        convolve_fixed(args, COGPU_RESAMPLE_CUBICSPLINE, 4, unit);
    else if (args->method == COGPU_RESAMPLE_BILINEAR)
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
