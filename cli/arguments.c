/*
 * Takes in the words of a command line, hands on a cogpu_arguments. Here, once for all commands,
 * stand the options with their help, and the messages about those that are wrong.
 */
#include "arguments.h"

#include "command.h"
#include "name.h"
#include "numbers.h"
#include "profile_options.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Each `take_` stores an option's value and returns NULL, or what is wrong with the value. */
typedef const char *take_function(cogpu_arguments *arguments, const char *value);

typedef struct option {
    uint32_t id;
    const char *name;
    const char *value; /* what the help calls the value; NULL for an option without one */
    const char *help;
    take_function *take;
} option;

static const char *take_output(cogpu_arguments *arguments, const char *value) {
    arguments->output = value;
    return *value ? NULL : "expected the name of a file";
}

static const char *take_image(cogpu_arguments *arguments, const char *value) {
    return cogpu_parse_wholes(value, &arguments->image, 1) ? NULL
                                                           : "expected a number; 0 is the first";
}

static const char *take_level(cogpu_arguments *arguments, const char *value) {
    arguments->has_level = true;
    return cogpu_parse_wholes(value, &arguments->level, 1)
               ? NULL
               : "expected a number; 0 is full resolution";
}

static const char *take_threads(cogpu_arguments *arguments, const char *value) {
    bool sound = cogpu_parse_wholes(value, &arguments->threads, 1) && arguments->threads <= 1024;
    return sound ? NULL : "expected a number up to 1024; 0 is one for each processor";
}

static const char *take_window(cogpu_arguments *arguments, const char *value) {
    uint32_t numbers[4];
    if (!cogpu_parse_wholes(value, numbers, 4) || numbers[2] == 0 || numbers[3] == 0)
        return "expected x,y,width,height in whole pixels, width and height at least 1";
    arguments->has_window = true;
    arguments->x = numbers[0];
    arguments->y = numbers[1];
    arguments->width = numbers[2];
    arguments->height = numbers[3];
    return NULL;
}

static const char *take_bbox(cogpu_arguments *arguments, const char *value) {
    double *bbox = arguments->bbox;
    arguments->has_bbox = true;
    bool sound = cogpu_parse_numbers(value, bbox, 4) && bbox[0] < bbox[2] && bbox[1] < bbox[3];
    return sound ? NULL : "expected xmin,ymin,xmax,ymax with xmin < xmax and ymin < ymax";
}

static const char *take_band(cogpu_arguments *arguments, const char *value) {
    free(arguments->bands);
    arguments->bands = cogpu_parse_list(value, &arguments->band_count);
    if (!arguments->bands)
        return "expected a band or bands with commas between, as 1 or 3,2,1";
    for (uint32_t i = 0; i < arguments->band_count; i++)
        if (arguments->bands[i] == 0)
            return "bands count from 1";
    return NULL;
}

/* "cuda", or "cuda:1". */
static bool parse_device(const char *value, const char *kind, uint32_t *index) {
    size_t length = strlen(kind);
    return strncmp(value, kind, length) == 0 &&
           (value[length] == 0 ||
            (value[length] == ':' && cogpu_parse_wholes(value + length + 1, index, 1)));
}

static const char *take_device(cogpu_arguments *arguments, const char *value) {
    if (strcmp(value, "cpu") == 0)
        arguments->device = COGPU_CPU;
    else if (parse_device(value, "cuda", &arguments->device_index))
        arguments->device = COGPU_CUDA;
    else if (parse_device(value, "emu", &arguments->device_index))
        arguments->device = COGPU_EMU;
    else
        return "no such device: they are cpu, cuda, cuda:1 and so on, and emu";
    return NULL;
}

static const char *take_mask(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->mask = true;
    return NULL;
}

static const char *take_type(cogpu_arguments *arguments, const char *value) {
    for (int type = COGPU_F16; type <= COGPU_F64; type++)
        if (strcasecmp(value, cogpu_type_name((cogpu_type)type)) == 0)
            arguments->type = (cogpu_type)type;
    return arguments->type ? NULL : "expected float16, float32 or float64";
}

static const char *take_nan(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->nan_where_invalid = true;
    return NULL;
}

static const char *take_unscale(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->unscaled = true;
    return NULL;
}

static const char *take_format(cogpu_arguments *arguments, const char *value) {
    static const char *const names[] = {"npy", "raw", "png"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(value, names[i]) == 0)
            arguments->format = names[i];
    return arguments->format ? NULL : "expected npy, raw or png";
}

static const char *take_no_clobber(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->no_clobber = true;
    return NULL;
}

static const char *take_quiet(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->quiet = true;
    return NULL;
}

static const char *take_verbose(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->verbose = true;
    return NULL;
}

static const char *take_fill(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->fill_bad_blocks = true;
    return NULL;
}

static const char *take_tags(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->tags = true;
    return NULL;
}

static const char *take_wkt(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->wkt = true;
    return NULL;
}

static const char *take_strict(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->strict = true;
    return NULL;
}

static const char *take_fast(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->fast = true;
    return NULL;
}

static const char *take_size(cogpu_arguments *arguments, const char *value) {
    bool sound = cogpu_parse_wholes(value, &arguments->size, 1) && arguments->size >= 1 &&
                 arguments->size <= 8192;
    return sound ? NULL : "expected a number of pixels from 1 to 8192";
}

static const char *take_stretch(cogpu_arguments *arguments, const char *value) {
    double *range = arguments->stretch;
    arguments->has_stretch = true;
    bool sound = cogpu_parse_numbers(value, range, 2) && range[0] < range[1];
    return sound ? NULL
                 : "expected LOW,HIGH with LOW < HIGH: the values that become black and white";
}

static const char *take_percent(cogpu_arguments *arguments, const char *value) {
    double *percent = arguments->percent;
    arguments->has_percent = true;
    bool sound = cogpu_parse_numbers(value, percent, 2) && percent[0] >= 0 &&
                 percent[0] < percent[1] && percent[1] <= 100;
    return sound ? NULL : "expected LOW,HIGH with 0 <= LOW < HIGH <= 100";
}

static const char *take_sidecars(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->sidecars = COGPU_SIDECARS_ALL;
    return NULL;
}

static const char *take_no_sidecars(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->sidecars = COGPU_SIDECARS_NONE;
    return NULL;
}

static const char *take_private_addresses(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->network.private_addresses = 1;
    return NULL;
}

static const char *take_link_local_addresses(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->network.link_local_addresses = 1;
    return NULL;
}

static const char *take_private_hosts(cogpu_arguments *arguments, const char *value) {
    arguments->network.private_hosts = value;
    return NULL;
}

static const char *take_anonymous(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->network.s3_anonymous = 1;
    return NULL;
}

static const char *take_region(cogpu_arguments *arguments, const char *value) {
    arguments->network.s3_region = value;
    return *value ? NULL : "expected the name of a region, as eu-central-1";
}

static const char *take_endpoint(cogpu_arguments *arguments, const char *value) {
    arguments->network.s3_endpoint = value;
    return *value ? NULL : "expected the URL of a store";
}

static const char *take_retries(cogpu_arguments *arguments, const char *value) {
    uint32_t *retries = &arguments->network.retries;
    bool sound = cogpu_parse_wholes(value, retries, 1) && *retries >= 1 && *retries <= 100;
    return sound ? NULL : "expected a number from 1 to 100";
}

static const char *take_timeout(cogpu_arguments *arguments, const char *value) {
    double *seconds = &arguments->network.total_seconds;
    bool sound = cogpu_parse_numbers(value, seconds, 1) && *seconds > 0 && *seconds <= 86400;
    return sound ? NULL : "expected seconds, more than 0 and up to 86400";
}

static const char *take_json(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->json = true;
    return NULL;
}

static const char *take_help(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->help = true;
    return NULL;
}

static const option options[] = {
    {OPTION_OUTPUT, "--output", "OUT", "file to write, - for stdout; short: -o OUT", take_output},
    {OPTION_FORMAT, "--format", "NAME", "npy, raw or png (default: by the ending of OUT)",
     take_format},
    {OPTION_IMAGE, "--image", "N", "image of the file (default: 0, the first)", take_image},
    {OPTION_LEVEL, "--level", "N", "overview level (default: 0, full resolution)", take_level},
    {OPTION_WINDOW, "--window", "X,Y,W,H", "part of the image, in pixels of the level",
     take_window},
    {OPTION_BBOX, "--bbox", "XMIN,YMIN,XMAX,YMAX",
     "pixels that a box touches, in coordinates of the image", take_bbox},
    {OPTION_BAND, "--band", "N[,N...]", "bands, from 1, in this order (default: all)", take_band},
    {OPTION_MASK, "--mask", NULL, "the mask instead: 255 where a pixel is valid, else 0",
     take_mask},
    {OPTION_TYPE, "--type", "NAME", "samples as float16, float32 or float64", take_type},
    {OPTION_NAN, "--nan", NULL, "NaN where the mask says that a sample is not valid", take_nan},
    {OPTION_UNSCALE, "--unscale", NULL, "apply the scale and offset of each band", take_unscale},
    {OPTION_FILL, "--fill-bad-blocks", NULL,
     "fill blocks that cannot be read with nodata (or 0) and go on", take_fill},
    {OPTION_TAGS, "--tags", NULL, "every tag of every directory too, and the GeoKeys", take_tags},
    {OPTION_WKT, "--wkt", NULL, "the coordinate system as WKT, and nothing else", take_wkt},
    {OPTION_STRICT, "--strict", NULL, "the rules of the standard are faults too", take_strict},
    {OPTION_FAST, "--fast", NULL, "do not look at each block", take_fast},
    {OPTION_THREADS, "--threads", "N", "number of threads (default: one per CPU core)",
     take_threads},
    {OPTION_DEVICE, "--device", "NAME",
     "device that decodes and encodes: cpu, cuda, cuda:N, emu (default: cpu)", take_device},
    {OPTION_PICTURE, "--size", "N", "length of the longest side in pixels (default: 1024)",
     take_size},
    {OPTION_PICTURE, "--percent", "LOW,HIGH",
     "stretch between these percentiles of each band (default: 2,98)", take_percent},
    {OPTION_PICTURE, "--stretch", "LOW,HIGH", "stretch between these values, in stored units",
     take_stretch},
    {OPTION_MANY, "--to", "DIR", "convert each IN to a file of the same name in this folder",
     cogpu_take_folder},
    {OPTION_MANY, "--jobs", "N", "files that --to converts at once (default: 1)", cogpu_take_jobs},
    {OPTION_MANY, "--resume", NULL, "skip files that an earlier run with --to has finished",
     cogpu_take_resume},
    {OPTION_PROFILE, "--cog", NULL, "a Cloud Optimized GeoTIFF, with overviews", cogpu_take_cog},
    {OPTION_PROFILE, "--codec", "NAME",
     "none, packbits, lzw, deflate, zstd, lzma, jpeg, webp, lerc, lerc_deflate or lerc_zstd "
     "(default: deflate)",
     cogpu_take_codec},
    {OPTION_PROFILE, "--level", "N",
     "effort: deflate 1 to 12 (default: 6), zstd 1 to 22 (9), lzma 1 to 9 (6)",
     cogpu_take_codec_level},
    {OPTION_PROFILE, "--quality", "N", "JPEG and WebP, 1 to 100 (default: 75)", cogpu_take_quality},
    {OPTION_PROFILE, "--lossless", NULL, "lossless WebP", cogpu_take_lossless},
    {OPTION_PROFILE, "--max-error", "X", "maximum error of LERC (default: 0, lossless)",
     cogpu_take_max_error},
    {OPTION_PROFILE, "--predictor", "P",
     "auto, 1 (none), 2 (horizontal) or 3 (floating point) (default: auto)", cogpu_take_predictor},
    {OPTION_PROFILE, "--block", "N or WxH", "tile size, multiples of 16 (default: 512)",
     cogpu_take_block},
    {OPTION_PROFILE, "--strips", "ROWS", "strips of so many rows, not tiles; 0: as fits",
     cogpu_take_strips},
    {OPTION_PROFILE, "--bits", "N", "bits of a sample: 1 to 8, or 9 to 16 (default: as in IN)",
     cogpu_take_bits},
    {OPTION_PROFILE, "--planar", NULL, "each band has blocks of its own", cogpu_take_planar},
    {OPTION_PROFILE, "--overviews", "LIST", "auto, none, or factors as 2,4,8",
     cogpu_take_overviews},
    {OPTION_PROFILE, "--resampling", "NAME",
     "for overviews and --size: nearest, average, rms, bilinear, cubic, mode, min, max or median",
     cogpu_take_resampling},
    {OPTION_PROFILE, "--nodata", "V", "nodata value of OUT, or none (default: that of IN)",
     cogpu_take_nodata},
    {OPTION_PROFILE, "--crs", "TEXT", "coordinate system: EPSG:N, WKT, a PROJ string, or none",
     cogpu_take_crs},
    {OPTION_PROFILE, "--transform", "X0,DX,RX,Y0,RY,DY",
     "geotransform, in GDAL's order, as info --json shows it", cogpu_take_transform},
    {OPTION_PROFILE, "--bounds", "XMIN,YMIN,XMAX,YMAX",
     "geotransform from the outer edges of OUT, north up", cogpu_take_bounds},
    {OPTION_PROFILE, "--metadata", "[BAND:][DOMAIN:]KEY=VALUE",
     "set a metadata item; KEY= removes it; may be repeated", cogpu_take_metadata},
    {OPTION_PROFILE, "--dtype", "NAME",
     "sample type, uint8 to float64: values are rounded and clamped", cogpu_take_dtype},
    {OPTION_PROFILE, "--scale", "[SMIN,SMAX[,DMIN,DMAX]]",
     "map SMIN..SMAX (default: each band's range) to DMIN..DMAX (default: 0,255.999)",
     cogpu_take_scale},
    {OPTION_PROFILE, "--size", "W,H",
     "resample to W x H pixels from the best overview; 0: keep the proportions",
     cogpu_take_out_size},
    {OPTION_PROFILE, "--bigtiff", "WHEN", "auto, yes or no (default: auto)", cogpu_take_bigtiff},
    {OPTION_PROFILE, "--sparse", NULL, "leave out blocks that hold nothing but nodata, or 0",
     cogpu_take_sparse},
    {OPTION_PROFILE, "--from-level", "N", "overview level of IN (default: 0, full resolution)",
     take_level},
    {OPTION_NO_CLOBBER, "--no-clobber", NULL, "fail where OUT exists", take_no_clobber},
    {OPTION_NETWORK, "--no-sidecars", NULL,
     "ignore files beside the input: .ovr, .msk, .aux.xml, world files, RPC files",
     take_no_sidecars},
    {OPTION_NETWORK, "--sidecars", NULL, "read them beside a URL, too: one request for each name",
     take_sidecars},
    {OPTION_NETWORK, "--private-addresses", NULL,
     "URLs may lead to this machine and to local networks", take_private_addresses},
    {OPTION_NETWORK, "--link-local-addresses", NULL,
     "URLs may lead to link-local addresses, where clouds serve metadata and credentials",
     take_link_local_addresses},
    {OPTION_NETWORK, "--private-hosts", "HOSTS",
     "host1,host2 that may have private addresses, also when a public server redirects there",
     take_private_hosts},
    {OPTION_NETWORK, "--anonymous", NULL, "s3:// without credentials", take_anonymous},
    {OPTION_NETWORK, "--region", "NAME", "region of s3:// (default: AWS_REGION)", take_region},
    {OPTION_NETWORK, "--endpoint", "URL", "endpoint of s3://, for stores other than Amazon's",
     take_endpoint},
    {OPTION_NETWORK, "--retries", "N", "retries per request (default: 4)", take_retries},
    {OPTION_NETWORK, "--timeout", "SECONDS", "time per request with its retries (default: 300)",
     take_timeout},
    {OPTION_JSON, "--json", NULL, "print JSON, for errors too", take_json},
    {OPTION_COMMON, "--quiet", NULL, "print errors and results only", take_quiet},
    {OPTION_COMMON, "--verbose", NULL, "print details on stderr", take_verbose},
    {OPTION_COMMON, "--help", NULL, "this text; short: -h", take_help},
};

enum { OPTION_COUNT = sizeof options / sizeof options[0] };

/* Long names of the table, and their short forms. */
static const char *full_name(const char *word) {
    if (strcmp(word, "-o") == 0)
        return "--output";
    if (strcmp(word, "-h") == 0)
        return "--help";
    return word;
}

static const option *find_option(uint32_t allowed, const char *word, size_t length) {
    for (int i = 0; i < OPTION_COUNT; i++) {
        bool same = strlen(options[i].name) == length && !memcmp(options[i].name, word, length);
        if (same && (options[i].id & allowed))
            return &options[i];
    }
    return NULL;
}

static void refuse_unknown(const cogpu_command *command, const char *word, size_t length) {
    const char *names[OPTION_COUNT];
    int count = 0;
    for (int i = 0; i < OPTION_COUNT; i++)
        if (options[i].id & (command->options | OPTION_COMMON))
            names[count++] = options[i].name;
    char name[64]; /* without its value, which may be a secret */
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    const char *nearest = cogpu_nearest_name(name, names, count);
    if (nearest)
        cogpu_report_usage("%s has no option %s; did you mean %s?", command->name, name, nearest);
    else
        cogpu_report_usage("%s has no option %s; cogpu %s --help lists what it has", command->name,
                           name, command->name);
}

/* FNV-1a, with the closing NUL. */
static void add_to_hash(uint64_t *hash, const char *text) {
    for (const char *at = text;; at++) {
        *hash = (*hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
        if (!*at)
            return;
    }
}

/* The value of an option that may go without one is told from a file's name by its characters. */
static bool is_number_list(const char *word) {
    return word[strspn(word, "0123456789+-.,eE")] == '\0' && strpbrk(word, "0123456789");
}

/* Takes the option at words[*index] and moves *index past its value. */
static bool parse_option(const cogpu_command *command, int count, char **words, int *index,
                         cogpu_arguments *arguments) {
    const char *word = full_name(words[*index]);
    size_t length = strcspn(word, "=");
    const char *value = word[length] == '=' ? word + length + 1 : NULL;
    const option *found = find_option(command->options | OPTION_COMMON, word, length);
    if (!found) {
        refuse_unknown(command, word, length);
        return false;
    }
    if (value && !found->value) {
        cogpu_report_usage("%s takes no value", found->name);
        return false;
    }
    bool is_optional = found->value && found->value[0] == '[' && strchr(found->value, '=') == NULL;
    if (!value && is_optional && *index + 1 < count && is_number_list(words[*index + 1])) {
        value = words[++*index];
    } else if (!value && found->value && !is_optional) {
        if (*index + 1 == count) {
            cogpu_report_usage("%s wants a value: %s %s", found->name, found->name, found->value);
            return false;
        }
        value = words[++*index];
    }
    if (found->id & OPTIONS_OF_OUTPUT) {
        add_to_hash(&arguments->output_options, found->name);
        add_to_hash(&arguments->output_options, value ? value : "");
    }
    const char *wrong = found->take(arguments, value);
    if (wrong)
        cogpu_report_usage("%s %s: %s", found->name, value ? value : "", wrong);
    return wrong == NULL;
}

static bool check_files(const cogpu_command *command, int given) {
    if (given >= command->files && (given <= command->files || command->has_more_files))
        return true;
    if (given < command->files)
        cogpu_report_usage("%s wants %s; see cogpu %s --help", command->name, command->operands,
                           command->name);
    else
        cogpu_report_usage("%s takes %s%s and nothing more; see cogpu %s --help", command->name,
                           command->files ? "" : "no file", command->operands, command->name);
    return false;
}

static bool make_names(cogpu_arguments *arguments) {
    for (int i = 0; i < arguments->file_count; i++) {
        arguments->names[i] = cogpu_name_shown(arguments->files[i]);
        if (!arguments->names[i]) {
            cogpu_report_usage("no memory for the names of files");
            return false;
        }
    }
    return true;
}

static bool parse_words(const cogpu_command *command, int count, char **words,
                        cogpu_arguments *arguments) {
    bool only_files = false; /* after "--" */
    for (int i = 0; i < count; i++) {
        if (!only_files && strcmp(words[i], "--") == 0) {
            only_files = true;
        } else if (!only_files && words[i][0] == '-' && words[i][1] != '\0') {
            if (!parse_option(command, count, words, &i, arguments))
                return false;
        } else {
            arguments->files[arguments->file_count++] = words[i];
        }
    }
    return true;
}

bool cogpu_arguments_parse(const cogpu_command *command, int count, char **words,
                           cogpu_arguments *arguments) {
    arguments->output_options = UINT64_C(0xcbf29ce484222325);
    add_to_hash(&arguments->output_options, cogpu_version());
    arguments->files = calloc((size_t)count + 1, sizeof *arguments->files);
    arguments->names = calloc((size_t)count + 1, sizeof *arguments->names);
    if (!arguments->files || !arguments->names) {
        cogpu_report_usage("no memory for the names of files");
        return false;
    }
    if (!parse_words(command, count, words, arguments))
        return false;
    return arguments->help ||
           (check_files(command, arguments->file_count) && make_names(arguments));
}

void cogpu_arguments_free(cogpu_arguments *arguments) {
    for (int i = 0; i < arguments->file_count; i++)
        free(arguments->names[i]);
    for (uint32_t i = 0; i < arguments->metadata_count; i++)
        free(arguments->metadata[i].memory);
    free(arguments->files);
    free(arguments->names);
    free(arguments->metadata);
    free(arguments->bands);
    free(arguments->factors);
}

void cogpu_arguments_help(uint32_t allowed) {
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (!(options[i].id & (allowed | OPTION_COMMON)))
            continue;
        char left[48];
        snprintf(left, sizeof left, "%s %s", options[i].name,
                 options[i].value ? options[i].value : "");
        printf("  %-28s %s\n", left, options[i].help);
    }
}

/* Levenshtein's distance; words that are too long to be a slip count as far. */
static int distance(const char *a, const char *b) {
    enum { LONGEST = 32 };
    size_t b_length = strlen(b);
    if (strlen(a) > LONGEST || b_length > LONGEST)
        return LONGEST;
    int row[LONGEST + 1];
    for (size_t j = 0; j <= b_length; j++)
        row[j] = (int)j;
    for (size_t i = 0; a[i]; i++) {
        int corner = row[0];
        row[0] = (int)i + 1;
        for (size_t j = 0; j < b_length; j++) {
            int change = corner + (a[i] != b[j]);
            int skip = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            corner = row[j + 1];
            row[j + 1] = change < skip ? change : skip;
        }
    }
    return row[b_length];
}

const char *cogpu_nearest_name(const char *word, const char *const *names, int count) {
    int best = 3; /* two slips at most */
    const char *nearest = NULL;
    for (int i = 0; i < count; i++) {
        int far = distance(word, names[i]);
        if (far < best) {
            best = far;
            nearest = names[i];
        }
    }
    return nearest;
}
