/* Nearest: samples are copied, without a tile. */
#include "cpu/samples.h"
#include "cpu/warp_unit.h"

enum { SAMPLE_MAX_BYTES = 8 };

/* The nearest pixels of a row of a unit: offsets in the source, and in its mask. 0 without a
 * place. */
struct nearest_row {
    int64_t at[UNIT_COLUMNS];
    uint8_t is_found[UNIT_COLUMNS];
    uint8_t samples[UNIT_COLUMNS * SAMPLE_MAX_BYTES];
    double values[UNIT_COLUMNS];
};

BODY find_offsets_body(const struct warp_args *args, const struct warp_unit *unit, uint32_t j,
                       struct nearest_row *row) {
    const double *x = unit->x + j * UNIT_COLUMNS, *y = unit->y + j * UNIT_COLUMNS;
    const uint8_t *has_place = unit->has_place + j * UNIT_COLUMNS;
    EACH_UNIT_COLUMN(unit, i) {
        int64_t column = nearest_in_axis(has_place[i] ? x[i] : 0, args->level_width) - args->x;
        int64_t line = nearest_in_axis(has_place[i] ? y[i] : 0, args->level_height) - args->y;
        row->at[i] =
            has_place[i] ? line * args->source.stride_y + column * args->source.stride_x : 0;
    }
}
FOR_AVX2(static, find_offsets,
         (const struct warp_args *args, const struct warp_unit *unit, uint32_t j,
          struct nearest_row *row),
         (args, unit, j, row))

#define COPY_NEAREST(bytes)                                                                        \
    case bytes:                                                                                    \
        UNROLL_4 for (uint32_t i = 0; i < count; i++)                                              \
            memcpy(row->samples + (size_t)i * (bytes), from + row->at[i], bytes);                  \
        break;

static void copy_nearest(const uint8_t *from, uint32_t bytes, uint32_t count,
                         struct nearest_row *row) {
    switch (bytes) {
        COPY_NEAREST(1)
        COPY_NEAREST(2)
        COPY_NEAREST(4)
        COPY_NEAREST(8)
    default:
        break;
    }
}

static void clear_nodata(struct warp_nodata rule, uint32_t type, uint32_t count,
                         struct nearest_row *row) {
    if (rule.match == MATCHES_NOTHING)
        return;
    cogpu_cpu_load_doubles((cogpu_type)type, row->samples, count, row->values);
    for (uint32_t i = 0; i < count; i++)
        row->is_found[i] &= !matches_nodata(rule, row->values[i]);
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
    copy_nearest(plane_at(&args->source, band, 0, 0), sample_bytes(args->from_type), unit->columns,
                 row);
    clear_nodata(rule->nodata, args->from_type, unit->columns, row);
    if (args->from_type == args->to_type && !rule->avoids)
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
        find_offsets(args, unit, j, &row);
        for (uint32_t band = 0; band < args->bands; band++)
            warp_row_of_band(args, unit, band, j, &row);
    }
}
