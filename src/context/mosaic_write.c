/* Describes a mosaic as a VRT: see grid/vrt_write.h. */
#include "context/mosaic.h"

#include "base/own_folder.h"
#include "context/context.h"
#include "context/file_object.h"
#include "grid/vrt_write.h"
#include "io/http/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cogpu_status refuse(const cogpu_mosaic_member *member, uint32_t index, const char *why,
                           cogpu_error *error) {
    cogpu_fail(error, COGPU_UNSUPPORTED, "%s, which a VRT cannot express", why);
    cogpu_mosaic_name_member(member, index, error);
    return COGPU_UNSUPPORTED;
}

/* The rectangle of the grid that the source covers. */
static cogpu_status place_source(const cogpu_mosaic *mosaic, uint32_t index, cogpu_vrt_rect *target,
                                 cogpu_error *error) {
    const cogpu_mosaic_member *member = &mosaic->members[index];
    cogpu_transformer *transformer = NULL;
    double affine[6];
    TRY(cogpu_transformer_open(&member->placement, &mosaic->target, mosaic->operations,
                               &transformer, error));
    bool is_affine = cogpu_transformer_is_affine(transformer, affine);
    cogpu_transformer_close(transformer);
    if (!is_affine)
        return refuse(member, index, "its pixels are reprojected", error);
    if (affine[2] != 0 || affine[4] != 0 || affine[1] <= 0 || affine[5] <= 0)
        return refuse(member, index, "its rows are rotated against the grid", error);
    *target = (cogpu_vrt_rect){.x = -affine[0] / affine[1],
                               .y = -affine[3] / affine[5],
                               .width = member->placement.width / affine[1],
                               .height = member->placement.height / affine[5]};
    return COGPU_OK;
}

/* Absolute, so that the VRT does not depend on the folder of the process that reads it. */
static cogpu_status copy_absolute_path(const char *path, cogpu_arena *arena, const char **copy,
                                       cogpu_error *error) {
    char resolved[COGPU_PATH_BYTES];
    const char *absolute = cogpu_url_is(path) || !realpath(path, resolved) ? path : resolved;
    return cogpu_arena_text(arena, absolute, strlen(absolute), copy, error);
}

static cogpu_status describe_source(const cogpu_mosaic_member *member, const cogpu_pyramid *pyramid,
                                    cogpu_arena *arena, cogpu_vrt_write_source *source,
                                    cogpu_error *error) {
    const cogpu_image *info = &pyramid->info;
    const char **nodata = NULL;
    bool has_nodata = false;
    TRY(copy_absolute_path(member->path, arena, &source->path, error));
    TRY(cogpu_arena_allocate(arena, member->band_count, sizeof *nodata, &nodata, error));
    for (uint32_t i = 0; i < member->band_count; i++) {
        const char *text =
            member->nodata ? member->nodata : pyramid->nodata[member->bands[i] - 1].text;
        if (text && *text)
            TRY(cogpu_arena_text(arena, text, strlen(text), &nodata[i], error));
        has_nodata |= nodata[i] != NULL;
    }
    source->width = info->width;
    source->height = info->height;
    source->type = info->type;
    source->block_width = info->block_width;
    source->block_height = info->block_height;
    source->bands = member->bands;
    source->source = (cogpu_vrt_rect){0, 0, info->width, info->height};
    source->nodata = has_nodata ? nodata : NULL;
    source->has_mask = pyramid->levels[0].has_mask && !member->ignores_mask;
    source->uses_mask = !has_nodata && (source->has_mask || member->alpha_band);
    return COGPU_OK;
}

static cogpu_status add_source(const cogpu_mosaic *mosaic, uint32_t index, cogpu_arena *arena,
                               cogpu_vrt_write_source *source, cogpu_error *error) {
    const cogpu_mosaic_member *member = &mosaic->members[index];
    const cogpu_pyramid *pyramid = NULL;
    const cogpu_file *file = NULL;
    if (!member->path)
        return refuse(member, index, "it has no path", error);
    TRY(place_source(mosaic, index, &source->target, error));
    TRY(cogpu_mosaic_acquire(mosaic, index, &file, error));
    cogpu_status status = cogpu_file_pyramid(file, member->image, &pyramid, error);
    if (status == COGPU_OK && member->image != 0)
        status = refuse(member, index, "it is not the first image of its file", error);
    if (status == COGPU_OK)
        status = describe_source(member, pyramid, arena, source, error);
    cogpu_mosaic_release(mosaic, index);
    if (mosaic->resampling != COGPU_RESAMPLE_NEAREST)
        source->resampling = mosaic->resampling;
    return status;
}

/* A VRT paints later sources over earlier ones. */
static cogpu_status add_sources(const cogpu_mosaic *mosaic, cogpu_arena *arena,
                                cogpu_vrt_description *vrt, cogpu_error *error) {
    cogpu_vrt_write_source *sources = NULL;
    bool is_first_on_top = mosaic->composite == COGPU_COMPOSITE_FIRST;
    TRY(cogpu_arena_allocate(arena, mosaic->count, sizeof *sources, &sources, error));
    for (uint32_t i = 0; i < mosaic->count; i++) {
        uint32_t index = is_first_on_top ? mosaic->count - 1 - i : i;
        if (mosaic->members[index].status == COGPU_OK)
            TRY(add_source(mosaic, index, arena, &sources[vrt->source_count++], error));
    }
    vrt->sources = sources;
    return COGPU_OK;
}

static cogpu_status add_bands(const cogpu_pyramid *pyramid, cogpu_arena *arena,
                              cogpu_vrt_description *vrt, cogpu_error *error) {
    cogpu_vrt_write_band *bands = NULL;
    TRY(cogpu_arena_allocate(arena, pyramid->info.bands, sizeof *bands, &bands, error));
    for (uint32_t i = 0; i < pyramid->info.bands; i++)
        bands[i] = (cogpu_vrt_write_band){.type = pyramid->info.type,
                                          .nodata = pyramid->nodata[i].text,
                                          .colour = pyramid->bands[i].interpretation,
                                          .description = pyramid->bands[i].description};
    vrt->bands = bands;
    vrt->band_count = pyramid->info.bands;
    return COGPU_OK;
}

static cogpu_status add_srs(const cogpu_pyramid *pyramid, cogpu_context *context,
                            cogpu_arena *arena, cogpu_vrt_description *vrt, cogpu_error *error) {
    size_t needed = 0;
    char *wkt = NULL;
    if (!pyramid->georef.has_crs)
        return COGPU_OK;
    cogpu_crs_database *database = cogpu_context_take_crs_database(context);
    cogpu_status status = cogpu_crs_to_wkt(&pyramid->georef, &database, NULL, 0, &needed, error);
    if (status == COGPU_OK)
        status = cogpu_arena_allocate(arena, needed, 1, &wkt, error);
    if (status == COGPU_OK)
        status = cogpu_crs_to_wkt(&pyramid->georef, &database, wkt, needed, &needed, error);
    cogpu_context_return_crs_database(context, database);
    vrt->srs = wkt;
    return status;
}

/* The path that the VRT will have: its folder exists, the file may not. */
static cogpu_status set_path(const char *path, cogpu_arena *arena, cogpu_vrt_description *vrt,
                             cogpu_error *error) {
    char folder[COGPU_PATH_BYTES], resolved[COGPU_PATH_BYTES], whole[2 * COGPU_PATH_BYTES];
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (!path || strlen(path) >= sizeof folder)
        return COGPU_OK;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    if (!realpath(folder, resolved))
        return COGPU_OK;
    snprintf(whole, sizeof whole, "%s/%s", strcmp(resolved, "/") == 0 ? "" : resolved,
             slash ? slash + 1 : path);
    return cogpu_arena_text(arena, whole, strlen(whole), &vrt->path, error);
}

cogpu_status cogpu_mosaic_write_text(const cogpu_file *file, const char *path, cogpu_arena *arena,
                                     const char **text, size_t *bytes, cogpu_error *error) {
    const cogpu_mosaic *mosaic = cogpu_file_mosaic(file);
    cogpu_vrt_description vrt = {0};
    if (!mosaic || file->mosaic->is_vrt)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "a VRT can be written of a mosaic that cogpu_open_mosaic opened; this is "
                          "another file");
    if (mosaic->composite != COGPU_COMPOSITE_FIRST && mosaic->composite != COGPU_COMPOSITE_LAST)
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "a VRT cannot express the composite \"%s\", only first and last",
                          cogpu_composite_name(mosaic->composite));
    vrt.width = mosaic->target.width;
    vrt.height = mosaic->target.height;
    vrt.has_transform = mosaic->target.has_transform;
    memcpy(vrt.transform, mosaic->target.transform, sizeof vrt.transform);
    TRY(set_path(path, arena, &vrt, error));
    TRY(add_srs(mosaic->pyramid, file->mosaic->options.context, arena, &vrt, error));
    TRY(add_bands(mosaic->pyramid, arena, &vrt, error));
    TRY(add_sources(mosaic, arena, &vrt, error));
    return cogpu_vrt_write(&vrt, arena, text, bytes, error);
}
