/*
 * Takes in the words of a command line about a file to be written, hands on a part of its profile.
 */
#include "profile_options.h"

#include "numbers.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The index of a word among names, or -1. */
static int index_of(const char *word, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (strcasecmp(word, names[i]) == 0)
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
    static const char *const names[] = {"none", "packbits",     "lzw",      "deflate",
                                        "zstd", "lzma",         "jpeg",     "webp",
                                        "lerc", "lerc_deflate", "lerc_zstd"};
    int index = INDEX_OF(value, names);
    arguments->profile.codec = index >= 0 ? names[index] : NULL;
    return index >= 0 ? NULL
                      : "expected none, packbits, lzw, deflate, zstd, lzma, jpeg, webp, lerc, "
                        "lerc_deflate or lerc_zstd";
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
    arguments->without_nodata = strcasecmp(value, "none") == 0;
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

const char *cogpu_take_folder(cogpu_arguments *arguments, const char *value) {
    arguments->folder = value;
    return *value ? NULL : "expected the name of a folder";
}

const char *cogpu_take_jobs(cogpu_arguments *arguments, const char *value) {
    bool sound = cogpu_parse_wholes(value, &arguments->jobs, 1) && arguments->jobs >= 1 &&
                 arguments->jobs <= 256;
    return sound ? NULL : "expected a number from 1 to 256";
}

const char *cogpu_take_resume(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->resume = true;
    return NULL;
}

const char *cogpu_take_crs(cogpu_arguments *arguments, const char *value) {
    arguments->without_crs = strcasecmp(value, "none") == 0;
    arguments->profile.crs = arguments->without_crs ? NULL : value;
    return *value ? NULL : "expected EPSG:N, WKT, a PROJ string, or none";
}

const char *cogpu_take_transform(cogpu_arguments *arguments, const char *value) {
    double *t = arguments->transform;
    arguments->has_transform = true;
    bool sound = cogpu_parse_numbers(value, t, 6) && t[1] * t[5] - t[2] * t[4] != 0;
    return sound ? NULL
                 : "expected six numbers: x of the upper left corner, pixel width, row rotation, "
                   "y of the corner, column rotation, pixel height (negative for north up)";
}

const char *cogpu_take_bounds(cogpu_arguments *arguments, const char *value) {
    double *b = arguments->bounds;
    arguments->has_bounds = true;
    bool sound = cogpu_parse_numbers(value, b, 4) && b[0] < b[2] && b[1] < b[3];
    return sound ? NULL : "expected xmin,ymin,xmax,ymax with xmin < xmax and ymin < ymax";
}

/* A number before the first colon is a band, what stands before the next one a domain. */
static bool split_metadata(char *text, cogpu_metadata_option *option) {
    char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return false;
    *equals = '\0';
    option->value = equals + 1;
    char *colon = strchr(text, ':');
    size_t digits = strspn(text, "0123456789");
    if (colon && digits > 0 && text + digits == colon) {
        uint32_t band;
        *colon = '\0';
        if (!cogpu_parse_wholes(text, &band, 1) || band == 0 || band > INT32_MAX)
            return false;
        option->band = (int32_t)band;
        text = colon + 1;
        colon = strchr(text, ':');
    }
    option->domain = "";
    if (colon) {
        *colon = '\0';
        option->domain = text;
        text = colon + 1;
    }
    option->name = text;
    return *text != '\0';
}

const char *cogpu_take_metadata(cogpu_arguments *arguments, const char *value) {
    cogpu_metadata_option option = {.memory = strdup(value)};
    cogpu_metadata_option *all =
        realloc(arguments->metadata, (arguments->metadata_count + 1) * sizeof *all);
    if (all)
        arguments->metadata = all;
    if (!all || !option.memory || !split_metadata(option.memory, &option)) {
        free(option.memory);
        return "expected KEY=VALUE, DOMAIN:KEY=VALUE, BAND:KEY=VALUE or BAND:DOMAIN:KEY=VALUE";
    }
    all[arguments->metadata_count++] = option;
    return NULL;
}

const char *cogpu_take_dtype(cogpu_arguments *arguments, const char *value) {
    for (int type = COGPU_U8; type <= COGPU_F64; type++)
        if (strcasecmp(value, cogpu_type_name((cogpu_type)type)) == 0)
            arguments->dtype = (cogpu_type)type;
    return arguments->dtype ? NULL
                            : "expected uint8, int8, uint16, int16, uint32, int32, uint64, int64, "
                              "float16, float32 or float64";
}

const char *cogpu_take_scale(cogpu_arguments *arguments, const char *value) {
    double numbers[4] = {0, 0, 0, 255.999};
    cogpu_scale_option *scale = &arguments->scale;
    bool has_two = value && cogpu_parse_numbers(value, numbers, 2);
    bool has_four = value && !has_two && cogpu_parse_numbers(value, numbers, 4);
    scale->is_given = true;
    scale->has_source = has_two || has_four;
    memcpy(scale->source, numbers, sizeof scale->source);
    memcpy(scale->target, numbers + 2, sizeof scale->target);
    bool sound = !value || has_two || has_four;
    return sound ? NULL : "expected SMIN,SMAX or SMIN,SMAX,DMIN,DMAX";
}

const char *cogpu_take_out_size(cogpu_arguments *arguments, const char *value) {
    uint32_t size[2] = {0, 0};
    bool sound = cogpu_parse_wholes(value, size, 2) && (size[0] > 0 || size[1] > 0);
    arguments->to_width = size[0];
    arguments->to_height = size[1];
    return sound ? NULL : "expected W,H in pixels; 0 for one of them keeps the proportions";
}
