/*
 * `cogpu compare`: compares the pixels of two files: shape and type first, then samples, chunk by
 * chunk.
 */
#include "chunk.h"
#include "command.h"
#include "progress.h"
#include "report.h"
#include "sample.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct difference {
    uint64_t samples; /* that differ */
    long double largest;
    uint32_t band, row, column; /* of the first: index of the band, place in the window */
    char a[SAMPLE_TEXT], b[SAMPLE_TEXT];
} difference;

static bool is_before(const difference *found, uint32_t band, uint32_t row) {
    return band < found->band || (band == found->band && row < found->row);
}

/* Rows come band by band within a chunk, so a later chunk may hold what is first by band. */
static void note_difference(difference *found, cogpu_type type, const char *a, const char *b,
                            uint32_t band, uint32_t row, uint32_t column) {
    if (found->samples == 0 || is_before(found, band, row)) {
        found->band = band;
        found->row = row;
        found->column = column;
        cogpu_sample_text(type, a, found->a);
        cogpu_sample_text(type, b, found->b);
    }
    found->samples++;
    long double distance = cogpu_sample_distance(type, a, b);
    if (distance > found->largest) /* false for nan */
        found->largest = distance;
}

static void compare_row(difference *found, cogpu_type type, uint32_t width, const char *a,
                        const char *b, uint32_t band, uint32_t row) {
    size_t size = cogpu_type_bytes(type);
    if (memcmp(a, b, size * width) == 0)
        return;
    for (uint32_t column = 0; column < width; column++, a += size, b += size)
        if (memcmp(a, b, size) != 0 && !cogpu_sample_equal(type, a, b))
            note_difference(found, type, a, b, band, row, column);
}

static void compare_chunk(const cogpu_chunk *chunk, const cogpu_selection *selection, const char *a,
                          const char *b, difference *found) {
    size_t row_bytes = selection->request.width * cogpu_type_bytes(selection->type);
    for (uint32_t band = 0; band < chunk->bands; band++)
        for (uint32_t row = 0; row < chunk->rows; row++, a += row_bytes, b += row_bytes)
            compare_row(found, selection->type, selection->request.width, a, b, chunk->band + band,
                        chunk->row + row);
}

/* *culprit is the file that failed. */
static cogpu_status compare_chunks(const cogpu_selection selections[2], cogpu_chunk *chunk,
                                   char *data, difference *found, int *culprit,
                                   cogpu_error *error) {
    size_t row_bytes = selections[0].request.width * cogpu_type_bytes(selections[0].type);
    cogpu_progress_bar progress;
    cogpu_status status = COGPU_OK;
    cogpu_progress_open(&progress, cogpu_selection_samples(&selections[0]) *
                                       cogpu_type_bytes(selections[0].type));
    while (status == COGPU_OK && cogpu_chunk_next(chunk)) {
        for (int i = 0; i < 2 && status == COGPU_OK; i++) {
            *culprit = i;
            status = cogpu_chunk_read(chunk, &selections[i], data + chunk->bytes * (size_t)i, NULL,
                                      error);
        }
        if (status == COGPU_OK)
            compare_chunk(chunk, &selections[0], data, data + chunk->bytes, found);
        cogpu_progress_add(&progress, row_bytes * chunk->rows * chunk->bands);
    }
    cogpu_progress_close(&progress);
    return status;
}

static cogpu_status compare_pixels(const cogpu_selection selections[2], difference *found,
                                   int *culprit, cogpu_error *error) {
    cogpu_chunk chunk;
    *culprit = 0;
    cogpu_status status = cogpu_chunk_open(&selections[0], CHUNK_ANY_ORDER, &chunk, error);
    char *data = status == COGPU_OK ? malloc(chunk.bytes * 2) : NULL;
    if (status == COGPU_OK && !data)
        status = cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for %zu bytes of pixels",
                              chunk.bytes * 2);
    if (status == COGPU_OK)
        status = compare_chunks(selections, &chunk, data, found, culprit, error);
    free(data);
    return status;
}

static bool same_shape(const cogpu_selection s[2]) {
    return s[0].bands == s[1].bands && s[0].request.width == s[1].request.width &&
           s[0].request.height == s[1].request.height;
}

static void print_shape(const char *name, const cogpu_selection *selection) {
    printf("  ");
    cogpu_text_print(stdout, name, SIZE_MAX);
    printf(": %" PRIu32 " x %" PRIu32 " pixels, %" PRIu32 " band%s of %s\n",
           selection->request.width, selection->request.height, selection->bands,
           selection->bands == 1 ? "" : "s", cogpu_type_name(selection->type));
}

static void print_comparison_text(const cogpu_arguments *arguments, const cogpu_selection s[2],
                                  bool comparable, const difference *found) {
    if (comparable && found->samples == 0) {
        printf("same pixels: %" PRIu32 " x %" PRIu32 ", %" PRIu32 " band%s of %s\n",
               s[0].request.width, s[0].request.height, s[0].bands, s[0].bands == 1 ? "" : "s",
               cogpu_type_name(s[0].type));
    } else if (!comparable) {
        printf("different %s\n", same_shape(s) ? "sample types" : "shapes");
        print_shape(arguments->names[0], &s[0]);
        print_shape(arguments->names[1], &s[1]);
    } else {
        uint64_t all = cogpu_selection_samples(&s[0]);
        char text[NUMBER_TEXT];
        printf("different pixels\n");
        printf("  samples  %" PRIu64 " of %" PRIu64 " (%.3g %%)\n", found->samples, all,
               100 * (double)found->samples / (double)all);
        printf("  first    band %" PRIu32 ", row %" PRIu32 ", column %" PRIu32 ": %s and %s\n",
               cogpu_selection_band(&s[0], found->band), s[0].request.y + found->row,
               s[0].request.x + found->column, found->a, found->b);
        printf("  largest  %s\n", found->largest > 0
                                      ? cogpu_text_number((double)found->largest, text)
                                      : "none that is a number");
    }
}

static void json_side(cogpu_json *json, const char *key, const char *file,
                      const cogpu_selection *selection) {
    cogpu_json_open(json, key, '{');
    cogpu_json_text(json, "file", file);
    cogpu_selection_json(selection, json);
    cogpu_json_close(json);
}

/* Values are text, since not all of them are numbers of JSON. */
static void json_first(cogpu_json *json, const cogpu_selection *selection,
                       const difference *found) {
    if (found->samples == 0) {
        cogpu_json_null(json, "first");
        return;
    }
    cogpu_json_open(json, "first", '{');
    cogpu_json_unsigned(json, "band", cogpu_selection_band(selection, found->band));
    cogpu_json_unsigned(json, "row", selection->request.y + found->row);
    cogpu_json_unsigned(json, "column", selection->request.x + found->column);
    cogpu_json_text(json, "a", found->a);
    cogpu_json_text(json, "b", found->b);
    cogpu_json_close(json);
}

static void json_largest(cogpu_json *json, const difference *found) {
    if (found->samples > 0 && found->largest == 0)
        cogpu_json_null(json, "largest_difference");
    else
        cogpu_json_number(json, "largest_difference", (double)found->largest);
}

static bool print_comparison_json(const cogpu_arguments *arguments,
                                  const cogpu_selection selections[2], bool comparable,
                                  const difference *found) {
    cogpu_json json = {0};
    cogpu_json_open(&json, NULL, '{');
    cogpu_json_boolean(&json, "same", comparable && found->samples == 0);
    json_side(&json, "a", arguments->names[0], &selections[0]);
    json_side(&json, "b", arguments->names[1], &selections[1]);
    if (comparable) {
        cogpu_json_unsigned(&json, "different_samples", found->samples);
        json_first(&json, &selections[0], found);
        json_largest(&json, found);
    }
    cogpu_json_close(&json);
    return cogpu_json_print(&json);
}

static int compare_inputs(const cogpu_arguments *arguments, const cogpu_input inputs[2]) {
    cogpu_selection selections[2];
    cogpu_error error;
    difference found = {0};
    int culprit;
    for (int i = 0; i < 2; i++)
        if (cogpu_selection_make(&inputs[i], arguments, &selections[i], &error) != COGPU_OK)
            return cogpu_report_error(inputs[i].name, &error);
    bool comparable = same_shape(selections) && selections[0].type == selections[1].type;
    if (comparable && compare_pixels(selections, &found, &culprit, &error) != COGPU_OK)
        return cogpu_report_error(inputs[culprit].name, &error);
    bool printed = true;
    if (arguments->json)
        printed = print_comparison_json(arguments, selections, comparable, &found);
    else
        print_comparison_text(arguments, selections, comparable, &found);
    return printed && comparable && found.samples == 0 ? EXIT_DONE : EXIT_FAILED;
}

static int run_compare(const cogpu_arguments *arguments) {
    cogpu_input inputs[2];
    cogpu_error error;
    if (strcmp(arguments->files[0], "-") == 0 && strcmp(arguments->files[1], "-") == 0)
        return cogpu_report_usage("only one of the two files can be stdin");
    if (cogpu_input_open(arguments, 0, NULL, &inputs[0], &error) != COGPU_OK)
        return cogpu_report_error(arguments->names[0], &error);
    int code;
    if (cogpu_input_open(arguments, 1, &inputs[0], &inputs[1], &error) == COGPU_OK) {
        code = compare_inputs(arguments, inputs);
        cogpu_input_close(&inputs[1]);
    } else {
        code = cogpu_report_error(arguments->names[1], &error);
    }
    cogpu_input_close(&inputs[0]);
    return code;
}

const cogpu_command cogpu_cmd_compare = {
    .name = "compare",
    .operands = "A B",
    .files = 2,
    .options = OPTION_IMAGE | OPTION_LEVEL | OPTION_WINDOW | OPTION_BAND | OPTION_THREADS |
               OPTION_DEVICE | OPTION_NETWORK | OPTION_JSON,
    .summary = "compare the pixels of two files",
    .details =
        "Compares the pixels of two files: size, sample type and all values; NaN equals NaN. If\n"
        "they differ, prints the number of different samples, the first one by band, row and\n"
        "column, and the maximum absolute difference. Exit code: 0 if equal, 1 if not.",
    .run = run_compare,
};
