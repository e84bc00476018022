/*
 * Opens a list of sources as a mosaic:
 *
 *     sort       by priority
 *     describe   each source is opened once: size, placement, CRS, type, bands
 *     grid       what the caller left open follows from the sources
 *     extent     the pixels of the grid that each source may touch
 *     image      type, bands, nodata, levels
 *
 * No pixel is read. Files are opened by several threads at a time, since URLs take long.
 */
#include "context/mosaic.h"

#include "base/math.h"
#include "base/resampling.h"
#include "base/type.h"
#include "context/context.h"
#include "context/file_object.h"
#include "io/http/url.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A mosaic while it is opened. */
typedef struct mosaic_list {
    cogpu_file *file;
    struct cogpu_mosaic_object *object;
    const cogpu_mosaic_options *options;
    const cogpu_dem_loader *loader;
    cogpu_arena *arena;
    cogpu_crs_database *database;
    cogpu_pool *pool;           /* of the context; shares grids and extents */
    const cogpu_pyramid *first; /* of the first source that can be read; its file stays acquired */
    uint32_t first_member;
    uint32_t band_count;
    cogpu_type type;
    const char *nodata; /* of the first source that has one */
    bool has_crs;       /* at least one source has */
} mosaic_list;

/* ---- members ------------------------------------------------------------------------------- */

static cogpu_status copy_text(cogpu_arena *arena, const char *text, const char **copy,
                              cogpu_error *error) {
    *copy = NULL;
    return text ? cogpu_arena_text(arena, text, strlen(text), copy, error) : COGPU_OK;
}

static cogpu_status check_source(const cogpu_mosaic_source *source, size_t index,
                                 cogpu_error *error) {
    if (!source->path == !source->file)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "source %zu needs either a path or an open file", index);
    if (source->bands && source->band_count == 0)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "source %zu has an empty list of bands",
                          index);
    if (!isfinite(source->rpc_height))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "`rpc_height` of source %zu is not a finite number", index);
    return COGPU_OK;
}

static cogpu_status fill_member(const mosaic_list *list, const cogpu_mosaic_source *source,
                                cogpu_mosaic_member *member, cogpu_error *error) {
    uint32_t *bands = NULL;
    TRY(copy_text(list->arena, source->path, &member->path, error));
    TRY(copy_text(list->arena, source->nodata, &member->nodata, error));
    TRY(copy_text(list->arena, source->rpc_dem, &member->rpc_dem, error));
    if (member->nodata && strcmp(member->nodata, "none") == 0)
        member->nodata = "";
    member->given = source->file;
    member->image = source->image;
    member->ignores_mask = source->ignore_mask;
    member->placement.rpc_height = source->rpc_height;
    if (!source->bands)
        return COGPU_OK;
    TRY(cogpu_arena_allocate(list->arena, source->band_count, sizeof *bands, &bands, error));
    memcpy(bands, source->bands, source->band_count * sizeof *bands);
    member->bands = bands;
    member->band_count = source->band_count;
    return COGPU_OK;
}

/* Fills the members in the order of priority. Sources of equal priority keep their order: a merge
 * sort of indices. */
static void sort_by_priority(const cogpu_mosaic_source *sources, uint32_t *order, uint32_t *other,
                             uint32_t count) {
    uint32_t half = count / 2, left = 0, right = half;
    if (count < 2)
        return;
    sort_by_priority(sources, order, other, half);
    sort_by_priority(sources, order + half, other, count - half);
    for (uint32_t i = 0; i < count; i++) {
        bool is_left = right == count || (left < half && sources[order[left]].priority >=
                                                             sources[order[right]].priority);
        other[i] = is_left ? order[left++] : order[right++];
    }
    memcpy(order, other, count * sizeof *order);
}

static cogpu_status fill_members(mosaic_list *list, const cogpu_mosaic_source *sources,
                                 uint32_t count, cogpu_error *error) {
    cogpu_mosaic *mosaic = &list->object->mosaic;
    uint32_t *order = NULL;
    TRY(cogpu_arena_allocate(list->arena, count, sizeof *mosaic->members, &mosaic->members, error));
    TRY(cogpu_arena_allocate(list->arena, count, 2 * sizeof *order, &order, error));
    for (uint32_t i = 0; i < count; i++) {
        TRY(check_source(&sources[i], i, error));
        order[i] = i;
    }
    sort_by_priority(sources, order, order + count, count);
    for (uint32_t i = 0; i < count; i++)
        TRY(fill_member(list, &sources[order[i]], &mosaic->members[i], error));
    mosaic->count = count;
    return COGPU_OK;
}

/* ---- describe ------------------------------------------------------------------------------ */

/* The CRS as text: its code if it has one, else WKT. */
static cogpu_status copy_crs(mosaic_list *list, const cogpu_georef *georef, const char **crs,
                             cogpu_error *error) {
    char code[64], *wkt = NULL;
    size_t needed = 0;
    *crs = NULL;
    if (!georef->has_crs)
        return COGPU_OK;
    list->has_crs = true;
    if (georef->crs_text)
        return copy_text(list->arena, georef->crs_text, crs, error);
    if (georef->crs.code && *georef->crs.authority) {
        snprintf(code, sizeof code, "%s:%u", georef->crs.authority, georef->crs.code);
        return copy_text(list->arena, code, crs, error);
    }
    TRY(cogpu_crs_to_wkt(georef, &list->database, NULL, 0, &needed, error));
    TRY(cogpu_arena_allocate(list->arena, needed, 1, &wkt, error));
    TRY(cogpu_crs_to_wkt(georef, &list->database, wkt, needed, &needed, error));
    *crs = wkt;
    return COGPU_OK;
}

/* The file of a member may be closed before the mosaic is. */
static cogpu_status copy_placement(mosaic_list *list, const cogpu_pyramid *pyramid,
                                   cogpu_placement *placement, cogpu_error *error) {
    const cogpu_image *info = &pyramid->info;
    const cogpu_georef *georef = &pyramid->georef;
    enum { RPC_NUMBERS = 92 };
    cogpu_gcp *gcps = NULL;
    double *rpc = NULL;
    placement->width = info->width;
    placement->height = info->height;
    placement->has_transform = info->has_transform;
    memcpy(placement->transform, info->transform, sizeof placement->transform);
    TRY(copy_crs(list, georef, &placement->crs, error));
    if (!info->has_transform && georef->gcp_count) {
        TRY(cogpu_arena_allocate(list->arena, georef->gcp_count, sizeof *gcps, &gcps, error));
        memcpy(gcps, georef->gcps, georef->gcp_count * sizeof *gcps);
        placement->gcps = gcps;
        placement->gcp_count = georef->gcp_count;
    }
    if (!info->has_transform && georef->rpc) {
        TRY(cogpu_arena_allocate(list->arena, RPC_NUMBERS, sizeof *rpc, &rpc, error));
        memcpy(rpc, georef->rpc, RPC_NUMBERS * sizeof *rpc);
        placement->rpc = rpc;
    }
    return COGPU_OK;
}

static cogpu_status list_bands(mosaic_list *list, const cogpu_pyramid *pyramid,
                               cogpu_mosaic_member *member, cogpu_error *error) {
    const cogpu_image *info = &pyramid->info;
    bool is_alpha_last = info->alpha_band && info->alpha_band == info->bands;
    member->alpha_band = is_alpha_last ? info->alpha_band : 0;
    for (uint32_t i = 0; member->bands && i < member->band_count; i++)
        if (member->bands[i] < 1 || member->bands[i] > info->bands)
            return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                              "there is no band %u: the image has %u, counted from 1",
                              member->bands[i], info->bands);
    if (!member->bands) {
        uint32_t *all = NULL;
        TRY(cogpu_arena_allocate(list->arena, info->bands, sizeof *all, &all, error));
        for (uint32_t i = 0; i < info->bands; i++)
            all[i] = i + 1;
        member->bands = all;
        member->band_count = info->bands;
        if (list->first && info->bands == list->band_count + 1 && is_alpha_last)
            member->band_count = list->band_count; /* alpha decides about validity alone */
    }
    if (!list->first)
        list->band_count = member->band_count;
    if (member->band_count != list->band_count)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "it has %u bands, and the sources before %u; choose its bands",
                          member->band_count, list->band_count);
    return COGPU_OK;
}

static cogpu_status add_type(mosaic_list *list, cogpu_type type, cogpu_error *error) {
    cogpu_type both = list->first ? cogpu_type_union(list->type, type) : type;
    if (both == COGPU_TYPE_NONE)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "its pixels are of type %s, and those of the sources before of type %s: "
                          "no type holds both",
                          cogpu_type_name(type), cogpu_type_name(list->type));
    list->type = both;
    return COGPU_OK;
}

static cogpu_status add_nodata(mosaic_list *list, const cogpu_pyramid *pyramid,
                               const cogpu_mosaic_member *member, cogpu_error *error) {
    const char *text = member->nodata ? member->nodata : pyramid->nodata[member->bands[0] - 1].text;
    if (list->nodata || !text || !*text)
        return COGPU_OK;
    return copy_text(list->arena, text, &list->nodata, error);
}

static cogpu_status describe_member(mosaic_list *list, uint32_t index, const cogpu_file *file,
                                    cogpu_error *error) {
    cogpu_mosaic_member *member = &list->object->mosaic.members[index];
    const cogpu_pyramid *pyramid = NULL;
    TRY(cogpu_file_pyramid(file, member->image, &pyramid, error));
    TRY(copy_placement(list, pyramid, &member->placement, error));
    TRY(list_bands(list, pyramid, member, error));
    TRY(add_type(list, pyramid->info.type, error));
    TRY(add_nodata(list, pyramid, member, error));
    if (!list->first) {
        list->first = pyramid;
        list->first_member = index;
    }
    return COGPU_OK;
}

/* Several files are opened at the same time: a request to a server takes long. */
typedef struct open_group {
    mosaic_list *list;
    uint32_t first;
    const cogpu_file **files;
    cogpu_error *errors;
} open_group;

static void open_group_member(void *argument, uint32_t worker, uint64_t index) {
    open_group *group = argument;
    (void)worker;
    cogpu_error_clear(&group->errors[index]);
    (void)cogpu_mosaic_acquire(&group->list->object->mosaic, group->first + (uint32_t)index,
                               &group->files[index],
                               &group->errors[index]); /* its status is in the error */
}

/* A source that cannot be opened or does not fit is left out, if the caller wants that. */
static cogpu_status finish_member(mosaic_list *list, uint32_t index, const cogpu_file *file,
                                  cogpu_error *why, cogpu_error *error) {
    cogpu_mosaic_member *member = &list->object->mosaic.members[index];
    if (why->status == COGPU_OK)
        (void)describe_member(list, index, file, why);
    if (file && (why->status != COGPU_OK || list->first_member != index))
        cogpu_mosaic_release(&list->object->mosaic, index);
    if (why->status == COGPU_OK)
        return COGPU_OK;
    cogpu_mosaic_name_member(member, index, why);
    if (!list->object->mosaic.skips_bad_members || why->status == COGPU_OUT_OF_MEMORY) {
        if (error)
            *error = *why;
        return why->status;
    }
    member->status = why->status;
    return copy_text(list->arena, why->message, &member->message, error);
}

enum { OPEN_TOGETHER = 16 };

static cogpu_status describe_members(mosaic_list *list, cogpu_pool *pool, cogpu_error *error) {
    const cogpu_mosaic *mosaic = &list->object->mosaic;
    const cogpu_file *files[OPEN_TOGETHER];
    cogpu_error errors[OPEN_TOGETHER];
    cogpu_status status = COGPU_OK;
    for (uint32_t first = 0; first < mosaic->count; first += OPEN_TOGETHER) {
        uint32_t count = mosaic->count - first;
        count = count < OPEN_TOGETHER ? count : OPEN_TOGETHER;
        memset(files, 0, sizeof files);
        open_group group = {list, first, files, errors};
        cogpu_pool_run(pool, OPEN_TOGETHER, count, open_group_member, &group);
        for (uint32_t i = 0; i < count; i++) {
            if (status == COGPU_OK)
                status = finish_member(list, first + i, files[i], &errors[i], error);
            else if (files[i])
                cogpu_mosaic_release(mosaic, first + i);
        }
        TRY(status);
    }
    if (!list->first)
        return cogpu_fail(error, COGPU_NOT_FOUND,
                          "none of the %u sources can be read; the first: %s", mosaic->count,
                          mosaic->members[0].message);
    return COGPU_OK;
}

static cogpu_status describe_in_parallel(mosaic_list *list, cogpu_error *error) {
    cogpu_pool *pool = NULL;
    TRY(cogpu_pool_open(list->object->has_urls ? OPEN_TOGETHER : 1, &pool, error));
    cogpu_status status = describe_members(list, pool, error);
    cogpu_pool_close(pool);
    return status;
}

/* Kernels ask whether a pixel is valid in any band, so that a band is the same whichever others are
 * read with it. Without a kernel each sample is asked alone. */
static bool reads_all_bands(const mosaic_list *list) {
    return list->band_count > 1 && list->nodata &&
           cogpu_resampling_table[list->object->mosaic.resampling].kind == RESAMPLING_KERNEL;
}

/* Sources share the heights of a DEM that they name one after the other. */
static cogpu_status load_dems(mosaic_list *list, cogpu_error *error) {
    cogpu_mosaic *mosaic = &list->object->mosaic;
    const cogpu_height_model *last = NULL;
    const char *last_path = NULL;
    for (uint32_t i = 0; i < mosaic->count; i++) {
        cogpu_mosaic_member *member = &mosaic->members[i];
        if (!member->rpc_dem || !member->placement.rpc || member->status != COGPU_OK)
            continue;
        if (!last_path || strcmp(last_path, member->rpc_dem) != 0)
            TRY(list->loader->load(list->loader->user, member->rpc_dem, list->options->open,
                                   list->arena, &last, error));
        last_path = member->rpc_dem;
        member->placement.rpc_dem = last;
    }
    return COGPU_OK;
}

/* ---- grid ---------------------------------------------------------------------------------- */

/* Sources without a CRS fit a grid without one alone; those without a place fit none. */
static cogpu_status check_members_have_places(const mosaic_list *list, cogpu_error *error) {
    const cogpu_mosaic *mosaic = &list->object->mosaic;
    for (uint32_t i = 0; mosaic->target.crs && i < mosaic->count; i++) {
        const cogpu_mosaic_member *member = &mosaic->members[i];
        const cogpu_placement *placed = &member->placement;
        const bool has_place = placed->has_transform || placed->gcp_count || placed->rpc;
        if (member->status != COGPU_OK || ((placed->crs || placed->rpc) && has_place))
            continue;
        cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                   placed->crs || placed->rpc
                       ? "it has no transform, no ground control points and no RPCs"
                       : "it has no CRS, but the mosaic has; assign one, for example with `cogpu "
                         "convert --crs`");
        cogpu_mosaic_name_member(member, i, error);
        return COGPU_INVALID_ARGUMENT;
    }
    return COGPU_OK;
}

/* RPCs lead to WGS 84. */
static const char *crs_of_member(const cogpu_mosaic_member *member) {
    return !member->placement.crs && member->placement.rpc ? "EPSG:4326" : member->placement.crs;
}

static cogpu_status choose_grid(mosaic_list *list, cogpu_error *error) {
    static const cogpu_grid automatic = COGPU_GRID_INIT;
    cogpu_mosaic *mosaic = &list->object->mosaic;
    const cogpu_grid *request = list->options->grid ? list->options->grid : &automatic;
    cogpu_placement *placements = NULL;
    cogpu_grid_sources sources = {.rounds_up = mosaic->resampling == COGPU_RESAMPLE_SUM,
                                  .operations = mosaic->operations,
                                  .pool = list->pool};
    mosaic->target.crs = crs_of_member(&mosaic->members[list->first_member]);
    if (request->crs)
        TRY(copy_text(list->arena, request->crs, &mosaic->target.crs, error));
    TRY(check_members_have_places(list, error));
    TRY(cogpu_arena_allocate(list->arena, mosaic->count, sizeof *placements, &placements, error));
    for (uint32_t i = 0; i < mosaic->count; i++)
        if (mosaic->members[i].status == COGPU_OK)
            placements[sources.count++] = mosaic->members[i].placement;
    sources.items = placements;
    return cogpu_grid_complete(request, &sources, &mosaic->target, error);
}

/* ---- extents ------------------------------------------------------------------------------- */

enum { MODE_PIXELS_MAX = 1024, EXTENTS_TOGETHER = 256 };

/* Source pixels for each pixel of the grid. */
static uint64_t pixels_for_each(const cogpu_mosaic_member *member) {
    uint64_t pixels = (uint64_t)member->placement.width * member->placement.height;
    uint64_t extent = cogpu_box_pixels(member->extent);
    return extent ? pixels / extent : 0;
}

static cogpu_status find_extent(const cogpu_mosaic *mosaic, cogpu_mosaic_member *member,
                                cogpu_error *error) {
    cogpu_transformer *transformer = NULL;
    int64_t shift[2];
    TRY(cogpu_transformer_open(&member->placement, &mosaic->target, mosaic->operations,
                               &transformer, error));
    member->extent = cogpu_source_extent(transformer, &member->placement, &mosaic->target);
    member->is_copied = cogpu_is_translation(transformer, &mosaic->target, shift);
    cogpu_transformer_close(transformer);
    return COGPU_OK;
}

/* Members that threads share. */
typedef struct extent_group {
    cogpu_mosaic *mosaic;
    uint32_t first, count;
    cogpu_status statuses[EXTENTS_TOGETHER];
} extent_group;

static void find_extent_of_member(void *argument, uint32_t worker, uint64_t index) {
    extent_group *group = argument;
    cogpu_mosaic_member *member = &group->mosaic->members[group->first + index];
    (void)worker;
    group->statuses[index] =
        member->status == COGPU_OK ? find_extent(group->mosaic, member, NULL) : COGPU_OK;
}

/* What failed is repeated for its message. */
static cogpu_status check_extents(mosaic_list *list, const extent_group *group,
                                  cogpu_error *error) {
    for (uint32_t i = 0; i < group->count; i++) {
        cogpu_error why;
        cogpu_mosaic_member *member = &group->mosaic->members[group->first + i];
        cogpu_error_clear(&why);
        if (group->statuses[i] != COGPU_OK && find_extent(group->mosaic, member, &why) != COGPU_OK)
            TRY(finish_member(list, group->first + i, NULL, &why, error));
    }
    return COGPU_OK;
}

static cogpu_status find_extents(mosaic_list *list, cogpu_error *error) {
    cogpu_mosaic *mosaic = &list->object->mosaic;
    extent_group group = {.mosaic = mosaic};
    for (; group.first < mosaic->count; group.first += EXTENTS_TOGETHER) {
        group.count = min_u32(mosaic->count - group.first, EXTENTS_TOGETHER);
        cogpu_pool_share(list->pool, group.count, find_extent_of_member, &group);
        TRY(check_extents(list, &group, error));
    }
    /* Finding the mode of large areas takes kernels too long. */
    for (uint32_t i = 0; mosaic->resampling == COGPU_RESAMPLE_MODE && i < mosaic->count; i++)
        mosaic->needs_host |= pixels_for_each(&mosaic->members[i]) > MODE_PIXELS_MAX;
    return COGPU_OK;
}

/* ---- image --------------------------------------------------------------------------------- */

static cogpu_status copy_band(const mosaic_list *list, const cogpu_band *from, cogpu_band *band,
                              cogpu_error *error) {
    *band = *from;
    TRY(copy_text(list->arena, from->description, &band->description, error));
    return copy_text(list->arena, from->unit, &band->unit, error);
}

/* Palette indices cannot be averaged. */
static bool keeps_palette(cogpu_resampling method) {
    return method == COGPU_RESAMPLE_NEAREST || method == COGPU_RESAMPLE_MODE;
}

static cogpu_status copy_palette(const mosaic_list *list, cogpu_computed_image *image,
                                 cogpu_error *error) {
    const cogpu_image *info = &list->first->info;
    uint16_t *palette = NULL;
    if (!info->palette || image->band_count != 1 || image->type != info->type ||
        !keeps_palette(list->object->mosaic.resampling))
        return COGPU_OK;
    TRY(cogpu_arena_allocate(list->arena, info->palette_entries, 3 * sizeof *palette, &palette,
                             error));
    memcpy(palette, info->palette, info->palette_entries * 3 * sizeof *palette);
    image->palette = palette;
    image->palette_entries = info->palette_entries;
    return COGPU_OK;
}

/* Whether all pixels are valid: one source, without nodata, mask and alpha, that covers the grid
 * pixel by pixel. */
static bool is_all_valid(const mosaic_list *list) {
    const cogpu_mosaic *mosaic = &list->object->mosaic;
    const cogpu_mosaic_member *member = &mosaic->members[0];
    const cogpu_placement *source = &member->placement, *target = &mosaic->target;
    return mosaic->count == 1 && source->has_transform && source->width == target->width &&
           source->height == target->height && source->crs && target->crs &&
           strcmp(source->crs, target->crs) == 0 &&
           memcmp(source->transform, target->transform, sizeof source->transform) == 0 &&
           list->first->info.mask_source == COGPU_MASK_SOURCE_NONE;
}

static cogpu_status choose_nodata(const mosaic_list *list, cogpu_computed_image *image,
                                  bool *matches, cogpu_error *error) {
    const char **texts = NULL, *text = list->nodata;
    cogpu_nodata nodata;
    if (list->options->nodata)
        TRY(copy_text(list->arena, list->options->nodata, &text, error));
    if (text && (!*text || strcmp(text, "none") == 0))
        text = NULL;
    cogpu_nodata_parse(text, image->type, &nodata);
    *matches = nodata.matches;
    if (list->options->nodata && text && !nodata.matches)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "nodata \"%.40s\" is not a value of type %s, the mosaic's", text,
                          cogpu_type_name(image->type));
    TRY(cogpu_arena_allocate(list->arena, image->band_count, sizeof *texts, &texts, error));
    for (uint32_t i = 0; i < image->band_count; i++)
        texts[i] = nodata.matches ? text : NULL;
    image->nodata = texts;
    return COGPU_OK;
}

/* Complex samples have no order, and they are composed on the CPU alone. */
static cogpu_status check_complex(mosaic_list *list, cogpu_type type, cogpu_error *error) {
    cogpu_mosaic *mosaic = &list->object->mosaic;
    if (!cogpu_type_is_complex(type) && !cogpu_type_is_complex(list->type))
        return COGPU_OK;
    mosaic->needs_host = true;
    if (mosaic->composite == COGPU_COMPOSITE_FIRST || mosaic->composite == COGPU_COMPOSITE_LAST ||
        mosaic->composite == COGPU_COMPOSITE_COUNT)
        return COGPU_OK;
    return cogpu_fail(error, COGPU_UNSUPPORTED,
                      "samples of type %s are composed by first, last and count only",
                      cogpu_type_name(list->type));
}

static cogpu_status describe_image(mosaic_list *list, cogpu_computed_image *image,
                                   cogpu_error *error) {
    const cogpu_mosaic *mosaic = &list->object->mosaic;
    const cogpu_mosaic_member *member = &mosaic->members[list->first_member];
    cogpu_band *bands = NULL;
    bool has_nodata = false, has_alpha = false;
    image->width = mosaic->target.width;
    image->height = mosaic->target.height;
    image->band_count = list->band_count;
    image->type = list->options->type != COGPU_TYPE_NONE       ? list->options->type
                  : mosaic->composite == COGPU_COMPOSITE_COUNT ? COGPU_TYPE_U16
                                                               : list->type;
    TRY(check_complex(list, image->type, error));
    TRY(cogpu_arena_allocate(list->arena, image->band_count, sizeof *bands, &bands, error));
    for (uint32_t i = 0; i < image->band_count; i++) {
        TRY(copy_band(list, &list->first->bands[member->bands[i] - 1], &bands[i], error));
        has_alpha |= bands[i].interpretation && strcmp(bands[i].interpretation, "alpha") == 0;
    }
    image->bands = bands;
    TRY(choose_nodata(list, image, &has_nodata, error));
    TRY(copy_palette(list, image, error));
    image->has_mask = !has_nodata && !has_alpha && mosaic->composite != COGPU_COMPOSITE_COUNT &&
                      !is_all_valid(list);
    TRY(cogpu_mosaic_list_levels(list->arena, image, error));
    return cogpu_mosaic_set_georef(&mosaic->target, &list->database, list->arena, &image->georef,
                                   error);
}

static cogpu_status create_image(mosaic_list *list, cogpu_error *error) {
    cogpu_computed_image image = {.mosaic = &list->object->mosaic, .tiff = &list->file->tiff};
    TRY(describe_image(list, &image, error));
    TRY(cogpu_pyramid_of_computed(&image, list->arena, &list->file->pyramids, error));
    list->file->pyramid_count = 1;
    list->object->mosaic.pyramid = list->file->pyramids;
    return COGPU_OK;
}

/* ---- open ---------------------------------------------------------------------------------- */

static cogpu_status check_options(const cogpu_mosaic_options *options, size_t count,
                                  const cogpu_limits *limits, cogpu_error *error) {
    if (count == 0)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "a mosaic needs at least one source");
    if (count > limits->sources || count > UINT32_MAX / 2)
        return cogpu_fail(error, COGPU_LIMIT_EXCEEDED,
                          "%zu sources exceed the limit of %llu; raise `sources` to go on", count,
                          (unsigned long long)limits->sources);
    if (!cogpu_resampling_is_valid(options->resampling))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "`resampling` must be between 0 and %d, "
                          "got %d",
                          COGPU_RESAMPLING_COUNT - 1, (int)options->resampling);
    if ((unsigned)options->composite > COGPU_COMPOSITE_COUNT)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "`composite` must be between 0 and %d, got %d",
                          (int)COGPU_COMPOSITE_COUNT, (int)options->composite);
    if (options->type != COGPU_TYPE_NONE && !cogpu_type_bytes(options->type))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "`type` is no sample type");
    if (isnan(options->max_error))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "`max_error` is not a number");
    return COGPU_OK;
}

static void set_methods(const cogpu_mosaic_options *options, cogpu_mosaic *mosaic) {
    const double default_error = 0.125; /* source pixels, as gdalwarp */
    mosaic->resampling = options->resampling == COGPU_RESAMPLE_DEFAULT ? COGPU_RESAMPLE_NEAREST
                                                                       : options->resampling;
    mosaic->composite = options->composite;
    mosaic->max_error = options->max_error < 0    ? 0
                        : options->max_error == 0 ? default_error
                                                  : options->max_error;
    mosaic->uses_full_resolution = options->full_resolution;
    mosaic->skips_bad_members = options->skip_bad_sources;
}

static bool has_urls(const cogpu_mosaic_source *sources, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (sources[i].path && cogpu_url_is(sources[i].path))
            return true;
    return false;
}

static cogpu_status build_mosaic(mosaic_list *list, const cogpu_mosaic_source *sources,
                                 uint32_t count, cogpu_error *error) {
    struct cogpu_mosaic_object *object = list->object;
    object->has_urls = has_urls(sources, count);
    set_methods(list->options, &object->mosaic);
    TRY(cogpu_mosaic_open_operations(list->file, error));
    TRY(fill_members(list, sources, count, error));
    TRY(cogpu_mosaic_object_start(list->file, &object->mosaic, error));
    TRY(describe_in_parallel(list, error));
    object->mosaic.reads_all_bands = reads_all_bands(list);
    TRY(load_dems(list, error));
    TRY(choose_grid(list, error));
    TRY(find_extents(list, error));
    return create_image(list, error);
}

cogpu_status cogpu_mosaic_open_list(const cogpu_mosaic_source *sources, size_t count,
                                    const cogpu_mosaic_options *options,
                                    const cogpu_dem_loader *loader, cogpu_file **out,
                                    cogpu_error *error) {
    cogpu_limits limits = cogpu_limits_complete(options->open->limits);
    cogpu_file *file = NULL;
    TRY(check_options(options, count, &limits, error));
    TRY(cogpu_file_create_computed(&limits, &file, error));
    mosaic_list list = {.file = file, .options = options, .loader = loader, .arena = &file->arena};
    cogpu_status status = cogpu_mosaic_object_create(file, options->open, error);
    if (status == COGPU_OK) {
        list.object = file->mosaic;
        list.pool = options->open->context ? options->open->context->pool : NULL;
        list.database = cogpu_context_take_crs_database(options->open->context);
        status = build_mosaic(&list, sources, (uint32_t)count, error);
        cogpu_context_return_crs_database(options->open->context, list.database);
    }
    if (list.first)
        cogpu_mosaic_release(&list.object->mosaic, list.first_member);
    if (status != COGPU_OK) {
        cogpu_file_close(file);
        return status;
    }
    cogpu_error_clear(error);
    *out = file;
    return COGPU_OK;
}
