/* Nearest: samples are copied, without a tile. */
#include "cpu/samples.h"
#include "cpu/warp_unit.h"

enum { SAMPLE_MAX_BYTES = 8 };

/* A row of a unit: nearest pixels in the source window, 0 without a place. */
struct nearest_row {
    int32_t x[UNIT_COLUMNS], y[UNIT_COLUMNS];
    uint8_t is_found[UNIT_COLUMNS];
    uint8_t samples[UNIT_COLUMNS * SAMPLE_MAX_BYTES];
    double values[UNIT_COLUMNS];
};

/* nearest_in_axis of accepted positions, less the begin of the window. */
static inline __attribute__((always_inline)) void find_nearest_in_axis(
    const double *restrict from, const uint8_t *restrict has_place, uint32_t count, uint32_t window,
    uint32_t size, int32_t *restrict to) {
    double last = (double)size - 1, first = window;
    for (uint32_t i = 0; i < count; i++) {
        double nearest = floor(from[i] + WARP_TOLERANCE);
        nearest = (nearest < last ? nearest : last) - first;
        to[i] = (int32_t)(has_place[i] ? nearest : 0);
    }
}

BODY find_row_body(const struct warp_args *args, const struct warp_unit *unit, uint32_t j,
                   struct nearest_row *row) {
    uint32_t at = j * UNIT_COLUMNS;
    find_nearest_in_axis(unit->x + at, unit->has_place + at, unit->columns, args->x,
                         args->level_width, row->x);
    find_nearest_in_axis(unit->y + at, unit->has_place + at, unit->columns, args->y,
                         args->level_height, row->y);
}
FOR_AVX2(static, find_row,
         (const struct warp_args *args, const struct warp_unit *unit, uint32_t j,
          struct nearest_row *row),
         (args, unit, j, row))

#define COPY_NEAREST(bytes)                                                                        \
    case bytes:                                                                                    \
        UNROLL_4 for (uint32_t i = 0; i < count; i++)                                              \
            memcpy(row->samples + (size_t)i * (bytes),                                             \
                   from + row->y[i] * plane->stride_y + row->x[i] * plane->stride_x, bytes);       \
        break;

static void copy_nearest(const struct warp_plane *plane, uint32_t band, uint32_t bytes,
                         uint32_t count, struct nearest_row *row) {
    const uint8_t *from = plane_at(plane, band, 0, 0);
    switch (bytes) {
        COPY_NEAREST(1)
        COPY_NEAREST(2)
        COPY_NEAREST(4)
        COPY_NEAREST(8)
    default:
        break;
    }
}

/* Whether a sample of the row is nodata of the target and must change. */
static bool has_avoided(double avoided, uint32_t count, const struct nearest_row *row) {
    bool has = false;
    for (uint32_t i = 0; i < count; i++)
        has |= row->is_found[i] & (row->values[i] == avoided);
    return has;
}

/* Clears is_found of nodata. Returns whether samples are to be stored as they are. */
static bool check_samples(const struct warp_args *args, const struct warp_rule *rule,
                          uint32_t count, struct nearest_row *row) {
    if (rule->nodata.match != MATCHES_NOTHING || rule->avoids)
        cogpu_cpu_load_doubles((cogpu_type)args->from_type, row->samples, count, row->values);
    if (rule->nodata.match != MATCHES_NOTHING)
        cogpu_warp_clear_matches(rule->nodata, row->values, count, row->is_found);
    if (args->from_type != args->to_type)
        return false;
    double avoided = args->to_type == COGPU_TYPE_F32 ? (double)(float)rule->avoided : rule->avoided;
    return !rule->avoids || !has_avoided(avoided, count, row);
}

/* Samples that need no change but for missing ones. */
static void store_copied(const struct warp_args *args, const struct warp_rule *rule, uint32_t count,
                         struct nearest_row *row, uint8_t *to) {
    uint32_t bytes = sample_bytes(args->to_type);
    if (memchr(row->is_found, 0, count))
        for (uint32_t i = 0; i < count; i++)
            if (!row->is_found[i])
                store_bits(args->to_type, rule->fill, row->samples + (size_t)i * bytes);
    cogpu_cpu_copy_samples(to, args->target.stride_x, row->samples, bytes, count, bytes);
}

static void store_finished(const struct warp_args *args, const struct warp_rule *rule,
                           uint32_t count, const struct nearest_row *row, uint8_t *to) {
    uint32_t from = args->from_type, bytes = sample_bytes(from);
    for (uint32_t i = 0; i < count; i++) {
        struct warp_result result =
            result_of_sample(from, load_bits(from, row->samples + (size_t)i * bytes));
        uint64_t bits =
            row->is_found[i] ? finish_sample_of_band(args, from, rule, &result) : rule->fill;
        store_bits(args->to_type, bits, to + (int64_t)i * args->target.stride_x);
    }
}

static void warp_row_of_band(const struct warp_args *args, const struct warp_unit *unit,
                             uint32_t band, uint32_t j, struct nearest_row *row) {
    const struct warp_rule *rule = &args->rules[band];
    uint8_t *to = (uint8_t *)plane_at(&args->target, band, unit->column, unit->row + j);
    memcpy(row->is_found, unit->has_place + j * UNIT_COLUMNS, unit->columns);
    copy_nearest(&args->source, band, sample_bytes(args->from_type), unit->columns, row);
    if (check_samples(args, rule, unit->columns, row))
        store_copied(args, rule, unit->columns, row, to);
    else
        store_finished(args, rule, unit->columns, row, to);
    cogpu_warp_store_valid(args, band, unit->column, unit->row + j, row->is_found, unit->columns);
}

/* Clears has_place of masked pixels. */
static void clear_masked(const struct warp_args *args, struct warp_unit *unit) {
    EACH_UNIT_ROW(unit, j)
    EACH_UNIT_COLUMN(unit, i) {
        uint32_t at = j * UNIT_COLUMNS + i;
        if (!unit->has_place[at])
            continue;
        int64_t x = nearest_in_axis(unit->x[at], args->level_width) - args->x;
        int64_t y = nearest_in_axis(unit->y[at], args->level_height) - args->y;
        unit->has_place[at] = *plane_at(&args->mask, 0, x, y) != 0;
    }
}

void cogpu_warp_nearest(const struct warp_args *args, struct warp_unit *unit) {
    struct nearest_row row;
    cogpu_warp_locate(args, unit);
    if (args->mask.data)
        clear_masked(args, unit);
    EACH_UNIT_ROW(unit, j) {
        find_row(args, unit, j, &row);
        for (uint32_t band = 0; band < args->bands; band++)
            warp_row_of_band(args, unit, band, j, &row);
    }
}
