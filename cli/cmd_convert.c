/*
 * cogpu convert: a file as another GeoTIFF or as a COG, or many files (convert_many.c). Here the
 * command line is checked as a whole.
 */
#include "command.h"
#include "convert.h"
#include "convert_many.h"
#include "name.h"
#include "profile_options.h"
#include "report.h"
#include "target.h"

#include <string.h>

/* What is wrong with the options together, or NULL. */
static const char *find_conflict(const cogpu_arguments *arguments) {
    if (arguments->has_bbox && arguments->has_window)
        return "--bbox and --window cannot be combined";
    if (arguments->has_transform && arguments->has_bounds)
        return "--transform and --bounds cannot be combined";
    if (!arguments->folder && (arguments->jobs || arguments->resume))
        return "--jobs and --resume are for many files: convert IN... --to DIR";
    return cogpu_profile_find_conflict(arguments);
}

/* What is wrong with the files, or NULL. */
static const char *find_wrong_file(const cogpu_arguments *arguments) {
    int count = arguments->file_count;
    if (arguments->folder && cogpu_name_is_url(arguments->folder))
        return "--to: DIR cannot be a URL";
    for (int i = 0; arguments->folder && i < count; i++)
        if (strcmp(arguments->files[i], "-") == 0)
            return "--to: stdin has no file name";
    if (arguments->folder)
        return NULL;
    if (count < 2)
        return "convert needs IN OUT, or IN... --to DIR; see cogpu convert --help";
    if (count > 2)
        return "convert accepts IN OUT only; use --to DIR for several files";
    return cogpu_target_find_wrong_url(arguments->files[1]);
}

static int convert_single_file(const cogpu_arguments *arguments) {
    cogpu_convert_job job = {.arguments = arguments,
                             .inputs = arguments->files,
                             .input_count = 1,
                             .in_name = arguments->names[0],
                             .out_path = arguments->files[1],
                             .out_name = arguments->names[1]};
    cogpu_input input;
    cogpu_error error;
    if (cogpu_target_is_stdout(job.out_path))
        cogpu_target_use_stdout();
    if (cogpu_input_open(arguments, 0, NULL, &input, &error) != COGPU_OK)
        return cogpu_report_error(arguments->names[0], &error);
    int code = cogpu_convert_alone(&job, &input);
    cogpu_input_close(&input);
    return code;
}

static int run_convert(const cogpu_arguments *arguments) {
    const char *wrong = find_conflict(arguments);
    if (!wrong)
        wrong = find_wrong_file(arguments);
    if (wrong)
        return cogpu_report_usage("%s", wrong);
    if (arguments->folder)
        return cogpu_convert_many(arguments);
    return cogpu_target_check(arguments->files[1]) ? convert_single_file(arguments) : EXIT_USAGE;
}

const cogpu_command cogpu_cmd_convert = {
    .name = "convert",
    .operands = "IN OUT",
    .files = 1,
    .has_more_files = true,
    .options = OPTION_LEVEL | OPTION_PROFILE | OPTION_RESHAPE | OPTION_MANY | OPTION_NO_CLOBBER |
               OPTION_IMAGE | OPTION_WINDOW | OPTION_BBOX | OPTION_BAND | OPTION_FILL |
               OPTION_THREADS | OPTION_DEVICE | OPTION_NETWORK | OPTION_JSON,
    .summary = "convert to GeoTIFF or, with --cog, to a COG",
    .details =
        "Also: cogpu convert IN... --to DIR\n"
        "\n"
        "Writes IN, or a part of it, as a tiled or striped GeoTIFF, or as a COG with overviews.\n"
        "Pixels, georeferencing, nodata, masks, color interpretation and metadata are kept.\n"
        "Pixels are streamed: memory does not grow with the image. With --device cuda they stay\n"
        "on the GPU from decoding to encoding, and OUT has the same pixels. Codecs and types that\n"
        "the GPU does not support are processed on the CPU, as are --size, --scale and --dtype to\n"
        "integers.\n"
        "\n"
        "OUT appears when it is complete; after an error the previous file is still there. OUT\n"
        "may be IN. If OUT replaces another file, its sidecars OUT.ovr, OUT.msk and OUT.aux.xml\n"
        "are deleted; convert fails if it reads one of them. OUT may be - for stdout, or\n"
        "s3://BUCKET/KEY: parts are uploaded while the file is written, and only overviews need\n"
        "temporary disk space, in TMPDIR.\n"
        "\n"
        "With --to, converted files are listed in DIR/cogpu-manifest.tsv. --resume skips files\n"
        "whose options, input size and modification time are unchanged. The exit code is 1 if a\n"
        "file failed; the others are still converted.",
    .run = run_convert,
};
