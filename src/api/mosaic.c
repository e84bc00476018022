/* Public functions of mosaics. See context/mosaic.h. */
#include "context/mosaic.h"
#include "api/sized.h"
#include "base/checked.h"
#include "io/http/url.h"
#include "io/sink.h"
#include "read/read.h"

#include <string.h>

/* ---- DEMs of RPCs -------------------------------------------------------------------------- */

static cogpu_status read_heights(const cogpu_file *dem, cogpu_context *context, cogpu_arena *arena,
                                 cogpu_height_model *model, cogpu_error *error) {
    const cogpu_pyramid *pyramid = NULL;
    static const uint32_t first_band = 1;
    float *heights = NULL;
    size_t needed = 0;
    char *crs = NULL;
    TRY(cogpu_file_pyramid(dem, 0, &pyramid, error));
    if (!pyramid->info.has_transform || !pyramid->georef.has_crs)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "a DEM needs a transform and a CRS");
    model->width = pyramid->info.width;
    model->height = pyramid->info.height;
    memcpy(model->transform, pyramid->info.transform, sizeof model->transform);
    TRY(cogpu_arena_allocate(arena, (uint64_t)model->width * model->height, sizeof *heights,
                             &heights, error));
    cogpu_read_call call = {
        .file = dem,
        .request = {.context = context, .bands = &first_band, .band_count = 1, .masked = 1},
        .raster = {.data = heights,
                   .type = COGPU_TYPE_F32,
                   .bands = 1,
                   .width = model->width,
                   .height = model->height}};
    cogpu_error_clear(&call.refusal);
    TRY(cogpu_read_items(&call, 1, 0, context, error));
    TRY(cogpu_crs_wkt(dem, 0, context, NULL, 0, &needed, error));
    TRY(cogpu_arena_allocate(arena, needed, 1, &crs, error));
    TRY(cogpu_crs_wkt(dem, 0, context, crs, needed, &needed, error));
    model->heights = heights;
    model->crs = crs;
    return COGPU_OK;
}

static cogpu_status load_dem(void *user, const char *path, const cogpu_open_options *options,
                             cogpu_arena *arena, const cogpu_height_model **out,
                             cogpu_error *error) {
    cogpu_file *dem = NULL;
    cogpu_height_model *model = NULL;
    (void)user;
    TRY(cogpu_file_open_path(path, options, &dem, error));
    cogpu_status status = cogpu_arena_allocate(arena, 1, sizeof *model, &model, error);
    if (status == COGPU_OK)
        status = read_heights(dem, options->context, arena, model, error);
    cogpu_file_close(dem);
    *out = model;
    return status;
}

/* ---- open ---------------------------------------------------------------------------------- */

/* The caller's structs as this version has them. */
struct mosaic_call {
    cogpu_mosaic_options options;
    cogpu_grid grid;
    cogpu_open_options open;
    cogpu_limits limits;
};

static cogpu_status take_options(const cogpu_mosaic_options *given, struct mosaic_call *call,
                                 cogpu_error *error) {
    cogpu_mosaic_options *options = &call->options;
    TRY(TAKE_STRUCT(options, given, cogpu_mosaic_options, error));
    TRY(TAKE_STRUCT(&call->open, options->open, cogpu_open_options, error));
    TRY(TAKE_STRUCT(&call->limits, call->open.limits, cogpu_limits, error));
    call->open.limits = &call->limits;
    if (options->grid) {
        TRY(TAKE_STRUCT(&call->grid, options->grid, cogpu_grid, error));
        options->grid = &call->grid;
    }
    options->open = &call->open;
    return COGPU_OK;
}

static cogpu_status open_list(const cogpu_mosaic_source *sources, size_t count,
                              const cogpu_mosaic_options *given, cogpu_arena *arena,
                              cogpu_file **file, cogpu_error *error) {
    static const cogpu_dem_loader loader = {.load = load_dem};
    struct mosaic_call call;
    TRY(take_options(given, &call, error));
    TRY(TAKE_STRUCTS(arena, sources, count, cogpu_mosaic_source, error));
    return cogpu_mosaic_open_list(sources, count, &call.options, &loader, file, error);
}

cogpu_status cogpu_open_mosaic(const cogpu_mosaic_source *sources, size_t count,
                               const cogpu_mosaic_options *options, cogpu_file **file,
                               cogpu_error *error) {
    cogpu_arena arena;
    cogpu_error_clear(error);
    if (file)
        *file = NULL;
    if (!file || (!sources && count))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_open_mosaic needs sources and a pointer for the file");
    cogpu_arena_open(&arena, UINT64_MAX);
    cogpu_status status = open_list(sources, count, options, &arena, file, error);
    cogpu_arena_close(&arena);
    return status;
}

/* ---- describe ------------------------------------------------------------------------------ */

cogpu_status cogpu_source_info(const cogpu_file *file, uint64_t index,
                               cogpu_source_description *info, cogpu_error *error) {
    cogpu_error_clear(error);
    if (!file || !info)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_source_info needs a file and a description to fill");
    TRY(CHECK_STRUCT(info, cogpu_source_description, error));
    cogpu_mosaic *mosaic = cogpu_file_mosaic(file);
    if (!mosaic)
        return cogpu_fail(error, COGPU_NOT_FOUND, "the file is not a mosaic");
    if (index >= mosaic->count)
        return cogpu_fail_absent(error, "source", index, "mosaic", mosaic->count, 0);
    cogpu_source_description found = cogpu_mosaic_describe_member(mosaic, (uint32_t)index);
    GIVE_STRUCT(info, &found);
    return COGPU_OK;
}

/* ---- write --------------------------------------------------------------------------------- */

static cogpu_status write_text(const cogpu_sink *sink, const char *text, size_t bytes,
                               cogpu_error *error) {
    cogpu_out *out = NULL;
    TRY(cogpu_out_open(sink, NULL, &out, error));
    cogpu_status status = cogpu_out_write(out, 0, text, bytes, error);
    if (status == COGPU_OK)
        return cogpu_out_commit(out, error);
    cogpu_out_abort(out);
    return status;
}

cogpu_status cogpu_write_vrt(const cogpu_file *mosaic, const cogpu_sink *given,
                             cogpu_error *error) {
    cogpu_sink sink;
    cogpu_arena arena;
    const char *text = NULL;
    size_t bytes = 0;
    cogpu_error_clear(error);
    if (!mosaic || !given)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_write_vrt needs a mosaic and a sink");
    TRY(TAKE_STRUCT(&sink, given, cogpu_sink, error));
    TRY(cogpu_memory_check(sink.memory, error));
    if (sink.path && cogpu_url_is(sink.path))
        return cogpu_fail(error, COGPU_UNSUPPORTED,
                          "a VRT cannot be written to a URL; write a local file and upload it");
    cogpu_arena_open(&arena, UINT64_MAX);
    cogpu_status status = cogpu_mosaic_write_text(mosaic, sink.path, &arena, &text, &bytes, error);
    if (status == COGPU_OK)
        status = write_text(&sink, text, bytes, error);
    cogpu_arena_close(&arena);
    return status;
}
