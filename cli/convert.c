/*
 * Copies a selection of a file into a new one, with its metadata. Rows are streamed: while the
 * writer encodes some, another thread reads the next. With a GPU they stay in device memory, and
 * only stored bytes are transferred.
 */
#include "convert.h"
#include "clock.h"

#include "command.h"
#include "interrupt.h"
#include "lossy.h"
#include "name.h"
#include "report.h"
#include "sample.h"
#include "sources.h"
#include "target.h"
#include "text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Files beside OUT that speak of what it was before. */
static const struct {
    const char *ending, *holds;
} sidecars[SIDECARS] = {{".ovr", "overviews"},
                        {".aux.xml", "metadata"},
                        {".msk", "a mask"},
                        {".msk.ovr", "overviews of a mask"}};

static uint64_t row_bytes(const cogpu_convert_job *job) {
    const cogpu_selection *selection = &job->selection;
    return (uint64_t)selection->written_width * selection->bands *
           cogpu_type_bytes(selection->written);
}

static cogpu_status copy_image(cogpu_convert_job *job, cogpu_error *error) {
    for (;;) {
        const cogpu_ahead_chunk *chunk;
        job->culprit = job->in_name;
        TRY(cogpu_interrupt_check(error));
        TRY(cogpu_ahead_next(job->ahead, &chunk, error));
        if (!chunk)
            return COGPU_OK;
        job->culprit = job->out_name;
        TRY(cogpu_writer_write_rows(job->writer, &chunk->rows,
                                    chunk->mask.data ? &chunk->mask : NULL, error));
        if (!job->is_silent)
            cogpu_progress_add(&job->progress, row_bytes(job) * chunk->rows.height);
    }
}

/* A file that is converted in its place keeps its sidecars, which it was read with. */
static bool is_in_place(const cogpu_convert_job *job) {
    return job->input_count == 1 && cogpu_target_is_same_file(job->inputs[0], job->out_path);
}

static bool has_sidecar(const cogpu_convert_job *job, int index, char name[PATH_MAX]) {
    int length = snprintf(name, PATH_MAX, "%s%s", job->out_path, sidecars[index].ending);
    return !cogpu_name_is_url(job->out_path) && !cogpu_target_is_stdout(job->out_path) &&
           length < PATH_MAX && access(name, F_OK) == 0;
}

static cogpu_status write_file(cogpu_convert_job *job, cogpu_error *error) {
    char name[PATH_MAX];
    cogpu_sink sink =
        cogpu_target_sink(job->arguments, job->out_path, job->inputs, job->input_count);
    sink.keep_sidecars = is_in_place(job);
    for (int i = 0; i < SIDECARS; i++)
        job->had_sidecar[i] = has_sidecar(job, i, name);
    job->culprit = job->out_name;
    TRY(cogpu_writer_open(&sink, &job->taken.profile, &job->writer, error));
    job->culprit = job->in_name;
    TRY(cogpu_ahead_open(&job->selection, &job->derivation, &job->taken.profile, &job->ahead,
                         error));
    TRY(copy_image(job, error));
    job->result = *cogpu_ahead_result(job->ahead);
    job->culprit = job->out_name;
    cogpu_writer *writer = job->writer;
    job->writer = NULL; /* closing frees it, whatever comes of it */
    job->written = (cogpu_written)COGPU_WRITTEN_INIT;
    return cogpu_writer_close(writer, &job->written, error);
}

/* Reader and writer share connections and devices. */
static void use_context(cogpu_convert_job *job) {
    job->taken.profile.context = job->selection.request.context;
    job->taken.profile.device = job->selection.device;
    job->taken.profile.device_index = job->selection.device_index;
}

static cogpu_status prepare_conversion(cogpu_convert_job *job, const cogpu_input *input,
                                       cogpu_error *error) {
    job->culprit = job->in_name;
    TRY(cogpu_selection_make(input, job->arguments, &job->selection, error));
    TRY(cogpu_derivation_plan(job->arguments, &job->selection, error));
    TRY(cogpu_output_profile_make(&job->selection, job->arguments, &job->taken, error));
    use_context(job);
    job->lossy_codec = cogpu_lossy_codec(&job->selection, job->inputs[0]);
    return cogpu_derivation_open(job->arguments, &job->selection, &job->taken.profile,
                                 &job->derivation, error);
}

cogpu_status cogpu_convert_run(cogpu_convert_job *job, const cogpu_input *input,
                               cogpu_error *error) {
    double begin = cogpu_clock_milliseconds();
    cogpu_status status = prepare_conversion(job, input, error);
    if (status == COGPU_OK) {
        cogpu_progress_open(&job->progress, row_bytes(job) * job->selection.written_height);
        status = write_file(job, error);
        cogpu_progress_close(&job->progress);
    }
    cogpu_writer_abort(job->writer);
    cogpu_ahead_close(job->ahead);
    cogpu_derivation_close(&job->derivation);
    job->has_mixed_nodata = job->taken.has_mixed_nodata;
    cogpu_profile_free(&job->taken);
    job->milliseconds = cogpu_clock_milliseconds() - begin;
    return status;
}

/* ---- report -----------------------------------------------------------------------------------
 */

static void note_sidecars(const cogpu_convert_job *job) {
    for (int i = 0; i < SIDECARS; i++) {
        char name[PATH_MAX];
        const char *holds = sidecars[i].holds;
        if (has_sidecar(job, i, name))
            cogpu_report_note(
                name, "contains stale %s of the previous file; delete it if it no longer applies",
                holds);
        else if (job->had_sidecar[i])
            cogpu_report_note(name, "removed: it contained %s of the previous file", holds);
    }
}

static void note_nodata(const cogpu_convert_job *job) {
    const cogpu_band *band = &job->selection.first_band;
    cogpu_type written = job->selection.written;
    bool is_given = job->arguments->profile.nodata || job->arguments->without_nodata;
    if (!band->nodata || is_given)
        return;
    if (!band->nodata_matches)
        cogpu_report_note(
            job->in_name,
            "nodata %s is not a value of %s and was dropped; use --nodata to set another",
            band->nodata, cogpu_type_name(job->selection.image.type));
    else if (!cogpu_sample_is_float(written) && !cogpu_sample_is_complex(written) &&
             cogpu_sample_clamp(written, band->nodata_value) != band->nodata_value)
        cogpu_report_note(job->in_name, "nodata %s is not a value of %s and became %.15g; %s",
                          band->nodata, cogpu_type_name(written),
                          cogpu_sample_clamp(written, band->nodata_value),
                          "use --nodata to set another");
}

static void note_loss(const cogpu_convert_job *job) {
    const char *codec = job->lossy_codec;
    if (codec && !cogpu_profile_is_lossy(&job->arguments->profile))
        cogpu_report_note(job->in_name,
                          "uses lossy compression (%s), and the new file is lossless: larger "
                          "but not better; --codec %s keeps it small",
                          codec, codec);
}

static void print_conversion_notes(const cogpu_convert_job *job) {
    const cogpu_result *result = &job->result;
    cogpu_sources_note_skipped(job->selection.file);
    cogpu_report_bad_blocks(job->in_name, result);
    if (job->has_mixed_nodata)
        cogpu_report_note(job->in_name,
                          "the bands have different nodata values, but a GeoTIFF has only one; "
                          "they were dropped; use --nodata to set one");
    else
        note_nodata(job);
    note_loss(job);
    note_sidecars(job);
    cogpu_report_detail(job->in_name,
                        "%" PRIu64 " blocks read, %" PRIu64 " of them sparse, %" PRIu64
                        " decoded by the device, %" PRIu64 " bytes",
                        result->blocks, result->sparse_blocks, result->device_blocks,
                        result->bytes_read);
    cogpu_report_detail(job->out_name,
                        "%" PRIu64 " blocks written, %" PRIu64 " of them left out as sparse, %s",
                        job->written.blocks, job->written.sparse_blocks,
                        job->written.bigtiff ? "BigTIFF" : "classic TIFF");
}

static void print_conversion_text(const cogpu_convert_job *job) {
    const cogpu_selection *selection = &job->selection;
    const cogpu_written *written = &job->written;
    uint64_t pixels = row_bytes(job) * selection->written_height;
    FILE *to = cogpu_report_stream();
    cogpu_text_print(to, job->out_name, SIZE_MAX);
    fprintf(to,
            ": %" PRIu32 " x %" PRIu32 " pixels, %" PRIu32 " band%s of %s, %" PRIu32
            " level%s; %" PRIu64 " bytes, %.1f %% of the pixels', in %.2f s\n",
            selection->written_width, selection->written_height, selection->bands,
            selection->bands == 1 ? "" : "s", cogpu_type_name(selection->written), written->levels,
            written->levels == 1 ? "" : "s", written->bytes,
            (double)written->bytes * 100 / (double)pixels, job->milliseconds / 1e3);
}

static bool print_conversion_json(const cogpu_convert_job *job) {
    const cogpu_written *written = &job->written;
    cogpu_json json = {0};
    cogpu_json_open(&json, NULL, '{');
    cogpu_json_text(&json, "file", job->in_name);
    cogpu_json_text(&json, "output", job->out_name);
    cogpu_selection_json(&job->selection, &json);
    cogpu_sources_count_json(job->selection.file, &json);
    cogpu_json_unsigned(&json, "bytes", written->bytes);
    cogpu_json_unsigned(&json, "blocks", written->blocks);
    cogpu_json_unsigned(&json, "sparse_blocks", written->sparse_blocks);
    cogpu_json_unsigned(&json, "levels", written->levels);
    cogpu_json_boolean(&json, "cog", job->arguments->profile.cog);
    cogpu_json_boolean(&json, "bigtiff", written->bigtiff);
    cogpu_json_unsigned(&json, "bad_blocks", job->result.bad_blocks);
    cogpu_json_number(&json, "milliseconds", job->milliseconds);
    cogpu_json_close(&json);
    return cogpu_json_print(&json);
}

int cogpu_convert_report(const cogpu_convert_job *job) {
    print_conversion_notes(job);
    if (job->arguments->json)
        return print_conversion_json(job) ? EXIT_DONE : EXIT_FAILED;
    if (!job->arguments->quiet)
        print_conversion_text(job);
    return EXIT_DONE;
}

int cogpu_convert_alone(cogpu_convert_job *job, const cogpu_input *input) {
    cogpu_error error;
    cogpu_interrupt_catch();
    cogpu_status status = cogpu_convert_run(job, input, &error);
    if (status == COGPU_OK)
        return cogpu_convert_report(job);
    cogpu_interrupt_end();
    return cogpu_report_error(job->culprit, &error);
}
