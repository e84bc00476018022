/* What an open file says of itself. */
#include "api/room.h"

#include <stdio.h>
#include <string.h>

#define TEXT(value)    TEXT_OF(value)
#define TEXT_OF(value) #value

const char *cogpu_version(void) {
    return TEXT(COGPU_VERSION_MAJOR) "." TEXT(COGPU_VERSION_MINOR) "." TEXT(COGPU_VERSION_PATCH);
}

/* `what` counts from `first`, and `owner` has `count` of it. */
static cogpu_status absent(cogpu_error *error, const char *what, uint64_t index, const char *owner,
                           uint64_t count, unsigned first) {
    return cogpu_fail(error, COGPU_ABSENT, "there is no %s %llu: the %s has %llu, counted from %u",
                      what, (unsigned long long)index, owner, (unsigned long long)count, first);
}

cogpu_status cogpu_file_picture(const cogpu_file *file, uint32_t image,
                                const cogpu_picture **picture, cogpu_error *error) {
    if (!file)
        return cogpu_fail(error, COGPU_ARGUMENT, "no file was given");
    if (image >= file->picture_count)
        return absent(error, "image", image, "file", file->picture_count, 0);
    *picture = &file->pictures[image];
    return COGPU_OK;
}

cogpu_status cogpu_info(const cogpu_file *file, uint32_t image, cogpu_image *info,
                        cogpu_error *error) {
    const cogpu_picture *picture = NULL;
    TRY(cogpu_file_picture(file, image, &picture, error));
    *info = picture->info;
    return COGPU_OK;
}

/* The level covers the same ground with fewer pixels. */
static void scale_transform(const cogpu_image *image, const cogpu_storage *level, double *scaled) {
    double across = image->width / (double)level->width;
    double down = image->height / (double)level->height;
    const double *full = image->transform;
    double transform[6] = {full[0], full[1] * across, full[2] * down,
                           full[3], full[4] * across, full[5] * down};
    memcpy(scaled, transform, sizeof transform);
}

cogpu_status cogpu_level_info(const cogpu_file *file, uint32_t image, uint32_t level,
                              cogpu_level *info, cogpu_error *error) {
    const cogpu_picture *picture = NULL;
    TRY(cogpu_file_picture(file, image, &picture, error));
    if (level >= picture->info.levels)
        return absent(error, "level", level, "image", picture->info.levels, 0);
    const cogpu_picture_level *from = &picture->levels[level];
    const cogpu_storage *storage = &from->storage;
    *info = (cogpu_level){.directory = storage->directory,
                          .external = from->external,
                          .width = storage->width,
                          .height = storage->height,
                          .layout = storage->layout,
                          .block_width = storage->block_width,
                          .block_height = storage->block_height,
                          .blocks = storage->blocks,
                          .compression = storage->format.compression,
                          .codec = storage->codec ? storage->codec->name : "unknown",
                          .predictor = storage->predictor,
                          .has_mask = from->has_mask,
                          .mask_external = from->mask_external,
                          .mask_directory = from->has_mask ? from->mask.directory : 0,
                          .has_transform = picture->info.has_transform};
    scale_transform(&picture->info, storage, info->transform);
    return COGPU_OK;
}

cogpu_status cogpu_band_info(const cogpu_file *file, uint32_t image, uint32_t band,
                             cogpu_band *info, cogpu_error *error) {
    const cogpu_picture *picture = NULL;
    TRY(cogpu_file_picture(file, image, &picture, error));
    if (band < 1 || band > picture->info.bands)
        return absent(error, "band", band, "image", picture->info.bands, 1);
    *info = picture->bands[band - 1];
    return COGPU_OK;
}

cogpu_status cogpu_item_info(const cogpu_file *file, uint32_t image, uint32_t index,
                             cogpu_item *info, cogpu_error *error) {
    const cogpu_picture *picture = NULL;
    TRY(cogpu_file_picture(file, image, &picture, error));
    if (index >= picture->metadata.item_count)
        return absent(error, "metadata item", index, "image", picture->metadata.item_count, 0);
    *info = picture->metadata.items[index];
    return COGPU_OK;
}

cogpu_status cogpu_geokey_info(const cogpu_file *file, uint32_t image, uint32_t index,
                               cogpu_geokey *info, cogpu_error *error) {
    const cogpu_picture *picture = NULL;
    TRY(cogpu_file_picture(file, image, &picture, error));
    if (index >= picture->georef.key_count)
        return absent(error, "GeoKey", index, "image", picture->georef.key_count, 0);
    *info = picture->georef.keys[index];
    return COGPU_OK;
}

static cogpu_status georef_with_crs(const cogpu_file *file, uint32_t image,
                                    const cogpu_georef **georef, cogpu_error *error) {
    const cogpu_picture *picture = NULL;
    TRY(cogpu_file_picture(file, image, &picture, error));
    if (!picture->georef.has_crs)
        return cogpu_fail(error, COGPU_ABSENT, "the image has no coordinate reference system");
    *georef = &picture->georef;
    return COGPU_OK;
}

cogpu_status cogpu_crs_info(const cogpu_file *file, uint32_t image, cogpu_crs *info,
                            cogpu_error *error) {
    const cogpu_georef *georef = NULL;
    TRY(georef_with_crs(file, image, &georef, error));
    *info = georef->crs;
    return COGPU_OK;
}

cogpu_status cogpu_crs_wkt(const cogpu_file *file, uint32_t image, cogpu_context *context,
                           char *text, size_t capacity, size_t *needed, cogpu_error *error) {
    const cogpu_georef *georef = NULL;
    TRY(georef_with_crs(file, image, &georef, error));
    cogpu_registry *registry = cogpu_context_registry(context);
    cogpu_status status = cogpu_crs_to_wkt(georef, &registry, text, capacity, needed, error);
    cogpu_context_keep_registry(context, registry);
    return status;
}

cogpu_status cogpu_directory_info(const cogpu_file *file, uint32_t directory, cogpu_directory *info,
                                  cogpu_error *error) {
    if (!file)
        return cogpu_fail(error, COGPU_ARGUMENT, "no file was given");
    if (directory >= file->tiff.directory_count)
        return absent(error, "directory", directory, "file", file->tiff.directory_count, 0);
    const cogpu_ifd *ifd = &file->tiff.directories[directory];
    *info = (cogpu_directory){.directories = file->tiff.directory_count,
                              .offset = ifd->offset,
                              .tags = ifd->entry_count,
                              .parent = ifd->parent,
                              .subfile_type = ifd->subfile_type};
    return COGPU_OK;
}

cogpu_status cogpu_tag_info(const cogpu_file *file, uint32_t directory, uint32_t index,
                            cogpu_tag *info, cogpu_error *error) {
    cogpu_directory about = {0};
    TRY(cogpu_directory_info(file, directory, &about, error));
    if (index >= about.tags)
        return absent(error, "tag", index, "directory", about.tags, 0);
    const cogpu_entry *entry = &file->tiff.directories[directory].entries[index];
    *info = (cogpu_tag){.id = entry->tag,
                        .name = cogpu_tag_name(entry->tag),
                        .type = entry->type,
                        .count = entry->count,
                        .value_offset = entry->value_offset,
                        .bytes = entry->bytes};
    return COGPU_OK;
}

cogpu_status cogpu_tag_read(const cogpu_file *file, uint32_t directory, uint32_t id, uint64_t first,
                            uint64_t count, void *to, cogpu_error *error) {
    cogpu_directory about = {0};
    TRY(cogpu_directory_info(file, directory, &about, error));
    const cogpu_entry *entry =
        id <= UINT16_MAX ? cogpu_tiff_find(&file->tiff, directory, (uint16_t)id) : NULL;
    if (!entry)
        return cogpu_fail(error, COGPU_ABSENT, "directory %u has no tag %u (%s)", directory, id,
                          cogpu_tag_name(id));
    if (first > entry->count || count > entry->count - first)
        return cogpu_fail(error, COGPU_ARGUMENT,
                          "tag %s has %llu elements: no %llu from number %llu on",
                          cogpu_tag_name(id), (unsigned long long)entry->count,
                          (unsigned long long)count, (unsigned long long)first);
    return cogpu_tiff_raw(&file->tiff, entry, first, count, to, error);
}
