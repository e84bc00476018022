/* Options about mosaics, stored in the grid, the mosaic and the source of the arguments. */
#include "mosaic_options.h"

#include "name_lists.h"
#include "numbers.h"
#include "profile_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const wrong_crs = "expected EPSG:N, WKT or a PROJ string";

const char *cogpu_set_input_list(cogpu_arguments *arguments, const char *value) {
    arguments->input_list = value;
    return *value ? NULL : "expected a file name";
}

const char *cogpu_set_vrt_sources(cogpu_arguments *arguments, const char *value) {
    if (strcasecmp(value, "below") == 0)
        arguments->vrt_sources = COGPU_VRT_SOURCES_BELOW;
    else if (strcasecmp(value, "any") == 0)
        arguments->vrt_sources = COGPU_VRT_SOURCES_ANY;
    else
        return "expected below or any";
    return NULL;
}

const char *cogpu_set_grid_crs(cogpu_arguments *arguments, const char *value) {
    arguments->grid.crs = value;
    return *value ? NULL : wrong_crs;
}

const char *cogpu_set_grid_resolution(cogpu_arguments *arguments, const char *value) {
    double *size = arguments->grid.resolution;
    bool is_one = cogpu_parse_numbers(value, size, 1);
    if (is_one)
        size[1] = size[0];
    bool is_valid = (is_one || cogpu_parse_numbers(value, size, 2)) && size[0] > 0 && size[1] > 0;
    return is_valid ? NULL : "expected a pixel size such as 30, or width and height such as 30,20";
}

const char *cogpu_set_grid_bounds(cogpu_arguments *arguments, const char *value) {
    double *b = arguments->grid.bbox;
    bool is_valid = cogpu_parse_numbers(value, b, 4) && b[0] < b[2] && b[1] < b[3];
    return is_valid ? NULL : "expected xmin,ymin,xmax,ymax with xmin < xmax and ymin < ymax";
}

const char *cogpu_set_grid_bounds_crs(cogpu_arguments *arguments, const char *value) {
    arguments->grid.bbox_crs = value;
    return *value ? NULL : wrong_crs;
}

const char *cogpu_set_grid_size(cogpu_arguments *arguments, const char *value) {
    uint32_t size[2] = {0, 0};
    bool is_valid = cogpu_parse_wholes(value, size, 2) && (size[0] > 0 || size[1] > 0);
    arguments->grid.width = size[0];
    arguments->grid.height = size[1];
    return is_valid ? NULL : "expected W,H in pixels; 0 for one of them makes pixels square";
}

const char *cogpu_set_grid_transform(cogpu_arguments *arguments, const char *value) {
    const char *wrong = cogpu_set_transform(arguments, value);
    memcpy(arguments->grid.transform, arguments->transform, sizeof arguments->grid.transform);
    arguments->has_transform = false; /* that is of convert */
    return wrong;
}

const char *cogpu_set_mosaic_type(cogpu_arguments *arguments, const char *value) {
    const char *wrong = cogpu_set_dtype(arguments, value);
    arguments->mosaic.type = arguments->dtype;
    arguments->dtype = COGPU_TYPE_NONE; /* that is of convert */
    return wrong;
}

const char *cogpu_set_like(cogpu_arguments *arguments, const char *value) {
    arguments->like = value;
    return *value ? NULL : "expected a file name";
}

const char *cogpu_set_warp_resampling(cogpu_arguments *arguments, const char *value) {
    static char message[NAMES_TEXT + 16];
    char names[NAMES_TEXT];
    if (cogpu_resampling_parse(value, &arguments->mosaic.resampling, NULL) == COGPU_OK)
        return NULL;
    cogpu_list_warp_resamplings(names);
    snprintf(message, sizeof message, "expected %s", names);
    return message;
}

const char *cogpu_set_composite(cogpu_arguments *arguments, const char *value) {
    static char message[NAMES_TEXT + 16];
    char names[NAMES_TEXT];
    if (cogpu_composite_parse(value, &arguments->mosaic.composite, NULL) == COGPU_OK)
        return NULL;
    cogpu_list_composites(names);
    snprintf(message, sizeof message, "expected %s", names);
    return message;
}

/* A number as C reads it, "nan", or "none". */
static const char *check_nodata(const char *value) {
    char *end;
    strtod(value, &end);
    bool is_number = end != value && *end == '\0';
    return is_number || strcasecmp(value, "none") == 0 ? NULL : "expected a number, nan, or none";
}

const char *cogpu_set_grid_nodata(cogpu_arguments *arguments, const char *value) {
    arguments->mosaic.nodata = value;
    return check_nodata(value);
}

const char *cogpu_set_source_nodata(cogpu_arguments *arguments, const char *value) {
    arguments->source.nodata = value;
    return check_nodata(value);
}

/* The library's 0 is the default. */
const char *cogpu_set_position_error(cogpu_arguments *arguments, const char *value) {
    double *most = &arguments->mosaic.max_error;
    if (!cogpu_parse_numbers(value, most, 1) || *most < 0)
        return "expected a number of pixels; 0 is exact";
    if (*most == 0)
        *most = -1;
    return NULL;
}

const char *cogpu_set_rpc_height(cogpu_arguments *arguments, const char *value) {
    bool is_valid = cogpu_parse_numbers(value, &arguments->source.rpc_height, 1);
    return is_valid ? NULL : "expected a height in meters";
}

const char *cogpu_set_rpc_dem(cogpu_arguments *arguments, const char *value) {
    arguments->source.rpc_dem = value;
    return *value ? NULL : "expected a file name";
}

const char *cogpu_mosaic_find_conflict(const cogpu_arguments *arguments) {
    const cogpu_grid *grid = &arguments->grid;
    bool has_size = grid->width || grid->height, has_resolution = grid->resolution[0] != 0;
    bool has_bounds = grid->bbox[0] < grid->bbox[2];
    bool has_transform = grid->transform[1] != 0 || grid->transform[2] != 0;
    bool is_partial = has_bounds || has_resolution || grid->align;
    if (arguments->like && (is_partial || has_size || has_transform || grid->crs))
        return "--like cannot be combined with --crs, --res, --bounds, --size, --transform and "
               "--align";
    if (has_transform && is_partial)
        return "--transform cannot be combined with --res, --bounds and --align";
    if (has_transform && !(grid->width && grid->height))
        return "--transform needs --size W,H, both more than 0";
    if (has_bounds && has_resolution && has_size)
        return "--bounds, --res and --size cannot be combined; leave out one of them";
    if (grid->align && !has_resolution)
        return "--align needs --res";
    if (grid->bbox_crs && !has_bounds)
        return "--bounds-crs needs --bounds";
    return NULL;
}
