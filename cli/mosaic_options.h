/*
 * Options of mosaics: the target grid, the sources, and how their pixels are combined. Each
 * function stores a value in the arguments and returns NULL, or what is wrong with the value. What
 * depends on several options is checked by cogpu_mosaic_find_conflict.
 */
#ifndef COGPU_CLI_MOSAIC_OPTIONS_H
#define COGPU_CLI_MOSAIC_OPTIONS_H

#include "arguments.h"

const char *cogpu_set_input_list(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_vrt_sources(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_grid_crs(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_grid_resolution(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_grid_bounds(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_grid_bounds_crs(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_grid_size(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_grid_transform(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_mosaic_type(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_grid_nodata(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_like(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_warp_resampling(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_composite(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_source_nodata(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_position_error(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_rpc_height(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_rpc_dem(cogpu_arguments *arguments, const char *value);

/* What is wrong with the options of the grid together, or NULL. */
const char *cogpu_mosaic_find_conflict(const cogpu_arguments *arguments);

#endif
