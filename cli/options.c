/*
 * The option table with its help texts, and the functions that store values. profile_options.c has
 * those of the file to be written, mosaic_options.c those of a mosaic.
 */
#include "options.h"

#include "mosaic_options.h"
#include "numbers.h"
#include "profile_options.h"
#include "sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *set_output(cogpu_arguments *arguments, const char *value) {
    arguments->output = value;
    return *value ? NULL : "expected a file name";
}

static const char *set_image(cogpu_arguments *arguments, const char *value) {
    return cogpu_parse_wholes(value, &arguments->image, 1) ? NULL
                                                           : "expected a number; 0 is the first";
}

static const char *set_level(cogpu_arguments *arguments, const char *value) {
    arguments->has_level = true;
    return cogpu_parse_wholes(value, &arguments->level, 1)
               ? NULL
               : "expected a number; 0 is full resolution";
}

static const char *set_threads(cogpu_arguments *arguments, const char *value) {
    bool is_valid = cogpu_parse_wholes(value, &arguments->threads, 1) && arguments->threads <= 1024;
    return is_valid ? NULL : "expected a number from 0 to 1024; 0 is one thread per CPU core";
}

static const char *set_window(cogpu_arguments *arguments, const char *value) {
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

static const char *set_bbox(cogpu_arguments *arguments, const char *value) {
    double *bbox = arguments->bbox;
    arguments->has_bbox = true;
    bool is_valid = cogpu_parse_numbers(value, bbox, 4) && bbox[0] < bbox[2] && bbox[1] < bbox[3];
    return is_valid ? NULL : "expected xmin,ymin,xmax,ymax with xmin < xmax and ymin < ymax";
}

static const char *set_band(cogpu_arguments *arguments, const char *value) {
    free(arguments->bands);
    arguments->bands = cogpu_parse_list(value, &arguments->band_count);
    if (!arguments->bands)
        return "expected a band or a list of bands, such as 1 or 3,2,1";
    for (uint32_t i = 0; i < arguments->band_count; i++)
        if (arguments->bands[i] == 0)
            return "the first band is 1";
    return NULL;
}

/* "cpu", "cuda", or "cuda:1". */
static const char *parse_device(const char *value, cogpu_device_kind *device, uint32_t *index) {
    char kind[16] = "";
    size_t length = strcspn(value, ":");
    bool has_index = value[length] == ':';
    snprintf(kind, sizeof kind, "%.*s", (int)length, value);
    bool is_kind = length < sizeof kind && cogpu_device_kind_parse(kind, device, NULL) == COGPU_OK;
    bool has_wrong_index = has_index && (*device == COGPU_DEVICE_CPU ||
                                         !cogpu_parse_wholes(value + length + 1, index, 1));
    return is_kind && !has_wrong_index ? NULL : "no such device; expected cpu, cuda, cuda:N or emu";
}

static const char *set_device(cogpu_arguments *arguments, const char *value) {
    return parse_device(value, &arguments->device, &arguments->device_index);
}

static const char *set_decode(cogpu_arguments *arguments, const char *value) {
    return parse_device(value, &arguments->decode, &arguments->decode_index);
}

static const char *set_type(cogpu_arguments *arguments, const char *value) {
    bool is_type = cogpu_type_parse(value, &arguments->type, NULL) == COGPU_OK;
    return is_type && cogpu_sample_is_float(arguments->type)
               ? NULL
               : "expected float16, float32 or float64";
}

static const char *set_format(cogpu_arguments *arguments, const char *value) {
    static const char *const names[] = {"npy", "raw", "png"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(value, names[i]) == 0)
            arguments->format = names[i];
    return arguments->format ? NULL : "expected npy, raw or png";
}

static const char *set_size(cogpu_arguments *arguments, const char *value) {
    bool is_valid = cogpu_parse_wholes(value, &arguments->size, 1) && arguments->size >= 1 &&
                    arguments->size <= 8192;
    return is_valid ? NULL : "expected a number of pixels from 1 to 8192";
}

static const char *set_stretch(cogpu_arguments *arguments, const char *value) {
    double *range = arguments->stretch;
    arguments->has_stretch = true;
    bool is_valid = cogpu_parse_numbers(value, range, 2) && range[0] < range[1];
    return is_valid ? NULL
                    : "expected LOW,HIGH with LOW < HIGH: the values that become black and white";
}

static const char *set_percent(cogpu_arguments *arguments, const char *value) {
    double *percent = arguments->percent;
    arguments->has_percent = true;
    bool is_valid = cogpu_parse_numbers(value, percent, 2) && percent[0] >= 0 &&
                    percent[0] < percent[1] && percent[1] <= 100;
    return is_valid ? NULL : "expected LOW,HIGH with 0 <= LOW < HIGH <= 100";
}

static const char *set_sidecars(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->sidecars = COGPU_SIDECARS_ALL;
    return NULL;
}

static const char *set_no_sidecars(cogpu_arguments *arguments, const char *value) {
    (void)value;
    arguments->sidecars = COGPU_SIDECARS_NONE;
    return NULL;
}

static const char *set_private_hosts(cogpu_arguments *arguments, const char *value) {
    arguments->network.private_hosts = value;
    return NULL;
}

static const char *set_region(cogpu_arguments *arguments, const char *value) {
    arguments->network.s3_region = value;
    return *value ? NULL : "expected the name of a region, such as eu-central-1";
}

static const char *set_endpoint(cogpu_arguments *arguments, const char *value) {
    arguments->network.s3_endpoint = value;
    return *value ? NULL : "expected the URL of an S3 endpoint";
}

static const char *set_interleave(cogpu_arguments *arguments, const char *value) {
    bool is_known = cogpu_interleave_parse(value, &arguments->profile.interleave, NULL) == COGPU_OK;
    return is_known ? NULL : "expected pixel or band";
}

static const char *set_retries(cogpu_arguments *arguments, const char *value) {
    uint32_t retries;
    if (!cogpu_parse_wholes(value, &retries, 1) || retries > 100)
        return "expected a number from 0 to 100";
    arguments->network.max_retries = (int32_t)retries;
    return NULL;
}

static const char *set_timeout(cogpu_arguments *arguments, const char *value) {
    double *seconds = &arguments->network.timeout_seconds;
    bool is_valid = cogpu_parse_numbers(value, seconds, 1) && *seconds > 0 && *seconds <= 86400;
    return is_valid ? NULL : "expected seconds, more than 0 and up to 86400";
}

#define FLAG(id, name, help, member)                                                               \
    {                                                                                              \
        id, name, NULL, help, NULL, offsetof(cogpu_arguments, member),                             \
            sizeof(((cogpu_arguments *)NULL)->member)                                              \
    }

const cogpu_option cogpu_options[] = {
    {OPTION_OUTPUT, "--output", "OUT", "output file, - for stdout; short: -o OUT", set_output, 0,
     0},
    {OPTION_FORMAT, "--format", "NAME", "npy, raw or png (default: by the file extension of OUT)",
     set_format, 0, 0},
    {OPTION_IMAGE, "--image", "N", "image in the file (default: 0, the first)", set_image, 0, 0},
    {OPTION_LEVEL, "--level", "N", "overview level (default: 0, full resolution)", set_level, 0, 0},
    {OPTION_WINDOW, "--window", "X,Y,W,H", "part of the image, in pixels of the overview level",
     set_window, 0, 0},
    {OPTION_BBOX, "--bbox", "XMIN,YMIN,XMAX,YMAX",
     "pixels that this box touches, in CRS coordinates", set_bbox, 0, 0},
    {OPTION_BAND, "--band", "N[,N...]", "bands, from 1, in this order (default: all)", set_band, 0,
     0},
    FLAG(OPTION_MASK, "--mask", "read the mask instead: 255 where a pixel is valid, else 0", mask),
    {OPTION_TYPE, "--type", "NAME", "convert samples to float16, float32 or float64", set_type, 0,
     0},
    FLAG(OPTION_NAN, "--masked", "replace invalid samples by NaN", masked),
    FLAG(OPTION_UNSCALE, "--unscale", "apply the scale and offset of each band", unscaled),
    FLAG(OPTION_FILL, "--fill-bad-blocks", "fill unreadable blocks with nodata (or 0) and continue",
         fill_bad_blocks),
    FLAG(OPTION_TAGS, "--tags", "print all tags of all directories, and the GeoKeys", tags),
    FLAG(OPTION_WKT, "--wkt", "print only the CRS, as WKT", wkt),
    FLAG(OPTION_STRICT, "--strict", "report violations of OGC 21-026 as errors, not as notes",
         strict),
    FLAG(OPTION_FAST, "--skip-blocks", "do not verify leaders, trailers and order of the blocks",
         fast),
    {OPTION_THREADS, "--threads", "N", "number of threads (default: one per CPU core)", set_threads,
     0, 0},
    {OPTION_DEVICE, "--device", "NAME",
     "device that decodes and encodes: cpu, cuda, cuda:N, emu (default: cpu)", set_device, 0, 0},
    {OPTION_DEVICE, "--decode", "NAME",
     "device that decodes into host memory (default: that of --device)", set_decode, 0, 0},
    {OPTION_PICTURE, "--size", "N", "length of the longest side in pixels (default: 1024)",
     set_size, 0, 0},
    {OPTION_PICTURE, "--percentiles", "LOW,HIGH",
     "stretch between these percentiles of each band (default: 2,98)", set_percent, 0, 0},
    {OPTION_PICTURE, "--stretch", "LOW,HIGH", "stretch between these values, in stored units",
     set_stretch, 0, 0},
    {OPTION_MANY, "--to", "DIR", "convert each IN to a file of the same name in this directory",
     cogpu_set_folder, 0, 0},
    {OPTION_MANY, "--jobs", "N", "number of files that --to converts in parallel (default: 1)",
     cogpu_set_jobs, 0, 0},
    FLAG(OPTION_MANY, "--resume", "skip files that an earlier run with --to has converted", resume),
    FLAG(OPTION_PROFILE, "--cog", "write a Cloud Optimized GeoTIFF, with overviews", profile.cog),
    {OPTION_PROFILE, "--codec", "NAME", "compression: @codecs (default: deflate)", cogpu_set_codec,
     0, 0},
    {OPTION_PROFILE, "--compression-level", "N",
     "compression level (default in parentheses): @levels", cogpu_set_codec_level, 0, 0},
    {OPTION_PROFILE, "--quality", "N", "quality of @quality_codecs, 1 to 100 (default: 75)",
     cogpu_set_quality, 0, 0},
    FLAG(OPTION_PROFILE, "--lossless", "use lossless WebP", profile.lossless),
    {OPTION_PROFILE, "--max-z-error", "X", "maximum error of LERC (default: 0, lossless)",
     cogpu_set_max_error, 0, 0},
    {OPTION_PROFILE, "--predictor", "P",
     "auto, 1 (none), 2 (horizontal) or 3 (floating point) (default: auto)", cogpu_set_predictor, 0,
     0},
    {OPTION_PROFILE, "--block", "N or WxH", "tile size, multiples of 16 (default: 512)",
     cogpu_set_block, 0, 0},
    {OPTION_PROFILE, "--strips", "ROWS",
     "write strips of this many rows instead of tiles; 0: choose automatically", cogpu_set_strips,
     0, 0},
    {OPTION_PROFILE, "--bits", "N", "bits per sample, 1 to 16 (default: as in IN)", cogpu_set_bits,
     0, 0},
    {OPTION_PROFILE, "--interleave", "NAME", "pixel or band (default: pixel)", set_interleave, 0,
     0},
    {OPTION_PROFILE, "--overviews", "LIST",
     "auto, none, or factors such as 2,4,8 (default: auto with --cog, else none)",
     cogpu_set_overviews, 0, 0},
    {OPTION_PROFILE, "--metadata", "[BAND:][DOMAIN:]KEY=VALUE",
     "set a metadata item; KEY= removes it; may be repeated", cogpu_set_metadata, 0, 0},
    {OPTION_RESHAPE, "--resampling", "NAME", "resampling of overviews and --size: @resamplings",
     cogpu_set_resampling, 0, 0},
    {OPTION_RESHAPE, "--nodata", "V", "nodata value of OUT, or none (default: as in IN)",
     cogpu_set_nodata, 0, 0},
    {OPTION_RESHAPE, "--crs", "TEXT",
     "CRS: EPSG:N, WKT, a PROJ string, or none (default: as in IN)", cogpu_set_crs, 0, 0},
    {OPTION_RESHAPE, "--transform", "X0,DX,RX,Y0,RY,DY",
     "geotransform in GDAL's order, as in info --json", cogpu_set_transform, 0, 0},
    {OPTION_RESHAPE, "--bounds", "XMIN,YMIN,XMAX,YMAX",
     "georeference OUT, north up, by its outer edges", cogpu_set_bounds, 0, 0},
    {OPTION_RESHAPE, "--dtype", "NAME",
     "sample type, uint8 to float64; values are rounded and clamped", cogpu_set_dtype, 0, 0},
    {OPTION_RESHAPE, "--scale", "[SMIN,SMAX[,DMIN,DMAX]]",
     "rescale SMIN..SMAX (default: the range of each band) to DMIN..DMAX (default: 0,255.999)",
     cogpu_set_scale, 0, 0},
    {OPTION_RESHAPE, "--size", "W,H",
     "resample to W x H pixels, from the best overview; 0: keep the aspect ratio",
     cogpu_set_out_size, 0, 0},
    {OPTION_GRID, "--input-list", "FILE", "more inputs, one per line of this file, - for stdin",
     cogpu_set_input_list, 0, 0},
    {OPTION_WARP, "--crs", "TEXT",
     "CRS of OUT: EPSG:N, WKT or a PROJ string (default: that of the first IN)", cogpu_set_grid_crs,
     0, 0},
    {OPTION_GRID, "--res", "R or X,Y",
     "pixel size in units of the CRS (default: like that of IN, as gdalwarp computes it)",
     cogpu_set_grid_resolution, 0, 0},
    {OPTION_GRID, "--bounds", "XMIN,YMIN,XMAX,YMAX", "outer edges of OUT (default: all of IN...)",
     cogpu_set_grid_bounds, 0, 0},
    {OPTION_WARP, "--bounds-crs", "TEXT", "CRS of --bounds (default: that of OUT)",
     cogpu_set_grid_bounds_crs, 0, 0},
    {OPTION_GRID, "--size", "W,H", "size of OUT in pixels; 0 for one of them: square pixels",
     cogpu_set_grid_size, 0, 0},
    {OPTION_GRID, "--transform", "X0,DX,RX,Y0,RY,DY",
     "geotransform of OUT in GDAL's order; needs --size", cogpu_set_grid_transform, 0, 0},
    FLAG(OPTION_GRID, "--align", "move the edges of OUT to multiples of --res", grid.align),
    {OPTION_GRID, "--like", "FILE", "use CRS, transform and size of this file", cogpu_set_like, 0,
     0},
    {OPTION_GRID, "--resampling", "NAME", "@warp_resamplings (default: nearest)",
     cogpu_set_warp_resampling, 0, 0},
    {OPTION_GRID, "--composite", "NAME",
     "which pixel is used where inputs overlap: @composites (default: first)", cogpu_set_composite,
     0, 0},
    {OPTION_GRID, "--src-nodata", "V", "nodata value of all inputs, or none (default: as in each)",
     cogpu_set_source_nodata, 0, 0},
    {OPTION_GRID, "--nodata", "V",
     "nodata value of OUT, or none (default: the first that an input has)", cogpu_set_grid_nodata,
     0, 0},
    {OPTION_WARP, "--dtype", "NAME",
     "sample type, uint8 to float64 (default: one that holds those of all inputs)",
     cogpu_set_mosaic_type, 0, 0},
    {OPTION_WARP, "--error", "PIXELS",
     "largest error of interpolated positions, in pixels of IN; 0: exact (default: 0.125)",
     cogpu_set_position_error, 0, 0},
    FLAG(OPTION_WARP, "--full-resolution", "do not use the overviews of inputs",
         mosaic.full_resolution),
    FLAG(OPTION_GRID, "--skip-bad-sources", "leave out inputs that cannot be opened or read",
         mosaic.skip_bad_sources),
    {OPTION_WARP, "--rpc-height", "H",
     "height above the ellipsoid of inputs with RPCs, in meters (default: 0)", cogpu_set_rpc_height,
     0, 0},
    {OPTION_WARP, "--rpc-dem", "FILE", "elevation model that replaces --rpc-height",
     cogpu_set_rpc_dem, 0, 0},
    {OPTION_WARP, "--overview-resampling", "NAME", "resampling of overviews: @resamplings",
     cogpu_set_resampling, 0, 0},
    {OPTION_PROFILE, "--bigtiff", "WHEN", "auto, yes or no (default: auto)", cogpu_set_bigtiff, 0,
     0},
    FLAG(OPTION_PROFILE, "--sparse", "do not store blocks that contain only nodata (or 0)",
         profile.sparse),
    FLAG(OPTION_NO_CLOBBER, "--no-clobber", "fail if OUT exists", no_clobber),
    {OPTION_NETWORK, "--no-sidecars", NULL,
     "ignore sidecar files: .ovr, .msk, .aux.xml, world files, RPC files", set_no_sidecars, 0, 0},
    {OPTION_NETWORK, "--sidecars", NULL,
     "look for sidecar files of URLs too, with one request per name", set_sidecars, 0, 0},
    {OPTION_NETWORK, "--vrt-sources", "WHICH",
     "files that a VRT may name: below (its folder) or any (URLs too) (default: local files)",
     cogpu_set_vrt_sources, 0, 0},
    FLAG(OPTION_NETWORK, "--private-addresses", "allow URLs on this machine and on local networks",
         network.allow_private_addresses),
    FLAG(OPTION_NETWORK, "--link-local-addresses",
         "allow URLs with link-local addresses, where clouds serve metadata and credentials",
         network.allow_link_local_addresses),
    {OPTION_NETWORK, "--private-hosts", "HOSTS",
     "HOST1,HOST2: hosts that may have private addresses, even after a redirect", set_private_hosts,
     0, 0},
    FLAG(OPTION_NETWORK, "--anonymous", "access s3:// without credentials", network.s3_anonymous),
    {OPTION_NETWORK, "--region", "NAME", "S3 region (default: AWS_REGION)", set_region, 0, 0},
    {OPTION_NETWORK, "--endpoint", "URL", "S3 endpoint of a store other than Amazon's",
     set_endpoint, 0, 0},
    {OPTION_NETWORK, "--max-retries", "N", "retries per request (default: 4)", set_retries, 0, 0},
    {OPTION_NETWORK, "--timeout", "SECONDS",
     "time limit per request, including retries (default: 300)", set_timeout, 0, 0},
    FLAG(OPTION_JSON, "--json", "print JSON, errors included", json),
    FLAG(OPTION_COMMON, "--quiet", "print errors and results only", quiet),
    FLAG(OPTION_COMMON, "--verbose", "print details to stderr", verbose),
    FLAG(OPTION_COMMON, "--help", "print this help; short: -h", help),
};

const int cogpu_option_count = sizeof cogpu_options / sizeof *cogpu_options;

const cogpu_option_alias cogpu_option_aliases[] = {
    {"-o", "--output"},
    {"-h", "--help"},
    {"--compress", "--codec"},
    {"--blocksize", "--block"},
    {"--overview-level", "--level"},
    {"--nbits", "--bits"},
    {"--overview-resampling", "--resampling"},
    {"--retries", "--max-retries"},
    {"--t-srs", "--crs"},
    {"--tr", "--res"},
    {"--te", "--bounds"},
    {"--te-srs", "--bounds-crs"},
    {"--ts", "--size"},
    {"--tap", "--align"},
    {"--srcnodata", "--src-nodata"},
    {"--dstnodata", "--nodata"},
    {"-r", "--resampling"},
    {NULL, NULL},
};
