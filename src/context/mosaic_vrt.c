/*
 * Makes a mosaic of a VRT. Sources are opened when a read needs them, so opening a VRT costs no
 * more than its text. context/vrt_paths.c decides which files it may name.
 */
#include "context/mosaic.h"

#include "context/context.h"
#include "context/file_object.h"
#include "context/vrt_paths.h"
#include "image/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* VRTs that name VRTs, as GDAL limits them. */
enum { VRT_DEPTH_MAX = 32 };

/* A VRT while it is opened. */
typedef struct vrt_opening {
    cogpu_file *file;
    struct cogpu_mosaic_object *object;
    const cogpu_vrt *vrt;
    cogpu_arena *arena;
} vrt_opening;

/* ---- nesting ------------------------------------------------------------------------------- */

/* A VRT that names itself, directly or not, would never end. */
static cogpu_status check_nesting(const cogpu_file *file, const cogpu_file *parent,
                                  cogpu_error *error) {
    const char *version = cogpu_file_version(file);
    if (parent && parent->mosaic->origin.depth + 1 > VRT_DEPTH_MAX)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED, "VRTs are nested more than %d deep",
                          VRT_DEPTH_MAX);
    for (const cogpu_file *up = parent; up && version; up = up->mosaic->origin.parent) {
        const char *other = cogpu_file_version(up);
        if (other && strcmp(version, other) == 0)
            return cogpu_fail(error, COGPU_CORRUPT, "the VRT includes itself");
    }
    return COGPU_OK;
}

/* ---- members ------------------------------------------------------------------------------- */

static cogpu_status set_member_file(vrt_opening *opening, const cogpu_vrt_file *named,
                                    cogpu_mosaic_member *member, cogpu_error *error) {
    member->nested = named->nested;
    if (named->nested)
        return COGPU_OK;
    return cogpu_vrt_resolve_path(&opening->object->origin, named, opening->arena, &member->path,
                                  error);
}

/* Paths that may not be used are an error of the member, found when it is read. */
static cogpu_status add_member(vrt_opening *opening, const cogpu_vrt_file *named,
                               cogpu_mosaic_member *member, cogpu_error *error) {
    cogpu_error why;
    cogpu_error_clear(&why);
    cogpu_status status = set_member_file(opening, named, member, &why);
    if (status == COGPU_OUT_OF_MEMORY || !opening->object->mosaic.skips_bad_members) {
        if (status != COGPU_OK && error)
            *error = why;
        return status;
    }
    return COGPU_OK;
}

static cogpu_status add_rectangle(vrt_opening *opening, const cogpu_vrt_source *source,
                                  uint32_t band_count, cogpu_mosaic_member *member,
                                  cogpu_error *error) {
    uint32_t *bands = NULL;
    TRY(cogpu_arena_allocate(opening->arena, band_count, sizeof *bands, &bands, error));
    for (uint32_t i = 0; i < source->band_count; i++)
        bands[source->bands[i].target - 1] = source->bands[i].band;
    member->bands = bands;
    member->band_count = band_count;
    member->rectangle = source;
    return add_member(opening, &source->file, member, error);
}

/* Pixels that a source paints, without opening it: all, if the VRT does not say where. */
static cogpu_box extent_of_rectangle(const cogpu_vrt *vrt, const cogpu_vrt_source *source) {
    const cogpu_box whole = {0, 0, vrt->width, vrt->height};
    const cogpu_vrt_rect *rect = &source->target;
    if (!source->has_rects)
        return whole;
    double x1 = ceil(rect->x + rect->width) + 1, y1 = ceil(rect->y + rect->height) + 1;
    if (!(rect->x < vrt->width && rect->y < vrt->height && x1 > 0 && y1 > 0))
        return (cogpu_box){0};
    return cogpu_box_intersect(whole, (cogpu_box){(int64_t)fmax(floor(rect->x) - 1, 0),
                                                  (int64_t)fmax(floor(rect->y) - 1, 0),
                                                  (int64_t)fmin(x1, vrt->width),
                                                  (int64_t)fmin(y1, vrt->height)});
}

static bool is_copied(const cogpu_vrt_source *source) {
    const cogpu_vrt_rect *from = &source->source, *to = &source->target;
    return cogpu_vrt_source_is_simple(source, COGPU_RESAMPLE_NEAREST) &&
           (!source->has_rects ||
            (from->width == to->width && from->height == to->height && from->x == floor(from->x) &&
             from->y == floor(from->y) && to->x == floor(to->x) && to->y == floor(to->y)));
}

static cogpu_status add_rectangles(vrt_opening *opening, const cogpu_vrt_source_array *sources,
                                   uint32_t band_count, cogpu_mosaic *mosaic, cogpu_error *error) {
    TRY(cogpu_arena_allocate(opening->arena, sources->count, sizeof *mosaic->members,
                             &mosaic->members, error));
    mosaic->count = sources->count;
    mosaic->vrt = opening->vrt;
    mosaic->resampling = COGPU_RESAMPLE_NEAREST;
    mosaic->composite = COGPU_COMPOSITE_LAST;
    mosaic->needs_host = cogpu_type_is_complex(mosaic->pyramid->info.type);
    for (uint32_t i = 0; i < sources->count; i++) {
        const cogpu_vrt_source *source = &sources->entries[i];
        TRY(add_rectangle(opening, source, band_count, &mosaic->members[i], error));
        mosaic->members[i].extent = extent_of_rectangle(opening->vrt, source);
        mosaic->members[i].is_copied = is_copied(source);
        mosaic->needs_host |= !cogpu_vrt_source_is_plain(opening->vrt, source);
    }
    return cogpu_mosaic_object_start(opening->file, mosaic, error);
}

/* ---- warped VRTs --------------------------------------------------------------------------- */

static void place_warped(const cogpu_vrt_warp *warp, cogpu_placement *placement) {
    placement->crs = warp->reprojects ? warp->source_srs : NULL;
    placement->has_transform = warp->has_source_transform;
    memcpy(placement->transform, warp->source_transform, sizeof placement->transform);
    placement->gcps = warp->gcps;
    placement->gcp_count = warp->gcp_count;
    placement->rpc = warp->rpc;
    placement->rpc_height = warp->rpc_height;
}

static cogpu_status map_warped_bands(vrt_opening *opening, cogpu_mosaic_member *member,
                                     cogpu_error *error) {
    const cogpu_vrt_warp *warp = opening->vrt->warp;
    uint32_t *bands = NULL;
    TRY(cogpu_arena_allocate(opening->arena, opening->vrt->band_count, sizeof *bands, &bands,
                             error));
    for (uint32_t i = 0; i < warp->band_count; i++)
        bands[warp->bands[i].target - 1] = warp->bands[i].source;
    if (warp->target_alpha && warp->source_alpha)
        bands[warp->target_alpha - 1] = warp->source_alpha;
    member->bands = bands;
    member->band_count = opening->vrt->band_count;
    member->alpha_band = warp->source_alpha;
    member->nodata =
        warp->band_count && warp->bands[0].source_nodata ? warp->bands[0].source_nodata : "";
    return COGPU_OK;
}

/* The size of the source is known when it is open. */
static cogpu_status describe_warped(vrt_opening *opening, cogpu_mosaic_member *member,
                                    cogpu_error *error) {
    cogpu_mosaic *mosaic = &opening->object->mosaic;
    const cogpu_pyramid *pyramid = NULL;
    const cogpu_file *source = NULL;
    cogpu_transformer *transformer = NULL;
    TRY(cogpu_mosaic_acquire(mosaic, 0, &source, error));
    cogpu_status status = cogpu_file_pyramid(source, 0, &pyramid, error);
    if (status == COGPU_OK) {
        member->placement.width = pyramid->info.width;
        member->placement.height = pyramid->info.height;
        status = cogpu_transformer_open(&member->placement, &mosaic->target, mosaic->operations,
                                        &transformer, error);
    }
    if (status == COGPU_OK)
        member->extent = cogpu_source_extent(transformer, &member->placement, &mosaic->target);
    cogpu_transformer_close(transformer);
    cogpu_mosaic_release(mosaic, 0);
    return status;
}

static bool has_nodata(const cogpu_vrt_warp *warp) {
    for (uint32_t i = 0; i < warp->band_count; i++)
        if (warp->bands[i].source_nodata)
            return true;
    return false;
}

static cogpu_status open_warped(vrt_opening *opening, cogpu_error *error) {
    const cogpu_vrt *vrt = opening->vrt;
    const cogpu_vrt_warp *warp = vrt->warp;
    cogpu_mosaic *mosaic = &opening->object->mosaic;
    TRY(cogpu_mosaic_open_operations(opening->file, error));
    TRY(cogpu_arena_allocate(opening->arena, 1, sizeof *mosaic->members, &mosaic->members, error));
    mosaic->count = 1;
    mosaic->resampling = warp->resampling;
    mosaic->composite = COGPU_COMPOSITE_FIRST;
    mosaic->max_error = warp->max_error;
    mosaic->uses_full_resolution = warp->overview_level == -2;
    mosaic->unites = warp->unites;
    mosaic->made_alpha = warp->source_alpha ? 0 : warp->target_alpha;
    mosaic->needs_host = mosaic->unites || mosaic->made_alpha;
    mosaic->reads_all_bands = mosaic->made_alpha || (warp->band_count > 1 && has_nodata(warp) &&
                                                     warp->unites != COGPU_WARP_NODATA_OF_BANDS);
    if (warp->has_target_transform)
        memcpy(mosaic->target.transform, warp->target_transform, sizeof mosaic->target.transform);
    mosaic->target.crs = warp->reprojects ? warp->target_srs : NULL;
    place_warped(warp, &mosaic->members[0].placement);
    TRY(map_warped_bands(opening, &mosaic->members[0], error));
    TRY(add_member(opening, &warp->file, &mosaic->members[0], error));
    TRY(cogpu_mosaic_object_start(opening->file, mosaic, error));
    return describe_warped(opening, &mosaic->members[0], error);
}

/* ---- image --------------------------------------------------------------------------------- */

static cogpu_type type_of_bands(const cogpu_vrt *vrt) {
    cogpu_type type = vrt->bands[0].type;
    for (uint32_t i = 1; i < vrt->band_count && type != COGPU_TYPE_NONE; i++)
        type = cogpu_type_union(type, vrt->bands[i].type);
    return type;
}

/* The value of pixels without a source: INIT_DEST of a warped VRT, or nodata. */
static const char *initial_text(const cogpu_vrt *vrt, uint32_t band) {
    const cogpu_vrt_warp *warp = vrt->warp;
    double number;
    for (uint32_t i = 0; warp && i < warp->band_count; i++)
        if (warp->bands[i].target == band && warp->bands[i].initial &&
            cogpu_number_parse(warp->bands[i].initial, &number))
            return warp->bands[i].initial;
    return vrt->bands[band - 1].nodata;
}

static cogpu_status describe_bands(vrt_opening *opening, cogpu_computed_image *image,
                                   cogpu_error *error) {
    const cogpu_vrt *vrt = opening->vrt;
    cogpu_band *bands = NULL;
    const char **nodata = NULL;
    cogpu_nodata *fill = NULL;
    TRY(cogpu_arena_allocate(opening->arena, vrt->band_count, sizeof *bands, &bands, error));
    TRY(cogpu_arena_allocate(opening->arena, vrt->band_count, sizeof *nodata, &nodata, error));
    TRY(cogpu_arena_allocate(opening->arena, vrt->band_count, sizeof *fill, &fill, error));
    for (uint32_t i = 0; i < vrt->band_count; i++) {
        const cogpu_vrt_band *from = &vrt->bands[i];
        bands[i] = (cogpu_band){.description = from->description,
                                .unit = from->unit,
                                .interpretation = cogpu_colour_named(from->colour),
                                .scale = from->scale == 0 ? 1 : from->scale,
                                .offset = from->offset,
                                .has_scale = from->has_scale};
        nodata[i] = from->hides_nodata ? NULL : from->nodata;
        cogpu_nodata_parse(initial_text(vrt, i + 1), image->type, &fill[i]);
    }
    image->bands = bands;
    image->nodata = nodata;
    opening->object->mosaic.fill = fill;
    if (vrt->band_count == 1 && vrt->bands[0].palette) {
        image->palette = vrt->bands[0].palette;
        image->palette_entries = vrt->bands[0].palette_entries;
    }
    return COGPU_OK;
}

/* OverviewList, as GDAL's virtual overviews; or halves. */
static cogpu_status list_levels(vrt_opening *opening, cogpu_computed_image *image,
                                cogpu_error *error) {
    const cogpu_vrt *vrt = opening->vrt;
    uint32_t(*sizes)[2] = NULL;
    TRY(cogpu_mosaic_list_levels(opening->arena, image, error));
    if (!vrt->overview_factor_count)
        return COGPU_OK;
    TRY(cogpu_arena_allocate(opening->arena, vrt->overview_factor_count, sizeof *sizes, &sizes,
                             error));
    image->level_count = 1;
    for (uint32_t i = 0; i < vrt->overview_factor_count && image->level_count < COGPU_LEVELS_MAX;
         i++) {
        uint32_t width = image->width / vrt->overview_factors[i];
        uint32_t height = image->height / vrt->overview_factors[i];
        if (!width || !height)
            continue;
        sizes[image->level_count - 1][0] = width;
        sizes[image->level_count - 1][1] = height;
        image->level_count++;
    }
    image->level_sizes = (const uint32_t(*)[2])sizes;
    return COGPU_OK;
}

static cogpu_status describe_georef(vrt_opening *opening, const cogpu_open_options *options,
                                    cogpu_georef *georef, cogpu_error *error) {
    const cogpu_vrt *vrt = opening->vrt;
    cogpu_placement grid = {.width = vrt->width,
                            .height = vrt->height,
                            .crs = vrt->srs         ? vrt->srs
                                   : vrt->gcp_count ? vrt->gcp_srs
                                                    : NULL,
                            .has_transform = vrt->has_transform};
    cogpu_error why;
    memcpy(grid.transform, vrt->transform, sizeof grid.transform);
    georef->gcps = vrt->gcps;
    georef->gcp_count = vrt->gcp_count;
    georef->rpc = vrt->rpc;
    cogpu_crs_database *database = cogpu_context_take_crs_database(options->context);
    cogpu_status status = cogpu_mosaic_set_georef(&grid, &database, opening->arena, georef, &why);
    cogpu_context_return_crs_database(options->context, database);
    if (status == COGPU_OUT_OF_MEMORY)
        return cogpu_fail(error, status, "%s", why.message);
    if (status != COGPU_OK) {
        georef->crs_text = NULL;
        cogpu_warn(opening->arena, &opening->file->tiff.warning, "the SRS was ignored: %s",
                   why.message);
    }
    return COGPU_OK;
}

static cogpu_status create_image(vrt_opening *opening, const cogpu_open_options *options,
                                 cogpu_error *error) {
    const cogpu_vrt *vrt = opening->vrt;
    cogpu_mosaic *mosaic = &opening->object->mosaic;
    cogpu_computed_image image = {.mosaic = mosaic,
                                  .tiff = &opening->file->tiff,
                                  .width = vrt->width,
                                  .height = vrt->height,
                                  .band_count = vrt->band_count,
                                  .type = type_of_bands(vrt),
                                  .metadata = vrt->metadata};
    if (image.type == COGPU_TYPE_NONE)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "no sample type holds the values of all bands of the VRT");
    TRY(describe_bands(opening, &image, error));
    TRY(list_levels(opening, &image, error));
    TRY(describe_georef(opening, options, &image.georef, error));
    TRY(cogpu_pyramid_of_computed(&image, opening->arena, &opening->file->pyramids, error));
    opening->file->pyramids->info.warning = opening->file->tiff.warning;
    opening->file->pyramid_count = 1;
    mosaic->pyramid = opening->file->pyramids;
    return COGPU_OK;
}

/* ---- mask band ----------------------------------------------------------------------------- */

static const cogpu_vrt_mask *mask_of_vrt(const cogpu_vrt *vrt) {
    return vrt->mask ? vrt->mask : vrt->band_count == 1 ? vrt->bands[0].mask : NULL;
}

/* The mask band is a mosaic of its own: its pixels are the mask. */
static cogpu_status open_mask(vrt_opening *opening, cogpu_error *error) {
    static const char *const no_nodata[] = {NULL};
    const cogpu_vrt_mask *mask = mask_of_vrt(opening->vrt);
    cogpu_mosaic *mosaic = &opening->object->mask;
    cogpu_pyramid *image = opening->file->pyramids, *pyramid = NULL;
    static const cogpu_band band = {.scale = 1};
    cogpu_computed_image computed = {.mosaic = mosaic,
                                     .tiff = &opening->file->tiff,
                                     .width = opening->vrt->width,
                                     .height = opening->vrt->height,
                                     .band_count = 1,
                                     .type = COGPU_TYPE_U8,
                                     .bands = &band,
                                     .nodata = no_nodata};
    if (!mask)
        return COGPU_OK;
    TRY(list_levels(opening, &computed, error));
    TRY(cogpu_pyramid_of_computed(&computed, opening->arena, &pyramid, error));
    mosaic->pyramid = pyramid;
    TRY(add_rectangles(opening, &mask->sources, 1, mosaic, error));
    for (uint32_t i = 0; i < image->info.levels; i++) {
        image->levels[i].has_mask = true;
        image->levels[i].mask = pyramid->levels[i].storage;
    }
    cogpu_pyramid_set_mask_source(image);
    return COGPU_OK;
}

static cogpu_status check_masks(const cogpu_vrt *vrt, cogpu_error *error) {
    for (uint32_t i = 0; i < vrt->band_count && vrt->band_count > 1; i++)
        if (vrt->bands[i].mask)
            return cogpu_fail(error, COGPU_UNSUPPORTED,
                              "band %u of the VRT has a MaskBand of its own, which is supported "
                              "for VRTs of one band only",
                              i + 1);
    return COGPU_OK;
}

/* ---- open ---------------------------------------------------------------------------------- */

static cogpu_status build_vrt(vrt_opening *opening, const cogpu_open_options *options,
                              cogpu_error *error) {
    const cogpu_vrt *vrt = opening->vrt;
    cogpu_placement *target = &opening->object->mosaic.target;
    target->width = vrt->width;
    target->height = vrt->height;
    target->has_transform = vrt->has_transform;
    memcpy(target->transform, vrt->transform, sizeof target->transform);
    TRY(check_masks(vrt, error));
    TRY(create_image(opening, options, error));
    TRY(vrt->warp ? open_warped(opening, error)
                  : add_rectangles(opening, &vrt->sources, vrt->band_count,
                                   &opening->object->mosaic, error));
    return open_mask(opening, error);
}

static cogpu_status parse_text(cogpu_file *file, const cogpu_limits *limits, const cogpu_vrt **vrt,
                               cogpu_error *error) {
    uint64_t bytes = cogpu_io_bytes(file->io);
    if (bytes > limits->vrt_bytes)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                          "the VRT has %llu bytes, the limit is %llu; raise `vrt_bytes` to go on",
                          (unsigned long long)bytes, (unsigned long long)limits->vrt_bytes);
    char *text = cogpu_allocate((size_t)bytes + 1);
    if (!text)
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a VRT of %llu bytes",
                          (unsigned long long)bytes);
    cogpu_status status = cogpu_io_read(file->io, 0, (size_t)bytes, text, error);
    if (status == COGPU_OK)
        status = cogpu_vrt_parse(text, (size_t)bytes, limits, &file->arena, vrt, error);
    cogpu_release(text);
    return status;
}

cogpu_status cogpu_mosaic_open_vrt(cogpu_file *file, const cogpu_vrt *nested, const char *path,
                                   const cogpu_file *parent, const cogpu_open_options *options,
                                   cogpu_error *error) {
    vrt_opening opening = {.file = file, .vrt = nested, .arena = &file->arena};
    TRY(check_nesting(file, parent, error));
    if (!nested)
        TRY(parse_text(file, &file->tiff.limits, &opening.vrt, error));
    TRY(cogpu_mosaic_object_create(file, options, error));
    opening.object = file->mosaic;
    opening.object->is_vrt = true;
    opening.object->mosaic.is_nested = opening.object->mask.is_nested = parent != NULL;
    opening.object->origin = (cogpu_vrt_origin){.allowed = options->vrt_sources};
    if (nested)
        opening.object->origin = parent->mosaic->origin;
    else
        TRY(cogpu_vrt_set_folder(&opening.object->origin, path, &file->arena, error));
    opening.object->origin.parent = parent;
    opening.object->origin.depth = parent ? parent->mosaic->origin.depth + 1 : 0;
    opening.object->has_urls =
        opening.object->origin.is_url || options->vrt_sources == COGPU_VRT_SOURCES_ANY;
    return build_vrt(&opening, options, error);
}
