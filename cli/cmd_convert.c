/*
 * cogpu convert: a file as another GeoTIFF or as a COG, or many files (convert_many.c). Here the
 * command line is checked as a whole.
 */
#include "command.h"
#include "convert.h"
#include "convert_many.h"
#include "interrupt.h"
#include "name.h"
#include "report.h"
#include "target.h"

#include <string.h>
#include <strings.h>

/* What is wrong with the options together, or NULL. */
static const char *find_conflict(const cogpu_arguments *arguments) {
    const cogpu_profile *profile = &arguments->profile;
    if (arguments->has_bbox && arguments->has_window)
        return "--bbox and --window exclude each other";
    if (arguments->has_transform && arguments->has_bounds)
        return "--transform and --bounds exclude each other";
    if (profile->strips && profile->block_width)
        return "--strips and --block exclude each other";
    if (profile->strips && profile->cog)
        return "--strips: a COG has tiles; leave out one of --strips and --cog";
    if (!arguments->folder && (arguments->jobs || arguments->resume))
        return "--jobs and --resume are for many files: convert IN... --to DIR";
    return NULL;
}

/* What is wrong with the files, or NULL. */
static const char *find_wrong_file(const cogpu_arguments *arguments) {
    int count = arguments->file_count;
    if (arguments->folder && cogpu_name_is_url(arguments->folder))
        return "--to: DIR cannot be a URL";
    for (int i = 0; arguments->folder && i < count; i++)
        if (strcmp(arguments->files[i], "-") == 0)
            return "--to: a file that comes by stdin has no name";
    if (arguments->folder)
        return NULL;
    if (count < 2)
        return "convert wants IN OUT, or IN... --to DIR; see cogpu convert --help";
    if (count > 2)
        return "convert takes IN OUT and nothing more, unless --to DIR says where many files go";
    const char *out = arguments->files[1];
    if (cogpu_name_is_url(out) && strncasecmp(out, "s3://", 5) != 0)
        return "OUT cannot be a URL but s3://BUCKET/KEY; write a file, and upload that";
    return NULL;
}

static int convert_one(const cogpu_arguments *arguments) {
    cogpu_convert_job job = {.arguments = arguments,
                             .in_path = arguments->files[0],
                             .in_name = arguments->names[0],
                             .out_path = arguments->files[1],
                             .out_name = arguments->names[1]};
    cogpu_input input;
    cogpu_error error;
    if (cogpu_target_is_stdout(job.out_path))
        cogpu_target_use_stdout();
    if (cogpu_input_open(arguments, 0, NULL, &input, &error) != COGPU_OK)
        return cogpu_report_error(arguments->names[0], &error);
    cogpu_interrupt_catch();
    cogpu_status status = cogpu_convert_run(&job, &input, &error);
    if (status != COGPU_OK)
        cogpu_interrupt_end();
    int code =
        status == COGPU_OK ? cogpu_convert_report(&job) : cogpu_report_error(job.culprit, &error);
    cogpu_input_close(&input);
    return code;
}

static int run(const cogpu_arguments *arguments) {
    const char *wrong = find_conflict(arguments);
    if (!wrong)
        wrong = find_wrong_file(arguments);
    if (wrong)
        return cogpu_report_usage("%s", wrong);
    if (arguments->folder)
        return cogpu_convert_many(arguments);
    return cogpu_target_check(arguments->files[1]) ? convert_one(arguments) : EXIT_USAGE;
}

const cogpu_command cogpu_cmd_convert = {
    .name = "convert",
    .operands = "IN OUT",
    .files = 1,
    .has_more_files = true,
    .options = OPTION_PROFILE | OPTION_MANY | OPTION_NO_CLOBBER | OPTION_IMAGE | OPTION_WINDOW |
               OPTION_BBOX | OPTION_BAND | OPTION_FILL | OPTION_THREADS | OPTION_DEVICE |
               OPTION_NETWORK | OPTION_JSON,
    .summary = "to another GeoTIFF or, with --cog, a COG",
    .details =
        "Also: cogpu convert IN... --to DIR\n\n"
        "Writes IN, or a part of it, as a GeoTIFF with tiles or strips, or as a COG with\n"
        "overviews. Pixels, coordinates, nodata, masks, colours and metadata stay; they are\n"
        "streamed, so that memory does not grow with the image. With --device cuda pixels stay on\n"
        "the GPU from decoding to encoding, and are the same in OUT; what it has no way for, the\n"
        "host does. --size, --scale and --dtype to integers work on the host.\n\n"
        "OUT appears when it is complete; on an error what was there before stays. It may be IN.\n"
        "Another file that it replaces takes with it its sidecars OUT.ovr, OUT.msk and\n"
        "OUT.aux.xml; where one of them is read, convert fails. OUT may be - for stdout, or\n"
        "s3://BUCKET/KEY: it goes up in parts while it is made, and takes no room here but for\n"
        "overviews, in TMPDIR.\n\n"
        "With --to, files that are finished are listed in DIR/cogpu-manifest.tsv. --resume skips\n"
        "those whose input has the same size and time of change, with the same options. The exit\n"
        "code is 1 where one of them failed; the others are converted all the same.",
    .run = run,
};
