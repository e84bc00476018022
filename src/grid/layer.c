/* Plans what a member contributes to a part of a mosaic: copied, warped, or placed by rectangles.
 */
#include "grid/mosaic.h"

#include "base/checked.h"
#include "base/resampling.h"
#include "base/type.h"

#include <math.h>
#include <string.h>

/* ---- bands --------------------------------------------------------------------------------- */

/* A VRT names bands of files that were not opened then. */
static cogpu_status check_band(const cogpu_layer *layer, uint32_t band, cogpu_error *error) {
    const uint32_t bands = layer->pyramid->info.bands;
    return band <= bands ? COGPU_OK
                         : cogpu_fail(error, COGPU_CORRUPT,
                                      "band %u is asked for, and the image has %u", band, bands);
}

static bool has_band(const cogpu_layer *layer, uint32_t band) {
    for (uint32_t i = 0; i < layer->band_count; i++)
        if (layer->bands[i] == band)
            return true;
    return false;
}

static cogpu_status add_band(cogpu_layer *layer, uint32_t band, uint32_t target,
                             cogpu_error *error) {
    TRY(check_band(layer, band, error));
    layer->bands[layer->band_count] = band;
    layer->targets[layer->band_count++] = target;
    return COGPU_OK;
}

/* The bands that the member has, of those that are composed; then others that decide about
 * validity: its alpha band last. */
static cogpu_status list_bands(const cogpu_mosaic *mosaic, const cogpu_mosaic_member *member,
                               const cogpu_layer_request *request, cogpu_arena *arena,
                               cogpu_layer *layer, cogpu_error *error) {
    const bool adds_bands = mosaic->reads_all_bands;
    uint64_t most = (uint64_t)request->band_count + 1 + (adds_bands ? member->band_count : 0);
    TRY(cogpu_arena_allocate(arena, most, sizeof *layer->bands, &layer->bands, error));
    TRY(cogpu_arena_allocate(arena, most, sizeof *layer->targets, &layer->targets, error));
    for (uint32_t i = 0; i < request->band_count; i++) {
        uint32_t band = member->bands[request->bands[i] - 1];
        if (!band)
            continue;
        TRY(add_band(layer, band, i, error));
        if (band == member->alpha_band && !layer->warp.alpha_band)
            layer->warp.alpha_band = layer->band_count;
    }
    for (uint32_t i = 0; adds_bands && i < member->band_count; i++) {
        uint32_t band = member->bands[i];
        if (band && band != member->alpha_band && !has_band(layer, band))
            TRY(add_band(layer, band, COGPU_LAYER_NO_BAND, error));
    }
    if (!member->alpha_band || layer->warp.alpha_band || !layer->band_count)
        return COGPU_OK;
    TRY(add_band(layer, member->alpha_band, COGPU_LAYER_NO_BAND, error));
    layer->warp.alpha_band = layer->band_count;
    return COGPU_OK;
}

/* ---- nodata -------------------------------------------------------------------------------- */

static cogpu_nodata nodata_of_band(const cogpu_mosaic_member *member, const cogpu_pyramid *pyramid,
                                   uint32_t band) {
    cogpu_nodata nodata;
    if (!member->nodata)
        return pyramid->nodata[band - 1];
    cogpu_nodata_parse(*member->nodata ? member->nodata : NULL, pyramid->info.type, &nodata);
    return nodata;
}

static cogpu_status set_band_rules(const cogpu_mosaic *mosaic, const cogpu_mosaic_member *member,
                                   const cogpu_layer_request *request, cogpu_arena *arena,
                                   cogpu_layer *layer, cogpu_error *error) {
    cogpu_warp_band *rules = NULL;
    TRY(cogpu_arena_allocate(arena, layer->band_count, sizeof *rules, &rules, error));
    for (uint32_t i = 0; i < layer->band_count; i++) {
        cogpu_nodata nodata = nodata_of_band(member, layer->pyramid, layer->bands[i]);
        bool is_alpha = i + 1 == layer->warp.alpha_band;
        rules[i].has_nodata = nodata.matches && !is_alpha;
        rules[i].nodata = nodata.value;
        layer->warp.has_nodata |= rules[i].has_nodata;
        if (layer->targets[i] == COGPU_LAYER_NO_BAND || is_alpha)
            continue;
        const cogpu_nodata *avoided =
            &mosaic->pyramid->nodata[request->bands[layer->targets[i]] - 1];
        rules[i].avoids = avoided->matches && !cogpu_type_is_complex(layer->warp.to_type);
        rules[i].avoided = avoided->value;
    }
    layer->warp.rules = rules;
    return COGPU_OK;
}

/* As gdalwarp: a mask directory counts if there is neither an alpha band nor nodata. */
static bool reads_mask(const cogpu_mosaic_member *member, const cogpu_layer *layer) {
    const cogpu_pyramid_level *level = &layer->pyramid->levels[layer->level];
    return level->has_mask && !member->ignores_mask && !layer->warp.alpha_band &&
           !layer->warp.has_nodata;
}

/* ---- positions ----------------------------------------------------------------------------- */

static cogpu_status map_by_axes(cogpu_box target, const cogpu_axis_map *map, cogpu_arena *arena,
                                cogpu_coordinates *coordinates, cogpu_error *error) {
    double *nodes = NULL;
    uint32_t *cells = NULL;
    uint32_t x = (uint32_t)target.x0, y = (uint32_t)target.y0;
    uint32_t first_x = x / COGPU_CELL_SIDE, first_y = y / COGPU_CELL_SIDE;
    uint32_t across = (uint32_t)(target.x1 - 1) / COGPU_CELL_SIDE - first_x + 1;
    uint32_t down = (uint32_t)(target.y1 - 1) / COGPU_CELL_SIDE - first_y + 1;
    uint64_t count = ((uint64_t)across + 1) * ((uint64_t)down + 1);
    TRY(cogpu_arena_allocate(arena, count, 2 * sizeof *nodes, &nodes, error));
    TRY(cogpu_arena_allocate(arena, (uint64_t)across * down, sizeof *cells, &cells, error));
    memset(cells, 0xff, (size_t)across * down * sizeof *cells);
    for (uint32_t j = 0; j <= down; j++)
        for (uint32_t i = 0; i <= across; i++) {
            double *node = nodes + 2 * ((size_t)j * (across + 1) + i);
            node[0] =
                ((double)(first_x + i) * COGPU_CELL_SIDE + 0.5) * map->scale_x + map->offset_x;
            node[1] =
                ((double)(first_y + j) * COGPU_CELL_SIDE + 0.5) * map->scale_y + map->offset_y;
        }
    *coordinates = (cogpu_coordinates){.x = x,
                                       .y = y,
                                       .width = (uint32_t)(target.x1 - target.x0),
                                       .height = (uint32_t)(target.y1 - target.y0),
                                       .first_cell_x = first_x,
                                       .first_cell_y = first_y,
                                       .across = across,
                                       .down = down,
                                       .nodes = nodes,
                                       .cells = cells};
    return COGPU_OK;
}

/* ---- copies -------------------------------------------------------------------------------- */

bool cogpu_is_translation(const cogpu_transformer *transformer, const cogpu_placement *grid,
                          int64_t shift[2]) {
    const double tolerance = 1e-6; /* pixels, over the whole grid */
    double affine[6];
    if (!cogpu_transformer_is_affine(transformer, affine))
        return false;
    double x = floor(affine[0] + 0.5), y = floor(affine[3] + 0.5);
    if (fabs(affine[0] - x) > tolerance || fabs(affine[3] - y) > tolerance ||
        fabs(affine[1] - 1) * grid->width > tolerance ||
        fabs(affine[2]) * grid->height > tolerance || fabs(affine[4]) * grid->width > tolerance ||
        fabs(affine[5] - 1) * grid->height > tolerance || fabs(x) > INT32_MAX ||
        fabs(y) > INT32_MAX)
        return false;
    shift[0] = (int64_t)x;
    shift[1] = (int64_t)y;
    return true;
}

static cogpu_box move_box(cogpu_box box, int64_t x, int64_t y) {
    return (cogpu_box){box.x0 + x, box.y0 + y, box.x1 + x, box.y1 + y};
}

static void plan_copy(const int64_t shift[2], cogpu_layer *layer) {
    const cogpu_box level = {0, 0, layer->warp.level_width, layer->warp.level_height};
    layer->source = cogpu_box_intersect(move_box(layer->target, shift[0], shift[1]), level);
    if (cogpu_box_is_empty(layer->source))
        return;
    layer->target = move_box(layer->source, -shift[0], -shift[1]);
    layer->kind = COGPU_LAYER_COPIED;
    layer->warp.method = COGPU_RESAMPLE_NEAREST;
    layer->map = (cogpu_axis_map){1, (double)shift[0], 1, (double)shift[1]};
}

static bool has_complex(const cogpu_layer *layer) {
    return cogpu_type_is_complex(layer->warp.from_type) ||
           cogpu_type_is_complex(layer->warp.to_type);
}

/* A warp has no complex samples: what is not copied as it is, is placed by a rectangle. */
static void place_complex(cogpu_layer *layer) {
    bool is_plain = layer->kind == COGPU_LAYER_COPIED &&
                    layer->warp.from_type == layer->warp.to_type && !layer->warp.has_nodata &&
                    !layer->reads_mask;
    if (has_complex(layer) && layer->kind != COGPU_LAYER_NONE && !is_plain)
        layer->kind = COGPU_LAYER_RECTANGLE;
}

/* The rectangle of a copy. */
static cogpu_status plan_complex_copy(cogpu_arena *arena, cogpu_layer *layer, cogpu_error *error) {
    const cogpu_warp *warp = &layer->warp;
    cogpu_rectangle_band *bands = NULL;
    TRY(cogpu_arena_allocate(arena, layer->band_count, sizeof *bands, &bands, error));
    for (uint32_t i = 0; i < layer->band_count; i++)
        bands[i].rule = (cogpu_sample_rule){.has_nodata = warp->rules[i].has_nodata,
                                            .nodata = warp->rules[i].nodata,
                                            .uses_mask = layer->reads_mask};
    layer->rectangle = (cogpu_rectangle){.method = COGPU_RESAMPLE_NEAREST,
                                         .from_type = warp->from_type,
                                         .to_type = warp->to_type,
                                         .bands = layer->band_count,
                                         .rules = bands,
                                         .high_x = warp->level_width,
                                         .high_y = warp->level_height,
                                         .x = (double)layer->source.x0,
                                         .y = (double)layer->source.y0,
                                         .step_x = 1,
                                         .step_y = 1,
                                         .width = (uint32_t)(layer->target.x1 - layer->target.x0),
                                         .height = (uint32_t)(layer->target.y1 - layer->target.y0)};
    place_complex(layer);
    return COGPU_OK;
}

/* ---- warps --------------------------------------------------------------------------------- */

static double kernel_reach(double radius, double scale) {
    return scale < 1 ? ceil(radius / scale) : radius;
}

/* How far beyond a position taps reach, in source pixels. */
typedef struct tap_reach {
    double x, y;
    bool is_of_area; /* positions are those of corners */
} tap_reach;

static tap_reach find_reach(const cogpu_mosaic *mosaic, const cogpu_layer *layer) {
    const cogpu_resampling_row *row = &cogpu_resampling_table[mosaic->resampling];
    if (row->kind != RESAMPLING_COPY && row->kind != RESAMPLING_KERNEL)
        return (tap_reach){1, 1, true};
    return (tap_reach){kernel_reach(row->kernel_radius, layer->warp.scale_x),
                       kernel_reach(row->kernel_radius, layer->warp.scale_y), false};
}

/* An area over the seam of a source that goes round the Earth needs all columns. */
static cogpu_box widen_over_seam(const cogpu_warp *warp, cogpu_box box) {
    if (warp->is_round && 2 * (box.x1 - box.x0) > (int64_t)warp->level_width)
        box.x0 = 0, box.x1 = warp->level_width;
    return box;
}

/* The source window that the positions need. */
static cogpu_status compute_positions(const cogpu_mosaic *mosaic,
                                      const cogpu_layer_request *request, cogpu_arena *arena,
                                      cogpu_layer *layer, cogpu_box *needed, cogpu_error *error) {
    const cogpu_mosaic_member *member = &mosaic->members[layer->member];
    const cogpu_placement grid = cogpu_mosaic_level_grid(mosaic, request->level);
    const cogpu_box target = layer->target;
    const cogpu_warp *warp = &layer->warp;
    const tap_reach reach = find_reach(mosaic, layer);
    TRY(cogpu_coordinates_compute(
        layer->view->transformer, &member->placement, &grid, warp->level_width, warp->level_height,
        (uint32_t)target.x0, (uint32_t)target.y0, (uint32_t)(target.x1 - target.x0),
        (uint32_t)(target.y1 - target.y0), reach.is_of_area, mosaic->max_error, request->pool,
        arena, &layer->coordinates, error));
    *needed =
        widen_over_seam(warp, cogpu_coordinates_extent(&layer->coordinates, reach.x, reach.y,
                                                       warp->level_width, warp->level_height));
    return COGPU_OK;
}

static cogpu_status compute_forward(const cogpu_mosaic *mosaic, const cogpu_layer_request *request,
                                    cogpu_arena *arena, cogpu_layer *layer, cogpu_error *error) {
    const cogpu_placement grid = cogpu_mosaic_level_grid(mosaic, request->level);
    const cogpu_box source = layer->source;
    if (mosaic->resampling != COGPU_RESAMPLE_SUM)
        return COGPU_OK;
    return cogpu_coordinates_compute_forward(
        layer->view->transformer, &mosaic->members[layer->member].placement, &grid,
        layer->warp.level_width, layer->warp.level_height, (uint32_t)source.x0, (uint32_t)source.y0,
        (uint32_t)(source.x1 - source.x0), (uint32_t)(source.y1 - source.y0), mosaic->max_error,
        request->pool, arena, &layer->forward, error);
}

/* Positions take milliseconds, which pass while source pixels are read. */
static cogpu_status estimate_source(const cogpu_mosaic *mosaic, const cogpu_layer_request *request,
                                    cogpu_arena *arena, cogpu_layer *layer, cogpu_error *error) {
    const cogpu_placement grid = cogpu_mosaic_level_grid(mosaic, request->level);
    const cogpu_placement *source = &mosaic->members[layer->member].placement;
    const tap_reach reach = find_reach(mosaic, layer);
    if (!request->is_exact)
        layer->source = widen_over_seam(
            &layer->warp, cogpu_coordinates_estimate(
                              layer->view->transformer, source, &grid, layer->warp.level_width,
                              layer->warp.level_height, layer->target, reach.x, reach.y));
    if (!cogpu_box_is_empty(layer->source))
        return COGPU_OK;
    return compute_positions(mosaic, request, arena, layer, &layer->source, error);
}

static bool is_inside(cogpu_box inner, cogpu_box outer) {
    return cogpu_box_is_empty(inner) || (inner.x0 >= outer.x0 && inner.y0 >= outer.y0 &&
                                         inner.x1 <= outer.x1 && inner.y1 <= outer.y1);
}

cogpu_status cogpu_layer_compute(const cogpu_mosaic *mosaic, const cogpu_layer_request *request,
                                 cogpu_arena *arena, cogpu_layer *layer, bool *is_covered,
                                 cogpu_error *error) {
    cogpu_box needed = {0};
    *is_covered = true;
    if (layer->kind == COGPU_LAYER_RECTANGLE)
        return COGPU_OK;
    if (!layer->view)
        return map_by_axes(layer->target, &layer->map, arena, &layer->coordinates, error);
    if (!layer->coordinates.nodes) {
        TRY(compute_positions(mosaic, request, arena, layer, &needed, error));
        *is_covered = is_inside(needed, layer->source);
    }
    return compute_forward(mosaic, request, arena, layer, error);
}

static cogpu_status plan_warp(const cogpu_mosaic *mosaic, const cogpu_mosaic_view *view,
                              const cogpu_layer_request *request, cogpu_arena *arena,
                              cogpu_layer *layer, cogpu_error *error) {
    if (has_complex(layer))
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "pixels of type %s cannot be resampled; a mosaic of complex pixels needs "
                          "sources on its own grid",
                          cogpu_type_name(layer->warp.from_type));
    layer->warp.method = mosaic->resampling;
    layer->warp.scale_x = view->scale_x;
    layer->warp.scale_y = view->scale_y;
    layer->view = view;
    layer->warp.is_round =
        find_reach(mosaic, layer).is_of_area &&
        cogpu_source_is_round(view->transformer, mosaic->members[layer->member].placement.width);
    TRY(estimate_source(mosaic, request, arena, layer, error));
    layer->kind = cogpu_box_is_empty(layer->source) ? COGPU_LAYER_NONE : COGPU_LAYER_WARPED;
    return COGPU_OK;
}

static cogpu_status plan_by_transform(cogpu_mosaic *mosaic, cogpu_mosaic_member *member,
                                      const cogpu_layer_request *request, cogpu_arena *arena,
                                      cogpu_layer *layer, cogpu_error *error) {
    const cogpu_mosaic_view *view = NULL;
    int64_t shift[2];
    cogpu_placement grid = cogpu_mosaic_level_grid(mosaic, request->level);
    TRY(cogpu_mosaic_member_view(mosaic, member, layer->pyramid, request->level, &view, error));
    layer->target = cogpu_box_intersect(cogpu_box_intersect(request->target, view->extent),
                                        (cogpu_box){0, 0, grid.width, grid.height});
    if (cogpu_box_is_empty(layer->target))
        return COGPU_OK;
    layer->level = view->source_level;
    const cogpu_storage *storage = &layer->pyramid->levels[layer->level].storage;
    layer->warp.level_width = storage->width;
    layer->warp.level_height = storage->height;
    TRY(list_bands(mosaic, member, request, arena, layer, error));
    if (!layer->band_count)
        return COGPU_OK;
    TRY(set_band_rules(mosaic, member, request, arena, layer, error));
    layer->warp.bands = layer->band_count;
    layer->reads_mask = reads_mask(member, layer);
    layer->warp.unites = mosaic->unites;
    layer->makes_mask = mosaic->unites == COGPU_WARP_NODATA_UNITED && layer->warp.has_nodata;
    if (layer->level == 0 && cogpu_is_translation(view->transformer, &grid, shift))
        plan_copy(shift, layer);
    else
        TRY(plan_warp(mosaic, view, request, arena, layer, error));
    layer->warp.x = (uint32_t)layer->source.x0;
    layer->warp.y = (uint32_t)layer->source.y0;
    if (layer->kind == COGPU_LAYER_COPIED && has_complex(layer))
        return plan_complex_copy(arena, layer, error);
    return COGPU_OK;
}

/* ---- rectangles ---------------------------------------------------------------------------- */

/* Sizes of the levels that the source may use. */
static cogpu_status list_sizes(const cogpu_vrt_source *source, const cogpu_pyramid *pyramid,
                               cogpu_arena *arena, cogpu_vrt_size **sizes, uint32_t *count,
                               cogpu_error *error) {
    const uint32_t first = source->first_level;
    if (first >= pyramid->info.levels)
        return cogpu_fail(error, COGPU_CORRUPT, "overview %u is asked for, and the image has %u",
                          first - 1, pyramid->info.levels - 1);
    *count = source->has_one_level ? 1 : pyramid->info.levels - first;
    TRY(cogpu_arena_allocate(arena, *count, sizeof **sizes, sizes, error));
    for (uint32_t i = 0; i < *count; i++)
        (*sizes)[i] = (cogpu_vrt_size){pyramid->levels[first + i].storage.width,
                                       pyramid->levels[first + i].storage.height};
    return COGPU_OK;
}

static cogpu_status place_rectangle(const cogpu_mosaic *mosaic, const cogpu_vrt_source *source,
                                    const cogpu_layer_request *request, cogpu_arena *arena,
                                    cogpu_layer *layer, bool *is_empty, cogpu_error *error) {
    const cogpu_storage *grid = &mosaic->pyramid->levels[request->level].storage;
    const cogpu_vrt_window window = {(uint32_t)request->target.x0, (uint32_t)request->target.y0,
                                     (uint32_t)(request->target.x1 - request->target.x0),
                                     (uint32_t)(request->target.y1 - request->target.y0)};
    cogpu_vrt_placement placement;
    cogpu_vrt_size *sizes = NULL;
    uint32_t x, y, count = 0, chosen = 0;
    TRY(list_sizes(source, layer->pyramid, arena, &sizes, &count, error));
    cogpu_vrt_place(mosaic->vrt, source, sizes[0].width, sizes[0].height, grid->width, grid->height,
                    &placement);
    if (!mosaic->uses_full_resolution)
        chosen = cogpu_vrt_choose_level(&placement, source, COGPU_RESAMPLE_NEAREST, sizes, count);
    layer->level = source->first_level + chosen;
    *is_empty = !cogpu_vrt_rectangle(&placement, source, COGPU_RESAMPLE_NEAREST, sizes[0],
                                     sizes[chosen], &window, &layer->rectangle, &x, &y);
    layer->target = (cogpu_box){request->target.x0 + x, request->target.y0 + y,
                                request->target.x0 + x + layer->rectangle.width,
                                request->target.y0 + y + layer->rectangle.height};
    layer->warp.level_width = sizes[chosen].width;
    layer->warp.level_height = sizes[chosen].height;
    return COGPU_OK;
}

/* The rules of the bands that are read, in their order. */
static const cogpu_vrt_source_band *band_of_source(const cogpu_vrt_source *source,
                                                   uint32_t target) {
    for (uint32_t i = 0; i < source->band_count; i++)
        if (source->bands[i].target == target)
            return &source->bands[i];
    return NULL;
}

bool cogpu_vrt_source_is_plain(const cogpu_vrt *vrt, const cogpu_vrt_source *source) {
    for (uint32_t i = 0; i < source->band_count && source->bands[i].target <= vrt->band_count; i++)
        if (vrt->bands[source->bands[i].target - 1].bits)
            return false;
    return cogpu_vrt_source_is_simple(source, COGPU_RESAMPLE_NEAREST);
}

/* Palettes of TIFFs have no alpha: as in GDAL, the index that is nodata is transparent. */
static cogpu_status add_palette(const cogpu_pyramid *pyramid, cogpu_arena *arena,
                                cogpu_rectangle_band *band, cogpu_error *error) {
    const cogpu_image *info = &pyramid->info;
    const uint32_t entries = info->palette_entries;
    uint16_t *palette = NULL;
    TRY(cogpu_arena_allocate(arena, entries, 4 * sizeof *palette, &palette, error));
    memcpy(palette, info->palette, (size_t)entries * 3 * sizeof *palette);
    for (uint32_t i = 0; i < entries; i++)
        palette[3 * entries + i] = band->nodata.matches && band->nodata.value == i ? 0 : UINT16_MAX;
    band->palette = palette;
    band->palette_entries = entries;
    return COGPU_OK;
}

static cogpu_status set_rectangle_rules(const cogpu_mosaic *mosaic, const cogpu_vrt_source *source,
                                        const cogpu_layer_request *request, cogpu_arena *arena,
                                        cogpu_layer *layer, cogpu_error *error) {
    cogpu_warp_band *rules = NULL;
    cogpu_rectangle_band *bands = NULL;
    TRY(cogpu_arena_allocate(arena, layer->band_count, sizeof *rules, &rules, error));
    TRY(cogpu_arena_allocate(arena, layer->band_count, sizeof *bands, &bands, error));
    for (uint32_t i = 0; i < layer->band_count; i++) {
        uint32_t target = request->bands[layer->targets[i]];
        const cogpu_vrt_source_band *band = band_of_source(source, target);
        cogpu_sample_rule rule = band->rule ? *band->rule : (cogpu_sample_rule){0};
        const cogpu_image *info = &layer->pyramid->info;
        uint32_t bits = mosaic->vrt->bands[target - 1].bits;
        if (cogpu_type_is_complex(layer->warp.to_type)) /* as in GDAL */
            rule.has_nodata = false;
        bands[i] = (cogpu_rectangle_band){.rule = rule, .most = bits ? ldexp(1, (int)bits) - 1 : 0};
        if (!layer->is_of_mask)
            bands[i].nodata = layer->pyramid->nodata[layer->bands[i] - 1];
        if (rule.palette_component && info->palette)
            TRY(add_palette(layer->pyramid, arena, &bands[i], error));
        rules[i].has_nodata = rule.has_nodata;
        rules[i].nodata = rule.nodata;
        layer->warp.has_nodata |= rules[i].has_nodata;
        layer->reads_mask |= rule.uses_mask;
    }
    layer->warp.rules = rules;
    layer->rectangle.rules = bands;
    return COGPU_OK;
}

/* Nearest neighbours: a copy if pixels coincide, else a warp without reprojection. */
static void plan_nearest_rectangle(cogpu_layer *layer) {
    const cogpu_rectangle *from = &layer->rectangle;
    const cogpu_box target = layer->target;
    double x = from->x + from->to_x * from->step_x, y = from->y + from->to_y * from->step_y;
    layer->map = (cogpu_axis_map){from->step_x, x - (double)target.x0 * from->step_x, from->step_y,
                                  y - (double)target.y0 * from->step_y};
    bool is_copy = from->step_x == 1 && from->step_y == 1 && x == floor(x) && y == floor(y) &&
                   x == (double)layer->source.x0 && y == (double)layer->source.y0 &&
                   cogpu_box_pixels(layer->source) == cogpu_box_pixels(target);
    layer->kind = is_copy ? COGPU_LAYER_COPIED : COGPU_LAYER_WARPED;
    layer->warp.method = COGPU_RESAMPLE_NEAREST;
    layer->warp.clamps = true;
}

static double most_of_few_bits(const cogpu_layer *layer) {
    const cogpu_storage *storage = &layer->pyramid->levels[layer->level].storage;
    bool is_unsigned = storage->type == COGPU_TYPE_U8 || storage->type == COGPU_TYPE_U16;
    bool is_short = is_unsigned && storage->bits < 8 * cogpu_type_bytes(storage->type);
    return is_short && !layer->is_of_mask ? ldexp(1, (int)storage->bits) - 1 : 0;
}

static cogpu_status plan_rectangle(const cogpu_mosaic *mosaic, const cogpu_mosaic_member *member,
                                   const cogpu_layer_request *request, cogpu_arena *arena,
                                   cogpu_layer *layer, cogpu_error *error) {
    const cogpu_vrt_source *source = member->rectangle;
    cogpu_rectangle_need need = {0, 0, 0, 0};
    bool is_empty = false;
    layer->is_of_mask = source->of_mask;
    if (layer->is_of_mask)
        layer->warp.from_type = COGPU_TYPE_U8;
    TRY(list_bands(mosaic, member, request, arena, layer, error));
    if (!layer->band_count)
        return COGPU_OK;
    TRY(place_rectangle(mosaic, source, request, arena, layer, &is_empty, error));
    if (is_empty)
        return COGPU_OK;
    layer->rectangle.from_type = layer->warp.from_type;
    layer->rectangle.to_type = layer->warp.to_type;
    layer->rectangle.bands = layer->warp.bands = layer->band_count;
    layer->rectangle.is_indexed = layer->pyramid->info.palette_entries > 0;
    layer->rectangle.source_most = most_of_few_bits(layer);
    TRY(set_rectangle_rules(mosaic, source, request, arena, layer, error));
    need = cogpu_rectangle_needs(&layer->rectangle);
    layer->source = (cogpu_box){need.x0, need.y0, need.x1, need.y1};
    if (cogpu_box_is_empty(layer->source))
        return COGPU_OK;
    layer->warp.x = need.x0;
    layer->warp.y = need.y0;
    layer->kind = COGPU_LAYER_RECTANGLE;
    if (cogpu_vrt_source_is_plain(mosaic->vrt, source))
        plan_nearest_rectangle(layer);
    else if (layer->rectangle.averages ||
             layer->rectangle.method != COGPU_RESAMPLE_NEAREST) /* masked pixels have no weight */
        layer->reads_mask |= layer->pyramid->levels[layer->level].has_mask && !layer->is_of_mask;
    place_complex(layer);
    return COGPU_OK;
}

cogpu_status cogpu_layer_plan(cogpu_mosaic *mosaic, uint32_t index, const cogpu_pyramid *pyramid,
                              const cogpu_layer_request *request, cogpu_arena *arena,
                              cogpu_layer *layer, cogpu_error *error) {
    cogpu_mosaic_member *member = &mosaic->members[index];
    *layer = (cogpu_layer){.member = index, .pyramid = pyramid};
    layer->warp.from_type = pyramid->info.type;
    layer->warp.to_type = mosaic->pyramid->info.type;
    layer->warp.scale_x = layer->warp.scale_y = 1;
    if (member->rectangle)
        return plan_rectangle(mosaic, member, request, arena, layer, error);
    return plan_by_transform(mosaic, member, request, arena, layer, error);
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Nodes of the target's cells; a position for each pixel if all are exact. */
static uint64_t positions_bytes(cogpu_box box, bool is_exact) {
    const uint64_t side = is_exact ? 1 : COGPU_CELL_SIDE;
    return (divide_up((uint64_t)(box.x1 - box.x0), side) + 2) *
           (divide_up((uint64_t)(box.y1 - box.y0), side) + 2) * 2 * sizeof(double);
}

uint64_t cogpu_layer_bytes(const cogpu_mosaic *mosaic, const cogpu_layer *layer) {
    uint64_t sample = cogpu_type_bytes(layer->warp.from_type) * layer->band_count;
    bool is_exact = layer->view && mosaic->max_error == 0;
    if (layer->kind == COGPU_LAYER_NONE)
        return 0;
    uint64_t bytes =
        cogpu_box_pixels(layer->source) * (sample + (layer->reads_mask || layer->makes_mask)) +
        positions_bytes(layer->target, is_exact);
    if (mosaic->resampling == COGPU_RESAMPLE_SUM)
        bytes += positions_bytes(layer->source, is_exact);
    return bytes;
}
