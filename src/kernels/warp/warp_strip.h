/*
 * The loop of kernels that work on strips of cells: 16 rows and COGPU_WARP_STRIP_CELLS cells of the
 * target for a thread block.
 *
 *   cell 0   cell 1           spans: both ends of a row of a cell, computed once for its 16 pixels
 *   |--------|--------| ...   a thread: one column, rows of its half of the strip
 *   |--------|--------|
 *   |   ...  |   ...  |
 *
 * A pixel is fast if its taps are in the source window and, in each band, certainly valid or
 * certainly nodata. A list in shared memory has all others: at the end, the threads share them and
 * compute them by warp_pixel. Source and target have the same sample type; there is neither mask
 * nor alpha; addresses are aligned, and strides have 31 bits.
 */
#ifndef COGPU_KERNELS_WARP_WARP_STRIP_H
#define COGPU_KERNELS_WARP_WARP_STRIP_H

#include "kernels/simt.h"
#include "kernels/warp/warp_args.h"

enum {
    STRIP_COLUMNS = COGPU_WARP_STRIP_CELLS * WARP_CELL,
    STRIP_ROWS = WARP_CELL * STRIP_COLUMNS / COGPU_WARP_STRIP_THREADS, /* of a thread */
    STRIP_TAPS = 16,
    STRIP_GROUP = 4 /* the most pixels that a thread computes at the same time */
};

/* A row of a cell: its left end, and the way to its right end. */
struct strip_span {
    double x, y, across_x, across_y;
};

/* Nodata of a band. Of integers `equal` is the sample that is nodata. Floats are certainly valid if
 * they are further than `radius` from `middle`, which NaN never is, and certainly nodata if they
 * equal `middle`. A result that may be equal to `avoided`, as bits, is tested by avoid_nodata. */
struct strip_rule {
    float middle, radius; /* or one of the two below */
    uint32_t equal, avoided;
};

#define RADIUS_NO_NODATA  (-1.0F) /* NaN alone is not certainly valid */
#define RADIUS_NAN_NODATA (-2.0F)

struct strip_shared {
    struct strip_span spans[COGPU_WARP_STRIP_CELLS][WARP_CELL];
    struct strip_rule rules[COGPU_WARP_STRIP_BANDS];
    uint32_t tables[COGPU_WARP_STRIP_CELLS];
    uint32_t inside[COGPU_WARP_STRIP_CELLS]; /* all positions of the cell are inside */
    uint32_t slow_count;
    uint16_t slow[STRIP_COLUMNS * WARP_CELL]; /* row * STRIP_COLUMNS + column, in the strip */
};

DEVICE_FN bool is_inside(const struct cogpu_warp_args *args, double x, double y) {
    return x >= args->left && x < args->right && y >= args->top && y < args->bottom;
}

/* ---- preparation: collectives of the block ---- */

DEVICE_FN struct strip_rule strip_rule_of(uint32_t type, const struct warp_rule *rule) {
    struct strip_rule kept = {0, RADIUS_NO_NODATA, UINT32_MAX, UINT32_MAX};
    if (rule->nodata.match == MATCHES_NAN)
        kept.radius = RADIUS_NAN_NODATA;
    if (rule->nodata.match == MATCHES_EQUAL) {
        int32_t whole = (int32_t)rule->nodata.value;
        kept.equal = type == COGPU_TYPE_U8 ? (uint8_t)whole : (uint16_t)whole;
    }
    if (rule->nodata.match == MATCHES_FLOAT) {
        /* matches_nodata: within 4.8e-7 of the number. */
        kept.middle = (float)rule->nodata.value;
        kept.radius = fabsf(kept.middle) * 1e-6F;
        if (!(kept.radius <= 3e38F)) /* of an infinity */
            kept.radius = 0;
    }
    if (rule->avoids && type == COGPU_TYPE_F32)
        kept.avoided = float_bits((float)rule->avoided);
    if (rule->avoids && type != COGPU_TYPE_F32 && fabs(rule->avoided) <= UINT16_MAX) {
        int32_t whole = (int32_t)rule->avoided;
        kept.avoided = type == COGPU_TYPE_U8 ? (uint8_t)whole : (uint16_t)whole;
    }
    return kept;
}

/* Spans of all rows of the strip's cells, one by each thread. `first_cell` and `row` are places in
 * the lattice. */
DEVICE_FN void prepare_strip(const struct cogpu_warp_args *args, uint32_t type, uint32_t first_cell,
                             uint32_t row, struct strip_shared *shared) {
    const struct warp_lattice *lattice = &args->warp.lattice;
    const uint32_t cell = thread_index() / WARP_CELL, j = thread_index() % WARP_CELL;
    uint32_t table = 0, bits;
    bool is_row_inside = false;
    if (thread_index() == 0)
        shared->slow_count = 0;
    if (thread_index() < args->warp.bands)
        shared->rules[thread_index()] = strip_rule_of(type, &args->warp.rules[thread_index()]);
    if (cell >= COGPU_WARP_STRIP_CELLS)
        return;
    if (first_cell + cell < lattice->across) {
        table = lattice->cells[(uint64_t)row * lattice->across + first_cell + cell];
        if (table == UINT32_MAX) {
            struct warp_span span = span_at(lattice, first_cell + cell, row, j);
            struct strip_span kept = {span.left.x, span.left.y, span.right.x - span.left.x,
                                      span.right.y - span.left.y};
            shared->spans[cell][j] = kept;
            is_row_inside = is_inside(args, span.left.x, span.left.y) &&
                            is_inside(args, span.right.x, span.right.y);
        }
    }
    bits = warp_ballot(is_row_inside);
    if (j == 0) {
        shared->tables[cell] = table;
        shared->inside[cell] = (cell % 2 ? bits >> WARP_CELL : bits & 0xFFFF) == 0xFFFF;
    }
}

/* ---- samples ---- */

DEVICE_FN bool is_surely_valid(uint32_t type, const struct strip_rule *rule, uint32_t bits) {
    return type == COGPU_TYPE_F32 ? fabsf(float_from_bits(bits) - rule->middle) > rule->radius
                                  : bits != rule->equal;
}

DEVICE_FN bool is_surely_nodata(uint32_t type, const struct strip_rule *rule, uint32_t bits) {
    const float value = float_from_bits(bits);
    if (type != COGPU_TYPE_F32)
        return bits == rule->equal;
    return rule->radius >= 0 ? value == rule->middle
                             : rule->radius == RADIUS_NAN_NODATA && value != value;
}

DEVICE_FN double strip_value(uint32_t type, uint32_t bits) {
    if (type == COGPU_TYPE_F32)
        return (double)float_from_bits(bits);
    return type == COGPU_TYPE_I16 ? u32_to_double((uint16_t)(bits ^ 0x8000)) - 0x8000
                                  : u32_to_double(bits);
}

/* As round_to_working, for integers that are not far from their type's range. */
DEVICE_FN uint32_t strip_bits(uint32_t type, double value) {
    int32_t low = type == COGPU_TYPE_I16 ? INT16_MIN : 0, whole;
    int32_t high = type == COGPU_TYPE_I16   ? INT16_MAX
                   : type == COGPU_TYPE_U16 ? UINT16_MAX
                                            : UINT8_MAX;
    if (type == COGPU_TYPE_F32)
        return (uint32_t)float_to_sample((float)value);
    split_floor(value + 0.5, &whole);
    whole = whole < low ? low : whole > high ? high : whole;
    return (uint32_t)whole & (type == COGPU_TYPE_U8 ? UINT8_MAX : UINT16_MAX);
}

/* -0 equals 0, so floats are compared as such. */
DEVICE_FN bool may_be_avoided(uint32_t type, const struct strip_rule *rule, uint32_t bits) {
    return type == COGPU_TYPE_F32 ? float_from_bits(bits) == float_from_bits(rule->avoided)
                                  : bits == rule->avoided;
}

DEVICE_FN void store_bits_aligned(uint32_t type, uint8_t *at, uint32_t bits) {
    if (sample_bytes(type) == 1)
        *at = (uint8_t)bits;
    else if (sample_bytes(type) == 2)
        *(number16 *)(void *)at = (uint16_t)bits;
    else
        *(number32 *)(void *)at = bits;
}

/* ---- pixels ---- */

/* A column of the strip, on which a thread works. */
struct strip_column {
    const struct strip_span *spans;
    double across; /* what part of the cell lies left of it */
    uint32_t i, table, column;
    int32_t first_row; /* the strip's first row, in the target window */
    bool is_inside;
};

struct strip_pixel {
    bool is_fast;        /* all taps are inside and, so far, valid */
    int32_t row;         /* in the target window */
    double x, y;         /* position in the level */
    double left, top;    /* the pixel that its weights refer to */
    const uint8_t *taps; /* the first one, in band 0 */
    uint32_t bits[STRIP_TAPS];
};

DEVICE_FN uint32_t side_of_taps(uint32_t method) {
    return method == COGPU_RESAMPLE_NEAREST ? 1 : method == COGPU_RESAMPLE_CUBIC ? 4 : 2;
}

DEVICE_FN uint8_t *strip_address(const struct warp_plane *plane, uint32_t band, int32_t x,
                                 int32_t y) {
    return plane->data + (int64_t)(int32_t)plane->stride_y * y +
           (int64_t)(int32_t)plane->stride_x * x + band * plane->stride_band;
}

/* Finds position and taps of row `j` of the strip; the first taps of the source if they are not
 * inside. */
DEVICE_FN void find_taps(const struct cogpu_warp_args *args, const struct strip_column *at,
                         uint32_t method, bool is_exact, uint32_t j, struct strip_pixel *pixel) {
    const struct warp_args *warp = &args->warp;
    int32_t x, y;
    if (is_exact) {
        struct warp_point point = point_of_table(&warp->lattice, at->table, at->i, j);
        pixel->x = point.x;
        pixel->y = point.y;
    } else {
        pixel->x = at->spans[j].x + at->spans[j].across_x * at->across;
        pixel->y = at->spans[j].y + at->spans[j].across_y * at->across;
    }
    pixel->row = at->first_row + (int32_t)j;
    pixel->is_fast = at->is_inside || is_inside(args, pixel->x, pixel->y);
    if (method == COGPU_RESAMPLE_NEAREST) {
        split_floor(pixel->x + WARP_TOLERANCE, &x);
        split_floor(pixel->y + WARP_TOLERANCE, &y);
    } else {
        pixel->left = split_floor(pixel->x - 0.5, &x);
        pixel->top = split_floor(pixel->y - 0.5, &y);
    }
    x -= (int32_t)(warp->x + (method == COGPU_RESAMPLE_CUBIC));
    y -= (int32_t)(warp->y + (method == COGPU_RESAMPLE_CUBIC));
    pixel->taps = strip_address(&warp->source, 0, pixel->is_fast ? x : 0, pixel->is_fast ? y : 0);
}

DEVICE_FN void load_taps(const struct warp_args *warp, uint32_t method, uint32_t type,
                         uint32_t band, struct strip_pixel *pixel) {
    const uint32_t side = side_of_taps(method);
    const uint8_t *row = pixel->taps + band * warp->source.stride_band;
    UNROLL for (uint32_t j = 0; j < side; j++, row += warp->source.stride_y) {
        const uint8_t *tap = row;
        UNROLL for (uint32_t i = 0; i < side; i++, tap += warp->source.stride_x)
            pixel->bits[side * j + i] = load_read_only(tap, sample_bytes(type));
    }
}

DEVICE_FN bool are_taps_valid(uint32_t method, uint32_t type, const struct strip_rule *rule,
                              const struct strip_pixel *pixel) {
    const uint32_t side = side_of_taps(method);
    bool are_valid = true;
    UNROLL for (uint32_t i = 0; i < side * side; i++) are_valid &=
        is_surely_valid(type, rule, pixel->bits[i]);
    return are_valid;
}

/* Whether no tap that decides is valid. Cubic falls back to bilinear beside nodata, so these are
 * the inner taps. */
DEVICE_FN bool are_taps_nodata(uint32_t method, uint32_t type, const struct strip_rule *rule,
                               const struct strip_pixel *pixel) {
    const uint32_t side = side_of_taps(method), first = side == 4 ? 5 : 0;
    const uint32_t inner = side == 1 ? 1 : 2;
    bool are_nodata = true;
    UNROLL for (uint32_t i = 0; i < inner * inner; i++) are_nodata &=
        is_surely_nodata(type, rule, pixel->bits[first + i / inner * side + i % inner]);
    return are_nodata;
}

/* The sum of valid taps: bilinear_result and cubic_result without tests. */
DEVICE_FN double weigh_taps(uint32_t method, uint32_t type, const struct strip_pixel *pixel) {
    double values[STRIP_TAPS], across[4], down[4], columns[4];
    const uint32_t side = side_of_taps(method);
    UNROLL for (uint32_t i = 0; i < side * side; i++) values[i] = strip_value(type, pixel->bits[i]);
    if (method == COGPU_RESAMPLE_BILINEAR) {
        double weight = linear_weight(pixel->x, pixel->left);
        return weigh_two(weigh_two(values[0], values[1], weight),
                         weigh_two(values[2], values[3], weight),
                         linear_weight(pixel->y, pixel->top));
    }
    cubic_weights(pixel->x, pixel->left, across);
    cubic_weights(pixel->y, pixel->top, down);
    UNROLL for (uint32_t i = 0; i < 4; i++) {
        const double column[4] = {values[i], values[4 + i], values[8 + i], values[12 + i]};
        columns[i] = weigh_four(column, down);
    }
    return weigh_four(columns, across);
}

/* `bits`: the result, if there is one. */
DEVICE_FN void store_pixel(const struct warp_args *warp, uint32_t type, uint32_t band,
                           const struct strip_column *at, const struct strip_rule *rule,
                           const struct strip_pixel *pixel, bool is_valid, uint32_t bits) {
    if (!is_valid)
        bits = (uint32_t)warp->rules[band].fill;
    else if (may_be_avoided(type, rule, bits))
        bits = (uint32_t)avoid_nodata(type, bits, warp->rules[band].avoided);
    store_bits_aligned(type, strip_address(&warp->target, band, (int32_t)at->column, pixel->row),
                       bits);
    if (warp->valid.data)
        *strip_address(&warp->valid, band, (int32_t)at->column, pixel->row) = is_valid ? 255 : 0;
}

/* ---- the loop ---- */

/* `group` pixels from row `j` of the strip on, but none from row `end` on: the last one is computed
 * again instead. A bit for each row whose pixel is not fast. */
DEVICE_FN uint32_t warp_group(const struct cogpu_warp_args *args, const struct strip_column *at,
                              const struct strip_rule *rules, uint32_t method, uint32_t type,
                              uint32_t group, bool is_exact, uint32_t j, uint32_t end) {
    const struct warp_args *warp = &args->warp;
    struct strip_pixel pixels[STRIP_GROUP];
    uint32_t slow = 0;
    UNROLL for (uint32_t u = 0; u < group; u++)
        find_taps(args, at, method, is_exact, min_u32(j + u, end - 1), &pixels[u]);
    for (uint32_t band = 0; band < warp->bands; band++) {
        const struct strip_rule rule = rules[band];
        UNROLL for (uint32_t u = 0; u < group; u++) load_taps(warp, method, type, band, &pixels[u]);
        UNROLL for (uint32_t u = 0; u < group; u++) {
            uint32_t bits = method == COGPU_RESAMPLE_NEAREST
                                ? pixels[u].bits[0]
                                : strip_bits(type, weigh_taps(method, type, &pixels[u]));
            const bool are_valid = are_taps_valid(method, type, &rule, &pixels[u]);
            pixels[u].is_fast &= are_valid || are_taps_nodata(method, type, &rule, &pixels[u]);
            if (pixels[u].is_fast)
                store_pixel(warp, type, band, at, &rule, &pixels[u], are_valid, bits);
        }
    }
    UNROLL for (uint32_t u = 0; u < group; u++) slow |= (uint32_t)!pixels[u].is_fast
                                                        << (pixels[u].row - at->first_row);
    return slow;
}

/* The fast pixels of one task. Returns a bit for each row of the strip where this thread's pixel is
 * still to be computed, in column at->column. A collective of the block. */
DEVICE_FN uint32_t warp_strip(const struct cogpu_warp_args *args, struct strip_shared *shared,
                              uint32_t task, uint32_t method, uint32_t type, uint32_t group,
                              struct strip_column *at) {
    const struct warp_args *warp = &args->warp;
    const uint32_t cell_x =
        warp->target_x / WARP_CELL + task % args->across * COGPU_WARP_STRIP_CELLS;
    const uint32_t cell_y = warp->target_y / WARP_CELL + task / args->across;
    const uint32_t place = thread_index() % STRIP_COLUMNS, cell = place / WARP_CELL;
    const uint32_t above = warp->target_y > cell_y * WARP_CELL ? warp->target_y % WARP_CELL : 0;
    const uint32_t bottom = warp->target_y + warp->target_height - cell_y * WARP_CELL;
    uint32_t first = thread_index() / STRIP_COLUMNS * STRIP_ROWS, slow = 0;
    const uint32_t end = min_u32(first + STRIP_ROWS, bottom);
    prepare_strip(args, type, cell_x - warp->lattice.first_cell_x,
                  cell_y - warp->lattice.first_cell_y, shared);
    sync_block();
    at->spans = shared->spans[cell];
    at->i = place % WARP_CELL;
    at->across = at->i * (1.0 / WARP_CELL);
    at->table = shared->tables[cell];
    at->is_inside = shared->inside[cell] != 0;
    at->column = cell_x * WARP_CELL + place - warp->target_x; /* wraps left of the window */
    at->first_row = (int32_t)(cell_y * WARP_CELL - warp->target_y);
    first = max_u32(first, above);
    if (at->column < warp->target_width && at->table == UINT32_MAX)
        for (uint32_t j = first; j < end; j += group)
            slow |= warp_group(args, at, shared->rules, method, type, group, false, j, end);
    else if (at->column < warp->target_width)
        for (uint32_t j = first; j < end; j++)
            slow |= warp_group(args, at, shared->rules, method, type, 1, true, j, end);
    return slow;
}

/* Appends this thread's slow pixels to the list. */
DEVICE_FN void list_slow_pixels(struct strip_shared *shared, uint32_t slow) {
    const uint32_t place = thread_index() % STRIP_COLUMNS;
    uint32_t index = slow ? atomic_add(&shared->slow_count, count_ones(slow)) : 0;
    for (; slow; slow &= slow - 1)
        shared->slow[index++] = (uint16_t)(trailing_zeros(slow) * STRIP_COLUMNS + place);
}

/* A kernel: method, sample type, pixels that a thread computes at the same time, and resident
 * thread blocks. A strip without slow pixels takes two barriers. */
#define STRIP_KERNEL(name, method, type, group, resident)                                          \
    DEVICE_FN_BIG void name##_slow(const struct warp_args *warp, uint32_t column, uint32_t row) {  \
        warp_pixel(warp, method, type, column, row);                                               \
    }                                                                                              \
    KERNEL(name, struct cogpu_warp_args, struct strip_shared, COGPU_WARP_STRIP_THREADS,            \
           resident) {                                                                             \
        for (uint32_t task = block_index(); task < args->across * args->down;                      \
             task += block_count()) {                                                              \
            struct strip_column at;                                                                \
            uint32_t slow = warp_strip(args, shared, task, method, type, group, &at);              \
            uint32_t first_column = at.column - thread_index() % STRIP_COLUMNS;                    \
            if (!sync_block_or(slow != 0))                                                         \
                continue;                                                                          \
            list_slow_pixels(shared, slow);                                                        \
            sync_block();                                                                          \
            for (uint32_t i = thread_index(); i < shared->slow_count; i += thread_count())         \
                name##_slow(&args->warp, first_column + shared->slow[i] % STRIP_COLUMNS,           \
                            (uint32_t)at.first_row + shared->slow[i] / STRIP_COLUMNS);             \
            sync_block();                                                                          \
        }                                                                                          \
    }

#endif
