/*
 * Takes in the name of a file, hands on the open file. A TIFF is read here and there, so stdin is
 * taken whole into memory first.
 */
#include "input.h"

#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t stdin_limit = (size_t)1 << 30;

/* Room for one byte more than the limit shows whether there is more. */
static cogpu_status grow(void **memory, size_t *capacity, cogpu_error *error) {
    size_t wanted = *capacity ? *capacity * 2 : (size_t)1 << 20;
    if (wanted > stdin_limit)
        wanted = stdin_limit + 1;
    void *grown = realloc(*memory, wanted);
    if (!grown)
        return cogpu_refuse(error, COGPU_MEMORY, "no memory for %zu bytes of stdin", wanted);
    *memory = grown;
    *capacity = wanted;
    return COGPU_OK;
}

static cogpu_status read_stdin(void **memory, size_t *bytes, cogpu_error *error) {
    size_t capacity = 0;
    *bytes = 0;
    for (;;) {
        if (*bytes == capacity)
            TRY(grow(memory, &capacity, error));
        ssize_t got = read(STDIN_FILENO, (char *)*memory + *bytes, capacity - *bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return cogpu_refuse(error, COGPU_IO, "stdin cannot be read: %s", strerror(errno));
        if (got == 0)
            return COGPU_OK;
        *bytes += (size_t)got;
        if (*bytes > stdin_limit)
            return cogpu_refuse(error, COGPU_LIMIT,
                                "more than 1 GiB comes by stdin; save it and give its path");
    }
}

/* A path may hold "://" further on. */
size_t cogpu_scheme_length(const char *name) {
    size_t letters = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    return letters > 0 && strncmp(name + letters, "://", 3) == 0 ? letters : 0;
}

static cogpu_status open_input(cogpu_input *input, cogpu_error *error) {
    size_t scheme = cogpu_scheme_length(input->name);
    if (scheme > 0)
        return cogpu_refuse(error, COGPU_UNSUPPORTED,
                            "%.*s:// is not supported; download the file, or pipe it in and name "
                            "it -",
                            (int)scheme, input->name);
    if (strcmp(input->name, "-") != 0)
        return cogpu_open(input->name, NULL, &input->file, error);
    size_t bytes;
    TRY(read_stdin(&input->memory, &bytes, error));
    return cogpu_open_memory(input->memory, bytes, NULL, &input->file, error);
}

cogpu_status cogpu_input_open(const char *name, cogpu_input *input, cogpu_error *error) {
    *input = (cogpu_input){.name = name};
    cogpu_status status = open_input(input, error);
    if (status != COGPU_OK)
        cogpu_input_close(input);
    return status;
}

void cogpu_input_close(cogpu_input *input) {
    cogpu_close(input->file);
    free(input->memory);
    input->file = NULL;
    input->memory = NULL;
}
