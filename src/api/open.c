/* From a path, memory or a user's source to an open file: source, directories, meaning. */
#include "api/room.h"
#include "io/url.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static uint64_t next_number(void) {
    static atomic_uint_fast64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

/* Overviews beside the file are welcome, and no reason to fail. */
static void open_sidecar(cogpu_file *file, const char *path) {
    char beside[4096];
    cogpu_error error;
    int length = snprintf(beside, sizeof beside, "%s.ovr", path);
    if (length < 0 || (size_t)length >= sizeof beside)
        return;
    cogpu_status status = cogpu_io_open_file(beside, &file->overview_io, &error);
    if (status == COGPU_ABSENT)
        return;
    if (status == COGPU_OK)
        status = cogpu_tiff_open(&file->overview_tiff, file->overview_io, &file->tiff.limits,
                                 &file->arena, &error);
    if (status == COGPU_OK)
        return;
    cogpu_warn(&file->arena, &file->tiff.warning, "the .ovr file beside it was left out: %s",
               error.message);
    cogpu_io_close(file->overview_io);
    file->overview_io = NULL;
}

static cogpu_status read_meaning(cogpu_file *file, const cogpu_limits *limits, const char *path,
                                 cogpu_error *error) {
    TRY(cogpu_tiff_open(&file->tiff, file->io, limits, &file->arena, error));
    if (path)
        open_sidecar(file, path);
    TRY(cogpu_pictures_read(&file->tiff, file->overview_io ? &file->overview_tiff : NULL,
                            &file->arena, &file->pictures, &file->picture_count, error));
    cogpu_io_settle(file->io);
    if (file->overview_io)
        cogpu_io_settle(file->overview_io);
    return cogpu_io_check(file->io, error);
}

/* Takes the source over. `path` is where to look for side-cars, or NULL. */
static cogpu_status open_io(cogpu_io *io, const char *path, const cogpu_open_options *options,
                            cogpu_file **out, cogpu_error *error) {
    cogpu_limits limits = cogpu_limits_complete(options ? &options->limits : NULL);
    cogpu_file *file = cogpu_allocate(sizeof *file);
    if (!file) {
        cogpu_io_close(io);
        return cogpu_fail(error, COGPU_MEMORY, "out of memory opening the file");
    }
    *file = (cogpu_file){.number = next_number(), .io = io};
    cogpu_arena_open(&file->arena, limits.call_bytes);
    if (options && options->no_sidecar)
        path = NULL;
    cogpu_status status = read_meaning(file, &limits, path, error);
    if (status != COGPU_OK) {
        cogpu_close(file);
        return status;
    }
    cogpu_error_clear(error);
    *out = file;
    return COGPU_OK;
}

cogpu_status cogpu_open(const char *path, const cogpu_open_options *options, cogpu_file **file,
                        cogpu_error *error) {
    if (file)
        *file = NULL;
    if (!file || !path)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cogpu_open needs a path and a place for the file");
    cogpu_io *io = NULL;
    if (cogpu_url_is(path)) {
        cogpu_http *http = NULL;
        cogpu_context *context = options ? options->context : NULL;
        TRY(cogpu_context_http(context, &http, error));
        TRY(cogpu_io_open_http(path, http, &io, error));
        return open_io(io, NULL, options, file, error);
    }
    TRY(cogpu_io_open_file(path, &io, error));
    return open_io(io, path, options, file, error);
}

cogpu_status cogpu_open_memory(const void *data, size_t bytes, const cogpu_open_options *options,
                               cogpu_file **file, cogpu_error *error) {
    if (file)
        *file = NULL;
    if (!file || (!data && bytes))
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cogpu_open_memory needs data and a place for the file");
    cogpu_io *io = NULL;
    TRY(cogpu_io_open_memory(data, bytes, &io, error));
    return open_io(io, NULL, options, file, error);
}

cogpu_status cogpu_open_source(const cogpu_source *source, const cogpu_open_options *options,
                               cogpu_file **file, cogpu_error *error) {
    if (file)
        *file = NULL;
    if (!file || !source || !(source->read || source->read_many) || !source->size)
        return cogpu_fail(
            error, COGPU_ARGUMENT,
            "cogpu_open_source needs read or read_many, size, and a place for the file");
    cogpu_io *io = NULL;
    TRY(cogpu_io_open_user(source, &io, error));
    return open_io(io, NULL, options, file, error);
}

const char *cogpu_state(const cogpu_file *file) {
    return file ? cogpu_io_state(file->io) : NULL;
}

void cogpu_close(cogpu_file *file) {
    if (!file)
        return;
    cogpu_io_close(file->io);
    cogpu_io_close(file->overview_io);
    cogpu_arena_close(&file->arena);
    cogpu_release(file);
}
