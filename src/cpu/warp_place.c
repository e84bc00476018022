/* Positions of the pixels of a unit, which of them are accepted, and the source pixels they need.
 */
#include "cpu/warp_unit.h"

/* ---- positions ---- */

/* Whole cells are computed: pixels beyond the cell's last are overwritten by the next cell. */
static inline __attribute__((always_inline)) void locate_on_span(const struct warp_span *span,
                                                                 uint32_t first,
                                                                 double *restrict to_x,
                                                                 double *restrict to_y) {
    for (uint32_t k = 0; k < WARP_CELL; k++) {
        struct warp_point point = point_of_span(span, first + k);
        to_x[k] = point.x;
        to_y[k] = point.y;
    }
}

static inline __attribute__((always_inline)) void locate_in_table(
    const struct warp_lattice *lattice, uint32_t table, uint32_t i, uint32_t j, uint32_t count,
    double *restrict to_x, double *restrict to_y) {
    const double *from =
        lattice->exact + 2 * (((uint64_t)table * lattice->points + j) * lattice->points + i);
    for (uint32_t k = 0; k < count; k++) {
        to_x[k] = from[2 * k];
        to_y[k] = from[2 * k + 1];
    }
}

/* Some pixels of a row that are in one cell: `at` is the first in the unit. */
struct warp_segment {
    uint64_t cell;
    uint32_t i, j; /* of the first, in the cell */
    uint32_t at, count;
};

static struct warp_segment find_segment(const struct warp_args *args, const struct warp_unit *unit,
                                        uint32_t i, uint32_t j) {
    uint32_t x = args->target_x + unit->column + i, y = args->target_y + unit->row + j;
    uint32_t left = unit->columns - i, in_cell = WARP_CELL - x % WARP_CELL;
    return (struct warp_segment){.cell = cell_of_pixel(&args->lattice, x, y),
                                 .i = x % WARP_CELL,
                                 .j = y % WARP_CELL,
                                 .at = j * UNIT_COLUMNS + i,
                                 .count = in_cell < left ? in_cell : left};
}

#define EACH_SEGMENT(args, unit, j, segment)                                                       \
    for (struct warp_segment segment = find_segment(args, unit, 0, j); segment.count > 0;          \
         segment = find_segment(args, unit, segment.at % UNIT_COLUMNS + segment.count, j))

/* ---- acceptance ---- */

/* The least and the largest position. */
struct warp_limits {
    double left, top, right, bottom;
};

static void widen_limits(struct warp_limits *limits, double x, double y) {
    limits->left = x < limits->left ? x : limits->left;
    limits->right = x > limits->right ? x : limits->right;
    limits->top = y < limits->top ? y : limits->top;
    limits->bottom = y > limits->bottom ? y : limits->bottom;
}

static bool is_accepted(const struct warp_args *args, struct warp_point point) {
    struct warp_place place;
    place.point = point;
    return find_nearest(args, &place);
}

static void accept_each(const struct warp_args *args, const struct warp_segment *segment,
                        struct warp_unit *unit, struct warp_limits *limits) {
    for (uint32_t at = segment->at; at < segment->at + segment->count; at++) {
        if (args->clamps) {
            unit->x[at] = clamp_to_axis(unit->x[at], args->level_width);
            unit->y[at] = clamp_to_axis(unit->y[at], args->level_height);
        }
        struct warp_point point = {unit->x[at], unit->y[at]};
        unit->has_place[at] = is_accepted(args, point);
        if (unit->has_place[at])
            widen_limits(limits, point.x, point.y);
    }
}

/* Along a span positions rise or fall, so all are accepted if both ends are. */
static void accept_on_span(const struct warp_args *args, const struct warp_segment *segment,
                           struct warp_unit *unit, struct warp_limits *limits) {
    uint32_t first = segment->at, last = first + segment->count - 1;
    struct warp_point a = {unit->x[first], unit->y[first]}, b = {unit->x[last], unit->y[last]};
    if (args->clamps || !is_accepted(args, a) || !is_accepted(args, b)) {
        accept_each(args, segment, unit, limits);
        return;
    }
    memset(unit->has_place + first, 1, segment->count);
    widen_limits(limits, a.x, a.y);
    widen_limits(limits, b.x, b.y);
}

BODY locate_body(const struct warp_args *args, struct warp_unit *unit, struct warp_limits *limits) {
    *limits = (struct warp_limits){INFINITY, INFINITY, -INFINITY, -INFINITY};
    EACH_UNIT_ROW(unit, j)
    EACH_SEGMENT(args, unit, j, segment) {
        double *x = unit->x + segment.at, *y = unit->y + segment.at;
        uint32_t table = args->lattice.cells[segment.cell];
        if (table == UINT32_MAX) {
            const struct warp_span span = span_of_cell(&args->lattice, segment.cell, segment.j);
            locate_on_span(&span, segment.i, x, y);
            accept_on_span(args, &segment, unit, limits);
        } else {
            locate_in_table(&args->lattice, table, segment.i, segment.j, segment.count, x, y);
            accept_each(args, &segment, unit, limits);
        }
    }
}
FOR_AVX2(static, locate,
         (const struct warp_args *args, struct warp_unit *unit, struct warp_limits *limits),
         (args, unit, limits))

void cogpu_warp_locate(const struct warp_args *args, struct warp_unit *unit) {
    struct warp_limits limits;
    locate(args, unit, &limits);
}

/* ---- boxes ---- */

static enum warp_box_kind set_box(struct warp_tile *tile, int64_t left, int64_t top, int64_t right,
                                  int64_t bottom) {
    if (right <= left || bottom <= top)
        return BOX_IS_EMPTY;
    if (right - left > TILE_SAMPLES || bottom - top > TILE_SAMPLES / (right - left))
        return BOX_IS_TOO_LARGE;
    tile->left = left;
    tile->top = top;
    tile->width = (uint32_t)(right - left);
    tile->height = (uint32_t)(bottom - top);
    return BOX_FITS;
}

static struct warp_filter filter_of(const struct warp_args *args, const struct warp_filter *axis) {
    struct warp_filter filter = *axis;
    if (args->has_four_taps) {
        filter.first = args->method == COGPU_RESAMPLE_CUBIC ? -1 : 0;
        filter.last = args->method == COGPU_RESAMPLE_CUBIC ? 2 : 1;
    }
    return filter;
}

/* Where each pixel's taps begin in the tile. Vector code reads beyond the last column. */
BODY find_origins_body(const struct warp_args *args, struct warp_unit *unit) {
    double left = (double)args->x + (double)unit->tile.left;
    double top = (double)args->y + (double)unit->tile.top, width = unit->tile.width;
    EACH_UNIT_ROW(unit, j) {
        uint32_t first = j * UNIT_COLUMNS, columns = unit->columns;
        double *restrict to_left = unit->left + first, *restrict to_top = unit->top + first;
        int32_t *restrict to = unit->origin + first;
        for (uint32_t i = 0; i < columns; i++) {
            to_left[i] = pixel_left_of(unit->x[first + i]);
            to_top[i] = pixel_left_of(unit->y[first + i]);
            double origin = (to_top[i] - top) * width + (to_left[i] - left);
            to[i] = (int32_t)(unit->has_place[first + i] ? origin : 0);
        }
        memset(to + columns, 0, (UNIT_COLUMNS - columns) * sizeof *to);
        memset(unit->has_place + first + columns, 0, UNIT_COLUMNS - columns);
    }
}
FOR_AVX2(static, find_origins, (const struct warp_args *args, struct warp_unit *unit), (args, unit))

static enum warp_box_kind find_box_of_kernels(const struct warp_args *args,
                                              struct warp_unit *unit) {
    struct warp_limits limits;
    locate(args, unit, &limits);
    if (limits.left > limits.right)
        return BOX_IS_EMPTY;
    struct warp_filter across = filter_of(args, &args->across);
    struct warp_filter down = filter_of(args, &args->down);
    enum warp_box_kind kind =
        set_box(&unit->tile, (int64_t)pixel_left_of(limits.left) + across.first - args->x,
                (int64_t)pixel_left_of(limits.top) + down.first - args->y,
                (int64_t)pixel_left_of(limits.right) + across.last + 1 - args->x,
                (int64_t)pixel_left_of(limits.bottom) + down.last + 1 - args->y);
    if (kind == BOX_FITS)
        find_origins(args, unit);
    return kind;
}

/* ---- areas ---- */

/* Upper left corners, and lower right corners in place of `left` and `top`. */
BODY locate_corners_body(const struct warp_args *args, struct warp_unit *unit) {
    const struct warp_lattice *lattice = &args->lattice;
    EACH_UNIT_ROW(unit, j)
    EACH_SEGMENT(args, unit, j, segment) {
        uint32_t table = lattice->cells[segment.cell], at = segment.at;
        if (table == UINT32_MAX) {
            const struct warp_span upper = span_of_cell(lattice, segment.cell, segment.j);
            const struct warp_span lower = span_of_cell(lattice, segment.cell, segment.j + 1);
            locate_on_span(&upper, segment.i, unit->x + at, unit->y + at);
            locate_on_span(&lower, segment.i + 1, unit->left + at, unit->top + at);
        } else {
            locate_in_table(lattice, table, segment.i, segment.j, segment.count, unit->x + at,
                            unit->y + at);
            locate_in_table(lattice, table, segment.i + 1, segment.j + 1, segment.count,
                            unit->left + at, unit->top + at);
        }
    }
}
FOR_AVX2(static, locate_corners, (const struct warp_args *args, struct warp_unit *unit),
         (args, unit))

/* A box of whole pixels of the level. */
struct warp_bounds {
    int64_t left, top, right, bottom;
};

static void widen_bounds(const struct warp_args *args, const struct warp_area *area,
                         struct warp_bounds *bounds) {
    int64_t left = begin_in_window(&area->across, args->x);
    int64_t top = begin_in_window(&area->down, args->y);
    int64_t right = end_in_window(&area->across, args->x, args->width);
    int64_t bottom = end_in_window(&area->down, args->y, args->height);
    bounds->left = left < bounds->left ? left : bounds->left;
    bounds->top = top < bounds->top ? top : bounds->top;
    bounds->right = right > bounds->right ? right : bounds->right;
    bounds->bottom = bottom > bounds->bottom ? bottom : bounds->bottom;
}

BODY find_areas_body(const struct warp_args *args, struct warp_unit *unit,
                     struct warp_bounds *bounds, bool *goes_over) {
    *goes_over = false;
    *bounds = (struct warp_bounds){INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN};
    EACH_UNIT_ROW(unit, j)
    EACH_UNIT_COLUMN(unit, i) {
        uint32_t at = j * UNIT_COLUMNS + i;
        struct warp_point a = {unit->x[at], unit->y[at]}, b = {unit->left[at], unit->top[at]};
        unit->has_place[at] = area_of_corners(args, a, b, &unit->areas[at]);
        if (unit->has_place[at])
            widen_bounds(args, &unit->areas[at], bounds);
        *goes_over |= unit->has_place[at] && goes_round(args, &unit->areas[at]);
    }
}
FOR_AVX2(static, find_areas,
         (const struct warp_args *args, struct warp_unit *unit, struct warp_bounds *bounds,
          bool *goes_over),
         (args, unit, bounds, goes_over))

static enum warp_box_kind find_box_of_areas(const struct warp_args *args, struct warp_unit *unit) {
    struct warp_bounds bounds;
    bool goes_over; /* the seam: without a tile */
    locate_corners(args, unit);
    find_areas(args, unit, &bounds, &goes_over);
    if (goes_over)
        return BOX_IS_TOO_LARGE;
    if (bounds.right <= bounds.left || bounds.bottom <= bounds.top)
        return BOX_IS_EMPTY;
    return set_box(&unit->tile, bounds.left - args->x, bounds.top - args->y, bounds.right - args->x,
                   bounds.bottom - args->y);
}

enum warp_box_kind cogpu_warp_find_box(const struct warp_args *args, struct warp_unit *unit) {
    return is_area_method(args->method) ? find_box_of_areas(args, unit)
                                        : find_box_of_kernels(args, unit);
}

/* ---- nearest pixels ---- */

/* A pixel that is valid in the first band is valid. */
void cogpu_warp_check_nearest(const struct warp_args *args, struct warp_unit *unit) {
    const struct warp_tile *tile = &unit->tile;
    if (tile->are_all_valid || is_area_method(args->method))
        return;
    EACH_UNIT_ROW(unit, j)
    EACH_UNIT_COLUMN(unit, i) {
        uint32_t at = j * UNIT_COLUMNS + i;
        if (!unit->has_place[at])
            continue;
        int64_t x = nearest_in_axis(unit->x[at], args->level_width) - args->x;
        int64_t y = nearest_in_axis(unit->y[at], args->level_height) - args->y;
        if (!unit->valid[(y - tile->top) * tile->width + (x - tile->left)])
            unit->has_place[at] = is_pixel_valid(args, args->from_type, x, y);
    }
}
