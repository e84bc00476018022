/*
 * `cogpu mosaic`: writes a VRT file that names the inputs, as gdalbuildvrt does.
 */
#include "command.h"
#include "json.h"
#include "mosaic_input.h"
#include "mosaic_options.h"
#include "report.h"
#include "sources.h"
#include "target.h"
#include "text.h"

#include <inttypes.h>

static int print_result(const cogpu_arguments *arguments, const cogpu_image *image,
                        const cogpu_file *mosaic) {
    const char *out = arguments->names[arguments->file_count - 1];
    cogpu_sources_note_skipped(mosaic);
    if (arguments->json) {
        cogpu_json json = {0};
        cogpu_json_open(&json, NULL, '{');
        cogpu_json_text(&json, "output", out);
        cogpu_sources_count_json(mosaic, &json);
        cogpu_json_unsigned(&json, "width", image->width);
        cogpu_json_unsigned(&json, "height", image->height);
        cogpu_json_unsigned(&json, "bands", image->bands);
        cogpu_json_text(&json, "type", cogpu_type_name(image->type));
        cogpu_json_close(&json);
        return cogpu_json_print(&json) ? EXIT_DONE : EXIT_FAILED;
    }
    if (!arguments->quiet) {
        cogpu_source_counts counts = cogpu_sources_count(mosaic);
        uint64_t count = counts.all - counts.skipped;
        FILE *to = cogpu_report_stream();
        cogpu_text_print(to, out, SIZE_MAX);
        fprintf(to,
                ": %" PRIu32 " x %" PRIu32 " pixels, %" PRIu32 " band%s of %s, %" PRIu64
                " source%s\n",
                image->width, image->height, image->bands, image->bands == 1 ? "" : "s",
                cogpu_type_name(image->type), count, count == 1 ? "" : "s");
    }
    return EXIT_DONE;
}

static int write_vrt(const cogpu_arguments *arguments, const cogpu_file *mosaic) {
    int out = arguments->file_count - 1;
    cogpu_sink sink =
        cogpu_target_sink(arguments, arguments->files[out], arguments->files, (uint32_t)out);
    cogpu_image image = COGPU_IMAGE_INIT;
    cogpu_error error;
    sink.keep_sidecars = 1;
    if (cogpu_image_info(mosaic, 0, &image, &error) != COGPU_OK ||
        cogpu_write_vrt(mosaic, &sink, &error) != COGPU_OK)
        return cogpu_report_error(arguments->names[out], &error);
    return print_result(arguments, &image, mosaic);
}

static int run_mosaic(const cogpu_arguments *arguments) {
    const char *wrong = cogpu_mosaic_find_conflict(arguments), *culprit;
    const char *out = arguments->files[arguments->file_count - 1];
    cogpu_mosaic_input mosaic;
    cogpu_error error;
    if (wrong)
        return cogpu_report_usage("%s", wrong);
    if (!cogpu_mosaic_check_output(arguments))
        return EXIT_USAGE;
    if (cogpu_target_is_stdout(out))
        cogpu_target_use_stdout();
    int code = cogpu_mosaic_input_open(arguments, &mosaic, &culprit, &error) == COGPU_OK
                   ? write_vrt(arguments, mosaic.input.file)
                   : cogpu_report_error(culprit, &error);
    cogpu_mosaic_input_close(&mosaic);
    return code;
}

const cogpu_command cogpu_cmd_mosaic = {
    .name = "mosaic",
    .operands = "IN... OUT",
    .files = 2,
    .has_more_files = true,
    .options = OPTION_GRID | OPTION_NO_CLOBBER | OPTION_NETWORK | OPTION_JSON,
    .summary = "write a VRT file that joins files",
    .details =
        "Writes OUT as a VRT file, which names the inputs and their place on one grid, as\n"
        "gdalbuildvrt does. It holds no pixels. cogpu, GDAL and QGIS read it as one raster.\n"
        "Inputs must have the same CRS; cogpu warp reprojects. Paths of inputs in the directory "
        "of\n"
        "OUT and below it are written relative to it.\n"
        "\n"
        "Where inputs overlap, the first one with a valid pixel is on top; --composite last turns\n"
        "that around (gdalbuildvrt: the last).",
    .run = run_mosaic,
};
