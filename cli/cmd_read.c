/*
 * cogpu read: pixels into a file that other programs read. Takes in a selection, hands on .npy,
 * .raw or .png, a swath at a time, so that memory does not grow with the image.
 */
#include "command.h"
#include "name.h"
#include "npy.h"
#include "output.h"
#include "png_file.h"
#include "progress.h"
#include "report.h"
#include "sample.h"
#include "swath.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef enum format { FORMAT_NONE = 0, FORMAT_NPY, FORMAT_RAW, FORMAT_PNG } format;

static const char *const format_names[] = {NULL, "npy", "raw", "png"};

static format format_of(const char *path) {
    const char *dot = strrchr(path, '.');
    for (int i = FORMAT_NPY; dot && i <= FORMAT_PNG; i++)
        if (strcasecmp(dot + 1, format_names[i]) == 0)
            return (format)i;
    return FORMAT_NONE;
}

/* What the writers below share. Errors of the output name it, errors of the input name that. */
struct job {
    const cogpu_arguments *arguments;
    cogpu_selection selection;
    format format;
    cogpu_output output;
    cogpu_png_shape shape;
    cogpu_png *png;
    cogpu_swath swath;
    cogpu_progress_bar progress;
    cogpu_result result;
    const char *culprit; /* the file that an error is about */
    char *data;
};

static uint64_t sample_bytes(const struct job *job) {
    return cogpu_selection_samples(&job->selection) * cogpu_type_bytes(job->selection.type);
}

/* .npy and .raw hold one band after the other; a swath has a piece of each. */
static cogpu_status write_bands(struct job *job, cogpu_error *error) {
    const cogpu_swath *swath = &job->swath;
    const cogpu_request *request = &job->selection.request;
    uint64_t row_bytes = request->width * cogpu_type_bytes(job->selection.type);
    uint64_t start = job->format == FORMAT_NPY ? NPY_HEADER : 0;
    size_t piece = (size_t)row_bytes * swath->rows;
    cogpu_sample_to_file(job->selection.type, job->data,
                         (size_t)request->width * swath->rows * swath->bands);
    for (uint32_t i = 0; i < swath->bands; i++) {
        uint64_t rows_before = (uint64_t)(swath->band + i) * request->height + swath->row;
        TRY(cogpu_output_write(&job->output, start + rows_before * row_bytes, job->data + piece * i,
                               piece, error));
    }
    return COGPU_OK;
}

static cogpu_status write_swath(struct job *job, cogpu_error *error) {
    return job->format == FORMAT_PNG ? cogpu_png_write(job->png, job->data, job->swath.rows, error)
                                     : write_bands(job, error);
}

static cogpu_status write_start(struct job *job, cogpu_error *error) {
    const cogpu_selection *selection = &job->selection;
    char header[NPY_HEADER];
    if (job->format == FORMAT_PNG)
        return cogpu_png_open(&job->shape, &job->output, &job->png, error);
    if (job->format == FORMAT_RAW)
        return COGPU_OK;
    cogpu_npy_header(selection->type, selection->bands, selection->request.height,
                     selection->request.width, header);
    return cogpu_output_write(&job->output, 0, header, sizeof header, error);
}

static cogpu_status write_end(struct job *job, cogpu_error *error) {
    if (job->png)
        TRY(cogpu_png_finish(job->png, error));
    return cogpu_output_commit(&job->output, error);
}

static cogpu_status copy(struct job *job, cogpu_error *error) {
    job->culprit = job->arguments->output;
    TRY(cogpu_output_open(job->arguments->output, &job->output, error));
    TRY(write_start(job, error));
    while (cogpu_swath_next(&job->swath)) {
        const cogpu_swath *swath = &job->swath;
        job->culprit = job->arguments->names[0];
        TRY(cogpu_swath_read(swath, &job->selection, job->data, &job->result, error));
        job->culprit = job->arguments->output;
        TRY(write_swath(job, error));
        cogpu_progress_add(&job->progress, (uint64_t)job->selection.request.width * swath->rows *
                                               swath->bands *
                                               cogpu_type_bytes(job->selection.type));
    }
    return write_end(job, error);
}

static cogpu_status prepare(struct job *job, const cogpu_input *input, cogpu_error *error) {
    bool picture = job->format == FORMAT_PNG;
    TRY(cogpu_selection_make(input, job->arguments, &job->selection, error));
    if (picture)
        TRY(cogpu_png_fit(&job->selection, &job->shape, error));
    TRY(cogpu_swath_open(&job->selection, picture ? SWATH_CHUNKY : SWATH_ANY_ORDER, &job->swath,
                         error));
    job->data = malloc(job->swath.bytes);
    if (!job->data)
        return cogpu_refuse(error, COGPU_MEMORY, "no memory for %zu bytes of pixels",
                            job->swath.bytes);
    return COGPU_OK;
}

static cogpu_status read_into_file(struct job *job, const cogpu_input *input, cogpu_error *error) {
    job->culprit = input->name;
    job->output.descriptor = -1;
    cogpu_status status = prepare(job, input, error);
    if (status == COGPU_OK) {
        cogpu_progress_open(&job->progress, sample_bytes(job));
        status = copy(job, error);
        cogpu_progress_close(&job->progress);
    }
    cogpu_swath_close(&job->swath, &job->selection);
    cogpu_png_close(job->png);
    cogpu_output_close(&job->output);
    free(job->data);
    return status;
}

/* A person gets to know what went otherwise than the words of the command say. */
static void print_notes(const struct job *job) {
    const cogpu_selection *selection = &job->selection;
    if (job->result.bad_blocks > 0)
        cogpu_report_note(job->arguments->names[0],
                          "%" PRIu64 " blocks could not be read and were filled; the first: %s",
                          job->result.bad_blocks, job->result.first_bad.message);
    if (job->format == FORMAT_PNG && selection->bands == 4 &&
        cogpu_selection_band(selection, 3) != selection->image.alpha_band)
        cogpu_report_note(job->arguments->output,
                          "band %" PRIu32 " became the alpha of the picture, though the file does "
                          "not call it so; --band chooses others",
                          cogpu_selection_band(selection, 3));
}

static void print_for_person(const struct job *job) {
    const cogpu_selection *selection = &job->selection;
    cogpu_text_print(stdout, job->arguments->output, SIZE_MAX);
    printf(": %" PRIu32 " x %" PRIu32 " pixels, %" PRIu32 " band%s of %s\n",
           selection->request.width, selection->request.height, selection->bands,
           selection->bands == 1 ? "" : "s", cogpu_type_name(selection->type));
}

static bool print_json(const struct job *job) {
    cogpu_json json = {0};
    cogpu_json_open(&json, NULL, '{');
    cogpu_json_text(&json, "file", job->arguments->names[0]);
    cogpu_json_text(&json, "output", job->arguments->output);
    cogpu_json_text(&json, "format", format_names[job->format]);
    cogpu_selection_json(&job->selection, &json);
    cogpu_json_unsigned(&json, "sample_bytes", sample_bytes(job));
    cogpu_json_unsigned(&json, "bad_blocks", job->result.bad_blocks);
    cogpu_json_close(&json);
    return cogpu_json_print(&json);
}

static int run(const cogpu_arguments *arguments) {
    if (!arguments->output)
        return cogpu_report_usage("read wants -o OUT: a file that ends in .npy, .raw or .png");
    if (arguments->has_bbox && arguments->has_window)
        return cogpu_report_usage("--bbox and --window exclude each other");
    if (arguments->mask && (arguments->type || arguments->nan_where_invalid || arguments->scaled))
        return cogpu_report_usage("--mask goes without --type, --nan and --scale");
    if (cogpu_name_is_url(arguments->output))
        return cogpu_report_usage("OUT cannot be a URL; write a file, and upload that");
    struct job job = {.arguments = arguments, .format = format_of(arguments->output)};
    if (job.format == FORMAT_NONE)
        return cogpu_report_usage("-o %s: expected a name that ends in .npy, .raw or .png",
                                  arguments->output);
    cogpu_input input;
    cogpu_error error;
    if (cogpu_input_open(arguments, 0, NULL, &input, &error) != COGPU_OK)
        return cogpu_report_error(arguments, arguments->names[0], &error);
    cogpu_status status = read_into_file(&job, &input, &error);
    int code = EXIT_DONE;
    if (status != COGPU_OK) {
        code = cogpu_report_error(arguments, job.culprit, &error);
    } else {
        print_notes(&job);
        if (!arguments->json)
            print_for_person(&job);
        else if (!print_json(&job))
            code = EXIT_FAILED;
    }
    cogpu_input_close(&input);
    return code;
}

const cogpu_command cogpu_cmd_read = {
    .name = "read",
    .operands = "FILE -o OUT",
    .files = 1,
    .options = OPTION_OUTPUT | OPTION_IMAGE | OPTION_LEVEL | OPTION_WINDOW | OPTION_BBOX |
               OPTION_BAND | OPTION_MASK | OPTION_TYPE | OPTION_NAN | OPTION_SCALE | OPTION_FILL |
               OPTION_THREADS | OPTION_DEVICE | OPTION_NETWORK | OPTION_JSON,
    .summary = "pixels into a .npy, .raw or .png file",
    .details =
        "Writes pixels as they are stored, unless --type, --nan or --scale ask for floats "
        "(without\n"
        "--type: float32 for integers of up to 16 bits, float64 for larger ones, and floats as\n"
        "they are). The ending of OUT says how:\n"
        "  .npy  NumPy array of shape (band, row, column); complex integers as records re, im\n"
        "  .raw  the same samples without a header, little endian, one band after the other\n"
        "  .png  1, 3 or 4 bands of uint8 or uint16, not stretched, with the palette if any\n"
        "OUT appears when it is whole; on an error what was there before stays.",
    .run = run,
};
