/*
 * Positions of the pixels of a window: leaves of the quadtree (refine.c) become nodes of the
 * lattice of plan/warp.h, and exact tables.
 *
 * A node on the border of two leaves is the right or lower leaf's, in all windows: refine.c returns
 * that leaf too. So the left leaf's last cells may have nodes that are not its own. Where they
 * differ by more than the leaf allows, those cells become exact.
 */
#include "grid/grid.h"
#include "grid/refine.h"

#include "base/checked.h"
#include "base/math.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

enum { TABLES_OF_BATCH = 4, POINTS_MAX = COGPU_CELL_SIDE + 1 };

/* Cells before they have a number. */
#define CELL_EXACT  (COGPU_CELL_INTERPOLATED - 1)
#define CELL_ABSENT (COGPU_CELL_INTERPOLATED - 2)

typedef struct lattice {
    cogpu_coordinates *coordinates;
    const cogpu_mapping *mapping;
    double max_error;
    double *nodes;
    uint32_t *cells;
    double *exact;
    uint32_t *table_cells; /* index of each table's cell */
} lattice;

/* A range of nodes or cells of the grid: begin <= i < end. */
typedef struct range {
    uint32_t begin, end;
} range;

static range clip_range(uint32_t begin, uint32_t end, uint32_t first, uint32_t count) {
    const uint32_t a = max_u32(begin, first), b = min_u32(end, first + count);
    return (range){a, max_u32(a, b)};
}

static double *node_at(const lattice *in, uint32_t i, uint32_t j) {
    const cogpu_coordinates *of = in->coordinates;
    return in->nodes +
           2 * ((size_t)(j - of->first_cell_y) * (of->across + 1) + i - of->first_cell_x);
}

static uint32_t *cell_at(const lattice *in, uint32_t i, uint32_t j) {
    const cogpu_coordinates *of = in->coordinates;
    return in->cells + (size_t)(j - of->first_cell_y) * of->across + i - of->first_cell_x;
}

/* ---- leaves to nodes ----------------------------------------------------------------------- */

/* Part of the leaf's extent from one node to the next. */
static double node_step(double extent) {
    return extent > 0 ? COGPU_CELL_SIDE / extent : 0;
}

/* The leaf's own positions on the row of nodes k rows below its first: they begin at x, y and
 * change by step_x, step_y from node to node. */
typedef struct node_row {
    double x, y, step_x, step_y;
} node_row;

static node_row find_row(const cogpu_leaf *leaf, uint32_t k) {
    const double v = k * node_step(leaf->extent_y), u = node_step(leaf->extent_x);
    const double *x = leaf->corner_x, *y = leaf->corner_y;
    const double left_x = x[0] + (x[2] - x[0]) * v, right_x = x[1] + (x[3] - x[1]) * v;
    const double left_y = y[0] + (y[2] - y[0]) * v, right_y = y[1] + (y[3] - y[1]) * v;
    return (node_row){left_x, left_y, (right_x - left_x) * u, (right_y - left_y) * u};
}

/* Nodes of the leaf along one axis: those at its end are its own if the grid ends with it. */
static range own_nodes(uint32_t begin, uint32_t size, uint32_t pixels, uint32_t first,
                       uint32_t cells) {
    const uint32_t end = (begin + size) / COGPU_CELL_SIDE;
    return clip_range(begin / COGPU_CELL_SIDE, pixels - begin > size ? end : end + 1, first,
                      cells + 1);
}

static void fill_nodes(const lattice *in, const cogpu_leaf *leaf) {
    const cogpu_coordinates *to = in->coordinates;
    const uint32_t x = leaf->x / COGPU_CELL_SIDE, y = leaf->y / COGPU_CELL_SIDE;
    const range columns =
        own_nodes(leaf->x, leaf->size, in->mapping->width, to->first_cell_x, to->across);
    const range rows =
        own_nodes(leaf->y, leaf->size, in->mapping->height, to->first_cell_y, to->down);
    for (uint32_t j = rows.begin; j < rows.end; j++) {
        const node_row row = find_row(leaf, j - y);
        double *node = node_at(in, columns.begin, j);
        const int32_t first = (int32_t)(columns.begin - x);
        const int32_t count = (int32_t)(columns.end - columns.begin);
        for (int32_t i = 0; i < count; i++) {
            node[2 * i] = row.x + row.step_x * (first + i);
            node[2 * i + 1] = row.y + row.step_y * (first + i);
        }
    }
    /* A corner beside one without a position. */
    if (leaf->kind == COGPU_LEAF_EXACT && columns.begin == x && rows.begin == y &&
        columns.end > x && rows.end > y) {
        double *node = node_at(in, x, y);
        node[0] = leaf->corner_x[0], node[1] = leaf->corner_y[0];
    }
}

static void mark_cells(const lattice *in, const cogpu_leaf *leaf, uint32_t mark) {
    const cogpu_coordinates *to = in->coordinates;
    const uint32_t x = leaf->x / COGPU_CELL_SIDE, y = leaf->y / COGPU_CELL_SIDE;
    const uint32_t side = leaf->size / COGPU_CELL_SIDE;
    const range columns = clip_range(x, x + side, to->first_cell_x, to->across);
    const range rows = clip_range(y, y + side, to->first_cell_y, to->down);
    for (uint32_t j = rows.begin; j < rows.end; j++)
        for (uint32_t i = columns.begin; i < columns.end; i++)
            *cell_at(in, i, j) = mark;
}

/* ---- nodes that are not a leaf's own ------------------------------------------------------- */

/* Makes cells of the leaf exact that have the node. */
static void mark_around(const lattice *in, const cogpu_leaf *leaf, uint32_t i, uint32_t j) {
    const cogpu_coordinates *to = in->coordinates;
    const uint32_t x = leaf->x / COGPU_CELL_SIDE, y = leaf->y / COGPU_CELL_SIDE;
    const uint32_t side = leaf->size / COGPU_CELL_SIDE;
    const range columns = clip_range(max_u32(x, i ? i - 1 : 0), min_u32(x + side, i + 1),
                                     to->first_cell_x, to->across);
    const range rows =
        clip_range(max_u32(y, j ? j - 1 : 0), min_u32(y + side, j + 1), to->first_cell_y, to->down);
    for (uint32_t row = rows.begin; row < rows.end; row++)
        for (uint32_t column = columns.begin; column < columns.end; column++)
            *cell_at(in, column, row) = CELL_EXACT;
}

static void compare_node(const lattice *in, const cogpu_leaf *leaf, const node_row *row, uint32_t i,
                         uint32_t j) {
    const double *node = node_at(in, i, j);
    const uint32_t k = i - leaf->x / COGPU_CELL_SIDE;
    const double difference =
        fabs(row->x + row->step_x * k - node[0]) + fabs(row->y + row->step_y * k - node[1]);
    if (!(difference <= leaf->tolerance))
        mark_around(in, leaf, i, j);
}

static void compare_borders(const lattice *in, const cogpu_leaf *leaf) {
    const cogpu_coordinates *of = in->coordinates;
    const uint32_t x = leaf->x / COGPU_CELL_SIDE, y = leaf->y / COGPU_CELL_SIDE;
    const uint32_t end_x = x + leaf->size / COGPU_CELL_SIDE;
    const uint32_t end_y = y + leaf->size / COGPU_CELL_SIDE;
    const range columns = clip_range(x, end_x + 1, of->first_cell_x, of->across + 1);
    const range rows = clip_range(y, end_y + 1, of->first_cell_y, of->down + 1);
    if (columns.end == end_x + 1 && columns.begin < columns.end)
        for (uint32_t j = rows.begin; j < rows.end; j++) {
            const node_row row = find_row(leaf, j - y);
            compare_node(in, leaf, &row, end_x, j);
        }
    if (rows.end == end_y + 1 && rows.begin < rows.end) {
        const node_row row = find_row(leaf, end_y - y);
        for (uint32_t i = columns.begin; i < columns.end; i++)
            compare_node(in, leaf, &row, i, end_y);
    }
}

/* ---- strips -------------------------------------------------------------------------------- */

/* The window in strips of COGPU_REFINE_STRIP rows, which threads share. Each strip writes its own
 * leaves' nodes and cells; their borders are compared when the nodes of all strips are there. */
typedef struct lattice_strips {
    const lattice *lattice;
    uint32_t first, count;   /* strips of the grid */
    uint32_t x0, y0, x1, y1; /* pixels that need leaves; the last are those of the end's nodes */
    cogpu_leaves *leaves;    /* of each strip */
    cogpu_status *statuses;
} lattice_strips;

static void fill_strip(void *argument, uint32_t worker, uint64_t index) {
    const lattice_strips *in = argument;
    cogpu_leaves *leaves = &in->leaves[index];
    const uint32_t strip = in->first + (uint32_t)index;
    const bool is_last = index + 1 == in->count;
    (void)worker;
    in->statuses[index] =
        cogpu_refine(in->lattice->mapping, in->lattice->max_error, in->x0,
                     max_u32(in->y0, strip * COGPU_REFINE_STRIP), in->x1,
                     is_last ? in->y1 : (strip + 1) * COGPU_REFINE_STRIP - 1, leaves, NULL);
    for (size_t k = 0; k < leaves->count; k++) {
        const cogpu_leaf *leaf = &leaves->items[k];
        fill_nodes(in->lattice, leaf);
        if (leaf->kind != COGPU_LEAF_INTERPOLATED)
            mark_cells(in->lattice, leaf,
                       leaf->kind == COGPU_LEAF_EXACT ? CELL_EXACT : CELL_ABSENT);
    }
}

static void compare_strip(void *argument, uint32_t worker, uint64_t index) {
    const lattice_strips *in = argument;
    const cogpu_leaves *leaves = &in->leaves[index];
    (void)worker;
    for (size_t k = 0; k < leaves->count; k++)
        if (leaves->items[k].kind == COGPU_LEAF_INTERPOLATED)
            compare_borders(in->lattice, &leaves->items[k]);
}

static cogpu_status fill_strips(lattice_strips *in, cogpu_error *error) {
    cogpu_pool *pool = in->lattice->mapping->pool;
    cogpu_pool_share(pool, in->count, fill_strip, in);
    for (uint32_t i = 0; i < in->count; i++)
        if (in->statuses[i] != COGPU_OK)
            return cogpu_fail(error, in->statuses[i], "out of memory: cells of a grid");
    cogpu_pool_share(pool, in->count, compare_strip, in);
    return COGPU_OK;
}

static lattice_strips list_strips(const lattice *in) {
    const cogpu_coordinates *of = in->coordinates;
    lattice_strips strips = {.lattice = in,
                             .x0 = of->first_cell_x * COGPU_CELL_SIDE,
                             .y0 = of->first_cell_y * COGPU_CELL_SIDE};
    strips.x1 = strips.x0 + of->across * COGPU_CELL_SIDE;
    strips.y1 = strips.y0 + of->down * COGPU_CELL_SIDE;
    strips.first = strips.y0 / COGPU_REFINE_STRIP;
    strips.count =
        min_u32(strips.y1, in->mapping->height - 1) / COGPU_REFINE_STRIP - strips.first + 1;
    return strips;
}

static cogpu_status refine_lattice(const lattice *in, cogpu_error *error) {
    lattice_strips strips = list_strips(in);
    cogpu_arena arena;
    cogpu_arena_open(&arena, UINT64_MAX);
    cogpu_status status =
        cogpu_arena_allocate(&arena, strips.count, sizeof *strips.leaves, &strips.leaves, error);
    if (status == COGPU_OK)
        status = cogpu_arena_allocate(&arena, strips.count, sizeof *strips.statuses,
                                      &strips.statuses, error);
    if (status == COGPU_OK)
        status = fill_strips(&strips, error);
    for (uint32_t i = 0; strips.leaves && i < strips.count; i++)
        cogpu_release(strips.leaves[i].items);
    cogpu_arena_close(&arena);
    return status;
}

/* ---- exact tables -------------------------------------------------------------------------- */

static void fill_tables(void *argument, uint32_t worker, uint64_t index) {
    const lattice *in = argument;
    const cogpu_coordinates *of = in->coordinates;
    const uint32_t side = cogpu_cell_points(of), points = side * side;
    const uint32_t first = (uint32_t)index * TABLES_OF_BATCH;
    const uint32_t count = min_u32(of->exact_count - first, TABLES_OF_BATCH);
    double x[TABLES_OF_BATCH * POINTS_MAX * POINTS_MAX],
        y[TABLES_OF_BATCH * POINTS_MAX * POINTS_MAX];
    size_t used = 0;
    (void)worker;
    for (uint32_t k = first; k < first + count; k++) {
        const uint32_t cell = in->table_cells[k];
        const uint32_t column = cell == CELL_ABSENT ? 0 : of->first_cell_x + cell % of->across;
        const uint32_t row = cell == CELL_ABSENT ? 0 : of->first_cell_y + cell / of->across;
        for (uint32_t j = 0; j < side; j++)
            for (uint32_t i = 0; i < side; i++) {
                x[used] = (double)column * COGPU_CELL_SIDE + i + in->mapping->offset;
                y[used++] = (double)row * COGPU_CELL_SIDE + j + in->mapping->offset;
            }
    }
    cogpu_mapping_transform(in->mapping, used, x, y);
    double *to = in->exact + 2 * (size_t)first * points;
    for (size_t i = 0; i < used; i++) {
        const bool is_absent = in->table_cells[first + i / points] == CELL_ABSENT;
        to[2 * i] = is_absent ? (double)NAN : x[i];
        to[2 * i + 1] = is_absent ? (double)NAN : y[i];
    }
}

/* Gives exact cells their tables. All cells without positions share the last one. */
static cogpu_status number_cells(lattice *in, cogpu_arena *arena, cogpu_error *error) {
    cogpu_coordinates *of = in->coordinates;
    const size_t cells = (size_t)of->across * of->down;
    uint32_t exact = 0, absent = 0;
    for (size_t i = 0; i < cells; i++) {
        exact += in->cells[i] == CELL_EXACT;
        absent |= in->cells[i] == CELL_ABSENT;
    }
    const uint32_t tables = exact + absent, points = cogpu_cell_points(of);
    if (tables == 0)
        return COGPU_OK;
    in->table_cells = cogpu_allocate((size_t)tables * sizeof *in->table_cells);
    if (!in->table_cells)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory: %u tables of positions",
                          tables);
    TRY(cogpu_arena_allocate(arena, (uint64_t)tables * points * points, 2 * sizeof *in->exact,
                             &in->exact, error));
    for (size_t i = 0, next = 0; i < cells; i++)
        if (in->cells[i] == CELL_EXACT) {
            in->table_cells[next] = (uint32_t)i;
            in->cells[i] = (uint32_t)next++;
        } else if (in->cells[i] == CELL_ABSENT) {
            in->cells[i] = exact;
        }
    if (absent)
        in->table_cells[exact] = CELL_ABSENT;
    of->exact = in->exact;
    of->exact_count = tables;
    return COGPU_OK;
}

static void compute_tables(lattice *in) {
    cogpu_pool_share(in->mapping->pool, divide_up(in->coordinates->exact_count, TABLES_OF_BATCH),
                     fill_tables, in);
}

/* ---- the window ---------------------------------------------------------------------------- */

/* Affine positions are bilinear anywhere: no leaf is needed. */
static void fill_affine(const lattice *in) {
    const cogpu_coordinates *of = in->coordinates;
    const double *a = in->mapping->affine, offset = in->mapping->offset;
    for (uint32_t j = 0; j <= of->down; j++) {
        const double y = ((double)of->first_cell_y + j) * COGPU_CELL_SIDE + offset;
        double *node = in->nodes + 2 * (size_t)j * (of->across + 1);
        for (uint32_t i = 0; i <= of->across; i++) {
            const double x = ((double)of->first_cell_x + i) * COGPU_CELL_SIDE + offset;
            node[2 * (size_t)i] = a[0] + x * a[1] + y * a[2];
            node[2 * (size_t)i + 1] = a[3] + x * a[4] + y * a[5];
        }
    }
}

static void make_all_exact(const lattice *in) {
    const cogpu_coordinates *of = in->coordinates;
    const size_t nodes = ((size_t)of->across + 1) * (of->down + 1);
    for (size_t i = 0; i < 2 * nodes; i++)
        in->nodes[i] = (double)NAN;
    for (size_t i = 0; i < (size_t)of->across * of->down; i++)
        in->cells[i] = CELL_EXACT;
}

static cogpu_status fill_window(lattice *in, cogpu_arena *arena, cogpu_error *error) {
    if (in->mapping->is_affine)
        fill_affine(in);
    else if (in->max_error > 0)
        TRY(refine_lattice(in, error));
    else
        make_all_exact(in);
    TRY(number_cells(in, arena, error));
    compute_tables(in);
    return COGPU_OK;
}

static cogpu_status compute_window(const cogpu_mapping *mapping, double max_error, uint32_t x,
                                   uint32_t y, uint32_t width, uint32_t height, cogpu_arena *arena,
                                   cogpu_coordinates *coordinates, cogpu_error *error) {
    lattice in = {.coordinates = coordinates, .mapping = mapping, .max_error = max_error};
    if (width == 0 || height == 0 || (uint64_t)x + width > mapping->width ||
        (uint64_t)y + height > mapping->height || (mapping->width | mapping->height) >> 31)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "window %u,%u,%u,%u exceeds the %u x %u pixels of the grid", x, y, width,
                          height, mapping->width, mapping->height);
    const uint32_t first_x = x / COGPU_CELL_SIDE, first_y = y / COGPU_CELL_SIDE;
    *coordinates = (cogpu_coordinates){.x = x,
                                       .y = y,
                                       .width = width,
                                       .height = height,
                                       .of_corners = mapping->offset == 0,
                                       .first_cell_x = first_x,
                                       .first_cell_y = first_y,
                                       .across = (x + width - 1) / COGPU_CELL_SIDE - first_x + 1,
                                       .down = (y + height - 1) / COGPU_CELL_SIDE - first_y + 1};
    const uint64_t across = coordinates->across, down = coordinates->down;
    TRY(cogpu_arena_allocate(arena, (across + 1) * (down + 1), 2 * sizeof *in.nodes, &in.nodes,
                             error));
    TRY(cogpu_arena_allocate(arena, across * down, sizeof *in.cells, &in.cells, error));
    if (across * down >= CELL_ABSENT)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                          "a window of %u x %u pixels is too large to resample at once", width,
                          height);
    memset(in.cells, 0xff, (size_t)(across * down) * sizeof *in.cells);
    coordinates->nodes = in.nodes;
    coordinates->cells = in.cells;
    cogpu_status status = fill_window(&in, arena, error);
    cogpu_release(in.table_cells);
    return status;
}

cogpu_status cogpu_coordinates_compute(const cogpu_transformer *transformer,
                                       const cogpu_placement *source, const cogpu_placement *target,
                                       uint32_t level_width, uint32_t level_height, uint32_t x,
                                       uint32_t y, uint32_t width, uint32_t height, bool of_corners,
                                       double max_error, cogpu_pool *pool, cogpu_arena *arena,
                                       cogpu_coordinates *coordinates, cogpu_error *error) {
    const cogpu_mapping mapping = cogpu_mapping_to_source(transformer, source, target, level_width,
                                                          level_height, of_corners, pool);
    return compute_window(&mapping, max_error, x, y, width, height, arena, coordinates, error);
}

cogpu_status cogpu_coordinates_compute_forward(const cogpu_transformer *transformer,
                                               const cogpu_placement *source,
                                               const cogpu_placement *target, uint32_t level_width,
                                               uint32_t level_height, uint32_t x, uint32_t y,
                                               uint32_t width, uint32_t height, double max_error,
                                               cogpu_pool *pool, cogpu_arena *arena,
                                               cogpu_coordinates *coordinates, cogpu_error *error) {
    const cogpu_mapping mapping =
        cogpu_mapping_to_target(transformer, source, target, level_width, level_height, pool);
    return compute_window(&mapping, max_error, x, y, width, height, arena, coordinates, error);
}
