/* Public functions that open and close a file. See context/file.h. */
#include "api/sized.h"
#include "context/file.h"

/* The caller's options as this version has them. */
struct open_call {
    cogpu_open_options options;
    cogpu_limits limits;
};

static cogpu_status take_options(const cogpu_open_options *given, struct open_call *call,
                                 cogpu_error *error) {
    TRY(TAKE_STRUCT(&call->options, given, cogpu_open_options, error));
    TRY(TAKE_STRUCT(&call->limits, call->options.limits, cogpu_limits, error));
    call->options.limits = &call->limits;
    if ((unsigned)call->options.sidecars > COGPU_SIDECARS_ALL)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "`sidecars` must be between 0 and %u, got %u",
                          (unsigned)COGPU_SIDECARS_ALL, (unsigned)call->options.sidecars);
    return COGPU_OK;
}

cogpu_status cogpu_open(const char *path, const cogpu_open_options *options, cogpu_file **file,
                        cogpu_error *error) {
    struct open_call call;
    cogpu_error_clear(error);
    if (file)
        *file = NULL;
    if (!file || !path)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_open needs a path and a pointer for the file");
    TRY(take_options(options, &call, error));
    return cogpu_file_open_path(path, &call.options, file, error);
}

cogpu_status cogpu_open_memory(const void *data, size_t bytes, const cogpu_open_options *options,
                               cogpu_file **file, cogpu_error *error) {
    struct open_call call;
    cogpu_io *io = NULL;
    cogpu_error_clear(error);
    if (file)
        *file = NULL;
    if (!file || (!data && bytes))
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_open_memory needs data and a pointer for the file");
    TRY(take_options(options, &call, error));
    TRY(cogpu_io_open_memory(data, bytes, &io, error));
    return cogpu_file_open_source(io, &call.options, file, error);
}

static cogpu_status take_source(const cogpu_source *given, const cogpu_open_options *options,
                                cogpu_source *source, struct open_call *call, cogpu_error *error) {
    TRY(TAKE_STRUCT(source, given, cogpu_source, error));
    TRY(take_options(options, call, error));
    if (!(source->read || source->read_many) || !source->size)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_open_source needs read or read_many, and size");
    return COGPU_OK;
}

cogpu_status cogpu_open_source(const cogpu_source *given, const cogpu_open_options *options,
                               cogpu_file **file, cogpu_error *error) {
    cogpu_source source;
    struct open_call call;
    cogpu_io *io = NULL;
    cogpu_error_clear(error);
    if (file)
        *file = NULL;
    if (!file || !given)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT,
                          "cogpu_open_source needs a source and a pointer for the file");
    cogpu_status status = take_source(given, options, &source, &call, error);
    if (status != COGPU_OK) {
        if (source.close)
            source.close(source.user);
        return status;
    }
    TRY(cogpu_io_open_user(&source, &io, error));
    return cogpu_file_open_source(io, &call.options, file, error);
}

void cogpu_close(cogpu_file *file) {
    cogpu_file_close(file);
}

const char *cogpu_file_version_id(const cogpu_file *file) {
    return file ? cogpu_file_version(file) : NULL;
}

const char *cogpu_sidecar_path(const cogpu_file *file, uint32_t index) {
    return file ? cogpu_file_sidecar_path(file, index) : NULL;
}
