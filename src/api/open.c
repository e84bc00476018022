/* From a path, memory or a user's source to an open file: source, directories, meaning. */
#include "api/sidecars.h"
#include "io/url.h"

#include <stdatomic.h>

static uint64_t next_number(void) {
    static atomic_uint_fast64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

/* `path` is where to look for sidecars, or NULL. */
static cogpu_status read_meaning(cogpu_file *file, const cogpu_limits *limits, const char *path,
                                 cogpu_context *context, cogpu_http *http, cogpu_error *error) {
    TRY(cogpu_tiff_open(&file->tiff, file->io, limits, &file->arena, error));
    if (path) {
        TRY(cogpu_arena_take(&file->arena, COGPU_SIDECARS_MAX, sizeof *file->sidecars,
                             &file->sidecars, error));
        TRY(cogpu_sidecars_open(file, path, http, error));
    }
    cogpu_registry *registry = cogpu_context_registry(context);
    file->beside.registry = &registry;
    cogpu_status status = cogpu_pictures_read(&file->tiff, &file->beside, &file->arena,
                                              &file->pictures, &file->picture_count, error);
    file->beside.registry = NULL;
    cogpu_context_keep_registry(context, registry);
    TRY(status);
    cogpu_io_settle(file->io);
    TRY(cogpu_sidecars_settle(file, error));
    return cogpu_io_check(file->io, error);
}

/* Takes the source over. `path` is where to look for sidecars, or NULL. */
static cogpu_status open_io(cogpu_io *io, const char *path, cogpu_http *http,
                            const cogpu_open_options *options, cogpu_file **out,
                            cogpu_error *error) {
    cogpu_limits limits = cogpu_limits_complete(options ? &options->limits : NULL);
    cogpu_file *file = cogpu_allocate(sizeof *file);
    if (!file) {
        cogpu_io_close(io);
        return cogpu_fail(error, COGPU_MEMORY, "out of memory opening the file");
    }
    *file = (cogpu_file){.number = next_number(), .io = io};
    cogpu_arena_open(&file->arena, limits.call_bytes);
    cogpu_status status =
        read_meaning(file, &limits, path, options ? options->context : NULL, http, error);
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
    cogpu_sidecars sidecars = options ? options->sidecars : COGPU_SIDECARS_DEFAULT;
    if ((unsigned)sidecars > COGPU_SIDECARS_ALL)
        return cogpu_fail(error, COGPU_ARGUMENT, "options.sidecars: there is no choice %u",
                          (unsigned)sidecars);
    if (cogpu_url_is(path)) {
        cogpu_http *http = NULL;
        cogpu_context *context = options ? options->context : NULL;
        TRY(cogpu_context_http(context, &http, error));
        TRY(cogpu_io_open_http(path, http, &io, error));
        return open_io(io, sidecars == COGPU_SIDECARS_ALL ? path : NULL, http, options, file,
                       error);
    }
    TRY(cogpu_io_open_file(path, &io, error));
    return open_io(io, sidecars == COGPU_SIDECARS_NONE ? NULL : path, NULL, options, file, error);
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
    return open_io(io, NULL, NULL, options, file, error);
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
    return open_io(io, NULL, NULL, options, file, error);
}

const char *cogpu_state(const cogpu_file *file) {
    return file ? cogpu_io_state(file->io) : NULL;
}

void cogpu_close(cogpu_file *file) {
    if (!file)
        return;
    cogpu_io_close(file->io);
    cogpu_sidecars_close(file);
    cogpu_arena_close(&file->arena);
    cogpu_release(file);
}
