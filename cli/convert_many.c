/*
 * Each IN becomes a file of its name in DIR. Threads take the next input each; one that fails does
 * not keep the others from being converted. Finished files are listed in a manifest, by which a
 * later run with --resume knows them.
 */
#include "convert_many.h"

#include "command.h"
#include "convert.h"
#include "interrupt.h"
#include "manifest.h"
#include "name.h"
#include "report.h"
#include "target.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct batch {
    cogpu_arguments arguments; /* with the threads of one job */
    cogpu_input shared;        /* the context, if there is one */
    cogpu_manifest *manifest;
    char **outputs; /* paths, by input */

    pthread_mutex_t lock; /* of what follows, and of what is printed */
    int next;
    int converted, skipped, failed;
};

/* ---- names ------------------------------------------------------------------------------------
 */

/* The last name of a path or URL, which the caller frees; NULL where there is none. */
static char *last_name(const char *input) {
    size_t length = cogpu_name_is_url(input) ? strcspn(input, "?#") : strlen(input);
    size_t begin = length;
    while (begin > 0 && input[begin - 1] != '/')
        begin--;
    size_t bytes = length - begin;
    bool is_name = bytes > 0 && strncmp(input + begin, "..", bytes) != 0;
    return is_name ? strndup(input + begin, bytes) : NULL;
}

static char *output_path(const char *folder, const char *input) {
    char *name = last_name(input), *path = NULL;
    size_t bytes = name ? strlen(folder) + strlen(name) + 2 : 0;
    if (name && (path = malloc(bytes)))
        snprintf(path, bytes, "%s/%s", folder, name);
    free(name);
    return path;
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Two inputs of one name would write the same file. */
static bool has_twins(const struct batch *batch, const char **twin) {
    int count = batch->arguments.file_count;
    const char **sorted = malloc((size_t)count * sizeof *sorted);
    *twin = NULL;
    if (!sorted)
        return false;
    memcpy(sorted, batch->outputs, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_texts);
    for (int i = 1; i < count && !*twin; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            *twin = sorted[i];
    free(sorted);
    return *twin != NULL;
}

static bool name_outputs(struct batch *batch) {
    const cogpu_arguments *arguments = &batch->arguments;
    const char *twin;
    batch->outputs = calloc((size_t)arguments->file_count, sizeof *batch->outputs);
    for (int i = 0; batch->outputs && i < arguments->file_count; i++) {
        batch->outputs[i] = output_path(arguments->folder, arguments->files[i]);
        if (!batch->outputs[i]) {
            cogpu_report_usage("--to: %s has no name that a file could have", arguments->names[i]);
            return false;
        }
    }
    if (batch->outputs && has_twins(batch, &twin)) {
        cogpu_report_usage("--to: two inputs would become %s; convert them one by one", twin);
        return false;
    }
    return batch->outputs != NULL;
}

/* ---- one of them ------------------------------------------------------------------------------
 */

/* Version identifier of a file; of a URL once it is open. */
static void describe_state(const char *input, const cogpu_file *file, char state[256]) {
    struct stat about;
    const char *version = file ? cogpu_file_version_id(file) : NULL;
    state[0] = '\0';
    if (version)
        snprintf(state, 256, "%s", version);
    else if (!cogpu_name_is_url(input) && stat(input, &about) == 0)
        snprintf(state, 256, "%lld-%lld.%09ld", (long long)about.st_size,
                 (long long)about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
}

static bool is_finished(const struct batch *batch, const cogpu_manifest_entry *entry,
                        const char *path) {
    struct stat about;
    cogpu_manifest_entry wanted = *entry;
    if (!batch->arguments.resume || !*entry->state || stat(path, &about) != 0)
        return false;
    wanted.bytes = (uint64_t)about.st_size;
    return cogpu_manifest_has(batch->manifest, &wanted);
}

static void print_skipped(const struct batch *batch, int index) {
    const cogpu_arguments *arguments = &batch->arguments;
    FILE *to = cogpu_report_stream();
    if (arguments->json) {
        cogpu_json json = {0};
        cogpu_json_open(&json, NULL, '{');
        cogpu_json_text(&json, "file", arguments->names[index]);
        cogpu_json_text(&json, "output", batch->outputs[index]);
        cogpu_json_boolean(&json, "skipped", true);
        cogpu_json_close(&json);
        cogpu_json_print(&json);
    } else if (!arguments->quiet) {
        cogpu_text_print(to, batch->outputs[index], SIZE_MAX);
        fputs(": skipped, since it was finished before\n", to);
    }
}

static void count_skipped(struct batch *batch, int index) {
    pthread_mutex_lock(&batch->lock);
    batch->skipped++;
    print_skipped(batch, index);
    pthread_mutex_unlock(&batch->lock);
}

static void count_failure(struct batch *batch, const char *name, const cogpu_error *error) {
    cogpu_error ignored;
    pthread_mutex_lock(&batch->lock);
    if (cogpu_interrupt_check(&ignored) == COGPU_OK) { /* else all fail alike */
        batch->failed++;
        cogpu_report_error(name, error);
    }
    pthread_mutex_unlock(&batch->lock);
}

static cogpu_status finish_entry(struct batch *batch, const cogpu_convert_job *job,
                                 cogpu_manifest_entry *entry, cogpu_error *error) {
    entry->bytes = job->written.bytes;
    cogpu_status status =
        *entry->state ? cogpu_manifest_add(batch->manifest, entry, error) : COGPU_OK;
    pthread_mutex_lock(&batch->lock);
    cogpu_convert_report(job);
    batch->converted += status == COGPU_OK;
    pthread_mutex_unlock(&batch->lock);
    return status;
}

static void convert_open(struct batch *batch, int index, const cogpu_input *input,
                         cogpu_manifest_entry *entry) {
    const cogpu_arguments *arguments = &batch->arguments;
    cogpu_convert_job job = {.arguments = arguments,
                             .inputs = arguments->files + index,
                             .input_count = 1,
                             .in_name = arguments->names[index],
                             .out_path = batch->outputs[index],
                             .out_name = batch->outputs[index],
                             .is_silent = arguments->jobs > 1};
    cogpu_error error;
    if (cogpu_convert_run(&job, input, &error) != COGPU_OK)
        count_failure(batch, job.culprit, &error);
    else if (finish_entry(batch, &job, entry, &error) != COGPU_OK)
        count_failure(batch, arguments->folder, &error);
}

static void convert_entry(struct batch *batch, int index) {
    const cogpu_arguments *arguments = &batch->arguments;
    const char *path = arguments->files[index];
    char state[256];
    cogpu_manifest_entry entry = {.output = strrchr(batch->outputs[index], '/') + 1,
                                  .input = path,
                                  .state = state,
                                  .options = arguments->output_options};
    cogpu_input input;
    cogpu_error error;
    describe_state(path, NULL, state);
    if (is_finished(batch, &entry, batch->outputs[index])) {
        count_skipped(batch, index);
        return;
    }
    if (cogpu_target_is_same_file(path, batch->outputs[index])) {
        cogpu_refuse(&error, COGPU_INVALID_ARGUMENT,
                     "is in the directory of --to; choose another directory");
        count_failure(batch, arguments->names[index], &error);
        return;
    }
    if (cogpu_input_open(arguments, index, &batch->shared, &input, &error) != COGPU_OK) {
        count_failure(batch, arguments->names[index], &error);
        return;
    }
    if (cogpu_name_is_url(path))
        describe_state(path, input.file, state);
    if (cogpu_name_is_url(path) && is_finished(batch, &entry, batch->outputs[index]))
        count_skipped(batch, index);
    else
        convert_open(batch, index, &input, &entry);
    cogpu_input_close(&input);
}

/* ---- all of them ------------------------------------------------------------------------------
 */

static int take_next(struct batch *batch) {
    cogpu_error error;
    pthread_mutex_lock(&batch->lock);
    bool is_left =
        batch->next < batch->arguments.file_count && cogpu_interrupt_check(&error) == COGPU_OK;
    int index = is_left ? batch->next++ : -1;
    pthread_mutex_unlock(&batch->lock);
    return index;
}

static void *convert_entries(void *user) {
    struct batch *batch = user;
    for (int index; (index = take_next(batch)) >= 0;)
        convert_entry(batch, index);
    return NULL;
}

/* This thread works too, so that a system that gives no more of them does no harm. */
static void work_at_once(struct batch *batch) {
    uint32_t jobs = batch->arguments.jobs, count = 0;
    pthread_t *threads = calloc(jobs, sizeof *threads);
    while (threads && count + 1 < jobs &&
           pthread_create(&threads[count], NULL, convert_entries, batch) == 0)
        count++;
    convert_entries(batch);
    for (uint32_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    free(threads);
}

/* Files at once share the CPU cores; those of a context share its threads anyway. */
static void set_jobs(cogpu_arguments *arguments) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (arguments->jobs == 0)
        arguments->jobs = 1;
    if (arguments->jobs > 1 && arguments->threads == 0 && cores > 0)
        arguments->threads =
            cores > (long)arguments->jobs ? (uint32_t)(cores / (long)arguments->jobs) : 1;
}

static int run_batch(struct batch *batch) {
    const cogpu_arguments *arguments = &batch->arguments;
    cogpu_error error;
    if (mkdir(arguments->folder, 0777) != 0 && errno != EEXIST) {
        cogpu_refuse(&error, COGPU_IO_ERROR, "cannot create the directory: %s", strerror(errno));
        return cogpu_report_error(arguments->folder, &error);
    }
    if (cogpu_manifest_open(arguments->folder, arguments->resume, &batch->manifest, &error) !=
            COGPU_OK ||
        cogpu_input_share(arguments, &batch->shared, &error) != COGPU_OK)
        return cogpu_report_error(arguments->folder, &error);
    cogpu_interrupt_catch();
    if (arguments->json)
        cogpu_json_list_open();
    work_at_once(batch);
    if (arguments->json)
        cogpu_json_list_close();
    else if (!arguments->quiet)
        printf("%d converted, %d skipped, %d failed\n", batch->converted, batch->skipped,
               batch->failed);
    return batch->failed ? EXIT_FAILED : EXIT_DONE;
}

int cogpu_convert_many(const cogpu_arguments *arguments) {
    struct batch batch = {.arguments = *arguments};
    int code = EXIT_USAGE;
    set_jobs(&batch.arguments);
    pthread_mutex_init(&batch.lock, NULL);
    if (name_outputs(&batch))
        code = run_batch(&batch);
    cogpu_manifest_close(batch.manifest);
    cogpu_input_close(&batch.shared);
    for (int i = 0; batch.outputs && i < arguments->file_count; i++)
        free(batch.outputs[i]);
    free(batch.outputs);
    pthread_mutex_destroy(&batch.lock);
    fflush(stdout);
    cogpu_interrupt_end();
    return code;
}
