/* Scratch memory of a tile, its supports and weights, and rows between rasters and the tile. */
#include "cpu/downsample_tile.h"
#include "cpu/samples.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* About as many columns of the source are worked on at once. */
enum { TILE_SOURCE_COLUMNS = 2048 };

/* ---- scratch memory ---- */

/* Whole source samples for each one of the result. */
static uint32_t axis_factor(const cogpu_resampling_axis *axis) {
    return axis->ratio > 1 ? (uint32_t)ceil(axis->ratio) : 1;
}

/* The most samples of a support: a kernel, and what its ends are rounded by. */
static uint32_t widest_support(cogpu_resampling method, const cogpu_resampling_axis *axis) {
    uint64_t radius = method == COGPU_RESAMPLE_LANCZOS ? 3 : 2;
    uint64_t widest = 2 * radius * axis_factor(axis) + 2;
    return widest < axis->from ? (uint32_t)widest : axis->from;
}

static void *carve(uint8_t *scratch, size_t *used, size_t count, size_t size) {
    enum { CACHE_LINE_BYTES = 64 };
    size_t at = *used;
    *used += (count * size + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
    return scratch ? scratch + at : NULL;
}

static void carve_selection(struct downsample_tile *tile, uint8_t *scratch, size_t *used) {
    size_t samples = tile->tile_rows * (size_t)tile->tile_samples;
    tile->valid = carve(scratch, used, samples, 1);
    tile->keys = carve(scratch, used, samples, sizeof(uint64_t));
    tile->candidates = carve(scratch, used, tile->tile_rows * (size_t)tile->columns.stride,
                             sizeof(cogpu_downsample_candidate));
}

static void carve_sums(struct downsample_tile *tile, uint8_t *scratch, size_t *used) {
    size_t columns = tile->tile_columns, rows = tile->tile_rows;
    tile->valid = carve(scratch, used, tile->tile_samples, 1);
    tile->columns.weights = carve(scratch, used, columns * tile->columns.stride, sizeof(double));
    tile->columns.sums = carve(scratch, used, columns, sizeof(double));
    tile->columns.scales = carve(scratch, used, columns, sizeof(double));
    tile->results = carve(scratch, used, columns, sizeof(double));
    tile->weights = carve(scratch, used, columns, sizeof(double));
    tile->row_weights = carve(scratch, used, rows, sizeof(double));
    tile->all.values = carve(scratch, used, rows * columns, sizeof(double));
    tile->all.rows = carve(scratch, used, rows, sizeof(uint32_t));
    tile->valid_only.values = carve(scratch, used, rows * columns, sizeof(double));
    tile->valid_only.weights = carve(scratch, used, rows * columns, sizeof(double));
    tile->valid_only.rows = carve(scratch, used, rows, sizeof(uint32_t));
    tile->runs = carve(scratch, used, columns, sizeof(uint32_t));
    tile->longest = carve(scratch, used, columns, sizeof(uint32_t));
}

/* Divides `scratch` among the tile's arrays and returns the bytes used; NULL: only counts them. */
static size_t carve_tile(struct downsample_tile *tile, uint8_t *scratch) {
    size_t used = 0, columns = tile->tile_columns, samples = tile->tile_samples;
    tile->columns.begin = carve(scratch, &used, columns, sizeof(uint32_t));
    tile->columns.taps = carve(scratch, &used, columns, sizeof(uint32_t));
    for (int i = 0; i < 2; i++)
        tile->samples[i] = carve(scratch, &used, samples, DOWNSAMPLE_SAMPLE_MAX_BYTES);
    tile->made = carve(scratch, &used, columns, DOWNSAMPLE_SAMPLE_MAX_BYTES);
    if (tile->downsample->method == COGPU_RESAMPLE_NEAREST)
        return used;
    tile->guards = carve(scratch, &used, samples, DOWNSAMPLE_SAMPLE_MAX_BYTES);
    tile->patched = carve(scratch, &used, columns, DOWNSAMPLE_SAMPLE_MAX_BYTES);
    for (int i = 0; i < 2; i++)
        tile->values[i] = carve(scratch, &used, samples, sizeof(double));
    if (selects_sample(tile->downsample->method))
        carve_selection(tile, scratch, &used);
    else
        carve_sums(tile, scratch, &used);
    return used;
}

cogpu_status cogpu_downsample_reserve_tile(cogpu_worker *worker, const cogpu_downsample *downsample,
                                           uint32_t width, struct downsample_tile *tile,
                                           cogpu_error *error) {
    const cogpu_resampling_axis across = cogpu_downsample_axis_x(downsample);
    const cogpu_resampling_axis down = cogpu_downsample_axis_y(downsample);
    uint32_t factor = axis_factor(&across), taps = widest_support(downsample->method, &across);
    uint32_t columns = factor < TILE_SOURCE_COLUMNS ? TILE_SOURCE_COLUMNS / factor : 1;
    if (columns > width)
        columns = width;
    tile->downsample = downsample;
    tile->tile_columns = columns;
    tile->tile_samples = (columns - 1) * factor + taps + 1;
    tile->tile_rows = widest_support(downsample->method, &down);
    tile->columns.stride = taps;
    TRY(cogpu_worker_reserve(&worker->downsampled, &worker->downsampled_bytes,
                             carve_tile(tile, NULL), error));
    carve_tile(tile, worker->downsampled);
    return COGPU_OK;
}

/* ---- supports ---- */

static void compute_column_weights(const cogpu_downsample *downsample,
                                   cogpu_downsample_columns *columns, uint32_t x, uint32_t i) {
    const cogpu_resampling_axis axis = cogpu_downsample_axis_x(downsample);
    double *weights = columns->weights + (size_t)i * columns->stride, sum = 0;
    cogpu_downsample_weights(downsample->method, &axis, x + i, weights);
    for (uint32_t k = 0; k < columns->taps[i]; k++)
        sum += weights[k];
    columns->sums[i] = sum;
}

void cogpu_downsample_move_tile(struct downsample_tile *tile, uint32_t x) {
    const cogpu_downsample *downsample = tile->downsample;
    cogpu_downsample_columns *columns = &tile->columns;
    uint32_t left = tile->end - x;
    columns->count = left < tile->tile_columns ? left : tile->tile_columns;
    tile->x = x;
    tile->from_x = column_support(downsample, x).begin;
    tile->from_count = column_support(downsample, x + columns->count - 1).end - tile->from_x;
    assert(tile->from_count <= tile->tile_samples);
    for (uint32_t i = 0; i < columns->count; i++) {
        struct support support = column_support(downsample, x + i);
        columns->begin[i] = support.begin - tile->from_x;
        columns->taps[i] = support.end - support.begin;
        assert(columns->taps[i] <= columns->stride);
        if (columns->weights)
            compute_column_weights(downsample, columns, x, i);
    }
    tile->scaled_rows = 0;
}

/* ---- rows between rasters and the tile ---- */

const uint8_t *cogpu_downsample_fetch_row(const struct downsample_tile *tile,
                                          const struct downsample_plane *from, uint32_t row,
                                          uint8_t *scratch) {
    size_t size = cogpu_type_bytes(from->type);
    const uint8_t *samples = plane_sample(from, tile->from_x, row);
    if (from->is_mask) {
        for (uint32_t i = 0; i < tile->from_count; i++)
            scratch[i] = samples[i * from->stride_x] ? 255 : 0;
        return scratch;
    }
    if (from->stride_x == (int64_t)size)
        return samples;
    cogpu_cpu_copy_samples(scratch, (int64_t)size, samples, from->stride_x, tile->from_count, size);
    return scratch;
}

void cogpu_downsample_store_row(const struct downsample_tile *tile,
                                const struct downsample_plane *to, uint32_t row) {
    size_t size = cogpu_type_bytes(to->type);
    cogpu_cpu_copy_samples(plane_sample(to, tile->x, row), to->stride_x, tile->made, (int64_t)size,
                           tile->columns.count, size);
}
