/* A library for tests/python/test_grid.py: functions of grid.h, which cogpu.h does not show. */
#include "grid/grid.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int probe_complete(const cogpu_grid *request, const cogpu_placement *sources, size_t count,
                            int rounds_up, cogpu_placement *target, cogpu_error *error);
EXPORTED int probe_measure(const cogpu_placement *source, const cogpu_placement *target,
                           double radius, double scale_and_ratio[3], int64_t extent[4],
                           cogpu_error *error);
EXPORTED uint32_t probe_choose_level(const uint32_t *sizes, uint32_t levels, double ratio);

/* `request` NULL: the grid of the sources. */
int probe_complete(const cogpu_grid *request, const cogpu_placement *sources, size_t count,
                   int rounds_up, cogpu_placement *target, cogpu_error *error) {
    cogpu_operations *operations;
    TRY(cogpu_operations_open(&operations, error));
    const cogpu_grid_sources from = {
        .items = sources, .count = count, .rounds_up = rounds_up != 0, .operations = operations};
    cogpu_status status = request ? cogpu_grid_complete(request, &from, target, error)
                                  : cogpu_grid_suggest(&from, target, error);
    cogpu_operations_close(operations);
    return status;
}

static cogpu_status measure(const cogpu_placement *source, const cogpu_placement *target,
                            double radius, cogpu_operations *operations, double found[3],
                            int64_t extent[4], cogpu_error *error) {
    cogpu_transformer *transformer;
    TRY(cogpu_transformer_open(source, target, operations, &transformer, error));
    cogpu_warp_scale(transformer, source, target, radius, &found[0], &found[1]);
    found[2] = cogpu_warp_ratio(transformer, source, target);
    const cogpu_box box = cogpu_source_extent(transformer, source, target);
    extent[0] = box.x0, extent[1] = box.y0, extent[2] = box.x1, extent[3] = box.y1;
    cogpu_transformer_close(transformer);
    return COGPU_OK;
}

int probe_measure(const cogpu_placement *source, const cogpu_placement *target, double radius,
                  double scale_and_ratio[3], int64_t extent[4], cogpu_error *error) {
    cogpu_operations *operations;
    TRY(cogpu_operations_open(&operations, error));
    cogpu_status status =
        measure(source, target, radius, operations, scale_and_ratio, extent, error);
    cogpu_operations_close(operations);
    return status;
}

/* `sizes`: width and height of each level. */
uint32_t probe_choose_level(const uint32_t *sizes, uint32_t levels, double ratio) {
    cogpu_pyramid_level all[32] = {0};
    cogpu_pyramid pyramid = {.levels = all};
    for (uint32_t i = 0; i < levels && i < 32; i++) {
        all[i].storage.width = sizes[2 * i];
        all[i].storage.height = sizes[2 * i + 1];
    }
    pyramid.info.levels = levels;
    return cogpu_choose_level(&pyramid, ratio);
}
