/* Results of a band become samples of the target. */
#include "cpu/samples.h"
#include "cpu/warp_unit.h"

/* A row of a band in the target. */
struct stored_row {
    uint8_t *to;
    int64_t stride;
    const double *results;
    const uint8_t *is_found;
    uint32_t count;
};

/* A loop that sees type and stride as constants. */
#define STORE_LOOP(kind, bits, stride, nudges)                                                     \
    for (uint32_t i = 0; i < row->count; i++) {                                                    \
        uint64_t sample = round_to_working(kind, row->results[i]);                                 \
        if (nudges)                                                                                \
            sample = avoid_nodata(kind, sample, rule->avoided);                                    \
        bits stored = (bits)(row->is_found[i] ? sample : rule->fill);                              \
        memcpy(row->to + (int64_t)i * (stride), &stored, sizeof stored);                           \
    }

#define STORE_CASE(kind, bits)                                                                     \
    case kind:                                                                                     \
        if (row->stride != (int64_t)sizeof(bits)) {                                                \
            STORE_LOOP(kind, bits, row->stride, rule->avoids)                                      \
        } else if (rule->avoids) {                                                                 \
            STORE_LOOP(kind, bits, (int64_t)sizeof(bits), true)                                    \
        } else {                                                                                   \
            STORE_LOOP(kind, bits, (int64_t)sizeof(bits), false)                                   \
        }                                                                                          \
        break;

/* Where the working type is the target's. */
BODY store_row_body(uint32_t type, const struct warp_rule *rule,
                    const struct stored_row *restrict row) {
    switch (type) {
        EACH_SAMPLE_TYPE(STORE_CASE)
    default:
        break;
    }
}
FOR_AVX2(static, store_row,
         (uint32_t type, const struct warp_rule *rule, const struct stored_row *row),
         (type, rule, row))

static void store_converted_row(const struct warp_args *args, const struct warp_rule *rule,
                                const struct stored_row *row) {
    for (uint32_t i = 0; i < row->count; i++) {
        struct warp_result result = result_of_value(row->results[i]);
        uint64_t bits = row->is_found[i]
                            ? finish_sample_of_band(args, args->from_type, rule, &result)
                            : rule->fill;
        store_bits(args->to_type, bits, row->to + (int64_t)i * row->stride);
    }
}

void cogpu_warp_store_valid(const struct warp_args *args, uint32_t band, uint32_t column,
                            uint32_t row, const uint8_t *is_found, uint32_t count) {
    if (!args->valid.data)
        return;
    uint8_t *to = (uint8_t *)plane_at(&args->valid, band, column, row);
    int64_t stride = args->valid.stride_x;
    for (uint32_t i = 0; stride == 1 && i < count; i++)
        to[i] = is_found[i] ? 255 : 0;
    for (uint32_t i = 0; stride != 1 && i < count; i++)
        to[i * stride] = is_found[i] ? 255 : 0;
}

void cogpu_warp_store(const struct warp_args *args, uint32_t band, const struct warp_unit *unit) {
    const struct warp_rule *rule = &args->rules[band];
    EACH_UNIT_ROW(unit, j) {
        uint32_t at = j * UNIT_COLUMNS, y = unit->row + j;
        struct stored_row row = {(uint8_t *)plane_at(&args->target, band, unit->column, y),
                                 args->target.stride_x, unit->results + at, unit->is_found + at,
                                 unit->columns};
        if (args->working_type == args->to_type)
            store_row(args->to_type, rule, &row);
        else
            store_converted_row(args, rule, &row);
        cogpu_warp_store_valid(args, band, unit->column, y, unit->is_found + at, unit->columns);
    }
}
