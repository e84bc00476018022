/* Opens a file: source, TIFF directories, sidecars, images. */
#include "context/file_object.h"

#include "base/bytes.h"
#include "base/math.h"
#include "context/context.h"
#include "context/mosaic.h"
#include "io/http/url.h"

#include <stdatomic.h>

static uint64_t next_file_number(void) {
    static atomic_uint_fast64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

static cogpu_status read_images(cogpu_file *file, cogpu_context *context, cogpu_error *error) {
    cogpu_crs_database *database = cogpu_context_take_crs_database(context);
    file->beside.registry = &database;
    cogpu_status status = cogpu_pyramids_read(&file->tiff, &file->beside, &file->arena,
                                              &file->pyramids, &file->pyramid_count, error);
    file->beside.registry = NULL;
    cogpu_context_return_crs_database(context, database);
    return status;
}

/* Where a file comes from, while it is opened. */
struct file_origin {
    const char *path;         /* or URL; NULL: neither */
    const char *sidecar_base; /* the path that sidecars are looked for beside, or NULL */
    const cogpu_file *parent; /* the VRT that names it, or NULL */
    cogpu_http *http;
};

static cogpu_status read_tiff(cogpu_file *file, const cogpu_limits *limits,
                              const struct file_origin *origin, cogpu_context *context,
                              cogpu_error *error) {
    TRY(cogpu_tiff_open(&file->tiff, file->io, limits, &file->arena, error));
    if (origin->sidecar_base) {
        TRY(cogpu_arena_allocate(&file->arena, COGPU_SIDECARS_MAX, sizeof *file->sidecars,
                                 &file->sidecars, error));
        TRY(cogpu_sidecars_open(file, origin->sidecar_base, origin->http, error));
    }
    TRY(read_images(file, context, error));
    cogpu_io_seal(file->io);
    return cogpu_sidecars_seal(file, error);
}

static cogpu_status read_vrt(cogpu_file *file, const cogpu_limits *limits,
                             const struct file_origin *origin, const cogpu_open_options *options,
                             cogpu_error *error) {
    file->tiff =
        (cogpu_tiff){.io = file->io, .limits = *limits, .big_endian = COGPU_HOST_BIG_ENDIAN};
    TRY(cogpu_mosaic_open_vrt(file, NULL, origin->path, origin->parent, options, error));
    cogpu_io_seal(file->io);
    return COGPU_OK;
}

static bool is_vrt(cogpu_io *io) {
    uint8_t start[1024];
    uint64_t bytes = min_u64(cogpu_io_bytes(io), sizeof start);
    return cogpu_io_peek(io, 0, (size_t)bytes, start, NULL) == COGPU_OK &&
           cogpu_vrt_identify(start, (size_t)bytes);
}

static cogpu_status read_file_structure(cogpu_file *file, const cogpu_limits *limits,
                                        const struct file_origin *origin,
                                        const cogpu_open_options *options, cogpu_error *error) {
    TRY(is_vrt(file->io) ? read_vrt(file, limits, origin, options, error)
                         : read_tiff(file, limits, origin, options->context, error));
    return cogpu_io_check(file->io, error);
}

/* NULL if there is no memory. */
static cogpu_file *create_file(cogpu_io *io, const cogpu_limits *limits) {
    cogpu_file *file = cogpu_allocate(sizeof *file);
    struct cogpu_file_caches *caches = file ? cogpu_file_caches_open() : NULL;
    if (!caches) {
        cogpu_release(file);
        return NULL;
    }
    *file = (cogpu_file){.number = next_file_number(), .caches = caches, .io = io};
    cogpu_arena_open(&file->arena, limits->working_memory_bytes);
    return file;
}

static cogpu_status open_io(cogpu_io *io, const struct file_origin *origin,
                            const cogpu_open_options *options, cogpu_file **out,
                            cogpu_error *error) {
    cogpu_limits limits = cogpu_limits_complete(options->limits);
    cogpu_file *file = create_file(io, &limits);
    if (!file) {
        cogpu_io_close(io);
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory opening the file");
    }
    cogpu_status status = read_file_structure(file, &limits, origin, options, error);
    if (status != COGPU_OK) {
        cogpu_file_close(file);
        return status;
    }
    cogpu_error_clear(error);
    *out = file;
    return COGPU_OK;
}

cogpu_status cogpu_file_open_member(const char *path, const cogpu_file *parent,
                                    const cogpu_open_options *options, cogpu_file **file,
                                    cogpu_error *error) {
    cogpu_sidecars sidecars = options->sidecars;
    struct file_origin origin = {.path = path, .parent = parent};
    cogpu_io *io = NULL;
    if (cogpu_url_is(path)) {
        origin.sidecar_base = sidecars == COGPU_SIDECARS_ALL ? path : NULL;
        TRY(cogpu_context_http(options->context, &origin.http, error));
        TRY(cogpu_io_open_url(path, origin.http, &io, error));
    } else {
        origin.sidecar_base = sidecars == COGPU_SIDECARS_NONE ? NULL : path;
        TRY(cogpu_io_open_file(path, &io, error));
    }
    return open_io(io, &origin, options, file, error);
}

cogpu_status cogpu_file_open_path(const char *path, const cogpu_open_options *options,
                                  cogpu_file **file, cogpu_error *error) {
    return cogpu_file_open_member(path, NULL, options, file, error);
}

cogpu_status cogpu_file_open_source(cogpu_io *io, const cogpu_open_options *options,
                                    cogpu_file **file, cogpu_error *error) {
    static const struct file_origin unknown = {0};
    return open_io(io, &unknown, options, file, error);
}

cogpu_status cogpu_file_create_computed(const cogpu_limits *limits, cogpu_file **out,
                                        cogpu_error *error) {
    cogpu_io *io = NULL;
    TRY(cogpu_io_open_memory(NULL, 0, &io, error));
    cogpu_file *file = create_file(io, limits);
    if (!file) {
        cogpu_io_close(io);
        return cogpu_fail(error, COGPU_OUT_OF_MEMORY, "out of memory for a file");
    }
    file->tiff = (cogpu_tiff){.io = io, .limits = *limits, .big_endian = COGPU_HOST_BIG_ENDIAN};
    *out = file;
    return COGPU_OK;
}

void cogpu_file_close(cogpu_file *file) {
    if (!file)
        return;
    cogpu_mosaic_object_close(file->mosaic);
    cogpu_file_caches_close(file->caches, file->number);
    cogpu_io_close(file->io);
    cogpu_sidecars_close(file);
    cogpu_arena_close(&file->arena);
    cogpu_release(file);
}

uint64_t cogpu_file_number(const cogpu_file *file) {
    return file->number;
}

const cogpu_tiff *cogpu_file_tiff(const cogpu_file *file) {
    return &file->tiff;
}

const char *cogpu_file_version(const cogpu_file *file) {
    return cogpu_io_version(file->io);
}

cogpu_status cogpu_fail_absent(cogpu_error *error, const char *what, uint64_t index,
                               const char *owner, uint64_t count, unsigned first) {
    return cogpu_fail(error, COGPU_NOT_FOUND,
                      "there is no %s %llu: the %s has %llu, counted from %u", what,
                      (unsigned long long)index, owner, (unsigned long long)count, first);
}

cogpu_status cogpu_file_pyramid(const cogpu_file *file, uint32_t image,
                                const cogpu_pyramid **pyramid, cogpu_error *error) {
    if (!file)
        return cogpu_fail(error, COGPU_INVALID_ARGUMENT, "no file was given");
    if (image >= file->pyramid_count)
        return cogpu_fail_absent(error, "image", image, "file", file->pyramid_count, 0);
    *pyramid = &file->pyramids[image];
    return COGPU_OK;
}

uint32_t cogpu_file_pyramid_count(const cogpu_file *file) {
    return file->pyramid_count;
}

bool cogpu_file_has_external_overviews(const cogpu_file *file) {
    return file->beside.overview_count > 0;
}

const char *cogpu_file_sidecar_path(const cogpu_file *file, uint32_t index) {
    return index < file->sidecar_path_count ? file->sidecar_paths[index] : NULL;
}
