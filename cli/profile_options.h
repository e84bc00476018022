/*
 * Options of the file to be written. Each function stores a value in the profile of the arguments
 * and returns NULL, or what is wrong with the value. What depends on other options is checked by
 * the writer.
 */
#ifndef COGPU_CLI_PROFILE_OPTIONS_H
#define COGPU_CLI_PROFILE_OPTIONS_H

#include "arguments.h"

const char *cogpu_set_codec(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_codec_level(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_quality(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_max_error(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_predictor(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_block(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_strips(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_bits(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_overviews(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_resampling(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_nodata(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_bigtiff(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_folder(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_jobs(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_crs(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_transform(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_bounds(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_metadata(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_dtype(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_scale(cogpu_arguments *arguments, const char *value);
const char *cogpu_set_out_size(cogpu_arguments *arguments, const char *value);

/* What is wrong with these options together, or NULL. */
const char *cogpu_profile_find_conflict(const cogpu_arguments *arguments);

#endif
