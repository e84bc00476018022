#include "cpu/warp.h"

#include "base/memory.h"

/* A job in the hands of the pool. */
struct warp_run {
    struct warp_args args;
};

static void warp_pixels(const struct warp_args *args, uint32_t row, uint32_t rows) {
    for (uint32_t j = row; j < row + rows; j++)
        for (uint32_t i = 0; i < args->target_width; i++)
            warp_pixel(args, args->method, args->from_type, i, j);
}

static void warp_cell_row(void *argument, uint32_t worker, uint64_t index) {
    struct warp_run *run = (struct warp_run *)argument;
    const struct warp_args *args = &run->args;
    uint32_t first = (uint32_t)index * WARP_CELL;
    uint32_t begin = args->target_y / WARP_CELL * WARP_CELL + first;
    uint32_t end = begin + WARP_CELL;
    (void)worker;
    if (begin < args->target_y)
        begin = args->target_y;
    if (end > args->target_y + args->target_height)
        end = args->target_y + args->target_height;
    warp_pixels(args, begin - args->target_y, end - begin);
}

cogpu_status cogpu_cpu_warp(const cogpu_warp_job *job, cogpu_pool *pool, uint32_t workers,
                            cogpu_error *error) {
    struct warp_run run;
    struct warp_rule *rules = cogpu_allocate(job->warp->bands * sizeof *rules);
    if (!rules)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "x");
    cogpu_warp_prepare(job, rules, &run.args);
    uint64_t rows = ((uint64_t)run.args.target_y % 16 + run.args.target_height + 15) / 16;
    if (pool)
        cogpu_pool_run(pool, workers, rows, warp_cell_row, &run);
    else
        for (uint64_t i = 0; i < rows; i++)
            warp_cell_row(&run, 0, i);
    cogpu_release(rules);
    return COGPU_OK;
}
