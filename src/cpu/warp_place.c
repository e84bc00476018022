/* Positions of the pixels of a unit, which of them are accepted, and the source pixels they need.
 */
#include "cpu/warp_unit.h"

/* Positions of some pixels of one row of a cell. */
BODY locate_in_cell(const struct warp_lattice *lattice, uint32_t x, uint32_t y, uint32_t count,
                    double *restrict to_x, double *restrict to_y) {
    uint64_t cell = cell_of_pixel(lattice, x, y);
    uint32_t table = lattice->cells[cell], i = x % WARP_CELL, j = y % WARP_CELL;
    if (table != UINT32_MAX) {
        const double *from =
            lattice->exact + 2 * (((uint64_t)table * lattice->points + j) * lattice->points + i);
        for (uint32_t k = 0; k < count; k++) {
            to_x[k] = from[2 * k];
            to_y[k] = from[2 * k + 1];
        }
        return;
    }
    const struct warp_span span = span_of_cell(lattice, cell, j);
    for (uint32_t k = 0; k < count; k++) {
        struct warp_point point = point_of_span(&span, i + k);
        to_x[k] = point.x;
        to_y[k] = point.y;
    }
}

/* The nearest pixel of an accepted position, as a double: nearest_in_axis. */
static inline double nearest_as_double(double x, uint32_t size) {
    double last = size - 0.5, moved = x + WARP_TOLERANCE;
    return floor(moved < last ? moved : last);
}

BODY accept_row(const struct warp_args *args, uint32_t count, double *restrict x,
                double *restrict y, uint8_t *restrict has_place) {
    double right = (double)args->x + args->width, bottom = (double)args->y + args->height;
    for (uint32_t i = 0; args->clamps && i < count; i++) {
        x[i] = clamp_to_axis(x[i], args->level_width);
        y[i] = clamp_to_axis(y[i], args->level_height);
    }
    for (uint32_t i = 0; i < count; i++) {
        double column = nearest_as_double(x[i], args->level_width);
        double row = nearest_as_double(y[i], args->level_height);
        has_place[i] = is_in_axis(x[i], args->level_width) & is_in_axis(y[i], args->level_height) &
                       (column >= args->x) & (column < right) & (row >= args->y) & (row < bottom);
    }
}

BODY cogpu_warp_locate_body(const struct warp_args *args, struct warp_unit *unit) {
    EACH_UNIT_ROW(unit, j) {
        uint32_t y = args->target_y + unit->row + j, at = j * UNIT_COLUMNS;
        for (uint32_t i = 0, count; i < unit->columns; i += count) {
            uint32_t x = args->target_x + unit->column + i, left = unit->columns - i;
            count = WARP_CELL - x % WARP_CELL;
            count = count < left ? count : left;
            locate_in_cell(&args->lattice, x, y, count, unit->x + at + i, unit->y + at + i);
        }
        accept_row(args, unit->columns, unit->x + at, unit->y + at, unit->has_place + at);
    }
}
FOR_AVX2(extern, cogpu_warp_locate, (const struct warp_args *args, struct warp_unit *unit),
         (args, unit))

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

static enum warp_box_kind find_box_of_areas(const struct warp_args *args, struct warp_unit *unit) {
    int64_t left = INT64_MAX, top = INT64_MAX, right = INT64_MIN, bottom = INT64_MIN;
    EACH_UNIT_ROW(unit, j)
    EACH_UNIT_COLUMN(unit, i) {
        uint32_t at = j * UNIT_COLUMNS + i;
        struct warp_area *area = &unit->areas[at];
        unit->has_place[at] = find_area(args, args->target_x + unit->column + i,
                                        args->target_y + unit->row + j, area);
        if (!unit->has_place[at])
            continue;
        int64_t x = begin_in_window(&area->across, args->x);
        int64_t y = begin_in_window(&area->down, args->y);
        int64_t end_x = end_in_window(&area->across, args->x, args->width);
        int64_t end_y = end_in_window(&area->down, args->y, args->height);
        left = x < left ? x : left;
        top = y < top ? y : top;
        right = end_x > right ? end_x : right;
        bottom = end_y > bottom ? end_y : bottom;
    }
    if (right <= left || bottom <= top)
        return BOX_IS_EMPTY;
    return set_box(&unit->tile, left - args->x, top - args->y, right - args->x, bottom - args->y);
}

struct warp_limits {
    double left, top, right, bottom;
};

BODY find_limits_body(const struct warp_unit *unit, struct warp_limits *limits) {
    double left = INFINITY, top = INFINITY, right = -INFINITY, bottom = -INFINITY;
    EACH_UNIT_ROW(unit, j) {
        const double *x = unit->x + j * UNIT_COLUMNS, *y = unit->y + j * UNIT_COLUMNS;
        const uint8_t *has_place = unit->has_place + j * UNIT_COLUMNS;
        EACH_UNIT_COLUMN(unit, i) {
            if (!has_place[i])
                continue;
            left = x[i] < left ? x[i] : left;
            right = x[i] > right ? x[i] : right;
            top = y[i] < top ? y[i] : top;
            bottom = y[i] > bottom ? y[i] : bottom;
        }
    }
    *limits = (struct warp_limits){left, top, right, bottom};
}
FOR_AVX2(static, find_limits, (const struct warp_unit *unit, struct warp_limits *limits),
         (unit, limits))

static struct warp_filter filter_of(const struct warp_args *args, const struct warp_filter *axis) {
    struct warp_filter filter = *axis;
    if (args->has_four_taps) {
        filter.first = args->method == COGPU_RESAMPLE_CUBIC ? -1 : 0;
        filter.last = args->method == COGPU_RESAMPLE_CUBIC ? 2 : 1;
    }
    return filter;
}

/* Where each pixel's taps begin in the tile. */
BODY find_origins_body(const struct warp_args *args, struct warp_unit *unit) {
    double left = (double)args->x + (double)unit->tile.left;
    double top = (double)args->y + (double)unit->tile.top, width = unit->tile.width;
    EACH_UNIT_ROW(unit, j)
    EACH_UNIT_COLUMN(unit, i) {
        uint32_t at = j * UNIT_COLUMNS + i;
        unit->left[at] = pixel_left_of(unit->x[at]);
        unit->top[at] = pixel_left_of(unit->y[at]);
        double origin = (unit->top[at] - top) * width + (unit->left[at] - left);
        unit->origin[at] = unit->has_place[at] ? (int32_t)origin : 0;
    }
    EACH_UNIT_ROW(unit, j) /* vectors reach beyond the last column */
    for (uint32_t i = unit->columns; i < UNIT_COLUMNS; i++)
        unit->origin[j * UNIT_COLUMNS + i] = unit->has_place[j * UNIT_COLUMNS + i] = 0;
}
FOR_AVX2(static, find_origins, (const struct warp_args *args, struct warp_unit *unit), (args, unit))

enum warp_box_kind cogpu_warp_find_box(const struct warp_args *args, struct warp_unit *unit) {
    struct warp_limits limits;
    if (is_area_method(args->method))
        return find_box_of_areas(args, unit);
    cogpu_warp_locate(args, unit);
    find_limits(unit, &limits);
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
