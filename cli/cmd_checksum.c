/*
 * `cogpu checksum`: the SHA-256 of pixels. It depends on the pixels alone, not on codec, blocks,
 * byte order or layout of the file.
 */
#include "chunk.h"
#include "command.h"
#include "progress.h"
#include "report.h"
#include "sample.h"
#include "sha256.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>

static cogpu_status add_chunks(const cogpu_selection *selection, cogpu_chunk *chunk, void *data,
                               cogpu_sha256 *hash, cogpu_progress_bar *progress,
                               cogpu_error *error) {
    size_t row_samples = selection->request.width;
    while (cogpu_chunk_next(chunk)) {
        size_t samples = row_samples * chunk->rows * chunk->bands;
        size_t bytes = samples * cogpu_type_bytes(selection->type);
        TRY(cogpu_chunk_read(chunk, selection, data, NULL, error));
        cogpu_sample_to_file(selection->type, data, samples);
        cogpu_sha256_add(hash, data, bytes);
        cogpu_progress_add(progress, bytes);
    }
    return COGPU_OK;
}

static cogpu_status hash_selection(const cogpu_selection *selection, char text[65],
                                   cogpu_error *error) {
    cogpu_chunk chunk;
    cogpu_sha256 hash;
    cogpu_progress_bar progress;
    cogpu_status status = cogpu_chunk_open(selection, CHUNK_BY_BAND, &chunk, error);
    void *data = status == COGPU_OK ? malloc(chunk.bytes) : NULL;
    if (status == COGPU_OK && !data)
        status = cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for %zu bytes of pixels",
                              chunk.bytes);
    cogpu_sha256_open(&hash);
    if (status == COGPU_OK) {
        cogpu_progress_open(&progress,
                            cogpu_selection_samples(selection) * cogpu_type_bytes(selection->type));
        status = add_chunks(selection, &chunk, data, &hash, &progress, error);
        cogpu_progress_close(&progress);
    }
    free(data);
    cogpu_sha256_close(&hash, text);
    return status;
}

static int print_checksum_json(const cogpu_input *input, const cogpu_selection *selection,
                               const char *text) {
    cogpu_json json = {0};
    cogpu_json_open(&json, NULL, '{');
    cogpu_json_text(&json, "file", input->name);
    cogpu_json_text(&json, "sha256", text);
    cogpu_selection_json(selection, &json);
    cogpu_json_close(&json);
    return cogpu_json_print(&json) ? EXIT_DONE : EXIT_FAILED;
}

static int print_checksum(const cogpu_arguments *arguments, const cogpu_input *input, int index) {
    cogpu_selection selection;
    cogpu_error error;
    char text[65];
    (void)index;
    if (cogpu_selection_make(input, arguments, &selection, &error) != COGPU_OK ||
        hash_selection(&selection, text, &error) != COGPU_OK)
        return cogpu_report_error(input->name, &error);
    if (arguments->json)
        return print_checksum_json(input, &selection, text);
    printf("%s  ", text);
    cogpu_text_print(stdout, input->name, SIZE_MAX);
    putchar('\n');
    return EXIT_DONE;
}

const cogpu_command cogpu_cmd_checksum = {
    .name = "checksum",
    .operands = "FILE...",
    .files = 1,
    .has_more_files = true,
    .options = OPTION_IMAGE | OPTION_LEVEL | OPTION_WINDOW | OPTION_BAND | OPTION_MASK |
               OPTION_THREADS | OPTION_DEVICE | OPTION_NETWORK | OPTION_JSON,
    .summary = "print the SHA-256 of the pixels",
    .details =
        "Prints the SHA-256 of the pixels: one band after the other, row by row, little-endian,\n"
        "in the sample type of the image. Samples with an odd number of bits are widened to 8, 16\n"
        "or 32 bits. Nothing is masked or scaled. Files with the same pixels have the same\n"
        "checksum, whatever their codec and layout.",
    .run_each = print_checksum,
};
