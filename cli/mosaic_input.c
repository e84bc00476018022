/*
 * Opens the inputs of `cogpu warp` and `cogpu mosaic` as a mosaic.
 */
#include "mosaic_input.h"

#include "report.h"
#include "target.h"

#include <stdlib.h>
#include <string.h>

/* ---- the grid of --like ------------------------------------------------------------------------
 */

static cogpu_status copy_crs(cogpu_mosaic_input *mosaic, cogpu_error *error) {
    const cogpu_input *like = &mosaic->like;
    cogpu_crs crs = COGPU_CRS_INIT;
    cogpu_status status = cogpu_crs_info(like->file, 0, &crs, error);
    size_t bytes;
    if (status == COGPU_NOT_FOUND)
        return COGPU_OK;
    TRY(status);
    TRY(cogpu_crs_wkt(like->file, 0, like->context, NULL, 0, &bytes, error));
    mosaic->wkt = malloc(bytes);
    if (!mosaic->wkt)
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for the CRS");
    return cogpu_crs_wkt(like->file, 0, like->context, mosaic->wkt, bytes, &bytes, error);
}

static cogpu_status copy_grid(const cogpu_arguments *arguments, cogpu_mosaic_input *mosaic,
                              cogpu_grid *grid, cogpu_error *error) {
    const cogpu_open_options options = cogpu_input_options(arguments, mosaic->input.context);
    cogpu_image image = COGPU_IMAGE_INIT;
    mosaic->like.context = mosaic->input.context;
    mosaic->like.shares_context = true;
    TRY(cogpu_open(arguments->like, &options, &mosaic->like.file, error));
    TRY(cogpu_image_info(mosaic->like.file, 0, &image, error));
    if (!image.has_transform)
        return cogpu_refuse(error, COGPU_INVALID_ARGUMENT,
                            "--like: the file has no transform from pixels to coordinates");
    TRY(copy_crs(mosaic, error));
    grid->crs = mosaic->wkt;
    memcpy(grid->transform, image.transform, sizeof grid->transform);
    grid->width = image.width;
    grid->height = image.height;
    return COGPU_OK;
}

/* ---- sources -----------------------------------------------------------------------------------
 */

static cogpu_status set_source(const cogpu_arguments *arguments, int index,
                               cogpu_mosaic_input *mosaic, cogpu_mosaic_source *source,
                               cogpu_error *error) {
    *source = arguments->source;
    source->path = arguments->files[index];
    if (strcmp(source->path, "-") != 0)
        return COGPU_OK;
    if (mosaic->stdin_source.file)
        return cogpu_refuse(error, COGPU_INVALID_ARGUMENT, "only one of the files can be stdin");
    TRY(cogpu_input_open(arguments, index, &mosaic->input, &mosaic->stdin_source, error));
    source->path = NULL;
    source->file = mosaic->stdin_source.file;
    return COGPU_OK;
}

static cogpu_status open_sources(const cogpu_arguments *arguments, const cogpu_grid *grid,
                                 cogpu_mosaic_source *sources, size_t count,
                                 cogpu_mosaic_input *mosaic, cogpu_error *error) {
    const cogpu_open_options open = cogpu_input_options(arguments, mosaic->input.context);
    cogpu_mosaic_options options = arguments->mosaic;
    options.grid = grid;
    options.open = &open;
    for (size_t i = 0; i < count; i++)
        TRY(set_source(arguments, (int)i, mosaic, &sources[i], error));
    return cogpu_open_mosaic(sources, count, &options, &mosaic->input.file, error);
}

cogpu_status cogpu_mosaic_input_open(const cogpu_arguments *arguments, cogpu_mosaic_input *mosaic,
                                     const char **culprit, cogpu_error *error) {
    size_t count = (size_t)arguments->file_count - 1;
    cogpu_grid grid = arguments->grid;
    *mosaic = (cogpu_mosaic_input){.input.name = count == 1 ? arguments->names[0] : NULL};
    *culprit = mosaic->input.name;
    TRY(cogpu_input_open_context(arguments, &mosaic->input.context, error));
    if (arguments->like) {
        *culprit = arguments->like;
        TRY(copy_grid(arguments, mosaic, &grid, error));
        *culprit = mosaic->input.name;
    }
    cogpu_mosaic_source *sources = calloc(count, sizeof *sources);
    if (!sources)
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for %zu inputs", count);
    cogpu_status status = open_sources(arguments, &grid, sources, count, mosaic, error);
    free(sources);
    return status;
}

void cogpu_mosaic_input_close(cogpu_mosaic_input *mosaic) {
    cogpu_close(mosaic->input.file);
    mosaic->input.file = NULL;
    cogpu_input_close(&mosaic->stdin_source);
    cogpu_input_close(&mosaic->like);
    cogpu_input_close(&mosaic->input);
    free(mosaic->wkt);
}

/* ---- OUT ---------------------------------------------------------------------------------------
 */

bool cogpu_mosaic_check_output(const cogpu_arguments *arguments) {
    int last = arguments->file_count - 1;
    const char *out = arguments->files[last], *wrong = cogpu_target_find_wrong_url(out);
    for (int i = 0; !wrong && i < last; i++)
        if (cogpu_target_is_same_file(arguments->files[i], out))
            wrong = "is one of the inputs; write to another path";
    if (wrong)
        cogpu_report_usage("%s: %s", arguments->names[last], wrong);
    return !wrong && cogpu_target_check(out);
}
