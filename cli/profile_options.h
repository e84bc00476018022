/*
 * The options that say how a file is written, each stored in the profile of the arguments as
 * cogpu_writer_open takes it. They return NULL, or what is wrong with the value; what only the
 * whole profile can tell, the writer refuses.
 */
#ifndef COGPU_CLI_PROFILE_OPTIONS_H
#define COGPU_CLI_PROFILE_OPTIONS_H

#include "arguments.h"

const char *cogpu_take_cog(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_codec(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_codec_level(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_quality(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_lossless(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_max_error(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_predictor(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_block(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_strips(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_bits(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_planar(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_overviews(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_resampling(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_nodata(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_bigtiff(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_sparse(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_folder(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_jobs(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_resume(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_crs(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_transform(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_bounds(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_metadata(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_dtype(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_scale(cogpu_arguments *arguments, const char *value);
const char *cogpu_take_out_size(cogpu_arguments *arguments, const char *value);

#endif
