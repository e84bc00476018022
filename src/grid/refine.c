/*
 * See refine.h. A group is four cells that were one cell of the level above:
 *
 *     0   1   2   3   4
 *   0 +---o---+---o---+    + corners of cells, o midpoints: 5 x 5 points of PROJ for four cells.
 *     o   o   o   o   o    The corners and midpoints of a divided cell are 9 points of the group
 *   2 +---o---+---o---+    that it becomes.
 *     o   o   o   o   o
 *   4 +---o---+---o---+    At the border of the grid cells end with the grid: beyond it, positions
 *                          may not exist. If the second cell would begin outside, the first takes
 *                          all 5 points: its corners are 0 and 4, its midpoint is 2.
 *
 * Second differences measure the error at the midpoints. They vanish where the curvature changes
 * its sign, as that of Mercator does on the equator. So the third difference along the lines of a
 * group is added. And one more point, off all lines, must be where interpolation puts it: points at
 * regular distances see nothing of a function that repeats itself at them.
 */
#include "grid/refine.h"

#include "base/math.h"
#include "base/memory.h"
#include "plan/warp.h"

#include <math.h>
#include <string.h>

enum {
    SIDE = 5, /* points of a group */
    TOP_CELL_PIXELS = COGPU_REFINE_STRIP / 2,
    ABSENT_CELL_PIXELS = 64, /* a group of smaller cells without any position has none in between */
    OUTSIDE_PIXELS = 2,      /* from the border of the other raster to where none is needed */
    GROUPS_OF_STRIP = 64
};

typedef struct axis {
    double at[SIDE]; /* pixels of the grid */
    uint32_t cells;  /* 2, or 1 */
} axis;

typedef struct group {
    uint32_t x, y;
    axis across, down;
    uint32_t known; /* bit of each point: SIDE * row + column */
    double point_x[SIDE * SIDE], point_y[SIDE * SIDE];
} group;

typedef struct groups {
    group *items;
    size_t count, capacity;
} groups;

/* A cell that seems to be precise: of the group of that number. */
typedef struct candidate_cell {
    size_t group;
    uint32_t column, row;
    double tolerance;
} candidate_cell;

typedef struct candidate_list {
    candidate_cell *items;
    size_t count, capacity;
} candidate_list;

typedef struct refiner {
    const cogpu_mapping *mapping;
    double max_error;
    uint32_t x0, y0, x1, y1;
    groups level, next;
    candidate_list candidates; /* of the level */
    double *x, *y;             /* positions to transform */
    size_t capacity;
    double above_x[4 * GROUPS_OF_STRIP + 1], above_y[4 * GROUPS_OF_STRIP + 1];
    cogpu_leaves *leaves;
} refiner;

/* Grows a list by one item. `items` is the address of the pointer. */
static cogpu_status grow_list(void *items, size_t count, size_t *capacity, size_t size,
                              cogpu_error *error) {
    void *memory;
    if (count < *capacity)
        return COGPU_OK;
    const size_t more = *capacity ? 2 * *capacity : 64;
    memcpy(&memory, items, sizeof memory);
    memory = more <= SIZE_MAX / size ? cogpu_resize(memory, more * size) : NULL;
    if (!memory)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory: %zu cells of a grid", more);
    memcpy(items, &memory, sizeof memory);
    *capacity = more;
    return COGPU_OK;
}

static cogpu_status reserve_points(refiner *in, size_t count, cogpu_error *error) {
    if (count <= in->capacity)
        return COGPU_OK;
    cogpu_release(in->x);
    in->x = cogpu_allocate(2 * count * sizeof *in->x);
    in->capacity = in->x ? count : 0;
    if (!in->x)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory: %zu positions", count);
    in->y = in->x + count;
    return COGPU_OK;
}

/* ---- groups -------------------------------------------------------------------------------- */

static axis place_points(uint32_t begin, uint32_t size, uint32_t pixels, double last) {
    const double a = begin, b = fmin(a + size, last), c = fmin(a + 2.0 * size, last);
    if (pixels - begin > size)
        return (axis){.at = {a, (a + b) / 2, b, (b + c) / 2, c}, .cells = 2};
    const double middle = (a + b) / 2;
    return (axis){.at = {a, (a + middle) / 2, middle, (middle + b) / 2, b}, .cells = 1};
}

static void place_group(const refiner *in, uint32_t x, uint32_t y, uint32_t size, group *placed) {
    const cogpu_mapping *mapping = in->mapping;
    placed->x = x, placed->y = y, placed->known = 0;
    placed->across = place_points(x, size, mapping->width, mapping->last_x);
    placed->down = place_points(y, size, mapping->height, mapping->last_y);
}

/* Index of the point; SIDE: none. */
static uint32_t find_point(const axis *in, double at) {
    uint32_t i = 0;
    while (i < SIDE && in->at[i] != at)
        i++;
    return i;
}

/* Copies the points that the parent has too. */
static void inherit_points(group *child, const group *parent) {
    for (uint32_t to = 0; to < SIDE * SIDE; to++) {
        const uint32_t i = find_point(&parent->across, child->across.at[to % SIDE]);
        const uint32_t j = find_point(&parent->down, child->down.at[to / SIDE]);
        if (i == SIDE || j == SIDE)
            continue;
        child->point_x[to] = parent->point_x[SIDE * j + i];
        child->point_y[to] = parent->point_y[SIDE * j + i];
        child->known |= 1u << to;
    }
}

/* Transforms all points of the level that are not known, in one batch. */
static cogpu_status transform_level(refiner *in, cogpu_error *error) {
    size_t used = 0, count = 0;
    const double offset = in->mapping->offset;
    TRY(reserve_points(in, in->level.count * SIDE * SIDE, error));
    for (size_t k = 0; k < in->level.count; k++) {
        const group *one = &in->level.items[k];
        for (uint32_t i = 0; i < SIDE * SIDE; i++)
            if (!(one->known >> i & 1)) {
                in->x[count] = one->across.at[i % SIDE] + offset;
                in->y[count++] = one->down.at[i / SIDE] + offset;
            }
    }
    cogpu_mapping_transform(in->mapping, count, in->x, in->y);
    for (size_t k = 0; k < in->level.count; k++) {
        group *one = &in->level.items[k];
        for (uint32_t i = 0; i < SIDE * SIDE; i++)
            if (!(one->known >> i & 1)) {
                one->point_x[i] = in->x[used];
                one->point_y[i] = in->y[used++];
            }
    }
    return COGPU_OK;
}

/* ---- errors of interpolation --------------------------------------------------------------- */

/* The points of a cell: corners and midpoints, row by row. */
typedef struct cell {
    uint32_t column, row; /* in the group: 0 or 1 */
    uint32_t points[9];
} cell;

static cell find_cell(const group *in, uint32_t column, uint32_t row) {
    const uint32_t step_x = in->across.cells == 1 ? 2 : 1, step_y = in->down.cells == 1 ? 2 : 1;
    cell found = {.column = column, .row = row};
    for (uint32_t i = 0; i < 9; i++)
        found.points[i] = SIDE * (2 * row + i / 3 * step_y) + 2 * column + i % 3 * step_x;
    return found;
}

/* Half the second difference: from the middle of a and c to b. */
static double measure_middle(const group *in, const cell *of, uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t p = of->points[a], q = of->points[b], r = of->points[c];
    return fabs(in->point_x[q] - (in->point_x[p] + in->point_x[r]) / 2) +
           fabs(in->point_y[q] - (in->point_y[p] + in->point_y[r]) / 2);
}

static double measure_centre(const group *in, const cell *of) {
    const uint32_t *p = of->points;
    const double *x = in->point_x, *y = in->point_y;
    return fabs(x[p[4]] - (x[p[0]] + x[p[2]] + x[p[6]] + x[p[8]]) / 4) +
           fabs(y[p[4]] - (y[p[0]] + y[p[2]] + y[p[6]] + y[p[8]]) / 4);
}

/* Newton's divided difference of four points, a sixth of the third derivative. */
static double divide_differences(const double at[4], const double *values, uint32_t step) {
    double d[4];
    for (uint32_t i = 0; i < 4; i++)
        d[i] = values[i * step];
    for (uint32_t order = 1; order < 4; order++)
        for (uint32_t i = 0; i + order < 4; i++)
            d[i] = (d[i + 1] - d[i]) / (at[i + order] - at[i]);
    return fabs(d[0]);
}

/* The most that the third derivative adds between the midpoints, along lines of `step`. A line with
 * a missing point says nothing. */
static double measure_third(const group *in, const axis *along, uint32_t line_step, uint32_t step) {
    /* max |u (1 - u) (1 - 2u)| / 12 for f''' times width^3; divided differences are f''' / 6. */
    static const double factor = 0.0481125224;
    const double width = along->at[along->cells == 1 ? 4 : 2] - along->at[0];
    double most = 0;
    for (uint32_t line = 0; line < SIDE; line++)
        for (uint32_t first = 0; first < 2; first++) {
            const uint32_t from = line * line_step + first * step;
            const double size = divide_differences(along->at + first, in->point_x + from, step) +
                                divide_differences(along->at + first, in->point_y + from, step);
            if (size > most)
                most = size;
        }
    return most * factor * width * width * width;
}

static double measure_cell(const group *in, const cell *of) {
    const double errors[] = {measure_middle(in, of, 0, 1, 2), measure_middle(in, of, 0, 3, 6),
                             measure_middle(in, of, 6, 7, 8), measure_middle(in, of, 2, 5, 8),
                             measure_centre(in, of)};
    double most = 0;
    for (uint32_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (isnan(errors[i]))
            return errors[i];
        most = fmax(most, errors[i]);
    }
    return most;
}

/* How far all points of a cell are outside the other raster, on the same side of it; at most 0 if
 * they are not. */
static double measure_distance(const cogpu_mapping *mapping, const group *in, const cell *of) {
    double left = -INFINITY, right = INFINITY, above = -INFINITY, below = INFINITY;
    for (uint32_t i = 0; i < 9; i++) {
        const double x = in->point_x[of->points[i]], y = in->point_y[of->points[i]];
        left = fmax(left, x), right = fmin(right, x);
        above = fmax(above, y), below = fmin(below, y);
    }
    return fmax(fmax(-left, right - mapping->to_width), fmax(-above, below - mapping->to_height));
}

/* ---- leaves -------------------------------------------------------------------------------- */

static cogpu_status add_leaf(refiner *in, const group *parent, const cell *of, uint32_t size,
                             cogpu_leaf_kind kind, double tolerance, cogpu_error *error) {
    static const uint32_t corners[4] = {0, 2, 6, 8};
    const double *across = parent->across.at, *down = parent->down.at;
    cogpu_leaves *leaves = in->leaves;
    TRY(grow_list(&leaves->items, leaves->count, &leaves->capacity, sizeof *leaves->items, error));
    cogpu_leaf *leaf = &leaves->items[leaves->count++];
    *leaf = (cogpu_leaf){.kind = kind,
                         .x = parent->x + of->column * size,
                         .y = parent->y + of->row * size,
                         .size = size,
                         .extent_x = across[of->points[2] % SIDE] - across[of->points[0] % SIDE],
                         .extent_y = down[of->points[6] / SIDE] - down[of->points[0] / SIDE],
                         .tolerance = tolerance};
    for (uint32_t i = 0; i < 4; i++) {
        leaf->corner_x[i] = parent->point_x[of->points[corners[i]]];
        leaf->corner_y[i] = parent->point_y[of->points[corners[i]]];
    }
    return COGPU_OK;
}

static cogpu_status divide_cell(refiner *in, const group *parent, const cell *of, uint32_t size,
                                cogpu_error *error) {
    groups *next = &in->next;
    TRY(grow_list(&next->items, next->count, &next->capacity, sizeof *next->items, error));
    group *child = &next->items[next->count++];
    place_group(in, parent->x + of->column * size, parent->y + of->row * size, size / 2, child);
    inherit_points(child, parent);
    return COGPU_OK;
}

static bool has_position(const group *in) {
    for (uint32_t i = 0; i < SIDE * SIDE; i++)
        if (!isnan(in->point_x[i]))
            return true;
    return false;
}

static bool is_wanted(const refiner *in, uint32_t x, uint32_t y, uint32_t size) {
    return x <= in->x1 && (uint64_t)x + size > in->x0 && y <= in->y1 && (uint64_t)y + size > in->y0;
}

static cogpu_status add_candidate(refiner *in, size_t number, const cell *of, double tolerance,
                                  cogpu_error *error) {
    candidate_list *to = &in->candidates;
    TRY(grow_list(&to->items, to->count, &to->capacity, sizeof *to->items, error));
    to->items[to->count++] = (candidate_cell){number, of->column, of->row, tolerance};
    return COGPU_OK;
}

static cogpu_status sort_cell(refiner *in, size_t number, const cell *of, uint32_t size,
                              double third, cogpu_error *error) {
    const group *parent = &in->level.items[number];
    const double most = measure_cell(parent, of) + third;
    const double distance = measure_distance(in->mapping, parent, of) - OUTSIDE_PIXELS;
    const double tolerance = fmax(in->max_error, distance);
    const bool is_precise = most <= tolerance;
    if (size > COGPU_CELL_SIDE)
        return is_precise ? add_candidate(in, number, of, tolerance, error)
                          : divide_cell(in, parent, of, size, error);
    return add_leaf(in, parent, of, size, is_precise ? COGPU_LEAF_INTERPOLATED : COGPU_LEAF_EXACT,
                    tolerance, error);
}

static cogpu_status sort_cells(refiner *in, size_t number, uint32_t size, cogpu_error *error) {
    const group *parent = &in->level.items[number];
    const bool is_absent = size <= ABSENT_CELL_PIXELS && !has_position(parent);
    const double third = measure_third(parent, &parent->across, SIDE, 1) +
                         measure_third(parent, &parent->down, 1, SIDE);
    for (uint32_t i = 0; i < parent->across.cells * parent->down.cells; i++) {
        const cell of = find_cell(parent, i % parent->across.cells, i / parent->across.cells);
        if (!is_wanted(in, parent->x + of.column * size, parent->y + of.row * size, size))
            continue;
        TRY(is_absent ? add_leaf(in, parent, &of, size, COGPU_LEAF_ABSENT, 0, error)
                      : sort_cell(in, number, &of, size, third, error));
    }
    return COGPU_OK;
}

/* ---- candidates ---------------------------------------------------------------------------- */

/* Parts of a cell's sides to its point off all lines. */
static const double PROBE_X = 0.2929, PROBE_Y = 0.6443;

static double interpolate(const double *values, const cell *of) {
    const uint32_t *p = of->points;
    const double above = values[p[0]] + (values[p[2]] - values[p[0]]) * PROBE_X;
    const double below = values[p[6]] + (values[p[8]] - values[p[6]]) * PROBE_X;
    return above + (below - above) * PROBE_Y;
}

static void place_probes(refiner *in) {
    for (size_t i = 0; i < in->candidates.count; i++) {
        const candidate_cell *one = &in->candidates.items[i];
        const group *parent = &in->level.items[one->group];
        const cell of = find_cell(parent, one->column, one->row);
        const double *across = parent->across.at, *down = parent->down.at;
        const double left = across[of.points[0] % SIDE], right = across[of.points[2] % SIDE];
        const double top = down[of.points[0] / SIDE], bottom = down[of.points[6] / SIDE];
        in->x[i] = left + (right - left) * PROBE_X + in->mapping->offset;
        in->y[i] = top + (bottom - top) * PROBE_Y + in->mapping->offset;
    }
}

/* Candidates become leaves, unless their probes are elsewhere. */
static cogpu_status check_candidates(refiner *in, uint32_t size, cogpu_error *error) {
    const size_t count = in->candidates.count;
    TRY(reserve_points(in, count, error));
    place_probes(in);
    cogpu_mapping_transform(in->mapping, count, in->x, in->y);
    for (size_t i = 0; i < count; i++) {
        const candidate_cell *one = &in->candidates.items[i];
        const group *parent = &in->level.items[one->group];
        const cell of = find_cell(parent, one->column, one->row);
        const double difference = fabs(in->x[i] - interpolate(parent->point_x, &of)) +
                                  fabs(in->y[i] - interpolate(parent->point_y, &of));
        TRY(difference <= one->tolerance
                ? add_leaf(in, parent, &of, size, COGPU_LEAF_INTERPOLATED, one->tolerance, error)
                : divide_cell(in, parent, &of, size, error));
    }
    in->candidates.count = 0;
    return COGPU_OK;
}

/* ---- the tree ------------------------------------------------------------------------------ */

static cogpu_status place_strip(refiner *in, uint32_t x, uint32_t y, uint32_t count,
                                cogpu_error *error) {
    groups *level = &in->level;
    level->count = 0;
    for (uint32_t k = 0; k < count; k++) {
        TRY(grow_list(&level->items, level->count, &level->capacity, sizeof *level->items, error));
        place_group(in, x + k * 2 * TOP_CELL_PIXELS, y, TOP_CELL_PIXELS,
                    &level->items[level->count++]);
    }
    return COGPU_OK;
}

/* Transforms the points of a row of groups as one lattice, since neighbours share points. Its first
 * row is the last of the strip above, unless this is the first strip. */
static void transform_strip(refiner *in, size_t columns, bool is_first) {
    const groups *level = &in->level;
    const size_t known = is_first ? 0 : columns, last = columns * (SIDE - 1);
    for (uint32_t j = 0; j < SIDE; j++)
        for (size_t i = 0; i < columns; i++) {
            const size_t k = i / 4 < level->count ? i / 4 : level->count - 1;
            in->x[columns * j + i] = level->items[k].across.at[i - 4 * k] + in->mapping->offset;
            in->y[columns * j + i] = level->items[0].down.at[j] + in->mapping->offset;
        }
    cogpu_mapping_transform(in->mapping, columns * SIDE - known, in->x + known, in->y + known);
    memcpy(in->x, in->above_x, known * sizeof *in->x);
    memcpy(in->y, in->above_y, known * sizeof *in->y);
    memcpy(in->above_x, in->x + last, columns * sizeof *in->x);
    memcpy(in->above_y, in->y + last, columns * sizeof *in->y);
}

/* Fills the level with a row of groups of 512-pixel cells. */
static cogpu_status begin_strip(refiner *in, uint32_t x, uint32_t y, uint32_t count, bool is_first,
                                cogpu_error *error) {
    const size_t columns = 4 * (size_t)count + 1;
    TRY(place_strip(in, x, y, count, error));
    TRY(reserve_points(in, columns * SIDE, error));
    transform_strip(in, columns, is_first);
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t j = 0; j < SIDE; j++) {
            const size_t from = columns * j + 4 * (size_t)k;
            memcpy(in->level.items[k].point_x + SIDE * j, in->x + from, SIDE * sizeof *in->x);
            memcpy(in->level.items[k].point_y + SIDE * j, in->y + from, SIDE * sizeof *in->y);
        }
    return COGPU_OK;
}

static cogpu_status refine_strip(refiner *in, cogpu_error *error) {
    for (uint32_t size = TOP_CELL_PIXELS; in->level.count > 0; size /= 2) {
        if (size < TOP_CELL_PIXELS)
            TRY(transform_level(in, error));
        in->next.count = 0;
        for (size_t k = 0; k < in->level.count; k++)
            TRY(sort_cells(in, k, size, error));
        TRY(check_candidates(in, size, error));
        const groups divided = in->level;
        in->level = in->next;
        in->next = divided;
    }
    return COGPU_OK;
}

static cogpu_status refine_window(refiner *in, cogpu_error *error) {
    const uint32_t side = 2 * TOP_CELL_PIXELS;
    const uint32_t last_x = min_u32(in->x1, in->mapping->width - 1) / side;
    const uint32_t last_y = min_u32(in->y1, in->mapping->height - 1) / side;
    const uint32_t first_y = in->y0 / side;
    for (uint32_t column = in->x0 / side; column <= last_x; column += GROUPS_OF_STRIP)
        for (uint32_t row = first_y; row <= last_y; row++) {
            const uint32_t count = min_u32(GROUPS_OF_STRIP, last_x - column + 1);
            TRY(begin_strip(in, column * side, row * side, count, row == first_y, error));
            TRY(refine_strip(in, error));
        }
    return COGPU_OK;
}

cogpu_status cogpu_refine(const cogpu_mapping *mapping, double max_error, uint32_t x0, uint32_t y0,
                          uint32_t x1, uint32_t y1, cogpu_leaves *leaves, cogpu_error *error) {
    refiner in = {.mapping = mapping,
                  .max_error = max_error,
                  .x0 = x0,
                  .y0 = y0,
                  .x1 = x1,
                  .y1 = y1,
                  .leaves = leaves};
    cogpu_status status = refine_window(&in, error);
    cogpu_release(in.level.items);
    cogpu_release(in.next.items);
    cogpu_release(in.candidates.items);
    cogpu_release(in.x);
    return status;
}
