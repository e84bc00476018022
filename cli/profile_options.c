/*
 * Takes in the words of a command line about a file to be written, hands on a part of its profile.
 */
#include "profile_options.h"

#include "numbers.h"

#include <stdlib.h>
#include <string.h>

/* The index of a word among names, or -1. */
static int index_of(const char *word, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    return -1;
}

#define INDEX_OF(word, names) index_of(word, names, (int)(sizeof(names) / sizeof *(names)))

/* A whole number from 1 to `most`. */
static bool parse_effort(const char *value, int most, int *number) {
    uint32_t whole;
    if (!cogpu_parse_wholes(value, &whole, 1) || whole == 0 || whole > (uint32_t)most)
        return false;
    *number = (int)whole;
    return true;
}

const char *cogpu_take_cog(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->profile.cog = 1;
    return NULL;
}

const char *cogpu_take_codec(cogpu_arguments *arguments, const char *value) {
    arguments->profile.codec = value;
    return NULL;
}

const char *cogpu_take_codec_level(cogpu_arguments *arguments, const char *value) {
    return parse_effort(value, 22, &arguments->profile.level)
               ? NULL
               : "expected a number from 1 on: deflate has 12 levels, zstd 22, lzma 9";
}

const char *cogpu_take_quality(cogpu_arguments *arguments, const char *value) {
    return parse_effort(value, 100, &arguments->profile.quality)
               ? NULL
               : "expected a number from 1 to 100";
}

const char *cogpu_take_lossless(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->profile.lossless = 1;
    return NULL;
}

const char *cogpu_take_max_error(cogpu_arguments *arguments, const char *value) {
    double *most = &arguments->profile.max_error;
    bool sound = cogpu_parse_numbers(value, most, 1) && *most >= 0;
    return sound ? NULL : "expected a number of at least 0";
}

const char *cogpu_take_predictor(cogpu_arguments *arguments, const char *value) {
    static const char *const names[] = {"auto", "1", "2", "3"};
    arguments->profile.predictor = INDEX_OF(value, names);
    return arguments->profile.predictor >= 0 ? NULL : "expected auto, 1, 2 or 3";
}

const char *cogpu_take_block(cogpu_arguments *arguments, const char *value) {
    cogpu_profile *profile = &arguments->profile;
    bool sound = cogpu_parse_size(value, &profile->block_width, &profile->block_height) &&
                 profile->block_width > 0 && profile->block_height > 0;
    return sound ? NULL : "expected a size, as 512, or width and height, as 512x256";
}

const char *cogpu_take_strips(cogpu_arguments *arguments, const char *value) {
    arguments->profile.strips = 1;
    return cogpu_parse_wholes(value, &arguments->profile.block_height, 1)
               ? NULL
               : "expected a number of rows; 0: as fits";
}

const char *cogpu_take_bits(cogpu_arguments *arguments, const char *value) {
    uint32_t *bits = &arguments->profile.bits;
    bool sound = cogpu_parse_wholes(value, bits, 1) && *bits >= 1 && *bits <= 16;
    return sound ? NULL : "expected a number from 1 to 16";
}

const char *cogpu_take_planar(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->profile.planar = 1;
    return NULL;
}

const char *cogpu_take_overviews(cogpu_arguments *arguments, const char *value) {
    cogpu_profile *profile = &arguments->profile;
    static const char *const names[] = {"none", "auto"};
    int named = INDEX_OF(value, names);
    if (named >= 0) {
        profile->overviews = named ? COGPU_OVERVIEWS_AUTO : COGPU_OVERVIEWS_NONE;
        return NULL;
    }
    free(arguments->factors);
    arguments->factors = cogpu_parse_list(value, &profile->factor_count);
    profile->factors = arguments->factors;
    profile->overviews = COGPU_OVERVIEWS_LISTED;
    return arguments->factors ? NULL : "expected auto, none, or factors as 2,4,8";
}

const char *cogpu_take_resampling(cogpu_arguments *arguments, const char *value) {
    static const char *const names[] = {"nearest", "average", "rms", "bilinear", "cubic",
                                        "mode",    "min",     "max", "median"};
    int index = INDEX_OF(value, names);
    arguments->profile.resampling = (cogpu_resampling)(COGPU_NEAREST + index);
    return index >= 0 ? NULL
                      : "expected nearest, average, rms, bilinear, cubic, mode, min, max or median";
}

const char *cogpu_take_nodata(cogpu_arguments *arguments, const char *value) {
    arguments->without_nodata = strcmp(value, "none") == 0;
    arguments->profile.nodata = arguments->without_nodata ? NULL : value;
    return *value ? NULL : "expected a number, nan, or none";
}

const char *cogpu_take_bigtiff(cogpu_arguments *arguments, const char *value) {
    static const char *const names[] = {"auto", "yes", "no"};
    int index = INDEX_OF(value, names);
    arguments->profile.bigtiff = (cogpu_bigtiff)(COGPU_BIGTIFF_AUTO + index);
    return index >= 0 ? NULL : "expected auto, yes or no";
}

const char *cogpu_take_sparse(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->profile.sparse = 1;
    return NULL;
}
