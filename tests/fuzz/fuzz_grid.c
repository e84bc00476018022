/*
 * Grids and positions of random placements: completion ends with a status, and the positions of a
 * window are within the maximum error of the exact ones.
 *
 *     12 bytes of choices, then doubles that replace numbers of the placements
 */
#include "base/memory.h"
#include "grid/grid.h"

#include <math.h>
#include <string.h>

enum { CHOICE_BYTES = 12, PIXELS = 40 };

static const double MAX_ERROR = 0.125;

static const char *const crss[] = {
    "EPSG:4326",  "EPSG:3857", "EPSG:32632",
    "EPSG:32760", "EPSG:3413", "EPSG:3031",
    "ESRI:54030", "EPSG:3035", "+proj=ortho +lat_0=40 +lon_0=10 +datum=WGS84"};
enum { CRSS = sizeof crss / sizeof *crss };

/* Units of each CRS: the extent of a raster that covers much of it. */
static const double extents[CRSS] = {360, 4e7, 1e6, 1e6, 8e6, 8e6, 3.4e7, 6e6, 1.4e7};

typedef struct input {
    const uint8_t *data;
    size_t bytes;
} input;

static void require(bool condition) {
    if (!condition)
        __builtin_trap();
}

/* The next double; `otherwise` if there is none. */
static double take_number(input *in, double otherwise) {
    double number = otherwise;
    if (in->bytes < sizeof number)
        return otherwise;
    memcpy(&number, in->data, sizeof number);
    in->data += sizeof number, in->bytes -= sizeof number;
    return number;
}

/* A raster around the middle of its CRS, or of the numbers of the input. */
static cogpu_placement choose_placement(input *in, uint8_t crs, uint8_t size, uint8_t share) {
    const double extent = extents[crs % CRSS] * (1 + share) / 256;
    cogpu_placement placed = {.width = 1 + size * 2u,
                              .height = 1 + (255u - size),
                              .crs = crss[crs % CRSS],
                              .has_transform = true};
    const double pixel = extent / placed.width;
    const double transform[6] = {-extent / 2, pixel, 0, extent / 4, 0, -pixel};
    for (int i = 0; i < 6; i++)
        placed.transform[i] = take_number(in, transform[i]);
    return placed;
}

static void find_position(const cogpu_coordinates *in, uint32_t column, uint32_t row,
                          double found[2]) {
    const uint32_t i = column / COGPU_CELL_SIDE - in->first_cell_x;
    const uint32_t j = row / COGPU_CELL_SIDE - in->first_cell_y;
    const uint32_t u = column % COGPU_CELL_SIDE, v = row % COGPU_CELL_SIDE;
    const uint32_t table = in->cells[(size_t)j * in->across + i], side = cogpu_cell_points(in);
    const double *node = in->nodes + 2 * ((size_t)j * (in->across + 1) + i);
    require(i < in->across && j < in->down);
    require(table == COGPU_CELL_INTERPOLATED || table < in->exact_count);
    for (uint32_t axis = 0; axis < 2; axis++) {
        const double *below = node + 2 * ((size_t)in->across + 1);
        const double upper = node[axis] + (node[axis + 2] - node[axis]) * u / COGPU_CELL_SIDE;
        const double lower = below[axis] + (below[axis + 2] - below[axis]) * u / COGPU_CELL_SIDE;
        found[axis] = table == COGPU_CELL_INTERPOLATED
                          ? upper + (lower - upper) * v / COGPU_CELL_SIDE
                          : in->exact[2 * (((size_t)table * side + v) * side + u) + axis];
    }
}

static bool is_inside(double x, double y, const cogpu_placement *source) {
    return x >= 0 && y >= 0 && x <= source->width && y <= source->height;
}

/* A pole or a border of longitudes may touch a few pixels of a cell, away from its corners, edges'
 * midpoints and centre. So one of the pixels may be wrong, but not many. */
static void check_positions(const cogpu_transformer *transformer, const cogpu_placement *source,
                            const cogpu_coordinates *window, uint8_t seed) {
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < PIXELS; i++) {
        const uint32_t column = window->x + (seed + 7919 * i) % window->width;
        const uint32_t row = window->y + (seed + 104729 * i) % window->height;
        const double offset = window->of_corners ? 0 : 0.5;
        double x = column + offset, y = row + offset, found[2];
        cogpu_to_source(transformer, 1, &x, &y);
        find_position(window, column, row, found);
        const double difference = fabs(x - found[0]) + fabs(y - found[1]);
        if (!isnan(difference) &&
            (is_inside(x, y, source) || is_inside(found[0], found[1], source)))
            wrong += difference > MAX_ERROR * 1.1 + 1e-6 * (source->width + source->height);
    }
    require(wrong <= PIXELS / 10);
}

/* Whether doubles tell pixels apart: those of coordinates, and of a turn of longitudes. */
static bool has_distinct_pixels(const cogpu_placement *in) {
    const double *t = in->transform;
    const double least = fmin(fabs(t[1]) + fabs(t[4]), fabs(t[2]) + fabs(t[5]));
    return least > 1e-9 * fmax(360, fmax(fabs(t[0]), fabs(t[3])));
}

static void check_window(const cogpu_transformer *transformer, const cogpu_placement *source,
                         const cogpu_placement *target, const uint8_t *data) {
    const uint32_t x = target->width * (data[7] / 2u) / 256,
                   y = target->height * (data[8] / 2u) / 256;
    const uint32_t width = 1 + (target->width - x - 1) % 300;
    const uint32_t height = 1 + (target->height - y - 1) % 300;
    cogpu_arena arena;
    cogpu_coordinates window;
    cogpu_arena_open(&arena, 16 << 20);
    if (cogpu_coordinates_compute(transformer, source, target, source->width, source->height, x, y,
                                  width, height, data[9] & 1, MAX_ERROR, NULL, &arena, &window,
                                  NULL) == COGPU_OK) {
        if (has_distinct_pixels(source) && has_distinct_pixels(target))
            check_positions(transformer, source, &window, data[9]);
        const cogpu_box box =
            cogpu_coordinates_extent(&window, 3, 3, source->width, source->height);
        require(box.x0 >= 0 && box.y0 >= 0 && box.x1 <= source->width && box.y1 <= source->height);
    }
    cogpu_arena_close(&arena);
}

static void check_pair(const cogpu_placement *source, const cogpu_placement *target,
                       cogpu_operations *operations, const uint8_t *data) {
    cogpu_transformer *transformer;
    double scale[2];
    if (cogpu_transformer_open(source, target, operations, &transformer, NULL) != COGPU_OK)
        return;
    const cogpu_box box = cogpu_source_extent(transformer, source, target);
    require(box.x0 >= 0 && box.y0 >= 0 && box.x1 <= target->width && box.y1 <= target->height);
    cogpu_warp_scale(transformer, source, target, 3, &scale[0], &scale[1]);
    require(scale[0] > 0 && isfinite(scale[0]) && scale[1] > 0 && isfinite(scale[1]));
    require(cogpu_warp_ratio(transformer, source, target) > 0);
    check_window(transformer, source, target, data);
    cogpu_transformer_close(transformer);
}

static cogpu_grid choose_request(input *in, uint8_t fields, const char *crs) {
    cogpu_grid request = COGPU_GRID_INIT;
    request.crs = fields & 1 ? crs : NULL;
    request.width = fields & 2 ? 1u << (fields & 15) : 0;
    request.height = fields & 4 ? 1u << (fields & 15) : 0;
    request.align = fields & 8 ? 1 : 0;
    for (int i = 0; i < 2; i++)
        request.resolution[i] = fields & 16 ? take_number(in, 1) : 0;
    for (int i = 0; i < 4; i++)
        request.bbox[i] = fields & 32 ? take_number(in, i) : 0;
    request.bbox_crs = fields & 64 ? crss[0] : NULL;
    for (int i = 0; i < 6; i++)
        request.transform[i] = fields & 128 ? take_number(in, i) : 0;
    return request;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static cogpu_operations *operations;
    if (bytes < CHOICE_BYTES || (!operations && cogpu_operations_open(&operations, NULL)))
        return 0;
    input in = {data + CHOICE_BYTES, bytes - CHOICE_BYTES};
    cogpu_placement source = choose_placement(&in, data[0], data[1], data[2]);
    cogpu_placement target = choose_placement(&in, data[3], data[4], data[5]);
    check_pair(&source, &target, operations, data);
    const cogpu_grid request = choose_request(&in, data[6], target.crs);
    target.has_transform = false;
    const cogpu_grid_sources sources = {
        .items = &source, .count = 1, .rounds_up = data[9] & 2, .operations = operations};
    if (cogpu_grid_complete(&request, &sources, &target, NULL) == COGPU_OK) {
        require(target.has_transform && target.width > 0 && target.height > 0);
        check_pair(&source, &target, operations, data);
    }
    return 0;
}
