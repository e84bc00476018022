/* Members of a mosaic at its levels: transformers, extents, the choice of overview levels. */
#include "grid/mosaic.h"

#include "base/resampling.h"

#include <math.h>

cogpu_box cogpu_box_intersect(cogpu_box a, cogpu_box b) {
    return (cogpu_box){.x0 = a.x0 > b.x0 ? a.x0 : b.x0,
                       .y0 = a.y0 > b.y0 ? a.y0 : b.y0,
                       .x1 = a.x1 < b.x1 ? a.x1 : b.x1,
                       .y1 = a.y1 < b.y1 ? a.y1 : b.y1};
}

uint64_t cogpu_box_pixels(cogpu_box box) {
    return cogpu_box_is_empty(box) ? 0 : (uint64_t)(box.x1 - box.x0) * (uint64_t)(box.y1 - box.y0);
}

void cogpu_mosaic_fill_sample(const cogpu_mosaic *mosaic, uint32_t band, uint8_t sample[16]) {
    const cogpu_nodata *fill = mosaic->fill ? mosaic->fill : mosaic->pyramid->nodata;
    cogpu_nodata_sample(&fill[band - 1], mosaic->pyramid->info.type, sample);
}

/* A level covers the same area with fewer pixels. */
static void scale_placement(cogpu_placement *placement, uint32_t width, uint32_t height) {
    double across = placement->width / (double)width, down = placement->height / (double)height;
    placement->transform[1] *= across;
    placement->transform[2] *= down;
    placement->transform[4] *= across;
    placement->transform[5] *= down;
    placement->width = width;
    placement->height = height;
}

cogpu_placement cogpu_mosaic_level_grid(const cogpu_mosaic *mosaic, uint32_t level) {
    const cogpu_storage *storage = &mosaic->pyramid->levels[level].storage;
    cogpu_placement grid = mosaic->target;
    if (level > 0)
        scale_placement(&grid, storage->width, storage->height);
    return grid;
}

/* ---- extent -------------------------------------------------------------------------------- */

static int64_t scale_down(int64_t position, uint32_t from, uint32_t to) {
    return (int64_t)floor((double)position * to / from);
}

static int64_t scale_up(int64_t position, uint32_t from, uint32_t to) {
    return (int64_t)ceil((double)position * to / from);
}

cogpu_box cogpu_mosaic_member_extent(const cogpu_mosaic *mosaic, const cogpu_mosaic_member *member,
                                     uint32_t level) {
    const cogpu_storage *storage = &mosaic->pyramid->levels[level].storage;
    const cogpu_box full = member->extent;
    uint32_t width = mosaic->target.width, height = mosaic->target.height;
    if (level == 0 || cogpu_box_is_empty(full))
        return full;
    return (cogpu_box){.x0 = scale_down(full.x0, width, storage->width),
                       .y0 = scale_down(full.y0, height, storage->height),
                       .x1 = scale_up(full.x1, width, storage->width),
                       .y1 = scale_up(full.y1, height, storage->height)};
}

/* ---- views --------------------------------------------------------------------------------- */

/* GDAL 3.12 derives the scale of kernels from the whole target. That is wrong for a source that
 * covers a part of it, so with several sources the target is the part that the source touches. */
static void set_grid_of_scale(const cogpu_mosaic *mosaic, const cogpu_placement *grid,
                              cogpu_box extent, cogpu_placement *part) {
    *part = *grid;
    cogpu_box whole = {0, 0, grid->width, grid->height};
    extent = cogpu_box_intersect(extent, whole);
    if (mosaic->count > 1 && !cogpu_box_is_empty(extent)) {
        const double *from = grid->transform;
        part->transform[0] = from[0] + (double)extent.x0 * from[1] + (double)extent.y0 * from[2];
        part->transform[3] = from[3] + (double)extent.x0 * from[4] + (double)extent.y0 * from[5];
        part->width = (uint32_t)(extent.x1 - extent.x0);
        part->height = (uint32_t)(extent.y1 - extent.y0);
    }
}

/* Kernels grow with the scale, and areas are refused by it. */
static bool depends_on_scale(cogpu_resampling method) {
    return method != COGPU_RESAMPLE_NEAREST && method != COGPU_RESAMPLE_SUM;
}

/* The source as its chosen level has it. */
static cogpu_placement placement_of_level(const cogpu_mosaic_member *member,
                                          const cogpu_pyramid *pyramid, uint32_t level) {
    const cogpu_storage *storage = &pyramid->levels[level].storage;
    cogpu_placement placement = member->placement;
    if (level > 0 && placement.has_transform)
        scale_placement(&placement, storage->width, storage->height);
    return placement;
}

static cogpu_status choose_scale(cogpu_mosaic *mosaic, const cogpu_mosaic_member *member,
                                 const cogpu_pyramid *pyramid, const cogpu_placement *grid,
                                 cogpu_mosaic_view *view, cogpu_error *error) {
    cogpu_transformer *transformer = NULL;
    cogpu_placement part, source = placement_of_level(member, pyramid, view->source_level);
    set_grid_of_scale(mosaic, grid, view->extent, &part);
    TRY(cogpu_transformer_open(&source, &part, mosaic->operations, &transformer, error));
    cogpu_warp_scale(transformer, &source, &part,
                     cogpu_resampling_table[mosaic->resampling].kernel_radius, &view->scale_x,
                     &view->scale_y);
    cogpu_transformer_close(transformer);
    return COGPU_OK;
}

static cogpu_status prepare_view(cogpu_mosaic *mosaic, const cogpu_mosaic_member *member,
                                 const cogpu_pyramid *pyramid, uint32_t level,
                                 cogpu_mosaic_view *view, cogpu_error *error) {
    cogpu_placement grid = cogpu_mosaic_level_grid(mosaic, level);
    if (!view->transformer)
        TRY(cogpu_transformer_open(&member->placement, &grid, mosaic->operations,
                                   &view->transformer, error));
    view->extent = cogpu_mosaic_member_extent(mosaic, member, level);
    view->source_level = 0;
    view->scale_x = view->scale_y = 1;
    if (!mosaic->uses_full_resolution && pyramid->info.levels > 1) {
        cogpu_placement part;
        cogpu_transformer *transformer = NULL;
        set_grid_of_scale(mosaic, &grid, view->extent, &part);
        TRY(cogpu_transformer_open(&member->placement, &part, mosaic->operations, &transformer,
                                   error));
        view->ratio = cogpu_warp_ratio(transformer, &member->placement, &part);
        cogpu_transformer_close(transformer);
        view->source_level = cogpu_choose_level(pyramid, view->ratio);
    }
    if (depends_on_scale(mosaic->resampling))
        TRY(choose_scale(mosaic, member, pyramid, &grid, view, error));
    view->is_ready = true;
    return COGPU_OK;
}

cogpu_status cogpu_mosaic_member_view(cogpu_mosaic *mosaic, cogpu_mosaic_member *member,
                                      const cogpu_pyramid *pyramid, uint32_t level,
                                      const cogpu_mosaic_view **view, cogpu_error *error) {
    cogpu_status status = COGPU_OK;
    pthread_mutex_lock(&mosaic->lock);
    if (!member->views)
        status = cogpu_arena_allocate(mosaic->arena, mosaic->pyramid->info.levels,
                                      sizeof *member->views, &member->views, error);
    if (status == COGPU_OK && !member->views[level].is_ready)
        status = prepare_view(mosaic, member, pyramid, level, &member->views[level], error);
    if (status == COGPU_OK)
        *view = &member->views[level];
    pthread_mutex_unlock(&mosaic->lock);
    return status;
}

void cogpu_mosaic_close_views(cogpu_mosaic *mosaic) {
    for (uint32_t i = 0; i < mosaic->count; i++)
        for (uint32_t k = 0; mosaic->members[i].views && k < mosaic->pyramid->info.levels; k++)
            cogpu_transformer_close(mosaic->members[i].views[k].transformer);
}
