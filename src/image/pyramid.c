/*
 * Takes all directories of a file, hands on its images: which directory is an image of its own,
 * which a smaller level of one, which a mask. The rules are GDAL's: a directory with the "reduced"
 * bit belongs to the image before it (or above it, for SubIFDs), one with the "mask" bit to the
 * level of its size. An unsound image 0 fails; any other unsound directory is left out with a
 * warning.
 */
#include "image/image.h"

#include "base/checked.h"

#include <string.h>

enum { REDUCED = 1, MASK = 4 };
enum role { ROLE_NONE = 0, ROLE_IMAGE, ROLE_LEVEL, ROLE_MASK };

/* A directory with its part in the file. */
struct member {
    cogpu_storage storage;
    enum role role;
    bool external;
    uint32_t owner;      /* index of the image it belongs to */
    struct member *next; /* of the same image: its levels and masks in file order */
};

struct cast {
    struct member *members;
    uint32_t count, images;
    struct member **image; /* the member that is the i-th image, which heads its list */
    struct member **last;  /* the end of that list */
    cogpu_arena *arena;
    const char *warning;
    cogpu_error *error;
};

static bool same_pixels(const cogpu_storage *a, const cogpu_storage *b) {
    return a->bands == b->bands && a->type == b->type;
}

static bool is_smaller(const cogpu_storage *level, const cogpu_storage *base) {
    return level->width <= base->width && level->height <= base->height &&
           (level->width < base->width || level->height < base->height);
}

static bool same_size(const cogpu_storage *a, const cogpu_storage *b) {
    return a->width == b->width && a->height == b->height;
}

/* One band for all, or one for each. */
static bool can_mask(const cogpu_storage *mask, const cogpu_storage *image) {
    return mask->type == COGPU_U8 && (mask->bits == 1 || mask->bits == 8) &&
           (mask->bands == 1 || mask->bands == image->bands);
}

static void join(struct cast *cast, struct member *member, enum role role) {
    member->role = role;
    cast->last[member->owner]->next = member;
    cast->last[member->owner] = member;
}

static void found(struct cast *cast, struct member *member) {
    member->role = ROLE_IMAGE;
    member->owner = cast->images++;
    cast->image[member->owner] = cast->last[member->owner] = member;
}

/* Decides on a directory whose storage was read; `owner` is the image that it would belong to. */
static void give_role(struct cast *cast, struct member *member, uint32_t subfile_type,
                      uint32_t owner) {
    const struct member *image = cast->images ? cast->image[owner] : NULL;
    member->owner = owner;
    if (subfile_type & MASK) {
        if (image && can_mask(&member->storage, &image->storage))
            join(cast, member, ROLE_MASK);
    } else if (image && (subfile_type & REDUCED || member->external)) {
        if (same_pixels(&member->storage, &image->storage) &&
            is_smaller(&member->storage, &image->storage))
            join(cast, member, ROLE_LEVEL);
        else
            cogpu_warn(
                cast->arena, &cast->warning,
                "directory %u%s is no level of its image (other size, bands or type) and was "
                "left out",
                member->storage.directory, member->external ? " of the .ovr file" : "");
    } else if (!member->external) {
        found(cast, member);
    }
}

/* The image that a directory belongs to: the last of the chain before it, or its parent's. */
static uint32_t owner_of(const struct cast *cast, const cogpu_tiff *tiff, uint32_t directory) {
    int32_t parent = tiff->directories[directory].parent;
    if (parent >= 0)
        return cast->members[parent].owner;
    return cast->images ? cast->images - 1 : 0;
}

static cogpu_status cast_directories(struct cast *cast, const cogpu_tiff *tiff, bool external) {
    for (uint32_t i = 0; i < tiff->directory_count; i++) {
        struct member *member = &cast->members[cast->count++];
        uint32_t owner = external ? 0 : owner_of(cast, tiff, i);
        member->external = external;
        member->owner = owner;
        cogpu_status status =
            cogpu_storage_read(tiff, i, cast->arena, &member->storage, &cast->warning, cast->error);
        bool needed = i == 0 && !external;
        if (status != COGPU_OK && (needed || status == COGPU_MEMORY || status == COGPU_IO)) {
            cogpu_error_place(cast->error, i, -1,
                              (int64_t)(tiff->directories[i].offset & INT64_MAX));
            return status;
        }
        if (status != COGPU_OK)
            cogpu_warn(cast->arena, &cast->warning, "directory %u%s was left out: %s", i,
                       external ? " of the .ovr file" : "",
                       cast->error ? cast->error->message : cogpu_status_name(status));
        else
            give_role(cast, member, tiff->directories[i].subfile_type, owner);
    }
    return COGPU_OK;
}

/* Largest first, as a pyramid is; directories of the same size stay in file order. */
static void insert_level(cogpu_picture *picture, const struct member *member) {
    uint32_t at = picture->info.levels++;
    uint64_t pixels = (uint64_t)member->storage.width * member->storage.height;
    for (; at > 1; at--) {
        const cogpu_storage *before = &picture->levels[at - 1].storage;
        if ((uint64_t)before->width * before->height >= pixels)
            break;
        picture->levels[at] = picture->levels[at - 1];
    }
    picture->levels[at] =
        (cogpu_picture_level){.storage = member->storage, .external = member->external};
}

static cogpu_status gather_levels(const struct cast *cast, uint32_t image, cogpu_picture *picture) {
    uint32_t levels = 1;
    for (const struct member *m = cast->image[image]->next; m; m = m->next)
        levels += m->role == ROLE_LEVEL && levels < COGPU_LEVELS_MAX;
    TRY(cogpu_arena_take(cast->arena, levels, sizeof *picture->levels, &picture->levels,
                         cast->error));
    picture->levels[0].storage = cast->image[image]->storage;
    picture->info.levels = 1;
    for (const struct member *m = cast->image[image]->next; m; m = m->next)
        if (m->role == ROLE_LEVEL && picture->info.levels < levels)
            insert_level(picture, m);
    return COGPU_OK;
}

static void pair_mask(cogpu_picture *picture, const cogpu_storage *mask) {
    for (uint32_t k = 0; k < picture->info.levels; k++) {
        cogpu_picture_level *level = &picture->levels[k];
        if (!level->has_mask && same_size(&level->storage, mask)) {
            level->has_mask = true;
            level->mask = *mask;
            return;
        }
    }
}

static void pair_masks(const struct cast *cast, uint32_t image, cogpu_picture *picture) {
    for (const struct member *m = cast->image[image]->next; m; m = m->next)
        if (m->role == ROLE_MASK)
            pair_mask(picture, &m->storage);
}

static void describe_storage(const cogpu_storage *storage, cogpu_image *info) {
    const cogpu_tiff *tiff = storage->tiff;
    info->directory = storage->directory;
    info->width = storage->width;
    info->height = storage->height;
    info->bands = storage->bands;
    info->type = storage->type;
    info->bits = storage->bits;
    info->layout = storage->layout;
    info->block_width = storage->block_width;
    info->block_height = storage->block_height;
    info->blocks = storage->blocks;
    info->planar = storage->planes > 1;
    info->compression = storage->format.compression;
    info->codec = storage->codec ? storage->codec->name : "unknown";
    info->predictor = storage->predictor;
    info->photometric = storage->photometric;
    info->orientation = storage->orientation;
    info->fill_order = storage->format.fill_order;
    info->big_endian = tiff->big_endian;
    info->bigtiff = tiff->bigtiff;
    info->ghost = tiff->ghost;
}

static void describe_georef(const cogpu_georef *georef, cogpu_image *info) {
    info->has_transform = georef->has_transform;
    memcpy(info->transform, georef->transform, sizeof info->transform);
    info->pixel_is_point = georef->pixel_is_point;
    info->gcps = georef->gcps;
    info->gcp_count = georef->gcp_count;
    info->rpc = georef->rpc;
    info->geokeys = georef->key_count;
}

/* A text tag of no consequence for the pixels: an unsound one is named and left out. */
static cogpu_status optional_text(const cogpu_tiff *tiff, uint32_t directory, uint16_t tag,
                                  cogpu_arena *arena, const char **text, const char **warning,
                                  cogpu_error *error) {
    cogpu_status status = cogpu_tiff_text(tiff, directory, tag, arena, text, error);
    if (status != COGPU_CORRUPT && status != COGPU_LIMIT)
        return status;
    cogpu_warn(arena, warning, "tag %s is not sound and was left out", cogpu_tag_name(tag));
    *text = NULL;
    return COGPU_OK;
}

/* Every block of a level without data in the file is filled with this. */
static void set_fill(cogpu_picture *picture) {
    for (uint32_t k = 0; k < picture->info.levels; k++)
        cogpu_nodata_sample(&picture->info.nodata, picture->info.type,
                            picture->levels[k].storage.format.fill);
}

/* Without a mask: nodata, or an alpha band where GDAL would take it for one. */
static cogpu_validity validity_of(const cogpu_image *info) {
    bool has_alpha = info->alpha_band == info->bands && (info->bands == 2 || info->bands == 4) &&
                     (info->type == COGPU_U8 || info->type == COGPU_U16);
    return info->nodata.matches ? COGPU_BY_NODATA : has_alpha ? COGPU_BY_ALPHA : COGPU_ALL_VALID;
}

static cogpu_status describe(struct cast *cast, cogpu_picture *picture) {
    cogpu_image *info = &picture->info;
    const cogpu_storage *storage = &picture->levels[0].storage;
    const cogpu_tiff *tiff = storage->tiff;
    uint32_t directory = storage->directory;
    const char *nodata = NULL, **warning = &info->warning;
    describe_storage(storage, info);
    TRY(optional_text(tiff, directory, TAG_IMAGE_DESCRIPTION, cast->arena, &info->description,
                      warning, cast->error));
    TRY(optional_text(tiff, directory, TAG_GDAL_NODATA, cast->arena, &nodata, warning,
                      cast->error));
    cogpu_nodata_parse(nodata, info->type, &info->nodata);
    set_fill(picture);
    TRY(cogpu_georef_read(tiff, directory, info->bands, cast->arena, &picture->georef, warning,
                          cast->error));
    describe_georef(&picture->georef, info);
    TRY(cogpu_metadata_read(tiff, directory, cast->arena, &picture->metadata, warning,
                            cast->error));
    info->items = picture->metadata.item_count;
    TRY(cogpu_bands_read(tiff, storage, &picture->georef, &picture->metadata, cast->arena, info,
                         &picture->bands, warning, cast->error));
    picture->unmasked = validity_of(info);
    info->validity = picture->levels[0].has_mask ? COGPU_BY_MASK : picture->unmasked;
    return COGPU_OK;
}

/* Each band of each image costs memory here, and at least a byte in a file that has pixels. */
static cogpu_status check_bands(const struct cast *cast, const cogpu_tiff *tiff) {
    uint64_t bands = 0, most = cogpu_io_bytes(tiff->io);
    if (!checked_add(most, tiff->limits.bands, &most))
        most = UINT64_MAX;
    for (uint32_t i = 0; i < cast->images; i++)
        bands += cast->image[i]->storage.bands;
    if (bands > most)
        return cogpu_fail(cast->error, COGPU_LIMIT,
                          "the %u images of the file have %llu bands together, the limit is %llu; "
                          "raise `bands` to go on",
                          cast->images, (unsigned long long)bands, (unsigned long long)most);
    return COGPU_OK;
}

cogpu_status cogpu_pictures_read(const cogpu_tiff *tiff, const cogpu_tiff *overviews,
                                 cogpu_arena *arena, cogpu_picture **pictures, uint32_t *count,
                                 cogpu_error *error) {
    struct cast cast = {.arena = arena, .error = error, .warning = tiff->warning};
    uint64_t members =
        (uint64_t)tiff->directory_count + (overviews ? overviews->directory_count : 0);
    TRY(cogpu_arena_take(arena, members, sizeof *cast.members, &cast.members, error));
    TRY(cogpu_arena_take(arena, members, sizeof *cast.image, &cast.image, error));
    TRY(cogpu_arena_take(arena, members, sizeof *cast.last, &cast.last, error));
    TRY(cast_directories(&cast, tiff, false));
    if (overviews)
        TRY(cast_directories(&cast, overviews, true));
    TRY(check_bands(&cast, tiff));
    TRY(cogpu_arena_take(arena, cast.images, sizeof **pictures, pictures, error));
    for (uint32_t i = 0; i < cast.images; i++) {
        cogpu_picture *picture = &(*pictures)[i];
        picture->info.images = cast.images;
        picture->info.warning = cast.warning;
        TRY(gather_levels(&cast, i, picture));
        pair_masks(&cast, i, picture);
        TRY(describe(&cast, picture));
    }
    *count = cast.images;
    return COGPU_OK;
}
