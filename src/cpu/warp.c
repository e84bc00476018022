/* Divides the target into units and runs them on the threads of a pool. */
#include "cpu/warp_unit.h"

#include "base/math.h"
#include "base/memory.h"

struct warp_run {
    struct warp_args args;
    struct warp_unit **units; /* one for each worker */
};

/* ---- a unit ---- */

static void warp_each_pixel(const struct warp_args *args, const struct warp_unit *unit) {
    EACH_UNIT_ROW(unit, j)
    EACH_UNIT_COLUMN(unit, i)
    warp_pixel(args, args->method, args->from_type, unit->column + i, unit->row + j);
}

static void find_results(const struct warp_args *args, struct warp_unit *unit) {
    if (is_area_method(args->method))
        cogpu_warp_areas(args, unit);
    else if (!args->has_four_taps)
        cogpu_warp_convolve(args, unit);
    else if (args->method == COGPU_RESAMPLE_CUBIC)
        cogpu_warp_cubic(args, unit);
    else
        cogpu_warp_bilinear(args, unit);
}

static void add_found(struct warp_unit *unit) {
    for (uint32_t i = 0; i < UNIT_PIXELS; i++)
        unit->is_any_found[i] |= unit->is_found[i];
}

/* Where alpha is either 0 or full, and every result opaque. */
static void store_alpha(const struct warp_args *args, struct warp_unit *unit) {
    uint64_t opaque = density_to_alpha(args->to_type, 1);
    EACH_UNIT_ROW(unit, j)
    EACH_UNIT_COLUMN(unit, i)
    store_sample_of_band(args, args->alpha_band - 1, unit->column + i, unit->row + j,
                         unit->is_any_found[j * UNIT_COLUMNS + i], opaque);
}

/* The box of the tile is set. */
static void warp_bands(const struct warp_args *args, struct warp_unit *unit) {
    bool is_first = true;
    if (args->alpha_band)
        memset(unit->is_any_found, 0, sizeof unit->is_any_found);
    for (uint32_t band = 0; band < args->bands; band++) {
        if (band + 1 == args->alpha_band)
            continue;
        cogpu_warp_load_tile(args, band, unit);
        if (is_first)
            cogpu_warp_check_nearest(args, unit);
        is_first = false;
        find_results(args, unit);
        cogpu_warp_store(args, band, unit);
        if (args->alpha_band)
            add_found(unit);
    }
    if (args->alpha_band)
        store_alpha(args, unit);
}

static void fill_unit(const struct warp_args *args, struct warp_unit *unit) {
    memset(unit->is_found, 0, sizeof unit->is_found);
    for (uint32_t band = 0; band < args->bands; band++)
        cogpu_warp_store(args, band, unit);
}

static void warp_with_tile(const struct warp_args *args, struct warp_unit *unit,
                           enum warp_box_kind kind) {
    if (kind == BOX_IS_EMPTY)
        fill_unit(args, unit);
    else if (kind == BOX_IS_TOO_LARGE || (args->alpha_band && !cogpu_warp_load_alpha(args, unit)))
        warp_each_pixel(args, unit);
    else
        warp_bands(args, unit);
}

/* ---- units ---- */

/* Doubles hold the samples, but 64-bit integers may not be selected as doubles. */
static bool has_tiles(const struct warp_args *args) {
    bool is_wide = args->from_type == COGPU_TYPE_I64 || args->from_type == COGPU_TYPE_U64;
    bool is_area = is_area_method(args->method);
    bool is_mean = args->method == COGPU_RESAMPLE_AVERAGE || args->method == COGPU_RESAMPLE_RMS;
    if (args->method == COGPU_RESAMPLE_SUM || args->method == COGPU_RESAMPLE_NEAREST)
        return false;
    return is_area ? !is_wide || is_mean : args->has_four_taps || cogpu_warp_has_few_taps(args);
}

/* A box may have so many source pixels for each target pixel. */
enum { BOX_PIXELS = 3 };

static bool is_box_wide(const struct warp_args *args, const struct warp_unit *unit) {
    double pixels = (double)unit->tile.width * unit->tile.height;
    double expected = (double)unit->columns * unit->rows / (args->across.scale * args->down.scale);
    return pixels > BOX_PIXELS * expected + 1024;
}

/* Narrows the unit until its box fits. */
static void warp_unit_at(const struct warp_args *args, struct warp_unit *unit) {
    enum warp_box_kind kind;
    if (args->method == COGPU_RESAMPLE_NEAREST && !args->alpha_band) {
        cogpu_warp_nearest(args, unit);
        return;
    }
    if (!has_tiles(args)) {
        warp_each_pixel(args, unit);
        return;
    }
    for (;;) {
        kind = cogpu_warp_find_box(args, unit);
        bool is_wide = kind == BOX_IS_TOO_LARGE || (kind == BOX_FITS && is_box_wide(args, unit));
        if (!is_wide || unit->columns <= WARP_CELL)
            break;
        unit->columns = WARP_CELL;
    }
    warp_with_tile(args, unit, kind);
}

/* A row of cells. */
static void warp_cell_row(void *argument, uint32_t worker, uint64_t index) {
    const struct warp_run *run = (const struct warp_run *)argument;
    const struct warp_args *args = &run->args;
    struct warp_unit *unit = run->units[worker];
    uint64_t first = ((uint64_t)args->target_y / WARP_CELL + index) * WARP_CELL;
    uint64_t begin = max_u64(first, args->target_y);
    uint64_t end = min_u64(first + WARP_CELL, (uint64_t)args->target_y + args->target_height);
    unit->row = (uint32_t)(begin - args->target_y);
    unit->rows = (uint32_t)(end - begin);
    for (unit->column = 0; unit->column < args->target_width; unit->column += unit->columns) {
        unit->columns = min_u32(UNIT_COLUMNS, args->target_width - unit->column);
        warp_unit_at(args, unit);
    }
}

/* ---- a job ---- */

static void close_run(struct warp_run *run, uint32_t workers) {
    for (uint32_t i = 0; run->units && i < workers; i++)
        cogpu_release(run->units[i]);
    cogpu_release(run->units);
}

static cogpu_status open_run(struct warp_run *run, uint32_t workers, cogpu_error *error) {
    run->units = cogpu_allocate(workers * sizeof *run->units);
    for (uint32_t i = 0; run->units && i < workers; i++)
        run->units[i] = NULL;
    for (uint32_t i = 0; run->units && i < workers; i++) {
        run->units[i] = cogpu_reserve(sizeof **run->units);
        if (!run->units[i]) {
            close_run(run, workers);
            return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a warp");
        }
    }
    return run->units ? COGPU_OK
                      : cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a warp");
}

static void run_rows(struct warp_run *run, cogpu_pool *pool, uint32_t workers, uint64_t rows) {
    if (pool)
        cogpu_pool_run(pool, workers, rows, warp_cell_row, run);
    for (uint64_t i = 0; !pool && i < rows; i++)
        warp_cell_row(run, 0, i);
}

cogpu_status cogpu_cpu_warp(const cogpu_warp_job *job, cogpu_pool *pool, uint32_t workers,
                            cogpu_error *error) {
    struct warp_run run;
    uint64_t rows = job->coordinates->down;
    uint32_t threads = pool ? (uint32_t)min_u64(max_u32(workers, 1), max_u64(rows, 1)) : 1;
    struct warp_rule *rules = cogpu_allocate((size_t)job->warp->bands * sizeof *rules);
    if (!rules)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a warp");
    cogpu_status status = open_run(&run, threads, error);
    if (status == COGPU_OK) {
        cogpu_warp_prepare(job, rules, &run.args);
        run_rows(&run, pool, threads, rows);
        close_run(&run, threads);
    }
    cogpu_release(rules);
    return status;
}
