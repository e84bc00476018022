/*
 * The loop of kernels that work on strips of cells: 16 rows and COGPU_WARP_STRIP_CELLS cells of the
 * target for a thread block.
 *
 *   cell 0   cell 1           spans: both ends of a row of a cell, computed once for its 16 pixels
 *   |--------|--------| ...   a thread: one column, rows of its half of the strip
 *   |--------|--------|
 *   |   ...  |   ...  |
 *
 * A pixel is fast if its taps are in the source window and certainly valid in all bands. All others
 * are kept in a mask of bits and computed at the end by warp_pixel.
 */
#ifndef COGPU_KERNELS_WARP_WARP_STRIP_H
#define COGPU_KERNELS_WARP_WARP_STRIP_H

#include "kernels/simt.h"
#include "kernels/warp/warp_args.h"

enum {
    STRIP_COLUMNS = COGPU_WARP_STRIP_CELLS * WARP_CELL,
    STRIP_ROWS = WARP_CELL * STRIP_COLUMNS / COGPU_WARP_STRIP_THREADS /* of a thread */
};

/* A row of a cell: its left end, and the way to its right end. */
struct strip_span {
    double x, y, across_x, across_y;
};

struct strip_shared {
    struct strip_span spans[COGPU_WARP_STRIP_CELLS][WARP_CELL];
    uint32_t tables[COGPU_WARP_STRIP_CELLS];
    uint32_t inside[COGPU_WARP_STRIP_CELLS]; /* a bit for each row: both ends are inside */
};

/* The column that a thread works on. */
struct strip_column {
    uint32_t cell, i;       /* in the strip; in the cell */
    uint32_t column;        /* in the target window */
    uint32_t table, inside; /* of the cell */
};

DEVICE_FN bool is_inside(const struct cogpu_warp_args *args, double x, double y) {
    return x >= args->left && x < args->right && y >= args->top && y < args->bottom;
}

/* Spans of all rows of the strip's cells, one by each thread. `first_cell` and `row` are places in
 * the lattice. A collective of the block. */
DEVICE_FN void prepare_strip(const struct cogpu_warp_args *args, uint32_t first_cell, uint32_t row,
                             struct strip_shared *shared) {
    const struct warp_lattice *lattice = &args->warp.lattice;
    const uint32_t cell = thread_index() / WARP_CELL, j = thread_index() % WARP_CELL;
    uint32_t table = 0, bits;
    bool is_row_inside = false;
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
        shared->inside[cell] = cell % 2 ? bits >> WARP_CELL : bits & 0xFFFF;
    }
}

/* False: the position may have taps outside of the source window. */
DEVICE_FN bool find_point(const struct cogpu_warp_args *args, const struct strip_shared *shared,
                          const struct strip_column *at, uint32_t j, struct warp_point *point) {
    if (at->table == UINT32_MAX) {
        const struct strip_span *span = &shared->spans[at->cell][j];
        double across = at->i * (1.0 / WARP_CELL);
        point->x = span->x + span->across_x * across;
        point->y = span->y + span->across_y * across;
    } else {
        *point = point_of_table(&args->warp.lattice, at->table, at->i, j);
    }
    return at->inside >> j & 1 || is_inside(args, point->x, point->y);
}

/* ---- samples ---- */

/* Tells samples that are certainly valid in a band: integers that differ from nodata; floats that
 * are further than `radius` from it, which NaN never is. */
struct strip_nodata {
    uint32_t equal;
    float middle, radius;
};

DEVICE_FN struct strip_nodata strip_nodata_of(uint32_t type, const struct warp_nodata *rule) {
    struct strip_nodata nodata = {UINT32_MAX, 0, -1}; /* nothing but NaN */
    if (rule->match == MATCHES_EQUAL) {
        int32_t whole = (int32_t)rule->value;
        nodata.equal = type == COGPU_TYPE_U8 ? (uint8_t)whole : (uint16_t)whole;
    }
    if (rule->match == MATCHES_FLOAT) {
        /* matches_nodata: within 4.8e-7 of the number. */
        nodata.middle = (float)rule->value;
        nodata.radius = fabsf(nodata.middle) * 1e-6F;
        if (!(nodata.radius <= 3e38F)) /* of an infinity */
            nodata.radius = 0;
    }
    return nodata;
}

DEVICE_FN bool is_surely_valid(uint32_t type, const struct strip_nodata *nodata, uint32_t bits) {
    return type == COGPU_TYPE_F32 ? fabsf(float_from_bits(bits) - nodata->middle) > nodata->radius
                                  : bits != nodata->equal;
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

/* ---- pixels ---- */

enum { STRIP_TAPS = 16, STRIP_GROUP = 4 }; /* the most */

/* Pixels of one column that a thread computes at the same time. */
struct strip_pixel {
    bool is_wanted;      /* in the target window */
    bool is_fast;        /* all taps are inside and, so far, valid */
    uint32_t row;        /* in the target window */
    double x, y;         /* position in the level */
    double left, top;    /* the pixel that its weights refer to */
    const uint8_t *taps; /* the first one, in band 0 */
    uint32_t bits[STRIP_TAPS];
};

DEVICE_FN uint32_t taps_of_method(uint32_t method) {
    return method == COGPU_RESAMPLE_NEAREST ? 1 : method == COGPU_RESAMPLE_CUBIC ? 4 : 2;
}

/* Finds the taps of a pixel; any address in the source if they are not inside. */
DEVICE_FN void find_taps(const struct cogpu_warp_args *args, uint32_t method,
                         struct strip_pixel *pixel) {
    const struct warp_args *warp = &args->warp;
    int32_t x, y;
    if (method == COGPU_RESAMPLE_NEAREST) {
        split_floor(pixel->x + WARP_TOLERANCE, &x);
        split_floor(pixel->y + WARP_TOLERANCE, &y);
    } else {
        pixel->left = split_floor(pixel->x - 0.5, &x);
        pixel->top = split_floor(pixel->y - 0.5, &y);
    }
    x -= (int32_t)warp->x + (method == COGPU_RESAMPLE_CUBIC);
    y -= (int32_t)warp->y + (method == COGPU_RESAMPLE_CUBIC);
    pixel->taps = plane_at(&warp->source, 0, pixel->is_fast ? x : 0, pixel->is_fast ? y : 0);
}

/* Down each column, as cubic_result sums. */
DEVICE_FN void load_taps(const struct warp_args *warp, uint32_t method, uint32_t type,
                         uint32_t band, struct strip_pixel *pixel) {
    const uint32_t side = taps_of_method(method);
    const uint8_t *taps = pixel->taps + (int64_t)band * warp->source.stride_band;
    UNROLL for (uint32_t j = 0; j < side; j++, taps += warp->source.stride_y)
        UNROLL for (uint32_t i = 0; i < side; i++) pixel->bits[side * j + i] = load_read_only(
        pixel->is_fast ? taps + i * warp->source.stride_x : warp->source.data, sample_bytes(type));
}

DEVICE_FN bool are_taps_valid(uint32_t method, uint32_t type, const struct strip_nodata *nodata,
                              const struct strip_pixel *pixel) {
    const uint32_t side = taps_of_method(method);
    bool are_valid = true;
    UNROLL for (uint32_t i = 0; i < side * side; i++) are_valid &=
        is_surely_valid(type, nodata, pixel->bits[i]);
    return are_valid;
}

/* The sum of valid taps: bilinear_result and cubic_result without tests. */
DEVICE_FN double weigh_taps(uint32_t method, uint32_t type, const struct strip_pixel *pixel) {
    double values[STRIP_TAPS], across[4], down[4], columns[4];
    const uint32_t side = taps_of_method(method);
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

DEVICE_FN void store_pixel(const struct warp_args *warp, uint32_t type, uint32_t band,
                           uint32_t column, uint32_t row, uint32_t bits) {
    const struct warp_rule *rule = &warp->rules[band];
    if (rule->avoids)
        bits = (uint32_t)avoid_nodata(type, bits, rule->avoided);
    store_sample((uint8_t *)plane_at(&warp->target, band, column, row), bits, sample_bytes(type));
    if (warp->valid.data)
        *(uint8_t *)plane_at(&warp->valid, band, column, row) = 255;
}

/* ---- the loop ---- */

/* `group` pixels from row `j` of the strip on, the first of which is row `first_y` of the grid. A
 * bit for each that is wanted and not fast. */
DEVICE_FN uint32_t warp_group(const struct cogpu_warp_args *args, const struct strip_shared *shared,
                              const struct strip_column *at, uint32_t method, uint32_t type,
                              uint32_t group, uint32_t first_y, uint32_t j) {
    const struct warp_args *warp = &args->warp;
    struct strip_pixel pixels[STRIP_GROUP];
    uint32_t slow = 0;
    UNROLL for (uint32_t u = 0; u < group; u++) {
        struct strip_pixel *pixel = &pixels[u];
        struct warp_point point;
        pixel->row = first_y + j + u - warp->target_y; /* wraps above the window */
        pixel->is_wanted = pixel->row < warp->target_height;
        pixel->is_fast = find_point(args, shared, at, j + u, &point) && pixel->is_wanted;
        pixel->x = point.x;
        pixel->y = point.y;
        find_taps(args, method, pixel);
    }
    for (uint32_t band = 0; band < warp->bands; band++) {
        const struct strip_nodata nodata = strip_nodata_of(type, &warp->rules[band].nodata);
        UNROLL for (uint32_t u = 0; u < group; u++) load_taps(warp, method, type, band, &pixels[u]);
        UNROLL for (uint32_t u = 0; u < group; u++) {
            pixels[u].is_fast &= are_taps_valid(method, type, &nodata, &pixels[u]);
            uint32_t bits = method == COGPU_RESAMPLE_NEAREST
                                ? pixels[u].bits[0]
                                : strip_bits(type, weigh_taps(method, type, &pixels[u]));
            if (pixels[u].is_fast)
                store_pixel(warp, type, band, at->column, pixels[u].row, bits);
        }
    }
    UNROLL for (uint32_t u = 0; u < group; u++) slow |=
        (uint32_t)(pixels[u].is_wanted && !pixels[u].is_fast) << u;
    return slow;
}

/* All pixels of one task. Returns a bit for each row of the strip where this thread's pixel is
 * still to be computed, at *column and from row *first_row on, which may lie above the window. A
 * collective of the block. */
DEVICE_FN uint32_t warp_strip(const struct cogpu_warp_args *args, struct strip_shared *shared,
                              uint32_t task, uint32_t method, uint32_t type, uint32_t group,
                              uint32_t *column, uint32_t *first_row) {
    const struct warp_args *warp = &args->warp;
    const uint32_t cell_x =
        warp->target_x / WARP_CELL + task % args->across * COGPU_WARP_STRIP_CELLS;
    const uint32_t cell_y = warp->target_y / WARP_CELL + task / args->across;
    const uint32_t place = thread_index() % STRIP_COLUMNS;
    const uint32_t first = thread_index() / STRIP_COLUMNS * STRIP_ROWS;
    uint32_t slow = 0;
    prepare_strip(args, cell_x - warp->lattice.first_cell_x, cell_y - warp->lattice.first_cell_y,
                  shared);
    sync_block();
    const struct strip_column at = {
        place / WARP_CELL, place % WARP_CELL, cell_x * WARP_CELL + place - warp->target_x,
        shared->tables[place / WARP_CELL], shared->inside[place / WARP_CELL]};
    if (at.column < warp->target_width)
        for (uint32_t j = first; j < first + STRIP_ROWS; j += group)
            slow |= warp_group(args, shared, &at, method, type, group, cell_y * WARP_CELL, j) << j;
    sync_block();
    *column = at.column;
    *first_row = cell_y * WARP_CELL - warp->target_y;
    return slow;
}

/* A kernel: method, sample type, pixels that a thread computes at the same time, and resident
 * thread blocks. */
#define STRIP_KERNEL(name, method, type, group, resident)                                          \
    DEVICE_FN_BIG void name##_slow(const struct warp_args *warp, uint32_t column, uint32_t row) {  \
        warp_pixel(warp, method, type, column, row);                                               \
    }                                                                                              \
    KERNEL(name, struct cogpu_warp_args, struct strip_shared, COGPU_WARP_STRIP_THREADS,            \
           resident) {                                                                             \
        for (uint32_t task = block_index(); task < args->across * args->down;                      \
             task += block_count()) {                                                              \
            uint32_t column, row;                                                                  \
            uint32_t slow = warp_strip(args, shared, task, method, type, group, &column, &row);    \
            for (; slow; slow &= slow - 1)                                                         \
                name##_slow(&args->warp, column, row + trailing_zeros(slow));                      \
        }                                                                                          \
    }

#endif
