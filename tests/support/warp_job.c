#include "support/warp_job.h"

#include "pixel/warp.h"

#include <stdlib.h>

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        abort();
    return memory;
}

static void apply(const double affine[6], double x, double y, double *to) {
    to[0] = affine[0] + x * affine[1] + y * affine[2];
    to[1] = affine[3] + x * affine[4] + y * affine[5];
}

struct window {
    uint32_t x, y, width, height;
};

/* Exact: a table for each cell. */
static cogpu_coordinates make_coordinates(const double affine[6], struct window window,
                                          bool of_corners, bool is_exact) {
    cogpu_coordinates made = {.x = window.x,
                              .y = window.y,
                              .width = window.width,
                              .height = window.height,
                              .of_corners = of_corners,
                              .first_cell_x = window.x / COGPU_CELL_SIDE,
                              .first_cell_y = window.y / COGPU_CELL_SIDE};
    made.across = (window.x + window.width - 1) / COGPU_CELL_SIDE - made.first_cell_x + 1;
    made.down = (window.y + window.height - 1) / COGPU_CELL_SIDE - made.first_cell_y + 1;
    uint32_t points = cogpu_cell_points(&made), cells = made.across * made.down;
    double centre = of_corners ? 0 : 0.5;
    double *nodes = allocate((size_t)(made.across + 1) * (made.down + 1), 2 * sizeof *nodes);
    double *exact = allocate((size_t)cells * points * points, 2 * sizeof *exact);
    uint32_t *numbers = allocate(cells, sizeof *numbers);
    for (uint32_t j = 0; j <= made.down; j++)
        for (uint32_t i = 0; i <= made.across; i++)
            apply(affine, (made.first_cell_x + i) * COGPU_CELL_SIDE + centre,
                  (made.first_cell_y + j) * COGPU_CELL_SIDE + centre,
                  nodes + 2 * ((size_t)j * (made.across + 1) + i));
    for (uint32_t cell = 0; cell < cells; cell++) {
        uint32_t left = (made.first_cell_x + cell % made.across) * COGPU_CELL_SIDE;
        uint32_t top = (made.first_cell_y + cell / made.across) * COGPU_CELL_SIDE;
        numbers[cell] = is_exact ? cell : COGPU_CELL_INTERPOLATED;
        for (uint32_t k = 0; k < points * points; k++)
            apply(affine, left + k % points + centre, top + k / points + centre,
                  exact + 2 * ((size_t)cell * points * points + k));
    }
    made.nodes = nodes;
    made.exact = exact;
    made.cells = numbers;
    made.exact_count = is_exact ? cells : 0;
    return made;
}

static void free_coordinates(const cogpu_coordinates *made) {
    free((void *)made->nodes);
    free((void *)made->exact);
    free((void *)made->cells);
}

static cogpu_raster make_raster(uint8_t *data, uint32_t type, uint32_t bands, uint32_t width,
                                uint32_t height) {
    cogpu_raster raster = COGPU_RASTER_INIT;
    raster.data = data;
    raster.type = (cogpu_type)type;
    raster.bands = bands;
    raster.width = width;
    raster.height = height;
    raster.stride_x = sample_bytes(type);
    raster.stride_y = raster.stride_x * width;
    raster.stride_band = raster.stride_y * height;
    return raster;
}

static void make_rasters(const struct warp_case *given, struct warp_job_memory *memory) {
    uint32_t width = given->window_width, height = given->window_height;
    uint32_t to_width = given->target_width, to_height = given->target_height;
    memory->source = make_raster(given->source, given->from_type, given->bands, width, height);
    memory->mask = make_raster(given->mask, COGPU_TYPE_U8, 1, width, height);
    memory->target = make_raster(given->target, given->to_type, given->bands, to_width, to_height);
    memory->valid = make_raster(given->valid, COGPU_TYPE_U8, given->bands, to_width, to_height);
}

static cogpu_warp_band *make_rules(const struct warp_case *given) {
    cogpu_warp_band *rules = allocate(given->bands, sizeof *rules);
    for (uint32_t i = 0; i < given->bands; i++) {
        rules[i].has_nodata = given->nodata != NULL;
        rules[i].nodata = given->nodata ? given->nodata[i] : 0;
        rules[i].avoids = given->avoided != NULL;
        rules[i].avoided = given->avoided ? given->avoided[i] : 0;
    }
    return rules;
}

void open_warp_job(const struct warp_case *given, struct warp_job_memory *memory) {
    bool is_sum = given->method == COGPU_RESAMPLE_SUM;
    struct window target = {given->target_x, given->target_y, given->target_width,
                            given->target_height};
    struct window source = {given->x, given->y, given->window_width, given->window_height};
    make_rasters(given, memory);
    memory->coordinates = make_coordinates(
        given->to_source, target, is_sum || is_area_method(given->method), given->is_exact);
    memory->forward = (cogpu_coordinates){0};
    if (is_sum)
        memory->forward = make_coordinates(given->to_target, source, true, given->is_exact);
    memory->warp = (cogpu_warp){.method = (cogpu_resampling)given->method,
                                .bands = given->bands,
                                .from_type = (cogpu_type)given->from_type,
                                .to_type = (cogpu_type)given->to_type,
                                .x = given->x,
                                .y = given->y,
                                .level_width = given->width,
                                .level_height = given->height,
                                .scale_x = given->scale_x,
                                .scale_y = given->scale_y,
                                .rules = make_rules(given),
                                .has_nodata = given->nodata != NULL,
                                .alpha_band = given->alpha_band,
                                .clamps = given->clamps};
    memory->job = (cogpu_warp_job){.warp = &memory->warp,
                                   .coordinates = &memory->coordinates,
                                   .forward = is_sum ? &memory->forward : NULL,
                                   .source = &memory->source,
                                   .mask = given->mask ? &memory->mask : NULL,
                                   .target = &memory->target,
                                   .fill = (const uint8_t(*)[16])given->fill,
                                   .valid = given->valid ? &memory->valid : NULL};
}

void close_warp_job(struct warp_job_memory *memory) {
    free_coordinates(&memory->coordinates);
    free_coordinates(&memory->forward);
    free((void *)memory->warp.rules);
}
