/*
 * `cogpu warp`: files of any CRS and resolution as one GeoTIFF or COG. The inputs are opened as a
 * mosaic, which is copied as `cogpu convert` copies a file (convert.c).
 */
#include "command.h"
#include "convert.h"
#include "mosaic_input.h"
#include "mosaic_options.h"
#include "profile_options.h"
#include "report.h"
#include "target.h"

static int copy_mosaic(const cogpu_arguments *arguments, const cogpu_mosaic_input *mosaic) {
    int out = arguments->file_count - 1;
    cogpu_convert_job job = {.arguments = arguments,
                             .inputs = arguments->files,
                             .input_count = (uint32_t)out,
                             .in_name = mosaic->input.name,
                             .out_path = arguments->files[out],
                             .out_name = arguments->names[out]};
    return cogpu_convert_alone(&job, &mosaic->input);
}

static int run_warp(const cogpu_arguments *arguments) {
    const char *wrong = cogpu_mosaic_find_conflict(arguments), *culprit;
    const char *out = arguments->files[arguments->file_count - 1];
    cogpu_mosaic_input mosaic;
    cogpu_error error;
    if (!wrong)
        wrong = cogpu_profile_find_conflict(arguments);
    if (wrong)
        return cogpu_report_usage("%s", wrong);
    if (!cogpu_mosaic_check_output(arguments))
        return EXIT_USAGE;
    if (cogpu_target_is_stdout(out))
        cogpu_target_use_stdout();
    int code = cogpu_mosaic_input_open(arguments, &mosaic, &culprit, &error) == COGPU_OK
                   ? copy_mosaic(arguments, &mosaic)
                   : cogpu_report_error(culprit, &error);
    cogpu_mosaic_input_close(&mosaic);
    return code;
}

const cogpu_command cogpu_cmd_warp = {
    .name = "warp",
    .operands = "IN... OUT",
    .files = 2,
    .has_more_files = true,
    .options = OPTION_GRID | OPTION_WARP | OPTION_PROFILE | OPTION_NO_CLOBBER | OPTION_BAND |
               OPTION_THREADS | OPTION_DEVICE | OPTION_NETWORK | OPTION_JSON,
    .summary = "reproject and mosaic files into one",
    .details =
        "Writes all inputs on one grid, as a GeoTIFF or, with --cog, as a COG. Inputs may have\n"
        "different CRSs, resolutions and sample types. CRS, size and edges of the grid that the\n"
        "options leave open are computed from the inputs, as gdalwarp does.\n"
        "Pixels are streamed: memory grows with the width of OUT, not with its height, and not\n"
        "with the number of inputs that overlap a row. With --device cuda pixels are warped and\n"
        "encoded on the GPU.\n"
        "\n"
        "Where inputs overlap, the first one with a valid pixel is on top, unless --composite\n"
        "says otherwise (gdalwarp: the last). Reprojection needs PROJ.\n"
        "\n"
        "OUT appears when it is complete, and must not be an input. OUT may be - for stdout, or\n"
        "s3://BUCKET/KEY.",
    .run = run_warp,
};
