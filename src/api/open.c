/* Public functions that open and close a file. See context/file.h. */
#include "context/file.h"

cogpu_status cogpu_open(const char *path, const cogpu_open_options *options, cogpu_file **file,
                        cogpu_error *error) {
    if (file)
        *file = NULL;
    if (!file || !path)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cogpu_open needs a path and a pointer for the file");
    cogpu_sidecars sidecars = options ? options->sidecars : COGPU_SIDECARS_DEFAULT;
    if ((unsigned)sidecars > COGPU_SIDECARS_ALL)
        return cogpu_fail(error, COGPU_ARGUMENT, "`sidecars` must be between 0 and %u, got %u",
                          (unsigned)COGPU_SIDECARS_ALL, (unsigned)sidecars);
    return cogpu_file_open_path(path, options, file, error);
}

cogpu_status cogpu_open_memory(const void *data, size_t bytes, const cogpu_open_options *options,
                               cogpu_file **file, cogpu_error *error) {
    if (file)
        *file = NULL;
    if (!file || (!data && bytes))
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "cogpu_open_memory needs data and a pointer for the file");
    cogpu_io *io = NULL;
    TRY(cogpu_io_open_memory(data, bytes, &io, error));
    return cogpu_file_open_source(io, options, file, error);
}

cogpu_status cogpu_open_source(const cogpu_source *source, const cogpu_open_options *options,
                               cogpu_file **file, cogpu_error *error) {
    if (file)
        *file = NULL;
    if (!file || !source || !(source->read || source->read_many) || !source->size)
        return cogpu_fail(
            error, COGPU_ARGUMENT,
            "cogpu_open_source needs read or read_many, size, and a pointer for the file");
    cogpu_io *io = NULL;
    TRY(cogpu_io_open_user(source, &io, error));
    return cogpu_file_open_source(io, options, file, error);
}

void cogpu_close(cogpu_file *file) {
    cogpu_file_close(file);
}

const char *cogpu_state(const cogpu_file *file) {
    return file ? cogpu_file_version(file) : NULL;
}

const char *cogpu_sidecar_path(const cogpu_file *file, uint32_t index) {
    return file ? cogpu_file_sidecar_path(file, index) : NULL;
}
