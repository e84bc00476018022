/*
 * Takes a window of a level, at any strides, hands on one of the next level. The kernel does the
 * arithmetic; here rows are fetched for it, told valid from invalid, and put back.
 *
 * A tile, which is so many columns that the nearest caches hold its rows, goes down all rows of one
 * band before the next begins. The mask is shrunk as one more band, of which 0 is invalid, and so
 * it is 0 where nothing valid is in reach, by the method's own rule; but with mode the majority
 * decides on it too, as with GDAL.
 */
#include "backend/cpu/cpu_shrink_kernel.h"

#include "base/checked.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* TILE: columns of the source, about, that are worked on at once. */
enum { TILE = 2048, LARGEST_FACTOR = 1024, LARGEST_SAMPLE = 16 };

/* One band of a raster, or one part of a complex one. */
struct plane {
    cogpu_type type;
    uint8_t *data; /* of its row `first`, column `left` */
    uint32_t first, left;
    int64_t stride_x, stride_y;
    bool is_mask; /* anything but 0 stands for 255 */
};

/* Rows of the source, weighed for each column of a tile, in a ring by their number. */
struct lines {
    double *values, *weights;
    uint32_t *rows; /* number + 1; 0: none */
};

/* The seat's room, carved up for one tile. */
struct work {
    const cogpu_shrink *shrink;
    cogpu_shrink_columns columns;
    uint32_t tile_columns, tile_samples, tile_rows; /* at most: of the result, source, reach */
    uint32_t end;                                   /* of the columns of the result */
    uint32_t x, from_x, from_count;                 /* the tile's first column; its source */
    uint8_t *samples[2], *guards, *made, *mended, *valid;
    double *values[2], *results, *weights, *row_weights;
    uint32_t scaled_rows;       /* that the columns' scales are for */
    struct lines plain, judged; /* plain ones are without weights */
    uint32_t *runs, *longest;   /* of valid lines */
    uint64_t *keys;
    cogpu_shrink_vote *votes;
};

/* A band on its way. */
struct passage {
    struct plane from, to, guard; /* guard: 0 where the band is invalid; no data: none */
    cogpu_shrink_marks marks;
};

static bool is_complex(cogpu_type type) {
    return type >= COGPU_CI16;
}

static bool is_float(cogpu_type type) {
    return type >= COGPU_F16 && type <= COGPU_F64;
}

static bool chooses(cogpu_resampling method) {
    return method >= COGPU_MODE;
}

static bool has_nodata(const cogpu_shrink *shrink) {
    return shrink->nodata.text && shrink->nodata.matches;
}

/* ---- what is asked for ---- */

static bool is_resampled(const cogpu_shrink *shrink) {
    if (!is_complex(shrink->type) || shrink->method == COGPU_NEAREST)
        return true;
    bool is_float = shrink->type == COGPU_CF32 || shrink->type == COGPU_CF64;
    return is_float && shrink->method == COGPU_AVERAGE && !has_nodata(shrink) &&
           !shrink->alpha_band;
}

cogpu_status cogpu_shrink_check(const cogpu_shrink *shrink, cogpu_error *error) {
    static const char *const names[] = {"default", "nearest", "average", "rms", "bilinear",
                                        "cubic",   "mode",    "min",     "max", "median"};
    assert(shrink->to_width && shrink->to_width <= shrink->from_width);
    assert(shrink->to_height && shrink->to_height <= shrink->from_height);
    if (!is_resampled(shrink))
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "overviews of %s samples by %s%s: choose nearest",
                          cogpu_type_name(shrink->type), names[shrink->method],
                          has_nodata(shrink) ? " with nodata" : "");
    if (divide_up(shrink->from_width, shrink->to_width) > LARGEST_FACTOR ||
        divide_up(shrink->from_height, shrink->to_height) > LARGEST_FACTOR)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "an overview of %u x %u is made of %u x %u pixels: at most by a factor "
                          "of %d at once, ask for one between",
                          shrink->to_width, shrink->to_height, shrink->from_width,
                          shrink->from_height, LARGEST_FACTOR);
    return COGPU_OK;
}

static cogpu_reach column_reach(const cogpu_shrink *shrink, uint32_t x) {
    return cogpu_shrink_reach(shrink->method, shrink->from_width, shrink->to_width, x);
}

static cogpu_reach row_reach(const cogpu_shrink *shrink, uint32_t y) {
    return cogpu_shrink_reach(shrink->method, shrink->from_height, shrink->to_height, y);
}

void cogpu_shrink_needs(const cogpu_shrink *shrink, uint32_t first, uint32_t count, uint32_t *begin,
                        uint32_t *end) {
    *begin = row_reach(shrink, first).begin;
    *end = count ? row_reach(shrink, first + count - 1).end : *begin;
}

void cogpu_shrink_needs_columns(const cogpu_shrink *shrink, uint32_t first, uint32_t count,
                                uint32_t *begin, uint32_t *end) {
    *begin = column_reach(shrink, first).begin;
    *end = count ? column_reach(shrink, first + count - 1).end : *begin;
}

/* ---- room ---- */

/* Samples that one is made of at most: a kernel of radius 2, and what of its ends is cut. */
static uint32_t widest_reach(uint32_t from, uint32_t to) {
    uint64_t reach = 4 * divide_up(from, to) + 2;
    return reach < from ? (uint32_t)reach : from;
}

static void *carve(uint8_t *room, size_t *used, size_t count, size_t size) {
    enum { LINE = 64 };
    size_t at = *used;
    *used += (count * size + LINE - 1) / LINE * LINE;
    return room ? room + at : NULL;
}

/* The bytes of the room that is carved up; none of it is where `room` is NULL. */
static size_t carve_all(struct work *work, uint8_t *room) {
    size_t used = 0, columns = work->tile_columns, samples = work->tile_samples;
    size_t rows = work->tile_rows, taps = work->columns.stride;
    work->columns.begin = carve(room, &used, columns, sizeof(uint32_t));
    work->columns.taps = carve(room, &used, columns, sizeof(uint32_t));
    for (int i = 0; i < 2; i++)
        work->samples[i] = carve(room, &used, samples, LARGEST_SAMPLE);
    work->made = carve(room, &used, columns, LARGEST_SAMPLE);
    if (work->shrink->method == COGPU_NEAREST)
        return used;
    work->guards = carve(room, &used, samples, LARGEST_SAMPLE);
    work->mended = carve(room, &used, columns, LARGEST_SAMPLE);
    for (int i = 0; i < 2; i++)
        work->values[i] = carve(room, &used, samples, sizeof(double));
    if (chooses(work->shrink->method)) {
        work->valid = carve(room, &used, rows * samples, 1);
        work->keys = carve(room, &used, rows * samples, sizeof(uint64_t));
        work->votes = carve(room, &used, rows * taps, sizeof(cogpu_shrink_vote));
        return used;
    }
    work->valid = carve(room, &used, samples, 1);
    work->columns.weights = carve(room, &used, columns * taps, sizeof(double));
    work->columns.sums = carve(room, &used, columns, sizeof(double));
    work->columns.scales = carve(room, &used, columns, sizeof(double));
    work->results = carve(room, &used, columns, sizeof(double));
    work->weights = carve(room, &used, columns, sizeof(double));
    work->row_weights = carve(room, &used, rows, sizeof(double));
    work->plain.values = carve(room, &used, rows * columns, sizeof(double));
    work->plain.rows = carve(room, &used, rows, sizeof(uint32_t));
    work->judged.values = carve(room, &used, rows * columns, sizeof(double));
    work->judged.weights = carve(room, &used, rows * columns, sizeof(double));
    work->judged.rows = carve(room, &used, rows, sizeof(uint32_t));
    work->runs = carve(room, &used, columns, sizeof(uint32_t));
    work->longest = carve(room, &used, columns, sizeof(uint32_t));
    return used;
}

static cogpu_status open_work(cogpu_seat *seat, const cogpu_shrink *shrink, uint32_t width,
                              struct work *work, cogpu_error *error) {
    uint32_t factor = (uint32_t)divide_up(shrink->from_width, shrink->to_width);
    uint32_t reach = widest_reach(shrink->from_width, shrink->to_width);
    uint32_t columns = factor < TILE ? TILE / factor : 1;
    if (columns > width)
        columns = width;
    work->shrink = shrink;
    work->tile_columns = columns;
    work->tile_samples = (columns - 1) * factor + reach + 1;
    work->tile_rows = widest_reach(shrink->from_height, shrink->to_height);
    work->columns.stride = reach;
    TRY(cogpu_seat_room(&seat->shrunk, &seat->shrunk_bytes, carve_all(work, NULL), error));
    carve_all(work, seat->shrunk);
    return COGPU_OK;
}

static void weigh_column(const cogpu_shrink *shrink, cogpu_shrink_columns *columns, uint32_t x,
                         uint32_t i) {
    double *weights = columns->weights + (size_t)i * columns->stride, sum = 0;
    cogpu_shrink_weights(shrink->method, shrink->from_width, shrink->to_width, x + i, weights);
    for (uint32_t k = 0; k < columns->taps[i]; k++)
        sum += weights[k];
    columns->sums[i] = sum;
}

/* Makes `work` that of the tile that begins at column x. */
static void open_tile(struct work *work, uint32_t x) {
    const cogpu_shrink *shrink = work->shrink;
    cogpu_shrink_columns *columns = &work->columns;
    uint32_t left = work->end - x;
    columns->count = left < work->tile_columns ? left : work->tile_columns;
    work->x = x;
    work->from_x = column_reach(shrink, x).begin;
    work->from_count = column_reach(shrink, x + columns->count - 1).end - work->from_x;
    assert(work->from_count <= work->tile_samples);
    for (uint32_t i = 0; i < columns->count; i++) {
        cogpu_reach reach = column_reach(shrink, x + i);
        columns->begin[i] = reach.begin - work->from_x;
        columns->taps[i] = reach.end - reach.begin;
        assert(columns->taps[i] <= columns->stride);
        if (columns->weights)
            weigh_column(shrink, columns, x, i);
    }
    work->scaled_rows = 0;
}

/* ---- rows in and out ---- */

#define COPY_CASE(bytes)                                                                           \
    case bytes:                                                                                    \
        for (uint32_t i = 0; i < count; i++)                                                       \
            memcpy(to + i * to_stride, from + i * from_stride, bytes);                             \
        break;

static void copy_samples(const uint8_t *from, int64_t from_stride, uint32_t count, size_t size,
                         uint8_t *to, int64_t to_stride) {
    switch (size) {
        COPY_CASE(1)
        COPY_CASE(2)
        COPY_CASE(4)
        COPY_CASE(8)
        COPY_CASE(16)
    default:
        break;
    }
}

static uint8_t *sample_at(const struct plane *plane, uint32_t x, uint32_t y) {
    return plane->data + (int64_t)(y - plane->first) * plane->stride_y +
           (int64_t)(x - plane->left) * plane->stride_x;
}

/* The tile's samples of a row of the source, one after the other: there or in `room`. */
static const uint8_t *fetch(const struct work *work, const struct plane *from, uint32_t row,
                            uint8_t *room) {
    size_t size = cogpu_type_bytes(from->type);
    const uint8_t *samples = sample_at(from, work->from_x, row);
    if (from->is_mask) {
        for (uint32_t i = 0; i < work->from_count; i++)
            room[i] = samples[i * from->stride_x] ? 255 : 0;
        return room;
    }
    if (from->stride_x == (int64_t)size)
        return samples;
    copy_samples(samples, from->stride_x, work->from_count, size, room, (int64_t)size);
    return room;
}

static void put(const struct work *work, const struct plane *to, uint32_t row,
                const uint8_t *samples) {
    size_t size = cogpu_type_bytes(to->type);
    copy_samples(samples, (int64_t)size, work->columns.count, size, sample_at(to, work->x, row),
                 to->stride_x);
}

/* With GDAL's kernels a pixel weighs by its alpha, of 8 bits; alpha itself by no more than 255.
 * With other methods alpha has but to be more than 0. */
static bool is_weighed_by_alpha(const cogpu_shrink *shrink, const struct plane *guard) {
    return !guard->is_mask && (shrink->method == COGPU_BILINEAR || shrink->method == COGPU_CUBIC) &&
           (guard->type == COGPU_U8 || guard->type == COGPU_U16);
}

static void weigh_by_alpha(const struct passage *passage, const double *alpha, uint32_t count,
                           uint8_t *valid) {
    bool is_alpha = passage->from.data == passage->guard.data;
    double unit = passage->guard.type == COGPU_U16 && !is_alpha ? 257 : 1;
    for (uint32_t i = 0; i < count; i++)
        if (alpha[i] >= unit)
            valid[i] = (uint8_t)fmin(alpha[i] / unit, 255);
}

/* The row's samples as numbers, and which of them are valid. */
static void judge(struct work *work, const struct passage *passage, uint32_t row,
                  const uint8_t *samples, uint8_t *valid) {
    uint32_t count = work->from_count;
    double *values = work->values[0];
    memset(valid, 1, count);
    if (passage->guard.data) {
        const uint8_t *guards = fetch(work, &passage->guard, row, work->guards);
        cogpu_shrink_load(passage->guard.type, guards, count, values);
        for (uint32_t i = 0; i < count; i++)
            valid[i] = values[i] != 0;
        if (is_weighed_by_alpha(work->shrink, &passage->guard))
            weigh_by_alpha(passage, values, count, valid);
    }
    cogpu_shrink_load(passage->from.type, samples, count, values);
    cogpu_shrink_judge(passage->from.type, &passage->marks, samples, values, count, valid);
}

/* ---- a row of the result ---- */

static void take_nearest(const struct work *work, const struct passage *passage, uint32_t row) {
    size_t size = cogpu_type_bytes(passage->from.type);
    const uint8_t *samples =
        fetch(work, &passage->from, row_reach(work->shrink, row).begin, work->samples[0]);
    for (uint32_t i = 0; i < work->columns.count; i++)
        memcpy(work->made + i * size, samples + work->columns.begin[i] * size, size);
}

static void square(double *values, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        values[i] *= values[i];
}

static void take_roots(double *values, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        values[i] = sqrt(values[i]);
}

/* Where in the ring the row is. It is filled unless it is already. */
static size_t plain_line(struct work *work, const struct passage *passage, uint32_t row) {
    uint32_t slot = row % work->tile_rows;
    size_t at = (size_t)slot * work->tile_columns;
    if (work->plain.rows[slot] == row + 1)
        return at;
    const uint8_t *samples = fetch(work, &passage->from, row, work->samples[0]);
    cogpu_shrink_load(passage->from.type, samples, work->from_count, work->values[0]);
    if (work->shrink->method == COGPU_RMS)
        square(work->values[0], work->from_count);
    cogpu_shrink_line(&work->columns, work->values[0], work->plain.values + at);
    work->plain.rows[slot] = row + 1;
    return at;
}

static size_t judged_line(struct work *work, const struct passage *passage, uint32_t row) {
    uint32_t slot = row % work->tile_rows;
    size_t at = (size_t)slot * work->tile_columns;
    if (work->judged.rows[slot] == row + 1)
        return at;
    const uint8_t *samples = fetch(work, &passage->from, row, work->samples[0]);
    judge(work, passage, row, samples, work->valid);
    if (work->shrink->method == COGPU_RMS)
        square(work->values[0], work->from_count);
    cogpu_shrink_valid_line(work->shrink->method, &work->columns, work->values[0], work->valid,
                            work->judged.values + at, work->judged.weights + at);
    work->judged.rows[slot] = row + 1;
    return at;
}

static void forget(const struct work *work, const struct lines *lines) {
    memset(lines->rows, 0, work->tile_rows * sizeof *lines->rows);
}

/* What GDAL divides the samples of an average by before it adds them up, and multiplies the result
 * by, so that no sum overflows: their number. uint8 and uint16 need none of that. */
static double divisor_of(const struct work *work, uint32_t column, uint32_t rows) {
    bool is_short = work->shrink->type == COGPU_U8 || work->shrink->type == COGPU_U16;
    bool divides = work->shrink->method == COGPU_AVERAGE && !is_short;
    return divides ? (double)work->columns.taps[column] * rows : 1;
}

static void scale_for(struct work *work, uint32_t rows) {
    if (work->scaled_rows == rows)
        return;
    for (uint32_t i = 0; i < work->columns.count; i++)
        work->columns.scales[i] = 1 / divisor_of(work, i, rows);
    work->scaled_rows = rows;
    forget(work, &work->plain);
}

/* Is the row made of squares of two by two? Where the height is odd their rows should not weigh the
 * same; with GDAL they do. */
static bool is_of_squares(const cogpu_shrink *shrink, cogpu_reach reach) {
    return (shrink->method == COGPU_AVERAGE || shrink->method == COGPU_RMS) &&
           shrink->from_width == 2 * (uint64_t)shrink->to_width && reach.end - reach.begin == 2;
}

/* A row as if all were valid; a NaN spoils what it is in reach of. */
static void weigh_plain(struct work *work, const struct passage *passage, uint32_t row) {
    const cogpu_shrink *shrink = work->shrink;
    cogpu_reach reach = row_reach(shrink, row);
    uint32_t count = work->columns.count, rows = reach.end - reach.begin;
    double *restrict results = work->results, *restrict weights = work->weights, sum = 0;
    cogpu_shrink_weights(shrink->method, shrink->from_height, shrink->to_height, row,
                         work->row_weights);
    if (is_of_squares(shrink, reach))
        work->row_weights[0] = work->row_weights[1] = 1;
    scale_for(work, rows);
    memset(results, 0, count * sizeof *results);
    for (uint32_t k = 0; k < rows; k++) {
        const double *restrict values =
            work->plain.values + plain_line(work, passage, reach.begin + k);
        double weight = work->row_weights[k];
        for (uint32_t i = 0; i < count; i++)
            results[i] += values[i] * weight;
        sum += weight;
    }
    for (uint32_t i = 0; i < count; i++) {
        weights[i] = work->columns.sums[i] * sum;
        results[i] = results[i] / weights[i] * divisor_of(work, i, rows);
    }
    if (shrink->method == COGPU_RMS)
        take_roots(results, count);
    cogpu_shrink_settle(passage->from.type, &passage->marks, results, weights, count, work->made);
}

/* Too few valid lines, one after the other, make nothing, as too few samples of a line do. */
static void drop_unsound(struct work *work, cogpu_reach reach) {
    uint32_t asked = cogpu_shrink_neighbours(work->shrink->method, reach.end - reach.begin);
    uint32_t count = work->columns.count, *restrict runs = work->runs;
    uint32_t *restrict longest = work->longest;
    memset(runs, 0, count * sizeof *runs);
    memset(longest, 0, count * sizeof *longest);
    for (uint32_t y = reach.begin; y < reach.end; y++) {
        const double *restrict weights =
            work->judged.weights + (size_t)(y % work->tile_rows) * work->tile_columns;
        for (uint32_t i = 0; i < count; i++) {
            runs[i] = weights[i] > 0 ? runs[i] + 1 : 0;
            longest[i] = runs[i] > longest[i] ? runs[i] : longest[i];
        }
    }
    for (uint32_t i = 0; i < count; i++)
        work->weights[i] = longest[i] >= asked ? work->weights[i] : 0;
}

/* A row of what is valid alone. */
static void weigh_judged(struct work *work, const struct passage *passage, uint32_t row,
                         uint8_t *made) {
    const cogpu_shrink *shrink = work->shrink;
    cogpu_reach reach = row_reach(shrink, row);
    uint32_t count = work->columns.count;
    double *restrict results = work->results, *restrict weights = work->weights;
    cogpu_shrink_weights(shrink->method, shrink->from_height, shrink->to_height, row,
                         work->row_weights);
    memset(results, 0, count * sizeof *results);
    memset(weights, 0, count * sizeof *weights);
    for (uint32_t y = reach.begin; y < reach.end; y++) {
        size_t at = judged_line(work, passage, y);
        const double *restrict values = work->judged.values + at;
        const double *restrict line_weights = work->judged.weights + at;
        double weight = work->row_weights[y - reach.begin];
        for (uint32_t i = 0; i < count; i++) {
            results[i] += values[i] * weight;
            weights[i] += line_weights[i] * weight;
        }
    }
    if (shrink->method == COGPU_CUBIC)
        drop_unsound(work, reach);
    for (uint32_t i = 0; i < count; i++)
        results[i] = weights[i] > 0 ? results[i] / weights[i] : 0;
    if (shrink->method == COGPU_RMS)
        take_roots(results, count);
    cogpu_shrink_settle(passage->from.type, &passage->marks, results, weights, count, made);
}

/* A row of averages of squares, the same as by weighing them, only quick. */
static void halve(struct work *work, const struct passage *passage, uint32_t row) {
    cogpu_type type = passage->from.type;
    uint32_t y = row_reach(work->shrink, row).begin, count = work->columns.count;
    const uint8_t *upper = fetch(work, &passage->from, y, work->samples[0]);
    const uint8_t *lower = fetch(work, &passage->from, y + 1, work->samples[1]);
    if (cogpu_shrink_halve(type, upper, lower, count, work->made))
        return;
    cogpu_shrink_load(type, upper, 2 * count, work->values[0]);
    cogpu_shrink_load(type, lower, 2 * count, work->values[1]);
    cogpu_shrink_halve(COGPU_F64, (uint8_t *)work->values[0], (uint8_t *)work->values[1], count,
                       (uint8_t *)work->results);
    cogpu_shrink_settle(type, &passage->marks, work->results, work->columns.sums, count,
                        work->made);
}

static void weigh(struct work *work, const struct passage *passage, uint32_t row) {
    cogpu_type type = passage->from.type;
    if (passage->guard.data || passage->marks.has_nodata) {
        weigh_judged(work, passage, row, work->made);
        return;
    }
    if (work->shrink->method == COGPU_AVERAGE &&
        is_of_squares(work->shrink, row_reach(work->shrink, row)))
        halve(work, passage, row);
    else
        weigh_plain(work, passage, row);
    /* NaN is never valid, but rare: what it spoiled is made anew. */
    if (cogpu_shrink_has_nan(type, work->made, work->columns.count)) {
        weigh_judged(work, passage, row, work->mended);
        cogpu_shrink_mend(type, work->mended, work->columns.count, work->made);
    }
}

static uint32_t gather_votes(const struct work *work, uint32_t column, uint32_t rows) {
    uint32_t votes = 0;
    for (uint32_t r = 0; r < rows; r++) {
        size_t at = (size_t)r * work->tile_samples + work->columns.begin[column];
        for (uint32_t k = 0; k < work->columns.taps[column]; k++)
            if (work->valid[at + k]) {
                work->votes[votes] = (cogpu_shrink_vote){work->keys[at + k], votes};
                votes++;
            }
    }
    return votes;
}

static void choose(struct work *work, const struct passage *passage, uint32_t row) {
    cogpu_type type = passage->from.type;
    cogpu_reach reach = row_reach(work->shrink, row);
    size_t size = cogpu_type_bytes(type);
    for (uint32_t y = reach.begin; y < reach.end; y++) {
        size_t at = (size_t)(y - reach.begin) * work->tile_samples;
        const uint8_t *samples = fetch(work, &passage->from, y, work->samples[0]);
        judge(work, passage, y, samples, work->valid + at);
        cogpu_shrink_keys(type, samples, work->from_count, work->keys + at);
    }
    for (uint32_t i = 0; i < work->columns.count; i++) {
        uint32_t votes = gather_votes(work, i, reach.end - reach.begin);
        if (votes)
            cogpu_shrink_choose(work->shrink->method, type, &passage->marks, work->votes, votes,
                                work->made + i * size);
        else
            memcpy(work->made + i * size, passage->marks.none, size);
    }
}

static void make_row(struct work *work, const struct passage *passage, uint32_t row) {
    if (work->shrink->method == COGPU_NEAREST)
        take_nearest(work, passage, row);
    else if (chooses(work->shrink->method))
        choose(work, passage, row);
    else
        weigh(work, passage, row);
}

/* ---- bands, mask, and all of it ---- */

/* Complex samples are pairs, whose parts are shrunk one by one. */
static uint32_t parts_of(const cogpu_shrink *shrink) {
    return is_complex(shrink->type) && shrink->method != COGPU_NEAREST ? 2 : 1;
}

/* A raster, and where it begins in its level. */
struct window {
    const cogpu_raster *pixels, *mask;
    uint32_t left, first;
};

static struct plane plane_of(const struct window *window, const cogpu_raster *raster,
                             uint32_t band) {
    return (struct plane){.type = raster->type,
                          .data = (uint8_t *)raster->data + band * raster->stride_band,
                          .first = window->first,
                          .left = window->left,
                          .stride_x = raster->stride_x,
                          .stride_y = raster->stride_y};
}

static struct plane part_of(const cogpu_shrink *shrink, const struct window *window, uint32_t p) {
    uint32_t parts = parts_of(shrink);
    struct plane plane = plane_of(window, window->pixels, p / parts);
    if (parts == 2) {
        plane.type = shrink->type == COGPU_CF32 ? COGPU_F32 : COGPU_F64;
        plane.data += p % 2 * cogpu_type_bytes(plane.type);
    }
    return plane;
}

static struct plane mask_plane(const struct window *window) {
    struct plane plane = plane_of(window, window->mask, 0);
    plane.is_mask = true;
    return plane;
}

/* What the call is about. */
struct task {
    const cogpu_shrink *shrink;
    struct window from, to;
    struct plane guard, to_guard; /* without data: none */
};

/* Mask goes before alpha, as with GDAL, whose mode of uint8 looks at neither. */
static void find_guards(struct task *task) {
    const cogpu_shrink *shrink = task->shrink;
    if (shrink->method == COGPU_NEAREST ||
        (shrink->method == COGPU_MODE && shrink->type == COGPU_U8))
        return;
    if (shrink->has_mask) {
        task->guard = mask_plane(&task->from);
        task->to_guard = mask_plane(&task->to);
    } else if (shrink->alpha_band) {
        task->guard = plane_of(&task->from, task->from.pixels, shrink->alpha_band - 1);
        task->to_guard = plane_of(&task->to, task->to.pixels, shrink->alpha_band - 1);
    }
}

static struct passage passage_of(const struct task *task, uint32_t p) {
    const cogpu_shrink *shrink = task->shrink;
    struct passage passage = {.from = part_of(shrink, &task->from, p),
                              .to = part_of(shrink, &task->to, p),
                              .guard = task->guard};
    if (shrink->method == COGPU_NEAREST)
        return passage;
    cogpu_shrink_mark(shrink, passage.from.type, &passage.marks);
    bool is_plain_zero =
        p + 1 == shrink->alpha_band || (task->guard.data && shrink->method == COGPU_MODE);
    if (is_plain_zero && !passage.marks.has_nodata)
        memset(passage.marks.none, 0, sizeof passage.marks.none);
    return passage;
}

static void make_band(struct work *work, const struct task *task, const struct passage *passage) {
    if (work->plain.rows) {
        forget(work, &work->plain);
        forget(work, &work->judged);
    }
    for (uint32_t i = 0; i < task->to.pixels->height; i++) {
        make_row(work, passage, task->to.first + i);
        put(work, &passage->to, task->to.first + i, work->made);
    }
}

/* Floats without nodata are NaN where nothing is valid; but where mask or alpha say so, they are 0
 * as all others. */
static void blank_band(const struct work *work, const struct task *task, const struct plane *to) {
    const uint8_t zero[LARGEST_SAMPLE] = {0};
    const struct plane *guard = &task->to_guard;
    size_t size = cogpu_type_bytes(to->type), guard_size = cogpu_type_bytes(guard->type);
    for (uint32_t y = to->first; y < to->first + task->to.pixels->height; y++)
        for (uint32_t x = work->x; x < work->x + work->columns.count; x++)
            if (memcmp(sample_at(guard, x, y), zero, guard_size) == 0)
                memcpy(sample_at(to, x, y), zero, size);
}

static void make_tile(struct work *work, const struct task *task) {
    const cogpu_shrink *shrink = task->shrink;
    uint32_t planes = shrink->bands * parts_of(shrink);
    for (uint32_t p = 0; p < planes; p++) {
        struct passage passage = passage_of(task, p);
        make_band(work, task, &passage);
    }
    if (shrink->has_mask) {
        struct passage passage = {.from = mask_plane(&task->from),
                                  .to = plane_of(&task->to, task->to.mask, 0),
                                  .guard = task->guard};
        if (shrink->method == COGPU_MODE)
            passage.guard.data = NULL;
        make_band(work, task, &passage);
    }
    for (uint32_t p = 0; p < planes && task->guard.data && shrink->method != COGPU_MODE; p++) {
        struct passage passage = passage_of(task, p);
        if (is_float(passage.to.type) && !passage.marks.has_nodata)
            blank_band(work, task, &passage.to);
    }
}

cogpu_status cogpu_cpu_shrink(cogpu_seat *seat, const cogpu_shrink *shrink,
                              const cogpu_shrink_place *place, const cogpu_raster *from,
                              const cogpu_raster *from_mask, const cogpu_raster *to,
                              const cogpu_raster *to_mask, cogpu_error *error) {
    struct task task = {.shrink = shrink,
                        .from = {from, from_mask, place->from_x, place->from_y},
                        .to = {to, to_mask, place->x, place->y}};
    struct work work = {.end = place->x + to->width};
    TRY(cogpu_shrink_check(shrink, error));
    TRY(open_work(seat, shrink, to->width, &work, error));
    find_guards(&task);
    for (uint32_t x = place->x; x < work.end; x += work.columns.count) {
        open_tile(&work, x);
        make_tile(&work, &task);
    }
    return COGPU_OK;
}
