/*
 * cogpu convert: a file as another GeoTIFF or as a COG. Takes in a selection, hands on a file with
 * its pixels and all that the input says of them, streamed: while the writer takes one swath,
 * another thread reads the next. With a device swaths lie there, so that it decodes one, shrinks
 * and encodes another, and nothing but stored bytes comes and goes.
 */
#include "ahead.h"
#include "command.h"
#include "name.h"
#include "profile.h"
#include "progress.h"
#include "report.h"
#include "text.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Files beside OUT that speak of what it was before. */
static const struct {
    const char *ending, *holds;
} sidecars[] = {{".ovr", "overviews"},
                {".aux.xml", "metadata"},
                {".msk", "a mask"},
                {".msk.ovr", "overviews of a mask"}};
enum { SIDECARS = sizeof sidecars / sizeof *sidecars };

struct job {
    const cogpu_arguments *arguments;
    cogpu_selection selection;
    cogpu_taken taken;
    cogpu_ahead *ahead;
    cogpu_writer *writer;
    cogpu_progress_bar progress;
    cogpu_result result;
    cogpu_written written;
    double milliseconds;
    const char *culprit; /* the file that an error is about */
    bool had_sidecar[SIDECARS];
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

/* ---- interrupts: the writer puts away what it began, then the process ends --------------------
 */

static volatile sig_atomic_t interrupted;

static void note_interrupt(int number) {
    interrupted = number;
}

/* A second interrupt ends the process at once. What nohup, or a shell for its jobs in the
 * background, has told the process not to heed, it does not. */
static void catch_interrupt(int number) {
    const struct sigaction action = {.sa_handler = note_interrupt, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

static void catch_interrupts(void) {
    catch_interrupt(SIGINT);
    catch_interrupt(SIGTERM);
    catch_interrupt(SIGHUP);
}

static void end_if_interrupted(void) {
    if (interrupted) {
        signal(interrupted, SIG_DFL);
        raise(interrupted);
    }
}

/* ---- the way of the pixels --------------------------------------------------------------------
 */

static uint64_t row_bytes(const struct job *job) {
    return (uint64_t)job->selection.request.width * job->selection.bands *
           cogpu_type_bytes(job->selection.type);
}

static cogpu_status copy(struct job *job, cogpu_error *error) {
    while (!interrupted) {
        const cogpu_ahead_swath *swath;
        job->culprit = job->arguments->names[0];
        TRY(cogpu_ahead_next(job->ahead, &swath, error));
        if (!swath)
            return COGPU_OK;
        job->culprit = job->arguments->names[1];
        TRY(cogpu_writer_push(job->writer, &swath->rows, swath->mask.data ? &swath->mask : NULL,
                              error));
        cogpu_progress_add(&job->progress, row_bytes(job) * swath->rows.height);
    }
    return cogpu_refuse(error, COGPU_IO, "interrupted");
}

/* A file that is converted in its place keeps what stands beside it: of masks and metadata there,
 * nothing comes into the new file. */
static bool is_in_place(const cogpu_arguments *arguments) {
    struct stat in, out;
    return !cogpu_name_is_url(arguments->files[0]) && !cogpu_name_is_url(arguments->files[1]) &&
           stat(arguments->files[0], &in) == 0 && stat(arguments->files[1], &out) == 0 &&
           in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}

static bool has_sidecar(const struct job *job, int index, char name[PATH_MAX]) {
    const char *file = job->arguments->files[1];
    int length = snprintf(name, PATH_MAX, "%s%s", file, sidecars[index].ending);
    return !cogpu_name_is_url(file) && length < PATH_MAX && access(name, F_OK) == 0;
}

static cogpu_status write_file(struct job *job, cogpu_error *error) {
    const cogpu_sink sink = {.path = job->arguments->files[1],
                             .keep_sidecars = is_in_place(job->arguments)};
    char name[PATH_MAX];
    for (int i = 0; i < SIDECARS; i++)
        job->had_sidecar[i] = has_sidecar(job, i, name);
    catch_interrupts();
    job->culprit = job->arguments->names[1];
    TRY(cogpu_writer_open(&sink, &job->taken.profile, &job->writer, error));
    job->culprit = job->arguments->names[0];
    TRY(cogpu_ahead_open(&job->selection, &job->taken.profile, &job->ahead, error));
    TRY(copy(job, error));
    job->result = *cogpu_ahead_result(job->ahead);
    job->culprit = job->arguments->names[1];
    cogpu_writer *writer = job->writer;
    job->writer = NULL; /* closing frees it, whatever comes of it */
    return cogpu_writer_close(writer, &job->written, error);
}

/* Reader and writer share connections and devices. */
static void use_context(struct job *job) {
    job->taken.profile.context = job->selection.request.context;
    job->taken.profile.device = job->selection.device;
    job->taken.profile.device_index = job->selection.device_index;
}

static cogpu_status convert(struct job *job, const cogpu_input *input, cogpu_error *error) {
    double begin = now();
    job->culprit = input->name;
    TRY(cogpu_selection_make(input, job->arguments, &job->selection, error));
    cogpu_status status = cogpu_profile_take(&job->selection, job->arguments, &job->taken, error);
    if (status == COGPU_OK) {
        use_context(job);
        cogpu_progress_open(&job->progress, row_bytes(job) * job->selection.request.height);
        status = write_file(job, error);
        cogpu_progress_close(&job->progress);
    }
    cogpu_writer_abort(job->writer);
    cogpu_ahead_close(job->ahead);
    cogpu_profile_free(&job->taken);
    job->milliseconds = now() - begin;
    if (status != COGPU_OK)
        end_if_interrupted();
    return status;
}

/* ---- what is told of it -----------------------------------------------------------------------
 */

static void note_sidecars(const struct job *job) {
    for (int i = 0; i < SIDECARS; i++) {
        char name[PATH_MAX];
        const char *holds = sidecars[i].holds;
        if (has_sidecar(job, i, name))
            cogpu_report_note(name, "holds %s of the file before; remove it unless they hold",
                              holds);
        else if (job->had_sidecar[i])
            cogpu_report_note(name, "removed, since it held %s of the file before", holds);
    }
}

static void print_notes(const struct job *job) {
    const cogpu_nodata *nodata = &job->selection.image.nodata;
    bool asked = job->arguments->profile.nodata || job->arguments->without_nodata;
    if (job->result.bad_blocks > 0)
        cogpu_report_note(job->arguments->names[0],
                          "%" PRIu64 " blocks could not be read and were filled; the first: %s",
                          job->result.bad_blocks, job->result.first_bad.message);
    if (nodata->text && !nodata->matches && !asked)
        cogpu_report_note(job->arguments->names[0],
                          "nodata %s is no value of %s and was left out; --nodata gives another",
                          nodata->text, cogpu_type_name(job->selection.type));
    note_sidecars(job);
}

static void print_for_person(const struct job *job) {
    const cogpu_selection *selection = &job->selection;
    const cogpu_written *written = &job->written;
    uint64_t pixels = row_bytes(job) * selection->request.height;
    cogpu_text_print(stdout, job->arguments->names[1], SIZE_MAX);
    printf(": %" PRIu32 " x %" PRIu32 " pixels, %" PRIu32 " band%s of %s, %" PRIu32
           " level%s; %" PRIu64 " bytes, %.1f %% of the pixels', in %.2f s\n",
           selection->request.width, selection->request.height, selection->bands,
           selection->bands == 1 ? "" : "s", cogpu_type_name(selection->type), written->levels,
           written->levels == 1 ? "" : "s", written->bytes,
           (double)written->bytes * 100 / (double)pixels, job->milliseconds / 1e3);
}

static bool print_json(const struct job *job) {
    const cogpu_written *written = &job->written;
    cogpu_json json = {0};
    cogpu_json_open(&json, NULL, '{');
    cogpu_json_text(&json, "file", job->arguments->names[0]);
    cogpu_json_text(&json, "output", job->arguments->names[1]);
    cogpu_selection_json(&job->selection, &json);
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

static int print_result(const struct job *job) {
    print_notes(job);
    if (job->arguments->json)
        return print_json(job) ? EXIT_DONE : EXIT_FAILED;
    print_for_person(job);
    return EXIT_DONE;
}

static int run(const cogpu_arguments *arguments) {
    const cogpu_profile *profile = &arguments->profile;
    if (arguments->has_bbox && arguments->has_window)
        return cogpu_report_usage("--bbox and --window exclude each other");
    if (profile->strips && profile->block_width)
        return cogpu_report_usage("--strips and --block exclude each other");
    if (profile->strips && profile->cog)
        return cogpu_report_usage("--strips: a COG has tiles; leave out one of --strips and --cog");
    if (strcmp(arguments->files[1], "-") == 0)
        return cogpu_report_usage("OUT cannot be stdout, since a TIFF is not written from its "
                                  "start to its end; give the name of a file");
    if (cogpu_name_is_url(arguments->files[1]) && strncasecmp(arguments->files[1], "s3://", 5) != 0)
        return cogpu_report_usage("OUT cannot be a URL but s3://BUCKET/KEY; write a file, and "
                                  "upload that");
    struct job job = {.arguments = arguments};
    cogpu_input input;
    cogpu_error error;
    if (cogpu_input_open(arguments, 0, NULL, &input, &error) != COGPU_OK)
        return cogpu_report_error(arguments, arguments->names[0], &error);
    int code = convert(&job, &input, &error) == COGPU_OK
                   ? print_result(&job)
                   : cogpu_report_error(arguments, job.culprit, &error);
    cogpu_input_close(&input);
    return code;
}

const cogpu_command cogpu_cmd_convert = {
    .name = "convert",
    .operands = "IN OUT",
    .files = 2,
    .options = OPTION_PROFILE | OPTION_IMAGE | OPTION_WINDOW | OPTION_BBOX | OPTION_BAND |
               OPTION_FILL | OPTION_THREADS | OPTION_DEVICE | OPTION_NETWORK | OPTION_JSON,
    .summary = "to another GeoTIFF or, with --cog, a COG",
    .details =
        "Writes IN, or a part of it, as a GeoTIFF with tiles or strips, or as a COG with\n"
        "overviews. Pixels, coordinates, nodata, masks, colours and metadata stay; they are\n"
        "streamed, so that memory does not grow with the image. With --device cuda pixels stay on\n"
        "the GPU from decoding to encoding, and are the same in OUT; what it has no way for, the\n"
        "host does. OUT appears when it is whole; on an error what was there before stays. It\n"
        "may be IN. Another file that it replaces takes with it what stood beside it and would be\n"
        "read with the new one: OUT.ovr, OUT.msk, OUT.aux.xml. OUT may be s3://BUCKET/KEY: it "
        "goes\n"
        "up in parts while it is made, and takes no room here but for overviews, in TMPDIR.",
    .run = run,
};
