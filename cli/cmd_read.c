/*
 * `cogpu read`: writes pixels as .npy, .raw or .png, chunk by chunk, so that memory does not grow
 * with the image.
 */
#include "chunk.h"
#include "command.h"
#include "interrupt.h"
#include "name.h"
#include "npy.h"
#include "png_file.h"
#include "progress.h"
#include "report.h"
#include "sample.h"
#include "target.h"
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
struct read_job {
    const cogpu_arguments *arguments;
    cogpu_selection selection;
    format format;
    cogpu_output *output;
    cogpu_png_shape shape;
    cogpu_png *png;
    cogpu_chunk chunk;
    cogpu_progress_bar progress;
    cogpu_result result;
    const char *culprit; /* the file that an error is about */
    char *data;
};

static uint64_t sample_bytes(const struct read_job *job) {
    return cogpu_selection_samples(&job->selection) * cogpu_type_bytes(job->selection.type);
}

/* .npy and .raw hold one band after the other; a chunk has a piece of each. */
static cogpu_status write_bands(struct read_job *job, cogpu_error *error) {
    const cogpu_chunk *chunk = &job->chunk;
    const cogpu_request *request = &job->selection.request;
    uint64_t row_bytes = request->width * cogpu_type_bytes(job->selection.type);
    uint64_t start = job->format == FORMAT_NPY ? NPY_HEADER : 0;
    size_t piece = (size_t)row_bytes * chunk->rows;
    cogpu_sample_to_file(job->selection.type, job->data,
                         (size_t)request->width * chunk->rows * chunk->bands);
    for (uint32_t i = 0; i < chunk->bands; i++) {
        uint64_t rows_before = (uint64_t)(chunk->band + i) * request->height + chunk->row;
        TRY(cogpu_output_write(job->output, start + rows_before * row_bytes, job->data + piece * i,
                               piece, error));
    }
    return COGPU_OK;
}

static cogpu_status write_chunk(struct read_job *job, cogpu_error *error) {
    return job->format == FORMAT_PNG ? cogpu_png_write(job->png, job->data, job->chunk.rows, error)
                                     : write_bands(job, error);
}

static cogpu_status write_start(struct read_job *job, cogpu_error *error) {
    const cogpu_selection *selection = &job->selection;
    char header[NPY_HEADER];
    if (job->format == FORMAT_PNG)
        return cogpu_png_open(&job->shape, job->output, &job->png, error);
    if (job->format == FORMAT_RAW)
        return COGPU_OK;
    cogpu_npy_header(selection->type, selection->bands, selection->request.height,
                     selection->request.width, header);
    return cogpu_output_write(job->output, 0, header, sizeof header, error);
}

static cogpu_status commit_output(struct read_job *job, cogpu_error *error) {
    if (job->png)
        TRY(cogpu_png_finish(job->png, error));
    cogpu_output *output = job->output;
    job->output = NULL; /* a commit frees it, whatever it returns */
    return cogpu_output_commit(output, error);
}

static cogpu_status copy_chunks(struct read_job *job, cogpu_error *error) {
    const cogpu_arguments *arguments = job->arguments;
    cogpu_sink sink = cogpu_target_sink(arguments, arguments->output, arguments->files, 1);
    sink.keep_sidecars = 1;
    job->culprit = arguments->output;
    TRY(cogpu_output_open(&sink, &job->output, error));
    TRY(write_start(job, error));
    while (cogpu_chunk_next(&job->chunk)) {
        TRY(cogpu_interrupt_check(error));
        const cogpu_chunk *chunk = &job->chunk;
        job->culprit = job->arguments->names[0];
        TRY(cogpu_chunk_read(chunk, &job->selection, job->data, &job->result, error));
        job->culprit = job->arguments->output;
        TRY(write_chunk(job, error));
        cogpu_progress_add(&job->progress, (uint64_t)job->selection.request.width * chunk->rows *
                                               chunk->bands *
                                               cogpu_type_bytes(job->selection.type));
    }
    return commit_output(job, error);
}

static cogpu_status prepare_read(struct read_job *job, const cogpu_input *input,
                                 cogpu_error *error) {
    bool picture = job->format == FORMAT_PNG;
    TRY(cogpu_selection_make(input, job->arguments, &job->selection, error));
    if (picture)
        TRY(cogpu_png_fit(&job->selection, &job->shape, error));
    cogpu_chunk_order order = picture ? CHUNK_CHUNKY : CHUNK_ANY_ORDER;
    if (!picture && cogpu_target_is_stdout(job->arguments->output))
        order = CHUNK_BY_BAND; /* bytes come in order */
    TRY(cogpu_chunk_open(&job->selection, order, &job->chunk, error));
    job->data = malloc(job->chunk.bytes);
    if (!job->data)
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for %zu bytes of pixels",
                            job->chunk.bytes);
    return COGPU_OK;
}

static cogpu_status read_into_file(struct read_job *job, const cogpu_input *input,
                                   cogpu_error *error) {
    job->culprit = input->name;
    cogpu_interrupt_catch();
    cogpu_status status = prepare_read(job, input, error);
    if (status == COGPU_OK) {
        cogpu_progress_open(&job->progress, sample_bytes(job));
        status = copy_chunks(job, error);
        cogpu_progress_close(&job->progress);
    }
    cogpu_png_close(job->png);
    cogpu_output_abort(job->output);
    free(job->data);
    if (status != COGPU_OK)
        cogpu_interrupt_end();
    return status;
}

/* Notes about results that differ from what the options ask for. */
static void print_read_notes(const struct read_job *job) {
    const cogpu_selection *selection = &job->selection;
    cogpu_report_bad_blocks(job->arguments->names[0], &job->result);
    if (job->format == FORMAT_PNG && selection->bands == 4 &&
        cogpu_selection_band(selection, 3) != selection->image.alpha_band)
        cogpu_report_note(job->arguments->output,
                          "band %" PRIu32 " is used as alpha, but the file does "
                          "not call it so; --band chooses others",
                          cogpu_selection_band(selection, 3));
}

static void print_read_text(const struct read_job *job) {
    const cogpu_selection *selection = &job->selection;
    FILE *to = cogpu_report_stream();
    cogpu_text_print(to, job->arguments->output, SIZE_MAX);
    fprintf(to, ": %" PRIu32 " x %" PRIu32 " pixels, %" PRIu32 " band%s of %s\n",
            selection->request.width, selection->request.height, selection->bands,
            selection->bands == 1 ? "" : "s", cogpu_type_name(selection->type));
}

static bool print_read_json(const struct read_job *job) {
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

static int print_read_result(const struct read_job *job) {
    print_read_notes(job);
    cogpu_report_detail(job->arguments->names[0],
                        "%" PRIu64 " blocks, %" PRIu64 " of them sparse, %" PRIu64 " bytes read",
                        job->result.blocks, job->result.sparse_blocks, job->result.bytes_read);
    if (job->arguments->json)
        return print_read_json(job) ? EXIT_DONE : EXIT_FAILED;
    if (!job->arguments->quiet)
        print_read_text(job);
    return EXIT_DONE;
}

/* --format, or the ending of OUT; stdout has none, and is .npy then. */
static format choose_format(const cogpu_arguments *arguments) {
    for (int i = FORMAT_NPY; arguments->format && i <= FORMAT_PNG; i++)
        if (strcmp(arguments->format, format_names[i]) == 0)
            return (format)i;
    return cogpu_target_is_stdout(arguments->output) ? FORMAT_NPY : format_of(arguments->output);
}

static bool check_read_options(const cogpu_arguments *arguments) {
    const char *wrong = NULL;
    if (!arguments->output)
        wrong = "read needs -o OUT: a .npy, .raw or .png file, or -";
    else if (arguments->has_bbox && arguments->has_window)
        wrong = "--bbox and --window cannot be combined";
    else if (arguments->mask && (arguments->type || arguments->masked || arguments->unscaled))
        wrong = "--mask cannot be combined with --type, --masked or --unscale";
    else if (cogpu_name_is_url(arguments->output))
        wrong = "OUT cannot be a URL; write a file and upload it";
    if (wrong)
        cogpu_report_usage("%s", wrong);
    return !wrong && cogpu_target_check(arguments->output);
}

static int run_read(const cogpu_arguments *arguments) {
    if (!check_read_options(arguments))
        return EXIT_USAGE;
    struct read_job job = {.arguments = arguments, .format = choose_format(arguments)};
    if (job.format == FORMAT_NONE)
        return cogpu_report_usage("-o %s: expected a file name that ends in .npy, .raw or .png",
                                  arguments->output);
    if (cogpu_target_is_stdout(arguments->output))
        cogpu_target_use_stdout();
    cogpu_input input;
    cogpu_error error;
    if (cogpu_input_open(arguments, 0, NULL, &input, &error) != COGPU_OK)
        return cogpu_report_error(arguments->names[0], &error);
    int code = read_into_file(&job, &input, &error) == COGPU_OK
                   ? print_read_result(&job)
                   : cogpu_report_error(job.culprit, &error);
    cogpu_input_close(&input);
    return code;
}

const cogpu_command cogpu_cmd_read = {
    .name = "read",
    .operands = "FILE -o OUT",
    .files = 1,
    .options = OPTION_OUTPUT | OPTION_FORMAT | OPTION_NO_CLOBBER | OPTION_IMAGE | OPTION_LEVEL |
               OPTION_WINDOW | OPTION_BBOX | OPTION_BAND | OPTION_MASK | OPTION_TYPE | OPTION_NAN |
               OPTION_UNSCALE | OPTION_FILL | OPTION_THREADS | OPTION_DEVICE | OPTION_NETWORK |
               OPTION_JSON,
    .summary = "write pixels to a .npy, .raw or .png file",
    .details =
        "Writes pixels as they are stored, or as floats with --type, --masked or --unscale "
        "(default\n"
        "type: float32 for integers of up to 16 bits, float64 for larger ones, the stored type\n"
        "for floats). The file extension of OUT selects the format:\n"
        "  .npy  NumPy array of shape (band, row, column); complex integers as records re, im\n"
        "  .raw  the same samples without a header, little-endian, one band after the other\n"
        "  .png  1, 3 or 4 bands of uint8 or uint16, not stretched, with the palette if any\n"
        "OUT appears when it is complete; after an error the previous file is still there. The\n"
        "format on stdout (-o -) is .npy (default) or that of --format; messages go to stderr.",
    .run = run_read,
};
