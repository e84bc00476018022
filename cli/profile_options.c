/* Options about the file to be written, stored in its profile. */
#include "profile_options.h"

#include "name_lists.h"
#include "numbers.h"
#include "sample.h"

#include <stdio.h>
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
static bool parse_from_one(const char *value, int most, int *number) {
    uint32_t whole;
    if (!cogpu_parse_wholes(value, &whole, 1) || whole == 0 || whole > (uint32_t)most)
        return false;
    *number = (int)whole;
    return true;
}

const char *cogpu_set_codec(cogpu_arguments *arguments, const char *value) {
    static char message[NAMES_TEXT + 16];
    char names[NAMES_TEXT];
    cogpu_codec codec = COGPU_CODEC_INIT;
    /* If the library of a codec is missing, the writer fails and names the library. */
    if (cogpu_find_codec(value, &codec) && (codec.can_encode || !codec.can_decode)) {
        arguments->profile.codec = codec.name;
        return NULL;
    }
    cogpu_list_codecs(names);
    snprintf(message, sizeof message, "expected %s", names);
    return message;
}

const char *cogpu_set_codec_level(cogpu_arguments *arguments, const char *value) {
    static char message[NAMES_TEXT + 64];
    char names[NAMES_TEXT];
    int most = 0;
    cogpu_codec codec = COGPU_CODEC_INIT;
    for (uint32_t i = 0; cogpu_codec_info(i, &codec, NULL) == COGPU_OK; i++)
        most = codec.max_level > most ? codec.max_level : most;
    if (parse_from_one(value, most, &arguments->profile.compression_level))
        return NULL;
    cogpu_list_levels(names);
    snprintf(message, sizeof message, "expected a level of the codec: %s", names);
    return message;
}

const char *cogpu_set_quality(cogpu_arguments *arguments, const char *value) {
    return parse_from_one(value, 100, &arguments->profile.quality)
               ? NULL
               : "expected a number from 1 to 100";
}

const char *cogpu_set_max_error(cogpu_arguments *arguments, const char *value) {
    double *most = &arguments->profile.max_z_error;
    bool is_valid = cogpu_parse_numbers(value, most, 1) && *most >= 0;
    return is_valid ? NULL : "expected a number of at least 0";
}

const char *cogpu_set_predictor(cogpu_arguments *arguments, const char *value) {
    static const char *const names[] = {"auto", "1", "2", "3"};
    arguments->profile.predictor = INDEX_OF(value, names);
    return arguments->profile.predictor >= 0 ? NULL : "expected auto, 1, 2 or 3";
}

const char *cogpu_set_block(cogpu_arguments *arguments, const char *value) {
    cogpu_profile *profile = &arguments->profile;
    bool is_valid = cogpu_parse_size(value, &profile->block_width, &profile->block_height) &&
                    profile->block_width > 0 && profile->block_height > 0;
    return is_valid ? NULL : "expected a size such as 512, or width and height such as 512x256";
}

const char *cogpu_set_strips(cogpu_arguments *arguments, const char *value) {
    arguments->profile.strips = 1;
    return cogpu_parse_wholes(value, &arguments->profile.block_height, 1)
               ? NULL
               : "expected a number of rows; 0: choose automatically";
}

const char *cogpu_set_bits(cogpu_arguments *arguments, const char *value) {
    uint32_t *bits = &arguments->profile.bits;
    bool is_valid = cogpu_parse_wholes(value, bits, 1) && *bits >= 1 && *bits <= 16;
    return is_valid ? NULL : "expected a number from 1 to 16";
}

const char *cogpu_set_overviews(cogpu_arguments *arguments, const char *value) {
    cogpu_profile *profile = &arguments->profile;
    static const char *const names[] = {"none", "auto"};
    int named = INDEX_OF(value, names);
    if (named >= 0) {
        profile->overviews = named ? COGPU_OVERVIEWS_AUTO : COGPU_OVERVIEWS_NONE;
        return NULL;
    }
    free(arguments->factors);
    arguments->factors = cogpu_parse_list(value, &profile->overview_factor_count);
    profile->overview_factors = arguments->factors;
    profile->overviews = COGPU_OVERVIEWS_LISTED;
    return arguments->factors ? NULL : "expected auto, none, or factors such as 2,4,8";
}

const char *cogpu_set_resampling(cogpu_arguments *arguments, const char *value) {
    static char message[NAMES_TEXT + 16];
    char names[NAMES_TEXT];
    cogpu_resampling *method = &arguments->profile.resampling;
    if (cogpu_resampling_parse(value, method, NULL) == COGPU_OK && *method <= COGPU_RESAMPLE_MEDIAN)
        return NULL;
    cogpu_list_resamplings(names);
    snprintf(message, sizeof message, "expected %s", names);
    return message;
}

const char *cogpu_set_nodata(cogpu_arguments *arguments, const char *value) {
    arguments->without_nodata = strcasecmp(value, "none") == 0;
    arguments->profile.nodata = arguments->without_nodata ? NULL : value;
    return *value ? NULL : "expected a number, nan, or none";
}

const char *cogpu_set_bigtiff(cogpu_arguments *arguments, const char *value) {
    static const char *const names[] = {"auto", "yes", "no"};
    int index = INDEX_OF(value, names);
    arguments->profile.bigtiff = (cogpu_bigtiff)(COGPU_BIGTIFF_AUTO + index);
    return index >= 0 ? NULL : "expected auto, yes or no";
}

const char *cogpu_set_folder(cogpu_arguments *arguments, const char *value) {
    arguments->folder = value;
    return *value ? NULL : "expected the name of a directory";
}

const char *cogpu_set_jobs(cogpu_arguments *arguments, const char *value) {
    bool is_valid = cogpu_parse_wholes(value, &arguments->jobs, 1) && arguments->jobs >= 1 &&
                    arguments->jobs <= 256;
    return is_valid ? NULL : "expected a number from 1 to 256";
}

const char *cogpu_set_crs(cogpu_arguments *arguments, const char *value) {
    arguments->without_crs = strcasecmp(value, "none") == 0;
    arguments->profile.crs = arguments->without_crs ? NULL : value;
    return *value ? NULL : "expected EPSG:N, WKT, a PROJ string, or none";
}

const char *cogpu_set_transform(cogpu_arguments *arguments, const char *value) {
    double *t = arguments->transform;
    arguments->has_transform = true;
    bool is_valid = cogpu_parse_numbers(value, t, 6) && t[1] * t[5] - t[2] * t[4] != 0;
    return is_valid
               ? NULL
               : "expected six numbers: x of the upper left corner, pixel width, row rotation, "
                 "y of the corner, column rotation, pixel height (negative for north up)";
}

const char *cogpu_set_bounds(cogpu_arguments *arguments, const char *value) {
    double *b = arguments->bounds;
    arguments->has_bounds = true;
    bool is_valid = cogpu_parse_numbers(value, b, 4) && b[0] < b[2] && b[1] < b[3];
    return is_valid ? NULL : "expected xmin,ymin,xmax,ymax with xmin < xmax and ymin < ymax";
}

/* A number before the first colon is a band, a text before the next one a domain. */
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

const char *cogpu_set_metadata(cogpu_arguments *arguments, const char *value) {
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

const char *cogpu_set_dtype(cogpu_arguments *arguments, const char *value) {
    bool is_type = cogpu_type_parse(value, &arguments->dtype, NULL) == COGPU_OK;
    return is_type && !cogpu_sample_is_complex(arguments->dtype)
               ? NULL
               : "expected uint8, int8, uint16, int16, uint32, int32, uint64, int64, "
                 "float16, float32 or float64";
}

const char *cogpu_profile_find_conflict(const cogpu_arguments *arguments) {
    const cogpu_profile *profile = &arguments->profile;
    if (profile->strips && profile->block_width)
        return "--strips and --block cannot be combined";
    if (profile->strips && profile->cog)
        return "--strips: a COG has tiles; leave out one of --strips and --cog";
    return NULL;
}

const char *cogpu_set_scale(cogpu_arguments *arguments, const char *value) {
    double numbers[4] = {0, 0, 0, 255.999};
    cogpu_scale_option *scale = &arguments->scale;
    bool has_two = value && cogpu_parse_numbers(value, numbers, 2);
    bool has_four = value && !has_two && cogpu_parse_numbers(value, numbers, 4);
    scale->is_given = true;
    scale->has_source = has_two || has_four;
    memcpy(scale->source, numbers, sizeof scale->source);
    memcpy(scale->target, numbers + 2, sizeof scale->target);
    bool is_valid = !value || has_two || has_four;
    return is_valid ? NULL : "expected SMIN,SMAX or SMIN,SMAX,DMIN,DMAX";
}

const char *cogpu_set_out_size(cogpu_arguments *arguments, const char *value) {
    uint32_t size[2] = {0, 0};
    bool is_valid = cogpu_parse_wholes(value, size, 2) && (size[0] > 0 || size[1] > 0);
    arguments->to_width = size[0];
    arguments->to_height = size[1];
    return is_valid ? NULL : "expected W,H in pixels; 0 for one of them keeps the aspect ratio";
}
