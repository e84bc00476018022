/*
 * A library that Python tests load: warps an array by an affine transform with cogpu_cpu_warp, so
 * that results can be compared with GDAL's without a mosaic.
 */
#include "cpu/warp.h"

#include <math.h>
#include <stdlib.h>

/* One warp. Rasters are packed, band after band. test_warp.py mirrors this struct. */
struct warp_case {
    uint32_t method, bands, from_type, to_type;
    uint32_t width, height; /* of the source */
    uint32_t x, y;          /* what of the source is given: from here on */
    uint32_t window_width, window_height;
    uint32_t target_x, target_y, target_width, target_height;
    uint32_t alpha_band, clamps, is_exact, threads;
    uint32_t is_plain, unused; /* pixel by pixel, without the loops of cpu/ */
    double to_source[6];       /* target pixel to source pixel, as a geotransform */
    double to_target[6];
    double scale_x, scale_y;
    uint8_t *source, *mask, *target, *valid;
    const double *nodata, *avoided; /* one for each band; NULL: none */
    const uint8_t *fill;            /* 16 bytes for each band */
};

__attribute__((visibility("default"))) int run_warp_case(const struct warp_case *given);

static void apply(const double affine[6], double x, double y, double *to) {
    to[0] = affine[0] + x * affine[1] + y * affine[2];
    to[1] = affine[3] + x * affine[4] + y * affine[5];
}

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        abort();
    return memory;
}

/* The lattice of a window. Exact: a table for each cell. */
static cogpu_coordinates make_coordinates(const double affine[6], uint32_t x, uint32_t y,
                                          uint32_t width, uint32_t height, bool of_corners,
                                          bool is_exact) {
    cogpu_coordinates made = {.x = x,
                              .y = y,
                              .width = width,
                              .height = height,
                              .of_corners = of_corners,
                              .first_cell_x = x / COGPU_CELL_SIDE,
                              .first_cell_y = y / COGPU_CELL_SIDE};
    made.across = (x + width - 1) / COGPU_CELL_SIDE - made.first_cell_x + 1;
    made.down = (y + height - 1) / COGPU_CELL_SIDE - made.first_cell_y + 1;
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

static uint32_t bytes_of_type(uint32_t type) {
    return sample_bytes(type);
}

static cogpu_raster make_raster(uint8_t *data, uint32_t type, uint32_t bands, uint32_t width,
                                uint32_t height) {
    cogpu_raster raster = COGPU_RASTER_INIT;
    raster.data = data;
    raster.type = (cogpu_type)type;
    raster.bands = bands;
    raster.width = width;
    raster.height = height;
    raster.stride_x = bytes_of_type(type);
    raster.stride_y = raster.stride_x * width;
    raster.stride_band = raster.stride_y * height;
    return raster;
}

static bool uses_corners(uint32_t method) {
    return is_area_method(method) || method == COGPU_RESAMPLE_SUM;
}

static cogpu_status run_plain(const cogpu_warp_job *job) {
    struct warp_rule *rules = allocate(job->warp->bands, sizeof *rules);
    struct warp_args args;
    cogpu_warp_prepare(job, rules, &args);
    for (uint32_t j = 0; j < args.target_height; j++)
        for (uint32_t i = 0; i < args.target_width; i++)
            warp_pixel(&args, args.method, args.from_type, i, j);
    free(rules);
    return COGPU_OK;
}

int run_warp_case(const struct warp_case *given) {
    cogpu_error error;
    cogpu_pool *pool = NULL;
    cogpu_warp_band *rules = allocate(given->bands, sizeof *rules);
    for (uint32_t i = 0; i < given->bands; i++) {
        rules[i].has_nodata = given->nodata != NULL;
        rules[i].nodata = given->nodata ? given->nodata[i] : 0;
        rules[i].avoids = given->avoided != NULL;
        rules[i].avoided = given->avoided ? given->avoided[i] : 0;
    }
    cogpu_warp warp = {.method = (cogpu_resampling)given->method,
                       .bands = given->bands,
                       .from_type = (cogpu_type)given->from_type,
                       .to_type = (cogpu_type)given->to_type,
                       .x = given->x,
                       .y = given->y,
                       .level_width = given->width,
                       .level_height = given->height,
                       .scale_x = given->scale_x,
                       .scale_y = given->scale_y,
                       .rules = rules,
                       .has_nodata = given->nodata != NULL,
                       .alpha_band = given->alpha_band,
                       .clamps = given->clamps};
    cogpu_coordinates coordinates =
        make_coordinates(given->to_source, given->target_x, given->target_y, given->target_width,
                         given->target_height, uses_corners(given->method), given->is_exact);
    cogpu_coordinates forward =
        make_coordinates(given->to_target, given->x, given->y, given->window_width,
                         given->window_height, true, given->is_exact);
    cogpu_raster source = make_raster(given->source, given->from_type, given->bands,
                                      given->window_width, given->window_height);
    cogpu_raster mask =
        make_raster(given->mask, COGPU_TYPE_U8, 1, given->window_width, given->window_height);
    cogpu_raster target = make_raster(given->target, given->to_type, given->bands,
                                      given->target_width, given->target_height);
    cogpu_raster valid = make_raster(given->valid, COGPU_TYPE_U8, given->bands, given->target_width,
                                     given->target_height);
    cogpu_warp_job job = {.warp = &warp,
                          .coordinates = &coordinates,
                          .forward = given->method == COGPU_RESAMPLE_SUM ? &forward : NULL,
                          .source = &source,
                          .mask = given->mask ? &mask : NULL,
                          .target = &target,
                          .fill = (const uint8_t(*)[16])given->fill,
                          .valid = given->valid ? &valid : NULL};
    cogpu_status status = cogpu_pool_open(given->threads, &pool, &error);
    if (status == COGPU_OK)
        status =
            given->is_plain ? run_plain(&job) : cogpu_cpu_warp(&job, pool, given->threads, &error);
    cogpu_pool_close(pool);
    free_coordinates(&coordinates);
    free_coordinates(&forward);
    free(rules);
    return (int)status;
}
