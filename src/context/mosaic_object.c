/* Parts of a mosaic that lists and VRTs share: members' files, levels, georeferencing. */
#include "context/mosaic.h"

#include "context/context.h"
#include "context/file_object.h"
#include "io/http/url.h"

#include <stdio.h>
#include <string.h>

/* ---- the object ---------------------------------------------------------------------------- */

cogpu_status cogpu_mosaic_object_create(cogpu_file *file, const cogpu_open_options *options,
                                        cogpu_error *error) {
    struct cogpu_mosaic_object *object = NULL;
    TRY(cogpu_arena_allocate(&file->arena, 1, sizeof *object, &object, error));
    object->options = *options;
    object->limits = cogpu_limits_complete(options->limits);
    object->options.limits = &object->limits;
    cogpu_mosaic *const mosaics[] = {&object->mosaic, &object->mask};
    for (int i = 0; i < 2; i++) {
        pthread_mutex_init(&mosaics[i]->lock, NULL);
        mosaics[i]->arena = &file->arena;
    }
    file->mosaic = object;
    return COGPU_OK;
}

void cogpu_mosaic_object_close(struct cogpu_mosaic_object *object) {
    if (!object)
        return;
    cogpu_mosaic *const mosaics[] = {&object->mosaic, &object->mask};
    for (int i = 0; i < 2; i++) {
        cogpu_mosaic_files_close(mosaics[i]->files);
        if (mosaics[i]->pyramid)
            cogpu_mosaic_close_views(mosaics[i]);
        pthread_mutex_destroy(&mosaics[i]->lock);
    }
    cogpu_operations_close(object->own_operations);
    cogpu_context_destroy(object->own_context);
}

cogpu_status cogpu_mosaic_open_operations(cogpu_file *file, cogpu_error *error) {
    struct cogpu_mosaic_object *object = file->mosaic;
    cogpu_operations **operations = &object->mosaic.operations;
    TRY(cogpu_context_operations(object->options.context, operations, error));
    if (!*operations)
        TRY(cogpu_operations_open(&object->own_operations, error));
    *operations = *operations ? *operations : object->own_operations;
    return COGPU_OK;
}

/* ---- members ------------------------------------------------------------------------------- */

/* A member of a mosaic whose file is `owner`. */
struct member_owner {
    cogpu_file *file;
    const cogpu_mosaic *mosaic;
};

static cogpu_status open_nested(const cogpu_file *owner, const cogpu_vrt *nested, cogpu_file **file,
                                cogpu_error *error) {
    const struct cogpu_mosaic_object *object = owner->mosaic;
    TRY(cogpu_file_create_computed(&object->limits, file, error));
    cogpu_status status =
        cogpu_mosaic_open_vrt(*file, nested, NULL, owner, &object->options, error);
    if (status != COGPU_OK) {
        cogpu_file_close(*file);
        *file = NULL;
    }
    return status;
}

static cogpu_status open_member(void *user, uint32_t index, cogpu_file **file, cogpu_error *error) {
    const struct member_owner *owner = user;
    const cogpu_mosaic_member *member = &owner->mosaic->members[index];
    const cogpu_open_options *options = &owner->file->mosaic->options;
    if (member->nested)
        return open_nested(owner->file, member->nested, file, error);
    return cogpu_file_open_member(member->path, owner->file->mosaic->is_vrt ? owner->file : NULL,
                                  options, file, error);
}

/* URLs share connections: of the caller's context, or of one of the mosaic. */
static cogpu_status open_context_for_urls(struct cogpu_mosaic_object *object, cogpu_error *error) {
    const cogpu_context_options options = {.struct_size = sizeof options, .threads = 1};
    if (object->options.context || !object->has_urls)
        return COGPU_OK;
    TRY(cogpu_context_create(&options, &object->own_context, error));
    object->options.context = object->own_context;
    return COGPU_OK;
}

cogpu_status cogpu_mosaic_object_start(cogpu_file *file, cogpu_mosaic *mosaic, cogpu_error *error) {
    struct member_owner *owner = NULL;
    TRY(cogpu_arena_allocate(&file->arena, 1, sizeof *owner, &owner, error));
    *owner = (struct member_owner){file, mosaic};
    const cogpu_member_opener opener = {open_member, owner};
    TRY(open_context_for_urls(file->mosaic, error));
    return cogpu_mosaic_files_open(mosaic->count, &opener, &mosaic->files, error);
}

cogpu_status cogpu_mosaic_acquire(const cogpu_mosaic *mosaic, uint32_t member,
                                  const cogpu_file **file, cogpu_error *error) {
    const cogpu_mosaic_member *self = &mosaic->members[member];
    if (!self->given)
        return cogpu_mosaic_files_acquire(mosaic->files, member, file, error);
    *file = self->given;
    return COGPU_OK;
}

void cogpu_mosaic_release(const cogpu_mosaic *mosaic, uint32_t member) {
    if (!mosaic->members[member].given)
        cogpu_mosaic_files_release(mosaic->files, member);
}

void cogpu_mosaic_name_member(const cogpu_mosaic_member *member, uint32_t index,
                              cogpu_error *error) {
    enum { PATH_CHARS = 200 };
    char message[sizeof error->message + PATH_CHARS + 32], path[PATH_CHARS];
    if (!error)
        return;
    if (member->path)
        snprintf(message, sizeof message, "%s: %s",
                 cogpu_path_shown(member->path, path, PATH_CHARS), error->message);
    else
        snprintf(message, sizeof message, "source %u: %s", index, error->message);
    memcpy(error->message, message, sizeof error->message - 1);
    error->message[sizeof error->message - 1] = '\0';
}

cogpu_source_description cogpu_mosaic_describe_member(const cogpu_mosaic *mosaic, uint32_t index) {
    const cogpu_mosaic_member *member = &mosaic->members[index];
    const cogpu_placement *source = &member->placement, *target = &mosaic->target;
    bool is_placed = member->rectangle != NULL;
    bool has_crs = source->crs && target->crs;
    cogpu_source_description found = {.path = member->path,
                                      .status = member->status,
                                      .message = member->message,
                                      .is_copied = member->is_copied};
    found.is_reprojected = !is_placed && (source->gcps || source->rpc ||
                                          (has_crs && strcmp(source->crs, target->crs) != 0));
    if (!cogpu_box_is_empty(member->extent)) {
        found.window[0] = member->extent.x0;
        found.window[1] = member->extent.y0;
        found.window[2] = member->extent.x1;
        found.window[3] = member->extent.y1;
    }
    return found;
}

/* ---- image --------------------------------------------------------------------------------- */

enum { BLOCK_SIDE = 512, LEVEL_SIDE_MIN = 512, LEVELS_MAX = 33 };

cogpu_status cogpu_mosaic_list_levels(cogpu_arena *arena, cogpu_computed_image *image,
                                      cogpu_error *error) {
    uint32_t(*sizes)[2] = NULL, width = image->width, height = image->height;
    TRY(cogpu_arena_allocate(arena, LEVELS_MAX, sizeof *sizes, &sizes, error));
    image->level_count = 1;
    while ((width > LEVEL_SIDE_MIN || height > LEVEL_SIDE_MIN) && image->level_count < LEVELS_MAX) {
        width = width / 2 + width % 2;
        height = height / 2 + height % 2;
        sizes[image->level_count - 1][0] = width;
        sizes[image->level_count - 1][1] = height;
        image->level_count++;
    }
    image->level_sizes = (const uint32_t(*)[2])sizes;
    image->block_width = BLOCK_SIDE;
    image->block_height = BLOCK_SIDE;
    return COGPU_OK;
}

cogpu_status cogpu_mosaic_set_georef(const cogpu_placement *grid, cogpu_crs_database **database,
                                     cogpu_arena *arena, cogpu_georef *georef, cogpu_error *error) {
    georef->has_transform = grid->has_transform;
    memcpy(georef->transform, grid->transform, sizeof georef->transform);
    if (!grid->crs)
        return COGPU_OK;
    cogpu_status status = cogpu_crs_from_text(grid->crs, database, arena, &georef->crs, error);
    georef->has_crs = status == COGPU_OK;
    georef->crs_text = grid->crs;
    return status;
}

cogpu_mosaic *cogpu_file_mosaic(const cogpu_file *file) {
    return file->mosaic ? &file->mosaic->mosaic : NULL;
}
