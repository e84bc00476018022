/*
 * cogpu checksum: the SHA-256 of pixels. Takes in a selection, hands on a sum that depends on the
 * pixels alone: not on codec, blocks, byte order or layout of the file.
 */
#include "command.h"
#include "progress.h"
#include "report.h"
#include "sample.h"
#include "sha256.h"
#include "swath.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>

static cogpu_status add_swaths(const cogpu_selection *selection, cogpu_swath *swath, void *data,
                               cogpu_sha256 *hash, cogpu_progress_bar *progress,
                               cogpu_error *error) {
    size_t row_samples = selection->request.width;
    while (cogpu_swath_next(swath)) {
        size_t samples = row_samples * swath->rows * swath->bands;
        size_t bytes = samples * cogpu_type_bytes(selection->type);
        TRY(cogpu_swath_read(swath, selection, data, NULL, error));
        cogpu_sample_to_file(selection->type, data, samples);
        cogpu_sha256_add(hash, data, bytes);
        cogpu_progress_add(progress, bytes);
    }
    return COGPU_OK;
}

static cogpu_status sum(const cogpu_selection *selection, char text[65], cogpu_error *error) {
    cogpu_swath swath;
    cogpu_sha256 hash;
    cogpu_progress_bar progress;
    cogpu_status status = cogpu_swath_open(selection, SWATH_BY_BAND, &swath, error);
    void *data = status == COGPU_OK ? malloc(swath.bytes) : NULL;
    if (status == COGPU_OK && !data)
        status =
            cogpu_refuse(error, COGPU_MEMORY, "no memory for %zu bytes of pixels", swath.bytes);
    cogpu_sha256_open(&hash);
    if (status == COGPU_OK) {
        cogpu_progress_open(&progress,
                            cogpu_selection_samples(selection) * cogpu_type_bytes(selection->type));
        status = add_swaths(selection, &swath, data, &hash, &progress, error);
        cogpu_progress_close(&progress);
    }
    cogpu_swath_close(&swath, selection);
    free(data);
    cogpu_sha256_close(&hash, text);
    return status;
}

static int print_json(const cogpu_input *input, const cogpu_selection *selection,
                      const char *text) {
    cogpu_json json = {0};
    cogpu_json_open(&json, NULL, '{');
    cogpu_json_text(&json, "file", input->name);
    cogpu_json_text(&json, "sha256", text);
    cogpu_selection_json(selection, &json);
    cogpu_json_close(&json);
    return cogpu_json_print(&json) ? EXIT_DONE : EXIT_FAILED;
}

static int run(const cogpu_arguments *arguments) {
    cogpu_input input;
    cogpu_selection selection;
    cogpu_error error;
    char text[65];
    int code = EXIT_DONE;
    if (cogpu_input_open(arguments, 0, NULL, &input, &error) != COGPU_OK)
        return cogpu_report_error(arguments, arguments->names[0], &error);
    if (cogpu_selection_make(&input, arguments, &selection, &error) != COGPU_OK ||
        sum(&selection, text, &error) != COGPU_OK) {
        code = cogpu_report_error(arguments, input.name, &error);
    } else if (arguments->json) {
        code = print_json(&input, &selection, text);
    } else {
        printf("%s  ", text);
        cogpu_text_print(stdout, input.name, SIZE_MAX);
        putchar('\n');
    }
    cogpu_input_close(&input);
    return code;
}

const cogpu_command cogpu_cmd_checksum = {
    .name = "checksum",
    .operands = "FILE",
    .files = 1,
    .options = OPTION_IMAGE | OPTION_LEVEL | OPTION_WINDOW | OPTION_BAND | OPTION_MASK |
               OPTION_THREADS | OPTION_DEVICE | OPTION_NETWORK | OPTION_JSON,
    .summary = "SHA-256 of the pixels",
    .details =
        "Prints the SHA-256 of the pixels: all bands one after the other, each row by row, little\n"
        "endian, in the image's sample type (samples of less than 8, 16 or 32 bits widened to\n"
        "that), nothing masked or scaled. Files with the same pixels have the same sum, whatever\n"
        "their codec and layout.",
    .run = run,
};
