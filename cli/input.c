/*
 * Opens the file of a name, with what its reads need. A TIFF is read
 * here and there, so stdin is taken whole into memory first.
 */
#include "input.h"

#include "command.h"
#include "json.h"
#include "name.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t stdin_limit = (size_t)1 << 30;

/* One byte more than the limit shows whether there is more. */
static cogpu_status grow_buffer(void **memory, size_t *capacity, cogpu_error *error) {
    size_t wanted = *capacity ? *capacity * 2 : (size_t)1 << 20;
    if (wanted > stdin_limit)
        wanted = stdin_limit + 1;
    void *grown = realloc(*memory, wanted);
    if (!grown)
        return cogpu_refuse(error, COGPU_OUT_OF_MEMORY, "no memory for %zu bytes of stdin", wanted);
    *memory = grown;
    *capacity = wanted;
    return COGPU_OK;
}

static cogpu_status read_stdin(void **memory, size_t *bytes, cogpu_error *error) {
    size_t capacity = 0;
    *bytes = 0;
    for (;;) {
        if (*bytes == capacity)
            TRY(grow_buffer(memory, &capacity, error));
        ssize_t got = read(STDIN_FILENO, (char *)*memory + *bytes, capacity - *bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return cogpu_refuse(error, COGPU_IO_ERROR, "stdin cannot be read: %s", strerror(errno));
        if (got == 0)
            return COGPU_OK;
        *bytes += (size_t)got;
        if (*bytes > stdin_limit)
            return cogpu_refuse(error, COGPU_LIMIT_EXCEEDED,
                                "stdin has more than 1 GiB; save it to a file");
    }
}

static bool has_url(const cogpu_arguments *arguments) {
    for (int i = 0; i < arguments->file_count; i++)
        if (cogpu_name_is_url(arguments->files[i]))
            return true;
    return false;
}

cogpu_status cogpu_input_open_context(const cogpu_arguments *arguments, cogpu_context **context,
                                      cogpu_error *error) {
    const cogpu_context_options options = {.struct_size = sizeof(cogpu_context_options),
                                           .threads = arguments->threads,
                                           .cache_bytes = COGPU_CACHE_DEFAULT,
                                           .network = &arguments->network};
    return cogpu_context_open(&options, context, error);
}

cogpu_open_options cogpu_input_options(const cogpu_arguments *arguments, cogpu_context *context) {
    return (cogpu_open_options){.struct_size = sizeof(cogpu_open_options),
                                .context = context,
                                .sidecars = arguments->sidecars,
                                .vrt_sources = arguments->vrt_sources};
}

static cogpu_status choose_context(const cogpu_arguments *arguments, const cogpu_input *first,
                                   cogpu_input *input, cogpu_error *error) {
    if (first && first->context) {
        input->context = first->context;
        input->shares_context = true;
        return COGPU_OK;
    }
    if (arguments->device == COGPU_DEVICE_CPU && arguments->decode == COGPU_DEVICE_CPU &&
        !has_url(arguments))
        return COGPU_OK;
    return cogpu_input_open_context(arguments, &input->context, error);
}

static cogpu_status open_input(const cogpu_arguments *arguments, const char *file,
                               cogpu_input *input, cogpu_error *error) {
    const cogpu_open_options options = cogpu_input_options(arguments, input->context);
    if (strcmp(file, "-") != 0)
        return cogpu_open(file, &options, &input->file, error);
    size_t bytes;
    TRY(read_stdin(&input->memory, &bytes, error));
    return cogpu_open_memory(input->memory, bytes, &options, &input->file, error);
}

cogpu_status cogpu_input_share(const cogpu_arguments *arguments, cogpu_input *shared,
                               cogpu_error *error) {
    *shared = (cogpu_input){0};
    return choose_context(arguments, NULL, shared, error);
}

/* Stdin has one file, however often it is named. */
int cogpu_input_each(const cogpu_arguments *arguments, cogpu_input_command *command) {
    int code = EXIT_DONE;
    bool is_list = arguments->json && arguments->file_count > 1;
    for (int i = 0, stdins = 0; i < arguments->file_count; i++) {
        stdins += strcmp(arguments->files[i], "-") == 0;
        if (stdins > 1)
            return cogpu_report_usage("only one of the files can be stdin");
    }
    cogpu_input shared;
    cogpu_error error;
    if (cogpu_input_share(arguments, &shared, &error) != COGPU_OK)
        return cogpu_report_error(arguments->names[0], &error);
    if (is_list)
        cogpu_json_list_open();
    for (int i = 0; i < arguments->file_count; i++) {
        cogpu_input input;
        int one;
        if (cogpu_input_open(arguments, i, &shared, &input, &error) == COGPU_OK) {
            one = command(arguments, &input, i);
            cogpu_input_close(&input);
        } else {
            one = cogpu_report_error(arguments->names[i], &error);
        }
        if (one > code)
            code = one;
    }
    cogpu_input_close(&shared);
    if (is_list)
        cogpu_json_list_close();
    return code;
}

cogpu_status cogpu_input_open(const cogpu_arguments *arguments, int index, const cogpu_input *first,
                              cogpu_input *input, cogpu_error *error) {
    const char *file = arguments->files[index];
    *input = (cogpu_input){.name = arguments->names[index]};
    cogpu_status status = choose_context(arguments, first, input, error);
    if (status == COGPU_OK)
        status = open_input(arguments, file, input, error);
    if (status != COGPU_OK)
        cogpu_input_close(input);
    return status;
}

void cogpu_input_close(cogpu_input *input) {
    cogpu_close(input->file);
    if (!input->shares_context)
        cogpu_context_close(input->context);
    free(input->memory);
    input->file = NULL;
    input->context = NULL;
    input->memory = NULL;
}
